"""What the neighbourhoods are like: homes, races and Hispanic origin."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from stirred.casebook.county.draws import Whole, draw, pick
from stirred.casebook.county.map import TRACTS, Map
from stirred.noise import Source


class Setting(NamedTuple):
    """What a neighbourhood is like."""

    races: tuple[int, ...]
    """Householders of each of the six races, in a thousand."""
    hispanic: int
    """Householders of Hispanic origin, in a thousand of those of a listed race."""
    ages: tuple[int, ...]
    """Householders of each age group, in a hundred."""
    tenures: tuple[int, ...]
    """How much more often than elsewhere homes have each tenure."""
    vacant: int
    """Vacant homes for a thousand occupied ones."""


SETTINGS = MappingProxyType(
    {
        "centre": Setting((540, 290, 12, 60, 3, 95), 90, (9, 21, 17, 15, 15, 12, 8, 3), (2, 3, 9, 4), 110),
        "mills": Setting((290, 580, 10, 20, 2, 98), 70, (6, 17, 18, 18, 18, 13, 7, 3), (4, 5, 7, 4), 130),
        "orchards": Setting((450, 90, 30, 25, 5, 400), 480, (7, 20, 22, 19, 15, 10, 5, 2), (4, 4, 6, 6), 80),
        "suburb": Setting((800, 60, 5, 100, 1, 34), 50, (2, 12, 22, 23, 20, 13, 6, 2), (9, 6, 2, 1), 40),
        "campus": Setting((640, 90, 6, 210, 4, 50), 70, (38, 26, 11, 8, 7, 5, 3, 2), (2, 2, 9, 3), 70),
        "country": Setting((935, 12, 24, 4, 1, 24), 20, (2, 9, 14, 19, 24, 19, 9, 4), (6, 9, 2, 5), 170),
    }
)

# How many races besides the first, and which; people of some other race who are of Hispanic origin.
_MORE_RACES = np.array([9_600, 360, 32, 6, 1, 1])
_ADDED_RACE = np.array([32, 20, 20, 14, 5, 9])
_HISPANIC_OF_OTHER_RACE = 860


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """What each block is like: homes (a weight), races (weights), Hispanic share, setting (a number)."""

    homes: Whole
    races: Whole
    hispanic: Whole
    setting: Whole

    @classmethod
    def of(cls, plan: Map, source: Source) -> Neighbourhoods:
        """A block group leans towards a second setting, and blocks differ within it."""
        count, groups = len(plan.codes), int(plan.group[-1]) + 1
        names, settings = list(SETTINGS), tuple(SETTINGS.values())
        setting = np.array([names.index(tract.setting) for tract in TRACTS])[plan.tract]
        other = draw(source, len(settings), groups)[plan.group]
        lean = draw(source, 40, groups)[plan.group]
        races, hispanic = np.array([s.races for s in settings]), np.array([s.hispanic for s in settings])
        mixed = races[setting] * (100 - lean)[:, None] + races[other] * lean[:, None]
        skewed = draw(source, 20, 3 * count).reshape(3, count) + 1
        density = np.array([tract.density for tract in TRACTS])[plan.tract]
        return cls(
            homes=np.where(draw(source, 20, count) == 0, 0, density * skewed.prod(axis=0)),
            races=mixed * (40 + draw(source, 121, 6 * count)).reshape(count, 6),
            hispanic=(hispanic[setting] * (100 - lean) + hispanic[other] * lean) // 100,
            setting=setting,
        )

    def draw_people(self, block: Whole, source: Source) -> tuple[Whole, Whole]:
        """Races (six bits) and Hispanic origin (true or false) of one person in each of these blocks."""
        first = pick(self.races, block, source)
        more = pick(_MORE_RACES[None], np.zeros_like(block), source)
        races = 1 << first
        for number in range(1, _MORE_RACES.size):
            added = pick(_ADDED_RACE[None], np.zeros_like(block), source)
            races = np.where(more >= number, races | 1 << added, races)
        share = np.where(first == 5, _HISPANIC_OF_OTHER_RACE, self.hispanic[block])
        return races, (draw(source, 1000, block.size) < share).astype(np.int64)
