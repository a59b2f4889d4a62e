"""The tables of the county as data frames."""

from __future__ import annotations

import numpy as np
import polars as pl

from stirred.casebook.county.codebook import race_codes
from stirred.casebook.county.draws import Whole
from stirred.casebook.county.households import AGE_GROUPS, TENURES, TYPES, Households
from stirred.casebook.county.map import Map
from stirred.casebook.county.persons import RELATIONSHIPS, People
from stirred.casebook.county.quarters import Residents

_UNDER_18, _ADULT = 1, 2


def households_frame(plan: Map, homes: Households) -> pl.DataFrame:
    """One row an occupied housing unit."""
    places = plan.frame().select("county", "tract", "block_group", "block")[homes.block]
    return pl.DataFrame(
        {
            "household_id": _ids("H", homes.block.size, 5),
            **places.to_dict(),
            "size": _small(homes.members.sum(axis=1)),
            "tenure": pl.Series(TENURES).gather(homes.tenure),
            "type": pl.Series(TYPES).gather(homes.type),
            "householder_age": pl.Series(AGE_GROUPS).gather(homes.age_group),
            "hispanic": _small(homes.hispanic + 1),
            "race": _small(race_codes()[homes.races]),
        }
    )


def persons_frame(plan: Map, homes: Households, members: People, residents: Residents) -> pl.DataFrame:
    """One row a person, in a household or in group quarters."""

    def own(people: People, block: Whole, hhgq: Whole) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "block": pl.Series(plan.codes).gather(block[people.home]),
                "hhgq": _small(hhgq),
                "voting_age": _small(np.where(people.age < 18, _UNDER_18, _ADULT)),
                "hispanic": _small(people.hispanic + 1),
                "race": _small(race_codes()[people.races]),
                "sex": _small(people.sex),
                "age": _small(people.age),
                "relationship": pl.Series(RELATIONSHIPS).gather(people.relationship),
            }
        )

    at_home = own(members, homes.block, np.ones_like(members.home))
    elsewhere = own(residents.people, residents.block, residents.type[residents.people.home])
    household = _ids("H", homes.block.size, 5).gather(members.home).alias("household_id")
    facility = _ids("F", residents.block.size, 3).gather(residents.people.home).alias("facility_id")
    none = pl.lit(None, pl.String)
    everybody = pl.concat(
        [
            at_home.select(household, none.alias("facility_id"), "*"),
            elsewhere.select(none.alias("household_id"), facility, "*"),
        ]
    )
    return everybody.select(_ids("P", everybody.height, 6).alias("person_id"), "*")


def housing_units_frame(plan: Map, occupied: Whole, vacant: Whole) -> pl.DataFrame:
    """One row a home, occupied or vacant."""
    block = np.concatenate([occupied, vacant])
    empty = np.arange(block.size) >= occupied.size
    order = np.lexsort((empty, block))
    return pl.DataFrame(
        {
            "unit_id": _ids("U", block.size, 5),
            "block": pl.Series(plan.codes).gather(block[order]),
            "occupancy": pl.Series(("occupied", "vacant")).gather(empty[order].astype(np.int64)),
        }
    )


def quarters_frame(plan: Map, residents: Residents) -> pl.DataFrame:
    """One row a facility."""
    return pl.DataFrame(
        {
            "facility_id": _ids("F", residents.block.size, 3),
            "block": pl.Series(plan.codes).gather(residents.block),
            "group_quarters_type": _small(residents.type),
        }
    )


def _ids(letter: str, count: int, digits: int) -> pl.Series:
    number = pl.int_range(1, count + 1, eager=True).cast(pl.String).str.zfill(digits)
    return letter + number


def _small(values: Whole) -> pl.Series:
    return pl.Series(values, dtype=pl.Int64).cast(pl.Int16)
