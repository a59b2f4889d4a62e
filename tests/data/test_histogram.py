"""Histograms against counters and dense tables; records outside the schema are counted, never shown."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.spines import Row, Twin, leaf_rows, spine_of
from support.strategies import reproducibly

from stirred.data import Histogram, Spine, count_cells, levels_of
from stirred.errors import InputError, UnknownName
from stirred.spec import Schema

SCHEMA = Schema.of(sex=("f", "m"), age=(0, 1, 2))
WIDTH = 6


@st.composite
def entries(draw: st.DrawFn) -> tuple[int, int, list[tuple[int, int, int]]]:
    """A size, a width and counts by node and cell, which may repeat, cancel and be negative."""
    size, width = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    entry = st.tuples(st.integers(0, size - 1), st.integers(0, width - 1), st.integers(-3, 3))
    return size, width, draw(st.lists(entry, max_size=40))


def columns_of(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def dense_of(size: int, width: int, rows: list[tuple[int, int, int]]) -> np.ndarray:
    table = np.zeros((size, width), dtype=np.int64)
    for node, cell, count in rows:
        table[node, cell] += count
    return table


@reproducibly(200)
@given(entries())
def test_counts_are_added_up(case: tuple[int, int, list[tuple[int, int, int]]]) -> None:
    size, width, rows = case
    made = Histogram.of_counts(*columns_of(rows), size, width)
    expected = dense_of(size, width, rows)
    assert (made.nodes, made.width) == (size, width)
    assert np.array_equal(made.dense(0, size), expected)
    assert np.array_equal(made.totals(), expected.sum(axis=1))
    node, cell = np.nonzero(expected)
    assert np.array_equal(made.rows(), node) and np.array_equal(made.cells, cell)
    assert np.array_equal(made.counts, expected[node, cell])
    assert {array.dtype for array in (made.starts, made.cells, made.counts)} == {np.dtype(np.int64)}


@reproducibly(100)
@given(entries())
def test_pairs_are_counted(case: tuple[int, int, list[tuple[int, int, int]]]) -> None:
    size, width, rows = case
    nodes, cells, _ = columns_of(rows)
    made = Histogram.of_pairs(nodes, cells, size, width)
    assert np.array_equal(made.dense(0, size), dense_of(size, width, [(n, c, 1) for n, c, _ in rows]))
    assert (made.counts > 0).all() and made.counts.sum() == len(rows)


@reproducibly(200)
@given(entries(), st.data())
def test_parts_and_groups(case: tuple[int, int, list[tuple[int, int, int]]], data: st.DataObject) -> None:
    size, width, rows = case
    made, expected = Histogram.of_counts(*columns_of(rows), size, width), dense_of(size, width, rows)
    start = data.draw(st.integers(0, size))
    stop = data.draw(st.integers(start, size))
    assert np.array_equal(made.dense(start, stop), expected[start:stop])
    number = data.draw(st.integers(1, 4))
    groups = np.array(data.draw(st.lists(st.integers(-1, number - 1), min_size=width, max_size=width)))
    by_group = np.stack([expected[:, groups == g].sum(axis=1) for g in range(number)], axis=1)
    assert np.array_equal(made.grouped(groups, number), by_group)


def test_large_counts_are_exact() -> None:
    """Sums beyond 2^53, where floating-point numbers would lose the last digit."""
    counts = np.array([2**60, 1, 2**60 + 1])
    made = Histogram.of_counts(np.array([0, 0, 0]), np.array([0, 1, 0]), counts, 1, 2)
    assert made.counts.tolist() == [2**61 + 1, 1]
    assert made.grouped(np.array([0, 0]), 1).tolist() == [[2**61 + 2]]
    assert made.totals().tolist() == [2**61 + 2]


def test_nothing_at_all() -> None:
    none = np.empty(0, dtype=np.int64)
    for made in (Histogram.of_pairs(none, none, 3, 2), Histogram.of_counts(none, none, none, 3, 2)):
        assert made.nodes == 3
        assert made.dense(0, 3).tolist() == [[0, 0]] * 3
        assert made.totals().tolist() == [0, 0, 0]
        assert made.grouped(np.array([0, 0]), 1).tolist() == [[0]] * 3


@st.composite
def populations(draw: st.DrawFn) -> tuple[list[Row], list[tuple[str, str, int]]]:
    """Leaves, and persons in some of them."""
    rows = draw(leaf_rows().filter(lambda found: Twin(found).fault() is None))
    codes = [Twin(rows).leaf_code(row) for row in rows]
    person = st.tuples(st.sampled_from(codes), st.sampled_from("fm"), st.integers(0, 2))
    return rows, draw(st.lists(person, max_size=40))


def persons_frame(persons: list[tuple[str, str, int]]) -> pl.DataFrame:
    return pl.DataFrame(persons, schema={"leaf": pl.String, "sex": pl.String, "age": pl.Int64}, orient="row")


@reproducibly(150)
@given(populations())
def test_records_are_counted_by_leaf_and_cell_and_up_the_spine(
    case: tuple[list[Row], list[tuple[str, str, int]]],
) -> None:
    rows, persons = case
    spine, twin = spine_of(rows), Twin(rows)
    leaves = count_cells(persons_frame(persons), SCHEMA, spine, "leaf")
    found = {
        (spine.leaf_codes()[node], "fm"[cell // 3], int(cell % 3)): int(count)
        for node, cell, count in zip(leaves.rows(), leaves.cells, leaves.counts, strict=True)
    }
    assert found == Counter(persons)
    assert leaves.width == WIDTH
    levels = levels_of(leaves, spine)
    assert len(levels) == spine.depth and levels[-1] is leaves
    for level in range(spine.depth):
        dense = levels[level].dense(0, spine.size(level))
        of = spine.ancestors(level)
        leaf = {code: int(of[i]) for i, code in enumerate(spine.leaf_codes())}
        expected = np.zeros_like(dense)
        for code, sex, age in persons:
            expected[leaf[code], "fm".index(sex) * 3 + age] += 1
        assert np.array_equal(dense, expected)
        inside = {code for code, node in leaf.items() if node == 0}
        assert inside == twin.leaves(level, name_of_first(spine, rows, level))


def name_of_first(spine: Spine, rows: list[Row], level: int) -> tuple[int, str]:
    """The twin's name of the first node of a level."""
    twin = Twin(rows)
    return next(name for name in twin.nodes(level) if spine.leaf_codes()[0] in twin.leaves(level, name))


