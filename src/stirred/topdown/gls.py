"""Generalised least squares on the tree of noisy measurements, in two passes, exact.

Model: node v of a spine has cells x_v (K real numbers), its measurements are y_vq = Q_q x_v + noise with
independent noise of mean zero and variance 1/w_vq, and the cells of a parent are the sum of its children's.
A node without siblings has the content of its parent and is not measured itself; the two are one.

Guaranteed: up to rounding errors, ``estimate`` is the minimiser of the sum of w_vq |y_vq - Q_q x_v|^2 over
all trees of real cells whose children sum to their parents, that is, the best linear unbiased estimate of
every cell and every query from *all* measurements, and the standard errors are exactly those of that
estimate in this model. Nothing is rounded, and no sign, invariant or structural zero is imposed. Rounding
errors grow with the spread of the precisions: relative to the largest cell they are about 1e-14 times the
ratio of the largest variance to the smallest, which is about 1e4 in the settings of the 2020 Census.

Bottom-up, the linear term of a node is t_v = sum of w Q'y, plus W^-1 times the sum of its children's
estimates where there are children (W the sum of their covariances), and its estimate is U_v^-1 t_v. Top-down,
with r = W^-1 (x_v - sum of the children's bottom-up estimates), the final estimate of a child is
U_c^-1 (t_c + r). All maps belong to the algebra that the queries generate (``algebra``, ``information``).

Complexity: with p plain attributes and a core of d levels, time O(nodes x K x d) times the factor
(1 + 1/size) of every plain attribute, and for the maps O(classes of nodes x 2^p d^3). Memory: the inner
levels densely (two tables, three in the top-down pass), the leaf level in chunks. A query is summed to what
it asks for beforehand, so that ``query(level, "total")`` costs little more than reading the measurements.

References: R. Cumings-Menon et al. on the two-pass estimator for the noisy measurement files of the 2020
Census, arXiv:2404.13164; the BlueDown work, arXiv:2603.10099.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from statistics import NormalDist
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError
from stirred.topdown.algebra import Algebra
from stirred.topdown.cells import Query
from stirred.topdown.folded import Folded
from stirred.topdown.information import Float, Information, Int
from stirred.topdown.measurement import Measurements

PIECE = 1 << 17
"""Numbers of a table that are worked on at a time: they should stay in the processor's cache."""


