"""A synthetic county to try a release on: households, group quarters and persons, made by our own rules.

Nobody's answers: every record is drawn from the tables of shares below, which are round numbers of our own.
The map (tracts, block groups, blocks, school districts) is public and the same for every seed; the people
depend on the seed. All draws are exact draws of integers, so a seed gives the same county on every machine.
The state has a code that no state of the United States has.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from stirred.interchange import replace_atomically, write_parquet
from stirred.noise import Source, TestSource, integers
from stirred.spec import Attribute, Level, Recode, Schema
from stirred.topdown import preset

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]

SEED = 1790
MAP_SEED = 1787
HOUSEHOLDS = 15_500
STATE, COUNTY = "03", "03007"
LEVELS = ("state", "county", "tract", "block_group", "block")

TENURES = ("mortgage", "owned", "rented", "rent-free")
TYPES = ("alone", "couple", "couple with children", "one parent", "shared")
AGE_GROUPS = ("18-24", "25-34", "35-44", "45-54", "55-64", "65-74", "75-84", "85+")
RELATIONSHIPS = ("householder", "partner", "child", "other", "resident")
LARGEST_HOUSEHOLD = 12
OLDEST = 99

SIX = ("White", "Black", "American Indian", "Asian", "Pacific Islander", "some other race")
RACES = tuple(c for size in range(1, 7) for c in itertools.combinations(range(6), size))
"""The races of each code from 1 to 63: first one race alone, then two in combination, and so on."""

# Width of the square in which a block group lies; a block is in the school district of the nearest centre.
_CELL = 6
_DISTRICT_CENTRES = ((10, 8), (38, 6), (8, 28), (26, 22), (42, 27))

_FIRST_AGES = np.array([18, 25, 35, 45, 55, 65, 75, 85])
_MALE, _FEMALE = 1, 2
_UNDER_18, _ADULT = 1, 2
_CORRECTIONAL, _JUVENILE, _NURSING, _COLLEGE, _SHELTER = 2, 3, 4, 6, 8
# Every bound up to 18 divides this number, so that one draw serves children of all parents.
_COMMON_MULTIPLE = math.lcm(*range(1, 19))
_MILLION = 1_000_000
_CODEBOOK = "example codebook"


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


class Tract(NamedTuple):
    """A tract: the last six digits of its code, its block groups, its setting, households a block group."""

    code: str
    block_groups: int
    setting: str
    density: int


TRACTS = (
    Tract("000100", 4, "centre", 430),
    Tract("000201", 3, "centre", 400),
    Tract("000202", 4, "mills", 440),
    Tract("000300", 3, "campus", 380),
    Tract("000401", 4, "suburb", 460),
    Tract("000402", 4, "suburb", 410),
    Tract("000500", 4, "orchards", 390),
    Tract("000600", 3, "mills", 330),
    Tract("000700", 3, "country", 260),
    Tract("000801", 4, "country", 230),
    Tract("000802", 1, "country", 170),
    Tract("980000", 1, "orchards", 40),
)


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

# How many races besides the first, and which; people of some other race who are of Hispanic origin.
_MORE_RACES = np.array([9_600, 360, 32, 6, 1, 1])
_ADDED_RACE = np.array([32, 20, 20, 14, 5, 9])
_HISPANIC_OF_OTHER_RACE = 860


@dataclass(frozen=True, eq=False)
class County:
    """The tables of a synthetic county.

    Parameters
    ----------
    blocks
        The public geography: one row a block, with or without people, and where it lies on the map.
    persons
        Everybody, in a household or in group quarters.
    households
        One row an occupied housing unit.
    housing_units
        One row a home, occupied or vacant.
    group_quarters
        One row a facility, each with at least one resident.
    districts
        The school district of every block: a public geography that crosses tracts and block groups.
    """

    blocks: pl.DataFrame
    persons: pl.DataFrame
    households: pl.DataFrame
    housing_units: pl.DataFrame
    group_quarters: pl.DataFrame
    districts: pl.DataFrame

    def tables(self) -> dict[str, pl.DataFrame]:
        """The tables by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def write(self, folder: Path) -> None:
        """Write one Parquet file a table; a fault while writing leaves no new file behind."""
        with contextlib.ExitStack() as stack:
            for name, frame in self.tables().items():
                path = stack.enter_context(replace_atomically(folder / f"{name}.parquet"))
                write_parquet(frame, path)

    def codebook(self) -> Mapping[str, Schema]:
        """The columns of every table with their levels: a function of the map alone, not of the people."""
        places = {name: self.blocks.get_column(name).unique().sort().to_list() for name in LEVELS}
        places["school_district"] = [_district_code(number) for number in range(len(_DISTRICT_CENTRES))]
        return _codebook(places)


