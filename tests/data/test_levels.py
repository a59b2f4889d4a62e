"""One rule says whether a value is a level: in swapping, in TopDown, and whatever file held the table."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.data import Spine, level_codes, require_levels
from stirred.errors import InputError
from stirred.spec import Schema
from stirred.swap import PermutationSwap
from stirred.topdown import Allocation, Cells, TopDown, Universe


@pytest.mark.parametrize(
    ("column", "levels", "codes"),
    [
        (pl.Series(["b", "a", "b"]), ("a", "b"), [1, 0, 1]),
        (pl.Series(["b", "a"], dtype=pl.Categorical), ("a", "b"), [1, 0]),
        (pl.Series(["b", "a"], dtype=pl.Enum(["b", "a"])), ("a", "b"), [1, 0]),
        (pl.Series([2, 1, 2]), (1, 2), [1, 0, 1]),
        (pl.Series([2, 1], dtype=pl.UInt8), (1, 2), [1, 0]),
        (pl.Series([2, 1]), ("1", "2"), [1, 0]),
        (pl.Series(["2", "1"]), (1, 2), [1, 0]),
        (pl.Series(["02", "01"]), ("01", "02"), [1, 0]),
        (pl.Series([-1, 10]), (10, 9, -1), [2, 0]),
        (pl.Series([1, 0]), ("other", 0, 1), [2, 1]),
        (pl.Series([True, False]), ("false", "true"), [1, 0]),
        (pl.Series([], dtype=pl.String), ("a",), []),
        (pl.Series([], dtype=pl.Null), ("a",), []),
    ],
)
def test_levels_are_compared_as_text(column: pl.Series, levels: tuple[Any, ...], codes: list[int]) -> None:
    found = level_codes(column, "a", levels)
    assert found.tolist() == codes
    assert found.dtype == np.int64


@pytest.mark.parametrize(
    ("column", "levels", "count"),
    [
        (pl.Series(["a", "secret", "secret", "c"]), ("a", "b"), "3"),
        (pl.Series(["a", None]), ("a", "b"), "1"),
        (pl.Series([None, 1]), (1,), "1"),
        (pl.Series([None, None]), ("a",), "2"),
        (pl.Series([None, True]), (0, 1), "2"),
        (pl.Series([None]), ("null", "None", ""), "1"),
        (pl.Series([777123] * 2000), (1, 2), "2,000"),
        (pl.Series(["1"]), ("01",), "1"),
        (pl.Series([1]), ("01",), "1"),
        (pl.Series([1.0]), (1,), "1"),
        (pl.Series([float("nan")]), (1,), "1"),
        (pl.Series(["A", "a "]), ("a",), "2"),
    ],
)
def test_values_outside_the_levels_are_counted_not_shown(
    column: pl.Series, levels: tuple[Any, ...], count: str
) -> None:
    with pytest.raises(InputError) as error:
        level_codes(column, "colour", levels)
    assert error.value.problem == "some records have no value of colour among its levels"
    assert error.value.field == "colour"
    for secret in ("secret", "777123", "nan"):
        assert secret not in str(error.value)


@pytest.mark.parametrize("column", [[["secret"]], [b"secret"], [{"x": "secret"}]])
def test_a_column_that_holds_no_codes_is_refused(column: list[object]) -> None:
    with pytest.raises(InputError, match="which is not read") as error:
        level_codes(pl.Series(column), "colour", ("a",))
    assert "secret" not in str(error.value)


def test_levels_that_are_written_alike_are_refused() -> None:
    """1 and "1" would count a record twice."""
    with pytest.raises(InputError, match="two levels of colour are written alike"):
        level_codes(pl.Series([1]), "colour", (1, "1"))


RULE = [
    (pl.Series([1, 2, 1, 2]), (1, 2), True),
    (pl.Series(["1", "2", "1", "2"]), (1, 2), True),
    (pl.Series([1, 2, 1, 2]), ("1", "2"), True),
    (pl.Series([True, False, True, False]), ("true", "false"), True),
    (pl.Series(["01", "02", "01", "02"]), (1, 2), False),
    (pl.Series([1, 2, 1, 2]), ("01", "02"), False),
    (pl.Series([1.0, 2.0, 1.0, 2.0]), (1, 2), False),
    (pl.Series([True, False, True, False]), (0, 1), False),
    (pl.Series(["1", "2", "1", " 2"]), (1, 2), False),
    (pl.Series(["1", "2", "1", "777123"]), (1, 2), False),
]


@pytest.mark.parametrize(("column", "levels", "belongs"), RULE)
@pytest.mark.parametrize("room", ["swap", "topdown"])
def test_text_1_is_level_1_in_every_room(
    room: str, column: pl.Series, levels: tuple[Any, ...], belongs: bool
) -> None:
    frame = pl.DataFrame({"block": ["a", "a", "b", "b"], "code": column})
    mechanism = (swapping if room == "swap" else top_down)(levels)
    if belongs:
        mechanism.prepare(frame)
        return
    with pytest.raises(InputError, match="no value of code among its levels") as error:
        mechanism.prepare(frame)
    assert "777123" not in str(error.value)


def swapping(levels: tuple[Any, ...]) -> PermutationSwap:
    codebook = Schema.of(block=("a", "b"), code=levels)
    return PermutationSwap(match=(), swap=("block",), hold=("code",), rate="0.5", codebook=codebook)


def top_down(levels: tuple[Any, ...]) -> TopDown:
    spine, schema = Spine.from_columns(pl.DataFrame({"block": ["a", "b"]}), ["block"]), Schema.of(code=levels)
    budget = Allocation.of(Cells(schema), 1, {"block": 1}, {"detailed": 1})
    return TopDown(spine, [Universe("person", schema, budget)])


def test_gaps_are_not_levels_and_are_left_to_the_mechanism() -> None:
    frame, schema = pl.DataFrame({"code": [1, None]}), Schema.of(code=(1,))
    require_levels(frame, schema, ["code"])
    with pytest.raises(InputError, match="some records have no value"):
        level_codes(frame["code"], "code", (1,))


@pytest.mark.parametrize(("column", "levels", "belongs"), RULE)
def test_a_column_and_its_text_hold_the_same_codes(
    column: pl.Series, levels: tuple[Any, ...], belongs: bool
) -> None:
    written = pl.read_csv(column.alias("code").to_frame().write_csv().encode(), infer_schema=False)
    frames = (column.alias("code").to_frame(), written)
    assert [accepted(frame, Schema.of(code=levels)) for frame in frames] == [belongs, belongs]


def accepted(frame: pl.DataFrame, schema: Schema) -> bool:
    try:
        require_levels(frame, schema, ["code"])
    except InputError:
        return False
    return True


@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0], [-0.0]])
def test_a_negative_zero_is_a_zero_whatever_stands_before_it(values: list[float]) -> None:
    from stirred.data import level_codes

    assert level_codes(pl.Series(values), "x", ["0.0"]).tolist() == [0] * len(values)
    with pytest.raises(InputError, match="no value of x"):
        level_codes(pl.Series(values), "x", ["-0.0"])


@pytest.mark.parametrize(("column", "levels", "belongs"), RULE)
def test_a_few_records_are_placed_as_many_are(
    column: pl.Series, levels: tuple[Any, ...], belongs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stirred.data import levels as module

    written = {str(level): place for place, level in enumerate(levels)}
    few = module.places(column, "code", written)
    monkeypatch.setattr(module, "FEW", -1)
    many = module.places(column, "code", written)
    assert few.tolist() == many.tolist()
    assert (few >= 0).all() == belongs
