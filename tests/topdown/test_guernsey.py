"""Guernsey County with the 2020 settings, twenty runs: coverage, errors and the estimators side by side."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from support import trial_data

from stirred.data import Spine
from stirred.noise import TestSource
from stirred.spec import Schema
from stirred.topdown import Gls, Settings, TopDown, Universe, preset

SEEDS = range(20)
LEVELS = ("county", "tract", "block_group", "block")


def mechanism(estimator: str, leaves: pl.DataFrame) -> TopDown:
    chosen = preset("pl-2020-us-persons")
    settings = Settings(
        passes={level: chosen.passes[level] for level in LEVELS},
        chain=chosen.rounding_chain,
        estimator=estimator,
    )
    universe = Universe("person", chosen.schema, chosen.allocation.renormalised(LEVELS), settings)
    constraints = [c for c in chosen.constraints if c["kind"] in {"facilities", "structural_zero"}]
    constraints += [
        {"kind": "invariant", "count": {"unit": "housing_unit", "by": ["block"]}},
        {
            "kind": "invariant",
            "count": {"unit": "occupied_group_quarters", "by": ["block", "group_quarters_type"]},
        },
    ]
    counted = {
        "housing_unit": Schema.of(occupancy=("occupied", "vacant")),
        "occupied_group_quarters": Schema.of(group_quarters_type=range(2, 9)),
    }
    return TopDown(Spine.from_columns(leaves, LEVELS), [universe], constraints, counted)


@pytest.mark.slow
@pytest.mark.skipif(trial_data.folder() is None, reason="STIRRED_TRIAL_DATA is not set")
def test_twenty_runs(capsys: pytest.CaptureFixture[str]) -> None:
    persons, leaves = trial_data.guernsey()
    units = trial_data.units_of(persons, leaves)
    data = {
        "person": persons,
        "housing_unit": units.filter(pl.col("hhgq") == 1).select("block", "occupancy"),
        "occupied_group_quarters": units.filter(pl.col("hhgq") > 1).select(
            "block", pl.col("hhgq").alias("group_quarters_type")
        ),
    }
    made = {name: mechanism(name, leaves) for name in ("multipass", "gls")}
    prepared = made["gls"].prepare(data)
    counts, public = prepared.counts, {name: top.prepare(data).public for name, top in made.items()}
    truth = {level: counts["person"][depth].totals() for depth, level in enumerate(LEVELS)}
    covered: dict[str, list[bool]] = {level: [] for level in LEVELS}
    errors: dict[tuple[str, str], list[np.ndarray]] = {}
    deviations: dict[str, np.ndarray] = {}
    for seed in SEEDS:
        noisy = made["gls"].draw(prepared, TestSource(seed))
        gls = Gls(noisy.measurements["person"])
        for depth, level in enumerate(LEVELS):
            estimate, error = gls.query(depth, "total")
            low, high = gls.interval(depth, "total")
            covered[level] += (
                ((low <= truth[level][:, None]) & (truth[level][:, None] <= high)).ravel().tolist()
            )
            errors.setdefault(("unconstrained", level), []).append(estimate[:, 0] - truth[level])
            deviations[level] = error[:, 0]
        for name, top_down in made.items():
            done = top_down.finish(noisy, public[name]).products["person"]
            for depth, level in enumerate(LEVELS):
                errors.setdefault((name, level), []).append(done.levels[depth].totals() - truth[level])
    for level in ("tract", "block_group"):
        assert np.mean(covered[level]) >= 0.90, level
    for level in ("tract", "block_group", "block"):
        off = np.abs(np.concatenate(errors["unconstrained", level]))
        expected = math.sqrt(2 / math.pi) * np.tile(deviations[level], len(SEEDS))
        by_run = np.abs(np.stack(errors["unconstrained", level])).mean(axis=1)
        monte_carlo = by_run.std(ddof=1) / math.sqrt(len(SEEDS))
        # Five standard errors of the mean over independent runs.
        assert abs(off.mean() - expected.mean()) <= 5 * monte_carlo + 0.01 * expected.mean(), level
    table = {
        (name, level): float(np.abs(np.concatenate(parts)).mean()) for (name, level), parts in errors.items()
    }
    with capsys.disabled():
        print("\nmean absolute error of totals, 20 runs")  # noqa: T201
        for name in ("unconstrained", "multipass", "gls"):
            row = "  ".join(f"{level} {table[name, level]:8.3f}" for level in LEVELS)
            print(f"{name:14s} {row}")  # noqa: T201
    # The subtree's estimates help where subtrees are informative: tracts and the county.
    assert table["gls", "tract"] < table["multipass", "tract"]
    # Non-negativity and sums help blocks, which unconstrained estimates know badly.
    assert table["gls", "block"] < table["unconstrained", "block"]
    assert table["multipass", "block"] < table["unconstrained", "block"]
