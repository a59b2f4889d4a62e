"""Spines against a twin made of dictionaries, on random ragged trees; refusals name public codes only."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.spines import LEVELS, Row, Twin, frame_of, leaf_rows, name_of, spine_of
from support.strategies import reproducibly

from stirred.data import Spine
from stirred.errors import InputError

COUNTY = {"county": ["1", "1", "1", "2"], "tract": ["11", "11", "12", "21"], "block": list("abcd")}


def county() -> Spine:
    return Spine.from_columns(pl.DataFrame(COUNTY), ["county", "tract", "block"])


def row_of_leaf(spine: Spine, rows: list[Row]) -> list[Row]:
    """The row that each leaf of the spine comes from."""
    twin = Twin(rows)
    by_code = {twin.leaf_code(row): row for row in rows}
    return [by_code[code] for code in spine.leaf_codes()]


def names_of(spine: Spine, rows: list[Row], level: int) -> list[tuple[int, str]]:
    """The twin's name of every node of a level, in the order of the spine."""
    ordered = row_of_leaf(spine, rows)
    out = {int(node): name_of(row, level) for node, row in zip(spine.ancestors(level), ordered, strict=True)}
    return [out[node] for node in range(spine.size(level))]


def valid(rows: list[Row]) -> bool:
    return Twin(rows).fault() is None


@reproducibly(300)
@given(leaf_rows())
def test_a_list_of_leaves_is_a_tree_or_refused_as_the_twin_says(rows: list[Row]) -> None:
    fault = Twin(rows).fault()
    if fault is None:
        assert spine_of(rows).size(len(rows[0]) - 1) == len(rows)
    else:
        with pytest.raises(InputError, match=fault):
            spine_of(rows)


@reproducibly(200)
@given(leaf_rows().filter(valid), st.integers(0, 2**32 - 1))
def test_a_spine_agrees_with_its_twin(rows: list[Row], seed: int) -> None:
    spine, twin = spine_of(rows), Twin(rows)
    values = np.random.default_rng(seed).integers(-9, 9, (len(rows), 2))
    for level in range(spine.depth - 1, -1, -1):
        names = names_of(spine, rows, level)
        assert len(names) == spine.size(level) == len(set(names))
        assert set(names) == twin.nodes(level)
        for node, (at, code) in enumerate(names):
            assert spine.codes[level][node] == (code if at == level else None)
            assert spine.code(level, node) == code
            assert spine.name(level, node) == f"{LEVELS[level]} {code}"
        if level == spine.depth - 1:
            below = values
            continue
        starts, lower = spine.starts(level), names_of(spine, rows, level + 1)
        assert starts[0] == 0 and starts[-1] == spine.size(level + 1)
        for node, name in enumerate(names):
            inside = range(starts[node], starts[node + 1])
            assert {lower[i] for i in inside} == twin.children(level, name)
            assert all(spine.parents[level + 1][i] == node for i in inside)
        sums = spine.sums(level, below)
        leaves = [
            [i for i, code in enumerate(spine.leaf_codes()) if code in twin.leaves(level, name)]
            for name in names
        ]
        assert np.array_equal(sums, [values[members].sum(axis=0) for members in leaves])
        below = sums


@reproducibly(150)
@given(leaf_rows().filter(valid))
def test_only_children_and_reach_are_facts_about_the_map(rows: list[Row]) -> None:
    spine, twin = spine_of(rows), Twin(rows)
    for level in range(spine.depth):
        names = names_of(spine, rows, level)
        same = [
            [low for low in range(level, spine.depth) if twin.leaves(level, name) in leaf_sets(twin, low)]
            for name in names
        ]
        assert spine.reach(level).tolist() == [max(levels) for levels in same]
        above = leaf_sets(twin, level - 1) if level else []
        assert spine.only_child(level).tolist() == [twin.leaves(level, name) in above for name in names]


def leaf_sets(twin: Twin, level: int) -> list[set[str]]:
    return [twin.leaves(level, name) for name in twin.nodes(level)]


@reproducibly(150)
@given(leaf_rows().filter(valid), st.data())
def test_ancestors_and_the_table_lead_back_to_the_rows(rows: list[Row], data: st.DataObject) -> None:
    spine = spine_of(rows)
    ordered = row_of_leaf(spine, rows)
    assert spine.table().equals(frame_of(ordered))
    low = data.draw(st.integers(0, spine.depth - 1))
    high = data.draw(st.integers(0, low))
    names = names_of(spine, rows, high)
    expected = dict(zip(names_of(spine, rows, low), [None] * spine.size(low), strict=True))
    for row in rows:
        expected[name_of(row, low)] = names.index(name_of(row, high))
    assert spine.ancestors(high, low).tolist() == list(expected.values())
    again = Spine.from_columns(spine.table(), spine.levels)
    assert again.codes == spine.codes
    assert all(np.array_equal(a, b) for a, b in zip(again.parents, spine.parents, strict=True))


