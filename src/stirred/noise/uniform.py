"""Exact draws from uniform words: bounded integers, and biased coins with rational bias."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.errors import InputError
from stirred.noise.source import LARGEST_DRAW, Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

WORD = 1 << 64


def integers(source: Source, bound: int, count: int) -> NDArray[np.uint64]:
    """Uniform integers below a bound, without bias: words beyond the last full multiple are redrawn."""
    import numpy as np

    if not 1 <= bound <= WORD:
        raise InputError(
            "the bound of an integer draw is out of range",
            field="bound",
            expected="from 1 to 2^64",
            hint="Combine several draws for larger bounds.",
        )
    if bound == WORD:
        return source.words(count)
    limit = WORD - WORD % bound
    out = source.words(count).copy()
    pending = np.flatnonzero(out >= np.uint64(limit)) if limit < WORD else np.empty(0, dtype=np.int64)
    while pending.size:
        out[pending] = source.words(pending.size)
        pending = pending[out[pending] >= np.uint64(limit)]
    return out % np.uint64(bound)


def bernoulli(source: Source, probability: Fraction, count: int) -> NDArray[np.bool_]:
    """Coins that are true with an exact rational probability.

    A word below floor(2^64 p) decides for true, one above it for false; a tie is decided by a further
    coin with the remainder as its probability, so the law is exact and not rounded to 64 bits.
    """
    import numpy as np

    if not 0 <= probability <= 1:
        raise InputError(
            "the probability of a coin is out of range",
            field="probability",
            expected="a rational from 0 to 1",
            hint="Give an exact fraction.",
        )
    if probability in (0, 1):
        return np.full(count, probability == 1)
    threshold, remainder = divmod(probability.numerator * WORD, probability.denominator)
    out = np.empty(count, dtype=np.bool_)
    for start in range(0, count, LARGEST_DRAW):
        block = slice(start, min(count, start + LARGEST_DRAW))
        words = source.words(block.stop - block.start)
        out[block] = words < np.uint64(threshold)
        ties = start + np.flatnonzero(words == np.uint64(threshold))
        if ties.size:
            out[ties] = bernoulli(source, Fraction(remainder, probability.denominator), ties.size)
    return out
