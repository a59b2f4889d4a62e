"""The normal law in balls, against mpmath and SciPy, and what is certain of rounded quantiles."""

import math
from fractions import Fraction

import mpmath
import pytest
from flint import arb, ctx
from scipy.special import ndtri

from stirred.balls import ends, float_above, float_below
from stirred.spec.arithmetic.normal import normal_cdf, quantile, upper_quantile_below
from stirred.spec.calculus.closed_form import Gaussian, gaussian_delta

LEVELS = [5e-324, 1e-300, 1e-100, 1e-16, 1e-6, 0.025, 0.5, 0.7, 0.999, 1 - 2**-53]


@pytest.mark.parametrize("x", [-300, -40, -8.5, -1, 0, 0.3, 5, 40])
def test_the_distribution_function_contains_that_of_mpmath(x: float) -> None:
    with ctx.workprec(128), mpmath.workdps(60):
        slow = arb(mpmath.nstr(mpmath.ncdf(x), 50))
        assert abs(normal_cdf(Fraction(x)) - slow) < abs(slow) / 10**30


@pytest.mark.parametrize("level", LEVELS)
def test_an_upper_quantile_is_never_too_large_and_hardly_too_small(level: float) -> None:
    q = upper_quantile_below(level)
    assert q == pytest.approx(-float(ndtri(level)), rel=1e-12, abs=1e-14)
    with ctx.workprec(256):
        assert normal_cdf(-Fraction(q)) >= arb(level)
        assert normal_cdf(-Fraction(q) - Fraction(1, 10**12)) < arb(level)


def test_quantiles_come_from_the_nearer_tail() -> None:
    for level in (Fraction(1, 10**30), Fraction(1, 3), Fraction(1, 2), Fraction(9, 10)):
        assert quantile(level) == pytest.approx(float(ndtri(float(level))), rel=1e-14, abs=1e-15)
    assert quantile(1 - Fraction(1, 10**30)) == -quantile(Fraction(1, 10**30))
    assert quantile(Fraction(1, 10**400)) == -math.inf


def slow_delta(mu: float, epsilon: float) -> mpmath.mpf:
    """Balle and Wang's formula with so many digits that the terms may cancel."""
    m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
    return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@pytest.mark.parametrize("mu", [1e-60, 1e-9, 0.03, 1.0, 9.0, 300.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 0.5, 20.0, 600.0])
def test_theorem_8_of_balle_and_wang_is_rounded_upward_by_one_float(mu: float, epsilon: float) -> None:
    with mpmath.workdps(400):
        exact = slow_delta(mu, epsilon)
        found = gaussian_delta(mu, epsilon)
        assert exact <= found <= 1
        assert mpmath.mpf(math.nextafter(found, 0.0)) <= exact * (1 + mpmath.mpf(2) ** -60)


@pytest.mark.parametrize(("mu", "epsilon"), [(1e-300, 1.0), (5e-324, 1e308), (1e308, 1e308), (1e300, 1e-300)])
def test_extreme_separations_have_a_delta_between_zero_and_one(mu: float, epsilon: float) -> None:
    assert gaussian_delta(mu, epsilon) == (1.0 if mu > 1 else 5e-324)


@pytest.mark.parametrize("mu", [0.0, 0.5, 3.0, 37.0])
@pytest.mark.parametrize("level", [1e-300, 0.05, 0.5, 1 - 2**-20, 1.0])
def test_a_gaussian_trade_off_is_never_above_the_true_one(level: float, mu: float) -> None:
    found = Gaussian(sigma=1).tradeoff(Fraction(level), mu)
    with mpmath.workdps(60):
        cut = mpmath.findroot(lambda t: mpmath.log(mpmath.ncdf(t) / level), ndtri(level)) if level < 1 else 0
        exact = mpmath.ncdf(-cut - mu) if level < 1 else mpmath.mpf(0)
        assert exact * (1 - mpmath.mpf(10) ** -10) - mpmath.mpf(10) ** -323 <= found <= exact


def test_a_separation_beyond_all_floats_leaves_no_error() -> None:
    assert Gaussian(sigma=1).tradeoff(0.05, 1e200) == 0


def test_floats_lie_on_their_side_of_a_ball() -> None:
    with ctx.workprec(100):
        third = arb(1) / 3
        assert arb(float_below(third)) < third < arb(float_above(third))
        assert math.nextafter(float_below(third), 1) == float_above(third)
    assert float_above(arb(2)) == float_below(arb(2)) == 2
    assert float_above(arb("1e-400")) == 5e-324 and float_below(arb("1e-400")) == 0
    assert float_above(arb("1e400")) == math.inf and float_below(arb("-1e400")) == -math.inf


def test_the_ends_of_a_value_that_cannot_be_told_from_zero_stay_around_it() -> None:
    low, high = ends(lambda _: arb(1).exp() - arb(1).exp(), 64, most=512)
    assert low <= 0 <= high
