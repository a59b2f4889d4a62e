"""The self-test of the audits: every broken mechanism must be refuted, and no correct twin.

An audit that never fails proves nothing. The kill rate is the share of broken mechanisms that are refuted; a
false alarm is a refuted twin. Exhibits whose audit draws are repeated on the twin; the others cannot change.
"""

from __future__ import annotations

import difflib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from typing import Any

from stirred.audit import Finding
from stirred.errors import InputError, UnknownName
from stirred.extras import require
from stirred.museum import topdown
from stirred.museum.collection import collected
from stirred.noise import RandomSource, Source, TestSource

QUICK, FULL = 1, 1000
FEW = 8
_BATCH = 50


@dataclass(frozen=True)
class Examined:
    """One exhibit: what the audit found in the broken mechanism, and how often it blamed the twin."""

    key: str
    title: str
    source: str
    broken: Finding
    runs: int
    false_alarms: int
    seconds: float

    @property
    def killed(self) -> bool:
        return self.broken.violated

    def record(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "title": self.title,
            "source": self.source,
            "audit": self.broken.audit,
            "killed": self.killed,
            "sentence": self.broken.sentence,
            "twin_runs": self.runs,
            "false_alarms": self.false_alarms,
        }


@dataclass(frozen=True)
class SelfTest:
    """All exhibits."""

    examined: tuple[Examined, ...]
    seconds: float

    @property
    def kills(self) -> int:
        return sum(one.killed for one in self.examined)

    @property
    def runs(self) -> int:
        return sum(one.runs for one in self.examined)

    @property
    def false_alarms(self) -> int:
        return sum(one.false_alarms for one in self.examined)

    @property
    def passed(self) -> bool:
        return self.kills == len(self.examined) and not self.false_alarms

    @property
    def sentence(self) -> str:
        return (
            f"{self.kills} of {len(self.examined)} broken mechanisms are refuted; {self.false_alarms} false "
            f"alarms in {self.runs:,} audits of their correct twins."
        )

    def record(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "kill_rate": self.kills / len(self.examined),
            "kills": self.kills,
            "exhibits": len(self.examined),
            "false_alarms": self.false_alarms,
            "twin_runs": self.runs,
            "seconds": round(self.seconds, 1),
            "examined": [one.record() for one in self.examined],
        }


def self_test(
    keys: Iterable[str] | None = None,
    *,
    full: bool = False,
    seed: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> SelfTest:
    """Examine exhibits on every core.

    Parameters
    ----------
    full
        Repeat the audit of the twin a thousand times where it draws; once otherwise.
    seed
        A test seed, to repeat a run exactly; the operating system's randomness otherwise.
    progress
        Called with a word, the tasks done, and all tasks.
    """
    known = collected()
    chosen = list(dict.fromkeys(known if keys is None else keys))
    for key in chosen or ["none"]:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=2)
            raise UnknownName(
                "the museum has no such exhibit",
                field="exhibits",
                expected="names of exhibits, at least one",
                hint=f"Did you mean {' or '.join(near)}?" if near else "List them: `stirred audit museum`.",
            )
    if {exhibit.key for exhibit in topdown.EXHIBITS} & set(chosen):
        require("topdown")
    start = time.monotonic()
    tasks = list(_tasks(chosen, FULL if full else QUICK, seed))
    parts: dict[str, list[Examined]] = {key: [] for key in chosen}
    for done, part in enumerate(_examined(tasks), start=1):
        parts[part.key].append(part)
        if progress is not None:
            progress("exhibits", done, len(tasks))
    return SelfTest(tuple(_joined(parts[key]) for key in chosen), time.monotonic() - start)


Task = tuple[str, int, int, int | None]


def _examined(tasks: list[Task]) -> Iterator[Examined]:
    """A few tasks here; many in other processes."""
    if len(tasks) <= FEW:
        yield from map(_examine, tasks)
        return
    # A fresh interpreter for each worker: threads of numerical libraries do not survive a fork.
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(os.cpu_count() or 1, mp_context=context) as pool:
            yield from pool.map(_examine, tasks)
    except BrokenProcessPool:
        raise InputError(
            "the processes of the self-test could not start",
            field="self_test",
            expected="a call from a module that can be imported without running it again",
            hint='Call it under `if __name__ == "__main__":`, or use `stirred audit self-test`.',
        ) from None


def _tasks(keys: list[str], runs: int, seed: int | None) -> Iterator[Task]:
    """Exhibits in batches: key, first run, number of runs, seed."""
    known = collected()
    for key in keys:
        repeated = runs if known[key].random else 1
        for first in range(0, repeated, _BATCH):
            yield key, first, min(_BATCH, repeated - first), seed


def _examine(task: Task) -> Examined:
    key, first, runs, seed = task
    exhibit = collected()[key]
    start = time.monotonic()
    source: Source = RandomSource() if seed is None else TestSource(seed)
    broken = exhibit.examine(True, source.child(0, first))
    alarms = sum(exhibit.examine(False, source.child(1, first + run)).violated for run in range(runs))
    took = time.monotonic() - start
    # The certificate holds laws and data of the toy: it need not travel.
    plain = Finding(broken.audit, broken.subject, broken.verdict, broken.sentence)
    return Examined(key, exhibit.title, exhibit.source, plain, runs, alarms, took)


def _joined(parts: list[Examined]) -> Examined:
    """Batches of one exhibit as one result; it is killed only if it is in every batch."""
    first = next((part for part in parts if not part.killed), parts[0])
    sums = {name: sum(getattr(part, name) for part in parts) for name in ("runs", "false_alarms", "seconds")}
    return replace(first, **sums)
