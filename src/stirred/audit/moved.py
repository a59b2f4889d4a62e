"""The draw of a swap, stratum by stratum: how many records move, which ones, and where to.

What is tested is a table of permutations: for every draw and record, the record whose values it receives. The
law is that of the Permutation Swapping Algorithm: every record is selected with the rate, a stratum in which
one record is selected is selected anew, and the selected records of a stratum are deranged uniformly.

Guarantee
    Draws that have the law are called different with probability at most alpha.
Assumes
    The draws are independent. What marks the records (``marks``) was known before the draw.
Reference
    Algorithm 1 of Bailie, Gong and Meng. With p the rate, n records and q = p e^u / (1 - p + p e^u), the
    number moved has the generating function (1 - p + p e^u)^n (1 - c(q)) / (1 - c(p)), where c(p) =
    n p (1 - p)^(n - 1). Derangements with two images given are counted by d(k-2) + 2 d(k-3) + d(k-4), where
    neither is one of the two records, and by d(k-2) + d(k-3), where one is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.audit.finding import Finding, Verdict
from stirred.audit.incomplete_beta import masses
from stirred.audit.tails import (
    Checks,
    Floats,
    binomial_cumulants,
    log_entropy_tail,
    log_tail,
    problem_of,
    summed,
)

Ints = NDArray[np.int64]

SHAPES = 100
CELLS = 12
EXPECTED = 5
MOST_LEVELS = 64
SMALL = 40


def permutation_audit(
    tables: Sequence[NDArray[Any]],
    strata: NDArray[Any],
    rate: Fraction,
    *,
    matched: Mapping[str, NDArray[Any]] = {},
    marks: Mapping[str, NDArray[Any]] = {},
    alpha: float = 1e-6,
    subject: str = "the draw",
) -> Finding:
    """Compare permutations with their law.

    Parameters
    ----------
    tables
        Draws that were made in one way each, tested way by way. A row is a draw: for every record the record
        whose values it receives.
    strata
        The stratum of every record, numbered from zero.
    matched
        Variables that are constant within strata, by name and as numbers: rates are compared by level.
    marks
        Other variables of the records: records of every level must move as often as others.
    """
    sizes, used = np.bincount(strata), [table for table in tables if len(table)]
    draws, movable = sum(map(len, used)), int((sizes > 1).sum())
    details = {"draws": draws, "alpha": alpha, "strata": movable}
    if not movable:
        sentence = "no stratum has two records: there is nothing to swap"
        return Finding("conformity", subject, Verdict.VACUOUS, sentence, details=details)
    for table in used:
        share = alpha / len(used)
        found = permutation_problem(table, strata, rate, matched=matched, marks=marks, alpha=share)
        if found is not None:
            return Finding("conformity", subject, Verdict.VIOLATED, found, details=details)
    many = "1 stratum" if movable == 1 else f"{movable:,} strata"
    sentence = (
        f"{draws:,} draws on {many} agree with the law: how many records move in every stratum, which ones, "
        "and where to"
    )
    return Finding("conformity", subject, Verdict.NOT_REFUTED, sentence, details=details)


def permutation_problem(
    draws: NDArray[Any],
    strata: NDArray[Any],
    rate: Fraction,
    *,
    matched: Mapping[str, NDArray[Any]] = {},
    marks: Mapping[str, NDArray[Any]] = {},
    alpha: float = 1e-6,
) -> str | None:
    """What of the law the draws break, in a sentence; None if nothing is found."""
    drawn = np.asarray(draws, dtype=np.int64)
    everyone = np.arange(drawn.shape[1])
    if not (np.sort(drawn, axis=1) == everyone).all():
        return "a draw is no permutation: some record's values are given twice, and some never"
    if not (strata[drawn] == strata).all():
        return "a record receives the values of a record of another stratum"
    table = _Table(drawn, np.asarray(strata, dtype=np.int64), float(rate))
    return problem_of(_tests(table, matched, marks), alpha) if table.strata.size else None


@dataclass(frozen=True)
class _Table:
    """Draws, with the records sorted by stratum; strata of single records are left out of every sum."""

    draws: Ints
    codes: Ints
    rate: float

    @cached_property
    def order(self) -> Ints:
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def every_size(self) -> Ints:
        return np.bincount(self.codes)

    @cached_property
    def starts(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.every_size)[:-1]]).astype(np.int64)

    @cached_property
    def strata(self) -> Ints:
        """The strata in which something can move."""
        return np.flatnonzero(self.every_size > 1)

    @cached_property
    def sizes(self) -> Ints:
        return self.every_size[self.strata]

    @cached_property
    def moved(self) -> NDArray[np.bool_]:
        """Whether a record moves, by draw and record, sorted by stratum."""
        return np.asarray((self.draws != np.arange(self.codes.size))[:, self.order])

    @cached_property
    def numbers(self) -> Ints:
        """How many move, by draw and stratum."""
        cumulated = np.cumsum(self.moved, axis=1, dtype=np.int64)
        ends = self.starts + self.every_size - 1
        upto = cumulated[:, ends[self.strata]]
        first = self.starts[self.strata]
        before = np.where(first > 0, cumulated[:, first - 1], 0)
        return np.asarray(upto - before)

    @cached_property
    def totals(self) -> Floats:
        """How many move in every stratum, over all draws."""
        return np.asarray(self.numbers.sum(axis=0), dtype=np.float64)

    @cached_property
    def times(self) -> Floats:
        """How often each record moves, sorted by stratum."""
        return np.asarray(self.moved.sum(axis=0), dtype=np.float64)


def _tests(table: _Table, matched: Mapping[str, Any], marks: Mapping[str, Any]) -> Iterator[Checks]:
    yield from _how_many(table, matched)
    yield _shapes(table)
    yield from _which(table, marks)
    yield from _where(table)
    yield from _whose(table, marks)


def _how_many(table: _Table, matched: Mapping[str, Any]) -> Iterator[Checks]:
    """Sums of the records that move: by stratum, by size, by level of every matching variable, and all."""
    strata, draws = table.strata, table.draws.shape[0]
    odd = "too few or too many records move"
    kinds: list[tuple[str, Ints]] = [
        (f"{odd} in a stratum", np.arange(strata.size)),
        (f"{odd} in strata of a size", np.unique(table.sizes, return_inverse=True)[1]),
        (f"{odd}", np.zeros(strata.size, dtype=np.int64)),
    ]
    first = table.order[table.starts[strata]]
    for name, values in matched.items():
        levels = np.unique(np.asarray(values)[first], return_inverse=True)[1]
        kinds.append((f"{odd} at a level of {name}", levels))
    for what, groups in kinds:
        cumulants = _moved_cumulants(table.sizes.astype(np.float64), table.rate, draws)
        yield Checks(what, log_tail(summed(groups, table.totals), groups, cumulants))


def _moved_cumulants(sizes: Floats, rate: float, draws: int) -> Any:
    """Of the number of records that move in so many draws of a stratum: binomial, but never one."""

    def log_not_one(stays: Floats | float, goes: Floats | float) -> Floats:
        return np.asarray(np.log1p(-sizes * goes * np.exp((sizes - 1) * np.log(stays))))

    before = log_not_one(1 - rate, rate)

    def cumulants(tilts: Floats) -> Floats:
        whole = 1 + rate * np.expm1(tilts)
        after = log_not_one((1 - rate) / whole, rate * np.exp(tilts) / whole)
        return np.asarray(draws * (sizes * np.log(whole) + after - before))

    return cumulants


def moved_law(size: int, rate: float) -> Floats:
    """How many of so many records move, as floats: binomial, but never one."""
    law = masses(np.arange(size + 1), size, rate)
    law[1] = 0.0
    return np.asarray(law / law.sum())


def log_none_moves(sizes: Ints, rate: float) -> Floats:
    """The logarithm of the probability that no record of a stratum moves."""
    n = np.maximum(np.asarray(sizes, dtype=np.float64), 1.0)
    stays = math.log1p(-rate)
    one = np.where(n > 1, n * rate * np.exp((n - 1) * stays), 0.0)
    return np.where(n > 1, n * stays - np.log1p(-one), 0.0)


def _shapes(table: _Table) -> Checks:
    """All counts of the number that moves together, by size: the largest sizes and the most common ones."""
    sizes, common = np.unique(table.sizes, return_counts=True)
    largest = sizes[::-1][:SHAPES]
    chosen = np.union1d(largest, sizes[np.argsort(-common, kind="stable")][:SHAPES])
    tails = []
    for size in chosen.tolist():
        seen = table.numbers[:, table.sizes == size].reshape(-1)
        law = moved_law(size, table.rate)
        cells = _cells(law, seen.size)
        hits = np.bincount(cells[seen], minlength=cells[-1] + 1).astype(np.float64)
        tails.append(log_entropy_tail(hits, summed(cells, law)))
    what = "the number of records that move does not vary as it should, in strata of a size"
    return Checks(what, np.array(tails))


def _cells(law: Floats, draws: int) -> Ints:
    """The cell of each number: neighbours together until a cell is expected often enough."""
    least = max(1 / CELLS, EXPECTED / draws)
    cells = np.zeros(law.size, dtype=np.int64)
    cell, mass = 0, 0.0
    left = 1.0
    for number, chance in enumerate(law.tolist()):
        cells[number] = cell
        mass += chance
        left -= chance
        if mass >= least and left >= least:
            cell, mass = cell + 1, 0.0
    return cells


def _which(table: _Table, marks: Mapping[str, Any]) -> Iterator[Checks]:
    """Given how many move in a stratum, every set of so many records is equally likely."""
    every = table.every_size[table.codes[table.order]]
    place = np.arange(table.codes.size) - table.starts[table.codes[table.order]]
    positions = {
        "the first half of the records of the strata": 2 * place < every,
        "every other record of the strata": place % 2 == 0,
        "the first record of the strata": place == 0,
        "the last record of the strata": place == every - 1,
    }
    for name, chosen in positions.items():
        yield Checks(f"{name} moves too often or too rarely", _marked(table, chosen[None]))
    first = positions["the first half of the records of the strata"]
    yield Checks("one half of a stratum moves too often or too rarely", _halves(table, first))
    for name, values in marks.items():
        codes, levels = _levels(table, values)
        if levels > 1:
            chosen = codes == np.arange(levels)[:, None]
            yield Checks(f"records of a level of {name} move too often or too rarely", _marked(table, chosen))
    yield _each_record(table, every)


def _levels(table: _Table, values: Any) -> tuple[Ints, int]:
    """The levels of a variable as numbers, sorted by stratum; many levels are put together in their order."""
    levels, codes = np.unique(np.asarray(values)[table.order], return_inverse=True)
    codes = codes.reshape(-1).astype(np.int64)
    if levels.size <= MOST_LEVELS:
        return codes, levels.size
    return codes * MOST_LEVELS // levels.size, MOST_LEVELS


def _marked(table: _Table, chosen: NDArray[np.bool_]) -> Floats:
    """Tails for sets of records (a row each): of all that move, how many are of the set."""
    totals = np.zeros(table.every_size.size)
    totals[table.strata] = table.totals
    codes, rows = table.codes[table.order], len(chosen)
    inside = np.concatenate([np.bincount(codes, members) / table.every_size for members in chosen])
    groups = np.repeat(np.arange(rows), table.every_size.size)
    return log_tail(chosen @ table.times, groups, binomial_cumulants(np.tile(totals, rows), inside))


def _halves(table: _Table, first: NDArray[np.bool_]) -> Floats:
    codes = table.codes[table.order]
    inside = (np.bincount(codes, first) / table.every_size)[table.strata]
    seen = summed(codes, table.times * first)[table.strata]
    return log_tail(seen, np.arange(seen.size), binomial_cumulants(table.totals, inside))


def _each_record(table: _Table, every: Ints) -> Checks:
    """How often one record moves, over all draws: binomial."""
    pairs, copies = np.unique(np.stack([every, table.times.astype(np.int64)]), axis=1, return_counts=True)
    sizes, seen = pairs[:, pairs[0] > 1].astype(np.float64)
    copies = copies[pairs[0] > 1]
    chances = np.array([_chance_to_move(int(n), table.rate) for n in sizes.tolist()])
    draws = np.full(seen.size, float(table.draws.shape[0]))
    tails = log_tail(seen, np.arange(seen.size), binomial_cumulants(draws, chances))
    # As many tests as records, though equal ones are made once.
    return Checks("a record moves too often or too rarely", np.repeat(tails, copies))


def _chance_to_move(size: int, rate: float) -> float:
    """The probability that a given record of a stratum moves."""
    alone = (1 - rate) ** (size - 1)
    return rate * (1 - alone) / (1 - size * rate * alone)


def _where(table: _Table) -> Iterator[Checks]:
    """Given which records move, all derangements of them are equally likely: events of the first two.

    Records that move are numbered in the order of the file, from zero to k - 1.
    """
    seen = _donors_of_the_first_two(table)
    if not seen.k.size:
        return
    k = seen.k.astype(np.float64)
    ratios = {lag: _ratio(seen.k, lag) for lag in (2, 3, 4)}
    same = 2 * (ratios[2] + ratios[3]) + (k - 3) * (ratios[2] + 2 * ratios[3] + ratios[4])
    half = (seen.k - 1) // 2
    events = {
        "the next one": (3, seen.first == 1, 1 / (k - 1)),
        "the one before": (3, seen.first == seen.k - 1, 1 / (k - 1)),
        "one of the next half": (3, seen.first <= half, half / (k - 1)),
        "the one that receives its own": (4, seen.returns, (k - 1) * ratios[2]),
        "one as far on as the next record's": (4, (seen.second - 1) % seen.k == seen.first, same),
    }
    for name, (least, hits, chances) in events.items():
        use = seen.k >= least
        if not use.any():
            continue
        what = f"the first record that moves receives the values of {name} too often or too rarely"
        sizes = np.unique(seen.size[use], return_inverse=True)[1]
        tails = []
        for groups in (np.zeros(sizes.size, dtype=np.int64), sizes):
            counted = summed(groups, hits[use].astype(np.float64))
            tails.append(_by_chance(counted, groups, seen.k[use], chances[use]))
        yield Checks(what, np.concatenate(tails))


def _whose(table: _Table, marks: Mapping[str, Any]) -> Iterator[Checks]:
    """One record of those that move in a stratum, whichever: its donor is any other of them, equally likely.

    Which one is looked at follows from the numbers of draw and stratum alone. Its donor has its own level of
    a variable as often as the levels of the others say.
    """
    seen = _donors_of_anyone(table)
    if not seen.k.size:
        return
    k, half = seen.k.astype(np.float64), (seen.k - 1) // 2
    step = (seen.donor - seen.own) % seen.k
    together = np.zeros(seen.k.size, dtype=np.int64)
    events = {
        "the next one": (step == 1, 1 / (k - 1)),
        "the one before": (step == seen.k - 1, 1 / (k - 1)),
        "one of the next half": (step <= half, half / (k - 1)),
    }
    for name, values in marks.items():
        codes, levels = _levels(table, values)
        key = seen.group * levels + codes[seen.records]
        _, inverse, counts = np.unique(key, return_inverse=True, return_counts=True)
        alike = counts[inverse.reshape(-1)][seen.pick].astype(np.float64)
        same = codes[seen.records][seen.pick] == codes[seen.given]
        events[f"one of its own level of {name}"] = (same, (alike - 1) / (k - 1))
    for name, (hits, chances) in events.items():
        tail = log_tail(
            summed(together, hits.astype(np.float64)), together, binomial_cumulants(np.ones(k.size), chances)
        )
        yield Checks(f"a record that moves receives the values of {name} too often or too rarely", tail)


@dataclass(frozen=True)
class _Anyone:
    """For every stratum of every draw in which three or more move: one of them, and who gives to it.

    ``records`` are all that move, with the ``group`` (draw and stratum) of each; ``pick`` is where the chosen
    one stands among them, ``own`` and ``donor`` are ranks in its group, ``given`` is the record that gives.
    """

    k: Ints
    records: Ints
    group: Ints
    pick: Ints
    own: Ints
    donor: Ints
    given: Ints


def _donors_of_anyone(table: _Table) -> _Anyone:
    records = table.draws.shape[1]
    flat, before, movers, use, base = _among_movers(table)
    k: Ints = table.numbers.reshape(-1)[use]
    if not k.size:
        return _Anyone(*(k,) * 7)
    own = (np.arange(k.size, dtype=np.int64) * 2_654_435_761 >> 7) % np.maximum(k, 1)
    pick = base + own
    given = flat[movers[pick]]
    ranks = np.arange(movers.size)
    group = np.searchsorted(base, ranks, side="right") - 1
    # Pairs that change places stand between: they belong to no group.
    group[(group < 0) | (ranks - base[group] >= k[group])] = k.size
    return _Anyone(
        k=k,
        records=movers % records,
        group=group,
        pick=pick,
        own=own,
        donor=before[given] - base,
        given=given % records,
    )


def _by_chance(seen: Floats, groups: Ints, k: Ints, chances: Floats) -> Floats:
    """Tails of sums of coins; those of one group and one k are put together."""
    _, first, counts = np.unique(np.stack([groups, k]), axis=1, return_index=True, return_counts=True)
    return log_tail(seen, groups[first], binomial_cumulants(counts.astype(np.float64), chances[first]))


@dataclass(frozen=True)
class _FirstTwo:
    """For every stratum of every draw in which three or more move."""

    k: Ints
    size: Ints
    first: Ints
    second: Ints
    returns: NDArray[np.bool_]


def _donors_of_the_first_two(table: _Table) -> _FirstTwo:
    flat, before, movers, use, base = _among_movers(table)
    k: Ints = table.numbers.reshape(-1)[use]
    first, second = movers[base], movers[base + 1]
    sizes = np.tile(table.sizes, table.draws.shape[0])[use]
    return _FirstTwo(
        k=k,
        size=sizes,
        first=before[flat[first]] - base,
        second=before[flat[second]] - base,
        returns=flat[flat[first]] == first,
    )


def _among_movers(table: _Table) -> tuple[Ints, Ints, Ints, NDArray[np.bool_], Ints]:
    """All draws one after the other: the donor of every record, and how many move before it.

    Then which records move, in which strata three or more do, and how many move before each of those. The
    rank of a record among those that move in its stratum is a difference of these numbers.
    """
    count, records = table.draws.shape
    place = np.empty(records, dtype=np.int64)
    place[table.order] = np.arange(records)
    donors = place[table.draws[:, table.order]] + np.arange(count)[:, None] * records
    moved = table.moved.reshape(-1)
    before: Ints = np.cumsum(moved) - moved
    start = (np.arange(count)[:, None] * records + table.starts[table.strata]).reshape(-1)
    use = table.numbers.reshape(-1) >= 3
    return donors.reshape(-1), before, np.flatnonzero(moved), use, before[start[use]]


def _ratio(k: Ints, lag: int) -> Floats:
    """d(k - lag) / d(k) of the derangement numbers; from 40 on they are factorials over e, to all digits."""
    numbers = [1, 0]
    while len(numbers) <= SMALL:
        numbers.append((len(numbers) - 1) * (numbers[-1] + numbers[-2]))
    exact = [
        float(Fraction(numbers[n - lag], numbers[n])) if n >= max(lag, 2) else 0.0 for n in range(SMALL + 1)
    ]
    far = np.ones(k.size)
    for step in range(lag):
        far /= np.maximum(k - step, 1)
    return np.where(k <= SMALL, np.array(exact)[np.minimum(k, SMALL)], far)
