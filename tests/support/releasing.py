"""Releases and trials in one call, without the audits that tests of other things do not need."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from stirred.documents import read_yaml
from stirred.release import Made, run, trial, trial_of
from stirred.swap import PermutationSwap

TRIAL = "it was not paid for in a ledger: a trial"
SETTINGS = (
    "match", "swap", "hold", "unit", "imputed", "nesting", "loss", "missing", "allow_infinite_loss",
    "codebook", "tables", "by",
)  # fmt: skip

run_release = partial(run, audit=False)


def try_topdown(path: Path, output: Path, random: Any = None, **options: Any) -> Made:
    """A trial of a TopDown plan that stands alone."""
    return trial(trial_of(read_yaml(path), path.parent, kind="topdown"), output, random=random, **options)


def try_swap(
    swap: PermutationSwap,
    households: Any,
    output: Path,
    *,
    random: Any = None,
    accept: str = "",
    **files: Any,
) -> Made:
    """A trial of a swap of files: ``by``, ``id``, ``persons`` and ``hold_persons`` as in a plan."""
    assert type(swap) is PermutationSwap, "a plan has no other swap"
    assert swap.domain is None, "the section of a plan has no domain"
    section = {"kind": "swap", "households": str(households), "rate": str(swap.rate)}
    section |= {name: getattr(swap, name) for name in SETTINGS}
    section |= {n: value if isinstance(value, list | tuple) else str(value) for n, value in files.items()}
    return trial(trial_of(section), output, random=random, accept_determined=accept)


def reason_of(made: Made) -> str:
    """Why a trial is not for publication, as its manifest says."""
    return str(made.manifest.facts["reason"])


def report_of(folder: Path) -> dict[str, Any]:
    """The report of a trial as data."""
    text = (folder / "internal" / "report.json").read_text(encoding="utf-8")
    body: dict[str, Any] = json.loads(text)
    return body


def files_of(folder: Path) -> set[str]:
    """Every file of a folder, relative to it."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
