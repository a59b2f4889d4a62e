"""A map that grows by one item at a time, of which every earlier state stays as it was.

Guarantee
    ``plus`` leaves the map as it is and returns the larger one. Growing to n items one after the other costs
    O(n log n) in all, looking one up O(log n); a copied ``dict`` would cost O(n) for every item.

How
    Layers of dictionaries that are never changed again, as in a binary counter: a new item is a layer of its
    own, and takes in every layer before it that is not larger. A later layer covers an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Growing(Mapping[K, V]):
    """An immutable map; items keep the order in which their keys came first.

    Examples
    --------
    >>> one = Growing().plus("a", 1)
    >>> two = one.plus("b", 2).plus("a", 3)
    >>> dict(one), dict(two)
    ({'a': 1}, {'a': 3, 'b': 2})
    """

    __slots__ = ("_layers", "_size")

    def __init__(self, layers: tuple[dict[K, V], ...] = (), size: int = 0) -> None:
        self._layers, self._size = layers, size

    def plus(self, key: K, value: V) -> Growing[K, V]:
        """With one more item, or another value under a key that is there."""
        layers, top = self._layers, {key: value}
        kept = len(layers)
        while kept and len(layers[kept - 1]) <= len(top):
            kept -= 1
            top = layers[kept] | top
        return Growing((*layers[:kept], top), self._size + (key not in self))

    def __getitem__(self, key: K) -> V:
        for layer in reversed(self._layers):
            if key in layer:
                return layer[key]
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        for layer in self._layers:  # noqa: SIM110
            if key in layer:
                return True
        return False

    def __iter__(self) -> Iterator[K]:
        whole: dict[K, V] = {}
        for layer in self._layers:
            whole |= layer
        return iter(whole)

    def __len__(self) -> int:
        return self._size
