"""Plans: what they accept, what they refuse by name, what freezes them, and their JSON Schema."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml
from support.small_release import tiny_county, village

from stirred.casebook.demonstration import PLANS, example_plan
from stirred.errors import StirredError
from stirred.release import KINDS, Plan, plan_schema, starter_plan
from stirred.release.kinds.swap.section import SwapSection
from stirred.release.kinds.topdown.section import TopDownSection

VALIDATOR = jsonschema.Draft202012Validator(plan_schema())


def edited(folder: Path, old: str, new: str) -> Path:
    path = village(folder)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def refused(path: Path) -> StirredError:
    with pytest.raises(StirredError) as found:
        Plan.load(path)
    return found.value


def test_both_mechanisms_load_by_their_kind(tmp_path: Path) -> None:
    swapped, noisy = Plan.load(village(tmp_path / "v")), Plan.load(tiny_county(tmp_path / "t"))
    assert isinstance(swapped.mechanism, SwapSection)
    assert isinstance(noisy.mechanism, TopDownSection)
    assert noisy.mechanism.units["person"].budget is not None
    assert not swapped.checklist.blocking()


def test_a_decimal_stays_what_was_written(tmp_path: Path) -> None:
    plan = Plan.load(edited(tmp_path, "ceiling: 5", "ceiling: 5.10"))
    assert plan.dataset.ceiling == "5.10"
    plan = Plan.load(edited(tmp_path, "rate: 1/2", "rate: 0.1"))
    assert isinstance(plan.mechanism, SwapSection)
    assert plan.mechanism.rate == "0.1"


@pytest.mark.parametrize(
    ("old", "new", "field", "word"),
    [
        ("curator: Ben", "curater: Ben", "curater", "curator"),
        ("  match: [size]", "  mach: [size]", "mechanism.mach", "unknown key"),
        ("agency: Office\n", "", "agency", "missing"),
        ("population: 1000", "population: many", "dataset.population", "integer"),
        ("kind: swap", "kind: shuffle", "mechanism.kind", "swap"),
        ("  rate: 1/2\n", "", "mechanism", "rate and target_epsilon"),
        ("rate: 1/2", "rate: 1/2\n  target_epsilon: 3", "mechanism", "rate and target_epsilon"),
        ("rate: 1/2", "target_epsilon: 3\n  loss: tighter", "mechanism", "tighter"),
        ("rate: 1/2", "rate: 1/2\n  provenance: from the data", "provenance", "assumption"),
        ("name: village\n", "name: Our Village\n", "name", "pattern"),
    ],
)
def test_a_bad_plan_is_refused_by_field(tmp_path: Path, old: str, new: str, field: str, word: str) -> None:
    error = refused(edited(tmp_path, old, new))
    assert error.exit_code == 2
    assert field in error.field
    assert word in str(error)
    assert error.hint


@pytest.mark.parametrize("text", ["", "- a\n- b\n", "just words\n"])
def test_a_plan_is_a_mapping(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.yaml").write_text(text, encoding="utf-8")
    error = refused(tmp_path / "plan.yaml")
    assert "stirred release new" in error.hint


def test_the_digest_freezes_every_key_and_no_layout(tmp_path: Path) -> None:
    path = village(tmp_path)
    text, first = path.read_text(encoding="utf-8"), Plan.load(path).digest
    path.write_text("# a remark\n" + text.replace("population: 1000", "population:   1000"), encoding="utf-8")
    assert Plan.load(path).digest == first
    changes = [("population: 1000", "population: 1001"), ("rate: 1/2", "rate: 1/3"), ("minutes", "hours")]
    digests = set()
    for old, new in changes:
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
        digests.add(Plan.load(path).digest)
    assert len(digests | {first}) == 4


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    assert set(plan_schema()["required"]) == {"name", "title", "agency", "curator", "dataset", "mechanism"}


@pytest.mark.parametrize(
    "text",
    [*map(example_plan, PLANS), *map(starter_plan, KINDS)],
    ids=[f"example-{name}" for name in PLANS] + [f"starter-{name}" for name in KINDS],
)
def test_the_schema_accepts_the_plans_that_we_ship(text: str) -> None:
    VALIDATOR.validate(yaml.safe_load(text))


@pytest.mark.parametrize("name", PLANS)
def test_the_schema_refuses_what_the_plan_refuses(name: str) -> None:
    body = yaml.safe_load(example_plan(name))
    for wrong in (
        body | {"curater": "somebody"},
        {key: value for key, value in body.items() if key != "agency"},
        body | {"mechanism": body["mechanism"] | {"kind": "shuffle"}},
        body | {"mechanism": body["mechanism"] | {"provenance": "from the data"}},
        body | {"mechanism": body["mechanism"] | {"tabels": []}},
    ):
        assert not VALIDATOR.is_valid(wrong)


def test_the_stage_of_a_topdown_plan_is_that_of_the_plan(tmp_path: Path) -> None:
    """A fault of the past: TopDown had a stage of its own, and the report another."""
    from support.release_case import topdown_plan, write_case, write_plan

    from stirred.errors import InputError
    from stirred.release import opened

    case = write_case(tmp_path / "case")
    job = opened(write_plan(case / "other.yaml", topdown_plan() | {"stage": "raw responses"}))
    assert job.specification().domain.stage.value == "raw responses"
    with pytest.raises(InputError, match="stage of its own"):
        opened(write_plan(case / "own.yaml", topdown_plan(stage="population")))
