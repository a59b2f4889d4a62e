"""Arguments of the closed forms, read exactly and checked."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import as_fraction

Real: TypeAlias = int | float | Fraction


def checked_finite(value: Real, field: str) -> Fraction:
    """A finite number, read as it is written."""
    try:
        return as_fraction(value)
    except InputError:
        raise bad_argument(field, "a finite number") from None


def checked_positive(value: Real, field: str) -> Fraction:
    """A number above zero."""
    number = checked_finite(value, field)
    if number <= 0:
        raise bad_argument(field, "a finite number above zero")
    return number


def checked_probability(value: Real, field: str) -> Fraction:
    """A number from zero to one."""
    number = checked_finite(value, field)
    if not 0 <= number <= 1:
        raise bad_argument(field, "a number from 0 to 1")
    return number


def checked_steps(shift: Real) -> int:
    """The size of a shift on the integers."""
    number = abs(checked_finite(shift, "shift"))
    if number.denominator != 1:
        raise bad_argument("shift", "an integer, as the noise lives on the integers")
    return number.numerator


def checked_non_negative(value: float, field: str) -> float:
    """A number of at least zero; infinity is allowed."""
    if math.isnan(value) or value < 0:
        raise bad_argument(field, "a number of at least zero, or infinity")
    return float(value)


def checked_order(alpha: float) -> float:
    """An order of Renyi divergence: at least one; infinity is allowed."""
    if math.isnan(alpha) or alpha < 1:
        raise bad_argument("alpha", "an order of at least 1, or infinity")
    return float(alpha)


def bad_argument(field: str, expected: str) -> InputError:
    """The error for an argument out of range."""
    return InputError(
        f"{field} is out of range",
        field=field,
        expected=expected,
        hint="Check the parameters of the noise law and the sensitivity of the query.",
    )