def synthetic_county(seed: int = SEED) -> County:
    """The county of a seed.

    Examples
    --------
    >>> county = synthetic_county()
    >>> county.persons.height, county.households.height, county.blocks.height
    (39032, 15500, 962)
    """
    source = TestSource(seed)
    plan = _map()
    areas = _Neighbourhoods.of(plan, source.child(1))
    homes = _households(areas, source.child(2))
    residents = _residents(plan, areas, source.child(4))
    vacant = _vacant(areas, homes.block, source.child(5))
    return County(
        blocks=plan.frame(),
        persons=_persons_frame(plan, homes, _members(areas, homes, source.child(3)), residents),
        households=_households_frame(plan, homes),
        housing_units=_housing_units_frame(plan, homes.block, vacant),
        group_quarters=_quarters_frame(plan, residents),
        districts=_districts_frame(plan),
    )


@dataclass(frozen=True, eq=False)
class _Map:
    """Positions of blocks in order of their codes: tract (number), block group (number), code, place."""

    tract: Whole
    group: Whole
    codes: tuple[str, ...]
    x: Whole
    y: Whole

    def frame(self) -> pl.DataFrame:
        import polars as pl

        return pl.DataFrame({"block": self.codes, "x": self.x, "y": self.y}).select(
            pl.lit(STATE).alias("state"),
            pl.lit(COUNTY).alias("county"),
            pl.col("block").str.slice(0, 11).alias("tract"),
            pl.col("block").str.slice(0, 12).alias("block_group"),
            "block",
            pl.col("x", "y").cast(pl.Int16),
        )


