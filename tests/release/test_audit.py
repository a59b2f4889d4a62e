"""Audits of plans: clean on what runs, refuting what claims too little or peeks, silent about the data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.small_release import SENTINEL, opened_ledger, tiny_county, village

from stirred.audit import Verdict
from stirred.errors import InputError, Refusal
from stirred.ledger import Ledger
from stirred.noise import TestSource
from stirred.release.audit import AuditRecord, audit_plan
from stirred.release.audited import audit_release
from stirred.release.dry_run import dry_run
from stirred.release.plan import Plan
from stirred.release.run import run_release
from stirred.release.swap_job import SwapJob
from stirred.release.topdown_job import TopDownJob
from stirred.release.verify import verify_release

PLANS = {"swap": village, "topdown": tiny_county}
both = pytest.mark.parametrize("mechanism", PLANS)


def _audited(path: Path, draws: int = 5000) -> AuditRecord:
    return audit_plan(path, random=TestSource(1), draws=draws)


def _claiming(path: Path, amount: str) -> Path:
    path.write_text(path.read_text(encoding="utf-8") + f"claim: {amount}\n", encoding="utf-8")
    return path


@both
def test_the_plans_audit_clean_with_every_kind_of_audit(mechanism: str, tmp_path: Path) -> None:
    record = _audited(PLANS[mechanism](tmp_path))
    assert record.clean
    kinds = {finding.audit for finding in record.findings}
    assert kinds == {"universe", "exact", "conformity", "statistical", "replay"}
    assert all(finding.verdict is Verdict.NOT_REFUTED for finding in record.findings)


@both
def test_the_record_says_nothing_of_the_data(mechanism: str, tmp_path: Path) -> None:
    record = _audited(PLANS[mechanism](tmp_path))
    assert SENTINEL not in record.to_json() and SENTINEL not in record.to_markdown()
    assert json.loads(record.to_json())["clean"] is True
    assert "verified" not in record.to_json()


@both
def test_a_plan_that_claims_half_its_budget_is_caught(mechanism: str, tmp_path: Path) -> None:
    path = PLANS[mechanism](tmp_path)
    guarantee = dry_run(path).specification
    _claiming(path, f"'{guarantee.budget.amount / 2}'")
    record = _audited(path)
    assert not record.clean
    (refuted,) = [finding for finding in record.findings if finding.violated]
    assert refuted.audit == "exact"
    assert refuted.certificate is not None
    assert refuted.certificate.measured > refuted.certificate.claimed
    with pytest.raises(Refusal, match="claims less"):
        dry_run(path)
    with pytest.raises(Refusal, match="claims less"):
        run_release(path, tmp_path / "out", None, random=TestSource(1))


@both
def test_a_larger_claim_is_kept(mechanism: str, tmp_path: Path) -> None:
    path = _claiming(PLANS[mechanism](tmp_path), "100")
    assert _audited(path).clean
    run_release(path, tmp_path / "out", None, random=TestSource(1))


def test_an_infinite_claim_is_refused(tmp_path: Path) -> None:
    path = _claiming(village(tmp_path), "inf")
    with pytest.raises(InputError):
        Plan.load(path)


def _swap_leak(job: SwapJob, folder: Path) -> None:
    frame = job.data().households
    (folder / "places.txt").write_text(str(frame.select("tenure", "place").rows()), encoding="utf-8")


def _topdown_leak(job: TopDownJob, folder: Path) -> None:
    counts, _ = job._prepared
    shape = [level.counts.tolist() for levels in counts.values() for level in levels]
    (folder / "shape.txt").write_text(str(shape), encoding="utf-8")


@pytest.mark.parametrize(
    ("mechanism", "job", "leak", "name"),
    [
        ("swap", SwapJob, _swap_leak, "places.txt"),
        ("topdown", TopDownJob, _topdown_leak, "shape.txt"),
    ],
)
def test_a_publication_that_peeks_is_caught_and_the_file_is_named(
    mechanism: str, job: Any, leak: Any, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = job.publish

    def publish(self: Any, primitive: Any, folder: Path, progress: Any = None) -> Any:
        leak(self, folder)
        return honest(self, primitive, folder, progress)

    monkeypatch.setattr(job, "publish", publish)
    record = _audited(PLANS[mechanism](tmp_path))
    (refuted,) = [finding for finding in record.findings if finding.violated]
    assert refuted.audit == "replay" and refuted.details["first difference"] == name


def test_an_error_that_depends_on_the_data_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = village(tmp_path)
    first = pl.read_parquet(tmp_path / "households.parquet").select("tenure", "place")
    honest = SwapJob.publish

    def publish(self: SwapJob, primitive: Any, folder: Path, progress: Any = None) -> Any:
        if not self.data().households.select("tenure", "place").equals(first):
            raise ValueError(SENTINEL)
        return honest(self, primitive, folder, progress)

    monkeypatch.setattr(SwapJob, "publish", publish)
    record = _audited(path)
    assert not record.clean and SENTINEL not in record.to_json()


@both
def test_the_release_carries_its_audit(mechanism: str, tmp_path: Path) -> None:
    path = PLANS[mechanism](tmp_path)
    ledger = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    record = _audited(path)
    made = run_release(path, tmp_path / "out", ledger, audit=record)
    public = made.folder / "public"
    assert json.loads((public / "audit.json").read_text(encoding="utf-8")) == record.record()
    facts = json.loads((public / "report.json").read_text(encoding="utf-8"))
    assert len(facts["audit"]["findings"]) == len(record.findings)
    for name in ("report.html", "report.md"):
        assert "never verifies one" in (public / name).read_text(encoding="utf-8")
    assert "public/audit.json" in made.manifest.files
    assert verify_release(made.folder, ledger).sound


def test_a_release_without_an_audit_says_so(tmp_path: Path) -> None:
    path = village(tmp_path)
    made = run_release(path, tmp_path / "out", None, random=TestSource(1))
    report = (made.folder / "internal" / "report.md").read_text(encoding="utf-8")
    assert "not audited" in report
    assert not (made.folder / "internal" / "audit.json").exists()


def test_a_refuted_or_foreign_audit_stops_the_release_before_anything_is_spent(tmp_path: Path) -> None:
    from dataclasses import replace

    path = village(tmp_path)
    ledger = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    record = _audited(path)
    broken = replace(record.findings[0], verdict=Verdict.VIOLATED)
    for audit, expected in [
        (replace(record, findings=(broken,)), Refusal),
        (replace(record, plan="0" * 64), InputError),
    ]:
        with pytest.raises(expected):
            run_release(path, tmp_path / "out", ledger, audit=audit)
    assert not (tmp_path / "out").exists()
    assert not ledger.statement("village").spends


@both
def test_a_release_is_audited_after_the_fact_and_stays_whole(mechanism: str, tmp_path: Path) -> None:
    path = PLANS[mechanism](tmp_path)
    ledger = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    made = run_release(path, tmp_path / "out", ledger)
    record = audit_release(path, made.folder, random=TestSource(2), draws=5000)
    assert record.clean
    assert json.loads((made.folder / "audit" / "audit.json").read_text(encoding="utf-8"))["clean"]
    assert verify_release(made.folder, ledger).sound


def test_a_release_of_another_plan_or_a_changed_one_is_not_audited(tmp_path: Path) -> None:
    path = village(tmp_path / "one")
    made = run_release(path, tmp_path / "out", None, random=TestSource(1))
    other = _claiming(village(tmp_path / "two"), "100")
    with pytest.raises(InputError, match="another plan"):
        audit_release(other, made.folder)
    (made.folder / "internal" / "specification.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="not as it was made"):
        audit_release(path, made.folder)


def test_a_universe_with_nothing_to_protect_is_vacuous(tmp_path: Path) -> None:
    path = village(tmp_path)
    frame = pl.read_parquet(tmp_path / "households.parquet")
    frame.with_columns(tenure=pl.lit("owned")).write_parquet(tmp_path / "households.parquet")
    record = _audited(path)
    assert record.clean
    verdicts = {finding.audit: finding.verdict for finding in record.findings}
    assert verdicts["universe"] is Verdict.VACUOUS and verdicts["replay"] is Verdict.VACUOUS


def test_persons_follow_their_household_in_the_replay(tmp_path: Path) -> None:
    path = village(tmp_path)
    homes = pl.read_parquet(tmp_path / "households.parquet")
    homes.select("id", "place").with_columns(age=pl.lit("old")).write_parquet(tmp_path / "persons.parquet")
    text = path.read_text(encoding="utf-8").replace(
        "  id: id\n",
        "  id: id\n  persons: persons.parquet\n  codebook:\n    attributes:\n"
        "      - {name: size, levels: [1, 2]}\n      - {name: tenure, levels: [owned, rented]}\n"
        "      - {name: place, levels: [north, east, south, west, middle]}\n"
        "      - {name: age, levels: [old, young]}\n",
    )
    path.write_text(text, encoding="utf-8")
    record = _audited(path)
    assert record.clean
    (replayed,) = [finding for finding in record.findings if finding.audit == "replay"]
    assert replayed.details["distance"] == "2"
