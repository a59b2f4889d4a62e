"""Households and vacant homes, block by block, with what is known of the householder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stirred.casebook.county.draws import Whole, pick, scatter, spread
from stirred.casebook.county.neighbourhoods import SETTINGS, Neighbourhoods
from stirred.noise import Source

HOUSEHOLDS = 15_500
TENURES = ("mortgage", "owned", "rented", "rent-free")
TYPES = ("alone", "couple", "couple with children", "one parent", "shared")
AGE_GROUPS = ("18-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75-84", "85+")
LARGEST_HOUSEHOLD = 12
OLDEST = 99

_FIRST_AGES = np.array([18, 25, 35, 45, 55, 65, 75, 85])

# Householders of each age group (row) by type, and by tenure.
_TYPES_BY_AGE = np.array(
    [
        (250, 120, 80, 130, 420),
        (240, 210, 300, 120, 130),
        (160, 150, 500, 140, 50),
        (200, 270, 350, 130, 50),
        (290, 480, 110, 60, 60),
        (370, 540, 20, 20, 50),
        (500, 440, 5, 5, 50),
        (660, 290, 0, 2, 48),
    ]
)
_TENURES_BY_AGE = np.array(
    [
        (40, 10, 200, 10),
        (90, 15, 100, 5),
        (120, 25, 65, 4),
        (120, 50, 50, 3),
        (100, 90, 40, 3),
        (60, 130, 35, 3),
        (30, 150, 40, 4),
        (15, 140, 60, 6),
    ]
)
_HAS_PARTNER = np.array([0, 1, 1, 0, 0])
# Weights of 0, 1, 2, ... children and other members, by type.
_CHILDREN = np.array(
    [
        (1, 0, 0, 0, 0, 0, 0, 0),
        (1, 0, 0, 0, 0, 0, 0, 0),
        (0, 370, 400, 160, 50, 14, 4, 2),
        (0, 520, 320, 110, 36, 10, 3, 1),
        (1, 0, 0, 0, 0, 0, 0, 0),
    ]
)
_OTHERS = np.array(
    [(1, 0, 0, 0), (800, 140, 45, 15), (890, 85, 20, 5), (760, 170, 55, 15), (0, 700, 210, 90)]
)


@dataclass(frozen=True, eq=False)
class Households:
    """Households in order of their blocks, with what is known of the householder."""

    block: Whole
    age: Whole
    age_group: Whole
    type: Whole
    tenure: Whole
    members: Whole
    """Householders (one), partners, children and others: four columns."""
    races: Whole
    hispanic: Whole


def households(areas: Neighbourhoods, source: Source) -> Households:
    """As many households as the county has, most where there are many homes."""
    block = np.sort(scatter(areas.homes, HOUSEHOLDS, source))
    setting = areas.setting[block]
    settings = tuple(SETTINGS.values())
    age_group = pick(np.array([s.ages for s in settings]), setting, source)
    last = age_group == len(AGE_GROUPS) - 1
    width = np.append(np.diff(_FIRST_AGES), OLDEST + 1 - _FIRST_AGES[-1])[age_group]
    years = np.stack([spread(width, source), spread(width, source)])
    age = _FIRST_AGES[age_group] + np.where(last, years.min(axis=0), years[0])
    kind = pick(_TYPES_BY_AGE, age_group, source)
    tenures = _TENURES_BY_AGE[:, None, :] * np.array([s.tenures for s in settings])
    tenure = pick(tenures.reshape(-1, len(TENURES)), age_group * len(settings) + setting, source)
    children, others = pick(_CHILDREN, kind, source), pick(_OTHERS, kind, source)
    members = np.stack([np.ones_like(kind), _HAS_PARTNER[kind], children, others], axis=1)
    races, hispanic = areas.draw_people(block, source)
    return Households(block, age, age_group, kind, tenure, members, races, hispanic)


def vacant_homes(areas: Neighbourhoods, occupied: Whole, source: Source) -> Whole:
    """The blocks of vacant homes: as many as the settings say, most where there are many homes."""
    share = np.array([s.vacant for s in SETTINGS.values()])[areas.setting]
    total = int(share[occupied].sum()) // 1000
    return scatter(areas.homes * share, total, source)
