"""Randomised response with two or more categories."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from stirred.spec.arithmetic.exact import Exact, as_fraction
from stirred.spec.calculus.closed_form.arguments import (
    Real,
    bad_argument,
    checked_non_negative,
    checked_order,
    checked_probability,
)
from stirred.spec.calculus.closed_form.rounding import (
    ROUNDING,
    float_not_above,
    float_not_below,
    raised,
    raised_root,
)


@dataclass(frozen=True)
class RandomisedResponse:
    """Randomised response: the true category with one probability, each other one with another.

    The divergences are those between the answers of two respondents in different categories; they
    are the same for every such pair. ``high`` and ``low`` are the larger and the smaller of the
    probabilities of the true and of one other category.

    There are k = ``categories``; two is Warner's design.

    Examples
    --------
    >>> round(RandomisedResponse(0.75).multiplicative(), 6)
    1.098612
    """

    truth_probability: Real
    categories: int = 2

    def __post_init__(self) -> None:
        checked_probability(self.truth_probability, "truth_probability")
        if type(self.categories) is not int or self.categories < 2:
            raise bad_argument("categories", "an integer of at least two")

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
        bound = checked_non_negative(epsilon, "epsilon")
        if self.low == 0:
            return float_not_below(self.high)
        if bound >= self.multiplicative():
            return 0.0
        excess = float_not_below(self.high) - float(self.low) * math.exp(bound)
        return min(self.total_variation(), max(0.0, excess + ROUNDING))

    def approximate(self, delta: Real) -> float:
        """D_Mult^delta = max(0, ln((high - delta) / low)), rounded upward."""
        left = self.high - checked_probability(delta, "delta")
        if left <= self.low:
            return 0.0
        return Exact.log(left / self.low).float_up() if self.low else math.inf

    def renyi(self, alpha: float) -> float:
        """Renyi divergence of order alpha >= 1.

        With r = high/low the moment is 1 + low (r^alpha - 1) (1 - r^(1 - alpha)), in which nothing
        cancels.
        """
        order, loss = checked_order(alpha), self.multiplicative()
        if loss in {0.0, math.inf} or math.isinf(order):
            return loss
        if order == 1:
            return self.kullback_leibler()
        up = order * loss + math.log(-math.expm1(-order * loss))
        growth = math.log(self.low) + up + math.log(-math.expm1((1 - order) * loss))
        moment = growth if growth > 40 else math.log1p(math.exp(growth))
        return min(loss, raised(moment / (order - 1)))

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
            return raised_root(at_one)
        inside = _unimodal_maximum(
            lambda order: self.renyi(order) / order, 1.0, float(1 / (self.high - self.low))
        )
        return min(raised_root(max(at_one, inside)), raised(loss / math.sqrt(2)))

    def kullback_leibler(self) -> float:
        """(high - low) ln(high / low)."""
        return raised(float(self.high - self.low) * self.multiplicative())

    def total_variation(self) -> float:
        """The difference high - low, rounded upward."""
        return float_not_below(self.high - self.low)

    def hellinger(self) -> float:
        """H = sqrt(high) - sqrt(low), in the convention H^2 = 1 - sum of sqrt(p q)."""
        roots = math.sqrt(self.high) + math.sqrt(self.low)
        return raised(float(self.high - self.low) / roots, cap=1.0)

    def chi_squared(self) -> float:
        """(high - low)^2 (1/high + 1/low), rounded upward."""
        if self.low == 0:
            return math.inf
        return float_not_below((self.high - self.low) ** 2 * (1 / self.high + 1 / self.low))

    def density_ratio(self) -> float:
        """d_DR = 2 ln(high / low)."""
        return 2 * self.multiplicative()

    def tradeoff(self, alpha: Real) -> float:
        """Least type-II error at level alpha: the largest of three lines, rounded downward."""
        level = checked_probability(alpha, "alpha")
        lines = [Fraction(0), 1 - (self.high - self.low) - level]
        if self.low:
            lines += [1 - self.high / self.low * level, self.low / self.high * (1 - level)]
        return float_not_above(max(lines))


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