@reproducibly(100)
@given(leaf_rows().filter(valid), st.lists(st.integers(0, 1000), max_size=30))
def test_records_are_found_by_the_code_of_their_leaf(rows: list[Row], wanted: list[int]) -> None:
    spine, twin = spine_of(rows), Twin(rows)
    chosen = [rows[i % len(rows)] for i in wanted]
    found = spine.locate(pl.Series([twin.leaf_code(row) for row in chosen], dtype=pl.String))
    ordered = row_of_leaf(spine, rows)
    assert [ordered[leaf] for leaf in found] == chosen


@reproducibly(100)
@given(st.lists(st.integers(0, 9999), min_size=1, max_size=30, unique=True), st.integers(0, 2))
def test_prefixes_are_columns(numbers: list[int], root: int) -> None:
    codes = [f"{n:04d}" for n in numbers]
    lengths = {"state": root, "county": 3, "block": 4}
    made = Spine.from_prefixes(codes, lengths)
    expected = Spine.from_columns(
        pl.DataFrame({name: [code[:n] for code in codes] for name, n in lengths.items()}), list(lengths)
    )
    assert made.codes == expected.codes
    assert made.leaf_codes() == tuple(sorted(codes))
    assert made.size(0) == len({code[:root] for code in codes})


def test_a_root_of_length_zero_has_every_leaf() -> None:
    spine = Spine.from_prefixes(["a1", "b1", "b2"], {"all": 0, "first": 1, "leaf": 2})
    assert spine.codes == (("",), ("a", "b"), ("a1", "b1", "b2"))
    assert spine.name(0, 0) == "all"
    assert spine.reach(0).tolist() == [0] and spine.reach(1).tolist() == [2, 1]


def test_one_level_and_one_leaf() -> None:
    flat = Spine.from_prefixes(["x", "y"], {"leaf": 1})
    assert flat.depth == 1 and flat.only_child(0).tolist() == [False, False]
    assert flat.reach(0).tolist() == [0, 0]
    single = Spine.from_prefixes(["ab"], {"a": 0, "b": 1, "c": 2})
    assert single.reach(0).tolist() == [2]
    assert [single.only_child(level).tolist() for level in range(3)] == [[False], [True], [True]]
    assert single.sums(0, np.array([4])).tolist() == [4]


def test_ragged_by_hand() -> None:
    """Codes missing in the middle, at the end, and several in a row."""
    rows: list[Row] = [
        ("n", "s", None, "t", "b1"),
        ("n", "s", None, "t", "b2"),
        ("n", "s", "c", None, None),
        ("n", None, None, None, "b3"),
        ("n", "z", None, None, None),
    ]
    spine = spine_of(rows)
    assert spine.codes[1] == ("s", "z", None)
    assert spine.codes[2] == ("c", None, None, None)
    assert spine.leaf_codes() == ("c", "b1", "b2", "z", "b3")
    assert spine.code(2, 1) == "t" and spine.code(3, 0) == "c" and spine.code(1, 2) == "b3"
    assert spine.reach(1).tolist() == [1, 4, 4]
    assert spine.reach(2).tolist() == [4, 3, 4, 4]
    assert spine.locate(pl.Series(["c", "z", "b3"])).tolist() == [0, 3, 4]


def test_many_levels_do_not_confuse_missing_codes() -> None:
    """Codes that stand in for a missing one keep apart, however far away the level is they come from."""
    levels = [f"l{i}" for i in range(13)]
    near = ["r", None, "0x"] + [None] * 10
    far = ["r"] + [None] * 10 + ["x", None]
    also = ["r", *[None] * 9, "y", None, None]
    spine = Spine.from_columns(
        pl.DataFrame([near, far, also], schema=dict.fromkeys(levels, pl.String), orient="row"), levels
    )
    assert [spine.size(level) for level in range(13)] == [1] + [3] * 12
    assert set(spine.leaf_codes()) == {"0x", "x", "y"}


def test_the_codes_of_ragged_leaves_are_found_once() -> None:
    """Not once for every leaf that is named: that would take the square of their number."""
    count = 200
    frame = pl.DataFrame({"county": ["c"] * count, "tract": [f"t{i}" for i in range(count)]})
    spine = Spine.from_columns(
        frame.with_columns(block=pl.lit(None, pl.String)), ["county", "tract", "block"]
    )
    assert [spine.code(2, node) for node in range(count)] == sorted(f"t{i}" for i in range(count))
    assert spine.leaf_codes() is spine.leaf_codes()


@pytest.mark.parametrize(
    "kind", [pl.DataFrame, pl.LazyFrame, lambda x: pl.DataFrame(x).to_arrow(), pd.DataFrame]
)
def test_any_table_gives_the_spine(kind: type) -> None:
    spine = Spine.from_columns(kind(COUNTY), ["county", "tract", "block"])
    assert spine.codes == county().codes == (("1", "2"), ("11", "12", "21"), tuple("abcd"))


