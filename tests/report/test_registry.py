"""Registry records: written from specifications, valid against the schema, free of contradictions."""

from __future__ import annotations

import copy
import json
from datetime import date
from fractions import Fraction
from typing import Any

import jsonschema
import pytest
import yaml
from pydantic import BaseModel

from stirred.errors import InputError, Refusal
from stirred.report import About, lint, record_of, registry
from stirred.report.registry import RULES, Curator, Record, field_tiers, json_schema, tier_of, variant_of
from stirred.spec import Approximate, Budget, Exact, Renyi, Specification, Stage, catalogue
from stirred.spec.blocks.output_premetric import TotalVariation

TOPDOWN = catalogue.specification("tda-dhc")
SWAPPING = catalogue.specification("psa-2020-county")
PURE = catalogue.specification("pure-dp", Budget.epsilon("ln(3)"))
APPROXIMATE = Specification(
    **dict(PURE)
    | {"output_premetric": Approximate(delta=Exact.of("1/30000000")), "budget": Budget.epsilon(1)}
)
RENYI = Specification(
    **dict(PURE) | {"output_premetric": Renyi(alpha=Exact.of(4)), "budget": Budget.epsilon("0.5")}
)
CUSTOM = Specification(**dict(PURE) | {"output_premetric": TotalVariation(), "budget": Budget.loss("0.1")})

ABOUT = About(
    name="Protected tables of a county",
    curators=("Statistical Agency",),
    intended_use="Local planning",
    description="Counts of persons by area, age and sex",
    region="One county",
    publication_date=date(2026, 5, 1),
    sector="Government",
    actors="The agency holds the data; the public sees the tables and may be adversarial.",
    release_details="No further release from these data is planned.",
    post_processing="Consistent integer tables from noisy measurements and exact statistics.",
    composition="Squares of rho add up over geographic levels and queries.",
    preprocessing="Editing and imputation; nothing was tuned on the confidential data.",
    mechanisms="Discrete Gaussian noise from exact integer samplers.",
    justification="Chosen by the disclosure review board for its use case.",
    authors=("A. Statistician",),
)

VALIDATOR = jsonschema.Draft7Validator(json_schema(), format_checker=jsonschema.FormatChecker())
SPECIFICATIONS = {
    "Zero-concentrated DP": TOPDOWN,
    "Pure DP": PURE,
    "Approximate DP": APPROXIMATE,
    "Renyi DP": RENYI,
    "Custom": CUSTOM,
}


def plain(specification: Specification = TOPDOWN) -> dict[str, Any]:
    return copy.deepcopy(record_of(specification, ABOUT, delta="1e-10").record())


def mutated(changes: dict[str, Any], specification: Specification = TOPDOWN) -> Record:
    """A good record with some fields set, by path under ``deployment``; ``None`` removes a field."""
    body = plain(specification)
    for path, value in changes.items():
        *parents, name = path.split(".")
        node = body if path == "tier" else body["deployment"]
        for parent in parents:
            node = node.setdefault(parent, {})
        if value is None:
            node.pop(name, None)
        else:
            node[name] = value
    return Record.read(body)


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_records_are_valid_and_without_findings(name: str) -> None:
    specification = SPECIFICATIONS[name]
    record = record_of(specification, ABOUT, delta="1e-10")
    assert variant_of(specification) == name
    assert record.deployment.dp_variant.variant_name == name
    VALIDATOR.validate(record.record())
    assert lint(record, specification) == ()
    assert lint(record) == ()


@pytest.mark.parametrize("name", ["tda-pl", "safetab-p", "phsafe", "das-2020", "psa-2020-block"])
def test_records_of_the_census_are_valid_and_without_findings(name: str) -> None:
    specification = catalogue.specification(name)
    record = record_of(specification, ABOUT)
    VALIDATOR.validate(record.record())
    assert lint(record, specification) == ()


def test_the_schema_is_a_schema_of_draft_7() -> None:
    jsonschema.Draft7Validator.check_schema(json_schema())
    assert json_schema()["$schema"] == "http://json-schema.org/draft-07/schema#"


