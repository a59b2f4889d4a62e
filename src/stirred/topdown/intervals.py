"""Published tables with the unconstrained estimate of every figure and its confidence interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.errors import NotComputable
from stirred.topdown.estimates import Estimates
from stirred.topdown.gls import Gls
from stirred.topdown.measurement import Measurements

if TYPE_CHECKING:
    import polars as pl


def estimator_of(measurements: Measurements) -> Gls | None:
    """The two-pass estimator, or nothing where the measurements do not identify every cell."""
    try:
        return Gls(measurements)
    except NotComputable:
        return None


def table_with_intervals(estimates: Estimates, gls: Gls | None, level: str, query: str) -> pl.DataFrame:
    """Protected counts and, beside them, ``estimate``, ``standard_error``, ``low_95`` and ``high_95``."""
    import polars as pl

    frame = estimates.table(level, query)
    if gls is None:
        return frame
    number = estimates.spine.levels.index(level)
    estimate, error = gls.query(number, query)
    low, high = gls.interval(number, query)
    columns = {"estimate": estimate, "standard_error": error, "low_95": low, "high_95": high}
    return frame.with_columns(
        **{name: pl.Series(values.reshape(-1)).round(4) for name, values in columns.items()}
    )
