"""The solvers of a family's programme: against interior-point solvers, and against each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from support.oracle import Fit, oracle, violation

from stirred.errors import Refusal
from stirred.spec.schema import Attribute, Recode, Schema
from stirred.topdown import admm, quadratic
from stirred.topdown.algebra import Algebra
from stirred.topdown.cells import Cells
from stirred.topdown.presets import preset
from stirred.topdown.quadratic import Form, Programme, solve

Method = Literal["dense", "structured", "pdlp"]

ONE_CELL = Cells(Schema.of(a=range(1)))
PLAIN = Cells(Schema.of(a=range(2), b=range(3), c=range(2)))
RECODED = Cells(
    Schema(
        attributes=tuple(
            Attribute(name=n, levels=tuple(range(k))) for n, k in zip("abc", (4, 2, 3), strict=True)
        ),
        recodes=(
            Recode(name="half", attribute="a", groups={"low": (0, 2), "high": (1, 3)}),
            Recode(name="first", attribute="a", groups={"low": (0,), "high": (1, 2, 3)}),
        ),
    )
)
QUERIES = {
    ONE_CELL: ("total",),
    PLAIN: ("total", "a", "b", "a * b", "b * c", "detailed"),
    RECODED: ("total", "a", "half", "first * b", "half * c", "b * c", "detailed"),
}


@dataclass(frozen=True, eq=False)
class Problem:
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


def random_problem(seed: int) -> Problem:
    """A small programme of any shape that occurs; feasible, as a true table keeps every constraint."""
    rng = np.random.default_rng(seed)
    cells = (PLAIN, RECODED, PLAIN, RECODED, ONE_CELL)[seed % 5]
    children = int(rng.choice([1, 2, 3, 6]))
    support = np.sort(rng.permutation(cells.count)[: rng.integers(1, cells.count + 1)])
    truth = rng.poisson(rng.choice([0.3, 3.0, 40.0], (children, support.size))).astype(float)
    kinds = rng.integers(0, rng.integers(1, 4), children)
    kinds = np.unique(kinds, return_inverse=True)[1]
    weights = []
    for _ in range(kinds.max() + 1):
        names = rng.permutation(QUERIES[cells])[: rng.integers(1, len(QUERIES[cells]) + 1)]
        weights.append({str(n): float(10 ** rng.uniform(-2, 0.5)) for n in names})
    if rng.random() < 0.5:
        for w in weights:
            w["detailed"] = 0.3
    upper = np.full(truth.shape, 1e12)
    if rng.random() < 0.5:
        upper = np.where(rng.random(truth.shape) < 0.4, truth + rng.integers(0, 3, truth.shape), upper)
    count = int(rng.integers(0, 4))
    rows = (rng.random((count, support.size)) < 0.5).astype(float)
    rows = rows[rows.sum(axis=1) > 0]
    sums = truth @ rows.T
    room = rng.choice([0.0, 0.5, 3.0], sums.shape)
    low, high = np.maximum(sums - room, 0.0), np.where(rng.random(sums.shape) < 0.2, 1e15, sums + room)
    return problem_of(
        cells, support, weights, kinds, truth, rng,
        has_parent=bool(rng.random() < 0.7), upper=upper, rows=rows, low=low, high=high,
    )  # fmt: skip


def gap(problem: Problem, x: np.ndarray, best: np.ndarray) -> float:
    """How far from the optimum, relative to the sum of squares; below zero where constraints are missed."""
    least = problem.fit.value(best)
    return (problem.fit.value(x) - least) / max(least, 1e-3)
