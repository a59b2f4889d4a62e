"""Reference solutions of the quadratic programme of a family, by interior-point solvers, in residual form.

Variables are the table and the residuals of every query; the objective is the sum of weighted squared
residuals, constant included, so that a relative error of it means something.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from stirred.topdown import Cells, preset
from stirred.topdown.algebra import Algebra
from stirred.topdown.quadratic import Form, Programme


@dataclass(frozen=True, eq=False)
class Fit:
    """Least squares: for each child the weights of queries and their noisy answers."""

    cells: Cells
    support: np.ndarray
    weights: Sequence[Mapping[str, float]]
    answers: Sequence[Mapping[str, np.ndarray]]

    def linear(self) -> np.ndarray:
        out = np.zeros((len(self.weights), self.support.size))
        for c, (weights, answers) in enumerate(zip(self.weights, self.answers, strict=True)):
            for name, weight in weights.items():
                out[c] += weight * answers[name][self.cells.query(name).groups[self.support]]
        return out

    def value(self, x: np.ndarray) -> float:
        """The sum of weighted squared residuals, halved."""
        total = 0.0
        for c, (weights, answers) in enumerate(zip(self.weights, self.answers, strict=True)):
            for name, weight in weights.items():
                query = self.cells.query(name)
                sums = np.bincount(query.groups[self.support], weights=x[c], minlength=query.size)
                total += 0.5 * weight * float(((sums - answers[name]) ** 2).sum())
        return total


@dataclass
class Rows:
    """Linear constraints, collected: low <= A v <= high."""

    parts: list[Any] = field(default_factory=list)
    low: list[np.ndarray] = field(default_factory=list)
    high: list[np.ndarray] = field(default_factory=list)

    def add(self, matrix: Any, low: np.ndarray, high: np.ndarray) -> None:
        self.parts.append(sp.csr_matrix(matrix))
        self.low.append(np.asarray(low, dtype=float).reshape(-1))
        self.high.append(np.asarray(high, dtype=float).reshape(-1))


def oracle(fit: Fit, programme: Programme, solver: Literal["clarabel", "piqp"] = "clarabel") -> np.ndarray:
    """The optimal table of a programme whose objective is the fit."""
    children, width = programme.shape
    residuals, weights, targets = [], [], []
    near = _near(fit, programme)
    own = np.zeros(programme.shape)
    pull = np.zeros(programme.shape)
    for c in range(children):
        for name, weight in fit.weights[c].items():
            query = fit.cells.query(name)
            if name == "detailed":  # needs no residuals of its own
                own[c] = weight
                pull[c] = weight * (near[c] - fit.answers[c][name][fit.support])
                continue
            groups = query.groups[fit.support]
            residuals.append(
                sp.csr_matrix(
                    (np.ones(width), (groups, c * width + np.arange(width))),
                    shape=(query.size, children * width),
                )
            )
            weights.append(np.full(query.size, weight))
            targets.append(fit.answers[c][name])
    count = sum(part.shape[0] for part in residuals)
    size = children * width
    rows = Rows()
    if residuals:
        goal = np.concatenate(targets)
        rows.add(sp.hstack([sp.vstack(residuals), -sp.identity(count)]), goal, goal)
    pad = sp.csr_matrix((size, count))
    rows.add(sp.hstack([sp.identity(size), pad]), np.zeros(size), programme.upper)
    if programme.parent is not None:
        sums = sp.kron(np.ones((1, children)), sp.identity(width))
        rows.add(sp.hstack([sums, sp.csr_matrix((width, count))]), programme.parent, programme.parent)
    if programme.rows.shape[0]:
        each = sp.kron(sp.identity(children), sp.csr_matrix(programme.rows))
        rows.add(sp.hstack([each, sp.csr_matrix((each.shape[0], count))]), programme.low, programme.high)
    quadratic = sp.diags(np.concatenate([own.reshape(-1), *weights]), format="csc")
    matrix = sp.vstack(rows.parts, format="csc")
    low, high = np.concatenate(rows.low), np.concatenate(rows.high)
    # Counts are taken relative to a table near the answers: tolerances are then those of residuals.
    start = np.concatenate([near.reshape(-1), np.zeros(count)])
    linear = np.concatenate([pull.reshape(-1), np.zeros(count)])
    shift = matrix @ start
    low, high = np.where(low <= -1e11, -np.inf, low) - shift, np.where(high >= 1e11, np.inf, high) - shift
    solve = _clarabel if solver == "clarabel" else _piqp
    found = solve(quadratic, linear, matrix, low, high) + start
    return np.asarray(found[:size]).reshape(children, width)


def _near(fit: Fit, programme: Programme) -> np.ndarray:
    if all("detailed" in answers for answers in fit.answers):
        return np.stack([np.maximum(answers["detailed"][fit.support], 0.0) for answers in fit.answers])
    mean = 0.0 if programme.parent is None else np.rint(programme.parent / programme.shape[0])
    return np.zeros(programme.shape) + mean


def _clarabel(
    quadratic: Any, linear: np.ndarray, matrix: Any, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    import clarabel

    equal = low == high
    above, below = ~equal & np.isfinite(high), ~equal & np.isfinite(low)
    stacked = sp.vstack([matrix[equal], matrix[above], -matrix[below]], format="csc")
    right = np.concatenate([high[equal], high[above], -low[below]])
    cones = [
        clarabel.ZeroConeT(int(equal.sum())),
        clarabel.NonnegativeConeT(int(above.sum() + below.sum())),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas"):
        setattr(settings, name, 1e-10)
    made = clarabel.DefaultSolver(quadratic, linear, stacked, right, cones, settings)
    solution = made.solve()
    assert str(solution.status) in ("Solved", "AlmostSolved"), solution.status
    return np.asarray(solution.x)


def _piqp(quadratic: Any, linear: np.ndarray, matrix: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    import piqp

    equal = low == high
    solver = piqp.SparseSolver()
    solver.settings.verbose = False
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.setup(
        quadratic,
        linear,
        matrix[equal].tocsc(),
        high[equal],
        matrix[~equal].tocsc(),
        low[~equal],
        high[~equal],
    )
    status = solver.solve()
    assert status == piqp.PIQP_SOLVED, status
    return np.asarray(solver.result.x)


def violation(programme: Programme, x: np.ndarray) -> float:
    """The largest violation of a bound, a row or a parent's count."""
    worst = max(0.0, float(-x.min()), float((x - programme.upper).max()))
    if programme.parent is not None:
        worst = max(worst, float(np.abs(x.sum(axis=0) - programme.parent).max()))
    if programme.rows.shape[0]:
        sums = x @ programme.rows.T
        worst = max(worst, float((programme.low - sums).max()), float((sums - programme.high).max()))
    return worst


