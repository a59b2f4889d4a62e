"""Mechanism files: exact round trips, the schema, and files that are refused by place and without a value."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from stirred.errors import DomainMismatch, InputError, NewerSchema, NotComputable, StirredError
from stirred.spec import (
    Distribution,
    Domain,
    FiniteMechanism,
    MechanismFile,
    Schema,
    mechanism_schema,
    read_mechanism,
)
from stirred.spec.finite.mechanism_file import MOST_DIGITS, MOST_LAWS, MOST_MASSES, mechanism_of

BITS = Domain.datasets(Schema.of(bit=(0, 1)), sizes=(0, 1, 2))
BODY: dict[str, Any] = {
    "schema_version": 1,
    "type": "mechanism",
    "domain": {"name": "X", "stage": "database", "structure": "object", "points": ["a", "b"]},
    "outputs": ["yes", "no"],
    "laws": [{"data": "a", "masses": ["3/4", "1/4"]}, {"data": "b", "masses": ["0.25", "0.75"]}],
}


def drawn(seed: int) -> FiniteMechanism:
    draw = random.Random(f"mechanism file {seed}")
    domains = (
        BITS,
        Domain.datasets(Schema.of(bit=(0, 1)), sizes=(2,), structure="vector"),
        Domain.finite(["a", 1, ("b", (2, "ü"))], meaning="labels"),
        Domain.finite([()], name="one"),
    )
    outputs = ("yes", "no", 7, -1, ("pair", (0, "é")), "true", "")

    def law(_: object) -> Distribution:
        weights = [draw.randrange(4) for _ in outputs]
        weights[draw.randrange(len(outputs))] += 1
        masses = {o: Fraction(w, sum(weights)) for o, w in zip(outputs, weights, strict=True)}
        return Distribution(masses, draw.choice("TTTU"))

    return FiniteMechanism.from_function(domains[seed % len(domains)], law)


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_what_is_written_is_read_back_exactly(seed: int, suffix: str, tmp_path: Path) -> None:
    mechanism = drawn(seed)
    path = tmp_path / f"m.{suffix}"
    path.write_text(MechanismFile.of(mechanism).to_json(), encoding="utf-8")
    again = read_mechanism(path)
    assert (again.domain, again.laws) == (mechanism.domain, mechanism.laws)
    jsonschema.Draft202012Validator(mechanism_schema()).validate(json.loads(path.read_text(encoding="utf-8")))


def test_the_shipped_schema_is_current() -> None:
    shipped = Path("src/stirred/spec/mechanism.schema.json").read_text(encoding="utf-8")
    assert json.loads(shipped) == mechanism_schema()


@pytest.mark.parametrize("mass", ["1/3", "0.1", "1e-3", "1/10000000000000000000000000000000000000001"])
@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_masses_are_what_their_digits_say(mass: str, suffix: str, tmp_path: Path) -> None:
    """Also without quotes: in YAML, and as a decimal in JSON, where a double would not be a tenth."""
    rest = 1 - Fraction(mass)
    quoted = f'"{mass}"' if "/" in mass and suffix == "json" else mass
    laws = ", ".join(f'{{"data": "{x}", "masses": [{quoted}, "{rest}"]}}' for x in "ab")
    body = {k: v for k, v in BODY.items() if k != "laws"}
    path = tmp_path / f"m.{suffix}"
    path.write_text(json.dumps(body)[:-1] + f', "laws": [{laws}]}}', encoding="utf-8")
    assert read_mechanism(path).laws["a"]["yes"] == Fraction(mass)


def test_the_records_of_a_multiset_may_stand_in_any_order() -> None:
    domain = Domain.datasets(Schema.of(bit=(0, 1)), sizes=(2,))
    laws = [{"data": [[b], [a]], "masses": ["1"]} for a, b in ((0, 0), (0, 1), (1, 1))]
    body = BODY | {"domain": domain.record(), "outputs": ["x"], "laws": laws}
    assert set(mechanism_of(body).laws) == set(domain.enumerate())
    laws.append({"data": [[0], [1]], "masses": ["1"]})
    with pytest.raises(DomainMismatch, match=r"laws.3 is for a data set that has a law already"):
        mechanism_of(body)


def edited(path: str, value: object) -> dict[str, Any]:
    body: Any = deepcopy(BODY)
    *steps, last = (int(step) if step.isdigit() else step for step in path.split("."))
    part = body
    for step in steps:
        part = part[step]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return body


@pytest.mark.parametrize(
    ("path", "value", "error", "field"),
    [
        ("schema_version", 2, NewerSchema, "schema_version"),
        ("schema_version", "1", InputError, "schema_version"),
        ("schema_version", None, InputError, "schema_version"),
        ("type", "specification", InputError, "schema_version"),
        ("laws.1.masses.0", "-1/4", InputError, "laws.1.masses.0"),
        ("laws.1.masses.0", "nan", InputError, "laws.1.masses.0"),
        ("laws.1.masses.0", "1/0", InputError, "laws.1.masses.0"),
        ("laws.1.masses.0", True, InputError, "laws.1.masses.0"),
        ("laws.1.masses.0", ["1"], InputError, "laws.1.masses.0"),
        ("laws.1.masses.0", "ln(2)", InputError, "laws.1.masses.0"),
        ("laws.1.masses.0", "1e999999", InputError, "laws.1.masses.0"),
        ("laws.1.masses.0", "0.2500000000000000000001", InputError, "laws.1"),
        ("laws.1.masses", ["1/3", "1/3"], InputError, "laws.1"),
        ("laws.1.masses", [], InputError, "laws.1"),
        ("laws.1.masses", ["1"], InputError, "laws.1.masses"),
        ("laws.1.masses", ["1/3", "1/3", "1/3"], InputError, "laws.1.masses"),
        ("laws.1.masses", None, InputError, "laws.1.masses"),
        ("laws.1.mass", "1", InputError, "laws.1.mass"),
        ("laws.1.data", "a", DomainMismatch, "laws.1.data"),
        ("laws.1.data", "c", DomainMismatch, "laws.1.data"),
        ("laws.1.data", True, InputError, "laws.1.data"),
        ("laws.1.data", {"b": 1}, InputError, "laws.1.data"),
        ("laws.1", None, DomainMismatch, "laws"),
        ("laws", [], DomainMismatch, "laws"),
        ("laws", {}, InputError, "laws"),
        ("outputs", ["yes", "yes"], InputError, "outputs"),
        ("outputs", [1, True], InputError, "outputs.1"),
        ("outputs", [], InputError, "outputs"),
        ("outputs", None, InputError, "outputs"),
        ("domain.points", ["a", "b", "b"], InputError, "domain"),
        ("domain.points", None, NotComputable, "domain"),
        ("domain", None, InputError, "domain"),
        ("seed", 1, InputError, "seed"),
    ],
)
def test_a_file_that_is_no_mechanism_is_refused_by_place(
    path: str, value: object, error: type[StirredError], field: str
) -> None:
    with pytest.raises(error) as caught:
        mechanism_of(edited(path, value))
    assert caught.value.field == field
    assert caught.value.expected and caught.value.hint


SENTINEL = "Ada Lovelace 1815"


@pytest.mark.parametrize(
    "path", ["laws.1.data", "laws.1.masses.0", "laws.1.masses", "laws.1", "outputs", "domain", "domain.stage"]
)
def test_errors_never_carry_a_value(path: str) -> None:
    with pytest.raises(StirredError) as caught:
        mechanism_of(edited(path, SENTINEL))
    assert SENTINEL not in str(caught.value) + json.dumps(caught.value.as_dict())
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("body", [None, [], "text", 3])
def test_what_is_no_mapping_is_refused(body: object) -> None:
    with pytest.raises(InputError, match="not a mechanism file"):
        mechanism_of(body)


def test_large_tables_are_refused_before_they_are_read() -> None:
    many = edited("laws", [{"data": SENTINEL}] * (MOST_LAWS + 1))
    wide = edited("outputs", list(range(MOST_MASSES // 2 + 1)))
    for body in (many, wide):
        with pytest.raises(InputError, match="the mechanism has") as caught:
            mechanism_of(body)
        assert f"{MOST_MASSES:,}" in caught.value.expected
    points = Domain.finite([(i,) for i in range(MOST_LAWS + 1)])
    with pytest.raises(InputError, match="the mechanism has"):
        MechanismFile.of(FiniteMechanism.exact_release(points, lambda x: 0))


def test_masses_whose_common_denominator_explodes_are_refused() -> None:
    tenth = 10 ** (MOST_DIGITS // 2 + 1)
    masses = [f"1/{tenth}", f"1/{tenth + 1}"]
    with pytest.raises(InputError) as caught:
        mechanism_of(edited("laws.0.masses", masses))
    assert "common denominator" in caught.value.expected


def test_a_domain_that_is_too_large_to_list_is_refused() -> None:
    schema = {"attributes": [{"name": "a", "levels": list(range(50))}]}
    domain = {"name": "X", "stage": "database", "record_schema": schema, "sizes": [9]}
    with pytest.raises(NotComputable, match="points"):
        mechanism_of(edited("domain", domain))


@pytest.mark.parametrize("outcome", [1.5, None, True, Fraction(1, 2), frozenset()])
def test_outputs_that_no_file_holds_are_not_written(outcome: Any) -> None:
    mechanism = FiniteMechanism.exact_release(Domain.finite(["a"]), lambda _: outcome)
    with pytest.raises(InputError):
        MechanismFile.of(mechanism)
