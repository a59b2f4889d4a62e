"""A plain installation, simulated: what works without extras, and how the rest names the one it needs."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from support.small_release import opened_ledger, tiny_county, village

import stirred
from stirred import extras
from stirred.extras import EXTRAS, MissingExtra, require
from stirred.museum import collected, topdown

SOURCE = Path(stirred.__file__).parent
PACKAGES = sorted({package for packages in EXTRAS.values() for package in packages})
ROOMS = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
MODULES = sorted(
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if path.name != "__main__.py"
)

# The finder of files does not find the packages; everything else is as it was.
WITHOUT = f"""
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
def find_others(name, path=None, target=None):
    return None if name.partition(".")[0] in {PACKAGES} else find(name, path, target)
PathFinder.find_spec = find_others
"""
COMMAND = WITHOUT + "from stirred.cli import main\nsys.argv[0] = 'stirred'\nmain()\n"


def python(code: str, *arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    settings = os.environ | {"PYTHONPATH": str(SOURCE.parent)}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=settings,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def plain(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command of a plain installation."""
    return python(COMMAND, *arguments, folder=folder)


def refused(done: subprocess.CompletedProcess[str], extra: str) -> bool:
    """Whether a command with --json ended by naming an extra."""
    error = json.loads(done.stdout)["error"]
    return (
        done.returncode == 2
        and (error["code"], error["field"]) == ("missing-extra", "installation")
        and f'pip install "stirred[{extra}]"' in error["hint"]
        and "stirred[all]" in error["hint"]
    )


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_the_packages_of_the_extras_are_those_of_the_project() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]

    def names(requirements: list[str]) -> set[str]:
        return {re.split("[<>=!~;\\[ ]", line)[0].replace("-", "_") for line in requirements}

    declared = project["optional-dependencies"]
    assert {extra: set(packages) for extra, packages in EXTRAS.items()} == {
        extra: names(lines) for extra, lines in declared.items() if extra != "all"
    }
    assert declared["all"] == [f"stirred[{','.join(sorted(EXTRAS))}]"]
    assert not names(project["dependencies"]) & set(PACKAGES)


def test_the_lowest_versions_that_are_tested_are_those_that_are_promised() -> None:
    """A bound of 2.11 is tested with 2.11.0, or with the first of its series that the others allow."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    extra = [
        line for name, lines in project["optional-dependencies"].items() if name != "all" for line in lines
    ]
    lock = Path("requirements-lowest.lock").read_text(encoding="utf-8")
    for line in {*project["dependencies"], *extra}:
        name, bound = line.split(">=")
        tested = re.findall(rf"(?m)^{re.escape(name)}==(\S+)", lock)
        assert tested and all(f"{version}.".startswith(f"{bound}.") for version in tested), line


def test_packages_of_extras_are_imported_late_and_where_they_are_asked_for() -> None:
    """Never at the top of a file, and SciPy, PyArrow and OR-tools only in the room that solves."""
    late: dict[str, set[str]] = {}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for package in {name.partition(".")[0] for name in names} & set(PACKAGES):
                assert node not in tree.body, path
                late.setdefault(package, set()).add(str(path.relative_to(SOURCE).parts[0]))
    assert late == {
        "dp_accounting": {"spec"},
        "ortools": {"topdown"},
        "pyarrow": {"topdown"},
        "scipy": {"topdown"},
        "threadpoolctl": {"topdown"},
    }


def test_every_module_and_every_public_name_is_there_without_extras() -> None:
    code = f"""{WITHOUT}
import importlib
for name in {MODULES}:
    importlib.import_module(name)
for room in {[f"stirred.{room}" for room in ROOMS if room != "cli"]}:
    face = importlib.import_module(room)
    for name in face.__all__:
        getattr(face, name)
