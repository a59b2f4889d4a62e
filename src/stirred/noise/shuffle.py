"""A uniform permutation: Fisher and Yates, compiled, without bias.

Kernels never call a generator: they are handed 32-bit words and say how far they came, so that the caller can
refill. Linear in the count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.compiled import kernel
from stirred.errors import NotComputable
from stirred.noise.source import Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORDS = 1 << 22
LARGEST = 1 << 32


def permutation(source: Source, count: int) -> NDArray[Any]:
    """A uniform permutation of so many, as 32-bit integers where they suffice.

    Examples
    --------
    >>> from stirred.noise import TestSource
    >>> sorted(permutation(TestSource(1), 4).tolist())
    [0, 1, 2, 3]
    """
    if count >= LARGEST:
        raise NotComputable(
            "the table has too many rows for one order",
            field="data",
            expected=f"fewer than {LARGEST} rows",
            hint="Release one file for each top-level place.",
        )
    order = np.arange(count, dtype=np.int32 if count < 2**31 else np.int64)
    top = count - 1
    while top > 0:
        top = _shuffle_down(order, top, half_words(source, min(WORDS, top + 64)))
    return order


def half_words(source: Source, count: int) -> NDArray[np.uint32]:
    """So many 64-bit words of a source as twice as many uniform 32-bit ones."""
    return source.words(count).view(np.uint32)


@kernel(inline="always")
def below(words: Any, position: Any, bound: Any) -> Any:
    """A uniform integer below a bound and the next position; -1 where the words run out (Lemire 2019)."""
    limit = np.uint64(bound)
    while position < words.size:
        product = np.uint64(words[position]) * limit
        position += 1
        low = product & np.uint64(0xFFFFFFFF)
        if low >= limit or low >= (np.uint64(0x100000000) - limit) % limit:
            return np.int64(product >> np.uint64(32)), position
    return np.int64(-1), position


@kernel()
def _shuffle_down(order: Any, top: int, words: Any) -> int:
    """Fisher and Yates from ``top`` down until the words run out; returns the position reached."""
    position = 0
    for i in range(top, 0, -1):
        j, position = below(words, position, i + 1)
        if j < 0:
            return i
        order[i], order[j] = order[j], order[i]
    return 0
