"""Replay: post-processing sees the measurements and the invariants, and nothing else of the data."""

from __future__ import annotations

import hashlib
import inspect
import io
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stirred.data import Spine
from stirred.errors import InputError
from stirred.noise import TestSource
from stirred.spec import Count, Release, Schema
from stirred.topdown import (
    Allocation,
    Cells,
    Edit,
    Facilities,
    Invariant,
    Measurements,
    Noisy,
    Public,
    Settings,
    StructuralZero,
    TopDown,
    Universe,
    estimation,
)

LEVELS = ("state", "county", "block")
PERSON = Schema.of(quarters=(1, 2), age=("minor", "adult"))
UNIT = Schema.of(occupancy=("occupied", "vacant"))
ESTIMATORS = ("multipass", "gls")


def spine() -> Spine:
    rows = [
        ("0", "0a", "0a1"),
        ("0", "0a", "0a2"),
        ("0", "0b", "0b1"),
        ("0", "0c", "0c1"),
        ("0", "0c", "0c2"),
    ]
    return Spine.from_columns(pl.DataFrame(rows, schema=list(LEVELS), orient="row"), LEVELS)


def even(schema: Schema, rho: object) -> Allocation:
    shares = dict.fromkeys(LEVELS, Fraction(1, 3))
    return Allocation.of(Cells(schema), rho, shares, {"total": "1/4", "detailed": "3/4"})


def mechanism(estimator: str, rho: object = 1, threads: int = 1) -> TopDown:
    settings = Settings(estimator=estimator, threads=threads)  # type: ignore[arg-type]
    return TopDown(
        spine(),
        [
            Universe("person", PERSON, even(PERSON, rho), settings),
            Universe("housing_unit", UNIT, even(UNIT, "1/3"), settings),
        ],
        [
            Invariant(count=Count(unit="person", by=("county",))),
            Invariant(count=Count(unit="housing_unit", by=("block",))),
            Facilities(attribute="quarters", level="block", cap=9, sources={"housing_unit": (1,)}),
            StructuralZero(where={"quarters": (2,), "age": ("minor",)}),
            Edit(level="block", at_most=12),
        ],
    )


def data(people: dict[str, tuple[int, int]], vacant: int) -> dict[str, pl.DataFrame]:
    """Minors and adults by block, all in housing units; two units in every block, some of them vacant."""
    rows = [
        (block, 1, age)
        for block, counts in people.items()
        for age, count in zip(("minor", "adult"), counts, strict=True)
        for _ in range(count)
    ]
    units = [
        (b, "vacant" if i < vacant else "occupied")
        for i, b in enumerate(["0a1", "0a2", "0b1", "0c1", "0c2"] * 2)
    ]
    return {
        "person": pl.DataFrame(rows, schema=["block", "quarters", "age"], orient="row"),
        "housing_unit": pl.DataFrame(units, schema=["block", "occupancy"], orient="row"),
    }


ONE = data({"0a1": (3, 1), "0a2": (0, 2), "0b1": (5, 5), "0c1": (1, 0)}, vacant=3)
TWIN = data({"0a2": (6, 0), "0b1": (0, 10), "0c2": (0, 1)}, vacant=9)  # the same invariants
OTHER = data(
    {"0a1": (3, 1), "0a2": (0, 2), "0b1": (5, 4), "0c1": (1, 1)}, vacant=3
)  # one person moved county


def prints(made: Release) -> dict[str, str]:
    """Digests of everything that is published: microdata in two formats, and tables of every level."""
    out = {}

    def add(name: str, body: bytes) -> None:
        out[name] = hashlib.sha256(body).hexdigest()

    for unit in ("person", "housing_unit"):
        estimates = made.products[unit]
        parquet = io.BytesIO()
        estimates.microdata().write_parquet(parquet)
        add(f"{unit}.parquet", parquet.getvalue())
        add(f"{unit}.csv", estimates.microdata().write_csv().encode())
        for level in LEVELS:
            for query in ("total", "detailed"):
                add(f"{unit} {query} by {level}", estimates.table(level, query).write_csv().encode())
    return out


