"""Starter plans: they load as they are, explain every step, and run once they are filled in."""

from __future__ import annotations

from pathlib import Path

import pytest

from stirred.casebook.county import County, synthetic_county
from stirred.release import KINDS, Plan, dry_run, starter_plan
from stirred.report.checklist import STEPS


@pytest.fixture(scope="module")
def county() -> County:
    return synthetic_county()


def filled(text: str) -> str:
    done = text.replace("status: open", "status: done").replace('owner: ""', "owner: Ada")
    return done.replace("evidence: []", "evidence: [minutes]")


@pytest.mark.parametrize("mechanism", KINDS)
def test_a_starter_loads_and_leaves_every_mandatory_step_open(mechanism: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(starter_plan(mechanism), encoding="utf-8")
    plan = Plan.load(path)
    assert plan.mechanism.kind == mechanism
    assert plan.dataset.ceiling is not None
    mandatory = [step.number for step in STEPS if step.mandatory and step.number < 11]
    assert [step.step for step in plan.checklist.blocking()] == mandatory


@pytest.mark.parametrize("mechanism", KINDS)
def test_a_starter_explains_its_steps_and_its_currency(mechanism: str) -> None:
    text = starter_plan(mechanism)
    for definition in STEPS:
        assert f"# {definition.number}. {definition.title}" in text
    assert ("epsilon" if mechanism == "swap" else "rho squared") in text
    assert "{" not in text.split("mechanism:")[0]
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize("mechanism", KINDS)
def test_a_starter_that_is_filled_in_runs_dry_on_a_county(
    mechanism: str, tmp_path: Path, county: County
) -> None:
    """Its columns, files, presets and ceiling are those of a county such as the demonstration's."""
    county.write(tmp_path)
    path = tmp_path / "plan.yaml"
    path.write_text(filled(starter_plan(mechanism)), encoding="utf-8")
    found = dry_run(path)
    assert found.open_steps == ()
    assert found.warnings == ()
    assert [e.product for e in found.facts.expected]
    ceiling = Plan.load(path).dataset.ceiling
    assert float(found.specification.budget.amount) <= float(str(ceiling))
