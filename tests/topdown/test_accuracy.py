"""Accuracy against a twin that visits every count, NumPy's quantiles included."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from support.strategies import reproducibly

from stirred.data import Histogram, Spine, levels_of
from stirred.errors import InputError
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Allocation, Cells, Estimates
from stirred.topdown.accuracy import BINS, CLOSE, QUANTILES, Accuracy, accuracy, compare_estimators, error_row

SCHEMA = Schema(
    attributes=(Attribute(name="sex", levels=("f", "m")), Attribute(name="age", levels=(0, 1, 2))),
    recodes=(Recode(name="adult", attribute="age", groups={"no": (0, 2), "yes": (1,)}),),
)
CELLS = Cells(SCHEMA)
SPINE = Spine.from_prefixes(["aa", "ab", "ac", "ba", "ca", "cb"], {"all": 0, "tract": 1, "block": 2})
ALLOCATION = Allocation.of(
    CELLS,
    1,
    {"all": "1/3", "tract": "1/3", "block": "1/3"},
    {
        "all": {"detailed": 1},
        "tract": {"sex * adult": "1/2", "total": "1/2"},
        "block": {"adult": "1/4", "detailed": "3/4"},
    },
)
ASKED = {
    "all": ["total", "detailed"],
    "tract": ["total", "sex * adult"],
    "block": ["total", "adult", "detailed"],
}


def histograms(table: np.ndarray, spine: Spine = SPINE) -> tuple[Histogram, ...]:
    nodes, cells = np.nonzero(table)
    return levels_of(Histogram.of_counts(nodes, cells, table[nodes, cells], *table.shape), spine)


def estimates(table: np.ndarray) -> Estimates:
    return Estimates("person", CELLS, SPINE, histograms(table))


def bin_of(population: int) -> str:
    number = max(i for i, low in enumerate(BINS) if low <= population)
    if number == 0:
        return "0"
    if number == len(BINS) - 1:
        return "100,000 or more"
    return f"{BINS[number]:,}-{BINS[number + 1] - 1:,}"


def summary(error: np.ndarray, truth: np.ndarray) -> dict[str, Any]:
    """The figures of one row, from all counts."""
    off = np.abs(error)
    return {
        "counts": error.size,
        "mean_absolute": off.mean(),
        "bias": error.mean(),
        "root_mean_square": np.sqrt(np.mean(error.astype(float) ** 2)),
        "relative": np.mean([o / t for o, t in zip(off, truth, strict=True) if t]) if truth.any() else None,
        "within_5": np.mean(off <= CLOSE),
        **{f"q{round(100 * q)}": np.quantile(off, q) for q in QUANTILES},
    }


def twin(before: np.ndarray, after: np.ndarray) -> list[dict[str, Any]]:
    out = []
    for depth, level in enumerate(SPINE.levels):
        parents = SPINE.ancestors(depth)
        nodes = range(SPINE.size(depth))
        true = np.stack([before[parents == node].sum(axis=0) for node in nodes])
        made = np.stack([after[parents == node].sum(axis=0) for node in nodes])
        names = np.array([bin_of(int(total)) for total in true.sum(axis=1)])
        for name in ASKED[level]:
            query = CELLS.query(name)
            truth = np.stack([true[:, query.groups == g].sum(axis=1) for g in range(query.size)], axis=1)
            error = (
                np.stack([made[:, query.groups == g].sum(axis=1) for g in range(query.size)], axis=1) - truth
            )
            used = sorted(set(names), key=lambda text: int(text.split("-")[0].split(" ")[0].replace(",", "")))
            for population in ("all", *used):
                inside = (names == population) | (population == "all")
                row = summary(error[inside].ravel(), truth[inside].ravel())
                out.append({"level": level, "query": name, "population": population, **row})
    return out


def assert_rows(found: list[Any], expected: list[dict[str, Any]]) -> None:
    assert len(found) == len(expected)
    for row, other in zip(found, expected, strict=True):
        assert list(row) == list(other)
        for name, value in other.items():
            exact = isinstance(value, str | int) or value is None
            assert row[name] == (value if exact else pytest.approx(value, rel=1e-12, abs=1e-12)), (
                name,
                other,
            )


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """True and protected counts, mostly zero, of all sizes; some nodes are empty."""
    size = SPINE.size(2) * CELLS.count
    count = st.sampled_from([0, 0, 0, 0, 1, 2, 3, 7, 40, 300, 60_000, 10**8])
    before = np.array(draw(st.lists(count, min_size=size, max_size=size)))
    move = st.sampled_from([0, 0, 0, 1, 2, 5, 6, 100, -1, -5, -6, -1000])
    after = np.maximum(0, before + np.array(draw(st.lists(move, min_size=size, max_size=size))))
    for node in draw(st.sets(st.integers(0, SPINE.size(2) - 1))):
        before[node * CELLS.count : (node + 1) * CELLS.count] = 0
    shape = (SPINE.size(2), CELLS.count)
    return before.reshape(shape), after.reshape(shape)


@reproducibly(150)
@given(tables())
def test_accuracy_agrees_with_its_twin(case: tuple[np.ndarray, np.ndarray]) -> None:
    before, after = case
    found = accuracy(histograms(before), estimates(after), ALLOCATION)
    assert_rows(list(found.rows), twin(before, after))


@reproducibly(200)
@given(
    st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 20)), max_size=30),
    st.integers(0, 60),
)
def test_counts_that_are_not_visited_weigh_as_exact_zeros(pairs: list[tuple[int, int]], zeros: int) -> None:
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    if table.shape[0] + zeros == 0:
        zeros = 1
    rest = np.zeros(zeros, dtype=np.int64)
    found = error_row(table[:, 0], table[:, 1], zeros)
    expected = summary(np.concatenate([table[:, 0], rest]), np.concatenate([table[:, 1], rest]))
    assert_rows([found], [expected])


def test_accuracy_by_hand() -> None:
    before, after = np.zeros((6, 6), dtype=np.int64), np.zeros((6, 6), dtype=np.int64)
    before[0, 0], after[0, 0] = 10, 4
    before[1, 2], after[1, 2] = 2, 2
    after[5, 5] = 8
    frame = accuracy(histograms(before), estimates(after), ALLOCATION).to_polars()
    detailed = frame.filter(level="block", query="detailed")
    assert detailed["population"].to_list() == ["all", "0", "1-9", "10-49"]
    assert detailed["counts"].to_list() == [36, 24, 6, 6]
    assert detailed["mean_absolute"].to_list() == pytest.approx([14 / 36, 8 / 24, 0, 1])
    assert detailed["bias"].to_list() == pytest.approx([2 / 36, 8 / 24, 0, -1])
    assert detailed["relative"].to_list() == [pytest.approx(0.3), None, 0.0, pytest.approx(0.6)]
    assert detailed["within_5"].to_list() == pytest.approx([34 / 36, 23 / 24, 1, 5 / 6])
    assert detailed["q50"].to_list() == [0, 0, 0, 0]
    assert detailed["q100"].to_list() == [8, 8, 0, 6]
    places = frame.filter(level="block", query="total", population="1-9")
    assert places.select("counts", "mean_absolute").rows() == [(1, 0.0)]


def test_every_level_has_its_total_by_size_of_place() -> None:
    draws = np.random.default_rng(1)
    before = draws.integers(0, 40, (6, 6)) * np.array([[0], [1], [3], [20], [90], [3000]])
    frame = accuracy(histograms(before), estimates(before), ALLOCATION).to_polars()
    totals = frame.filter(query="total")
    assert totals["level"].unique(maintain_order=True).to_list() == ["all", "tract", "block"]
    assert totals.filter(population="all")["counts"].to_list() == [1, 3, 6]
    by_size = totals.filter(pl.col("population") != "all").group_by("level", maintain_order=True)
    assert by_size.agg(pl.col("counts").sum())["counts"].to_list() == [1, 3, 6]
    assert (frame["mean_absolute"] == 0).all() and (frame["within_5"] == 1).all()


def test_nobody_at_all() -> None:
    nothing = np.zeros((6, 6), dtype=np.int64)
    frame = accuracy(histograms(nothing), estimates(nothing), ALLOCATION).to_polars()
    assert set(frame["population"]) == {"all", "0"}
    assert frame["relative"].null_count() == frame.height
    assert (frame["q100"] == 0).all() and (frame["within_5"] == 1).all()
    assert frame.filter(level="block", query="detailed", population="all")["counts"].to_list() == [36]


def test_the_table_takes_its_types_from_all_rows() -> None:
    row = error_row(np.array([1]), np.array([0]))
    rows = ({"level": "a", **row},) * 300 + ({"level": "a", **error_row(np.array([1]), np.array([2]))},)
    frame = Accuracy(rows).to_polars()
    assert frame.schema["relative"] == pl.Float64 and frame["relative"][-1] == 0.5


def test_estimators_are_compared_row_by_row() -> None:
    before = np.arange(36).reshape(6, 6)
    truth = histograms(before)
    results = {
        "exact": accuracy(truth, estimates(before), ALLOCATION),
        "one more": accuracy(truth, estimates(before + 1), ALLOCATION),
    }
    frame = compare_estimators(results).to_polars()
    assert frame.columns == ["estimator", *results["exact"].to_polars().columns]
    for name, found in results.items():
        assert frame.filter(estimator=name).drop("estimator").equals(found.to_polars())
    assert frame["estimator"].to_list() == ["exact", "one more"] * (frame.height // 2)
    assert compare_estimators({}).rows == ()


def test_estimators_of_different_data_are_not_compared() -> None:
    before = np.arange(36).reshape(6, 6)
    one = accuracy(histograms(before), estimates(before), ALLOCATION)
    other = accuracy(histograms(before * 100), estimates(before), ALLOCATION)
    with pytest.raises(InputError, match="not compared with the same tables"):
        compare_estimators({"one": one, "other": other})


def test_a_level_of_fifty_million_counts_takes_no_more_than_its_people() -> None:
    """25,000 nodes of 2016 cells, of which a quarter of a million are not zero: no dense table is made."""
    schema = Schema.of(hhgq=range(8), voting_age=(1, 2), hispanic=(1, 2), race=range(1, 64))
    cells, size = Cells(schema), 25_000
    spine = Spine.from_prefixes([f"{i:05d}" for i in range(size)], {"block": 5})
    draws = np.random.default_rng(1)

    def made() -> Histogram:
        return Histogram.of_pairs(
            draws.integers(0, size, 250_000), draws.integers(0, 2016, 250_000), size, 2016
        )

    truth, protected = made(), made()
    queries = {"detailed": "1/2", "race * hispanic": "1/4", "voting_age": "1/4"}
    allocation = Allocation.of(cells, 1, {"block": 1}, queries)
    tracemalloc.start()
    found = accuracy((truth,), Estimates("person", cells, spine, (protected,)), allocation)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size * 2016 * 8 / 4
    row = found.to_polars().filter(query="detailed", population="all")
    assert row["counts"].item() == size * 2016
    before, after = (
        csr_array((table.counts, table.cells, table.starts), (size, 2016)) for table in (truth, protected)
    )
    off = abs(after - before)
    assert row["mean_absolute"].item() == pytest.approx(off.sum() / (size * 2016))
    assert row["q100"].item() == off.max()
    assert row["within_5"].item() == 1.0
