"""``stirred release`` and ``stirred ledger`` on the command line: from a plan to a release and back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.small_release import CURATOR, DONE, OWNER, SENTINEL, opened_ledger, tiny_county, village
from typer.testing import CliRunner

from stirred.cli.app import app
from stirred.ledger import Ledger
from stirred.release import Plan, plan_schema

runner = CliRunner(env={"COLUMNS": "92"})
COMMANDS = ("new", "schema", "check", "open", "run", "verify", "compare")
OPEN = DONE.replace("step: 8, status: done, owner: Ada, evidence: [minutes]", "step: 8, status: open")
DATA = ("north", "middle", "rented", SENTINEL)


def run(*arguments: object) -> tuple[int, str, str]:
    result = runner.invoke(app, ["release", *map(str, arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def as_json(*arguments: object, code: int = 0) -> dict[str, Any]:
    found, out, err = run(*arguments, "--json")
    assert found == code, out + err
    assert err == ""
    body: dict[str, Any] = json.loads(out)
    assert body.pop("schema_version") == 1
    return body


def flat(text: str) -> str:
    return " ".join(text.split())


class Released(NamedTuple):
    plan: Path
    ledger: Path
    folder: Path


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    """A village that was released once; tests copy before they change anything."""
    folder = tmp_path_factory.mktemp("released")
    plan = village(folder)
    ledger = opened_ledger(folder / "ledger.db", plan)
    assert run("run", plan, "--ledger", ledger, "--output", folder / "made")[0] == 0
    return Released(plan, ledger, folder / "made")


@pytest.fixture
def copied(released: Released, tmp_path: Path) -> Path:
    shutil.copytree(released.folder, tmp_path / "copy")
    return tmp_path / "copy"


def test_the_help_shows_every_command() -> None:
    code, out, _ = run("--help")
    assert code == 0
    for command in COMMANDS:
        assert f" {command} " in out
        assert "--json" in run(command, "--help")[1]


def test_help_imports_no_heavy_module_and_is_quick() -> None:
    code = (
        "import sys; from stirred.cli.app import app; "
        "heavy = {'polars', 'numpy', 'pydantic', 'sqlite3', 'yaml', 'stirred.ledger', 'stirred.release'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("mechanism", ["swap", "topdown"])
def test_new_writes_a_plan_that_check_accepts(mechanism: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    assert as_json("new", mechanism, "--output", path) == {"plan": str(path), "mechanism": mechanism}
    body = as_json("check", path)
    assert set(body) == {"plan", "plan_digest", "open_steps", "unanswered"}
    assert body["plan_digest"] == Plan.load(path).digest
    assert len(body["open_steps"]) == 8
    code, out, _ = run("check", path)
    assert code == 0
    assert "well-formed" in out and "* open: 1 (Understand your data)" in out


def test_new_overwrites_nothing_and_knows_its_mechanisms(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("mine", encoding="utf-8")
    code, out, err = run("new", "swap", "--output", path)
    assert (code, out, path.read_text(encoding="utf-8")) == (2, "", "mine")
    assert "exists already" in err and "--output" in err
    error = as_json("new", "shuffle", "--output", tmp_path / "y.yaml", code=2)["error"]
    assert error["field"] == "mechanism.kind"
    assert error["expected"] == "one of swap, topdown"
    assert not (tmp_path / "y.yaml").exists()


def test_schema_is_printed_for_editors() -> None:
    code, out, _ = run("schema")
    assert code == 0
    assert json.loads(out) == plan_schema() == as_json("schema")["schema"]


def test_check_reads_no_data_and_finds_a_table_without_roles(tmp_path: Path) -> None:
    plan = village(tmp_path)
    (tmp_path / "households.parquet").unlink()
    assert as_json("check", plan)["open_steps"] == []
    plan.write_text(
        plan.read_text(encoding="utf-8").replace("place * size", "place * rooms"), encoding="utf-8"
    )
    error = as_json("check", plan, code=2)["error"]
    assert error["field"] == "mechanism.tables"
    assert "rooms" in error["problem"]


@pytest.mark.parametrize(
    ("old", "new", "code", "field", "word"),
    [
        ("curator: Ben", "curater: Ben", 2, "curater", "Did you mean curator?"),
        ("population: 1000", "population: [1]", 2, "dataset.population", "integer"),
        ("households.parquet", "absent.parquet", 2, "households", "no file absent.parquet"),
        ("hold: [tenure]", "hold: [tenure, rooms]", 2, "hold", "no column rooms"),
        ("kind: swap", "kind: shuffle", 2, "mechanism.kind", "expected: one of swap, topdown"),
        ("rate: 1/2", "rate: 3", 2, "mechanism.rate", "expected: a rate above 0 and below 1"),
        ("rate: 1/2", "rate: -1/2", 2, "mechanism.rate", "error: rate is not valid"),
        ("rate: 1/2", "rate: 1", 3, "rate", "infinite loss"),
        ("rate: 1/2", "target_epsilon: 1", 3, "epsilon", "no swap rate attains"),
    ],
)
def test_bad_plans_name_field_and_hint_and_no_data_value(
    tmp_path: Path, old: str, new: str, code: int, field: str, word: str
) -> None:
    plan = village(tmp_path)
    text = plan.read_text(encoding="utf-8")
    assert old in text
    plan.write_text(text.replace(old, new, 1), encoding="utf-8")
    found, out, err = run("run", plan, "--dry-run")
    assert (found, out) == (code, "")
    assert word in flat(err)
    assert f"field: {field}" in err and "hint: " in err
    assert not any(value in err for value in DATA)
    error = as_json("run", plan, "--dry-run", code=code)["error"]
    assert set(error) == {"code", "problem", "field", "expected", "hint"}


def test_open_makes_a_ledger_with_the_ceiling_of_the_plan(tmp_path: Path) -> None:
    plan, ledger = village(tmp_path), tmp_path / "ledger.db"
    error = as_json("open", plan, code=2)["error"]
    assert error["field"] == "--ledger, --by"
    body = as_json("open", plan, "--ledger", ledger, "--by", OWNER)
    assert set(body) == {"ledger", "dataset", "ceiling"}
    assert body["dataset"] == "village" and body["ceiling"].endswith("ε = 5")
    assert Ledger.open(ledger).people() == {OWNER: ("owner",), CURATOR: ("curator",)}
    code, _, err = run("open", plan, "--ledger", ledger, "--by", OWNER)
    assert code == 2 and "open already" in err
    other = tiny_county(tmp_path / "t")
    code, _, err = run("open", other, "--ledger", ledger, "--by", "Eve")
    assert code == 3 and "Eve holds no role" in err
    assert as_json("open", other, "--ledger", ledger, "--by", OWNER)["ceiling"].endswith("ρ² = 3")


def test_open_that_failed_can_be_repeated(tmp_path: Path) -> None:
    plan, ledger = village(tmp_path), tmp_path / "ledger.db"
    text = plan.read_text(encoding="utf-8")
    plan.write_text(text.replace(", ceiling: 5", ""), encoding="utf-8")
    assert (
        as_json("open", plan, "--ledger", ledger, "--by", OWNER, code=2)["error"]["field"]
        == "dataset.ceiling"
    )
    plan.write_text(text, encoding="utf-8")
    assert as_json("open", plan, "--ledger", ledger, "--by", OWNER)["dataset"] == "village"


@pytest.mark.parametrize("make", [village, tiny_county])
def test_dry_run_says_what_it_costs_and_spends_nothing(make: Callable[[Path], Path], tmp_path: Path) -> None:
    plan = make(tmp_path / "plan")
    ledger = opened_ledger(tmp_path / "ledger.db", plan)
    before = (sorted(tmp_path.rglob("*")), ledger.read_bytes())
    body = as_json("run", plan, "--ledger", ledger, "--dry-run")
    assert set(body) == {
        "plan", "plan_digest", "guarantee", "specification", "mechanism", "settings", "exact", "constraints",
        "expected", "exposure", "refused", "cost", "open_steps", "warnings",
    }  # fmt: skip
    assert set(body["cost"]) == {"dataset", "requested", "remaining", "afterwards", "refused"}
    assert body["cost"]["refused"] is None and body["cost"]["afterwards"]
    assert as_json("run", plan, "--dry-run")["cost"] is None
    code, out, _ = run("run", plan, "--ledger", ledger, "--dry-run")
    assert code == 0
    for text in ("Left before: ", "Cost: ", "Left after: ", "What is exact", "Expected error"):
        assert text in out
    assert not any(value in out for value in DATA)
    assert (sorted(tmp_path.rglob("*")), ledger.read_bytes()) == before


def test_reading_commands_open_the_ledger_for_reading_only(
    released: Released, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, plain = [], Ledger.open

    def spy(path: Path, *, read_only: bool = False) -> Ledger:
        asked.append(read_only)
        return plain(path, read_only=read_only)

    monkeypatch.setattr(Ledger, "open", spy)
    assert run("run", released.plan, "--ledger", released.ledger, "--dry-run")[0] == 0
    assert run("verify", released.folder, "--ledger", released.ledger)[0] == 0
    assert asked == [True, True]


def test_dry_run_foretells_the_refusal_that_run_gives(tmp_path: Path) -> None:
    plan = village(tmp_path / "plan")
    text = plan.read_text(encoding="utf-8")
    plan.write_text(text.replace("ceiling: 5", "ceiling: 3"), encoding="utf-8")
    ledger = opened_ledger(tmp_path / "ledger.db", plan)
    body = as_json("run", plan, "--ledger", ledger, "--dry-run")
    assert "difference" in body["cost"]["refused"]
    assert any("would refuse" in warning for warning in body["warnings"])
    _, out, _ = run("run", plan, "--ledger", ledger, "--dry-run")
    assert "Left after: refused" in out
    error = as_json("run", plan, "--ledger", ledger, "--output", tmp_path / "made", code=3)["error"]
    for word in ("requested", "remaining", "difference"):
        assert word in error["problem"]
    assert not (tmp_path / "made").exists()


def test_run_needs_a_ledger_and_a_folder_that_is_free(tmp_path: Path) -> None:
    plan = village(tmp_path / "plan")
    ledger = opened_ledger(tmp_path / "ledger.db", plan)
    assert as_json("run", plan, "--ledger", ledger, code=2)["error"]["field"] == "--output"
    assert as_json("run", plan, "--output", tmp_path / "made", code=3)["error"]["field"] == "ledger"
    missing = as_json("run", plan, "--ledger", tmp_path / "no.db", "--output", tmp_path / "made", code=2)
    assert "no ledger no.db" in missing["error"]["problem"]
    (tmp_path / "made").mkdir()
    taken = as_json("run", plan, "--ledger", ledger, "--output", tmp_path / "made", code=2)["error"]
    assert "exists already" in taken["problem"]
    assert Ledger.open(ledger).statement("village").spends == ()


@pytest.mark.parametrize("make", [village, tiny_county])
def test_run_releases_once_and_verify_agrees(make: Callable[[Path], Path], tmp_path: Path) -> None:
    plan, folder = make(tmp_path / "plan"), tmp_path / "made"
    ledger = opened_ledger(tmp_path / "ledger.db", plan)
    body = as_json("run", plan, "--ledger", ledger, "--output", folder)
    assert set(body) == {"folder", "guarantee", "resumed", "manifest_digest", "files"}
    assert body["resumed"] is False
    assert {"public/report.html", "public/specification.json"} <= set(body["files"])
    sound = as_json("verify", folder, "--ledger", ledger)
    assert set(sound) == {"sound", "checks", "problems"}
    assert (sound["sound"], sound["problems"]) == (True, [])
    assert "the ledger" in sound["checks"]
    again = as_json("run", plan, "--ledger", ledger, "--output", tmp_path / "again", code=3)["error"]
    assert "released already" in again["problem"]
    assert not (tmp_path / "again").exists()
    assert len(Ledger.open(ledger).statement(Plan.load(plan).dataset.name).spends) == 1


def test_run_prints_the_card_and_no_data_value(tmp_path: Path) -> None:
    plan = village(tmp_path)
    ledger = opened_ledger(tmp_path / "ledger.db", plan)
    code, out, err = run("run", plan, "--ledger", ledger, "--output", tmp_path / "made")
    assert (code, err) == (0, "")
    assert "open public/report.html there" in flat(out)
    assert "What is published exactly?" in out
    assert not any(value in out for value in DATA)


def test_an_open_step_refuses_until_it_is_overridden_by_name(tmp_path: Path) -> None:
    plan = village(tmp_path, OPEN)
    ledger = opened_ledger(tmp_path / "ledger.db", plan)
    call = ("run", plan, "--ledger", ledger, "--output", tmp_path / "made")
    assert "8 (Privacy risk)" in flat(run(*call)[2])
    assert as_json(*call, code=3)["error"]["code"] == "refused"
    assert as_json(*call, "--override", "eight", code=2)["error"]["field"] == "--override"
    assert "a name and a reason" in as_json(*call, "--override", "8", code=2)["error"]["expected"]
    assert Ledger.open(ledger).statement("village").spends == ()
    who = ("--override-by", OWNER, "--override-reason", "the board met on Monday")
    assert run(*call, "--override", "8,10", *who)[0] == 0
    assert "the board met on Monday" in " ".join(Ledger.open(ledger).statement("village").overridden)
    report = (tmp_path / "made" / "public" / "report.md").read_text(encoding="utf-8")
    assert "the board met on Monday" in report


@pytest.mark.parametrize(
    ("tamper", "word"),
    [
        (lambda f: (f / "public/tables/place-tenure.csv").write_text("place,count\n"), "was changed"),
        (lambda f: (f / "public/report.html").unlink(), "is missing"),
        (lambda f: (f / "public/extra.csv").write_text("x"), "is not in the manifest"),
        (lambda f: (f / "public/specification.json").unlink(), "specification.json is missing"),
        (lambda f: (f / "public/specification.json").write_text("{"), "specification.json was changed"),
        (lambda f: shutil.rmtree(f / "public"), "specification"),
    ],
)
def test_verify_exits_with_three_on_tampering(
    copied: Path, tamper: Callable[[Path], object], word: str
) -> None:
    assert run("verify", copied)[0] == 0
    tamper(copied)
    body = as_json("verify", copied, code=3)
    assert body["sound"] is False
    assert any(word in problem for problem in body["problems"])
    code, out, _ = run("verify", copied)
    assert code == 3
    assert "Not everything agrees." in out


def test_verify_finds_a_forged_manifest_by_the_ledger(released: Released, copied: Path) -> None:
    """Somebody changes a table and its digest: only the ledger knows."""
    from stirred.release.manifest import NAME, Manifest

    old = Manifest.read(copied)
    (copied / "public/tables/place-tenure.csv").write_text("place,count\n", encoding="utf-8")
    (copied / NAME).write_text(Manifest.of(copied, old.facts).text(), encoding="utf-8")
    assert run("verify", copied)[0] == 0
    body = as_json("verify", copied, "--ledger", released.ledger, code=3)
    assert body["problems"] == ["the ledger has another manifest for this spend"]


def test_verify_refuses_what_is_no_release(released: Released, tmp_path: Path) -> None:
    assert as_json("verify", tmp_path, code=2)["error"]["field"] == "folder"
    missing = as_json("verify", released.folder, "--ledger", tmp_path / "no.db", code=2)["error"]
    assert "no ledger" in missing["problem"]
    other = opened_ledger(tmp_path / "other.db", tiny_county(tmp_path / "t"))
    body = as_json("verify", released.folder, "--ledger", other, code=3)
    assert body["problems"] == ["the ledger has no data set village"]


def test_compare_of_plans_and_of_folders(released: Released, tmp_path: Path) -> None:
    other = tiny_county(tmp_path)
    keys = {
        "first", "second", "overall", "sentence", "blocks", "invariants", "budgets_comparable", "warning",
        "together", "joint_guarantee",
    }  # fmt: skip
    plans = as_json("compare", released.plan, other)
    assert set(plans) == keys
    assert plans["overall"] == "incomparable"
    folders = as_json("compare", released.folder, released.plan)
    assert set(folders) == keys
    assert folders["overall"] == "equivalent"
    code, out, _ = run("compare", released.plan, other)
    assert code == 0
    for text in ("Block by block", "must not be compared", "Expected error, village", "* exact in tiny: "):
        assert text in out


def test_measured_errors_are_shown_on_demand_only(released: Released) -> None:
    call = ("compare", released.folder, released.folder)
    assert "measured" not in as_json(*call)
    assert "Measured" not in run(*call)[1]
    shown = as_json(*call, "--internal")["measured"]
    own = [row["table"] for row in shown["first"]]
    assert own == ["Households: place * tenure", "Households: place * size"]
    assert "Measured error (internal), village" in run(*call, "--internal")[1]


def test_compare_writes_a_page(released: Released, tmp_path: Path) -> None:
    page = tmp_path / "both.html"
    assert run("compare", released.plan, released.folder, "--output", page)[0] == 0
    assert "village" in page.read_text(encoding="utf-8")
    error = as_json("compare", released.plan, tmp_path / "absent", code=2)["error"]
    assert "absent" in error["problem"]


def test_the_ledger_shows_what_the_release_cost(released: Released) -> None:
    result = runner.invoke(app, ["ledger", "show", str(released.ledger), "--dataset", "village", "--json"])
    body = json.loads(result.stdout)
    assert result.exit_code == 0
    assert set(body) == {"schema_version", "head", "people", "datasets"}
    assert body["datasets"][0]["dataset"] == "village"
    assert len(body["datasets"][0]["spends"]) == 1
    result = runner.invoke(app, ["ledger", "verify", str(released.ledger), "--json"])
    assert result.exit_code == 0


def test_the_installed_command_prints_one_object_and_nothing_beside_it(tmp_path: Path) -> None:
    plan = tiny_county(tmp_path)
    ledger = opened_ledger(tmp_path / "ledger.db", plan)
    call = ["release", "run", str(plan), "--ledger", str(ledger), "--output", str(tmp_path / "o"), "--json"]
    code = "from stirred.cli import main; main()"
    environment = os.environ | {"COLUMNS": "92"}
    done = subprocess.run(
        [sys.executable, "-c", code, *call], capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["folder"] == str(tmp_path / "o")
