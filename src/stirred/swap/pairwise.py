"""The pairwise swap in the manner of 2010, for comparison only: no finite budget holds.

Reference
    Appendix C of Bailie, Gong and Meng: households at risk are selected, each is paired with a household
    that agrees on the swap key and lies in another place, and the pairs exchange their places. Disjoint
    pairwise swapping is not transitive: from some data sets an output can be reached, from others of the
    same universe it cannot, so the supports differ and D_Mult is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.data import code_columns
from stirred.errors import InputError
from stirred.noise import RandomSource, Source, bernoulli, integers, permutation
from stirred.spec import INFINITY, Budget, Mechanism, Release, Specification, as_fraction, trial
from stirred.swap.arrangement import gathered
from stirred.swap.mechanism import PermutationSwap
from stirred.swap.prepared import Prepared, Public
from stirred.swap.primitive import Swapped

if TYPE_CHECKING:
    from numpy.typing import NDArray

WHY = (
    "disjoint pairwise swaps do not reach every data set of the universe, so the supports of the output "
    "differ between data sets that should be protected from each other"
)


@dataclass(frozen=True)
class PairwiseSwap(Mechanism):
    """Selection by risk and disjoint pairwise exchange.

    ``match`` is the swap key: in 2010 the numbers of adults and minors, tenure and state. ``swap`` has places
    from the coarsest to the finest; partners differ in the last one. ``risk`` are variables whose combination
    makes a household stand out within ``risk_place``. ``rate`` is the share of households to select; those
    that are unique are certain to be selected first.
    """

    match: Sequence[str]
    swap: Sequence[str]
    risk: Sequence[str]
    risk_place: str
    rate: object
    unit: str = "household"

    def prepare(self, dataset: object) -> Prepared:
        """The records, checked as for permutation swapping."""
        return self._stand_in.prepare(dataset)

    @property
    def _stand_in(self) -> PermutationSwap:
        return PermutationSwap(match=self.match, swap=self.swap, rate="0.5", unit=self.unit, missing="level")

    def guarantee(self, prepared: Prepared) -> Specification:
        """The flavor of permutation swapping with an infinite budget, and the reason."""
        return _uncertified(self._stand_in.guarantee(prepared))

    def draw(self, prepared: Prepared, random: Source | None = None) -> Swapped:
        """Select by risk, pair, exchange."""
        source = RandomSource() if random is None else random.spawn()
        frame = prepared.records.households
        order = permutation(source.child(9), frame.height)
        return Swapped(gathered(prepared, self._pairs(frame, source), order), publishable=source.publishable)

    def finish(self, primitive: Swapped, public: Public) -> Release:
        """The swapped households."""
        reason = trial("no finite budget holds for pairwise swapping")
        specification = _uncertified(public.specification)
        return Release({"households": primitive.households}, specification, reason=reason)

    def assess(self, primitive: Swapped, prepared: Prepared, made: Release | None = None) -> dict[str, Any]:
        """Nothing: tables are compared by ``accuracy``."""
        return {}

    def _pairs(self, frame: Any, source: Source) -> NDArray[np.int64]:
        rate = as_fraction(self.rate)
        if not 0 < rate < 1:
            raise InputError(
                "the share of households to select is out of range",
                field="rate",
                expected="a number above 0 and below 1",
                hint="The 2010 rate is purported to be between 2% and 4%.",
            )
        key = code_columns(frame, tuple(self.match), missing="level").values
        place = code_columns(frame, (self.swap[-1],), missing="level").values
        cell = code_columns(frame, (self.risk_place, *self.risk), missing="level")
        unique = np.bincount(cell.values, minlength=cell.count)[cell.values] == 1
        wanted = rate * frame.height
        missing = max(Fraction(0), wanted - int(unique.sum()))
        extra = min(Fraction(1), missing / max(1, int((~unique).sum())))
        selected = unique | bernoulli(source.child(0), extra, frame.height)
        return _exchange(key, place, selected, source.child(1))


def _uncertified(specification: Specification) -> Specification:
    budget = Budget.epsilon(INFINITY)
    return specification.flavor.with_budget(budget, assumptions=(WHY,), standing="uncertified")


def _exchange(
    key: NDArray[Any], place: NDArray[Any], selected: NDArray[np.bool_], source: Source
) -> NDArray[np.int64]:
    """Pair every selected record with a record of its key in another place, selected ones first."""
    donors = np.arange(key.size, dtype=np.int64)
    free = np.ones(key.size, dtype=np.bool_)
    shuffled = permutation(source.child(0), key.size).astype(np.int64)
    by_key = shuffled[np.argsort(key[shuffled], kind="stable")]
    starts = np.searchsorted(key[by_key], np.arange(int(key.max()) + 2))
    draw = integers(source.child(1), 2**32, key.size)
    for record in by_key[selected[by_key]]:
        if not free[record]:
            continue
        pool = by_key[starts[key[record]] : starts[key[record] + 1]]
        able = pool[free[pool] & (place[pool] != place[record])]
        chosen = able[selected[able]] if selected[able].any() else able
        if chosen.size:
            partner = chosen[int(draw[record]) * chosen.size >> 32]
            donors[record], donors[partner] = partner, record
            free[record] = free[partner] = False
    return donors
