"""Other laws of derangement, for experiments: nearby places first, and no vacuous swaps.

Reference
    Appendix C.2 of Bailie, Gong and Meng, which argues that such laws keep a finite loss and leaves its
    size open. The loss is computed by enumeration where the strata are tiny; otherwise the specification
    is uncertified and its release is not for publication.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stirred.data import code_columns
from stirred.errors import InputError, Refusal
from stirred.noise import Source, bernoulli
from stirred.spec import INFINITY, Budget, Standing, Stated, as_fraction
from stirred.swap.derangement import derange, select_records
from stirred.swap.enumeration import (
    Derange,
    exact_loss,
    nearby_first,
    neighbourhoods,
    non_vacuous_derangements,
)
from stirred.swap.mechanism import PermutationSwap
from stirred.swap.prepared import Prepared

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_ENUMERATED = 5
RULE = "enumerated over every data set of the universe"
OPEN = "not known: no theorem gives the size of the loss of this law of derangement"


@dataclass(frozen=True)
class ExperimentalSwap(PermutationSwap):
    """Permutation swapping with another law of derangement.

    ``law`` is ``"nearby-first"`` (``near`` names the coarser place within which swaps are preferred, and
    ``anywhere`` the probability of a uniform derangement instead) or ``"no-vacuous"`` (derangements that
    leave the records of a stratum as they were are redrawn).
    """

    law: Literal["nearby-first", "no-vacuous"] = "nearby-first"
    near: str | None = None
    anywhere: object = "1/10"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._fixed is None or self.imputed is not None or self.loss != "theorem-1":
            raise Refusal(
                "experimental laws take one common rate and no imputed records",
                field="law",
                expected="a rate, and none of the other extensions",
                hint="Use PermutationSwap for variable rates, imputed records and the tighter loss.",
            )
        if self.law == "nearby-first" and (self.near is None or self.near not in self.swap):
            raise InputError(
                "swaps nearby need the place within which they are preferred",
                field="near",
                expected="one of the swapping variables",
                hint="For example the county, where county and block are swapped.",
            )
        if self.law == "nearby-first" and not 0 < as_fraction(self.anywhere) <= 1:
            raise Refusal(
                "without swaps anywhere some data sets cannot come out, and the loss may be infinite",
                field="anywhere",
                expected="a probability above 0",
                hint="Choose for example 1/10.",
            )

    def _budget(self, prepared: Prepared) -> tuple[Budget, Standing]:
        sizes = prepared.strata.sizes
        if prepared.records.persons is not None:
            return Budget.epsilon(INFINITY), "uncertified"
        if prepared.records.households.height > LARGEST_ENUMERATED * 4 or sizes.max() > LARGEST_ENUMERATED:
            return Budget.epsilon(INFINITY), "uncertified"
        worst = max(
            exact_loss(records, self._fixed, derange=self._twin()).loss for records in _by_stratum(prepared)
        )
        rule = f"{RULE}, at the rate {self._fixed} with the law {self.law}"
        near = f" ({self.near}, anywhere {self.anywhere})" if self.law == "nearby-first" else ""
        return Budget.epsilon(worst, Stated(text=rule + near)), "enumerated"

    def _twin(self) -> Derange:
        if self.law == "no-vacuous":
            return non_vacuous_derangements
        assert self.near is not None
        position = list(self.swap).index(self.near)
        return nearby_first(lambda place: place[position], as_fraction(self.anywhere))

    def donors(self, prepared: Prepared, source: Source) -> NDArray[Any]:
        """Draw stratum by stratum: for experiments, not for nations."""
        strata = prepared.strata
        donors = np.arange(strata.codes.size, dtype=np.int64)
        for number in range(strata.count):
            members = np.flatnonzero(strata.codes == number)
            self._one_stratum(prepared, members, donors, source.child(number))
        return donors

    def _one_stratum(
        self, prepared: Prepared, members: NDArray[Any], donors: NDArray[Any], source: Source
    ) -> None:
        if members.size < 2:
            return
        frame, roles = prepared.records.households[members.tolist()], prepared.roles
        held = code_columns(frame, roles.hold, missing=self.missing).values
        moved = code_columns(frame, roles.swap, missing=self.missing).values
        single = np.zeros(members.size, dtype=np.int32)
        before = sorted(zip(held, moved, strict=True))
        while True:
            chosen = tuple(select_records(single, 1, prepared.rates, source.spawn()).tolist())
            if self.law == "nearby-first":
                places = frame[str(self.near)].to_list()
                donors[members] = members[self._nearby(places, chosen, members.size, source)]
                return
            changeable = len({held[i] for i in chosen}) > 1 and len({moved[i] for i in chosen}) > 1
            if not chosen or changeable:
                break
        while chosen:
            order = _deranged(members.size, [chosen], source.spawn())
            if sorted(zip(held, moved[order], strict=True)) != before:
                donors[members] = members[order]
                return

    def _nearby(self, places: list[Any], chosen: tuple[int, ...], size: int, stream: Source) -> NDArray[Any]:
        groups = [chosen] if chosen else []
        if chosen and not bernoulli(stream.spawn(), as_fraction(self.anywhere), 1)[0]:
            records = [(place,) for place in places]
            groups = neighbourhoods(records, chosen, lambda place: place)
        return _deranged(size, groups, stream.spawn())


def _deranged(size: int, groups: list[tuple[int, ...]], stream: Source) -> NDArray[Any]:
    """The identity except for a uniform derangement of every group."""
    result = np.arange(size, dtype=np.int64)
    if not any(groups):
        return result
    offsets = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
    order = np.empty(int(offsets[-1]), dtype=np.int64)
    derange(offsets, order, stream)
    for number, group in enumerate(groups):
        indices = np.array(group, dtype=np.int64)
        result[indices] = indices[order[offsets[number] : offsets[number + 1]]]
    return result


def _by_stratum(prepared: Prepared) -> list[list[tuple[Any, Any, Any]]]:
    frame, roles = prepared.records.households, prepared.roles
    held, moved = (list(frame.select(names).iter_rows()) for names in (roles.hold, roles.swap))
    strata: dict[int, list[tuple[Any, Any, Any]]] = {}
    for i, number in enumerate(prepared.strata.codes.tolist()):
        strata.setdefault(number, []).append((number, held[i], moved[i]))
    return list(strata.values())
