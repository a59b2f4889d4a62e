"""Masses, distribution functions and variances of the discrete laws, enclosed between two rationals.

Guarantee
    The true value lies between ``low`` and ``high``, which differ by at most 2^-bits of it.
Reference
    Poisson summation for theta series: sum exp(-t n^2) = sqrt(pi/t) sum exp(-pi^2 n^2 / t), so that the
    variance of the discrete Gaussian is  s - 8 pi^2 s^2 sum n^2 q^(n^2) / (1 + 2 sum q^(n^2)),  q = exp(-2
    pi^2 s), n >= 1: below s. Tails of wide laws: Euler and Maclaurin to order 2p, with a remainder of at most
    4 sqrt((2p)!) / (2 pi sigma)^(2p) of the whole sum, since |B_2p|/(2p)! <= 4/(2 pi)^(2p) and, by Cauchy and
    Schwarz, the mean of |He_2p| under the normal law is at most sqrt((2p)!).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from stirred.balls import ball, ends
from stirred.errors import NotComputable
from stirred.noise.law import LARGEST_SPREAD, Law, partial_sums, positive

_LARGEST_SUM = 1 << 12
_LARGEST_EXPONENT = 1 << 14
_LONGEST = 1 << 20


class Enclosure(NamedTuple):
    """Two rationals with the true value between them.

    Examples
    --------
    >>> round(float(gaussian_variance(Fraction(1, 4))), 6)
    0.215013
    """

    low: Fraction
    high: Fraction

    def __float__(self) -> float:
        return float((self.low + self.high) / 2)


def gaussian_mass(variance: Fraction, k: int, bits: int = 64) -> Enclosure:
    """P(X = k) for the discrete Gaussian."""
    s = positive(variance, "variance", LARGEST_SPREAD**2)
    return _enclosed(lambda p: (-ball(k * k / (2 * s))).exp() / _whole(s, p), bits)


def gaussian_cdf(variance: Fraction, k: int, bits: int = 64) -> Enclosure:
    """P(X <= k) for the discrete Gaussian. Upper tails are lower tails: P(X >= k) = P(X <= -k)."""
    s = positive(variance, "variance", LARGEST_SPREAD**2)

    def value(precision: int) -> Any:
        whole = _whole(s, precision)
        return 1 - _tail(s, k + 1, whole, precision) if k >= 0 else _tail(s, -k, whole, precision)

    return _enclosed(value, bits)


def gaussian_variance(variance: Fraction, bits: int = 64) -> Enclosure:
    """The variance of the discrete Gaussian, which is below its variance parameter."""
    s = positive(variance, "variance", LARGEST_SPREAD**2)

    def value(precision: int) -> Any:
        from flint import arb

        if s < 1:
            t = ball(1 / (2 * s))
            return _theta(t, 2, precision) / _theta(t, 0, precision)
        t = 2 * arb.pi() ** 2 * ball(s)
        return ball(s) - 4 * arb.pi() ** 2 * ball(s * s) * _theta(t, 2, precision) / _theta(t, 0, precision)

    return _enclosed(value, bits)


def laplace_mass(scale: Fraction, k: int, bits: int = 64) -> Enclosure:
    """P(X = k) = (1 - q) q^|k| / (1 + q) with q = exp(-1/scale), for the discrete Laplace."""
    b = positive(scale, "scale", LARGEST_SPREAD)
    return _enclosed(
        lambda _: -(-ball(1 / b)).expm1() * (-ball(abs(k) / b)).exp() / (1 + (-ball(1 / b)).exp()), bits
    )


def laplace_cdf(scale: Fraction, k: int, bits: int = 64) -> Enclosure:
    """P(X <= k) = q^-k / (1 + q) for k <= 0, and the complement of P(X >= k + 1) above."""
    b = positive(scale, "scale", LARGEST_SPREAD)

    def value(_: int) -> Any:
        tail = (-ball((k + 1 if k >= 0 else -k) / b)).exp() / (1 + (-ball(1 / b)).exp())
        return 1 - tail if k >= 0 else tail

    return _enclosed(value, bits)


def laplace_variance(scale: Fraction, bits: int = 64) -> Enclosure:
    """The variance of the discrete Laplace: 2q / (1 - q)^2 with q = exp(-1/scale)."""
    b = positive(scale, "scale", LARGEST_SPREAD)
    return _enclosed(lambda _: 2 * (-ball(1 / b)).exp() / (-ball(1 / b)).expm1() ** 2, bits)


def _enclosed(value: Callable[[int], Any], bits: int) -> Enclosure:
    low, high = ends(value, bits)
    return Enclosure(_fraction(low), _fraction(high))


def _fraction(exact: Any) -> Fraction:
    mantissa, exponent = exact.man_exp()
    if exponent < -_LONGEST:
        raise NotComputable(
            "the value is too small to write down",
            field="value",
            expected=f"a value of at least 2^-{_LONGEST}",
            hint="Bound it by zero and by that.",
        )
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def _whole(s: Fraction, precision: int) -> Any:
    """The sum of exp(-k^2 / (2s)) over all integers: as it stands if s < 1, else by Poisson summation."""
    from flint import arb

    if s < 1:
        return _theta(ball(1 / (2 * s)), 0, precision)
    return (2 * arb.pi() * ball(s)).sqrt() * _theta(2 * arb.pi() ** 2 * ball(s), 0, precision)


def _theta(t: Any, power: int, precision: int) -> Any:
    """The sum of n^power exp(-t n^2) over all integers, for t of at least a half.

    The sum stops where a term is small against the largest one, and the ratios of the terms fall from there.
    """
    from flint import arb

    first = (-t).exp()
    total = arb(1 if power == 0 else 0)
    n = 1
    while True:
        term = 2 * arb(n) ** power * (-t * n * n).exp()
        ratio = (arb(n + 1) / n) ** power * (-t * (2 * n + 1)).exp()
        if n > 1 and term < first / (1 << precision):
            return total + arb(0).union(term / (1 - ratio))
        total += term
        n += 1


def _tail(s: Fraction, start: int, whole: Any, precision: int) -> Any:
    """P(X >= start) for start >= 1: term by term if the terms fall quickly, else by Euler and Maclaurin."""
    first = (-ball(start * start / (2 * s))).exp()
    if s * precision <= _LARGEST_SUM * start or 2 * s * precision <= _LARGEST_SUM**2:
        falling = Law(start / s, 1 / (2 * s), Fraction(1))
        return first * partial_sums(falling, precision)[1] / whole
    if start * start > 2 * s * _LARGEST_EXPONENT:
        raise NotComputable(
            "this far out the tail of a wide law has no enclosure here",
            field="k",
            expected=f"a point where the weight is at least exp(-{_LARGEST_EXPONENT})",
            hint="The probability is below any that matters: bound it by zero and by that weight.",
        )
    return _euler_maclaurin(s, start, first, whole, precision) / whole


def _euler_maclaurin(s: Fraction, start: int, first: Any, whole: Any, precision: int) -> Any:
    """The sum of f(k) = exp(-k^2 / (2s)) over k >= start, where f(start) = ``first``.

    The derivatives follow from f' = -(x/s) f, differentiated n times.
    """
    from flint import arb, fmpq

    sigma, x = ball(s).sqrt(), ball(start / s)
    total = (arb.pi() / 2).sqrt() * sigma * (arb(start) / (arb(2).sqrt() * sigma)).erfc() + first / 2
    before, derivative = first, -x * first
    factorial, p = arb(2), 1
    while True:
        total -= arb(fmpq.bernoulli(2 * p)) / factorial * derivative
        remainder = 4 * whole * factorial.sqrt() / (2 * arb.pi() * sigma) ** (2 * p)
        if remainder < first / (1 << precision):
            return total + (-remainder).union(remainder)
        for n in (2 * p - 1, 2 * p):
            before, derivative = derivative, -x * derivative - ball(n / s) * before
        factorial *= (2 * p + 1) * (2 * p + 2)
        p += 1
