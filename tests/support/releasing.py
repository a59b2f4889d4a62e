"""Releases and trials in one call, without the audits that tests of other things do not need."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from stirred.documents import read_yaml
from stirred.release import Made, run, trial, trial_of
from stirred.swap import PermutationSwap

run_release = partial(run, audit=False)
ROLES = ("match", "swap", "hold", "unit", "imputed", "nesting", "loss", "missing", "allow_infinite_loss")


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
    """A trial of a swap of files."""
    section = {
        "kind": "swap",
        "households": str(households),
        **{
            name: getattr(swap, name)
            for name in ("match", "swap", "hold", "unit", "imputed", "nesting", "loss")
        },
        "missing": swap.missing,
        "rate": str(swap.rate),
        **{name: value if isinstance(value, list | tuple) else str(value) for name, value in files.items()},
    }
    return trial(trial_of(section), output, random=random, accept_determined=accept)
