"""Tails, quantiles and masses of binomial laws against balls, exact rationals and SciPy."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from stirred.audit.incomplete_beta import error, log_odds, log_tail, masses
from stirred.audit.tails import LEAST, log_fair_tail


def slow_log_tail(a: int, b: int, x: arb) -> arb:
    """A ball around ln P(Binomial(a + b - 1, x) >= a): the sum, from the first mass, until the rest is small.

    The ratios of the masses fall, so that what is left out is below a geometric series.
    """
    n, odds = a + b - 1, x / (1 - x)
    term = total = arb(1)
    for j in range(a, n):
        ratio = arb(n - j) / (j + 1) * odds
        term *= ratio
        total += term
        if ratio < 1 and term / (1 - ratio) < total / 2**90:
            total += arb(0).union(term / (1 - ratio))
            break
    first = arb(n + 1).lgamma() - arb(a + 1).lgamma() - arb(n - a + 1).lgamma()
    return first + a * x.log() + (n - a) * (1 - x).log() + total.log()


def cases(seed: int, count: int) -> list[tuple[int, int, float]]:
    """Parameters from 1 to 10^7, small ones on either side, and points up to 35 deviations to the left."""
    drawn = random.Random(seed)
    found = []
    while len(found) < count:
        n = int(10 ** drawn.uniform(0.3, 7))
        few = 10 ** drawn.uniform(-7, 0)
        a = min(n, max(1, int(n * drawn.choice([drawn.random(), few, 1 - few]))))
        b = n - a + 1
        far = drawn.uniform(0.1 if n > 10**5 else -3, 35)
        y = math.log(a / b) - far * math.sqrt(1 / a + 1 / b)
        x = 1 / (1 + math.exp(-y))
        if 0 < x < 1:
            found.append((a, b, x))
    return found


def test_tails_lie_within_a_third_of_the_stated_error() -> None:
    """From about one half, and right of the law, down to e^-700."""
    compared = 0
    with ctx.workprec(160):
        for a, b, x in cases(1, 400):
            slow = slow_log_tail(a, b, arb(x))
            if slow > -700:
                compared += 1
                far = abs(arb(float(log_tail(a, b, x))) - slow)
                assert far * 3 < arb(float(error(a + b))), (a, b, x)
    assert compared > 300


def test_tails_of_one_sided_laws_have_closed_forms() -> None:
    """I_x(a, 1) = x^a and I_x(1, b) = 1 - (1 - x)^b, for 10^10 draws too."""
    for size in (1, 10, 10**6, 10**10):
        for x in (1e-200, 1e-9, 0.3, 0.999):
            if size * math.log(x) > -700:
                assert log_tail(size, 1, x) == pytest.approx(size * math.log(x), abs=1e-9, rel=1e-12)
            one = math.log(-math.expm1(size * math.log1p(-x)))
            assert log_tail(1, size, x) == pytest.approx(one, abs=1e-11)


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6, 1e-30, 1e-200])
def test_clopper_pearson_the_tail_at_a_quantile_is_certainly_at_most_alpha(alpha: float) -> None:
    """And hardly less: the odds are rounded outward, by at most a few times the stated error."""
    with ctx.workprec(200):
        for a, b, _ in cases(2, 60):
            if a > 10**5 and b > 10**5 and alpha > 1e-3:
                continue
            y = arb(float(log_odds(a, b, alpha)))
            tail = slow_log_tail(a, b, 1 / (1 + (-y).exp()))
            short = arb(alpha).log() - tail
            assert 0 < short < arb(8 * float(error(a + b))) + abs(y) * a / 10**14, (a, b)


def test_arrays_are_worked_through_in_blocks() -> None:
    a = np.arange(1, 20_001, dtype=np.float64).reshape(2, 10_000)
    whole = log_odds(a, 7, 1e-3)
    assert whole.shape == a.shape
    for i, j in ((0, 0), (0, 8191), (0, 8192), (1, 9999)):
        assert whole[i, j] == pytest.approx(float(log_odds(a[i, j], 7, 1e-3)), rel=1e-12)
    assert log_odds(np.zeros(0), np.zeros(0), 0.1).shape == (0,)


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 1000), Fraction(999, 1000)])
@pytest.mark.parametrize("draws", [1, 2, 13, 60])
def test_masses_are_those_of_exact_rationals(draws: int, chance: Fraction) -> None:
    exact = [
        float(
            math.comb(draws, k) * Fraction(float(chance)) ** k * (1 - Fraction(float(chance))) ** (draws - k)
        )
        for k in range(draws + 1)
    ]
    assert masses(np.arange(draws + 1), draws, float(chance)).tolist() == pytest.approx(exact, rel=2e-13)


def test_a_certain_event_and_an_impossible_one_have_all_mass_at_an_end() -> None:
    assert masses([0, 1, 2], 2, 0.0).tolist() == [1, 0, 0]
    assert masses([0, 1, 2], 2, 1.0).tolist() == [0, 0, 1]


@pytest.mark.parametrize(("draws", "chance"), [(10**3, 0.4), (10**6, 1e-5), (264_331, 0.05)])
def test_masses_agree_with_scipy_and_sum_to_one(draws: int, chance: float) -> None:
    hits = np.arange(draws + 1)
    ours = masses(hits, draws, chance)
    assert math.fsum(ours) == pytest.approx(1, abs=1e-12)
    seen = ours > 1e-200
    assert ours[seen] == pytest.approx(stats.binom.pmf(hits, draws, chance)[seen], rel=1e-9)


def test_fair_tails_are_binomial_sums_and_never_too_small() -> None:
    """Twice the tail, rounded upward, for every number of heads in up to 40 tosses; and SciPy beyond."""
    for tosses in range(41):
        heads = np.arange(tosses + 1)
        found = log_fair_tail(heads, np.full(tosses + 1, tosses))
        for h in heads.tolist():
            tail = Fraction(sum(math.comb(tosses, k) for k in range(min(h, tosses - h) + 1)), 2**tosses)
            exact = min(0.0, math.log(2 * tail))
            assert exact - 1e-15 <= found[h] <= exact + 1e-7
    heads = np.array([480_000, 499_000, 500_000])
    tails = np.minimum(0.0, math.log(2) + stats.binom.logcdf(heads, 10**6, 0.5))
    assert log_fair_tail(heads, np.full(3, 10**6)) == pytest.approx(
        np.maximum(tails, LEAST), rel=1e-7, abs=1e-9
    )
