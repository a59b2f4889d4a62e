"""Compiled passes over columns of integers: combine codes, number them densely, fingerprint rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def append_digit(codes: Any, values: Any, low: Any, levels: Any) -> None:  # pragma: no cover
    """Mixed radix: codes become codes * levels + (values - low), in place."""
    for i in range(codes.size):
        codes[i] = codes[i] * levels + (np.int64(values[i]) - low)


@njit(cache=True, nogil=True)
def renumber(codes: Any, span: int) -> int:  # pragma: no cover
    """Number the codes that occur from zero, in place and in their order; returns how many there are."""
    numbers = np.zeros(span, dtype=np.int64)
    for i in range(codes.size):
        numbers[codes[i]] = 1
    count = 0
    for code in range(span):
        if numbers[code]:
            numbers[code] = count
            count += 1
    for i in range(codes.size):
        codes[i] = numbers[codes[i]]
    return count


@njit(cache=True, nogil=True)
def mix_rows(hashes: Any, values: Any, key: Any) -> None:  # pragma: no cover
    """Fold a column into the hash of every row (a keyed multiply and shift, twice)."""
    for i in range(hashes.size):
        h = (hashes[i] ^ np.uint64(values[i])) * key
        h ^= h >> np.uint64(32)
        h *= np.uint64(0x9E3779B97F4A7C15)
        hashes[i] = h ^ (h >> np.uint64(29))


@njit(cache=True, nogil=True)
def hash_texts(text: Any, ends: Any, start: Any, factor: Any) -> Any:  # pragma: no cover
    """A keyed word for every text; the texts lie behind each other and end where ``ends`` says."""
    out = np.empty(ends.size, dtype=np.uint64)
    begin = 0
    for i in range(ends.size):
        word = start
        for j in range(begin, ends[i]):
            word = (word ^ np.uint64(text[j])) * factor
            word ^= word >> np.uint64(29)
        out[i] = word ^ np.uint64(ends[i] - begin)
        begin = ends[i]
    return out
