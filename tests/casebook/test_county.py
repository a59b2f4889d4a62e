"""The synthetic county: reproducible, consistent with itself, and fit for both mechanisms."""

from __future__ import annotations

import errno
import hashlib
from pathlib import Path

import polars as pl
import pytest

from stirred.casebook.county import COUNTY, LEVELS, RACES, SEED, STATE, County, synthetic_county
from stirred.data import Spine, require_levels
from stirred.errors import InputError
from stirred.noise import TestSource
from stirred.spec import Exact, Schema
from stirred.swap import PermutationSwap, Records
from stirred.topdown import Settings, TopDown, Universe, preset

FINGERPRINTS = {
    "blocks": "ea7a0f21ed31fead",
    "persons": "78ccedc412b3a82a",
    "households": "db199686a9751a0b",
    "housing_units": "568d285b2d782738",
    "group_quarters": "5fb55225cb2712c2",
    "districts": "39af014df2dad24b",
}
NAMES = ("blocks", "persons", "households", "housing_units", "group_quarters", "districts")


@pytest.fixture(scope="module")
def county() -> County:
    return synthetic_county()


@pytest.fixture(scope="module", params=[SEED, 1, 2, 3])
def any_county(request: pytest.FixtureRequest) -> County:
    return synthetic_county(request.param)


def fingerprints(county: County) -> dict[str, str]:
    return {
        name: hashlib.sha256(frame.write_csv().encode()).hexdigest()[:16]
        for name, frame in county.tables().items()
    }


def test_the_default_seed_gives_the_same_county_always(county: County) -> None:
    assert fingerprints(county) == fingerprints(synthetic_county()) == FINGERPRINTS


def test_seeds_change_the_people_and_not_the_map(county: County) -> None:
    other, own = fingerprints(synthetic_county(SEED + 1)), fingerprints(county)
    assert {name for name in NAMES if other[name] == own[name]} == {"blocks", "districts"}


def test_the_tables_are_of_the_size_and_shape_of_a_county(any_county: County) -> None:
    assert tuple(any_county.tables()) == NAMES
    assert any_county.blocks.height == 962
    assert any_county.households.height == 15_500
    assert 37_000 < any_county.persons.height < 42_000
    assert 1_000 < any_county.housing_units.filter(occupancy="vacant").height < 2_500
    people = any_county.persons.group_by("block").len().get_column("len")
    assert people.max() > 10 * people.median() and people.min() <= 2
    assert 20 < any_county.blocks.height - people.len() < 200


def test_codes_are_text_of_full_length_that_nests(county: County) -> None:
    lengths = dict(zip(LEVELS, (2, 5, 11, 12, 15), strict=True))
    for name, length in lengths.items():
        column = county.blocks.get_column(name)
        assert column.dtype == pl.String and column.str.len_chars().unique().to_list() == [length]
        assert column.str.starts_with("0").all()
        assert (county.blocks.get_column("block").str.slice(0, length) == column).all()
    spine = Spine.from_columns(county.blocks, LEVELS)
    assert spine.codes[0] == (STATE,) and spine.codes[1] == (COUNTY,)
    assert [spine.size(level) for level in range(5)] == [1, 1, 12, 38, 962]
    assert spine.only_child(3).sum() == 2
    assert county.blocks.select("x", "y").is_unique().all()


def test_school_districts_cross_block_groups_and_tracts(county: County) -> None:
    crosswalk = county.districts.join(county.blocks, on="block", validate="1:1")
    assert crosswalk.height == county.blocks.height == county.districts.height
    by_district = crosswalk.group_by("school_district").agg(pl.len(), pl.col("tract").n_unique())
    assert by_district.height == 5 and by_district["len"].min() > 40 and by_district["tract"].min() > 1
    assert crosswalk.group_by("block_group").agg(pl.col("school_district").n_unique())[
        "school_district"
    ].max() > 1  # fmt: skip


