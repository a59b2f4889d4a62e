"""Ball arithmetic: a number and a radius, so that what is computed certainly contains what is meant.

Guarantee
    The true value lies between the two ends of ``ends``, and so between ``float_below`` and ``float_above``.
Assumes
    The ball arithmetic of FLINT is correct. Its working precision belongs to the process: other threads that
    change it can only widen a ball, which costs another round and never a wrong digit.
Reference
    Johansson, Arb: efficient arbitrary-precision midpoint-radius interval arithmetic (2017).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from fractions import Fraction
from threading import RLock
from typing import Any

PRECISION = RLock()
if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread computes would wait for that thread for ever.
    os.register_at_fork(
        before=PRECISION.acquire, after_in_parent=PRECISION.release, after_in_child=PRECISION.release
    )
_GUARD = 64


def ball(value: Fraction) -> Any:
    """A ball around a rational, at the working precision."""
    from flint import arb, fmpq

    return arb(fmpq(value.numerator, value.denominator))


def ends(value: Callable[[int], Any], bits: int, most: int | None = None) -> tuple[Any, Any]:
    """The two ends of a positive value, which differ by at most 2^-bits of it.

    The value is evaluated at rising precision, which it is given. With ``most``, precision does not pass that
    many bits: then the ends may be further apart.
    """
    from flint import ctx

    precision = bits + _GUARD
    with PRECISION:
        while True:
            with ctx.workprec(precision):
                found = value(precision)
                low, high = found.lower(), found.upper()
                narrow = low > 0 and (high - low) * (1 << bits) <= low
            if narrow or (most is not None and 2 * precision > most):
                return low, high
            precision *= 2


def float_above(end: Any) -> float:
    """A float that is not below the upper end of a ball, and next to it; infinite where there is none."""
    from flint import arb

    top = end.upper()
    near = float(top)
    return near if math.isnan(near) or arb(near) >= top else math.nextafter(near, math.inf)


def float_below(end: Any) -> float:
    """A float that is not above the lower end of a ball, and next to it."""
    return -float_above(-end)
