"""The demonstration: a synthetic county released twice, by swapping and by TopDown, and compared."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from importlib import resources
from multiprocessing.connection import wait
from pathlib import Path

from stirred.casebook.county import synthetic_county
from stirred.extras import require
from stirred.interchange import write_atomically
from stirred.ledger import Ledger
from stirred.places import removed_when_terminated, whole_folder
from stirred.release import Made, SideBySide, audit, compare, open_account, opened, run

PLANS = ("swap", "topdown")
OWNER, CURATOR = "Owner", "Curator"
ROOM = 64 << 20
GRACE = 5.0


@dataclass(frozen=True)
class Demonstration:
    """What the demonstration made."""

    folder: Path
    releases: dict[str, Made]
    comparison: SideBySide

    @property
    def report(self) -> Path:
        """The page that compares the two guarantees."""
        return self.folder / "comparison.html"


def demonstrate(folder: Path, progress: Callable[[str], None] = lambda _: None) -> Demonstration:
    """Generate a county, open one account for it in a ledger, audit and run both plans, compare."""
    require("topdown")
    with removed_when_terminated(), whole_folder(folder, room=ROOM) as temporary:
        progress("generating a synthetic county")
        data = temporary / "county"
        synthetic_county().write(data)
        ledger = Ledger.create(temporary / "ledger.db", owner=OWNER)
        ledger.appoint(CURATOR, "curator", by=OWNER)
        paths = {name: data / f"{name}.yaml" for name in PLANS}
        for name, path in paths.items():
            write_atomically(path, example_plan(name))
        with _auditor() as pool:
            longer = pool.submit(audit, paths["topdown"])
            progress("opening one account for both releases")
            jobs = {name: opened(path) for name, path in paths.items()}
            open_account(list(jobs.values()), ledger, by=OWNER)
            made = {}
            for name, job in jobs.items():
                progress(f"auditing: {job.plan.title}")
                found = longer.result() if name == "topdown" else audit(job)
                progress(f"releasing: {job.plan.title}")
                made[name] = run(job, temporary / name, ledger, audit=found)
        progress("comparing the two")
        compared = compare(temporary / PLANS[0], temporary / PLANS[1])
        write_atomically(temporary / "comparison.html", compared.page())
    return Demonstration(
        folder, {name: replace(m, folder=folder / name) for name, m in made.items()}, compared
    )


def _auditor() -> ProcessPoolExecutor:
    """A process for the audit of one plan, beside that of the other: they are independent of each other.

    It is started anew, not forked: threads that read files do not survive a fork.
    """
    return ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_end_with_parent)


def _end_with_parent() -> None:
    """In an auditor: end when the demonstration does, however that ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        wait([parent.sentinel])
        # What is being audited is removed on the way out, if that can be done soon.
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def example_plan(name: str) -> str:
    """The text of a shipped plan."""
    place = resources.files("stirred.casebook") / "examples" / f"{name}.yaml"
    return place.read_text(encoding="utf-8")
