"""Bugs that swapping invites: what is drawn, in which order it is published, and what is said of it.

Every broken mechanism borrows the claim of ``PermutationSwap``, or restates it wrongly. The twin is
``PermutationSwap`` itself, enumerated on the same universe, or its sampler against the enumerated law.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.audit import Finding, conformity_audit, exact_audit, permutation_audit, same_universe
from stirred.museum.exhibit import Examine, Exhibit
from stirred.noise import Source
from stirred.spec import Budget, Domain, Invariants, Schema, Specification, swapping_invariants, swapping_loss
from stirred.swap import (
    Data,
    Derange,
    PermutationSwap,
    Prepared,
    Record,
    VariableRate,
    Weights,
    non_vacuous_derangements,
    outcomes,
    pattern_records,
    permutation_law,
    select_records,
    uniform_derangements,
    universe,
)

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

NAMES = ("m", "h", "s")
RATE = Fraction(3, 4)
"""At this rate Theorem 1 is attained by different records: the twins have nothing to spare."""
DRAWS = 4_000
FEW_DRAWS, STAYS = 12, 40


@dataclass(frozen=True)
class Borrowed:
    """A law of our own with the claim of permutation swapping."""

    swap: PermutationSwap
    law: Callable[[Data], Mapping[Any, Fraction]]

    def prepare(self, dataset: object) -> Prepared:
        """As for permutation swapping."""
        return self.swap.prepare(dataset)

    def guarantee(self, prepared: Prepared) -> Specification:
        """What permutation swapping would promise."""
        return self.swap.guarantee(prepared)

    def outcomes(self, prepared: Prepared) -> Mapping[Any, Fraction]:
        """What comes out instead."""
        return self.law(tuple(prepared.records.households.select(NAMES).iter_rows()))


def _swap(rate: object = RATE, domain: Domain | None = None) -> PermutationSwap:
    return PermutationSwap(match=("m",), hold=("h",), swap=("s",), rate=rate, domain=domain)


def _frame(data: Sequence[Record]) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(list(data), schema=list(NAMES), orient="row")


def _different(count: int) -> Data:
    """One stratum of records that differ in both variables: the case that attains the bounds."""
    return pattern_records((1,) * count, (1,) * count)


def _deranged(derange: Derange, records: Data, subject: str) -> Examine:
    """Audit another law of the derangement under the claim of Theorem 1."""

    def examine(broken: bool, source: Source) -> Finding:
        swap = _swap()
        other = Borrowed(swap, lambda data: outcomes(data, RATE, derange=derange))
        return exact_audit(other if broken else swap, list(map(_frame, universe(records))), subject=subject)

    return examine


def in_pairs(records: Sequence[Record], selected: tuple[int, ...]) -> Weights:
    """Disjoint pairs exchange their values; an odd selection is drawn anew."""
    place = {record: i for i, record in enumerate(selected)}
    return {
        donors: 1
        for donors in uniform_derangements(records, selected)
        if all(donors[place[donor]] == i for i, donor in zip(selected, donors, strict=True))
    }


def exactly_two(records: Sequence[Record], selected: tuple[int, ...]) -> Weights:
    """Selections are drawn anew until they have two records: a fixed number of swaps."""
    return uniform_derangements(records, selected) if len(selected) == 2 else {}


def in_one_cycle(records: Sequence[Record], selected: tuple[int, ...]) -> Weights:
    """Sattolo's shuffle: no record stays, but only single cycles are drawn."""
    return {
        donors: 1
        for donors in uniform_derangements(records, selected)
        if _cycle(dict(zip(selected, donors, strict=True))) == len(selected)
    }


def _cycle(donor: Mapping[int, int]) -> int:
    """The length of the cycle of the first record."""
    if not donor:
        return 0
    first = next(iter(donor))
    length, at = 1, donor[first]
    while at != first:
        length, at = length + 1, donor[at]
    return length


