"""Permutation swapping: the kernel against the records, and files against merely reading and writing them.

Run with ``make bench``; ``STIRRED_BENCH_NATION=1`` adds 100 million records to the kernel and runs
140 million households from Parquet to Parquet (about 4 GB of disk and up to 16 GiB of memory).

The figure for sdcMicro's compiled record swapping (14 to 20 seconds for a million households at 5% on two
cores of the same kind of machine) was measured apart; its ratio is printed and labelled as such.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from stirred.noise import RandomSource
from stirred.swap.derangement import Rates, draw_donors

NATION = bool(os.environ.get("STIRRED_BENCH_NATION"))
FIGURE = os.environ.get("STIRRED_BENCH_FIGURE")
STRATA_OF_NATION = 1_677_900
SDCMICRO = (14.0, 20.0)


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


def end_to_end(count: int, folder: Path) -> None:
    """From Parquet to one protected file a state, against reading and writing the same data with Polars."""
    source = folder / "households.parquet"
    households(count).write_parquet(source)
    start = time.perf_counter()
    for number, part in enumerate(pl.read_parquet(source).partition_by("state")):
        part.write_parquet(folder / f"plain-{number}.parquet")
    plain = time.perf_counter() - start
    script = (
        "from pathlib import Path; from stirred.release import trial, trial_of; import sys; "
        "job = trial_of({'kind': 'swap', 'households': sys.argv[1], 'hold': ['tenure', 'race'], "
        "'match': ['state', 'block_group', 'size'], 'swap': ['block'], 'rate': '0.1', 'by': 'state', "
        "'nesting': [['block', 'block_group'], ['block_group', 'state']]}); "
        "trial(job, Path(sys.argv[2]), accept_determined='a benchmark')"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", script, str(source), str(folder / "out")], check=True)
    swapped = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(
        f"{count:>12,} households, Parquet to Parquet: {swapped:7.1f} s, peak {peak:5.1f} GiB; "
        f"Polars alone {plain:6.1f} s; ratio {swapped / plain:5.1f}x"
    )


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
    with tempfile.TemporaryDirectory() as folder:
        for number, count in enumerate([1_000_000, 10_000_000] + ([140_000_000] if NATION else [])):
            place = Path(folder) / str(number)
            place.mkdir()
            end_to_end(count, place)


if __name__ == "__main__":
    main()
