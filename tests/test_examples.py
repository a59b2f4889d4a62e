"""Examples run as they are shipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stirred.spec import Specification

EXAMPLES = Path("examples")


def test_the_readme_specification_is_the_shipped_example() -> None:
    block = re.search(r"```json\n(.*?)```", Path("README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    shipped = (EXAMPLES / "survey.json").read_text(encoding="utf-8")
    assert Specification.from_json(block[1]) == Specification.from_json(shipped)


def test_the_readme_python_runs_and_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    text = Path("README.md").read_text(encoding="utf-8")
    block = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert block is not None
    exec(compile(block[1], "README.md", "exec"), {})
    printed = capsys.readouterr().out.strip().splitlines()[-1]
    quoted = re.search(r"^> .*(?:\n> .*)*", text, re.MULTILINE)
    assert quoted is not None
    assert " ".join(quoted[0].replace("\n> ", " ").removeprefix("> ").split()) == printed


def printed(cell: Any) -> str:
    """All text that a cell printed, however it was cut into pieces."""
    return "".join(output.get("text", "") for output in cell.outputs)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_execute_to_the_outputs_they_show(notebook: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    shown = nbformat.read(notebook, as_version=4)
    fresh = nbformat.read(notebook, as_version=4)
    NotebookClient(fresh, timeout=300).execute()
    for before, after in zip(shown.cells, fresh.cells, strict=True):
        if before.cell_type == "code":
            assert printed(before) == printed(after)


@pytest.mark.slow
def test_the_readme_commands_of_a_release_run_on_the_demonstration(tmp_path: Path) -> None:
    text = Path("README.md").read_text(encoding="utf-8")
    block = re.search(r"```sh\n(stirred release new .*?)```", text, re.DOTALL)
    assert block is not None
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-ec", f"stirred demo\n{block[1]}"],
        cwd=tmp_path,
        env=os.environ | {"PATH": search, "COLUMNS": "92"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "Everything agrees." in done.stdout
    assert (tmp_path / "stirred-demo" / "county" / "made" / "public" / "report.html").is_file()


def test_the_readme_names_commands_and_options_that_exist() -> None:
    from typer.testing import CliRunner

    from stirred.cli.app import app

    text = Path("README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    calls = re.findall(r"^stirred (.*?)(?:\s+#.*)?$", blocks, re.MULTILINE)
    assert len(calls) >= 20
    for call in calls:
        words = call.split()
        name = words[: 1 if words[0] == "demo" else 2]
        shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, [*name, "--help"])
        assert shown.exit_code == 0, call
        for option in re.findall(r"--[a-z-]+", call):
            assert option in shown.stdout, call
