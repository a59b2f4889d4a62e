"""Hypothesis strategies for TopDown: ragged spines, schemas with recodes, workloads, true constraints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from hypothesis import strategies as st

from stirred.data import Histogram, Spine, levels_of
from stirred.spec import Attribute, Condition, Count, Recode, Schema
from stirred.topdown import Allocation, Cells, Edit, Facilities, Invariant, StructuralZero
from stirred.topdown.constraint import Declared

LEVEL_NAMES = ("us", "state", "county", "block")
CAP = 3


@st.composite
def spines(draw: st.DrawFn, max_leaves: int = 9) -> Spine:
    """One to four levels; only children are common, and inner codes may be missing."""
    levels = LEVEL_NAMES[: draw(st.integers(1, 4))]
    paths: list[list[str | None]] = [["0"]]
    for depth in range(1, len(levels)):
        grown: list[list[str | None]] = []
        for number, path in enumerate(paths):
            count = draw(st.integers(1, 3)) if len(grown) + len(paths) - number < max_leaves else 1
            for child in range(count):
                grown.append([*path, f"{depth}.{number}.{child}"])
        paths = grown
    if len(levels) > 2 and draw(st.booleans()):
        depth = draw(st.integers(1, len(levels) - 2))
        missing = {path[depth + 1]: draw(st.integers(0, 2)) == 0 for path in paths}
        for path in paths:
            if missing[path[depth + 1]]:
                path[depth] = None
    frame = pl.DataFrame(paths, schema=dict.fromkeys(levels, pl.String), orient="row")
    return Spine.from_columns(frame, levels)


@st.composite
def schemas(draw: st.DrawFn, max_attributes: int = 3) -> Schema:
    """One to three attributes of one to three levels, whole numbers or text, and recodes of some."""
    attributes, recodes = [], []
    for name in ("sex", "age", "race")[: draw(st.integers(1, max_attributes))]:
        size = draw(st.integers(1, 3))
        levels: tuple[Any, ...] = tuple(range(1, size + 1))
        if draw(st.booleans()):
            levels = tuple(f"{name}-{i}" for i in range(size))
        attributes.append(Attribute(name=name, levels=levels))
        if size > 1 and draw(st.booleans()):
            cut = draw(st.integers(1, size - 1))
            groups = {"first": levels[:cut], "rest": levels[cut:]}
            recodes.append(Recode(name=f"{name}_group", attribute=name, groups=groups))
    return Schema(attributes=tuple(attributes), recodes=tuple(recodes))


def parts_of(schema: Schema) -> list[str]:
    """Everything that a query may name."""
    return [*schema.names, *(recode.name for recode in schema.recodes)]


@st.composite
def queries(draw: st.DrawFn, cells: Cells) -> str:
    """A query over some attributes or recodes, in the canonical spelling."""
    chosen = []
    for name in cells.names:
        options = [None, name, *(r.name for r in cells.schema.recodes if r.attribute == name)]
        part = draw(st.sampled_from(options))
        if part is not None:
            chosen.append(part)
    return cells.canonical(" * ".join(chosen)) if chosen else "total"


@st.composite
def allocations(
    draw: st.DrawFn, cells: Cells, levels: Sequence[str], *, detailed: bool = False, rho: object = None
) -> Allocation:
    """Shares in small whole numbers over their sum; every level with a workload of its own."""
    weights = {level: draw(st.integers(1, 5)) for level in levels}
    by_level = {}
    for level in levels:
        names = set(draw(st.lists(queries(cells), min_size=1, max_size=3)))
        if detailed:
            names.add("detailed")
        own = {name: draw(st.integers(1, 4)) for name in sorted(names)}
        by_level[level] = {name: Fraction(n, sum(own.values())) for name, n in own.items()}
    total = sum(weights.values())
    change = draw(st.sampled_from(("replace-one", "add-remove")))
    amount = draw(st.sampled_from(("1/10", 1, 20))) if rho is None else rho
    shares = {level: Fraction(n, total) for level, n in weights.items()}
    return Allocation.of(cells, amount, shares, by_level, change)


@dataclass(frozen=True, eq=False)
class Case:
    """A spine, records and constraints that the records keep."""

    spine: Spine
    schema: Schema
    tables: Mapping[str, np.ndarray]  # leaf tables (leaves, cells) of every unit
    constraints: tuple[Declared, ...]
    counted: Mapping[str, Schema] = field(default_factory=dict)

    @property
    def cells(self) -> Cells:
        return Cells(self.schema)

    def units(self) -> dict[str, Cells]:
        return {"person": self.cells} | {unit: Cells(schema) for unit, schema in self.counted.items()}

    def histograms(self) -> dict[str, tuple[Histogram, ...]]:
        return {unit: histograms(table, self.spine) for unit, table in self.tables.items()}

    def data(self) -> dict[str, pl.DataFrame]:
        """The records as frames."""
        return {unit: frame(self.tables[unit], cells, self.spine) for unit, cells in self.units().items()}


def histograms(table: np.ndarray, spine: Spine) -> tuple[Histogram, ...]:
    """Histograms of every level from a dense table of the leaves."""
    rows, columns = np.nonzero(table)
    leaves = Histogram.of_counts(rows, columns, table[rows, columns], *table.shape)
    return levels_of(leaves, spine)


def frame(table: np.ndarray, cells: Cells, spine: Spine) -> pl.DataFrame:
    """One row a record."""
    rows, columns = np.nonzero(table)
    times = table[rows, columns]
    rows, columns = np.repeat(rows, times), np.repeat(columns, times)
    codes = spine.leaf_codes()
    out: dict[str, Any] = {spine.levels[-1]: pl.Series([codes[r] for r in rows], dtype=pl.String)}
    index = np.unravel_index(columns, cells.shape)
    for name, levels, at in zip(cells.names, cells.levels, index, strict=True):
        kind = pl.Int64 if isinstance(levels[0], int) else pl.String
        out[name] = pl.Series([levels[i] for i in at], dtype=kind)
    return pl.DataFrame(out)


def matches(cells: Cells, where: Mapping[str, Sequence[Any]]) -> np.ndarray:
    """Cells with these levels, by going through all cells one by one."""
    schema = cells.schema
    records = list(schema.records())
    return np.array([all(schema.value(r, name) in levels for name, levels in where.items()) for r in records])


@st.composite
def tables(draw: st.DrawFn, leaves: int, cells: int, largest: int = 2) -> np.ndarray:
    """Counts of the leaves, many of them zero; whole leaves are empty at times."""
    count = st.sampled_from((0, 0, 0, *range(1, largest + 1)))
    rows = [
        [0] * cells if draw(st.integers(0, 4)) == 0 else [draw(count) for _ in range(cells)]
        for _ in range(leaves)
    ]
    return np.array(rows, dtype=np.int64).reshape(leaves, cells)


@st.composite
def cases(draw: st.DrawFn, *, largest: int = 2, max_leaves: int = 9, max_attributes: int = 3) -> Case:
    """Constraints of the shapes that estimation is guaranteed to keep, true of the records.

    Totals at some levels; bounds on one partition at some levels, as invariants, edits or facilities;
    structural zeros.
    """
    spine, schema = draw(spines(max_leaves)), draw(schemas(max_attributes))
    cells = Cells(schema)
    leaves = spine.size(spine.depth - 1)
    table = draw(tables(leaves, cells.count, largest))
    constraints: list[Declared] = []
    if draw(st.integers(0, 2)) == 0:
        where = {
            a.name: (draw(st.sampled_from(a.levels)),)
            for a in schema.attributes
            if len(a.levels or ()) > 1 and draw(st.booleans())
        }
        if where:
            table[:, matches(cells, where)] = 0
            constraints.append(StructuralZero(where=where))
    truth = histograms(table, spine)
    for level in spine.levels:
        if draw(st.integers(0, 2)) == 0:
            constraints.append(Invariant(count=Count(unit="person", by=(level,))))
    units: dict[str, np.ndarray] = {"person": table}
    counted: dict[str, Schema] = {}
    part = draw(st.sampled_from(parts_of(schema)))
    query = cells.query(part)
    single = draw(st.sampled_from((False, False, True)))
    where = {part: (draw(st.sampled_from([label[0] for label in query.labels()])),)} if single else {}
    inside = matches(cells, where)
    for depth, level in enumerate(spine.levels):
        counted_groups = np.where(inside, 0, -1) if single else query.groups
        sums = truth[depth].grouped(counted_groups, 1 if single else query.size)
        kind = draw(st.sampled_from(("none", "exact", "edit")))
        if kind == "exact":
            conditions = tuple(Condition(attribute=name, levels=kept) for name, kept in where.items())
            by = (level,) if single else (level, part)
            constraints.append(Invariant(count=Count(unit="person", by=by, where=conditions)))
        elif kind == "edit":
            at_least = max(0, int(sums.min()) - draw(st.integers(0, 1)))
            at_most = int(sums.max()) + draw(st.integers(0, 1)) if draw(st.booleans()) else None
            asked = "total" if single else part
            constraints.append(
                Edit(level=level, query=asked, where=where, at_least=at_least, at_most=at_most)
            )
    if part in schema.names and not single and draw(st.booleans()):
        level = draw(st.sampled_from(spine.levels))
        people = truth[spine.levels.index(level)].grouped(query.groups, query.size)
        labels = [label[0] for label in query.labels()]
        occupied = tuple(label for label in labels if draw(st.booleans()))
        built = np.zeros((leaves, query.size), dtype=np.int64)
        first = np.zeros(spine.size(spine.levels.index(level)), dtype=np.int64)
        above = spine.ancestors(spine.levels.index(level))
        for leaf in range(leaves - 1, -1, -1):
            first[above[leaf]] = leaf
        for node in range(people.shape[0]):
            for g, label in enumerate(labels):
                least = -(-int(people[node, g]) // CAP)
                most = int(people[node, g]) if label in occupied else least + 1
                built[first[node], g] = draw(st.integers(least, max(least, most)))
        units["building"], counted["building"] = built, Schema.of(kind=labels)
        constraints.append(Invariant(count=Count(unit="building", by=(level, "kind"))))
        constraints.append(
            Facilities(
                attribute=part,
                level=level,
                cap=CAP,
                sources={"building": tuple(labels)},
                at_least_one=occupied,
            )
        )
    return Case(spine, schema, units, tuple(constraints), counted)


def cross(seed: int) -> Case:
    """Totals at some levels and facilities or boxes of the same groups at others: where sets matter."""
    rng = np.random.default_rng(seed)
    shape = [(2,), (3,), (4,), (1, 1), (2, 1), (2, 2), (1, 3)][rng.integers(7)]
    if len(shape) == 1:
        levels: tuple[str, ...] = ("state", "block")
        rows = [("0", f"0{b}") for b in range(shape[0])]
    else:
        levels = ("state", "county", "block")
        rows = [("0", f"0{c}", f"0{c}{b}") for c, count in enumerate(shape) for b in range(count)]
    spine = Spine.from_columns(pl.DataFrame(rows, schema=list(levels), orient="row"), levels)
    size = int(rng.choice([2, 3, 4, 4]))
    labels = tuple(range(size))
    table = rng.choice([0, 0, 0, 0, 1, 1, 2], (len(rows), size))
    truth = histograms(table, spine)
    declared: list[Declared] = [
        Invariant(count=Count(unit="person", by=(level,))) for level in levels if rng.random() < 0.6
    ]
    units, counted = {"person": table}, {}
    place = int(rng.integers(len(levels)))
    if rng.random() < 0.75:
        people = truth[place].dense(0, spine.size(place))
        occupied = tuple(k for k in labels if rng.random() < 0.4)
        cap = int(rng.integers(1, 4))
        least = -(-people // cap)
        more = np.where(np.isin(labels, occupied)[None, :], np.maximum(people, least), least + 1)
        built = np.minimum(least + (rng.random(people.shape) < 0.25), more)
        first = np.searchsorted(spine.ancestors(place), np.arange(spine.size(place)))
        units["building"] = np.zeros_like(table)
        units["building"][first] = built
        counted["building"] = Schema.of(kind=labels)
        declared += [
            Invariant(count=Count(unit="building", by=(levels[place], "kind"))),
            Facilities(
                attribute="group",
                level=levels[place],
                cap=cap,
                sources={"building": labels},
                at_least_one=occupied,
            ),
        ]
    for depth, level in enumerate(levels):
        if rng.random() < 0.3:
            sums = truth[depth].dense(0, spine.size(depth))
            top = int(sums.max()) + int(rng.integers(2)) if rng.random() < 0.7 else None
            declared.append(Edit(level=level, query="group", at_least=int(sums.min()), at_most=top))
        if rng.random() < 0.2:
            total = truth[depth].totals()
            declared.append(
                Edit(level=level, at_least=max(0, int(total.min()) - 1), at_most=int(total.max()) + 1)
            )
    return Case(spine, Schema.of(group=labels), units, tuple(declared), counted)