def objects(schema: dict[str, Any], path: str = "") -> dict[str, dict[str, Any]]:
    found = {path: schema}
    for name, below in schema["properties"].items():
        if below.get("type") == "object":
            found |= objects(below, f"{path}.{name}".lstrip("."))
    return found


def model_at(path: str) -> type[BaseModel]:
    model: Any = Record
    for name in filter(None, path.split(".")):
        model = model.model_fields[name].annotation
    found: type[BaseModel] = model
    return found


@pytest.mark.parametrize("path", objects(json_schema()))
def test_schema_and_reader_know_the_same_fields_and_choices(path: str) -> None:
    schema, model = objects(json_schema())[path], model_at(path)
    assert set(schema["properties"]) == set(model.model_fields)
    assert schema["additionalProperties"] is False
    required = {name for name, field in model.model_fields.items() if field.is_required()}
    assert set(schema.get("required", ())) == required
    read = model.model_json_schema()
    for name, leaf in schema["properties"].items():
        if "enum" in leaf:
            found = read["properties"][name]
            options = found.get("enum") or next(o["enum"] for o in found["anyOf"] if "enum" in o)
            assert options == leaf["enum"]


@pytest.mark.parametrize(
    ("change", "fragment"),
    [
        (lambda r: r.pop("url_slug"), "'url_slug' is a required property"),
        (lambda r: r.update(surprise=1), "Additional properties"),
        (lambda r: r.update(tier=0), "0 is not one of"),
        (lambda r: r.update(status="Fine"), "is not one of"),
        (lambda r: r["deployment"]["basic"].pop("name"), "'name' is a required property"),
        (lambda r: r["deployment"]["basic"].update(publication_date="1/1/2026"), "does not match"),
        (lambda r: r["deployment"]["basic"].update(data_curators=[]), "non-empty"),
        (lambda r: r["deployment"]["dp_variant"].update(variant_name="Pure"), "is not one of"),
        (lambda r: r["deployment"]["privacy_loss"]["privacy_parameters"].update(epsilon="1"), "number"),
        (lambda r: r["deployment"]["privacy_loss"]["privacy_parameters"].update(mu=1), "Additional"),
        (lambda r: r["deployment"].pop("administrative"), "'administrative' is a required property"),
    ],
)
def test_the_schema_rejects_what_the_registry_would(change: Any, fragment: str) -> None:
    body = plain()
    VALIDATOR.validate(body)
    change(body)
    assert fragment in " ".join(error.message for error in VALIDATOR.iter_errors(body))


def test_the_published_number_of_zcdp_is_rho_squared_and_nothing_is_converted_into_it() -> None:
    body = plain()["deployment"]["privacy_loss"]
    assert body["privacy_parameters"] == {"rho": 15.29}
    assert "converted by ρ² + 2ρ√(−ln δ)" in body["privacy_parameters_details"]
    assert "nominal" in body["privacy_parameters_details"]
    without = record_of(TOPDOWN, ABOUT).deployment.privacy_loss.privacy_parameters_details
    assert "converted" not in without.replace("has to be converted", "")


def test_parameters_are_rounded_up() -> None:
    epsilon = plain(PURE)["deployment"]["privacy_loss"]["privacy_parameters"]["epsilon"]
    assert epsilon == 1.098613
    assert Exact.of(epsilon) >= Exact.log(3)
    delta = plain(APPROXIMATE)["deployment"]["privacy_loss"]["privacy_parameters"]["delta"]
    assert delta == 3.34e-8
    assert Fraction(str(delta)) >= Fraction(1, 30_000_000)


def test_a_number_of_many_digits_is_written_no_smaller_than_it_was_read() -> None:
    text = "2.63000000000000000000001"
    record = mutated({"privacy_loss.privacy_parameters": {"rho": text}})
    written = record.record()["deployment"]["privacy_loss"]["privacy_parameters"]["rho"]
    assert isinstance(written, float)
    assert Fraction(str(written)) >= Fraction(text)


