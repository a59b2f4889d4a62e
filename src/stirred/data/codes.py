"""Coding columns as integers, once, so that kernels see integers."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.data.kernel import append_digit, mix_rows, renumber
from stirred.data.table import require_columns, require_kind
from stirred.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

DIRECT = 1 << 27
PARALLEL = 1 << 20


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
    codes: NDArray[Any] = np.zeros(frame.height, dtype=np.int32)
    count = 1
    for column in columns:
        values, low, levels = _ranged(physical(frame[column], missing=missing))
        if count * levels > DIRECT and count > 1:
            codes, count = _dense(codes, count)
        count *= levels
        if count >= 2**31 and codes.dtype == np.int32:
            codes = codes.astype(np.int64)
        _append(codes, values, low, levels)
    codes, count = _dense(codes, count)
    return Codes(codes.astype(np.int32 if count < 2**31 else np.int64, copy=False), count)


def row_hashes(frame: pl.DataFrame, columns: Sequence[str], key: int) -> NDArray[np.uint64]:
    """A keyed 64-bit hash of some columns of every row; equal rows have equal hashes in all tables."""
    import polars as pl

    hashes = np.zeros(frame.height, dtype=np.uint64)
    for column in columns:
        series = frame[column]
        plain = series.dtype.is_integer() and not series.null_count()
        values = series.to_numpy() if plain else series.hash(key & 0xFFFFFFFF).to_numpy()
        if series.dtype == pl.Boolean and not series.null_count():
            values = series.cast(pl.UInt8).to_numpy()
        _mix(hashes, values, key)
    return hashes


def _mix(hashes: NDArray[np.uint64], values: NDArray[Any], key: int) -> None:
    _in_slices(hashes.size, lambda part: mix_rows(hashes[part], values[part], np.uint64(key | 1)))


def _append(codes: NDArray[Any], values: NDArray[Any], low: int, levels: int) -> None:
    _in_slices(
        codes.size,
        lambda part: append_digit(codes[part], values[part], np.int64(low), np.int64(levels)),
    )


def _in_slices(size: int, work: Callable[[slice], None]) -> None:
    """Run a kernel over slices of the records, one thread each; kernels release the interpreter."""
    threads = os.cpu_count() or 1
    if size < PARALLEL or threads == 1:
        work(slice(0, size))
        return
    cuts = [size * i // threads for i in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, itertools.starmap(slice, itertools.pairwise(cuts))))


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
    require_kind(kind, series.name)
    if kind == pl.String:
        series = series.cast(pl.Categorical).to_physical()
    elif kind == pl.Categorical or isinstance(kind, pl.Enum) or kind.is_temporal() or kind == pl.Boolean:
        series = series.to_physical() if kind != pl.Boolean else series.cast(pl.UInt8)
    elif kind.is_float():
        return (series.to_numpy().astype(np.float64) + 0.0).view(np.int64)
    return series.to_numpy()


def _with_missing_level(series: pl.Series) -> pl.Series:
    import polars as pl

    text = series.cast(pl.String)
    present = pl.Series([f"={value}" for value in text.unique().drop_nulls()])
    levels = pl.Enum(pl.concat([pl.Series(["missing"]), present]))
    return (("=" + text).fill_null("missing")).cast(levels)


def _ranged(values: NDArray[Any]) -> tuple[NDArray[Any], int, int]:
    """Values with their least value and the number of levels from it; a wide range is numbered densely."""
    if values.size == 0:
        return values.astype(np.int64), 0, 1
    low, high = int(values.min()), int(values.max())
    if high - low >= DIRECT:
        levels, codes = np.unique(values, return_inverse=True)
        return codes.astype(np.int64), 0, levels.size
    if values.dtype == np.uint64:
        return (values - np.uint64(low)).astype(np.int64), 0, high - low + 1
    return values, low, high - low + 1


def _dense(codes: NDArray[Any], span: int) -> tuple[NDArray[Any], int]:
    """Number the codes that occur from zero; in place where their span is moderate."""
    if span > max(DIRECT, 4 * codes.size):
        levels, numbered = np.unique(codes, return_inverse=True)
        return numbered.astype(np.int64), levels.size
    return codes, int(renumber(codes, span))
