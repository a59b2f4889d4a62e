"""The trial data, found through STIRRED_TRIAL_DATA, with the fixed rules that complete them.

Rhode Island comes as counts by block, age and eight groups; TopDown's schema needs group quarters and 63
races. The rules are arbitrary, fixed and free of randomness: they give the data a realistic shape, no more.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

GROUPS = ("white", "black", "aian", "asian", "nhpi", "other", "two", "hisp")
ADULTS_ONLY = (2, 4, 6, 7)


def folder() -> Path | None:
    """The folder of the trial data, if there is one."""
    name = os.environ.get("STIRRED_TRIAL_DATA")
    return Path(name) if name and Path(name).is_dir() else None


def guernsey() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Persons of Guernsey County, and the public list of its blocks."""
    place = folder()
    assert place is not None
    persons = pl.read_parquet(place / "guernsey_persons.parquet")
    levels = ["county", "tract", "block_group", "block"]
    return persons.select(*levels, "hhgq", "voting_age", "hispanic", "race"), persons.select(
        levels
    ).unique().sort("block")


def rhode_island(share: int = 1) -> tuple[pl.DataFrame, pl.DataFrame]:
    """1,052,567 persons of Rhode Island and its 25,181 blocks, or every ``share``-th tract of them."""
    place = folder()
    assert place is not None
    blocks = pl.read_parquet(place / "ri_blocks_2010.parquet").sort("GEOID")
    tracts = blocks["GEOID"].str.slice(0, 11).rle_id().to_numpy()
    blocks = blocks.filter(pl.Series(tracts % share == 0))
    leaves = pl.DataFrame(
        {
            "state": blocks["GEOID"].str.slice(0, 2),
            "county": blocks["GEOID"].str.slice(0, 5),
            "tract": blocks["GEOID"].str.slice(0, 11),
            "block_group": blocks["GEOID"].str.slice(0, 12),
            "block": blocks["GEOID"],
        }
    )
    parts = []
    for number, group in enumerate(GROUPS):
        adults = blocks[f"vap_{group}"].to_numpy()
        minors = blocks[f"pop_{group}"].to_numpy() - adults
        for age, counts in ((1, minors), (2, adults)):
            row = np.repeat(np.arange(blocks.height), counts)
            parts.append(np.stack([row, np.full(row.size, number), np.full(row.size, age)]))
    row, group, age = np.concatenate(parts, axis=1)
    order = np.argsort(row, kind="stable")
    row, group, age = row[order], group[order], age[order]
    turn = np.arange(row.size) - np.searchsorted(row, row)
    serial = row * 7 + turn
    race = np.where(group < 6, group + 1, 7 + (serial * serial + serial // 3) % 57)
    race = np.where(group == 6, np.where(serial % 3 == 0, race, 7 + serial % 9), race)
    hispanic_race = np.array([1, 1, 1, 6, 1, 6, 6, 2, 1, 7])
    race = np.where(group == 7, hispanic_race[serial % 10], race)
    hhgq = _group_quarters(row, age, turn)
    persons = pl.DataFrame(
        {
            "block": leaves["block"].gather(row),
            "hhgq": hhgq,
            "voting_age": age,
            "hispanic": np.where(group == 7, 2, 1),
            "race": race,
        }
    )
    return persons, leaves


def _group_quarters(row: np.ndarray, age: np.ndarray, turn: np.ndarray) -> np.ndarray:
    """Every 61st block has group quarters of one type, with up to 120 of its people in them."""
    kind = 2 + (row // 61) % 7
    chosen = (row % 61 == 0) & (turn % 3 != 0) & (turn < 180)
    chosen &= (age == 2) | ~np.isin(kind, ADULTS_ONLY)
    return np.where(chosen, kind, 1)


def units_of(persons: pl.DataFrame, leaves: pl.DataFrame) -> pl.DataFrame:
    """Units by block: one facility for every 50 people or part of them in a type of group quarters, one

    housing unit for every two and a half people in households, every eighth of them with a vacant neighbour.
    """
    counts = persons.group_by("block", "hhgq").len().sort("block", "hhgq")
    block, hhgq, people = (
        counts["block"],
        counts["hhgq"].to_numpy(),
        counts["len"].to_numpy().astype(np.int64),
    )
    occupied = np.where(hhgq == 1, np.minimum(people, (people * 2 + 4) // 5), -(-people // 50))
    frames = []
    for number, label in ((occupied, "occupied"), (np.where(hhgq == 1, occupied // 8, 0), "vacant")):
        rows = np.repeat(np.arange(len(block)), number)
        frames.append(
            pl.DataFrame({"block": block.gather(rows), "hhgq": hhgq[rows]}).with_columns(
                occupancy=pl.lit(label)
            )
        )
    return pl.concat(frames).join(leaves.select("block"), on="block", how="semi")