def test_unit_domain_and_invariants_come_from_the_specification() -> None:
    deployment = record_of(SWAPPING, ABOUT).deployment
    assert deployment.privacy_loss.privacy_unit == "Household-level"
    assert "one household record is replaced" in deployment.privacy_loss.privacy_unit_details
    assert "edited file" in deployment.dp_variant.data_domain
    listed = deployment.dp_variant.unprotected_quantities.splitlines()
    assert len(listed) == 2
    assert listed[1] == "- the number of households in each combination of state and county"
    assert record_of(PURE, ABOUT).deployment.dp_variant.unprotected_quantities == "None"


@pytest.mark.parametrize("name", SPECIFICATIONS)
def test_yaml_and_plain_data_read_back(name: str) -> None:
    record = record_of(SPECIFICATIONS[name], ABOUT, delta="1e-10")
    assert Record.read(yaml.safe_load(record.to_yaml())) == record
    assert Record.read(record.record()) == record
    assert yaml.safe_load(record.to_yaml()) == json.loads(json.dumps(record.record())) == record.record()
    VALIDATOR.validate(yaml.safe_load(record.to_yaml()))


def test_yaml_has_several_lines_as_a_block_and_dates_as_text() -> None:
    text = record_of(TOPDOWN, ABOUT).to_yaml()
    assert "unprotected_quantities: |" in text
    assert "publication_date: '2026-05-01'" in text


def test_a_delta_without_a_point_or_as_a_formula_is_read() -> None:
    body = plain(APPROXIMATE)
    parameters = body["deployment"]["privacy_loss"]["privacy_parameters"]
    parameters["delta"] = "1e-10"  # what YAML 1.1 makes of 1e-10
    assert Record.read(body).deployment.privacy_loss.privacy_parameters.delta == Exact.of("1e-10")
    parameters["delta"] = "n^{-ln n}"
    record = Record.read(body)
    assert record.record()["deployment"]["privacy_loss"]["privacy_parameters"]["delta"] == "n^{-ln n}"
    assert lint(record) == ()


@pytest.mark.parametrize("body", [{}, [1, 2], {"url_slug": "x"}])
def test_what_is_not_a_record_is_refused(body: Any) -> None:
    with pytest.raises(InputError):
        Record.read(body)


@pytest.mark.parametrize("value", [".nan", ".inf", "one"])
def test_a_parameter_is_a_finite_number(value: str) -> None:
    body = yaml.safe_load(f"epsilon: {value}")
    with pytest.raises(InputError) as caught:
        mutated({"privacy_loss.privacy_parameters": body})
    assert "privacy_parameters.epsilon" in caught.value.field


def test_curators_may_have_a_kind() -> None:
    about = About(
        **dict(ABOUT) | {"curators": (Curator(data_curator_name="A", data_curator_type="Government"),)}
    )
    record = record_of(TOPDOWN, about)
    VALIDATOR.validate(record.record())
    assert record.record()["deployment"]["basic"]["data_curators"] == [
        {"data_curator_name": "A", "data_curator_type": "Government"}
    ]
    assert Record.read(yaml.safe_load(record.to_yaml())) == record


def test_the_address_follows_from_the_name() -> None:
    assert record_of(TOPDOWN, ABOUT).url_slug == "protected-tables-of-a-county"
    with pytest.raises(InputError):
        record_of(TOPDOWN, About(**dict(ABOUT) | {"name": "人口"}))
    named = record_of(TOPDOWN, About(**dict(ABOUT) | {"name": "人口", "url_slug": "population"}))
    assert named.url_slug == "population"


def test_the_tier_follows_from_what_is_filled() -> None:
    assert record_of(TOPDOWN, ABOUT).tier == 3
    assert record_of(TOPDOWN, About(**dict(ABOUT) | {"justification": ""})).tier == 2
    bare = mutated({"tier": 1, "privacy_loss": None, "dp_variant": None})
    assert tier_of(bare) == 1
    assert len([path for path, tier in field_tiers().items() if tier == 2]) == 7


def test_a_record_starts_as_a_draft() -> None:
    assert record_of(TOPDOWN, ABOUT).status == "Draft"


