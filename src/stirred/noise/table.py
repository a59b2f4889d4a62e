"""Inversion by a table of 64-bit thresholds, compiled: one word and one sign bit a draw.

Kernels are pure functions of buffers of random words; they never call a generator. A draw that its word
does not decide (the word equals a threshold, which includes every word beyond the table) is marked, and the
caller decides it with further words.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from stirred.noise.law import Law, thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNDECIDED = -(1 << 63)
REJECTED = UNDECIDED + 1
LARGEST_TABLE = 1 << 15
_TABLES = 64
_GUIDE_BITS = (12, 15)
_WALK = 8
_NEGLIGIBLE = 45  # exp(-45) < 2^-64: a table ends about where the exponent gets there


@dataclass(frozen=True, eq=False)
class Table:
    """Thresholds of a law, and a guide from the top bits of a word to the first threshold it can lie below.

    With ``shift`` above zero the table is of blocks of 2^shift magnitudes, ``tabled`` is the law of the block
    and ``guards`` are words above which every member of the block is accepted.
    """

    law: Law
    tabled: Law
    shift: int
    thresholds: NDArray[np.uint64]
    guide: NDArray[np.int32]
    guards: NDArray[np.uint64]


@lru_cache(maxsize=_TABLES)
def table(law: Law, largest: int = LARGEST_TABLE) -> Table:
    """The table of a law, of single magnitudes if these are few enough, else of blocks of them."""
    shift = 0
    while law.exponent(largest << shift) < _NEGLIGIBLE:
        shift += 1
    tabled = law.coarse(1 << shift) if shift else law
    levels = thresholds(tabled, 64)
    bits = min(max(len(levels).bit_length(), _GUIDE_BITS[0]), _GUIDE_BITS[1])
    cells = np.arange(1 << bits, dtype=np.uint64) << np.uint64(64 - bits)
    array = np.array(levels, dtype=np.uint64)
    guide = np.append(np.searchsorted(array, cells), len(levels) - 1).astype(np.int32)
    guards = np.array(_guards(tabled, len(levels)) if shift else [], dtype=np.uint64)
    made = Table(law, tabled, shift, array, guide, guards)
    for part in (made.thresholds, made.guide, made.guards):
        part.setflags(write=False)
    return made


def _guards(tabled: Law, count: int) -> list[int]:
    """Words above these accept every member of a block: 1 - exp(-x) <= x, the rise of the exponent."""
    unit = tabled.linear.denominator * tabled.quadratic.denominator
    first, rise = int(tabled.exponent(1) * unit), int(2 * tabled.quadratic * unit)
    return [min(((first + m * rise) << 64) // unit + 1, (1 << 64) - 1) for m in range(count)]


@njit(inline="always")
def _find(word: Any, levels: Any, guide: Any, guide_shift: Any) -> Any:  # pragma: no cover
    """The first threshold that is not below the word: from the guide, halving while the cell is wide."""
    cell = word >> guide_shift
    k = np.int64(guide[cell])
    end = np.int64(guide[cell + np.uint64(1)])
    while end - k > _WALK:
        middle = (k + end) >> 1
        if levels[middle] < word:
            k = middle + 1
        else:
            end = middle
    while levels[k] < word:
        k += 1
    return k


@njit(cache=True, nogil=True)
def draw_signed(
    words: Any, signs: Any, levels: Any, guide: Any, guide_shift: Any, out: Any
) -> int:  # pragma: no cover
    """Invert each word and give it the sign of its bit; returns how many are undecided."""
    undecided = 0
    for i in range(out.size):
        word = words[i]
        k = _find(word, levels, guide, guide_shift)
        bit = np.int64((signs[i >> 6] >> np.uint64(i & 63)) & np.uint64(1))
        out[i] = (k ^ -bit) + bit
        if levels[k] == word:
            out[i] = UNDECIDED
            undecided += 1
    return undecided


@njit(cache=True, nogil=True)
def draw_blocks(
    words: Any, levels: Any, guide: Any, guide_shift: Any, guards: Any, shift: Any, out: Any
) -> int:  # pragma: no cover
    """Three words a draw: the block; the sign and the place in the block; whether to accept.

    Minus zero is rejected, so that zero is not counted twice. Returns how many are not finished.
    """
    unfinished = 0
    inside = (np.uint64(1) << np.uint64(shift)) - np.uint64(1)
    for i in range(out.size):
        word = words[3 * i]
        place = words[3 * i + 1]
        k = _find(word, levels, guide, guide_shift)
        x = (k << shift) + np.int64(place & inside)
        negative = (place >> np.uint64(63)) == np.uint64(1)
        if levels[k] == word or words[3 * i + 2] <= guards[k]:
            out[i] = UNDECIDED
            unfinished += 1
        elif negative and x == 0:
            out[i] = REJECTED
            unfinished += 1
        else:
            out[i] = -x if negative else x
    return unfinished
