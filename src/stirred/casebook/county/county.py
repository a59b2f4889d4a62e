"""The county of a seed: its tables, their files and their codebook."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.casebook.county.codebook import codebook
from stirred.casebook.county.frames import (
    households_frame,
    housing_units_frame,
    persons_frame,
    quarters_frame,
)
from stirred.casebook.county.households import households, vacant_homes
from stirred.casebook.county.map import DISTRICTS, LEVELS, districts_frame, public_map
from stirred.casebook.county.neighbourhoods import Neighbourhoods
from stirred.casebook.county.persons import members
from stirred.casebook.county.quarters import residents
from stirred.interchange import replace_atomically, write_parquet
from stirred.noise import TestSource
from stirred.spec import Schema

if TYPE_CHECKING:
    import polars as pl

SEED = 1790


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
        return codebook(places | {"school_district": list(DISTRICTS)})


def synthetic_county(seed: int = SEED) -> County:
    """The county of a seed.

    Examples
    --------
    >>> county = synthetic_county()
    >>> county.persons.height, county.households.height, county.blocks.height
    (39032, 15500, 962)
    """
    source = TestSource(seed)
    plan = public_map()
    areas = Neighbourhoods.of(plan, source.child(1))
    homes = households(areas, source.child(2))
    quarters = residents(plan, areas, source.child(4))
    vacant = vacant_homes(areas, homes.block, source.child(5))
    return County(
        blocks=plan.frame(),
        persons=persons_frame(plan, homes, members(areas, homes, source.child(3)), quarters),
        households=households_frame(plan, homes),
        housing_units=housing_units_frame(plan, homes.block, vacant),
        group_quarters=quarters_frame(plan, quarters),
        districts=districts_frame(plan),
    )
