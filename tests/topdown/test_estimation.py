"""Estimation down a whole spine: exact in the limit, optimal on small problems, consistent always."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.oracle import violation
from support.strategies import reproducibly

from stirred.data import Histogram, Spine, levels_of
from stirred.noise import TestSource
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Allocation, Cells, Chunk, Design, Measurements, Settings
from stirred.topdown import family as family_module
from stirred.topdown.bounds import Bounds
from stirred.topdown.constraint import as_constraints
from stirred.topdown.estimation import estimate, level_passes
from stirred.topdown.invariants import invariant_values
from stirred.topdown.measurement import measure
from stirred.topdown.quadratic import Programme, Solution

Estimator = Any


def spine_of(*paths: str) -> Spine:
    """A spine from paths such as ``a.b.c``; an empty step is a missing code."""
    rows = [[step or None for step in path.split(".")] for path in paths]
    names = [f"level{i}" for i in range(len(rows[0]))]
    return Spine.from_columns(pl.DataFrame(rows, schema=names, orient="row"), names)


def cells_of(*sizes: int, recode: tuple[str, tuple[int, ...]] | None = None) -> Cells:
    attributes = tuple(Attribute(name="abcd"[i], levels=tuple(range(n))) for i, n in enumerate(sizes))
    recodes = ()
    if recode is not None:
        groups = {
            f"g{g}": tuple(i for i, x in enumerate(recode[1]) if x == g) for g in sorted(set(recode[1]))
        }
        recodes = (Recode(name="part", attribute=recode[0], groups=groups),)
    return Cells(Schema(attributes=attributes, recodes=recodes))


SPINES = {
    "one node": spine_of("r"),
    "several roots": spine_of("r.x", "r.y", "s.x2", "s.y2", "s.z2"),
    "path": spine_of("r.x.p"),
    "only children": spine_of("r.x.p", "r.x.q", "r.y.s", "r.z.t", "r.z.u"),
    "only child of the root": spine_of("r.x.p", "r.x.q", "r.x.s"),
    "ragged": spine_of("r.x.p.1", "r.x.p.2", "r..q.3", "r..q.4", "r.y..5", "r.y..6", "r.z.u."),
    "wide": spine_of(*(f"r.{i // 9}.{i}" for i in range(40))),
}
SCHEMAS = {
    "one cell": cells_of(1),
    "plain": cells_of(2, 3),
    "recode": cells_of(3, 2, recode=("a", (0, 1, 1))),
    "three": cells_of(2, 2, 3, recode=("c", (0, 0, 1))),
}
QUERIES = {
    "one cell": ("total",),
    "plain": ("total", "a", "b"),
    "recode": ("total", "part", "b", "part * b"),
    "three": ("total", "a", "part", "a * b", "b * c"),
}


def declared(kind: str, cells: Cells, spine: Spine) -> list[dict[str, Any]]:
    """Constraints of every sort that a true table keeps."""
    leaf, root = spine.levels[-1], spine.levels[0]
    first = cells.names[0]
    return {
        "none": [],
        "root totals": [{"kind": "invariant", "count": {"unit": "person", "by": [root]}}],
        "leaf totals": [{"kind": "invariant", "count": {"unit": "person", "by": [leaf]}}],
        "attribute by leaf": [{"kind": "invariant", "count": {"unit": "person", "by": [leaf, first]}}],
        "both": [
            {"kind": "invariant", "count": {"unit": "person", "by": [leaf]}},
            {"kind": "invariant", "count": {"unit": "person", "by": [root, first]}},
        ],
        "bounds": [
            {"kind": "edit", "level": leaf, "query": "total", "at_most": 60},
            {"kind": "edit", "level": leaf, "query": first, "at_least": 0, "at_most": 40},
        ],
        "zero": [{"kind": "structural_zero", "where": {first: [0]}}],
    }[kind]


KINDS = ("none", "root totals", "leaf totals", "attribute by leaf", "both", "bounds", "zero")


class World:
    """A spine, cells, a truth and constraints that it keeps."""

    def __init__(self, spine: Spine, name: str, kind: str, rho: Any, rng: np.random.Generator) -> None:
        self.spine, self.cells, self.name = spine, SCHEMAS[name], name
        count = self.cells.count
        leaves = spine.size(spine.depth - 1)
        if kind == "zero" and self.cells.shape[0] == 1:
            kind = "none"
        truth = np.minimum(rng.poisson(rng.choice([0.0, 0.4, 5.0], (leaves, count))), 60 // count)
        if kind == "zero":
            truth[:, self.cells.query(self.cells.names[0]).groups == 0] = 0
        rows, columns = np.nonzero(truth)
        leaf = Histogram.of_counts(rows, columns, truth[rows, columns], leaves, count)
        self.truth = levels_of(leaf, spine)
        share = {level: Fraction(1, spine.depth) for level in spine.levels}
        queries = {}
        for level in spine.levels:
            asked = {self.cells.canonical(q) for q in rng.permutation(QUERIES[name])[: rng.integers(0, 4)]}
            asked.add("detailed")
            queries[level] = dict.fromkeys(sorted(asked), Fraction(1, len(asked)))
        allocation = Allocation.of(self.cells, rho, share, queries)
        self.design = Design(self.cells, spine, allocation)
        constraints = as_constraints(declared(kind, self.cells, spine))
        values = invariant_values(constraints, {"person": self.cells}, spine, {"person": self.truth})
        self.bounds = Bounds(self.cells, spine, "person", constraints, values)
        self.bounds.check(self.truth)

    def settings(self, estimator: Estimator = "multipass", **more: Any) -> Settings:
        level = self.spine.levels[-1]
        return Settings(passes={level: [["total"], ["detailed"]]}, estimator=estimator, **more)

    def measured(self, seed: int) -> Measurements:
        return measure(self.design, self.truth, TestSource(seed))


def tables(levels: Sequence[Histogram]) -> list[np.ndarray]:
    return [level.dense(0, level.nodes) for level in levels]


def consistent(world: World, levels: Sequence[Histogram]) -> None:
    """Non-negative integers, children that add up, every constraint kept."""
    dense = tables(levels)
    for table in dense:
        assert table.dtype == np.int64
        assert (table >= 0).all()
    for level in range(world.spine.depth - 1):
        np.testing.assert_array_equal(world.spine.sums(level, dense[level + 1]), dense[level])
    world.bounds.check(levels)


@st.composite
def worlds(draw: st.DrawFn, rho: Any) -> World:
    spine = draw(st.sampled_from(list(SPINES.values())))
    name = draw(st.sampled_from(list(SCHEMAS)))
    kind = draw(st.sampled_from(KINDS))
    return World(spine, name, kind, rho, np.random.default_rng(draw(st.integers(0, 2**32 - 1))))


@st.composite
def ragged_spines(draw: st.DrawFn) -> Spine:
    """Random spines of three levels below a root: some nodes alone, some codes missing."""
    paths, number = [], 0
    for i in range(draw(st.integers(1, 3))):
        for j in range(draw(st.integers(1, 3))):
            middle = "" if draw(st.booleans()) and j == 0 else f"m{i}{j}"
            for _ in range(1 if not middle else draw(st.integers(1, 3))):
                paths.append(f"r.t{i}.{middle}.{number}")
                number += 1
    return spine_of(*paths)


@pytest.mark.parametrize("estimator", ["multipass", "gls"])
@reproducibly(30)
@given(world=worlds(10**9))
def test_with_a_huge_budget_the_estimate_is_the_truth(estimator: Estimator, world: World) -> None:
    levels, _ = estimate(world.measured(1), world.bounds, world.settings(estimator))
    consistent(world, levels)
    for found, exact in zip(tables(levels), tables(world.truth), strict=True):
        np.testing.assert_array_equal(found, exact)


@pytest.mark.parametrize("estimator", ["multipass", "gls"])
@reproducibly(30)
@given(world=worlds(Fraction(1, 2)), seed=st.integers(0, 2**16))
def test_estimates_are_consistent(estimator: Estimator, world: World, seed: int) -> None:
    levels, effort = estimate(world.measured(seed), world.bounds, world.settings(estimator))
    consistent(world, levels)
    assert set(effort) == set(world.spine.levels)


@reproducibly(25)
@given(
    spine=ragged_spines(),
    name=st.sampled_from(list(SCHEMAS)),
    kind=st.sampled_from(KINDS),
    estimator=st.sampled_from(["multipass", "gls"]),
    seed=st.integers(0, 2**16),
)
def test_estimates_are_consistent_on_random_ragged_spines(
    spine: Spine, name: str, kind: str, estimator: Estimator, seed: int
) -> None:
    world = World(spine, name, kind, Fraction(1, 10), np.random.default_rng(seed))
    levels, _ = estimate(world.measured(seed), world.bounds, world.settings(estimator))
    consistent(world, levels)


@pytest.mark.parametrize("rho", [Fraction(1, 10**8), Fraction(1, 100)])
def test_tiny_budgets(rho: Fraction) -> None:
    """Noise of a standard deviation of ten thousand and more on counts of a few."""
    for number, kind in enumerate(KINDS):
        world = World(SPINES["only children"], "three", kind, rho, np.random.default_rng(number))
        if kind == "none":
            continue  # nothing holds the total at the root: millions of records, and nothing to check
        levels, _ = estimate(world.measured(number), world.bounds, world.settings())
        consistent(world, levels)


def test_large_counts() -> None:
    rng = np.random.default_rng(1)
    world = World(SPINES["wide"], "recode", "none", 1, rng)
    leaves = world.spine.size(2)
    truth = rng.integers(0, 10**7, (leaves, world.cells.count))
    rows, columns = np.nonzero(truth)
    leaf = Histogram.of_counts(rows, columns, truth[rows, columns], leaves, world.cells.count)
    world.truth = levels_of(leaf, world.spine)
    levels, effort = estimate(world.measured(1), world.bounds, world.settings())
    consistent(world, levels)
    assert np.abs(tables(levels)[-1] - truth).max() < 100
    assert all("pdlp" not in level.methods for level in effort.values())


@pytest.mark.parametrize("estimator", ["multipass", "gls"])
def test_the_number_of_threads_does_not_matter(estimator: Estimator) -> None:
    for number, (spine, name) in enumerate(itertools.product(("wide", "ragged"), ("three", "recode"))):
        world = World(SPINES[spine], name, KINDS[number], Fraction(1, 3), np.random.default_rng(number))
        measured = world.measured(5)
        made = [estimate(measured, world.bounds, world.settings(estimator, threads=n))[0] for n in (1, 2, 3)]
        for other in made[1:]:
            for one, two in zip(tables(made[0]), tables(other), strict=True):
                np.testing.assert_array_equal(one, two)


def test_linear_algebra_has_one_thread_whatever_the_number_of_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With two the sums come in another order, and a tie in rounding may fall the other way."""
    from threadpoolctl import threadpool_info

    seen: list[int] = []
    original = family_module.solve

    def solve(programme: Programme, tolerance: float) -> Solution:
        seen.extend(i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas")
        return original(programme, tolerance)

    monkeypatch.setattr(family_module, "solve", solve)
    world = World(SPINES["wide"], "three", "none", 1, np.random.default_rng(1))
    estimate(world.measured(1), world.bounds, world.settings(threads=2))
    assert set(seen) == {1}


def answers(design: Design, values: Mapping[str, np.ndarray]) -> Measurements:
    """Measurements of a single level, given directly."""
    count = next(iter(values.values())).shape[0]
    chunk = Chunk(0, 0, count, {k: v.astype(np.int32) for k, v in values.items()})
    return Measurements(design, lambda level, number: chunk)


def smallest(target: np.ndarray, total: int | None) -> float:
    """The least squared distance to a table of non-negative integers (with a total), by trying them all."""
    best = np.inf
    for table in itertools.product(range(8), repeat=target.size):
        if total is None or sum(table) == total:
            best = min(best, float(((np.array(table) - target) ** 2).sum()))
    return best


@pytest.mark.parametrize("total", [None, 4, 7])
def test_one_level_and_the_detailed_query_give_the_projection(
    total: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells, spine = cells_of(2, 2), spine_of("r")
    design = Design(cells, spine, Allocation.of(cells, 1, {"level0": 1}, {"detailed": 1}))
    constraints: tuple[Any, ...] = ()
    values: dict[str, np.ndarray] = {}
    if total is not None:
        constraints = as_constraints([{"kind": "invariant", "count": {"unit": "person", "by": ["level0"]}}])
        truth = (Histogram.of_counts(np.zeros(1), np.zeros(1), np.array([total]), 1, 4),)
        values = invariant_values(constraints, {"person": cells}, spine, {"person": truth})
    bounds = Bounds(cells, spine, "person", constraints, values)
    seen: list[np.ndarray] = []
    original = family_module.solve

    def solve(programme: Programme, tolerance: float) -> Solution:
        found = original(programme, tolerance)
        seen.append(found.x)
        return found

    monkeypatch.setattr(family_module, "solve", solve)
    rng = np.random.default_rng(total or 0)
    for _ in range(12):
        noisy = rng.integers(-4, 6, 4)
        levels, _ = estimate(answers(design, {"detailed": noisy[None, :]}), bounds, Settings())
        # The projection: a common shift, then zero where negative; the shift by bisection.
        shift = 0.0
        if total is not None:
            low, high = -50.0, 50.0
            for _ in range(100):
                shift = (low + high) / 2
                low, high = (shift, high) if np.maximum(noisy + shift, 0).sum() < total else (low, shift)
        projection = np.maximum(noisy + shift, 0)
        np.testing.assert_allclose(seen[-1][0], projection, atol=2e-3)
        found = levels[0].dense(0, 1)[0]
        if total is not None:
            assert found.sum() == total
        # Rounding is nearest to the projection in L1, cells and total alike, among all integer tables.
        tried = [
            np.array(t) for t in itertools.product(range(8), repeat=4) if total is None or sum(t) == total
        ]
        distance = [np.abs(t - projection).sum() + abs(t.sum() - projection.sum()) for t in tried]
        mine = np.abs(found - projection).sum() + abs(found.sum() - projection.sum())
        assert mine <= min(distance) + 1e-2
        if total is None:
            assert ((found - noisy) ** 2).sum() == smallest(noisy, total)


@pytest.mark.parametrize("block", range(4))
def test_every_pass_agrees_with_the_oracle(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programmes that estimation sets up, solved again by an interior-point solver: over 100 of them."""
    seen: list[tuple[Programme, Solution]] = []
    original = family_module.solve

    def solve(programme: Programme, tolerance: float) -> Solution:
        seen.append((programme, original(programme, tolerance)))
        return seen[-1][1]

    monkeypatch.setattr(family_module, "solve", solve)
    names = list(SPINES)
    for seed in range(block * 8, block * 8 + 8):
        world = World(
            SPINES[names[seed % len(names)]],
            list(SCHEMAS)[seed % 4],
            KINDS[seed % len(KINDS)],
            Fraction(1, 2),
            np.random.default_rng(seed),
        )
        estimate(world.measured(seed), world.bounds, world.settings(tolerance=1e-6))
    assert len(seen) >= 25
    for programme, found in seen:
        best = again(programme)
        mine, least = objective(programme, found.x), objective(programme, best)
        constant = squares(programme)
        assert abs(mine - least) <= 1e-5 * max(least + constant, 1e-3), found
        assert violation(programme, found.x) < 1e-4


def again(programme: Programme) -> np.ndarray:
    """The programme by Clarabel, with the quadratic as it stands."""
    import scipy.sparse as sp
    from support import oracle as tools

    children, width = programme.shape
    matrices = programme.matrices()
    quadratic = sp.block_diag([matrices[k] for k in programme.kinds], format="csc")
    rows = tools.Rows()
    size = children * width
    rows.add(sp.identity(size), np.zeros(size), programme.upper)
    if programme.parent is not None:
        rows.add(sp.kron(np.ones((1, children)), sp.identity(width)), programme.parent, programme.parent)
    if programme.rows.shape[0]:
        rows.add(sp.kron(sp.identity(children), sp.csr_matrix(programme.rows)), programme.low, programme.high)
    low, high = np.concatenate(rows.low), np.concatenate(rows.high)
    low, high = np.where(low <= -1e11, -np.inf, low), np.where(high >= 1e11, np.inf, high)
    matrix = sp.vstack(rows.parts, format="csc")
    found = tools._clarabel(
        sp.triu(quadratic, format="csc"), -programme.linear.reshape(-1), matrix, low, high
    )
    return np.asarray(found[:size]).reshape(children, width)


def squares(programme: Programme) -> float:
    """The constant that makes the objective a sum of squares: minus its least value without constraints."""
    total = 0.0
    for c, kind in enumerate(programme.kinds):
        matrix = programme.matrices()[kind]
        free = np.linalg.lstsq(matrix, programme.linear[c], rcond=None)[0]
        total += 0.5 * float(free @ programme.linear[c])
    return total


def test_passes_hold_every_measured_query_once() -> None:
    cells, spine = SCHEMAS["three"], SPINES["ragged"]
    share = {level: Fraction(1, 4) for level in spine.levels}
    queries = {"total": "1/4", "a": "1/4", "a * b": "1/4", "detailed": "1/4"}
    design = Design(cells, spine, Allocation.of(cells, 1, share, queries))

    def names(passes: Sequence[Sequence[str]] | None, level: int = 1) -> list[list[str]]:
        given = {} if passes is None else {spine.levels[level]: passes}
        return [[q.name for q in group] for group in level_passes(design, Settings(passes=given), level)]

    measured = ["total", "a", "a * b", "detailed"]
    assert names(None) == [measured]
    assert names([["total"], ["b * a"]]) == [["total"], ["a * b", "a", "detailed"]]
    assert names([["b"], ["total"], ["c"]]) == [["total", "a", "a * b", "detailed"]], "not measured: left out"
    assert names([["c"]]) == [measured]
    assert names([["detailed"], ["a", "a * b", "total"]]) == [["detailed"], ["a", "a * b", "total"]]


def test_only_children_have_their_parents_table() -> None:
    world = World(SPINES["only children"], "plain", "none", 1, np.random.default_rng(1))
    levels, effort = estimate(world.measured(1), world.bounds, world.settings())
    dense = tables(levels)
    for level in (1, 2):
        for node in np.flatnonzero(world.spine.only_child(level)):
            np.testing.assert_array_equal(
                dense[level][node], dense[level - 1][world.spine.parents[level][node]]
            )
    assert effort["level2"].families == 2, "families of one are not estimated"


def test_progress_is_reported_to_the_end() -> None:
    world = World(SPINES["wide"], "plain", "none", 1, np.random.default_rng(1))
    seen: list[tuple[str, int, int]] = []
    estimate(world.measured(1), world.bounds, world.settings(), lambda *a: seen.append(a))
    for level in world.spine.levels:
        last = [entry for entry in seen if entry[0] == level][-1]
        assert last[1] == last[2] > 0


def objective(programme: Programme, x: np.ndarray) -> float:
    """The value of a table, up to the constant that makes it a sum of squares."""
    total = 0.0
    for kind, matrix in enumerate(programme.matrices()):
        members = np.flatnonzero(programme.kinds == kind)
        part = x[members]
        total += float((part * (0.5 * part @ matrix - programme.linear[members])).sum())
    return total
