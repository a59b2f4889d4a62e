"""Errors of tables against twins that loop over cells, and association against SciPy."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats.contingency import association
from support.tables_compared import compare_tables

from stirred.data import cramers_v

CELL = st.tuples(st.sampled_from("abc"), st.integers(0, 2))
RECORDS = st.lists(CELL, min_size=1, max_size=25)


def frame_of(records: list[tuple[str, int]]) -> pl.DataFrame:
    return pl.DataFrame(records, schema={"place": pl.String, "kind": pl.Int64}, orient="row")


def twin(true: list[tuple[str, int]], protected: list[tuple[str, int]]) -> dict[str, float]:
    before, after = Counter(true), Counter(protected)
    cells = sorted({*before, *after})
    gaps = [abs(before[c] - after[c]) for c in cells]
    relative = [abs(before[c] - after[c]) / before[c] for c in before]
    squares = [(math.sqrt(before[c] / len(true)) - math.sqrt(after[c] / len(protected))) ** 2 for c in cells]
    return {
        "cells": len(cells),
        "mean_absolute": sum(gaps) / len(gaps),
        "mape": sum(relative) / len(relative),
        "hellinger": math.sqrt(sum(squares) / 2),
        "false_zeros": sum(before[c] > 0 and after[c] == 0 for c in cells),
        "false_nonzeros": sum(before[c] == 0 and after[c] > 0 for c in cells),
        "q00": min(gaps),
        "q50": sorted(gaps)[len(gaps) // 2] / 2 + sorted(gaps)[(len(gaps) - 1) // 2] / 2,
        "q100": max(gaps),
    }


@given(RECORDS, RECORDS)
def test_compare_tables_agrees_with_its_twin(
    true: list[tuple[str, int]], protected: list[tuple[str, int]]
) -> None:
    found = compare_tables(frame_of(true), frame_of(protected), ("place", "kind")).record()
    for name, value in twin(true, protected).items():
        assert found[name] == pytest.approx(value, abs=2e-8), name


def test_compare_tables_by_hand() -> None:
    true = frame_of([("a", 0)] * 4 + [("a", 1)] * 2 + [("b", 0)])
    protected = frame_of([("a", 0)] * 3 + [("a", 1)] * 3 + [("c", 1)])
    found = compare_tables(true, protected, ("place", "kind"))
    assert (found.cells, found.false_zeros, found.false_nonzeros) == (4, 1, 1)
    assert found.mape == pytest.approx((1 / 4 + 1 / 2 + 1) / 3)
    assert found.mean_absolute == 1.0
    assert found.quantiles == (1.0,) * 7


def test_a_table_has_no_error_against_itself_in_any_order() -> None:
    frame = frame_of([("a", 0), ("b", 1), ("b", 1), ("c", 2)])
    found = compare_tables(frame, frame.reverse(), ("place", "kind"))
    assert found.mean_absolute == found.mape == found.false_zeros == found.false_nonzeros == 0
    assert found.hellinger == pytest.approx(0, abs=1e-7)


def test_disjoint_tables_are_at_hellinger_distance_one() -> None:
    found = compare_tables(frame_of([("a", 0)]), frame_of([("b", 0)]), ("place", "kind"))
    assert (found.hellinger, found.mape, found.false_zeros, found.false_nonzeros) == (1.0, 1.0, 1, 1)


def test_missing_values_are_one_cell_on_both_sides() -> None:
    frame = pl.DataFrame({"place": ["a", None, None], "kind": [0, 1, 1]})
    found = compare_tables(frame, frame, ("place", "kind"))
    assert (found.cells, found.mean_absolute, found.false_zeros) == (2, 0.0, 0)


@given(RECORDS)
def test_cramers_v_agrees_with_scipy(records: list[tuple[str, int]]) -> None:
    places, kinds = sorted({r[0] for r in records}), sorted({r[1] for r in records})
    table = np.zeros((len(places), len(kinds)), dtype=np.int64)
    for place, kind in records:
        table[places.index(place), kinds.index(kind)] += 1
    expected = association(table, method="cramer") if min(table.shape) > 1 else 0.0
    assert cramers_v(frame_of(records), ("place",), ("kind",)) == pytest.approx(expected, abs=1e-7)


@given(RECORDS)
def test_cramers_v_is_symmetric_and_at_most_one(records: list[tuple[str, int]]) -> None:
    frame = frame_of(records)
    forward, backward = cramers_v(frame, ("place",), ("kind",)), cramers_v(frame, ("kind",), ("place",))
    assert forward == pytest.approx(backward, abs=1e-7)
    assert 0 <= forward <= 1 + 1e-12


def test_cramers_v_of_a_function_is_one_and_of_a_product_zero() -> None:
    tied = frame_of([("a", 0), ("b", 1), ("c", 2)] * 3)
    free = frame_of([(place, kind) for place in "ab" for kind in (0, 1)] * 5)
    assert cramers_v(tied, ("place",), ("kind",)) == pytest.approx(1)
    assert cramers_v(free, ("place",), ("kind",)) == pytest.approx(0, abs=1e-7)


def test_cramers_v_takes_groups_of_columns() -> None:
    frame = pl.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "c": [0, 1, 2, 3]})
    assert cramers_v(frame, ("a", "b"), ("c",)) == pytest.approx(1)