@dataclass(frozen=True, eq=False)
class Problem:
    """A programme, and the fit that is its objective."""

    programme: Programme
    fit: Fit


def problem_of(
    cells: Cells,
    support: np.ndarray,
    weights: list[dict[str, float]],
    kinds: np.ndarray,
    truth: np.ndarray,
    rng: np.random.Generator,
    *,
    has_parent: bool = True,
    upper: np.ndarray | None = None,
    rows: np.ndarray | None = None,
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
    also_core: tuple[int, ...] = (),
) -> Problem:
    """Noisy answers on a true table, and the programme that fits them."""
    children = truth.shape[0]
    answers = []
    for c in range(children):
        mine = {}
        for name, weight in weights[kinds[c]].items():
            query = cells.query(name)
            exact = np.bincount(query.groups[support], weights=truth[c], minlength=query.size)
            mine[name] = np.rint(exact + rng.normal(0, weight**-0.5, query.size))
        answers.append(mine)
    fit = Fit(cells, support, [weights[k] for k in kinds], answers)
    names = sorted({name for w in weights for name in w})
    algebra = Algebra.of(cells, [cells.query(name) for name in names], also_core)
    m = 0 if rows is None else rows.shape[0]
    programme = Programme(
        forms=tuple(Form.of_queries(algebra, w) for w in weights),
        kinds=np.asarray(kinds, dtype=np.int64),
        cells=support,
        linear=fit.linear(),
        parent=truth.sum(axis=0) if has_parent else None,
        upper=np.full(truth.shape, 1e12) if upper is None else upper,
        rows=np.zeros((0, support.size)) if rows is None else rows,
        low=np.zeros((children, m)) if low is None else low,
        high=np.full((children, m), 1e15) if high is None else high,
    )
    return Problem(programme, fit)


def gap(problem: Problem, x: np.ndarray, best: np.ndarray) -> float:
    """How far from the optimum, relative to the sum of squares; below zero where constraints are missed."""
    least = problem.fit.value(best)
    return (problem.fit.value(x) - least) / max(least, 1e-3)


def dense_parent(workload: str, children: int = 50) -> Problem:
    """Tracts of a large county on all 2016 cells of the redistricting schema."""
    made = preset("pl-2020-us-persons")
    cells, rng = Cells(made.schema), np.random.default_rng(3)
    share = rng.dirichlet(np.full(cells.count, 0.08))
    truth = rng.poisson(4000 * share * rng.gamma(3, 1 / 3, (children, 1))).astype(float)
    truth[0] += truth.sum(axis=0) == 0
    every, kinds = np.arange(cells.count), np.zeros(children, dtype=np.int64)
    if workload == "production":
        budget = made.allocation
        weights = {n: float(1 / budget.variance("tract", n)) for n in budget.queries["tract"]}
        return problem_of(cells, every, [weights], kinds, truth, rng)
    simple = {"hhgq": 0.05, "hispanic * race": 0.1, "detailed": 0.05}
    totals = truth.sum(axis=1, keepdims=True)
    return problem_of(
        cells, every, [simple], kinds, truth, rng, rows=np.ones((1, cells.count)), low=totals, high=totals
    )


def certified_gap(problem: Problem, x: np.ndarray) -> float:
    """An upper bound of the relative gap of a table under parent's sums alone, from its own gradient."""
    programme = problem.programme
    form = programme.forms[0]
    assert isinstance(form, Form) and programme.parent is not None
    slope = form.algebra.apply(form.coefficients, x) - programme.linear
    best = (programme.parent * slope.min(axis=0)).sum()
    return float(((slope * x).sum() - best) / problem.fit.value(x))
