"""Exact discrete Gaussian and discrete Laplace noise: one word of randomness a draw, at any scale.

Guarantee
    Given uniform words, the law of every draw is exactly the discrete Gaussian of the given variance
    parameter, or the discrete Laplace of the given scale, over all integers: no rounding, no truncation, no
    floating-point number. Draws are independent: no word serves two of them, and a rejected draw is made
    again from other words. What a word leaves open (a threshold among the numbers that begin with its digits,
    a magnitude beyond the table, a member of a strip near the curve) is decided by further words.
Assumes
    Uniform words (see ``source``). A draw of magnitude 2^63 or more raises ``OverflowError`` instead of
    wrapping around: with the largest parameters taken that has probability below exp(-8000).
Reference
    Canonne, Kamath and Steinke, The discrete Gaussian for differential privacy, Definition 1. Narrow laws:
    inversion of the distribution function of the magnitude (``law``). Wide ones: strips of 2^shift magnitudes
    (``strip``), and minus zero is rejected. The sign and the place in a strip are bits of the same word,
    below those of the uniform number and independent of it.

Which values a stream of words gives depends on ``count`` and may change with the version; the law does not.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.errors import InputError
from stirred.noise.law import Law, gaussian_law, invert, laplace_law
from stirred.noise.source import Source
from stirred.noise.strip import REFUSED, member

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stirred.noise.table import Table

_BLOCK = 1 << 16


def discrete_gaussian(source: Source, variance: Fraction, count: int) -> NDArray[np.int64]:
    """Independent draws with P(X = k) proportional to exp(-k^2 / (2 variance)), for all integers k.

    The parameter sigma^2 is an exact positive rational. The variance of the draws is slightly below it: see
    ``gaussian_variance``.

    Examples
    --------
    >>> from stirred.noise import TestSource
    >>> discrete_gaussian(TestSource(1), Fraction(9, 4), 10).shape
    (10,)
    """
    return draw(source, gaussian_law(variance), count)


def discrete_laplace(source: Source, scale: Fraction, count: int) -> NDArray[np.int64]:
    """Independent draws with P(X = k) proportional to exp(-|k| / scale), for all integers k.

    The scale is an exact positive rational: sensitivity over epsilon for pure differential privacy.

    Examples
    --------
    >>> from stirred.noise import TestSource
    >>> discrete_laplace(TestSource(1), Fraction(2), 0)
    array([], dtype=int64)
    """
    return draw(source, laplace_law(scale), count)


def draw(source: Source, law: Law, count: int) -> NDArray[np.int64]:
    """Independent draws whose magnitude has the given law and whose sign is fair."""
    import numpy as np

    from stirred.noise.table import table

    size = _checked(count)
    made = table(law)
    out = np.empty(size, dtype=np.int64)
    rejected = [start + _fill(source, made, out[start : start + _BLOCK]) for start in range(0, size, _BLOCK)]
    again = np.concatenate(rejected) if rejected else np.empty(0, dtype=np.int64)
    if again.size:
        out[again] = draw(source, law, again.size)
    return out


def _checked(count: int) -> int:
    try:
        size = -1 if isinstance(count, bool) else operator.index(count)
    except TypeError:
        size = -1
    if size < 0:
        raise InputError(
            "the number of draws is not a count",
            field="count",
            expected="an integer from 0",
            hint="Give the number of cells that need noise.",
        )
    return size


def _fill(source: Source, made: Table, out: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw by one word each and settle what that leaves open; returns where a draw was rejected."""
    import numpy as np

    from stirred.noise.table import REJECTED, UNDECIDED, draw_words, settle

    words = source.words(out.size)
    listed = np.empty(out.size, dtype=np.int64)
    shared = made.thresholds, made.guide, made.shift
    pending = listed[: draw_words(words, *shared, out, listed)]
    further = source.words(pending.size)
    if settle(words, further, pending, *shared, made.rises, made.curved, out):
        for i in np.flatnonzero(out[pending] == UNDECIDED).tolist():
            out[pending[i]] = _settled(source, made, int(words[pending[i]]), int(further[i]))
    rejected: NDArray[np.int64] = pending[out[pending] == REJECTED]
    return rejected


def _settled(source: Source, made: Table, word: int, further: int) -> int:
    """One draw with as many words as it takes, or ``REJECTED``."""
    from stirred.noise.table import REJECTED

    def more() -> int:
        return int(source.words(1)[0])

    mask = (2 << made.shift) - 1
    number = word & ~mask | further & mask
    if made.shift:
        x = member(made.law, made.shift, (word & mask) >> 1, number, more)
    else:
        x = invert(made.law, number, more)
    negative = word & 1
    if x == REFUSED or (made.shift and negative and x == 0):
        return REJECTED
    return -x if negative else x
