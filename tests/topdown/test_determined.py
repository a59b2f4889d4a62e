"""Records that exact counts determine, against all tables of small universes."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import polars as pl
import pytest

from stirred.data import Spine
from stirred.spec import Schema
from stirred.topdown import Allocation, Cells, TopDown, Universe, exposures_of
from stirred.topdown.bounds import UNBOUNDED
from stirred.topdown.determined import Determined, Family, determined

MAPS = (["1a"], ["1a", "1b"], ["1a", "2b"], ["1a", "1b", "2c"])
LARGEST = 100_000


def spine_of(leaves: list[str]) -> Spine:
    """A root, counties named by the first letter, blocks."""
    columns = {"root": ["r"] * len(leaves), "county": [leaf[0] for leaf in leaves], "block": leaves}
    return Spine.from_columns(pl.DataFrame(columns), ["root", "county", "block"])


def by_enumeration(spine: Spine, possible: np.ndarray, families: list[Family]) -> Determined | None:
    """Every table up to the largest lower bound: lowering a count to it keeps every bound that it keeps."""
    cells = np.flatnonzero(possible)
    leaves = spine.size(spine.depth - 1)
    top = max(int(family.lower.max()) for family in families)
    if (top + 1) ** (leaves * cells.size) > LARGEST:
        return None
    every = itertools.product(range(top + 1), repeat=leaves * cells.size)
    tables = np.array(list(every), dtype=np.int64).reshape(-1, leaves, cells.size)
    kept = np.ones(len(tables), dtype=np.bool_)
    for family in families:
        place, groups = spine.ancestors(family.level), family.groups[cells]
        for node, group in itertools.product(*map(range, family.lower.shape)):
            sums = tables[:, place == node][:, :, groups == group].sum(axis=(1, 2))
            kept &= (sums >= family.lower[node, group]) & (sums <= family.upper[node, group])
    universe = tables[kept]
    least = int(universe.min(axis=0).sum())
    return Determined(int(universe.sum(axis=(1, 2)).min()), least, least)


def random_case(rng: np.random.Generator) -> tuple[Spine, np.ndarray, list[Family]]:
    """One to three families of bounds that a random table keeps; most of them exact."""
    leaves = MAPS[rng.integers(len(MAPS))]
    spine, width = spine_of(leaves), int(rng.integers(1, 5 if len(leaves) < 3 else 3))
    possible = rng.random(width) < 0.85
    possible[rng.integers(width)] = True
    truth = rng.integers(0, 2, (len(leaves), width)) * rng.integers(0, 3, (len(leaves), width)) * possible
    truth[0, np.flatnonzero(possible)[0]] += not truth.any()
    families = []
    for _ in range(int(rng.integers(1, 4))):
        level, size = int(rng.integers(0, 3)), int(rng.integers(1, width + 1))
        groups = rng.integers(0, size, width)
        if rng.random() < 0.3:
            groups = np.where(rng.random(width) < 0.3, -1, groups)
        lower = np.zeros((spine.size(level), size), dtype=np.int64)
        for leaf, cell in itertools.product(range(len(leaves)), np.flatnonzero(groups >= 0)):
            lower[spine.ancestors(level)[leaf], groups[cell]] += truth[leaf, cell]
        upper = lower.copy()
        if rng.random() < 0.3:
            upper = np.where(
                rng.random(lower.shape) < 0.3, UNBOUNDED, lower + rng.integers(0, 2, lower.shape)
            )
            lower = np.maximum(0, lower - rng.integers(0, 2, lower.shape))
        families.append(Family(level, groups, lower, upper))
    return spine, possible, families


def test_determined_records_against_the_enumerated_universe() -> None:
    rng = np.random.default_rng(20)
    seen: Counter[str] = Counter()
    for _ in range(800):
        spine, possible, families = random_case(rng)
        true = by_enumeration(spine, possible, families)
        if true is None:
            continue
        found = determined(spine, possible, families)
        assert found.least <= true.least <= found.most
        assert found.records <= true.records
        seen["decided" if found.least == found.most else "open"] += 1
        seen["some but not all"] += 0 < true.least < true.records
    assert seen["decided"] >= 700
    assert seen["open"] >= 20
    assert seen["some but not all"] >= 30


def exact(level: int, groups: list[int], values: list[list[int]]) -> Family:
    table = np.array(values, dtype=np.int64)
    return Family(level, np.array(groups), table, table.copy())


@pytest.mark.parametrize(
    ("families", "possible", "expected"),
    [
        ([], [True] * 2, (0, 0, 0)),
        ([exact(2, [0, 1], [[2, 0], [1, 3]])], [True] * 2, (6, 6, 6)),
        ([exact(2, [0, 0], [[2], [4]])], [True] * 2, (6, 0, 0)),
        ([exact(2, [0, 0], [[2], [4]])], [True, False], (6, 6, 6)),
        ([exact(1, [0, 1], [[3, 3]])], [True] * 2, (6, 0, 0)),
        ([exact(0, [0, 0], [[6]]), exact(2, [0, -1], [[2], [1]])], [True] * 2, (6, 3, 3)),
        ([exact(0, [0, 1], [[5, 1]]), exact(2, [0, 0], [[4], [2]])], [True] * 2, (6, 4, 4)),
    ],
    ids=[
        "no invariant",
        "everything is invariant",
        "totals leave the cells open",
        "structural zeros leave one cell",
        "exact counts above the leaves leave the leaves open",
        "what is left of a total has two cells",
        "tables that cross: the Frechet bounds",
    ],
)
def test_edge_cases(families: list[Family], possible: list[bool], expected: tuple[int, int, int]) -> None:
    found = determined(spine_of(["1a", "1b"]), np.array(possible), families)
    assert (found.records, found.least, found.most) == expected


def test_what_crosses_in_three_ways_is_said_to_be_open() -> None:
    """Two margins of a three-way table fix more than any one of them shows: the answer has two ends."""
    pairs = list(itertools.product((0, 1), repeat=2))
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    families = [exact(0, first, [[2, 2]]), exact(0, second, [[2, 2]]), exact(2, [0] * 4, [[2], [2]])]
    found = determined(spine_of(["1a", "1b"]), np.ones(4, dtype=np.bool_), families)
    assert (found.records, found.least) == (4, 0)
    assert found.most > 0


def village(constraints: list[object]) -> TopDown:
    schema = Schema.of(sex=("f", "m"), age=("child", "adult"))
    cells = Cells(schema)
    levels = {"root": "1/3", "county": "1/3", "block": "1/3"}
    budget = Allocation.of(cells, 1, levels, {"total": "1/2", "detailed": "1/2"})
    return TopDown(spine_of(["1a", "1b", "2c"]), [Universe("person", schema, budget)], constraints)


def persons(rows: list[tuple[str, str, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["block", "sex", "age"], orient="row")


def count(*by: str) -> dict[str, object]:
    return {"kind": "invariant", "count": {"unit": "person", "by": list(by)}}


X = [("1a", "f", "child"), ("1a", "m", "adult"), ("1b", "f", "adult"), ("2c", "m", "child")]
Y = [("1a", "m", "child"), ("1a", "f", "adult"), ("1b", "m", "adult"), ("2c", "f", "child")]


@pytest.mark.parametrize(
    ("constraints", "numbers"),
    [
        ([], (0, 0, 0)),
        ([count("root")], (4, 0, 0)),
        ([count("block")], (4, 0, 2)),
        ([count("block", "sex", "age")], (4, 4, 4)),
        ([count("block", "sex"), count("block", "age")], (4, 2, 4)),
        ([count("block"), {"kind": "structural_zero", "where": {"sex": ["m"]}}], None),
    ],
)
def test_exposures_of_a_plan(constraints: list[object], numbers: tuple[int, int, int] | None) -> None:
    mechanism = village(constraints)
    data = persons(X if numbers else [row for row in X if row[1] == "f"])
    (found,) = exposures_of(mechanism, mechanism.prepare(data)).units
    assert (found.records, found.determined, found.exposed) == (numbers or (2, 0, 2))
    assert found.decided


@pytest.mark.parametrize("by", [("root",), ("block",), ("root", "sex", "age")])
def test_two_data_sets_of_one_universe_have_the_same_numbers(by: tuple[str, ...]) -> None:
    mechanism = village([count(*by)])
    first, second = (exposures_of(mechanism, mechanism.prepare(persons(rows))) for rows in (X, Y))
    assert first == second


@pytest.mark.parametrize(
    ("levels", "sets", "records"),
    [
        ("1237", ("7", "13", "23", "12"), "73"),
        ("12347", ("7", "134", "234", "12"), "7777744433"),
        ("123456", ("13", "46", "23", "56", "12", "45"), "1346"),
    ],
)
def test_a_family_that_is_not_decided_is_not_called_decided_vacuous_or_small(
    levels: str, sets: tuple[str, ...], records: str
) -> None:
    """The bound was cut at the size of the smallest table, which is itself a bound there: too low."""
    schema = Schema.of(a=levels)
    spine = Spine.from_columns(pl.DataFrame({"root": ["r"], "block": ["x"]}), ["root", "block"])
    queries, shares = {"total": "1/2", "detailed": "1/2"}, {"root": "1/2", "block": "1/2"}
    budget = Allocation.of(Cells(schema), 1, shares, queries)
    declared = [
        {
            "kind": "invariant",
            "count": {"unit": "person", "by": ["block"], "where": [{"attribute": "a", "levels": list(part)}]},
        }
        for part in sets
    ]
    mechanism = TopDown(spine, [Universe("person", schema, budget)], declared)
    frame = pl.DataFrame({"block": ["x"] * len(records), "a": list(records)})
    found = exposures_of(mechanism, mechanism.prepare({"person": frame})).units[0]
    values = [sum(record in part for record in records) for part in sets]
    universe = [
        table
        for table in itertools.product(range(len(records) + 1), repeat=len(levels))
        if [sum(table[levels.index(level)] for level in part) for part in sets] == values
    ]
    truth = sum(map(min, zip(*universe, strict=True)))
    assert found.determined <= truth
    assert found.at_most is None or truth <= found.at_most
    assert found.records <= min(map(sum, universe))
    assert not found.decided or found.determined == truth
    assert not found.vacuous and not found.sized
    assert found.determined_share >= truth / min(map(sum, universe))
    assert "at least" in found.sentence()
