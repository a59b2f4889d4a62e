"""One family: merged cells, passes, side conditions, rounding; and the defects that older systems had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from support.oracle import Fit

from stirred.errors import Refusal
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Cells, quadratic
from stirred.topdown import family as module
from stirred.topdown.algebra import Algebra
from stirred.topdown.bounds import UNBOUNDED, Partition, SetBound
from stirred.topdown.family import Family, Target, estimate_family
from stirred.topdown.quadratic import Form, Programme, Solution

CELLS = Cells(
    Schema(
        attributes=tuple(
            Attribute(name=n, levels=tuple(range(k))) for n, k in zip("abc", (3, 2, 2), strict=True)
        ),
        recodes=(Recode(name="big", attribute="a", groups={"no": (0,), "yes": (1, 2)}),),
    )
)
EVERY = np.arange(CELLS.count)


@dataclass
class Limits:
    """Bounds on partitions and sets of cells, given directly."""

    partitions: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    sets: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)

    def at(self, level: int, start: int, stop: int) -> list[tuple[Partition, Any, Any]]:
        return [
            (Partition(("declared",), groups, low.shape[1]), low[start:stop], high[start:stop])
            for groups, low, high in self.partitions
        ]

    def set_bounds(self, level: int, start: int, stop: int) -> list[SetBound]:
        return [SetBound(cells, low[start:stop], high[start:stop]) for cells, low, high in self.sets]


@dataclass
class Noisy:
    """Targets from noisy answers: for each pass the queries; weights by kind of child."""

    fit: Fit
    kinds: np.ndarray
    weights: Sequence[Mapping[str, float]]
    names: Sequence[Sequence[str]]
    merge: bool = True

    def passes(self, cells: np.ndarray) -> list[Target]:
        algebra = Algebra.of(CELLS, [CELLS.query(n) for names in self.names for n in names])
        out = []
        for names in self.names:
            chosen = [{n: w for n, w in kind.items() if n in names} for kind in self.weights]
            part = Fit(CELLS, cells, [chosen[k] for k in self.kinds], self.fit.answers)
            forms = tuple(Form.of_queries(algebra, w) for w in chosen)
            queries = tuple(CELLS.query(n) for n in names) if self.merge else None
            out.append(Target(self.kinds, forms, part.linear(), queries))
        return out


def noisy(
    truth: np.ndarray,
    names: Sequence[Sequence[str]],
    rng: np.random.Generator,
    weights: Sequence[Mapping[str, float]] | None = None,
    kinds: np.ndarray | None = None,
    merge: bool = True,
) -> Noisy:
    every = [n for group in names for n in group]
    weights = weights or [{n: float(rng.uniform(0.1, 2)) for n in every}]
    kinds = np.zeros(truth.shape[0], dtype=np.int64) if kinds is None else kinds
    answers = []
    for c, row in enumerate(truth):
        mine = {}
        for name, weight in weights[kinds[c]].items():
            query = CELLS.query(name)
            exact = np.bincount(query.groups, weights=row, minlength=query.size)
            mine[name] = np.rint(exact + rng.normal(0, weight**-0.5, query.size))
        answers.append(mine)
    return Noisy(Fit(CELLS, EVERY, [weights[k] for k in kinds], answers), kinds, weights, names, merge)


def family_of(truth: np.ndarray, parent: bool = True) -> Family:
    """The family of a true table, on the cells that its parent has."""
    total = truth.sum(axis=0).astype(np.int64)
    cells = np.flatnonzero(total) if parent else EVERY
    return Family(1, 0, truth.shape[0], cells, total[cells] if parent else None)


def spied(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Programme, Solution]]:
    """Every programme that is solved, with its solution."""
    seen: list[tuple[Programme, Solution]] = []
    original = module.solve

    def solve(programme: Programme, tolerance: float) -> Solution:
        seen.append((programme, original(programme, tolerance)))
        return seen[-1][1]

    monkeypatch.setattr(module, "solve", solve)
    return seen


def sums(name: str, x: np.ndarray, cells: np.ndarray) -> np.ndarray:
    query = CELLS.query(name)
    return np.stack([np.bincount(query.groups[cells], weights=row, minlength=query.size) for row in x])


@pytest.mark.parametrize("has_parent", [True, False])
@pytest.mark.parametrize("names", [["total"], ["a"], ["total", "a * b"], ["big", "b"], ["big", "detailed"]])
def test_merged_cells_have_the_same_optimum(
    names: list[str], has_parent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        truth = rng.poisson(1.0, (3, CELLS.count)).astype(float)
        seen = spied(monkeypatch)
        found = []
        for merge in (True, False):
            rng = np.random.default_rng(100 + seed)
            target = noisy(truth, [names], rng, merge=merge)
            made = module._fitted(
                family_of(truth, has_parent),
                target.passes(family_of(truth, has_parent).cells)[0],
                module._Side(),
                1e-7,
            )[1]
            found.append(
                Fit(CELLS, family_of(truth, has_parent).cells, target.fit.weights, target.fit.answers)
            )
            value = found[-1].value(made)
            if merge:
                first, merged = value, made
            else:
                assert first == pytest.approx(value, rel=1e-5, abs=1e-6)
                for name in names:  # the objective is strictly convex in the answers
                    cells = family_of(truth, has_parent).cells
                    np.testing.assert_allclose(sums(name, merged, cells), sums(name, made, cells), atol=1e-3)
        sizes = [programme.cells.size for programme, _ in seen]
        if "detailed" not in names and len(names) == 1:
            assert sizes[0] < sizes[1]


def test_a_merged_cell_is_shared_out_as_in_the_parent() -> None:
    truth = np.array(
        [[6, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0], [2, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0]], dtype=float
    )
    family = family_of(truth)
    target = noisy(truth, [["total"]], np.random.default_rng(1), [{"total": 1e8}])
    x = module._fitted(family, target.passes(family.cells)[0], module._Side(), 1e-8)[1]
    np.testing.assert_allclose(x, [[8 * 8 / 12, 8 * 4 / 12], [4 * 8 / 12, 4 * 4 / 12]], atol=1e-5)
    root = Family(0, 0, 1, EVERY, None)
    alone = noisy(truth[:1], [["total"]], np.random.default_rng(1), [{"total": 1e8}])
    x = module._fitted(root, alone.passes(EVERY)[0], module._Side(), 1e-8)[1]
    np.testing.assert_allclose(x, np.full((1, CELLS.count), 8 / 12), atol=1e-5)


def test_side_conditions_keep_cells_apart() -> None:
    """A bound on part of a query's group: merging across it would lose the bound."""
    truth = np.zeros((2, CELLS.count))
    truth[:, :4] = [[5, 5, 5, 5], [5, 5, 5, 5]]
    groups = np.where(EVERY == 0, 0, -1)
    exact = np.array([[10], [0]])
    counts, _ = estimate_family(
        family_of(truth),
        noisy(truth, [["total"]], np.random.default_rng(0)),
        Limits([(groups, exact, exact)]),
        [CELLS.query("total")],
    )
    np.testing.assert_array_equal(counts[:, 0], [10, 0])
    np.testing.assert_array_equal(counts.sum(axis=0), truth.sum(axis=0)[:4])