def test_whole_numbers_are_codes() -> None:
    spine = Spine.from_columns(pl.DataFrame({"a": [1, 1], "b": [10, 9]}), ["a", "b"])
    assert spine.codes[1] == ("10", "9")
    for records in (
        pl.Series([9, 10, 9]),
        pl.Series([9, 10, 9], dtype=pl.UInt8),
        pl.Series(["9", "10", "9"]),
    ):
        assert spine.locate(records).tolist() == [1, 0, 1]
    assert spine.locate(pl.Series(["10"], dtype=pl.Categorical)).tolist() == [0]
    assert spine.locate(pl.Series([], dtype=pl.String)).tolist() == []


@pytest.mark.parametrize(
    ("records", "count"),
    [
        (pl.Series(["a", "confidential", "z", "z"]), "3"),
        (pl.Series(["a", None]), "1"),
        (pl.Series([None], dtype=pl.String), "1"),
        (pl.Series([77771, 77772]), "2"),
        (pl.Series(["0a"]), "1"),
        (pl.Series(["tract", "11"]), "2"),
        (pl.Series(["x"] * 1234), "1,234"),
    ],
)
def test_unknown_leaves_are_counted_not_shown(records: pl.Series, count: str) -> None:
    with pytest.raises(InputError) as error:
        county().locate(records)
    assert error.value.problem == "some records have a block that the geography does not list"
    assert error.value.field == "block"
    for secret in ("confidential", "7777", "0a"):
        assert secret not in str(error.value)


def test_leading_zeros_are_part_of_a_code() -> None:
    spine = Spine.from_prefixes(["01", "02"], {"all": 0, "leaf": 2})
    assert spine.locate(pl.Series(["02", "01"])).tolist() == [1, 0]
    for records in (pl.Series([1]), pl.Series(["1"]), pl.Series([1.0])):
        with pytest.raises(InputError, match="leading zeros"):
            spine.locate(records)


@pytest.mark.parametrize("column", [[["secret"]], [b"secret"], [{"x": "secret"}]])
def test_a_column_that_holds_no_codes_is_refused(column: list[object]) -> None:
    with pytest.raises(InputError, match="which is not read") as error:
        county().locate(pl.Series(column))
    assert "secret" not in str(error.value)
    with pytest.raises(InputError, match="which is not read"):
        Spine.from_columns(pl.DataFrame({"leaf": column}), ["leaf"])


def test_codes_that_do_not_nest_are_named() -> None:
    rows: list[Row] = [("1", "001"), ("2", "002"), ("1", "002")]
    with pytest.raises(InputError, match="do not nest: state 002 lies in more than one nation"):
        spine_of(rows)
    rows = [("1", None, "77"), ("2", None, "77")]
    with pytest.raises(InputError, match="do not nest: state 77 lies in more than one nation"):
        spine_of(rows)
    rows = [("1", "s", "c", "t1"), ("1", None, "c", "t2")]
    with pytest.raises(InputError, match="do not nest: county c lies in more than one state"):
        spine_of(rows)


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([("1", "a"), ("1", "a")], "a state is listed twice in the geography"),
        ([("1", None), ("1", None)], "a state is listed twice in the geography"),
        ([("1", "1", None), ("1", "2", "1")], "two leaves are known by the same code"),
        ([("1", None, None), ("2", "1", None)], "two leaves are known by the same code"),
        ([("1", "a"), (None, "b")], "a leaf has no code at the first level, nation"),
    ],
)
def test_geographies_that_are_no_tree(rows: list[Row], problem: str) -> None:
    with pytest.raises(InputError) as error:
        spine_of(rows)
    assert error.value.problem == problem


@pytest.mark.parametrize(
    ("frame", "levels", "field"),
    [
        (COUNTY, ["county", "state"], "state"),
        (COUNTY, ["county", "county"], "levels"),
        (COUNTY, [], "levels"),
        ({"county": [], "block": []}, ["county", "block"], "block"),
    ],
)
def test_bad_levels(frame: dict[str, list[str]], levels: list[str], field: str) -> None:
    with pytest.raises(InputError) as error:
        Spine.from_columns(pl.DataFrame(frame), levels)
    assert error.value.field == field


@pytest.mark.parametrize("lengths", [{}, {"a": 2, "b": 2}, {"a": 2, "b": 1}, {"a": -1, "b": 2}])
def test_prefixes_that_do_not_grow(lengths: dict[str, int]) -> None:
    with pytest.raises(InputError, match="do not grow"):
        Spine.from_prefixes(["00"], lengths)


@pytest.mark.parametrize("codes", [["01", "2"], ["012"], ["01", None], [1, 2]])
def test_leaf_codes_of_another_length(codes: list[str]) -> None:
    with pytest.raises(InputError, match="another length"):
        Spine.from_prefixes(codes, {"a": 1, "b": 2})


def test_no_leaves() -> None:
    with pytest.raises(InputError, match="no leaves"):
        Spine.from_prefixes([], {"a": 1})
    with pytest.raises(InputError, match="not a table"):
        Spine.from_columns([1, 2], ["a"])
