"""``stirred demo``: a county released twice, compared, and where to look."""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from rich.console import Console
from typer.testing import CliRunner

from stirred.casebook import demonstration
from stirred.cli.app import app
from stirred.cli.demo import _progress
from stirred.release import verify as verify_release
from stirred.spec import Specification

runner = CliRunner(env={"COLUMNS": "92"})


class Shown(NamedTuple):
    folder: Path
    body: dict[str, Any]
    stderr: str


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    folder = tmp_path_factory.mktemp("demo") / "made"
    result = runner.invoke(app, ["demo", "--output", str(folder), "--json"])
    assert result.exit_code == 0, result.output
    return Shown(folder, json.loads(result.stdout), result.stderr)


def test_one_object_says_where_everything_is(shown: Shown) -> None:
    assert set(shown.body) == {"schema_version", "folder", "reports", "comparison", "sentence", "together"}
    assert shown.stderr == ""
    assert set(shown.body["reports"]) == {"swap", "topdown"}
    for path in (*shown.body["reports"].values(), shown.body["comparison"]):
        assert Path(path).read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    assert "incomparable" in shown.body["sentence"]
    assert "not ranked" in shown.body["sentence"]


def test_the_folder_holds_data_plans_ledger_and_both_releases(shown: Shown) -> None:
    assert {path.name for path in shown.folder.iterdir()} == {
        "county", "swap", "topdown", "comparison.html",
        "ledger.db", "ledger.db.head", "ledger.db.key", ".ledger.db.line",
    }  # fmt: skip
    assert {path.name for path in shown.folder.parent.iterdir()} == {"made"}
    for name in demonstration.PLANS:
        plan = (shown.folder / "county" / f"{name}.yaml").read_text(encoding="utf-8")
        assert plan == demonstration.example_plan(name)


def test_the_commands_that_the_demonstration_suggests_work_on_it(shown: Shown) -> None:
    for name in demonstration.PLANS:
        call = ["release", "verify", str(shown.folder / name), "--ledger", str(shown.folder / "ledger.db")]
        assert runner.invoke(app, call).exit_code == 0
    found = runner.invoke(app, ["ledger", "verify", str(shown.folder / "ledger.db"), "--json"])
    assert found.exit_code == 0
    assert verify_release(shown.folder / "swap").sound


def test_the_two_releases_are_of_one_domain(shown: Shown) -> None:
    call = ["release", "compare", str(shown.folder / "swap"), str(shown.folder / "topdown"), "--json"]
    body = json.loads(runner.invoke(app, call).stdout)
    orders = {row["block"]: row["order"] for row in body["blocks"]}
    assert orders["domain"] == "equivalent"
    assert set(orders.values()) >= {"equivalent", "incomparable"}
    assert body["first"]["expected"] and body["second"]["expected"]


def test_one_county_has_one_account_with_the_joint_loss_of_both_releases(shown: Shown) -> None:
    """The demonstration itself opened two accounts for one county: two ceilings for the same people."""
    found = runner.invoke(app, ["ledger", "show", str(shown.folder / "ledger.db"), "--json"])
    (account,) = json.loads(found.stdout)["datasets"]
    assert [spend["status"] for spend in account["spends"]] == ["finished", "finished"]
    # Pure DP for households whose membership is fixed, as TopDown assumes: epsilon tanh(epsilon/2) + 2.6312.
    epsilon = Specification.from_json((shown.folder / "swap/public/specification.json").read_text()).budget
    expected = float(epsilon.amount) * math.tanh(float(epsilon.amount) / 2) + 2.6312
    spent = float(Fraction(account["spent"]["rho_squared"]))
    assert spent == pytest.approx(expected, abs=1e-4) == pytest.approx(13.4334, abs=1e-3)
    assert "ρ² = 13.43" in shown.body["together"]
    for path in ("comparison.html", "topdown/public/report.html"):
        assert "13.43" in (shown.folder / path).read_text(encoding="utf-8")


def test_a_folder_that_exists_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    result = runner.invoke(app, ["demo", "--output", str(tmp_path)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "exists already" in result.stderr and "--output" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_demonstration_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demonstration, "audit", str)  # in a process of its own: something that it can import
    monkeypatch.setattr(demonstration, "run", broken)
    with pytest.raises(KeyboardInterrupt):
        demonstration.demonstrate(tmp_path / "made")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_for_terminals(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console", lambda **_: Console(file=stream, force_terminal=terminal, width=92)
    )
    _progress("generating [a] county")
    assert stream.getvalue() == ("... generating [a] county\n" if terminal else "")


def test_the_text_names_reports_guarantees_and_the_comparison(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed summary, without a second run."""
    from stirred.release import Made, compare
    from stirred.release.manifest import Manifest

    compared = compare(shown.folder / "swap", shown.folder / "topdown")
    made = {
        name: Made(shown.folder / name, side.specification, True, False, Manifest.read(shown.folder / name))
        for name, side in zip(demonstration.PLANS, (compared.first, compared.second), strict=True)
    }
    ready = demonstration.Demonstration(shown.folder, made, compared)
    monkeypatch.setattr("stirred.casebook.demonstrate", lambda *_: ready)
    result = runner.invoke(app, ["demo", "--output", "unused"])
    text = result.stdout.replace("\n", "")
    assert result.exit_code == 0
    for path in shown.body["reports"].values():
        assert path in text
    assert "comparison.html" in text
    assert "D_Mult" in text and "D_NoR" in text
    assert not Path("unused").exists()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="terminates by a signal")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_demonstration_that_is_ended_leaves_no_process_behind(how: signal.Signals, tmp_path: Path) -> None:
    """Auditors end with it. What was being written is removed, unless nobody was left to do it."""
    command = [sys.executable, "-m", "stirred", "demo", "--output", str(tmp_path / "made")]
    with subprocess.Popen(command, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while len(members(process.pid)) < 2 and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(2)
        process.send_signal(how)
        process.wait(60)
    deadline = time.monotonic() + 30
    while members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert members(process.pid) == []
    if how == signal.SIGTERM:
        assert list(tmp_path.iterdir()) == []


def members(session: int) -> list[int]:
    """The processes of a session."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            after = place.read_text(encoding="utf-8").rpartition(")")[2].split()
            if int(after[3]) == session and after[0] != "Z":
                found.append(int(place.parent.name))
    return found