@pytest.mark.parametrize("kinds", [1, 2])
def test_later_passes_keep_earlier_estimates_of_every_child(
    kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only of the last child, and of all earlier passes, not only of the last one."""
    names = [["total"], ["big", "b"], ["a * b", "detailed"]]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        truth = rng.poisson(2.0, (5, CELLS.count)).astype(float)
        every = [n for group in names for n in group]
        weights = [{n: float(rng.uniform(0.01, 0.3)) for n in every} for _ in range(kinds)]
        target = noisy(truth, names, rng, weights, np.arange(5) % kinds)
        family = family_of(truth)
        estimates: list[np.ndarray] = []
        original = module._fitted

        def fitted(*args: Any, original: Any = original, kept: Any = estimates) -> Any:
            solution, x = original(*args)
            kept.append(x)
            return solution, x

        monkeypatch.setattr(module, "_fitted", fitted)
        slack = 0.1
        estimate_family(family, target, Limits(), [CELLS.query("total")], slack=slack)
        monkeypatch.setattr(module, "_fitted", original)
        assert len(estimates) == 3
        moved = []
        for earlier in range(2):
            for name in names[earlier]:
                before = sums(name, estimates[earlier], family.cells)
                for later in estimates[earlier + 1 :]:
                    apart = np.abs(sums(name, later, family.cells) - before)
                    assert (apart <= slack + 5e-3).all()
                    moved.append(apart.max())
        assert max(moved) > slack / 2, "the slack is used: the test could fail"


def test_totals_first_decides_the_totals() -> None:
    rng = np.random.default_rng(4)
    truth = rng.poisson(4.0, (4, CELLS.count)).astype(float)
    weights = [{"total": 0.01, "detailed": 1.0}]
    family = family_of(truth)
    target = noisy(truth, [["total"], ["detailed"]], rng, weights)

    def totals(names: list[list[str]]) -> np.ndarray:
        passes = Noisy(target.fit, target.kinds, weights, names)
        return estimate_family(family, passes, Limits(), [CELLS.query("total")])[0].sum(axis=1)

    first = totals([["total"]])
    assert np.abs(totals([["total"], ["detailed"]]) - first).max() <= 1
    assert np.abs(totals([["total", "detailed"]]) - first).max() > 1


def test_children_that_do_not_measure_a_pass() -> None:
    """A child whose chain of levels asks other queries has no say in a pass, and still gets a table."""
    rng = np.random.default_rng(3)
    truth = rng.poisson(3.0, (4, CELLS.count)).astype(float)
    weights = [{"total": 1.0, "detailed": 1.0}, {"detailed": 1.0}]
    target = noisy(truth, [["total"], ["detailed"]], rng, weights, np.arange(4) % 2)
    counts, _ = estimate_family(family_of(truth), target, Limits(), [CELLS.query("total")])
    np.testing.assert_array_equal(counts.sum(axis=0), family_of(truth).parent)


@pytest.mark.parametrize("seed", range(12))
def test_rounding_keeps_every_constraint(seed: int) -> None:
    rng = np.random.default_rng(seed)
    children = int(rng.integers(1, 6))
    truth = rng.poisson(rng.choice([0.2, 2.0, 30.0]), (children, CELLS.count)).astype(np.int64)
    limits = Limits()
    for name in ("a", "total", "big * b")[: seed % 4]:
        query = CELLS.query(name)
        exact = sums(name, truth, EVERY).astype(np.int64)
        room = rng.integers(0, 3, exact.shape)
        high = np.where(rng.random(exact.shape) < 0.3, UNBOUNDED, exact + room)
        groups = query.groups.copy()
        if seed % 2:
            groups[groups == 0] = -1
        limits.partitions.append((groups, np.maximum(exact - room, 0), high))
    mask = rng.random(CELLS.count) < 0.5
    total = truth[:, mask].sum(axis=1)
    limits.sets.append((mask, total, total + 1))
    family = family_of(truth)
    target = noisy(truth, [["total"], ["b", "detailed"]], rng)
    counts, effort = estimate_family(family, target, limits, [CELLS.query("total"), CELLS.query("a")])
    assert counts.dtype == np.int64
    assert (counts >= 0).all()
    np.testing.assert_array_equal(counts.sum(axis=0), family.parent)
    for groups, low, high in limits.partitions:
        for g in range(low.shape[1]):
            inside = counts[:, groups[family.cells] == g].sum(axis=1)
            if (groups == g).any():
                assert (low[:, g] <= inside).all() and (inside <= high[:, g]).all()
    for cells, least, most in limits.sets:
        inside = counts[:, cells[family.cells]].sum(axis=1)
        assert (least <= inside).all() and (inside <= most).all()
    assert effort.steps > 0 and effort.gap == 0.0


def test_only_lower_bounds_at_the_root() -> None:
    rng = np.random.default_rng(1)
    truth = np.zeros((1, CELLS.count))
    low = np.arange(3)[None, :] * 4
    groups = CELLS.query("a").groups
    counts, _ = estimate_family(
        Family(0, 0, 1, EVERY, None),
        noisy(truth, [["detailed"]], rng, [{"detailed": 4.0}]),
        Limits([(groups, low, np.full((1, 3), UNBOUNDED))]),
        [CELLS.query("total")],
    )
    per_group = np.bincount(groups, weights=counts[0])
    assert (per_group >= low[0]).all()
    assert per_group[2] <= low[0, 2] + 4, "no more than the bound asks for, up to noise"


def test_a_parent_without_records_gives_children_without() -> None:
    truth = np.zeros((4, CELLS.count))
    counts, effort = estimate_family(
        family_of(truth), noisy(truth, [["detailed"]], np.random.default_rng(0)), Limits(), []
    )
    assert counts.shape == (4, 0)
    assert effort.methods == ()


def test_one_child_and_one_cell() -> None:
    rng = np.random.default_rng(0)
    truth = np.zeros((1, CELLS.count))
    truth[0, 5] = 9
    counts, _ = estimate_family(
        family_of(truth), noisy(truth, [["total"], ["detailed"]], rng), Limits(), [CELLS.query("total")]
    )
    np.testing.assert_array_equal(counts, [[9]])


def test_the_status_of_every_pass_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass that no solver solves ends the estimation: its table is not handed on to rounding."""
    rng = np.random.default_rng(0)
    truth = rng.poisson(3.0, (3, CELLS.count)).astype(float)
    target = noisy(truth, [["total"], ["detailed"]], rng)
    original, calls = module.solve, []

    def second_fails(programme: Programme, tolerance: float) -> Solution:
        calls.append(programme)
        if len(calls) == 2:
            raise quadratic.unsolved()
        return original(programme, tolerance)

    monkeypatch.setattr(module, "solve", second_fails)
    with pytest.raises(Refusal, match="did not converge"):
        estimate_family(family_of(truth), target, Limits(), [CELLS.query("total")])


def test_bounds_that_no_table_keeps_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quadratic, "MOST_STEPS", 200)
    rng = np.random.default_rng(0)
    truth = rng.poisson(3.0, (3, CELLS.count)).astype(np.int64)
    groups = np.zeros(CELLS.count, dtype=np.int64)
    most = truth.sum(axis=1, keepdims=True) - 1
    with pytest.raises(Refusal):
        estimate_family(
            family_of(truth),
            noisy(truth, [["detailed"]], rng),
            Limits([(groups, np.zeros_like(most), most)]),
            [CELLS.query("total")],
        )
