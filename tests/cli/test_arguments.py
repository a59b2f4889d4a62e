"""Impossible arguments are refused with exit code 2 and by name, and nothing else happens."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import typer
from typer.testing import CliRunner

from stirred.cli.app import app
from stirred.cli.output import reported

runner = CliRunner()
SECRET = "Wq-secret-zq"


def refused(*arguments: str) -> str:
    result = runner.invoke(app, list(arguments))
    assert result.exit_code == 2, (arguments, result.exit_code, result.stdout)
    return " ".join((result.stderr or result.stdout).split())


@pytest.mark.parametrize("size", ["0", "1", "-1"])
def test_a_stratum_with_nothing_to_swap_has_no_rate_and_no_loss(size: str) -> None:
    """``swap rate --largest-stratum 0`` answered with the rates 0 and 1."""
    for call in (("rate", "--epsilon", "3"), ("budget", "--rate", "0.05")):
        said = refused("swap", call[0], "--largest-stratum", size, *call[1:])
        assert "nothing to swap" in said and "--largest-stratum" in said


@pytest.mark.parametrize("size", ["9" * 30, "9" * 400, "9" * 5000, "nan", "1.5", ""])
def test_a_stratum_that_is_none_is_refused(size: str) -> None:
    refused("swap", "rate", "--largest-stratum", size, "--epsilon", "3")
    refused("swap", "budget", "--largest-stratum", size, "--rate", "0.05")


@pytest.mark.parametrize(
    "loss", ["0", "-1", "nan", "inf", "-inf", "1e999999999", "1e400", "1001", "", "1/0", "x", "9" * 5000]
)
def test_a_loss_that_nothing_can_have_is_refused(loss: str) -> None:
    assert "--epsilon" in refused("swap", "rate", "--largest-stratum", "100", "--epsilon", loss)


@pytest.mark.parametrize("rate", ["2", "-1", "nan", "inf", "1e-999999999", "", "1/0", "x", "9" * 5000])
def test_a_rate_that_is_no_probability_is_refused(rate: str, tmp_path: Path) -> None:
    assert "--rate" in refused("swap", "budget", "--largest-stratum", "100", "--rate", rate)
    out = tmp_path / "out"
    assert "--rate" in refused(
        "swap", "run", str(table(tmp_path)), *ROLES, "--rate", rate, "--output", str(out)
    )
    assert not out.exists()


ROLES = ("--swap", "c", "--hold", "h")


def table(folder: Path) -> Path:
    pl.DataFrame({"h": [0, 1] * 12, "c": [0, 1, 2] * 8}).write_parquet(folder / "in.parquet")
    return folder / "in.parquet"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--unit", ""),
        ("--unit", " "),
        ("--by", ""),
        ("--id", ""),
        ("--imputed", ""),
        ("--match", ""),
        ("--hold", ""),
    ],
)
def test_an_empty_name_is_refused(option: str, value: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    call = ("swap", "run", str(table(tmp_path)), *ROLES, "--rate", "0.5", "--output", str(out))
    refused(*call, option, value)
    assert not out.exists()


@pytest.mark.parametrize("runs", ["0", "-1", "nan", "", "9" * 30])
def test_a_number_of_runs_that_is_none_is_refused(runs: str, tmp_path: Path) -> None:
    refused("reproduce", "figure-1", "--runs", runs, "--output", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("draws", ["0", "-1", "999", "nan", "9" * 30])
def test_a_number_of_draws_that_is_none_is_refused(draws: str) -> None:
    assert "--draws" in refused("audit", "run", "plan.yaml", "--draws", draws)


@pytest.mark.parametrize(
    "delta", ["0", "1", "2", "-1", "nan", "inf", "", "1e-301", "1e-1000", "1e-999999999"]
)
@pytest.mark.parametrize("method", ["census", "optimal", "gaussian"])
def test_a_delta_that_is_none_is_refused(delta: str, method: str) -> None:
    """A delta of 1e-400 was shown as 0, or stopped with a traceback."""
    flavor = ("zcdp", "--budget", "rho_squared=1", "--to", "approximate", "--neighbours")
    refused("spec", "convert", *flavor, "--method", method, "--delta", delta)


@pytest.mark.parametrize("alpha", ["0", "1", "-1", "1/2", "nan", "", "1e999999999"])
def test_an_order_that_is_none_is_refused(alpha: str) -> None:
    refused("spec", "convert", "pure-dp", "--budget", "epsilon=1", "--to", "renyi", "--alpha", alpha)


@pytest.mark.parametrize(
    "amount", ["-1", "nan", "-inf", "", "1e101", "1e400", "1e999999999", "9" * 5000, "ln(0)"]
)
def test_a_budget_that_is_none_is_refused(amount: str) -> None:
    refused("spec", "show", "pure-dp", "--budget", f"epsilon={amount}")
    refused("spec", "compose", "zcdp", "zcdp", "--budget", f"rho_squared={amount}")


@pytest.mark.parametrize("levels", ["", ",", "us,us", "us,", "nowhere"])
def test_levels_that_are_none_are_refused(levels: str) -> None:
    refused("topdown", "budget", "pl-2020-us-persons", "--levels", levels)


@pytest.mark.parametrize("name", ["", "nowhere", "../..", "x" * 5000])
def test_names_of_nothing_are_refused(name: str) -> None:
    for call in (
        ("spec", "show"), ("topdown", "budget"), ("topdown", "run"), ("audit", "run"), ("audit", "self-test"),
        ("release", "check"), ("release", "new"),
    ):  # fmt: skip
        refused(*call, name)
    refused("release", "compare", name, name)
    refused("spec", "show", "tda-dhc", "--catalogue", name)
    refused("spec", "compose", "tda-dhc", "tda-dhc", "--reads", "")


def test_an_output_that_is_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "nowhere")
    refused("swap", "run", str(table(tmp_path)), *ROLES, "--rate", "0.5", "--output", str(link))
    refused("demo", "--output", str(link))
    refused("reproduce", "table-2", "--output", str(link))
    refused("reproduce", "all", "--output", str(link))
    refused("spec", "show", "tda-dhc", "--output", str(link))
    refused("release", "new", "swap", "--output", str(link))
    refused("audit", "run", "plan.yaml", "--output", str(link))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.parquet", "link"]


@pytest.mark.parametrize("kind", [ValueError, RecursionError, MemoryError, OSError, "PanicException"])
@pytest.mark.parametrize("as_json", [False, True])
def test_an_unforeseen_error_shows_its_kind_and_no_text(kind: object, as_json: bool) -> None:
    """The traceback of an error of a library held values of the data."""
    made = type("PanicException", (BaseException,), {}) if isinstance(kind, str) else kind
    small = typer.Typer()

    @small.command()
    @reported
    def fail(as_json: bool = False) -> None:
        raise made(SECRET)

    result = CliRunner().invoke(small, ["--as-json"] if as_json else [])
    assert result.exit_code == 1 and isinstance(result.exception, SystemExit)
    assert SECRET not in result.output and "Traceback" not in result.output
    assert made.__name__ in result.output
    if as_json:
        assert json.loads(result.stdout)["error"]["code"] == "fault"


@pytest.mark.parametrize("kind", [typer.Exit(0), typer.BadParameter("no"), KeyboardInterrupt()])
def test_ends_that_are_meant_pass_through(kind: BaseException) -> None:
    @reported
    def stop() -> None:
        raise kind

    with pytest.raises(type(kind)):
        stop()
