"""Rounding against the user: losses go up, type-II errors go down."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal, localcontext
from fractions import Fraction

from stirred.spec.arithmetic.exact import Exact

DIGITS = 40
MARGIN = 1e-12
ROUNDING = 2.0**-48
EXPONENTS = range(1, 13)


def raised(value: float, cap: float = math.inf) -> float:
    """Raise a loss by more than the error of its evaluation."""
    return min(cap, value * (1 + MARGIN))


def lowered(value: float) -> float:
    """Lower a type-II error, to zero where floats lose their precision."""
    return value * (1 - MARGIN) if value > 1e-300 else 0.0


def raised_probability(value: float) -> float:
    """Raise a probability, also off zero, which it may have reached by underflow."""
    return min(1.0, math.nextafter(raised(value), math.inf))


def float_not_below(value: Fraction) -> float:
    """The least float that is not below a rational."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return near if near >= value else math.nextafter(near, math.inf)


def float_not_above(value: Fraction) -> float:
    """The largest float that is not above a rational."""
    return -float_not_below(-value) + 0.0


def raised_root(value: float) -> float:
    """The square root, not rounded downward."""
    root = math.sqrt(value)
    if math.isinf(root) or Fraction(root) ** 2 >= Fraction(value):
        return root
    return math.nextafter(root, math.inf)


def significant_up(value: Fraction, digits: int = DIGITS) -> Fraction:
    """The least decimal with so many significant digits that is not below a non-negative rational."""
    with localcontext(context(digits, ROUND_CEILING)):
        return Fraction(Decimal(value.numerator) / Decimal(value.denominator))


def rational_above(value: Exact, digits: int = DIGITS) -> Fraction:
    """A rational that is not below a positive finite number, and agrees with it in so many digits."""
    return value.rounded_up(_places(value, digits))


def rational_below(value: Exact, digits: int = DIGITS) -> Fraction:
    """A rational that is not above a positive finite number, and agrees with it in so many digits."""
    whole = value.rational
    return Fraction(value.rounded(_places(value, digits), down=True)) if whole is None else whole


def context(digits: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """Decimal arithmetic of so many digits, in which nothing overflows or underflows."""
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN)


def _places(value: Exact, digits: int) -> int:
    """Decimal places that hold so many significant digits of a positive number."""
    places = digits
    while value.rational is None and value.rounded_up(places) < Fraction(10) ** (digits - places):
        places *= 2
    return places
