"""The 63 combinations of six races, and their codes."""

from __future__ import annotations

import itertools

import numpy as np

from stirred.casebook.county.draws import Whole
from stirred.spec import Level, Recode

SIX = ("White", "Black", "American Indian", "Asian", "Pacific Islander", "some other race")
RACES = tuple(c for size in range(1, 7) for c in itertools.combinations(range(6), size))
"""The races of each code from 1 to 63: first one race alone, then two in combination, and so on."""


def race_codes() -> Whole:
    """From six bits to the code from 1 to 63; no race has no code."""
    codes = np.zeros(64, dtype=np.int64)
    for code, races in enumerate(RACES, 1):
        codes[sum(1 << race for race in races)] = code
    return codes


def race_groups() -> Recode:
    """One race alone, or two and more."""
    groups: dict[str, tuple[Level, ...]] = {f"{name} alone": (code,) for code, name in enumerate(SIX, 1)}
    groups["two or more races"] = tuple(range(7, len(RACES) + 1))
    return Recode(name="race_group", attribute="race", groups=groups)
