"""The 2020 Census recomputed: every figure of the record, the swapping loss, and the gaming audit."""

import math
from fractions import Fraction

import pytest

from stirred.casebook import reproduce
from stirred.casebook.census_2020 import (
    DELTA,
    SCHEMES,
    TOPDOWN,
    SwappingScheme,
    duplicated_record,
    entries,
    moves_allowed,
    systems,
)
from stirred.errors import InputError
from stirred.spec import (
    INFINITY,
    ZERO,
    Budget,
    Count,
    Domain,
    Exact,
    HammingUnordered,
    Multiplicative,
    Order,
    Specification,
    Stage,
    Swapping,
    Threshold,
    catalogue,
    change_unit,
    compare,
    convert,
    declared_invariants,
    from_invariants,
    gaming_audit,
    swapping_invariants,
    swapping_loss,
    undo_imputation,
)
from stirred.spec.blocks.multiverse import refines
from stirred.spec.blocks.output_premetric import Coarsened
from stirred.spec.blocks.psa import swapping_budget
from stirred.spec.calculus.closed_form.concentrated import census_epsilon
from stirred.spec.calculus.unit import imputation_factor

SYSTEMS = systems()


def two(value: float) -> float:
    return round(value, 2)


def test_table_2_swap_rates_of_massachusetts_1940() -> None:
    found = {row["rate"]: (two(row["epsilon"]), row["exact"]) for row in reproduce("table-2").rows}
    assert found == {
        0.01: (17.08, "ln(26168868)"),
        0.05: (15.43, "ln(5022308)"),
        0.10: (14.68, "ln(2378988)"),
        0.50: (12.48, "ln(264332)"),
    }
    assert {row["largest_stratum"] for row in reproduce("table-2").rows} == {264_331}


def test_table_3_budgets_of_topdown() -> None:
    table = {(row["product"], row["level"]): row for row in reproduce("table-3").rows}
    found = {
        key: (row["rho_squared"], two(row["epsilon"]), row["published_epsilon"]) for key, row in table.items()
    }
    assert found == {
        ("PL", "household"): (0.07, 2.70, 2.70),
        ("PL", "person"): (2.56, 17.90, 17.90),
        ("DHC", "household"): (7.70, 34.33, 34.33),
        ("DHC", "person"): (4.96, 26.33, 26.34),
        ("Total", ""): (15.29, 52.82, 52.83),
    }
    assert table["PL", "person"]["rho_squared_exact"] == "293764/114921"
    assert table["PL", "household"]["rho_squared_exact"] == "11417641/152349649"
    printed = sum(Fraction(str(row["rho_squared"])) for key, row in table.items() if key[0] != "Total")
    assert printed == Fraction("15.29")


def test_table_4_specifications_of_the_2020_system() -> None:
    table = {row["id"]: row for row in reproduce("table-4").rows}
    squares = {name: row["rho_squared"] for name, row in table.items()}
    assert squares == {
        "tda-dhc": 15.29,
        "safetab-p": 19.776,
        "safetab-h": 17.79,
        "phsafe": 2.515,
        "das-2020": 55.371,
        "psa-2020-*": None,
    }
    assert two(table["tda-dhc"]["epsilon"]) == 52.82
    assert two(table["das-2020"]["epsilon"]) == 126.78
    assert tuple(map(two, table["psa-2020-*"]["epsilon"])) == (8.42, 19.36)
    assert {row["output_premetric"] for name, row in table.items() if "psa" not in name} == {"D_NoR"}
    assert table["psa-2020-*"]["output_premetric"] == "D_Mult"
    units = {name: row["resolution"] for name, row in table.items()}
    assert units == {
        "tda-dhc": "person",
        "safetab-p": "person",
        "safetab-h": "household",
        "phsafe": "household",
        "das-2020": "person",
        "psa-2020-*": "household",
    }
    assert table["das-2020"]["invariants"] == table["tda-dhc"]["invariants"] != ()
    assert len(table["tda-dhc"]["invariants"]) == 3
    for name, row in table.items():
        if row["rho_squared"] is not None:
            exact = census_epsilon(Fraction(str(row["rho_squared"])), Fraction(1, 10**10))
            assert row["epsilon"] == pytest.approx(float(exact), abs=1e-12), name


def test_table_5_swapping_applied_to_2020() -> None:
    table = reproduce("table-5").rows
    found = {row["largest_stratum"]: (two(row["epsilon_5"]), two(row["epsilon_50"])) for row in table}
    assert found == {
        13_475_623: (19.36, 16.42),
        3_948_028: (18.13, 15.19),
        3_420_628: (17.99, 15.05),
        939_185: (16.70, 13.75),
        6_204: (11.68, 8.73),
        4_549: (11.37, 8.42),
    }
    for row in table:
        b = row["largest_stratum"]
        assert row["exact_5"] == f"ln({19 * (b + 1)})"
        assert row["exact_50"] == f"ln({b + 1})"
        assert row["epsilon_5"] == pytest.approx(math.log(b + 1) + math.log(19), abs=1e-9)


