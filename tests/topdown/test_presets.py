"""The 2020 production settings: every number as the Census Bureau published it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from stirred.casebook.census_2020 import PL_HOUSEHOLD, PL_PERSON
from stirred.errors import UnknownName
from stirred.spec.calculus.closed_form.concentrated import optimal_epsilon
from stirred.topdown import Cells, preset
from stirred.topdown.constraint import as_constraints
from stirred.topdown.presets import names

LEVELS = ("us", "state", "county", "tract", "block_group", "block")
RHO_SQUARED = {
    "pl-2020-us-persons": Fraction(293764, 114921),
    "pl-2020-us-units": Fraction(11417641, 152349649),
}

# The fractions of the production strategy, level by level, as its source writes them.
QUERIES = (
    "total",
    "race",
    "hispanic",
    "voting_age",
    "hhinstlevels",
    "hhgq",
    "hispanic * race",
    "voting_age * race",
    "voting_age * hispanic",
    "voting_age * hispanic * race",
    "detailed",
)
STRATEGY = {
    "us": "52/4097 26/4097 26/4097 26/4097 26/4097 130/4097 130/4097 26/4097 26/241 189/241",
    "state": "3773/4097 6/4097 6/4097 6/4097 6/4097 6/4097 12/4097 12/4097 6/4097 2/241 230/4097",
    "county": "3126/4097 10/4097 10/4097 10/4097 10/4097 10/4097 28/4097 28/4097 10/4097 101/4097 754/4097",
    "tract": "1567/4102 4/2051 5/4102 5/4102 5/4102 5/4102 1933/4102 10/2051 5/4102 67/4102 241/2051",
    "block_group": "1705/4099 3/4099 3/4099 3/4099 3/4099 3/4099 1055/4099 9/4099 3/4099 24/4099 1288/4099",
    "block": "5/4097 9/4097 5/4097 5/4097 5/4097 5/4097 21/4097 21/4097 5/4097 71/4097 3945/4097",
}
DEVIATIONS = {
    "total": {"state": 1.10, "county": 2.17, "tract": 2.47, "block_group": 1.75, "block": 89.2},
    "detailed": {
        "us": 4.43,
        "state": 4.45,
        "county": 4.42,
        "tract": 4.46,
        "block_group": 2.02,
        "block": 3.18,
    },
    "hispanic * race": {"tract": 2.23, "block_group": 2.23, "block": 43.5},
}
UNIT_DEVIATIONS = {
    "us": 52.3,
    "state": 52.3,
    "county": 12.5,
    "tract": 6.13,
    "block_group": 5.58,
    "block": 10.5,
}


@pytest.mark.parametrize("name", RHO_SQUARED)
def test_the_total_is_the_exact_rational_of_the_settings(name: str) -> None:
    allocation = preset(name).allocation
    assert allocation.rho_squared == RHO_SQUARED[name]
    precisions = sum(
        1 / allocation.variance(level, query)
        for level, shares in allocation.queries.items()
        for query in shares
    )
    assert precisions == RHO_SQUARED[name] == allocation.checked_total()
    assert allocation.change == "replace-one"


def test_totals_agree_with_the_specification_of_the_census() -> None:
    assert preset("pl-2020-us-persons").allocation.rho_squared == PL_PERSON
    assert preset("pl-2020-us-units").allocation.rho_squared == PL_HOUSEHOLD


@pytest.mark.parametrize(
    ("name", "scale", "epsilon"),
    [
        ("pl-2020-us-persons", Fraction(339, 542), 17.1436),
        ("pl-2020-us-units", Fraction(12343, 3379), 2.4747),
    ],
)
def test_variances_are_the_squared_scale_over_both_shares(name: str, scale: Fraction, epsilon: float) -> None:
    allocation = preset(name).allocation
    for level, shares in allocation.queries.items():
        for query, share in shares.items():
            assert allocation.variance(level, query) == scale**2 / (allocation.levels[level] * share)
    assert float(optimal_epsilon(allocation.rho_squared, Fraction(1, 10**10))) == pytest.approx(
        epsilon, abs=5e-5
    )


def test_level_shares() -> None:
    persons, units = (preset(name).allocation.levels for name in RHO_SQUARED)
    assert tuple(persons) == tuple(units) == LEVELS
    assert [share * 4099 for share in persons.values()] == [104, 1440, 447, 687, 1256, 165]
    written = "1/205 1/205 7/82 364/1025 1759/4100 99/820"
    assert list(units.values()) == [Fraction(text) for text in written.split()]


@pytest.mark.parametrize("level", LEVELS)
def test_query_shares_are_those_of_the_production_strategy(level: str) -> None:
    shares = [Fraction(text) for text in STRATEGY[level].split()]
    asked = QUERIES[1:] if level == "us" else QUERIES
    found = preset("pl-2020-us-persons").allocation.queries[level]
    assert list(found.items()) == list(zip(asked, shares, strict=True))
    assert sum(found.values()) == 1


def test_units_ask_for_every_cell_and_nothing_else() -> None:
    assert preset("pl-2020-us-units").allocation.queries == {key: {"detailed": 1} for key in LEVELS}


def rounded(value: float) -> float:
    return float(f"{value:.3g}")


@pytest.mark.parametrize("query", DEVIATIONS)
def test_standard_deviations_of_persons(query: str) -> None:
    allocation = preset("pl-2020-us-persons").allocation
    for level, expected in DEVIATIONS[query].items():
        assert rounded(math.sqrt(allocation.variance(level, query))) == expected


def test_standard_deviations_of_units() -> None:
    table = preset("pl-2020-us-units").allocation.to_polars()
    assert {
        level: rounded(value) for level, value in table.select("level", "standard_deviation").rows()
    } == UNIT_DEVIATIONS


def test_the_schema_of_persons_has_2016_cells() -> None:
    schema = preset("pl-2020-us-persons").schema
    cells = Cells(schema)
    assert (cells.names, cells.shape) == (("hhgq", "voting_age", "hispanic", "race"), (8, 2, 2, 63))
    assert cells.count == 2016
    assert [cells.query(query).size for query in QUERIES] == [1, 63, 2, 2, 3, 8, 126, 126, 4, 252, 2016]
    assert schema.recodes[0].mapping() == {
        1: "household",
        **dict.fromkeys((2, 3, 4, 5), "institutional"),
        **dict.fromkeys((6, 7, 8), "noninstitutional"),
    }


def test_the_schema_of_units_is_occupancy() -> None:
    assert preset("pl-2020-us-units").schema.codebook() == {"occupancy": ("occupied", "vacant")}


@pytest.mark.parametrize("name", RHO_SQUARED)
def test_passes_take_every_query_once(name: str) -> None:
    settings = preset(name)
    assert tuple(settings.passes) == settings.levels == LEVELS
    for level, passes in settings.passes.items():
        queries = [query for group in passes for query in group]
        assert queries == list(settings.allocation.queries[level])


def test_totals_come_first_from_state_to_block_group() -> None:
    passes = preset("pl-2020-us-persons").passes
    assert {level: len(groups) for level, groups in passes.items()} == {
        "us": 1,
        "state": 2,
        "county": 2,
        "tract": 2,
        "block_group": 2,
        "block": 1,
    }
    assert all(groups[0] == ("total",) for groups in passes.values() if len(groups) == 2)


@pytest.mark.parametrize("name", RHO_SQUARED)
def test_the_rounding_chain_is_nested(name: str) -> None:
    settings = preset(name)
    cells = Cells(settings.schema)
    chain = settings.rounding_chain
    assert chain == tuple(cells.canonical(query) for query in chain)
    assert chain[-1] == "detailed"
    for coarse, fine in itertools.pairwise(chain):
        pairs = set(zip(cells.query(fine).groups, cells.query(coarse).groups, strict=True))
        assert len(pairs) == cells.query(fine).size > cells.query(coarse).size


def test_the_rounding_chain_of_persons() -> None:
    expected = ("total", "hhgq", "hhgq * hispanic", "hhgq * hispanic * race", "detailed")
    assert preset("pl-2020-us-persons").rounding_chain == expected


def test_constraints_of_persons() -> None:
    *invariants, facilities, nursing = preset("pl-2020-us-persons").constraints
    assert [x["count"] for x in invariants] == [
        {"unit": "person", "by": ["state"]},
        {"unit": "housing_unit", "by": ["block"]},
        {"unit": "occupied_group_quarters", "by": ["block", "group_quarters_type"]},
    ]
    assert {x["kind"] for x in invariants} == {"invariant"}
    assert facilities == {
        "kind": "facilities",
        "attribute": "hhgq",
        "level": "block",
        "cap": 99999,
        "sources": {"housing_unit": [1], "occupied_group_quarters": [2, 3, 4, 5, 6, 7, 8]},
        "at_least_one": [2, 3, 4, 5, 6, 7, 8],
    }
    assert nursing == {"kind": "structural_zero", "where": {"hhgq": [4], "voting_age": [1]}}


def test_constraints_of_units() -> None:
    (only,) = preset("pl-2020-us-units").constraints
    assert only == {"kind": "invariant", "count": {"unit": "housing_unit", "by": ["block"]}}


@pytest.mark.parametrize("name", RHO_SQUARED)
def test_constraints_are_declarations_that_a_plan_can_hold(name: str) -> None:
    declared = preset(name).constraints
    assert [constraint.kind for constraint in as_constraints(declared)] == [c["kind"] for c in declared]


@pytest.mark.parametrize("name", RHO_SQUARED)
def test_constraints_name_what_the_schema_and_the_levels_have(name: str) -> None:
    settings = preset(name)
    codebook = settings.schema.codebook()
    for constraint in settings.constraints:
        if constraint["kind"] == "structural_zero":
            assert all(set(levels) <= set(codebook[key]) for key, levels in constraint["where"].items())
        if constraint["kind"] == "facilities":
            counted = [level for types in constraint["sources"].values() for level in types]
            assert sorted(counted) == list(codebook[constraint["attribute"]])
            units = {c["count"]["unit"] for c in settings.constraints if c["kind"] == "invariant"}
            assert set(constraint["sources"]) <= units
            assert set(constraint["at_least_one"]) < set(codebook[constraint["attribute"]])
            assert constraint["level"] in settings.levels


@pytest.mark.parametrize("name", RHO_SQUARED)
def test_the_preset_says_that_it_is_not_the_bureaus_spine(name: str) -> None:
    settings = preset(name)
    notes = " ".join(settings.notes)
    assert "Not the Bureau's spine" in notes
    assert "American Indian" in notes and "optimised" in notes
    assert "DAS_2020_DHC_Production_Code" in notes and "CC0" in notes
    assert settings.name == name


def test_universes() -> None:
    assert names() == tuple(RHO_SQUARED)
    assert [preset(name).universe for name in names()] == ["person", "housing_unit"]


def test_losses_of_single_attributes() -> None:
    """Every query is either blind to an attribute or asks for it, so shares add up by hand."""
    settings = preset("pl-2020-us-persons")
    allocation = settings.allocation
    seen = {
        "hhgq": ("hhinstlevels", "hhgq", "detailed"),
        "voting_age": tuple(q for q in QUERIES if "voting_age" in q or q == "detailed"),
        "hispanic": tuple(q for q in QUERIES if "hispanic" in q or q == "detailed"),
        "race": tuple(q for q in QUERIES if "race" in q or q == "detailed"),
    }
    for name, loss in allocation.per_attribute(settings.schema).items():
        assert loss == sum(allocation.rho(level, query) for level in LEVELS for query in seen[name])
    assert preset("pl-2020-us-units").allocation.per_attribute(preset("pl-2020-us-units").schema) == {
        "occupancy": RHO_SQUARED["pl-2020-us-units"]
    }


def test_losses_of_moves() -> None:
    allocation = preset("pl-2020-us-persons").allocation
    assert [allocation.within(level) / allocation.rho_squared * 4099 for level in LEVELS] == [
        3995,
        2555,
        2108,
        1421,
        165,
        0,
    ]


def test_a_county_gets_the_whole_budget() -> None:
    allocation = preset("pl-2020-us-persons").allocation
    county = allocation.renormalised(LEVELS[2:])
    assert [share * 2555 for share in county.levels.values()] == [447, 687, 1256, 165]
    assert county.checked_total() == RHO_SQUARED["pl-2020-us-persons"]
    assert county.variance("block", "detailed") == allocation.variance("block", "detailed") * Fraction(
        2555, 4099
    )


def test_an_unknown_preset_lists_those_there_are() -> None:
    with pytest.raises(UnknownName) as caught:
        preset("pl-2020-pr-persons")
    assert caught.value.expected == "one of pl-2020-us-persons, pl-2020-us-units"
