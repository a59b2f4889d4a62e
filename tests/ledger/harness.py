"""Processes that compete for a ledger, and processes that die in the middle: run as a program by the tests.

Each scenario forks real processes from one that has imported everything, and prints one JSON object.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from ledger.common import plan, pure

from stirred.errors import StirredError
from stirred.ledger import Ledger, NotOpen, OverBudget, SqliteStorage
from stirred.ledger.anchor import HeadFile
from stirred.ledger.line import _END, _last, in_line
from stirred.ledger.storage import nothing

KILLED = -int(signal.SIGKILL)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def child(act: Callable[[], int]) -> int:
    """Start a process for an act; its exit code is the act's answer."""
    number = os.fork()
    if number == 0:
        code = 99
        try:
            code = act()
        finally:
            os._exit(code)
    return number


def code_of(number: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def contend(path: Path, count: int, same_plan: bool) -> dict[str, object]:
    """So many processes spend at the same moment; 0 for a success, 3 for no room, 4 for a plan in use."""
    reading, writing = os.pipe()

    def act(index: int) -> int:
        os.close(writing)
        os.read(reading, 1)
        ledger = Ledger.open(path)
        try:
            ledger.spend("a", pure("1/10"), plan(0 if same_plan else index), by="Ben")
        except OverBudget:
            return 3
        except NotOpen:
            return 4
        return 0

    children = [child(lambda index=index: act(index)) for index in range(count)]
    os.close(reading)
    os.close(writing)
    return {"codes": sorted(code_of(number) for number in children)}


class Mortal(SqliteStorage):
    """A storage whose process dies at the n-th statement, or at the n-th instruction of the database."""

    statement: int | None = None
    instruction: int | None = None

    def _connect(self) -> sqlite3.Connection:
        connection = super()._connect()
        counted = 0

        def step(*_: object) -> int:
            nonlocal counted
            counted += 1
            if counted == (self.statement or self.instruction):
                die()
            return 0

        if self.statement is not None:
            connection.set_trace_callback(step)
        if self.instruction is not None:
            connection.set_progress_handler(step, 1)
        return connection


def crash(path: Path, kind: str, stride: int) -> dict[str, object]:
    """Die at every step of a spend, one process for each; after each death the ledger must be true."""
    outcomes, faults, step = [], [], 1
    anchor = HeadFile(path.with_name(f"{path.name}.head"))
    while True:
        before = len(Ledger.open(path).events())

        def act(at: int = step) -> int:
            storage = Mortal(path)
            ledger = Ledger(storage, anchor=anchor)
            ledger.head()
            setattr(storage, kind, at)
            ledger.spend("a", pure("1/1000"), plan(at), by="Ben")
            return 0

        code = code_of(child(act))
        ledger = Ledger.open(path)
        seen = ledger.verify()
        outcomes.append(seen.events - before)
        faults += [str(finding) for finding in seen.findings]
        ledger.appoint(f"P{step}", "analyst", by="Ada")
        if code != KILLED or step > 2000:
            return {"last": code, "outcomes": outcomes, "faults": faults}
        step += stride


def crash_before_the_head_file(path: Path) -> dict[str, object]:
    """Die between the commit and the head file."""

    def act() -> int:
        HeadFile.write = lambda self, head: die()  # type: ignore[method-assign]
        Ledger.open(path).spend("a", pure("1/10"), plan(), by="Ben")
        return 0

    before = len(Ledger.open(path).events())
    code = code_of(child(act))
    seen = Ledger.open(path).verify()
    return {"code": code, "more": seen.events - before, "ok": seen.ok, "notes": list(seen.notes)}


def crash_at_birth(folder: Path) -> dict[str, object]:
    """Die at every statement of the making of a ledger; making it again must succeed, or it is whole."""
    results = []
    for step in range(1, 40):
        path = folder / f"born{step}.db"

        def act(at: int = step, place: Path = path) -> int:
            counted = 0
            original = SqliteStorage._connect

            def connect(self: SqliteStorage) -> sqlite3.Connection:
                connection = original(self)

                def trace(_: str) -> None:
                    nonlocal counted
                    counted += 1
                    if counted == at:
                        die()

                connection.set_trace_callback(trace)
                return connection

            SqliteStorage._connect = connect  # type: ignore[method-assign]
            Ledger.create(place, owner="Ada")
            return 0

        code = code_of(child(act))
        try:
            ledger = Ledger.create(path, owner="Ada")
        except StirredError:
            ledger = Ledger.open(path)
        results.append((code, ledger.verify().ok, ledger.people() == {"Ada": ("owner",)}))
        if code == 0:
            break
    return {"results": results}


def massacre(path: Path, rounds: int) -> dict[str, object]:
    """Kill a process that spends as fast as it can, at random moments; it acknowledges on a pipe."""
    random.seed(20260101)
    lost, faults, acknowledged = 0, [], 0
    for _ in range(rounds):
        reading, writing = os.pipe()

        def act(out: int = writing) -> int:
            ledger = Ledger.open(path)
            while True:
                spend = ledger.spend("a", pure("1/100000"), plan(), by="Ben")
                os.write(out, f"{spend.sequence}\n".encode())

        number = child(act)
        os.close(writing)
        time.sleep(random.uniform(0.02, 0.12))
        os.kill(number, signal.SIGKILL)
        code_of(number)
        with os.fdopen(reading) as pipe:
            told = [int(line) for line in pipe if line.endswith("\n")]
        ledger = Ledger.open(path)
        kept = {spend.sequence for spend in ledger.statement("a").spends}
        lost += len(set(told) - kept)
        acknowledged += len(told)
        faults += [str(finding) for finding in ledger.verify().findings]
        for spend in ledger.statement("a").spends:
            if spend.status == "open":
                ledger.finish(spend, plan(), by="Ben")
        ledger.appoint("Q", "analyst", by="Ada")
    return {"lost": lost, "faults": faults, "acknowledged": acknowledged}


def queue(path: Path, count: int) -> dict[str, object]:
    """Processes come to spend one after the other while the line is held; then they are let go."""
    with in_line(line_of(path), 60, nothing):
        children = []
        for index in range(count):
            children.append(child(lambda index=index: spend_once(path, index)))
            wait_until(lambda index=index: len(places(path)) == index + 2)
    codes = [code_of(number) for number in children]
    plans = [entry.event.plan for entry in Ledger.open(path).events() if entry.event.kind == "spent"]
    return {"codes": codes, "order": [plans.index(plan(index)) for index in range(count)]}


def spend_once(path: Path, index: int) -> int:
    Ledger.open(path).spend("a", pure("1/1000"), plan(index), by="Ben")
    return 0


def dead_in_line(path: Path) -> dict[str, object]:
    """Kill the one at the front of the line, which leaves a child behind, and one that waits."""
    reading, writing = os.pipe()

    def live_on() -> int:
        os.write(writing, f"{os.getpid()}\n".encode())
        time.sleep(600)
        return 0

    def hold(fork: bool) -> int:
        with in_line(line_of(path), 60, nothing):
            if fork:
                child(live_on)
            time.sleep(600)
        return 0

    first = child(lambda: hold(True))
    with os.fdopen(reading) as pipe:
        orphan = int(pipe.readline())
    second = child(lambda: hold(False))
    wait_until(lambda: len(places(path)) == 2)
    for victim in (second, first):
        os.kill(victim, signal.SIGKILL)
        code_of(victim)
    os.kill(orphan, 0)
    left = len(places(path))
    os.kill(orphan, signal.SIGKILL)
    return {"left": left, "code": code_of(child(lambda: spend_once(path, 0)))}


def wait_until(holds: Callable[[], bool]) -> None:
    while not holds():
        time.sleep(0.001)


def line_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.line")


def places(path: Path) -> list[int]:
    """The places that are taken in the line of a ledger, as anybody can see them."""
    return places_in(line_of(path))


def places_in(line: Path) -> list[int]:
    handle = os.open(line, os.O_RDWR)
    try:
        found, end = [], _END
        while (last := _last(handle, end)) is not None:
            found.insert(0, last)
            end = last
        return found
    finally:
        os.close(handle)


def read_only(path: Path) -> dict[str, object]:
    """Spend, as nobody in particular, in a folder that nobody may write to."""
    reading, writing = os.pipe()

    def act() -> int:
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            Ledger.open(path).spend("a", pure("1/10"), plan(), by="Ben")
        except StirredError as error:
            os.write(writing, error.problem.encode())
            return error.exit_code
        return 0

    code = code_of(child(act))
    os.close(writing)
    with os.fdopen(reading) as pipe:
        return {"code": code, "problem": pipe.read()}


if __name__ == "__main__":
    scenario, where, *rest = sys.argv[1:]
    place = Path(where)
    answer = {
        "contend": lambda: contend(place, int(rest[0]), rest[1] == "same"),
        "crash": lambda: crash(place, rest[0], int(rest[1])),
        "head": lambda: crash_before_the_head_file(place),
        "birth": lambda: crash_at_birth(place),
        "massacre": lambda: massacre(place, int(rest[0])),
        "read-only": lambda: read_only(place),
        "queue": lambda: queue(place, int(rest[0])),
        "dead": lambda: dead_in_line(place),
    }[scenario]()
    sys.stdout.write(json.dumps(answer))
