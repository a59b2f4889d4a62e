"""The slow twin of the table sampler: from words to a value by definition, in real numbers of many digits.

It has no thresholds, no guide and no bounds: sums of weights, and comparisons of one number with them.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import accumulate

import mpmath

from stirred.noise.law import Law

PRECISION = 320


class Twin:
    """What words make of a law that is tabled by strips of 2^shift magnitudes, single ones for no shift."""

    def __init__(self, law: Law, shift: int) -> None:
        self.law, self.shift = law, shift
        with mpmath.workprec(PRECISION):
            self.weights = [mpmath.mpf(1) if shift else _real(law.at_zero)]
            while self.weights[-1] > mpmath.ldexp(1, -PRECISION):
                self.weights.append(self.weight(len(self.weights) << shift))
            self.sums = list(accumulate(self.weights))
            self.total = self.sums[-1]

    def weight(self, k: int) -> mpmath.mpf:
        return mpmath.exp(-_real(self.law.exponent(k)))

    def value(self, word: int, *further: int) -> int | None:
        """The draw that these words make, or None if it is rejected; further words are 64 digits each."""
        low = self.shift + 1
        number, length = word >> low, 64 - low
        number, length = number << low | further[0] & (1 << low) - 1, length + low
        for digits in further[1:]:
            number, length = number << 64 | digits, length + 64
        place, negative = word >> 1 & (1 << self.shift) - 1, word & 1
        with mpmath.workprec(PRECISION):
            x = self._magnitude(mpmath.ldexp(number, -length) * self.total, place)
        if x is None or (self.shift and negative and x == 0):
            return None
        return -x if negative else x

    def _magnitude(self, height: mpmath.mpf, place: int) -> int | None:
        index = bisect_right(self.sums, height)
        if not self.shift:
            return index
        if index:
            return (index - 1 << self.shift) + place
        strip = bisect_left(self.weights, -height, key=operator.neg) - 1
        x = (strip << self.shift) + place
        return x if height < self.weight(x) else None


def _real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator
