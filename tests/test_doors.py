"""Faces of the rooms and the front door: what they offer exists, is lazy, and is the only way in."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import stirred as st

SOURCE = Path(st.__file__).parent
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
FACES = [f"stirred.{room}" for room in ROOMS if room != "cli"]
PROJECT = Path("pyproject.toml")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = os.environ | {"PYTHONPATH": str(SOURCE.parent)} | environment
    return subprocess.run(
        [sys.executable, *arguments], env=settings, capture_output=True, text=True, check=False
    )


def test_the_front_door_imports_nothing_before_it_is_used() -> None:
    code = "import sys; old = {*sys.modules}; import stirred as st; dir(st); print(*{*sys.modules} - old)"
    new = [name for name in run("-c", code).stdout.split() if name.startswith("stirred") or "." not in name]
    assert sorted(set(new) - sys.stdlib_module_names) == ["stirred", "stirred.doors", "stirred.version"]


def test_the_front_door_offers_the_names_that_people_type() -> None:
    wanted = {
        "read",
        "Swap",
        "TopDown",
        "compare",
        "Ledger",
        "Specification",
        "catalogue",
        "release",
        "audit",
    }
    assert wanted <= set(st.__all__) and 12 <= len(st.__all__) <= 18
    assert dir(st) == st.__all__
    assert st.Swap is importlib.import_module("stirred.swap").PermutationSwap
    for name in set(ROOMS) & set(st.__all__):
        assert getattr(st, name) is importlib.import_module(f"stirred.{name}")
    assert all(f"``{name}``" in (st.__doc__ or "") for name in st.__all__)


def test_a_name_that_nobody_offers_is_plainly_missing() -> None:
    with pytest.raises(AttributeError, match="module stirred has no attribute nonsense"):
        _ = st.nonsense  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="cannot import name 'nonsense' from 'stirred'"):
        exec("from stirred import nonsense")


@pytest.mark.parametrize("name", st.__all__)
def test_every_name_of_the_front_door_is_explained_by_an_example(name: str) -> None:
    """One that runs as it stands, with nothing imported before. A room names what it offers."""
    thing = getattr(st, name)
    if isinstance(thing, ModuleType):
        named = re.findall(r"``(\w+)``", thing.__doc__ or "")
        assert set(named) & set(thing.__all__)
        return
    text = (thing if callable(thing) else type(thing)).__doc__
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(text or ""), {}, name, None, 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert test.examples and doctest.DocTestRunner(optionflags=flags).run(test).failed == 0


def test_the_module_is_the_command() -> None:
    done = run("-m", "stirred", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"stirred {st.__version__}\n", "")
    refused = run("-m", "stirred", "spec", "show", "nothing.json", "--json")
    assert refused.returncode == 2 and refused.stdout.startswith("{")


@pytest.mark.parametrize("face", ["stirred", *FACES])
def test_what_a_face_lists_exists_and_hides_no_module(face: str) -> None:
    """A module of the same name would take the place of the name as soon as it is imported."""
    room = importlib.import_module(face)
    folder = Path(room.__file__ or "").parent
    for name in room.__all__:
        thing = getattr(room, name)
        inside = (folder / f"{name}.py").exists() or (folder / name / "__init__.py").exists()
        assert not inside or thing is sys.modules[f"{face}.{name}"], f"{face}.{name}"
    assert room.__all__ == sorted(set(room.__all__))


def imports(text: str) -> Iterator[tuple[str, str]]:
    """What a file imports, wherever it does, each with the module that it is imported from."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = "." * node.level + (node.module or "")
            yield from ((f"{home}.{alias.name}", home) for alias in node.names)


def past_faces(room: str, text: str) -> list[str]:
    """The imports of a file that reach past the face of another room, or enter by the front door."""
    wrong = []
    for thing, home in imports(text):
        parts = thing.split(".")
        if home.startswith(".") or home == "stirred":
            wrong.append(thing)
        elif parts[0] == "stirred" and parts[1] in ROOMS and parts[1] != room:
            path = SOURCE.joinpath(*parts[1:])
            inner = len(parts) > 2 and (path.with_suffix(".py").exists() or path.is_dir())
            if home != f"stirred.{parts[1]}" or inner:
                wrong.append(thing)
    return wrong


