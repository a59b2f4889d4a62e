"""``spec verify``, ``spec witness`` and ``spec gaming``: verdicts, files, exit codes and hostile input."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from stirred.cli.app import app
from stirred.spec import (
    Approximate,
    Budget,
    Count,
    Distribution,
    Domain,
    FiniteMechanism,
    GaussianTradeOff,
    Hamming,
    HammingUnordered,
    MechanismFile,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Renyi,
    Schema,
    Specification,
    Trivial,
    from_invariants,
)
from stirred.spec.blocks.output_premetric import (
    ApproximateCurve,
    ChiSquared,
    Coarsened,
    Hellinger,
    KullbackLeibler,
    TotalVariation,
)
from stirred.spec.finite.mechanism_file import MOST_LAWS

runner = CliRunner()
BIT = Domain.datasets(Schema.of(bit=(0, 1)), sizes=(1,), structure="vector")
RESPONSE = """\
schema_version: 1
type: mechanism
domain:
  name: X
  stage: database
  structure: vector
  record_schema: {attributes: [{name: bit, levels: [0, 1]}]}
  sizes: [1]
outputs: [yes, no]
laws:
  - {data: [[0]], masses: [0.25, 3/4]}
  - {data: [[1]], masses: ["3/4", 0.25]}
"""


def run(*arguments: object) -> tuple[int, str, str]:
    result = runner.invoke(app, ["spec", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def as_json(*arguments: object, code: int = 0) -> dict[str, Any]:
    found, out, _ = run(*arguments, "--json")
    assert found == code, out
    body: dict[str, Any] = json.loads(out)
    return body


def promised(folder: Path, name: str, budget: Budget, **blocks: Any) -> Path:
    fields = {
        "domain": BIT,
        "multiverse": Trivial(),
        "input_premetric": Hamming(unit="record"),
        "output_premetric": Multiplicative(),
        "budget": budget,
    }
    path = folder / f"{name}.json"
    path.write_text(Specification(**fields | blocks).to_json(), encoding="utf-8")
    return path


def written(folder: Path, mechanism: FiniteMechanism) -> Path:
    path = folder / "written.json"
    path.write_text(MechanismFile.of(mechanism).to_json(), encoding="utf-8")
    return path


@pytest.fixture
def response(tmp_path: Path) -> Path:
    path = tmp_path / "response.yaml"
    path.write_text(RESPONSE, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("epsilon", "code"), [("ln(3)", 0), ("2", 0), ("inf", 0), ("ln(299/100)", 3), ("1", 3), ("0", 3)]
)
def test_randomised_response_has_the_loss_ln_3(
    epsilon: str, code: int, response: Path, tmp_path: Path
) -> None:
    claim = promised(tmp_path, "claim", Budget.epsilon(epsilon))
    body = as_json("verify", response, claim, code=code)
    assert body["satisfied"] is (code == 0) and body["restricted"] is False and body["numerical"] is False
    assert body["smallest_budget"] == {"parametrisation": "epsilon", "amount": "ln(3)"}
    assert body["by_universe"] == ["ln(3)"] and body["data_sets"] == 2
    worst = body["worst"]
    assert {json.dumps(worst["x"]), json.dumps(worst["y"])} == {"[[0]]", "[[1]]"}
    assert sorted(worst["probabilities"]) == ["1/4", "3/4"] and worst["distance"] == "1"
    assert (body["violation"] is None) is (code == 0)
    if code:
        assert body["violation"]["allowed"] == str(Budget.epsilon(epsilon).amount)
    assert bool(body["warnings"]) is (epsilon == "inf")
    found, out, err = run("verify", response, claim)
    assert found == code and err == ""
    text = " ".join(out.split())
    assert ("does not keep the guarantee" in text) is (code == 3)
    for words in ("ε = 1.0987 (exactly ln(3))", "Worst pair: [[0]] and [[1]]", "of probability 3/4 and 1/4"):
        assert words in text
    assert ("Warning: the budget is infinite" in text) is (epsilon == "inf")


@pytest.mark.parametrize(
    ("blocks", "budget", "code", "amount"),
    [
        ({"output_premetric": TotalVariation()}, Budget.loss("1/2"), 0, "1/2"),
        ({"output_premetric": TotalVariation()}, Budget.loss("49/100"), 3, "1/2"),
        ({"output_premetric": ChiSquared()}, Budget.loss("4/3"), 0, "4/3"),
        ({"output_premetric": Approximate(delta="1/4")}, Budget.epsilon("ln(2)"), 0, "ln(2)"),
        ({"output_premetric": Approximate(delta="1/4")}, Budget.epsilon("1/2"), 3, "ln(2)"),
        (
            {"output_premetric": Coarsened(base=Multiplicative(), groups=(("yes", "no"),), reason="one")},
            Budget.epsilon(0),
            0,
            "0",
        ),
    ],
)
def test_other_output_premetrics(
    blocks: dict[str, Any], budget: Budget, code: int, amount: str, response: Path, tmp_path: Path
) -> None:
    body = as_json("verify", response, promised(tmp_path, "claim", budget, **blocks), code=code)
    assert body["smallest_budget"]["amount"] == amount


def test_zcdp_is_shown_as_rho_squared_and_called_numerical(response: Path, tmp_path: Path) -> None:
    """D_NoR squared of randomised response is epsilon tanh(epsilon / 2) = ln(3)/2."""
    blocks = {"output_premetric": NormalisedRenyi()}
    for square, code in (("0.5494", 0), ("0.5492", 3)):
        claim = promised(tmp_path, "claim", Budget.zcdp(rho_squared=square), **blocks)
        body = as_json("verify", response, claim, code=code)
        numerator, _, denominator = body["smallest_budget"]["amount"].partition("/")
        assert math.isclose(int(numerator) / int(denominator), math.log(3) / 2, rel_tol=1e-9)
        assert body["numerical"] is True
        assert "ρ² = 0.5494." in run("verify", response, claim)[1]


@pytest.mark.parametrize(("epsilon", "code"), [("ln(2)", 0), ("ln(19/10)", 3)])
def test_a_curve_has_a_verdict_and_no_smallest_budget(
    epsilon: str, code: int, response: Path, tmp_path: Path
) -> None:
    claim = promised(
        tmp_path,
        "claim",
        Budget.of_delta({"0": "ln(3)", "1/4": epsilon}),
        input_premetric=Neighbours(relation="replace-ordered", unit="record"),
        output_premetric=ApproximateCurve(),
    )
    body = as_json("verify", response, claim, code=code)
    assert body["smallest_budget"] is None and body["by_universe"] == []
    assert (body["violation"] is None) is (code == 0)
    found, out, _ = run("verify", response, claim)
    assert found == code and "Smallest budget" not in out


def test_identity_under_complete_invariants_holds_at_zero_and_promises_nothing(tmp_path: Path) -> None:
    domain = Domain.datasets(Schema.of(bit=(0, 1)), sizes=(2,))
    identity = written(tmp_path, FiniteMechanism.exact_release(domain, lambda x: x))
    blocks = {"domain": domain, "input_premetric": HammingUnordered(unit="record")}
    fixed = from_invariants(Count(unit="record", by=("bit",)))
    vacuous = promised(tmp_path, "vacuous", Budget.epsilon(0), multiverse=fixed, **blocks)
    body = as_json("verify", identity, vacuous)
    assert body["satisfied"] and body["smallest_budget"]["amount"] == "0" and body["worst"] is None
    assert "vacuous" in body["warnings"][0]
    assert "Warning: no pair of points is compared" in run("verify", identity, vacuous)[1]
    open_ = promised(tmp_path, "open", Budget.epsilon(1000), **blocks)
    assert as_json("verify", identity, open_, code=3)["smallest_budget"]["amount"] == "inf"


@pytest.mark.parametrize(
    ("output", "budget"),
    [
        (Multiplicative(), Budget.epsilon(1)),
        (Approximate(delta="1e-300"), Budget.epsilon(1)),
        (ChiSquared(), Budget.loss(1)),
        (TotalVariation(), Budget.loss("1/8")),
        (NormalisedRenyi(), Budget.zcdp(rho_squared=1)),
        (Renyi(alpha=2), Budget.epsilon(1)),
        (KullbackLeibler(), Budget.loss(1)),
        (Hellinger(), Budget.loss("1/8")),
        (GaussianTradeOff(), Budget.gdp(mu=1)),
    ],
)
def test_masses_far_below_floats_are_verified_exactly_or_refused(
    output: Any, budget: Budget, tmp_path: Path
) -> None:
    """The loss has thousands of digits, or is far beyond every budget: it is shown rounded, or as immense."""
    tiny = Fraction(1, 10**1998 + 7)
    laws = {
        ((0,),): Distribution({"a": tiny, "b": 1 - tiny}),
        ((1,),): Distribution({"a": Fraction(1, 3), "b": Fraction(2, 3)}),
    }
    mechanism = written(tmp_path, FiniteMechanism(BIT, laws))
    claim = promised(tmp_path, "claim", budget, output_premetric=output)
    if not output.properties.exact:
        assert as_json("verify", mechanism, claim, code=2)["error"]["code"] == "not-computable"
        return
    assert as_json("verify", mechanism, claim, code=3)["satisfied"] is False
    code, out, _ = run("verify", mechanism, claim)
    assert code == 3 and len(out) < 1000


def test_budgets_by_universe(tmp_path: Path) -> None:
    """The bit may be invariant or not: each universe has its own loss and its own budget."""
    domain = Domain.datasets(Schema.of(block=("a", "b"), bit=(0, 1)), sizes=(1,))
    masses = {"a": {0: "1/2", 1: "2/3"}, "b": {0: "1/4", 1: "3/4"}}

    def law(point: Any) -> Distribution:
        yes = Budget.loss(masses[point[0][0]][point[0][1]]).amount.rational
        assert yes is not None
        return Distribution({"yes": yes, "no": 1 - yes})

    mechanism = written(tmp_path, FiniteMechanism.from_function(domain, law))
    blocks = {
        "domain": domain,
        "input_premetric": HammingUnordered(unit="record"),
        "multiverse": from_invariants(Count(unit="record", by=("block",))),
    }
    for amounts, code in ((("ln(3/2)", "ln(3)"), 0), (("1/10", "ln(3)"), 3), (("2", "1"), 3)):
        claim = promised(tmp_path, "claim", Budget.by_universe("epsilon", amounts), **blocks)
        body = as_json("verify", mechanism, claim, code=code)
        assert body["by_universe"] == ["ln(3/2)", "ln(3)"]
        assert body["smallest_budget"]["amount"] == "ln(3)"
        if code:
            assert body["violation"]["universe"] == (0 if amounts[0] == "1/10" else 1)


def test_a_guarantee_on_more_data_sets_needs_the_word_restrict(response: Path) -> None:
    arguments = ("verify", response, "pure-dp", "--budget")
    error = as_json(*arguments, "epsilon=1", code=2)["error"]
    assert error["code"] == "domain-mismatch" and "--restrict" in error["hint"]
    body = as_json(*arguments, "epsilon=2", "--restrict")
    assert body["restricted"] is True and "nothing of other data sets" in body["sentence"]
    body = as_json(*arguments, "epsilon=1", "--restrict", code=3)
    assert body["restricted"] is True and body["satisfied"] is False
    assert as_json("verify", response, "tda-dhc", "--restrict", code=2)["error"]["field"].startswith("domain")


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ("schema_version: 1", "schema_version: 2", "schema version 2"),
        ("type: mechanism", "type: specification", "not a mechanism file"),
        ("0.25, 3/4", "0.25, 0.7500001", "laws.0 is not valid"),
        ("0.25, 3/4", "-0.25, 5/4", "laws.0.masses.0 is not valid"),
        ("data: [[1]]", "data: [[0]]", "laws.1 is for a data set that has a law already"),
        ("data: [[1]]", "data: [[2]]", "laws.1 is for a data set that the domain does not have"),
        ('  - {data: [[1]], masses: ["3/4", 0.25]}\n', "", "1 of 2 data sets of the domain have no law"),
        ("outputs: [yes, no]", "outputs: [yes, yes]", "outputs is not valid"),
        ("outputs: [yes, no]", "outputs: !!python/name:os.system [yes, no]", "exclamation mark"),
        ("outputs:", "outputs: [a]\noutputs:", "a key twice"),
        ("sizes: [1]", "sizes: [1, 2]", "4 of 6 data sets of the domain have no law"),
        ("sizes: [1]", "sizes: [1, 40]", "too many points"),
        ("sizes: [1]", "sizes: [100000]", "too many points"),
        ("sizes: [1]", f"sizes: [{'9' * 200}]", "too many points"),
        ("sizes: [1]", "sizes: [-1]", "domain.sizes is not valid"),
        ("laws:", f"laws: [{'0, ' * (MOST_LAWS + 1)}]\nold:", f"has {MOST_LAWS + 1} laws"),
        (RESPONSE, "[" * 100, "levels deep"),
        (RESPONSE, "", "not a mechanism file"),
        (RESPONSE, "\x00", "not well-formed"),
    ],
)
def test_hostile_files_are_refused_with_two(
    old: str, new: str, word: str, response: Path, tmp_path: Path
) -> None:
    assert old in RESPONSE
    response.write_text(RESPONSE.replace(old, new), encoding="utf-8")
    claim = promised(tmp_path, "claim", Budget.epsilon(2))
    code, out, err = run("verify", response, claim)
    assert (code, out) == (2, "")
    assert word in " ".join(err.split())
    assert set(as_json("verify", response, claim, code=2)) == {"schema_version", "error"}


def test_files_that_are_none_are_refused(response: Path, tmp_path: Path) -> None:
    claim = promised(tmp_path, "claim", Budget.epsilon(2))
    huge = tmp_path / "huge.yaml"
    huge.write_text(RESPONSE + "#" * (16 * 1024 * 1024), encoding="utf-8")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    for name, word in (
        ("huge.yaml", "too large"),
        ("bytes.yaml", "could not be read"),
        ("nothing.yaml", "there is no file"),
        ("", "there is no file"),
        ("claim.json", "not a mechanism file"),
    ):
        code, _, err = run("verify", tmp_path / name, claim)
        assert code == 2 and word in " ".join(err.split()), name
    assert run("verify", response, response)[0] == 2
    assert run("verify", response, claim, "--budget", "epsilon=1")[0] == 2


def test_names_that_look_like_markup_are_printed_as_they_are(response: Path, tmp_path: Path) -> None:
    response.write_text(RESPONSE.replace("[yes, no]", '["[/red]", ":smile:"]'), encoding="utf-8")
    code, out, _ = run("verify", response, promised(tmp_path, "claim", Budget.epsilon(2)))
    assert code == 0
    assert '"[/red]"' in out or '":smile:"' in out


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Budget.epsilon(1), Budget.epsilon("1/2")),
        (Budget.epsilon("ln(3)"), Budget.epsilon("ln(2)")),
        (Budget.epsilon("inf"), Budget.epsilon(30)),
        (Budget.zcdp(rho_squared=1), Budget.zcdp(rho_squared="1/2")),
        (Budget.zcdp(rho=1), Budget.zcdp(rho_squared="1/2")),
    ],
)
def test_a_witness_is_confirmed_by_the_verifier_on_both(
    first: Budget, second: Budget, tmp_path: Path
) -> None:
    blocks = {
        "output_premetric": Multiplicative() if first.parametrisation == "epsilon" else NormalisedRenyi()
    }
    a, b = (promised(tmp_path, name, x, **blocks) for name, x in (("a", first), ("b", second)))
    target = tmp_path / "witness.json"
    body = as_json("witness", a, b, "--output", target)
    assert body["implied"] is False and body["output"] == str(target)
    assert body["mechanism"] == json.loads(target.read_text(encoding="utf-8"))
    assert body["pair"] is not None and body["allowed"] is not None
    assert as_json("verify", target, a)["satisfied"] is True
    assert as_json("verify", target, b, code=3)["satisfied"] is False
    code, out, _ = run("witness", a, b, "--output", target)
    assert code == 0 and "Written to" in out and "does not imply" in out
    back = as_json("witness", b, a, "--output", tmp_path / "none.json")
    assert back["implied"] is True and back["mechanism"] is None and back["output"] is None
    code, out, _ = run("witness", b, a, "--output", tmp_path / "none.json")
    assert code == 0 and "There is no witness" in " ".join(out.split()) and "Nothing was written" in out
    assert not (tmp_path / "none.json").exists()


def test_a_witness_under_invariants_is_confirmed(tmp_path: Path) -> None:
    domain = Domain.datasets(Schema.of(block=("A", "B"), tenure=("own", "rent")), sizes=(2,))
    blocks = {"domain": domain, "input_premetric": HammingUnordered(unit="household")}
    counted = from_invariants(Count(unit="household", by=("block",)))
    a = promised(tmp_path, "a", Budget.epsilon("1/2"), multiverse=counted, **blocks)
    b = promised(tmp_path, "b", Budget.epsilon(1), **blocks)
    for first, second in ((a, b), (b, a)):
        target = tmp_path / "witness.yaml"
        assert as_json("witness", first, second, "--output", target)["implied"] is False
        assert as_json("verify", target, first)["satisfied"] is True
        assert as_json("verify", target, second, code=3)["satisfied"] is False


def test_a_witness_that_is_not_built_is_said_so(tmp_path: Path) -> None:
    a = promised(tmp_path, "a", Budget.epsilon(1))
    zcdp = promised(tmp_path, "z", Budget.zcdp(rho_squared=1), output_premetric=NormalisedRenyi())
    renyi = promised(tmp_path, "r", Budget.epsilon(1), output_premetric=Renyi(alpha=2))
    variation = promised(tmp_path, "t", Budget.loss("1/8"), output_premetric=TotalVariation())
    body = as_json("witness", zcdp, a)
    assert (
        body["implied"] is False and body["mechanism"] is None and "No witness was built" in body["sentence"]
    )
    body = as_json("witness", renyi, variation)
    assert body["implied"] is None and body["sentence"].startswith("Undecided")
    code, out, _ = run("witness", renyi, variation)
    assert code == 0 and out.startswith("Undecided")
    body = as_json("witness", "psa-2020-county", "tda-dhc")
    assert body["implied"] is False and "exact release of an invariant" in body["sentence"]
    far, further = (
        promised(tmp_path, name, Budget.zcdp(rho_squared=square), output_premetric=NormalisedRenyi())
        for name, square in (("far", 500), ("further", 1000))
    )
    body = as_json("witness", further, far)
    assert body["implied"] is False and body["mechanism"] is None and body["pair"] is not None
    assert "No witness was built" in " ".join(run("witness", further, far)[1].split())


def test_a_witness_is_not_written_where_nothing_can_be(tmp_path: Path) -> None:
    a, b = (promised(tmp_path, name, Budget.epsilon(e)) for name, e in (("a", 1), ("b", "1/2")))
    before = sorted(tmp_path.iterdir())
    for target in (tmp_path, a / "w.json"):
        assert run("witness", a, b, "--output", target)[0] == 2
    assert sorted(tmp_path.iterdir()) == before


def test_gaming_names_the_blocks_that_moved(tmp_path: Path) -> None:
    body = as_json("gaming", "psa-2020-county", "psa-2020-county-size")
    assert [move["block"] for move in body["moves"]] == ["multiverse"]
    assert body["moves"][0]["direction"] == "weaker"
    compared = as_json("compare", "psa-2020-county", "psa-2020-county-size", "--same-mechanism")
    assert compared["same_mechanism"] == {k: body[k] for k in ("sentence", "moves")}
    code, out, _ = run("gaming", "psa-2020-county", "psa-2020-county-size")
    text = " ".join(out.split())
    assert code == 0 and "weaker" in text and "because of: multiverse." in text and "your claim" in text
    one, two = (promised(tmp_path, name, Budget.epsilon(e)) for name, e in (("one", 1), ("two", 2)))
    body = as_json("gaming", one, two)
    assert body["moves"] == [] and (body["before"], body["after"]) == ("ε = 1", "ε = 2")
    assert "No building block moved" in run("gaming", one, two)[1]


def test_flavors_without_a_budget_take_one() -> None:
    budget = ("--budget", "epsilon=1")
    assert as_json("gaming", "pure-dp", "bounded-dp", *budget)["moves"][0]["block"] == "domain"
    assert as_json("witness", "pure-dp", "pure-dp", *budget)["implied"] is True
    for command in ("gaming", "witness"):
        assert as_json(command, "pure-dp", "pure-dp", code=2)["error"]["code"] == "missing-block"
        assert run(command, "pure-dp")[0] == 2


def test_schema_of_a_mechanism_is_the_shipped_file() -> None:
    shipped = json.loads(Path("src/stirred/spec/mechanism.schema.json").read_text(encoding="utf-8"))
    for arguments in (("schema", "mechanism"), ("schema", "mechanism", "--json")):
        code, out, _ = run(*arguments)
        assert code == 0 and json.loads(out) == shipped
    assert run("schema", "nothing")[0] == 2


def test_convert_takes_the_attributes_that_the_mechanism_reads(tmp_path: Path) -> None:
    """Both margins invariant: with the two attributes alone the least distance is 2, with a third it is 1."""
    schema = Schema.of(block=None, tenure=None, other=None)
    margins = from_invariants(*(Count(unit="household", by=(name,)) for name in ("block", "tenure")))
    claim = promised(
        tmp_path,
        "claim",
        Budget.epsilon(3),
        domain=Domain(name="X", stage="database", record_schema=schema),
        multiverse=margins,
        input_premetric=HammingUnordered(unit="household"),
    )
    call = ("convert", claim, "--to", "zcdp")
    plain, told = as_json(*call), as_json(*call, "--attributes", "block, tenure")
    amounts = [Budget.read(body["specification"]["budget"]).amount.rounded(6) for body in (plain, told)]
    assert amounts == ["2.715445", "1.492582"]
    assert "nothing but block, tenure" in told["specification"]["assumptions"][0]
    assert as_json(*call, "--attributes", "block,nothing", code=2)["error"]["code"] == "unknown-name"
    assert as_json(*call, "--attributes", "block,", code=2)["error"]["field"] == "--attributes"
    assert as_json(*call, "--attributes", "other", code=3)["error"]["code"] == "not-implied"
    delta = ("convert", claim, "--to", "approximate", "--delta", "1e-6", "--attributes", "block")
    assert as_json(*delta, code=2)["error"]["field"] == "attributes"
