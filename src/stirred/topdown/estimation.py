"""Top-down estimation: from noisy measurements and invariants to integer tables on every level.

No function here receives data. Every parent's children are estimated together, level by level; a child's
cells are those that its parent has, so lower levels are sparse. Families are independent tasks; threads
share them, and the result does not depend on how many there are.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stirred.data import Histogram
from stirred.errors import Refusal
from stirred.topdown.algebra import LARGEST_CORE, Algebra
from stirred.topdown.bounds import Bounds
from stirred.topdown.cells import Query
from stirred.topdown.family import Effort, Family, Target, estimate_family
from stirred.topdown.gls import Gls
from stirred.topdown.measurement import Chunk, Design, Measurements
from stirred.topdown.quadratic import Form

Estimator = Literal["multipass", "gls"]
Precision = tuple[NDArray[np.int64], NDArray[np.float64]]
Passes = Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True, eq=False)
class Settings:
    """How a universe is estimated: passes by level, the rounding chain, tolerances.

    A level without passes fits all its queries in one. ``multipass`` fits a level's own measurements;
    ``gls`` fits the best linear estimates from the whole subtree below, with their precision.
    """

    passes: Passes = field(default_factory=dict)
    chain: Sequence[str] = ("total", "detailed")
    estimator: Estimator = "multipass"
    tolerance: float = 1e-4
    slack: float = 0.1
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)


@dataclass
class LevelEffort:
    """How the families of one level were solved: counts by method, the most steps, the largest gap."""

    families: int = 0
    methods: Counter[str] = field(default_factory=Counter)
    rounding: Counter[str] = field(default_factory=Counter)
    steps: int = 0
    gap: float = 0.0

    def add(self, effort: Effort) -> None:
        self.families += 1
        self.methods.update(effort.methods)
        if effort.rounding:
            self.rounding[effort.rounding] += 1
        self.steps = max(self.steps, effort.steps)
        self.gap = max(self.gap, effort.gap)


@dataclass(frozen=True, eq=False)
class _Measured:
    """Targets from the level's own measurements, pass by pass."""

    design: Design
    algebra: Algebra
    chunk: Chunk
    rows: slice
    groups: Sequence[Sequence[Query]]

    def passes(self, cells: NDArray[np.int64]) -> list[Target]:
        level = self.chunk.level
        nodes = self.design.measured[level][self.chunk.start : self.chunk.stop][self.rows]
        reaches, kinds = np.unique(self.design.reach[level][nodes], return_inverse=True)
        weights = [self.design.precisions(level, int(reach)) for reach in reaches]
        out = []
        for queries in self.groups:
            linear = np.zeros((nodes.size, cells.size))
            for query in queries:
                scale = np.array([w.get(query.name, 0.0) for w in weights])[kinds]
                values = self.chunk.values[query.name][self.rows]
                linear += scale[:, None] * values[:, query.groups[cells]]
            names = [query.name for query in queries]
            forms = tuple(Form.of_queries(self.algebra, {n: w[n] for n in names if n in w}) for w in weights)
            out.append(Target(kinds.astype(np.int64), forms, linear, tuple(queries)))
        return out


@dataclass(frozen=True, eq=False)
class _Subtree:
    """One target: the best linear estimate from everything below, with its precision."""

    gls: Gls
    precision: Precision
    family: Family

    def passes(self, cells: NDArray[np.int64]) -> list[Target]:
        gls, algebra = self.gls, self.gls.algebra
        class_of, blocks = self.precision
        own = self.family
        classes, kinds = np.unique(class_of[own.start : own.stop], return_inverse=True)
        estimates = gls.up_estimate(own.level, own.start, own.stop)
        forms = [Form(algebra, algebra.coefficients(blocks[c])) for c in classes]
        linear = np.empty((estimates.shape[0], cells.size))
        for kind, form in enumerate(forms):
            members = np.flatnonzero(kinds == kind)
            linear[members] = algebra.apply(form.coefficients, estimates[members])[:, cells]
        return [Target(kinds.astype(np.int64), tuple(forms), linear)]


