"""Closed forms of the divergence between a noise law and its shift, and of randomised response.

A mechanism that adds noise to a query of sensitivity ``shift`` has, at distance one, the protection
loss that the output premetric D_Pr assigns to the noise law and its shift. Each law below knows
that loss under every premetric of this package:

| law              | D_Mult         | D_NoR squared                       | trade-off function     |
| ---------------- | -------------- | ----------------------------------- | ---------------------- |
| Laplace          | a = shift/b    | a + e^-a - 1                        | three smooth pieces    |
| discrete Laplace | a = shift/b    | a - (1 - e^-a) / (b sinh(1/b))      | piecewise linear       |
| Gaussian         | infinite       | shift^2 / (2 sigma^2)               | Phi(Phi^-1(1-x) - mu)  |
| discrete Gauss   | infinite       | shift^2 / (2 sigma^2)               | piecewise linear       |
| randomised resp. | ln(high/low)   | (high - low) ln(high/low), or above | three lines            |

Numbers given by the caller are read as they are written (``0.1`` is one tenth). Results are floats
that never understate a protection loss: rational results are the least float not below the value,
all others are raised by at least the error of their evaluation (a relative 1e-12 unless said
otherwise). Type-II errors are lowered alike, since a larger error would claim more protection.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from stirred.errors import InputError, NotComputable
from stirred.spec.exact import Exact, as_fraction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Real: TypeAlias = int | float | Fraction

_MARGIN = 1e-12
_STOP = 1e-13
_ROUNDING = 2.0**-48
_MOST_ATOMS = 10_000_000
_EXPONENTS = range(1, 13)


class NoiseLaw(ABC):
    """A symmetric law of additive noise, compared with the same law moved by ``shift``.

    Being symmetric, the law and its shift are interchangeable: every divergence below is the same
    in both directions and for a shift of the opposite sign.

    Guarantee
        No returned protection loss is below, and no type-II error above, the value it stands for.
    """

    @abstractmethod
    def multiplicative(self, shift: Real) -> float:
        """D_Mult: the supremum of the absolute log-ratio of probabilities."""

    @abstractmethod
    def kullback_leibler(self, shift: Real) -> float:
        """Kullback-Leibler divergence: the mean of the protection loss variable."""

    @abstractmethod
    def hellinger(self, shift: Real) -> float:
        """Hellinger distance H, in the convention H^2 = 1 - sum of sqrt(p q), so that H <= 1."""

    def delta(self, epsilon: float, shift: Real) -> float:
        """Hockey-stick divergence: the largest P(S) - e^epsilon Q(S) over events S."""
        bound = _non_negative(epsilon, "epsilon")
        return 0.0 if math.isinf(bound) else self._delta(bound, shift)

    def approximate(self, delta: Real, shift: Real) -> float:
        """D_Mult^delta: the least epsilon >= 0 whose hockey-stick divergence is at most delta.

        Guarantee
            The answer is an epsilon at which :meth:`delta`, itself rounded upward, is at most
            ``delta``; bisection stops within a relative 1e-13 above the least one.
        Reference
            The search starts from rho + 2 sqrt(rho ln(1/delta)) with rho = D_NoR^2 (Bun and Steinke
            2016, Proposition 1.3).
        """
        budget = _round_down(_probability(delta, "delta"))
        if budget == 0:
            return self.multiplicative(shift)
        rho = self.kullback_leibler(shift)
        upper = min(rho + 2 * math.sqrt(-rho * math.log(budget)), self.multiplicative(shift))
        return _least_epsilon(lambda epsilon: self.delta(epsilon, shift), budget, upper)

    def renyi(self, alpha: float, shift: Real) -> float:
        """Renyi divergence of order alpha >= 1; order 1 is Kullback-Leibler, infinity is D_Mult."""
        order = _order(alpha)
        if order == 1:
            return self.kullback_leibler(shift)
        return self.multiplicative(shift) if math.isinf(order) else self._renyi(order, shift)

    def normalised_renyi(self, shift: Real) -> float:
        """D_NoR: the supremum of sqrt(D_alpha / alpha) over alpha > 1; here always sqrt(D_1).

        Reference
            Put t = alpha - 1/2 and M(t) = integral of sqrt(p q) e^(t L) with L = ln(p/q). Then
            D_alpha / alpha = ln M(t) / (t^2 - 1/4) and M(1/2) = 1. For both Laplace laws every
            zero of M is imaginary, so ln M is concave in t^2 and the quotient falls from its limit
            at alpha = 1. (Discrete: z = e^(2t/b) solves z^n (Az - A + 1) = A - (A - 1) z with
            A = 1/(1 - e^(-1/b)), whose two sides have equal modulus on the unit circle only.
            Laplace: the limit of b and shift growing together.) For both Gaussian laws
            D_alpha <= alpha D_1 (Canonne, Kamath and Steinke 2020, Proposition 5).
        """
        return _root_up(self.kullback_leibler(shift))

    def total_variation(self, shift: Real) -> float:
        """Total variation distance: the hockey-stick divergence at epsilon = 0."""
        return self.delta(0, shift)

    def chi_squared(self, shift: Real) -> float:
        """Chi-squared divergence: e^(D_2) - 1."""
        divergence = self.renyi(2, shift)
        return math.inf if divergence > 700 else _up(math.expm1(divergence))

    def density_ratio(self, shift: Real) -> float:
        """d_DR = ln sup p/q - ln inf p/q: twice D_Mult, by symmetry."""
        return 2 * self.multiplicative(shift)

    def tradeoff(self, alpha: Real, shift: Real) -> float:
        """Trade-off function: the least type-II error at level alpha, rounded downward."""
        level = _round_up(_probability(alpha, "alpha"))
        return 1.0 if level == 0 else self._tradeoff(level, shift)

    @abstractmethod
    def _delta(self, epsilon: float, shift: Real) -> float:
        """Hockey-stick divergence at a finite epsilon."""

    @abstractmethod
    def _renyi(self, order: float, shift: Real) -> float:
        """Renyi divergence of a finite order above one."""

    @abstractmethod
    def _tradeoff(self, level: float, shift: Real) -> float:
        """Least type-II error at a level above zero."""


@dataclass(frozen=True)
class Laplace(NoiseLaw):
    """Laplace noise with density e^(-|x|/scale) / (2 scale).

    Parameters
    ----------
    scale
        The scale b; the standard deviation is b sqrt(2).

    Examples
    --------
    >>> Laplace(scale=0.5).multiplicative(shift=1)
    2.0
    """

    scale: Real

    def __post_init__(self) -> None:
        _positive(self.scale, "scale")

    def _loss(self, shift: Real) -> Fraction:
        return abs(_finite(shift, "shift")) / as_fraction(self.scale)

    def multiplicative(self, shift: Real) -> float:
        """D_Mult = shift / scale (Dwork, McSherry, Nissim and Smith 2006), rounded upward."""
        return _round_up(self._loss(shift))

    def kullback_leibler(self, shift: Real) -> float:
        """a + e^-a - 1 with a = shift / scale."""
        return _up(_exponential_remainder(-self.multiplicative(shift)))

    def hellinger(self, shift: Real) -> float:
        """H^2 = 1 - (1 + a/2) e^(-a/2) with a = shift / scale."""
        return _exponential_hellinger(self.multiplicative(shift), 0.0)

    def approximate(self, delta: Real, shift: Real) -> float:
        """D_Mult^delta = max(0, a + 2 ln(1 - delta)) with a = shift / scale."""
        budget = _round_down(_probability(delta, "delta"))
        loss = self.multiplicative(shift)
        if budget in {0.0, 1.0}:
            return loss * (1 - budget)
        saved = -2 * math.log1p(-budget)
        return min(loss, max(0.0, _up(loss * (1 + _ROUNDING) - saved)))

    def _delta(self, epsilon: float, shift: Real) -> float:
        short = self._loss(shift) - as_fraction(epsilon)
        return _up(-math.expm1(-_round_up(short) / 2), cap=1.0) if short > 0 else 0.0

    def _renyi(self, order: float, shift: Real) -> float:
        return _exponential_renyi(order, self.multiplicative(shift), (order - 1) / (2 * order - 1), 0.0)

    def _tradeoff(self, level: float, shift: Real) -> float:
        loss = self.multiplicative(shift)
        if level > 0.5:
            return _down(math.exp(-loss) * (1 - level))
        if math.log(2 * level) < -loss:
            return _down(1 - math.exp(loss + math.log(level)))
        return _down(math.exp(-loss) / level / 4)


@dataclass(frozen=True)
class DiscreteLaplace(NoiseLaw):
    """Two-sided geometric noise on the integers, P(k) proportional to e^(-|k|/scale).

    At equal scale it protects no more than Laplace noise, under any premetric: its trade-off
    function is a maximum over integers of what for Laplace noise is a maximum over reals. So the
    formulas of Laplace noise would understate its loss, except for D_Mult. At shift one it is
    binary randomised response with epsilon = 1/scale.

    Parameters
    ----------
    scale
        The scale b.

    Assumes
        An integer shift; any other would move the law to disjoint support.

    Examples
    --------
    >>> DiscreteLaplace(scale=2).multiplicative(shift=3)
    1.5
    """

    scale: Real

    def __post_init__(self) -> None:
        _positive(self.scale, "scale")

    def _rate(self) -> float:
        return float(1 / as_fraction(self.scale))

    def multiplicative(self, shift: Real) -> float:
        """D_Mult = shift / scale (Ghosh, Roughgarden and Sundararajan 2009), rounded upward."""
        return _round_up(_steps(shift) / as_fraction(self.scale))

    def kullback_leibler(self, shift: Real) -> float:
        """a - s (1 - e^-a) with a = shift / scale and s = (1/scale) / sinh(1/scale)."""
        loss = self.multiplicative(shift)
        granularity = _one_minus_inverse_sinhc(self._rate())
        return _up(_exponential_remainder(-loss) - granularity * math.expm1(-loss))

    def hellinger(self, shift: Real) -> float:
        """H^2 = 1 - (1 + shift tanh(1/(2 scale))) e^(-a/2) with a = shift / scale."""
        gap = _steps(shift) * _minus_tanh(self._rate() / 2)
        return _exponential_hellinger(self.multiplicative(shift), gap)

    def _delta(self, epsilon: float, shift: Real) -> float:
        """P(k <= m) - e^epsilon Q(k <= m), where m is the last k whose loss exceeds epsilon.

        The three terms may cancel, so the bound on their rounding is added before the last scaling.
        """
        steps, scale, bound = _steps(shift), as_fraction(self.scale), as_fraction(epsilon)
        if bound * scale >= steps:
            return 0.0
        last = math.ceil((steps - bound * scale) / 2) - 1
        terms = (
            -math.expm1(-float((last + 1) / scale)),
            math.expm1(-self._rate()),
            -math.expm1(float(bound - (steps - last) / scale)),
        )
        rounding = _ROUNDING * sum(map(abs, terms))
        return _up((sum(terms) + rounding) / (1 + math.exp(-self._rate())), cap=1.0)

    def _renyi(self, order: float, shift: Real) -> float:
        loss, rate = self.multiplicative(shift), self._rate()
        spread = -(1 + math.exp(-rate)) * math.expm1(-(2 * order - 1) * rate)
        fall = -math.exp(-rate) * math.expm1(-2 * (order - 1) * rate) / spread
        excess = _lattice_excess(order, loss, rate) if order * loss <= 1 else 0.0
        return _exponential_renyi(order, loss, fall, excess)

    def _tradeoff(self, level: float, shift: Real) -> float:
        """The largest of the lines e^(-(n-j)/b) - level e^((2j-n)/b) over j = 0, ..., n."""
        steps, rate = _steps(shift), self._rate()
        best = math.floor(-(math.log(level) + math.log1p(math.exp(-rate))) / rate)
        line = min(max(best, 0), steps)
        fall = math.exp((2 * line - steps) * rate + math.log(level))
        return _down(math.exp(-(steps - line) * rate) - fall * (1 + _MARGIN))


@dataclass(frozen=True)
class Gaussian(NoiseLaw):
    """Gaussian noise.

    Parameters
    ----------
    sigma
        The standard deviation.

    Examples
    --------
    >>> round(Gaussian(sigma=1).approximate(delta=1e-6, shift=1), 6)
    4.886554
    """

    sigma: Real

    def __post_init__(self) -> None:
        _positive(self.sigma, "sigma")

    def _mu(self, shift: Real) -> Fraction:
        return abs(_finite(shift, "shift")) / as_fraction(self.sigma)

    def multiplicative(self, shift: Real) -> float:
        """D_Mult is infinite for every shift but zero."""
        return math.inf if self._mu(shift) else 0.0

    def kullback_leibler(self, shift: Real) -> float:
        """mu^2 / 2 with mu = shift / sigma, rounded upward."""
        return _round_up(self._mu(shift) ** 2 / 2)

    def hellinger(self, shift: Real) -> float:
        """H^2 = 1 - e^(-mu^2 / 8) with mu = shift / sigma."""
        return _hellinger_from_log_affinity(-_round_up(self._mu(shift) ** 2 / 8))

    def total_variation(self, shift: Real) -> float:
        """2 Phi(mu/2) - 1 with mu = shift / sigma."""
        return _up(math.erf(_round_up(self._mu(shift)) / math.sqrt(8)), cap=1.0)

    def _delta(self, epsilon: float, shift: Real) -> float:
        return gaussian_delta(_round_up(self._mu(shift)), epsilon)

    def _renyi(self, order: float, shift: Real) -> float:
        return _round_up(as_fraction(order) * self._mu(shift) ** 2 / 2)

    def _tradeoff(self, level: float, shift: Real) -> float:
        """Phi(Phi^-1(1 - level) - mu) (Dong, Roth and Su 2022)."""
        from scipy.special import ndtr, ndtri

        return _down(float(ndtr(-ndtri(level) - _round_up(self._mu(shift)))))


@dataclass(frozen=True)
class DiscreteGaussian(NoiseLaw):
    """Discrete Gaussian noise on the integers, P(k) proportional to e^(-k^2 / (2 sigma_squared)).

    Parameters
    ----------
    sigma_squared
        The parameter sigma squared; the variance is slightly smaller.

    Assumes
        An integer shift; any other would move the law to disjoint support.

    Reference
        Canonne, Kamath and Steinke 2020. Let Z(c) be the sum of e^(-(k-c)^2 / (2 sigma^2)) over the
        integers k. Completing the square at shift n,
        D_alpha = alpha n^2 / (2 sigma^2) + ln(Z((alpha-1) n) / Z(0)) / (alpha - 1). As Z is largest
        at the integers, D_alpha <= alpha n^2 / (2 sigma^2) (their Proposition 5), with equality
        exactly where (alpha - 1) n is an integer, and in the limit alpha = 1. Hence D_NoR equals
        n / (sigma sqrt 2).

    Examples
    --------
    >>> DiscreteGaussian(sigma_squared=2).normalised_renyi(shift=1)
    0.5
    """

    sigma_squared: Real

    def __post_init__(self) -> None:
        _positive(self.sigma_squared, "sigma_squared")

    def _mu_squared(self, shift: Real) -> Fraction:
        return _steps(shift) ** 2 / as_fraction(self.sigma_squared)

    def multiplicative(self, shift: Real) -> float:
        """D_Mult is infinite for every shift but zero."""
        return math.inf if _steps(shift) else 0.0

    def kullback_leibler(self, shift: Real) -> float:
        """shift^2 / (2 sigma^2) exactly, rounded upward: Z has slope zero at the integers."""
        return _round_up(self._mu_squared(shift) / 2)

    def hellinger(self, shift: Real) -> float:
        """H^2 = 1 - e^(-shift^2 / (8 sigma^2)) Z(shift/2) / Z(0)."""
        ratio = _log_theta_ratio(Fraction(_steps(shift), 2), float(self.sigma_squared))
        return _hellinger_from_log_affinity(ratio - _round_up(self._mu_squared(shift) / 8))

    def _delta(self, epsilon: float, shift: Real) -> float:
        """Sum of P(k) (1 - e^(epsilon - L_k)) over the k whose loss L_k exceeds epsilon.

        Every term is non-negative. The window reaches 12 sigma + 12 below zero and the first term,
        which leaves out a mass below 2e-31 and less than 1e-18 of the sum.
        """
        import numpy as np

        steps, variance = _steps(shift), float(self.sigma_squared)
        if steps == 0:
            return 0.0
        drop = as_fraction(epsilon) * as_fraction(self.sigma_squared) / steps
        top, reach = math.floor(Fraction(steps, 2) - drop) + 1, _reach(variance)
        if top < -4 * reach:
            return math.ulp(0.0)
        k = _window(min(top, 0) - reach, min(top, reach))
        loss = steps * (steps - 2 * k) / (2 * variance)
        gain = np.maximum(loss - epsilon + _ROUNDING * (np.abs(loss) + epsilon), 0.0)
        return _probability_up(float(np.sum(_masses(k, variance) * -np.expm1(-gain))))

    def _renyi(self, order: float, shift: Real) -> float:
        beta = as_fraction(order) - 1
        ratio = _log_theta_ratio(beta * _steps(shift), float(self.sigma_squared))
        bound = as_fraction(order) * self._mu_squared(shift) / 2
        slack = _ROUNDING * (1 + abs(ratio))
        return min(_round_up(bound), _up(_round_up(bound) + (ratio + slack) / float(beta)))

    def _tradeoff(self, level: float, shift: Real) -> float:
        """Neyman-Pearson: reject above j always, at j with the probability that exhausts the level.

        Tails are accumulated from their far end, with a relative error below the window size times
        2^-52; any j gives a line below the trade-off function, so an error in j is safe. Beyond a
        shift of 96 sigma the value is below 1e-300 and zero is returned.
        """
        import numpy as np

        steps, variance = _steps(shift), float(self.sigma_squared)
        if steps > 8 * _reach(variance):
            return 0.0
        far = steps + _reach(variance) + math.ceil(math.sqrt(-2 * variance * math.log(level)))
        mass = _masses(_window(-far, far), variance)
        below = np.cumsum(mass)
        above = below[::-1]
        rounding = len(mass) * 2.0**-51
        j = max(int(np.searchsorted(-above, -level, side="right")) - 1, 0)
        if j <= steps:
            return 0.0
        accepted = (above[j] * (1 - rounding) - level) / mass[j]
        return _down(float(below[j - steps - 1] * (1 - rounding) + mass[j - steps] * accepted))


@dataclass(frozen=True)
class RandomisedResponse:
    """Randomised response: the true category with one probability, each other one with another.

    The divergences are those between the answers of two respondents in different categories; they
    are the same for every such pair. ``high`` and ``low`` are the larger and the smaller of the
    probabilities of the true and of one other category.

    Parameters
    ----------
    truth_probability
        Probability of answering with the true category.
    categories
        Number of categories k; two is Warner's design.

    Examples
    --------
    >>> round(RandomisedResponse(0.75).multiplicative(), 6)
    1.098612
    """

    truth_probability: Real
    categories: int = 2

    def __post_init__(self) -> None:
        _probability(self.truth_probability, "truth_probability")
        if type(self.categories) is not int or self.categories < 2:
            raise _bad("categories", "an integer of at least two")

    @property
    def high(self) -> Fraction:
        """The larger probability."""
        return max(self._probabilities())

    @property
    def low(self) -> Fraction:
        """The smaller probability."""
        return min(self._probabilities())

    def _probabilities(self) -> tuple[Fraction, Fraction]:
        truth = as_fraction(self.truth_probability)
        return truth, (1 - truth) / (self.categories - 1)

    def multiplicative(self) -> float:
        """D_Mult = ln(high / low), rounded upward; |logit p| for two categories."""
        return Exact.log(self.high / self.low).float_up() if self.low else math.inf

    def delta(self, epsilon: float) -> float:
        """Hockey-stick divergence max(0, high - e^epsilon low)."""
        bound = _non_negative(epsilon, "epsilon")
        if self.low == 0:
            return _round_up(self.high)
        if bound >= self.multiplicative():
            return 0.0
        excess = _round_up(self.high) - float(self.low) * math.exp(bound)
        return min(self.total_variation(), max(0.0, excess + _ROUNDING))

    def approximate(self, delta: Real) -> float:
        """D_Mult^delta = max(0, ln((high - delta) / low)), rounded upward."""
        left = self.high - _probability(delta, "delta")
        if left <= self.low:
            return 0.0
        return Exact.log(left / self.low).float_up() if self.low else math.inf

    def renyi(self, alpha: float) -> float:
        """Renyi divergence of order alpha >= 1.

        With r = high/low the moment is 1 + low (r^alpha - 1) (1 - r^(1 - alpha)), in which nothing
        cancels.
        """
        order, loss = _order(alpha), self.multiplicative()
        if loss in {0.0, math.inf} or math.isinf(order):
            return loss
        if order == 1:
            return self.kullback_leibler()
        up = order * loss + math.log(-math.expm1(-order * loss))
        growth = math.log(self.low) + up + math.log(-math.expm1((1 - order) * loss))
        moment = growth if growth > 40 else math.log1p(math.exp(growth))
        return min(loss, _up(moment / (order - 1)))

    def normalised_renyi(self) -> float:
        """D_NoR: the supremum of sqrt(D_alpha / alpha) over alpha > 1.

        Two categories attain it as alpha tends to 1. With more it may lie inside, but not beyond
        alpha = 1/(high - low), where D_alpha / alpha <= D_Mult / alpha is under its limit at 1; up
        to there the quotient rises, then falls.

        Reference
            With c = (1 - high - low) / (2 sqrt(high low)) the quotient is a slope of chords, from
            one fixed end, of ln(c + cosh(sqrt s)). That is convex in s = y^2 where
            c > (sinh y cosh y - y) / (y cosh y - sinh y) and concave elsewhere, and the bound rises
            with y, being a ratio of power series with rising coefficient ratios 4^j / (2j).
        """
        at_one, loss = self.kullback_leibler(), self.multiplicative()
        if loss in {0.0, math.inf}:
            return loss
        if self.categories == 2:
            return _root_up(at_one)
        inside = _unimodal_maximum(
            lambda order: self.renyi(order) / order, 1.0, float(1 / (self.high - self.low))
        )
        return min(_root_up(max(at_one, inside)), _up(loss / math.sqrt(2)))

    def kullback_leibler(self) -> float:
        """(high - low) ln(high / low)."""
        return _up(float(self.high - self.low) * self.multiplicative())

    def total_variation(self) -> float:
        """The difference high - low, rounded upward."""
        return _round_up(self.high - self.low)

    def hellinger(self) -> float:
        """H = sqrt(high) - sqrt(low), in the convention H^2 = 1 - sum of sqrt(p q)."""
        roots = math.sqrt(self.high) + math.sqrt(self.low)
        return _up(float(self.high - self.low) / roots, cap=1.0)

    def chi_squared(self) -> float:
        """(high - low)^2 (1/high + 1/low), rounded upward."""
        if self.low == 0:
            return math.inf
        return _round_up((self.high - self.low) ** 2 * (1 / self.high + 1 / self.low))

    def density_ratio(self) -> float:
        """d_DR = 2 ln(high / low)."""
        return 2 * self.multiplicative()

    def tradeoff(self, alpha: Real) -> float:
        """Least type-II error at level alpha: the largest of three lines, rounded downward."""
        level = _probability(alpha, "alpha")
        lines = [Fraction(0), 1 - (self.high - self.low) - level]
        if self.low:
            lines += [1 - self.high / self.low * level, self.low / self.high * (1 - level)]
        return _round_down(max(lines))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Hockey-stick divergence of N(0, 1) and N(mu, 1), in log space.

    Guarantee
        Rounded upward: the two terms may cancel when mu is small, so the bound on the rounding of
        their logarithms, about 1e-14 (1 + epsilon + |ln Phi|) of the first term, is added.
    Reference
        Balle and Wang 2018, Theorem 8: Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

    Examples
    --------
    >>> round(gaussian_delta(mu=1, epsilon=1), 6)
    0.126937
    """
    from scipy.special import log_ndtr

    mean, bound = _non_negative(mu, "mu"), _non_negative(epsilon, "epsilon")
    if mean == 0 or math.isinf(bound):
        return 0.0
    if math.isinf(mean):
        return 1.0
    first = float(log_ndtr(mean / 2 - bound / mean))
    if math.isinf(first):
        return math.ulp(0.0)
    second = bound + float(log_ndtr(-mean / 2 - bound / mean))
    rounding = 4 * _ROUNDING * (1 + bound - first)
    return _probability_up(math.exp(first) * (rounding - math.expm1(min(second - first, 0.0))))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon at which N(0, 1) and N(mu, 1) have hockey-stick divergence at most delta.

    Guarantee
        As :meth:`NoiseLaw.approximate`: approached from above within a relative 1e-13.

    Examples
    --------
    >>> round(gaussian_epsilon(mu=1, delta=1e-6), 6)
    4.886554
    """
    return Gaussian(1).approximate(delta, _finite(_non_negative(mu, "mu"), "mu"))


def _least_epsilon(delta_of: Callable[[float], float], delta: float, upper: float) -> float:
    """The least epsilon with delta_of(epsilon) <= delta, from above, for a falling delta_of."""
    if delta_of(0.0) <= delta:
        return 0.0
    low, high = 0.0, upper
    while delta_of(high) > delta:
        low, high = high, 2 * high
    for _ in range(200):
        if high - low <= _STOP * high:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if delta_of(middle) > delta else (low, middle)
    return high


def _unimodal_maximum(value: Callable[[float], float], low: float, high: float) -> float:
    """The largest value of a function that rises, then falls, by golden sections of ln x.

    Near the maximum an error of 1e-9 in ln x moves the value by less than the margin of evaluation.
    """
    golden = (math.sqrt(5) - 1) / 2
    left, right = math.log(low), math.log(high)
    while right - left > 1e-9:
        first, second = right - golden * (right - left), left + golden * (right - left)
        if value(math.exp(first)) < value(math.exp(second)):
            left = first
        else:
            right = second
    return value(math.exp((left + right) / 2))


def _exponential_renyi(order: float, loss: float, fall: float, excess: float) -> float:
    """Renyi divergence of a two-sided exponential law with D_Mult = loss.

    The moment is (1 - fall) e^((order-1) loss) + fall e^(-order loss). For a small loss its
    distance to one is written as a sum of non-negative terms, the last of which is
    excess = ((1 - fall) (order-1) - fall order) loss.
    """
    beta = order - 1
    if order * loss <= 1:
        up = (1 - fall) * _exponential_remainder(beta * loss)
        down = fall * _exponential_remainder(-order * loss)
        return _up(math.log1p(up + down + excess) / beta)
    tail = math.log1p(fall / (1 - fall) * math.exp(-(order + beta) * loss))
    return min(loss, _up(loss + (math.log1p(-fall) + tail) / beta))


def _lattice_excess(order: float, loss: float, rate: float) -> float:
    """loss (beta sinh(order r) - order sinh(beta r)) / (2 cosh(r/2) sinh((order - 1/2) r)).

    Here r is the rate 1/scale and beta = order - 1; the series keeps the difference positive.
    """
    beta, shrink = order - 1, math.log1p(-1 / order)
    series = _sinhc_series(order * rate, [-math.expm1(2 * j * shrink) for j in _EXPONENTS])
    spread = 2 * math.cosh(rate / 2) * math.sinh((order - 0.5) * rate)
    return loss * order * beta * rate * series / spread


def _exponential_hellinger(loss: float, gap: float) -> float:
    """Hellinger distance with affinity (1 + loss/2 - gap) e^(-loss/2)."""
    half = loss / 2
    if half <= 1:
        return _up(math.sqrt(math.exp(-half) * (_exponential_remainder(half) + gap)), cap=1.0)
    return _hellinger_from_log_affinity(math.log1p(half - gap) - half)


def _hellinger_from_log_affinity(log_affinity: float) -> float:
    return _up(math.sqrt(-math.expm1(log_affinity)), cap=1.0)


def _exponential_remainder(x: float) -> float:
    """e^x - 1 - x without cancellation; non-negative."""
    if abs(x) > 1:
        return math.expm1(x) - x
    total = 1.0
    for k in range(22, 2, -1):
        total = 1 + x / k * total
    return x * x / 2 * total


def _one_minus_inverse_sinhc(x: float) -> float:
    """1 - x / sinh(x) without cancellation or overflow."""
    if x > 1:
        return 1 + 2 * x * math.exp(-x) / math.expm1(-2 * x)
    above_one = _sinhc_series(x, [1.0] * len(_EXPONENTS))
    return above_one / (1 + above_one)


def _minus_tanh(x: float) -> float:
    """x - tanh(x) without cancellation."""
    if x > 1:
        return x - math.tanh(x)
    return x * _sinhc_series(x, [2.0 * j for j in _EXPONENTS]) / math.cosh(x)


def _sinhc_series(x: float, weights: Sequence[float]) -> float:
    """Sum of weights_j x^(2j) / (2j+1)! from j = 1; twelve terms reach 1e-25 for x <= 1."""
    terms = zip(_EXPONENTS, weights, strict=True)
    return math.fsum(w * x ** (2 * j) / math.factorial(2 * j + 1) for j, w in terms)


def _log_theta_ratio(center: Fraction, variance: float) -> float:
    """ln(Z(center) / Z(0)), where Z(c) is the sum of e^(-(k-c)^2 / (2 variance)) over integers k.

    Above variance 1/4 by Poisson summation, in which nothing cancels; below, by the nearest atoms.
    The terms left out of either sum are below 1e-100 of it.
    """
    part = float(center - round(center))
    if part == 0:
        return 0.0
    if variance < 0.25:
        return _log_nearest_atoms(part, variance) - _log_nearest_atoms(0.0, variance)
    waves = [math.exp(-2 * variance * (math.pi * j) ** 2) for j in _EXPONENTS]
    lost = [w * math.sin(math.pi * j * part) ** 2 for j, w in enumerate(waves, start=1)]
    return math.log1p(-4 * sum(lost) / (1 + 2 * sum(waves)))


def _log_theta(variance: float) -> float:
    """ln Z(0), the logarithm of the normalising constant of the discrete Gaussian."""
    if variance < 0.25:
        return _log_nearest_atoms(0.0, variance)
    waves = sum(math.exp(-2 * variance * (math.pi * j) ** 2) for j in _EXPONENTS)
    return math.log(2 * math.pi * variance) / 2 + math.log1p(2 * waves)


def _log_nearest_atoms(center: float, variance: float) -> float:
    """ln Z(center) for |center| <= 1/2 and a variance below 1/4."""
    nearest = center * center
    others = (((k - center) ** 2 - nearest) / (2 * variance) for k in range(-12, 13) if k)
    return math.log1p(math.fsum(math.exp(-gap) for gap in others)) - nearest / (2 * variance)


def _reach(variance: float) -> int:
    """Twelve sigma and twelve atoms: P(|K| > reach) <= 2 e^-72 < 2e-31, as K is sub-Gaussian."""
    return math.ceil(12 * math.sqrt(variance)) + 12


def _window(low: int, high: int) -> NDArray[np.float64]:
    import numpy as np

    if high - low > _MOST_ATOMS:
        raise NotComputable(
            "the discrete Gaussian is too wide to be summed atom by atom",
            field="sigma_squared",
            expected=f"a window of at most {_MOST_ATOMS} integers",
            hint="Use D_NoR or the Renyi divergence, which have closed forms at any width.",
        )
    return np.arange(high - low + 1, dtype=np.float64) + low


def _masses(k: NDArray[np.float64], variance: float) -> NDArray[np.float64]:
    import numpy as np

    masses: NDArray[np.float64] = np.exp(-k * k / (2 * variance) - _log_theta(variance))
    return masses


def _up(value: float, cap: float = math.inf) -> float:
    return min(cap, value * (1 + _MARGIN))


def _down(value: float) -> float:
    """Lower a type-II error, to zero where floats lose their precision."""
    return value * (1 - _MARGIN) if value > 1e-300 else 0.0


def _probability_up(value: float) -> float:
    """Raise a probability, also off zero, which it may have reached by underflow."""
    return min(1.0, math.nextafter(_up(value), math.inf))


def _round_up(value: Fraction) -> float:
    """The least float that is not below a rational."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return near if near >= value else math.nextafter(near, math.inf)


