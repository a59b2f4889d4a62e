"""What an attacker of the one protocol got through, and must not get through again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.release_case import new_ledger, plan_of, write_case, write_plan
from support.releasing import run_release

import stirred.swap.arrangement as arrangement
from stirred.errors import InputError, StirredError
from stirred.ledger import Ledger
from stirred.noise import TestSource
from stirred.release import Plan, audit, job_of, opened, verify
from stirred.release.kinds.swap.job import SwapJob
from stirred.spec import Products, Release, Schema
from stirred.swap import PermutationSwap, Swapped, counted, table_key
from stirred.topdown import Allocation, Cells, TopDown, Universe


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return write_case(tmp_path / "case")


def ledger_of(case: Path) -> Ledger:
    return new_ledger(case / "ledger.db", case, ["swap"])


def refuted(path: Path) -> set[str]:
    found = audit(path, random=TestSource(1), draws=2000)
    return {finding.audit for finding in found.findings if finding.violated}


def true_table(self: SwapJob, made: Release, name: str = "block * tenure") -> Release:
    """What was made, with one table counted of the true records."""
    parts = tuple(name.split(" * "))
    makers: dict[str, Any] = {key: (lambda key=key: made.products[key]) for key in made.products}
    makers[table_key(parts)] = lambda: counted(self.dataset.households, parts)
    return Release(Products(makers), made.specification, made.uncertainty, reason=made.reason)


def test_a_table_that_is_counted_of_the_true_records_is_seen_by_the_replay_and_by_verify(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory of tables in the primitive had answered every replay alike."""
    honest = SwapJob.finish
    monkeypatch.setattr(SwapJob, "finish", lambda self, *rest: true_table(self, honest(self, *rest)))
    assert refuted(case / "swap.yaml") == {"replay"}
    ledger = ledger_of(case)
    made = run_release(case / "swap.yaml", tmp_path / "out", ledger)
    problems = verify(made.folder, ledger, case / "swap.yaml").problems
    assert problems == ("invariants: the table block * tenure is not that of the published records",)


def test_a_primitive_remembers_nothing() -> None:
    assert set(Swapped.__dataclass_fields__) == {"households", "persons", "parts", "publishable"}


