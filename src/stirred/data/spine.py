"""The spine: geography as a tree, from a public list of its leaves.

The tree comes from public geography, never from the data: a block without people is on it, and whether a
node has one child is a fact about the map. A code that is missing at a level (a *ragged* spine) makes a
node of its own there, an only child or only parent, which has the same content as the node it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.data.levels import places, require_codes
from stirred.errors import InputError
from stirred.interchange import as_polars

if TYPE_CHECKING:
    import polars as pl

KEY = 4


@dataclass(frozen=True, eq=False)
class Spine:
    """Levels from root to leaf; nodes of a level in order, the children of a node side by side.

    ``codes[l]`` are the codes of the nodes of level l (None for a node that stands for a missing code),
    ``parents[l]`` the position of each node's parent on the level above (empty for the first level).
    """

    levels: tuple[str, ...]
    codes: tuple[tuple[str | None, ...], ...]
    parents: tuple[NDArray[np.int64], ...]

    @classmethod
    def from_columns(cls, leaves: object, levels: Sequence[str]) -> Spine:
        """One row a leaf, one column of codes a level, root first; codes are unique within a level."""
        import polars as pl

        frame = as_polars(leaves)
        _check_levels(levels)
        for name in levels:
            if name not in frame.columns:
                raise InputError(
                    f"the geography has no column {name}",
                    field=name,
                    expected="a column of codes for every level",
                    hint="Name the levels as the columns are named, root first.",
                )
            require_codes(frame.get_column(name), name)
        frame = pl.DataFrame([frame.get_column(name).cast(pl.String) for name in levels])
        if frame.height == 0:
            raise InputError(
                "the geography has no leaves",
                field=levels[-1],
                expected="one row for every leaf of the spine",
                hint="List every leaf, populated or not.",
            )
        return _built(frame, tuple(levels))

    @classmethod
    def from_prefixes(cls, codes: Sequence[str], lengths: Mapping[str, int]) -> Spine:
        """Levels as prefixes of the leaf codes: ``{"state": 2, "county": 5, ...}``, shortest first."""
        import polars as pl

        widths = list(lengths.values())
        if widths != sorted(set(widths)) or not widths or widths[0] < 0:
            raise InputError(
                "prefix lengths do not grow from level to level",
                field="levels",
                expected="lengths in increasing order, root first",
                hint="The root may have length 0.",
            )
        whole: list[object] = list(codes)
        if not all(isinstance(code, str) and len(code) == widths[-1] for code in whole):
            raise InputError(
                "a leaf code has another length than the last level",
                field=list(lengths)[-1],
                expected=f"{widths[-1]} characters",
                hint="Pad codes with leading zeros and read them as text.",
            )
        column = pl.Series("code", whole, dtype=pl.String)
        frame = pl.DataFrame({name: column.str.slice(0, n) for name, n in lengths.items()})
        return cls.from_columns(frame, tuple(lengths))

    @property
    def depth(self) -> int:
        """How many levels there are."""
        return len(self.levels)

    def size(self, level: int) -> int:
        """How many nodes a level has."""
        return len(self.codes[level])

    def starts(self, level: int) -> NDArray[np.int64]:
        """Where the children of each node begin on the level below, with the end at the last place."""
        return self._starts[level]

    @cached_property
    def _starts(self) -> tuple[NDArray[np.int64], ...]:
        counts = [np.bincount(p, minlength=self.size(i)) for i, p in enumerate(self.parents[1:])]
        return tuple(np.concatenate([[0], np.cumsum(c)]).astype(np.int64) for c in counts)

    def only_child(self, level: int) -> NDArray[np.bool_]:
        """Which nodes have no sibling: their content is their parent's."""
        if level == 0:
            return np.zeros(self.size(0), dtype=np.bool_)
        siblings = np.bincount(self.parents[level], minlength=self.size(level - 1))
        return np.asarray(siblings[self.parents[level]] == 1)

    def reach(self, level: int) -> NDArray[np.int64]:
        """The last level on which each node still has the same content, going down by only children."""
        if level == self.depth - 1:
            return np.full(self.size(level), level, dtype=np.int64)
        below, starts = self.reach(level + 1), self.starts(level)
        single = np.diff(starts) == 1
        out = np.full(self.size(level), level, dtype=np.int64)
        out[single] = below[starts[:-1][single]]
        return out

    def sums(self, level: int, values: NDArray[Any]) -> NDArray[Any]:
        """From values of the nodes of ``level + 1`` (on the first axis) to those of ``level``."""
        return np.add.reduceat(values, self.starts(level)[:-1], axis=0)

    def ancestors(self, level: int, of: int | None = None) -> NDArray[np.int64]:
        """For every node of a lower level (the leaves if not given) its ancestor on ``level``."""
        bottom = self.depth - 1 if of is None else of
        out = np.arange(self.size(bottom), dtype=np.int64)
        for below in range(bottom, level, -1):
            out = self.parents[below][out]
        return out

    def code(self, level: int, node: int) -> str:
        """The code of a node; where it has none, the nearest one below or else above that it stands for."""
        for below in range(level, self.depth):
            code = self.codes[below][node]
            if code is not None:
                return code
            if below + 1 < self.depth:
                node = int(self.starts(below)[node])
        return self.leaf_codes()[node]

    def name(self, level: int, node: int) -> str:
        """A node for messages: its level and code."""
        return f"{self.levels[level]} {self.code(level, node)}".strip()

    def locate(self, codes: pl.Series) -> NDArray[np.int64]:
        """The leaf of every record, from the code of its leaf; refused if one is unknown."""
        last = self.levels[-1]
        found = places(codes, last, self._leaf_places)
        if (found < 0).any():
            raise InputError(
                f"some records have a {last} that the geography does not list",
                field=last,
                expected="codes of the public geography",
                hint="Compare the two lists of codes (leading zeros, an older edition of the map).",
            )
        return found

    @cached_property
    def _leaf_places(self) -> dict[str, int]:
        return {code: place for place, code in enumerate(self.leaf_codes())}

    def leaf_codes(self) -> tuple[str, ...]:
        """The code by which each leaf is known: its own, or the nearest above where its own is missing."""
        return self._leaf_codes

    @cached_property
    def _leaf_codes(self) -> tuple[str, ...]:
        out = list(self.codes[-1])
        position = np.arange(len(out))
        for level in range(self.depth - 1, 0, -1):
            position = self.parents[level][position]
            out = [
                c if c is not None else self.codes[level - 1][p] for c, p in zip(out, position, strict=True)
            ]
        return tuple(c if c is not None else "" for c in out)

    def table(self) -> pl.DataFrame:
        """One row a leaf, one column of codes a level: the geography again, in spine order."""
        return self._table

    @cached_property
    def _table(self) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame(
            {
                name: [self.codes[level][i] for i in self.ancestors(level)]
                for level, name in enumerate(self.levels)
            },
            schema=dict.fromkeys(self.levels, pl.String),
        )


