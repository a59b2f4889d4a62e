"""Laplace and discrete Laplace (geometric) noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from stirred.spec.arithmetic.exact import as_fraction
from stirred.spec.calculus.closed_form.arguments import (
    Real,
    checked_finite,
    checked_positive,
    checked_probability,
    checked_steps,
)
from stirred.spec.calculus.closed_form.noise_law import NoiseLaw, hellinger_from_log_affinity
from stirred.spec.calculus.closed_form.rounding import (
    EXPONENTS,
    MARGIN,
    ROUNDING,
    float_not_above,
    float_not_below,
    lowered,
    raised,
)


@dataclass(frozen=True)
class Laplace(NoiseLaw):
    """Laplace noise with density e^(-|x|/scale) / (2 scale); its standard deviation is scale sqrt(2).

    Examples
    --------
    >>> Laplace(scale=0.5).multiplicative(shift=1)
    2.0
    """

    scale: Real

    def __post_init__(self) -> None:
        checked_positive(self.scale, "scale")

    def _loss(self, shift: Real) -> Fraction:
        return abs(checked_finite(shift, "shift")) / as_fraction(self.scale)

    def multiplicative(self, shift: Real) -> float:
        """D_Mult = shift / scale (Dwork, McSherry, Nissim and Smith 2006), rounded upward."""
        return float_not_below(self._loss(shift))

    def kullback_leibler(self, shift: Real) -> float:
        """a + e^-a - 1 with a = shift / scale."""
        return raised(_exponential_remainder(-self.multiplicative(shift)))

    def hellinger(self, shift: Real) -> float:
        """H^2 = 1 - (1 + a/2) e^(-a/2) with a = shift / scale."""
        return _exponential_hellinger(self.multiplicative(shift), 0.0)

    def approximate(self, delta: Real, shift: Real) -> float:
        """D_Mult^delta = max(0, a + 2 ln(1 - delta)) with a = shift / scale."""
        budget = float_not_above(checked_probability(delta, "delta"))
        loss = self.multiplicative(shift)
        if budget in {0.0, 1.0}:
            return loss * (1 - budget)
        saved = -2 * math.log1p(-budget)
        return min(loss, max(0.0, raised(loss * (1 + ROUNDING) - saved)))

    def _delta(self, epsilon: float, shift: Real) -> float:
        short = self._loss(shift) - as_fraction(epsilon)
        return raised(-math.expm1(-float_not_below(short) / 2), cap=1.0) if short > 0 else 0.0

    def _renyi(self, order: float, shift: Real) -> float:
        return _exponential_renyi(order, self.multiplicative(shift), (order - 1) / (2 * order - 1), 0.0)

    def _tradeoff(self, level: float, shift: Real) -> float:
        loss = self.multiplicative(shift)
        if level > 0.5:
            return lowered(math.exp(-loss) * (1 - level))
        if math.log(2 * level) < -loss:
            return lowered(1 - math.exp(loss + math.log(level)))
        return lowered(math.exp(-loss) / level / 4)


@dataclass(frozen=True)
class DiscreteLaplace(NoiseLaw):
    """Two-sided geometric noise on the integers, P(k) proportional to e^(-|k|/scale).

    At equal scale it protects no more than Laplace noise, under any premetric: its trade-off
    function is a maximum over integers of what for Laplace noise is a maximum over reals. So the
    formulas of Laplace noise would understate its loss, except for D_Mult. At shift one it is
    binary randomised response with epsilon = 1/scale.

    Assumes
        An integer shift; any other would move the law to disjoint support.

    Examples
    --------
    >>> DiscreteLaplace(scale=2).multiplicative(shift=3)
    1.5
    """

    scale: Real

    def __post_init__(self) -> None:
        checked_positive(self.scale, "scale")

    def _rate(self) -> float:
        return float(1 / as_fraction(self.scale))

    def multiplicative(self, shift: Real) -> float:
        """D_Mult = shift / scale (Ghosh, Roughgarden and Sundararajan 2009), rounded upward."""
        return float_not_below(checked_steps(shift) / as_fraction(self.scale))

    def kullback_leibler(self, shift: Real) -> float:
        """a - s (1 - e^-a) with a = shift / scale and s = (1/scale) / sinh(1/scale)."""
        loss = self.multiplicative(shift)
        granularity = _one_minus_inverse_sinhc(self._rate())
        return raised(_exponential_remainder(-loss) - granularity * math.expm1(-loss))

    def hellinger(self, shift: Real) -> float:
        """H^2 = 1 - (1 + shift tanh(1/(2 scale))) e^(-a/2) with a = shift / scale."""
        gap = checked_steps(shift) * _minus_tanh(self._rate() / 2)
        return _exponential_hellinger(self.multiplicative(shift), gap)

    def _delta(self, epsilon: float, shift: Real) -> float:
        """P(k <= m) - e^epsilon Q(k <= m), where m is the last k whose loss exceeds epsilon.

        The three terms may cancel, so the bound on their rounding is added before the last scaling.
        """
        steps, scale, bound = checked_steps(shift), as_fraction(self.scale), as_fraction(epsilon)
        if bound * scale >= steps:
            return 0.0
        last = math.ceil((steps - bound * scale) / 2) - 1
        terms = (
            -math.expm1(-float((last + 1) / scale)),
            math.expm1(-self._rate()),
            -math.expm1(float(bound - (steps - last) / scale)),
        )
        rounding = ROUNDING * sum(map(abs, terms))
        return raised((sum(terms) + rounding) / (1 + math.exp(-self._rate())), cap=1.0)

    def _renyi(self, order: float, shift: Real) -> float:
        loss, rate = self.multiplicative(shift), self._rate()
        spread = -(1 + math.exp(-rate)) * math.expm1(-(2 * order - 1) * rate)
        fall = -math.exp(-rate) * math.expm1(-2 * (order - 1) * rate) / spread
        excess = _lattice_excess(order, loss, rate) if order * loss <= 1 else 0.0
        return _exponential_renyi(order, loss, fall, excess)

    def _tradeoff(self, level: float, shift: Real) -> float:
        """The largest of the lines e^(-(n-j)/scale) - level e^((2j-n)/scale) over j = 0, ..., n."""
        steps, rate = checked_steps(shift), self._rate()
        best = math.floor(-(math.log(level) + math.log1p(math.exp(-rate))) / rate)
        line = min(max(best, 0), steps)
        fall = math.exp((2 * line - steps) * rate + math.log(level))
        return lowered(math.exp(-(steps - line) * rate) - fall * (1 + MARGIN))


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
        return raised(math.log1p(up + down + excess) / beta)
    tail = math.log1p(fall / (1 - fall) * math.exp(-(order + beta) * loss))
    return min(loss, raised(loss + (math.log1p(-fall) + tail) / beta))


def _lattice_excess(order: float, loss: float, rate: float) -> float:
    """loss (beta sinh(order r) - order sinh(beta r)) / (2 cosh(r/2) sinh((order - 1/2) r)).

    Here r is the rate 1/scale and beta = order - 1; the series keeps the difference positive.
    """
    beta, shrink = order - 1, math.log1p(-1 / order)
    series = _sinhc_series(order * rate, [-math.expm1(2 * j * shrink) for j in EXPONENTS])
    spread = 2 * math.cosh(rate / 2) * math.sinh((order - 0.5) * rate)
    return loss * order * beta * rate * series / spread


def _exponential_hellinger(loss: float, gap: float) -> float:
    """Hellinger distance with affinity (1 + loss/2 - gap) e^(-loss/2)."""
    half = loss / 2
    if half <= 1:
        return raised(math.sqrt(math.exp(-half) * (_exponential_remainder(half) + gap)), cap=1.0)
    return hellinger_from_log_affinity(math.log1p(half - gap) - half)


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
    above_one = _sinhc_series(x, [1.0] * len(EXPONENTS))
    return above_one / (1 + above_one)


def _minus_tanh(x: float) -> float:
    """x - tanh(x) without cancellation."""
    if x > 1:
        return x - math.tanh(x)
    return x * _sinhc_series(x, [2.0 * j for j in EXPONENTS]) / math.cosh(x)


def _sinhc_series(x: float, weights: Sequence[float]) -> float:
    """Sum of weights_j x^(2j) / (2j+1)! from j = 1; twelve terms reach 1e-25 for x <= 1."""
    terms = zip(EXPONENTS, weights, strict=True)
    return math.fsum(w * x ** (2 * j) / math.factorial(2 * j + 1) for j, w in terms)
