"""Solve the quadratic programme of a family of siblings: structured where it can, dense, or PDLP."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stirred.errors import Refusal
from stirred.topdown.algebra import Algebra

LARGEST_DENSE = 3000
SMALLEST_STRUCTURED = 600
STEPS = 20
MOST_STEPS = 6000
RELAX = 1.8
START = 1e-3
FIRST = 2.0
STIFF = 10.0
LARGEST_EIGEN = 500


@dataclass(frozen=True, eq=False)
class Form:
    """The quadratic of some children: an element of the algebra, restricted to cells.

    ``weights`` are those of the queries whose Gram matrices it is the sum of, where it is one.
    """

    algebra: Algebra
    coefficients: NDArray[np.float64]
    weights: Mapping[str, float] | None = None

    @classmethod
    def of_queries(cls, algebra: Algebra, weights: Mapping[str, float]) -> Form:
        """The sum of weighted Gram matrices of queries."""
        return cls(algebra, algebra.gram(weights), weights)

    def dense(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.algebra.dense(self.coefficients, cells)


@dataclass(frozen=True, eq=False)
class Programme:
    """One family: forms of the kinds of children, linear terms, parent, bounds and rows.

    A form may be given as a matrix on the cells. ``cells`` are the cells in play; ``rows`` (m, K) with bounds
    ``low``, ``high`` (C, m) are sums of cells.
    Minimises sum over children of 1/2 x'Hx - b'x.
    """

    forms: tuple[Form | NDArray[np.float64], ...]
    kinds: NDArray[np.int64]
    cells: NDArray[np.int64]
    linear: NDArray[np.float64]
    parent: NDArray[np.float64] | None
    upper: NDArray[np.float64]
    rows: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def shape(self) -> tuple[int, int]:
        return self.linear.shape

    def matrices(self) -> list[NDArray[np.float64]]:
        """The quadratics of the kinds as matrices on the cells in play."""
        return [form.dense(self.cells) if isinstance(form, Form) else form for form in self.forms]


@dataclass(frozen=True, eq=False)
class Solution:
    """A table within the tolerance, and how it was found."""

    x: NDArray[np.float64]
    steps: int
    primal: float
    dual: float
    method: Literal["structured", "dense", "pdlp"]


def solve(
    programme: Programme,
    tolerance: float = 1e-4,
    method: Literal["auto", "dense", "structured", "pdlp"] = "auto",
) -> Solution:
    """Solve to a tolerance in counts: of the largest violation, and of the dual residual over mean curvature.

    ADMM first; where it does not converge, or the dense form would not fit in memory, OR-tools' PDLP.
    """
    if method == "auto":
        method = _choice(programme)
    if method != "pdlp":
        found = _admm(programme, tolerance, method)
        if found is not None:
            return found
    from stirred.topdown.pdlp import solve_pdlp

    stiffness = _scales(programme)[1]
    return solve_pdlp(programme, min(tolerance, 1e-6) / min(max(1.0, stiffness / STIFF), 1e3))


def _choice(programme: Programme) -> Literal["dense", "structured", "pdlp"]:
    cells = programme.cells.size
    if cells >= SMALLEST_STRUCTURED and _Structure.of(programme) is not None:
        return "structured"
    return "dense" if cells <= LARGEST_DENSE else "pdlp"


class _Structure:
    """The layout of a full product of cells: core levels that occur, times all plain attributes."""

    def __init__(self, algebra: Algebra, core: NDArray[np.int64]) -> None:
        self.algebra = algebra
        self.core = core
        sizes = algebra.sizes
        full = (1 << len(sizes)) - 1
        order = sorted(range(full + 1), key=lambda t: (-t.bit_count(), t))
        numbers = {t: i for i, t in enumerate(order)}
        length = {
            t: core.size * math.prod(n for i, n in enumerate(sizes) if t >> i & 1) for t in range(full + 1)
        }
        starts = np.concatenate([[0], np.cumsum([length[t] for t in order])])
        self.order = order
        self.sets = np.array([(starts[i], length[t]) for i, t in enumerate(order)], dtype=np.int64)
        plan = []
        for t in order[1:]:
            axis = min((a for a in range(len(sizes)) if not t >> a & 1), key=lambda a: length[t | 1 << a])
            kept = t | 1 << axis
            outer = core.size * math.prod(n for i, n in enumerate(sizes) if kept >> i & 1 and i < axis)
            inner = math.prod(n for i, n in enumerate(sizes) if kept >> i & 1 and i > axis)
            plan.append((numbers[t], numbers[kept], outer, sizes[axis], inner))
        self.plan = np.array(plan, dtype=np.int64).reshape(-1, 5)

    @classmethod
    def of(cls, programme: Programme) -> _Structure | None:
        """The structure, if the cells are a full product and the rows sum whole core levels."""
        form = programme.forms[0]
        if len(programme.forms) > 1 or not isinstance(form, Form):
            return None
        algebra = form.algebra
        if algebra.width > LARGEST_DENSE:
            return None
        numbers = algebra.fold(np.arange(algebra.cells.count, dtype=np.float64)).reshape(algebra.width, -1)
        present = np.isin(numbers.astype(np.int64), programme.cells)
        core = np.flatnonzero(present.all(axis=1))
        if core.size * numbers.shape[1] != programme.cells.size:
            return None
        made = cls(algebra, core)
        position = np.searchsorted(programme.cells, numbers[core].astype(np.int64).reshape(-1))
        made.position = position
        count = programme.rows.shape[0]
        by_core = programme.rows[:, position].reshape(count, core.size, numbers.shape[1])
        if (by_core != by_core[:, :, :1]).any():
            return None
        made.core_rows = by_core[:, :, 0]
        made._use(form.coefficients)
        return made

    def _use(self, coefficients: NDArray[np.float64]) -> None:
        """Keep the sets that an inverse can need: products of generators agree on intersections of sets."""
        last = len(coefficients) - 1
        found = {t for t in range(last) if coefficients[t].any()} | {last}
        found |= {0} if self.core_rows.size else set()
        closed: set[int] = set()
        while found != closed:
            closed = found
            found = {s & t for s in closed for t in closed}
        needed = np.isin(self.order, list(found))
        for small, large in self.plan[::-1, :2]:
            needed[large] |= needed[small]
        self.used = np.flatnonzero(needed)
        self.plan = self.plan[needed[self.plan[:, 0]]]

    used: NDArray[np.int64]
    position: NDArray[np.int64]
    core_rows: NDArray[np.float64]

    def inverse(self, coefficients: NDArray[np.float64], rows: NDArray[np.float64], rho: float) -> Any:
        """Coefficients of (H + rho (I + R'R))^-1 on the core levels that occur, in the order of the sets."""
        own = coefficients[:, self.core][:, :, self.core]
        own[-1] += rho * np.eye(self.core.size)
        own[0] += rho * rows.T @ rows
        blocks = np.linalg.inv(self.algebra.blocks(own)).astype(np.float64)
        return np.ascontiguousarray(self.algebra.coefficients(blocks)[self.order])


def _admm(programme: Programme, tolerance: float, method: Literal["dense", "structured"]) -> Solution | None:
    from stirred.topdown.admm import dense_steps, structured_steps

    children, cells = programme.shape
    structure = _Structure.of(programme) if method == "structured" else None
    turn = structure.position if structure is not None else np.arange(cells)
    has_parent = programme.parent is not None
    parent = programme.parent[turn] if programme.parent is not None else np.zeros(cells)
    upper = np.ascontiguousarray(programme.upper[:, turn])
    linear = np.ascontiguousarray(programme.linear[:, turn])
    norms = np.sqrt(np.maximum(1.0, programme.rows.sum(axis=1)))
    rows = np.ascontiguousarray(programme.rows[:, turn] / norms[:, None])
    low, high = programme.low / norms, programme.high / norms
    forms = [] if structure is not None else programme.matrices()
    scales, stiffness = _scales(programme)
    z = np.minimum(np.repeat(parent[None, :] / children, children, axis=0), upper)
    u = np.zeros_like(z)
    s = np.clip(z @ rows.T, low, high)
    v = np.zeros_like(s)
    box = upper, rows, np.ascontiguousarray(rows.T), np.empty((0, 0)), low, high
    family, state = (linear, parent, has_parent, box), (z, u, s, v)
    counts = np.bincount(programme.kinds, minlength=len(programme.forms))
    gram = np.eye(cells) + rows.T @ rows if structure is None else None

    def advance(rho: float, factors: tuple[Any, ...], steps: int, relax: float) -> tuple[float, float]:
        pace = rho * scales[programme.kinds], steps, relax
        if structure is None:
            return dense_steps(factors[0], factors[1], programme.kinds, family, state, pace)
        sums = structure.plan, structure.sets, structure.used
        return structured_steps(factors[0], *sums, family, state, pace)

    def factored(rho: float) -> tuple[Any, ...]:
        if structure is None:
            return _factors(forms, gram, counts, rho * scales)
        form, core_rows = programme.forms[0], structure.core_rows / norms[:, None]
        assert isinstance(form, Form)
        return (structure.inverse(form.coefficients, core_rows, rho * float(scales[0])),)

    # Start near the solution without bounds: one step with a rho that hardly pulls.
    weak = START / stiffness
    advance(weak, factored(weak), 1, 1.0)
    u[:] = 0.0
    v[:] = 0.0
    rho, changed, step = FIRST, 0, 0
    factors: tuple[Any, ...] | None = None
    while step < MOST_STEPS:
        if factors is None:
            factors = factored(rho)
        primal, moved = advance(rho, factors, STEPS, RELAX)
        step += STEPS
        dual = rho * moved * max(1.0, stiffness / STIFF)  # a residual moves x most where H curves least
        if primal <= tolerance and dual <= tolerance:
            back = np.empty_like(turn)
            back[turn] = np.arange(cells)
            return Solution(z[:, back], step, primal, dual, method)
        ratio = math.sqrt(primal / max(dual, 1e-300))
        if not 1 / 3 < ratio < 3 and step - changed >= 2 * STEPS:
            ratio = min(max(ratio, 0.1), 10.0)
            rho, changed, factors = rho * ratio, step, None
            u /= ratio
            v /= ratio
    return None


def _scales(programme: Programme) -> tuple[NDArray[np.float64], float]:
    """The mean diagonal of every kind's H, the unit of its rho; and its ratio to the least curvature."""
    scales, stiffness = np.zeros(len(programme.forms)), 1.0
    for kind, form in enumerate(programme.forms):
        if isinstance(form, Form):
            scales[kind] = np.trace(form.coefficients.sum(axis=0)) / form.algebra.width
            curvatures = np.linalg.eigvalsh(form.algebra.blocks(form.coefficients)).reshape(-1)
        else:
            scales[kind] = np.trace(form) / programme.cells.size
            curvatures = (
                np.linalg.eigvalsh(form) if form.shape[0] <= LARGEST_EIGEN else scales[kind : kind + 1]
            )
        positive = curvatures[curvatures > 1e-12 * curvatures.max()]
        stiffness = max(stiffness, float(scales[kind] / positive.min()) if positive.size else 1.0)
    measured = scales > 0
    scales[~measured] = scales[measured].mean() if measured.any() else 1.0
    return scales, stiffness


def _factors(
    forms: list[NDArray[np.float64]],
    gram: NDArray[np.float64] | None,
    counts: NDArray[np.int64],
    rhos: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    assert gram is not None
    inverses = np.stack([np.linalg.inv(form + rho * gram) for form, rho in zip(forms, rhos, strict=True)])
    if len(forms) == 1:
        return inverses, np.zeros((1, 1))
    return inverses, np.linalg.inv(np.tensordot(counts.astype(np.float64), inverses, 1))


def unsolved() -> Refusal:
    """The refusal when no solver reaches the tolerance."""
    return Refusal(
        "the estimation of a family of nodes did not converge",
        field="estimation",
        expected="constraints that some table can keep",
        hint="Estimate again with another estimator, from the same measurements.",
    )