def test_households_are_as_large_as_they_have_persons(any_county: County) -> None:
    members = any_county.persons.filter(hhgq=1)
    assert members["household_id"].null_count() == 0 and members["facility_id"].null_count() == len(members)
    found = members.group_by("household_id").agg(pl.len().cast(pl.Int16), pl.col("block").unique())
    joined = any_county.households.join(found, on="household_id", how="full", validate="1:1")
    assert joined.null_count().sum_horizontal().item() == 0
    assert (joined["size"] == joined["len"]).all()
    assert (joined["block_right"].list.len() == 1).all()
    assert (joined["block_right"].list.first() == joined["block"]).all()
    assert any_county.households.join(
        any_county.blocks, on=["county", "tract", "block_group", "block"], how="anti"
    ).is_empty()  # fmt: skip


def test_every_household_has_the_householder_that_it_says(any_county: County) -> None:
    heads = any_county.persons.filter(relationship="householder")
    joined = any_county.households.join(heads, on="household_id", how="left", validate="1:1")
    assert (joined["race"] == joined["race_right"]).all()
    assert (joined["hispanic"] == joined["hispanic_right"]).all()
    first = joined["householder_age"].str.slice(0, 2).cast(pl.Int16)
    last = joined["householder_age"].str.slice(3).cast(pl.Int16, strict=False).fill_null(99)
    assert ((first <= joined["age"]) & (joined["age"] <= last)).all()
    roles = any_county.persons.filter(hhgq=1).group_by("household_id").agg(
        partners=(pl.col("relationship") == "partner").sum(),
        children=(pl.col("relationship") == "child").sum(),
    )  # fmt: skip
    kinds = any_county.households.join(roles, on="household_id")
    assert (kinds["type"].str.starts_with("couple") == (kinds["partners"] == 1)).all()
    with_children = kinds["type"].is_in(["couple with children", "one parent"])
    assert (with_children == (kinds["children"] > 0)).all()
    assert ((kinds["type"] == "alone") == (kinds["size"] == 1)).all()
    assert any_county.persons.filter(relationship="child")["age"].max() < 18


def test_every_facility_has_a_resident_and_types_are_those_of_the_residents(any_county: County) -> None:
    residents = any_county.persons.filter(pl.col("hhgq") > 1)
    assert residents["facility_id"].null_count() == 0 and residents["household_id"].null_count() == len(
        residents
    )
    of_residents = residents.select("facility_id", "block", pl.col("hhgq").alias("group_quarters_type"))
    assert of_residents.unique().sort("facility_id").equals(any_county.group_quarters)
    assert set(any_county.group_quarters["group_quarters_type"]) == {2, 3, 4, 6, 8}
    several = any_county.group_quarters.group_by("block", "group_quarters_type").len()
    assert several["len"].max() > 1


def test_age_and_voting_age_agree_and_no_minor_lives_where_none_may(any_county: County) -> None:
    persons = any_county.persons
    assert ((persons["age"] >= 18) == (persons["voting_age"] == 2)).all()
    assert persons.filter(pl.col("hhgq").is_in([2, 4, 7]), pl.col("age") < 18).is_empty()
    assert 0.15 < (persons["voting_age"] == 1).mean() < 0.35


