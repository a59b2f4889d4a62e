"""A fresh random order: the rows of a published file carry no trace of the input's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stirred.noise import Source, permutation

if TYPE_CHECKING:
    from numpy.typing import NDArray


def random_order(count: int, source: Source) -> NDArray[Any]:
    """A uniform permutation of the rows."""
    return permutation(source, count)
