"""Coding columns as integers, once, so that kernels see integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.data.table import require_columns
from stirred.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

DIRECT = 1 << 27


@dataclass(frozen=True)
class Codes:
    """An integer from 0 to count - 1 for every record: equal integers, equal values."""

    values: NDArray[Any]
    count: int


def code_columns(frame: pl.DataFrame, columns: Sequence[str], *, missing: str = "error") -> Codes:
    """One integer code for the combination of some columns; all combinations that occur are numbered.

    ``missing`` is ``"error"`` or ``"level"``: a null is refused, or is a level of its own.
    Linear in the records where the product of the columns' ranges is moderate; otherwise a sort.
    """
    require_columns(frame, columns, "columns")
    if not columns:
        return Codes(np.zeros(frame.height, dtype=np.int32), 1 if frame.height else 0)
    current, count = _ranged(physical(frame[columns[0]], missing=missing))
    for column in columns[1:]:
        codes, levels = _ranged(physical(frame[column], missing=missing))
        if count * levels > DIRECT:
            current, count = _dense(current, count)
        if count * levels >= 2**62:
            codes, levels = _dense(codes, levels)
        current, count = current * np.int64(levels) + codes, count * levels
    values, count = _dense(current, count)
    return Codes(values.astype(np.int32 if count < 2**31 else np.int64, copy=False), count)


def physical(series: pl.Series, *, missing: str = "error") -> NDArray[Any]:
    """The column as integers, equal where values are equal; the order has no meaning."""
    import polars as pl

    if series.null_count():
        if missing == "error":
            raise InputError(
                f"the column {series.name} has missing values",
                field=series.name,
                expected="a value in every record",
                hint="Make 'missing' a level of its own (missing='level'), or complete the records.",
            )
        series = _with_missing_level(series)
    kind = series.dtype
    if kind == pl.String:
        series = series.cast(pl.Categorical).to_physical()
    elif kind == pl.Categorical or isinstance(kind, pl.Enum) or kind.is_temporal() or kind == pl.Boolean:
        series = series.to_physical() if kind != pl.Boolean else series.cast(pl.UInt8)
    elif kind.is_float():
        return (series.to_numpy().astype(np.float64) + 0.0).view(np.int64)
    elif not kind.is_integer():
        raise InputError(
            f"the column {series.name} cannot be coded",
            field=series.name,
            expected="numbers, text, categories, dates or true/false",
            hint="Convert the column to one of these.",
        )
    return series.to_numpy()


def _with_missing_level(series: pl.Series) -> pl.Series:
    import polars as pl

    text = series.cast(pl.String)
    present = pl.Series([f"={value}" for value in text.unique().drop_nulls()])
    levels = pl.Enum(pl.concat([pl.Series(["missing"]), present]))
    return (("=" + text).fill_null("missing")).cast(levels)


def _ranged(values: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Shift to start at zero; a wide range is numbered densely."""
    if values.size == 0:
        return values.astype(np.int64), 1
    low, high = int(values.min()), int(values.max())
    span = high - low + 1
    if span > DIRECT:
        levels, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64), levels.size
    if values.dtype == np.uint64:
        return (values - np.uint64(low)).astype(np.int64), span
    return values.astype(np.int64) - low, span


def _dense(values: NDArray[np.int64], span: int) -> tuple[NDArray[np.int64], int]:
    """Number the values that occur from zero."""
    if span > max(DIRECT, 4 * values.size):
        levels, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64), levels.size
    occurs = np.zeros(span, dtype=np.bool_)
    occurs[values] = True
    numbers = np.cumsum(occurs, dtype=np.int64) - 1
    return numbers[values], int(occurs.sum())