def test_occupied_units_are_the_households(any_county: County) -> None:
    def by_block(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.group_by("block").len().sort("block")

    occupied = any_county.housing_units.filter(occupancy="occupied")
    assert by_block(occupied).equals(by_block(any_county.households))


def test_identifiers_are_unique(any_county: County) -> None:
    for name in ("persons", "households", "housing_units", "group_quarters"):
        first = any_county.tables()[name].to_series(0)
        assert first.name.endswith("_id") and first.is_unique().all() and first.null_count() == 0


def test_races_vary_between_tracts_and_some_are_rare(any_county: County) -> None:
    persons = any_county.persons.join(any_county.blocks, on="block")
    shares = persons.group_by("tract").agg((pl.col("race") == 2).mean())["race"]
    assert shares.max() > 0.4 and shares.min() < 0.1
    counts = persons["race"].value_counts()
    assert counts.height > 25 and counts["count"].min() < 5
    assert (persons["hispanic"] == 2).mean() > 0.08
    assert len(RACES) == 63 and RACES[6] == (0, 1) and RACES[62] == (0, 1, 2, 3, 4, 5)


def test_the_codebook_covers_every_value_and_says_where_it_comes_from(any_county: County) -> None:
    book = any_county.codebook()
    assert tuple(book) == NAMES
    for name, frame in any_county.tables().items():
        assert tuple(frame.columns) == book[name].names
        require_levels(frame, book[name], frame.columns)
        assert all(a.provenance.startswith("example codebook") and a.meaning for a in book[name].attributes)


def test_the_codebook_is_the_same_for_all_people_and_has_the_levels_of_the_presets(county: County) -> None:
    book = county.codebook()
    assert book == synthetic_county(SEED + 1).codebook()
    levels = {**book["persons"].codebook(), **book["housing_units"].codebook()}
    for name in ("pl-2020-us-persons", "pl-2020-us-units"):
        wanted = preset(name).schema.codebook()
        assert {column: levels[column] for column in wanted} == wanted
    assert book["persons"].knows("hhinstlevels") and book["households"].knows("race_group")


def test_files_come_back_as_they_were_written(county: County, tmp_path: Path) -> None:
    county.write(tmp_path / "county")
    assert {p.name for p in (tmp_path / "county").iterdir()} == {f"{name}.parquet" for name in NAMES}
    for name, frame in county.tables().items():
        assert pl.read_parquet(tmp_path / "county" / f"{name}.parquet").equals(frame)


def test_a_full_disk_leaves_no_file(county: County, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, calls = pl.DataFrame.write_parquet, []

    def limited(frame: pl.DataFrame, path: Path) -> None:
        calls.append(path)
        if len(calls) == len(NAMES):
            raise OSError(errno.ENOSPC, "No space left on device")
        write(frame, path)

    monkeypatch.setattr(pl.DataFrame, "write_parquet", limited)
    with pytest.raises(InputError, match=r"districts\.parquet could not be written"):
        county.write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_topdown_runs_with_the_published_settings(county: County) -> None:
    chosen = [preset("pl-2020-us-persons"), preset("pl-2020-us-units")]
    universes = [
        Universe(
            p.universe,
            p.schema,
            p.allocation.renormalised(LEVELS),
            Settings(
                passes={level: q for level, q in p.passes.items() if level in LEVELS}, chain=p.rounding_chain
            ),
        )
        for p in chosen
    ]
    counted = {"occupied_group_quarters": Schema.of(group_quarters_type=range(2, 9))}
    spine = Spine.from_columns(county.blocks, LEVELS)
    topdown = TopDown(spine, universes, chosen[0].constraints, counted)
    release = topdown.release(
        {
            "person": county.persons,
            "housing_unit": county.housing_units,
            "occupied_group_quarters": county.group_quarters,
        },
        TestSource(1),
    )
    assert not release.publishable
    total = release.products["person"].table("state", "total").get_column("count").sum()
    assert total == county.persons.height
    units = release.products["housing_unit"].table("block", "total").get_column("count").sum()
    assert units == county.housing_units.height
    assert release.products["person"].table("state", "hhgq").filter(hhgq=7)["count"].sum() == 0


def test_permutation_swap_runs_on_the_households(county: County) -> None:
    swap = PermutationSwap(
        match=("county", "size"),
        swap=("tract", "block_group", "block"),
        rate="0.1",
        nesting=county.codebook()["households"].nesting,
        codebook=county.codebook()["households"],
    )
    release = swap.release(Records.of(county.households, id="household_id"), TestSource(1))
    swapped = release.products["households"]
    pairs = county.households.filter(size=2).height
    assert release.specification.budget.amounts == (Exact.log(9 * (pairs + 1)),)
    for kept in (("block", "size"), ("county", "size", "race", "tenure")):
        before, after = (f.group_by(kept).len().sort(kept) for f in (county.households, swapped))
        assert before.equals(after)
    moved = swapped.group_by("tract", "race").len().sort("tract", "race")
    assert not moved.equals(county.households.group_by("tract", "race").len().sort("tract", "race"))
    assert swapped.join(county.blocks, on=["tract", "block_group", "block"], how="anti").is_empty()