class Gls:
    """The two-pass estimator of one set of noisy measurements.

    The bottom-up pass is made here, the top-down pass when it is first needed. All methods may be called
    from several threads. The algebra must contain all measured queries; if not given, it is the smallest one.

    Raises
    ------
    NotComputable
        If the measurements of a leaf do not identify all its cells; nothing is computed then.
    """

    def __init__(self, measurements: Measurements, algebra: Algebra | None = None) -> None:
        self.design = design = measurements.design
        self.spine, self.cells = design.spine, design.cells
        if algebra is None:
            names = dict.fromkeys(n for level in range(self.spine.depth) for n in design.queries(level))
            algebra = Algebra.of(self.cells, [self.cells.query(name) for name in names])
        self.algebra = algebra
        self.information = Information(design, algebra)
        self._chains = self.information.chains
        self._chunks = [design.chunks(level) for level in range(self.spine.depth)]
        self._chunk = lru_cache(maxsize=2)(measurements.chunk)
        self._full = Folded(algebra)
        self._terms: list[Float] = [np.empty(0)] * (self.spine.depth - 1)
        self._sums: list[Float] = [np.empty(0)] * (self.spine.depth - 1)
        self._residuals: list[Float] | None = None
        self._lock = Lock()
        self._pass_up()

    def up_precision(self, level: int) -> tuple[Int, Float]:
        """The information U that a node and its descendants have on the node's cells.

        Returns
        -------
        class_of_node, blocks
            The class of every node of the level, and for every class the blocks of U in the algebra,
            (classes, 2^p, d, d). An only child has the information of the node whose content it shares.
        """
        self._check(level, 0, 0)
        at, head = self._chains.head_level[level], self._chains.head[level]
        own = np.empty(at.size, dtype=np.int64)
        for above in np.unique(at):
            rows = at == above
            own[rows] = self.information.up[above].of[head[rows]]
        keys, of = np.unique(np.stack([at, own], axis=1), axis=0, return_inverse=True)
        blocks = np.stack([self.information.up[above].blocks[number] for above, number in keys])
        return of.reshape(-1), blocks

    def up_estimate(self, level: int, start: int, stop: int) -> Float:
        """Cells of the nodes from ``start`` to ``stop`` estimated from them and their descendants alone."""
        return self._estimate(level, start, stop, final=False)

    def estimate(self, level: int, start: int, stop: int) -> Float:
        """Cells of the nodes from ``start`` to ``stop`` of a level estimated from all measurements."""
        return self._estimate(level, start, stop, final=True)

    def query(self, level: int, name: str) -> tuple[Float, Float]:
        """Estimates of a query, measured or not, and their standard errors: a row for every node of a level.

        Streams over the level: memory is what is returned and a chunk of measurements.
        """
        self._check(level, 0, 0)
        query = self.cells.query(name)
        folded = Folded(self.algebra, query)
        shape = (self.spine.size(level), query.size)
        estimates, errors = np.empty(shape), np.empty(shape)
        at, head = self._chains.head_level[level], self._chains.head[level]
        for above in np.unique(at):
            nodes = np.flatnonzero(at == above)
            for part, table in self._tables(int(above), head[nodes], folded, final=True):
                estimates[nodes[part]] = folded.answer(query, table)
            for rows, found in self._errors(int(above), head[nodes], folded, query):
                errors[nodes[rows]] = found
        return estimates, errors

    def interval(self, level: int, name: str, confidence: float = 0.95) -> tuple[Float, Float]:
        """Confidence intervals for a query: the estimate and a normal quantile times its standard error.

        Approximate in that the noise is discrete Gaussian, not Gaussian: it is sub-Gaussian with a variance
        of at most its parameter, so that the intervals are if anything too wide. No allowance is made for
        invariants, for integers or for counts not being negative.
        """
        if not 0.0 < confidence < 1.0:
            raise InputError(
                "the confidence is not between 0 and 1",
                field="confidence",
                expected="a number above 0 and below 1",
                hint="For example 0.95.",
            )
        estimates, errors = self.query(level, name)
        margin = -NormalDist().inv_cdf((1 - confidence) / 2) * errors
        return estimates - margin, estimates + margin

    def _estimate(self, level: int, start: int, stop: int, *, final: bool) -> Float:
        self._check(level, start, stop)
        out = np.empty((stop - start, self.cells.count))
        at, head = self._chains.head_level[level][start:stop], self._chains.head[level][start:stop]
        for above in np.unique(at):
            nodes = np.flatnonzero(at == above)
            for part, table in self._tables(int(above), head[nodes], self._full, final=final):
                out[nodes[part]] = self._full.unfold(table)
        return out

    def _check(self, level: int, start: int, stop: int) -> None:
        if not 0 <= level < self.spine.depth:
            raise InputError(
                "the spine has no such level",
                field="level",
                expected=f"a number from 0 to {self.spine.depth - 1}",
                hint="The first level, the root, has number 0.",
            )
        if not 0 <= start <= stop <= self.spine.size(level):
            raise InputError(
                "the nodes asked for are not nodes of the level",
                field="start, stop",
                expected=f"0 <= start <= stop <= {self.spine.size(level)}",
                hint="Nodes are numbered from 0; stop is the first node that is left out.",
            )

    # The two passes. Tables are folded, with one row for every head (measured node) or fork of a level.

    def _pass_up(self) -> None:
        last = self.spine.depth - 1
        for level in range(last - 1, -1, -1):
            self._sums[level] = self._leaf_sums() if level == last - 1 else self._inner_sums(level)
            self._terms[level] = self._inner_terms(level)

    def _leaf_sums(self) -> Float:
        """Sums of the bottom-up estimates of siblings that are leaves, which all have the same precision.

        Estimates are linear with the same map, so that measurements are summed before they are used.
        """
        level = self.spine.depth - 1
        families = self._chains.families[level - 1]
        out = np.empty((families.size - 1, *self._full.shape))
        weights = self.design.precisions(level, level)
        inverse = self._full.coefficients(self.information.up_inverse[level])
        for number, (start, stop) in enumerate(self._chunks[level]):
            values = self._chunk(level, number).values
            first, after = np.searchsorted(families, [start, stop])
            for part in _slices(first, after, self._full.count):
                edges = families[part.start : part.stop + 1] - start
                rows = slice(edges[0], edges[-1])
                table = np.zeros((part.stop - part.start, *self._full.shape))
                for name, weight in weights.items():
                    summed = np.add.reduceat(
                        values[name][rows], edges[:-1] - edges[0], axis=0, dtype=np.int64
                    )
                    table += self._full.adjoint(self.cells.query(name), summed, weight)
                out[part] = self._full.apply(inverse, table)
        return out

    def _inner_sums(self, level: int) -> Float:
        """Sums of the bottom-up estimates of the children of every fork of a level."""
        families = self._chains.families[level]
        out = np.zeros((families.size - 1, *self._full.shape))
        above = self._chains.above(level + 1)
        heads = np.arange(above.size)
        for part, table in self._tables(level + 1, heads, self._full, final=False):
            np.add.at(out, above[part], table)
        return out

    def _inner_terms(self, level: int) -> Float:
        """Linear terms of the heads of an inner level: own measurements and what comes from below."""
        chains, information = self._chains, self.information
        heads = np.arange(chains.measured[level].size)
        out = np.empty((heads.size, *self._full.shape))
        for part, table in self._measured(level, heads, self._full):
            out[part] = table
        for below in np.unique(chains.fork_level[level]):
            if below < 0:
                continue
            rows = np.flatnonzero(chains.fork_level[level] == below)
            forks = chains.fork[level][rows]
            maps = self._full.coefficients(information.below_inverse[below])
            classes = information.below[below].of[forks]
            for part in _slices(0, rows.size, self._full.count):
                sums = self._sums[below][forks[part]]
                out[rows[part]] += _mapped(self._full, maps, classes[part], sums)
        return out

    def _pass_down(self) -> list[Float]:
        """W^-1 (x - sum of the children's bottom-up estimates) for every fork: the top-down pass."""
        with self._lock:
            if self._residuals is None:
                out: list[Float] = []
                for level in range(self.spine.depth - 1):
                    out.append(self._residuals_of(level, out))
                self._residuals = out
                self._sums = []
        return self._residuals

    def _residuals_of(self, level: int, known: list[Float]) -> Float:
        chains, information = self._chains, self.information
        forks = chains.forks[level]
        out = np.empty((forks.size, *self._full.shape))
        maps = self._full.coefficients(information.below_inverse[level])
        at, head = chains.head_level[level][forks], chains.head[level][forks]
        for above in np.unique(at):
            rows = np.flatnonzero(at == above)
            for part, table in self._solved(int(above), head[rows], self._full, known):
                into = rows[part]
                classes = information.below[level].of[into]
                out[into] = _mapped(self._full, maps, classes, table - self._sums[level][into])
        return out

    def _tables(
        self, level: int, heads: Int, folded: Folded, *, final: bool
    ) -> Iterator[tuple[slice, Float]]:
        """Estimates of some heads of a level, in pieces: which of them, and their folded table."""
        return self._solved(level, heads, folded, self._pass_down() if final else None)

    def _solved(
        self, level: int, heads: Int, folded: Folded, residuals: list[Float] | None
    ) -> Iterator[tuple[slice, Float]]:
        inverses = folded.coefficients(self.information.up_inverse[level])
        classes = self.information.up[level].of[heads]
        terms = self._linear_terms(level, heads, folded)
        if level and residuals is not None:
            terms = _with_rows(terms, folded.summed(residuals[level - 1]), self._chains.above(level)[heads])
        for part, table in terms:
            yield part, _mapped(folded, inverses, classes[part], table)

    def _linear_terms(self, level: int, heads: Int, folded: Folded) -> Iterator[tuple[slice, Float]]:
        if level == self.spine.depth - 1:
            yield from self._measured(level, heads, folded)
            return
        for part in _slices(0, heads.size, self._full.count):
            yield part, folded.summed(self._terms[level][heads[part]])

    def _measured(self, level: int, heads: Int, folded: Folded) -> Iterator[tuple[slice, Float]]:
        """Sums of w Q'y of some heads (in increasing order), from the chunks of measurements."""
        design = self.design
        reaches, kind = np.unique(design.reach[level][self._chains.measured[level]], return_inverse=True)
        precisions = [design.precisions(level, int(r)) for r in reaches]
        weights = {n: np.array([p.get(n, 0.0) for p in precisions]) for n in design.queries(level)}
        for number, (start, stop) in enumerate(self._chunks[level]):
            first, after = (int(i) for i in np.searchsorted(heads, [start, stop]))
            if first == after:
                continue
            values = self._chunk(level, number).values
            for part in _slices(first, after, folded.count):
                chosen = heads[part]
                rows = _as_slice(chosen - start)
                table = np.zeros((chosen.size, *folded.shape))
                for name, weight in weights.items():
                    each = weight[kind[chosen]]
                    scale = float(each[0]) if (each == each[0]).all() else each
                    table += folded.adjoint(self.cells.query(name), values[name][rows], scale)
                yield part, table

    def _errors(self, level: int, heads: Int, folded: Folded, query: Query) -> Iterator[tuple[Int, Float]]:
        """Standard errors of a query, some kinds of heads at a time: which heads, and a row for each."""
        kinds = self.information.kinds(level)[1][heads]
        order = np.argsort(kinds, kind="stable")
        wanted, starts = np.unique(kinds[order], return_index=True)
        edges = np.append(starts, kinds.size)
        blocks = len(self.algebra.subsets) * self.algebra.width**2
        for part in _slices(0, wanted.size, max(blocks, query.size)):
            covariance = self.information.covariance(level, wanted[part])
            found = np.sqrt(np.maximum(folded.variances(query, covariance), 0.0))
            rows = order[edges[part.start] : edges[part.stop]]
            yield rows, np.repeat(found, np.diff(edges[part.start : part.stop + 1]), axis=0)


def _slices(start: int, stop: int, row: int) -> Iterator[slice]:
    """Cut a range so that each slice has about ``PIECE`` numbers, given how many are in a row."""
    step = max(1, PIECE // max(1, row))
    for first in range(int(start), int(stop), step):
        yield slice(first, min(first + step, int(stop)))


def _with_rows(
    pieces: Iterator[tuple[slice, Float]], rows: Float, chosen: Int
) -> Iterator[tuple[slice, Float]]:
    """Pieces of a table, each plus the rows chosen for it."""
    for part, table in pieces:
        yield part, table + rows[chosen[part]]


def _as_slice(rows: Int) -> slice | Int:
    """Consecutive rows as a slice, which copies nothing."""
    if rows.size and rows[-1] - rows[0] + 1 == rows.size:
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows


def _mapped(folded: Folded, maps: NDArray[np.float64], classes: Int, table: Float) -> Float:
    """Multiply every row by the map of its class; few rows at a time, as a map can be larger than a row."""
    if not classes.size or (classes == classes[0]).all():
        return folded.apply(maps[classes[:1]], table)
    out = np.empty_like(table)
    for part in _slices(0, classes.size, maps[0].size):
        out[part] = folded.apply(maps[classes[part]], table[part])
    return out
