"""Every small universe of swapping, up to relabelling."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, combinations_with_replacement, product

from stirred.swap import Data, margin_patterns, pattern_records
from stirred.swap.enumeration import _partitions


def universe_patterns(size: int) -> list[tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]]:
    """All universes of so many records in any number of strata, up to relabelling: a pattern a stratum.

    Examples
    --------
    >>> len(universe_patterns(2)), len(universe_patterns(5))
    (5, 134)
    """
    found = []
    for sizes in _partitions(size, size):
        of_size = [
            combinations_with_replacement(margin_patterns(n), sizes.count(n)) for n in sorted(set(sizes))
        ]
        found += [tuple(chain(*choice)) for choice in product(*of_size)]
    return found


def universe_records(pattern: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Data:
    """A data set (m, h, s) of the universe of a pattern."""
    return tuple((m, h, s) for m, margins in enumerate(pattern) for _, h, s in pattern_records(*margins))


def hamming(data: tuple[object, ...], other: tuple[object, ...]) -> int:
    """The number of records in which two data sets of one size differ, disregarding order (equation 5)."""
    return len(data) - (Counter(data) & Counter(other)).total()
