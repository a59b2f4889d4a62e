"""Group quarters: facilities, and the people who live in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stirred.casebook.county.draws import Whole, draw, scatter
from stirred.casebook.county.households import OLDEST
from stirred.casebook.county.map import Map
from stirred.casebook.county.neighbourhoods import Neighbourhoods
from stirred.casebook.county.persons import FEMALE, MALE, RELATIONSHIPS, People
from stirred.noise import Source

_CORRECTIONAL, _JUVENILE, _NURSING, _COLLEGE, _SHELTER = 2, 3, 4, 6, 8


class Quarters(NamedTuple):
    """Facilities of one type in one tract: how many, in how many blocks, and for how many residents."""

    type: int
    tract: int
    facilities: int
    blocks: int
    smallest: int
    largest: int


QUARTERS = (
    Quarters(_CORRECTIONAL, 11, 2, 1, 120, 210),
    Quarters(_JUVENILE, 5, 1, 1, 9, 24),
    Quarters(_NURSING, 0, 2, 2, 40, 90),
    Quarters(_NURSING, 4, 2, 1, 55, 130),
    Quarters(_NURSING, 8, 1, 1, 20, 45),
    Quarters(_COLLEGE, 3, 6, 3, 60, 190),
    Quarters(_SHELTER, 0, 3, 2, 1, 30),
    Quarters(_SHELTER, 2, 3, 3, 1, 14),
    Quarters(_SHELTER, 6, 4, 4, 2, 25),
)
"""No facility is military or of another institution: those types have no person in this county."""


@dataclass(frozen=True, eq=False)
class Residents:
    """Facilities (block and type of each), and the people who live in them."""

    block: Whole
    type: Whole
    people: People


def residents(plan: Map, areas: Neighbourhoods, source: Source) -> Residents:
    """The facilities of every tract that has some, with their residents."""
    blocks, types, sizes = [], [], []
    for kind in QUARTERS:
        within = np.flatnonzero(plan.tract == kind.tract)
        chosen = within[np.argsort(draw(source, 2**62, within.size), kind="stable")[: kind.blocks]]
        blocks.append(np.resize(chosen, kind.facilities))
        types.append(np.full(kind.facilities, kind.type))
        sizes.append(kind.smallest + draw(source, kind.largest - kind.smallest + 1, kind.facilities))
    order = np.lexsort((np.concatenate(types), np.concatenate(blocks)))
    block, type_, size = (np.concatenate(part)[order] for part in (blocks, types, sizes))
    home = np.repeat(np.arange(block.size), size)
    kind_of = type_[home]

    def years(bound: int) -> tuple[Whole, Whole]:
        draws = draw(source, bound, 2 * home.size).reshape(2, home.size)
        return draws.min(axis=0), draws.max(axis=0)

    ages = {
        _CORRECTIONAL: 18 + years(48)[0],
        _JUVENILE: 12 + years(8)[0],
        _NURSING: 58 + years(OLDEST - 57)[1],
        _COLLEGE: 17 + years(9)[0],
        _SHELTER: years(75)[0],
    }
    age = np.select([kind_of == k for k in ages], list(ages.values()))
    men = {_CORRECTIONAL: 900, _JUVENILE: 780, _NURSING: 310, _COLLEGE: 470, _SHELTER: 600}
    share = np.select([kind_of == k for k in men], list(men.values()))
    sex = np.where(draw(source, 1000, home.size) < share, MALE, FEMALE)
    # Residents of a facility come from all over the county: from a home drawn at random.
    origin = scatter(areas.homes, home.size, source)
    races, hispanic = areas.draw_people(np.where(kind_of == _NURSING, block[home], origin), source)
    resident = np.full(home.size, RELATIONSHIPS.index("resident"))
    return Residents(block, type_, People(home, resident, age, sex, races, hispanic))
