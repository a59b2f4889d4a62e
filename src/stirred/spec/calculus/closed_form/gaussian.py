"""Gaussian and discrete Gaussian noise, and the Gaussian trade-off in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stirred.balls import ball, ends, float_above, float_below
from stirred.errors import NotComputable
from stirred.spec.arithmetic.exact import as_fraction
from stirred.spec.arithmetic.normal import normal_cdf, upper_quantile_below
from stirred.spec.calculus.closed_form.arguments import (
    Real,
    checked_finite,
    checked_non_negative,
    checked_positive,
    checked_steps,
)
from stirred.spec.calculus.closed_form.noise_law import NoiseLaw, hellinger_from_log_affinity
from stirred.spec.calculus.closed_form.rounding import (
    EXPONENTS,
    ROUNDING,
    float_not_below,
    lowered,
    raised,
    raised_probability,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_ATOMS = 10_000_000
_BITS = 64
_MOST_BITS = 1 << 13


@dataclass(frozen=True)
class Gaussian(NoiseLaw):
    """Gaussian noise of standard deviation ``sigma``.

    Examples
    --------
    >>> round(Gaussian(sigma=1).approximate(delta=1e-6, shift=1), 6)
    4.886554
    """

    sigma: Real

    def __post_init__(self) -> None:
        checked_positive(self.sigma, "sigma")

    def _mu(self, shift: Real) -> Fraction:
        return abs(checked_finite(shift, "shift")) / as_fraction(self.sigma)

    def multiplicative(self, shift: Real) -> float:
        """D_Mult is infinite for every shift but zero."""
        return math.inf if self._mu(shift) else 0.0

    def kullback_leibler(self, shift: Real) -> float:
        """mu^2 / 2 with mu = shift / sigma, rounded upward."""
        return float_not_below(self._mu(shift) ** 2 / 2)

    def hellinger(self, shift: Real) -> float:
        """H^2 = 1 - e^(-mu^2 / 8) with mu = shift / sigma."""
        return hellinger_from_log_affinity(-float_not_below(self._mu(shift) ** 2 / 8))

    def total_variation(self, shift: Real) -> float:
        """2 Phi(mu/2) - 1 with mu = shift / sigma."""
        return raised(math.erf(float_not_below(self._mu(shift)) / math.sqrt(8)), cap=1.0)

    def _delta(self, epsilon: float, shift: Real) -> float:
        return gaussian_delta(float_not_below(self._mu(shift)), epsilon)

    def _renyi(self, order: float, shift: Real) -> float:
        return float_not_below(as_fraction(order) * self._mu(shift) ** 2 / 2)

    def _tradeoff(self, level: float, shift: Real) -> float:
        """Phi(Phi^-1(1 - level) - mu) (Dong, Roth and Su 2022)."""
        if level == 1:
            return 0.0
        mu, quantile = self._mu(shift), Fraction(upper_quantile_below(level))
        return max(0.0, float_below(ends(lambda _: normal_cdf(quantile - mu), _BITS, _MOST_BITS)[0]))


@dataclass(frozen=True)
class DiscreteGaussian(NoiseLaw):
    """Discrete Gaussian noise on the integers, P(k) proportional to e^(-k^2 / (2 sigma_squared)).

    The variance is slightly smaller than ``sigma_squared``.

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
        checked_positive(self.sigma_squared, "sigma_squared")

    def _mu_squared(self, shift: Real) -> Fraction:
        return checked_steps(shift) ** 2 / as_fraction(self.sigma_squared)

    def multiplicative(self, shift: Real) -> float:
        """D_Mult is infinite for every shift but zero."""
        return math.inf if checked_steps(shift) else 0.0

    def kullback_leibler(self, shift: Real) -> float:
        """shift^2 / (2 sigma^2) exactly, rounded upward: Z has slope zero at the integers."""
        return float_not_below(self._mu_squared(shift) / 2)

    def hellinger(self, shift: Real) -> float:
        """H^2 = 1 - e^(-shift^2 / (8 sigma^2)) Z(shift/2) / Z(0)."""
        ratio = _log_theta_ratio(Fraction(checked_steps(shift), 2), float(self.sigma_squared))
        return hellinger_from_log_affinity(ratio - float_not_below(self._mu_squared(shift) / 8))

    def _delta(self, epsilon: float, shift: Real) -> float:
        """Sum of P(k) (1 - e^(epsilon - L_k)) over the k whose loss L_k exceeds epsilon.

        Every term is non-negative. The window reaches 12 sigma + 12 below zero and the first term,
        which leaves out a mass below 2e-31 and less than 1e-18 of the sum.
        """
        import numpy as np

        steps, variance = checked_steps(shift), float(self.sigma_squared)
        if steps == 0:
            return 0.0
        drop = as_fraction(epsilon) * as_fraction(self.sigma_squared) / steps
        top, reach = math.floor(Fraction(steps, 2) - drop) + 1, _reach(variance)
        if top < -4 * reach:
            return math.ulp(0.0)
        k = _window(min(top, 0) - reach, min(top, reach))
        loss = steps * (steps - 2 * k) / (2 * variance)
        gain = np.maximum(loss - epsilon + ROUNDING * (np.abs(loss) + epsilon), 0.0)
        return raised_probability(float(np.sum(_masses(k, variance) * -np.expm1(-gain))))

    def _renyi(self, order: float, shift: Real) -> float:
        beta = as_fraction(order) - 1
        ratio = _log_theta_ratio(beta * checked_steps(shift), float(self.sigma_squared))
        bound = as_fraction(order) * self._mu_squared(shift) / 2
        slack = ROUNDING * (1 + abs(ratio))
        return min(float_not_below(bound), raised(float_not_below(bound) + (ratio + slack) / float(beta)))

    def _tradeoff(self, level: float, shift: Real) -> float:
        """Neyman-Pearson: reject above j always, at j with the probability that exhausts the level.

        Tails are accumulated from their far end, with a relative error below the window size times
        2^-52; any j gives a line below the trade-off function, so an error in j is safe. Beyond a
        shift of 96 sigma the value is below 1e-300 and zero is returned.
        """
        import numpy as np

        steps, variance = checked_steps(shift), float(self.sigma_squared)
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
        return lowered(float(below[j - steps - 1] * (1 - rounding) + mass[j - steps] * accepted))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Hockey-stick divergence of N(0, 1) and N(mu, 1), in log space.

    Guarantee
        Rounded upward from an enclosure of the true value, also where the two terms cancel.
    Reference
        Balle and Wang 2018, Theorem 8: Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

    Examples
    --------
    >>> round(gaussian_delta(mu=1, epsilon=1), 6)
    0.126937
    """
    mean, bound = checked_non_negative(mu, "mu"), checked_non_negative(epsilon, "epsilon")
    if mean == 0 or math.isinf(bound):
        return 0.0
    if math.isinf(mean):
        return 1.0
    half, shift = Fraction(mean) / 2, Fraction(bound) / Fraction(mean)

    def first(_: int) -> Any:
        return normal_cdf(half - shift)

    def value(precision: int) -> Any:
        return first(precision) - ball(Fraction(bound)).exp() * normal_cdf(-half - shift)

    high = float_above(ends(value, _BITS, _MOST_BITS)[1])
    return min(high, float_above(ends(first, _BITS, _MOST_BITS)[1]), 1.0)


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon at which N(0, 1) and N(mu, 1) have hockey-stick divergence at most delta.

    Guarantee
        As ``NoiseLaw.approximate``: approached from above within a relative 1e-13.

    Examples
    --------
    >>> round(gaussian_epsilon(mu=1, delta=1e-6), 6)
    4.886554
    """
    return Gaussian(1).approximate(delta, checked_finite(checked_non_negative(mu, "mu"), "mu"))


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
    waves = [math.exp(-2 * variance * (math.pi * j) ** 2) for j in EXPONENTS]
    lost = [w * math.sin(math.pi * j * part) ** 2 for j, w in enumerate(waves, start=1)]
    return math.log1p(-4 * sum(lost) / (1 + 2 * sum(waves)))


def _log_theta(variance: float) -> float:
    """ln Z(0), the logarithm of the normalising constant of the discrete Gaussian."""
    if variance < 0.25:
        return _log_nearest_atoms(0.0, variance)
    waves = sum(math.exp(-2 * variance * (math.pi * j) ** 2) for j in EXPONENTS)
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
