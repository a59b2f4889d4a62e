"""A plan is run once: the ledger first, then the draw; a fault leaves a true ledger and no folder."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import polars as pl
import pytest
from support.release_case import (
    CURATOR,
    MECHANISMS,
    OWNER,
    WatchedSource,
    leftovers,
    members,
    new_ledger,
    plan_of,
    write_case,
    write_plan,
)
from support.releasing import run_release

import stirred.release.publication as run_module
from stirred.errors import InputError, Refusal, StirredError, UnknownName
from stirred.ledger import Ledger, NotPermitted, OverBudget
from stirred.noise import TestSource
from stirred.release import Plan, dry_run
from stirred.release import verify as verify_release
from stirred.release.manifest import Manifest
from stirred.report import Override

DATASETS = {"swap": "small-households", "topdown": "small-persons"}
both = pytest.mark.parametrize("mechanism", MECHANISMS)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return write_case(tmp_path / "case")


@pytest.fixture
def ledger(tmp_path: Path, case: Path) -> Ledger:
    return new_ledger(tmp_path / "ledger.db", case)


def spends(ledger: Ledger, mechanism: str) -> list[Any]:
    return list(ledger.statement(DATASETS[mechanism]).spends)


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def require_untouched(ledger: Ledger, output: Path, mechanism: str, paid: int = 0) -> None:
    """No folder, nothing beside it, a true ledger with so many spends."""
    assert not output.exists()
    assert leftovers(output) == []
    assert ledger.verify().ok
    assert len(spends(ledger, mechanism)) == paid


@both
def test_the_spend_is_in_the_ledger_before_a_word_is_drawn(
    mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
) -> None:
    seen = []

    def watch() -> None:
        known = Ledger.open(tmp_path / "ledger.db").statement(DATASETS[mechanism]).spends
        seen.append([spend.status for spend in known])

    run_release(case / f"{mechanism}.yaml", tmp_path / "out", ledger, random=WatchedSource(1, watch))
    assert seen
    assert all(statuses == ["open"] for statuses in seen)
    assert [spend.status for spend in spends(ledger, mechanism)] == ["finished"]


@both
def test_a_run_writes_public_and_internal_with_a_manifest_that_the_ledger_knows(
    mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
) -> None:
    made = run_release(case / f"{mechanism}.yaml", tmp_path / "out", ledger)
    assert {p.name for p in made.folder.iterdir()} == {"public", "internal", "manifest.json"}
    assert {"specification.json", "report.html", "release-table.csv", "data-dictionary.json"} <= {
        p.name for p in (made.folder / "public").iterdir()
    }
    assert not list((made.folder / "public").rglob("accuracy*"))
    (spend,) = spends(ledger, mechanism)
    assert spend.manifest == Manifest.read(made.folder).digest == made.manifest.digest
    assert (made.publishable, made.resumed) == (True, False)
    assert verify_release(made.folder, ledger).problems == ()
    assert leftovers(made.folder) == []


@both
def test_a_second_run_of_the_same_plan_is_refused(
    mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
) -> None:
    run_release(case / f"{mechanism}.yaml", tmp_path / "out", ledger)
    with pytest.raises(Refusal, match="released already"):
        run_release(case / f"{mechanism}.yaml", tmp_path / "again", ledger)
    require_untouched(ledger, tmp_path / "again", mechanism, paid=1)


def opened(plan: dict[str, Any], step: int) -> dict[str, Any]:
    """A plan whose checklist has one more open step."""
    steps = [s for s in plan["checklist"]["steps"] if s["step"] != step]
    return plan | {"checklist": {"steps": steps}}


@both
def test_the_gate_refuses_while_a_mandatory_step_is_open(
    mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
) -> None:
    path = write_plan(case / "open.yaml", opened(plan_of(mechanism), 8))
    assert dry_run(path).open_steps == ("8 (Privacy risk)",)
    with pytest.raises(Refusal, match="Privacy risk"):
        run_release(path, tmp_path / "out", ledger)
    require_untouched(ledger, tmp_path / "out", mechanism)


def override(by: str, *steps: int) -> Override:
    return Override(steps=steps, by=by, reason="a court order", at=datetime(2026, 1, 1, tzinfo=UTC))


@both
def test_an_override_is_recorded_in_the_ledger_and_the_report(
    mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
) -> None:
    path = write_plan(case / "open.yaml", opened(plan_of(mechanism), 8))
    with pytest.raises(Refusal, match="Privacy risk"):
        run_release(path, tmp_path / "out", ledger, override=override(OWNER, 7))
    made = run_release(path, tmp_path / "out", ledger, override=override(OWNER, 8))
    kinds = [entry.event.kind for entry in ledger.events()]
    assert kinds.index("overridden") < kinds.index("spent")
    assert "a court order" in ledger.export()
    for name in ("report.html", "report.md"):
        text = (made.folder / "public" / name).read_text(encoding="utf-8")
        assert "OVERRIDE" in text and "a court order" in text


@both
def test_an_override_by_somebody_who_may_not_costs_nothing(
    mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
) -> None:
    path = write_plan(case / "open.yaml", opened(plan_of(mechanism), 8))
    with pytest.raises(NotPermitted):
        run_release(path, tmp_path / "out", ledger, override=override(CURATOR, 8))
    require_untouched(ledger, tmp_path / "out", mechanism)


def test_an_override_of_a_release_without_budget_is_not_recorded(case: Path, tmp_path: Path) -> None:
    plan = opened(plan_of("topdown"), 8)
    plan["dataset"] = plan["dataset"] | {"ceiling": "1/2"}
    path = write_plan(case / "topdown.yaml", plan)
    ledger = new_ledger(tmp_path / "ledger.db", case)
    with pytest.raises(OverBudget):
        run_release(path, tmp_path / "out", ledger, override=override(OWNER, 8))
    assert "overridden" not in [entry.event.kind for entry in ledger.events()]


@both
def test_a_dry_run_spends_and_writes_nothing(
    mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
) -> None:
    before, folder = ledger.head(), snapshot(case)
    found = dry_run(case / f"{mechanism}.yaml", ledger)
    assert found.cost is not None and found.cost.refusal is None
    assert ledger.head() == before
    assert snapshot(case) == folder
    names = {"case", "ledger.db", "ledger.db.key", "ledger.db.head", ".ledger.db.line"}
    assert {p.name for p in tmp_path.iterdir()} <= names


@both
def test_a_budget_that_is_refused_says_what_is_missing_and_writes_nothing(
    mechanism: str, case: Path, tmp_path: Path
) -> None:
    plan = plan_of(mechanism)
    plan["dataset"] = plan["dataset"] | {"ceiling": "1/2"}
    path = write_plan(case / f"{mechanism}.yaml", plan)
    ledger = new_ledger(tmp_path / "ledger.db", case)
    assert any("would refuse" in warning for warning in dry_run(path, ledger).warnings)
    with pytest.raises(OverBudget) as refused:
        run_release(path, tmp_path / "out", ledger)
    said = refused.value.as_dict()
    assert {"requested", "remaining", "difference"} <= set(said)
    if mechanism == "topdown":
        assert [said[k] for k in ("requested", "remaining", "difference")] == [
            "ρ² = 1",
            "ρ² = 1/2",
            "ρ² = 1/2",
        ]
    require_untouched(ledger, tmp_path / "out", mechanism)


@both
def test_a_test_seed_writes_internal_only_and_is_not_in_the_ledger(
    mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
) -> None:
    head = ledger.head()
    for name, book in (("with", ledger), ("without", None)):
        made = run_release(case / f"{mechanism}.yaml", tmp_path / name, book, random=TestSource(3))
        assert {p.name for p in made.folder.iterdir()} == {"internal", "manifest.json"}
        assert not made.publishable
        assert verify_release(made.folder).sound
        (made.folder / "public").mkdir()
        assert verify_release(made.folder).problems == ("a test run has a public folder",)
    assert ledger.head() == head


@both
def test_real_randomness_needs_a_ledger(mechanism: str, case: Path, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="ledger"):
        run_release(case / f"{mechanism}.yaml", tmp_path / "out", None)
    assert not (tmp_path / "out").exists()


def test_a_data_set_that_is_not_open_is_refused(case: Path, tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path / "ledger.db", case, ["swap"])
    with pytest.raises(StirredError, match="not in the ledger"):
        run_release(case / "topdown.yaml", tmp_path / "out", ledger)
    assert not (tmp_path / "out").exists()
    assert leftovers(tmp_path / "out") == []


class TestVerify:
    @pytest.fixture
    def made(self, case: Path, ledger: Ledger, tmp_path: Path) -> Path:
        return run_release(case / "swap.yaml", tmp_path / "out", ledger).folder

    def test_a_changed_a_missing_and_a_new_file(self, made: Path, ledger: Ledger) -> None:
        (made / "public" / "report.md").write_text("better figures", encoding="utf-8")
        (made / "public" / "tables" / "block-size.csv").unlink()
        (made / "public" / "more.csv").write_text("1", encoding="utf-8")
        assert set(verify_release(made, ledger).problems) == {
            "public/report.md was changed",
            "public/tables/block-size.csv is missing",
            "public/more.csv is not in the manifest",
        }

    @pytest.mark.parametrize("text", [None, "", "{}", "[1]", "\udcff"])
    def test_a_specification_that_is_missing_or_damaged(self, made: Path, text: str | None) -> None:
        path = made / "public" / "specification.json"
        path.unlink()
        if text is not None:
            path.write_bytes(text.encode("utf-8", "surrogateescape"))
        found = verify_release(made).problems
        assert "the specification cannot be read back" in found
        assert len(found) == 2

    def test_a_rewritten_manifest_is_not_the_one_in_the_ledger(self, made: Path, ledger: Ledger) -> None:
        (made / "public" / "report.md").write_text("better figures", encoding="utf-8")
        again = Manifest.of(made, Manifest.read(made).facts)
        (made / "manifest.json").write_text(again.text(), encoding="utf-8")
        assert verify_release(made).sound
        assert verify_release(made, ledger).problems == ("the ledger has another manifest for this spend",)

    @pytest.mark.parametrize("text", ["", "[]", '{"files": 3, "schema_version": 1}', '{"files": {}}'])
    def test_a_damaged_manifest_is_refused(self, made: Path, text: str) -> None:
        (made / "manifest.json").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="manifest"):
            verify_release(made)

    def test_another_ledger(self, made: Path, case: Path, tmp_path: Path) -> None:
        other = new_ledger(tmp_path / "other.db", case)
        assert verify_release(made, other).problems == ("the ledger has no spend for this release",)
        empty = Ledger.create(tmp_path / "empty.db", owner=OWNER)
        assert verify_release(made, empty).problems == ("the ledger has no data set small-households",)

    def test_a_ledger_that_was_tampered_with(self, made: Path, case: Path, tmp_path: Path) -> None:
        tamper(tmp_path / "ledger.db")
        ledger = Ledger.open(tmp_path / "ledger.db")
        problems = verify_release(made, ledger).problems
        assert problems and all(text.startswith("ledger: ") for text in problems)
        with pytest.raises(Refusal):
            run_release(case / "topdown.yaml", tmp_path / "other", ledger)
        assert not (tmp_path / "other").exists()
        assert leftovers(tmp_path / "other") == []


def tamper(path: Path) -> None:
    """Change the text of an early event, past the guards of the database."""
    connection = sqlite3.connect(path)
    triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for (name,) in triggers:
        connection.execute(f'DROP TRIGGER "{name}"')
    tables = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    changed = 0
    for table in tables:
        for _, column, *_ in connection.execute(f'PRAGMA table_info("{table}")').fetchall():
            changed += connection.execute(
                f'UPDATE "{table}" SET "{column}" = replace("{column}", \'Curator\', \'Intruder\')'
                f" WHERE typeof(\"{column}\") = 'text' AND \"{column}\" LIKE '%Curator%'"
            ).rowcount
    connection.commit()
    connection.close()
    assert changed


class TestPlaces:
    @both
    def test_an_existing_folder_is_never_touched(
        self, mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        out.mkdir()
        (out / "kept").write_text("mine", encoding="utf-8")
        with pytest.raises(InputError, match="exists already"):
            run_release(case / f"{mechanism}.yaml", out, ledger)
        assert snapshot(out) == {"kept": b"mine"}
        assert spends(ledger, mechanism) == []

    @both
    def test_a_place_that_cannot_be_written_costs_nothing(
        self, mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
    ) -> None:
        (tmp_path / "file").write_text("", encoding="utf-8")
        with pytest.raises(InputError, match="could not be written"):
            run_release(case / f"{mechanism}.yaml", tmp_path / "file" / "out", ledger)
        assert spends(ledger, mechanism) == []

    @both
    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_read_only_folder_costs_nothing(
        self, mechanism: str, case: Path, ledger: Ledger, tmp_path: Path
    ) -> None:
        place = tmp_path / "locked"
        place.mkdir(mode=0o500)
        with pytest.raises(InputError, match="could not be written"):
            run_release(case / f"{mechanism}.yaml", place / "out", ledger)
        require_untouched(ledger, place / "out", mechanism)

    @both
    @pytest.mark.parametrize("at", ["write_text", "parquet", "csv", "rename"])
    def test_a_full_disk_keeps_the_spend_and_the_run_can_be_resumed(
        self,
        mechanism: str,
        at: str,
        case: Path,
        ledger: Ledger,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def full(*_: Any, **__: Any) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        renamed = Path.rename

        def full_for_folders(path: Path, target: Path) -> Path:
            """A file that is renamed before anything is paid would show it at once."""
            if path.is_dir():
                full()
            return renamed(path, target)

        with monkeypatch.context() as patch:
            target: Any = Path if at in {"write_text", "rename"} else pl.DataFrame
            broken = full_for_folders if at == "rename" else full
            patch.setattr(target, at if target is Path else f"write_{at}", broken)
            with pytest.raises(InputError, match="No space left"):
                run_release(case / f"{mechanism}.yaml", tmp_path / "out", ledger)
        assert not (tmp_path / "out").exists()
        assert len(spends(ledger, mechanism)) == 1
        if at != "rename":
            assert leftovers(tmp_path / "out") == []
        made = run_release(case / f"{mechanism}.yaml", tmp_path / "out", ledger)
        assert made.resumed
        assert len(spends(ledger, mechanism)) == 1
        assert verify_release(made.folder, ledger).sound
        assert leftovers(made.folder) == []

    def test_a_folder_made_meanwhile_is_not_overwritten(
        self, case: Path, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out, finish = tmp_path / "out", Ledger.finish

        def meanwhile(*args: Any, **options: Any) -> Any:
            out.mkdir()
            (out / "kept").write_text("mine", encoding="utf-8")
            return finish(*args, **options)

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "finish", meanwhile)
            with pytest.raises(InputError, match="could not be written"):
                run_release(case / "swap.yaml", out, ledger)
        assert snapshot(out) == {"kept": b"mine"}
        out.rename(tmp_path / "theirs")
        made = run_release(case / "swap.yaml", out, ledger)
        assert verify_release(made.folder, ledger).sound


def rewritten(path: Path, *columns: Any) -> None:
    pl.read_parquet(path).with_columns(*columns).write_parquet(path)


DATA = {"swap": "households.parquet", "topdown": "persons.parquet"}


class TestBadData:
    """Refused before anything is spent, whichever mechanism."""

    def refused(self, kind: type[StirredError], case: Path, ledger: Ledger, mechanism: str) -> StirredError:
        out = case.parent / "out"
        with pytest.raises(kind) as found:
            run_release(case / f"{mechanism}.yaml", out, ledger)
        require_untouched(ledger, out, mechanism)
        return found.value

    @both
    def test_a_missing_file(self, mechanism: str, case: Path, ledger: Ledger) -> None:
        (case / DATA[mechanism]).unlink()
        assert DATA[mechanism] in self.refused(UnknownName, case, ledger, mechanism).problem

    @both
    def test_a_file_that_is_no_table(self, mechanism: str, case: Path, ledger: Ledger) -> None:
        (case / DATA[mechanism]).write_bytes(b"PAR1 nothing")
        self.refused(InputError, case, ledger, mechanism)

    @both
    def test_an_absent_column(self, mechanism: str, case: Path, ledger: Ledger) -> None:
        frame, name = pl.read_parquet(case / DATA[mechanism]), {"swap": "tenure", "topdown": "sex"}[mechanism]
        frame.drop(name).write_parquet(case / DATA[mechanism])
        assert name in self.refused(InputError, case, ledger, mechanism).problem

    @both
    def test_a_column_of_another_type(self, mechanism: str, case: Path, ledger: Ledger) -> None:
        name = {"swap": "tenure", "topdown": "sex"}[mechanism]
        rewritten(case / DATA[mechanism], pl.lit(7).alias(name))
        self.refused(InputError, case, ledger, mechanism)

    @both
    def test_a_level_outside_the_codebook(self, mechanism: str, case: Path, ledger: Ledger) -> None:
        name = {"swap": "tenure", "topdown": "sex"}[mechanism]
        rewritten(case / DATA[mechanism], pl.lit("zebra").alias(name))
        error = self.refused(InputError, case, ledger, mechanism)
        assert "zebra" not in str(error) + str(error.as_dict())

    @both
    def test_a_place_outside_the_map(self, mechanism: str, case: Path, ledger: Ledger) -> None:
        rewritten(case / DATA[mechanism], pl.lit("999").alias("block"))
        assert "999" not in str(self.refused(InputError, case, ledger, mechanism))

    def test_a_level_of_a_person_outside_the_codebook(self, case: Path, ledger: Ledger) -> None:
        rewritten(case / "members.parquet", pl.lit("zebra").alias("sex"))
        assert "zebra" not in str(self.refused(InputError, case, ledger, "swap"))

    def test_a_person_without_a_household(self, case: Path, ledger: Ledger) -> None:
        homes = pl.read_parquet(case / "households.parquet")
        homes.head(31).write_parquet(case / "households.parquet")
        self.refused(InputError, case, ledger, "swap")


class TestBadPlans:
    @both
    @pytest.mark.parametrize(
        "under",
        [
            None,
            "mechanism",
            "dataset",
        ],
    )
    def test_an_unknown_key_suggests_the_nearest(self, mechanism: str, under: str | None, case: Path) -> None:
        plan = plan_of(mechanism)
        wrong, right = {
            None: ("titel", "title"),
            "mechanism": ("tabels", "tables"),
            "dataset": ("nmae", "name"),
        }[under]
        place = plan if under is None else dict(plan[under])
        if under is not None:
            plan[under] = place
        place[wrong] = place[right]
        with pytest.raises(InputError) as found:
            Plan.load(write_plan(case / "wrong.yaml", plan))
        assert wrong in str(found.value)
        assert right in found.value.expected + found.value.hint

    @both
    @pytest.mark.parametrize(
        "wrong", [{"title": 3}, {"dataset": "small"}, {"name": "Not a name"}, {"delta": []}]
    )
    def test_a_wrong_type_is_refused_by_name(self, mechanism: str, wrong: dict[str, Any], case: Path) -> None:
        with pytest.raises(InputError) as found:
            Plan.load(write_plan(case / "wrong.yaml", plan_of(mechanism) | wrong))
        assert next(iter(wrong)) in found.value.field

    def test_a_plan_that_is_no_plan(self, case: Path) -> None:
        for text in ("", "- 1\n", "a: [", "name: x\n"):
            (case / "wrong.yaml").write_text(text, encoding="utf-8")
            with pytest.raises(InputError):
                Plan.load(case / "wrong.yaml")
        with pytest.raises(InputError):
            Plan.load(case / "nowhere.yaml")

    def test_columns_that_the_plan_does_not_name_are_refused(self, case: Path) -> None:
        for change in ({"hold": None}, {"codebook": None}, {"tables": ["block * remark"]}):
            path = write_plan(case / "wrong.yaml", plan_of("swap", **change))
            with pytest.raises(InputError):
                dry_run(path)


class TestResume:
    def interrupted(self, case: Path, ledger: Ledger, out: Path, patch: pytest.MonkeyPatch) -> None:
        def stop(*_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

        with patch.context() as inner:
            inner.setattr(run_module, "write_documents", stop)
            with pytest.raises(KeyboardInterrupt):
                run_release(case / "swap.yaml", out, ledger)

    def test_a_larger_loss_than_was_paid_for_is_refused(
        self, case: Path, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.interrupted(case, ledger, tmp_path / "out", monkeypatch)
        homes = pl.read_parquet(case / "households.parquet").with_columns(
            pl.lit(1).alias("size").cast(pl.Int64)
        )
        homes.write_parquet(case / "households.parquet")
        members(homes).write_parquet(case / "members.parquet")
        with pytest.raises(Refusal, match="paid for"):
            run_release(case / "swap.yaml", tmp_path / "out", ledger)
        require_untouched(ledger, tmp_path / "out", "swap", paid=1)
        write_case(case)
        assert run_release(case / "swap.yaml", tmp_path / "out", ledger).resumed

    def test_a_changed_plan_pays_again(
        self, case: Path, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.interrupted(case, ledger, tmp_path / "out", monkeypatch)
        write_plan(case / "swap.yaml", plan_of("swap", rate="1/3"))
        made = run_release(case / "swap.yaml", tmp_path / "out", ledger)
        assert not made.resumed
        assert [spend.status for spend in spends(ledger, "swap")] == ["open", "finished"]

    def test_products_damaged_before_they_appeared_are_not_published(
        self, case: Path, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(run_module, "appear", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                run_release(case / "swap.yaml", tmp_path / "out", ledger)
        (part,) = leftovers(tmp_path / "out")
        (tmp_path / part / "public" / "report.md").write_text("other", encoding="utf-8")
        with pytest.raises(Refusal, match="damaged"):
            run_release(case / "swap.yaml", tmp_path / "out", ledger)
        assert not (tmp_path / "out").exists()


WATCHED = {Path(run_module.__file__).with_name(f"{name}.py") for name in ("publication", "payment", "folder")}


class Interrupter:
    """Raises an interrupt at the n-th line that is executed in the watched modules."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __enter__(self) -> Interrupter:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._line if Path(frame.f_code.co_filename) in WATCHED else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self._line