@pytest.mark.parametrize("room", ["", *ROOMS])
def test_no_import_reaches_past_a_face(room: str) -> None:
    files = (SOURCE / room).rglob("*.py") if room else {*SOURCE.glob("*.py")} - {SOURCE / "__init__.py"}
    for path in files:
        assert past_faces(room, path.read_text(encoding="utf-8")) == [], path


@pytest.mark.parametrize(
    "text",
    [
        "from stirred.spec.card import Card",
        "import stirred.spec.card",
        "from stirred.spec import card",
        "def later():\n    from stirred.spec.card import Card",
        "if TYPE_CHECKING:\n    from stirred.spec.card import Card",
        "from stirred import spec",
        "import stirred",
        "from ..spec.card import Card",
    ],
)
def test_deep_imports_are_seen(text: str) -> None:
    assert len(past_faces("swap", text)) == 1
    assert past_faces("swap", "from stirred.spec import Card\nimport stirred.spec\nimport os.path") == []
    assert past_faces("spec", "from stirred.spec.card import Card") == []


def test_every_room_has_a_face_in_the_contract() -> None:
    contracts = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    for room in ROOMS:
        (face,) = [contract for contract in contracts if contract["id"] == f"face-of-{room}"]
        assert face["protected_modules"] == [f"stirred.{room}.**"]
        assert face["allowed_importers"] == [f"stirred.{room}"]


PLANTED = {
    "cli/app.py": ("def later():\n    from stirred.spec.card import Card\n", "spec is entered"),
    "report/table.py": ("if TYPE_CHECKING:\n    from stirred.data.codes import Codes\n", "data is entered"),
    "spec/card.py": ("from stirred.data import Codes\n", "Rooms import downwards only"),
    "swap/loss.py": ("from stirred.ledger import Ledger\n", "see no ledger"),
    "show/odds.py": ("from stirred.noise import TestSource\n", "draw no randomness"),
    "report/record.py": ("from stirred.audit import Finding\n", "not from mechanisms or audits"),
}


def test_the_contract_fails_on_planted_imports(tmp_path: Path) -> None:
    """Every planted import breaks its contract; the source without them breaks none."""
    shutil.copytree(SOURCE, tmp_path / "stirred", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROJECT, tmp_path)
    assert "0 broken" in linted(tmp_path)
    for file, (planted, _) in PLANTED.items():
        with (tmp_path / "stirred" / file).open("a", encoding="utf-8") as source:
            source.write(f"\n{planted}")
    broken = [line for line in linted(tmp_path).splitlines() if line.endswith("BROKEN")]
    for file, (_, contract) in PLANTED.items():
        assert any(contract in line for line in broken), file


CALLS = "release museum, release casebook, release cli, museum casebook, casebook museum, swap topdown"
CALLS += ", audit swap, audit topdown, show swap, data noise, ledger data, noise ledger, report release"


def test_the_contract_fails_on_rooms_that_call_a_wrong_one(tmp_path: Path) -> None:
    """The rooms of the design, with nothing in them but imports that it does not allow."""
    for room in ROOMS:
        (tmp_path / "stirred" / room).mkdir(parents=True)
    for path in (*SOURCE.glob("*.py"), *SOURCE.glob("*/__init__.py")):
        (tmp_path / "stirred" / path.relative_to(SOURCE)).touch()
    shutil.copy(PROJECT, tmp_path)
    for call in CALLS.split(", "):
        room, other = call.split()
        with (tmp_path / "stirred" / room / "__init__.py").open("a", encoding="utf-8") as source:
            source.write(f"import stirred.{other}\n")
    said = linted(tmp_path)
    for call in CALLS.split(", "):
        room, other = call.split()
        assert f"stirred.{room} is not allowed to import stirred.{other}" in said, call


def linted(folder: Path) -> str:
    code = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    settings = os.environ | {"PYTHONPATH": str(folder), "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=settings, capture_output=True, text=True, check=False
    )
    return done.stdout


def test_contributing_says_where_things_go_and_they_are_there() -> None:
    text = Path("CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## Where does it go?")[2].partition("\n## ")[0]
    wanted = ["spine bypass rule", "output premetric", "plan kind", "PostgreSQL storage", "survey design"]
    for thing in [*wanted, "wording of epsilon", "swap law", "sub-command", "invariant kind", "audit"]:
        assert re.search(rf"^\| (an? |the |){thing} \|", table, re.MULTILINE), thing
    for name in re.findall(r"`(\w+/[\w/.]*\w)`", table):
        assert (SOURCE / name).exists() or (SOURCE / f"{name}.py").exists(), name
