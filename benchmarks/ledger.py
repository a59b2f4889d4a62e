"""The ledger under competition: spends a second of many processes, how evenly they are served, and growth.

Prints, as the median of three rounds: what many processes spend together on one ledger, the least and the
most of a process and their ratio, and how long a spend takes; the same for one process alone and for the
storage without a ledger on top (append only). Then what a spend costs, and what opening costs, on ledgers of
growing length. The disk and the number of cores decide: compare the rows with each other. A minute or two;
``python benchmarks/ledger.py PROCESSES SECONDS`` for other sizes.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from stirred.ledger import Ledger, SqliteStorage
from stirred.ledger.chain import Row
from stirred.spec import Budget, Specification, catalogue

PROCESSES, SECONDS, ROUNDS = 16, 4.0, 3
LENGTHS = (100, 1_000, 5_000)
CONTEXT = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")

Turn = Callable[[], object]


def release(epsilon: str) -> Specification:
    return catalogue.specification("pure-dp", Budget.epsilon(epsilon))


def founded(folder: Path) -> Path:
    path = folder / "ledger.db"
    ledger = Ledger.create(path, owner="Ada")
    ledger.appoint("Ben", "curator", by="Ada")
    ledger.open_dataset("survey", release("1000000"), by="Ada")
    return path


def spender(path: Path) -> Turn:
    """A process that spends: a new plan each time."""
    ledger, price = Ledger.open(path), release("1/1000")
    return lambda: ledger.spend("survey", price, hashlib.sha256(os.urandom(16)).hexdigest(), by="Ben")


def appender(path: Path) -> Turn:
    """A process that appends a row of the size of a spend to the storage, with no ledger on top."""
    storage, body, last = SqliteStorage(path), "x" * 700, -1

    def turn() -> None:
        nonlocal last
        with storage.writing() as transaction:
            for row in transaction.rows(last):
                last = row.sequence
            last += 1
            transaction.append(Row(last, body, os.urandom(32).hex()))

    return turn


class Round(NamedTuple):
    """What some processes did together in one round."""

    rate: float
    least: int
    most: int
    middle: float
    longest: float

    @property
    def evenness(self) -> float:
        return self.least / max(self.most, 1)


def work(
    make: Callable[[Path], Turn],
    path: Path,
    seconds: float,
    start: object,
    answers: object,
) -> None:
    turn = make(path)
    start.wait()  # type: ignore[attr-defined]
    took, begun = [], time.perf_counter()
    end = begun + seconds
    while (now := time.perf_counter()) < end:
        turn()
        took.append(time.perf_counter() - now)
    answers.put((took, time.perf_counter() - begun))  # type: ignore[attr-defined]


def compete(make: Callable[[Path], Turn], processes: int, seconds: float) -> Round:
    with tempfile.TemporaryDirectory() as folder:
        path = founded(Path(folder))
        start, answers = CONTEXT.Barrier(processes), CONTEXT.SimpleQueue()
        children = [
            CONTEXT.Process(target=work, args=(make, path, seconds, start, answers)) for _ in range(processes)
        ]
        for child in children:
            child.start()
        found = [answers.get() for _ in children]
        for child in children:
            child.join()
        if make is spender and not Ledger.open(path).verify().ok:
            raise SystemExit("the ledger is not true after the round")
    took = sorted(one for times, _ in found for one in times)
    counts = [len(times) for times, _ in found]
    rate = len(took) / max(whole for _, whole in found)
    return Round(rate, min(counts), max(counts), took[len(took) // 2], took[-1])


def competition(name: str, make: Callable[[Path], Turn], processes: int, seconds: float) -> None:
    rounds = [compete(make, processes, seconds) for _ in range(ROUNDS)]

    def middle(of: Callable[[Round], float]) -> float:
        return statistics.median(map(of, rounds))

    print(
        f"{name:<32} {middle(lambda r: r.rate):8.0f}/s  "
        f"least {middle(lambda r: r.least):5.0f}  most {middle(lambda r: r.most):5.0f}  "
        f"ratio {middle(lambda r: r.evenness):5.2f} (worst {min(r.evenness for r in rounds):4.2f})  "
        f"p50 {middle(lambda r: r.middle) * 1e3:7.1f} ms  max {middle(lambda r: r.longest) * 1e3:7.0f} ms",
        flush=True,
    )


def best(act: Turn, runs: int) -> tuple[float, float]:
    """The least wall time and the least time of the processor, of some runs."""
    walls, cores = [], []
    for _ in range(runs):
        wall, core = time.perf_counter(), time.process_time()
        act()
        walls.append(time.perf_counter() - wall)
        cores.append(time.process_time() - core)
    return min(walls), min(cores)


def growth() -> None:
    """A spend by a process that spends again and again; opening by one that reads all for the first time."""
    print("length     a spend (wall, processor)    opening and reading all    per entry")
    with tempfile.TemporaryDirectory() as folder:
        path = founded(Path(folder))
        turn, made = spender(path), 3
        for length in LENGTHS:
            for _ in range(length - made):
                turn()
            made = length
            wall, core = best(turn, 20)
            made += 20
            opened, _ = best(lambda: Ledger.open(path).head(), 3)
            print(
                f"{length:6d}     {wall * 1e3:7.2f} ms  {core * 1e3:7.2f} ms      {opened * 1e3:12.1f} ms"
                f"         {opened / made * 1e6:8.0f} µs",
                flush=True,
            )


if __name__ == "__main__":
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else PROCESSES
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else SECONDS
    print(f"{processes} processes, {seconds:g} s a round, {ROUNDS} rounds, {os.cpu_count()} cores")
    competition(f"spend, {processes} processes", spender, processes, seconds)
    competition("spend, one process", spender, 1, seconds)
    competition(f"append only, {processes} processes", appender, processes, seconds)
    competition("append only, one process", appender, 1, seconds)
    growth()