def interrupt_everywhere(mechanism: str, case: Path, steps: Iterator[int]) -> int:
    """Interrupt a run at each of some lines, then run again; returns how many interrupts hit."""
    hits = 0
    for at in steps:
        place = case.parent / f"{mechanism}-{at}"
        place.mkdir()
        ledger, out = new_ledger(place / "ledger.db", case, [mechanism]), place / "out"
        watcher = Interrupter(at)
        try:
            with watcher:
                run_release(case / f"{mechanism}.yaml", out, ledger)
        except KeyboardInterrupt:
            pass
        if watcher.left > 0:
            break
        hits += 1
        book = Ledger.open(place / "ledger.db")
        assert book.verify().ok
        if out.exists():
            assert verify_release(out, book).problems == (), at
        else:
            assert verify_release(run_release(case / f"{mechanism}.yaml", out, book).folder, book).sound, at
        assert len(spends(book, mechanism)) == 1, at
        assert leftovers(out) == [], at
    return hits


@both
def test_an_interrupt_at_some_lines(mechanism: str, case: Path) -> None:
    assert interrupt_everywhere(mechanism, case, iter((90,))) == 1


@pytest.mark.slow
@both
def test_an_interrupt_at_many_lines(mechanism: str, case: Path) -> None:
    assert interrupt_everywhere(mechanism, case, iter(range(1, 2000, 17))) > 5
