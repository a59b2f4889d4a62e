"""Constraints as numbers, against enumeration of every integer table on tiny trees."""

from __future__ import annotations

import itertools
from functools import cache, reduce

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from support.strategies import reproducibly
from support.topdown_strategies import CAP, Case, cases, histograms, matches

from stirred.data.spine import Spine
from stirred.errors import InputError
from stirred.spec.invariant import Condition, Count
from stirred.spec.schema import Schema
from stirred.topdown.bounds import UNBOUNDED, Bounds
from stirred.topdown.cells import Cells
from stirred.topdown.constraint import Declared, Edit, EqualTo, Facilities, Invariant, StructuralZero
from stirred.topdown.invariants import earlier_key, invariant_values, value_key

Table = tuple[int, ...]


def bounds_of(case: Case) -> Bounds:
    values = invariant_values(case.constraints, case.units(), case.spine, case.histograms())
    return Bounds(case.cells, case.spine, "person", case.constraints, values, case.units())


class Oracle:
    """The tables that nodes can have, by enumeration from the leaves; nothing is taken from ``Bounds``."""

    def __init__(self, case: Case, most: int) -> None:
        self.case, self.most = case, most
        self.cells = case.cells
        self.truth = case.histograms()

    @cache  # noqa: B019
    def wide(self, total: int) -> tuple[Table, ...]:
        """Every table with at most this total."""
        out = []
        for bars in itertools.combinations(range(total + self.cells.count), self.cells.count):
            edges = (-1, *bars)
            out.append(tuple(b - a - 1 for a, b in itertools.pairwise(edges)))
        return tuple(out)

    @cache  # noqa: B019
    def rules(self, level: int, node: int) -> list[tuple[np.ndarray, int, int]]:
        """The declared constraints of one node as (cells, least, most)."""
        out = []
        for declared in self.case.constraints:
            out += self._rules(declared, level, node)
        return out

    def _rules(self, declared: Declared, level: int, node: int) -> list[tuple[np.ndarray, int, int]]:
        name = self.case.spine.levels[level]
        own = self.truth["person"][level].dense(node, node + 1)[0]
        if isinstance(declared, StructuralZero):
            return [(matches(self.cells, declared.where), 0, 0)]
        if isinstance(declared, Invariant):
            if declared.count.unit != "person" or name not in declared.count.by:
                return []
            where = {c.attribute: c.levels for c in declared.count.where}
            parts = [part for part in declared.count.by if part != name]
            groups = [g & matches(self.cells, where) for g in self._groups(parts)]
            return [(g, int(own[g].sum()), int(own[g].sum())) for g in groups]
        assert isinstance(declared, Edit | Facilities)
        if name != declared.level:
            return []
        if isinstance(declared, Edit):
            most = UNBOUNDED if declared.at_most is None else declared.at_most
            groups = self._groups([] if declared.query == "total" else [declared.query])
            inside = matches(self.cells, declared.where)
            return [(g & inside, declared.at_least, most) for g in groups if (g & inside).any()]
        built = self.truth["building"][level].dense(node, node + 1)[0]
        out = []
        for kind, (label, group) in enumerate(
            zip(
                self.case.counted["building"].attributes[0].levels,
                self._groups([declared.attribute]),
                strict=True,
            )
        ):
            least = int(built[kind]) if label in declared.at_least_one else 0
            out.append((group, least, int(built[kind]) * declared.cap))
        return out

    def _groups(self, parts: list[str]) -> list[np.ndarray]:
        schema = self.case.schema
        keys = [tuple(schema.value(r, part) for part in parts) for r in schema.records()]
        return [np.array([key == one for key in keys]) for one in dict.fromkeys(keys)]

    def allowed(self, level: int, node: int, table: Table) -> bool:
        x = np.array(table)
        return all(least <= x[cells].sum() <= most for cells, least, most in self.rules(level, node))

    @cache  # noqa: B019
    def possible(self, level: int, node: int) -> frozenset[Table]:
        """Tables of a node, with at most ``most`` records, that leaves below it can add up to."""
        spine = self.case.spine
        if level == spine.depth - 1:
            own: frozenset[Table] = frozenset(self.wide(self.most))
        else:
            start, stop = spine.starts(level)[node : node + 2]
            parts = [self.possible(level + 1, child) for child in range(start, stop)]
            own = reduce(self._sum, parts)
        return frozenset(table for table in own if self.allowed(level, node, table))

    def _sum(self, first: frozenset[Table], second: frozenset[Table]) -> frozenset[Table]:
        sums = {tuple(map(sum, zip(a, b, strict=True))) for a in first for b in second}
        return frozenset(t for t in sums if sum(t) <= self.most)


