"""``stirred swap`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from typer.testing import CliRunner

from stirred.cli.app import app
from stirred.spec import Specification

runner = CliRunner()
ROLES = ("--swap", "county", "--match", "size", "--hold", "owner")


def run(*arguments: str) -> tuple[int, str, str]:
    result = runner.invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def as_json(*arguments: str) -> dict[str, object]:
    code, out, _ = run(*arguments, "--json")
    assert code == 0, out
    return json.loads(out)


def frame(path: Path) -> Path:
    data = pl.DataFrame(
        {"id": range(40), "size": [1, 2] * 20, "owner": [0, 0, 1, 1] * 10, "county": [1, 2, 3, 4, 5] * 8}
    )
    data.write_parquet(path / "in.parquet")
    return path / "in.parquet"


def test_budget_and_rate_are_inverse() -> None:
    body = as_json("swap", "budget", "--largest-stratum", "264331", "--rate", "0.05")
    assert round(body["epsilon"], 2) == 15.43
    assert body["exact"] == "ln(5022308)"
    assert body["lower_bound"] <= body["tighter"] <= body["epsilon"]
    rates = as_json("swap", "rate", "--largest-stratum", "10", "--epsilon", "3")
    assert (round(rates["low_value"], 3), round(rates["high_value"], 3)) == (0.354, 0.953)
    _, out, _ = run("swap", "budget", "--largest-stratum", "10", "--rate", "0.5")
    assert "76.8%" in out
    assert "Nominal" in out


def test_a_budget_below_the_least_is_refused() -> None:
    code, _, err = run("swap", "rate", "--largest-stratum", "10", "--epsilon", "1")
    assert code == 3
    assert "1.1990" in err


def test_dry_run_states_the_guarantee_and_writes_nothing(tmp_path: Path) -> None:
    call = ("swap", "run", str(frame(tmp_path)), *ROLES, "--rate", "0.5")
    body = as_json(*call, "--id", "id", "--output", str(tmp_path / "out"), "--dry-run")
    assert Specification.read(body["specification"]).budget.amount.exponential == 21
    assert any("published exactly" in sentence for sentence in body["report"])
    assert {p.name for p in tmp_path.iterdir()} == {"in.parquet"}


def test_run_writes_protected_records(tmp_path: Path) -> None:
    call = ("swap", "run", str(frame(tmp_path)), *ROLES, "--rate", "0.5")
    body = as_json(*call, "--id", "id", "--by", "size", "--output", str(tmp_path / "out"))
    assert body["records"] == 40
    assert body["publishable"] is False
    assert body["reason"] == "it was not paid for in a ledger: a trial"
    assert body["files"] == ["size=1", "size=2"]
    code, _, err = run(*call, "--output", str(tmp_path / "out"))
    assert code == 2
    assert "exists already" in err


def test_rates_zero_and_one_need_permission(tmp_path: Path) -> None:
    call = ("swap", "run", str(frame(tmp_path)), *ROLES, "--rate", "1", "--output", str(tmp_path / "o"))
    code, _, err = run(*call)
    assert code == 3
    assert "allow-infinite-loss" in err.replace("\n", "")
    assert run(*call, "--allow-infinite-loss")[0] == 0


def test_the_1940_demonstration_prints_the_papers_tables(tmp_path: Path) -> None:
    body = as_json("swap", "demo-1940", "--runs", "1", "--output", str(tmp_path / "d"))
    assert body["largest_stratum"] == 264_331
    assert [round(row["epsilon"], 2) for row in body["table_2"]] == [17.08, 15.43, 14.68, 12.48]
    assert {p.name for p in (tmp_path / "d").iterdir()} == {"figure-1.svg", "figure-2.svg"}
    assert body["table_1"][-1]["total"] == 1_144_424
