"""Persons with their own answers, and the members of every household."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stirred.casebook.county.draws import Whole, draw, spread
from stirred.casebook.county.households import OLDEST, Households
from stirred.casebook.county.neighbourhoods import Neighbourhoods
from stirred.noise import Source

RELATIONSHIPS = ("householder", "partner", "child", "other", "resident")
MALE, FEMALE = 1, 2


@dataclass(frozen=True, eq=False)
class People:
    """Persons: the number of their household or facility, relationship, and their own answers."""

    home: Whole
    relationship: Whole
    age: Whole
    sex: Whole
    races: Whole
    hispanic: Whole


def members(areas: Neighbourhoods, homes: Households, source: Source) -> People:
    """The members of every household: partners and children resemble the householder, more or less."""
    counts = homes.members.ravel()
    home = np.repeat(np.repeat(np.arange(homes.block.size), 4), counts)
    role = np.repeat(np.tile(np.arange(4), homes.block.size), counts)
    head = homes.age[home]
    partner = np.clip(head + draw(source, 9, home.size) - draw(source, 12, home.size), 18, OLDEST)
    child = spread(np.minimum(head - 15, 18), source)
    other = 16 + np.minimum(draw(source, 72, home.size), draw(source, 72, home.size))
    age = np.select([role == 0, role == 1, role == 2], [head, partner, child], other)

    races, hispanic = areas.draw_people(homes.block[home], source)
    alike = (role == 0) | (draw(source, 100, home.size) < 84)
    races = np.where(alike, homes.races[home], races)
    hispanic = np.where(alike, homes.hispanic[home], hispanic)
    # A child has the races of both parents, nine times in ten.
    is_partner, inherits = role == 1, (role == 2) & (draw(source, 100, home.size) < 90)
    of_both, origin_of_both = homes.races.copy(), homes.hispanic.copy()
    of_both[home[is_partner]] |= races[is_partner]
    origin_of_both[home[is_partner]] |= hispanic[is_partner]
    races = np.where(inherits, of_both[home], races)
    hispanic = np.where(inherits, origin_of_both[home], hispanic)

    # More women than men among the old; a partner is most often of the other sex.
    women = np.where(age >= 75, 600, 505)
    sex = np.where(draw(source, 1000, home.size) < women, FEMALE, MALE)
    of_head = sex[role == 0][home]
    opposite = (role == 1) & (draw(source, 100, home.size) < 97)
    sex = np.where(opposite, MALE + FEMALE - of_head, sex)
    return People(home, role, age, sex, races, hispanic)