def _check_levels(levels: Sequence[str]) -> None:
    if not levels or len(set(levels)) != len(levels):
        raise InputError(
            "the levels of the spine are empty or repeated",
            field="levels",
            expected="one or more different names, root first",
            hint="For example county, tract, block_group, block.",
        )


def _built(frame: pl.DataFrame, levels: tuple[str, ...]) -> Spine:
    import polars as pl

    if frame.select(pl.col(levels[0]).is_null().any()).item():
        raise InputError(
            f"a leaf has no code at the first level, {levels[0]}",
            field=levels[0],
            expected="every leaf under a root",
            hint="Give the root a code; only lower levels may be missing.",
        )
    # A missing code makes a node of its own, which one leaf or one node below passes through.
    keys = [_key_column(frame, levels, depth) for depth in range(len(levels))]
    frame = frame.with_columns(keys)
    _check_nesting(frame, levels)
    frame = frame.sort([f"__{d}" for d in range(len(levels))])
    codes: list[tuple[str | None, ...]] = []
    parents: list[NDArray[np.int64]] = []
    above: NDArray[np.int64] | None = None
    for depth, name in enumerate(levels):
        numbers = frame.get_column(f"__{depth}").rle_id().to_numpy().astype(np.int64)
        first = np.flatnonzero(np.diff(numbers, prepend=-1))
        codes.append(tuple(frame.get_column(name).gather(first).to_list()))
        parents.append(above[first] if above is not None else np.empty(0, dtype=np.int64))
        above = numbers
    if len(codes[-1]) != frame.height:
        raise InputError(
            f"a {levels[-1]} is listed twice in the geography",
            field=levels[-1],
            expected="one row for every leaf",
            hint="Remove duplicates from the list of leaves.",
        )
    spine = Spine(levels, tuple(codes), tuple(parents))
    if len(set(spine.leaf_codes())) != frame.height:
        raise InputError(
            "two leaves are known by the same code",
            field=levels[-1],
            expected="codes that differ, also between levels where a leaf has none of its own",
            hint="Use full codes, or give every leaf a code.",
        )
    return spine


def _key_column(frame: pl.DataFrame, levels: tuple[str, ...], depth: int) -> pl.Expr:
    """A text that identifies the node of each leaf: its code, or the nearest one that it stands for.

    In front of the code stands how far away its level is, so that codes of different levels never meet.
    """
    import polars as pl

    nearest = [*range(depth, len(levels)), *range(depth - 1, -1, -1)]
    near = [pl.lit(f"{n:0{KEY}}") + pl.col(levels[level]) for n, level in enumerate(nearest)]
    return pl.coalesce(near).alias(f"__{depth}")


def _check_nesting(frame: pl.DataFrame, levels: tuple[str, ...]) -> None:
    import polars as pl

    for depth in range(1, len(levels)):
        pairs = frame.select(f"__{depth}", f"__{depth - 1}").unique()
        repeated = pairs.height - pairs.get_column(f"__{depth}").n_unique()
        if repeated:
            example = pairs.filter(pl.col(f"__{depth}").is_duplicated()).get_column(f"__{depth}").min()
            raise InputError(
                f"the codes do not nest: {levels[depth]} {str(example)[KEY:]} lies in more than one "
                f"{levels[depth - 1]}",
                field=levels[depth],
                expected=f"every {levels[depth]} within one {levels[depth - 1]}",
                hint="Use full codes (state and county included), which are unique in the whole spine.",
            )