def _map() -> _Map:
    """Tracts on a grid of four by three, each in four quarters for its block groups, blocks in rows."""
    source = TestSource(MAP_SEED)
    sizes = iter(20 + _draw(source, 11, sum(tract.block_groups for tract in TRACTS)))
    rows: list[tuple[int, int, str, int, int]] = []
    group = 0
    for number, tract in enumerate(TRACTS):
        step = 2 if tract.block_groups == 1 else 1
        for part in range(tract.block_groups):
            left, top = 2 * (number % 4) + part % 2, 2 * (number // 4) + part // 2
            for block in range(int(next(sizes))):
                code = f"{COUNTY}{tract.code}{part + 1}{block:03}"
                x, y = _CELL * left + step * (block % _CELL), _CELL * top + step * (block // _CELL)
                rows.append((number, group, code, x, y))
            group += 1
    tracts, groups, codes, xs, ys = zip(*rows, strict=True)
    return _Map(np.array(tracts), np.array(groups), codes, np.array(xs), np.array(ys))


def _districts_frame(plan: _Map) -> pl.DataFrame:
    """The district of a block is that of the nearest centre."""
    import polars as pl

    centres = np.array(_DISTRICT_CENTRES)
    distance = (plan.x[:, None] - centres[:, 0]) ** 2 + (plan.y[:, None] - centres[:, 1]) ** 2
    nearest = distance.argmin(axis=1).tolist()
    return pl.DataFrame({"block": plan.codes, "school_district": [_district_code(n) for n in nearest]})


def _district_code(number: int) -> str:
    return f"{STATE}{number * 30 + 30:05}"


@dataclass(frozen=True, eq=False)
class _Neighbourhoods:
    """What each block is like: homes (a weight), races (weights), Hispanic share, setting (a number)."""

    homes: Whole
    races: Whole
    hispanic: Whole
    setting: Whole

    @classmethod
    def of(cls, plan: _Map, source: Source) -> _Neighbourhoods:
        """A block group leans towards a second setting, and blocks differ within it."""
        count, groups = len(plan.codes), int(plan.group[-1]) + 1
        names, settings = list(SETTINGS), tuple(SETTINGS.values())
        setting = np.array([names.index(tract.setting) for tract in TRACTS])[plan.tract]
        other = _draw(source, len(settings), groups)[plan.group]
        lean = _draw(source, 40, groups)[plan.group]
        races, hispanic = np.array([s.races for s in settings]), np.array([s.hispanic for s in settings])
        mixed = races[setting] * (100 - lean)[:, None] + races[other] * lean[:, None]
        skewed = _draw(source, 20, 3 * count).reshape(3, count) + 1
        density = np.array([tract.density for tract in TRACTS])[plan.tract]
        return cls(
            homes=np.where(_draw(source, 20, count) == 0, 0, density * skewed.prod(axis=0)),
            races=mixed * (40 + _draw(source, 121, 6 * count)).reshape(count, 6),
            hispanic=(hispanic[setting] * (100 - lean) + hispanic[other] * lean) // 100,
            setting=setting,
        )

    def draw_people(self, block: Whole, source: Source) -> tuple[Whole, Whole]:
        """Races (six bits) and Hispanic origin (true or false) of one person in each of these blocks."""
        first = _pick(self.races, block, source)
        more = _pick(_MORE_RACES[None], np.zeros_like(block), source)
        races = 1 << first
        for number in range(1, _MORE_RACES.size):
            added = _pick(_ADDED_RACE[None], np.zeros_like(block), source)
            races = np.where(more >= number, races | 1 << added, races)
        share = np.where(first == 5, _HISPANIC_OF_OTHER_RACE, self.hispanic[block])
        return races, (_draw(source, 1000, block.size) < share).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Households:
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


def _households(areas: _Neighbourhoods, source: Source) -> _Households:
    block = np.sort(_scatter(areas.homes, HOUSEHOLDS, source))
    setting = areas.setting[block]
    settings = tuple(SETTINGS.values())
    age_group = _pick(np.array([s.ages for s in settings]), setting, source)
    last = age_group == len(AGE_GROUPS) - 1
    width = np.append(np.diff(_FIRST_AGES), OLDEST + 1 - _FIRST_AGES[-1])[age_group]
    years = np.stack([_spread(width, source), _spread(width, source)])
    age = _FIRST_AGES[age_group] + np.where(last, years.min(axis=0), years[0])
    kind = _pick(_TYPES_BY_AGE, age_group, source)
    tenures = _TENURES_BY_AGE[:, None, :] * np.array([s.tenures for s in settings])
    tenure = _pick(tenures.reshape(-1, len(TENURES)), age_group * len(settings) + setting, source)
    children, others = _pick(_CHILDREN, kind, source), _pick(_OTHERS, kind, source)
    members = np.stack([np.ones_like(kind), _HAS_PARTNER[kind], children, others], axis=1)
    races, hispanic = areas.draw_people(block, source)
    return _Households(block, age, age_group, kind, tenure, members, races, hispanic)


@dataclass(frozen=True, eq=False)
class _People:
    """Persons: the number of their household or facility, relationship, and their own answers."""

    home: Whole
    relationship: Whole
    age: Whole
    sex: Whole
    races: Whole
    hispanic: Whole


def _members(areas: _Neighbourhoods, homes: _Households, source: Source) -> _People:
    """The members of every household: partners and children resemble the householder, more or less."""
    counts = homes.members.ravel()
    home = np.repeat(np.repeat(np.arange(homes.block.size), 4), counts)
    role = np.repeat(np.tile(np.arange(4), homes.block.size), counts)
    head = homes.age[home]
    partner = np.clip(head + _draw(source, 9, home.size) - _draw(source, 12, home.size), 18, OLDEST)
    child = _spread(np.minimum(head - 15, 18), source)
    other = 16 + np.minimum(_draw(source, 72, home.size), _draw(source, 72, home.size))
    age = np.select([role == 0, role == 1, role == 2], [head, partner, child], other)

    races, hispanic = areas.draw_people(homes.block[home], source)
    alike = (role == 0) | (_draw(source, 100, home.size) < 84)
    races = np.where(alike, homes.races[home], races)
    hispanic = np.where(alike, homes.hispanic[home], hispanic)
    # A child has the races of both parents, nine times in ten.
    is_partner, inherits = role == 1, (role == 2) & (_draw(source, 100, home.size) < 90)
    of_both, origin_of_both = homes.races.copy(), homes.hispanic.copy()
    of_both[home[is_partner]] |= races[is_partner]
    origin_of_both[home[is_partner]] |= hispanic[is_partner]
    races = np.where(inherits, of_both[home], races)
    hispanic = np.where(inherits, origin_of_both[home], hispanic)

    # More women than men among the old; a partner is most often of the other sex.
    women = np.where(age >= 75, 600, 505)
    sex = np.where(_draw(source, 1000, home.size) < women, _FEMALE, _MALE)
    of_head = sex[role == 0][home]
    opposite = (role == 1) & (_draw(source, 100, home.size) < 97)
    sex = np.where(opposite, _MALE + _FEMALE - of_head, sex)
    return _People(home, role, age, sex, races, hispanic)


@dataclass(frozen=True, eq=False)
class _Residents:
    """Facilities (block and type of each), and the people who live in them."""

    block: Whole
    type: Whole
    people: _People


def _residents(plan: _Map, areas: _Neighbourhoods, source: Source) -> _Residents:
    blocks, types, sizes = [], [], []
    for kind in QUARTERS:
        within = np.flatnonzero(plan.tract == kind.tract)
        chosen = within[np.argsort(_draw(source, 2**62, within.size), kind="stable")[: kind.blocks]]
        blocks.append(np.resize(chosen, kind.facilities))
        types.append(np.full(kind.facilities, kind.type))
        sizes.append(kind.smallest + _draw(source, kind.largest - kind.smallest + 1, kind.facilities))
    order = np.lexsort((np.concatenate(types), np.concatenate(blocks)))
    block, type_, size = (np.concatenate(part)[order] for part in (blocks, types, sizes))
    home = np.repeat(np.arange(block.size), size)
    kind_of = type_[home]

    def years(bound: int) -> tuple[Whole, Whole]:
        draws = _draw(source, bound, 2 * home.size).reshape(2, home.size)
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
    sex = np.where(_draw(source, 1000, home.size) < share, _MALE, _FEMALE)
    # Residents of a facility come from all over the county: from a home drawn at random.
    origin = _scatter(areas.homes, home.size, source)
    races, hispanic = areas.draw_people(np.where(kind_of == _NURSING, block[home], origin), source)
    resident = np.full(home.size, RELATIONSHIPS.index("resident"))
    return _Residents(block, type_, _People(home, resident, age, sex, races, hispanic))


def _vacant(areas: _Neighbourhoods, occupied: Whole, source: Source) -> Whole:
    """The blocks of vacant homes: as many as the settings say, most where there are many homes."""
    share = np.array([s.vacant for s in SETTINGS.values()])[areas.setting]
    total = int(share[occupied].sum()) // 1000
    return _scatter(areas.homes * share, total, source)


def _households_frame(plan: _Map, homes: _Households) -> pl.DataFrame:
    import polars as pl

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
            "race": _small(_race_codes()[homes.races]),
        }
    )


