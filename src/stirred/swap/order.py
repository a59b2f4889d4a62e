"""A fresh random order: the rows of a published file carry no trace of the input's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.errors import NotComputable
from stirred.noise import Source
from stirred.swap.kernel import as_half_words, shuffle_down

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORDS = 1 << 22
LARGEST = 1 << 32


def random_order(count: int, source: Source) -> NDArray[Any]:
    """A uniform permutation of the rows (Fisher and Yates, unbiased)."""
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
        top = shuffle_down(order, top, as_half_words(source.words(min(WORDS, top + 64))))
    return order
