"""Moves inside a universe: Markov moves of small tables, and neighbours of files."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.markov import Move, connected, is_markov_basis, markov_moves
from support.strategies import reproducibly

from stirred.audit import (
    distance_between,
    frame_of,
    neighbour,
    neighbours,
    records_of,
    same_universe,
    universe_of,
)
from stirred.errors import InputError, NotComputable, UnknownName
from stirred.noise import TestSource
from stirred.spec import (
    Attribute,
    Budget,
    Condition,
    Count,
    Domain,
    Exact,
    HammingUnordered,
    Multiplicative,
    Recode,
    Schema,
    Specification,
    Stage,
    Sum,
    SymmetricDifference,
    Threshold,
    Trivial,
    from_invariants,
    margins,
    swapping_invariants,
)
from stirred.spec.blocks.multiverse import DescribedMultiverse

ONE, TWO = Exact.of(1), Exact.of(2)
REPLACE, ADD = HammingUnordered(unit="record"), SymmetricDifference(unit="record")
CUBE = Schema.of(a=(0, 1), b=(0, 1), c=(0, 1))
GRID = Schema.of(h=(0, 1, 2), s=(0, 1, 2))
PAIRS = margins("record", "ab", "bc", "ac")


def claim(schema: Schema, multiverse: Any, premetric: Any = REPLACE, **fields: Any) -> Specification:
    return Specification(
        domain=Domain(name="X", stage=Stage.DATABASE, record_schema=schema, **fields),
        multiverse=multiverse,
        input_premetric=premetric,
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )


def test_independence_is_connected_by_quadratic_moves() -> None:
    tables = margins("record", "h", "s")
    moves = markov_moves(GRID, tables)
    assert len(moves) == 9 and {move.degree for move in moves} == {2}
    assert is_markov_basis(GRID, tables)
    domain = Domain.datasets(GRID, [4])
    spec = claim(GRID, from_invariants(tables))
    for universe in {universe_of(spec, point) for point in domain.enumerate()}:
        assert connected(universe, moves)


def test_no_three_factor_interaction_has_one_move_of_degree_four() -> None:
    assert markov_moves(CUBE, PAIRS, degree=3) == ()
    (move,) = markov_moves(CUBE, PAIRS, degree=4)
    assert {sum(record) % 2 for record in move.removed} == {0}
    assert {sum(record) % 2 for record in move.added} == {1}
    assert is_markov_basis(CUBE, PAIRS, degree=4) is None
    spec = claim(CUBE, from_invariants(PAIRS))
    universe = universe_of(spec, move.removed * 2)
    assert len(universe) == 3
    assert connected(universe, [move]) and not connected(universe, [])


def test_conditional_independence_is_connected_within_strata() -> None:
    schema = Schema.of(m=(0, 1), h=(0, 1), s=(0, 1))
    multiverse = swapping_invariants("record", ["m"], ["s"], ["h"])
    moves = markov_moves(schema, multiverse.invariants)
    assert len(moves) == 2
    assert is_markov_basis(schema, multiverse.invariants)
    spec = claim(schema, multiverse)
    for point in Domain.datasets(schema, [4]).enumerate():
        assert connected(universe_of(spec, point), moves)


def test_a_free_attribute_has_moves_of_degree_one() -> None:
    (table,) = margins("record", "a")
    moves = markov_moves(Schema.of(a=(0, 1), b=(0, 1)), [table], degree=1)
    assert {move.degree for move in moves} == {1} and len(moves) == 2
    assert is_markov_basis(CUBE, [table], degree=1)
    assert is_markov_basis(CUBE, margins("record", "a", "b"), degree=1) is None


def test_moves_are_primitive() -> None:
    smaller = markov_moves(GRID, margins("record", "h", "s"), degree=2)
    larger = markov_moves(GRID, margins("record", "h", "s"), degree=3)
    assert set(smaller) < set(larger)
    # Three records around a hexagon: six of them, up to sign, in a table of three by three.
    assert Counter(move.degree for move in larger) == {2: 9, 3: 6}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (["ab", "bc"], True),
        (["ab", "bc", "ac"], None),
        (["ab", "bc", "ac", "abc"], True),
        (["a", "b", "c"], True),
        (["ab", "bc", "cd", "da"], None),
        (["abc", "bcd"], True),
        ([], True),
    ],
)
def test_decomposable_families_have_the_running_intersection_property(
    tables: list[str], expected: bool | None
) -> None:
    schema = Schema.of(a=(0, 1), b=(0, 1), c=(0, 1), d=(0, 1))
    assert is_markov_basis(schema, margins("record", *tables)) is expected


def test_other_invariants_have_no_theorem_and_thresholds_no_moves() -> None:
    schema = Schema.of(a=(0, 1))
    assert is_markov_basis(schema, [Sum(unit="record", attribute="a")]) is None
    with pytest.raises(NotComputable, match="threshold"):
        markov_moves(schema, [Threshold(statistic=Count(unit="record"), at_least=1)])
    with pytest.raises(NotComputable, match="too many cells"):
        markov_moves(Schema.of(a=range(100)), [Count(unit="record")], degree=4)


def test_a_move_applies_only_where_its_records_are() -> None:
    move = Move(((0, 0), (1, 1)), ((0, 1), (1, 0)))
    assert move.apply(((0, 0), (1, 1))) == ((0, 1), (1, 0))
    assert (-move).apply(((0, 1), (1, 0))) == ((0, 0), (1, 1))
    assert move.apply(((0, 0), (0, 1))) is None


CONDITION = Condition(attribute="s", levels=(1,))
SMALL = Schema(
    attributes=(
        Attribute(name="h", levels=(0, 1)),
        Attribute(name="s", levels=(0, 1, 2)),
        Attribute(name="t", levels=("x", "y")),
    ),
    recodes=(Recode(name="small", attribute="s", groups={"yes": (0, 1), "no": (2,)}),),
)
INVARIANTS = (
    Count(unit="record"),
    Count(unit="record", by=("h",)),
    Count(unit="record", by=("s",)),
    Count(unit="record", by=("h", "t")),
    Count(unit="record", by=("h", "small")),
    Count(unit="record", by=("h", "t"), where=(CONDITION,)),
    Sum(unit="record", attribute="s", by=("h",)),
    Threshold(statistic=Count(unit="record", by=("s",)), at_least=1),
    Threshold(statistic=Count(unit="record", where=(CONDITION,)), at_most=1),
)


@reproducibly(40)
@given(
    invariants=st.lists(st.sampled_from(INVARIANTS), max_size=3, unique=True),
    premetric=st.sampled_from([REPLACE, ADD]),
    sizes=st.sampled_from([(3,), (3, 4)]),
    data=st.data(),
)
def test_neighbours_lie_in_the_universe_and_the_nearest_is_found(
    invariants: list[Any], premetric: Any, sizes: tuple[int, ...], data: st.DataObject
) -> None:
    spec = claim(SMALL, from_invariants(invariants), premetric, sizes=sizes)
    records = data.draw(st.lists(st.sampled_from(list(SMALL.records())), min_size=3, max_size=3))
    point = tuple(sorted(records, key=repr))
    universe = universe_of(spec, point)
    frame = frame_of(point, SMALL)
    others = [distance_between(spec, point, other) for other in universe if other != point]
    try:
        found = neighbours(spec, frame, TestSource(1), 4)
    except NotComputable:
        assert not others or min(others) > ONE
        return
    points = [records_of(other, spec.domain) for other, _ in found]
    assert len(set(points)) == len(points) and set(points) < set(universe)
    for other, (_, distance) in zip(points, found, strict=True):
        assert distance == distance_between(spec, point, other)
    assert found[0][1] == min(others) or min(others) > ONE


@pytest.mark.parametrize("seed", range(5))
def test_swapping_universes_are_reached_at_distance_two(seed: int) -> None:
    schema = Schema.of(m=None, h=None, s=None)
    spec = claim(schema, swapping_invariants("record", ["m"], ["s"], ["h"]))
    generator = np.random.default_rng(seed)
    frame = pl.DataFrame({name: generator.integers(0, 4, 200) for name in "mhs"})
    found = neighbours(spec, frame, TestSource(seed), 5)
    assert len(found) == 5
    assert {str(distance) for _, distance in found} == {"2"}
    again = neighbours(spec, frame, TestSource(seed), 5)
    assert all(x.equals(y) for (x, _), (y, _) in zip(found, again, strict=True))


def test_distance_one_is_reached_where_the_invariants_leave_something_free() -> None:
    spec = claim(CUBE, from_invariants(margins("record", "a")))
    frame = frame_of(((0, 0, 0), (1, 1, 1)), CUBE)
    other, distance = neighbour(spec, frame, TestSource(3))
    assert distance == ONE
    # Everything that is free changes at once.
    assert sum(frame[name].equals(other[name]) for name in "abc") == 1


def test_kinds_take_turns() -> None:
    spec = claim(CUBE, Trivial(), ADD)
    frame = frame_of(((0, 0, 0), (0, 1, 1), (1, 1, 0)), CUBE)
    found = neighbours(spec, frame, TestSource(2), 4)
    assert [other.height for other, _ in found] == [2, 4, 3, 3]
    assert [str(distance) for _, distance in found] == ["1", "1", "2", "4"]


def test_a_singleton_universe_has_no_neighbour() -> None:
    schema = Schema.of(m=None, h=None, s=None)
    spec = claim(schema, swapping_invariants("record", ["m"], ["s"], ["h"]))
    frame = pl.DataFrame({"m": [1, 1, 2], "h": [5, 5, 6], "s": [7, 8, 9]})
    with pytest.raises(NotComputable, match=r"singleton.*vacuous"):
        neighbour(spec, frame, TestSource(1))


def places() -> pl.DataFrame:
    rows = [(f"b{i}", f"t{i // 3}", f"c{i // 6}") for i in range(12)]
    return pl.DataFrame(rows, schema=["block", "tract", "county"], orient="row")


GEOGRAPHY = Schema.of(
    nesting=[("block", "tract"), ("tract", "county")], block=None, tract=None, county=None, age=(0, 1, 2)
)


@pytest.mark.parametrize("seed", range(5))
def test_nested_columns_move_together(seed: int) -> None:
    generator = np.random.default_rng(seed)
    frame = places()[generator.integers(0, 4, 30)].with_columns(age=pl.Series(generator.integers(0, 2, 30)))
    for tables in ([["county"]], [["tract"], ["age"]], [["county"], ["tract", "age"]]):
        spec = claim(GEOGRAPHY, from_invariants(margins("record", *tables)))
        for table in (None, places()):
            for other, _ in neighbours(spec, frame, TestSource(seed), 4, places=table):
                assert other.join(places(), on=["block", "tract", "county"], how="anti").is_empty()
                assert same_universe(spec, frame, other)


def test_public_places_lead_beyond_the_values_seen() -> None:
    frame = places()[[0]].with_columns(age=pl.lit(1))
    spec = claim(GEOGRAPHY, from_invariants(margins("record", ["tract"])))
    with pytest.raises(NotComputable):
        neighbour(spec, frame, TestSource(1), columns=["block"])
    other, distance = neighbour(spec, frame, TestSource(1), columns=["block"], places=places())
    assert distance == ONE
    assert other["tract"].to_list() == ["t0"] and other["block"][0] in {"b1", "b2"}
    assert other["age"].to_list() == [1]


def test_only_the_allowed_columns_change() -> None:
    generator = np.random.default_rng(1)
    frame = pl.DataFrame({name: generator.integers(0, 2, 50) for name in "abc"})
    spec = claim(CUBE, from_invariants(margins("record", "a", "b")))
    for other, _ in neighbours(spec, frame, TestSource(1), 6, columns=["c"]):
        assert other.select("a", "b").equals(frame.select("a", "b"))
    with pytest.raises(UnknownName):
        neighbour(spec, frame, TestSource(1), columns=["z"])


def test_columns_beside_the_schema_stay_with_their_row() -> None:
    frame = frame_of(((0, 0, 0), (1, 1, 1)), CUBE).with_columns(id=pl.Series([10, 20]))
    found = neighbours(claim(CUBE, Trivial(), ADD), frame, TestSource(1), 4)
    removed, added, *others = [other["id"].to_list() for other, _ in found]
    assert removed in ([10], [20]) and added == [10, 20, None] and others == [[10, 20], [10, 20]]


def test_imputed_records_stay_where_a_flag_marks_them() -> None:
    schema = Schema.of(m=None, flag=None, h=None, s=None)
    imputed = Count(
        unit="record",
        by=("m", "flag", "h", "s"),
        where=(Condition(attribute="flag", levels=("true",)),),
    )
    swap = swapping_invariants("record", ["m"], ["s"], ["flag", "h"])
    spec = claim(schema, from_invariants(*swap.invariants, imputed))
    generator = np.random.default_rng(5)
    frame = pl.DataFrame({name: generator.integers(0, 3, 60) for name in "mhs"}).with_columns(
        flag=pl.Series(generator.integers(0, 2, 60)).cast(pl.Boolean)
    )
    for other, distance in neighbours(spec, frame, TestSource(1), 5):
        assert distance == TWO
        order = ["m", "h", "s"]
        held = [f.filter("flag").select(order).sort(order) for f in (frame, other)]
        assert held[0].equals(held[1])


def test_a_mapping_changes_the_table_of_the_protection_unit_alone() -> None:
    spec = Specification(
        domain=Domain(name="X", stage=Stage.DATABASE, record_schema=Schema.of(block=None, age=None)),
        multiverse=from_invariants(
            Count(unit="person", by=("block",)), Count(unit="housing_unit", by=("block",))
        ),
        input_premetric=HammingUnordered(unit="person"),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )
    data = {
        "person": pl.DataFrame({"block": [1, 1, 2], "age": [30, 40, 50]}),
        "housing_unit": pl.DataFrame({"block": [1, 2]}),
    }
    other, distance = neighbour(spec, data, TestSource(1))
    assert distance == ONE
    assert other["housing_unit"] is data["housing_unit"]
    assert other["person"]["block"].to_list() == [1, 1, 2]
    with pytest.raises(InputError, match="person"):
        neighbour(spec, {"housing_unit": data["housing_unit"]}, TestSource(1))


def test_claims_without_declared_invariants_have_no_moves() -> None:
    spec = claim(CUBE, DescribedMultiverse(name="D", meaning="whatever"))
    with pytest.raises(NotComputable, match="declared"):
        neighbour(spec, frame_of(((0, 0, 0),), CUBE), TestSource(1))


def test_rare_movable_records_are_found_beyond_the_first_attempts() -> None:
    schema = Schema.of(m=None, h=None, s=None)
    spec = claim(schema, swapping_invariants("record", ["m"], ["s"], ["h"]))
    size = 20_000
    # Every stratum has one record, but the last has two that may swap.
    frame = pl.DataFrame({"m": range(size), "h": range(size), "s": range(size)})
    frame = pl.concat([frame, pl.DataFrame({"m": [0], "h": [-1], "s": [-2]})])
    other, distance = neighbour(spec, frame, TestSource(1), attempts=100)
    assert distance == TWO
    changed = frame.filter((frame["s"] != other["s"]) | (frame["h"] != other["h"]))
    assert changed["m"].to_list() == [0, 0]


def test_a_record_that_adds_nothing_to_a_sum_is_free() -> None:
    schema = Schema.of(place=("a", "b"), income=None)
    spec = claim(schema, from_invariants(Sum(unit="record", attribute="income", by=("place",))), ADD)
    frame = frame_of((("a", 5), ("b", 0)), schema)
    found = neighbours(spec, frame, TestSource(1), 3)
    assert [other.rows() for other, _ in found] == [
        [("a", 5)],
        [("a", 5), ("b", 0), ("b", 0)],
        [("a", 5), ("a", 0)],
    ]


def test_attributes_may_have_any_name() -> None:
    schema = Schema.of(place=("a", "b"), start=(0, 1), f0=(0, 1))
    frame = frame_of((("a", 0, 1), ("b", 1, 0)), schema)
    for tables in ([["place"]], [["place", "f0"]], [["place"], ["start"], ["f0"]]):
        spec = claim(schema, from_invariants(margins("record", *tables)))
        for other, _ in neighbours(spec, frame, TestSource(1), 3):
            assert same_universe(spec, frame, other)


def test_all_pairs_of_moves_of_a_small_file_are_tried() -> None:
    schema = Schema.of(h=None, s=None)
    spec = claim(schema, from_invariants(margins("record", "h", "s")))
    for order in itertools.permutations([(0, 0), (0, 1), (0, 1), (1, 1)]):
        frame = pl.DataFrame(order, schema=["h", "s"], orient="row")
        assert neighbour(spec, frame, TestSource(1))[1] == TWO