def _round_down(value: Fraction) -> float:
    """The largest float that is not above a rational."""
    return -_round_up(-value) + 0.0


def _root_up(value: float) -> float:
    """The square root, not rounded downward."""
    root = math.sqrt(value)
    if math.isinf(root) or Fraction(root) ** 2 >= Fraction(value):
        return root
    return math.nextafter(root, math.inf)


def _finite(value: Real, field: str) -> Fraction:
    try:
        return as_fraction(value)
    except InputError:
        raise _bad(field, "a finite number") from None


def _positive(value: Real, field: str) -> Fraction:
    number = _finite(value, field)
    if number <= 0:
        raise _bad(field, "a finite number above zero")
    return number


def _probability(value: Real, field: str) -> Fraction:
    number = _finite(value, field)
    if not 0 <= number <= 1:
        raise _bad(field, "a number from 0 to 1")
    return number


def _steps(shift: Real) -> int:
    number = abs(_finite(shift, "shift"))
    if number.denominator != 1:
        raise _bad("shift", "an integer, as the noise lives on the integers")
    return number.numerator


def _non_negative(value: float, field: str) -> float:
    if math.isnan(value) or value < 0:
        raise _bad(field, "a number of at least zero, or infinity")
    return float(value)


def _order(alpha: float) -> float:
    if math.isnan(alpha) or alpha < 1:
        raise _bad("alpha", "an order of at least 1, or infinity")
    return float(alpha)


def _bad(field: str, expected: str) -> InputError:
    return InputError(
        f"{field} is out of range",
        field=field,
        expected=expected,
        hint="Check the parameters of the noise law and the sensitivity of the query.",
    )
