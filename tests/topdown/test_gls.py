"""Generalised least squares on trees: against the dense whole-tree solution, and by simulation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from support.strategies import reproducibly

from stirred.data import Histogram, Spine, levels_of
from stirred.errors import InputError, NotComputable, UnknownName
from stirred.noise import TestSource
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Allocation, Cells, Chunk, Design, Gls, Measurements, measurement
from stirred.topdown import gls as module
from stirred.topdown.algebra import Algebra
from stirred.topdown.measurement import measure

ALARM = 1e-6


@dataclass(frozen=True)
class Given:
    """Variances given by hand, per level and query; precisions add up along a chain of only children."""

    table: Mapping[str, Mapping[str, Fraction]]

    def variances(self, chain: tuple[str, ...]) -> dict[str, Fraction]:
        total: dict[str, Fraction] = {}
        for level in chain:
            for name, variance in self.table[level].items():
                total[name] = total.get(name, Fraction(0)) + 1 / variance
        return {name: 1 / precision for name, precision in total.items()}


def design_of(cells: Cells, spine: Spine, table: Mapping[str, Mapping[str, Any]]) -> Design:
    exact = {
        level: {cells.canonical(name): Fraction(v) for name, v in queries.items()}
        for level, queries in table.items()
    }
    return Design(cells, spine, Given(exact))  # type: ignore[arg-type]


def spine_of(*paths: str) -> Spine:
    """A spine from paths such as ``a.b.c``; an empty step is a missing code."""
    rows = [[step or None for step in path.split(".")] for path in paths]
    names = [f"level{i}" for i in range(len(rows[0]))]
    return Spine.from_columns(pl.DataFrame(rows, schema=names, orient="row"), names)


def matrix(cells: Cells, name: str) -> np.ndarray:
    """The matrix of a query, from its groups."""
    query = cells.query(name)
    out = np.zeros((query.size, cells.count))
    out[query.groups, np.arange(cells.count)] = 1
    return out


class Dense:
    """The whole tree as one linear model in the cells of the leaves."""

    def __init__(self, design: Design) -> None:
        self.design = design
        spine, cells = design.spine, design.cells
        leaves = spine.size(spine.depth - 1)
        self.sums = []
        rows, weights, self.keys = [], [], []
        for level in range(spine.depth):
            ancestor = spine.ancestors(level)
            member = (ancestor[None, :] == np.arange(spine.size(level))[:, None]).astype(float)
            self.sums.append(member)
            if level:
                siblings = np.bincount(spine.parents[level])[spine.parents[level]]
            for node in range(spine.size(level)):
                if level and siblings[node] == 1:
                    continue
                # a chain: down while there is one child
                chain, at, where = [spine.levels[level]], level, node
                while at + 1 < spine.depth and (spine.parents[at + 1] == where).sum() == 1:
                    where = int(np.flatnonzero(spine.parents[at + 1] == where)[0])
                    at += 1
                    chain.append(spine.levels[at])
                for name, variance in design.allocation.variances(tuple(chain)).items():
                    q = matrix(cells, name)
                    rows.append(np.kron(member[node], q).reshape(len(q), -1))
                    weights.append(np.full(len(q), 1 / float(variance)))
                    self.keys.append((level, node, name))
        assert rows[0].shape[1] == leaves * cells.count
        self.rows, self.weights = np.concatenate(rows), np.concatenate(weights)
        self.covariance = np.linalg.inv(self.rows.T @ (self.weights[:, None] * self.rows))

    def noisy(self, leaves: np.ndarray, noise: np.ndarray) -> np.ndarray:
        return np.asarray(np.rint(self.rows @ leaves.reshape(-1) + noise / np.sqrt(self.weights)))

    def measurements(self, y: np.ndarray) -> Measurements:
        found, position = {}, 0
        for level, node, name in self.keys:
            size = self.design.cells.query(name).size
            found[level, node, name] = y[position : position + size]
            position += size

        def load(level: int, number: int) -> Chunk:
            start, stop = self.design.chunks(level)[number]
            nodes = self.design.measured[level][start:stop]
            values = {}
            for name in self.design.queries(level):
                zero = np.zeros(self.design.cells.query(name).size)
                values[name] = np.stack([found.get((level, n, name), zero) for n in nodes.tolist()])
            return Chunk(level, start, stop, {k: v.astype(np.int32) for k, v in values.items()})

        return Measurements(self.design, load)

    def estimate(self, y: np.ndarray, level: int, name: str = "detailed") -> np.ndarray:
        leaves = self.covariance @ (self.rows.T @ (self.weights * y))
        k = self.design.cells.count
        return self.sums[level] @ leaves.reshape(-1, k) @ matrix(self.design.cells, name).T

    def errors(self, level: int, name: str) -> np.ndarray:
        maps = np.kron(self.sums[level], matrix(self.design.cells, name))
        variances = np.einsum("ij,jk,ik->i", maps, self.covariance, maps)
        return np.sqrt(variances).reshape(len(self.sums[level]), -1)

    def below(self, y: np.ndarray, level: int, node: int) -> tuple[np.ndarray, np.ndarray]:
        """Estimate of a node, and information on it, from the measurements of its descendants and its own."""
        design, k = self.design, self.design.cells.count
        spine = design.spine
        mine = self.sums[level][node].astype(bool)
        inside = [
            level <= at_level and spine.ancestors(level, of=at_level)[at] == node
            for at_level, at, name in self.keys
            for _ in range(design.cells.query(name).size)
        ]
        columns = np.repeat(mine, k)
        a = self.rows[np.ix_(inside, columns)]
        w = self.weights[inside]
        covariance = np.linalg.inv(a.T @ (w[:, None] * a))
        add = np.kron(np.ones(mine.sum()), np.eye(k))
        return add @ covariance @ (a.T @ (w * y[inside])), np.linalg.inv(add @ covariance @ add.T)


def recoded(*sizes: int, recodes: Mapping[str, tuple[str, tuple[int, ...]]] | None = None) -> Cells:
    """Attributes a, b, c ... of these sizes; recodes as name -> (attribute, group of each level)."""
    attributes = tuple(Attribute(name="abcdef"[i], levels=tuple(range(n))) for i, n in enumerate(sizes))
    made = tuple(
        Recode(
            name=name,
            attribute=attribute,
            groups={f"g{g}": tuple(i for i, x in enumerate(of) if x == g) for g in sorted(set(of))},
        )
        for name, (attribute, of) in (recodes or {}).items()
    )
    return Cells(Schema(attributes=attributes, recodes=made))


SPINES = {
    "one node": spine_of("r"),
    "several roots": spine_of("r.x", "r.y", "s.x2", "s.y2", "s.z2"),
    "one level": spine_of("r", "s", "t"),
    "path": spine_of("r.x.p"),
    "only children at the leaves": spine_of("r.x.p", "r.x.q", "r.y.s", "r.z.t", "r.z.u"),
    "only child of the root": spine_of("r.x.p", "r.x.q", "r.x.s"),
    "chain of two": spine_of("r.x.p.1", "r.x.p.2", "r.y.q.3", "r.z.s.4", "r.z.t.5", "r.z.t.6"),
    "ragged": spine_of("r.x.p.1", "r.x.p.2", "r..q.3", "r..q.4", "r.y..5", "r.y..6", "r.z.u."),
    "uneven": spine_of("r.a.1", "r.a.2", "r.a.3", "r.b.4", "r.b.5", "r.c.6", "r.c.7"),
}
SCHEMAS = {
    "plain": recoded(2, 3),
    "one cell": recoded(1),
    "one attribute": recoded(4),
    "recode": recoded(3, 2, recodes={"big": ("a", (0, 1, 1))}),
    "recode of a later attribute": recoded(2, 4, recodes={"half": ("b", (1, 0, 1, 0))}),
    "two recodes": recoded(3, 2, 3, recodes={"big": ("a", (0, 0, 1)), "odd": ("c", (0, 1, 0))}),
    "renamed and summed": recoded(2, 3, recodes={"whole": ("a", (0, 0)), "turned": ("b", (2, 0, 1))}),
    "single levels": recoded(1, 3, 1, recodes={"big": ("b", (1, 0, 0))}),
}


def parts_of(cells: Cells) -> list[list[str]]:
    """Per attribute what a query can name: nothing, itself, one of its recodes."""
    return [["", n, *(r.name for r in cells.schema.recodes if r.attribute == n)] for n in cells.names]


def all_queries(cells: Cells) -> list[str]:
    names = [""]
    for choices in parts_of(cells):
        names = [f"{n} * {c}" if n and c else n or c for n in names for c in choices]
    return sorted({cells.canonical(n or "total") for n in names})


@st.composite
def problems(draw: st.DrawFn) -> tuple[Design, np.ndarray]:
    cells = draw(st.sampled_from(list(SCHEMAS.values())))
    spine = draw(st.sampled_from(list(SPINES.values())))
    variance = st.fractions(min_value=Fraction(1, 4), max_value=20, max_denominator=4)
    optional = st.dictionaries(st.sampled_from(all_queries(cells)), variance, max_size=4)
    table = {level: dict(draw(optional)) for level in spine.levels}
    table[spine.levels[-1]]["detailed"] = draw(variance)
    for queries in table.values():
        if not queries:
            queries["total"] = Fraction(2)
    seed = draw(st.integers(0, 2**32 - 1))
    return design_of(cells, spine, table), np.random.default_rng(seed)


def solved(problem: tuple[Design, Any]) -> tuple[Dense, np.ndarray, Gls]:
    design, rng = problem
    dense = Dense(design)
    leaves = rng.integers(0, 30, (design.spine.size(design.spine.depth - 1), design.cells.count))
    y = dense.noisy(leaves, rng.standard_normal(dense.weights.size))
    return dense, y, Gls(dense.measurements(y))


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-8)


@reproducibly(120)
@given(problems())
def test_estimates_are_those_of_the_whole_tree(problem: tuple[Design, Any]) -> None:
    dense, y, gls = solved(problem)
    for level in range(gls.spine.depth):
        size = gls.spine.size(level)
        close(gls.estimate(level, 0, size), dense.estimate(y, level))
        close(gls.estimate(level, size // 2, size), dense.estimate(y, level)[size // 2 :])


@reproducibly(40)
@given(problems())
def test_queries_and_standard_errors_are_those_of_the_whole_tree(problem: tuple[Design, Any]) -> None:
    dense, y, gls = solved(problem)
    for level in range(gls.spine.depth):
        for name in all_queries(gls.cells):
            estimates, errors = gls.query(level, name)
            close(estimates, dense.estimate(y, level, name))
            close(errors, dense.errors(level, name))


@reproducibly(40)
@given(problems())
def test_bottom_up_uses_a_node_and_its_descendants(problem: tuple[Design, Any]) -> None:
    dense, y, gls = solved(problem)
    for level in range(gls.spine.depth):
        size = gls.spine.size(level)
        estimates = gls.up_estimate(level, 0, size)
        of, blocks = gls.up_precision(level)
        assert of.shape == (size,)
        for node in range(size):
            head = node
            at = level
            while at and (gls.spine.parents[at] == gls.spine.parents[at][head]).sum() == 1:
                head, at = int(gls.spine.parents[at][head]), at - 1
            estimate, information = dense.below(y, at, head)
            close(estimates[node], estimate)
            coefficients = gls.algebra.coefficients(blocks[of[node]])
            close(gls.algebra.dense(coefficients), information)


@reproducibly(40)
@given(problems(), st.integers(1, 40))
def test_pieces_and_chunks_do_not_matter(problem: tuple[Design, Any], piece: int) -> None:
    dense, y, gls = solved(problem)
    expected = [everything(gls, level) for level in range(gls.spine.depth)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PIECE", piece)
        patch.setattr(measurement, "CHUNK", piece)
        other = Gls(dense.measurements(y))
        for level in range(gls.spine.depth):
            close(everything(other, level), expected[level])


def everything(gls: Gls, level: int) -> np.ndarray:
    size = gls.spine.size(level)
    return np.hstack(
        [gls.estimate(level, 0, size), gls.up_estimate(level, 0, size), *gls.query(level, "total")]
    )


@reproducibly(25)
@given(problems())
def test_a_larger_algebra_changes_nothing(problem: tuple[Design, Any]) -> None:
    dense, y, gls = solved(problem)
    cells = gls.cells
    everything = Algebra.of(cells, [], also_core=range(len(cells.shape)))
    other = Gls(dense.measurements(y), everything)
    last = gls.spine.depth - 1
    close(other.estimate(last, 0, gls.spine.size(last)), gls.estimate(last, 0, gls.spine.size(last)))
    for name in all_queries(cells):
        close(other.query(last, name)[1], gls.query(last, name)[1])


@reproducibly(25)
@given(problems())
def test_children_sum_to_their_parents(problem: tuple[Design, Any]) -> None:
    _, _, gls = solved(problem)
    for level in range(gls.spine.depth - 1):
        below = gls.estimate(level + 1, 0, gls.spine.size(level + 1))
        close(gls.spine.sums(level, below), gls.estimate(level, 0, gls.spine.size(level)))


@reproducibly(25)
@given(problems())
def test_without_noise_the_estimate_is_the_truth(problem: tuple[Design, Any]) -> None:
    design, rng = problem
    dense = Dense(design)
    leaves = rng.integers(0, 1000, (design.spine.size(design.spine.depth - 1), design.cells.count))
    gls = Gls(dense.measurements(dense.noisy(leaves, np.zeros(dense.weights.size))))
    for level in range(gls.spine.depth):
        close(gls.estimate(level, 0, gls.spine.size(level)), dense.sums[level] @ leaves)


@reproducibly(30)
@given(problems())
def test_no_measurement_is_more_precise_than_the_estimate(problem: tuple[Design, Any]) -> None:
    dense, _, gls = solved(problem)
    position = 0
    errors: dict[tuple[int, str], np.ndarray] = {}
    for level, node, name in dense.keys:
        own = 1 / math.sqrt(dense.weights[position])
        position += gls.cells.query(name).size
        if (level, name) not in errors:
            errors[level, name] = gls.query(level, name)[1]
        assert (errors[level, name][node] <= own * (1 + 1e-9)).all()


def small() -> tuple[Dense, np.ndarray]:
    cells = SCHEMAS["recode"]
    table = {
        "level0": {"total": "1/2", "big": 2},
        "level1": {"a * b": 3, "total": 1},
        "level2": {"detailed": 5, "big * b": 2},
    }
    dense = Dense(design_of(cells, SPINES["only children at the leaves"], table))
    leaves = np.random.default_rng(7).integers(0, 40, (5, cells.count))
    return dense, leaves


COPIES = 2000


@cache
def simulated(scale: int) -> tuple[Dense, np.ndarray, Gls]:
    """The small tree two thousand times over, as so many roots, with normal noise.

    Counts and noise are in units of 1/scale, so that rounding adds next to nothing to the noise.
    """
    dense, leaves = small()
    one = dense.design
    table = one.spine.table()
    copies = [table.select(pl.all().str.replace("^", f"{i:04d}")) for i in range(COPIES)]
    spine = Spine.from_columns(pl.concat(copies), one.spine.levels)
    many = Design(one.cells, spine, one.allocation)
    noise = np.random.default_rng(11).standard_normal((COPIES, dense.weights.size)) / np.sqrt(dense.weights)
    y = np.rint((dense.rows @ leaves.reshape(-1) + noise) * scale)
    edges = np.cumsum([0, *(one.cells.query(name).size for _, _, name in dense.keys)])
    column = {key: slice(*edges[i : i + 2]) for i, key in enumerate(dense.keys)}

    def load(level: int, number: int) -> Chunk:
        start, stop = many.chunks(level)[number]
        values = {}
        for name in many.queries(level):
            zero = np.zeros((COPIES, one.cells.query(name).size))
            parts = [
                y[:, column[level, node, name]] if (level, node, name) in column else zero
                for node in one.measured[level].tolist()
            ]
            stacked = np.stack(parts, axis=1).reshape(-1, zero.shape[1])
            values[name] = stacked[start:stop].astype(np.int32)
        return Chunk(level, start, stop, values)

    return dense, leaves, Gls(Measurements(many, load))


def pooled(dense: Dense, level: int, name: str) -> float:
    """The variance of the sum of the squared z-scores of a query over all nodes of a level, in one copy."""
    maps = np.kron(dense.sums[level], matrix(dense.design.cells, name))
    covariance = maps @ dense.covariance @ maps.T
    deviations = np.sqrt(np.diag(covariance))
    return float(2 * ((covariance / np.outer(deviations, deviations)) ** 2).sum())


SIMULATED = [(0, "total"), (1, "big * b"), (1, "total"), (2, "detailed"), (2, "b")]
LIMIT = float(stats.norm.isf(ALARM / (6 * len(SIMULATED))))


@cache
def scores(factor: float = 1.0) -> dict[tuple[int, str], tuple[float, float, float]]:
    """Per query the mean, the squares and the coverage of z-scores over the copies, as normal deviates."""
    scale = 1000
    dense, leaves, gls = simulated(scale)
    out = {}
    for level, name in SIMULATED:
        truth = dense.sums[level] @ leaves @ matrix(dense.design.cells, name).T
        estimates, errors = gls.query(level, name)
        z = (estimates / scale).reshape(COPIES, *truth.shape) - truth
        z /= factor * errors.reshape(COPIES, *truth.shape)
        # The mean of one count, the squares of all: those of a copy are correlated, copies are not.
        mean = z[:, 0, 0].sum() / math.sqrt(COPIES)
        squares = ((z**2).sum() - z.size) / math.sqrt(COPIES * pooled(dense, level, name))
        inside = (np.abs(z[:, -1, -1]) <= stats.norm.isf(0.05)).sum()
        coverage = (inside - 0.9 * COPIES) / math.sqrt(0.09 * COPIES)
        out[level, name] = (float(mean), float(squares), float(coverage))
    return out


def test_standard_errors_and_coverage_by_simulation() -> None:
    for found in scores().values():
        assert max(map(abs, found)) < LIMIT, found


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_simulation_notices_errors_a_tenth_too_small_or_too_large(factor: float) -> None:
    wrong = scores(factor)
    assert all(abs(wrong[key][1]) > LIMIT for key in [(1, "big * b"), (2, "detailed"), (2, "b")])


def test_intervals_cover_with_real_noise_and_budget() -> None:
    """Discrete Gaussian noise, 150 roots: 95% intervals for totals, and their mean absolute error."""
    cells, roots = SCHEMAS["two recodes"], 150
    spine = spine_of(
        *(f"{r}.{r}{t}.{r}{t}{b}" for r in range(1000, 1000 + roots) for t in "ab" for b in "xyz")
    )
    shares = {"total": "1/4", "big": "1/4", "detailed": "1/2"}
    allocation = Allocation.of(cells, 1, dict.fromkeys(spine.levels, "1/3"), shares)
    design = Design(cells, spine, allocation)
    rng, leaves = np.random.default_rng(3), 6 * roots
    found = Histogram.of_pairs(
        rng.integers(0, leaves, 50 * leaves), rng.integers(0, cells.count, 50 * leaves), leaves, cells.count
    )
    truth = levels_of(found, spine)
    gls = Gls(measure(design, truth, TestSource(5)))
    for level in range(3):
        low, high = gls.interval(level, "total")
        estimates, errors = gls.query(level, "total")
        np.testing.assert_allclose(low + high, 2 * estimates)
        np.testing.assert_allclose(high - low, 2 * 1.959963984540054 * errors)
        exact = truth[level].totals().reshape(roots, -1)
        # One count a root: those of different roots are independent.
        for column in range(exact.shape[1]):
            inside = (low.reshape(roots, -1) <= exact) & (exact <= high.reshape(roots, -1))
            covered = int(inside[:, column].sum())
            alarm = ALARM / 20
            assert stats.binom.ppf(alarm, roots, 0.95) <= covered <= stats.binom.isf(alarm, roots, 0.95)
        ratio = float(
            np.abs(estimates - exact.reshape(-1, 1)).mean() / (math.sqrt(2 / math.pi) * errors.mean())
        )
        assert abs(ratio - 1) < stats.norm.isf(ALARM / 6) * math.sqrt((math.pi / 2 - 1) / roots)


def test_all_measurements_together_are_better_than_one_alone() -> None:
    dense, leaves = small()
    gls = Gls(dense.measurements(dense.noisy(leaves, np.zeros(dense.weights.size))))
    total = gls.query(0, "total")[1]
    assert total[0, 0] < 0.95 * math.sqrt(0.5)
    assert (gls.query(2, "detailed")[1] < 0.95 * math.sqrt(5)).all()


def test_wider_confidence_is_a_wider_interval() -> None:
    dense, leaves = small()
    gls = Gls(dense.measurements(dense.noisy(leaves, np.zeros(dense.weights.size))))
    widths = [np.subtract(*gls.interval(1, "big", confidence=c)[::-1]) for c in (0.5, 0.9, 0.99)]
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < widths[2]).all()


def test_nodes_with_the_same_precision_share_a_class() -> None:
    """Parents of the same numbers of leaves, and grandparents of the same parents in any order."""
    spine = spine_of(
        "r.a.b.1", "r.a.b.2", "r.a.c.3", "r.a.c.4", "r.a.c.5", *(f"r.d.e.{i}" for i in (6, 7, 8))
    )
    spine = spine_of(*(".".join(row) for row in spine.table().rows()), "r.d.f.9", "r.d.f.0")
    design = design_of(SCHEMAS["recode"], spine, {level: {"detailed": 1, "big": 2} for level in spine.levels})
    dense = Dense(design)
    gls = Gls(dense.measurements(np.zeros(dense.weights.size)))
    assert [len(gls.up_precision(level)[1]) for level in range(4)] == [1, 1, 2, 1]
    of = gls.up_precision(2)[0].tolist()
    assert of[0] == of[3] != of[1] == of[2]


def test_threads_get_the_same_estimates() -> None:
    dense, leaves = small()
    y = dense.noisy(leaves, np.random.default_rng(1).standard_normal(dense.weights.size))
    gls = Gls(dense.measurements(y))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda node: gls.estimate(2, node, node + 1), range(5)))
    close(np.concatenate(found), dense.estimate(y, 2))


def test_measurements_are_read_from_files(tmp_path: Any) -> None:
    cells, spine = SCHEMAS["recode"], SPINES["ragged"]
    shares = {"total": "1/2", "detailed": "1/2"}
    allocation = Allocation.of(cells, 1, dict.fromkeys(spine.levels, "1/4"), shares)
    design = Design(cells, spine, allocation)
    leaves = Histogram.of_pairs(np.arange(20) % 7, np.arange(20) % 6, 7, cells.count)
    truth = levels_of(leaves, spine)
    in_memory = Gls(measure(design, truth, TestSource(1)))
    in_files = Gls(measure(design, truth, TestSource(1), tmp_path))
    for level in range(4):
        size = spine.size(level)
        assert np.array_equal(in_memory.estimate(level, 0, size), in_files.estimate(level, 0, size))


def never(level: int, number: int) -> Chunk:
    raise AssertionError("measurements were read")


@pytest.mark.parametrize("queries", [{"total": 1}, {"a": 1, "b": 1}, {"big * b": 1}, {"a": 1, "big * b": 1}])
def test_refused_where_leaves_do_not_determine_their_cells(queries: dict[str, int]) -> None:
    cells, spine = SCHEMAS["recode"], SPINES["uneven"]
    table: dict[str, Any] = {level: {"detailed": 1} for level in spine.levels}
    table[spine.levels[-1]] = queries
    with pytest.raises(NotComputable, match="level2"):
        Gls(Measurements(design_of(cells, spine, table), never))


def test_cells_can_be_determined_without_the_detailed_query() -> None:
    """An attribute with one level is not needed in a query to determine cells."""
    cells = SCHEMAS["single levels"]
    spine = SPINES["uneven"]
    table = {"level0": {"total": 1}, "level1": {"big": "1/50"}, "level2": {"b": 50, "total": 1}}
    dense = Dense(design_of(cells, spine, table))
    y = dense.noisy(np.full((7, 3), 10), np.ones(dense.weights.size))
    close(Gls(dense.measurements(y)).estimate(2, 0, 7), dense.estimate(y, 2))


def test_bad_calls_are_refused() -> None:
    dense, leaves = small()
    measurements = dense.measurements(dense.noisy(leaves, np.zeros(dense.weights.size)))
    gls = Gls(measurements)
    for confidence in (0.0, 1.0, -1.0, 2.0, math.nan):
        with pytest.raises(InputError, match="confidence"):
            gls.interval(0, "total", confidence)
    for level in (-1, 3):
        with pytest.raises(InputError, match="level"):
            gls.query(level, "total")
        with pytest.raises(InputError, match="level"):
            gls.up_precision(level)
    for start, stop in ((-1, 1), (2, 1), (0, 6)):
        with pytest.raises(InputError, match="nodes"):
            gls.estimate(2, start, stop)
        with pytest.raises(InputError, match="nodes"):
            gls.up_estimate(2, start, stop)
    with pytest.raises(UnknownName):
        gls.query(0, "height")
    with pytest.raises(InputError, match="algebra"):
        Gls(measurements, Algebra.of(gls.cells, []))
    assert gls.estimate(2, 3, 3).shape == (0, 6)


def test_too_wide_a_core_is_refused() -> None:
    cells = recoded(300, recodes={"half": ("a", tuple(i % 2 for i in range(300)))})
    spine = SPINES["one node"]
    with pytest.raises(NotComputable, match="too many levels"):
        Gls(Measurements(design_of(cells, spine, {"level0": {"detailed": 1, "half": 1}}), never))
