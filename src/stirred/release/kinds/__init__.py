"""Kinds of plans: a file or folder each, and one line in this table. Nothing else knows their names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred.errors import InputError, StirredError, UnknownName
from stirred.release.job import Job, Kind
from stirred.release.kinds.swap import SWAP
from stirred.release.kinds.topdown import TOPDOWN
from stirred.spec import Block

if TYPE_CHECKING:
    from stirred.release.plan import Plan

KINDS: dict[str, Kind] = {kind.name: kind for kind in (SWAP, TOPDOWN)}


def kind_named(name: object) -> Kind:
    """A kind of plan by its name."""
    if name not in KINDS:
        raise UnknownName(
            "the plan is of no known kind" if name is None else f"there is no kind of plan called {name}",
            field="mechanism.kind",
            expected="one of " + ", ".join(KINDS),
            hint="Write a starter plan with `stirred release new`.",
        )
    return KINDS[str(name)]


def read_section(value: object) -> Block:
    """The section of a plan, read by its kind."""
    if isinstance(value, Block):
        return value
    if not isinstance(value, Mapping):
        raise InputError(
            "the mechanism of the plan is not a mapping",
            field="mechanism",
            expected="a kind, and the keys of that kind",
            hint="Write a starter plan with `stirred release new`.",
        )
    kind = kind_named(value.get("kind"))
    try:
        return kind.section.read(value)
    except StirredError as error:
        own = error.field != kind.section.__name__
        error.field = f"mechanism.{error.field}" if own else "mechanism"
        raise


def opened(plan: Path | str | Job) -> Job:
    """The job of a plan's file; a job is its own."""
    from stirred.release.plan import Plan

    if isinstance(plan, Job):
        return plan
    path = Path(plan)
    return job_of(Plan.load(path), path.parent)


def job_of(plan: Plan, folder: Path, *, trial: bool = False) -> Job:
    """The job of a plan, with paths relative to a folder; nothing confidential is read yet.

    A trial may leave open what a publication must say.
    """
    section: Any = plan.mechanism
    job = kind_named(section.kind).job(plan, folder)
    if not trial:
        job.require_complete()
    return job


def trial_of(section: Any, folder: Path | None = None, *, kind: str | None = None) -> Job:
    """A job for a trial, from the section of a plan alone."""
    from stirred.release.plan import Plan

    if kind is not None and isinstance(section, Mapping):
        section = {"kind": kind, **section}
    about = {"name": "trial", "title": "A trial", "agency": "", "curator": "nobody: a trial"}
    plan = Plan.read(about | {"dataset": {"name": "trial"}, "mechanism": section})
    return job_of(plan, folder or Path(), trial=True)