class Repaired(PermutationSwap):
    """Shuffles the selected of each stratum; a record that stays changes places with the next one.

    Nobody stays, yet derangements are not equally likely: 24 shuffles of four records do not divide by 9.
    """

    def donors(self, prepared: Prepared, source: Source) -> NDArray[np.int64]:
        """For every record the record whose swapping values it receives."""
        strata = prepared.strata
        chosen = select_records(strata.codes, strata.count, prepared.rates, source.child(0))
        ranks = source.child(1).words(strata.codes.size)
        donors = np.arange(strata.codes.size, dtype=np.int64)
        for group in np.split(chosen, np.flatnonzero(np.diff(strata.codes[chosen])) + 1):
            donors[group] = repaired(group[np.argsort(ranks[group])].tolist(), group.tolist())
        return donors


def repaired(order: list[int], group: list[int]) -> list[int]:
    """A shuffle of a group after its fixed points were moved on, one after the other."""
    for i, record in enumerate(group):
        if order[i] == record:
            after = (i + 1) % len(order)
            order[i], order[after] = order[after], order[i]
    return order


def _biased(broken: bool, source: Source) -> Finding:
    """The sampler against the law that Theorem 1 is about."""
    swap = _swap()
    data = swap.prepare(_frame(_different(4)))
    sampler = Repaired(match=("m",), hold=("h",), swap=("s",), rate=RATE) if broken else swap
    return conformity_audit(
        sampler.sample, data, swap.outcomes(data), draws=DRAWS, source=source, subject="the derangement"
    )


class LargeStay(PermutationSwap):
    """Swaps small strata only: up to ``STAYS`` records. Small twins and small toys look sound."""

    def donors(self, prepared: Prepared, source: Source) -> NDArray[np.int64]:
        """For every record the record whose swapping values it receives."""
        donors = super().donors(prepared, source).astype(np.int64)
        still = np.flatnonzero((prepared.strata.sizes > STAYS)[prepared.strata.codes])
        donors[still] = still
        return donors


def _large_strata(broken: bool, source: Source) -> Finding:
    """A few draws on strata of 5, 12, 41 and 60 records, each stratum against its own law."""
    rate, sizes = Fraction(1, 5), (5, 12, 41, 60)
    kind = LargeStay if broken else PermutationSwap
    swap = kind(match=("m",), hold=("h",), swap=("s",), rate=rate)
    records = [(m, i % 3, i % 4) for m, size in enumerate(sizes) for i in range(size)]
    prepared = swap.prepare(_frame(records))
    drawn = np.stack([swap.donors(prepared, source.child(i)) for i in range(FEW_DRAWS)])
    return permutation_audit([drawn], prepared.strata.codes, rate, subject="the draw in large strata")


class MedianStratum(PermutationSwap):
    """Permutation swapping that states its loss with the median stratum for b."""

    def guarantee(self, prepared: Prepared) -> Specification:
        """Theorem 1 with a b that is too small."""
        loss = swapping_loss(statistics.median_low(prepared.strata.sizes.tolist()), Fraction(str(self.rate)))
        return super().guarantee(prepared).flavor.with_budget(Budget.epsilon(loss))


def _wrong_b(broken: bool, source: Source) -> Finding:
    """One stratum of four different records and three strata of one: the largest is 4, the median 1."""
    rate = Fraction(1, 20)
    records = (*_different(4), *((m, 0, 0) for m in (1, 2, 3)))
    kind = MedianStratum if broken else PermutationSwap
    mechanism = kind(match=("m",), hold=("h",), swap=("s",), rate=rate)
    return exact_audit(mechanism, list(map(_frame, universe(records))), subject="the stated b")


