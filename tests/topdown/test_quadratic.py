"""The solvers of a family's programme: against interior-point solvers, and against each other."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from support.oracle import Problem, certified_gap, dense_parent, gap, oracle, problem_of, violation

from stirred.errors import Refusal
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Cells, admm, quadratic
from stirred.topdown.algebra import Algebra
from stirred.topdown.quadratic import solve

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


@pytest.mark.parametrize("block", range(10))
def test_admm_agrees_with_both_interior_point_solvers(block: int) -> None:
    for seed in range(block * 12, block * 12 + 12):
        problem = random_problem(seed)
        best = oracle(problem.fit, problem.programme, "clarabel")
        assert abs(gap(problem, oracle(problem.fit, problem.programme, "piqp"), best)) < 1e-5
        found = solve(problem.programme, 1e-6, "dense")
        assert found.method == "dense"
        assert abs(gap(problem, found.x, best)) < 2e-6, seed
        assert violation(problem.programme, found.x) < 2e-5
        usual = solve(problem.programme)
        assert abs(gap(problem, usual.x, best)) < 2e-4, seed
        assert violation(problem.programme, usual.x) < 2e-3


@pytest.mark.parametrize("block", range(5))
def test_pdlp_agrees_with_clarabel(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        problem = random_problem(seed)
        best = oracle(problem.fit, problem.programme)
        found = solve(problem.programme, 1e-4, "pdlp")
        assert found.method == "pdlp"
        assert abs(gap(problem, found.x, best)) < 2e-5, seed
        assert violation(problem.programme, found.x) < 1e-3
        assert (found.x >= 0).all() and (found.x <= problem.programme.upper).all()


def test_the_oracle_notices_a_wrong_table() -> None:
    problem = random_problem(1)
    best = oracle(problem.fit, problem.programme)
    wrong = problem.programme.parent / problem.programme.shape[0] + 0 * best
    assert gap(problem, wrong, best) > 1e-2 or violation(problem.programme, wrong) > 1e-2


WEIGHTS = {"total": 0.5, "a": 0.3, "half": 0.2, "b * c": 0.1, "detailed": 0.05}


def hard(name: str) -> Problem:
    """Programmes that are hard for first-order methods."""
    rng = np.random.default_rng(5)
    every, one = np.arange(RECODED.count), [WEIGHTS]
    zeros = np.zeros(8, dtype=np.int64)
    small = rng.poisson(5.0, (8, RECODED.count)).astype(float)
    if name.startswith("counts of"):
        truth = np.rint(rng.exponential(float(name.split()[-1]), (8, RECODED.count)))
        return problem_of(RECODED, every, one, zeros, truth, rng)
    if name.startswith("noise"):
        quiet = {k: w / float(name.split()[-1]) ** 2 for k, w in WEIGHTS.items()}
        rows, totals = np.ones((1, RECODED.count)), small.sum(axis=1, keepdims=True)
        return problem_of(RECODED, every, [quiet], zeros, small, rng, rows=rows, low=totals, high=totals)
    if name == "200 children of very different weights":
        truth = rng.poisson(1.0, (200, RECODED.count)).astype(float)
        two = [WEIGHTS, {k: w / 1e4 for k, w in WEIGHTS.items()}]
        return problem_of(RECODED, every, two, rng.integers(0, 2, 200), truth, rng)
    if name == "a child that measures nothing":
        return problem_of(RECODED, every, [{"b": 1.0}, {}], np.arange(8) % 2, small, rng)
    if name == "queries of very different weights":
        truth = rng.poisson(500.0, (30, RECODED.count)).astype(float)
        uneven = [{"total": 1e3, "a": 1.0, "detailed": 1e-3}]
        return problem_of(RECODED, every, uneven, np.zeros(30, dtype=np.int64), truth, rng)
    if name == "bounds that leave one table":
        return problem_of(RECODED, every, one, zeros, small, rng, upper=small.copy())
    assert name == "equalities on crossing partitions"
    rows = []
    for query in map(RECODED.query, ("a", "b", "c", "a * b", "half * c")):
        rows += [(query.groups == g).astype(float) for g in range(query.size)]
    matrix = np.array(rows)
    sums = small @ matrix.T
    return problem_of(RECODED, every, one, zeros, small, rng, rows=matrix, low=sums, high=sums)


@pytest.mark.parametrize("method", ["dense", "pdlp"])
@pytest.mark.parametrize(
    "name",
    [
        "counts of 1e3",
        "counts of 1e5",
        "counts of 1e7",
        "noise of 1e2",
        "noise of 1e4",
        "200 children of very different weights",
        "a child that measures nothing",
        "queries of very different weights",
        "bounds that leave one table",
        "equalities on crossing partitions",
    ],
)
def test_hard_programmes(name: str, method: Method) -> None:
    problem = hard(name)
    best = oracle(problem.fit, problem.programme)
    found = solve(problem.programme, 1e-6, method)
    assert found.method == method, "ADMM did not converge"
    assert abs(gap(problem, found.x, best)) < 2e-5
    assert violation(problem.programme, found.x) < 1e-2
    assert found.steps <= (3000 if method == "dense" else 50_000)


@pytest.mark.parametrize("mean", [3.0, 50.0, 500.0])
@pytest.mark.parametrize(
    "weights",
    [
        {"total": 1e3, "a": 1.0, "detailed": 1e-5},
        {"total": 1e3, "detailed": 1e-3},
        {"total": 1e2, "a * b": 1.0, "detailed": 1e-4},
    ],
)
def test_the_tolerance_holds_where_curvatures_differ(weights: dict[str, float], mean: float) -> None:
    """A small gradient is far from the optimum along a direction in which the objective hardly curves."""
    rng = np.random.default_rng(5)
    truth = rng.poisson(mean, (30, RECODED.count)).astype(float)
    problem = problem_of(
        RECODED, np.arange(RECODED.count), [weights], np.zeros(30, dtype=np.int64), truth, rng
    )
    found = solve(problem.programme)
    assert found.method == "dense"
    assert abs(gap(problem, found.x, oracle(problem.fit, problem.programme))) < 1e-5


STRUCTURED = {
    "crossing queries without their meet": (PLAIN, ("a * b", "b * c", "detailed")),
    "two attributes without the total": (PLAIN, ("a", "b", "detailed")),
    "one plain attribute": (Cells(Schema.of(a=range(5))), ("total", "detailed")),
    "three plain attributes": (PLAIN, QUERIES[PLAIN]),
    "a core and two plain attributes": (RECODED, QUERIES[RECODED]),
    "core in the middle": (
        Cells(
            Schema(
                attributes=tuple(
                    Attribute(name=n, levels=tuple(range(k))) for n, k in zip("xay", (3, 4, 2), strict=True)
                ),
                recodes=(Recode(name="half", attribute="a", groups={"low": (0, 2), "high": (1, 3)}),),
            )
        ),
        ("total", "x", "half", "x * half", "a * y", "detailed"),
    ),
    "all core": (
        Cells(
            Schema(
                attributes=(Attribute(name="a", levels=tuple(range(6))),),
                recodes=(Recode(name="half", attribute="a", groups={"low": (0, 2, 5), "high": (1, 3, 4)}),),
            )
        ),
        ("half", "total", "detailed"),
    ),
}


@pytest.mark.parametrize("has_parent", [True, False])
@pytest.mark.parametrize("rows", ["none", "core", "total"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", STRUCTURED)
def test_structured_equals_dense(name: str, missing: bool, rows: str, has_parent: bool) -> None:
    cells, queries = STRUCTURED[name]
    rng = np.random.default_rng(len(name))
    weights = {q: float(rng.uniform(0.1, 1)) for q in queries}
    algebra = Algebra.of(cells, [cells.query(q) for q in queries])
    numbers = algebra.fold(np.arange(cells.count, dtype=float)).reshape(algebra.width, -1)
    levels = np.arange(algebra.width)
    if missing and algebra.width > 1:
        levels = levels[levels != 1]
    support = np.sort(numbers[levels].astype(np.int64).reshape(-1))
    truth = rng.poisson(2.0, (4, support.size)).astype(float)
    matrix = None
    if rows == "core":
        matrix = np.isin(support, numbers[levels[: 1 + levels.size // 2]])[None, :].astype(float)
    elif rows == "total":
        matrix = np.ones((1, support.size))
    sums = None if matrix is None else truth @ matrix.T
    problem = problem_of(
        cells, support, [weights], np.zeros(4, dtype=np.int64), truth, rng,
        has_parent=has_parent, rows=matrix, low=sums, high=None if sums is None else sums + 1,
        upper=np.where(rng.random(truth.shape) < 0.3, truth, 1e12),
    )  # fmt: skip
    structured = solve(problem.programme, 1e-8, "structured")
    dense = solve(problem.programme, 1e-8, "dense")
    assert (structured.method, dense.method) == ("structured", "dense")
    np.testing.assert_allclose(structured.x, dense.x, atol=1e-6)


def test_structure_is_not_seen_where_there_is_none() -> None:
    rng = np.random.default_rng(1)
    truth = rng.poisson(2.0, (3, RECODED.count)).astype(float)
    kinds = np.zeros(3, dtype=np.int64)

    def structure(
        support: np.ndarray, weights: list[dict[str, float]], rows: np.ndarray | None = None
    ) -> object:
        part = truth[:, : support.size]
        chosen = np.arange(3) % len(weights)
        problem = problem_of(RECODED, support, weights, kinds + chosen, part, rng, rows=rows)
        return quadratic._Structure.of(problem.programme)

    every = np.arange(RECODED.count)
    assert structure(every, [WEIGHTS]) is not None
    assert structure(every[1:], [WEIGHTS]) is None, "a cell is missing"
    assert structure(every, [WEIGHTS, {"detailed": 1.0}]) is None, "two kinds"
    row = np.zeros((1, RECODED.count))
    row[0, 0] = 1
    assert structure(every, [WEIGHTS], row) is None, "a row that is not of whole core levels"


def test_the_methods_are_chosen_by_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = hard("counts of 1e3")
    assert solve(problem.programme).method == "dense"
    monkeypatch.setattr(quadratic, "SMALLEST_STRUCTURED", 10)
    assert solve(problem.programme).method == "structured"
    monkeypatch.setattr(quadratic, "SMALLEST_STRUCTURED", 1000)
    monkeypatch.setattr(quadratic, "LARGEST_DENSE", 10)
    assert solve(problem.programme).method == "pdlp"


def test_pdlp_takes_over_where_admm_does_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quadratic, "MOST_STEPS", 20)
    for seed in (2, 8, 33):
        problem = random_problem(seed)
        found = solve(problem.programme, 1e-12, "dense")
        assert found.method == "pdlp"
        assert abs(gap(problem, found.x, oracle(problem.fit, problem.programme))) < 2e-5


@pytest.mark.parametrize("method", ["dense", "pdlp", "auto"])
def test_an_infeasible_programme_is_refused(method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quadratic, "MOST_STEPS", 400)
    rng = np.random.default_rng(1)
    truth = rng.poisson(3.0, (3, PLAIN.count)).astype(float)
    rows, sums = np.ones((1, PLAIN.count)), truth.sum(axis=1, keepdims=True) + 1
    problem = problem_of(
        PLAIN, np.arange(PLAIN.count), [{"detailed": 1.0}], np.zeros(3, dtype=np.int64), truth, rng,
        rows=rows, low=sums, high=sums,
    )  # fmt: skip
    with pytest.raises(Refusal, match="did not converge"):
        solve(problem.programme, 1e-4, method)


def test_the_same_programme_gives_the_same_bits() -> None:
    problem = hard("noise of 1e2")
    np.testing.assert_array_equal(solve(problem.programme).x, solve(problem.programme).x)


def test_compiled_steps_equal_plain_arithmetic() -> None:
    """One step of the dense form against the formulas in the module's text."""
    rng = np.random.default_rng(2)
    children, width, rho = 3, 4, np.array([0.7, 0.7, 1.9])
    kinds = np.array([0, 0, 1])
    forms = [np.cov(rng.normal(size=(width, 9))) + np.eye(width) for _ in range(2)]
    rows = np.array([[1.0, 1, 0, 0]])
    gram = np.eye(width) + rows.T @ rows
    inverses = np.stack([np.linalg.inv(forms[0] + 0.7 * gram), np.linalg.inv(forms[1] + 1.9 * gram)])
    correction = np.linalg.inv(2 * inverses[0] + inverses[1])
    linear, parent = rng.normal(size=(children, width)), np.full(width, 2.0)
    upper, low, high = (
        np.full((children, width), 1.5),
        np.full((children, 1), 0.5),
        np.full((children, 1), 2.0),
    )
    z, u = rng.random((children, width)), rng.normal(size=(children, width))
    s, v = rng.random((children, 1)), rng.normal(size=(children, 1))
    target = linear + rho[:, None] * (z - u + (s - v) @ rows)
    x = np.stack([inverses[k] @ t for k, t in zip(kinds, target, strict=True)])
    nu = correction @ (parent - x.sum(axis=0))
    x += np.stack([inverses[k] @ nu for k in kinds])
    w, r = x + u, x @ rows.T + v
    expected = (
        np.clip(w, 0, upper),
        w - np.clip(w, 0, upper),
        np.clip(r, low, high),
        r - np.clip(r, low, high),
    )
    box = upper, rows, np.ascontiguousarray(rows.T), np.empty((0, 0)), low, high
    family = linear, parent, True, box
    admm.dense_steps(inverses, correction, kinds, family, (z, u, s, v), (rho, 1, 1.0))
    for actual, wanted in zip((z, u, s, v), expected, strict=True):
        np.testing.assert_allclose(actual, wanted, atol=1e-12)
    np.testing.assert_allclose(x.sum(axis=0), parent)


def test_a_dense_parent_with_the_production_queries() -> None:
    problem = dense_parent("production")
    found = solve(problem.programme, 1e-7)
    assert found.method == "structured"
    assert found.steps <= 700
    assert violation(problem.programme, found.x) < 1e-4
    assert abs(certified_gap(problem, found.x)) < 1e-6
    usual = solve(problem.programme)
    assert abs(certified_gap(problem, usual.x)) < 2e-3
    assert abs(problem.fit.value(usual.x) / problem.fit.value(found.x) - 1) < 1e-4


@pytest.mark.slow
def test_a_dense_parent_within_a_millionth_of_clarabel() -> None:
    problem = dense_parent("simple")
    best = oracle(problem.fit, problem.programme)
    for tolerance in (1e-4, 1e-6):
        found = solve(problem.programme, tolerance)
        assert found.method == "structured"
        assert abs(gap(problem, found.x, best)) < 1e-6
