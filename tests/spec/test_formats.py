"""Written formats: golden files, versions, exact round trips, JSON Schema, notebook display."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import jsonschema
import pytest

from stirred.errors import (
    AccidentalMultiverse,
    InputError,
    InvalidBudget,
    MissingBlock,
    NewerSchema,
    ParametrisationMismatch,
    ParametrisationMissing,
    StirredError,
    UnknownName,
)
from stirred.spec import (
    Budget,
    Domain,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    Specification,
    Stage,
    Trivial,
    catalogue,
    json_schema,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import DescribedMultiverse, Explicit, Intersection
from stirred.spec.blocks.output_premetric import ApproximateCurve, Coarsened, TradeOffCurve

GOLDEN = Path(__file__).parent.parent / "golden"
NAMES = ("psa-2020-county", "tda-dhc", "phsafe", "das-2020", "psa-2010-like")


@pytest.mark.parametrize("name", NAMES)
def test_golden_specification_files_read_and_write_unchanged(name: str) -> None:
    text = (GOLDEN / f"{name}.json").read_text(encoding="utf-8")
    found = Specification.from_json(text)
    assert found == catalogue.specification(name)
    assert found.to_json() == text


@pytest.mark.parametrize("name", ["psa-2020-county", "tda-dhc"])
def test_golden_cards(name: str) -> None:
    text = (GOLDEN / f"{name}.card.txt").read_text(encoding="utf-8")
    assert str(catalogue.specification(name).card()) + "\n" == text


def finite_specifications() -> list[Specification]:
    domain = Domain.finite(["a", "b", (1, ("c", 2))])
    given = Given(
        unit="point",
        points=domain.points,
        distances=((0, 1, "inf"), ("1/2", 0, 2), ("inf", "sqrt(2)", 0)),
    )
    multiverse = Explicit(parts=(("a", "b"), ("b", (1, ("c", 2)))))
    base = {"domain": domain, "multiverse": multiverse, "input_premetric": given}
    coarse = Coarsened(base=Multiplicative(), groups=(("x", "y"), ("z",)), reason="only z matters")
    return [
        Specification(
            **base,
            output_premetric=Multiplicative(),
            budget=Budget.by_universe("epsilon", ["ln(3/2)", "1/2 + ln(11)/2"]),
        ),
        Specification(**base, output_premetric=coarse, budget=Budget.epsilon("inf")),
        Specification(
            domain=Domain(name="V", stage=Stage.DATABASE, structure="vector"),
            multiverse=Intersection(parts=(Trivial(), DescribedMultiverse(name="D", meaning="as said"))),
            input_premetric=Neighbours(relation="replace-ordered", unit="record"),
            output_premetric=TradeOffCurve(),
            budget=Budget.read({"parametrisation": "tradeoff", "curve": [["0", "1"], ["1", "0"]]}),
        ),
        Specification(
            domain=Domain(name="V", stage=Stage.DATABASE, structure="vector"),
            multiverse=Trivial(),
            input_premetric=Neighbours(relation="add-remove", unit="record"),
            output_premetric=ApproximateCurve(),
            budget=Budget.of_delta({"1e-6": "2", "1e-9": "ln(30)"}),
        ),
    ]


@pytest.mark.parametrize("index", range(4))
def test_every_kind_of_block_round_trips_exactly(index: int) -> None:
    specification = finite_specifications()[index]
    again = Specification.from_json(specification.to_json())
    assert again == specification
    assert again.to_json() == specification.to_json()
    assert pickle.loads(pickle.dumps(specification)) == specification


def test_the_shipped_json_schema_is_current_and_accepts_every_file() -> None:
    shipped = Path("src/stirred/spec/specification.schema.json").read_text(encoding="utf-8")
    schema = json.loads(shipped)
    assert schema == json_schema()
    checker = jsonschema.Draft202012Validator(schema)
    for specification in finite_specifications():
        checker.validate(json.loads(specification.to_json()))
    for entry in catalogue:
        if entry.budget is not None:
            checker.validate(json.loads(entry.specification().to_json()))


def test_the_json_schema_refuses_a_file_without_a_block() -> None:
    body = json.loads(catalogue.specification("tda-dhc").to_json())
    del body["multiverse"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(json_schema()).validate(body)


def invariants(declaration: dict[str, object]) -> dict[str, object]:
    return {"kind": "invariants", "invariants": [declaration]}


def edited(**changes: object) -> str:
    body = json.loads(catalogue.specification("tda-dhc").to_json())
    for key, value in changes.items():
        if value is None:
            del body[key]
        else:
            body[key] = value
    return json.dumps(body)


@pytest.mark.parametrize("block", ["domain", "multiverse", "input_premetric", "output_premetric", "budget"])
def test_a_missing_block_is_named(block: str) -> None:
    with pytest.raises(MissingBlock) as caught:
        Specification.from_json(edited(**{block: None}))
    assert caught.value.field == block


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"schema_version": 2}, NewerSchema),
        ({"schema_version": None}, InputError),
        ({"schema_version": True}, InputError),
        ({"type": "ledger"}, InputError),
        ({"budget": {"amounts": ["1"]}}, ParametrisationMissing),
        ({"budget": 1}, ParametrisationMissing),
        ({"budget": {"parametrisation": "rho_squared", "amounts": ["-1"]}}, InvalidBudget),
        ({"budget": {"parametrisation": "rho_squared", "amounts": ["NaN"]}}, InvalidBudget),
        ({"budget": {"parametrisation": "rho_squared", "amounts": []}}, InputError),
        ({"budget": {"parametrisation": "epsilon", "amounts": ["1"]}}, ParametrisationMismatch),
        ({"budget": {"parametrisation": "rho_squared", "amounts": ["1", "2"]}}, StirredError),
        ({"input_premetric": {"kind": "manhattan", "unit": "person"}}, UnknownName),
        ({"input_premetric": {"unit": "person"}}, UnknownName),
        ({"output_premetric": {"kind": "approximate", "delta": "2"}}, InputError),
        (
            {
                "multiverse": {
                    "kind": "invariants",
                    "invariants": [{"kind": "count", "unit": "p", "value": 9}],
                }
            },
            AccidentalMultiverse,
        ),
        (
            {"multiverse": {"kind": "described", "name": "pin", "meaning": "observed", "accidental": True}},
            AccidentalMultiverse,
        ),
        (
            {
                "multiverse": {
                    "kind": "invariants",
                    "invariants": [{"kind": "count", "unit": "p", "by": ["zz"]}],
                }
            },
            UnknownName,
        ),
        ({"domian": {}}, InputError),
    ],
)
def test_bad_files_get_a_specific_error(changes: dict[str, object], error: type[StirredError]) -> None:
    with pytest.raises(error) as caught:
        Specification.from_json(edited(**changes))
    assert caught.value.field
    assert caught.value.expected
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "[]", "{", "12"])
def test_what_is_not_a_specification_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Specification.from_json(text)


def test_an_unknown_key_suggests_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        Domain(nmae="X", stage="database")
    assert "name" in caught.value.hint


def test_a_curve_needs_a_neighbour_premetric() -> None:
    with pytest.raises(InputError, match="neighbours only"):
        Specification(
            domain=Domain(name="X", stage="database"),
            multiverse=Trivial(),
            input_premetric=HammingUnordered(unit="person"),
            output_premetric=ApproximateCurve(),
            budget=Budget.of_delta({"1e-6": "1"}),
        )


SENTINEL = "Ada Lovelace 1815"


@pytest.mark.parametrize(
    "record",
    [
        {"domain": SENTINEL},
        {"domain": {"name": 3.5, "stage": SENTINEL}},
        {"domain": {"name": "X", "stage": "database", "points": [{"p": SENTINEL}]}},
        {"budget": {"parametrisation": "epsilon", "amounts": [SENTINEL]}},
        {"budget": {"parametrisation": SENTINEL, "amounts": ["1"]}},
    ],
)
def test_errors_never_carry_a_value(record: dict[str, object]) -> None:
    with pytest.raises(StirredError) as caught:
        Specification.read(record)
    assert SENTINEL not in str(caught.value)
    assert SENTINEL not in json.dumps(caught.value.as_dict())
    assert caught.value.__cause__ is None


def test_specifications_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        catalogue.specification("tda-dhc").budget = Budget.zcdp(rho_squared=1)  # type: ignore[misc]


def test_objects_show_themselves_in_a_notebook() -> None:
    specification = catalogue.specification("psa-2020-county")
    html = specification._repr_html_()
    assert "<table>" in html
    assert "What is published exactly?" in html
    assert "<table" in catalogue._repr_html_()


def test_the_card_of_swapping_tells_a_layman_what_he_needs() -> None:
    text = str(catalogue.specification("psa-2020-county").card())
    assert "the number of households in each combination of state, household size and household" in text
    assert "may be published without noise" in text
    assert "The household." in text
    assert "relative to the exact statistics" in text
    assert "which one of all the data sets with these exact statistics is the true one" in text
    assert "before the stage 'edited file'" in text


def test_latex_and_unicode_statements() -> None:
    specification = catalogue.specification("psa-2020-county")
    assert specification.statement() == "ε-DP(X_CEF, 𝒟_c_Swap, d_HamS^hh, D_Mult)"
    assert specification.latex.startswith(
        r"\varepsilon\text{-DP}(\mathcal{X}_{\mathrm{CEF}}, \mathscr{D}_{\mathbf{c}_{\mathrm{Swap}}}"
    )
    assert catalogue.specification("tda-dhc").latex.endswith(r"\rho^2 = 15.29")


def test_results_go_to_polars_arrow_and_pandas() -> None:
    table = catalogue
    assert table.to_polars().height == len(table)
    assert table.to_arrow().num_rows == len(table)
    assert len(table.to_pandas()) == len(table)
