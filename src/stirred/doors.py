"""The face of a room: the names that its ``__init__`` lists, each imported when it is first used.

A room lists its public names once, as imports ``if TYPE_CHECKING``; type checkers read them there, and so
does this. Nothing heavy is imported before it is needed, so that the command line starts at once.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from typing import Any

Door = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def door(package: str) -> Door:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package, from the imports that it lists."""
    homes = _listed(package)

    def find(name: str) -> Any:
        if name not in homes:
            room = sys.modules[package]
            raise AttributeError(f"module {package} has no attribute {name}", name=name, obj=room)
        home, original = homes[name]
        module = importlib.import_module(home)
        value = getattr(module, original) if original else module
        setattr(sys.modules[package], name, value)
        return value

    names = sorted(homes)
    return find, lambda: names, names


def _listed(package: str) -> dict[str, tuple[str, str]]:
    """For every listed name its module and its name there; no name there where it is a module itself."""
    spec = sys.modules[package].__spec__
    source: str = getattr(getattr(spec, "loader", None), "get_source")(package)  # noqa: B009
    homes: dict[str, tuple[str, str]] = {}
    for block in ast.parse(source).body:
        if isinstance(block, ast.If) and getattr(block.test, "id", "") == "TYPE_CHECKING":
            for line in block.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    homes |= {a.asname or a.name: (line.module, a.name) for a in line.names}
    return {
        name: (f"{home}.{original}", "") if home == package else (home, original)
        for name, (home, original) in homes.items()
    }
