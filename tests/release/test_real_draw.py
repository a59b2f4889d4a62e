"""Audits see the draw that a release makes: sabotaged where only the plan's own data or one level show it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.release_case import new_ledger, write_case
from support.releasing import run_release
from support.small_release import opened_ledger, tiny_county, village
from typer.testing import CliRunner

import stirred.swap.arrangement as arrangement
from stirred.audit import Finding
from stirred.cli.app import app
from stirred.errors import Refusal, StirredError
from stirred.ledger import Ledger
from stirred.noise import Source, TestSource, discrete_gaussian
from stirred.release import AuditRecord, dry_run
from stirred.release import audit as audit_plan
from stirred.release import verify as verify_release
from stirred.release.job import Job
from stirred.release.kinds.swap.audits import _drawn_by_the_plan, _numbers, _permutations
from stirred.release.kinds.swap.job import SwapJob
from stirred.release.kinds.topdown.audits import _noise, _paid, counts_by_variance
from stirred.release.kinds.topdown.job import TopDownJob
from stirred.release.manifest import NAME, Manifest
from stirred.spec import Specification
from stirred.swap import PermutationSwap, Prepared, Records, Swapped
from stirred.topdown import Allocation, measurement

RUNNER = CliRunner()
OWN_DRAW = "the plan's own draw, stratum by stratum"
EVERY_QUERY = "the noise of every query of the plan's own draw"


def audited(path: Path, seed: int = 1) -> AuditRecord:
    return audit_plan(path, random=TestSource(seed), draws=2000)


def refuted(path: Path) -> list[str]:
    return [finding.subject for finding in audited(path).findings if finding.violated]


def own_draw(path: Path) -> Finding:
    return _drawn_by_the_plan(SwapJob(*_plan(path)), TestSource(1))


def every_query(path: Path) -> Finding:
    return _noise(TopDownJob(*_plan(path)), TestSource(1), 2000)[0]


def town(folder: Path) -> Path:
    """The village with strata of 20 and of 60 households, at a rate of one in five."""
    path = village(folder)
    frame = pl.read_parquet(folder / "households.parquet")
    more = pl.concat([frame.with_columns(id=pl.col("id") + f"-{n}", size=pl.lit(1, pl.Int64)) for n in "ab"])
    pl.concat([frame, more[: 80 - 40]]).write_parquet(folder / "households.parquet")
    path.write_text(path.read_text(encoding="utf-8").replace("rate: 1/2", "rate: 1/5"), encoding="utf-8")
    return path


Change = Callable[[Prepared, Any], None]


def sabotaged(monkeypatch: pytest.MonkeyPatch, change: Change) -> None:
    honest = PermutationSwap.donors

    def donors(self: PermutationSwap, prepared: Prepared, source: Source) -> Any:
        made = honest(self, prepared, source)
        change(prepared, made)
        return made

    monkeypatch.setattr(PermutationSwap, "donors", donors)


def still(donors: Any, records: Any) -> None:
    donors[records] = np.flatnonzero(records)


def test_an_honest_town_is_not_refuted(tmp_path: Path) -> None:
    record = audited(town(tmp_path))
    assert record.clean
    (own,) = [finding for finding in record.findings if finding.subject == OWN_DRAW]
    assert own.details["strata"] == 2 and own.details["draws"] == 500


def test_strata_above_40_that_are_never_swapped_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotaged(monkeypatch, lambda p, made: still(made, (p.strata.sizes > 40)[p.strata.codes]))
    assert refuted(town(tmp_path)) == [OWN_DRAW]


def test_half_the_rate_at_one_level_of_the_match_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = PermutationSwap.prepare

    def prepare(self: PermutationSwap, records: Any) -> Prepared:
        from dataclasses import replace

        from stirred.swap.derangement import Rates

        made = honest(self, records)
        if "size" not in made.records.households.columns or made.rates.classes is not None:
            return made
        rate = made.rates.values[0]
        classes = (made.records.households["size"] == 1).to_numpy().astype(np.int16)
        return replace(made, rates=Rates((rate, rate / 2), classes))

    monkeypatch.setattr(PermutationSwap, "prepare", prepare)
    assert own_draw(town(tmp_path)).violated


def test_a_draw_that_swaps_the_first_half_of_each_stratum_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(prepared: Prepared, made: Any) -> None:
        codes = prepared.strata.codes
        for stratum in range(prepared.strata.count):
            members = np.flatnonzero(codes == stratum)
            moves = int((made[members] != members).sum())
            made[members] = members
            half = members[: max(moves, (members.size + 1) // 2)][:moves]
            made[half] = np.roll(half, 1)

    sabotaged(monkeypatch, change)
    assert own_draw(town(tmp_path)).violated


def test_a_fixed_rotation_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(prepared: Prepared, made: Any) -> None:
        codes = prepared.strata.codes
        moved = np.flatnonzero(made != np.arange(made.size))
        for stratum in np.unique(codes[moved]):
            group = moved[codes[moved] == stratum]
            made[group] = np.roll(group, 1)

    sabotaged(monkeypatch, change)
    assert own_draw(town(tmp_path)).violated


def test_owners_who_never_move_are_seen_and_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(prepared: Prepared, made: Any) -> None:
        if "tenure" in prepared.records.households.columns:
            owned = (prepared.records.households["tenure"] == "owned").to_numpy()
            for record in np.flatnonzero(owned & (made != np.arange(made.size))):
                taker = np.flatnonzero(made == record)[0]
                made[taker], made[record] = made[record], record

    sabotaged(monkeypatch, change)
    found = own_draw(town(tmp_path))
    assert found.violated and "owned" not in str(found.record())


def test_a_job_that_swaps_large_files_only_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many copies at once look like a large file: the records are also drawn as they are."""
    honest = SwapJob.draw

    def draw(self: SwapJob, source: Source, folder: Path) -> Swapped:
        households = self.dataset.households
        return honest(self, source, folder) if households.height > 1000 else Swapped(households, None)

    monkeypatch.setattr(SwapJob, "draw", draw)
    assert own_draw(town(tmp_path)).violated


