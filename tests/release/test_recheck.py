"""What a release says beside its products: invariants that hold, the registry, the ledger's table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.release_case import new_ledger, plan_of, write_case, write_plan
from support.releasing import run_release

from stirred.documents import parse_yaml
from stirred.errors import InputError
from stirred.release import verify as verify_release
from stirred.release.manifest import NAME, Manifest
from stirred.report import lint
from stirred.report.registry import Record

ABOUT: dict[str, Any] = {
    "name": "A small release",
    "curators": ["An office"],
    "intended_use": "Statistics",
    "description": "Counts of a small place",
    "region": "A place",
    "publication_date": "2026-11-16",
    "authors": ["An author"],
}


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return write_case(tmp_path / "case")


def rewritten(folder: Path) -> None:
    """Give a changed folder a manifest that fits it, as somebody would who wants to hide the change."""
    manifest = Manifest.read(folder)
    (folder / NAME).write_text(Manifest.of(folder, manifest.facts).text(), encoding="utf-8")


@pytest.mark.parametrize(("mechanism", "name"), [("swap", "households"), ("topdown", "person")])
def test_invariants_are_held_against_the_data(mechanism: str, name: str, case: Path, tmp_path: Path) -> None:
    path = case / f"{mechanism}.yaml"
    ledger = new_ledger(tmp_path / "ledger.db", case, [mechanism])
    made = run_release(path, tmp_path / "out", ledger)
    found = verify_release(made.folder, ledger, path)
    assert found.sound, found.problems
    assert "the invariants" in found.checks
    microdata = made.folder / "public" / "microdata" / f"{name}.parquet"
    pl.read_parquet(microdata)[1:].write_parquet(microdata)
    rewritten(made.folder)
    assert verify_release(made.folder).sound
    (problem,) = verify_release(made.folder, plan=path).problems
    assert problem.startswith("invariants: ")


def test_another_plan_is_not_the_plan_of_the_release(case: Path, tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path / "ledger.db", case, ["topdown"])
    made = run_release(case / "topdown.yaml", tmp_path / "out", ledger)
    other = write_plan(case / "other.yaml", plan_of("topdown") | {"title": "Another title"})
    assert verify_release(made.folder, plan=other).problems == ("the plan is not the one of this release",)


@pytest.mark.parametrize("mechanism", ["swap", "topdown"])
def test_a_record_for_the_registry_is_published_and_sound(mechanism: str, case: Path, tmp_path: Path) -> None:
    path = write_plan(case / "registered.yaml", plan_of(mechanism) | {"registry": ABOUT})
    ledger = new_ledger(tmp_path / "ledger.db", case, [mechanism])
    made = run_release(path, tmp_path / "out", ledger)
    text = (made.folder / "public" / "registry.yaml").read_text(encoding="utf-8")
    record = Record.read(parse_yaml(text, "registry record"))
    assert record.deployment.basic.name == ABOUT["name"]
    assert lint(record, made.specification) == ()


def test_a_record_that_contradicts_itself_is_refused_before_anything_is_spent(
    case: Path, tmp_path: Path
) -> None:
    about = ABOUT | {"model": "Local", "model_details": "A trusted curator adds the noise centrally."}
    path = write_plan(case / "registered.yaml", plan_of("topdown") | {"registry": about})
    ledger = new_ledger(tmp_path / "ledger.db", case, ["topdown"])
    head = ledger.head()
    with pytest.raises(InputError, match="registry contradicts"):
        run_release(path, tmp_path / "out", ledger)
    assert ledger.head() == head
    assert not (tmp_path / "out").exists()


def test_the_release_table_comes_from_the_ledger(case: Path, tmp_path: Path) -> None:
    unit = plan_of("topdown")["mechanism"]["units"]["person"]
    unit = unit | {"budget": unit["budget"] | {"rho_squared": "0.1"}}
    plan = plan_of("topdown", units={"person": unit})
    plan["dataset"] = plan["dataset"] | {"ceiling": 1}
    write_plan(case / "topdown.yaml", plan)
    ledger = new_ledger(tmp_path / "ledger.db", case, ["topdown"])
    for number in range(2):
        path = write_plan(
            case / f"{number}.yaml", plan | {"name": f"release-{number}", "title": f"Title {number}"}
        )
        run_release(path, tmp_path / f"out-{number}", ledger)
    rows = pl.read_csv(tmp_path / "out-1" / "public" / "release-table.csv")
    text = (tmp_path / "out-1" / "public" / "release-table.md").read_text(encoding="utf-8")
    assert rows.height == 3
    assert "release of event" in text
    assert "ρ² = 0.2" in text
    ledger.non_private_step(plan["dataset"]["name"], "tuning", "a trial", by="Owner")
    last = write_plan(case / "last.yaml", plan | {"name": "release-last"})
    run_release(last, tmp_path / "out-last", ledger)
    told = (tmp_path / "out-last" / "public" / "release-table.md").read_text(encoding="utf-8")
    assert "tuning" in told
    assert "∞" in told
