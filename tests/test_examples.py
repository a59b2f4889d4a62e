"""Examples run as they are shipped."""

from __future__ import annotations

import re
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
