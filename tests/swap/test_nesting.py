"""Torn geography: places that nest move together, or nobody publishes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.protocol import guaranteed
from support.releasing import try_swap

from stirred.errors import InputError
from stirred.noise import TestSource
from stirred.spec import Domain, Schema
from stirred.swap import PermutationSwap, Records, require_whole
from stirred.swap.nesting import ENOUGH, places_of, require_declared

MAP = (("block", "tract"), ("tract", "county"), ("school", "county"))


def town(count: int = 2000, seed: int = 7) -> pl.DataFrame:
    """Blocks nested in tracts; the reviewers' trial."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 100, count)
    return pl.DataFrame(
        {
            "block": [f"{b // 10:02}{b % 10}" for b in blocks],
            "tract": [f"{b // 10:02}" for b in blocks],
            "size": rng.integers(1, 5, count),
            "income": rng.integers(0, 30, count),
        }
    )


def test_places_of_a_place_are_closed_transitively() -> None:
    assert places_of(MAP, "block") == {"block", "tract", "county"}
    assert places_of(MAP, "county") == {"county"}
    assert places_of((("a", "b"), ("b", "a")), "a") == {"a", "b"}


@pytest.mark.parametrize(
    ("match", "swap", "hold", "torn"),
    [
        ((), ("block",), ("tract",), "block is nested in tract"),
        ((), ("tract",), ("block",), "block is nested in tract"),
        ((), ("block",), ("county",), "block is nested in county"),
        ((), ("block",), ("school",), "block and school are nested in county"),
        (("tract",), ("block",), ("county",), ""),
        (("county",), ("block",), ("school",), ""),
        (("county",), ("block", "tract"), ("school",), ""),
        (("tract",), ("block",), ("school",), ""),
        (("school",), ("block",), ("tract",), "block is nested in tract"),
        (("block",), ("tract",), ("size",), ""),
        ((), ("block", "tract"), ("size",), ""),
        ((), ("size",), ("block", "tract"), ""),
    ],
)
def test_every_pair_of_roles(
    match: tuple[str, ...], swap: tuple[str, ...], hold: tuple[str, ...], torn: str
) -> None:
    if not torn:
        require_whole(MAP, match, swap, hold)
        return
    with pytest.raises(InputError, match=torn) as caught:
        require_whole(MAP, match, swap, hold)
    assert caught.value.field == "swap"


def test_torn_geography_of_a_trial_with_2000_records_is_refused(tmp_path: Path) -> None:
    """Swapping block while tract is held made 106 of 2,000 moved records visible to whoever has the map."""
    town().write_parquet(tmp_path / "town.parquet")
    roles = {"match": ("size",), "swap": ("block",), "hold": ("tract", "income"), "rate": "0.06"}
    made = PermutationSwap(**roles, nesting=()).release(town(), TestSource(1)).products["households"]
    seen = made.filter(pl.col("block").str.slice(0, 2) != pl.col("tract")).height
    assert 50 < seen < 200
    for nesting, word in ((None, "block determines tract"), ((("block", "tract"),), "would move")):
        with pytest.raises(InputError, match=word):
            try_swap(PermutationSwap(**roles, nesting=nesting), tmp_path / "town.parquet", tmp_path / "out")
        assert not (tmp_path / "out").exists()
    try_swap(PermutationSwap(**roles, nesting=()), tmp_path / "town.parquet", tmp_path / "out")


def test_places_that_travel_together_need_no_word(tmp_path: Path) -> None:
    town().write_parquet(tmp_path / "town.parquet")
    swap = PermutationSwap(match=("size",), swap=("block", "tract"), hold=("income",), rate="0.06")
    made = try_swap(swap, tmp_path / "town.parquet", tmp_path / "out")
    homes = pl.read_parquet(made.folder / "internal" / "microdata" / "households.parquet")
    assert homes.height == 2000
    assert (homes["block"].str.slice(0, 2) == homes["tract"]).all()


