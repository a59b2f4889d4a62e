"""By how much odds grow when the log-ratio of probabilities is bounded, rounded up."""

from __future__ import annotations

import math
from fractions import Fraction

from stirred.spec.arithmetic.exact import Exact

LARGEST_EXPONENT = 600
LARGEST_FACTOR = 100_000


def odds_factor(epsilon: Exact) -> Fraction | None:
    """The exponential, exactly or rounded up; none where it is beyond all floats."""
    exact = epsilon.exponential
    if exact is not None:
        return exact
    value = epsilon.float_up()
    return None if value > LARGEST_EXPONENT else Fraction(math.exp(value)) * (1 + Fraction(1, 10**12))


def odds_exponent(epsilon: Exact) -> float:
    """The logarithm of the factor to base ten, rounded up: the division and ln 10 are each rounded once."""
    return math.nextafter(epsilon.float_up() / math.nextafter(math.log(10), 0), math.inf)


def factor_text(factor: Fraction | float | None, exponent: float) -> str:
    """A factor for people, rounded up; a large one as a power of ten.

    Examples
    --------
    >>> factor_text(Fraction(10, 3), 0.523), factor_text(None, 300.25)
    ('3.34', '10 to the 300.3')
    """
    if factor is not None and factor < LARGEST_FACTOR:
        return f"{math.ceil(Fraction(str(factor)) * 100) / 100:,.2f}"
    return f"10 to the {math.ceil(exponent * 10) / 10:.1f}"
