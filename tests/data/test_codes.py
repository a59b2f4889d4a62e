"""Codes are equal where values are, whatever else is in the column."""

from __future__ import annotations

import polars as pl
import pytest

from stirred.data import code_columns, determines, joint_values


@pytest.mark.parametrize("rest", [1.0, None])
def test_a_negative_zero_is_a_zero_and_not_a_number_is_one_value(rest: float | None) -> None:
    zeros = joint_values(pl.DataFrame({"x": [0.0, -0.0, rest]}), ["x"], missing="level")
    assert zeros[0] == zeros[1] != zeros[2]
    assert determines(pl.DataFrame({"a": [1, 1, 2], "b": [0.0, -0.0, rest]}), "a", "b", missing="level")
    nans = joint_values(pl.DataFrame({"x": [float("nan"), -float("nan"), rest]}), ["x"], missing="level")
    assert nans[0] == nans[1] != nans[2]


def test_a_few_records_far_apart_are_numbered_without_a_table_of_all_between() -> None:
    found = code_columns(pl.DataFrame({"x": [0, 130_000_000, 5, 0]}), ["x"])
    assert (found.values.tolist(), found.count) == ([0, 2, 1, 0], 3)
