"""Processes that die in the middle of a release, and processes that compete for one, for ``test_faults.py``.

Each scenario forks real processes from one that has imported everything but has computed nothing, and prints
one JSON object.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.release_case import leftovers, plan_of, write_plan

import stirred.release.publication as run_module
from stirred.errors import Refusal, StirredError
from stirred.ledger import Ledger
from stirred.noise import Source
from stirred.release import Plan
from stirred.release import verify as verify_release
from stirred.release.kinds.swap.job import SwapJob
from stirred.release.kinds.topdown.job import TopDownJob
from stirred.release.product import Product

KILLED = -int(signal.SIGKILL)
WATCHED = ("publication", "payment", "folder", "documents")
POINTS = (
    "before the spend",
    "after the spend",
    "while words are drawn",
    "after the draw",
    "while tables are written",
    "before the documents",
    "before the manifest",
    "after the manifest",
    "after the finish",
    "after the rename",
)


def die(*_: object, **__: object) -> None:
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


def _wrapped(owner: Any, name: str, after: bool, count: int = 1) -> None:
    """Die before or after the n-th call of a function."""
    original, seen = getattr(owner, name), 0

    @functools.wraps(original)
    def wrapper(*args: Any, **options: Any) -> Any:
        nonlocal seen
        seen += 1
        if seen == count and not after:
            die()
        answer = original(*args, **options)
        if seen == count:
            die()
        return answer

    setattr(owner, name, wrapper)


def arm(point: str) -> None:
    """Prepare this process to die at a point."""
    jobs = (SwapJob, TopDownJob)
    places: dict[str, list[tuple[Any, str, bool, int]]] = {
        "before the spend": [(Ledger, "spend", False, 1)],
        "after the spend": [(Ledger, "spend", True, 1)],
        "while words are drawn": [(Source, "words", True, 2)],
        "after the draw": [(job, "draw", True, 1) for job in jobs],
        "while tables are written": [(Product, "write", True, 2)],
        "before the documents": [(run_module, "write_documents", False, 1)],
        "before the manifest": [(run_module, "write_internal", True, 1)],
        "after the manifest": [(Ledger, "finish", False, 1)],
        "after the finish": [(Ledger, "finish", True, 1)],
        "after the rename": [(Path, "rename", True, 1)],
    }
    for place in places[point]:
        _wrapped(*place)


def arm_line(at: int) -> None:
    """Prepare this process to die at the n-th line that is executed in the watched modules."""
    seen = 0

    def line(_: FrameType, event: str, __: Any) -> Any:
        nonlocal seen
        if event == "line":
            seen += 1
            if seen == at:
                die()
        return line

    watched = {str(Path(run_module.__file__).with_name(f"{name}.py")) for name in WATCHED}
    sys.settrace(lambda frame, *_: line if frame.f_code.co_filename in watched else None)


def released(
    case: Path, mechanism: str, out: Path, book: Path, armed: Callable[[], None] | None = None
) -> int:
    """0 for a release, 10 for a resumed one, otherwise the exit code of the error."""
    ledger = Ledger.open(book)
    if armed is not None:
        armed()
    try:
        made = run_module.run(case / f"{mechanism}.yaml", out, ledger, audit=False)
    except StirredError as error:
        return error.exit_code
    return 10 if made.resumed else 0


def state(out: Path, book: Path) -> dict[str, Any]:
    """What is to be seen after a process has ended."""
    ledger = Ledger.open(book)
    found = ledger.verify()
    spends = [s for name in ledger.datasets() for s in ledger.statement(name).spends]
    return {
        "ledger": [str(finding) for finding in found.findings],
        "statuses": [spend.status for spend in spends],
        "attempts": [spend.attempt for spend in spends],
        "public": out.exists(),
        "problems": list(verify_release(out, ledger).problems) if out.exists() else None,
        "beside": leftovers(out),
    }


def crash(case: Path, mechanism: str, out: Path, book: Path, armed: Callable[[], None]) -> dict[str, Any]:
    """Die, look, try a plan that was changed, run again, look again."""
    code = code_of(child(lambda: released(case, mechanism, out, book, armed)))
    after = state(out, book)
    again = None
    if not out.exists():
        again = code_of(child(lambda: released(case, mechanism, out, book)))
    return {"code": code, "after": after, "again": again, "end": state(out, book)}


def changed(case: Path, mechanism: str, book: Path) -> dict[str, Any]:
    """After a death, a changed plan can neither resume the spend nor finish it."""
    out = book.with_name("out")
    code = code_of(child(lambda: released(case, mechanism, out, book, lambda: arm("after the spend"))))
    plan = plan_of(mechanism) | {"title": "Another title"}
    other = Plan.load(write_plan(case / "other.yaml", plan))
    ledger = Ledger.open(book)
    try:
        ledger.resume(other.dataset.name, other.digest, by=other.curator)
    except Refusal as error:
        return {"code": code, "refused": error.code, "end": state(out, book)}
    return {"code": code, "refused": None, "end": state(out, book)}


def every_line(case: Path, mechanism: str, folder: Path, stride: int) -> dict[str, Any]:
    """Die at every so many lines of the watched modules; each folder has a ledger that the test prepared."""
    results, at = [], 1
    for place in sorted(folder.glob("line*")):
        line = at
        seen = crash(case, mechanism, place / "out", place / "ledger.db", lambda line=line: arm_line(line))
        results.append(seen)
        if seen["code"] != KILLED:
            break
        at += stride
    return {"results": results}


def compete(case: Path, mechanism: str, book: Path, count: int, pause: float, locks: bool) -> dict[str, Any]:
    """So many processes release one plan into one folder, each a little later than the one before.

    Without locks they overtake each other, and the ledger decides.
    """
    if not locks:
        run_module.alone = lambda _: contextlib.nullcontext()
    out, begin = book.with_name("out"), time.monotonic() + 0.3

    def act(index: int) -> int:
        time.sleep(max(0.0, begin + index * pause - time.monotonic()))
        return released(case, mechanism, out, book)

    children = [child(lambda index=index: act(index)) for index in range(count)]
    codes = [code_of(number) for number in children]
    return {"codes": sorted(codes), "end": state(out, book)}


if __name__ == "__main__":
    scenario, data, kind, where, *rest = sys.argv[1:]
    answer: dict[str, Any] = {}
    if scenario == "points":
        answer = {
            point: crash(
                Path(data),
                kind,
                Path(where) / f"{number}" / "out",
                Path(where) / f"{number}" / "ledger.db",
                functools.partial(arm, point),
            )
            for number, point in enumerate(POINTS)
            if not rest or point in rest
        }
    elif scenario == "changed":
        answer = changed(Path(data), kind, Path(where))
    elif scenario == "lines":
        answer = every_line(Path(data), kind, Path(where), int(rest[0]))
    elif scenario == "compete":
        answer = compete(Path(data), kind, Path(where), int(rest[0]), float(rest[1]), rest[2] == "True")
    sys.stdout.write(json.dumps(answer))