def refused(frame: pl.DataFrame, persons: pl.DataFrame | None = None, **roles: tuple[str, ...]) -> bool:
    """Whether records look nested where nothing was declared."""
    swap = PermutationSwap(**{"match": (), "rate": "1/2"} | roles)  # type: ignore[arg-type]
    prepared = swap.prepare(Records.of(frame, persons, None if persons is None else "id"))
    try:
        require_declared(prepared.records, prepared.roles)
    except InputError:
        return True
    return False


def test_codes_that_are_local_to_a_matched_place_are_seen() -> None:
    """Blocks numbered anew in every county determine the tract within the county, and nowhere else."""
    rng = np.random.default_rng(2)
    county, block = rng.integers(0, 4, 3000), rng.integers(0, 20, 3000)
    frame = pl.DataFrame(
        {"county": county, "block": block, "tract": (block + county) // 5, "h": rng.integers(0, 9, 3000)}
    )
    assert refused(frame, match=("county",), swap=("block",), hold=("tract", "h"))
    assert refused(frame, match=("county",), swap=("tract",), hold=("block", "h"))
    assert not refused(frame, swap=("block",), hold=("tract", "h"))
    assert not refused(frame, match=("county", "tract"), swap=("block",), hold=("h",))


def test_codes_in_two_columns_are_seen_together() -> None:
    rng = np.random.default_rng(3)
    state, county = rng.integers(0, 5, 3000), rng.integers(0, 8, 3000)
    frame = pl.DataFrame({"state": state, "county": county, "region": (7 * state + 3 * county) % 11})
    assert refused(frame, swap=("state", "county"), hold=("region",))


def test_what_a_matched_place_fixes_is_not_torn() -> None:
    frame = town().with_columns(county=pl.col("tract").cast(pl.Int64) // 5)
    assert not refused(frame, match=("tract",), swap=("block",), hold=("county", "income"))
    assert refused(frame, swap=("block",), hold=("county", "income"))


@pytest.mark.parametrize(("extra", "expected"), [(ENOUGH - 1, False), (ENOUGH, True)])
def test_tiny_files_do_not_look_nested_by_chance(extra: int, expected: bool) -> None:
    """Twenty records more than distinct values of the finer column, and two values of the coarser."""
    values = [*range(6), *(i % 6 for i in range(extra))]
    frame = pl.DataFrame({"s": values, "h": [v % 2 for v in values], "k": [0] * len(values)})
    assert refused(frame, swap=("s",), hold=("h",)) is expected
    assert not refused(frame, swap=("s",), hold=("k",))


def test_a_place_of_persons_that_stays_behind_is_seen() -> None:
    homes = town(300).with_row_index("id").with_columns(pl.col("id").cast(pl.Int64))
    persons = homes.select("id", "tract").with_columns(age=pl.col("id") % 7)
    roles = {"match": ("size",), "swap": ("block",), "hold": ("income",)}
    assert refused(homes.drop("tract"), persons, **roles)
    assert not refused(homes.drop("tract"), persons.drop("tract"), **roles)
    swap = PermutationSwap(**roles, rate="1/2", nesting=(("block", "tract"),))
    with pytest.raises(InputError, match="would not move with block"):
        swap.prepare(Records.of(homes.drop("tract"), persons, "id"))


def test_the_nesting_of_the_domain_counts() -> None:
    names = ("block", "tract", "size", "income")
    schema = Schema(attributes=Schema.of(**dict.fromkeys(names)).attributes, nesting=(("block", "tract"),))
    domain = Domain(
        name="X", stage="edited file", structure="multiset", meaning="all towns", record_schema=schema
    )
    swap = PermutationSwap(match=(), swap=("block",), hold=("tract",), rate="1/2", domain=domain)
    assert swap.declared_nesting() == (("block", "tract"),)
    with pytest.raises(InputError, match="block would move while tract stays"):
        guaranteed(swap, town())
