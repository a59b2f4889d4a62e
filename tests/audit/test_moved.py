"""Permutations against the law of swapping: brute-force twins of the laws, and sabotages to be seen."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stirred.audit import Verdict, log_none_moves, permutation_audit
from stirred.audit.moved import (
    _chance_to_move,
    _donors_of_the_first_two,
    _moved_cumulants,
    _ratio,
    _Table,
    moved_law,
    permutation_problem,
)
from stirred.noise import TestSource
from stirred.swap.derangement import Rates, draw_donors

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
rates = pytest.mark.parametrize("rate", [HALF, TENTH, Fraction(9, 10)])


def by_enumeration(size: int, rate: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Every permutation with its probability: selections of one are drawn anew, derangements are uniform."""
    out: dict[tuple[int, ...], Fraction] = {}
    for chosen in itertools.product((False, True), repeat=size):
        k = sum(chosen)
        if k == 1:
            continue
        fits = [
            p
            for p in itertools.permutations(range(size))
            if all((p[i] != i) == chosen[i] for i in range(size))
        ]
        for p in fits:
            out[p] = out.get(p, Fraction(0)) + rate**k * (1 - rate) ** (size - k) / len(fits)
    whole = sum(out.values())
    return {p: mass / whole for p, mass in out.items()}


def moved(permutation: tuple[int, ...]) -> int:
    return sum(i != donor for i, donor in enumerate(permutation))


@rates
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_the_number_that_moves_has_the_enumerated_law(size: int, rate: Fraction) -> None:
    law: Counter[int] = Counter()
    for permutation, mass in by_enumeration(size, rate).items():
        law[moved(permutation)] += mass  # type: ignore[assignment]
    assert np.allclose(moved_law(size, float(rate)), [float(law[k]) for k in range(size + 1)], atol=1e-14)
    assert math.isclose(float(log_none_moves(np.array([size]), float(rate))[0]), math.log(law[0]))
    for tilt in (-3.0, -0.1, 0.0, 0.7, 4.0):
        exact = math.log(sum(float(mass) * math.exp(tilt * k) for k, mass in law.items()))
        found = _moved_cumulants(np.array([float(size)]), float(rate), 1)(np.array([tilt]))
        assert math.isclose(found[0], exact, abs_tol=1e-12)


@rates
@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_record_moves_with_the_enumerated_probability(size: int, rate: Fraction) -> None:
    law = by_enumeration(size, rate)
    for record in range(size):
        exact = sum(mass for permutation, mass in law.items() if permutation[record] != record)
        assert math.isclose(_chance_to_move(size, float(rate)), exact)


@pytest.mark.parametrize("k", [4, 5, 6, 7])
def test_events_of_derangements_by_enumeration(k: int) -> None:
    every = [p for p in itertools.permutations(range(k)) if moved(p) == k]
    one, two, three, four = (float(_ratio(np.array([k]), lag)[0]) for lag in (1, 2, 3, 4))
    count = len(every)
    assert math.isclose(sum(p[p[0]] == 0 for p in every) / count, (k - 1) * two)
    same = sum((p[1] - 1) % k == p[0] for p in every) / count
    assert math.isclose(same, 2 * (two + three) + (k - 3) * (two + 2 * three + four))
    assert all(math.isclose(sum(p[0] == d for p in every) / count, 1 / (k - 1)) for d in range(1, k))
    assert 0 < one < 1


def test_ratios_of_derangement_numbers_join_without_a_step() -> None:
    numbers = [1, 0]
    for n in range(2, 60):
        numbers.append((n - 1) * (numbers[-1] + numbers[-2]))
    for k, lag in itertools.product((38, 39, 40, 41, 42, 59), (2, 3, 4)):
        assert math.isclose(_ratio(np.array([k]), lag)[0], numbers[k - lag] / numbers[k], rel_tol=1e-14)


