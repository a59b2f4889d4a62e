"""Rounding against the user: losses go up, type-II errors go down."""

from __future__ import annotations

import math
from fractions import Fraction

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
