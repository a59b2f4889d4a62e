"""What the source may import from other packages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = sorted(Path("src/stirred").rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def private(name: str) -> bool:
    package, *inner = name.split(".")
    return package not in {"stirred", "__future__"} and any(
        part.startswith("_") and not part.endswith("__") for part in (package, *inner)
    )


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        ("from pydantic._internal._model_construction import ModelMetaclass", True),
        ("from polars import _plr", True),
        ("import numpy._core", True),
        ("from stirred.spec.protocol import _Run", False),
        ("from __future__ import annotations", False),
        ("import numpy as np", False),
    ],
)
def test_a_private_name_of_a_dependency_is_seen(line: str, refused: bool) -> None:
    assert any(map(private, imported(ast.parse(line)))) is refused


def test_no_private_module_of_a_dependency_is_imported() -> None:
    names = {path: set(imported(ast.parse(path.read_text(encoding="utf-8")))) for path in SOURCE}
    found = {str(path): refused for path in SOURCE if (refused := set(filter(private, names[path])))}
    assert len(SOURCE) > 200
    assert found == {}
