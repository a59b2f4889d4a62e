"""Two plans, or two releases, side by side."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
from support.releasing import run_release
from support.small_release import opened_ledger, tiny_county, village

from stirred.errors import InputError
from stirred.ledger import Ledger
from stirred.release import compare as compare_releases
from stirred.release.side_by_side import NOT_COMPARABLE

DOMAIN = """\
domain:
  name: X_place
  stage: edited file
  structure: multiset
  meaning: all possible edited files of the place
  record_schema:
    attributes:
      - {name: size}
      - {name: tenure}
      - {name: place}
      - {name: county}
      - {name: tract}
      - {name: block}
      - {name: quarters}
      - {name: sex}
      - {name: age}
      - {name: occupancy}
    nesting: [[block, tract], [tract, county]]
"""


class Case(NamedTuple):
    swap_plan: Path
    topdown_plan: Path
    swapped: Path
    noisy: Path


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("compare")
    plans = village(folder / "v"), tiny_county(folder / "t")
    for plan in plans:
        plan.write_text(plan.read_text(encoding="utf-8") + DOMAIN, encoding="utf-8")
    ledger = Ledger.open(opened_ledger(folder / "ledger.db", *plans))
    for plan, name in zip(plans, ("swapped", "noisy"), strict=True):
        run_release(plan, folder / name, ledger)
    return Case(*plans, folder / "swapped", folder / "noisy")


def test_swapping_and_topdown_are_incomparable_and_the_budgets_are_not_ranked(case: Case) -> None:
    found = compare_releases(case.swap_plan, case.topdown_plan).record()
    assert found["overall"] == "incomparable"
    assert found["budgets_comparable"] is False
    assert found["warning"] == NOT_COMPARABLE
    orders = {row["block"]: row["order"] for row in found["blocks"]}
    assert orders["domain"] == "equivalent"
    assert set(orders) == {"domain", "multiverse", "input_premetric", "output_premetric", "budget"}
    assert "the number of persons in each county" in found["invariants"]["second"]
    assert found["invariants"]["both"] == []


def test_a_plan_against_itself_is_equivalent_and_shares_its_invariants(case: Case) -> None:
    found = compare_releases(case.swap_plan, case.swap_plan).record()
    assert (found["overall"], found["budgets_comparable"], found["warning"]) == ("equivalent", True, "")
    assert found["invariants"]["first"] == found["invariants"]["second"] == []
    assert len(found["invariants"]["both"]) == 2


def test_a_release_promises_what_its_plan_promised(case: Case) -> None:
    for plan, folder in ((case.swap_plan, case.swapped), (case.topdown_plan, case.noisy)):
        both = compare_releases(plan, folder)
        assert both.record()["overall"] == "equivalent"
        assert both.first.name == both.second.name
        assert both.first.measured == ()
        said = [e.uncertainty for e in both.second.expected]
        assert said == [e.uncertainty for e in both.first.expected] != []


def test_measured_errors_are_kept_apart_and_name_their_unit(case: Case) -> None:
    found = compare_releases(case.swapped, case.noisy)
    own = [row["table"] for row in found.first.measured]
    assert own == ["Households: place * tenure", "Households: place * size"]
    names = [row["table"] for row in found.second.measured]
    assert len(names) == len(set(names))
    assert {name.split(":")[0] for name in names} == {"Persons", "Housing units"}
    assert found.first.measured[1]["mean_absolute"] == 0
    assert "measured" not in str(found.record().keys())
    assert "mean_absolute" not in str(found.record())


def test_a_public_folder_alone_has_no_measured_error(case: Case, tmp_path: Path) -> None:
    outside = tmp_path / "received"
    shutil.copytree(case.swapped, outside)
    shutil.rmtree(outside / "internal")
    found = compare_releases(outside, case.swap_plan)
    assert found.first.measured == ()
    assert found.record()["overall"] == "equivalent"


def test_the_page_shows_both_and_no_measured_error(case: Case) -> None:
    page = compare_releases(case.swapped, case.noisy).page()
    assert "village" in page and "tiny" in page
    assert "incomparable" in page
    assert "mean absolute" not in page.lower()
    assert "src=" not in page and "http-equiv" not in page


def test_what_is_no_release_is_refused(case: Case, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no readable manifest"):
        compare_releases(tmp_path, case.swap_plan)
    broken = tmp_path / "broken"
    shutil.copytree(case.swapped, broken)
    (broken / "public" / "specification.json").unlink()
    with pytest.raises(InputError, match="no specification"):
        compare_releases(broken, case.swap_plan)
    with pytest.raises(InputError, match="could not be read"):
        compare_releases(case.swap_plan, tmp_path / "absent.yaml")
