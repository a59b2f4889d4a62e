"""Discrete laws with weights exp(-phi(k)), phi a quadratic with rational coefficients, and their thresholds.

The law of |X| has  P(|X| = k) = w_k / Z  with  w_k = exp(-(linear k + quadratic k^2))  for k >= 1, and
``at_zero`` in place of w_0: a half for the magnitude of a symmetric law, since zero has no sign.

Guarantee
    ``thresholds`` are floor(2^bits P(|X| <= k)), certain and not rounded: every number is enclosed in a ball,
    the remainder of the series is bounded by a geometric series (phi is convex, so the ratios of neighbouring
    weights fall), and the precision is raised until each floor is the only possible one.
Assumes
    What ``stirred.balls`` assumes.
Reference
    Canonne, Kamath and Steinke, The discrete Gaussian for differential privacy, Definition 1; inversion of
    a distribution function by lazily drawn digits: Devroye, Non-Uniform Random Variate Generation, II.2.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from stirred.balls import PRECISION, ball
from stirred.errors import InputError

LARGEST_SPREAD = 2**50
_GUARD = 64


@dataclass(frozen=True)
class Law:
    """The law of a magnitude k = 0, 1, 2, ... with weights exp(-(linear k + quadratic k^2))."""

    linear: Fraction
    quadratic: Fraction
    at_zero: Fraction = Fraction(1, 2)

    def exponent(self, k: int) -> Fraction:
        """The exponent phi(k): the weight is exp(-phi(k))."""
        return k * (self.linear + k * self.quadratic)

    def rise(self, start: int, end: int) -> Fraction:
        """The exponent at the end less the exponent at the start."""
        return (end - start) * (self.linear + (start + end) * self.quadratic)

    def coarse(self, width: int) -> Law:
        """The law of the block a magnitude lies in, weighed by the first member of every block."""
        return Law(self.linear * width, self.quadratic * width * width, Fraction(1))


def gaussian_law(variance: Fraction) -> Law:
    """The magnitude of the discrete Gaussian with weights exp(-k^2 / (2 variance))."""
    return Law(Fraction(0), 1 / (2 * positive(variance, "variance", LARGEST_SPREAD**2)))


def laplace_law(scale: Fraction) -> Law:
    """The magnitude of the discrete Laplace with weights exp(-|k| / scale)."""
    return Law(1 / positive(scale, "scale", LARGEST_SPREAD), Fraction(0))


def positive(value: object, field: str, largest: int) -> Fraction:
    """An exact positive rational, or a refusal: a float is not exact, and a boolean is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | Fraction) or not 0 < value <= largest:
        raise InputError(
            f"the {field} of a noise law is not a positive rational in range",
            field=field,
            expected=f"an int or a Fraction above 0 and at most {largest}",
            hint="Write Fraction('0.1'), not 0.1: the law of the noise is exact.",
        )
    return Fraction(value)


def thresholds(law: Law, bits: int, guard: int = _GUARD) -> list[int]:
    """floor(2^bits P(|X| <= k)) for k = 0, 1, ... up to the first that is 2^bits - 1.

    All later ones are 2^bits - 1 too, since no probability P(|X| <= k) reaches one.
    """
    from flint import ctx

    with PRECISION:
        while True:
            with ctx.workprec(bits + 2 * guard):
                found = _thresholds(law, bits, guard)
            if found is not None:
                return found
            guard = 2 * guard + 16


def _thresholds(law: Law, bits: int, guard: int) -> list[int] | None:
    from flint import arb

    sums, total = partial_sums(law, bits + guard)
    unit = arb(1 << bits) / total
    last = (1 << bits) - 1
    found: list[int] = []
    for partial in sums:
        scaled = partial * unit
        floor = scaled.floor().unique_fmpz()
        if floor is None and not scaled > last:
            return None
        found.append(last if floor is None else int(floor))
        if found[-1] >= last:
            return found
    return None


def partial_sums(law: Law, bits: int) -> tuple[list[Any], Any]:
    """Balls around w_0 + ... + w_k, until what remains is below 2^-bits, and around the whole sum."""
    from flint import arb

    weight, total = arb(1), ball(law.at_zero)
    ratio, shrink = (-ball(law.exponent(1))).exp(), (-2 * ball(law.quadratic)).exp()
    negligible = arb(1) / (1 << (bits + 1))
    sums = [total]
    while True:
        weight *= ratio
        ratio *= shrink
        if weight < negligible and (remainder := weight / (1 - ratio)) < negligible:
            return sums, total + arb(0).union(remainder)
        total += weight
        sums.append(total)


def invert(law: Law, word: int, more: Callable[[], int], bits: int = 64) -> int:
    """The magnitude that a uniform number falls on, given its first digit and a stream of further ones.

    Digits have ``bits`` bits. The digits read so far leave an interval for the number; while a threshold
    divides it, another digit is read and the thresholds are computed to as many digits. The law of the result
    is therefore exactly ``law`` whatever the size of a digit, and the number of digits is finite with
    probability one.

    Examples
    --------
    >>> invert(gaussian_law(Fraction(1)), 2, lambda: 0, bits=3)
    0
    >>> digits = iter([1, 5])
    >>> invert(gaussian_law(Fraction(1)), 7, lambda: next(digits), bits=3)
    2
    """
    length = bits
    while (k := locate(law, word, length)) is None:
        word = word << bits | more()
        length += bits
    return k


def locate(law: Law, digits: int, length: int) -> int | None:
    """The magnitude of every number in [digits, digits + 1) / 2^length, or None if there are several."""
    levels = recent_thresholds(law, length)
    k = bisect_left(levels, digits)
    return None if levels[k] == digits else k


@lru_cache(maxsize=64)
def recent_thresholds(law: Law, length: int) -> tuple[int, ...]:
    """The thresholds of a law, kept: ties and tables of one law ask for the same ones."""
    return tuple(thresholds(law, length))
