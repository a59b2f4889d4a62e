"""Allocations: exact sums, merged chains, restricted losses, refusals."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import InputError, InvalidBudget, UnknownName
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Allocation, Cells

SCHEMA = Schema(
    attributes=(
        Attribute(name="sex", levels=("f", "m")),
        Attribute(name="age", levels=(0, 1, 2, 3)),
        Attribute(name="only", levels=("one",)),
    ),
    recodes=(
        Recode(name="adult", attribute="age", groups={"no": (0, 1), "yes": (2, 3)}),
        Recode(name="odd", attribute="age", groups={"no": (0, 2), "yes": (1, 3)}),
        Recode(name="outer", attribute="age", groups={"no": (1, 2), "yes": (0, 3)}),
        Recode(name="all", attribute="age", groups={"all": (0, 1, 2, 3)}),
    ),
)
CELLS = Cells(SCHEMA)
QUERIES = (
    "total",
    "sex",
    "age",
    "adult",
    "odd",
    "outer",
    "all",
    "sex * adult",
    "sex * age",
    "only",
    "detailed",
)
LEVELS = ("nation", "state", "county", "tract", "block")

law = settings(deadline=None)
weights = st.integers(1, 50)


@st.composite
def allocations(draw: st.DrawFn, change: str | None = None) -> Allocation:
    levels = LEVELS[: draw(st.integers(1, len(LEVELS)))]
    queries = {}
    for level in levels:
        chosen = draw(st.lists(st.sampled_from(QUERIES), min_size=1, max_size=5, unique_by=CELLS.canonical))
        queries[level] = normal({query: draw(weights) for query in chosen})
    return Allocation.of(
        CELLS,
        Fraction(draw(weights), draw(weights)),
        normal({level: draw(weights) for level in levels}),
        queries,
        change or draw(st.sampled_from(["replace-one", "add-remove"])),
    )


def normal(raw: Mapping[str, int]) -> dict[str, Fraction]:
    return {name: Fraction(weight, sum(raw.values())) for name, weight in raw.items()}


def simple(**changes: object) -> Allocation:
    fields = {
        "rho_squared": 1,
        "levels": {"state": "1/4", "block": "3/4"},
        "queries": {"state": {"total": 1}, "block": {"sex": "0.1", "detailed": "9/10"}},
        **changes,
    }
    return Allocation.of(CELLS, **fields)


def test_shares_are_read_exactly_and_queries_in_one_spelling() -> None:
    allocation = simple(queries={" age*sex ": "0.1", "only * age * sex": "9/10"})
    assert allocation.levels == {"state": Fraction(1, 4), "block": Fraction(3, 4)}
    assert list(allocation.queries) == ["state", "block"]
    for level in allocation.levels:
        assert allocation.queries[level] == {"sex * age": Fraction(1, 10), "detailed": Fraction(9, 10)}
    assert allocation.rho("block", "sex * age") == Fraction(3, 40)


def test_variance_is_sensitivity_over_twice_the_budget() -> None:
    allocation = simple(rho_squared="5/2")
    assert allocation.rho("block", "detailed") == Fraction(27, 16)
    assert allocation.variance("block", "detailed") == Fraction(16, 27)
    assert allocation.per_level() == {"state": Fraction(5, 8), "block": Fraction(15, 8)}


@law
@given(allocations(change="replace-one"))
def test_add_remove_halves_the_variance_of_the_same_budget(allocation: Allocation) -> None:
    other = Allocation(allocation.rho_squared, allocation.levels, allocation.queries, "add-remove")
    assert (allocation.squared_sensitivity, other.squared_sensitivity) == (2, 1)
    for level, shares in allocation.queries.items():
        for query in shares:
            assert other.rho(level, query) == allocation.rho(level, query)
            assert 2 * other.variance(level, query) == allocation.variance(level, query)


@law
@given(allocations(), st.data())
def test_merged_chains_keep_the_total_of_a_path(allocation: Allocation, data: st.DataObject) -> None:
    """Cut a path into chains at random: precisions add up to the same total, query by query too."""
    levels = list(allocation.levels)
    cuts = data.draw(st.sets(st.integers(1, len(levels)))) | {len(levels)}
    chains = [levels[start:stop] for start, stop in itertools.pairwise(sorted({0} | cuts))]
    assert [level for chain in chains for level in chain] == levels
    spent: dict[str, Fraction] = {}
    for chain in chains:
        found = allocation.variances(chain)
        asked = [query for level in chain for query in allocation.queries[level]]
        assert list(found) == list(dict.fromkeys(asked))
        for query, variance in found.items():
            rho = allocation.squared_sensitivity / (2 * variance)
            assert rho == sum(allocation.rho(x, query) for x in chain if query in allocation.queries[x])
            spent[query] = spent.get(query, Fraction(0)) + rho
    assert sum(spent.values()) == allocation.rho_squared == allocation.checked_total()


def test_merged_variances_can_be_asked_again_and_changed_by_the_caller() -> None:
    allocation = simple()
    first = allocation.variances(["state", "block"])
    first["total"] = Fraction(0)
    assert allocation.variances(("state", "block"))["total"] == 4


@law
@given(allocations(), st.data())
def test_renormalised_keeps_total_and_proportions(allocation: Allocation, data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.sampled_from(list(allocation.levels)), min_size=1, unique=True))
    fewer = allocation.renormalised(kept)
    assert fewer.checked_total() == allocation.rho_squared
    assert list(fewer.levels) == [level for level in allocation.levels if level in kept]
    assert fewer.change == allocation.change
    for one, other in itertools.combinations(kept, 2):
        assert fewer.levels[one] / fewer.levels[other] == allocation.levels[one] / allocation.levels[other]
    assert all(fewer.queries[level] == allocation.queries[level] for level in kept)


def distance(allocation: Allocation, before: list[tuple[int, ...]], after: list[tuple[int, ...]]) -> Fraction:
    """Loss between two data sets by brute force: squared distance of every answer over twice its variance.

    A record is (child at each level below the root..., cell); a node is a path of children.
    """
    total = Fraction(0)
    for depth, (level, shares) in enumerate(allocation.queries.items()):
        for query in shares:
            groups = CELLS.query(query).groups
            counts: dict[object, int] = {}
            for sign, records in ((1, before), (-1, after)):
                for record in records:
                    key = (record[:depth], int(groups[record[-1]]))
                    counts[key] = counts.get(key, 0) + sign
            square = sum(count**2 for count in counts.values())
            total += Fraction(square) / (2 * allocation.variance(level, query))
    return total


@law
@given(allocations())
def test_the_loss_of_one_unit_is_the_total(allocation: Allocation) -> None:
    """Replace a record by one elsewhere in another cell, or remove it: the root sees it as well."""
    below = (0,) * (len(allocation.levels) - 1)
    if allocation.change == "add-remove":
        assert distance(allocation, [(*below, 0)], []) == allocation.rho_squared
        return
    worst = max(distance(allocation, [(*below, 0)], [(*(1,) * len(below), c)]) for c in range(CELLS.count))
    assert worst <= allocation.rho_squared
    if set(allocation.queries[next(iter(allocation.levels))]) <= {"detailed", "sex * age"}:
        assert worst == allocation.rho_squared


@law
@given(allocations())
def test_within_is_the_loss_of_a_move_below_a_node(allocation: Allocation) -> None:
    below = len(allocation.levels) - 1
    for depth, level in enumerate(allocation.levels):
        stay, go = (0,) * below, (0,) * depth + (1,) * (below - depth)
        assert allocation.within(level) == distance(allocation, [(*stay, 0)], [(*go, 0)])


@law
@given(allocations())
def test_per_attribute_is_the_largest_loss_of_a_change_in_place(allocation: Allocation) -> None:
    place = (0,) * (len(allocation.levels) - 1)
    records = list(SCHEMA.records())
    for axis, name in enumerate(SCHEMA.names):
        pairs = [
            (i, j)
            for (i, x), (j, y) in itertools.product(enumerate(records), repeat=2)
            if all((x[k] == y[k]) or k == axis for k in range(len(x)))
        ]
        worst = max(distance(allocation, [(*place, i)], [(*place, j)]) for i, j in pairs)
        assert allocation.per_attribute(SCHEMA)[name] == worst
    assert allocation.per_attribute(CELLS) == allocation.per_attribute(SCHEMA)


def test_three_recodes_of_which_any_pair_of_levels_shares_one() -> None:
    """Every pair of ages agrees on one of the three halvings: the sum of all would be too much."""
    third = Fraction(1, 3)
    allocation = simple(queries={"adult": third, "odd": third, "outer": third})
    assert allocation.per_attribute(SCHEMA) == {"sex": 0, "age": Fraction(2, 3), "only": 0}


def test_record_is_exact_ordered_text() -> None:
    allocation = simple(rho_squared="293764/114921")
    record = allocation.record()
    assert json.loads(json.dumps(record)) == record
    assert record == {
        "rho_squared": "293764/114921",
        "change": "replace-one",
        "levels": {"state": "1/4", "block": "3/4"},
        "queries": {"state": {"total": "1"}, "block": {"sex": "1/10", "detailed": "9/10"}},
        "order": [["state", "total"], ["block", "sex"], ["block", "detailed"]],
    }
    assert Allocation.of(CELLS, *(record[k] for k in ("rho_squared", "levels", "queries"))) == allocation


def test_the_order_of_queries_is_part_of_the_record() -> None:
    swapped = {"state": {"total": 1}, "block": {"detailed": "9/10", "sex": "0.1"}}
    one, other = simple().record(), simple(queries=swapped).record()
    assert json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True)


def test_the_table_has_one_row_a_query_levels_root_first() -> None:
    frame = simple().to_polars()
    assert frame.select("level", "query").rows() == [
        ("state", "total"),
        ("block", "sex"),
        ("block", "detailed"),
    ]
    last = frame.row(2, named=True)
    assert last == {
        "level": "block",
        "query": "detailed",
        "level_share_exact": "3/4",
        "query_share_exact": "9/10",
        "rho_squared": 0.675,
        "rho_squared_exact": "27/40",
        "variance": 40 / 27,
        "variance_exact": "40/27",
        "standard_deviation": math.sqrt(40 / 27),
    }
    assert simple().to_arrow().num_rows == 3


def test_an_allocation_travels_between_processes() -> None:
    allocation = simple()
    allocation.variances(("state",))
    assert pickle.loads(pickle.dumps(allocation)) == allocation


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"levels": {"state": "1/4", "block": "1/2"}}, InvalidBudget, "levels sum to 3/4"),
        (
            {"queries": {"state": {"total": 1}, "block": {"sex": "1/3", "age": "1/3"}}},
            InvalidBudget,
            "level block sum to 2/3",
        ),
        ({"levels": {"state": 0, "block": 1}}, InvalidBudget, "level state has no budget"),
        ({"levels": {"state": "-1/4", "block": "5/4"}}, InvalidBudget, "level state has no budget"),
        (
            {"queries": {"state": {"total": 1}, "block": {"sex": 0, "age": 1}}},
            InvalidBudget,
            "level block: query sex has no budget",
        ),
        ({"queries": {"income": 1}}, UnknownName, "'income' names an unknown attribute"),
        ({"queries": {"adult * age": 1}}, InputError, "attribute age twice"),
        ({"levels": {"state": 0.25, "block": "3/4"}}, InvalidBudget, "float is not exact"),
        ({"queries": {"total": 1.0}}, InvalidBudget, "float is not exact"),
        ({"rho_squared": 2.5}, InvalidBudget, "float is not exact"),
        ({"rho_squared": "lots"}, InvalidBudget, "not an exact rational"),
        ({"rho_squared": True}, InvalidBudget, "not an exact rational"),
        ({"rho_squared": "1/0"}, InvalidBudget, "not an exact rational"),
        ({"rho_squared": 0}, InvalidBudget, "no budget to share"),
        ({"rho_squared": "-1"}, InvalidBudget, "no budget to share"),
        ({"queries": {"state": {"total": 1}}}, InputError, "level block has no queries"),
        ({"queries": {"state": {"total": 1}, "block": {}}}, InputError, "level block has no queries"),
        ({"queries": {}}, InputError, "level state has no queries"),
        ({"levels": {"state": 1}}, UnknownName, "queries for level block, which has no share"),
        ({"levels": {}, "queries": {"total": 1}}, InvalidBudget, "levels sum to 0"),
        ({"queries": {"state": {"total": 1}, "block": 1}}, InputError, "block has no mapping"),
        ({"queries": {"sex * age": "1/2", "age * sex": "1/2"}}, InputError, "query sex * age twice"),
        ({"change": "swap-two"}, InputError, "unit of change is unknown"),
    ],
)
def test_bad_allocations_are_refused(changes: dict[str, object], error: type, words: str) -> None:
    with pytest.raises(error) as caught:
        simple(**changes)
    assert words in caught.value.problem


def test_a_refusal_names_the_share_at_fault() -> None:
    with pytest.raises(InvalidBudget) as caught:
        simple(queries={"state": {"total": 1}, "block": {"age * sex": 0.5, "age": "1/2"}})
    assert caught.value.field == "queries.block.sex * age"


def test_an_allocation_built_by_hand_is_checked_too() -> None:
    with pytest.raises(InvalidBudget, match="levels sum to 1/2"):
        Allocation(Fraction(1), {"state": Fraction(1, 2)}, {"state": {"total": Fraction(1)}})


def test_unknown_levels_and_queries_are_refused() -> None:
    allocation = simple()
    for call in (
        lambda: allocation.rho("tract", "total"),
        lambda: allocation.within("tract"),
        lambda: allocation.variances(("state", "tract")),
        lambda: allocation.renormalised(["tract"]),
    ):
        with pytest.raises(UnknownName, match="no level tract"):
            call()
    with pytest.raises(UnknownName, match="not asked at level state"):
        allocation.variance("state", "sex")


@pytest.mark.parametrize("chain", [(), ("state", "state")])
def test_a_chain_spends_each_level_once(chain: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="each level once"):
        simple().variances(chain)


def test_no_levels_cannot_carry_the_total() -> None:
    with pytest.raises(InputError, match="levels sum to 0"):
        simple().renormalised([])


def test_a_share_changed_behind_the_checks_is_found() -> None:
    allocation = simple()
    allocation.levels["state"] = Fraction(1, 2)  # type: ignore[index]
    with pytest.raises(InvalidBudget, match="spends 5/4, the budget is 1"):
        allocation.checked_total()
