"""Rounding goes against the user: every conversion, on a grid from tiny to huge, is not below the truth.

The oracle is arithmetic of 150 digits (mpmath), straight from the definitions.
"""

import itertools
from fractions import Fraction
from typing import Any

import mpmath
import pytest

from stirred.errors import InputError
from stirred.spec import (
    Budget,
    Domain,
    Exact,
    GaussianTradeOff,
    Multiplicative,
    NormalisedRenyi,
    Renyi,
    Specification,
    Trivial,
    convert,
    epsilon_at_distance,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.calculus.closed_form import gaussian_epsilon, mu_of_pure, rho_squared_of_pure
from stirred.spec.calculus.closed_form.concentrated import census_epsilon, optimal_epsilon

POWERS = ["1e-300", "1e-100", "1e-30", "1e-20", "1e-16", "1e-15", "1e-14", "1e-13", "1e-12", "1e-10", "1e-8"]
POWERS += ["1e-6", "1e-5", "1e-4", "1e-3", "0.01", "0.03", "1/10", "1/7", "1/5", "1/4", "1/3", "1/2", "2/3"]
POWERS += ["3/4", "1", "ln(3)", "5/4", "sqrt(2)", "3/2", "2", "ln(11)", "5/2", "3", "4", "5", "6", "8", "10"]
POWERS += ["15", "19.36", "ln(256036856)", "20", "25", "30", "37", "40", "50", "59", "60", "61", "70", "79"]
POWERS += ["80", "81", "100", "700", "1000", "1e4", "1e6", "1e10", "1e20", "1e50", "1e98"]
LOGS = ["ln(2)/1000000", "ln(1000000000000000000001/1000000000000000000000)", "1/10*sqrt(2)", "3*ln(7)"]
GRID = [Exact.of(text) for text in POWERS + LOGS]
ORACLE = mpmath.mpf("1e-120")
DELTAS = [
    Fraction(text) for text in ("1e-300", "1e-100", "1e-30", "1e-10", "1e-5", "1/50", "1/3", "9/10", "0.999")
]


def on_pair(output: object, budget: Budget) -> Specification:
    """Two neighbours."""
    return Specification(
        domain=Domain.finite((0, 1)),
        multiverse=Trivial(),
        input_premetric=Given(unit="unit", points=(0, 1), distances=((0, 1), (1, 0))),
        output_premetric=output,
        budget=budget,
    )


def zcdp(rho_squared: object) -> Specification:
    return on_pair(NormalisedRenyi(), Budget.zcdp(rho_squared=Exact.of(rho_squared)))


@pytest.fixture(autouse=True)
def _digits() -> Any:
    with mpmath.workdps(150):
        yield


def real(value: Exact | Fraction) -> Any:
    """The value of an exact number to 150 digits, from its parts."""
    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / value.denominator
    logs = sum((real(k) * mpmath.log(n) for n, k in value._logs), mpmath.mpf(0))
    return (
        real(value._rational) + logs + sum((real(c) * mpmath.sqrt(s) for s, c in value._surds), mpmath.mpf(0))
    )


def close_above(claimed: Any, true: Any, slack: str = "1e-25") -> bool:
    """Not below the truth, up to the oracle's own rounding where the claim is exact, and not far above it."""
    return bool(true * (1 - ORACLE) <= claimed <= true * (1 + mpmath.mpf(slack)))


@pytest.mark.parametrize("least", [None, "1/2", "1", "2", "4", "1e-30", "1e30", "sqrt(2)", "ln(2)"])
def test_6_2_pure_to_zcdp_is_never_below_the_truth(least: str | None) -> None:
    """epsilon tanh(epsilon d0/2)/d0, or epsilon^2/2."""
    for epsilon in GRID:
        claimed = rho_squared_of_pure(epsilon, None if least is None else Exact.of(least))
        e = real(epsilon)
        d = None if least is None else real(Exact.of(least))
        true = e**2 / 2 if d is None else e * mpmath.tanh(e * d / 2) / d
        assert close_above(real(claimed), true), epsilon


def test_6_2_zero_and_infinity_stay() -> None:
    for value in (Exact.of(0), Exact.of("inf")):
        for least in (None, Exact.of(1), Exact.of("inf")):
            assert rho_squared_of_pure(value, least) == value
        assert mu_of_pure(value) == value


def least_mu(epsilon: Any) -> Any:
    """-2 Phi^-1(1/(1 + e^epsilon)), by bisection of  ln Phi(-x) = -ln(1 + e^epsilon)."""
    if epsilon < 1:
        tail = mpmath.tanh(epsilon / 2)
        low, high = tail, 2 * tail
        value = lambda x: mpmath.erf(x / mpmath.sqrt(2)) - tail  # noqa: E731
    else:
        goal = epsilon + mpmath.log1p(mpmath.exp(-epsilon))
        low, high = mpmath.mpf(0), mpmath.sqrt(2 * goal)
        value = lambda x: -log_tail(x) - goal  # noqa: E731
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if value(middle) < 0 else (low, middle)
    return 2 * low


def log_tail(x: Any) -> Any:
    """ln Phi(-x); for large x by the asymptotic series of its ratio to the density, to 60 digits."""
    if x < 40:
        return mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2)
    term, total, k = mpmath.mpf(1), mpmath.mpf(1), 1
    while abs(term) > mpmath.mpf(10) ** -60:
        term *= -(2 * k - 1) / x**2
        total += term
        k += 1
    return -(x**2) / 2 - mpmath.log(2 * mpmath.pi) / 2 - mpmath.log(x) + mpmath.log(total)


