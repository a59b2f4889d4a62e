"""What the invariants of a TopDown plan determine and expose: a function of their values alone.

The universe of a unit are the tables that keep its invariants and every declared bound, edit and structural
zero: these belong to the domain. Invariants of one unit say nothing of the records of another, except
through a declared bound. Equality to an earlier release is asked of the estimates, not of the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.data import ExactTable, Exposure, Exposures
from stirred.topdown.bounds import UNBOUNDED
from stirred.topdown.constraint import Invariant
from stirred.topdown.determined import Family, determined
from stirred.topdown.invariants import Values, value_key

if TYPE_CHECKING:
    from stirred.topdown.bounds import Bounds
    from stirred.topdown.mechanism import TopDown
    from stirred.topdown.prepared import Prepared


def exposures_of(mechanism: TopDown, prepared: Prepared) -> Exposures:
    """What the values of the invariants determine and expose, for every measured unit."""
    limits, values = prepared.limits, prepared.public.invariants
    units = tuple(_exposure(mechanism, unit, bounds, values) for unit, bounds in limits.items())
    return Exposures(units, tuple(unit for unit in mechanism.units if unit not in limits))


def _exposure(mechanism: TopDown, unit: str, bounds: Bounds, invariants: Values) -> Exposure:
    counts = [c.count for c in mechanism.constraints if isinstance(c, Invariant) and c.count.unit == unit]
    tables = tuple(
        ExactTable(count.sentence(), int((invariants[value_key(count)] == 1).sum())) for count in counts
    )
    families = [
        Family(level, partition.groups, lower, limits.upper[level])
        for partition, limits in zip(bounds.partitions, bounds.limits, strict=True)
        for level, lower in limits.lower.items()
    ]
    found = determined(mechanism.spine, ~bounds.zero, families)
    # No more records are determined than the smallest table has; but its size must be known.
    most = min(found.most, max(found.records, found.least)) if found.sized else found.most
    return Exposure(
        unit,
        found.records,
        found.least,
        None if most >= UNBOUNDED else most,
        tables,
        sized=found.sized,
    )
