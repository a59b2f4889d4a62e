"""Killed at every step between spend and rename; two releases at once: a true ledger, and one release."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.release_case import MECHANISMS, new_ledger, plan_of, write_case, write_plan
from support.releasing import run_release

from stirred.ledger import OverBudget

HARNESS = Path(__file__).parent / "fault_harness.py"
KILLED = -9
RESUMED = 10
both = pytest.mark.parametrize("mechanism", MECHANISMS)

# Status of the spends just after the death, whether the folder is there, whether a part is left, and how the
# next run ends: -1 where there is none.
AFTER: dict[str, tuple[list[str], bool, bool, int]] = {
    "before the spend": ([], False, False, 0),
    "after the spend": (["open"], False, False, RESUMED),
    "while words are drawn": (["open"], False, True, RESUMED),
    "after the draw": (["open"], False, True, RESUMED),
    "while tables are written": (["open"], False, True, RESUMED),
    "before the documents": (["open"], False, True, RESUMED),
    "before the manifest": (["open"], False, True, RESUMED),
    "after the manifest": (["open"], False, True, RESUMED),
    "after the finish": (["finished"], False, True, RESUMED),
    "after the rename": (["finished"], True, False, -1),
}


def harness(scenario: str, case: Path, mechanism: str, where: Path, *rest: object) -> Any:
    done = subprocess.run(
        [sys.executable, str(HARNESS), scenario, str(case), mechanism, str(where), *map(str, rest)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def prepared(place: Path, case: Path, mechanism: str, folders: list[str]) -> None:
    """The same fresh ledger in several folders."""
    place.mkdir()
    new_ledger(place / "ledger.db", case, [mechanism])
    for name in folders:
        (place / name).mkdir()
        for path in place.glob("ledger.db*"):
            shutil.copy2(path, place / name / path.name)


def require_released(end: dict[str, Any], attempts: list[int] | None = None) -> None:
    """One spend, one sound folder, nothing beside it."""
    assert end["ledger"] == []
    assert end["statuses"] == ["finished"]
    assert end["public"] is True
    assert end["problems"] == []
    assert end["beside"] == []
    if attempts is not None:
        assert end["attempts"] == attempts


ALL = tuple(AFTER)
SOME = ("after the spend", "while tables are written", "after the finish")


@pytest.mark.parametrize(
    ("mechanism", "points"),
    [
        ("swap", SOME),
        ("topdown", SOME),
        pytest.param("swap", ALL, marks=pytest.mark.slow),
        pytest.param("topdown", ALL, marks=pytest.mark.slow),
    ],
    ids=["swap-some", "topdown-some", "swap", "topdown"],
)
def test_killed_at_every_step(mechanism: str, points: tuple[str, ...], tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    prepared(tmp_path / "runs", case, mechanism, [str(number) for number in range(len(AFTER))])
    found = harness("points", case, mechanism, tmp_path / "runs", *points)
    assert tuple(found) == points
    for point, seen in found.items():
        statuses, public, part, again = AFTER[point]
        after = seen["after"]
        assert seen["code"] == KILLED, point
        assert after["ledger"] == [], point
        assert after["statuses"] == statuses, point
        assert after["public"] is public, point
        assert bool(after["beside"]) is part, point
        assert (-1 if seen["again"] is None else seen["again"]) == again, point
        require_released(seen["end"], [2] if statuses == ["open"] else [1])


@both
def test_a_changed_plan_does_not_resume_what_was_paid_for(mechanism: str, tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    new_ledger(tmp_path / "ledger.db", case, [mechanism])
    seen = harness("changed", case, mechanism, tmp_path / "ledger.db")
    assert seen["code"] == KILLED
    assert seen["refused"] == "not-open"
    assert seen["end"]["statuses"] == ["open"]
    assert seen["end"]["public"] is False


@pytest.mark.slow
@both
def test_killed_at_many_lines(mechanism: str, tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    prepared(tmp_path / "runs", case, mechanism, [f"line{number:03}" for number in range(300)])
    results = harness("lines", case, mechanism, tmp_path / "runs", 17)["results"]
    assert len(results) > 6
    assert results[-1]["code"] == 0
    for seen in results:
        assert seen["after"]["ledger"] == []
        assert seen["after"]["problems"] in ([], None)
        assert len(seen["after"]["statuses"]) <= 1
        require_released(seen["end"])


@both
def test_of_two_processes_one_publishes_and_one_spend_is_made(mechanism: str, tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    new_ledger(tmp_path / "ledger.db", case, [mechanism])
    seen = harness("compete", case, mechanism, tmp_path / "ledger.db", 2, 0.0, True)
    require_released(seen["end"], [1])
    assert seen["codes"] == [0, 3]


@pytest.mark.slow
@both
@pytest.mark.parametrize("pause", [0.0, 0.2])
@pytest.mark.parametrize("locks", [True, False])
def test_of_several_processes_one_publishes(
    mechanism: str, pause: float, locks: bool, tmp_path: Path
) -> None:
    case = write_case(tmp_path / "case")
    new_ledger(tmp_path / "ledger.db", case, [mechanism])
    seen = harness("compete", case, mechanism, tmp_path / "ledger.db", 5, pause, locks)
    if locks:
        require_released(seen["end"], [1])
        assert seen["codes"] == [0, 3, 3, 3, 3]
    else:
        require_released(seen["end"])
        assert set(seen["codes"]) <= {0, 2, 3, RESUMED}
        assert set(seen["codes"]) & {0, RESUMED}


def test_ten_releases_of_a_tenth_fit_in_one_and_the_eleventh_is_refused(tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    unit = plan_of("topdown")["mechanism"]["units"]["person"]
    unit = unit | {"budget": unit["budget"] | {"rho_squared": "0.1"}}
    plan = plan_of("topdown", units={"person": unit})
    plan["dataset"] = plan["dataset"] | {"ceiling": 1}
    write_plan(case / "topdown.yaml", plan)
    ledger = new_ledger(tmp_path / "ledger.db", case, ["topdown"])
    for number in range(10):
        path = write_plan(case / f"{number}.yaml", plan | {"name": f"release-{number}"})
        run_release(path, tmp_path / f"out-{number}", ledger)
    path = write_plan(case / "last.yaml", plan | {"name": "release-last"})
    with pytest.raises(OverBudget) as refused:
        run_release(path, tmp_path / "out-last", ledger)
    said = refused.value.as_dict()
    assert [said[k] for k in ("requested", "remaining", "difference")] == ["ρ² = 1/10", "ρ² = 0", "ρ² = 1/10"]
    assert not (tmp_path / "out-last").exists()
    assert len(ledger.statement("small-persons").spends) == 10
    assert ledger.verify().ok