def test_tables_and_places_that_do_not_fit() -> None:
    spine = Spine.from_prefixes(["1", "2"], {"leaf": 1})
    good = persons_frame([("1", "f", 0)])
    assert count_cells(good, SCHEMA, spine, "leaf").totals().tolist() == [1, 0]
    with pytest.raises(UnknownName, match="no column age"):
        count_cells(good.drop("age"), SCHEMA, spine, "leaf")
    with pytest.raises(UnknownName, match="no column leaf"):
        count_cells(good.drop("leaf"), SCHEMA, spine, "leaf")
    with pytest.raises(InputError, match="some records have a leaf") as error:
        count_cells(persons_frame([("1", "f", 0), ("9876", "f", 0)]), SCHEMA, spine, "leaf")
    assert "9876" not in str(error.value)


def test_a_million_persons_take_the_memory_of_a_million_persons() -> None:
    """25,181 leaves and a schema of 2016 cells, the size of Rhode Island: no dense table is made of them."""
    count, size = 1_052_567, 25_181
    draws = np.random.default_rng(1)
    schema = Schema.of(hhgq=range(8), voting_age=(1, 2), hispanic=(1, 2), race=range(1, 64))
    spine = Spine.from_prefixes([f"{i:05d}" for i in range(size)], {"all": 0, "tract": 3, "block": 5})
    numbers = draws.integers(0, size, count)
    columns = {a.name: draws.choice(np.array(a.levels), count) for a in schema.attributes}
    frame = pl.DataFrame({"block": pl.Series(spine.leaf_codes()).gather(numbers), **columns})
    tracemalloc.start()
    leaves = count_cells(frame, schema, spine, "block")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * count * 8 < size * 2016 * 8 / 4
    assert np.array_equal(leaves.totals(), np.bincount(numbers, minlength=size))
    races = np.bincount(columns["race"] - 1, minlength=63)
    assert np.array_equal(leaves.grouped(np.arange(2016) % 63, 63).sum(axis=0), races)
