"""Error of a protected table against the true one. These figures are confidential: internal use only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class ErrorSummary:
    """How far a protected table is from the true one.

    ``mape`` is the mean over cells that are not truly empty of |true - protected| / true, as in Figure 1 of
    Bailie, Gong and Meng; ``hellinger`` is between the two tables as distributions.
    """

    cells: int
    mean_absolute: float
    mape: float
    hellinger: float
    false_zeros: int
    false_nonzeros: int
    quantiles: tuple[float, ...]

    def record(self) -> dict[str, float | int]:
        """One flat row."""
        row: dict[str, float | int] = {
            "cells": self.cells,
            "mean_absolute": self.mean_absolute,
            "mape": self.mape,
            "hellinger": self.hellinger,
            "false_zeros": self.false_zeros,
            "false_nonzeros": self.false_nonzeros,
        }
        return row | {f"q{round(100 * q):02d}": v for q, v in zip(QUANTILES, self.quantiles, strict=True)}


def compare_counts(true: NDArray[Any], protected: NDArray[Any]) -> ErrorSummary:
    """Compare two tables of counts, cell by cell; cells empty in both do not count.

    Internal use only.
    """
    occurs = (true > 0) | (protected > 0)
    before, after = true[occurs].astype(np.float64), protected[occurs].astype(np.float64)
    difference, present = np.abs(before - after), before > 0
    whole = math.sqrt(before.sum()) * math.sqrt(after.sum())
    affinity = float(np.sqrt(before * after).sum()) / whole if whole else float(not before.size)
    return ErrorSummary(
        cells=int(before.size),
        mean_absolute=float(difference.mean()) if before.size else 0.0,
        mape=float((difference[present] / before[present]).mean()) if present.any() else 0.0,
        hellinger=math.sqrt(max(0.0, 1.0 - affinity)),
        false_zeros=int((present & (after == 0)).sum()),
        false_nonzeros=int((~present & (after > 0)).sum()),
        quantiles=tuple(np.quantile(difference, QUANTILES).tolist()) if before.size else (0.0,) * 7,
    )


def cramers_v(frame: pl.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> float:
    """Association between two groups of columns, from 0 to 1 (Cramer's V)."""
    from stirred.data.codes import code_columns

    a, b = code_columns(frame, rows, missing="level"), code_columns(frame, columns, missing="level")
    smaller = min(a.count, b.count) - 1
    if smaller < 1 or frame.height == 0:
        return 0.0
    pairs, counts = np.unique(a.values.astype(np.int64) * b.count + b.values, return_counts=True)
    total = frame.height
    row_counts, column_counts = np.bincount(a.values), np.bincount(b.values)
    expected = row_counts[pairs // b.count] * column_counts[pairs % b.count] / total
    chi_squared = float((counts.astype(np.float64) ** 2 / expected).sum()) - total
    return math.sqrt(max(0.0, chi_squared) / (total * smaller))