def test_the_record_used_twice_and_the_2010_like_swap() -> None:
    (doubled,) = reproduce("duplicated-record").rows
    assert (doubled["rho_squared"], two(doubled["epsilon"]), doubled["delta"]) == (221.484, 364.31, 1e-10)
    assert [(row["rate"], two(row["epsilon"])) for row in reproduce("like-2010").rows] == [
        (0.04, 18.29),
        (0.02, 19.0),
    ]


def test_notes_name_every_published_figure_that_does_not_follow() -> None:
    told = {name: reproduce(name).notes for name in ("table-2", "table-3", "table-4", "table-5")}
    assert [sum("52.83" in note for note in notes) for notes in told.values()] == [0, 1, 1, 0]
    assert any("26.34" in note and "26.33" in note for note in told["table-3"])
    assert sum("follows from the exact" in note for notes in told.values() for note in notes) == 3
    assert float(census_epsilon(Fraction(24811, 5000), DELTA)) == pytest.approx(26.3406, abs=5e-5)
    assert float(TOPDOWN) == pytest.approx(15.29387, abs=5e-6)
    assert float(census_epsilon(TOPDOWN, DELTA)) == pytest.approx(52.8254, abs=5e-5)
    assert any("17.90" in note and "17.92" in note and "2.6312" in note for note in told["table-3"])
    assert any("354.50" in note and "253.57" in note for note in told["table-4"])
    assert any("139.596" in note for note in told["table-4"])
    assert not any("126.78;" in note for note in told["table-4"])


def test_the_overall_system_is_the_composition_of_its_parts() -> None:
    parts = [
        s.budget.amount
        for s in (SYSTEMS["tda-dhc"], SYSTEMS["safetab-p"], SYSTEMS["safetab-h"], SYSTEMS["phsafe"])
    ]
    assert sum(parts, ZERO) == SYSTEMS["das-2020"].budget.amount == Exact.of("55.371")
    assert SYSTEMS["das-2020"].flavor == SYSTEMS["tda-dhc"].flavor
    assert any("membership is fixed" in text for text in SYSTEMS["das-2020"].assumptions)
    assert any("independent" in text for text in SYSTEMS["das-2020"].assumptions)
    assert SYSTEMS["das-2020"].standing == "published"
    assert SYSTEMS["tda-pl"].budget.amount == Exact.of("2.63")


def test_8_9_a_move_quadruples_the_household_contributions() -> None:
    """If d_h <= 2 d_p only, each household-level rho squared counts four times."""
    household = Fraction("0.07") + Fraction("7.70") + Fraction("17.79") + Fraction("2.515")
    assert moves_allowed() == Fraction("55.371") + 3 * household == Fraction("139.596")
    doubled = change_unit(
        SYSTEMS["safetab-h"], HammingUnordered(unit="person"), 2, "a move changes two households"
    )
    assert doubled.budget.amount == Exact.of("71.16")


def test_8_4_a_donor_counts_once_for_itself_and_once_for_each_recipient() -> None:
    assert [imputation_factor(recipients) for recipients in (0, 1, 4)] == [1, 2, 5]
    assert duplicated_record().budget.amount == Exact.of("221.484")
    assert duplicated_record().input_premetric.unit == "respondent"
    again = undo_imputation(SYSTEMS["das-2020"], HammingUnordered(unit="respondent"), 2)
    assert again.budget.amount == Exact.of("55.371") * 9
    with pytest.raises(InputError):
        imputation_factor(-1)


def test_phsafe_conditions_on_less_than_the_housing_unit_counts() -> None:
    """Whether a block has a housing unit is a function of how many it has, not the reverse."""
    exact, indicator = (
        declared_invariants(SYSTEMS["safetab-h"].multiverse),
        declared_invariants(SYSTEMS["phsafe"].multiverse),
    )
    assert exact == (Count(unit="housing_unit", by=("block",)),)
    assert indicator == (Threshold(statistic=Count(unit="housing_unit", by=("block",)), at_least=1),)
    assert (
        refines(SYSTEMS["safetab-h"].multiverse, SYSTEMS["phsafe"].multiverse, SYSTEMS["phsafe"].domain)
        is True
    )
    assert (
        refines(SYSTEMS["phsafe"].multiverse, SYSTEMS["safetab-h"].multiverse, SYSTEMS["phsafe"].domain)
        is not True
    )
    verdict = next(
        b for b in compare(SYSTEMS["phsafe"], SYSTEMS["safetab-h"]).blocks if b.block == "multiverse"
    )
    assert verdict.order in {Order.STRONGER, Order.UNDECIDED}


