"""Distances between graphs on the same vertices."""

from __future__ import annotations

import itertools
from typing import Any, Literal

from stirred.spec.arithmetic.exact import INFINITY, Exact
from stirred.spec.blocks.input_premetric.premetric import ONE, Change, Premetric, data_sets
from stirred.spec.blocks.kept import Kept


class GraphEdit(Premetric):
    """Edges, or nodes with all their edges, in which two graphs on the same vertices differ.

    A graph is a point (number of vertices, ((i, j), ...)) with i < j.
    """

    kind: Literal["graph"] = "graph"
    unit: Literal["edge", "node"]

    def distance(self, x: Any, y: Any) -> Exact:
        """Size of the edge difference, or of its least vertex cover."""
        x, y = data_sets(x, y)
        if x[0] != y[0]:
            return INFINITY
        changed = set(x[1]) ^ set(y[1])
        return Exact.of(len(changed) if self.unit == "edge" else _least_cover(x[0], changed))

    def sentence(self) -> str:
        edge = "one edge is added or removed"
        return edge if self.unit == "edge" else "all edges of one node are changed at will"

    @property
    def symbol(self) -> str:
        return f"d_{self.unit}"

    @property
    def change(self) -> Change:
        """One edge, or one node."""
        return Change("graph", keeps_size=True)

    def separation(self, kept: Kept) -> Exact:
        return ONE


def _least_cover(vertices: int, edges: set[tuple[int, int]]) -> int:
    touched = sorted({v for edge in edges for v in edge})
    for size in range(min(len(touched), vertices) + 1):
        for cover in itertools.combinations(touched, size):
            if all(i in cover or j in cover for i, j in edges):
                return size
    return len(touched)
