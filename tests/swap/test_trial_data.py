"""Swapping real-shaped households: PUMA within state by size, and within size alone."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stirred.noise import TestSource
from stirred.swap import PermutationSwap, Records
from stirred.swap.accuracy import utility

FOLDER = os.environ.get("STIRRED_TRIAL_DATA")
pytestmark = pytest.mark.skipif(FOLDER is None, reason="STIRRED_TRIAL_DATA is not set")


@pytest.fixture(scope="module")
def records() -> Records:
    return Records.of(Path(str(FOLDER)) / "us_households.parquet", id="id")


@pytest.mark.parametrize(
    ("match", "swap", "share"), [(("ST", "NP"), ("PUMA10",), 1.0), (("NP",), ("ST", "PUMA10"), 0.0)]
)
def test_pumas_are_swapped_and_every_invariant_holds(
    records: Records, match: tuple[str, ...], swap: tuple[str, ...], share: float
) -> None:
    """Each state of this file has one PUMA, so swapping within states protects nobody: the report says so."""
    psa = PermutationSwap(match=match, swap=swap, rate="0.05", missing="level")
    report = psa.prepare(records).report
    assert report.exposure.determined_share == share
    made = psa.release(records, TestSource(1))
    out, before = made.products["households"], records.households
    assert out.height == before.height == 202_707
    for names in ([*match, *swap], [c for c in before.columns if c not in {"id", *swap}]):
        counts = [frame.group_by(names).len().sort(names) for frame in (before, out)]
        assert counts[0].equals(counts[1])
    donors = psa.donors(psa.prepare(records), TestSource(1))
    moved = float((donors != np.arange(donors.size)).mean())
    assert abs(moved - 0.05) < 0.003
    largest = before.group_by(match).len()["len"].max()
    assert report.largest_stratum == largest


def test_error_and_association_are_sensible(records: Records) -> None:
    tables = {"tenure": ("PUMA10", "TEN"), "race": ("PUMA10", "HHRACE")}
    runs = {}
    for rate in ("0.01", "0.5"):
        psa = PermutationSwap(match=("NP",), swap=("ST", "PUMA10"), rate=rate, missing="level")
        runs[rate] = utility(psa, records, tables, runs=3, random=TestSource(4)).to_polars()
    for table in tables:
        low, high = (runs[rate].filter(pl.col("table") == table) for rate in ("0.01", "0.5"))
        assert float(low["mape"].mean()) < float(high["mape"].mean())
        assert float(high["association_protected"].mean()) < float(high["association_true"].mean())
