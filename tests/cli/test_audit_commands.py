"""``stirred audit`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.small_release import opened_ledger, village
from typer.testing import CliRunner

from stirred.cli.app import app

RUNNER = CliRunner()


def _invoked(*arguments: object, code: int = 0) -> Any:
    result = RUNNER.invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


def test_a_plan_is_audited(tmp_path: Path) -> None:
    path = village(tmp_path)
    body = json.loads(_invoked("audit", "run", path, "--draws", 2000, "--json").stdout)
    assert body["schema_version"] == 1 and body["clean"] is True
    assert {finding["audit"] for finding in body["findings"]} >= {"exact", "replay", "statistical"}
    text = _invoked("audit", "run", path, "--draws", 2000, "--output", tmp_path / "audit.json").stdout
    assert "never verifies" in text
    assert json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))["clean"] is True


def test_a_claim_of_half_the_budget_exits_with_3(tmp_path: Path) -> None:
    path = village(tmp_path)
    path.write_text(path.read_text(encoding="utf-8") + "claim: 3/2\n", encoding="utf-8")
    body = json.loads(_invoked("audit", "run", path, "--draws", 2000, "--json", code=3).stdout)
    assert body["clean"] is False
    _invoked("release", "run", path, "--dry-run", code=3)


def test_the_release_carries_the_audit_unless_told_otherwise(tmp_path: Path) -> None:
    path = village(tmp_path)
    ledger = opened_ledger(tmp_path / "ledger.db", path)
    _invoked("release", "run", path, "--ledger", ledger, "--output", tmp_path / "out")
    assert (tmp_path / "out" / "public" / "audit.json").is_file()
    _invoked("audit", "run", path, "--release", tmp_path / "out", "--draws", 2000)
    assert (tmp_path / "out" / "audit" / "audit.md").is_file()
    _invoked("release", "verify", tmp_path / "out", "--ledger", ledger)
    other = village(tmp_path / "other")
    books = opened_ledger(tmp_path / "other.db", other)
    _invoked("release", "run", other, "--ledger", books, "--output", tmp_path / "bare", "--no-audit")
    assert not (tmp_path / "bare" / "public" / "audit.json").exists()


@pytest.mark.parametrize("missing", ["no-plan.yaml", "folder"])
def test_bad_input_exits_with_2(missing: str, tmp_path: Path) -> None:
    if missing == "folder":
        _invoked("audit", "run", village(tmp_path), "--release", tmp_path / "none", code=2)
    else:
        _invoked("audit", "run", tmp_path / missing, code=2)
    _invoked("audit", "self-test", "no-such-exhibit", code=2)


def test_the_museum_is_listed_and_tested() -> None:
    listed = json.loads(_invoked("audit", "museum", "--json").stdout)["exhibits"]
    assert len(listed) >= 40 and all(e["key"] and e["title"] and e["source"] for e in listed)
    assert "pairwise-swaps" in _invoked("audit", "museum").stdout
    body = json.loads(_invoked("audit", "self-test", "double-spending", "--json").stdout)
    assert body["passed"] is True and body["kills"] == 1
    assert "1 of 1" in _invoked("audit", "self-test", "double-spending").stdout
