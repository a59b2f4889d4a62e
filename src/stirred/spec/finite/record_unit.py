"""What a record of a finite domain is: invariants and distances of one unit are computed on it, of two never.

A household count evaluated on records of persons is a number, and a wrong one. So universes are listed, and
invariants compared by listing, only where everything that reads the records speaks of one unit; otherwise
the declarations alone decide.
"""

from __future__ import annotations

from stirred.errors import NotComputable
from stirred.spec.blocks.input_premetric import Premetric
from stirred.spec.blocks.multiverse import AnyMultiverse, invariant_units


def require_one_unit(multiverse: AnyMultiverse, premetric: Premetric) -> None:
    """Refuse to list universes of one unit with distances of another."""
    invariants = invariant_units(multiverse)
    if invariants and len(invariants | premetric.record_units) > 1:
        raise NotComputable(
            "the invariants and the input premetric count different units",
            field="multiverse",
            expected="invariants of the unit whose records the domain lists",
            hint="A domain that can be listed has one kind of record; give the distances of the other unit "
            "as a table (kind 'given'), or the universes as a list.",
        )