def estimate(
    measurements: Measurements,
    bounds: Bounds,
    settings: Settings,
    progress: Callable[[str, int, int], None] | None = None,
) -> tuple[tuple[Histogram, ...], dict[str, LevelEffort]]:
    """Integer tables of every level, root first, that keep every constraint and add up."""
    from threadpoolctl import threadpool_limits

    design = measurements.design
    algebra = algebra_of(design, bounds)
    chain = [design.cells.query(name) for name in settings.chain]
    gls = Gls(measurements) if settings.estimator == "gls" else None
    out: list[Histogram] = []
    efforts: dict[str, LevelEffort] = {}
    with ThreadPoolExecutor(settings.threads) as pool:
        for level, name in enumerate(design.spine.levels):
            effort = LevelEffort()
            above = out[-1] if out else None
            pieces = [_inherited(design, level, above)]
            tasks = _tasks(measurements, bounds, settings, gls, algebra, level, above)
            total = int(design.measured[level].size)
            done = 0

            def solved(task: tuple[Family, _Measured | _Subtree]) -> tuple[Family, NDArray[np.int64], Effort]:
                family, targets = task
                try:
                    counts, spent = estimate_family(
                        family, targets, bounds, chain, settings.tolerance, settings.slack
                    )
                except Refusal as refusal:
                    raise _unsplit(design, family, refusal) from None
                return family, counts, spent

            # The linear algebra of a family has one thread, always: with more it adds in another order.
            with threadpool_limits(1, user_api="blas"):
                while batch := list(itertools.islice(tasks, 64)):
                    for family, counts, spent in pool.map(solved, batch):
                        effort.add(spent)
                        rows, columns = np.nonzero(counts)
                        pieces.append((rows + family.start, family.cells[columns], counts[rows, columns]))
                        done += family.children
                    if progress is not None:
                        progress(name, done, total)
            nodes, cells, counts = (np.concatenate(part) for part in zip(*pieces, strict=True))
            out.append(
                Histogram.of_counts(nodes, cells, counts, design.spine.size(level), design.cells.count)
            )
            efforts[name] = effort
    return tuple(out), efforts


def _unsplit(design: Design, family: Family, refusal: Refusal) -> Refusal:
    """A refusal that names the node whose children could not be estimated."""
    level = max(family.level - 1, 0)
    node = int(design.spine.parents[family.level][family.start]) if family.level else family.start
    return Refusal(
        f"no table was found for the nodes of {design.spine.name(level, node)}: {refusal.problem}",
        field="constraints",
        expected=refusal.expected,
        hint="Constraints that cross may have no integer solution. The measurements stay valid: estimate "
        "again from them, with other constraints or another estimator, at no further budget.",
    )


def algebra_of(design: Design, bounds: Bounds) -> Algebra:
    """The algebra of all measured queries, with the attributes that constraints speak of in its core."""
    names = dict.fromkeys(q for level in range(design.spine.depth) for q in design.queries(level))
    queries = [design.cells.query(name) for name in names]
    wider = Algebra.of(design.cells, queries, tuple(bounds.axes))
    return wider if wider.width <= LARGEST_CORE else Algebra.of(design.cells, queries)


Piece = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def _inherited(design: Design, level: int, above: Histogram | None) -> Piece:
    """Only children have their parent's table."""
    none = np.empty(0, dtype=np.int64)
    if above is None:
        return none, none, none
    nodes = np.flatnonzero(design.spine.only_child(level))
    child_of = np.full(above.nodes, -1, dtype=np.int64)
    child_of[design.spine.parents[level][nodes]] = nodes
    child = child_of[above.rows()]
    kept = child >= 0
    return child[kept], above.cells[kept], above.counts[kept]


def _tasks(
    measurements: Measurements,
    bounds: Bounds,
    settings: Settings,
    gls: Gls | None,
    algebra: Algebra,
    level: int,
    above: Histogram | None,
) -> Iterator[tuple[Family, _Measured | _Subtree]]:
    design = measurements.design
    passes = level_passes(design, settings, level)
    precision = gls.up_precision(level) if gls is not None else None
    for chunk in measurements.level(level):
        nodes = design.measured[level][chunk.start : chunk.stop]
        family_of = design.spine.parents[level][nodes] if level else np.arange(nodes.size)
        edges = np.append(np.flatnonzero(np.diff(family_of, prepend=-1)), nodes.size)
        for first, last in itertools.pairwise(edges):
            start, stop = int(nodes[first]), int(nodes[last - 1]) + 1
            if above is None:
                cells, parent = np.flatnonzero(~bounds.zero), None
            else:
                part = slice(*above.starts[family_of[first] : family_of[first] + 2])
                cells, parent = above.cells[part], above.counts[part]
            family = Family(level, start, stop, cells, parent)
            if gls is not None:
                assert precision is not None
                yield family, _Subtree(gls, precision, family)
            else:
                yield family, _Measured(design, algebra, chunk, slice(int(first), int(last)), passes)


def level_passes(design: Design, settings: Settings, level: int) -> list[list[Query]]:
    """The passes of a level, with every measured query in exactly one of them."""
    measured = design.queries(level)
    declared = settings.passes.get(design.spine.levels[level])
    if declared is None:
        return [[design.cells.query(name) for name in measured]]
    out = [[q for name in group if (q := design.cells.query(name)).name in measured] for group in declared]
    named = {query.name for group in out for query in group}
    rest = [design.cells.query(name) for name in measured if name not in named]
    out = [group for group in out if group]
    if rest:
        out = [*out[:-1], [*out[-1], *rest]] if out else [rest]
    return out