def test_no_guarantee_is_nothing_to_register() -> None:
    infinite = Specification(**dict(PURE) | {"budget": Budget.epsilon("inf")})
    with pytest.raises(Refusal):
        record_of(infinite, ABOUT)


P = "privacy_loss.privacy_parameters"
D = "privacy_loss.privacy_parameters_details"
LOCAL = Specification(
    **dict(PURE) | {"domain": PURE.domain.model_copy(update={"stage": Stage.RAW_RESPONSES})}
)

# For every rule: what breaks it, of which good record, and a neighbouring change that does not.
BROKEN: list[tuple[str, Specification, dict[str, Any], dict[str, Any]]] = [
    ("pure-with-delta", PURE, {P: {"epsilon": 2, "delta": 1.5e-7}}, {P: {"epsilon": 2, "delta": 0}}),
    ("pure-without-epsilon", PURE, {P: {"delta": 0}}, {P: {"epsilon": 2}}),
    (
        "approximate-without-epsilon",
        APPROXIMATE,
        {P: {"delta": 1e-6}},
        {P: {"delta": 1e-6, "epsilon": 1}},
    ),
    (
        "approximate-without-delta",
        APPROXIMATE,
        {P: {"epsilon": 1, "delta": 0}},
        {P: {"epsilon": 1, "delta": 1e-6}},
    ),
    (
        "zcdp-without-rho",
        TOPDOWN,
        {P: {"epsilon": 60, "delta": 1e-10}},
        {P: {"epsilon": 60, "delta": 1e-10, "rho": 15.29}},
    ),
    ("rho-without-zcdp", PURE, {P: {"epsilon": 2, "rho": 1}}, {P: {"epsilon": 2}}),
    (
        "half-converted",
        TOPDOWN,
        {P: {"rho": 15.29, "epsilon": 60}},
        {P: {"rho": 15.29, "epsilon": 60, "delta": 1e-10}},
    ),
    (
        "conversion-unnamed",
        TOPDOWN,
        {P: {"rho": 15.29, "epsilon": 60, "delta": 1e-10}, D: "None"},
        {P: {"rho": 15.29, "epsilon": 60, "delta": 1e-10}, D: "By proposition 1.3"},
    ),
    ("renyi-without-order", RENYI, {D: "See the paper"}, {D: "Of order 4"}),
    ("custom-without-details", CUSTOM, {D: "n/a"}, {D: "Total variation of at most 0.1"}),
    (
        "parameters-without-variant",
        PURE,
        {"tier": 1, "dp_variant.variant_name": None},
        {"dp_variant.variant_name": "Pure DP"},
    ),
    ("epsilon-not-positive", PURE, {P: {"epsilon": -1}}, {P: {"epsilon": 1.1}}),
    ("rho-not-positive", TOPDOWN, {P: {"rho": 0}}, {P: {"rho": 16}}),
    (
        "delta-out-of-range",
        APPROXIMATE,
        {P: {"epsilon": 1, "delta": 1}},
        {P: {"epsilon": 1, "delta": 0.5}},
    ),
    (
        "unit-missing",
        PURE,
        {"tier": 1, "privacy_loss.privacy_unit": None},
        {"privacy_loss.privacy_unit": "Person"},
    ),
    (
        "local-with-curator",
        LOCAL,
        {"deployment_model.model_name": "Local", "deployment_model.actors": "A trusted curator collects."},
        {"deployment_model.model_name": "Local", "deployment_model.actors": "There is no trusted curator."},
    ),
    (
        "one-release-repeated",
        TOPDOWN,
        {"accounting.composition": "Rho adds up over all releases."},
        {
            "accounting.composition": "Rho adds up over all releases.",
            "deployment_model.release_type": "Many releases",
        },
    ),
    (
        "many-releases-uncomposed",
        TOPDOWN,
        {
            "tier": 2,
            "deployment_model.release_type": "Many releases",
            "accounting.composition": "None.",
        },
        {"deployment_model.release_type": "Many releases", "accounting.composition": "Monthly, added up"},
    ),
    (
        "interactive-unapportioned",
        PURE,
        {"deployment_model.access_type": "Interactive"},
        {
            "deployment_model.access_type": "Interactive",
            "deployment_model.access_type_details": "Equal shares; collusion is assumed.",
        },
    ),
    (
        "invariants-hidden",
        TOPDOWN,
        {"dp_variant.unprotected_quantities": "None"},
        {"dp_variant.unprotected_quantities": plain()["deployment"]["dp_variant"]["unprotected_quantities"]},
    ),
    (
        "invariants-incomplete",
        TOPDOWN,
        {"dp_variant.unprotected_quantities": "- the number of persons in each state"},
        {
            "dp_variant.unprotected_quantities": "Also public totals\n"
            + plain()["deployment"]["dp_variant"]["unprotected_quantities"]
        },
    ),
    (
        "variant-mismatch",
        PURE,
        {"dp_variant.variant_name": "Custom"},
        {"dp_variant.variant_name": "Pure DP"},
    ),
    ("understated", TOPDOWN, {P: {"rho": 15.28}}, {P: {"rho": 15.3}}),
    ("tier-overstated", PURE, {"implementation.justification": None}, {"tier": 2}),
    (
        "placeholder",
        PURE,
        {"implementation.justification": "TBD"},
        {"implementation.justification": "Decided by the board"},
    ),
]