print("all", len({MODULES}))
"""
    done = python(code)
    assert (done.stdout, done.stderr) == (f"all {len(MODULES)}\n", "")
    assert len(MODULES) > 250


@pytest.mark.parametrize(
    "arguments",
    [
        ("spec", "show", "examples/survey.json"),
        ("spec", "compare", "psa-2020-county", "tda-dhc"),
        ("spec", "compose", "tda-dhc", "safetab-p"),
        ("spec", "convert", "das-2020", "--to", "approximate", "--delta", "1e-10", "--neighbours"),
        ("spec", "gaming", "psa-2020-county", "psa-2020-county-size"),
        ("spec", "catalogue", "--search", "invariants"),
        ("swap", "budget", "--largest-stratum", "264331", "--rate", "0.05"),
        ("topdown", "budget", "pl-2020-us-persons"),
        ("reproduce", "table-4"),
        ("audit", "museum"),
    ],
)
def test_what_needs_no_extra_answers_alike_without(arguments: tuple[str, ...]) -> None:
    done = plain(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == python("from stirred.cli import main; main()", *arguments, "--json").stdout


def test_a_swap_is_audited_paid_released_and_verified_without_extras(tmp_path: Path) -> None:
    plan, ledger = village(tmp_path / "village"), tmp_path / "ledger.db"
    opened_ledger(ledger, plan)
    name, book = str(plan), ("--ledger", str(ledger))
    assert plain("release", "check", name).returncode == 0
    assert plain("release", "run", name, *book, "--dry-run").returncode == 0
    made = plain("release", "run", name, *book, "--output", str(tmp_path / "made"), "--json")
    assert (made.returncode, made.stderr) == (0, "")
    record = json.loads((tmp_path / "made" / "public" / "audit.json").read_text(encoding="utf-8"))
    assert {finding["verdict"] for finding in record["findings"]} <= {"not refuted", "vacuous"}
    assert len(record["findings"]) >= 3
    assert plain("release", "verify", str(tmp_path / "made"), *book).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("release", "check", "PLAN"),
        ("release", "run", "PLAN", "--ledger", "LEDGER", "--dry-run"),
        ("release", "run", "PLAN", "--ledger", "LEDGER", "--output", "FOLDER"),
        ("audit", "run", "PLAN"),
        ("topdown", "run", "TRIAL", "--dry-run"),
        ("topdown", "run", "TRIAL", "--output", "FOLDER"),
        ("demo", "--output", "FOLDER"),
    ],
)
def test_topdown_names_its_extra_before_anything_is_spent_or_written(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    plan = tiny_county(tmp_path / "county")
    opened_ledger(tmp_path / "ledger.db", plan)
    names = {
        "PLAN": str(plan),
        "TRIAL": str(plan.with_name("plan.yaml")),
        "LEDGER": str(tmp_path / "ledger.db"),
        "FOLDER": str(tmp_path / "made"),
    }
    before = files(tmp_path)
    done = plain(*(names.get(word, word) for word in arguments), "--json", folder=tmp_path)
    assert refused(done, "topdown")
    assert files(tmp_path) == before


def test_the_demonstration_tells_a_person_which_extra_it_needs(tmp_path: Path) -> None:
    told = plain("demo", folder=tmp_path)
    assert (told.returncode, told.stdout) == (2, "")
    assert 'pip install "stirred[topdown]" (or "stirred[all]"' in " ".join(told.stderr.split())
    assert not list(tmp_path.iterdir())


def test_the_self_test_of_the_audits_names_the_extra_at_once() -> None:
    """Only where a bug of TopDown is among the exhibits; a few are examined in this very process."""
    assert refused(plain("audit", "self-test", "--json"), "topdown")
    others = [key for key in collected() if key not in {exhibit.key for exhibit in topdown.EXHIBITS}]
    done = plain("audit", "self-test", *others[::8], "--json")
    assert done.returncode == 0 and json.loads(done.stdout)["kill_rate"] == 1


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        ("st.catalogue.to_arrow()", "files"),
        ("st.catalogue.to_pandas()", "pandas"),
        ("rdp_epsilon(GaussianEvent(1.0), 1e-6, 'add-remove')", "accounting"),
        ("pld_epsilon(GaussianEvent(1.0), 1e-6, 'add-remove')", "accounting"),
        ("round_children(None, None, [])", "topdown"),
        ("Measurements.read(None, None)", "topdown"),
        ("TopDown(None, [])", "topdown"),
    ],
)
def test_a_call_names_its_extra(call: str, extra: str) -> None:
    code = f"""{WITHOUT}
import stirred as st
from stirred.extras import MissingExtra
from stirred.spec import GaussianEvent, pld_epsilon, rdp_epsilon
from stirred.topdown import Measurements, TopDown, round_children
try:
    {call}
except MissingExtra as error:
    print(error.expected)
"""
    done = python(code)
    assert (done.stdout, done.stderr) == (f"stirred with the extra {extra}\n", "")


def test_a_data_frame_of_pandas_without_pyarrow_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas as pd

    from stirred.interchange import as_polars

    require.cache_clear()
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "pyarrow" else importlib)
    with pytest.raises(MissingExtra, match=r"needs stirred\[pandas\], of which pyarrow is not installed"):
        as_polars(pd.DataFrame({"a": [1]}))
    require.cache_clear()


def test_a_package_that_is_there_and_broken_is_not_called_missing(tmp_path: Path) -> None:
    """An error of import inside a package says what is wrong with it, and is not ours to reword."""
    (tmp_path / "dp_accounting.py").write_text("import there_is_no_such_module\n", encoding="utf-8")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from stirred.spec import GaussianEvent, rdp_epsilon\n"
        "rdp_epsilon(GaussianEvent(1.0), 1e-6, 'add-remove')\n"
    )
    done = python(code)
    assert "ModuleNotFoundError: No module named 'there_is_no_such_module'" in done.stderr
    assert "MissingExtra" not in done.stderr
