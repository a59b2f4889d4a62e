"""The least loss of any swap rate: by Theorem 1, and by the tighter loss, which goes below it."""

import math
from fractions import Fraction

import pytest

from stirred.errors import Refusal
from stirred.swap import least_loss, least_tighter_loss, least_tighter_loss_rate, rates_for, tighter_loss
from stirred.swap.enumeration import exact_loss
from stirred.swap.loss import derangements

ORACLE = [
    (3, 0.2310, 0.5575),
    (4, 0.5493, 0.6340),
    (5, 0.7728, 0.6841),
    (10, 1.1250, 0.7549),
    (40, 1.8381, 0.8627),
]


@pytest.mark.parametrize(("size", "loss", "rate"), ORACLE)
def test_the_best_rate_of_the_tighter_loss(size: int, loss: float, rate: float) -> None:
    assert float(least_tighter_loss(size)) == pytest.approx(loss, abs=5e-5)
    assert least_tighter_loss_rate(size) == pytest.approx(rate, abs=5e-5)


@pytest.mark.parametrize("size", [2, 3, 4, 5, 10, 40])
def test_the_least_tighter_loss_is_the_least_of_a_grid_of_rates(size: int) -> None:
    """On a grid of a thousandth it is met within a step, and never undercut."""
    grid = [Fraction(i, 1000) for i in range(1, 1000)]
    losses = [float(tighter_loss(size, p)) for p in grid]
    least = float(least_tighter_loss(size))
    assert least - 1e-12 <= min(losses) <= least + 0.02
    best = Fraction(least_tighter_loss_rate(size)).limit_denominator(10**9)
    assert float(tighter_loss(size, best)) == pytest.approx(least, abs=1e-6)


def test_two_records_lose_nothing_at_one_half() -> None:
    assert least_tighter_loss(2).is_zero and least_tighter_loss_rate(2) == 0.5
    assert least_tighter_loss(1).is_zero


def test_a_rate_attains_less_than_half_the_logarithm_by_the_tighter_loss() -> None:
    """b = 4: ln(5)/2 = 0.8047 is no bound on every rate, since p = 0.634 loses 0.5493, enumerated."""
    rate = Fraction(634, 1000)
    assert float(least_loss(4)) == pytest.approx(math.log(5) / 2)
    records = [(0, h, s) for h, s in zip("abcd", range(4), strict=True)]
    enumerated = exact_loss(records, rate).loss
    assert enumerated == tighter_loss(4, rate)
    assert float(least_tighter_loss(4)) <= float(enumerated) < 0.5496 < float(least_loss(4))


def test_the_refusal_of_a_small_budget_speaks_of_theorem_1_and_names_the_tighter_loss() -> None:
    with pytest.raises(Refusal, match="by Theorem 1") as refusal:
        rates_for(4, "0.6")
    assert "0.5494" in refusal.value.hint


def test_large_strata_have_a_least_loss_without_huge_numbers() -> None:
    assert float(least_tighter_loss(264_331)) == pytest.approx(math.log(264_331 * 264_330) / 4, rel=1e-12)
    assert float(least_tighter_loss(30)) == pytest.approx(math.log(derangements(30) / derangements(28)) / 4)
