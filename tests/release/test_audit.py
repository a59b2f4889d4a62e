"""Audits of plans: clean on what runs, refuting what claims too little or peeks, silent about the data."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from support.releasing import run_release
from support.small_release import SENTINEL, opened_ledger, tiny_county, village

from stirred.audit import Verdict
from stirred.errors import InputError, Refusal
from stirred.ledger import Ledger
from stirred.noise import Source, TestSource, discrete_gaussian
from stirred.release import AuditRecord, Plan, dry_run
from stirred.release import audit as audit_plan
from stirred.release import audit as audit_release
from stirred.release import verify as verify_release
from stirred.release.kinds.swap.job import SwapJob
from stirred.release.kinds.topdown.job import TopDownJob
from stirred.spec import Budget, Exact
from stirred.swap import Swapped
from stirred.topdown import measurement

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
    assert kinds >= {"exact", "conformity", "statistical", "replay"}
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
    stated, refuted = (finding for finding in record.findings if finding.violated)
    assert (stated.audit, refuted.audit) == ("accounting", "exact")
    assert stated.measured == guarantee.budget.linear() > stated.claimed
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
    frame = job.dataset.households
    (folder / "places.txt").write_text(str(frame.select("tenure", "place").rows()), encoding="utf-8")


def _topdown_leak(job: TopDownJob, folder: Path) -> None:
    counts = job.prepared.counts
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

    def publish(self: Any, made: Any, folder: Path) -> Any:
        leak(self, folder)
        return honest(self, made, folder)

    monkeypatch.setattr(job, "publish", publish)
    record = _audited(PLANS[mechanism](tmp_path))
    (refuted,) = [finding for finding in record.findings if finding.violated]
    assert refuted.audit == "replay" and refuted.details["first difference"] == name


def test_an_error_that_depends_on_the_data_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = village(tmp_path)
    first = pl.read_parquet(tmp_path / "households.parquet").select("tenure", "place")
    honest = SwapJob.publish

    def publish(self: SwapJob, made: Any, folder: Path) -> Any:
        if not self.dataset.households.select("tenure", "place").equals(first):
            raise ValueError(SENTINEL)
        return honest(self, made, folder)

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
    assert json.loads((public / "audit.json").read_text(encoding="utf-8")) == record.public().record()
    full = made.folder / "internal" / "audit-internal.json"
    assert json.loads(full.read_text(encoding="utf-8")) == record.record()
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


def _with_persons(folder: Path) -> Path:
    path = village(folder)
    homes = pl.read_parquet(folder / "households.parquet")
    homes.select("id", "place").with_columns(age=pl.lit("old")).write_parquet(folder / "persons.parquet")
    text = path.read_text(encoding="utf-8").replace(
        "  id: id\n",
        "  id: id\n  persons: persons.parquet\n  codebook:\n    attributes:\n"
        "      - {name: size, levels: [1, 2]}\n      - {name: tenure, levels: [owned, rented]}\n"
        "      - {name: place, levels: [north, east, south, west, middle]}\n"
        "      - {name: age, levels: [old, young]}\n",
    )
    path.write_text(text, encoding="utf-8")
    return path


def test_persons_follow_their_household_in_the_replay(tmp_path: Path) -> None:
    record = _audited(_with_persons(tmp_path))
    assert record.clean
    (replayed,) = [finding for finding in record.findings if finding.audit == "replay"]
    assert replayed.details["replays"] == 2


def _refuted(record: AuditRecord) -> list[str]:
    return [finding.audit for finding in record.findings if finding.violated]


def test_a_swap_that_moves_nothing_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(self: SwapJob, source: Source, folder: Path) -> Swapped:
        return Swapped(self.dataset.households.drop("id"), None)

    monkeypatch.setattr(SwapJob, "draw", draw)
    assert "conformity" in _refuted(_audited(village(tmp_path)))


def test_a_swap_at_a_smaller_rate_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(self: SwapJob, source: Source, folder: Path) -> Swapped:
        return self._swap("1/10").draw(self.prepared.at_rate("1/10"), source)

    monkeypatch.setattr(SwapJob, "draw", draw)
    assert "conformity" in _refuted(_audited(village(tmp_path)))


@pytest.mark.parametrize("share", [0, 2])
def test_measurements_with_other_noise_are_caught(
    share: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noise(source: Source, variance: Any, count: int) -> Any:
        return share * discrete_gaussian(source, variance, count)

    monkeypatch.setattr(measurement, "discrete_gaussian", noise)
    assert "conformity" in _refuted(_audited(tiny_county(tmp_path)))


def _units_in_order(path: Path, first: str) -> Path:
    body = yaml.safe_load(path.read_text(encoding="utf-8"))
    units = body["mechanism"]["units"]
    body["mechanism"]["units"] = {first: units.pop(first), **units}
    path.write_text(yaml.safe_dump(body, sort_keys=False), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("first", ["person", "housing_unit"])
def test_half_a_claim_is_caught_whichever_unit_is_protected(first: str, tmp_path: Path) -> None:
    """A record of every measured unit may change with the first: the pair changes one of each."""
    path = _units_in_order(tiny_county(tmp_path), first)
    amount = dry_run(path).specification.budget.amount
    assert _refuted(_audited(_claiming(path, f"'{amount / 2}'"))) == ["accounting", "exact"]


def test_a_claim_that_forgets_the_housing_units_is_caught(tmp_path: Path) -> None:
    path = tiny_county(tmp_path)
    assert _refuted(_audited(_claiming(path, "5/2"))) == ["accounting", "exact"]


@pytest.mark.slow
def test_the_record_of_topdown_does_not_depend_on_the_data(tmp_path: Path) -> None:
    """The same map and plan with other records, and the same seed: the same findings.

    But for what the invariants determine: the totals of the counties are others, and they are invariant.
    """
    one, two = tiny_county(tmp_path / "one"), tiny_county(tmp_path / "two")
    persons = pl.read_parquet(two.parent / "persons.parquet")
    persons.reverse()[: persons.height // 2].write_parquet(two.parent / "persons.parquet")
    records = [_audited(path) for path in (one, two)]
    texts = [[f.record() for f in record.public().findings if f.audit != "universe"] for record in records]
    assert texts[0] == texts[1]
    assert len(texts[0]) > 3


def _reads_the_file(job: Any, folder: Path) -> None:
    name = job.section.households if isinstance(job, SwapJob) else job.section.units["person"].file
    rows = pl.read_parquet(job.folder / name).rows()
    (folder / "file.txt").write_text(str(rows), encoding="utf-8")


def _one_cell(job: Any, folder: Path) -> None:
    frame = job.dataset.households if isinstance(job, SwapJob) else job.dataset["person"]
    names = [name for name in frame.columns if name != "id"]
    cell = frame.group_by(names).len().sort("len", *names, descending=True).row(0)
    (folder / "cell.txt").write_text(str(cell), encoding="utf-8")


@pytest.mark.slow
@both
@pytest.mark.parametrize("leak", [_reads_the_file, _one_cell])
def test_smaller_peeks_are_caught_too(
    mechanism: str, leak: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job: Any = SwapJob if mechanism == "swap" else TopDownJob
    honest = job.publish

    def publish(self: Any, made: Any, folder: Path) -> Any:
        leak(self, folder)
        return honest(self, made, folder)

    monkeypatch.setattr(job, "publish", publish)
    assert _refuted(_audited(PLANS[mechanism](tmp_path))) == ["replay"]


def test_a_publication_that_always_fails_is_not_called_sound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def publish(self: SwapJob, made: Any, folder: Path) -> Any:
        raise ValueError

    monkeypatch.setattr(SwapJob, "publish", publish)
    record = _audited(village(tmp_path))
    assert record.findings[-1].verdict is Verdict.NOT_APPLICABLE
    assert "nothing to look at" in record.sentence


def test_levels_that_cannot_all_differ_do_not_give_a_false_certificate(tmp_path: Path) -> None:
    """Two tenures and two places: records of a large stratum cannot all differ, so less can be shown."""
    path = village(tmp_path)
    frame = pl.read_parquet(tmp_path / "households.parquet")
    two = frame.with_columns(place=pl.Series(["north", "south"] * (frame.height // 2)))
    two.write_parquet(tmp_path / "households.parquet")
    text = path.read_text(encoding="utf-8").replace(
        "  id: id\n",
        "  id: id\n  codebook:\n    attributes:\n      - {name: size, levels: [1, 2]}\n"
        "      - {name: tenure, levels: [owned, rented]}\n      - {name: place, levels: [north, south]}\n",
    )
    path.write_text(text, encoding="utf-8")
    (found,) = [f for f in _audited(path).findings if f.subject == "the claim at the size of the data"]
    assert found.details["different records"] == 2 and found.details["largest stratum"] == 20


def test_a_stratum_of_three_that_claims_half_is_caught(tmp_path: Path) -> None:
    path = village(tmp_path)
    pl.DataFrame(
        {"id": list("abc"), "size": [1] * 3, "tenure": list("xyz"), "place": list("uvw")}
    ).write_parquet(tmp_path / "households.parquet")
    path.write_text(path.read_text(encoding="utf-8").replace("rate: 1/2", "rate: 1/20"), encoding="utf-8")
    record = _audited(_claiming(path, "2.165"))
    assert _refuted(record) == ["accounting", "exact"]
    found = [finding for finding in record.findings if finding.violated][-1]
    # All three move in a cycle, or none: the ratio is 2 (19)^3 at distance three.
    assert found.measured == Exact.log(2 * 19**3) / 3 and found.certificate.distance == Exact.of(3)


def test_an_audit_of_another_claim_is_not_published_with_the_release(tmp_path: Path) -> None:
    path = village(tmp_path)
    guarantee = dry_run(path).specification
    larger = guarantee.flavor.with_budget(Budget.epsilon(100))
    record = audit_plan(path, claim=larger, random=TestSource(1), draws=2000)
    with pytest.raises(InputError, match="another claim"):
        run_release(path, tmp_path / "out", None, random=TestSource(1), audit=record)


def test_the_audit_runs_after_the_quick_refusals(tmp_path: Path) -> None:
    path = village(tmp_path, checklist="")

    def audit() -> AuditRecord:
        raise AssertionError("the audit must not run")

    with pytest.raises(Refusal):
        run_release(path, tmp_path / "out", None, random=TestSource(1), audit=audit)


def test_nothing_that_is_drawn_for_an_audit_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    seen = []
    honest = TopDownJob.draw

    def draw(self: TopDownJob, source: Source, folder: Path) -> Any:
        seen.append(source.publishable)
        return honest(self, source, folder)

    monkeypatch.setattr(TopDownJob, "draw", draw)
    assert audit_plan(tiny_county(tmp_path), draws=2000).clean
    assert seen and not any(seen)
    assert list(place.iterdir()) == []


def test_a_terminated_audit_removes_what_it_drew(tmp_path: Path) -> None:
    path = tiny_county(tmp_path)
    place = tmp_path / "temporary"
    place.mkdir()
    script = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from stirred.release import audit\n"
        "from stirred.release.kinds.topdown.job import TopDownJob\n"
        "def publish(*_, **__): os.kill(os.getpid(), signal.SIGTERM)\n"
        "TopDownJob.publish = publish\naudit(Path(sys.argv[1]), draws=2000)\n"
    )
    environment = {**os.environ, "TMPDIR": str(place)}
    done = subprocess.run([sys.executable, "-c", script, str(path)], env=environment, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    assert list(place.iterdir()) == []


def test_a_geography_beside_the_folder_of_the_plan_is_found_by_the_replay(tmp_path: Path) -> None:
    path = tiny_county(tmp_path / "plan")
    (path.parent / "blocks.parquet").rename(tmp_path / "blocks.parquet")
    text = path.read_text(encoding="utf-8").replace("blocks.parquet", "../blocks.parquet")
    path.write_text(text, encoding="utf-8")
    record = _audited(path)
    assert record.clean and record.findings[-1].verdict is Verdict.NOT_REFUTED


def test_a_budget_that_the_ledger_refuses_is_refused_before_the_audit(tmp_path: Path) -> None:
    path = village(tmp_path)
    ledger = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    run_release(path, tmp_path / "first", ledger)
    path.write_text(path.read_text(encoding="utf-8") + "description: again\n", encoding="utf-8")

    def audit() -> AuditRecord:
        raise AssertionError("the audit must not run")

    with pytest.raises(Refusal):
        run_release(path, tmp_path / "second", ledger, audit=audit)


def test_a_plan_that_was_released_during_its_audit_is_not_paid_for_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = village(tmp_path)
    book = opened_ledger(tmp_path / "ledger.db", path)
    record = _audited(path)

    def audit(_: object) -> AuditRecord:
        run_release(path, tmp_path / "other", Ledger.open(book), audit=record)
        return record

    monkeypatch.setattr("stirred.release.publication.audit_of", audit)
    with pytest.raises(Refusal, match="released already"):
        run_release(path, tmp_path / "mine", Ledger.open(book), audit=True)
    assert len(Ledger.open(book).statement("village").spends) == 1
    assert not (tmp_path / "mine").exists()


def test_the_ledger_itself_refuses_a_plan_that_was_released(tmp_path: Path) -> None:
    path = village(tmp_path)
    ledger = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    made = run_release(path, tmp_path / "out", ledger)
    plan = Plan.load(path)
    with pytest.raises(Refusal, match="released already"):
        ledger.spend("village", made.specification, plan.digest, by="Ben", once=True)
    assert len(ledger.statement("village").spends) == 1
