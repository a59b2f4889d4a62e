"""What every noise law answers: its loss under each output premetric at a given shift."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

from stirred.spec.calculus.closed_form.arguments import (
    Real,
    checked_non_negative,
    checked_order,
    checked_probability,
)
from stirred.spec.calculus.closed_form.rounding import float_not_above, float_not_below, raised, raised_root

_STOP = 1e-13


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
        bound = checked_non_negative(epsilon, "epsilon")
        return 0.0 if math.isinf(bound) else self._delta(bound, shift)

    def approximate(self, delta: Real, shift: Real) -> float:
        """D_Mult^delta: the least epsilon >= 0 whose hockey-stick divergence is at most delta.

        Guarantee
            The answer is an epsilon at which ``delta``, itself rounded upward, is at most
            ``delta``; bisection stops within a relative 1e-13 above the least one.
        Reference
            The search starts from rho + 2 sqrt(rho ln(1/delta)) with rho = D_NoR^2 (Bun and Steinke
            2016, Proposition 1.3).
        """
        budget = float_not_above(checked_probability(delta, "delta"))
        if budget == 0:
            return self.multiplicative(shift)
        rho = self.kullback_leibler(shift)
        upper = min(rho + 2 * math.sqrt(-rho * math.log(budget)), self.multiplicative(shift))
        return _least_epsilon(lambda epsilon: self.delta(epsilon, shift), budget, upper)

    def renyi(self, alpha: float, shift: Real) -> float:
        """Renyi divergence of order alpha >= 1; order 1 is Kullback-Leibler, infinity is D_Mult."""
        order = checked_order(alpha)
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
        return raised_root(self.kullback_leibler(shift))

    def total_variation(self, shift: Real) -> float:
        """Total variation distance: the hockey-stick divergence at epsilon = 0."""
        return self.delta(0, shift)

    def chi_squared(self, shift: Real) -> float:
        """Chi-squared divergence: e^(D_2) - 1."""
        divergence = self.renyi(2, shift)
        return math.inf if divergence > 700 else raised(math.expm1(divergence))

    def density_ratio(self, shift: Real) -> float:
        """d_DR = ln sup p/q - ln inf p/q: twice D_Mult, by symmetry."""
        return 2 * self.multiplicative(shift)

    def tradeoff(self, alpha: Real, shift: Real) -> float:
        """Trade-off function: the least type-II error at level alpha, rounded downward."""
        level = float_not_below(checked_probability(alpha, "alpha"))
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


def hellinger_from_log_affinity(log_affinity: float) -> float:
    """Hellinger distance from the logarithm of the sum of root products."""
    return raised(math.sqrt(-math.expm1(log_affinity)), cap=1.0)
