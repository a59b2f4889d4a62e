"""Ragged geographies at random, and a twin of the spine that only uses dictionaries."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from hypothesis import strategies as st

from stirred.data import Spine

LEVELS = ("nation", "state", "county", "tract", "block")

Row = tuple[str | None, ...]
Name = tuple[int, str]


@st.composite
def leaf_rows(draw: st.DrawFn, max_leaves: int = 12, gaps: bool = True) -> list[Row]:
    """Leaves of a random tree in random order, one to five levels, only children common.

    Codes repeat between levels. Some nodes have no code. Most of these lists nest, some do not.
    """
    depth = draw(st.integers(1, len(LEVELS)))
    paths: list[list[str | None]] = [[str(i)] for i in range(draw(st.sampled_from([1, 1, 1, 2])))]
    for level in range(1, depth):
        grown: list[list[str | None]] = []
        missing: set[int] = set()
        for number, path in enumerate(paths):
            room = max_leaves - len(grown) - (len(paths) - number)
            for _ in range(1 + min(max(room, 0), draw(st.sampled_from([0, 0, 1, 2])))):
                if gaps and draw(st.integers(0, 5)) == 0:
                    missing.add(len(grown))
                grown.append([*path, str(len(grown))])
        for number in missing:
            grown[number][level] = None
        paths = grown
    return draw(st.permutations([tuple(path) for path in paths]))


def frame_of(rows: list[Row]) -> pl.DataFrame:
    """The rows as a table, with a column for every level."""
    names = LEVELS[: len(rows[0])]
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def spine_of(rows: list[Row]) -> Spine:
    """The spine of the rows."""
    return Spine.from_columns(frame_of(rows), LEVELS[: len(rows[0])])


def name_of(row: Row, level: int) -> Name:
    """The node a leaf lies in: its code with the level it is from, the nearest below or else above."""
    for near in (*range(level, len(row)), *range(level - 1, -1, -1)):
        code = row[near]
        if code is not None:
            return near, code
    raise AssertionError("the root has a code")


@dataclass
class Twin:
    """Parents and children as dictionaries; ``fault`` says why there is no tree."""

    rows: list[Row]

    @property
    def depth(self) -> int:
        return len(self.rows[0])

    def fault(self) -> str | None:
        for level in range(1, self.depth):
            pairs = {(name_of(row, level), name_of(row, level - 1)) for row in self.rows}
            if len(pairs) != len({below for below, _ in pairs}):
                return "do not nest"
        if len({name_of(row, self.depth - 1) for row in self.rows}) != len(self.rows):
            return "listed twice"
        if len({self.leaf_code(row) for row in self.rows}) != len(self.rows):
            return "known by the same code"
        return None

    def leaf_code(self, row: Row) -> str:
        return next(code for code in reversed(row) if code is not None)

    def nodes(self, level: int) -> set[Name]:
        return {name_of(row, level) for row in self.rows}

    def children(self, level: int, node: Name) -> set[Name]:
        return {name_of(row, level + 1) for row in self.rows if name_of(row, level) == node}

    def leaves(self, level: int, node: Name) -> set[str]:
        return {self.leaf_code(row) for row in self.rows if name_of(row, level) == node}
