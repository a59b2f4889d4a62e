"""Crashes, competitors, full disks, wrong files: the ledger stays true, and says what is wrong."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from ledger.common import make, plan, pure

from stirred.errors import InputError, NewerSchema, StirredError
from stirred.ledger import Ledger, LedgerBusy, OverBudget, SqliteStorage
from stirred.spec import Exact

HARNESS = Path(__file__).with_name("harness.py")


def run(*arguments: object) -> dict:
    done = subprocess.run(
        [sys.executable, str(HARNESS), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@pytest.mark.parametrize("room", [1, 7])
def test_of_32_processes_exactly_as_many_succeed_as_the_budget_has_room_for(
    tmp_path: Path, room: int
) -> None:
    ledger = make(tmp_path, pure(f"{room}/10"))
    found = run("contend", tmp_path / "ledger.db", 32, "different")
    assert found["codes"] == [0] * room + [3] * (32 - room)
    assert ledger.total("a").budget.amount == Exact.of(f"{room}/10")
    assert ledger.verify().ok
    assert len(ledger.statement("a").spends) == room


def test_of_32_processes_with_one_plan_exactly_one_pays(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(100))
    found = run("contend", tmp_path / "ledger.db", 32, "same")
    assert found["codes"] == [0] + [4] * 31
    assert ledger.total("a").budget.amount == Exact.of("1/10")


def test_threads_share_one_ledger(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure("1/2"))
    outcomes: list[bool] = []

    def act(number: int) -> None:
        try:
            ledger.spend("a", pure("1/10"), plan(number), by="Ben")
            outcomes.append(True)
        except OverBudget:
            outcomes.append(False)

    threads = [threading.Thread(target=act, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 7 + [True] * 5
    assert ledger.verify().ok


def test_killed_at_every_statement_of_a_spend_the_ledger_is_true(tmp_path: Path) -> None:
    make(tmp_path, pure(1))
    found = run("crash", tmp_path / "ledger.db", "statement", 1)
    assert found["faults"] == []
    assert found["last"] == 0
    assert len(found["outcomes"]) >= 7
    assert set(found["outcomes"][:-1]) == {0}
    assert found["outcomes"][-1] == 1


def test_killed_at_instructions_of_the_database_the_ledger_is_true(tmp_path: Path) -> None:
    make(tmp_path, pure(1))
    found = run("crash", tmp_path / "ledger.db", "instruction", 5)
    assert found["faults"] == []
    assert found["last"] == 0
    assert len(found["outcomes"]) >= 10
    assert set(found["outcomes"]) == {0, 1}


def test_killed_between_commit_and_head_file_the_spend_is_kept(tmp_path: Path) -> None:
    make(tmp_path, pure(1))
    found = run("head", tmp_path / "ledger.db")
    assert found["code"] == -9
    assert (found["more"], found["ok"]) == (1, True)
    assert "vouches for events up to 5 of 6" in found["notes"][0]


def test_killed_while_it_is_made_a_ledger_can_be_made_again(tmp_path: Path) -> None:
    results = run("birth", tmp_path)["results"]
    assert [code for code, _, _ in results[:-1]] == [-9] * (len(results) - 1)
    assert results[-1][0] == 0
    assert len(results) >= 12
    assert all(ok and staffed for _, ok, staffed in results)


def test_killed_at_random_no_acknowledged_spend_is_lost(tmp_path: Path) -> None:
    make(tmp_path, pure(1))
    found = run("massacre", tmp_path / "ledger.db", 12)
    assert found["lost"] == 0
    assert found["faults"] == []
    assert found["acknowledged"] > 0


def test_a_commit_is_flushed_to_the_disk(tmp_path: Path) -> None:
    """Journal in rollback mode; synchronous = EXTRA (3) also flushes the folder after the commit."""
    make(tmp_path)
    connection = SqliteStorage(tmp_path / "ledger.db")._connect()
    assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    connection.close()


class Full(SqliteStorage):
    """A disk with no room for another page."""

    room = 0

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + self.room}")
        return connection


def test_a_full_disk_refuses_the_spend_and_leaves_the_ledger_true(tmp_path: Path) -> None:
    make(tmp_path, pure(1))
    storage = Full(tmp_path / "ledger.db")
    ledger = Ledger(storage)
    for _ in range(200):
        before = (ledger.head(), ledger.total("a"))
        try:
            ledger.spend("a", pure("1/1000"), plan(), by="Ben")
        except InputError:
            break
    with pytest.raises(InputError, match="no room to write") as refused:
        ledger.spend("a", pure("1/1000"), plan(), by="Ben")
    assert "Nothing was recorded" in refused.value.hint
    assert (ledger.head(), ledger.total("a")) == before
    assert Ledger.open(tmp_path / "ledger.db").verify().ok
    storage.room = 100
    assert ledger.spend("a", pure("1/1000"), plan(), by="Ben").sequence == before[0].sequence + 1


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("database or disk is full", "no room to write"),
        ("attempt to write a readonly database", "read-only"),
        ("unable to open database file", "cannot be opened"),
        ("disk I/O error", "the disk failed"),
        ("database disk image is malformed", "damaged"),
        ("file is not a database", "is not a ledger"),
        ("something else", "cannot be read or written"),
    ],
)
@pytest.mark.parametrize("at", ["BEGIN IMMEDIATE", "INSERT", "COMMIT"])
def test_whatever_the_database_says_nothing_is_half_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, problem: str, at: str
) -> None:
    ledger = make(tmp_path, pure(1))
    head = ledger.head()
    original = SqliteStorage._connect

    class Failing(sqlite3.Connection):
        def execute(self, sql: str, *rest: object) -> sqlite3.Cursor:
            if sql.startswith(at):
                raise sqlite3.OperationalError(said)
            return super().execute(sql, *rest)

    def connect(self: SqliteStorage) -> sqlite3.Connection:
        with monkeypatch.context() as patch:
            opened = sqlite3.connect
            patch.setattr(sqlite3, "connect", lambda *a, **k: opened(*a, factory=Failing, **k))
            return original(self)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteStorage, "_connect", connect)
        with pytest.raises(StirredError) as refused:
            ledger.spend("a", pure("1/10"), plan(), by="Ben")
        assert problem in refused.value.problem
    assert ledger.head() == head
    assert ledger.verify().ok
    assert ledger.remaining("a").budget.amount == Exact.of(1)
    ledger.spend("a", pure("1/10"), plan(), by="Ben")


def test_an_interrupt_inside_the_transaction_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stirred.ledger import sqlite

    ledger = make(tmp_path, pure(1))
    head = ledger.head()

    def interrupted(self: object, row: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sqlite._SqliteTransaction, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.spend("a", pure("1/10"), plan(), by="Ben")
    assert ledger.head() == head
    ledger.spend("a", pure("1/10"), plan(), by="Ben")
    assert ledger.verify().ok


def test_a_ledger_opened_for_reading_is_not_written(tmp_path: Path) -> None:
    make(tmp_path, pure(1))
    ledger = Ledger.open(tmp_path / "ledger.db", read_only=True)
    assert ledger.remaining("a").budget.amount == Exact.of(1)
    with pytest.raises(InputError, match="read-only"):
        ledger.spend("a", pure("1/10"), plan(), by="Ben")
    assert ledger.verify().ok


def test_a_read_only_folder_is_refused_by_name() -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        make(folder, pure(1))
        (folder / "ledger.db").chmod(0o666)
        (folder / "ledger.db.head").chmod(0o644)
        folder.chmod(0o555)
        found = run("read-only", folder / "ledger.db")
        assert found["code"] == 2
        assert "ledger.db" in found["problem"]
        assert "read-only" in found["problem"] or "cannot be opened" in found["problem"]
        folder.chmod(0o755)
        assert Ledger.open(folder / "ledger.db").verify().ok
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_hanging_writer_is_waited_for_and_then_named(tmp_path: Path) -> None:
    make(tmp_path, pure(1))
    blocker = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerBusy, match="another process holds"):
        Ledger.open(tmp_path / "ledger.db", patience=0.1).spend("a", pure("1/10"), plan(), by="Ben")
    blocker.execute("ROLLBACK")
    blocker.close()
    Ledger.open(tmp_path / "ledger.db", patience=0.1).spend("a", pure("1/10"), plan(), by="Ben")


def test_a_missing_file_is_not_made_on_the_way(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.db", tmp_path / "no" / "folder.db", tmp_path):
        with pytest.raises(InputError, match="there is no ledger"):
            Ledger.open(path)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    text, empty, other = (tmp_path / name for name in ("text", "empty", "other"))
    text.write_text("a, b\n1, 2\n" * 100)
    empty.write_bytes(b"")
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE event (x)")
    connection.commit()
    connection.close()
    for path in (text, empty, other):
        before = path.read_bytes()
        with pytest.raises(InputError, match="is not a ledger"):
            Ledger.open(path)
        assert path.read_bytes() == before
    for path in (text, other):
        with pytest.raises(InputError):
            Ledger.create(path, owner="Ada")
        assert not Path(f"{path}.key").exists()


def test_a_ledger_is_never_overwritten(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    key = (tmp_path / "ledger.db.key").read_bytes()
    head = ledger.head()
    with pytest.raises(InputError, match="exists already"):
        Ledger.create(tmp_path / "ledger.db", owner="Eve")
    assert ledger.head() == head
    assert (tmp_path / "ledger.db.key").read_bytes() == key
    with pytest.raises(InputError, match="cannot be made"):
        Ledger.create(tmp_path / "ledger.db" / "inside.db", owner="Ada")


@pytest.mark.parametrize(
    ("version", "error"), [(0, InputError), (1, InputError), (3, NewerSchema), (99, NewerSchema)]
)
def test_another_schema_is_refused_with_both_versions(
    tmp_path: Path, version: int, error: type[StirredError]
) -> None:
    make(tmp_path, pure(1))
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    with pytest.raises(error, match=f"schema version {version}; this stirred writes 2"):
        Ledger.open(tmp_path / "ledger.db")


def test_a_relative_path_survives_a_change_of_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ledger = make(Path("."), pure(1), name="odd name #1?.db")
    monkeypatch.chdir(os.sep)
    ledger.spend("a", pure("1/10"), plan(), by="Ben")
    assert Ledger.open(tmp_path / "odd name #1?.db").verify().ok