@pytest.mark.parametrize("by", ["block", "size", "tenure"])
def test_the_real_draw_of_parts_is_audited(case: Path, by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one file a place the audits had looked at another way of drawing."""
    plan = plan_of("swap", by=by, persons=None)
    path = write_plan(case / "parts.yaml", plan)
    assert refuted(path) == set()
    honest = arrangement._by_place

    def still(prepared: Any, donors: Any, by: str, source: Any) -> Swapped:
        import numpy as np

        return honest(prepared, np.arange(donors.size), by, source)

    monkeypatch.setattr(arrangement, "_by_place", still)
    assert "conformity" in refuted(path)


@pytest.mark.parametrize("name", ["households", "persons", "table", "parts"])
def test_a_column_called_like_a_product_is_a_table_of_its_own(name: str) -> None:
    frame = pl.DataFrame({"h": ["a", "b"] * 6, name: [1, 2, 3] * 4})
    swap = PermutationSwap(match=(), swap=(name,), hold=("h",), rate="1/2", tables=(name, f"h * {name}"))
    made = swap.release(frame, TestSource(1))
    assert made.products["households"].shape == (12, 2)
    assert made.products[table_key((name,))]["count"].to_list() == [4, 4, 4]
    assert made.uncertainty[table_key((name,))].law == "exact"
    assert "persons" not in made.products and made.products["table"].height <= 6


def test_a_unit_called_like_a_product_is_refused_at_once() -> None:
    from support.threats import county

    schema = Schema.of(sex=("f", "m"))
    budget = Allocation.of(Cells(schema), 1, dict.fromkeys(county().spine.levels, "1/2"), {"detailed": 1})
    with pytest.raises(InputError, match="share a name"):
        TopDown(county().spine, [Universe("measurements", schema, budget)])


@pytest.mark.parametrize("table", ["tenure * tenure", "count"])
def test_a_table_that_cannot_be_counted_is_refused_before_payment(case: Path, table: str) -> None:
    frame = pl.read_parquet(case / "households.parquet").with_columns(count=pl.col("size"))
    frame.write_parquet(case / "households.parquet")
    codes = [*plan_of("swap")["mechanism"]["codebook"]["attributes"], {"name": "count", "levels": [1, 2]}]
    changes = {"tables": [table], "hold": ["tenure", "count"], "codebook": {"attributes": codes}}
    path = write_plan(case / "swap.yaml", plan_of("swap", **changes))
    with pytest.raises(InputError, match=r"cannot be counted|as its figures are"):
        opened(path).specification()


def test_persons_are_known_again_by_the_file_that_is_drawn_from(case: Path) -> None:
    job = opened(case / "swap.yaml")
    before = job.prepared.records.persons
    other = pl.read_parquet(case / "members.parquet").with_columns(sex=pl.lit("f"))
    other.write_parquet(case / "members.parquet")
    assert before is not None
    assert job.tables()["persons"].select(before.columns).equals(before)


def test_a_trial_that_is_handed_over_is_not_published(case: Path, tmp_path: Path) -> None:
    ledger = ledger_of(case)
    plan = Plan.read(plan_of("swap", nesting=None))
    with pytest.raises(InputError, match="which places lie in others"):
        run_release(job_of(plan, case, trial=True), tmp_path / "out", ledger)
    assert ledger.statement("small-households").spends == ()


@pytest.mark.parametrize(
    "change", [{"imputed": "tenure"}, {"missing": "level"}, {"allow_infinite_loss": True, "rate": "0"}]
)
def test_what_the_audits_do_not_know_is_for_trials(case: Path, change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="is for trials"):
        opened(write_plan(case / "other.yaml", plan_of("swap", **change)))


def test_a_rate_of_zero_is_not_stated_as_another() -> None:
    swap = PermutationSwap(match=(), swap=("s",), hold=("h",), rate="0", allow_infinite_loss=True)
    stated = swap.guarantee(swap.prepare(pl.DataFrame({"h": [1, 2], "s": [1, 2]})))
    assert stated.budget.amount.is_infinite and "1/2" not in stated.budget.rule


def test_missing_values_of_persons_are_refused_without_a_codebook(case: Path) -> None:
    persons = pl.read_parquet(case / "members.parquet")
    persons.with_columns(sex=pl.when(pl.int_range(pl.len()) > 3).then("sex")).write_parquet(
        case / "members.parquet"
    )
    path = write_plan(case / "swap.yaml", plan_of("swap", codebook=None, hold_persons=["sex"]))
    with pytest.raises(StirredError, match="missing"):
        opened(path).specification()


def test_a_swap_with_persons_and_a_domain_of_its_own_is_audited(case: Path) -> None:
    """A stranger's plan: the audits had looked for persons in the schema of the domain."""
    domain = {"name": "X_mine", "stage": "edited file", "meaning": "all possible files"}
    assert refuted(write_plan(case / "swap.yaml", plan_of("swap") | {"domain": domain})) == set()


def test_figures_that_are_fixed_are_counted_with_the_persons(case: Path) -> None:
    job = opened(case / "swap.yaml")
    persons = job.prepared.records.persons
    assert persons is not None
    bags = persons.sort("sex").group_by("household_id").agg(pl.col("sex").str.join(";"))
    joined = job.prepared.records.households.join(bags, on="household_id", how="left").fill_null("")
    kinds = joined.select("county", "size", "tenure", "sex").n_unique()
    assert kinds in [statistic.figures for statistic in job.facts().exact]


def test_a_topdown_table_that_is_invariant_is_exact_and_measurements_are_counted_in_rows(
    case: Path, tmp_path: Path
) -> None:
    tables = [{"level": "county"}, {"level": "block", "query": "sex"}]
    path = write_plan(case / "topdown.yaml", plan_of("topdown", tables=tables))
    job = opened(path)
    assert [found.uncertainty.law for found in job.facts().expected] == ["exact", "estimate"]
    prepared = job.prepared
    made = job.finish(job.draw(TestSource(1), tmp_path), prepared.public)
    published = job.publish(made, tmp_path)
    assert "estimate" not in published.tables[0].frame.columns
    for file in published.files:
        if file.kind == "measurements":
            assert file.rows == pl.read_parquet(tmp_path / file.path).height and file.size


@pytest.mark.parametrize(
    "change", [{"missing": "eror"}, {"loss": "Tighter"}, {"match": "county"}, {"tables": "h * s"}]
)
def test_a_slip_in_a_swap_is_refused(change: dict[str, Any]) -> None:
    roles: dict[str, Any] = {"match": (), "swap": ("s",), "hold": ("h",), "rate": "1/2"}
    with pytest.raises(InputError):
        PermutationSwap(**roles | change)


def test_data_where_prepared_data_are_needed_are_refused_by_name() -> None:
    frame = pl.DataFrame({"h": [1, 2], "s": [1, 2]})
    swap = PermutationSwap(match=(), swap=("s",), hold=("h",), rate="1/2")
    for step in (swap.guarantee, swap.draw):
        with pytest.raises(InputError, match="not what the mechanism prepared"):
            step(frame)  # type: ignore[arg-type]


def test_a_refused_opening_leaves_no_ledger(case: Path) -> None:
    from typer.testing import CliRunner

    from stirred.cli.app import app

    bad = write_plan(case / "bad.yaml", plan_of("topdown") | {"dataset": {"name": "small-persons"}})
    (case / "persons.parquet").rename(case / "gone.parquet")
    for plan in (bad, case / "topdown.yaml"):
        call = ["release", "open", str(plan), "--ledger", str(case / "new.db"), "--by", "Ada"]
        assert CliRunner().invoke(app, call).exit_code == 2
        assert not list(case.glob("new.db*"))


def test_check_refuses_a_topdown_plan_that_its_geography_contradicts(case: Path) -> None:
    with pytest.raises(InputError):
        opened(write_plan(case / "bad.yaml", plan_of("topdown", tables=[{"level": "tract"}])))


def test_where_nothing_can_move_every_table_is_exact() -> None:
    swap = PermutationSwap(match=("m",), swap=("s",), hold=("h",), rate="1/10", tables=("h * s",))
    alone = swap.prepare(pl.DataFrame({"m": [0, 1, 2], "h": [0, 1, 0], "s": [1, 2, 1]}))
    assert alone.public.uncertainty["h", "s"].law == "exact"


def test_a_column_called_count_is_released_and_counted() -> None:
    frame = pl.DataFrame({"count": [1, 2, 1, 2], "s": [1, 2, 3, 4]})
    swap = PermutationSwap(match=(), swap=("s",), hold=("count",), rate="3/10")
    assert swap.release(frame, TestSource(1)).products["table"].height == 4


def test_an_order_that_tells_who_moved_is_refuted(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of the file is not the only one that gives the link away."""
    honest = arrangement.gathered

    def moved_last(prepared: Any, donors: Any, order: Any) -> pl.DataFrame:
        import numpy as np

        moved = donors[order] != order
        return honest(prepared, donors, np.concatenate([order[~moved], order[moved]]))

    path = write_plan(case / "swap.yaml", plan_of("swap", persons=None, tables=[]))
    assert refuted(path) == set()
    monkeypatch.setattr(arrangement, "gathered", moved_last)
    assert "conformity" in refuted(path)


@pytest.mark.parametrize("sabotage", ["true place", "exchanged names"])
def test_parts_that_are_not_those_of_the_published_place_are_refuted(
    case: Path, tmp_path: Path, sabotage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    honest = arrangement._by_place

    def wrong(prepared: Any, donors: Any, by: str, source: Any) -> Swapped:
        import numpy as np

        made = honest(prepared, donors, by, source)
        if sabotage == "exchanged names":
            names = [name for name, _, _ in made.parts]
            return replace(
                made, parts=tuple((n, *p[1:]) for n, p in zip(names[::-1], made.parts, strict=True))
            )
        still = honest(prepared, np.arange(donors.size), by, source)
        return replace(made, parts=still.parts, households=made.households.reverse())

    path = write_plan(case / "swap.yaml", plan_of("swap", by="block", persons=None))
    ledger = ledger_of(case)
    monkeypatch.setattr(arrangement, "_by_place", wrong)
    assert "conformity" in refuted(path)
    made = run_release(path, tmp_path / "out", ledger)
    assert any("another part" in problem for problem in verify(made.folder, ledger, path).problems)


def test_a_swap_without_a_key_can_be_paid_and_read_back(case: Path, tmp_path: Path) -> None:
    """The policy of a swap with an empty key did not survive its file."""
    plan = plan_of("swap", match=[], hold=["county", "size", "tenure"], persons=None, tables=[])
    path = write_plan(case / "swap.yaml", plan)
    ledger = ledger_of(case)
    assert verify(run_release(path, tmp_path / "out", ledger).folder, ledger, path).problems == ()


@pytest.mark.parametrize("name", ["count", "estimate", "low_95"])
def test_an_attribute_called_as_figures_are_is_refused_before_payment(case: Path, name: str) -> None:
    plan = plan_of("topdown")
    plan["mechanism"]["units"]["person"]["schema"]["attributes"][1]["name"] = name
    with pytest.raises(InputError, match="as its figures are"):
        opened(write_plan(case / "bad.yaml", plan))


def test_what_a_trial_did_not_draw_is_not_kept(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stirred.errors import Refusal
    from stirred.release import trial

    def refuse(*_: object) -> Release:
        raise Refusal("no", field="x", expected="y", hint="z")

    monkeypatch.setattr(SwapJob, "finish", refuse)
    with pytest.raises(Refusal, match="no"):
        trial(str(case / "swap.yaml"), str(tmp_path / "out"), random=TestSource(1))  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()
