"""Writers are served in the order of their arrival; the line refuses nobody and outlives nobody."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import sys
import threading
import time
from pathlib import Path

import pytest
from ledger.common import make, plan, pure
from ledger.harness import line_of, places, places_in, wait_until
from ledger.test_faults import run

from stirred.errors import InputError
from stirred.ledger import Ledger, LedgerBusy, SqliteStorage, line
from stirred.ledger.anchor import HeadFile
from stirred.ledger.line import in_line
from stirred.ledger.storage import nothing
from stirred.spec import Exact

linux = pytest.mark.skipif(
    not line.LOCKS, reason="no locks that belong to an open file: nobody waits in line"
)


def spend(ledger: Ledger, number: int | None = None) -> int:
    return ledger.spend("a", pure("1/1000"), plan(number), by="Ben").sequence


@linux
def test_processes_spend_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    found = run("queue", tmp_path / "ledger.db", 8)
    assert found == {"codes": [0] * 8, "order": list(range(8))}
    assert ledger.verify().ok


@linux
def test_threads_are_served_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    """Threads of one ledger, of another object and of a pickled copy stand in one line."""
    ledger = make(tmp_path, pure(1))
    path = tmp_path / "ledger.db"
    ledgers = [ledger, Ledger.open(path), pickle.loads(pickle.dumps(ledger))]
    served: dict[int, int] = {}

    def act(index: int) -> None:
        served[index] = spend(ledgers[index % 3])

    threads = [threading.Thread(target=act, args=(index,)) for index in range(9)]
    with in_line(line_of(path), 60, nothing):
        for index, thread in enumerate(threads):
            thread.start()
            wait_until(lambda index=index: len(places(path)) == index + 2)
    for thread in threads:
        thread.join()
    first = served[0]
    assert served == {index: first + index for index in range(9)}
    assert ledger.verify().ok
    assert places(path) == []


@linux
def test_whoever_comes_later_never_pushes_in(tmp_path: Path) -> None:
    """The law of the line, on its own: everybody leaves and comes again at once, and turns go round."""
    path, turns, count = tmp_path / "line", [], 5
    gate = threading.Barrier(count)

    def act(index: int) -> None:
        with in_line(path, 60, nothing):
            pass
        gate.wait()
        for _ in range(6):
            with in_line(path, 60, nothing):
                turns.append(index)
                wait_until(lambda: len(places_in(path)) == count or len(turns) > 5 * count)

    path.touch(0o600)
    threads = [threading.Thread(target=act, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rounds = [turns[start : start + count] for start in range(0, 5 * count, count)]
    assert sorted(rounds[0]) == list(range(count))
    assert rounds == [rounds[0]] * 5


@linux
def test_a_dead_process_has_no_place_not_even_through_its_children(tmp_path: Path) -> None:
    make(tmp_path, pure(1))
    assert run("dead", tmp_path / "ledger.db") == {"left": 0, "code": 0}


@linux
def test_the_line_refuses_nobody_when_patience_runs_out(tmp_path: Path) -> None:
    """Somebody stands at the front and does not use the ledger: the database is asked, and it is free."""
    make(tmp_path, pure(1))
    path = tmp_path / "ledger.db"
    with in_line(line_of(path), 60, nothing):
        with in_line(line_of(path), 0.05, nothing) as left:
            assert left == 0
        spend(Ledger.open(path, patience=0.05))
        spend(Ledger.open(path, patience=0))


@linux
def test_patience_is_for_line_and_database_together(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    path = tmp_path / "ledger.db"
    head = ledger.head()
    with SqliteStorage(path).writing():
        for patience in (0, 0.1):
            with pytest.raises(LedgerBusy, match="another process holds") as refused:
                spend(Ledger.open(path, patience=patience))
            assert f"within {patience:g} seconds" in refused.value.expected
    assert ledger.head() == head
    assert places(path) == []
    spend(Ledger.open(path, patience=0))


@linux
def test_whoever_does_not_move_is_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "STANDSTILL", 0.05)
    make(tmp_path, pure(1))
    path = tmp_path / "ledger.db"
    with in_line(line_of(path), 60, nothing):
        spend(Ledger.open(path, patience=1e6))


@linux
def test_soon_is_called_before_the_turn_and_not_by_whoever_need_not_wait(tmp_path: Path) -> None:
    path, calls = tmp_path / "line", []
    with in_line(path, 60, lambda: calls.append("none")):
        assert calls == []
        with in_line(path, 0.02, lambda: calls.append("next")):
            assert calls == ["next"]


@linux
def test_an_exception_in_the_block_or_while_waiting_leaves_the_line(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    with pytest.raises(KeyboardInterrupt), in_line(line_of(path), 60, nothing):
        raise KeyboardInterrupt
    assert places(path) == []

    def interrupted() -> None:
        raise KeyboardInterrupt

    with in_line(line_of(path), 60, nothing):
        with pytest.raises(KeyboardInterrupt), in_line(line_of(path), 60, interrupted):
            pass
        assert len(places(path)) == 1
    wait_until(lambda: line._open == set())


@linux
def test_the_file_is_private_and_empty(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        spend(make(tmp_path, pure(1)))
    finally:
        os.umask(old)
    found = line_of(tmp_path / "ledger.db").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_size) == (0o600, 0)


def test_reading_makes_no_line_and_needs_none(tmp_path: Path) -> None:
    make(tmp_path, pure(1))
    path = tmp_path / "ledger.db"
    line_of(path).unlink(missing_ok=True)
    for ledger in (Ledger.open(path), Ledger.open(path, read_only=True)):
        assert ledger.remaining("a").budget.amount == Exact.of(1)
        assert ledger.verify().ok
    with pytest.raises(InputError, match="read-only"):
        spend(ledger)
    path.unlink()
    with pytest.raises(InputError, match="there is no ledger"), SqliteStorage(path).writing():
        pass
    assert not line_of(path).exists()


@pytest.mark.parametrize("spoiler", ["folder", "link", "no locks", "odd file system"])
def test_without_a_line_the_database_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoiler: str
) -> None:
    ledger = make(tmp_path, pure("3/1000"))
    place = line_of(tmp_path / "ledger.db")
    place.unlink(missing_ok=True)
    if spoiler == "folder":
        place.mkdir()
    elif spoiler == "link":
        place.symlink_to(tmp_path / "elsewhere")
    elif spoiler == "no locks":
        monkeypatch.setattr(line, "LOCKS", False)
    elif line.LOCKS:

        def unlocked(*_: object) -> bytes:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(line, "fcntl", unlocked)
    for _ in range(3):
        spend(ledger)
    assert ledger.remaining("a").budget.amount == Exact.of(0)
    assert not (tmp_path / "elsewhere").exists()
    assert ledger.verify().ok


def test_the_head_file_never_goes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is written in one's turn: of heads that were written at the same time an older one could be last."""
    make(tmp_path, pure(1))
    path, written = tmp_path / "ledger.db", []
    original = HeadFile._put

    def put(self: HeadFile, head: object) -> None:
        time.sleep(0.002)
        original(self, head)
        written.append(head.sequence)

    monkeypatch.setattr(HeadFile, "_put", put)

    def act() -> None:
        ledger = Ledger.open(path)
        for _ in range(5):
            spend(ledger)

    threads = [threading.Thread(target=act) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if line.LOCKS:
        assert written == list(range(6, 26))
    assert HeadFile(tmp_path / "ledger.db.head").read() == Ledger.open(path).head()


def test_a_head_file_that_is_just_being_replaced_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = make(tmp_path, pure(1))
    head, original, refused = ledger.head(), Path.read_text, [0]

    def busy(times: int) -> None:
        refused[0] = times

        def read_text(self: Path, *rest: object, **more: object) -> str:
            if self.name.endswith(".head") and refused[0]:
                refused[0] -= 1
                raise PermissionError(errno.EACCES, "in use")
            return original(self, *rest, **more)

        monkeypatch.setattr(Path, "read_text", read_text)

    busy(3)
    assert HeadFile(tmp_path / "ledger.db.head").read() == head
    busy(sys.maxsize)
    with pytest.raises(InputError, match=r"the head file ledger\.db\.head cannot be read"):
        ledger.remaining("a")


@linux
def test_a_writer_who_stops_before_its_head_does_not_come_back_with_old_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others pass it and write; until it goes on, or ends, the head stays behind. It never goes back."""
    monkeypatch.setattr(line, "STANDSTILL", 0.05)
    monkeypatch.setattr("stirred.ledger.sqlite.STANDSTILL", 0.05)
    slow = make(tmp_path, pure(1))
    path = tmp_path / "ledger.db"
    head = HeadFile(path.with_name("ledger.db.head"))
    stopped, go, put = threading.Event(), threading.Event(), HeadFile._put

    def late(self: HeadFile, known: object) -> None:
        if threading.current_thread() is writer:
            stopped.set()
            go.wait()
        put(self, known)  # type: ignore[arg-type]

    monkeypatch.setattr(HeadFile, "_put", late)
    writer = threading.Thread(target=spend, args=(slow,))
    before = head.read()
    writer.start()
    stopped.wait()
    quick = Ledger.open(path)
    last = spend(quick)
    assert head.read() == before
    go.set()
    writer.join()
    seen = [head.read()]
    last = spend(quick)
    seen.append(head.read())
    numbers = [known.sequence for known in seen if known is not None]
    assert numbers == sorted(numbers) and numbers[-1] == last
    assert quick.verify().ok


@linux
@pytest.mark.parametrize("start", [0, 2**62 - 10])
def test_a_stranger_who_locks_the_file_keeps_nobody_out(tmp_path: Path, start: int) -> None:
    import subprocess

    make(tmp_path, pure(1))
    path = tmp_path / "ledger.db"
    holder = (
        "import fcntl, sys\n"
        "file = open(sys.argv[1], 'r+')\n"
        "fcntl.lockf(file, fcntl.LOCK_EX, 0 if sys.argv[2] == '0' else 5, int(sys.argv[2]))\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", holder, str(line_of(path)), str(start)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        spend(Ledger.open(path, patience=0.3))
        other.communicate("")
