"""Estimate one family of siblings: passes of least squares, then rounding to integers.

In every pass the queries of that pass are fitted by weighted least squares under non-negativity, the
parent's counts, the constraints, and the earlier passes' estimates within a slack. The feasible set does not
shrink from pass to pass (an earlier estimate keeps every constraint), so the smallest feasible tolerance
is zero, and only the slack and the solver's own tolerance are allowed.

A pass sees the cells only through its queries, the constraints and the earlier passes: cells that none of
these tells apart are merged, exactly, before solving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.topdown.bounds import UNBOUNDED, Bounds
from stirred.topdown.cells import Query
from stirred.topdown.integer import Row
from stirred.topdown.quadratic import Form, Programme, Solution, solve
from stirred.topdown.rounding import Layer, Rounded, round_children

Table = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Target:
    """What one pass fits: for each kind of child a quadratic, for each child a linear term.

    With ``queries`` given, cells that these do not tell apart may be merged.
    """

    kinds: NDArray[np.int64]
    forms: tuple[Form, ...]
    linear: Table
    queries: tuple[Query, ...] | None = None


class Targets(Protocol):
    """The passes of a family: targets on given cells, in order."""

    def passes(self, cells: NDArray[np.int64]) -> Sequence[Target]:
        """The targets of the passes; linear terms on the given cells."""


@dataclass(frozen=True, eq=False)
class Family:
    """One parent and its children: nodes ``start`` to ``stop`` of a level; the root has no parent."""

    level: int
    start: int
    stop: int
    cells: NDArray[np.int64]
    parent: NDArray[np.int64] | None

    @property
    def children(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True)
class Effort:
    """How a family was solved."""

    steps: int = 0
    methods: tuple[str, ...] = ()
    rounding: str = ""
    gap: float = 0.0


@dataclass(eq=False)
class _Side:
    """Side conditions of a family on its cells: groups with bounds, for the programme and for rounding."""

    groups: list[NDArray[np.int64]] = field(default_factory=list)
    low: list[Table] = field(default_factory=list)
    high: list[Table] = field(default_factory=list)

    def add(self, groups: NDArray[np.int64], low: Table, high: Table) -> None:
        """Bounds (children, groups) on sums over groups of cells; group -1 is free."""
        self.groups.append(groups)
        self.low.append(low)
        self.high.append(high)


def estimate_family(
    family: Family,
    targets: Targets,
    bounds: Bounds,
    chain: Sequence[Query],
    tolerance: float = 1e-4,
    slack: float = 0.1,
) -> tuple[NDArray[np.int64], Effort]:
    """Integer counts (children, cells of the family) that keep every constraint, and how they were found."""
    if family.cells.size == 0:
        return np.zeros((family.children, 0), dtype=np.int64), Effort()
    side = _declared(family, bounds)
    passes = targets.passes(family.cells)
    x: Table = np.zeros((family.children, family.cells.size))
    steps, methods = 0, []
    for number, target in enumerate(passes):
        solution, x = _fitted(family, target, side, tolerance)
        steps += solution.steps
        methods.append(solution.method)
        if number + 1 < len(passes):
            for query in target.queries or ():
                groups, size = _dense(query.groups[family.cells])
                sums = _sums(x, groups, size)
                side.add(groups, np.maximum(sums - slack, 0.0), sums + slack)
    rounded = _rounded(family, x, bounds, chain)
    return rounded.counts, Effort(steps, tuple(methods), rounded.method, rounded.gap)


def _declared(family: Family, bounds: Bounds) -> _Side:
    side = _Side()
    for partition, low, high in bounds.at(family.level, family.start, family.stop):
        side.add(partition.groups[family.cells], low.astype(np.float64), high.astype(np.float64))
    for extra in bounds.set_bounds(family.level, family.start, family.stop):
        groups = np.where(extra.cells[family.cells], 0, -1)
        side.add(groups, extra.lower[:, None].astype(np.float64), extra.upper[:, None].astype(np.float64))
    return side


def _fitted(family: Family, target: Target, side: _Side, tolerance: float) -> tuple[Solution, Table]:
    """Solve one pass, on merged cells where its queries allow it."""
    labels = None
    if target.queries is not None:
        seen = [q.groups[family.cells] for q in target.queries] + side.groups
        labels, count = _joint(seen)
        if count == family.cells.size:
            labels = None
    if labels is None:
        cells, parent, linear = family.cells, family.parent, target.linear
        forms: tuple[Form | Table, ...] = target.forms
        groups = side.groups
    else:
        first = np.unique(labels, return_index=True)[1]
        cells = family.cells[first]
        parent = None if family.parent is None else _sums(family.parent[None, :], labels, first.size)[0]
        linear = target.linear[:, first]
        forms = tuple(form.dense(cells) for form in target.forms)
        groups = [g[first] for g in side.groups]
    programme = _programme(forms, target.kinds, cells, linear, parent, groups, side)
    solution = solve(programme, tolerance)
    if labels is None:
        return solution, solution.x
    return solution, solution.x[:, labels] * _shares(family.parent, labels)[None, :]


def _shares(parent: NDArray[np.int64] | None, labels: NDArray[np.int64]) -> Table:
    """The share of each cell in its merged cell: as in the parent, or equal at the root."""
    own = np.ones(labels.size) if parent is None else parent.astype(np.float64)
    return own / np.bincount(labels, weights=own)[labels]


def _programme(
    forms: tuple[Form | Table, ...],
    kinds: NDArray[np.int64],
    cells: NDArray[np.int64],
    linear: Table,
    parent: NDArray[np.int64] | Table | None,
    groups: list[NDArray[np.int64]],
    side: _Side,
) -> Programme:
    children = linear.shape[0]
    upper = np.full((children, cells.size), float(UNBOUNDED))
    if parent is not None:
        upper = np.minimum(upper, parent)
    rows: list[Table] = []
    lows: list[Table] = []
    highs: list[Table] = []
    for index, low, high in zip(groups, side.low, side.high, strict=True):
        member = index >= 0
        upper[:, member] = np.minimum(upper[:, member], high[:, index[member]])
        for g in np.unique(index[member]):
            inside = (index == g).astype(np.float64)
            most = float(UNBOUNDED) if parent is None else float((inside * parent).sum())
            free = (low[:, g] <= 0) & ((high[:, g] >= most) | (high[:, g] <= 0))
            bare = inside.sum() == 1 and not (low[:, g] > 0).any()  # the cell's own upper bound says it
            if not bare and not free.all():
                rows.append(inside)
                lows.append(low[:, g])
                highs.append(np.where(high[:, g] >= UNBOUNDED, 1e15, high[:, g]))
    m = len(rows)
    return Programme(
        forms=forms,
        kinds=kinds,
        cells=cells,
        linear=linear,
        parent=None if parent is None else np.asarray(parent, dtype=np.float64),
        upper=upper,
        rows=np.array(rows).reshape(m, cells.size),
        low=np.stack(lows, axis=1) if m else np.zeros((children, 0)),
        high=np.stack(highs, axis=1) if m else np.zeros((children, 0)),
    )


def _rounded(family: Family, x: Table, bounds: Bounds, chain: Sequence[Query]) -> Rounded:
    layers: list[Layer] = []
    for query in chain:
        groups, size = _dense(query.groups[family.cells])
        if size < family.cells.size and not any(np.array_equal(groups, layer.groups) for layer in layers):
            layers.append(Layer(groups, size))
    for partition, low, high in bounds.at(family.level, family.start, family.stop):
        groups = partition.groups[family.cells]
        free = groups < 0
        shifted = np.where(free, partition.size, groups)
        dense, size = _dense(shifted)
        present = np.unique(shifted)
        wide = [
            np.pad(b, ((0, 0), (0, 1)), constant_values=v)[:, present]
            for b, v in ((low, 0), (high, UNBOUNDED))
        ]
        _bounded(layers, dense, size, *wide)
    rows = [
        Row(extra.cells[family.cells], extra.lower, extra.upper)
        for extra in bounds.set_bounds(family.level, family.start, family.stop)
    ]
    return round_children(x, family.parent, layers, rows)


def _bounded(
    layers: list[Layer], groups: NDArray[np.int64], size: int, low: NDArray[np.int64], high: NDArray[np.int64]
) -> None:
    """Put bounds on the layer with these groups, or add one that has bounds only."""
    for position, layer in enumerate(layers):
        if np.array_equal(layer.groups, groups):
            if layer.lower is not None and layer.upper is not None:
                low, high = np.maximum(low, layer.lower), np.minimum(high, layer.upper)
            layers[position] = Layer(groups, size, low, high, layer.weight)
            return
    layers.append(Layer(groups, size, low, high, 0))


def _dense(groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    """Number the groups that occur from zero."""
    present, numbers = np.unique(groups, return_inverse=True)
    return numbers.astype(np.int64), present.size


def _joint(parts: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], int]:
    """The coarsest numbering that tells apart whatever one of the parts tells apart."""
    if not parts:
        return np.zeros(0, dtype=np.int64), 0
    labels, count = _dense(parts[0])
    for part in parts[1:]:
        labels, count = _dense(labels * (int(part.max()) + 2) + part + 1)
    return labels, count


def _sums(x: NDArray[np.float64] | NDArray[np.int64], groups: NDArray[np.int64], size: int) -> Table:
    out = np.zeros((x.shape[0], size))
    np.add.at(out.T, groups, np.asarray(x, dtype=np.float64).T)
    return out