def claimed(bounds: Bounds, level: int, node: int, table: Table, *, with_sets: bool = True) -> bool:
    """Whether a table keeps the numbers that ``Bounds`` has for its node."""
    x = np.array(table)
    if x[bounds.zero].any():
        return False
    for partition, low, high in bounds.at(level, node, node + 1):
        kept = partition.groups >= 0
        sums = np.bincount(partition.groups[kept], x[kept], minlength=partition.size)
        if (sums < low[0]).any() or (sums > high[0]).any():
            return False
    extra = bounds.set_bounds(level, node, node + 1) if with_sets else []
    return all(s.lower[0] <= x[s.cells].sum() <= s.upper[0] for s in extra)


def nodes(spine: Spine) -> list[tuple[int, int]]:
    return [(level, node) for level in range(spine.depth) for node in range(spine.size(level))]


def small(case: Case) -> int:
    """Enough records for every bound to bite, few enough to enumerate; zero if that is too many."""
    total = int(case.tables["person"].sum()) + 1
    return total if len(Oracle(case, total).wide(total)) <= 3000 else 0


@reproducibly(150)
@given(cases(largest=2, max_leaves=4, max_attributes=2))
def test_what_keeps_the_bounds_of_a_node_is_what_its_leaves_can_add_up_to(case):
    """The guarantee: a table that keeps the bounds can be split down to the leaves; and no more is asked."""
    most = small(case)
    if not most:
        return
    bounds, oracle = bounds_of(case), Oracle(case, most)
    for level, node in nodes(case.spine):
        found = {t for t in oracle.wide(most) if claimed(bounds, level, node, t)}
        assert found == oracle.possible(level, node), (level, node)


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
    size = int(rng.integers(2, 5))
    labels = tuple(range(size))
    table = rng.choice([0, 0, 0, 1, 1, 2], (len(rows), size))
    truth = histograms(table, spine)
    declared: list[Declared] = [
        Invariant(count=Count(unit="person", by=(level,))) for level in levels if rng.random() < 0.5
    ]
    units, counted = {"person": table}, {}
    place = int(rng.integers(len(levels)))
    if rng.random() < 0.75:
        people = truth[place].dense(0, spine.size(place))
        occupied = tuple(k for k in labels if rng.random() < 0.4)
        cap = int(rng.integers(1, 4))
        least = -(-people // cap)
        more = np.where(np.isin(labels, occupied)[None, :], np.maximum(people, least), least + 1)
        built = np.minimum(least + rng.integers(0, 2, people.shape), more)
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


@pytest.mark.parametrize("block", range(8))
def test_totals_and_groups_at_different_levels_never_end_in_a_dead_end(block):
    enumerated = with_sets = 0
    for seed in range(60 * block, 60 * (block + 1)):
        case = cross(seed)
        most = small(case)
        if not most:
            continue
        bounds, oracle = bounds_of(case), Oracle(case, most)
        enumerated += 1
        with_sets += any(bounds.sets.values())
        for level, node in nodes(case.spine):
            found = {t for t in oracle.wide(most) if claimed(bounds, level, node, t)}
            assert found == oracle.possible(level, node), (seed, level, node)
    assert enumerated >= 40 and with_sets >= 2
