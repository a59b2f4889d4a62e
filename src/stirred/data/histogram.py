"""Records counted by leaf and cell, sparsely, and summed up the spine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.data.levels import level_codes
from stirred.data.spine import Spine
from stirred.data.table import require_columns
from stirred.spec import Schema

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False)
class Histogram:
    """Counts of one level: node i has the cells ``cells[starts[i]:starts[i+1]]``, in order, with counts."""

    starts: NDArray[np.int64]
    cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    width: int

    @property
    def nodes(self) -> int:
        """How many nodes the level has."""
        return self.starts.size - 1

    @classmethod
    def of_pairs(cls, nodes: NDArray[Any], cells: NDArray[Any], size: int, width: int) -> Histogram:
        """Count pairs (node, cell)."""
        keys = np.sort(nodes.astype(np.int64) * width + cells.astype(np.int64))
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        return cls._of_keys(keys[first], np.diff(first, append=keys.size), size, width)

    @classmethod
    def of_counts(
        cls, nodes: NDArray[Any], cells: NDArray[Any], counts: NDArray[Any], size: int, width: int
    ) -> Histogram:
        """Add up counts of pairs (node, cell), which may repeat."""
        keys = nodes.astype(np.int64) * width + cells.astype(np.int64)
        order = np.argsort(keys, kind="stable")
        keys, values = keys[order], counts[order].astype(np.int64)
        first = np.flatnonzero(np.diff(keys, prepend=-1))
        summed = np.add.reduceat(values, first) if first.size else values
        kept = summed != 0
        return cls._of_keys(keys[first][kept], summed[kept], size, width)

    @classmethod
    def _of_keys(cls, keys: NDArray[np.int64], counts: NDArray[np.int64], size: int, width: int) -> Histogram:
        """Counts by node * width + cell, which rises."""
        rows, columns = np.divmod(keys, width)
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=size))]).astype(np.int64)
        return cls(starts, columns, counts, width)

    def rows(self) -> NDArray[np.int64]:
        """The node of every stored count."""
        return np.repeat(np.arange(self.nodes, dtype=np.int64), np.diff(self.starts))

    def up(self, spine: Spine, level: int) -> Histogram:
        """From the counts of ``level + 1`` to those of ``level``."""
        parents = spine.parents[level + 1][self.rows()]
        return Histogram.of_counts(parents, self.cells, self.counts, spine.size(level), self.width)

    def dense(self, start: int, stop: int) -> NDArray[np.int64]:
        """The counts of some nodes as a table (nodes, cells)."""
        out = np.zeros((stop - start, self.width), dtype=np.int64)
        part = slice(int(self.starts[start]), int(self.starts[stop]))
        rows = np.repeat(np.arange(stop - start), np.diff(self.starts[start : stop + 1]))
        out[rows, self.cells[part]] = self.counts[part]
        return out

    def totals(self) -> NDArray[np.int64]:
        """The total of every node."""
        sums = np.concatenate([[0], np.cumsum(self.counts)])
        return np.asarray(sums[self.starts[1:]] - sums[self.starts[:-1]])

    def grouped(self, groups: NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """The counts of every node summed by group of cells: (nodes, size); group -1 is left out."""
        g = groups[self.cells]
        kept = g >= 0
        flat = self.rows()[kept] * size + g[kept]
        out = np.zeros(self.nodes * size, dtype=np.int64)
        np.add.at(out, flat, self.counts[kept])
        return out.reshape(self.nodes, size)


def levels_of(leaves: Histogram, spine: Spine) -> tuple[Histogram, ...]:
    """The histograms of every level, root first."""
    out = [leaves]
    for level in range(spine.depth - 2, -1, -1):
        out.insert(0, out[0].up(spine, level))
    return tuple(out)


def count_cells(frame: pl.DataFrame, schema: Schema, spine: Spine, leaf: str) -> Histogram:
    """Count records by leaf and cell.

    Refused where a leaf is not on the spine or a value is not among an attribute's levels; messages name
    the column and the number of records, never a value.
    """
    require_columns(frame, (leaf, *schema.names), "data")
    nodes = spine.locate(frame.get_column(leaf))
    cells = np.zeros(frame.height, dtype=np.int64)
    width = 1
    for attribute in schema.attributes:
        assert attribute.levels is not None
        codes = level_codes(frame.get_column(attribute.name), attribute.name, attribute.levels)
        cells = cells * len(attribute.levels) + codes
        width *= len(attribute.levels)
    return Histogram.of_pairs(nodes, cells, spine.size(spine.depth - 1), width)
