"""A kind of plan from outside: one noisy count, through every step, without a change to another module."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
from support.release_case import COMMON, CURATOR, OWNER
from typer.testing import CliRunner

from stirred.audit import Finding, statistical_audit
from stirred.cli.app import app
from stirred.data import Exposure, Exposures, read_table
from stirred.noise import RandomSource, Source, discrete_laplace
from stirred.release import KINDS, Job, Kind, Members, Product, opened
from stirred.report import Expected, Facts, InternalRecord, Section
from stirred.spec import (
    Block,
    Budget,
    Domain,
    Mechanism,
    Multiplicative,
    Release,
    Specification,
    SymmetricDifference,
    Trivial,
    Uncertainty,
    as_fraction,
    trial,
)

runner = CliRunner()


@dataclass(frozen=True)
class Counted:
    """Records that are counted; nothing of them is public."""

    records: int
    public: None = None


@dataclass(frozen=True)
class NoisyCount(Mechanism):
    """The number of records with discrete Laplace noise."""

    epsilon: Fraction

    def prepare(self, dataset: pl.DataFrame) -> Counted:
        return Counted(dataset.height)

    def guarantee(self, prepared: Counted) -> Specification:
        return Specification(
            domain=Domain(name="X", stage="edited file", meaning="all possible files of records"),
            multiverse=Trivial(),
            input_premetric=SymmetricDifference(unit="record"),
            output_premetric=Multiplicative(),
            budget=Budget.epsilon(self.epsilon),
            standing="proved",
        )

    def draw(self, prepared: Counted, random: Source | None = None) -> int:
        source = RandomSource() if random is None else random.spawn()
        return int(self.sample(prepared, 1, source)[0])

    def sample(self, prepared: Counted, count: int, random: Source) -> Any:
        return prepared.records + discrete_laplace(random.spawn(), 1 / self.epsilon, count)

    def finish(self, primitive: int, public: None) -> Release:
        error = Uncertainty("discrete Laplace", (2 / self.epsilon**2) ** 0.5)
        return Release({"count": primitive}, self.guarantee(Counted(0)), {"count": error}, reason=trial())

    def assess(self, primitive: int, prepared: Counted, made: Release | None = None) -> dict[str, int]:
        return {"error": primitive - prepared.records}


class CountSection(Block):
    """One noisy count."""

    kind: Literal["count"] = "count"
    file: str
    epsilon: str | int


class CountJob(Job):
    """Count, with noise."""

    @cached_property
    def mechanism(self) -> NoisyCount:
        return NoisyCount(as_fraction(self.section.epsilon))

    def read(self) -> pl.DataFrame:
        return read_table(self.folder / self.section.file, "mechanism.file")

    def tables(self) -> dict[str, pl.DataFrame]:
        return {"records": self.dataset}

    def facts(self) -> Facts:
        section = Section("count", "How one number is counted", facts={"epsilon": self.mechanism.epsilon})
        expected = (Expected("The number of records", Uncertainty("discrete Laplace", 2.83)),)
        return Facts("A noisy count", expected=expected, sections=(section,))

    def exposures(self) -> Exposures:
        return Exposures((Exposure("record", 0, 0, 0, sized=False),))

    def products(self, made: Release) -> Iterable[Product]:
        frame = pl.DataFrame({"what": ["records"], "count": [made.products["count"]]})
        yield Product(
            "tables/count", "table", "The number of records", frame, made.uncertainty["count"], {}, "what"
        )

    def assess(self, primitive: int, made: Release) -> InternalRecord:
        return InternalRecord({"count": pl.DataFrame([self.mechanism.assess(primitive, self.prepared)])})

    def audits(self, claim: Specification, source: Source, draws: int) -> list[Finding]:
        pairs = [(self.dataset, self.dataset.head(self.dataset.height - 1))]
        subject = "the count, with and without a record"
        return [statistical_audit(self.mechanism, pairs, claim, draws=draws, source=source, subject=subject)]

    def members(self, claim: Specification, source: Source) -> Members:
        return Members([self.dataset.tail(self.dataset.height - 1)])


STARTER = """\
mechanism:
  kind: count
  file: records.parquet
  epsilon: 1/2
