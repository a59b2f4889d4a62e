"""Constraints as numbers: for every node bounds on sums of cells, with those that the nodes below imply.

Guarantee
    If every universe-wide constraint is of the shapes below, an integer table of a node that keeps the bounds
    here can be split among its children so that they keep theirs, down to the leaves: estimation never ends
    in a dead end. The shapes: bounds on the groups of one partition of the cells, at any levels (at most ten
    groups if totals are bounded below the first level; groups that no bound names are one group); bounds on
    totals, at any levels; structural zeros. The reason: such tables form an integral generalised polymatroid,
    sums of them are again one (with the sums of the bounds on every set of groups), and so are cuts with
    boxes and with totals (Frank and Tardos, 1988). Bounds on single groups are not enough once totals are
    fixed below: ``sets`` has the others.
    Other shapes (partitions that cross) are kept by the integer programme, without this guarantee.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.data import Histogram, Spine
from stirred.errors import InputError
from stirred.spec import Level
from stirred.topdown.cells import Cells, Query
from stirred.topdown.constraint import Declared, Edit, Facilities, Invariant, StructuralZero
from stirred.topdown.invariants import (
    Values,
    earlier_key,
    facilities,
    level_number,
    matching,
    split_count,
    value_key,
)

UNBOUNDED = 1 << 40
LARGEST_SET_FUNCTION = 10


@dataclass(frozen=True, eq=False)
class Partition:
    """Groups of cells whose sums are bounded, every cell in one, numbered as they first occur."""

    names: tuple[str, ...]
    groups: NDArray[np.int64]
    size: int


@dataclass(eq=False)
class Limits:
    """Lower and upper bounds of a partition on every level that has some: (nodes, groups)."""

    lower: dict[int, NDArray[np.int64]]
    upper: dict[int, NDArray[np.int64]]

    def meet(self, level: int, lower: NDArray[np.int64], upper: NDArray[np.int64]) -> None:
        """Add bounds to those that a level already has."""
        if level in self.lower:
            lower = np.maximum(lower, self.lower[level])
            upper = np.minimum(upper, self.upper[level])
        self.lower[level], self.upper[level] = lower, upper


@dataclass(frozen=True, eq=False)
class SetBound:
    """A bound on a set of cells that is more than its groups and the total imply."""

    cells: NDArray[np.bool_]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]


class Bounds:
    """The numeric constraints of one universe on one spine."""

    def __init__(
        self,
        cells: Cells,
        spine: Spine,
        unit: str,
        declared: Sequence[Declared],
        values: Values,
        units: Mapping[str, Cells] | None = None,
    ) -> None:
        self.cells = cells
        self.spine = spine
        self.unit = unit
        self.units = units or {unit: cells}
        self.zero = np.zeros(cells.count, dtype=np.bool_)
        self._zeros: list[tuple[str, NDArray[np.bool_]]] = []
        self.partitions: list[Partition] = []
        self.limits: list[Limits] = []
        self.axes: set[int] = set()
        self._totals_declared: set[int] = set()
        self.sets: dict[int, list[SetBound]] = {}
        for declaration in declared:
            self._add(declaration, values)
        self._propagate()

    def _add(self, declared: Declared, values: Values) -> None:
        if not isinstance(declared, Invariant) and declared.unit != self.unit:
            return
        if isinstance(declared, StructuralZero):
            cells = matching(self.cells, declared.where)
            self.zero |= cells
            self._zeros.append((declared.sentence(), cells))
            self._speaks_of(*(self.cells.query(name) for name in declared.where))
        elif isinstance(declared, Invariant):
            if declared.count.unit == self.unit:
                level, query, where = split_count(declared.count, self.cells, self.spine)
                exact = values[value_key(declared.count)]
                self._bound(declared.count.sentence(), level, query, where, exact, exact)
        elif isinstance(declared, Facilities):
            self._add_facilities(declared, values)
        elif isinstance(declared, Edit):
            query, level = self.cells.query(declared.query), level_number(self.spine, declared.level)
            shape = (self.spine.size(level), query.size)
            most = UNBOUNDED if declared.at_most is None else declared.at_most
            lower, upper = (np.full(shape, end, dtype=np.int64) for end in (declared.at_least, most))
            self._bound(declared.sentence(), level, query, declared.where, lower, upper)
        else:
            query, level = self.cells.query(declared.query), level_number(self.spine, declared.level)
            key = earlier_key(declared.release, declared.level, query.name)
            if key not in values:
                raise InputError(
                    f"the release {declared.release} has no table {query.name} by {declared.level}",
                    field="constraints.equal_to",
                    expected="a table of an earlier release of the same geography",
                    hint="Hand over the earlier release's tables.",
                )
            self._bound(declared.sentence(), level, query, {}, values[key], values[key])

    def _add_facilities(self, declared: Facilities, values: Values) -> None:
        query, level = self.cells.query(declared.attribute), level_number(self.spine, declared.level)
        labels = [label[0] for label in query.labels()]
        counts = facilities(declared, labels, self.spine, self.units, values)
        named = [label for types in declared.sources.values() for label in types]
        least = np.array([label in declared.at_least_one for label in labels])
        bounded = np.array([label in named for label in labels])
        lower = np.where(least, counts, 0)
        upper = np.where(bounded, np.minimum(counts * declared.cap, UNBOUNDED), UNBOUNDED)
        self._bound(declared.sentence(), level, query, {}, lower, upper)

    def _bound(
        self,
        name: str,
        level: int,
        query: Query,
        where: Mapping[str, tuple[Level, ...]],
        lower: NDArray[np.int64],
        upper: NDArray[np.int64],
    ) -> None:
        """Bounds on the groups of a query, or on their cells that match; all other cells are a free group."""
        self._speaks_of(query, *(self.cells.query(part) for part in where))
        raw = np.where(matching(self.cells, where), query.groups, query.size)
        present, first, inverse = np.unique(raw, return_index=True, return_inverse=True)
        order = np.argsort(first)
        groups = np.argsort(order)[inverse]
        lower = np.pad(np.maximum(lower, 0), ((0, 0), (0, 1)))[:, present[order]]
        upper = np.pad(upper, ((0, 0), (0, 1)), constant_values=UNBOUNDED)[:, present[order]]
        if present.size == 1:
            self._totals_declared.add(level)
        number = self._partition(name, groups, present.size)
        self.limits[number].meet(level, lower, upper)

    def _speaks_of(self, *queries: Query) -> None:
        self.axes |= {axis for query in queries for axis, c in enumerate(query.coarsenings) if c.kept}

    def _partition(self, name: str, groups: NDArray[np.int64], size: int) -> int:
        for number, known in enumerate(self.partitions):
            if np.array_equal(known.groups, groups):
                self.partitions[number] = Partition((*known.names, name), known.groups, known.size)
                return number
        self.partitions.append(Partition((name,), groups, size))
        self.limits.append(Limits({}, {}))
        return len(self.partitions) - 1

    def _propagate(self) -> None:
        """Bounds of the nodes below imply bounds above; totals and groups tighten each other."""
        if not self.partitions:
            return
        total = self._partition("", np.zeros(self.cells.count, dtype=np.int64), 1)
        for partition, limits in zip(self.partitions, self.limits, strict=True):
            alive = np.isin(np.arange(partition.size), partition.groups[~self.zero])
            for level, lower in limits.lower.items():
                limits.meet(level, lower, np.where(alive, UNBOUNDED, 0))
        for level in range(self.spine.depth - 1, -1, -1):
            for limits in self.limits:
                if level + 1 in limits.lower:
                    lower = self.spine.sums(level, limits.lower[level + 1])
                    upper = np.minimum(self.spine.sums(level, limits.upper[level + 1]), UNBOUNDED)
                    limits.meet(level, lower, upper)
            self._require(level)
            for number, limits in enumerate(self.limits):
                if number != total and level in limits.lower:
                    self._tighten(level, self.limits[total], limits)
            self._require(level, together=True)
        self._set_functions(total)

    def _tighten(self, level: int, total: Limits, groups: Limits) -> None:
        low, high = groups.lower[level], groups.upper[level]
        low_sum = low.sum(axis=1, keepdims=True)
        high_sum = np.minimum(high.sum(axis=1, keepdims=True), UNBOUNDED)
        total.meet(level, low_sum, high_sum)
        most, least = total.upper[level], total.lower[level]
        upper = np.where(most >= UNBOUNDED, high, np.minimum(high, most - (low_sum - low)))
        endless = high >= UNBOUNDED
        bounded = np.where(endless, 0, high)
        others = bounded.sum(axis=1, keepdims=True) - bounded
        open_others = endless.sum(axis=1, keepdims=True) > endless
        lower = np.where(open_others, low, np.maximum(low, least - others))
        groups.meet(level, lower, upper)

    def _require(self, level: int, *, together: bool = False) -> None:
        for partition, limits in zip(self.partitions, self.limits, strict=True):
            if level in limits.lower:
                bad = (limits.lower[level] > limits.upper[level]).any(axis=1)
                if bad.any():
                    involved = self._bounded_at(level) if together else [partition]
                    raise self._infeasible(involved, level, int(np.flatnonzero(bad)[0]))

    def _bounded_at(self, level: int) -> list[Partition]:
        return [p for p, limits in zip(self.partitions, self.limits, strict=True) if level in limits.lower]

    def _infeasible(self, involved: Sequence[Partition], level: int, node: int) -> InputError:
        return InputError(
            f"the constraints cannot hold together in {self.spine.name(level, node)}: {_named(*involved)}",
            field="constraints",
            expected="bounds that some table can keep, there and in the nodes below",
            hint="Compare the invariants with the bounds in that node; nothing was drawn or spent.",
        )

    def _set_functions(self, total: int) -> None:
        """Bounds on sets of groups, where totals are fixed below the level of a node."""
        fine = [
            n for n, p in enumerate(self.partitions) if n != total and 2 <= p.size <= LARGEST_SET_FUNCTION
        ]
        declared = [level for level in self._totals_declared if level > 0]
        if len(fine) != 1 or not declared:
            return
        number = fine[0]
        limits, totals = self.limits[number], self.limits[total]
        bottom = min(max(declared), max(limits.lower))
        size = self.partitions[number].size
        member = (np.arange(1 << size)[:, None] >> np.arange(size)[None, :] & 1).astype(np.int64)
        most = least = np.empty(0, dtype=np.int64)
        for level in range(bottom, -1, -1):
            low, high = limits.lower[level], limits.upper[level]
            if level == bottom:
                most, least = np.minimum(high @ member.T, UNBOUNDED), low @ member.T
            else:
                most, least = self.spine.sums(level, most), self.spine.sums(level, least)
                most, least = _cut_by_box(most, least, low, high, member)
            most, least = _cut_by_total(most, least, totals.lower[level], totals.upper[level])
            if (least > most).any():
                node = int(np.flatnonzero((least > most).any(axis=1))[0])
                raise self._infeasible(self._bounded_at(level), level, node)
            if level < bottom:
                alone = 1 << np.arange(size)
                limits.meet(level, least[:, alone], most[:, alone])
                totals.meet(level, least[:, -1:], most[:, -1:])
                plain_most, plain_least = _cut_by_total(
                    np.minimum(limits.upper[level] @ member.T, UNBOUNDED),
                    limits.lower[level] @ member.T,
                    totals.lower[level],
                    totals.upper[level],
                )
                more = ((most < plain_most) | (least > plain_least)).any(axis=0)
                self.sets[level] = [
                    SetBound(
                        member[i].astype(np.bool_)[self.partitions[number].groups], least[:, i], most[:, i]
                    )
                    for i in np.flatnonzero(more)
                ]

    def set_bounds(self, level: int, start: int, stop: int) -> list[SetBound]:
        """Bounds on sets of cells of some nodes, beyond their groups and totals."""
        return [
            SetBound(extra.cells, extra.lower[start:stop], extra.upper[start:stop])
            for extra in self.sets.get(level, ())
        ]

    def at(self, level: int, start: int, stop: int) -> list[tuple[Partition, Any, Any]]:
        """The partitions that bound some nodes of a level, with their bounds (nodes, groups)."""
        return [
            (partition, limits.lower[level][start:stop], limits.upper[level][start:stop])
            for partition, limits in zip(self.partitions, self.limits, strict=True)
            if level in limits.lower
        ]

    def check(self, levels: Sequence[Histogram]) -> None:
        """Refuse tables that break a constraint, naming the constraint, the level and the node."""
        for name, cells in self._zeros:
            found = cells[levels[-1].cells]
            if found.any():
                raise self._violated(name, len(levels) - 1, int(levels[-1].rows()[found].min()))
        for partition, limits in zip(self.partitions, self.limits, strict=True):
            for level, lower in limits.lower.items():
                sums = levels[level].grouped(partition.groups, partition.size)
                bad = ((sums < lower) | (sums > limits.upper[level])).any(axis=1)
                if bad.any():
                    raise self._violated(_named(partition), level, int(np.flatnonzero(bad)[0]))

    def _violated(self, name: str, level: int, node: int) -> InputError:
        return InputError(
            f"the records break a constraint in {self.spine.name(level, node)}: {name}",
            field="constraints",
            expected="data that keep every declared constraint",
            hint="Correct the records or the declaration; nothing was drawn or spent.",
        )


def _cut_by_box(
    most: NDArray[np.int64],
    least: NDArray[np.int64],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    member: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A generalised polymatroid intersected with a box: the bounds of every set again.

    most'(S) = min over X of most(X) + high(S - X) - low(X - S), and likewise from below.
    """
    new_most, new_least = most.copy(), least.copy()
    for x in range(member.shape[0]):
        inside = member[x][None, :]
        gain, lose = member * (1 - inside), inside * (1 - member)
        new_most = np.minimum(new_most, most[:, [x]] + high @ gain.T - low @ lose.T)
        new_least = np.maximum(new_least, least[:, [x]] + low @ gain.T - high @ lose.T)
    return np.minimum(new_most, UNBOUNDED), new_least


def _cut_by_total(
    most: NDArray[np.int64], least: NDArray[np.int64], floor: NDArray[np.int64], top: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A generalised polymatroid intersected with bounds on the sum of everything.

    Sets are numbered by their members, so the complement of a set has its number from the other end.
    """
    rest_most, rest_least = most[:, ::-1], least[:, ::-1]
    return (
        np.minimum(most, np.where(top >= UNBOUNDED, UNBOUNDED, top - rest_least)),
        np.maximum(least, np.where(rest_most >= UNBOUNDED, 0, floor - rest_most)),
    )


def _named(*partitions: Partition) -> str:
    """The constraints that bound some partitions, in words."""
    return "; ".join(dict.fromkeys(name for partition in partitions for name in partition.names if name))
