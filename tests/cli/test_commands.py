"""The command line: output, JSON, exit codes and messages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stirred.cli.app import app
from stirred.spec import Budget, Specification, catalogue

runner = CliRunner()


def run(*arguments: str) -> tuple[int, str, str]:
    result = runner.invoke(app, list(arguments))
    return result.exit_code, result.stdout, result.stderr


def as_json(*arguments: str) -> dict[str, object]:
    code, out, _ = run(*arguments, "--json")
    assert code == 0, out
    return json.loads(out)


def test_help_shows_the_whole_map() -> None:
    code, out, _ = run("--help")
    assert code == 0
    for room in ("demo", "release", "ledger", "spec", "swap", "topdown", "reproduce"):
        assert room in out
    code, out, _ = run("spec", "--help")
    for command in ("show", "compare", "compose", "convert", "catalogue", "schema"):
        assert command in out


def test_help_imports_no_heavy_module() -> None:
    """`stirred --help` answers in a blink because heavy modules are imported when used."""
    code = (
        "import sys; from stirred.cli.app import app; "
        "heavy = {'polars', 'numpy', 'scipy', 'pydantic', 'dp_accounting', 'pyarrow', 'jinja2'}; "
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_show_prints_the_card() -> None:
    code, out, _ = run("spec", "show", "psa-2020-county")
    assert code == 0
    assert "ε-DP(X_CEF, 𝒟_c_Swap, d_HamS^hh, D_Mult)" in out
    assert "What is published exactly?" in out


def test_show_json_round_trips_to_the_same_specification() -> None:
    body = as_json("spec", "show", "tda-dhc")
    assert Specification.read(body["specification"]) == catalogue.specification("tda-dhc")
    assert body["schema_version"] == 1


def test_show_latex_is_one_line() -> None:
    code, out, _ = run("spec", "show", "psa-2020-county", "--latex")
    assert code == 0
    assert out.count("\n") == 1
    assert r"d_{\mathrm{HamS}}^{\mathrm{hh}}" in out


def test_show_of_a_flavor_without_a_budget_says_so() -> None:
    code, out, _ = run("spec", "show", "pure-dp")
    assert code == 0
    assert "no budget" in out
    code, out, _ = run("spec", "show", "pure-dp", "--budget", "epsilon=ln(3)")
    assert code == 0
    assert "a factor of 3.0" in out


def test_compare_swapping_with_topdown_is_incomparable_and_ranks_no_budget() -> None:
    body = as_json("spec", "compare", "psa-2020-county", "tda-dhc")
    assert body["overall"] == "incomparable"
    assert {"multiverse", "input_premetric", "output_premetric"} <= set(body["differing"])
    assert body["budgets_ranked"] is False
    _, out, _ = run("spec", "compare", "psa-2020-county", "tda-dhc")
    for word in ("multiverse", "household", "person", "D_Mult", "D_NoR", "not ranked"):
        assert word in out


def test_compare_names_the_block_that_moved() -> None:
    body = as_json("spec", "compare", "psa-2020-county", "psa-2020-county-size", "--same-mechanism")
    assert [move["block"] for move in body["same_mechanism"]["moves"]] == ["multiverse"]


def test_compose_adds_rho_squared_and_writes_a_file(tmp_path: Path) -> None:
    target = tmp_path / "both.json"
    body = as_json("spec", "compose", "tda-dhc", "safetab-p", "--output", str(target))
    assert body["specification"]["budget"]["amounts"] == ["17533/500"]
    written = Specification.from_json(target.read_text(encoding="utf-8"))
    assert written.budget == Budget.zcdp(rho_squared="35.066")
    assert [p.name for p in tmp_path.iterdir()] == ["both.json"]


def test_compose_refuses_an_invariant_that_is_not_conditioned_on() -> None:
    code, _, err = run("spec", "compose", "safetab-p", "--reads", "person:state")
    assert code == 3
    assert "the number of persons in each state" in err
    assert run("spec", "compose", "tda-dhc", "--reads", "person:state")[0] == 0


def test_compose_refuses_shared_seeds() -> None:
    code, _, err = run("spec", "compose", "tda-dhc", "tda-pl", "--shared-seeds")
    assert code == 3
    assert "joint law" in err


def test_convert_refuses_beyond_neighbours_then_moves_there() -> None:
    arguments = ("spec", "convert", "das-2020", "--to", "approximate", "--delta", "1e-10")
    code, _, err = run(*arguments)
    assert code == 3
    assert "neighbours" in err
    body = as_json(*arguments, "--neighbours")
    converted = Specification.read(body["specification"])
    assert converted.budget.amount.rounded(2) == "126.78"
    assert converted.input_premetric.flags.neighbour_valued
    assert any("moved from d_HamS^p" in step for step in body["steps"])


def test_catalogue_is_searchable() -> None:
    body = as_json("spec", "catalogue", "--search", "pufferfish")
    assert "pufferfish" in [entry["id"] for entry in body["entries"]]
    assert "pure-dp" not in [entry["id"] for entry in body["entries"]]
    assert len(as_json("spec", "catalogue")["entries"]) >= 40


def test_schema_is_the_shipped_file() -> None:
    code, out, _ = run("spec", "schema")
    shipped = Path("src/stirred/spec/specification.schema.json")
    assert code == 0
    assert json.loads(out) == json.loads(shipped.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (("spec", "show", "psa-2020-conty"), 2, "psa-2020-county"),
        (("spec", "show", "no/such/file.json"), 2, "there is no file"),
        (("spec", "show", "pure-dp", "--budget", "1"), 2, "bare number"),
        (("spec", "show", "pure-dp", "--budget", "epsilon=nan"), 2, "not a number"),
        (("spec", "show", "pure-dp", "--budget", "epsilon=-1"), 2, "negative"),
        (("spec", "show", "pure-dp", "--budget", "rho_squared=1"), 2, "not measured in"),
        (("spec", "compose", "tda-dhc", "psa-2020-county"), 3, "do not compose"),
        (("spec", "compose", "tda-dhc", "tda-pl", "--order", "random"), 2, "sequential"),
        (("spec", "convert", "tda-dhc", "--to", "zzz"), 2, "approximate"),
        (("spec", "convert", "psa-2020-county", "--to", "approximate"), 2, "delta"),
        (("spec", "catalogue", "--block", "universe"), 2, "multiverse"),
        (("spec", "catalogue", "--catalogue", "no/such.json"), 2, "no file"),
        (("spec", "show", "tda-dhc", "--budget", "rho_squared=1"), 2, "budget of its own"),
        (("spec", "compare", "psa-2020-county"), 2, "Missing argument"),
        (("spec", "nothing"), 2, "No such command"),
    ],
)
def test_bad_calls_name_the_problem_and_exit_with_two_or_three(
    arguments: tuple[str, ...], code: int, word: str
) -> None:
    found, out, err = run(*arguments)
    assert found == code
    assert out == ""
    assert word in " ".join(err.split())


def test_errors_as_json_are_one_object_with_stable_keys() -> None:
    code, out, err = run("spec", "show", "nothing-like-it", "--json")
    assert code == 2
    assert err == ""
    error = json.loads(out)["error"]
    assert set(error) == {"code", "problem", "field", "expected", "hint"}


def test_a_read_only_folder_gives_a_clear_error_and_no_partial_file(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way", encoding="utf-8")
    code, _, err = run("spec", "compose", "tda-pl", "--output", str(blocked / "out.json"))
    assert code == 2
    assert "could not be written" in err
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from stirred.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def test_a_wrong_call_with_json_answers_in_json() -> None:
    done = command("spec", "compare", "tda-dhc", "--json")
    assert done.returncode == 2
    assert done.stderr == ""
    assert json.loads(done.stdout)["error"]["code"] == "usage"


def test_exit_codes_of_the_installed_command() -> None:
    assert command("--version").stdout.startswith("stirred ")
    assert command("reproduce", "table-5", "--json").returncode == 0
    assert command("spec", "show", "nothing", "--json").returncode == 2
    assert command("spec", "compose", "tda-dhc", "psa-2020-county", "--json").returncode == 3
    assert command("spec", "compose", "tda-dhc", "psa-2020-county").returncode == 3
    assert command().returncode == 0


def test_show_writes_a_file_that_show_reads(tmp_path: Path) -> None:
    target = tmp_path / "tda.json"
    assert run("spec", "show", "tda-dhc", "--output", str(target))[0] == 0
    assert as_json("spec", "show", str(target)) == as_json("spec", "show", "tda-dhc")


def test_compare_fills_in_a_budget_for_flavors_that_have_none() -> None:
    body = as_json("spec", "compare", "pure-dp", "pure-dp", "--budget", "epsilon=1")
    assert body["overall"] == "equivalent"


def test_a_file_of_bytes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    code, _, err = run("spec", "show", str(tmp_path / "bytes.json"))
    assert code == 2
    assert "could not be read" in err
