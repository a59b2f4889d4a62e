"""Protected tables of one universe: integer counts of every level, as tables, microdata and other areas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from stirred.data import Histogram, Spine, require_columns
from stirred.errors import InputError
from stirred.interchange import as_polars
from stirred.spec import Level
from stirred.topdown.cells import Cells, Query
from stirred.topdown.invariants import level_number

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from stirred.topdown.estimation import LevelEffort


@dataclass(frozen=True, eq=False)
class Estimates:
    """Counts of every level, root first; children add up to their parents."""

    unit: str
    cells: Cells
    spine: Spine
    levels: tuple[Histogram, ...]
    effort: Mapping[str, LevelEffort] = field(default_factory=dict, repr=False)

    def table(self, level: str, query: str = "total") -> pl.DataFrame:
        """One row for every node of a level and every count of a query, zeros included."""
        depth = level_number(self.spine, level, "level", "For other areas, hand over a crosswalk.")
        asked = self.cells.query(query)
        counts = self.levels[depth].grouped(asked.groups, asked.size)
        codes = [self.spine.code(depth, node) for node in range(self.spine.size(depth))]
        return counts_frame(level, codes, asked, {"count": counts})

    def other_areas(self, crosswalk: object, area: str, query: str = "total") -> pl.DataFrame:
        """Counts of areas that are not on the spine, from a table that says which area each leaf lies in.

        ``crosswalk`` has the column of leaf codes and the column ``area``; a leaf may be in no area.
        """
        import polars as pl

        leaf = self.spine.levels[-1]
        frame = as_polars(crosswalk)
        require_columns(frame, (leaf, area), "crosswalk")
        if frame.get_column(leaf).n_unique() != frame.height:
            raise InputError(
                f"a {leaf} is listed twice in the crosswalk",
                field="crosswalk",
                expected="every leaf in at most one area",
                hint="Make one crosswalk for each kind of area.",
            )
        frame = frame.filter(pl.col(area).is_not_null())
        leaves = self.spine.locate(frame.get_column(leaf))
        names = frame.get_column(area).cast(pl.String)
        codes = names.unique().sort().to_list()
        asked = self.cells.query(query)
        own = self.levels[-1]
        position = {code: i for i, code in enumerate(codes)}
        area_of = np.full(own.nodes, -1, dtype=np.int64)
        area_of[leaves] = [position[name] for name in names]
        areas = area_of[own.rows()]
        inside = areas >= 0
        summed = Histogram.of_counts(
            areas[inside], own.cells[inside], own.counts[inside], len(codes), own.width
        )
        return counts_frame(area, codes, asked, {"count": summed.grouped(asked.groups, asked.size)})

    def microdata(self) -> pl.DataFrame:
        """One row a record, in the order of leaves and cells: the order says nothing about the input."""
        import polars as pl

        leaves = self.levels[-1]
        repeat = leaves.counts
        codes = pl.Series(self.spine.levels[-1], self.spine.leaf_codes(), dtype=pl.String)
        columns = [codes.gather(pl.Series(np.repeat(leaves.rows(), repeat)))]
        coordinates = np.unravel_index(np.repeat(leaves.cells, repeat), self.cells.shape)
        for name, levels, index in zip(self.cells.names, self.cells.levels, coordinates, strict=True):
            columns.append(_labels(levels).alias(name).gather(pl.Series(index)))
        return pl.DataFrame(columns)


def counts_frame(
    level: str, codes: Sequence[str], query: Query, columns: dict[str, NDArray[np.int64]]
) -> pl.DataFrame:
    """Tables (nodes, counts) as rows: the node's code, the query's parts, the values.

    A column of values gets an underscore where a part already has its name.
    """
    import polars as pl

    labels = query.labels()
    out = {level: pl.Series(codes, dtype=pl.String).gather(np.repeat(np.arange(len(codes)), len(labels)))}
    for i, part in enumerate(query.parts):
        values = _labels([label[i] for label in labels])
        out[part] = values.gather(np.tile(np.arange(len(labels)), len(codes)))
    for name, table in columns.items():
        free = name
        while free in out:
            free += "_"
        out[free] = pl.Series(table.reshape(-1))
    return pl.DataFrame(out)


def _labels(levels: Sequence[Level]) -> pl.Series:
    """Levels as they are written in the schema: whole numbers, or else text."""
    import polars as pl

    whole = all(isinstance(level, int) for level in levels)
    return pl.Series(levels) if whole else pl.Series([str(level) for level in levels])