def test_a_draw_that_fails_on_the_marked_records_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = SwapJob.draw

    def draw(self: SwapJob, source: Source, folder: Path) -> Swapped:
        made = honest(self, source, folder)
        return Swapped(made.households.select("size", "tenure", "place"), None)

    monkeypatch.setattr(SwapJob, "draw", draw)
    assert own_draw(town(tmp_path)).violated


def test_the_permutation_is_read_off_the_draw_itself(tmp_path: Path) -> None:
    """Values may coincide, marks may not: the draws are those of the kernel, with and without copies."""
    path = town(tmp_path)
    job = SwapJob(*_plan(path))
    prepared = job.prepared
    for copies in (0, 3):
        rows = _permutations(job, TestSource(7), copies).given
        assert rows.shape == (max(copies, 1), 80)
        assert (np.sort(rows, axis=1) == np.arange(80)).all()
        assert (prepared.strata.codes[rows] == prepared.strata.codes).all()
        assert (rows != np.arange(80)).any()
    alone, copies_of = _numbers(prepared.strata.sizes, job.rate)
    assert alone == 6 and sum(copies_of) + alone == 500


def _plan(path: Path) -> tuple[Any, Any, Path]:
    from stirred.release import Plan

    plan = Plan.load(path)
    return plan, path.parent


@pytest.mark.parametrize(
    ("records", "rate", "draws"), [(10**8, "1/10", 2), (2, "1/1000", 5000), (2, "1/2", 5000)]
)
def test_the_number_of_draws_follows_from_sizes_and_rate(records: int, rate: str, draws: int) -> None:
    alone, copies = _numbers(np.array([records]), Fraction(rate))
    assert alone + sum(copies) == draws


# TopDown


def noise_changed(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, Fraction], Any]) -> None:
    def noise(source: Source, variance: Fraction, count: int) -> Any:
        return change(discrete_gaussian(source, variance, count), variance)

    monkeypatch.setattr(measurement, "discrete_gaussian", noise)