def _input_order(broken: bool, source: Source) -> Finding:
    """Two orders of one multiset are at distance zero: an output in input order tells them apart."""
    schema = Schema.of(m=(0,), h=("a", "b"), s=(1, 2))
    swap = _swap(domain=Domain.datasets(schema, (2,), structure="vector"))

    def aligned(data: Data) -> dict[Data, Fraction]:
        law = permutation_law([record[1:] for record in data], RATE)
        return {
            tuple((m, h, data[donor][2]) for (m, h, _), donor in zip(data, donors, strict=True)): chance
            for donors, chance in law.items()
        }

    multisets = universe([(0, "a", 1), (0, "b", 2)])
    vectors = [_frame(order) for data in multisets for order in (data, data[::-1])]
    return exact_audit(Borrowed(swap, aligned) if broken else swap, vectors, subject="the order of the rows")


def _rates_of_both(broken: bool, source: Source) -> Finding:
    """A rate of 99% for one combination of h and s, claimed as if it were for one value of h."""
    low, high = Fraction(1, 100), Fraction(99, 100)
    swap = _swap(VariableRate.of(("h",), {(2,): high}, low))

    def joint(data: Data) -> Mapping[Any, Fraction]:
        return outcomes(data, [high if (h, s) == (2, 2) else low for _, h, s in data])

    frames = list(map(_frame, universe(_different(3))))
    return exact_audit(Borrowed(swap, joint) if broken else swap, frames, subject="the swap rates")


def _missing_invariant(broken: bool, source: Source) -> Finding:
    """Swapping keeps two tables; with one of them undeclared, the universe is larger than what is kept."""
    schema = Schema.of(m=(0,), h=("a", "b"), s=(1, 2))
    swap = _swap(domain=Domain.datasets(schema, (2,)))
    start = ((0, "a", 1), (0, "b", 2))
    kept, moved = swapping_invariants("household", ("m",), ("s",), ("h",)).invariants
    declared = Invariants(invariants=(moved,) if broken else (kept, moved))
    claim = swap.guarantee(swap.prepare(_frame(start))).model_copy(update={"multiverse": declared})
    points: list[Any] = [x for x in claim.domain.enumerate() if same_universe(claim, start, x)]
    return exact_audit(swap, list(map(_frame, points)), claim, subject="the declared invariants")


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "pairwise-swaps",
        "Disjoint pairwise swaps are sold with the epsilon of permutation swapping.",
        "our own, after appendix C of Bailie, Gong and Meng",
        _deranged(in_pairs, _different(3), "pairwise swaps"),
    ),
    Exhibit(
        "wrong-b",
        "The epsilon is computed with the median stratum instead of the largest.",
        "our own",
        _wrong_b,
    ),
    Exhibit(
        "fixed-number-of-swaps",
        "Exactly two records are swapped, instead of each with its own coin.",
        "our own",
        _deranged(exactly_two, _different(3), "a fixed number of swaps"),
    ),
    Exhibit(
        "cyclic-derangement",
        "The derangement is drawn by Sattolo's shuffle, which gives single cycles only.",
        "our own",
        _deranged(in_one_cycle, _different(4), "the derangement"),
    ),
    Exhibit(
        "biased-derangement",
        "A shuffle is repaired where a record stays, so derangements are not equally likely.",
        "our own",
        _biased,
        random=True,
    ),
    Exhibit(
        "large-strata-stay",
        "Strata of more than 40 records are never swapped; every small case is.",
        "our own, found by a reviewer",
        _large_strata,
        random=True,
    ),
    Exhibit(
        "input-order",
        "Rows are published in the order of the input, though only the multiset is protected.",
        "our own",
        _input_order,
    ),
    Exhibit(
        "rates-of-both",
        "The swap rate looks at the holding and the swapping variable at once.",
        "our own, see the proofs for swapping",
        _rates_of_both,
    ),
    Exhibit(
        "missing-invariant",
        "The table of matching and holding variables is kept exact and not declared.",
        "our own",
        _missing_invariant,
    ),
    Exhibit(
        "no-vacuous",
        "Swaps that change nothing are not drawn, and the epsilon of Theorem 1 is stated all the same.",
        "our own, after appendix C.2 of Bailie, Gong and Meng",
        _deranged(non_vacuous_derangements, pattern_records((2, 1), (2, 1)), "vacuous swaps"),
    ),
)
