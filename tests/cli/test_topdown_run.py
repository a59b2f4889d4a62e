"""``stirred topdown run`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from support.releasing import TRIAL, files_of, report_of
from support.tiny_plan import PLAN, write_plan
from typer.testing import CliRunner

from stirred.cli.app import app

runner = CliRunner()


def run(*arguments: str) -> tuple[int, str, str]:
    result = runner.invoke(app, ["topdown", "run", *arguments], env={"COLUMNS": "100"})
    return result.exit_code, result.stdout, result.stderr


def test_run_and_its_json(tmp_path: Path) -> None:
    plan = write_plan(tmp_path)
    code, out, err = run(str(plan), "--output", str(tmp_path / "out"), "--json")
    assert code == 0, err
    assert err == ""
    body = json.loads(out)
    keys = ["schema_version", "folder", "files", "guarantee", "publishable", "reason", "exposure"]
    assert list(body) == keys
    assert body["publishable"] is False
    assert body["reason"] == TRIAL
    assert body["folder"] == str(tmp_path / "out")
    assert set(body["files"]) == files_of(tmp_path / "out")
    assert "ρ² = 2.8334" in body["guarantee"]
    assert "internal/microdata/person.parquet" in body["files"]


def test_run_prints_the_card(tmp_path: Path) -> None:
    code, out, _ = run(str(write_plan(tmp_path)), "--output", str(tmp_path / "out"))
    assert code == 0
    assert "What is published exactly?" in out
    assert "Not for publication: it was not paid for in a ledger: a trial." in out
    assert "group quarters are only counted" in " ".join(out.split()).lower()


def test_dry_run_needs_no_data(tmp_path: Path) -> None:
    plan = write_plan(tmp_path)
    for name in ("persons", "units", "quarters"):
        (tmp_path / f"{name}.parquet").unlink()
    code, out, _ = run(str(plan), "--dry-run")
    assert code == 0
    assert "the number of persons in each county is exact" in out
    assert "sex * age" in out
    assert "not at hand" in out
    code, out, _ = run(str(plan), "--dry-run", "--json")
    body = json.loads(out)
    assert body["budgets"]["person"]["rho_squared"] == "5/2"
    assert len(body["constraints"]) == 5
    assert body["exposure"] is None


def test_a_plan_with_everything_invariant_is_refused(tmp_path: Path) -> None:
    """Every count is exact: the records come out as they went in, whatever the budget."""
    exact = "  - {kind: invariant, count: {unit: person, by: [block, quarters, sex, age]}}\ntables:"
    plan = write_plan(tmp_path, PLAN.replace("tables:", exact))
    code, _, err = run(str(plan), "--output", str(tmp_path / "out"))
    assert code == 3
    assert "determine more than 1% of the persons" in " ".join(err.split())
    assert not (tmp_path / "out").exists()
    code, out, _ = run(str(plan), "--dry-run")
    assert code == 0 and "This would be refused" in out
    code, out, err = run(
        str(plan), "--output", str(tmp_path / "out"), "--accept-determined", "a drill", "--json"
    )
    assert code == 0, err
    person = json.loads(out)["exposure"][0]
    assert person["determined"] == person["records"] == 109
    report = report_of(tmp_path / "out")
    assert report["checklist"]["override"]["reason"] == "a drill"
    assert report["exposure"][0] == person


def test_topdown_run_without_a_ledger_writes_nothing_public(tmp_path: Path) -> None:
    code, out, _ = run(str(write_plan(tmp_path)), "--output", str(tmp_path / "out"), "--json")
    assert code == 0
    assert not any(name.startswith("public") for name in json.loads(out)["files"])
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"internal", "manifest.json"}


def test_without_output_is_a_wrong_call(tmp_path: Path) -> None:
    code, _, err = run(str(write_plan(tmp_path)))
    assert code == 2
    assert "--output" in err


def test_errors_name_the_field_and_no_value(tmp_path: Path) -> None:
    plan = write_plan(tmp_path, PLAN.replace("levels: [f, m]", "levels: [f, x]"))
    code, _, err = run(str(plan), "--output", str(tmp_path / "out"))
    assert code == 2
    assert "sex" in err
    assert not (tmp_path / "out").exists()
    code, out, _ = run(str(tmp_path / "no.yaml"), "--output", str(tmp_path / "out"), "--json")
    assert code == 2
    assert json.loads(out)["error"]["field"] == "plan"
