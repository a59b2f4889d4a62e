"""What the swapping invariants determine and expose, against the universe itself."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.audit import frechet
from stirred.noise import TestSource
from stirred.swap import PermutationSwap, Records


def determined_by_enumeration(records: list[tuple[Any, Any, Any]], fixed: list[bool] | None = None) -> int:
    """Records (stratum, held, place) that every data set with the same two tables contains.

    Every data set with these tables deals the places of a stratum out anew. Records that are held fixed
    have an exact table of their own.
    """
    held_fast = fixed or [False] * len(records)
    common: Counter[Any] | None = None
    strata = sorted({m for m, _, _ in records})
    members = [[i for i, record in enumerate(records) if record[0] == m] for m in strata]
    kept = Counter(record for record, held in zip(records, held_fast, strict=True) if held)
    for orders in itertools.product(*(set(itertools.permutations(g)) for g in members)):
        other = list(records)
        for group, order in zip(members, orders, strict=True):
            for i, j in zip(group, order, strict=True):
                other[i] = (records[i][0], records[i][1], records[j][2])
        if Counter(r for r, held in zip(other, held_fast, strict=True) if held) != kept:
            continue
        common = Counter(other) if common is None else common & Counter(other)
    assert common is not None
    return common.total()


def alone_by_counting(cells: list[Any]) -> int:
    return sum(count == 1 for count in Counter(cells).values())


@pytest.mark.parametrize("seed", range(150))
def test_frechet_determined_records_are_those_of_the_enumerated_universe(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    columns = {name: rng.integers(0, 3, size).tolist() for name in "mhs"}
    if seed % 3 == 0:
        columns["m"] = [0] * size
    frame = pl.DataFrame(columns)
    psa = PermutationSwap(match=("m",), swap=("s",), hold=("h",), rate="1/2")
    found = psa.prepare(frame).report.exposure
    assert found.determined == determined_by_enumeration(frame.select("m", "h", "s").rows())
    assert found.determined == frechet(frame, ["m"], ["h"], ["s"]).number
    tables = (frame.select("m", "h").rows(), frame.select("m", "s").rows())
    assert [table.alone for table in found.tables] == [alone_by_counting(table) for table in tables]
    assert found.exposed == max(table.alone for table in found.tables)
    assert (found.records, found.decided) == (size, True)


@pytest.mark.parametrize("seed", range(60))
def test_persons_belong_to_what_is_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    homes = pl.DataFrame(
        {"id": range(size), "h": rng.integers(0, 2, size), "s": rng.integers(0, 3, size)}, strict=False
    )
    people = [
        {"id": i, "sex": str(rng.choice(["f", "m"])), "age": int(rng.integers(0, 2))}
        for i in range(size)
        for _ in range(int(rng.integers(0, 3)))
    ]
    types = {"id": pl.Int64, "sex": pl.String, "age": pl.Int64}
    persons = pl.DataFrame(people, schema=types)
    psa = PermutationSwap(match=(), swap=("s",), hold=("h",), rate="1/2")
    found = psa.prepare(Records.of(homes, persons, "id")).report.exposure
    bags = [tuple(sorted((p["sex"], p["age"]) for p in people if p["id"] == i)) for i in range(size)]
    records = [(0, (h, bag), s) for h, s, bag in zip(homes["h"], homes["s"], bags, strict=True)]
    assert found.determined == determined_by_enumeration(records)
    assert found.tables[0].alone == alone_by_counting([record[1] for record in records])


@pytest.mark.parametrize("role", ["hold", "match"])
@pytest.mark.parametrize("seed", range(40))
def test_imputed_records_that_are_held_fixed_are_determined(seed: int, role: str) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    frame = pl.DataFrame(
        {
            "h": rng.integers(0, 2, size),
            "s": rng.integers(0, 3, size),
            "imputed": rng.integers(0, 2, size).astype(bool),
        }
    )
    hold, match = (("h", "imputed"), ()) if role == "hold" else (("h",), ("imputed",))
    psa = PermutationSwap(match=match, swap=("s",), hold=hold, rate="1/2", imputed="imputed")
    found = psa.prepare(frame).report.exposure
    records = [(flag and role == "match", (h, flag), s) for h, s, flag in frame.rows()]
    assert found.determined == determined_by_enumeration(records, frame["imputed"].to_list())
    assert found.determined >= int(frame["imputed"].sum())


def test_two_data_sets_of_one_universe_have_the_same_numbers() -> None:
    rng = np.random.default_rng(3)
    frame = pl.DataFrame(
        {"m": rng.integers(0, 40, 300), "h": rng.integers(0, 5, 300), "s": rng.integers(0, 6, 300)}
    )
    psa = PermutationSwap(match=("m",), swap=("s",), hold=("h",), rate="1/2")
    first = psa.prepare(frame).report.exposure
    assert first.determined and first.exposed
    for seed in range(3):
        other = psa.release(frame, TestSource(seed)).products["households"]
        assert not other.sort(other.columns).equals(frame.sort(frame.columns))
        assert psa.prepare(other).report.exposure == first


def test_records_that_are_alone_in_their_stratum_are_all_determined() -> None:
    frame = pl.DataFrame({"m": range(9), "h": [0, 1, 2] * 3, "s": [3, 4, 5] * 3})
    found = PermutationSwap(match=("m",), swap=("s",), hold=("h",), rate="1/2").prepare(frame).report.exposure
    assert found.vacuous and found.determined_share == 1
    assert "determine 9 of 9 households (100%): no budget protects these" in found.sentence()


def test_shares_are_rounded_up_in_words() -> None:
    frame = pl.DataFrame({"m": [0, *([1] * 29_999)], "h": [0, 1, 2] * 10_000, "s": [3, 4, 5, 6] * 7_500})
    found = PermutationSwap(match=("m",), swap=("s",), hold=("h",), rate="1/2").prepare(frame).report.exposure
    assert found.determined == 1
    assert "1 of 30,000 households (0.01%)" in found.sentence()
