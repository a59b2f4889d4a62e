"""Kill releases at random lines, and run them again in the same folder, in another one, or on other data.

After every death: the ledger is true; a folder that appeared is whole; no payment has two draws on the disk,
and there are no more draws than payments. A campaign of 200 kills is run by hand:

    python tests/release/kill_campaign.py --kills 200 --seed 1

Its log stands in the documentation; the slow tests run a tenth of it with the same seed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.release_case import MECHANISMS, new_ledger, write_case

import stirred.ledger
import stirred.release.publication as run_module
from stirred.errors import StirredError
from stirred.ledger import Ledger
from stirred.release import verify as verify_release

WATCHED = (str(Path(run_module.__file__).parent), str(Path(stirred.ledger.__file__).parent))
PART = re.compile(r"\.(?P<name>\w+)\.(?P<spend>\d+)-(?P<attempt>\d+)\.part")
WAYS = ("same", "elsewhere", "other data", "elsewhere, paid again", "other data, paid again")


@dataclass(frozen=True)
class Desk:
    """Two data sets of one universe, a ledger, and two folders to write to."""

    root: Path
    mechanism: str

    @property
    def book(self) -> Path:
        return self.root / "ledger.db"

    def output(self, way: str) -> Path:
        return self.root / ("B" if way.startswith("elsewhere") else "A")

    def use(self, way: str) -> None:
        """Put the data of the run in place."""
        twin = way.startswith("other data")
        for path in (self.root / ("two" if twin else "one")).glob("*.parquet"):
            shutil.copy2(path, self.root / "case" / path.name)


def desk(root: Path, mechanism: str) -> Desk:
    """Prepare a desk, with its ledger open, in a process of its own: this one must start no threads."""

    def prepare() -> int:
        for name, twin in (("one", False), ("two", True), ("case", False)):
            write_case(root / name, twin=twin)
        new_ledger(root / "ledger.db", root / "case", [mechanism])
        return 0

    assert in_process(prepare) == 0
    return Desk(root, mechanism)


def in_process(act: Callable[[], int]) -> int:
    """The answer of an act in a process of its own, or minus the signal that ended it."""
    number = os.fork()
    if number == 0:
        code = 99
        try:
            code = act()
        finally:
            sys.settrace(None)
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])


def traced(step: Callable[[], None]) -> Callable[[], None]:
    """Call a function at every line that is executed in the rooms of releases and of the ledger."""

    def local(_: FrameType, event: str, __: Any) -> Any:
        if event == "line":
            step()
        return local

    def watch(frame: FrameType, *_: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(WATCHED) else None

    return lambda: sys.settrace(watch)


def killed_at(line: int) -> Callable[[], None]:
    """Die at the n-th line."""
    lines = itertools.count(1)

    def step() -> None:
        if next(lines) == line:
            os.kill(os.getpid(), signal.SIGKILL)

    return traced(step)


def run(at: Desk, way: str, arm: Callable[[], None] | None = None) -> int:
    """Release: 0, or the exit code of the refusal, or minus the signal."""

    def release() -> int:
        plan, again = at.root / "case" / f"{at.mechanism}.yaml", way.endswith("paid again")
        if arm is not None:
            arm()
        try:
            run_module.run(plan, at.output(way), Ledger.open(at.book), pay_again=again, audit=False)
        except StirredError as error:
            return error.exit_code
        return 0

    return in_process(release)


def faults(at: Desk) -> list[str]:
    """What is wrong just now."""
    ledger = Ledger.open(at.book)
    out = [f"ledger: {finding}" for finding in ledger.verify().findings]
    spends = [s for name in ledger.datasets() for s in ledger.statement(name).spends]
    draws: Counter[int] = Counter()
    for path in at.root.iterdir():
        part = PART.fullmatch(path.name)
        if part is not None and any(p.is_file() for p in (path / "public").rglob("*")):
            draws[int(part["spend"])] += 1
        elif path.name in {"A", "B"}:
            out += [f"{path.name}: {problem}" for problem in verify_release(path, ledger).problems]
            draws[json.loads((path / "manifest.json").read_text())["spend"]] += 1
    out += [f"{count} draws for the payment of event {spend}" for spend, count in draws.items() if count > 1]
    if sum(draws.values()) > len(spends):
        out.append("more draws than payments")
    return out


def campaign(kills: int, seed: int, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """So many deaths; returns how the runs ended and every fault that was seen."""
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    found: list[str] = []
    dead = 0
    with tempfile.TemporaryDirectory() as folder:
        lengths = {
            mechanism: _length(Path(folder) / f"length-{mechanism}", mechanism) for mechanism in MECHANISMS
        }
        number = 0
        while dead < kills:
            number += 1
            mechanism = MECHANISMS[number % len(MECHANISMS)]
            at = desk(Path(folder) / f"{number}", mechanism)
            for way in ("same", chance.choice(WAYS), chance.choice(WAYS)):
                at.use(way)
                code = run(at, way, killed_at(chance.randrange(1, lengths[mechanism])))
                dead += code == -signal.SIGKILL
                seen[f"{mechanism}, {way}: {_words(code)}"] += 1
                found += [f"{number} {mechanism} {way}: {fault}" for fault in faults(at)]
                if any((at.root / name).exists() for name in "AB"):
                    break
            found += _to_the_end(at, number)
            shutil.rmtree(at.root)
            say(f"{dead} kills, {len(found)} faults")
    return {"kills": dead, "runs": dict(sorted(seen.items())), "faults": found}


def _to_the_end(at: Desk, number: int) -> list[str]:
    """Run until there is a release: as it was begun, or paid again; nothing is left beside it."""
    for way in ("same", "elsewhere, paid again"):
        if not any((at.root / name).exists() for name in "AB"):
            at.use(way)
            run(at, way)
    out = faults(at)
    if not any((at.root / name).exists() for name in "AB"):
        out.append("no release can be made")
    out += [f"{path.name} is left" for path in at.root.iterdir() if PART.fullmatch(path.name)]
    return [f"{number} at the end: {fault}" for fault in out]


def _length(root: Path, mechanism: str) -> int:
    """How many lines a whole run executes."""
    at, note, lines = desk(root, mechanism), root / "lines", itertools.count()

    def counted() -> int:
        plan, ledger = root / "case" / f"{mechanism}.yaml", Ledger.open(at.book)
        traced(lambda: next(lines) and None)()
        run_module.run(plan, at.output("same"), ledger, audit=False)
        sys.settrace(None)
        note.write_text(str(next(lines)), encoding="utf-8")
        return 0

    assert in_process(counted) == 0
    return int(note.read_text(encoding="utf-8"))


def _words(code: int) -> str:
    return {0: "released", 2: "bad input", 3: "refused", -signal.SIGKILL: "killed"}.get(code, f"code {code}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    answer = campaign(chosen.kills, chosen.seed, lambda text: print(text, file=sys.stderr))  # noqa: T201
    sys.stdout.write(json.dumps(answer, indent=2) + "\n")
    sys.exit(1 if answer["faults"] else 0)
