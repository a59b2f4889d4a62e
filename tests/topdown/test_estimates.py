"""Estimates as tables, other areas and microdata, against counters of records."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.spines import Row, Twin, leaf_rows, spine_of
from support.strategies import reproducibly

from stirred.data import Histogram, Spine, count_cells, levels_of
from stirred.errors import InputError, UnknownName
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Cells, Estimates
from stirred.topdown.estimates import counts_frame

SCHEMA = Schema(
    attributes=(
        Attribute(name="sex", levels=("m", "f")),
        Attribute(name="age", levels=(30, 4, 17)),
        Attribute(name="mixed", levels=(1, "x")),
    ),
    recodes=(Recode(name="adult", attribute="age", groups={"yes": (30,), "no": (17, 4)}),),
)
CELLS = Cells(SCHEMA)
QUERIES = {
    "total": (),
    "sex": ("sex",),
    "age": ("age",),
    "adult * sex": ("sex", "adult"),
    "mixed * adult": ("adult", "mixed"),
    "detailed": ("sex", "age", "mixed"),
}
PARTS: dict[str, tuple[Any, ...]] = {
    "sex": ("m", "f"),
    "age": (30, 4, 17),
    "mixed": ("1", "x"),
    "adult": ("yes", "no"),
}

Person = dict[str, Any]


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Row], list[Person]]:
    rows = draw(leaf_rows().filter(lambda found: Twin(found).fault() is None))
    codes = [Twin(rows).leaf_code(row) for row in rows]
    person = st.fixed_dictionaries(
        {
            "leaf": st.sampled_from(codes),
            "sex": st.sampled_from(("m", "f")),
            "age": st.sampled_from((30, 4, 17)),
            "mixed": st.sampled_from(("1", "x")),
        }
    )
    return rows, draw(st.lists(person, max_size=25))


def estimates_of(spine: Spine, persons: list[Person]) -> Estimates:
    frame = pl.DataFrame(
        persons, schema={"leaf": pl.String, "sex": pl.String, "age": pl.Int64, "mixed": pl.String}
    )
    return Estimates("person", CELLS, spine, levels_of(count_cells(frame, SCHEMA, spine, "leaf"), spine))


def value(person: Person, part: str) -> Any:
    return ("yes" if person["age"] == 30 else "no") if part == "adult" else person[part]


def expected_rows(nodes: list[tuple[str, list[Person]]], parts: tuple[str, ...]) -> list[tuple[Any, ...]]:
    """Every node with every combination of the parts, the last part running fastest; zeros included."""
    out: list[tuple[Any, ...]] = []
    for code, people in nodes:
        counted = Counter(tuple(value(person, part) for part in parts) for person in people)
        combinations: list[tuple[Any, ...]] = [()]
        for part in parts:
            combinations = [(*row, label) for row in combinations for label in PARTS[part]]
        out += [(code, *labels, counted[labels]) for labels in combinations]
    return out


@reproducibly(60)
@given(cases())
def test_tables_count_the_records_of_every_node(case: tuple[list[Row], list[Person]]) -> None:
    rows, persons = case
    spine, twin = spine_of(rows), Twin(rows)
    made = estimates_of(spine, persons)
    for level, name in enumerate(spine.levels):
        above = spine.ancestors(level)
        leaves = [
            {spine.leaf_codes()[i] for i in np.flatnonzero(above == node)}
            for node in range(spine.size(level))
        ]
        assert sorted(map(sorted, leaves)) == sorted(sorted(twin.leaves(level, n)) for n in twin.nodes(level))
        nodes = [
            (spine.code(level, node), [p for p in persons if p["leaf"] in inside])
            for node, inside in enumerate(leaves)
        ]
        for query, parts in QUERIES.items():
            table = made.table(name, query)
            assert table.columns == [name, *parts, "count"]
            assert table.rows() == expected_rows(nodes, parts)
            kinds = {part: pl.Int64 if part == "age" else pl.String for part in parts}
            assert table.schema == {name: pl.String, **kinds, "count": pl.Int64}


@reproducibly(100)
@given(cases(), st.data())
def test_other_areas_are_sums_of_leaves(case: tuple[list[Row], list[Person]], data: st.DataObject) -> None:
    rows, persons = case
    spine = spine_of(rows)
    made = estimates_of(spine, persons)
    leaf = spine.levels[-1]
    listed = data.draw(st.lists(st.sampled_from(spine.leaf_codes()), unique=True))
    areas = [data.draw(st.sampled_from(["north", "south", "10", None])) for _ in listed]
    crosswalk = pl.DataFrame(
        {leaf: listed, "district": areas}, schema={leaf: pl.String, "district": pl.String}
    )
    of = dict(zip(listed, areas, strict=True))
    nodes = [
        (area, [p for p in persons if of.get(p["leaf"]) == area]) for area in sorted({a for a in areas if a})
    ]
    for query, parts in QUERIES.items():
        table = made.other_areas(crosswalk, "district", query)
        assert table.columns == ["district", *parts, "count"]
        assert table.rows() == expected_rows(nodes, parts)
        assert table.schema["count"] == pl.Int64
        assert all(table.schema[part] == (pl.Int64 if part == "age" else pl.String) for part in parts)


@reproducibly(100)
@given(cases(), st.randoms(use_true_random=False))
def test_microdata_are_the_records_in_an_order_of_their_own(
    case: tuple[list[Row], list[Person]], shuffled: Any
) -> None:
    rows, persons = case
    spine = spine_of(rows)
    made = estimates_of(spine, persons).microdata()
    leaf = spine.levels[-1]
    assert made.schema == {leaf: pl.String, "sex": pl.String, "age": pl.Int64, "mixed": pl.String}
    own = [(p["leaf"], p["sex"], p["age"], p["mixed"]) for p in persons]
    assert Counter(made.rows()) == Counter(own)
    place = {code: i for i, code in enumerate(spine.leaf_codes())}
    keys = [(place[r[0]], *(PARTS[n].index(x) for n, x in zip(CELLS.names, r[1:], strict=True))) for r in own]
    assert made.rows() == [row for _, row in sorted(zip(keys, own, strict=True))]
    again = list(persons)
    shuffled.shuffle(again)
    assert estimates_of(spine, again).microdata().equals(made)


def small() -> Estimates:
    spine = Spine.from_prefixes(["1a", "1b", "2a"], {"all": 0, "tract": 1, "block": 2})
    people = [("1a", "m", 30, "1"), ("1a", "m", 30, "1"), ("2a", "f", 4, "x")]
    keys = ("leaf", "sex", "age", "mixed")
    return estimates_of(spine, [dict(zip(keys, person, strict=True)) for person in people])


def test_tables_by_hand() -> None:
    made = small()
    assert made.table("all").rows() == [("", 3)]
    assert made.table("block", "sex").rows() == [
        ("1a", "m", 2),
        ("1a", "f", 0),
        ("1b", "m", 0),
        ("1b", "f", 0),
        ("2a", "m", 0),
        ("2a", "f", 1),
    ]
    assert made.table("tract", "adult").rows() == [
        ("1", "yes", 2),
        ("1", "no", 0),
        ("2", "yes", 0),
        ("2", "no", 1),
    ]
    crosswalk = {"block": ["1b", "2a", "1a"], "school": [7, 7, None]}
    for table in (pl.DataFrame(crosswalk), pl.DataFrame(crosswalk).to_arrow()):
        assert made.other_areas(table, "school").rows() == [("7", 1)]
    named = pd.DataFrame({"block": ["1b", "1a"], "school": ["s", "s"]})
    assert made.other_areas(named, "school").rows() == [("s", 2)]


def test_columns_keep_their_names_apart() -> None:
    """An attribute called count, and the counts, both stay in the table."""
    schema = Schema.of(count=(1, 2))
    spine = Spine.from_prefixes(["a"], {"leaf": 1})
    leaves = Histogram.of_counts(np.array([0]), np.array([1]), np.array([5]), 1, 2)
    table = Estimates("person", Cells(schema), spine, (leaves,)).table("leaf", "count")
    assert table.columns == ["leaf", "count", "count_"]
    assert table.rows() == [("a", 1, 0), ("a", 2, 5)]


def test_several_columns_of_values() -> None:
    query = CELLS.query("sex")
    low, high = np.array([[1, 2], [3, 4]]), np.array([[5, 6], [7, 8]])
    table = counts_frame("place", ["p", "q"], query, {"low": low, "high": high})
    assert table.columns == ["place", "sex", "low", "high"]
    assert table.rows() == [("p", "m", 1, 5), ("p", "f", 2, 6), ("q", "m", 3, 7), ("q", "f", 4, 8)]
    empty = counts_frame("place", [], query, {"low": low[:0]})
    assert empty.schema == {"place": pl.String, "sex": pl.String, "low": pl.Int64}


def test_bad_requests() -> None:
    made = small()
    with pytest.raises(InputError, match="no level county") as error:
        made.table("county")
    assert error.value.expected == "one of all, tract, block"
    with pytest.raises(UnknownName, match="unknown attribute"):
        made.table("all", "race")
    good = pl.DataFrame({"block": ["1a", "2a"], "school": ["s", "t"]})
    with pytest.raises(UnknownName, match="no column district"):
        made.other_areas(good, "district")
    with pytest.raises(UnknownName, match="no column block"):
        made.other_areas(good.rename({"block": "id"}), "school")
    with pytest.raises(InputError, match="a block is listed twice in the crosswalk"):
        made.other_areas(pl.concat([good, good]), "school")
    with pytest.raises(InputError, match="some records have a block that the geography does not list"):
        made.other_areas(pl.DataFrame({"block": ["1a", "9z"], "school": ["s", "t"]}), "school")
    with pytest.raises(InputError, match="not a table"):
        made.other_areas({"block": ["1a"]}, "school")
