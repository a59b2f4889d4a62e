"""``stirred reproduce``: the list, one table or figure, and all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from stirred.casebook import CASES, Case, cases
from stirred.cli.app import app

runner = CliRunner(env={"COLUMNS": "92"})


def run(*arguments: str) -> tuple[int, str, str]:
    result = runner.invoke(app, ["reproduce", *arguments])
    return result.exit_code, result.stdout, result.stderr


def as_json(*arguments: str) -> dict[str, Any]:
    code, out, _ = run(*arguments, "--json")
    assert code == 0, out
    found: dict[str, Any] = json.loads(out)
    return found


def test_the_list_has_every_case_with_its_source() -> None:
    code, out, _ = run("list")
    assert code == 0
    assert all(case.name in out and case.shows in out and case.source in out for case in CASES.values())
    listed = as_json("list")["cases"]
    assert [body["name"] for body in listed] == list(CASES)
    assert listed[5] == {
        "name": "figure-1",
        "source": CASES["figure-1"].source,
        "shows": CASES["figure-1"].shows,
        "figure": True,
        "runs": 20,
    }


def test_a_table_is_printed_with_its_notes() -> None:
    code, out, _ = run("table-3")
    assert code == 0
    assert out.startswith("Table 3. Budgets of TopDown's noisy measurements")
    assert "26.33" in out and "the paper prints 26.34" in out
    assert "Budgets are nominal" in run("table-4")[1]


def test_json_gives_numbers() -> None:
    body = as_json("table-4")
    assert body["schema_version"] == 1 and body["name"] == "table-4" and not body["figure"]
    rows = {row["id"]: row for row in body["rows"]}
    assert rows["das-2020"]["rho_squared"] == 55.371
    assert rows["das-2020"]["epsilon"] == pytest.approx(126.78429, abs=5e-5)
    assert any("52.83" in note and "52.82" in note for note in body["notes"])


def test_a_figure_is_written_where_it_should_be(tmp_path: Path) -> None:
    target = tmp_path / "new" / "two.svg"
    code, out, _ = run("figure-2", "--output", str(target))
    assert code == 0 and "two.svg" in out.replace("\n", "")
    assert "With --output" in run("figure-2")[1] and "With --output" not in out
    root = ElementTree.fromstring(target.read_text(encoding="utf-8"))
    assert len(root.findall("{http://www.w3.org/2000/svg}polyline")) == 6


def test_a_simulation_has_as_many_runs_as_asked_for(tmp_path: Path) -> None:
    body = as_json("figure-1", "--runs", "1", "--output", str(tmp_path / "one.svg"))
    assert [len(row["errors"]) for row in body["rows"]] == [1] * 50
    assert (tmp_path / "one.svg").read_text(encoding="utf-8").startswith("<svg")


def test_all_are_written_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: dict[str, Case] = {name: CASES[name] for name in ("table-2", "figure-2")}
    monkeypatch.setattr("stirred.casebook.CASES", chosen)
    body = as_json("all", "--output", str(tmp_path))
    assert [record["name"] for record in body["cases"]] == list(chosen)
    assert {path.name for path in tmp_path.iterdir()} == {"table-2.json", "figure-2.svg"}
    written = json.loads((tmp_path / "table-2.json").read_text(encoding="utf-8"))
    assert written == as_json("table-2")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("tabel-4",), "table-4"),
        (("table-4", "--runs", "3"), "not a simulation"),
        (("list", "--runs", "3"), "--runs"),
        (("list", "--output", "x"), "--output"),
    ],
    ids=" ".join,
)
def test_what_does_not_apply_is_refused(arguments: tuple[str, ...], told: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2 and out == "" and told in err


def test_a_case_of_another_source_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Case(
        "thesis-figure-5", "Bailie (2025)", "A toy", lambda: cases.Recomputed(({"x": 1.5},)), {"x": ".1f"}
    )
    monkeypatch.setitem(cases.CASES, toy.name, toy)  # type: ignore[arg-type]
    assert "Bailie (2025)" in run("list")[1]
    code, out, _ = run("thesis-figure-5")
    assert code == 0 and "Thesis figure 5. A toy" in " ".join(out.split()) and "1.5" in out
