"""Presets: the settings with which the 2020 Census redistricting data (PL 94-171) were protected.

Reference
    US Census Bureau, DAS_2020_Redistricting_Production_Code and DAS_2020_DHC_Production_Code (CC0):
    configs/production/pl94 (levels, scale, constraints) and programs/strategies (queries, orderings).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stirred.errors import UnknownName
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown.budget import Allocation
from stirred.topdown.cells import DETAILED, TOTAL, Cells

LEVELS = ("us", "state", "county", "tract", "block_group", "block")

# The noise scale of the whole system; rho squared is one over its square.
PERSONS_SCALE = Fraction(339, 542)
UNITS_SCALE = Fraction(12343, 3379)

_PERSONS_LEVELS = ("104/4099", "1440/4099", "447/4099", "687/4099", "1256/4099", "165/4099")
_UNITS_LEVELS = ("1/205", "1/205", "7/82", "364/1025", "1759/4100", "99/820")

# Shares in the order of LEVELS, each column over its own denominator; 0: not asked at this level.
_DENOMINATORS = (4097, 4097, 4097, 4102, 4099, 4097)
_PERSONS_QUERIES = {
    "total": (0, 3773, 3126, 1567, 1705, 5),
    "race": (52, 6, 10, 8, 3, 9),
    "hispanic": (26, 6, 10, 5, 3, 5),
    "voting_age": (26, 6, 10, 5, 3, 5),
    "hhinstlevels": (26, 6, 10, 5, 3, 5),
    "hhgq": (26, 6, 10, 5, 3, 5),
    "hispanic * race": (130, 12, 28, 1933, 1055, 21),
    "voting_age * race": (130, 12, 28, 20, 9, 21),
    "voting_age * hispanic": (26, 6, 10, 5, 3, 5),
    "voting_age * hispanic * race": (442, 34, 101, 67, 24, 71),
    "detailed": (3213, 230, 754, 482, 1288, 3945),
}
# Levels at which the total is estimated before all else.
_TOTAL_FIRST = ("state", "county", "tract", "block_group")

_NOT_THE_SPINE = (
    "Not the Bureau's spine: American Indian and Alaska Native areas are not split off, and block groups are "
    "those of the tabulation, not the optimised ones. The levels and their shares are the "
    "Bureau's; you bring the geography."
)
_NOT_THE_RELEASE = (
    "Not the published data: the production run drew its own noise, on confidential records, and estimated "
    "with other software."
)
_SOURCE = (
    "Source: US Census Bureau, DAS_2020_Redistricting_Production_Code and DAS_2020_DHC_Production_Code "
    "(CC0), configs/production/pl94"
)


@dataclass(frozen=True)
class Preset:
    """The settings of one universe: what is measured, how precisely, and what stays exact.

    ``passes`` has for each level the groups of queries that the estimation takes one after the other,
    ``rounding_chain`` the nested queries to which rounding stays close, coarsest first. ``constraints``
    declare, as plain data, what holds exactly in the output; ``notes`` say what the preset is not, and where
    its numbers come from.
    """

    name: str
    universe: str
    schema: Schema
    levels: tuple[str, ...]
    allocation: Allocation
    passes: Mapping[str, tuple[tuple[str, ...], ...]]
    rounding_chain: tuple[str, ...]
    constraints: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]


def preset(name: str) -> Preset:
    """The preset of this name.

    Examples
    --------
    >>> preset("pl-2020-us-persons").allocation.rho_squared
    Fraction(293764, 114921)
    """
    if name not in _PRESETS:
        raise UnknownName(
            f"there is no preset {name!r}",
            field="preset",
            expected="one of " + ", ".join(_PRESETS),
            hint="Correct the name, or write the budget into a plan of your own.",
        )
    return _PRESETS[name]()


def names() -> tuple[str, ...]:
    """The names of all presets."""
    return tuple(_PRESETS)


def _persons() -> Preset:
    schema = _persons_schema()
    queries = {
        level: {
            query: Fraction(shares[column], _DENOMINATORS[column])
            for query, shares in _PERSONS_QUERIES.items()
            if shares[column]
        }
        for column, level in enumerate(LEVELS)
    }
    shares = dict(zip(LEVELS, _PERSONS_LEVELS, strict=True))
    allocation = Allocation.of(Cells(schema), 1 / PERSONS_SCALE**2, shares, queries)
    return Preset(
        name="pl-2020-us-persons",
        universe="person",
        schema=schema,
        levels=LEVELS,
        allocation=allocation,
        passes={level: _passes(level, tuple(allocation.queries[level])) for level in LEVELS},
        rounding_chain=(TOTAL, "hhgq", "hhgq * hispanic", "hhgq * hispanic * race", DETAILED),
        constraints=(
            _invariant("person", "state"),
            _invariant("housing_unit", "block"),
            _invariant("occupied_group_quarters", "block", "group_quarters_type"),
            {
                "kind": "facilities",
                "attribute": "hhgq",
                "level": "block",
                "cap": 99999,
                "sources": {"housing_unit": [1], "occupied_group_quarters": [2, 3, 4, 5, 6, 7, 8]},
                "at_least_one": [2, 3, 4, 5, 6, 7, 8],
            },
            {"kind": "structural_zero", "where": {"hhgq": [4], "voting_age": [1]}},
        ),
        notes=(
            _NOT_THE_SPINE,
            _NOT_THE_RELEASE,
            "Every level asks the queries of the published settings with their shares: no total at the "
            "level us, where state totals fix it, and hardly any budget for the total of a block.",
            "A type of group quarters with f occupied facilities in a block houses between f and 99,999 f "
            "people, f housing units between none and 99,999 f: a unit may be vacant. The bounds that the "
            "settings repeat for states are sums of those of blocks.",
            f"{_SOURCE}/person_default.ini and person_US.ini, strategy "
            "ProductionCandidate20210527US_mult8_add02_dsepJune3.",
        ),
    )


def _units() -> Preset:
    schema = Schema(
        attributes=(
            Attribute(
                name="occupancy",
                levels=("occupied", "vacant"),
                meaning="Whether somebody lives in the housing unit.",
            ),
        )
    )
    shares = dict(zip(LEVELS, _UNITS_LEVELS, strict=True))
    return Preset(
        name="pl-2020-us-units",
        universe="housing_unit",
        schema=schema,
        levels=LEVELS,
        allocation=Allocation.of(Cells(schema), 1 / UNITS_SCALE**2, shares, {DETAILED: 1}),
        passes=dict.fromkeys(LEVELS, ((DETAILED,),)),
        rounding_chain=(DETAILED,),
        constraints=(_invariant("housing_unit", "block"),),
        notes=(
            _NOT_THE_SPINE,
            _NOT_THE_RELEASE,
            "Housing units of a block are counted exactly; only how many are occupied is protected.",
            f"{_SOURCE}, the settings for units of the US, strategy DetailedOnly.",
        ),
    )


_PRESETS: dict[str, Callable[[], Preset]] = {"pl-2020-us-persons": _persons, "pl-2020-us-units": _units}


def _persons_schema() -> Schema:
    """The 2,016 cells of PL 94-171, numbered from one."""
    return Schema(
        attributes=(
            Attribute(
                name="hhgq",
                levels=tuple(range(1, 9)),
                meaning="1 household; group quarters: 2 correctional, 3 juvenile, 4 nursing, 5 other "
                "institutional, 6 college, 7 military, 8 other noninstitutional.",
            ),
            Attribute(name="voting_age", levels=(1, 2), meaning="1 under 18 years, 2 18 years and over."),
            Attribute(name="hispanic", levels=(1, 2), meaning="1 not Hispanic or Latino, 2 is."),
            Attribute(
                name="race",
                levels=tuple(range(1, 64)),
                meaning="The 63 combinations of one or more of six races.",
            ),
        ),
        recodes=(
            Recode(
                name="hhinstlevels",
                attribute="hhgq",
                groups={"household": (1,), "institutional": (2, 3, 4, 5), "noninstitutional": (6, 7, 8)},
            ),
        ),
    )


def _passes(level: str, queries: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    if level not in _TOTAL_FIRST:
        return (queries,)
    return (TOTAL,), tuple(query for query in queries if query != TOTAL)


def _invariant(unit: str, *by: str) -> dict[str, Any]:
    return {"kind": "invariant", "count": {"unit": unit, "by": list(by)}}
