"""Inversion by a short table of 64-bit thresholds, compiled: one word a draw, whatever the scale.

The lowest bit of a word is the sign, the ``shift`` bits above it are the place in a strip (none if the table
is of single magnitudes), and the others are the first digits of the uniform number that ``law`` or ``strip``
maps to a magnitude.

Kernels are pure functions of buffers of random words; they never call a generator. ``draw_words`` takes what
those digits decide for certain and lists the rest: a threshold among the numbers that begin with them, a
place in a strip that may be rejected, and zero. ``settle`` looks at these with a further word, which makes
the digits 64, and marks what is still open for the caller, who decides it with as many words as it takes.

Guarantee
    What a kernel decides is what exact arithmetic decides for every number that begins with these digits.
    ``settle`` bounds the weight of a member in fixed point: with t = phi(x) - phi(mB) enclosed by integers in
    units of 2^-32, rounded outwards,  t - t^2/2 <= 1 - exp(-t) <= t - t^2/2 + t^3/6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.compiled import kernel
from stirred.noise.law import Law, recent_thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNDECIDED = -(1 << 63)
REJECTED = UNDECIDED + 1
STRIPS = 1 << 8
_TABLES = 64
_GUIDE_BITS = 13
_ONE = 1 << 32
_STEEP = 1 << 31


@dataclass(frozen=True, eq=False)
class Table:
    """Thresholds of a law, and a guide from the top bits of a word to the first threshold it can lie below.

    With ``shift`` above zero the table is of strips of 2^shift magnitudes, ``tabled`` is the law of their
    first members, and ``rises`` has by how much the exponent rises from one strip to the next, in units of
    2^-32, rounded down and cut off at 2^31: from there on ``settle`` leaves the strip to exact arithmetic.
    ``curved`` is the quadratic coefficient of that exponent in the same units.
    """

    law: Law
    tabled: Law
    shift: int
    thresholds: NDArray[np.uint64]
    guide: NDArray[np.uint16]
    rises: NDArray[np.int64]
    curved: int


@lru_cache(maxsize=_TABLES)
def table(law: Law, strips: int = STRIPS) -> Table:
    """The table of a law, of single magnitudes or the narrowest strips of which this many reach exponent 1.

    A table ends where the exponent is about 45, since exp(-45) < 2^-64: after 45 times as many strips if the
    exponent is linear, seven times as many if it is quadratic. About one draw in as many may be rejected.
    """
    shift = 0
    while law.exponent(strips << shift) < 1:
        shift += 1
    tabled = law.coarse(1 << shift) if shift else law
    levels = np.array(recent_thresholds(tabled, 64), dtype=np.uint64)
    cells = np.arange(1 << _GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - _GUIDE_BITS)
    guide = np.searchsorted(levels, cells).astype(np.uint16)
    rises = np.array(_rises(tabled, levels.size) if shift else [], dtype=np.int64)
    for part in (levels, guide, rises):
        part.setflags(write=False)
    return Table(law, tabled, shift, levels, guide, rises, min(int(tabled.quadratic * _ONE), _STEEP))


def _rises(tabled: Law, count: int) -> list[int]:
    """floor(2^32 (phi(m + 1) - phi(m))) for every strip m, or 2^31 if that is less."""
    unit = tabled.linear.denominator * tabled.quadratic.denominator
    first, step = int(tabled.exponent(1) * unit * _ONE), int(2 * tabled.quadratic * unit * _ONE)
    return [min((first + m * step) // unit, _STEEP) for m in range(count)]


@kernel(inline="always")
def _find(number: Any, levels: Any, guide: Any) -> Any:
    """The first threshold that is not below the number."""
    k = np.int64(guide[number >> np.uint64(64 - _GUIDE_BITS)])
    while levels[k] < number:
        k += 1
    return k


@kernel()
def draw_words(words: Any, levels: Any, guide: Any, shift: Any, out: Any, pending: Any) -> int:
    """Draw by one word each; returns how many are open, having listed them at the head of ``pending``.

    Magnitudes count from the second threshold on if the table is of strips: below the first one are the
    numbers that may be rejected. Zero is open then, since minus zero is to be rejected.
    """
    lowest = np.int64(shift + 1)
    mask = (np.uint64(1) << np.uint64(lowest)) - np.uint64(1)
    offset = np.int64(1) << np.int64(shift) if shift else np.int64(0)
    bound = 2 * offset + 2 if shift else np.int64(0)
    count = 0
    for i in range(out.size):
        word = words[i]
        k = _find(word & ~mask, levels, guide)
        code = (k << lowest) | np.int64(word & mask)
        x = (code >> 1) - offset
        negative = code & 1
        out[i] = (x ^ -negative) + negative
        pending[count] = i
        count += (levels[k] <= (word | mask)) | (code < bound)
    return count


@kernel()
def settle(
    words: Any,
    further: Any,
    pending: Any,
    levels: Any,
    guide: Any,
    shift: Any,
    rises: Any,
    curved: Any,
    out: Any,
) -> int:
    """Draw what is open with a further word each; returns how many are rejected or undecided."""
    lowest = np.uint64(shift + 1)
    mask = (np.uint64(1) << lowest) - np.uint64(1)
    unfinished = 0
    for i in range(pending.size):
        word = words[pending[i]]
        number = (word & ~mask) | (further[i] & mask)
        place = np.int64((word & mask) >> np.uint64(1))
        k = _find(number, levels, guide)
        if levels[k] == number:
            x = np.int64(UNDECIDED)
        elif shift == 0:
            x = k
        elif k > 0:
            x = ((k - 1) << shift) + place
        else:
            x = _under_the_curve(number, place, levels, shift, rises, curved)
        negative = np.int64(word & np.uint64(1))
        if x < 0:
            unfinished += 1
        elif negative == 1 and x == 0 and shift > 0:
            x = np.int64(REJECTED)
            unfinished += 1
        elif negative == 1:
            x = -x
        out[pending[i]] = x
    return unfinished


@kernel(inline="always")
def _drop(levels: Any, m: Any) -> Any:
    return levels[m] - levels[m - 1] if m > 0 else levels[0]


@kernel()
def _under_the_curve(number: Any, place: Any, levels: Any, shift: Any, rises: Any, curved: Any) -> Any:
    """The member of the strip whose weights a number below the first threshold lies among, or its refusal."""
    start, end = 0, levels.size
    while end - start > 1:
        middle = (start + end) >> 1
        if _drop(levels, middle) > number:
            start = middle
        else:
            end = middle
    if end == levels.size or rises[start] >= _STEEP:
        return np.int64(UNDECIDED)
    drop = _drop(levels, start)
    if drop - number < np.uint64(2) or _drop(levels, end) >= number:
        return np.int64(UNDECIDED)
    low, high = _loss(place, shift, rises[start], curved)
    gap = np.int64(drop - number)
    if gap - 2 >= (np.int64((drop + np.uint64(1)) >> np.uint64(32)) + 1) * high:
        return (start << shift) + place
    if gap + 1 <= np.int64((drop - np.uint64(1)) >> np.uint64(32)) * low:
        return np.int64(REJECTED)
    return np.int64(UNDECIDED)


@kernel(inline="always")
def _loss(place: Any, shift: Any, rise: Any, curved: Any) -> Any:
    """Bounds of 1 - exp(-t) in units of 2^-32, where t = f rise - f (1 - f) curved at f = place / 2^shift."""
    f = place << (32 - shift) if shift <= 32 else place >> (shift - 32)
    g = f + 1
    least = ((f * rise) >> 32) - (((curved + 1) * (((f * (_ONE - f)) >> 32) + 1)) >> 32) - 1
    most = ((g * (rise + 1)) >> 32) + 1 - ((curved * ((g * (_ONE - g)) >> 32)) >> 32)
    least = max(least, 0)
    square = (most * most) >> 32
    high = most - (square >> 1) + (((square + 1) * most) >> 32) // 6 + 1
    low = max(least - ((least * least) >> 33) - 1, 0)
    return low, high