def test_pure_to_gdp_is_never_below_the_truth() -> None:
    """It was, in 11 of 51 cases, and by a relative 8e-4 at epsilon = 1e-14."""
    for epsilon in GRID:
        converted = convert(on_pair(Multiplicative(), Budget.epsilon(epsilon)), "gdp").specification
        assert close_above(real(converted.budget.amount), least_mu(real(epsilon))), epsilon


def optimal_infimum(rho_squared: Any, delta: Any) -> Any:
    """The bound of Canonne, Kamath and Steinke at its minimum, where rho^2 (alpha-1)^2 = -ln(alpha delta)."""
    log = -mpmath.log(delta)
    high = min(mpmath.sqrt(log / rho_squared), mpmath.expm1(log))
    low = high * mpmath.mpf("1e-60")
    for _ in range(300):
        middle = mpmath.sqrt(low * high)
        slope = rho_squared * middle**2 + mpmath.log1p(middle) - log
        low, high = (middle, high) if slope < 0 else (low, middle)
    x = (low + high) / 2
    return rho_squared * (1 + x) + (log - mpmath.log1p(x)) / x + mpmath.log(x / (1 + x))


RATIONAL = [value for value in GRID if value.rational is not None and value < Exact.of("1e101")]


@pytest.mark.parametrize("delta", DELTAS[1::2])
def test_optimal_epsilon_is_never_below_its_own_infimum(delta: Fraction) -> None:
    """It was at small rho squared: by a relative 1e-5 at 3e-20 and delta 1e-10."""
    for rho_squared in RATIONAL[2:]:
        square = rho_squared.rational
        assert square is not None
        claimed = real(optimal_epsilon(square, delta))
        true = max(mpmath.mpf(0), optimal_infimum(real(square), real(delta)))
        assert true <= claimed <= true * (1 + mpmath.mpf("1e-25")) + mpmath.mpf("1e-80"), (square, delta)


@pytest.mark.parametrize("delta", DELTAS)
def test_census_epsilon_is_never_below_the_truth(delta: Fraction) -> None:
    for rho_squared in GRID:
        if rho_squared.rational is None:
            continue
        claimed = real(census_epsilon(rho_squared.rational, delta))
        square = real(rho_squared)
        true = square + 2 * mpmath.sqrt(-square * mpmath.log(real(delta)))
        assert true <= claimed <= true * (1 + mpmath.mpf("1e-25")) + mpmath.mpf("1e-29")


