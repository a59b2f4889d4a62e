"""Threats 7 to 9, 19 and 20: budgets, ledgers and who shares them.

Numbers are those of the page on threats in the documentation.
"""

from __future__ import annotations

import copy
import pickle
import re
import sqlite3
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from ledger.common import MANIFEST, make, plan, pure, zcdp
from support.release_case import FrozenSource
from support.releasing import run_release
from support.small_release import opened_ledger, village

from stirred.ledger import Equal, Ledger, OverBudget, TamperedLedger, Weighted
from stirred.spec import Exact


def test_threat_07_no_name_of_the_ledger_gives_budget_back(tmp_path: Path) -> None:
    refill = re.compile("reset|refill|refund|restore|clear|delete|remove|undo|set_|reopen|rollback|replace")
    assert [name for name in dir(Ledger) if not name.startswith("_") and refill.search(name)] == []
    assert not [n for n, v in vars(Ledger).items() if isinstance(v, property) and v.fset is not None]
    ledger = make(tmp_path, pure(1))
    spend = ledger.spend("a", pure("1/2"), plan(), by="Ben")
    statement = ledger.statement("a")
    statement.periods.clear()
    statement.allocations.clear()
    for thing, name in ((spend, "specification"), (statement, "spent"), (statement, "ceiling")):
        with pytest.raises(AttributeError):
            setattr(thing, name, None)
    ledger.finish(spend, MANIFEST, by="Ben")
    assert ledger.remaining("a").budget.amount == Exact.of("1/2")


def test_threat_07_copies_of_a_ledger_share_what_is_spent(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    copies = [ledger, copy.copy(ledger), copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))]
    for one in copies:
        one.spend("a", pure("1/4"), plan(), by="Ben")
    for one in (*copies, Ledger.open(tmp_path / "ledger.db")):
        assert one.remaining("a").budget.amount == Exact.of(0)
        with pytest.raises(OverBudget):
            one.spend("a", pure("1/100"), plan(), by="Ben")


def test_threat_07_editing_the_file_breaks_the_chain(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    ledger.spend("a", pure("9/10"), plan(), by="Ben")
    connection = sqlite3.connect(tmp_path / "ledger.db")
    edit = "UPDATE event SET body = replace(body, '9/10', '1/10')"
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        connection.execute(edit)
    for guard in ("event_edited", "event_deleted"):
        connection.execute(f"DROP TRIGGER {guard}")
    assert connection.execute(edit).rowcount > 0
    connection.commit()
    connection.close()
    assert not Ledger.open(tmp_path / "ledger.db").verify().ok
    with pytest.raises(TamperedLedger):
        Ledger.open(tmp_path / "ledger.db").spend("a", pure("1/2"), plan(), by="Ben")


def test_threat_08_of_many_threads_exactly_as_many_succeed_as_there_is_room_for(tmp_path: Path) -> None:
    """Processes, and a process that is killed in the middle: tests/ledger/test_faults.py."""
    make(tmp_path, pure("3/10"))
    start, outcomes = threading.Barrier(16), []

    def act(number: int) -> None:
        own = Ledger.open(tmp_path / "ledger.db")
        start.wait()
        try:
            own.spend("a", pure("1/10"), plan(number), by="Ben")
            outcomes.append("paid")
        except OverBudget:
            outcomes.append("refused")

    threads = [threading.Thread(target=act, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["paid"] * 3 + ["refused"] * 13
    assert Ledger.open(tmp_path / "ledger.db").verify().ok


def test_threat_08_a_run_that_dies_after_paying_has_paid(tmp_path: Path) -> None:
    path = village(tmp_path / "case")
    ledger = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))

    class Dies(FrozenSource):
        def spawn(self) -> Any:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_release(path, tmp_path / "out", ledger, random=Dies(1))
    (spend,) = Ledger.open(tmp_path / "ledger.db").statement("village").spends
    assert spend.status == "open" and not (tmp_path / "out").exists()


@pytest.mark.parametrize("tenth", [0.1, "0.1", Fraction(1, 10)], ids=["float", "text", "fraction"])
def test_threat_09_ten_tenths_are_one_and_an_eleventh_is_refused(tmp_path: Path, tenth: object) -> None:
    assert sum([0.1] * 10) != 1.0 and 0.1 * 3 > 0.3  # what floats would make of it
    ledger = make(tmp_path, pure(1), zcdp(1))
    for dataset, release in (("a", pure(tenth)), ("b", zcdp(tenth))):
        for _ in range(10):
            ledger.spend(dataset, release, plan(), by="Ben")
        assert ledger.remaining(dataset).budget.amount == Exact.of(0)
        with pytest.raises(OverBudget):
            ledger.spend(dataset, release, plan(), by="Ben")


def test_threat_19_a_step_without_protection_is_shown_in_the_release_table(tmp_path: Path) -> None:
    path = village(tmp_path / "case")
    ledger = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    step = "the swap rate was tried out on the records"
    ledger.non_private_step("village", step, "time was short", by="Ben")
    made = run_release(path, tmp_path / "out", ledger)
    for name in ("release-table.md", "release-table.csv", "release-table.json", "report.md", "report.html"):
        text = (made.folder / "public" / name).read_text(encoding="utf-8")
        assert step in text, name
    table = (made.folder / "public" / "release-table.md").read_text(encoding="utf-8")
    assert "∞" in table and "NOT COVERED" in table
    (spend,) = ledger.statement("village").spends
    assert len(spend.tainted) == 1 and spend.tainted[0].startswith(step)


def test_threat_20_analysts_together_spend_no_more_than_the_data_set_has(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1), zcdp(1))
    for dataset, unit in (("a", pure), ("b", zcdp)):
        ledger.allocate(dataset, Weighted({"Di": 2, "Ed": 1}), by="Cy", of=unit("3/4"))
        with pytest.raises(OverBudget):
            ledger.allocate(dataset, Equal(["Di", "Ed"]), by="Cy", of=unit("1/2"))
        ledger.spend(dataset, unit("1/2"), plan(), by="Di", analyst="Di")
        ledger.spend(dataset, unit("1/4"), plan(), by="Ed", analyst="Ed")
        ledger.spend(dataset, unit("1/4"), plan(), by="Ben")
        for name, analyst in (("Di", "Di"), ("Ed", "Ed"), ("Ben", None)):
            with pytest.raises(OverBudget):
                ledger.spend(dataset, unit("1/1000"), plan(), by=name, analyst=analyst)
        assert ledger.total(dataset).budget.amount == Exact.of(1)
        granted = ledger.statement(dataset).allocations.values()
        whole = sum((g.budget.amount.rational or Fraction(0) for g, _ in granted), Fraction(0))
        assert whole == Fraction(3, 4)
