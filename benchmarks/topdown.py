"""TopDown: the structured solver against PDLP and Clarabel, and whole runs on the trial data.

Run with ``make bench``. Whole runs need ``STIRRED_TRIAL_DATA`` and are left out without it. Each runs in a
process of its own, so that its peak memory is its own (trial data included); the time is that of ``release``,
from tables of records to published tables and the accuracy report, with the noisy measurements in files.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support import trial_data
from support.oracle import certified_gap, dense_parent, gap, oracle

from stirred.topdown.quadratic import solve

US_BLOCKS, US_PERSONS = 8_132_968, 331_449_281
CORES = 2
GUERNSEY_LIMIT = 60.0
STATE_LIMIT, STATE_MEMORY = 300.0, 8.0


def timed(task: Any, times: int = 1) -> tuple[float, Any]:
    """The least seconds of some runs, and the result."""
    best, result = math.inf, None
    for _ in range(times):
        start = time.perf_counter()
        result = task()
        best = min(best, time.perf_counter() - start)
    return best, result


def solvers() -> None:
    """One dense parent of 50 children and 2016 cells."""
    for workload in ("production", "simple"):
        problem = dense_parent(workload)
        solve(problem.programme)
        print(f"one parent, 50 children x 2016 cells, {workload} queries:")
        seconds = {}
        for tolerance in (1e-4, 1e-6):
            seconds[tolerance], found = timed(lambda p=problem, t=tolerance: solve(p.programme, t), 3)
            milliseconds = seconds[tolerance] * 1e3
            print(f"  structured, tolerance {tolerance:.0e}: {milliseconds:8.0f} ms, {found.steps} steps")
        slow, other = timed(lambda p=problem: solve(p.programme, method="pdlp"))
        ratios = ", ".join(f"{slow / s:.0f}x" for s in seconds.values())
        print(f"  PDLP: {slow * 1e3:24.0f} ms; ratio {ratios} (at least 20x asked)")
        print(
            f"  structured against PDLP, relative difference of squares: {gap(problem, found.x, other.x):.1e}"
        )
        if workload == "production":
            print(f"  certified relative gap of the structured solver: {certified_gap(problem, found.x):.1e}")
            print("  Clarabel: left out, it takes minutes on eleven crossing queries")
        else:
            slowest, best = timed(lambda p=problem: oracle(p.fit, p.programme))
            ratios = ", ".join(f"{slowest / s:.0f}x" for s in seconds.values())
            print(f"  Clarabel: {slowest * 1e3:20.0f} ms; ratio {ratios}")
            print(
                f"  structured against Clarabel, relative gap: {gap(problem, found.x, best):.1e} (1e-6 asked)"
            )


def mechanism(place: str, share: int) -> tuple[Any, dict[str, Any]]:
    """The redistricting presets on trial data, and the data."""
    import polars as pl

    from stirred.data import Spine
    from stirred.spec import Schema
    from stirred.topdown import Settings, TopDown, Universe, preset

    state = place == "state"
    persons, leaves = trial_data.rhode_island(share) if state else trial_data.guernsey()
    units = trial_data.units_of(persons, leaves)
    levels = leaves.columns
    presets = [preset("pl-2020-us-persons"), preset("pl-2020-us-units")]
    universes = [
        Universe(
            made.universe,
            made.schema,
            made.allocation.renormalised(levels),
            Settings(
                passes={level: passes for level, passes in made.passes.items() if level in levels},
                chain=made.rounding_chain,
                threads=CORES,
            ),
        )
        for made in presets
    ]
    # A county has no state totals to keep.
    constraints = [
        c for c in presets[0].constraints if state or c.get("count", {}).get("by", [""])[0] != "state"
    ]
    counted = {"occupied_group_quarters": Schema.of(group_quarters_type=range(2, 9))}
    data = {
        "person": persons,
        "housing_unit": units.filter(pl.col("hhgq") == 1).select("block", "occupancy"),
        "occupied_group_quarters": units.filter(pl.col("hhgq") > 1).select(
            "block", pl.col("hhgq").alias("group_quarters_type")
        ),
    }
    return TopDown(Spine.from_columns(leaves, levels), universes, constraints, counted), data


def peak() -> float:
    """The most memory that this process has had, in GiB; getrusage would count its parent's as well."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 2**20


def whole_run(place: str, share: int) -> None:
    """One run in this process; its figures as a line of JSON."""
    from stirred.noise import TestSource

    made, data = mechanism(place, share)
    ready = peak()
    with tempfile.TemporaryDirectory() as folder:
        before, start = os.times(), time.perf_counter()
        prepared = made.prepare(data)
        made.finish(made.draw(prepared, TestSource(1), Path(folder)), prepared.public)
        seconds, after = time.perf_counter() - start, os.times()
    figures = {
        "seconds": seconds,
        "busy": (after.user + after.system - before.user - before.system) / seconds,
        "memory": peak(),
        "ready": ready,
        "working memory": peak() - ready,
        "blocks": made.spine.size(made.spine.depth - 1),
        "persons": data["person"].height,
    }
    print(json.dumps(figures))


def measured(place: str, share: int = 1) -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, __file__, place, str(share)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return dict(json.loads(out.splitlines()[-1]))


def described(name: str, run: dict[str, float]) -> str:
    return (
        f"{name}: {run['persons']:,} persons, {run['blocks']:,} blocks: {run['seconds']:6.1f} s, "
        f"{run['busy']:.2f} of {CORES} cores busy, peak {run['memory']:.2f} GiB "
        f"({run['ready']:.2f} once the data are ready)"
    )


def slope(runs: list[dict[str, float]], what: str) -> float:
    """The slope of a figure against blocks on a log-log scale, by least squares."""
    x = [math.log(run["blocks"]) for run in runs]
    y = [math.log(run[what]) for run in runs]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    top = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return top / sum((a - mean_x) ** 2 for a in x)


def whole_runs() -> None:
    if trial_data.folder() is None:
        print("whole runs: left out, STIRRED_TRIAL_DATA names no folder")
        return
    run = measured("county")
    print(described("Guernsey County", run), f"(limit {GUERNSEY_LIMIT:.0f} s)")
    runs = []
    for share in (4, 2, 1):
        runs.append(measured("state", share))
        print(described(f"Rhode Island, 1/{share} of the tracts", runs[-1]))
    print(f"  limits for the whole state: {STATE_LIMIT:.0f} s, {STATE_MEMORY:.0f} GiB")
    last, factor = runs[-1], US_BLOCKS / runs[-1]["blocks"]
    print(f"  the United States, {US_BLOCKS:,} blocks and {US_PERSONS:,} persons, from these runs:")
    for what, unit, size in (("seconds", "hours", 3600.0), ("working memory", "GiB", 1.0)):
        steep = slope(runs, what)
        each = (last[what] - runs[0][what]) / (last["blocks"] - runs[0]["blocks"])
        straight = last[what] + each * (US_BLOCKS - last["blocks"])
        power = last[what] * factor**steep
        print(
            f"  {what}: slope {steep:.2f} on a log-log scale, {power / size:,.1f} {unit}; "
            f"{each:.1e} a block above a fixed cost, {straight / size:,.1f} {unit}"
        )


def main() -> None:
    if len(sys.argv) == 3:
        whole_run(sys.argv[1], int(sys.argv[2]))
        return
    solvers()
    whole_runs()


if __name__ == "__main__":
    main()
