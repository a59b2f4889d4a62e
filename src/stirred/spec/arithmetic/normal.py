"""The normal law: its distribution function in balls, and its quantiles.

Guarantee
    ``normal_cdf`` contains the true value. ``upper_quantile_below`` is certainly not above the true quantile:
    the tail at it is checked in balls.
Reference
    Phi(x) = erfc(-x / sqrt 2) / 2. Quantiles of the standard library: Wichura, Algorithm AS 241 (1988).
"""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import Any

from stirred.balls import PRECISION, ball

_BITS = 128


def normal_cdf(x: Fraction) -> Any:
    """A ball around Phi(x), at the working precision."""
    from flint import arb

    return (-ball(x) / arb(2).sqrt()).erfc() / 2


def upper_quantile_below(level: float) -> float:
    """A float not above the q with 1 - Phi(q) = level, and within about 1e-14 of it; level between 0 and 1.

    Examples
    --------
    >>> round(upper_quantile_below(0.025), 6)
    1.959964
    """
    from flint import arb, ctx

    near = -NormalDist().inv_cdf(level)
    step = 1e-15 * (1 + abs(near))
    with PRECISION, ctx.workprec(_BITS):
        while not normal_cdf(Fraction(step - near)) >= arb(level):
            step *= 2
    return near - step


def quantile(level: Fraction) -> float:
    """The normal quantile as a float, from the nearer tail; infinite where the tail is too small for a float.

    Examples
    --------
    >>> round(quantile(Fraction(1, 40)), 6)
    -1.959964
    """
    tail = float(min(level, 1 - level))
    found = NormalDist().inv_cdf(tail) if tail > 0 else -math.inf
    return found if level < Fraction(1, 2) else -found
