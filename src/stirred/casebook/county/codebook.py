"""The codebook: the columns of every table with their levels, a function of the map alone."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from stirred.casebook.county.draws import Whole
from stirred.casebook.county.households import AGE_GROUPS, LARGEST_HOUSEHOLD, OLDEST, TENURES, TYPES
from stirred.casebook.county.map import CELL, LEVELS
from stirred.casebook.county.persons import FEMALE, MALE, RELATIONSHIPS
from stirred.spec import Attribute, Level, Recode, Schema
from stirred.topdown import preset

SIX = ("White", "Black", "American Indian", "Asian", "Pacific Islander", "some other race")
RACES = tuple(c for size in range(1, 7) for c in itertools.combinations(range(6), size))
"""The races of each code from 1 to 63: first one race alone, then two in combination, and so on."""

_CODEBOOK = "example codebook"


def codebook(places: Mapping[str, list[str]]) -> dict[str, Schema]:
    """The schemas of the tables, given the codes of the public places."""
    persons, units = preset("pl-2020-us-persons").schema, preset("pl-2020-us-units").schema
    known = {a.name: a.model_copy(update={"provenance": _CODEBOOK}) for a in persons.attributes}
    race = Attribute(
        name="race",
        levels=tuple(range(1, len(RACES) + 1)),
        meaning="The 63 combinations of " + ", ".join(SIX) + ": one alone (1 to 6), two (7 to 21), three "
        "(22 to 41), four (42 to 56), five (57 to 62), all six (63).",
        provenance=_CODEBOOK,
    )
    place = {name: _place(name, codes) for name, codes in places.items()}
    spine = [place[name] for name in LEVELS]
    nested = tuple(zip(reversed(LEVELS[1:]), reversed(LEVELS[:-1]), strict=True))
    household_id = _column("household_id", "The household.")
    facility_id = _column("facility_id", "The group quarters facility.")
    size = range(1, LARGEST_HOUSEHOLD + 1)
    return {
        "blocks": Schema(
            attributes=(
                *spine,
                _column("x", "Place on the map, from west to east.", range(8 * CELL)),
                _column("y", "Place on the map, from north to south.", range(6 * CELL)),
            ),
            nesting=nested,
        ),
        "persons": Schema(
            attributes=(
                _column("person_id", "The person."),
                household_id,
                facility_id,
                place["block"],
                known["hhgq"],
                known["voting_age"],
                known["hispanic"],
                race,
                _column("sex", "1 male, 2 female.", (MALE, FEMALE)),
                _column("age", f"Age in years; {OLDEST} is {OLDEST} and over.", range(OLDEST + 1)),
                _column("relationship", "To the householder; residents of facilities.", RELATIONSHIPS),
            ),
            recodes=(*persons.recodes, _race_groups()),
        ),
        "households": Schema(
            attributes=(
                household_id,
                *spine[1:],
                _column("size", "Persons in the household.", size),
                _column("tenure", "Owned with or without a mortgage, rented, or no rent.", TENURES),
                _column("type", "Who lives together; children are under 18.", TYPES),
                _column("householder_age", "Age of the householder, in groups.", AGE_GROUPS),
                _of_householder(known["hispanic"]),
                _of_householder(race),
            ),
            recodes=(_race_groups(),),
            nesting=nested[:-1],
        ),
        "housing_units": Schema(
            attributes=(
                _column("unit_id", "The housing unit."),
                place["block"],
                units.attributes[0].model_copy(update={"provenance": _CODEBOOK}),
            )
        ),
        "group_quarters": Schema(
            attributes=(
                facility_id,
                place["block"],
                _column(
                    "group_quarters_type",
                    "2 correctional, 3 juvenile, 4 nursing, 5 other institutional, 6 college, 7 military, "
                    "8 other noninstitutional.",
                    range(2, 9),
                ),
            )
        ),
        "districts": Schema(
            attributes=(place["block"], place["school_district"]), nesting=(("block", "school_district"),)
        ),
    }


def _column(
    name: str, meaning: str, levels: range | tuple[Level, ...] | tuple[str, ...] | None = None
) -> Attribute:
    listed = None if levels is None else tuple(levels)
    return Attribute(name=name, levels=listed, meaning=meaning, provenance=_CODEBOOK)


def _of_householder(attribute: Attribute) -> Attribute:
    return attribute.model_copy(update={"meaning": f"Of the householder. {attribute.meaning}"})


def _place(name: str, codes: list[str]) -> Attribute:
    return Attribute(
        name=name,
        levels=tuple(codes),
        meaning=f"Code of the {name.replace('_', ' ')}, as text.",
        provenance=f"{_CODEBOOK}: the public map",
    )


def race_codes() -> Whole:
    """From six bits to the code from 1 to 63; no race has no code."""
    codes = np.zeros(64, dtype=np.int64)
    for code, races in enumerate(RACES, 1):
        codes[sum(1 << race for race in races)] = code
    return codes


def _race_groups() -> Recode:
    groups: dict[str, tuple[Level, ...]] = {f"{name} alone": (code,) for code, name in enumerate(SIX, 1)}
    groups["two or more races"] = tuple(range(7, len(RACES) + 1))
    return Recode(name="race_group", attribute="race", groups=groups)
