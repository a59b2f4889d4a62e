"""What pure DP implies in other flavors, at best and rounded up.

Two laws with D_Mult <= epsilon are images of randomised response with odds e^epsilon under one and the same
channel (Kairouz, Oh and Viswanath 2015), so the loss of randomised response bounds theirs in every output
premetric that post-processing cannot raise. Nothing here is below the true value: a result is a rational that
exceeds it by at most a relative 1e-25.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.calculus.closed_form.rounding import context, rational_above, rational_below, significant_up

_PRECISION = 110
_ERROR = Decimal("1e-60")
_STEP = Decimal("1e-32")
_FAR = 60
_DEPTH = 200
_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798214808651"
)


def rho_squared_of_pure(epsilon: Exact, least_distance: Exact | None) -> Exact:
    """The least rho squared that D_Mult <= epsilon d implies where distances d start at d0.

    Guarantee
        epsilon tanh(epsilon d0 / 2) / d0, and epsilon^2 / 2 where there is no least distance.
    Reference
        At D_Mult = t randomised response has, with s = (alpha - 1/2) t and F(v) = ln cosh sqrt(v),
        D_alpha / alpha = t^2 (F(s^2) - F(t^2/4)) / (s^2 - t^2/4), a slope of chords of a concave F. It falls
        in alpha from its limit t tanh(t/2) at 1, which is D_NoR squared. With t = epsilon d that is at most
        rho^2 d^2 for all d >= d0, as tanh(epsilon d / 2) / d falls in d. Its limit at d0 = 0 is Proposition
        1.4 of Bun and Steinke 2016.

    Examples
    --------
    >>> [rho_squared_of_pure(Exact.of(3), d0).rounded(6) for d0 in (None, Exact.of(1), Exact.of(2))]
    ['4.500000', '2.715445', '1.492582']
    """
    if epsilon.is_infinite or epsilon.is_zero:
        return epsilon
    loss = rational_above(epsilon)
    plain = (loss**2 if epsilon.square is None else epsilon.square) / 2
    if least_distance is None or least_distance.is_infinite:
        return Exact(plain)
    least = rational_below(least_distance)
    return Exact(min(plain, significant_up(loss * _tanh_up(loss * least / 2) / least)))


def mu_of_pure(epsilon: Exact) -> Exact:
    """The least mu whose Gaussian trade-off lies under that of randomised response with odds e^epsilon.

    Guarantee
        mu = -2 Phi^-1(1 / (1 + e^epsilon)). Found by Newton's method, then raised until an evaluation with a
        known error shows that it is not below.
    Reference
        Both curves run from (0, 1) to (1, 0) and are convex, and the one of randomised response has a single
        corner, at 1 / (1 + e^epsilon): the Gaussian curve is under it exactly if it is there (Dong, Roth and
        Su 2022). With mu = 2x this says  erf(x / sqrt 2) >= tanh(epsilon / 2).

    Examples
    --------
    >>> mu_of_pure(Exact.of(1)).rounded(6)
    '1.232035'
    """
    if epsilon.is_infinite:
        return INFINITY
    if epsilon.is_zero:
        return ZERO
    loss = rational_above(epsilon)
    with localcontext(context(_PRECISION)):
        root, holds = (_near if loss <= _FAR else _far)(loss)
        step = _STEP
        while not holds(root * (1 + step)):
            step *= 10
        return Exact(significant_up(Fraction(2 * root * (1 + step))))


def _tanh_up(value: Fraction) -> Fraction:
    """tanh of a positive rational, rounded up: 1 - tanh 40 is below 1e-34, and t - tanh t below t^3/3."""
    if value >= 40:
        return Fraction(1)
    if value <= Fraction(1, 10**15):
        return value
    with localcontext(context(_PRECISION)):
        return min(value, Fraction(_tanh(value) * (1 + _ERROR)))


def _tanh(value: Fraction) -> Decimal:
    """tanh of a rational; cancellation loses at most twice the digits that the value is below one."""
    shrunk = (-2 * _decimal(value)).exp()
    return (1 - shrunk) / (1 + shrunk)


def _near(loss: Fraction) -> tuple[Decimal, Callable[[Decimal], bool]]:
    """The root of erf(x / sqrt 2) = tanh(loss / 2) from below, and a test that is passed only above it.

    erf is concave, so Newton's steps from a point below the root stay below it.
    """
    goal, half_pi = _decimal(_tanh_up(loss / 2)), (_PI / 2).sqrt()
    x = goal * half_pi
    for _ in range(400):
        step = (goal - _erf(x)) * half_pi * (x * x / 2).exp()
        x += step
        if abs(step) <= x * _STEP:
            break
    return x, lambda at: _erf(at) * (1 - _ERROR) >= goal * (1 + _ERROR)


def _erf(x: Decimal) -> Decimal:
    """erf(x / sqrt 2) = sqrt(2/pi) e^(-x^2/2) (x + x^3/3 + x^5/(3 5) + ...): all terms are positive."""
    term, total, odd = x, x, 1
    while term > total * _ERROR * _ERROR.sqrt():
        odd += 2
        term = term * x * x / odd
        total += term
    return (2 / _PI).sqrt() * (-x * x / 2).exp() * total


def _far(loss: Fraction) -> tuple[Decimal, Callable[[Decimal], bool]]:
    """The root of -ln Phi(-x) = ln(1 + e^loss) from above, and a test that is passed only above it.

    -ln Phi(-x) is convex and at least x^2 / 2, so Newton's steps from sqrt(2 ln(1 + e^loss)) stay above.
    """
    exact = _decimal(loss)
    goal = exact + (1 + (-exact).exp()).ln()
    x = (2 * goal).sqrt()
    for _ in range(400):
        mills = _mills_up(x)
        step = (_minus_log_tail(x, mills) - goal) * mills
        x -= step
        if abs(step) <= x * _STEP:
            break
    return x, lambda at: _minus_log_tail(at, _mills_up(at)) * (1 - _ERROR) >= goal * (1 + _ERROR)


def _minus_log_tail(x: Decimal, mills: Decimal) -> Decimal:
    """-ln Phi(-x) from the ratio of Phi(-x) to the density."""
    return x * x / 2 + (2 * _PI).ln() / 2 - mills.ln()


def _mills_up(x: Decimal) -> Decimal:
    """Phi(-x) / phi(x), from above: 1/(x + 1/(x + 2/(x + 3/(x + ...)))), cut after an even number of them."""
    tail = x
    for k in range(_DEPTH, 0, -1):
        tail = x + k / tail
    return 1 / tail


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
