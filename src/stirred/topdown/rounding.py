"""Integer counts for the children of one parent: every constraint kept exactly, as near as possible.

Guarantee
    ``round_children`` returns non-negative integers that add up to the parent's counts, keep every bound,
    and minimise the weighted L1 distance to the estimate summed over the cells and all layers, among
    *all* integer tables that keep the constraints. It refuses if there is none. The same input gives the
    same table.
How
    If each pair of layers is nested, one refining the other, the sets of a child form a laminar family
    and so do the parent's sums; two laminar families give a totally unimodular network matrix (Edmonds
    1970), and the problem is a minimum-cost flow: exact, and always solvable when an integer solution
    exists. Bounds that do not fit the chain are left out at first: an optimal table that happens to keep
    them is optimal with them. Only if it breaks one, or if layers with a penalty cross, an integer
    programme takes over; it says how much of its objective is not proved (``gap``).
Assumes
    The estimate may miss the constraints slightly and may have small negative entries; it is a target and
    no more. A tie between children is decided by the solver, the same way each time, not at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from stirred.errors import InputError, Refusal
from stirred.extras import require
from stirred.topdown.flow import Level, nested, solve_flow
from stirred.topdown.integer import Row, solve_integer
from stirred.topdown.penalty import UNBOUNDED, Penalty

if TYPE_CHECKING:
    from numpy.typing import NDArray

LARGEST_WEIGHT = 10**6


@dataclass(frozen=True)
class Layer:
    """One query of the chain: a partition of the cells.

    ``groups`` has the group of each cell, from 0 to ``size - 1``; an empty group has zero sums.
    ``lower`` and ``upper`` bound the group sums (children x groups); None is zero and unbounded, and so is an
    upper bound of 2**40 or more. ``weight`` is that of the layer's L1 penalty; zero keeps the bounds only.
    """

    groups: NDArray[np.int64]
    size: int
    lower: NDArray[np.int64] | None = None
    upper: NDArray[np.int64] | None = None
    weight: int = 1


@dataclass(frozen=True)
class Rounded:
    """Integer counts (children x cells), their weighted L1 distance, and what of it is not proved minimal."""

    counts: NDArray[np.int64]
    objective: float
    gap: float
    method: Literal["flow", "integer"]


def round_children(
    x: NDArray[np.float64],
    parent: NDArray[np.int64] | None,
    layers: Sequence[Layer],
    rows: Sequence[Row] = (),
    cell_weight: int = 1,
) -> Rounded:
    """Round an estimate to the nearest integer table that keeps every constraint.

    ``parent`` has the counts that the children add up to; None at the root. ``layers`` are partitions of the
    cells with penalties and bounds; the cells themselves are the implicit finest layer. It is refused if no
    integer table keeps every constraint.

    Examples
    --------
    Two children share three persons; each child's total is rounded with its cells.

    >>> import numpy as np
    >>> from stirred.topdown import Layer, round_children
    >>> x = np.array([[0.6, 0.6], [0.4, 1.4]])
    >>> round_children(x, np.array([1, 2]), [Layer(np.array([0, 0]), 1)]).counts.tolist()
    [[1, 0], [0, 2]]
    """
    require("topdown")
    x = _checked(x, parent, layers, rows, cell_weight)
    parent = None if parent is None else parent.astype(np.int64)
    cells = Penalty(x, np.zeros(x.shape, dtype=np.int64), _ceiling(x.shape, parent), cell_weight)
    levels = [_level(x, layer, i) for i, layer in enumerate(layers)]
    bands = [Row(row.cells, _at_least_zero(row.lower), _at_most_unbounded(row.upper)) for row in rows]
    bounds = [(f"layers[{i}]", level.penalty.lower, level.penalty.upper) for i, level in enumerate(levels)]
    bounds += [(f"rows[{i}]", band.lower, band.upper) for i, band in enumerate(bands)]
    for name, lower, upper in bounds:
        if (lower > upper).any():
            raise _none(name, "lower bounds that are not above the upper bounds")
    active = [level for level in levels if level.penalty.binds]

    def keeps(counts: NDArray[np.int64]) -> bool:
        return (
            cells.allows(counts)
            and (parent is None or bool((counts.sum(axis=0) == parent).all()))
            and all(level.penalty.allows(level.sums(counts)) for level in active)
            and all(band.allows(counts) for band in bands)
        )

    def distance(counts: NDArray[np.int64]) -> float:
        return cells.distance(counts) + sum(level.penalty.distance(level.sums(counts)) for level in active)

    if not x.size:
        empty = np.zeros(x.shape, dtype=np.int64)
        if not keeps(empty):
            raise _unsolvable(levels, bands, parent)
        return Rounded(empty, 0.0, 0.0, "flow")
    chain = _chain(active)
    if chain is not None:
        counts = solve_flow(cells, chain, parent)
        if counts is None:
            raise _unsolvable(levels, bands, parent)
        if keeps(counts):
            return Rounded(counts, distance(counts), 0.0, "flow")
        if not bands and len(chain) == len(active):
            raise _broken()
    solution = solve_integer(cells, active, parent, bands)
    if solution is None:
        raise _unsolvable(levels, bands, parent)
    if not keeps(solution.counts):
        raise _broken()
    objective = distance(solution.counts)
    gap = 0.0 if solution.proved or not objective else max(0.0, (objective - solution.bound) / objective)
    return Rounded(solution.counts, objective, gap, "integer")


def _chain(levels: Sequence[Level]) -> list[Level] | None:
    """A chain that holds every penalty, coarsest first; None if layers with a penalty cross."""
    chain: list[Level] = []
    for level in sorted(levels, key=lambda level: not level.penalty.weight):
        longer = sorted([*chain, level], key=lambda level: level.size)
        if nested(longer):
            chain = longer
        elif level.penalty.weight:
            return None
    return chain


def _level(x: NDArray[np.float64], layer: Layer, number: int) -> Level:
    """The layer with its sums, without its empty groups."""
    shape = (x.shape[0], layer.size)
    lower = _at_least_zero(np.zeros(shape) if layer.lower is None else layer.lower)
    upper = _at_most_unbounded(np.full(shape, UNBOUNDED) if layer.upper is None else layer.upper)
    used = np.zeros(layer.size, dtype=np.bool_)
    used[layer.groups] = True
    groups = layer.groups.astype(np.int64)
    if not used.all():
        if (lower[:, ~used] > 0).any() or (upper[:, ~used] < 0).any():
            raise _none(f"layers[{number}]", "bounds that allow zero in every group without cells")
        groups = (np.cumsum(used) - 1)[groups]
        lower, upper = lower[:, used], upper[:, used]
    count = int(used.sum())
    places = (np.arange(x.shape[0])[:, None] * count + groups).ravel()
    target = np.bincount(places, x.ravel(), minlength=x.shape[0] * count).astype(np.float64)
    return Level(groups, Penalty(target.reshape(x.shape[0], count), lower, upper, layer.weight))


def _at_least_zero(bound: NDArray[Any]) -> NDArray[np.int64]:
    return np.maximum(bound.astype(np.int64), 0)


def _at_most_unbounded(bound: NDArray[Any]) -> NDArray[np.int64]:
    return np.minimum(bound.astype(np.int64), UNBOUNDED)


def _ceiling(shape: tuple[int, ...], parent: NDArray[np.int64] | None) -> NDArray[np.int64]:
    if parent is None:
        return np.full(shape, UNBOUNDED)
    return np.broadcast_to(parent, shape)


def _unsolvable(levels: Sequence[Level], bands: Sequence[Row], parent: NDArray[np.int64] | None) -> Refusal:
    """The refusal, naming the first layer or row that the parent alone contradicts."""
    if parent is not None:
        for i, level in enumerate(levels):
            total = level.sums(parent[None, :])[0]
            if (level.penalty.lower.sum(axis=0) > total).any():
                return _none(f"layers[{i}]", "lower bounds that do not add up to more than the parent has")
            if (level.penalty.upper.sum(axis=0) < total).any():
                return _none(f"layers[{i}]", "upper bounds that leave room for all that the parent has")
        for i, band in enumerate(bands):
            total = parent[band.cells].sum()
            if band.lower.sum() > total or band.upper.sum() < total:
                return _none(f"rows[{i}]", "bounds whose sums over the children enclose the parent's count")
    return _none("layers" if not bands else "layers, rows", "bounds that one integer table can keep together")


def _none(field: str, expected: str) -> Refusal:
    return Refusal(
        "No table of non-negative integers keeps every constraint.",
        field=field,
        expected=expected,
        hint="Check that the true counts meet the declared invariants and bounds in every geography.",
    )


def _broken() -> Refusal:
    return Refusal(
        "The solver's table breaks a constraint, so it is not released.",
        field="layers, rows",
        expected="a table that keeps every constraint",
        hint="Report this as a defect of stirred.",
    )


def _checked(
    x: NDArray[np.float64],
    parent: NDArray[np.int64] | None,
    layers: Sequence[Layer],
    rows: Sequence[Row],
    cell_weight: int,
) -> NDArray[np.float64]:
    """The estimate as floats, if every shape and range is right."""
    x = np.asarray(x, dtype=np.float64)
    _require(x.ndim == 2, "x", "a table of children x cells")
    children, width = x.shape
    _require(bool((np.abs(x) < UNBOUNDED).all()), "x", "finite estimates smaller than 2**40")
    if parent is not None:
        _require(_integers(parent, (width,)), "parent", "an integer for every cell")
        _require(bool(((parent >= 0) & (parent < UNBOUNDED)).all()), "parent", "counts from 0 to 2**40")
    _require(0 <= cell_weight <= LARGEST_WEIGHT, "cell_weight", f"a weight from 0 to {LARGEST_WEIGHT}")
    for i, layer in enumerate(layers):
        name = f"layers[{i}]"
        _require(_integers(layer.groups, (width,)), f"{name}.groups", "a group number for every cell")
        inside = not width or (layer.groups.min() >= 0 and layer.groups.max() < layer.size)
        _require(bool(inside), f"{name}.groups", "group numbers from 0 to size - 1")
        _require(
            0 <= layer.weight <= LARGEST_WEIGHT, f"{name}.weight", f"a weight from 0 to {LARGEST_WEIGHT}"
        )
        for side, bound in (("lower", layer.lower), ("upper", layer.upper)):
            right = bound is None or _integers(bound, (children, layer.size))
            _require(right, f"{name}.{side}", "an integer for every child and group")
    for i, row in enumerate(rows):
        mask = row.cells.shape == (width,) and row.cells.dtype == np.bool_
        _require(mask, f"rows[{i}].cells", "true or false for every cell")
        both = _integers(row.lower, (children,)) and _integers(row.upper, (children,))
        _require(both, f"rows[{i}]", "an integer lower and upper bound for every child")
    return x


def _integers(values: NDArray[np.int64], shape: tuple[int, ...]) -> bool:
    return values.shape == shape and np.issubdtype(values.dtype, np.integer)


def _require(holds: bool, field: str, expected: str) -> None:
    if not holds:
        raise InputError(
            "The rounding problem is not well formed.",
            field=field,
            expected=expected,
            hint="Give arrays of matching shapes: estimates are children x cells.",
        )
