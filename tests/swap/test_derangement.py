"""Selection and derangement: the compiled path has the law of Algorithm 1."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from stirred.noise import TestSource
from stirred.swap import select_records, swap_probability
from stirred.swap.derangement import Rates, derange, draw_donors
from stirred.swap.loss import derangements

ALPHA = 1e-6
HALF = Rates.common(Fraction(1, 2))


def check_mapping(strata: np.ndarray, donors: np.ndarray) -> dict[str, bool]:
    """Whether donors form a permutation within strata: the property that keeps the invariants."""
    seen = np.zeros(donors.size, dtype=np.bool_)
    seen[donors] = True
    return {"permutation": bool(seen.all()), "within_strata": bool((strata[donors] == strata).all())}


def many_groups(size: int, groups: int, seed: int) -> np.ndarray:
    offsets = np.arange(groups + 1, dtype=np.int64) * size
    order = np.empty(groups * size, dtype=np.int32)
    derange(offsets, order, TestSource(seed))
    return order.reshape(groups, size)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_derangements_are_uniform_and_fix_nothing(size: int) -> None:
    drawn = many_groups(size, 200 * derangements(size), size)
    assert not (drawn == np.arange(size)).any()
    keys, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(keys) == derangements(size)
    if size > 2:
        assert stats.chisquare(counts).pvalue > ALPHA


def test_expected_attempts_are_near_e() -> None:
    groups, size = 20_000, 12
    offsets = np.arange(groups + 1, dtype=np.int64) * size
    attempts = derange(offsets, np.empty(groups * size, dtype=np.int32), TestSource(4))
    assert abs(attempts / groups - np.e) < 0.1


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    strata = np.repeat(np.arange(40_000, dtype=np.int32), 25)
    one = draw_donors(strata, 40_000, HALF, TestSource(6), threads=1)
    two = draw_donors(strata, 40_000, HALF, TestSource(6), threads=2)
    assert np.array_equal(one, two)


@pytest.mark.parametrize(("sizes", "rate"), [([1, 2, 3, 50], "1/20"), ([5] * 300, "1/2"), ([1000], "9/10")])
def test_donors_permute_within_strata_and_never_a_single_record(sizes: list[int], rate: str) -> None:
    strata = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    for seed in range(20):
        donors = draw_donors(strata, len(sizes), Rates.common(Fraction(rate)), TestSource(seed))
        assert check_mapping(strata, donors) == {"permutation": True, "within_strata": True}
        moved = np.bincount(strata[donors != np.arange(strata.size)], minlength=len(sizes))
        assert not (moved == 1).any()


@pytest.mark.parametrize(("size", "rate"), [(2, "1/3"), (3, "1/2"), (4, "1/5"), (6, "4/5")])
def test_the_selected_set_has_the_law_of_reselection(size: int, rate: str) -> None:
    p, groups = Fraction(rate), 30_000
    strata = np.repeat(np.arange(groups, dtype=np.int32), size)
    chosen = select_records(strata, groups, Rates.common(p), TestSource(size))
    mask = np.zeros(strata.size, dtype=bool)
    mask[chosen] = True
    codes = mask.reshape(groups, size) @ (1 << np.arange(size))
    weights = {
        subset: p ** len(subset) * (1 - p) ** (size - len(subset))
        for k in range(size + 1)
        for subset in itertools.combinations(range(size), k)
        if k != 1
    }
    total = sum(weights.values())
    expected = {sum(1 << i for i in s): float(w / total) for s, w in weights.items()}
    observed = np.bincount(codes, minlength=1 << size)
    assert observed[[1 << i for i in range(size)]].sum() == 0
    keys = sorted(expected)
    assert stats.chisquare(observed[keys], [expected[k] * groups for k in keys]).pvalue > ALPHA
    share = mask.mean()
    assert abs(share - float(swap_probability(size, p))) < 0.01


def test_ineligible_records_never_move_and_thin_strata_are_skipped() -> None:
    strata = np.repeat(np.arange(200, dtype=np.int32), 4)
    eligible = np.tile([True, True, False, False], 200)
    eligible[:4] = [True, False, False, False]
    donors = draw_donors(strata, 200, HALF, TestSource(1), eligible=eligible)
    still = donors == np.arange(800)
    assert still[~eligible].all()
    assert still[:4].all()
    assert not still.all()


def test_variable_rates_select_each_class_at_its_rate() -> None:
    classes = np.tile(np.array([0, 1], dtype=np.int16), 100_000)
    rates = Rates((Fraction(1, 10), Fraction(3, 4)), classes)
    chosen = select_records(np.zeros(200_000, dtype=np.int32), 1, rates, TestSource(8))
    hits = np.bincount(classes[chosen], minlength=2)
    assert stats.binomtest(int(hits[0]), 100_000, 0.1).pvalue > ALPHA
    assert stats.binomtest(int(hits[1]), 100_000, 0.75).pvalue > ALPHA


def test_one_huge_stratum() -> None:
    strata = np.zeros(1_000_000, dtype=np.int32)
    donors = draw_donors(strata, 1, Rates.common(Fraction(9, 10)), TestSource(3))
    assert check_mapping(strata, donors) == {"permutation": True, "within_strata": True}
    assert 0.89 < (donors != np.arange(donors.size)).mean() < 0.91