"""
COUNT = Kind("count", CountSection, CountJob, STARTER, 3, "epsilon")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(KINDS, "count", COUNT)
    pl.DataFrame({"sex": ["f", "m"] * 20}).write_parquet(tmp_path / "records.parquet")
    return tmp_path


def said(*arguments: object, code: int = 0) -> dict[str, Any]:
    result = runner.invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == code, result.stdout
    return json.loads(result.stdout)


def filled_in(path: Path) -> Path:
    """The starter plan, with its checklist settled."""
    import yaml

    plan = yaml.safe_load(path.read_text(encoding="utf-8")) | {"name": path.stem, **COMMON}
    plan["dataset"] = {"name": "records", "ceiling": 3}
    path.write_text(yaml.safe_dump(plan), encoding="utf-8")
    return path


def test_a_kind_from_outside_goes_through_every_step(place: Path) -> None:
    book, plans = place / "ledger.db", [place / "one.yaml", place / "two.yaml"]
    for plan in plans:
        assert said("release", "new", "count", "--output", plan)["mechanism"] == "count"
        filled_in(plan)
        assert said("release", "check", plan)["open_steps"] == []
    assert "CountSection" in json.dumps(said("release", "schema"))
    dry = said("release", "run", plans[0], "--dry-run")
    assert dry["mechanism"] == "A noisy count" and dry["expected"][0]["scale"] == 2.83
    said("release", "open", plans[0], "--ledger", book, "--by", OWNER)
    assert said("audit", "run", plans[0], "--draws", 2000)["clean"]
    for plan in plans:
        said("release", "run", plan, "--ledger", book, "--output", place / plan.stem)
        made = said("release", "verify", place / plan.stem, "--ledger", book, "--plan", plan)
        assert made["sound"] and "the guarantee" in made["checks"]
    public = place / "one" / "public"
    report = json.loads((public / "report.json").read_text(encoding="utf-8"))
    assert report["sections"]["count"]["facts"]["epsilon"] == {"value": 0.5, "exact": "1/2"}
    assert "How one number is counted" in (public / "report.html").read_text(encoding="utf-8")
    assert "How one number is counted" in (public / "report.md").read_text(encoding="utf-8")
    compared = said("release", "compare", place / "one", place / "two")
    assert compared["overall"] == "equivalent" and compared["joint_guarantee"]["budget"]["amounts"] == ["1"]
    assert said("ledger", "show", book)
    assert CURATOR in (place / "one.yaml").read_text(encoding="utf-8")


def test_a_kind_that_nobody_registered_is_named(tmp_path: Path) -> None:
    problem = said("release", "new", "count", "--output", tmp_path / "plan.yaml", code=2)["error"]
    assert problem["field"] == "mechanism.kind" and "swap" in problem["expected"]
    assert not (tmp_path / "plan.yaml").exists()


def test_the_replay_of_a_kind_from_outside_sees_a_leak(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the job publishes besides its draw is compared with other data sets, as for any kind."""
    honest = CountJob.products

    def products(self: CountJob, made: Release) -> Iterable[Product]:
        yield from honest(self, made)
        frame = pl.DataFrame({"what": ["records"], "count": [self.dataset.height]})
        yield Product("tables/leak", "table", "A leak", frame, Uncertainty.exact())

    monkeypatch.setattr(CountJob, "products", products)
    said("release", "new", "count", "--output", place / "one.yaml")
    found = said("audit", "run", filled_in(place / "one.yaml"), "--draws", 2000, code=3)
    assert [f["audit"] for f in found["findings"] if f["verdict"] == "violated"] == ["replay"]


def test_the_plan_is_read_once_and_a_job_opens_itself(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stirred.release import Plan

    said("release", "new", "count", "--output", place / "one.yaml")
    filled_in(place / "one.yaml")
    seen, honest = [], Plan.load.__func__
    monkeypatch.setattr(Plan, "load", classmethod(lambda cls, path: seen.append(path) or honest(cls, path)))
    job = opened(place / "one.yaml")
    assert opened(job) is job and len(seen) == 1


def test_a_trial_does_not_say_that_a_checklist_was_settled(place: Path) -> None:
    """A defect of the first trials by this way: every step was called settled, although nobody had looked."""
    from stirred.noise import TestSource
    from stirred.release import trial, trial_of

    job = trial_of({"kind": "count", "file": str(place / "records.parquet"), "epsilon": 1})
    made = trial(job, place / "tried", random=TestSource(1))
    report = json.loads((made.folder / "internal" / "report.json").read_text(encoding="utf-8"))
    assert report["checklist"]["sentence"] == "A trial: the checklist was not consulted."
    assert {step["state"] for step in report["checklist"]["steps"]} == {"not consulted", "this release"}
    assert not made.publishable and "a trial" in made.manifest.facts["reason"]