def test_the_first_two_that_move_are_read_off_rightly() -> None:
    strata = np.array([0, 1, 0, 1, 0, 1, 1])
    # Records 0, 2, 4 of the first stratum: 0 <- 2 <- 4 <- 0; 1, 3, 5, 6 of the second: two exchanges.
    draw = np.array([[2, 5, 4, 6, 0, 1, 3]])
    seen = _donors_of_the_first_two(_Table(draw, strata, 0.5))
    assert seen.k.tolist() == [3, 4] and seen.size.tolist() == [3, 4]
    assert seen.first.tolist() == [1, 2] and seen.second.tolist() == [2, 3]
    assert seen.returns.tolist() == [False, True]


# Sabotages


SIZES = (2, 2, 3, 7, 15, 41, 60, 90, 130)
STRATA = np.repeat(np.arange(len(SIZES)), SIZES)[np.argsort(TestSource(5).words(sum(SIZES)))]
LEVEL = STRATA % 3
Draw = Callable[[Any, Fraction, int], NDArray[np.int64]]


def honest(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    return draw_donors(
        strata.astype(np.int32), int(strata.max()) + 1, Rates.common(rate), TestSource(seed)
    ).astype(np.int64)


def kept(draw: NDArray[np.int64], strata: NDArray[Any], still: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The draw, with some strata left as they are."""
    out = draw.copy()
    out[still[strata]] = np.flatnonzero(still[strata])
    return out


def never_above_40(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    return kept(honest(strata, rate, seed), strata, np.bincount(strata) > 40)


def half_the_rate_at_one_level(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    classes = (LEVEL == 1).astype(np.int16)
    return draw_donors(
        strata.astype(np.int32), len(SIZES), Rates((rate, rate / 2), classes), TestSource(seed)
    ).astype(np.int64)


def rotated(group: NDArray[np.int64], shift: int) -> NDArray[np.int64]:
    return np.roll(group, -shift)


def _selected(strata: NDArray[Any], rate: Fraction, seed: int, draw: Any) -> NDArray[np.int64]:
    """The honest selection, put in another order by a rule."""
    out = honest(strata, rate, seed)
    chance = np.random.default_rng(seed)
    for stratum in np.unique(strata):
        group = np.flatnonzero((strata == stratum) & (out != np.arange(strata.size)))
        if group.size:
            out[group] = draw(group, chance)
    return out


def fixed_rotation(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    return _selected(strata, rate, seed, lambda group, _: rotated(group, 1))


def random_rotation(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    return _selected(strata, rate, seed, lambda group, c: rotated(group, int(c.integers(1, group.size))))


def in_pairs(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    """Whoever moves changes places with another; three of an odd number go round."""

    def draw(group: NDArray[np.int64], chance: Any) -> NDArray[np.int64]:
        order = chance.permutation(group.size)
        out = group.copy()
        start = 3 if group.size % 2 else 0
        out[order[:start]] = group[np.roll(order[:start], 1)]
        for i in range(start, group.size, 2):
            out[order[[i, i + 1]]] = group[order[[i + 1, i]]]
        return out

    return _selected(strata, rate, seed, draw)


def one_cycle(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    def draw(group: NDArray[np.int64], chance: Any) -> NDArray[np.int64]:
        order = chance.permutation(group.size)
        out = group.copy()
        out[order] = group[np.roll(order, 1)]
        return out

    return _selected(strata, rate, seed, draw)


def first_half_only(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    """As many move as should, but all of them in the first half of their stratum (where they fit)."""
    out = np.arange(strata.size)
    full = honest(strata, rate, seed)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        k = int((full[members] != members).sum())
        group = members[: max(k, (members.size + 1) // 2)]
        group = np.random.default_rng(seed).permutation(group)[:k]
        out[group] = np.roll(group, 1)
    return out


def a_fixed_number(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    out = np.arange(strata.size)
    for stratum in np.unique(strata):
        group = np.random.default_rng(seed + int(stratum)).permutation(np.flatnonzero(strata == stratum))
        group = group[: max(2, round(group.size * float(rate)))]
        out[group] = np.roll(group, 1)
    return out


def one_draw_for_ever(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    return honest(strata, rate, 0)


def never_the_first_record(strata: NDArray[Any], rate: Fraction, seed: int) -> NDArray[np.int64]:
    """The donors of a whole stratum are dropped until its first record stays."""
    out = honest(strata, rate, seed)
    first = np.unique(strata, return_index=True)[1]
    bad = np.zeros(len(SIZES), dtype=np.bool_)
    bad[strata[first[out[first] != first]]] = True
    return kept(out, strata, bad)


SABOTAGES: dict[str, tuple[Draw, int]] = {
    "never_above_40": (never_above_40, 12),
    "half_the_rate_at_one_level": (half_the_rate_at_one_level, 30),
    "fixed_rotation": (fixed_rotation, 30),
    "random_rotation": (random_rotation, 60),
    "in_pairs": (in_pairs, 60),
    "one_cycle": (one_cycle, 400),
    "first_half_only": (first_half_only, 12),
    "a_fixed_number": (a_fixed_number, 60),
    "one_draw_for_ever": (one_draw_for_ever, 60),
    "never_the_first_record": (never_the_first_record, 12),
}


@pytest.mark.parametrize("name", SABOTAGES)
def test_the_sabotage_is_seen(name: str) -> None:
    draw, count = SABOTAGES[name]
    rate = HALF if name == "never_the_first_record" else Fraction(1, 5)
    drawn = np.stack([draw(STRATA, rate, seed) for seed in range(count)])
    found = permutation_audit([drawn], STRATA, rate, matched={"level": LEVEL})
    assert found.verdict is Verdict.VIOLATED
    assert "by chance with a probability of less than 1e-" in found.sentence


@pytest.mark.parametrize("rate", [Fraction(1, 5), HALF, Fraction(19, 20)])
def test_honest_draws_are_not(rate: Fraction) -> None:
    drawn = np.stack([honest(STRATA, rate, seed) for seed in range(60)])
    marks = {"mark": np.arange(STRATA.size) % 7}
    found = permutation_audit([drawn[:6], drawn[6:]], STRATA, rate, matched={"level": LEVEL}, marks=marks)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.details == {"draws": 60, "alpha": 1e-6, "strata": len(SIZES)}


def test_records_of_one_value_that_never_move_are_seen_and_the_value_is_not_said() -> None:
    marks = {"tenure": np.where(np.arange(STRATA.size) % 5 == 0, "owned", "rented")}
    drawn = np.stack([honest(STRATA, HALF, seed) for seed in range(20)])
    for row in drawn:
        for record in np.flatnonzero((marks["tenure"] == "owned") & (row != np.arange(row.size))):
            giver, taker = row[record], np.flatnonzero(row == record)[0]
            row[taker], row[record] = giver, record
    problem = permutation_problem(drawn, STRATA, HALF, marks=marks)
    assert problem is not None and "owned" not in problem
    only = permutation_problem(drawn, STRATA, HALF)
    assert only is not None


def test_what_is_no_permutation_within_strata_is_seen_at_once() -> None:
    drawn = np.stack([honest(STRATA, HALF, seed) for seed in range(3)])
    twice = drawn.copy()
    twice[0, 0] = twice[0, 1]
    assert "no permutation" in str(permutation_problem(twice, STRATA, HALF))
    mixed = drawn.copy()
    other = int(np.flatnonzero(STRATA[0] != STRATA)[0])
    mixed[0, [0, other]] = mixed[0, [other, 0]]
    assert "another stratum" in str(permutation_problem(mixed, STRATA, HALF))


def test_strata_of_single_records_leave_nothing_to_test() -> None:
    found = permutation_audit([np.tile(np.arange(3), (4, 1))], np.arange(3), HALF)
    assert found.verdict is Verdict.VACUOUS


def test_false_alarms_are_rarer_than_alpha() -> None:
    strata = np.repeat([0, 1, 2], [2, 5, 9])
    alarms = 0
    for seed in range(20):
        drawn = np.stack([honest(strata, HALF, 1000 * seed + i) for i in range(15)])
        alarms += permutation_problem(drawn, strata, HALF, alpha=0.2) is not None
    assert alarms <= 4
