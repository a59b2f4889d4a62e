"""How far protected tables are from the truth. Confidential: these figures never leave the building."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.data.histogram import Histogram
from stirred.interchange import Tabular
from stirred.topdown.budget import Allocation
from stirred.topdown.estimates import Estimates

if TYPE_CHECKING:
    import polars as pl

BINS = (0, 1, 10, 50, 100, 500, 1000, 5000, 10_000, 100_000)
QUANTILES = (0.5, 0.9, 0.95, 0.99, 1.0)
CLOSE = 5


@dataclass(frozen=True)
class Accuracy(Tabular):
    """Errors of counts by level, query and population of the node. Internal use only."""

    rows: tuple[Mapping[str, Any], ...]

    def to_polars(self) -> pl.DataFrame:
        """One row for every level, query and population bin (``all`` is every node)."""
        import polars as pl

        return pl.DataFrame(list(self.rows))


def accuracy(truth: Sequence[Histogram], made: Estimates, allocation: Allocation) -> Accuracy:
    """Compare every measured query of every level with the truth, all nodes and by population."""
    rows: list[dict[str, Any]] = []
    for depth, level in enumerate(made.spine.levels):
        size = truth[depth].totals()
        for name in dict.fromkeys(["total", *allocation.queries[level]]):
            query = made.cells.query(name)
            rows.extend(
                {"level": level, "query": name} | row
                for row in _by_population(truth[depth], made.levels[depth], query.groups, query.size, size)
            )
    return Accuracy(tuple(rows))


def error_row(error: NDArray[Any], truth: NDArray[Any]) -> dict[str, Any]:
    """Mean absolute error, bias, relative error, quantiles and the share within 5, of some counts."""
    off = np.abs(error)
    present = truth > 0
    row = {
        "counts": int(error.size),
        "mean_absolute": float(off.mean()),
        "bias": float(error.mean()),
        "root_mean_square": float(np.sqrt((error.astype(np.float64) ** 2).mean())),
        "relative": float((off[present] / truth[present]).mean()) if present.any() else None,
        "within_5": float((off <= CLOSE).mean()),
    }
    quantiles = np.quantile(off, QUANTILES)
    return row | {f"q{round(100 * q)}": float(v) for q, v in zip(QUANTILES, quantiles, strict=True)}


def _by_population(
    truth: Histogram, made: Histogram, groups: NDArray[np.int64], size: int, population: NDArray[np.int64]
) -> list[dict[str, Any]]:
    """All nodes, then by population, with cells beyond the sparse ones counted as exact zeros."""
    pieces: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
    step = max(1, (1 << 22) // size)
    for start in range(0, truth.nodes, step):
        stop = min(truth.nodes, start + step)
        before = _grouped(truth, groups, size, start, stop)
        after = _grouped(made, groups, size, start, stop)
        pieces.append((after - before, before, np.repeat(population[start:stop], size)))
    error, before, people = (np.concatenate(part) for part in zip(*pieces, strict=True))
    out = [{"population": "all"} | error_row(error, before)]
    bins = np.searchsorted(BINS, people, side="right")
    for number in np.unique(bins):
        inside = bins == number
        low = BINS[number - 1]
        high = f"-{BINS[number] - 1:,}" if number < len(BINS) else " or more"
        name = "0" if number == 1 else f"{low:,}{high}"
        out.append({"population": name} | error_row(error[inside], before[inside]))
    return out


def _grouped(
    table: Histogram, groups: NDArray[np.int64], size: int, start: int, stop: int
) -> NDArray[np.int64]:
    part = slice(int(table.starts[start]), int(table.starts[stop]))
    rows = np.repeat(np.arange(stop - start), np.diff(table.starts[start : stop + 1]))
    flat = rows * size + groups[table.cells[part]]
    out = np.zeros((stop - start) * size, dtype=np.int64)
    np.add.at(out, flat, table.counts[part])
    return out