@pytest.mark.parametrize(("rule", "specification", "bad", "good"), BROKEN, ids=[b[0] for b in BROKEN])
def test_every_rule_catches_its_contradiction_and_nothing_else(
    rule: str, specification: Specification, bad: dict[str, Any], good: dict[str, Any]
) -> None:
    found = {finding.rule for finding in lint(mutated(bad, specification), specification)}
    assert rule in found
    too_small = {"epsilon-not-positive", "rho-not-positive", "approximate-without-delta"}
    assert found == {rule} | ({"understated"} if rule in too_small else set())
    assert lint(mutated(good, specification), specification) == ()


def test_every_rule_has_its_case() -> None:
    assert [case[0] for case in BROKEN] == [rule.name for rule in RULES]
    assert len({rule.name for rule in RULES}) == len(RULES) >= 10


def test_rules_need_no_specification_where_the_record_contradicts_itself() -> None:
    needs = {"invariants-incomplete", "variant-mismatch", "understated"}
    for rule, specification, bad, _ in BROKEN:
        found = {finding.rule for finding in lint(mutated(bad, specification))}
        if rule not in needs | {"invariants-hidden"}:
            assert rule in found


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("State totals are invariants.", True),
        ("State totals are held exact.", True),
        ("Integers, no invariant is kept.", False),
        ("Rounded to integers.", False),
    ],
)
def test_invariants_in_the_text_must_be_listed(text: str, hidden: bool) -> None:
    record = mutated({"accounting.post_processing": text}, PURE)
    assert [f.rule for f in lint(record)] == (["invariants-hidden"] if hidden else [])


def test_a_local_model_of_an_edited_file_contradicts_its_stage() -> None:
    record = mutated({"deployment_model.model_name": "Local"})
    assert [f.rule for f in lint(record, TOPDOWN)] == ["local-with-curator"]
    assert lint(record) == ()


def test_the_monthly_report_that_the_registry_lists_as_one_release() -> None:
    record = mutated({"deployment_model.release_type_details": "Monthly"}, APPROXIMATE)
    found = lint(record)
    assert [f.rule for f in found] == ["one-release-repeated"]
    assert found[0].field == "deployment.deployment_model.release_type"
    assert "Many releases" in str(found[0])


def test_a_finding_shows_no_text_of_the_record() -> None:
    secret = "xyzzy"
    record = mutated({"deployment_model.release_type_details": f"Monthly {secret}", P: {"rho": 0}})
    assert len(lint(record)) == 2
    assert all(secret not in str(finding) for finding in lint(record))


def test_the_schema_travels_with_the_package() -> None:
    assert registry.json_schema() is registry.json_schema()
    assert "$comment" in json_schema()
