"""Exact discrete Gaussian and discrete Laplace noise, at constant work a draw.

Guarantee
    Given uniform words, the law of every draw is exactly the discrete Gaussian of the given variance
    parameter, or the discrete Laplace of the given scale, over all integers: no rounding, no truncation, no
    floating-point number. Draws are independent. What a word of 64 bits leaves open (a tie with a threshold,
    a magnitude beyond the table, a block's acceptance near its bound) is decided by further words.
Assumes
    Uniform words (see ``source``). A draw of magnitude 2^63 or more raises ``OverflowError`` instead of
    wrapping around: with the largest parameters taken that has probability below exp(-8000).
Reference
    Canonne, Kamath and Steinke, The discrete Gaussian for differential privacy, Definition 1. Wide laws: with
    B = 2^shift, choose the block m with weight exp(-phi(m B)), a member uniformly, and accept it with
    probability exp(phi(m B) - phi(k)): von Neumann's rejection, whose envelope is again a law of this family.

Which values a stream of words gives depends on ``count`` and may change with the version; the law does not.
"""

from __future__ import annotations

import operator
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.errors import InputError
from stirred.noise.law import Law, gaussian_law, invert, laplace_law, survives
from stirred.noise.source import Source

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
    fill = _fill_blocks if made.shift else _fill
    for start in range(0, size, _BLOCK):
        fill(source, made, out[start : start + _BLOCK])
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


def _fill(source: Source, made: Table, out: NDArray[np.int64]) -> None:
    """Draw from a table of single magnitudes."""
    import numpy as np

    from stirred.noise.table import UNDECIDED, draw_signed

    words = source.words(out.size)
    signs = source.words((out.size + 63) // 64)
    if draw_signed(words, signs, made.thresholds, made.guide, _guide_shift(made), out):
        for i in np.flatnonzero(out == UNDECIDED).tolist():
            magnitude = invert(made.law, int(words[i]), lambda: int(source.words(1)[0]))
            out[i] = -magnitude if int(signs[i >> 6]) >> (i & 63) & 1 else magnitude


def _fill_blocks(source: Source, made: Table, out: NDArray[np.int64]) -> None:
    """Draw from a table of blocks, until all are accepted."""
    import numpy as np

    from stirred.noise.table import REJECTED, UNDECIDED, draw_blocks

    pending = np.arange(out.size)
    while pending.size:
        words = source.words(3 * pending.size)
        drawn = np.empty(pending.size, dtype=np.int64)
        shift = _guide_shift(made)
        if draw_blocks(words, made.thresholds, made.guide, shift, made.guards, made.shift, drawn):
            for i in np.flatnonzero(drawn == UNDECIDED).tolist():
                settled = _settled(source, made, *words[3 * i : 3 * i + 3].tolist())
                drawn[i] = REJECTED if settled is None else settled
        out[pending] = drawn
        pending = pending[drawn == REJECTED]


def _settled(source: Source, made: Table, word: int, place: int, coin: int) -> int | None:
    """One draw from a table of blocks with as many words as it takes, or None if it is rejected."""

    def more() -> int:
        return int(source.words(1)[0])

    first = invert(made.tabled, word, more) << made.shift
    x = first + place % (1 << made.shift)
    negative = bool(place >> 63)
    if not survives(made.law.rise(first, x), coin, more) or (x == 0 and negative):
        return None
    return -x if negative else x


def _guide_shift(made: Table) -> np.uint64:
    import numpy as np

    return np.uint64(64 - (made.guide.size - 1).bit_length() + 1)
