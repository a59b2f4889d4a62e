"""``stirred topdown budget`` on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest
from typer.testing import CliRunner

from stirred.cli.app import app

runner = CliRunner()


def run(*arguments: str) -> tuple[int, str, str]:
    result = runner.invoke(app, ["topdown", "budget", *arguments], env={"COLUMNS": "120"})
    return result.exit_code, result.stdout, result.stderr


def as_json(*arguments: str) -> dict[str, Any]:
    code, out, _ = run(*arguments, "--json")
    assert code == 0, out
    body: dict[str, Any] = json.loads(out)
    return body


def test_json_has_exact_rationals_that_sum_to_the_total() -> None:
    body = as_json("pl-2020-us-persons")
    assert list(body) == [
        "schema_version",
        "preset",
        "universe",
        "change",
        "rho_squared",
        "rho_squared_value",
        "levels",
        "attributes",
        "notes",
    ]
    assert body["rho_squared"] == "293764/114921"
    levels = body["levels"]
    assert [x["level"] for x in levels] == ["us", "state", "county", "tract", "block_group", "block"]
    assert sum(Fraction(x["share"]) for x in levels) == 1
    assert sum(Fraction(x["rho_squared"]) for x in levels) == Fraction(293764, 114921)
    precisions = [1 / Fraction(query["variance"]) for x in levels for query in x["queries"]]
    assert sum(precisions) == Fraction(293764, 114921)
    assert set(body["attributes"]) == {"hhgq", "voting_age", "hispanic", "race"}


def test_json_of_one_query() -> None:
    body = as_json("pl-2020-us-units")
    assert body["rho_squared"] == "11417641/152349649"
    block = body["levels"][-1]
    assert (block["level"], block["share"], block["within"]) == ("block", "99/820", "0")
    (query,) = block["queries"]
    variance = Fraction(152349649, 11417641) * Fraction(820, 99)
    assert query == {
        "query": "detailed",
        "share": "1",
        "rho_squared": str(1 / variance),
        "variance": str(variance),
        "variance_value": float(variance),
        "standard_deviation": pytest.approx(10.513, abs=1e-3),
    }


def test_levels_are_renormalised_to_the_same_total() -> None:
    body = as_json("pl-2020-us-persons", "--levels", "county, tract,block_group,block")
    assert [x["share"] for x in body["levels"]] == ["447/2555", "687/2555", "1256/2555", "33/511"]
    assert body["rho_squared"] == "293764/114921"


def test_the_table_shows_noise_losses_and_the_exact_total() -> None:
    code, out, _ = run("pl-2020-us-persons")
    assert code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if "│" in line]
    assert ["block", "total", "5/4097", "7963", "89.24"] in rows
    assert ["block_group", "detailed", "1288/4099", "4.063", "2.016"] in rows
    assert ["state", "1440/4099", "0.8981", "1.5934"] in rows
    assert ["voting_age", "0.601"] in rows
    assert len(rows) == 65 + 6 + 4
    assert "Total ρ² = 293764/114921, at most 2.5563" in out
    assert "Not the Bureau's spine" in out and "Nominal" in out


def test_an_unknown_preset_is_an_error_that_lists_presets() -> None:
    code, out, err = run("pl-2030")
    assert (code, out) == (2, "")
    assert "pl-2020-us-persons, pl-2020-us-units" in err
    code, out, _ = run("pl-2030", "--json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "unknown-name"


def test_an_unknown_level_is_an_error_that_lists_levels() -> None:
    code, _, err = run("pl-2020-us-units", "--levels", "county,parish")
    assert code == 2
    assert "no level parish" in err and "us, state, county, tract, block_group, block" in err


def test_the_map_of_commands_loads_no_arrays_and_no_tables() -> None:
    heavy = {"numpy", "polars", "stirred.topdown"}
    code = f"import sys, stirred.cli.app; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
