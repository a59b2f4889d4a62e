"""What a release costs beside the mechanism inside it: processor time and memory, on a state's TopDown.

Run with ``make bench``. Needs ``STIRRED_TRIAL_DATA`` (Rhode Island: 25,181 blocks, 1,052,567 persons) and is
left out without it. The mechanism reads the same files, prepares, draws into files and estimates; the release
is ``stirred release run`` with its audits, ledger, products and reports. Each runs in a process of its own,
three times; the medians are compared.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support import trial_data

TIMES = 3
CPU_LIMIT, MEMORY_LIMIT = 2.0, 1.5
PLAN = """\
name: state-topdown
title: A state, protected by TopDown
description: Persons and housing units of a state, with the settings of the 2020 redistricting data
agency: Benchmark
curator: Curator
dataset: {name: state, description: A state made of its published blocks, population: 1052567, ceiling: 20}
delta: 1e-10
mechanism:
  kind: topdown
  geography: {file: blocks.parquet, levels: [state, county, tract, block_group, block]}
  units:
    person: {file: persons.parquet, preset: pl-2020-us-persons}
    housing_unit: {file: housing_units.parquet, preset: pl-2020-us-units}
    occupied_group_quarters:
      file: group_quarters.parquet
      schema:
        attributes: [{name: group_quarters_type, levels: [2, 3, 4, 5, 6, 7, 8], provenance: codebook}]
  estimator: multipass
  provenance: public
  tables:
    - {level: tract, query: total}
    - {level: tract, query: hispanic * voting_age}
governance: {regime: US}
"""


def write_state(folder: Path) -> None:
    """The files and the plan of a state."""
    import polars as pl

    persons, leaves = trial_data.rhode_island(1)
    units = trial_data.units_of(persons, leaves)
    persons.write_parquet(folder / "persons.parquet")
    leaves.write_parquet(folder / "blocks.parquet")
    units.filter(pl.col("hhgq") == 1).select("block", "occupancy").write_parquet(
        folder / "housing_units.parquet"
    )
    units.filter(pl.col("hhgq") > 1).select(
        "block", pl.col("hhgq").alias("group_quarters_type")
    ).write_parquet(folder / "group_quarters.parquet")
    (folder / "plan.yaml").write_text(PLAN, encoding="utf-8")


def mechanism(folder: Path) -> None:
    """Read, prepare, draw, estimate."""
    from stirred.noise import RandomSource
    from stirred.release import opened

    job = opened(folder / "plan.yaml")
    with tempfile.TemporaryDirectory(dir=folder) as place:
        primitive = job.draw(RandomSource(), Path(place))
        job.finish(primitive, job.prepared.public)


def release(folder: Path) -> None:
    """Open an account and run the plan: audits, spend, draw, products, reports."""
    from datetime import UTC, datetime

    from stirred.ledger import Ledger
    from stirred.release import open_account, opened, run
    from stirred.report import Override

    with tempfile.TemporaryDirectory(dir=folder) as place:
        ledger = Ledger.create(Path(place) / "ledger.db", owner="Owner")
        ledger.appoint("Curator", "curator", by="Owner")
        job = opened(folder / "plan.yaml")
        open_account([job], ledger, by="Owner")
        open_steps = Override(
            steps=tuple(range(1, 11)), determined=True, by="Owner", reason="a benchmark", at=datetime.now(UTC)
        )
        run(job, Path(place) / "made", ledger, override=open_steps)


def one(task: str, folder: str) -> None:
    """One run in this process; its figures as a line of JSON."""
    {"mechanism": mechanism, "release": release}[task](Path(folder))
    spent = os.times()
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    memory = int(status.split("VmHWM:")[1].split()[0]) / 2**20
    print(json.dumps({"cpu": spent.user + spent.system, "memory": memory}))


def measured(task: str, folder: Path) -> dict[str, Any]:
    """The medians of some runs, each in a process of its own."""
    command = [sys.executable, __file__, task, str(folder)]
    runs = []
    for _ in range(TIMES):
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        runs.append(json.loads(out.splitlines()[-1]))
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def main() -> None:
    if len(sys.argv) == 3:
        one(sys.argv[1], sys.argv[2])
        return
    if trial_data.folder() is None:
        print("left out: STIRRED_TRIAL_DATA is not set")
        return
    with tempfile.TemporaryDirectory() as folder:
        write_state(Path(folder))
        alone, whole = (measured(task, Path(folder)) for task in ("mechanism", "release"))
    print(f"a state's TopDown (Rhode Island), processes from their start, medians of {TIMES}:")
    for key, unit, limit in (
        ("cpu", "s of processor time", CPU_LIMIT),
        ("memory", "GiB at most", MEMORY_LIMIT),
    ):
        ratio = whole[key] / alone[key]
        print(
            f"  {key}: mechanism {alone[key]:.2f}, release {whole[key]:.2f} {unit}; ratio {ratio:.2f} "
            f"(at most {limit} asked)"
        )


if __name__ == "__main__":
    main()