def _persons_frame(plan: _Map, homes: _Households, members: _People, residents: _Residents) -> pl.DataFrame:
    import polars as pl

    def own(people: _People, block: Whole, hhgq: Whole) -> pl.DataFrame:
        return pl.DataFrame(
            {
                "block": pl.Series(plan.codes).gather(block[people.home]),
                "hhgq": _small(hhgq),
                "voting_age": _small(np.where(people.age < 18, _UNDER_18, _ADULT)),
                "hispanic": _small(people.hispanic + 1),
                "race": _small(_race_codes()[people.races]),
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


def _housing_units_frame(plan: _Map, occupied: Whole, vacant: Whole) -> pl.DataFrame:
    import polars as pl

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


def _quarters_frame(plan: _Map, residents: _Residents) -> pl.DataFrame:
    import polars as pl

    return pl.DataFrame(
        {
            "facility_id": _ids("F", residents.block.size, 3),
            "block": pl.Series(plan.codes).gather(residents.block),
            "group_quarters_type": _small(residents.type),
        }
    )


def _ids(letter: str, count: int, digits: int) -> pl.Series:
    import polars as pl

    number = pl.int_range(1, count + 1, eager=True).cast(pl.String).str.zfill(digits)
    return letter + number


def _small(values: Whole) -> pl.Series:
    import polars as pl

    return pl.Series(values, dtype=pl.Int64).cast(pl.Int16)


def _race_codes() -> Whole:
    """From six bits to the code from 1 to 63; no race has no code."""
    codes = np.zeros(64, dtype=np.int64)
    for code, races in enumerate(RACES, 1):
        codes[sum(1 << race for race in races)] = code
    return codes


def _codebook(places: Mapping[str, list[str]]) -> dict[str, Schema]:
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
                _column("x", "Place on the map, from west to east.", range(8 * _CELL)),
                _column("y", "Place on the map, from north to south.", range(6 * _CELL)),
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
                _column("sex", "1 male, 2 female.", (_MALE, _FEMALE)),
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


def _race_groups() -> Recode:
    groups: dict[str, tuple[Level, ...]] = {f"{name} alone": (code,) for code, name in enumerate(SIX, 1)}
    groups["two or more races"] = tuple(range(7, len(RACES) + 1))
    return Recode(name="race_group", attribute="race", groups=groups)


def _draw(source: Source, bound: int, count: int) -> Whole:
    """Whole numbers from zero to below the bound."""
    return integers(source, bound, count).astype(np.int64)


def _spread(bounds: Whole, source: Source) -> Whole:
    """A whole number from zero to below the bound of each row; no bound is above 18."""
    return _draw(source, _COMMON_MULTIPLE, bounds.size) % bounds


def _pick(weights: Whole, rows: Whole, source: Source) -> Whole:
    """For each entry of ``rows`` a column of that row of the weights, shares exact to a millionth."""
    rising = np.cumsum(weights, axis=1)
    limits = rising * _MILLION // rising[:, -1:]
    drawn = _draw(source, _MILLION, rows.size)
    picked: Whole = (drawn[:, None] >= limits[rows]).sum(axis=1)
    return picked


def _scatter(weights: Whole, count: int, source: Source) -> Whole:
    """Positions drawn in proportion to their weights."""
    rising = np.cumsum(weights)
    drawn = _draw(source, int(rising[-1]), count)
    return np.searchsorted(rising, drawn, side="right").astype(np.int64)
