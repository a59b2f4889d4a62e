"""The release table: eight fields, honest epsilon and delta, invariants named, nominal budgets labelled."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import fields
from fractions import Fraction

import pytest

from stirred.errors import DomainMismatch, InputError, NotImplied
from stirred.report import ReleaseRow, ReleaseTable
from stirred.report.table import HEADINGS, Fields, invariants_text, parameters, scientific
from stirred.spec import (
    Approximate,
    Budget,
    Domain,
    Exact,
    Multiplicative,
    Renyi,
    Specification,
    Stage,
    Trivial,
    catalogue,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import DescribedMultiverse, Explicit
from stirred.spec.blocks.output_premetric import Coarsened, TotalVariation
from stirred.spec.calculus.closed_form.concentrated import census_epsilon

TOPDOWN = catalogue.specification("tda-dhc")
SWAPPING = catalogue.specification("psa-2020-county")
PURE = catalogue.specification("pure-dp", Budget.epsilon("0.2"))


def changed(specification: Specification, **blocks: object) -> Specification:
    return Specification(**dict(specification) | blocks)


def row(specification: Specification | None, step: str = "tables", **extra: str) -> ReleaseRow:
    words = {"scope": "Tables of a county", "mechanism": "Laplace", "implementation": "stirred"}
    return ReleaseRow(step=step, specification=specification, **words | extra)


def test_the_eight_fields_come_first_and_in_the_order_of_the_book() -> None:
    assert list(HEADINGS.values())[:8] == [
        "Project scope",
        "Preprocessing methods",
        "ε",
        "δ",
        "Unit of privacy",
        "Mechanism",
        "Implementation",
        "URL",
    ]
    assert list(HEADINGS) == [field.name for field in fields(Fields)]


def test_the_broadband_table_of_the_book() -> None:
    table = ReleaseTable.of([row(PURE, url="https://example.org/data")])
    release = table.release
    assert (release.epsilon, release.delta) == ("0.2", "0")
    assert release.preprocessing == "None"
    assert release.url == "https://example.org/data"
    assert "nominal" in release.reading


def test_the_linkedin_table_of_the_book() -> None:
    approximate = changed(
        PURE, output_premetric=Approximate(delta=Exact.of("1e-10")), budget=Budget.epsilon("1.2")
    )
    table = ReleaseTable.of([row(approximate, f"report {i}") for i in range(4)])
    assert (table.release.epsilon, table.release.delta) == ("4.8", "4e-10")
    assert [fields.epsilon for _, fields in table.steps] == ["1.2"] * 4


def test_zcdp_shows_rho_squared_and_a_conversion_that_says_so() -> None:
    found = parameters(TOPDOWN, delta="1e-10")
    assert found.own is not None
    assert (found.own_name, found.own.value, found.own.shown) == ("ρ²", Exact.of("15.29"), "15.29")
    assert found.epsilon.converted
    assert "Bun and Steinke" in found.epsilon.rule
    assert (found.delta.value, found.delta.shown) == (Fraction(1, 10**10), "1e-10")
    text = ReleaseTable.of([row(TOPDOWN)], delta="1e-10").release
    assert "ρ² = 15.29" in text.epsilon
    assert "converted by ρ² + 2ρ√(−ln δ)" in text.epsilon
    assert "chosen for the conversion" in text.delta
    assert "not k times" in text.reading


def test_a_converted_epsilon_is_rounded_up() -> None:
    exact = census_epsilon(Fraction("15.29"), Fraction(1, 10**10))
    published = Fraction(parameters(TOPDOWN, delta="1e-10").epsilon.shown)
    assert exact <= published < exact + Fraction(1, 10**4)
    assert math.isclose(published, 15.29 + 2 * math.sqrt(15.29 * 10 * math.log(10)), abs_tol=2e-4)


def test_another_rule_gives_another_epsilon_and_its_own_name() -> None:
    census, optimal = (parameters(TOPDOWN, "1e-10", method) for method in ("census", "optimal"))
    assert Fraction(optimal.epsilon.shown) < Fraction(census.epsilon.shown)
    assert "Canonne" in optimal.epsilon.rule
    gaussian = parameters(TOPDOWN, "1e-10", "gaussian")
    assert any("Gaussian noise" in remark for remark in gaussian.remarks)


def test_without_a_delta_nothing_is_converted() -> None:
    found = parameters(TOPDOWN)
    assert not found.epsilon.converted
    assert found.epsilon.value is None
    assert "D_NoR" in found.epsilon.shown
    assert found.delta.shown == "not stated"
    with pytest.raises(InputError):
        parameters(TOPDOWN, delta="2")


def test_rho_is_published_as_its_square() -> None:
    rho = parameters(changed(TOPDOWN, budget=Budget.zcdp(rho="1.5"))).own
    assert rho is not None
    assert (rho.value, rho.shown) == (Exact.of("9/4"), "2.25")


def test_a_logarithm_stays_exact_and_is_shown_rounded_up() -> None:
    found = parameters(SWAPPING)
    assert found.epsilon.value == Exact.log(256036856)
    assert Fraction(found.epsilon.shown) >= Fraction(math.log(256036856))
    assert (found.delta.value, found.own) == (0, None)


def test_a_coarsened_measure_is_not_published_as_epsilon() -> None:
    coarse = Coarsened(base=Multiplicative(), groups=(("a",), ("b",)), reason="only b matters")
    found = parameters(changed(PURE, output_premetric=coarse))
    assert "not stated" in found.epsilon.shown
    assert found.own is not None and found.own.shown == "0.2"


def test_other_measures_are_named_and_renyi_converts() -> None:
    found = parameters(
        changed(PURE, output_premetric=TotalVariation(), budget=Budget.loss("0.1")), delta="1e-6"
    )
    assert "not stated" in found.epsilon.shown
    near = catalogue.specification("bounded-dp", Budget.epsilon(1))
    renyi = parameters(changed(near, output_premetric=Renyi(alpha=Exact.of(2))), delta="1e-6")
    assert renyi.epsilon.converted
    assert "Mironov" in renyi.epsilon.rule
    assert math.isclose(float(renyi.epsilon.shown), 1 + 6 * math.log(10), abs_tol=2e-4)
    assert renyi.own_name == "ε of order α = 2"


def test_a_budget_by_universe_gives_its_largest_and_says_that_it_varies() -> None:
    domain = Domain.finite(["a", "b", "c", "d"])
    distances = tuple(tuple(0 if i == j else 1 for j in range(4)) for i in range(4))
    specification = Specification(
        domain=domain,
        multiverse=Explicit(parts=(("a", "b"), ("c", "d"))),
        input_premetric=Given(unit="point", points=domain.points, distances=distances),
        output_premetric=Multiplicative(),
        budget=Budget.by_universe("epsilon", ["1/2", 2]),
    )
    found = parameters(specification)
    assert found.epsilon.shown == "2"
    assert "0.5 to 2" in found.remarks[0]
    assert "listed universes" in invariants_text(specification)


def test_invariants_are_named_one_by_one() -> None:
    named = ReleaseTable.of([row(TOPDOWN)]).release.invariants
    assert "the number of persons in each state" in named
    assert "the number of housing units in each block" in named
    assert "group quarters type" in named
    assert ReleaseTable.of([row(PURE)]).release.invariants == "none"
    secret = DescribedMultiverse(name="M", meaning="data sets that share a margin")
    assert "share a margin" in invariants_text(changed(PURE, multiverse=secret))


def test_steps_compose_unless_the_ledger_says_how() -> None:
    first, second = (row(catalogue.specification("tda-pl"), n) for n in ("pl", "again"))
    composed = ReleaseTable.of([first, second])
    assert composed.parameters is not None and composed.parameters.own is not None
    assert composed.parameters.own.shown == "5.26"
    assert composed.release.mechanism == "Laplace"
    given = ReleaseTable.of([first, second], total=TOPDOWN)
    assert given.parameters is not None and given.parameters.own is not None
    assert given.parameters.own.shown == "15.29"
    with pytest.raises((NotImplied, DomainMismatch, InputError)):
        ReleaseTable.of([first, row(PURE)])


def test_a_single_step_is_not_composed_with_anything() -> None:
    table = ReleaseTable.of([row(TOPDOWN)])
    assert table.total == TOPDOWN


def test_a_step_outside_any_guarantee_taints_the_release() -> None:
    table = ReleaseTable.of([row(PURE), row(None, "tuning")])
    assert table.release.epsilon.startswith("∞")
    assert "tuning" in table.release.epsilon
    assert "NOT COVERED" in table.release.reading
    assert table.total is None and table.parameters is None
    assert table.steps[0][1].epsilon == "0.2"
    assert table.steps[1][1].epsilon.startswith("∞")
    alone = ReleaseTable.of([row(None, "tuning")])
    assert alone.release.guarantee.startswith("none")


def test_an_uncertified_guarantee_says_so() -> None:
    assert "UNCERTIFIED" in ReleaseTable.of([row(changed(PURE, standing="uncertified"))]).release.reading
    assert "UNCERTIFIED" not in ReleaseTable.of([row(PURE)]).release.reading


def test_infinite_budgets_are_shown_as_such() -> None:
    assert parameters(changed(PURE, budget=Budget.epsilon("inf"))).epsilon.shown == "∞"
    converted = parameters(changed(TOPDOWN, budget=Budget.zcdp(rho_squared="inf")), delta="1e-10")
    assert "not converted" in converted.epsilon.shown


def test_csv_and_markdown_carry_the_same_words() -> None:
    table = ReleaseTable.of([row(TOPDOWN, "a|b", scope='Tables,\n"quoted"'), row(TOPDOWN, "second")])
    lines = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [line["row"] for line in lines] == ["release", "a|b", "second"]
    assert lines[1]["scope"] == 'Tables,\n"quoted"'
    assert lines[0]["epsilon"] == table.release.epsilon
    markdown = table.to_markdown().splitlines()
    assert sum(line.startswith("| ") for line in markdown) == 2 + len(HEADINGS) + 2 + 2
    steps = markdown[-2:]
    assert {line.replace("\\|", "").count("|") for line in steps} == {len(HEADINGS) + 2}
    for heading in HEADINGS.values():
        assert f"| {heading} |" in table.to_markdown()


def test_a_spreadsheet_takes_no_field_for_a_formula() -> None:
    table = ReleaseTable.of([row(PURE, scope="=HYPERLINK(1)")])
    assert next(csv.DictReader(io.StringIO(table.to_csv())))["scope"] == "'=HYPERLINK(1)"


def test_json_carries_exact_numbers_and_the_specification() -> None:
    body = json.loads(ReleaseTable.of([row(SWAPPING)]).to_json())
    assert (body["schema_version"], body["type"]) == (1, "release-table")
    assert body["parameters"]["epsilon"]["exact"] == "ln(256036856)"
    assert Specification.read(body["specification"]) == SWAPPING
    assert json.loads(ReleaseTable.of([row(None)]).to_json())["specification"] is None


def test_as_a_frame() -> None:
    frame = ReleaseTable.of([row(PURE), row(PURE, "second")]).to_polars()
    assert frame.get_column("row").to_list() == ["release", "tables", "second"]
    assert frame.get_column("epsilon").to_list() == ["0.4", "0.2", "0.2"]


def test_a_table_needs_a_row() -> None:
    with pytest.raises(InputError):
        ReleaseTable.of([])


@pytest.mark.parametrize(
    ("value", "text"),
    [("0", "0"), ("1e-10", "1e-10"), ("4e-10", "4e-10"), ("1/3", "0.334"), ("123456e-10", "1.24e-5")],
)
def test_deltas_are_rounded_up(value: str, text: str) -> None:
    exact = Fraction(value)
    assert scientific(exact) == text
    assert Fraction(text) >= exact


def test_the_stage_of_protection_is_in_the_guarantee() -> None:
    assert TOPDOWN.domain.stage is Stage.EDITED_FILE
    table = ReleaseTable.of([row(TOPDOWN)])
    assert table.release.guarantee == str(TOPDOWN)
    assert isinstance(PURE.multiverse, Trivial)
