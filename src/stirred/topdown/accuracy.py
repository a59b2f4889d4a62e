"""How far protected tables are from the truth. Confidential: these figures never leave the building.

A count that is zero in both tables has error zero. Such counts are nearly all of a low level, so they are
never visited: only their number enters into means, shares and quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.data import Histogram
from stirred.errors import InputError
from stirred.interchange import Tabular
from stirred.topdown.budget import Allocation
from stirred.topdown.cells import Query
from stirred.topdown.estimates import Estimates

if TYPE_CHECKING:
    import polars as pl

BINS = (0, 1, 10, 50, 100, 500, 1000, 5000, 10_000, 100_000)
QUANTILES = (0.5, 0.9, 0.95, 0.99, 1.0)
CLOSE = 5
COMPARED = ("level", "query", "population", "counts")


@dataclass(frozen=True)
class Accuracy(Tabular):
    """Errors of counts by level, query and population of the node. Internal use only."""

    rows: tuple[Mapping[str, Any], ...]

    def to_polars(self) -> pl.DataFrame:
        """One row for every level, query and population bin (``all`` is every node)."""
        import polars as pl

        return pl.DataFrame(list(self.rows), infer_schema_length=None)


def accuracy(truth: Sequence[Histogram], made: Estimates, allocation: Allocation) -> Accuracy:
    """Compare the total and every measured query of every level with the truth, all nodes and by population.

    The population of a node is its true total.
    """
    rows: list[dict[str, Any]] = []
    for depth, level in enumerate(made.spine.levels):
        for name in dict.fromkeys(["total", *allocation.queries[level]]):
            found = _by_population(truth[depth], made.levels[depth], made.cells.query(name))
            rows.extend({"level": level, "query": name} | row for row in found)
    return Accuracy(tuple(rows))


def compare_estimators(results: Mapping[str, Accuracy]) -> Accuracy:
    """One table of the results of several estimators on the same data, row by row side by side."""
    keys = {tuple(tuple(row[name] for name in COMPARED) for row in found.rows) for found in results.values()}
    if len(keys) > 1:
        raise InputError(
            "the estimators were not compared with the same tables",
            field="results",
            expected="results for the same data, levels and queries",
            hint="Run every estimator on the same measurements.",
        )
    together = zip(*(found.rows for found in results.values()), strict=True)
    return Accuracy(
        tuple(
            {"estimator": name} | dict(row)
            for rows in together
            for name, row in zip(results, rows, strict=True)
        )
    )


def error_row(error: NDArray[Any], truth: NDArray[Any], zeros: int = 0) -> dict[str, Any]:
    """Mean absolute error, bias, relative error, quantiles and the share within 5, of some counts.

    To the counts given come ``zeros`` more, which are zero in truth and without error.
    """
    off = np.abs(error)
    present = truth > 0
    count = error.size + zeros
    row = {
        "counts": count,
        "mean_absolute": float(off.sum() / count),
        "bias": float(error.sum() / count),
        "root_mean_square": float(np.sqrt((error.astype(np.float64) ** 2).sum() / count)),
        "relative": float((off[present] / truth[present]).mean()) if present.any() else None,
        "within_5": float((np.count_nonzero(off <= CLOSE) + zeros) / count),
    }
    off.sort()
    return row | {f"q{round(100 * q)}": _quantile(off, zeros, q) for q in QUANTILES}


def _quantile(rising: NDArray[Any], zeros: int, q: float) -> float:
    """A quantile, interpolated linearly, of non-negative numbers in rising order with zeros before them."""
    place = q * (rising.size + zeros - 1)
    below = int(place)
    low, high = (
        float(rising[i - zeros]) if i >= zeros else 0.0
        for i in (below, min(below + 1, rising.size + zeros - 1))
    )
    return low + (high - low) * (place - below)


def _by_population(truth: Histogram, made: Histogram, query: Query) -> list[dict[str, Any]]:
    """All nodes, then by population."""
    nodes, before, error = _visited(truth, made, query)
    out = [{"population": "all"} | error_row(error, before, truth.nodes * query.size - error.size)]
    bins = np.searchsorted(BINS, truth.totals(), side="right")
    of = bins[nodes]
    for number in np.unique(bins):
        inside = of == number
        zeros = np.count_nonzero(bins == number) * query.size - np.count_nonzero(inside)
        out.append(
            {"population": _bin_name(int(number))} | error_row(error[inside], before[inside], int(zeros))
        )
    return out


def _bin_name(number: int) -> str:
    if number == 1:
        return "0"
    high = f"-{BINS[number] - 1:,}" if number < len(BINS) else " or more"
    return f"{BINS[number - 1]:,}{high}"


def _visited(
    truth: Histogram, made: Histogram, query: Query
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Node, true count and error, of the counts of a query that either table has something in."""
    keys = np.concatenate([table.rows() * query.size + query.groups[table.cells] for table in (truth, made)])
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.diff(keys, prepend=-1))
    if first.size == 0:
        return keys, keys, keys
    change = np.concatenate([-truth.counts, made.counts])[order]
    held = np.where(order < truth.cells.size, -change, 0)
    return keys[first] // query.size, np.add.reduceat(held, first), np.add.reduceat(change, first)
