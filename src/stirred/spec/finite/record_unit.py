"""What a record of a finite domain is: invariants and distances of one unit are computed on it, of two never.

A household count evaluated on records of persons is a number, and a wrong one. So universes are listed, and
invariants compared by listing, only where everything that reads the records speaks of one unit; otherwise
the declarations alone decide.
"""

from __future__ import annotations

from typing import Any

from stirred.errors import NotComputable
from stirred.spec.blocks.input_premetric import Described, Encoded, Given, Maximum, PulledBack, Sharpened
from stirred.spec.blocks.multiverse import AnyMultiverse, invariant_units


def record_units(premetric: Any) -> frozenset[str]:
    """Units of the records that a premetric reads; none where its distances are given or only described."""
    if isinstance(premetric, Maximum):
        return frozenset().union(*map(record_units, premetric.parts))
    if isinstance(premetric, Encoded):
        return record_units(premetric.base) | invariant_units(premetric.multiverse)
    if isinstance(premetric, Sharpened):
        return record_units(premetric.base)
    if isinstance(premetric, Given | Described | PulledBack):
        return frozenset()
    return frozenset({premetric.unit})


def require_one_unit(multiverse: AnyMultiverse, premetric: Any) -> None:
    """Refuse to list universes of one unit with distances of another."""
    invariants = invariant_units(multiverse)
    if invariants and len(invariants | record_units(premetric)) > 1:
        raise NotComputable(
            "the invariants and the input premetric count different units",
            field="multiverse",
            expected="invariants of the unit whose records the domain lists",
            hint="A domain that can be listed has one kind of record; give the distances of the other unit "
            "as a table (kind 'given'), or the universes as a list.",
        )
