"""The public map: tracts, block groups, blocks and school districts, the same for every seed.

The state has a code that no state of the United States has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from stirred.casebook.county.draws import Whole, draw
from stirred.noise import TestSource

MAP_SEED = 1787
STATE, COUNTY = "03", "03007"
LEVELS = ("state", "county", "tract", "block_group", "block")

CELL = 6
"""Width of the square in which a block group lies."""
_DISTRICT_CENTRES = ((10, 8), (38, 6), (8, 28), (26, 22), (42, 27))
DISTRICTS = tuple(f"{STATE}{30 * number:05}" for number in range(1, len(_DISTRICT_CENTRES) + 1))


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


@dataclass(frozen=True, eq=False)
class Map:
    """Positions of blocks in order of their codes: tract (number), block group (number), code, place."""

    tract: Whole
    group: Whole
    codes: tuple[str, ...]
    x: Whole
    y: Whole

    def frame(self) -> pl.DataFrame:
        return pl.DataFrame({"block": self.codes, "x": self.x, "y": self.y}).select(
            pl.lit(STATE).alias("state"),
            pl.lit(COUNTY).alias("county"),
            pl.col("block").str.slice(0, 11).alias("tract"),
            pl.col("block").str.slice(0, 12).alias("block_group"),
            "block",
            pl.col("x", "y").cast(pl.Int16),
        )


def public_map() -> Map:
    """Tracts on a grid of four by three, each in four quarters for its block groups, blocks in rows."""
    source = TestSource(MAP_SEED)
    sizes = iter(20 + draw(source, 11, sum(tract.block_groups for tract in TRACTS)))
    rows: list[tuple[int, int, str, int, int]] = []
    group = 0
    for number, tract in enumerate(TRACTS):
        step = 2 if tract.block_groups == 1 else 1
        for part in range(tract.block_groups):
            left, top = 2 * (number % 4) + part % 2, 2 * (number // 4) + part // 2
            for block in range(int(next(sizes))):
                code = f"{COUNTY}{tract.code}{part + 1}{block:03}"
                x, y = CELL * left + step * (block % CELL), CELL * top + step * (block // CELL)
                rows.append((number, group, code, x, y))
            group += 1
    tracts, groups, codes, xs, ys = zip(*rows, strict=True)
    return Map(np.array(tracts), np.array(groups), codes, np.array(xs), np.array(ys))


def districts_frame(plan: Map) -> pl.DataFrame:
    """The school district of every block: that of the nearest centre."""
    centres = np.array(_DISTRICT_CENTRES)
    distance = (plan.x[:, None] - centres[:, 0]) ** 2 + (plan.y[:, None] - centres[:, 1]) ** 2
    nearest = distance.argmin(axis=1).tolist()
    return pl.DataFrame({"block": plan.codes, "school_district": [DISTRICTS[n] for n in nearest]})