def test_no_noise_on_all_but_the_three_most_common_variances_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_county(tmp_path)
    job = TopDownJob(*_plan(path))
    counts = counts_by_variance(job.mechanism)
    common = sorted(counts, key=lambda variance: -counts[variance])[:3]
    assert len(counts) > 3
    noise_changed(monkeypatch, lambda noise, variance: noise if variance in common else 0 * noise)
    assert refuted(path) == [EVERY_QUERY]


def test_no_noise_on_one_variance_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The county's total: one count in one draw."""
    path = tiny_county(tmp_path)
    noise_changed(monkeypatch, lambda noise, variance: noise if variance != 16 else 0 * noise)
    assert every_query(path).violated


def test_absolute_values_of_noise_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noise_changed(monkeypatch, lambda noise, variance: np.abs(noise) if variance == 8 else noise)
    assert every_query(tiny_county(tmp_path)).violated


@pytest.mark.parametrize("level", [0, 1])
def test_half_the_variance_at_one_level_is_seen(
    level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = measurement._measured

    def measured(design: Any, at: int, truth: Any, start: int, stop: int, source: Source) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            if at == level:
                patch.setattr(
                    measurement,
                    "discrete_gaussian",
                    lambda s, variance, count: discrete_gaussian(s, variance / 2, count),
                )
            return honest(design, at, truth, start, stop, source)

    monkeypatch.setattr(measurement, "_measured", measured)
    # One thread after the other: the sabotage is of the whole module while a level is measured.
    monkeypatch.setattr(measurement, "_in_order", lambda pool, task, count: (task(i) for i in range(count)))
    assert every_query(write_case(tmp_path) / "topdown.yaml").violated


def test_the_same_noise_in_two_levels_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every level and query is drawn from the stream of the first."""
    honest = TestSource.child

    def child(self: TestSource, *path: int) -> TestSource:
        return honest(self, 0, 0) if len(path) == 2 else honest(self, *path)

    job = TopDownJob(*_plan(write_case(tmp_path) / "topdown.yaml"))
    _ = job.prepared
    monkeypatch.setattr(TestSource, "child", child)
    found = _noise(job, TestSource(1), 2000)[0]
    assert found.violated and "share their noise" in found.sentence


def test_noise_that_costs_more_than_is_stated_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tiny_county(tmp_path)
    job = TopDownJob(*_plan(path))
    for universe in job.mechanism.universes:
        assert job.mechanism.designs[universe.unit].spent == universe.allocation.rho_squared
    assert not _paid(job).violated
    honest = Allocation.variances
    monkeypatch.setattr(
        Allocation,
        "variances",
        lambda self, chain: {n: v * Fraction(99, 100) for n, v in honest(self, chain).items()},
    )
    found = _paid(TopDownJob(*_plan(path)))
    assert found.violated and found.measured is not None and found.measured > found.claimed  # type: ignore[operator]


# The claim


def claiming(path: Path, amount: object) -> Path:
    path.write_text(path.read_text(encoding="utf-8") + f"claim: '{amount}'\n", encoding="utf-8")
    return path


PLANS = {"swap": village, "topdown": tiny_county}
both = pytest.mark.parametrize("mechanism", PLANS)


@pytest.mark.parametrize("share", [Fraction(59, 100), 1 - Fraction(1, 10**12)])
def test_a_part_of_the_stated_budget_is_refused_everywhere(share: Fraction, tmp_path: Path) -> None:
    path = write_case(tmp_path / "case") / "topdown.yaml"
    amount = dry_run(path).specification.budget.amount
    claiming(path, amount * share)
    record = audited(path)
    assert not record.clean
    assert record.findings[0].violated and record.findings[0].audit == "accounting"
    for arguments in (["audit", "run"], ["release", "check"], ["release", "run", "--dry-run"]):
        assert RUNNER.invoke(app, [*arguments, str(path)]).exit_code == 3
    with pytest.raises(Refusal, match="claims less"):
        run_release(path, tmp_path / "out", None, random=TestSource(1))


@both
def test_the_very_budget_and_a_larger_one_may_be_claimed(mechanism: str, tmp_path: Path) -> None:
    amount = dry_run(PLANS[mechanism](tmp_path / "plan")).specification.budget.amount
    for number, factor in enumerate((1, 2)):
        path = claiming(PLANS[mechanism](tmp_path / str(number)), amount * factor)
        assert dry_run(path).refused is None
        assert RUNNER.invoke(app, ["release", "check", str(path)]).exit_code == 0


def test_a_check_reads_no_records_and_still_refuses_what_no_data_can_bear_out(tmp_path: Path) -> None:
    """At a rate of one half two records lose ln 3 by Theorem 1, and larger strata more."""
    for number, (amount, code) in enumerate((("1.09", 3), ("1.1", 0))):
        path = claiming(village(tmp_path / str(number)), amount)
        (path.parent / "households.parquet").unlink()
        assert RUNNER.invoke(app, ["release", "check", str(path)]).exit_code == code


@pytest.mark.parametrize("mechanism", ["swap", "topdown"])
def test_a_published_guarantee_below_the_mechanism_does_not_verify(mechanism: str, tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    path = case / f"{mechanism}.yaml"
    ledger = new_ledger(tmp_path / "ledger.db", case, [mechanism])
    made = run_release(path, tmp_path / "out", ledger)
    assert verify_release(made.folder, ledger, path).sound
    file = made.folder / "public" / "specification.json"
    true = Specification.from_json(file.read_text(encoding="utf-8"))
    part = true.budget.amount * Fraction(59, 100)
    less = true.budget.model_copy(update={"amounts": (part,), "policy": None, "at": ()})
    smaller = true.flavor.with_budget(less, assumptions=true.assumptions, standing=true.standing)
    file.write_text(smaller.to_json(), encoding="utf-8")
    manifest = Manifest.of(made.folder, Manifest.read(made.folder).facts)
    (made.folder / NAME).write_text(manifest.text(), encoding="utf-8")
    assert verify_release(made.folder).sound
    (problem,) = verify_release(made.folder, plan=path).problems
    assert problem.startswith("guarantee: less is published")
    problems = verify_release(made.folder, ledger).problems
    assert "the published guarantee is less than what was paid for" in problems
    from stirred.release import audit as audit_release

    record = audit_release(path, made.folder, random=TestSource(1), draws=2000)
    assert record.findings[0].violated


@both
def test_the_release_still_verifies_with_its_plan(mechanism: str, tmp_path: Path) -> None:
    path = PLANS[mechanism](tmp_path)
    ledger = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    made = run_release(path, tmp_path / "out", ledger)
    found = verify_release(made.folder, ledger, path)
    assert found.sound and "the guarantee" in found.checks


@pytest.mark.slow
def test_a_tenth_of_the_campaign_of_honest_plans_raises_no_alarm() -> None:
    """A hundred plans, with the seed of the campaign whose log stands in the documentation."""
    script = Path(__file__).with_name("false_alarm_campaign.py")
    done = subprocess.run(
        [sys.executable, str(script), "--plans", "100", "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    seen = json.loads(done.stdout)
    assert seen["alarms"] == [] and seen["plans"] == 100
    assert sum(seen["verdicts"].values()) >= 300


def test_a_guarantee_whose_policy_was_dropped_does_not_verify(tmp_path: Path) -> None:
    """One number for every universe is more than a policy promises."""
    case = write_case(tmp_path / "case")
    ledger = new_ledger(tmp_path / "ledger.db", case, ["swap"])
    made = run_release(case / "swap.yaml", tmp_path / "out", ledger)
    file = made.folder / "public" / "specification.json"
    true = Specification.from_json(file.read_text(encoding="utf-8"))
    constant = true.budget.model_copy(update={"policy": None, "at": ()})
    false = true.flavor.with_budget(constant, assumptions=true.assumptions, standing=true.standing)
    file.write_text(false.to_json(), encoding="utf-8")
    manifest = Manifest.of(made.folder, Manifest.read(made.folder).facts)
    (made.folder / NAME).write_text(manifest.text(), encoding="utf-8")
    (problem,) = verify_release(made.folder, plan=case / "swap.yaml").problems
    assert problem.startswith("guarantee: less is published")


def test_swaps_between_records_of_one_held_level_are_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker's sabotage: as many move, and the protected table stays as it was."""
    path = town(tmp_path)
    hold = SwapJob(*_plan(path)).section.hold[0]

    def change(prepared: Prepared, made: Any) -> None:
        levels = prepared.records.households[hold].to_numpy()
        for stratum in range(prepared.strata.count):
            moves = np.flatnonzero((prepared.strata.codes == stratum) & (made != np.arange(made.size)))
            for level in np.unique(levels[moves]):
                alike = moves[levels[moves] == level]
                if alike.size > 1:
                    made[alike] = np.roll(alike, 1)
                else:
                    made[alike] = alike

    sabotaged(monkeypatch, change)
    assert own_draw(path).violated


def test_records_in_the_order_of_the_file_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stirred.swap.arrangement.permutation", lambda _, count: np.arange(count))
    found = own_draw(town(tmp_path))
    assert found.violated
    assert "in an order" in found.sentence


def test_persons_who_stay_when_their_household_moves_stop_the_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    homes = pl.DataFrame(
        {"id": range(40), "h": [i % 3 for i in range(40)], "block": [i % 8 for i in range(40)]}
    )
    persons = homes.select("id", "block").with_columns(sex=pl.lit("f"))
    swap = PermutationSwap(match=(), swap=("block",), hold=("h",), rate="1/2")
    swap.release(Records.of(homes, persons, "id"), TestSource(1))
    honest = arrangement._persons

    def stay(*arguments: Any) -> Any:
        return honest(*arguments).with_columns(pl.col("block").reverse())

    monkeypatch.setattr(arrangement, "_persons", stay)
    with pytest.raises(Refusal, match="persons and their households differ"):
        swap.release(Records.of(homes, persons, "id"), TestSource(1))


def test_noise_on_empty_cells_alone_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attacker's sabotage: every cell with somebody in it is published exactly."""
    honest = measurement._measured

    def measured(design: Any, level: int, truth: Any, start: int, stop: int, source: Source) -> Any:
        from dataclasses import replace

        made = honest(design, level, truth, start, stop, source)
        nodes = design.measured[level][start:stop]
        table = truth.dense(int(nodes[0]), int(nodes[-1]) + 1)[nodes - int(nodes[0])]
        true = design.cells.query("detailed").answer(table)
        values = dict(made.values)
        if "detailed" in values:
            values["detailed"] = np.where(true > 0, true, values["detailed"]).astype(np.int32)
        return replace(made, values=values)

    monkeypatch.setattr(measurement, "_measured", measured)
    assert every_query(tiny_county(tmp_path)).violated


def test_nodes_are_looked_at_over_the_whole_level(tmp_path: Path) -> None:
    """Not the first so many alone: without noise on the later ones that would see nothing."""
    job = TopDownJob(*_plan(tiny_county(tmp_path)))
    everything = job.added_noise(TestSource(3), tmp_path / "a", 10**9)
    some = job.added_noise(TestSource(3), tmp_path / "b", 8)
    for key, noise in some.items():
        whole = everything[key]
        assert len(noise) <= len(whole)
        if len(noise) > 1:
            assert (noise[-1] != whole[len(noise) - 1]).any() or len(noise) == len(whole)
            assert any((noise[-1] == row).all() for row in whole[len(whole) // 2 :])


def test_an_output_that_appeared_during_the_audit_is_refused_before_payment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = write_case(tmp_path / "case")
    ledger = new_ledger(tmp_path / "ledger.db", case, ["swap"])

    def meanwhile(job: Job) -> AuditRecord:
        record = audit_plan(job, random=TestSource(1), draws=2000)
        (tmp_path / "out").mkdir()
        return record

    monkeypatch.setattr("stirred.release.publication.audit_of", meanwhile)
    with pytest.raises(StirredError, match="exists already"):
        run_release(case / "swap.yaml", tmp_path / "out", ledger, audit=True)
    assert [s for name in ledger.datasets() for s in ledger.statement(name).spends] == []