def gaussian_delta(mu: Any, epsilon: Any) -> Any:
    """Balle and Wang 2018, Theorem 8."""
    phi = lambda x: mpmath.erfc(-x / mpmath.sqrt(2)) / 2  # noqa: E731
    return phi(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


MUS = [2.0**k for k in range(-40, 12)] + [1e-100, 1e-20, 0.3, 1.7, 5.5, 33.3]


@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_epsilon_is_never_below_the_truth(delta: Fraction) -> None:
    """At the epsilon that is returned, delta is not above the one that was asked for."""
    for mu in MUS:
        stated = on_pair(GaussianTradeOff(), Budget.gdp(mu=Exact(Fraction(mu))))
        epsilon = convert(stated, "approximate", delta=delta).specification.budget.amount
        assert gaussian_delta(mpmath.mpf(mu), real(epsilon)) <= real(delta), (mu, delta)


@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_to_approximate_for_gaussian_noise_is_never_below_the_truth(delta: Fraction) -> None:
    """The same through rho squared, whose root and double are rounded up too."""
    for text in POWERS[3:60]:
        rho_squared = Exact.of(text)
        if rho_squared.rational is None or rho_squared > Exact.of(10**6):
            continue
        epsilon = epsilon_at_distance(zcdp(rho_squared), 1, delta, "gaussian")
        mu = mpmath.sqrt(2 * real(rho_squared))
        assert gaussian_delta(mu, real(epsilon)) <= real(delta), (text, delta)


@pytest.mark.parametrize("alpha", ["1.0000000000000000001", "3/2", "2", "sqrt(2)", "ln(3)", "20", "1e20"])
def test_renyi_to_approximate_is_never_below_the_truth(alpha: str) -> None:
    """epsilon + ln(1/delta)/(alpha - 1) (Mironov 2017); an order near one divided by zero."""
    order = Exact.of(alpha)
    for epsilon, delta in itertools.product(GRID[::6], DELTAS):
        stated = on_pair(Renyi(alpha=order), Budget.epsilon(epsilon))
        claimed = real(convert(stated, "approximate", delta=delta).specification.budget.amount)
        true = real(epsilon) - mpmath.log(real(delta)) / (real(order) - 1)
        assert close_above(claimed, true)


def test_the_edges_that_keep_exact_numbers_keep_them() -> None:
    """KL and Renyi take epsilon, total variation half of it: above the truth, which is that of two coins."""
    for epsilon in GRID:
        stated = on_pair(Multiplicative(), Budget.epsilon(epsilon))
        for target, options, wanted in (
            ("kullback-leibler", {}, epsilon),
            ("total-variation", {}, epsilon / 2),
            ("renyi", {"alpha": 3}, epsilon),
            ("approximate", {"delta": "1e-5"}, epsilon),
        ):
            converted = convert(stated, target, **options).specification  # type: ignore[arg-type]
            assert converted.budget.amount == wanted
        e = real(epsilon)
        assert e * mpmath.tanh(e / 2) <= e and mpmath.tanh(e / 2) <= e / 2


@pytest.mark.parametrize("alpha", ["3/2", "20", "inf"])
def test_zcdp_to_renyi_is_exact(alpha: str) -> None:
    order = Exact.of(alpha)
    for rho_squared in (value for value in GRID if value.rational is not None):
        converted = convert(zcdp(rho_squared), "renyi", alpha=alpha).specification
        product = order if order.is_infinite else rho_squared * (order.rational or 0)
        assert converted.budget.amount == product
    assert convert(zcdp(0), "renyi", alpha=alpha).specification.budget.amount == Exact.of(0)


def test_huge_budgets_convert() -> None:
    huge = convert(on_pair(GaussianTradeOff(), Budget.gdp(mu="1e50")), "approximate", delta="1e-10")
    assert huge.specification.budget.amount > Exact.of("1e99")
    assert epsilon_at_distance(zcdp("1e90"), 1, "1e-10", "gaussian") > Exact.of("1e89")
    assert gaussian_epsilon(0, 1e-10) == 0


@pytest.mark.parametrize("delta", [0, 1, 2, -1])
def test_epsilon_at_a_distance_needs_a_delta_too(delta: int) -> None:
    """It divided by zero."""
    with pytest.raises(InputError, match="out of range"):
        epsilon_at_distance(zcdp(1), 1, delta)
