"""Permutation swapping: the kernel against the records, and files against merely reading and writing them.

Run with ``make bench``; ``STIRRED_BENCH_NATION=1`` adds 100 million records to the kernel and runs
140 million households from Parquet to Parquet (about 4 GB of disk and up to 16 GiB of memory).

The figure for sdcMicro's compiled record swapping (14 to 20 seconds for a million households at 5% on two
cores of the same kind of machine) was measured apart; its ratio is printed and labelled as such.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from stirred.data import read_table
from stirred.noise import RandomSource
from stirred.release import trial, trial_of
from stirred.swap import PermutationSwap
from stirred.swap.derangement import Rates, draw_donors

NATION = bool(os.environ.get("STIRRED_BENCH_NATION"))
FIGURE = os.environ.get("STIRRED_BENCH_FIGURE")
STRATA_OF_NATION = 1_677_900
SDCMICRO = (14.0, 20.0)
TIMES = 3


def kernel(count: int, strata: int, rate: str) -> float:
    """Seconds to draw the donors of so many records."""
    codes = np.random.default_rng(1).integers(0, strata, count).astype(np.int32)
    source, start = RandomSource(), time.perf_counter()
    draw_donors(codes, strata, Rates.common(Fraction(rate)), source, threads=2)
    return time.perf_counter() - start


def households(count: int) -> pl.DataFrame:
    """Households of a nation: state, block group and block travel together or are matched."""
    rng = np.random.default_rng(2)
    block_group = np.sort(rng.integers(0, max(count // 580, 51), count)).astype(np.int32)
    groups = int(block_group.max()) + 1
    return pl.DataFrame(
        {
            "state": (block_group * 51 // groups).astype(np.int8),
            "block_group": block_group,
            "block": (block_group.astype(np.int64) * 30 + rng.integers(0, 30, count)).astype(np.int32),
            "size": rng.integers(1, 8, count).astype(np.int8),
            "tenure": rng.integers(1, 5, count).astype(np.int8),
            "race": rng.integers(1, 64, count).astype(np.int8),
        }
    )


def section(source: Path, by: str | None = None) -> dict[str, Any]:
    """The swap of a plan: block by block group within states."""
    names = {"match": ["state", "block_group", "size"], "swap": ["block"], "hold": ["tenure", "race"]}
    nesting = [["block", "block_group"], ["block_group", "state"]]
    plan = {"kind": "swap", "households": str(source), "rate": "0.1", "nesting": nesting, **names}
    return plan if by is None else plan | {"by": by}


def mechanism() -> PermutationSwap:
    """The same swap in Python."""
    given = section(Path())
    names = {key: tuple(given[key]) for key in ("match", "swap", "hold")}
    return PermutationSwap(rate=given["rate"], nesting=[tuple(pair) for pair in given["nesting"]], **names)


def polars_shuffle(source: Path, folder: Path) -> None:
    pl.read_parquet(source).sample(fraction=1, shuffle=True).write_parquet(folder / "shuffled.parquet")


def polars_parts(source: Path, folder: Path) -> None:
    for number, part in enumerate(pl.read_parquet(source).partition_by("state")):
        part.write_parquet(folder / f"plain-{number}.parquet")


def swapped(source: Path, folder: Path) -> None:
    made = mechanism().release(read_table(source))
    made.products["households"].write_parquet(folder / "swapped.parquet")


def swap_trial(source: Path, folder: Path) -> None:
    trial(trial_of(section(source)), folder / "trial", accept_determined="a benchmark")


def swap_trial_by_state(source: Path, folder: Path) -> None:
    trial(trial_of(section(source, "state")), folder / "parts", accept_determined="a benchmark")


TASKS = {
    task.__name__: task for task in (polars_shuffle, polars_parts, swapped, swap_trial, swap_trial_by_state)
}


def one(name: str, source: Path) -> None:
    """One task in this process, after a small one that loads the kernels; its figures as a line of JSON."""
    with tempfile.TemporaryDirectory(dir=source.parent) as place:
        small = Path(place) / "small.parquet"
        households(1_000).write_parquet(small)
        for folder in ("warm", "out"):
            (Path(place) / folder).mkdir()
        TASKS[name](small, Path(place) / "warm")
        start = time.perf_counter()
        TASKS[name](source, Path(place) / "out")
        seconds = time.perf_counter() - start
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    print(json.dumps({"seconds": seconds, "memory": int(status.split("VmHWM:")[1].split()[0]) / 2**20}))


def measured(name: str, source: Path, times: int) -> dict[str, float]:
    """The medians of some runs, each in a process of its own."""
    runs = []
    for _ in range(times):
        command = [sys.executable, __file__, name, str(source)]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        runs.append(json.loads(out.splitlines()[-1]))
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def with_files(count: int, folder: Path) -> None:
    """From Parquet to Parquet, against reading, shuffling and writing the same records with Polars."""
    source = folder / "households.parquet"
    households(count).write_parquet(source)
    plain = measured("polars_shuffle", source, TIMES)["seconds"]
    print(f"{count:>12,} households, Parquet to Parquet; Polars reads, shuffles and writes in {plain:.2f} s")
    for name, words in (("swapped", "read, release, write"), ("swap_trial", "trial with report and checks")):
        took = measured(name, source, TIMES)["seconds"]
        print(
            f"  {words}: {took:.2f} s, ratio {took / plain:.2f}"
            + (" (at most 1.5 asked)" if name == "swapped" else "")
        )


def nation(folder: Path) -> None:
    """140 million households, one protected file a state, against reading and writing them."""
    source = folder / "households.parquet"
    households(140_000_000).write_parquet(source)
    plain = measured("polars_parts", source, 1)["seconds"]
    made = measured("swap_trial_by_state", source, 1)
    print(
        f" 140,000,000 households, one file a state: {made['seconds']:.0f} s, peak {made['memory']:.1f} GiB; "
        f"Polars reads and writes them in {plain:.0f} s; ratio {made['seconds'] / plain:.1f} "
        "(at most 4 asked, below 10 GiB)"
    )


def in_memory() -> None:
    """A release of a million households in memory, with its guarantee and its check of the invariants."""
    frame, seconds = households(1_000_000), []
    mechanism().release(frame)
    for _ in range(TIMES):
        start = time.perf_counter()
        mechanism().release(frame)
        seconds.append(time.perf_counter() - start)
    took = statistics.median(seconds)
    print(f"release in memory, 1,000,000 households at 10%: {took * 1e3:.0f} ms")
    print(f"  against sdcMicro's core, measured apart (14 s): {SDCMICRO[0] / took:.0f}x (at least 50x asked)")


def figure(sizes: list[int], times: list[float]) -> str:
    """Seconds against records on a log-log scale, with a line of slope one through the last point."""

    def x(n: float) -> float:
        return 70 + (math.log10(n) - 5.5) / 3 * 480

    def y(s: float) -> float:
        return 300 - (math.log10(s) + 2.5) / 4 * 270

    points = "".join(
        f'<circle cx="{x(n):.1f}" cy="{y(s):.1f}" r="5" fill="#0b4f6c"/>'
        f'<text x="{x(n) + 9:.1f}" y="{y(s) + 16:.1f}">{n / 1e6:g} million: {s:.2g} s</text>'
        for n, s in zip(sizes, times, strict=True)
    )
    last, seconds = sizes[-1], times[-1]
    first = sizes[0]
    line = (
        f'<line x1="{x(first):.1f}" y1="{y(seconds * first / last):.1f}" x2="{x(last):.1f}" '
        f'y2="{y(seconds):.1f}" stroke="#888" stroke-dasharray="4 4"/>'
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 340" font-family="system-ui, sans-serif" '
        'font-size="13" role="img"><title>Time of the swapping kernel against records</title>'
        '<rect x="70" y="20" width="480" height="280" fill="#fafafa" stroke="#ddd"/>'
        f"{line}{points}"
        '<text x="310" y="330" text-anchor="middle">records (log scale); dashed: slope one</text>'
        '<text x="20" y="160" transform="rotate(-90 20 160)" text-anchor="middle">seconds (log scale)</text>'
        "</svg>"
    )


def main() -> None:
    if len(sys.argv) == 3:
        one(sys.argv[1], Path(sys.argv[2]))
        return
    kernel(10_000, 100, "0.05")
    million = kernel(1_000_000, 1_000, "0.05")
    print(f"kernel, 1,000,000 households at 5%: {million * 1e3:.0f} ms")
    print(
        f"  against sdcMicro's compiled core, measured apart (14 to 20 s): "
        f"{SDCMICRO[0] / million:,.0f}x to {SDCMICRO[1] / million:,.0f}x"
    )
    sizes = [1_000_000, 10_000_000] + ([100_000_000] if NATION else [])
    times = [kernel(n, max(1_000, n * STRATA_OF_NATION // 330_000_000), "0.1") for n in sizes]
    for n, seconds in zip(sizes, times, strict=True):
        print(f"kernel, {n:>12,} records at 10%: {seconds:8.3f} s, {n / seconds / 1e6:6.1f} million a second")
    for (n, a), (m, b) in zip(
        zip(sizes, times, strict=True), list(zip(sizes, times, strict=True))[1:], strict=False
    ):
        slope = math.log(b / a) / math.log(m / n)
        print(f"  slope on a log-log scale from {n:,} to {m:,}: {slope:.2f}")
    if FIGURE:
        Path(FIGURE).write_text(figure(sizes, times), encoding="utf-8")
    in_memory()
    with tempfile.TemporaryDirectory() as folder:
        for count in (1_000_000, 10_000_000):
            with_files(count, Path(folder))
        if NATION:
            nation(Path(folder))


if __name__ == "__main__":
    main()
