"""Persons who move: one change of a person may change two housing units."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from stirred.data import Spine
from stirred.errors import InputError
from stirred.spec import Count, Schema
from stirred.topdown import Allocation, Cells, Invariant, Plan, TopDown, Universe

LEVELS = ("county", "tract", "block_group", "block")
PERSON = Schema.of(age=("minor", "adult"), race=("a", "b"))
UNIT = Schema.of(occupancy=("occupied", "vacant"))
BLOCKS = [f"1{t}{g}{b}" for t in "12" for g in "12" for b in "12"]
PERSONS = Allocation.of(
    Cells(PERSON),
    2,
    {"county": "1/10", "tract": "2/10", "block_group": "3/10", "block": "4/10"},
    {"total": "1/4", "age": "1/8", "race": "1/4", "detailed": "3/8"},
)
UNITS = Allocation.of(Cells(UNIT), "1/8", dict.fromkeys(LEVELS, "1/4"), {"detailed": 1})


def topdown(touched: int = 1) -> TopDown:
    spine = Spine.from_prefixes(BLOCKS, {"county": 1, "tract": 2, "block_group": 3, "block": 4})
    invariants = [
        Invariant(count=Count(unit="person", by=("county",))),
        Invariant(count=Count(unit="housing_unit", by=("block",))),
    ]
    universes = [
        Universe("person", PERSON, PERSONS),
        Universe("housing_unit", UNIT, UNITS, touched=touched),  # type: ignore[arg-type]
    ]
    return TopDown(spine, universes, invariants)


def cost(before: list[tuple[str, ...]], after: list[tuple[str, ...]], allocation: Allocation) -> Fraction:
    """Squared change of every count over twice its variance, counted by hand; records begin with a block."""
    total = Fraction(0)
    for depth, level in enumerate(LEVELS, start=1):
        for query in allocation.queries[level]:
            keep = {"total": (), "age": (1,), "race": (2,)}.get(query)
            counts = [
                Counter((r[0][:depth], r[1:] if keep is None else tuple(r[i] for i in keep)) for r in records)
                for records in (before, after)
            ]
            squares = sum((counts[0][c] - counts[1][c]) ** 2 for c in counts[0].keys() | counts[1].keys())
            total += squares / (2 * allocation.variance(level, query))
    return total


HERE, THERE = "1111", "1222"
MOVE = (
    cost([(HERE, "minor", "a")], [(THERE, "adult", "b")], PERSONS),
    cost([(HERE, "occupied"), (THERE, "vacant")], [(HERE, "vacant"), (THERE, "occupied")], UNITS),
)


def test_a_move_costs_more_than_the_sum_of_the_budgets() -> None:
    """The numbers of the digest: 1.95 for the person, 0.1875 for the units, above 2 + 1/8."""
    assert (Fraction("1.95"), Fraction("0.1875")) == MOVE
    assert sum(MOVE) == Fraction("2.1375") > Fraction("2.125")


def test_the_sum_rests_on_an_assumption_that_is_stated() -> None:
    spec = topdown().guarantee()
    assert spec.budget.amount.rational == Fraction("2.125")
    assert any("of who lives where, is not covered" in text for text in spec.assumptions)
    assert "of who lives where, is not covered" in str(spec.card())


def test_a_guarantee_with_two_units_touched_covers_moves() -> None:
    spec = topdown(2).guarantee()
    assert spec.budget.amount.rational == Fraction("2.5")
    assert sum(MOVE) <= spec.budget.amount.rational
    assert not any("who lives where" in text for text in spec.assumptions)
    assert any("a move included, changes at most two housing unit records" in a for a in spec.assumptions)


def test_two_units_changed_alike_cost_four_times_one() -> None:
    """Why the factor is two for rho, and no less: units of one area may change in the same way."""
    one = cost([(HERE, "occupied")], [(HERE, "vacant")], UNITS)
    two = cost([(HERE, "occupied")] * 2, [(HERE, "vacant")] * 2, UNITS)
    assert one == Fraction(1, 8)
    assert two == 4 * one


@pytest.mark.parametrize("unit", ["person", "school"])
def test_a_plan_says_it_for_the_other_measured_units_alone(unit: str, tmp_path: Path) -> None:
    schema = {"attributes": [{"name": "x", "levels": ["a", "b"]}]}
    budget = {"rho_squared": 1, "levels": {"block": 1}, "queries": {"detailed": 1}}
    units = {
        "person": {"file": "p.csv", "schema": schema, "budget": budget},
        "school": {"file": "s.csv", "schema": schema},
    }
    units[unit] |= {"touched": 2}
    record = {"geography": {"file": "g.csv", "levels": ["block"]}, "units": units}
    (tmp_path / "g.csv").write_text("block\n1\n2\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        Plan.read(record).mechanism(tmp_path)
    assert unit in refused.value.field
