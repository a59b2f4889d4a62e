"""Plans: what they describe, what a run of one writes, and what is refused before anything is drawn."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest
from support.releasing import TRIAL, files_of, reason_of, report_of, try_topdown
from support.tiny_plan import PLAN, write_plan

from stirred.documents import read_yaml
from stirred.errors import InputError, Refusal, StirredError
from stirred.noise import Source, TestSource
from stirred.spec import Specification
from stirred.topdown import Measurements, Plan


class Unused(Source):
    """Fails when it is asked for randomness."""

    publishable = True

    def __init__(self) -> None:
        pass

    def child(self, *path: int) -> Source:
        return self

    def spawn(self) -> Source:
        return self

    def words(self, count: int) -> object:  # type: ignore[override]
        raise AssertionError("noise was drawn")

    def _key_after_fork(self) -> bytes:
        return b""


def test_decimals_of_a_plan_are_exact(tmp_path: Path) -> None:
    plan = Plan.load(write_plan(tmp_path))
    mechanism = plan.mechanism(tmp_path)
    persons, units = mechanism.universes
    assert persons.allocation.rho_squared == Fraction(5, 2)
    assert persons.allocation.levels["county"] == Fraction(1, 4)
    assert units.allocation.rho_squared == Fraction(1, 3)
    assert mechanism.guarantee().budget.amount.rational == Fraction(17, 6)


def test_json_is_a_plan_too(tmp_path: Path) -> None:
    path = write_plan(tmp_path)
    other = tmp_path / "plan.json"
    other.write_text(json.dumps(read_yaml(path)), encoding="utf-8")
    assert Plan.load(other) == Plan.load(path)


def test_a_run_writes_everything(tmp_path: Path) -> None:
    made = try_topdown(write_plan(tmp_path), tmp_path / "out")
    assert not made.publishable and reason_of(made) == TRIAL
    assert files_of(made.folder) == {
        "manifest.json",
        "internal/accuracy-housing_unit.csv",
        "internal/accuracy-person.csv",
        "internal/data-dictionary.json",
        "internal/errors.json",
        "internal/microdata/housing_unit.parquet",
        "internal/microdata/person.parquet",
        *(f"internal/release-table.{ending}" for ending in ("csv", "json", "md")),
        "internal/report-internal.html",
        *(f"internal/report.{ending}" for ending in ("html", "json", "md")),
        "internal/seals.json",
        "internal/specification.json",
        *(
            f"internal/tables/{table}.{ending}"
            for table in ("housing_unit-block-occupancy", "person-tract-sex-age")
            for ending in ("csv", "parquet")
        ),
        *(
            f"internal/measurements/{unit}/{level}.parquet"
            for unit in ("person", "housing_unit")
            for level in ("0-county", "1-tract", "2-block")
        ),
    }
    made_in = tmp_path / "out" / "internal"
    text = (made_in / "specification.json").read_text(encoding="utf-8")
    assert Specification.from_json(text) == made.specification
    persons, truth = (
        pl.read_parquet(made_in / "microdata" / "person.parquet"),
        pl.read_parquet(tmp_path / "persons.parquet"),
    )
    assert persons.height == truth.height
    assert not persons.filter((pl.col("quarters") == 2) & (pl.col("age") == "child")).height
    in_quarters = persons.filter(pl.col("quarters") == 2)
    assert in_quarters["block"].unique().to_list() == ["113"]
    units = pl.read_parquet(made_in / "microdata" / "housing_unit.parquet")["block"]
    units = units.value_counts().sort("block")
    assert units.equals(pl.read_parquet(tmp_path / "units.parquet")["block"].value_counts().sort("block"))
    table = pl.read_csv(
        made_in / "tables" / "person-tract-sex-age.csv", schema_overrides={"tract": pl.String}
    )
    counted = (
        persons.with_columns(tract=pl.col("block").str.slice(0, 2)).group_by("tract", "sex", "age").len()
    )
    joined = table.join(counted, on=["tract", "sex", "age"], how="left").fill_null(0)
    assert (joined["count"] == joined["len"]).all()
    assert (table["low_95"] < table["estimate"]).all()
    assert (table["estimate"] < table["high_95"]).all()


def test_the_report_of_a_run_has_constraints_columns_and_the_split_of_the_budget(tmp_path: Path) -> None:
    path = write_plan(tmp_path)
    try_topdown(path, tmp_path / "out")
    report, mechanism = report_of(tmp_path / "out"), Plan.load(path).mechanism(tmp_path)
    exact = [f"{statistic['sentence']} is exact" for statistic in report["exact"]["statistics"]]
    assert [*exact, *report["exact"]["constraints"]] == [c.sentence() for c in mechanism.constraints]
    assert len(exact) == 3
    columns = {name: [c["name"] for c in d["columns"]] for d in report["dictionary"] for name in d["files"]}
    for universe in mechanism.universes:
        assert columns[f"microdata/{universe.unit}.parquet"] == ["block", *universe.schema.names]
    (grid,) = report["sections"]["budget"]["grids"]
    spent = {row["part"]: Fraction(row["amount"]["exact"]) for row in grid["rows"]}
    names = {"person": "persons", "housing_unit": "housing units"}
    expected = {
        f"{names[row['unit']]}, {row['level']}, {row['query']}": Fraction(row["rho_squared_exact"])
        for universe in mechanism.universes
        for row in universe.allocation.to_polars().with_columns(unit=pl.lit(universe.unit)).to_dicts()
    }
    assert spent == expected
    assert sum(spent.values()) == Fraction(17, 6)


def test_a_test_seed_writes_nothing_public(tmp_path: Path) -> None:
    made = try_topdown(write_plan(tmp_path), tmp_path / "out", TestSource(1))
    assert not made.publishable
    assert not (tmp_path / "out" / "public").exists()
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["reason"]


def test_measurements_can_be_read_again(tmp_path: Path) -> None:
    path = write_plan(tmp_path)
    try_topdown(path, tmp_path / "out")
    mechanism = Plan.load(path).mechanism(tmp_path)
    folder = tmp_path / "out" / "internal" / "measurements" / "person"
    again = Measurements.read(mechanism.designs["person"], folder)
    assert sum(chunk.stop - chunk.start for chunk in again.level(2)) == 8


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rho_squared: 2.5", "rho_squared: 0", "rho"),
        ("sex * age: 3/10, detailed: 6/10", "sex * age: 3/10, detailed: 5/10", "9/10"),
        ("sex * age: 3/10", "sex * height: 3/10", "unknown attribute"),
        ("county: 0.25, tract: 0.25, block: 1/2", "county: 0, tract: 1/2, block: 1/2", "county"),
        ("levels: {county: 0.25", "levels: {state: 0.25", "levels"),
        ("tables:", "tabels:", "tabels"),
        ("cap: 60", "cap: 2", "cannot hold together|break a constraint"),
        ("  - {level: tract, query: sex * age}", "  - {level: village, query: sex}", "village"),
        ("  - {level: tract, query: sex * age}", "  - {unit: group_quarters, level: tract}", "not measured"),
        ("    file: quarters.parquet", "    file: nowhere.parquet", "nowhere.parquet"),
        (
            "kind: structural_zero, where: {quarters: [2]",
            "kind: structural_zero, where: {quarters: [1]",
            "no record has quarters",
        ),
        ("units:", "units: [", "not well-formed at line"),
    ],
)
def test_refused_before_anything_is_drawn_or_written(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in PLAN
    path = write_plan(tmp_path, PLAN.replace(old, new))
    with pytest.raises(StirredError, match=said):
        try_topdown(path, tmp_path / "out", Unused())
    assert sorted(p.name for p in tmp_path.iterdir() if "out" in p.name) == []


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="exists already"):
        try_topdown(write_plan(tmp_path), tmp_path / "out", Unused())


def test_presets_bring_their_constraints(tmp_path: Path) -> None:
    write_plan(tmp_path)
    plan = Plan.read(
        {
            "geography": {"file": "blocks.parquet", "levels": ["county", "tract", "block"]},
            "units": {"housing_unit": {"file": "units.parquet", "preset": "pl-2020-us-units"}},
        }
    )
    mechanism = plan.mechanism(tmp_path)
    assert [c.sentence() for c in mechanism.constraints] == [
        "the number of housing units in each block is exact"
    ]
    assert mechanism.guarantee().budget.amount.rational == Fraction(11417641, 152349649)


def test_geography_from_prefixes(tmp_path: Path) -> None:
    write_plan(tmp_path)
    from stirred.topdown.plan import Geography

    spine = Geography(file="blocks.parquet", code="block", prefixes={"all": 0, "tract": 2, "block": 3}).spine(
        tmp_path
    )
    assert spine.levels == ("all", "tract", "block")
    assert [spine.size(level) for level in range(3)] == [1, 2, 8]


def test_estimation_again_from_the_same_measurements_draws_nothing(tmp_path: Path) -> None:
    path = write_plan(tmp_path)
    try_topdown(path, tmp_path / "first")
    measurements = tmp_path / "first" / "internal" / "measurements"
    again = try_topdown(path, tmp_path / "second", Unused(), drawn=measurements)
    assert reason_of(again) == TRIAL
    for file in ("person", "housing_unit"):
        made_in = (tmp_path / name / "internal" / "microdata" for name in ("first", "second"))
        first, second = ((folder / f"{file}.parquet").read_bytes() for folder in made_in)
        assert first == second


def test_measurements_are_kept_where_no_table_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_plan(tmp_path)
    from stirred.topdown import estimation

    def refused(*_: object) -> None:
        raise Refusal("no table", field="rows", expected="a table", hint="none")

    with monkeypatch.context() as patch:
        patch.setattr(estimation, "estimate_family", refused)
        with pytest.raises(Refusal, match="county 1: no table"):
            try_topdown(path, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["publishable"] is False
    said = "drawn only: no table was found for the nodes of county 1: no table"
    assert manifest["reason"] == f"{TRIAL}; {said}"
    measurements = tmp_path / "out" / "internal" / "measurements"
    assert all(
        name.startswith("internal/measurements/") or name in {"manifest.json", "internal/seals.json"}
        for name in files_of(tmp_path / "out")
    )
    again = try_topdown(path, tmp_path / "again", Unused(), drawn=measurements)
    assert reason_of(again) == TRIAL


def test_a_target_accuracy_decides_the_budget(tmp_path: Path) -> None:
    wanted = "accuracy:\n  - {level: tract, query: age * sex, standard_deviation: 1.5}\ntables:"
    path = write_plan(tmp_path, PLAN.replace("tables:", wanted))
    persons, units = Plan.load(path).mechanism(tmp_path).universes
    assert persons.allocation.variance("tract", "sex * age") == Fraction(9, 4)
    assert persons.allocation.levels["county"] == Fraction(1, 4)
    assert units.allocation.rho_squared == Fraction(1, 3)
    assert persons.allocation.checked_total() == persons.allocation.rho_squared


@pytest.mark.parametrize(
    "target",
    [
        "{level: tract, query: quarters, standard_deviation: 1}",
        "{level: village, query: total, standard_deviation: 1}",
        "{level: tract, query: total, standard_deviation: 0}",
        "{level: tract, query: total, standard_deviation: 1}\n"
        "  - {level: block, query: total, standard_deviation: 1}",
    ],
)
def test_a_target_accuracy_that_cannot_be_aimed_at_is_refused(tmp_path: Path, target: str) -> None:
    path = write_plan(tmp_path, PLAN.replace("tables:", f"accuracy:\n  - {target}\ntables:"))
    with pytest.raises(InputError) as refusal:
        Plan.load(path).mechanism(tmp_path)
    assert refusal.value.field == "accuracy"