def test_the_catalogue_carries_the_census_entries() -> None:
    for name, amount in (("tda-pl", "2.63"), ("tda-dhc", "15.29"), ("das-2020", "55.371")):
        assert catalogue.specification(name).budget.amount == Exact.of(amount)
    for scheme in SCHEMES:
        assert catalogue.specification(scheme.id).budget.amount == swapping_loss(
            scheme.largest_stratum, "0.05"
        )
    assert catalogue.specification("psa-2010-like").budget.amount.rounded(2) == "18.29"
    assert catalogue.specification("psa-2010-like-2").budget.amount.rounded(2) == "19.00"
    assert catalogue.specification("das-2020") == SYSTEMS["das-2020"]


@pytest.mark.parametrize(
    ("largest", "least", "rate"),
    [(10, "1.199", 0.768), (1_000_000, "6.908", 0.999), (1, "0.347", 0.586), (99, "2.303", 0.909)],
)
def test_theorem_1_the_least_loss_is_half_the_logarithm(largest: int, least: str, rate: float) -> None:
    """Half of ln(b+1), at p = sqrt(b+1)/(sqrt(b+1)+1); both branches meet there, and it is a minimum."""
    root = math.sqrt(largest + 1)
    best = root / (root + 1)
    assert best == pytest.approx(rate, abs=0.0005)
    here = swapping_loss(largest, Fraction(best).limit_denominator(10**9))
    assert here.rounded(3) == least
    assert float(here) == pytest.approx(math.log(largest + 1) / 2, abs=1e-6)
    for step in range(1, 200):
        assert swapping_loss(largest, Fraction(step, 200)) >= Exact.log(largest + 1, 2)


@pytest.mark.parametrize("largest", [1, 2, 7, 4_549])
@pytest.mark.parametrize("rate", ["0.01", "0.05", "1/2", "2/3", "0.9", "0.999"])
def test_theorem_1_the_two_branches(largest: int, rate: str) -> None:
    p = float(Fraction(rate))
    odds = p / (1 - p)
    root = math.sqrt(largest + 1)
    first = math.log(largest + 1) - math.log(odds)
    expected = first if p <= root / (root + 1) else math.log(odds)
    assert float(swapping_loss(largest, rate)) == pytest.approx(expected, rel=1e-12)
    assert swapping_loss(largest, rate).exponential is not None, "e to the loss is a rational"


def test_theorem_1_edge_cases() -> None:
    """No stratum with two records: no loss at any rate. No swapping, or swapping all: no guarantee."""
    for rate in (0, "1/2", 1):
        assert swapping_loss(0, rate) == ZERO
    for rate in (0, 1):
        assert swapping_loss(5, rate) == INFINITY
    for wrong in ("-0.1", "1.1"):
        with pytest.raises(InputError):
            swapping_loss(5, wrong)
    with pytest.raises(InputError):
        swapping_loss(-1, "0.5")
    budget = swapping_budget(4_549, "0.05", "household", ("block",))
    assert budget.policy == Swapping(theorem="1", unit="household", match=("block",), rate="0.05")
    assert [str(statistic) for statistic in budget.at] == [
        "the largest stratum of household records by block with two distinct ones has size 4,549"
    ]
    with pytest.raises(InputError):
        swapping_invariants("household", ("state",), (), ("size",))


def test_proposition_4_swapping_keeps_two_families_of_tables() -> None:
    multiverse = SCHEMES[1].specification().multiverse
    assert declared_invariants(multiverse) == (
        Count(unit="household", by=("state", "household_size", "household_characteristics")),
        Count(unit="household", by=("state", "household_size", "county")),
    )


def with_blocks(specification: Specification, **blocks: object) -> Specification:
    return Specification(**dict(specification) | blocks)


def test_gaming_piling_on_invariants_names_the_multiverse() -> None:
    """Section 7, row 2: the same swap at 5%, b from 13.7 million to 11.7 thousand, 19.38 to 12.31."""
    few = SwappingScheme("few", ("state",), ("county",), 13_700_000, "", (0.0, 0.0)).specification("0.05")
    many = SwappingScheme(
        "many", ("block_group", "household_size"), ("block",), 11_700, "", (0.0, 0.0)
    ).specification("0.05")
    assert few.budget.amount.rounded(2) == "19.38"
    assert many.budget.amount.rounded(2) == "12.31"
    audit = gaming_audit(few, many)
    assert [move.block for move in audit.moves] == ["multiverse"]
    move = audit.moves[0]
    assert move.direction == "weaker"
    assert "invariants" in move.manoeuvre
    assert move.before != move.after
    told = audit.sentence()
    assert "Mechanism unchanged" in told and "because of: multiverse" in told
    assert audit.before in told and audit.after in told
    assert "19.3" in audit.before and "12.3" in audit.after


