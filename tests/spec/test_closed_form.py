"""Closed forms against test vectors, brute-force twins and the laws that divergences obey."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from stirred.errors import InputError, NotComputable
from stirred.spec.calculus.closed_form import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    NoiseLaw,
    RandomisedResponse,
    gaussian_delta,
    gaussian_epsilon,
)

LAWS: list[NoiseLaw] = [Laplace(1.7), DiscreteLaplace(1.7), Gaussian(1.7), DiscreteGaussian(2.9)]
LATTICE: list[NoiseLaw] = [
    DiscreteLaplace(0.4),
    DiscreteLaplace(3),
    DiscreteLaplace(6),
    DiscreteGaussian(0.1),
    DiscreteGaussian(0.6),
    DiscreteGaussian(4),
    DiscreteGaussian(30),
]
CONTINUOUS: list[NoiseLaw] = [Laplace(0.5), Laplace(3), Gaussian(0.5), Gaussian(3)]
ORDERS = [1.001, 1.3, 2, 2.75, 7]


def name(law: object) -> str:
    return repr(law)


class Twin:
    """Direct sums, in decimal arithmetic of 100 digits, over every atom that could matter."""

    def __init__(self, p: list[Decimal], q: list[Decimal]) -> None:
        self.pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0 and b > 0]

    @classmethod
    def shifted(cls, law: NoiseLaw, shift: int) -> "Twin":
        """Window beyond which a mass below 1e-38 remains, also at order 7, centred six shifts off."""
        if isinstance(law, DiscreteLaplace):
            scale = Decimal(str(law.scale))
            width = 2 * shift + math.ceil(90 * scale)
            weight = {k: (-abs(k) / scale).exp() for k in range(-width, width + 1)}
        else:
            assert isinstance(law, DiscreteGaussian)
            variance = Decimal(str(law.sigma_squared))
            width = 10 * shift + 16 * math.ceil(variance.sqrt())
            weight = {k: (-k * k / (2 * variance)).exp() for k in range(-width, width + 1)}
        total = sum(weight.values())
        both = range(shift - width, width + 1)
        return cls([weight[k] / total for k in both], [weight[k - shift] / total for k in both])

    def multiplicative(self) -> Decimal:
        return max(abs((a / b).ln()) for a, b in self.pairs)

    def density_ratio(self) -> Decimal:
        ratios = [a / b for a, b in self.pairs]
        return (max(ratios) / min(ratios)).ln()

    def delta(self, epsilon: Decimal) -> Decimal:
        factor = epsilon.exp()
        return sum((max(Decimal(0), a - factor * b) for a, b in self.pairs), Decimal(0))

    def renyi(self, order: Decimal) -> Decimal:
        moment = sum(b * (order * (a / b).ln()).exp() for a, b in self.pairs)
        return moment.ln() / (order - 1)

    def kullback_leibler(self) -> Decimal:
        return sum((a * (a / b).ln() for a, b in self.pairs), Decimal(0))

    def hellinger(self) -> Decimal:
        return (1 - sum((a * b).sqrt() for a, b in self.pairs)).sqrt()

    def chi_squared(self) -> Decimal:
        return sum(((a - b) ** 2 / b for a, b in self.pairs), Decimal(0))

    def tradeoff(self, level: Decimal) -> Decimal:
        left, error = level, Decimal(1)
        for a, b in sorted(self.pairs, key=lambda pair: pair[0] / pair[1]):
            share = min(Decimal(1), left / a)
            left, error = left - share * a, error - share * b
        return error


def within(computed: float, exact: Decimal | float, *, loose: float = 1e-10) -> bool:
    """Not below the exact value, and not far above it."""
    value = Decimal(exact)
    least = value * (1 - Decimal("1e-30")) - Decimal("1e-30")
    return least <= Decimal(computed) <= value * (1 + Decimal(loose)) + Decimal("1e-13")


@pytest.fixture(autouse=True)
def _many_digits():
    with localcontext() as context:
        context.prec = 100
        yield


@pytest.mark.parametrize("shift", [1, 2, 5])
@pytest.mark.parametrize("law", LATTICE, ids=name)
def test_lattice_laws_equal_direct_summation(law: NoiseLaw, shift: int) -> None:
    twin = Twin.shifted(law, shift)
    assert within(law.kullback_leibler(shift), twin.kullback_leibler())
    assert within(law.hellinger(shift), twin.hellinger())
    assert within(law.chi_squared(shift), twin.chi_squared(), loose=1e-8)
    assert within(law.total_variation(shift), twin.delta(Decimal(0)))
    for order in ORDERS:
        assert within(law.renyi(order, shift), twin.renyi(Decimal(str(order))))
    for epsilon in [0.1, 0.75, 2.5]:
        assert within(law.delta(epsilon, shift), twin.delta(Decimal(str(epsilon))), loose=1e-8)
    for level in [1e-9, 0.01, 0.2, 0.5, 0.77, 0.999]:
        exact = twin.tradeoff(Decimal(str(level)))
        computed = Decimal(law.tradeoff(level, shift))
        assert exact * (1 - Decimal("1e-8")) - Decimal("1e-13") <= computed <= exact


@pytest.mark.parametrize("law", LATTICE[:3], ids=name)
def test_discrete_laplace_ratios_equal_direct_summation(law: NoiseLaw) -> None:
    twin = Twin.shifted(law, 5)
    assert law.multiplicative(5) == pytest.approx(float(twin.multiplicative()), rel=1e-15)
    assert law.density_ratio(5) == pytest.approx(float(twin.density_ratio()), rel=1e-15)


@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.04])
@pytest.mark.parametrize("law", LATTICE, ids=name)
def test_lattice_approximation_is_the_least_epsilon(law: NoiseLaw, delta: float) -> None:
    twin, budget = Twin.shifted(law, 2), Decimal(str(delta))
    epsilon = Decimal(law.approximate(delta, 2))
    assert twin.delta(epsilon) <= budget
    if epsilon > 0:
        assert twin.delta(epsilon * (1 - Decimal("1e-9"))) > budget


def density(law: NoiseLaw) -> Callable[[float], float]:
    if isinstance(law, Laplace):
        return lambda x: math.exp(-abs(x) / law.scale) / (2 * law.scale)
    assert isinstance(law, Gaussian)
    return lambda x: math.exp(-0.5 * (x / law.sigma) ** 2) / (law.sigma * math.sqrt(2 * math.pi))


def integral(law: NoiseLaw, shift: float, integrand: Callable[[float, float], float]) -> float:
    """Integral of integrand(p, q), cut where the densities or their ratio have kinks."""
    p = density(law)
    spread = law.scale * 60 if isinstance(law, Laplace) else law.sigma * 12
    edges = [-spread - 6 * shift, 0, shift / 2, shift, spread + 6 * shift]
    value = lambda x: integrand(p(x), p(x - shift))  # noqa: E731
    return sum(quad(value, a, b, epsabs=1e-12, epsrel=1e-10, limit=400)[0] for a, b in pairwise(edges))


@pytest.mark.parametrize("law", CONTINUOUS, ids=name)
def test_continuous_laws_equal_quadrature(law: NoiseLaw) -> None:
    shift = 1.25
    close = pytest.approx
    tv = integral(law, shift, lambda p, q: abs(p - q) / 2)
    assert law.total_variation(shift) == close(tv, rel=1e-8)
    kl = integral(law, shift, lambda p, q: p * math.log(p / q) if p > 0 else 0.0)
    assert law.kullback_leibler(shift) == close(kl, rel=1e-8)
    hellinger = math.sqrt(integral(law, shift, lambda p, q: (math.sqrt(p) - math.sqrt(q)) ** 2 / 2))
    assert law.hellinger(shift) == close(hellinger, rel=1e-8)
    chi = integral(law, shift, lambda p, q: (p - q) ** 2 / q if q > 0 else 0.0)
    assert law.chi_squared(shift) == close(chi, rel=1e-8)
    for order in [1.4, 2, 3]:
        moment = integral(law, shift, lambda p, q, a=order: p * (p / q) ** (a - 1) if q > 0 else 0.0)
        assert law.renyi(order, shift) == close(math.log(moment) / (order - 1), rel=1e-8)


@pytest.mark.parametrize("law", CONTINUOUS, ids=name)
@pytest.mark.parametrize("epsilon", [0, 0.2, 1.1])
def test_continuous_delta_equals_quadrature(law: NoiseLaw, epsilon: float) -> None:
    factor = math.exp(epsilon)
    direct = integral(law, 1.25, lambda p, q: max(0.0, p - factor * q))
    assert law.delta(epsilon, 1.25) == pytest.approx(direct, rel=1e-7, abs=1e-10)


def test_vectors_of_randomised_response_at_three_quarters() -> None:
    law = RandomisedResponse(0.75)
    six = lambda value: pytest.approx(value, abs=5e-7)  # noqa: E731
    assert law.multiplicative() == six(1.098612) and law.multiplicative() >= math.log(3)
    assert law.total_variation() == 0.5
    assert law.kullback_leibler() == six(0.549306)
    assert law.renyi(2) == six(0.847298)
    assert law.renyi(4) == six(1.002871)
    assert law.normalised_renyi() ** 2 == six(0.549306)
    assert law.normalised_renyi() ** 2 <= law.multiplicative() ** 2 / 2 == six(0.603474)
    assert law.chi_squared() == six(1.333333)
    assert law.density_ratio() == six(2.197225)
    assert law.hellinger() ** 2 == six(1 - math.sqrt(0.75))
    assert [law.approximate(d) for d in (0.01, 0.1, 0.25)] == six([1.085189, 0.955511, math.log(2)])
    assert law.approximate(0.5) == law.approximate(0.6) == law.approximate(1) == 0


def test_normalised_renyi_of_binary_response_is_attained_as_order_tends_to_one() -> None:
    law = RandomisedResponse(0.75)
    orders = 1 + np.logspace(-6, 3, 200)
    quotients = [law.renyi(order) / order for order in orders]
    assert all(a >= b * (1 - 1e-11) for a, b in pairwise(quotients))
    assert quotients[0] == pytest.approx(law.normalised_renyi() ** 2, rel=1e-5)


def test_vectors_of_laplace_and_gaussian() -> None:
    assert Laplace(4).multiplicative(2) == 0.5
    assert Gaussian(3).normalised_renyi(2) == pytest.approx(2 / (3 * math.sqrt(2)), rel=1e-15)
    assert Gaussian(3).multiplicative(2) == Gaussian(3).density_ratio(2) == math.inf
    assert Gaussian(1).approximate(1e-6, 1) == pytest.approx(4.886554, abs=5e-7)
    for epsilon in (0.0, 0.3, 2.0):
        mu = 2 / 3
        direct = norm.cdf(mu / 2 - epsilon / mu)
        direct -= math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        assert Gaussian(3).delta(epsilon, 2) == pytest.approx(direct, rel=1e-12)
    assert [Gaussian(3).renyi(a, 2) / a for a in (1.5, 2, 4)] == pytest.approx([2 / 9] * 3, rel=1e-15)


@pytest.mark.parametrize(
    ("rho_squared", "at_two", "twice_converted"),
    [(55.371, 354.50, 253.57), (15.29, 130.73, 105.63), (2.63, 39.07, 36.39)],
)
def test_converted_zcdp_is_not_lipschitz_at_distance_two(
    rho_squared: float, at_two: float, twice_converted: float
) -> None:
    """zCDP converts to (epsilon, delta) at distance one only: at two, twice epsilon is exceeded."""
    exact = gaussian_epsilon(2 * math.sqrt(2 * rho_squared), 1e-10)
    converted = 2 * bun_steinke(rho_squared, 1e-10)
    assert exact == pytest.approx(at_two, abs=0.005)
    assert converted == pytest.approx(twice_converted, abs=0.005)
    assert exact > converted


def test_first_violation_of_converted_zcdp() -> None:
    def surplus(rho_squared: float) -> float:
        exact = gaussian_epsilon(2 * math.sqrt(2 * rho_squared), 1e-10)
        return exact - 2 * bun_steinke(rho_squared, 1e-10)

    assert brentq(surplus, 0.1, 5) == pytest.approx(0.777, abs=5e-4)


def bun_steinke(rho_squared: float, delta: float) -> float:
    return rho_squared + 2 * math.sqrt(rho_squared * -math.log(delta))


@pytest.mark.parametrize("shift", [1, 3, 8])
@pytest.mark.parametrize("law", LAWS + LATTICE, ids=name)
def test_normalised_renyi_is_the_supremum_over_orders(law: NoiseLaw, shift: int) -> None:
    bound = law.normalised_renyi(shift)
    orders = 1 + np.logspace(-7, 3, 300)
    reached = max(math.sqrt(law.renyi(order, shift) / order) for order in orders)
    assert reached <= bound * (1 + 2e-12)
    assert reached >= bound * (1 - 1e-6)


def test_discrete_gaussian_attains_its_renyi_bound_at_multiples_of_one_over_shift() -> None:
    """Canonne, Kamath and Steinke, Proposition 5: equality where alpha shift is an integer."""
    law, shift = DiscreteGaussian(Fraction(1, 3)), 2
    bound = {order: order * shift**2 * 3 / 2 for order in (1.25, 1.5, 1.75, 2, 2.2, 3)}
    assert law.renyi(1.5, shift) == bound[1.5]
    assert law.renyi(2, shift) == bound[2]
    assert law.renyi(3, shift) == bound[3]
    for order in (1.25, 1.75, 2.2):
        assert law.renyi(order, shift) < bound[order] * 0.9999


def test_theta_ratio_agrees_across_the_change_of_formula() -> None:
    below, above = DiscreteGaussian(0.25 - 1e-9), DiscreteGaussian(0.25)
    assert below.renyi(1.5, 1) == pytest.approx(above.renyi(1.5, 1), rel=1e-7)
    assert below.hellinger(1) == pytest.approx(above.hellinger(1), rel=1e-7)
    assert below.delta(0.5, 1) == pytest.approx(above.delta(0.5, 1), rel=1e-7)


@pytest.mark.parametrize("categories", [3, 10, 200, 5000])
@pytest.mark.parametrize("truth", [0.0001, 0.02, 0.4, 0.95])
def test_normalised_renyi_of_many_categories_may_be_interior(truth: float, categories: int) -> None:
    law = RandomisedResponse(truth, categories)
    orders = 1 + np.logspace(-6, 5, 1100)
    reached = max(law.renyi(order) / order for order in orders)
    assert reached <= law.normalised_renyi() ** 2 <= reached * (1 + 2e-4)


def test_normalised_renyi_of_many_categories_exceeds_kullback_leibler() -> None:
    """A search that stops at the limit alpha = 1 understates the loss."""
    law = RandomisedResponse(0.02, 200)
    assert law.normalised_renyi() ** 2 > 1.2 * law.kullback_leibler()


@pytest.mark.parametrize("scale", [0.3, 1, 7])
def test_discrete_laplace_at_shift_one_is_randomised_response(scale: float) -> None:
    noise = DiscreteLaplace(scale)
    response = RandomisedResponse(1 / (1 + math.exp(-1 / scale)))
    close = lambda value: pytest.approx(value, rel=1e-10, abs=1e-14)  # noqa: E731
    assert noise.multiplicative(1) == close(response.multiplicative())
    assert noise.normalised_renyi(1) == close(response.normalised_renyi())
    assert noise.hellinger(1) == close(response.hellinger())
    assert noise.chi_squared(1) == close(response.chi_squared())
    assert noise.renyi(2.5, 1) == close(response.renyi(2.5))
    assert noise.approximate(0.05, 1) == close(response.approximate(0.05))
    assert [noise.tradeoff(x, 1) for x in (0.1, 0.4, 0.9)] == close(
        [response.tradeoff(x) for x in (0.1, 0.4, 0.9)]
    )


@pytest.mark.parametrize("scale", [0.5, 2, 10])
def test_laplace_formulas_would_understate_discrete_laplace(scale: float) -> None:
    smooth, lattice, shift = Laplace(scale), DiscreteLaplace(scale), 3
    assert lattice.multiplicative(shift) == smooth.multiplicative(shift)
    assert lattice.kullback_leibler(shift) > smooth.kullback_leibler(shift)
    assert lattice.normalised_renyi(shift) > smooth.normalised_renyi(shift)
    assert lattice.total_variation(shift) > smooth.total_variation(shift)
    assert lattice.approximate(1e-3, shift) > smooth.approximate(1e-3, shift)
    levels = np.linspace(0.001, 0.999, 97)
    assert all(lattice.tradeoff(x, shift) <= smooth.tradeoff(x, shift) * (1 + 1e-11) for x in levels)


def test_fine_lattices_approach_the_continuous_laws() -> None:
    steps, scale = 10_000, 4_000
    for fine, smooth in [
        (DiscreteLaplace(scale), Laplace(scale)),
        (DiscreteGaussian(scale**2), Gaussian(scale)),
    ]:
        assert fine.kullback_leibler(steps) == pytest.approx(smooth.kullback_leibler(steps), rel=1e-6)
        assert fine.hellinger(steps) == pytest.approx(smooth.hellinger(steps), rel=1e-6)
        assert fine.delta(0.5, steps) == pytest.approx(smooth.delta(0.5, steps), rel=1e-6)
        assert fine.approximate(0.01, steps) == pytest.approx(smooth.approximate(0.01, steps), rel=1e-6)
        assert fine.tradeoff(0.1, steps) == pytest.approx(smooth.tradeoff(0.1, steps), rel=1e-6)


def test_small_losses_keep_their_relative_precision() -> None:
    """Formulas that subtract nearly equal numbers would lose every digit here."""
    rate = 1e-7
    lattice, smooth = DiscreteLaplace(10**7), Laplace(10**7)
    assert lattice.kullback_leibler(1) == pytest.approx(rate * math.tanh(rate / 2), rel=1e-11)
    assert smooth.kullback_leibler(1) == pytest.approx(rate**2 / 2 - rate**3 / 6, rel=1e-11)
    assert lattice.renyi(3, 1) == pytest.approx(3 * rate**2 / 2, rel=1e-6)
    assert lattice.hellinger(1) == pytest.approx(rate / math.sqrt(8), rel=1e-6)
    assert lattice.approximate(1e-8, 1) == pytest.approx(rate - 2e-8, rel=1e-6)
    assert Gaussian(10**7).total_variation(1) == pytest.approx(rate / math.sqrt(2 * math.pi), rel=1e-11)


def test_large_losses_do_not_overflow() -> None:
    for law in (Laplace(1e-3), DiscreteLaplace(1e-3)):
        assert law.renyi(50, 2) == pytest.approx(2000, rel=1e-3)
        assert law.approximate(0.5, 2) <= 2000
        assert law.hellinger(2) == law.total_variation(2) == 1
        assert law.chi_squared(2) == math.inf
        assert law.tradeoff(0.3, 2) == 0
    assert gaussian_delta(1e3, 1.0) == 1
    assert 0 < gaussian_delta(1e-3, 1.0) <= 1e-300
    assert gaussian_delta(1e-300, 1.0) > 0
    assert gaussian_epsilon(100, 1e-12) == pytest.approx(5000 + 100 * 7.034, rel=1e-3)


def trade(law: NoiseLaw | RandomisedResponse, level: float, shift: int) -> float:
    if isinstance(law, RandomisedResponse):
        return law.tradeoff(level)
    return law.tradeoff(level, shift)


def hockey(law: NoiseLaw | RandomisedResponse, epsilon: float, shift: int) -> float:
    return law.delta(epsilon) if isinstance(law, RandomisedResponse) else law.delta(epsilon, shift)


EVERY = [*LAWS, RandomisedResponse(0.75), RandomisedResponse(0.4, 5), RandomisedResponse(0.05, 4)]


@pytest.mark.parametrize("law", EVERY, ids=name)
def test_delta_is_the_conjugate_of_the_tradeoff_function(
    law: NoiseLaw | RandomisedResponse,
) -> None:
    """delta(epsilon) is the supremum of 1 - e^epsilon x - f(x) (Dong, Roth and Su 2022)."""
    levels = np.concatenate([np.logspace(-8, -2, 400), np.linspace(0.01, 1, 2000)])
    curve = np.array([trade(law, float(x), 2) for x in levels])
    for epsilon in (0.0, 0.4, 1.0):
        conjugate = float(np.max(1 - math.exp(epsilon) * levels - curve))
        value = hockey(law, epsilon, 2)
        assert conjugate <= value + 1e-11
        assert conjugate == pytest.approx(value, abs=2e-3)


@pytest.mark.parametrize("law", EVERY, ids=name)
def test_tradeoff_function_is_convex_falling_symmetric_and_below_chance(
    law: NoiseLaw | RandomisedResponse,
) -> None:
    levels = np.linspace(0, 1, 201)
    curve = np.array([trade(law, float(x), 2) for x in levels])
    assert curve[0] == 1 and curve[-1] == 0
    assert np.all(np.diff(curve) <= 0) and np.all(np.diff(curve, 2) >= -1e-11)
    assert np.all(curve <= 1 - levels + 1e-15)
    for level, error in zip(levels[::20], curve[::20], strict=True):
        if 0 < error < 1:
            assert trade(law, float(error), 2) == pytest.approx(level, abs=1e-9)


def test_tradeoff_of_gaussian_and_laplace_at_known_points() -> None:
    assert Gaussian(1).tradeoff(0.5, 1) == pytest.approx(norm.cdf(-1), rel=1e-11)
    assert Laplace(1).tradeoff(0.01, 1) == pytest.approx(1 - math.e / 100, rel=1e-11)
    assert Laplace(1).tradeoff(0.25, 1) == pytest.approx(math.exp(-1), rel=1e-11)
    assert Laplace(1).tradeoff(0.75, 1) == pytest.approx(math.exp(-1) / 4, rel=1e-11)


scales = st.fractions(min_value=Fraction(1, 5), max_value=20, max_denominator=50)
shifts = st.integers(min_value=0, max_value=12)
deltas = st.floats(min_value=1e-9, max_value=0.9)
laws = st.one_of(
    scales.map(Laplace),
    scales.map(DiscreteLaplace),
    scales.map(Gaussian),
    scales.map(DiscreteGaussian),
)
BRIEF = settings(max_examples=60, deadline=None)


@BRIEF
@given(laws, shifts)
def test_every_divergence_grows_with_the_shift(law: NoiseLaw, shift: int) -> None:
    for divergence in (
        law.multiplicative,
        law.normalised_renyi,
        law.kullback_leibler,
        law.total_variation,
        law.hellinger,
        law.chi_squared,
        law.density_ratio,
        lambda s: law.renyi(2.5, s),
        lambda s: law.approximate(1e-4, s),
    ):
        assert divergence(shift) <= divergence(shift + 1) * (1 + 4e-12)
        assert divergence(-shift) == divergence(shift)
    assert law.tradeoff(0.1, shift + 1) <= law.tradeoff(0.1, shift) * (1 + 4e-12)


@BRIEF
@given(laws)
def test_no_shift_means_no_protection_loss(law: NoiseLaw) -> None:
    assert law.multiplicative(0) == law.normalised_renyi(0) == law.kullback_leibler(0) == 0
    assert law.total_variation(0) == law.hellinger(0) == law.chi_squared(0) == 0
    assert law.density_ratio(0) == law.renyi(3, 0) == law.approximate(0.1, 0) == 0
    assert law.tradeoff(0.3, 0) == pytest.approx(0.7, rel=1e-11)


@BRIEF
@given(laws, shifts, st.floats(min_value=1.0, max_value=40), st.floats(min_value=1.0, max_value=40))
def test_classical_inequalities(law: NoiseLaw, shift: int, alpha: float, beta: float) -> None:
    slack = 1 + 1e-11
    low, high = sorted((alpha, beta))
    epsilon, rho = law.multiplicative(shift), law.normalised_renyi(shift)
    assert law.renyi(low, shift) <= law.renyi(high, shift) * slack <= epsilon * slack
    assert law.renyi(high, shift) <= high * rho**2 * slack
    assert rho <= epsilon / math.sqrt(2) * slack
    tv, hellinger = law.total_variation(shift), law.hellinger(shift)
    assert hellinger**2 <= tv * slack and tv <= hellinger * math.sqrt(2) * slack
    assert tv <= math.sqrt(law.kullback_leibler(shift) / 2) * slack
    assert epsilon <= law.density_ratio(shift) <= 2 * epsilon


@BRIEF
@given(laws, shifts, deltas, deltas)
def test_approximation_falls_in_delta_and_is_sound(law: NoiseLaw, shift: int, one: float, two: float) -> None:
    small, large = sorted((one, two))
    assert law.approximate(large, shift) <= law.approximate(small, shift) * (1 + 1e-11) + 1e-300
    assert law.approximate(small, shift) <= law.approximate(0, shift) == law.multiplicative(shift)
    epsilon = law.approximate(small, shift)
    assert law.delta(epsilon, shift) <= small * (1 + 1e-11)
    if small >= law.total_variation(shift) * (1 + 1e-11):
        assert epsilon == pytest.approx(0, abs=1e-9)


probabilities = st.fractions(min_value=Fraction(1, 100), max_value=Fraction(99, 100))


@BRIEF
@given(probabilities, st.integers(min_value=2, max_value=9), st.floats(min_value=1.0, max_value=30))
def test_randomised_response_equals_direct_summation(truth: Fraction, categories: int, order: float) -> None:
    law = RandomisedResponse(truth, categories)
    other = (1 - truth) / (categories - 1)
    if truth == other:
        assert law.multiplicative() == law.renyi(order) == law.normalised_renyi() == 0
        return
    exact = [Decimal(x.numerator) / Decimal(x.denominator) for x in (truth, other)]
    rest = [exact[1]] * (categories - 2)
    twin = Twin([*exact, *rest], [*exact[::-1], *rest])
    assert within(law.multiplicative(), twin.multiplicative(), loose=1e-14)
    assert within(law.density_ratio(), twin.density_ratio(), loose=1e-14)
    assert within(law.kullback_leibler(), twin.kullback_leibler())
    assert within(law.hellinger(), twin.hellinger())
    assert within(law.chi_squared(), twin.chi_squared(), loose=1e-14)
    if order > 1 + 1e-6:
        assert within(law.renyi(order), twin.renyi(Decimal(order)))
    for epsilon in (0.0, 0.3, 1.5):
        assert within(law.delta(epsilon), twin.delta(Decimal(epsilon)))
    for level in (Fraction(1, 50), Fraction(1, 3), Fraction(9, 10)):
        error = twin.tradeoff(Decimal(level.numerator) / Decimal(level.denominator))
        assert float(error) == pytest.approx(law.tradeoff(level), abs=1e-15)


def test_randomised_response_at_the_ends() -> None:
    certain, never = RandomisedResponse(1), RandomisedResponse(0, 3)
    assert certain.multiplicative() == certain.renyi(2) == certain.normalised_renyi() == math.inf
    assert certain.tradeoff(0) == 0 and certain.delta(5) == certain.hellinger() == 1
    assert certain.approximate(0.99) == math.inf and certain.approximate(1) == 0
    assert certain.chi_squared() == certain.density_ratio() == math.inf
    assert never.delta(math.inf) == 0.5 and never.approximate(0.5) == 0
    assert never.tradeoff(0.1) == pytest.approx(0.4) and never.approximate(0.49) == math.inf


def test_rational_losses_are_the_least_float_above() -> None:
    assert Laplace(0.1).multiplicative(1) == 10
    assert DiscreteLaplace(Fraction(1, 10)).multiplicative(3) == 30
    third = Laplace(3).multiplicative(1)
    assert third > Fraction(1, 3) > Fraction(math.nextafter(third, 0))
    assert Fraction(Gaussian(1).normalised_renyi(1)) ** 2 >= Fraction(1, 2)


def test_gaussian_epsilon_is_certified_from_above() -> None:
    for mu in (0.01, 0.5, 3.0, 20.0):
        for delta in (1e-200, 1e-10, 0.001):
            epsilon = gaussian_epsilon(mu, delta)
            assert gaussian_delta(mu, epsilon) <= delta
            assert gaussian_delta(mu, epsilon * (1 - 1e-6)) > delta


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: Laplace(0), "scale"),
        (lambda: DiscreteLaplace(-1), "scale"),
        (lambda: Gaussian(math.nan), "sigma"),
        (lambda: Gaussian(math.inf), "sigma"),
        (lambda: DiscreteGaussian(0), "sigma_squared"),
        (lambda: RandomisedResponse(1.5), "truth_probability"),
        (lambda: RandomisedResponse(0.5, 1), "categories"),
        (lambda: RandomisedResponse(0.5, 2.0), "categories"),  # type: ignore[arg-type]
        (lambda: Laplace(1).multiplicative(math.inf), "shift"),
        (lambda: DiscreteLaplace(1).multiplicative(0.5), "shift"),
        (lambda: DiscreteGaussian(1).normalised_renyi(1.5), "shift"),
        (lambda: Laplace(1).renyi(0.5, 1), "alpha"),
        (lambda: Laplace(1).delta(-1, 1), "epsilon"),
        (lambda: Laplace(1).delta(math.nan, 1), "epsilon"),
        (lambda: Laplace(1).approximate(1.1, 1), "delta"),
        (lambda: Laplace(1).tradeoff(-0.1, 1), "alpha"),
        (lambda: gaussian_delta(-1, 1), "mu"),
        (lambda: gaussian_epsilon(-1, 0.1), "mu"),
        (lambda: gaussian_epsilon(math.inf, 0.1), "mu"),
        (lambda: RandomisedResponse(0.5).renyi(0.9), "alpha"),
    ],
)
def test_bad_parameters_are_refused_by_field(call: Callable[[], object], field: str) -> None:
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.field == field
    assert refusal.value.expected and refusal.value.hint


def test_a_lattice_too_wide_to_sum_is_refused_but_keeps_its_closed_forms() -> None:
    law = DiscreteGaussian(10**16)
    with pytest.raises(NotComputable):
        law.delta(0.1, 10**8)
    with pytest.raises(NotComputable):
        law.tradeoff(0.1, 10**8)
    assert law.normalised_renyi(10**8) == pytest.approx(1 / math.sqrt(2), rel=1e-15)
    assert law.renyi(1.5, 10**8) == pytest.approx(0.75, rel=1e-12)
