"""Empty protection: a guarantee that constrains nothing is refused, and its numbers are said everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.release_case import DAY, FrozenSource, new_ledger, plan_of, write_case, write_plan
from support.releasing import run_release
from support.small_release import opened_ledger, tiny_county, village
from typer.testing import CliRunner

from stirred.cli.app import app
from stirred.errors import InputError, Refusal
from stirred.ledger import Ledger
from stirred.noise import TestSource
from stirred.release import Plan, dry_run, job_of
from stirred.release import audit as audit_plan
from stirred.report import Override

SAID = "The exact statistics alone determine"


def alone(folder: Path) -> Path:
    """The village with every household alone in its stratum: swapping moves nothing, epsilon is 0."""
    path = village(folder)
    frame = pl.read_parquet(folder / "households.parquet")
    frame.with_columns(size=pl.int_range(40) // 2, side=pl.int_range(40) % 2).write_parquet(
        folder / "households.parquet"
    )
    text = path.read_text(encoding="utf-8").replace("match: [size]", "match: [size, side]")
    path.write_text(text, encoding="utf-8")
    return path


def everything_exact(folder: Path) -> Path:
    """The tiny county with every count of persons and housing units in every block exact."""
    path = tiny_county(folder)
    exact = (
        "constraints:\n"
        "    - {kind: invariant, count: {unit: person, by: [block, quarters, sex, age]}}\n"
        "    - {kind: invariant, count: {unit: housing_unit, by: [block, occupancy]}}\n"
    )
    path.write_text(path.read_text(encoding="utf-8").replace("constraints:\n", exact), encoding="utf-8")
    return path


def permission(**changes: Any) -> Override:
    given = {"determined": True, "by": "Ada", "reason": "a census of lighthouses", "at": DAY}
    return Override(**given | changes)


@pytest.mark.parametrize("make", [alone, everything_exact])
def test_a_guarantee_that_constrains_nothing_is_refused_with_exit_code_3(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = make(tmp_path / "plan")
    book = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    for source in (None, TestSource(1)):
        with pytest.raises(Refusal, match="determine more than 1% of the") as caught:
            run_release(path, tmp_path / "out", book, random=source)
        assert caught.value.exit_code == 3
        assert caught.value.field == "protection.most_determined"
    assert book.statement(Plan.load(path).dataset.name).spends == ()
    assert sorted(p.name for p in tmp_path.iterdir() if "out" in p.name) == []


@pytest.mark.parametrize("make", [alone, everything_exact])
def test_a_dry_run_says_so_and_does_not_fail(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    found = dry_run(path)
    assert found.refused is not None and "determine more than 1%" in found.refused
    assert all(unit["determined"] == unit["records"] > 0 for unit in found.record()["exposure"])
    ran = CliRunner().invoke(app, ["release", "run", str(path), "--dry-run"], env={"COLUMNS": "200"})
    assert ran.exit_code == 0
    assert SAID in ran.stdout and "would be refused" in ran.stdout


@pytest.mark.parametrize("make", [alone, everything_exact])
def test_an_override_in_writing_is_in_the_ledger_and_the_report(
    make: Callable[[Path], Path], tmp_path: Path
) -> None:
    path = make(tmp_path / "plan")
    ledger = opened_ledger(tmp_path / "ledger.db", path)
    call = [
        "release",
        "run",
        str(path),
        "--ledger",
        str(ledger),
        "--output",
        str(tmp_path / "out"),
        "--no-audit",
    ]
    assert CliRunner().invoke(app, call).exit_code == 3
    allow = ["--override", "determined", "--override-by", "Ada", "--override-reason", "lighthouses only"]
    ran = CliRunner().invoke(app, [*call, *allow])
    assert ran.exit_code == 0, ran.stderr
    text = (tmp_path / "out" / "public" / "report.md").read_text(encoding="utf-8")
    assert "OVERRIDE: released by permission of Ada" in text
    assert "more records determined by the exact statistics than the plan allows" in text
    assert "lighthouses only" in text
    events = json.dumps(Ledger.open(ledger, read_only=True).export())
    assert "more records determined" in events and "lighthouses only" in events


def test_an_override_of_steps_does_not_permit_empty_protection(tmp_path: Path) -> None:
    path = alone(tmp_path / "plan")
    book = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    with pytest.raises(Refusal, match="determine more than"):
        run_release(path, tmp_path / "out", book, override=permission(determined=False, steps=(3,)))
    with pytest.raises(InputError, match="what is overridden"):
        permission(determined=False)


def test_an_override_that_was_not_needed_is_not_recorded(tmp_path: Path) -> None:
    path = village(tmp_path / "plan")
    book = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    run_release(path, tmp_path / "out", book, override=permission())
    assert "OVERRIDE" not in (tmp_path / "out" / "public" / "report.md").read_text(encoding="utf-8")
    assert "lighthouses" not in json.dumps(book.export())


@pytest.mark.parametrize("mechanism", ["swap", "topdown"])
def test_the_same_numbers_stand_in_every_place(mechanism: str, tmp_path: Path) -> None:
    """The dry run, the command line, three editions of the report and the audit."""
    case = write_case(tmp_path / "case")
    path = case / f"{mechanism}.yaml"
    most = {"protection": {"most_determined": "0.999"}}
    write_plan(path, plan_of(mechanism) | most)
    found = dry_run(path)
    book = new_ledger(tmp_path / "ledger.db", case)
    record = audit_plan(path, random=TestSource(1), draws=2000)
    run_release(path, tmp_path / "out", book, random=FrozenSource(1), audit=record)
    public = tmp_path / "out" / "public"
    facts = json.loads((public / "report.json").read_text(encoding="utf-8"))
    assert facts["exposure"] == found.record()["exposure"]
    texts = [
        " ".join(facts["summary"]),
        (public / "report.md").read_text(encoding="utf-8"),
        (public / "report.html").read_text(encoding="utf-8"),
        CliRunner().invoke(app, ["release", "run", str(path), "--dry-run"], env={"COLUMNS": "999"}).stdout,
    ]
    (sentence,) = found.exposures.sentences()
    for text in texts:
        assert sentence.partition(":")[0] in text.replace("\n", " ")
    (exposure,) = found.exposures.units
    (universe,) = [f for f in record.findings if f.audit == "universe"]
    assert universe.details == exposure.record()
    assert f"{exposure.determined:,} of {exposure.records:,}" in universe.sentence


@pytest.mark.parametrize("mechanism", ["swap", "topdown"])
def test_two_data_sets_of_one_universe_have_the_same_numbers(mechanism: str, tmp_path: Path) -> None:
    found = []
    for twin in (False, True):
        folder = write_case(tmp_path / str(twin), twin=twin)
        found.append(job_of(Plan.load(folder / f"{mechanism}.yaml"), folder).exposures())
    assert found[0] == found[1]


@pytest.mark.parametrize("make", [alone, everything_exact])
def test_an_audit_of_an_empty_guarantee_praises_nothing(make: Callable[[Path], Path], tmp_path: Path) -> None:
    record = audit_plan(make(tmp_path), random=TestSource(1), draws=2000)
    assert record.clean
    assert "The guarantee is VACUOUS for these data" in record.sentence
    assert "none did" not in record.sentence
    universe = [finding for finding in record.findings if finding.audit == "universe"]
    assert universe and all(finding.verdict == "vacuous" for finding in universe)


@pytest.mark.parametrize(
    ("most", "refused"), [("0.01", True), ("0.4", True), ("1/2", False), ("0.5", False), ("0", True)]
)
def test_the_threshold_is_the_plans_and_is_exact(most: str, refused: bool, tmp_path: Path) -> None:
    """Half of the households are alone in their stratum."""
    path = village(tmp_path)
    pl.DataFrame(
        {
            "id": range(40),
            "size": [*range(20), *([99] * 20)],
            "tenure": ["a", "b", "c", "d"] * 10,
            "place": ["p", "q", "r", "s", "t"] * 8,
        }
    ).write_parquet(tmp_path / "households.parquet")
    text = path.read_text(encoding="utf-8")
    path.write_text(text + f"protection: {{most_determined: {most}}}\n", encoding="utf-8")
    found = dry_run(path)
    assert found.exposures.units[0].determined_share == Fraction(1, 2)
    assert (found.refused is not None) is refused


@pytest.mark.parametrize("most", ["1", "-0.1", "often", "1.5"])
def test_a_threshold_that_permits_everything_is_not_a_threshold(most: str, tmp_path: Path) -> None:
    path = village(tmp_path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text + f"protection: {{most_determined: {most}}}\n", encoding="utf-8")
    with pytest.raises(InputError, match="most_determined"):
        Plan.load(path)


@pytest.mark.parametrize("where", ["mechanism", "domain"])
def test_a_plan_that_tears_its_places_is_refused_by_check_without_data(where: str, tmp_path: Path) -> None:
    pairs = [["block", "tract"], ["tract", "county"]]
    plan = plan_of("swap", hold=["tenure", "county"], match=["size"])
    if where == "mechanism":
        plan["mechanism"]["nesting"] = pairs
    else:
        del plan["mechanism"]["nesting"]
        names = ("block", "tract", "county", "size", "tenure", "sex")
        schema = {"attributes": [{"name": name} for name in names], "nesting": pairs}
        plan["domain"] = {"name": "X", "stage": "edited file", "structure": "multiset", "meaning": "all"}
        plan["domain"]["record_schema"] = schema
    path = write_plan(tmp_path / "plan.yaml", plan)
    ran = CliRunner().invoke(app, ["release", "check", str(path), "--json"])
    assert ran.exit_code == 2
    assert "block is nested in county" in json.loads(ran.stdout)["error"]["problem"]


def test_a_plan_that_does_not_say_what_is_nested_is_asked_before_it_pays(tmp_path: Path) -> None:
    path = village(tmp_path / "plan")
    frame = pl.read_parquet(tmp_path / "plan" / "households.parquet")
    frame.with_columns(tenure=pl.col("place").replace({"north": "a", "east": "a"})).write_parquet(
        tmp_path / "plan" / "households.parquet"
    )
    book = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    path.write_text(path.read_text(encoding="utf-8").replace("  nesting: []\n", ""), encoding="utf-8")
    with pytest.raises(InputError, match="does not say which places lie in others") as caught:
        run_release(path, tmp_path / "out", book)
    assert caught.value.field == "mechanism.nesting"
    assert book.statement("village").spends == ()


def test_an_identifier_among_the_held_columns_is_refused_before_it_is_paid_for(tmp_path: Path) -> None:
    path = village(tmp_path / "plan")
    frame = pl.read_parquet(tmp_path / "plan" / "households.parquet")
    frame.with_columns(phone=pl.Series([f"555-{n}" for n in range(40)])).write_parquet(
        tmp_path / "plan" / "households.parquet"
    )
    book = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    text = path.read_text(encoding="utf-8").replace("hold: [tenure]", "hold: [tenure, phone]")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="the column phone is different in"):
        run_release(path, tmp_path / "out", book)
    assert book.statement("village").spends == ()
