"""Magnitudes of a wide law by strips of equal width, with as many digits of a uniform number as it takes.

With B = 2^shift, strip m holds the magnitudes from mB to mB + B - 1. Let W_m = w(mB) be the largest weight in
it, at the first member, and Z = W_0 + W_1 + ... A uniform number U of [0, 1) chooses the strip and, in the
rare case that it has to, accepts or rejects the member; the member's place in the strip is uniform and apart.

- UZ in [W_0 + ... + W_m, W_0 + ... + W_(m+1)), a length of W_(m+1): every member of strip m is accepted.
- UZ in [W_(m+1), W_m), for UZ below W_0: the member x of strip m is accepted if UZ < w(x).

Guarantee
    The law of an accepted x is proportional to w(x), exactly and over all magnitudes. Given its place, x is
    accepted for a length of W_(m+1) of the first kind and w(x) - W_(m+1) of the second (the weights fall, so
    W_(m+1) <= w(x) <= W_m): together w(x) / Z. The second kind has probability W_0 / Z, about the width of a
    strip over the spread of the law, and about half of it is rejected.
How
    The digits of U read so far leave an interval. The strip, and whether UZ < w(x), are told from the
    thresholds floor(2^length (W_0 + ... + W_m) / Z) alone: 2^length W_m / Z lies strictly between d_m - 1 and
    d_m + 1, where d_m is the difference of two of them, and w(x) = W_m exp(phi(mB) - phi(x)). While the
    interval leaves something open another digit is read, which comes to an end with probability one.
Reference
    Von Neumann's rejection with a step function above the curve and another one below it: Devroye,
    Non-Uniform Random Variate Generation, II.3.6 (squeeze) and VIII.2 (strips).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

from stirred.balls import PRECISION, ball
from stirred.noise.law import Law, recent_thresholds

REFUSED = -1
_GUARD = 32


def member(law: Law, shift: int, place: int, number: int, more: Callable[[], int], bits: int = 64) -> int:
    """The magnitude at a place of the strip that a uniform number falls on, or ``REFUSED``.

    The number is given by its first digit, of ``bits`` bits, and a stream of further ones.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from stirred.noise.law import gaussian_law
    >>> law = gaussian_law(Fraction(100))
    >>> member(law, 2, 3, 7, lambda: 0, bits=4), member(law, 2, 3, 3, lambda: 15, bits=4)
    (3, -1)
    """
    length = bits
    while (found := _member(law, shift, place, number, length)) is None:
        number = number << bits | more()
        length += bits
    return found


def _member(law: Law, shift: int, place: int, number: int, length: int) -> int | None:
    """What every number in [number, number + 1) / 2^length makes of the place, or None if they differ."""
    levels = recent_thresholds(law.coarse(1 << shift), length)
    above = bisect_left(levels, number)
    if levels[above] == number:
        return None
    if above:
        return (above - 1 << shift) + place
    m = _falling(levels, number)
    if m is None:
        return None
    first = m << shift
    if place == 0:
        return first
    below = _below(law, first, first + place, _drop(levels, m), number, length)
    return None if below is None else first + place if below else REFUSED


def _falling(levels: Sequence[int], number: int) -> int | None:
    """The strip m with W_(m+1) <= UZ < W_m, if the thresholds prove it."""
    start, end = 0, len(levels)
    while end - start > 1:
        middle = (start + end) // 2
        if _drop(levels, middle) > number:
            start = middle
        else:
            end = middle
    proved = end < len(levels) and _drop(levels, start) - 1 >= number + 1 and _drop(levels, end) + 1 <= number
    return start if proved else None


def _drop(levels: Sequence[int], m: int) -> int:
    return levels[m] - levels[m - 1] if m else levels[0]


def _below(law: Law, first: int, x: int, drop: int, number: int, length: int) -> bool | None:
    """Whether a number lies below the weight of x, which is that of the first member less the rise."""
    from flint import arb, ctx

    with PRECISION, ctx.workprec(length + _GUARD):
        weight = arb(drop, 1) * (-ball(law.rise(first, x))).exp()
        if weight > number + 1:
            return True
        return False if weight < number else None
