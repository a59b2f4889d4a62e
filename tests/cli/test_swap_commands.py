"""``stirred swap`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
from support.releasing import TRIAL, files_of, report_of
from typer.testing import CliRunner

from stirred.cli.app import app
from stirred.spec import Specification

runner = CliRunner()
KEYS = ["schema_version", "folder", "files", "guarantee", "publishable", "reason", "exposure"]
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
    assert list(body) == KEYS
    assert body["folder"] == str(tmp_path / "out")
    assert body["publishable"] is False
    assert body["reason"] == TRIAL
    assert set(body["files"]) == files_of(tmp_path / "out")
    records = [name for name in body["files"] if name.endswith(".parquet")]
    assert records == [f"internal/microdata/size={size}.parquet" for size in (1, 2)]
    assert sum(pl.read_parquet(tmp_path / "out" / name).height for name in records) == 40
    code, _, err = run(*call, "--output", str(tmp_path / "out"))
    assert code == 2
    assert "exists already" in err


def test_rates_zero_and_one_need_permission(tmp_path: Path) -> None:
    call = ("swap", "run", str(frame(tmp_path)), *ROLES, "--rate", "1", "--output", str(tmp_path / "o"))
    code, _, err = run(*call)
    assert code == 3
    assert "allow-infinite-loss" in err.replace("\n", "")
    assert run(*call, "--allow-infinite-loss")[0] == 0


def crowded(path: Path, **columns: object) -> Path:
    data = pl.DataFrame(
        {
            "id": range(400),
            "size": [1, 2] * 200,
            "rooms": [i * 7 % 23 for i in range(400)],
            "block": [i * 13 % 20 for i in range(400)],
        }
    ).with_columns(tract=pl.col("block") // 4, **columns)
    data.write_parquet(path / "in.parquet")
    return path / "in.parquet"


def test_a_column_that_nobody_named_is_a_wrong_call(tmp_path: Path) -> None:
    call = ("swap", "run", str(frame(tmp_path)), "--swap", "county", "--rate", "0.5")
    for rest in (("--output", str(tmp_path / "out")), ("--dry-run",)):
        code, _, err = run(*call, *rest)
        assert code == 2
        assert "--hold" in err and "never published" in " ".join(err.split())
    assert not (tmp_path / "out").exists()


def test_swap_run_without_a_ledger_is_a_trial_on_every_channel(tmp_path: Path) -> None:
    call = ("swap", "run", str(frame(tmp_path)), *ROLES, "--rate", "0.5", "--id", "id")
    code, out, _ = run(*call, "--output", str(tmp_path / "out"))
    assert code == 0
    assert f"Not for publication: {TRIAL}." in " ".join(out.split())
    for name in ("report.html", "report-internal.html"):
        assert TRIAL in (tmp_path / "out" / "internal" / name).read_text(encoding="utf-8")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["publishable"], manifest["reason"]) == (False, TRIAL)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"internal", "manifest.json"}


def test_torn_geography_is_refused_on_the_command_line(tmp_path: Path) -> None:
    roles = ("--swap", "block", "--match", "size", "--hold", "tract", "--hold", "rooms", "--rate", "0.5")
    call = ("swap", "run", str(crowded(tmp_path)), *roles, "--output", str(tmp_path / "out"))
    code, _, err = run(*call)
    assert code == 2
    assert "--nest block:tract" in " ".join(err.split())
    code, _, err = run(*call, "--nest", "block:tract")
    assert code == 2
    assert "block would move while tract stays" in " ".join(err.split())
    for wrong in (("--nest", "block"), ("--nest", "block:tract", "--no-nesting")):
        code, _, err = run(*call, *wrong)
        assert code == 2 and "block:tract" in err
    assert not (tmp_path / "out").exists()
    assert run(*call, "--no-nesting")[0] == 0


def test_a_file_that_comes_out_as_it_went_in_is_refused(tmp_path: Path) -> None:
    """Every record alone in its stratum: epsilon 0, and nothing moves."""
    given = crowded(tmp_path, size=pl.int_range(400) // 2, rooms=pl.int_range(400) % 2)
    roles = ("--swap", "block", "--match", "size", "--match", "rooms", "--hold", "tract", "--rate", "0.5")
    call = ("swap", "run", str(given), *roles, "--no-nesting", "--id", "id")
    body = as_json(*call, "--dry-run")
    assert body["exposure"][0]["determined"] == 400
    assert "determine more than 1%" in body["refused"]
    code, out, _ = run(*call, "--dry-run")
    assert code == 0 and "This would be refused" in out
    code, _, err = run(*call, "--output", str(tmp_path / "out"))
    assert code == 3
    assert "determine more than 1% of the households" in " ".join(err.split())
    assert not (tmp_path / "out").exists()
    accepted = (*call, "--output", str(tmp_path / "out"), "--accept-determined", "a drill")
    assert as_json(*accepted)["exposure"] == body["exposure"]
    report = report_of(tmp_path / "out")
    assert report["checklist"]["override"]["reason"] == "a drill"
    assert report["exposure"] == body["exposure"]
    page = (tmp_path / "out" / "internal" / "report.html").read_text(encoding="utf-8")
    assert "determine 400 of 400 households (100%)" in page


def test_persons_on_the_command_line_have_named_columns(tmp_path: Path) -> None:
    given = crowded(tmp_path)
    pl.DataFrame({"id": range(400), "sex": [0, 1] * 200, "diary": ["secret"] * 400}).write_parquet(
        tmp_path / "persons.parquet"
    )
    roles = ("--swap", "block", "--match", "size", "--hold", "rooms", "--rate", "0.5", "--id", "id")
    call = ("swap", "run", str(given), *roles, "--no-nesting", "--persons", str(tmp_path / "persons.parquet"))
    code, _, err = run(*call, "--output", str(tmp_path / "out"))
    assert code == 2 and "--hold-person" in err
    as_json(*call, "--hold-person", "sex", "--output", str(tmp_path / "out"))
    persons = pl.read_parquet(tmp_path / "out" / "internal" / "microdata" / "persons.parquet")
    assert persons.columns == ["id", "sex"] and persons.height == 400
