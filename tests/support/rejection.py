"""The slow exact sampler: rejection with rational probabilities in Python integers.

It shares nothing with the tables but the source of words, and is the oracle they are tested against.

Guarantee
    Given uniform words, exactly the discrete Gaussian and discrete Laplace laws: every coin has a rational
    bias, and every comparison is between integers of any size.
Reference
    Canonne, Kamath and Steinke, The discrete Gaussian for differential privacy, Algorithms 1 to 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.noise.law import LARGEST_SPREAD, positive
from stirred.noise.source import Source

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WORDS = 4096


def gaussian_by_rejection(source: Source, variance: Fraction, count: int) -> NDArray[np.int64]:
    """Discrete Gaussian draws, one at a time: a discrete Laplace proposal, accepted by an exact coin."""
    import numpy as np

    exact = positive(variance, "variance", LARGEST_SPREAD**2)
    words = _stream(source)
    return np.array([_gaussian(words, exact) for _ in range(count)], dtype=np.int64)


def laplace_by_rejection(source: Source, scale: Fraction, count: int) -> NDArray[np.int64]:
    """Discrete Laplace draws, one at a time."""
    import numpy as np

    exact = positive(scale, "scale", LARGEST_SPREAD)
    words = _stream(source)
    return np.array([_laplace(words, exact) for _ in range(count)], dtype=np.int64)


def _gaussian(words: Iterator[int], variance: Fraction) -> int:
    t = math.isqrt(math.floor(variance)) + 1
    while True:
        y = _laplace(words, Fraction(t))
        if _exponential_coin(words, (abs(y) - variance / t) ** 2 / (2 * variance)):
            return y


def _laplace(words: Iterator[int], scale: Fraction) -> int:
    t, s = scale.numerator, scale.denominator
    while True:
        u = _below(words, t)
        if not _exponential_coin(words, Fraction(u, t)):
            continue
        v = 0
        while _exponential_coin(words, Fraction(1)):
            v += 1
        y = (u + t * v) // s
        if _below(words, 2) == 0:
            return y
        if y > 0:
            return -y


def _exponential_coin(words: Iterator[int], exponent: Fraction) -> bool:
    """A coin that is true with probability exp(-exponent)."""
    whole = math.floor(exponent)
    return all(_series_coin(words, 1, 1) for _ in range(whole)) and _series_coin(
        words, exponent.numerator - whole * exponent.denominator, exponent.denominator
    )


def _series_coin(words: Iterator[int], numerator: int, denominator: int) -> bool:
    """exp(-x) for x in [0, 1] as the probability that the first failure of coins x/1, x/2, ... is odd."""
    k = 1
    while _below(words, k * denominator) < numerator:
        k += 1
    return k % 2 == 1


def _below(words: Iterator[int], bound: int) -> int:
    """A uniform integer below the bound: as many bits as it has, redrawn while they reach it."""
    bits = (bound - 1).bit_length()
    while True:
        value = 0
        for _ in range(0, bits, 64):
            value = value << 64 | next(words)
        value >>= -bits % 64
        if value < bound:
            return value


def _stream(source: Source) -> Iterator[int]:
    while True:
        yield from source.words(_WORDS).tolist()