def public(topdown: TopDown, source: dict[str, pl.DataFrame]) -> Any:
    return topdown.prepare(source).public


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("seed", range(3))
def test_measurements_of_one_input_finished_with_another_of_its_universe_give_the_same_bytes(estimator, seed):
    topdown = mechanism(estimator)
    made = topdown.release(ONE, TestSource(seed))
    kept = Noisy(made.products["measurements"])
    replayed = topdown.finish(kept, public(topdown, TWIN))
    assert prints(replayed) == prints(made)
    assert replayed.specification == made.specification


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_another_value_of_an_equality_invariant_gives_another_output(estimator):
    topdown = mechanism(estimator)
    kept = topdown.draw(topdown.prepare(ONE), TestSource(4))
    one = topdown.finish(kept, public(topdown, ONE))
    other = topdown.finish(kept, public(topdown, OTHER))
    assert prints(one)["person.csv"] != prints(other)["person.csv"]
    assert prints(one)["housing_unit.csv"] == prints(other)["housing_unit.csv"]
    assert one.products["person"].table("county")["count"].to_list() == [6, 10, 1]
    assert other.products["person"].table("county")["count"].to_list() == [6, 9, 2]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_finishing_twice_and_with_other_threads_gives_the_same_bytes(estimator):
    topdown = mechanism(estimator)
    kept = topdown.draw(topdown.prepare(ONE), TestSource(5))
    values = public(topdown, ONE)
    first = prints(topdown.finish(kept, values))
    assert prints(topdown.finish(kept, values)) == first
    two = mechanism(estimator, threads=2)
    assert prints(two.finish(kept, values)) == first


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_replay_through_files(estimator, tmp_path):
    topdown = mechanism(estimator)
    prepared = topdown.prepare(ONE)
    made = topdown.finish(topdown.draw(prepared, TestSource(6), tmp_path), prepared.public)
    again = mechanism(estimator)  # another process would build it from the plan
    assert prints(again.finish(again.recall(tmp_path), public(again, TWIN))) == prints(made)
    in_memory = topdown.release(ONE, TestSource(6))
    assert prints(in_memory) == prints(made)
    again.draw(again.prepare(ONE), TestSource(6)).measurements["person"].write(tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir())


def test_measurements_of_another_design_are_refused(tmp_path: Path):
    topdown = mechanism("multipass")
    topdown.draw(topdown.prepare(ONE), TestSource(6), tmp_path)
    other = mechanism("multipass", rho=2).designs["person"]
    with pytest.raises(InputError, match="made for another design"):
        Measurements.read(other, tmp_path / "person")
    with pytest.raises(InputError, match="missing"):
        Measurements.read(other, tmp_path / "nowhere")
    units = mechanism("multipass").designs["housing_unit"]
    with pytest.raises(InputError, match="made for another design"):
        Measurements.read(units, tmp_path / "person")


def test_measurements_in_memory_of_another_design_are_refused():
    kept = mechanism("multipass", rho=2).draw(mechanism("multipass").prepare(ONE), TestSource(1))
    topdown = mechanism("multipass")
    with pytest.raises(InputError, match="made for another design"):
        topdown.finish(kept, public(topdown, ONE))
    with pytest.raises(InputError, match="no measurements of"):
        topdown.finish(Noisy({}), public(topdown, ONE))


def test_invariants_that_are_missing_are_refused():
    topdown = mechanism("multipass")
    values = public(topdown, ONE).invariants
    for name in values:
        fewer = {key: value for key, value in values.items() if key != name}
        with pytest.raises(InputError):
            topdown.public(fewer)


def names(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name != "self"]


def test_no_function_of_the_post_processing_takes_data():
    assert names(TopDown.finish) == ["primitive", "public", "progress"]
    assert names(TopDown.public) == ["invariants"]
    assert {field.name for field in fields(Public)} == {"invariants", "bounds"}
    assert names(estimation.estimate) == ["measurements", "bounds", "settings", "progress"]
    for _, function in inspect.getmembers(estimation, inspect.isfunction):
        if function.__module__ == estimation.__name__:
            assert not {"data", "counts", "truth", "frame", "records"} & set(names(function))


def test_measurements_and_the_mechanism_keep_no_reference_to_the_data():
    """What the measurements hold in memory: designs and noisy tables, and none of the true tables."""
    topdown = mechanism("multipass")
    prepared = topdown.prepare(ONE)
    counts, kept = prepared.counts, topdown.draw(prepared, TestSource(2))
    held = [cell.cell_contents for m in kept.measurements.values() for cell in m._load.__closure__ or ()]
    true_tables = {id(level) for levels in counts.values() for level in levels}
    for item in held:
        values = item.values() if isinstance(item, dict) else [item]
        assert not any(id(value) in true_tables for value in values)
