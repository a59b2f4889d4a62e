"""From spend to finish: paid first, resumed with the same plan only, published by one run, never refunded."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from ledger.common import MANIFEST, make, plan, pure

from stirred.errors import InputError, UnknownName
from stirred.ledger import Head, Ledger, NotOpen, NotPermitted, OverBudget, SqliteStorage
from stirred.ledger.anchor import HeadFile
from stirred.ledger.events import Spent, guarantee
from stirred.spec import Exact


def test_an_event_says_what_happened_to_what_under_which_guarantee_when_and_by_whom(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    started = datetime.now(UTC)
    digest = plan()
    ledger.spend("a", pure("0.1"), digest, by="Ben", period="2026")
    entry = ledger.events()[-1]
    assert isinstance(entry.event, Spent)
    assert (entry.event.dataset, entry.event.plan, entry.event.period) == ("a", digest, "2026")
    assert guarantee(entry.event.specification) == pure("0.1")
    assert (entry.name, entry.role) == ("Ben", "curator")
    assert started <= datetime.fromisoformat(entry.at) <= datetime.now(UTC)
    assert entry.at.endswith("+00:00")


def test_times_are_kept_in_utc(tmp_path: Path) -> None:
    make(tmp_path)
    elsewhere = datetime(2026, 7, 1, 12, tzinfo=timezone(timedelta(hours=9)))
    storage = SqliteStorage(tmp_path / "ledger.db")
    ledger = Ledger(storage, clock=lambda: elsewhere)
    ledger.appoint("Flo", "curator", by="Ada")
    assert ledger.events()[-1].at == "2026-07-01T03:00:00.000000+00:00"


def test_a_spend_stays_spent_when_the_run_fails(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    ledger.spend("a", pure("3/4"), plan(), by="Ben")
    again = Ledger.open(tmp_path / "ledger.db")
    assert again.remaining("a").budget.amount == Exact.of("1/4")
    assert again.statement("a").spends[0].status == "open"


def test_there_is_no_refund() -> None:
    words = ("refund", "reset", "undo", "delete", "remove", "cancel", "credit")
    assert not [name for name in dir(Ledger) if any(word in name for word in words)]


def test_resume_returns_the_open_spend_and_spends_nothing(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    spend = ledger.spend("a", pure(1), plan(1), by="Ben")
    again = Ledger.open(tmp_path / "ledger.db").resume("a", plan(1), by="Ben")
    assert (again.sequence, again.attempt, again.specification) == (spend.sequence, 2, pure(1))
    assert ledger.total("a").budget.amount == Exact.of(1)
    with pytest.raises(NotOpen, match="nothing was spent for it"):
        ledger.resume("a", plan(2), by="Ben")


def test_the_same_plan_is_not_paid_twice_while_it_is_open(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    first = ledger.spend("a", pure("0.1"), plan(1), by="Ben")
    with pytest.raises(NotOpen, match="open spend"):
        ledger.spend("a", pure("0.1"), plan(1), by="Ben")
    ledger.finish(first, MANIFEST, by="Ben")
    with pytest.raises(NotOpen, match="the release was finished"):
        ledger.resume("a", plan(1), by="Ben")
    second = ledger.spend("a", pure("0.1"), plan(1), by="Ben")
    assert second.sequence != first.sequence
    assert ledger.total("a").budget.amount == Exact.of("1/5")


def test_of_two_runs_of_one_plan_only_the_latest_may_publish(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    hanging = ledger.spend("a", pure(1), plan(1), by="Ben")
    latest = Ledger.open(tmp_path / "ledger.db").resume("a", plan(1), by="Ben")
    with pytest.raises(NotOpen, match="resumed by another run"):
        ledger.finish(hanging, plan(8), by="Ben")
    done = ledger.finish(latest, MANIFEST, by="Ben")
    assert (done.status, done.manifest) == ("finished", MANIFEST)
    events = len(ledger.events())
    assert ledger.finish(latest, MANIFEST, by="Ben") == done
    assert len(ledger.events()) == events
    with pytest.raises(NotOpen, match="is finished"):
        ledger.finish(latest, plan(9), by="Ben")


@pytest.mark.parametrize("copier", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copy_of_a_ledger_shares_what_is_spent(tmp_path: Path, copier: object) -> None:
    ledger = make(tmp_path, pure(1))
    twin = copier(ledger)
    twin.spend("a", pure("0.6"), plan(), by="Ben")
    with pytest.raises(OverBudget):
        ledger.spend("a", pure("0.6"), plan(), by="Ben")
    assert ledger.head() == twin.head()


def test_a_step_without_protection_taints_what_follows_and_only_that(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1), pure(1))
    before = ledger.spend("a", pure("0.1"), plan(), by="Ben")
    clean = ledger.total("a")
    ledger.non_private_step("a", "tuning", "the bins were chosen on the confidential data", by="Ben")
    after = ledger.spend("a", pure("0.1"), plan(), by="Ben")
    assert before.tainted == ()
    assert after.tainted == ("tuning: the bins were chosen on the confidential data",)
    assert ledger.preview("a", pure("0.1")).tainted == after.tainted
    total = ledger.total("a")
    assert (clean.standing, total.standing) == ("unstated", "uncertified")
    assert any("not covered by any guarantee: tuning" in line for line in total.assumptions)
    assert ledger.statement("a").tainted == after.tainted
    assert ledger.spend("b", pure("0.1"), plan(), by="Ben").tainted == ()
    assert [s.tainted != () for s in ledger.statement("a").spends] == [False, True]


def test_an_override_is_kept_with_its_reason(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    ledger.override("a", "6 regulations", "counsel is informed", by="Ada")
    assert ledger.statement("a").overridden == ("6 regulations: counsel is informed",)


@pytest.mark.parametrize(
    ("act", "who"),
    [
        ("appoint", "Ada"),
        ("open", "Ada"),
        ("override", "Ada"),
        ("allocate", "Cy"),
        ("withdraw", "Cy"),
        ("spend", "Ben"),
        ("resume", "Ben"),
        ("finish", "Ben"),
        ("participate", "Ben"),
    ],
)
def test_every_act_has_its_role(tmp_path: Path, act: str, who: str) -> None:
    from stirred.ledger import Equal

    ledger = make(tmp_path, pure(2))
    ledger.allocate("a", Equal(["Ed"]), by="Cy", of=pure("1/2"))
    held = ledger.spend("a", pure("1/4"), plan(1), by="Ben")
    acts = {
        "appoint": lambda by: ledger.appoint("Flo", "analyst", by=by),
        "open": lambda by: ledger.open_dataset("z", pure(1), by=by),
        "override": lambda by: ledger.override("a", "step", "reason", by=by),
        "allocate": lambda by: ledger.allocate("a", Equal(["Di"]), by=by, of=pure("1/8")),
        "withdraw": lambda by: ledger.withdraw("a", "Ed", by=by),
        "spend": lambda by: ledger.spend("a", pure("1/8"), plan(), by=by),
        "resume": lambda by: ledger.resume("a", plan(1), by=by),
        "finish": lambda by: ledger.finish(held, MANIFEST, by=by),
        "participate": lambda by: ledger.participate(held, [1], limit=3, by=by),
    }
    before = len(ledger.events())
    for other in {"Ada", "Ben", "Cy", "Di", "stranger"} - {who}:
        with pytest.raises(NotPermitted) as refused:
            acts[act](other)
        assert refused.value.exit_code == 3
        assert other in refused.value.problem
    assert len(ledger.events()) == before
    acts[act](who)
    assert len(ledger.events()) == before + 1


def test_anyone_with_a_role_may_confess_and_a_stranger_may_not(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    for name in ("Ada", "Ben", "Cy", "Di"):
        ledger.non_private_step("a", f"look by {name}", "curiosity", by=name)
    with pytest.raises(NotPermitted):
        ledger.non_private_step("a", "look", "curiosity", by="stranger")
    assert len(ledger.statement("a").tainted) == 4


def test_roles_are_replaced_and_the_last_owner_stays(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    ledger.appoint("Ben", by="Ada")
    with pytest.raises(NotPermitted, match="holds no role"):
        ledger.spend("a", pure("0.1"), plan(), by="Ben")
    with pytest.raises(InputError, match="last owner"):
        ledger.appoint("Ada", "curator", by="Ada")
    ledger.appoint("Flo", "owner", by="Ada")
    ledger.appoint("Ada", "curator", by="Ada")
    assert ledger.people()["Ada"] == ("curator",)
    with pytest.raises(InputError, match="role is not known"):
        ledger.appoint("Gus", "king", by="Flo")


def test_names_and_digests_are_checked(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    for bad in ("", " a", "line\nbreak", "x" * 201):
        with pytest.raises(InputError, match="not a name"):
            ledger.open_dataset(bad, pure(1), by="Ada")
    for bad in ("", "abc", "G" * 64, "A" * 64):
        with pytest.raises(InputError, match="not a digest"):
            ledger.spend("a", pure("0.1"), bad, by="Ben")
    with pytest.raises(UnknownName, match="not in the ledger"):
        ledger.spend("nothing", pure("0.1"), plan(), by="Ben")
    with pytest.raises(InputError, match="not a head"):
        Head.parse("x:y")


def test_the_head_file_moves_forward_only(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    kept = HeadFile(tmp_path / "ledger.db.head")
    assert kept.read() == ledger.head()
    kept.write(Head(0, "0" * 64))
    assert kept.read() == ledger.head()
    assert not list(tmp_path.glob("*.part"))


def test_a_ledger_is_founded_once(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    with pytest.raises(InputError, match="founded once"):
        ledger.found("Ada")
    with pytest.raises(NotPermitted):
        ledger.found("Eve")
    assert ledger.people()["Ada"] == ("owner",)
    assert ledger.datasets() == ("a",)