def test_gaming_a_finer_unit_names_the_input_premetric() -> None:
    """Row 3: households of four restated as persons divide epsilon by four."""
    household = SCHEMES[0].specification()
    person = with_blocks(household, input_premetric=HammingUnordered(unit="person"), budget=Budget.epsilon(5))
    audit = gaming_audit(household, person)
    assert [move.block for move in audit.moves] == ["input_premetric"]
    assert "protection unit" in audit.moves[0].manoeuvre
    assert "household" in audit.moves[0].before and "person" in audit.moves[0].after


def test_gaming_a_weaker_measure_names_the_output_premetric() -> None:
    """Row 4: pure DP restated as zCDP or with a delta."""
    pure = SCHEMES[0].specification()
    for target, options in (("zcdp", {}), ("approximate", {"delta": "1e-10"})):
        audit = gaming_audit(pure, convert(pure, target, **options).specification)
        blocks = {move.block: move for move in audit.moves}
        assert blocks["output_premetric"].direction == "weaker"
        assert set(blocks) <= {"output_premetric", "parametrisation"}


def test_gaming_fewer_events_name_the_event_algebra() -> None:
    """Row 5: a coarsened algebra of events."""
    pure = SCHEMES[0].specification()
    coarse = Coarsened(base=Multiplicative(), groups=(("a", "b"),), reason="one group of outputs")
    audit = gaming_audit(pure, with_blocks(pure, output_premetric=coarse, budget=Budget.epsilon(0)))
    assert [move.block for move in audit.moves] == ["event_algebra"]
    assert audit.moves[0].direction == "weaker"
    assert "fewer events" in audit.moves[0].manoeuvre


def test_gaming_a_later_stage_names_the_domain() -> None:
    """Row 1: the boundary moved downstream, from raw responses to the edited file."""
    edited = SCHEMES[0].specification()
    raw = with_blocks(edited, domain=Domain(**dict(edited.domain) | {"stage": Stage.RAW_RESPONSES}))
    audit = gaming_audit(raw, edited)
    assert [move.block for move in audit.moves] == ["domain"]
    assert "stage" in audit.moves[0].manoeuvre
    assert "raw responses" in audit.moves[0].before and "edited file" in audit.moves[0].after


def test_gaming_another_currency_names_the_parametrisation() -> None:
    """Row 7: rho instead of rho squared, for the very same guarantee."""
    square = SYSTEMS["tda-dhc"]
    root = with_blocks(square, budget=Budget.zcdp(rho=square.budget.linear()))
    audit = gaming_audit(square, root)
    assert [move.block for move in audit.moves] == ["parametrisation"]
    assert audit.moves[0].direction == "equivalent"
    assert compare(square, root).overall == Order.EQUIVALENT


def test_gaming_more_assumptions_are_named() -> None:
    plain = SCHEMES[0].specification()
    assumed = with_blocks(plain, assumptions=(*plain.assumptions, "nobody knows the swap flags"))
    audit = gaming_audit(plain, assumed)
    assert [move.block for move in audit.moves] == ["assumptions"]
    assert "nobody knows the swap flags" in audit.moves[0].after


def test_gaming_a_smaller_budget_alone_moves_no_block() -> None:
    plain = SCHEMES[0].specification("0.05")
    audit = gaming_audit(plain, SCHEMES[0].specification("0.5"))
    assert audit.moves == ()
    assert "No building block moved" in audit.sentence()


def test_gaming_several_moves_are_all_named() -> None:
    swap, noise = catalogue.specification("psa-2020-county"), catalogue.specification("tda-dhc")
    blocks = {move.block for move in gaming_audit(swap, noise).moves}
    assert {"multiverse", "input_premetric", "output_premetric", "parametrisation"} <= blocks


def test_the_census_room_prints_no_figure_that_it_does_not_compute() -> None:
    """Every epsilon of Table 5 follows from its stratum and rate by Theorem 1, as floats show."""
    for scheme in SCHEMES:
        for rate, published in zip((0.05, 0.5), scheme.published, strict=True):
            value = math.log(scheme.largest_stratum + 1) - math.log(rate / (1 - rate))
            assert round(value, 2) == published


def test_an_invariant_dropped_from_swapping_leaves_no_guarantee() -> None:
    """Tables that swapping keeps exact cost infinity under any multiverse that does not condition on them."""
    scheme = SCHEMES[0].specification()
    fewer = from_invariants(declared_invariants(scheme.multiverse)[0])
    dropped = with_blocks(scheme, multiverse=fewer)
    verdict = compare(scheme, dropped)
    assert verdict.overall == Order.WEAKER
    assert verdict.flavor_order == Order.WEAKER


def test_the_catalogue_ships_what_is_recomputed() -> None:
    assert [catalogue[entry.id] for entry in entries()] == list(entries())
