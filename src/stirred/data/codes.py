"""Coding columns as integers, once, so that kernels see integers."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.data.kernel import append_digit, group_rows, mix_rows, renumber, same_images
from stirred.data.table import require_columns, require_kind
from stirred.errors import InputError

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

DIRECT = 1 << 27
SMALL = 1 << 20
PARALLEL = 1 << 20
BLOCK = 1 << 16


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
    if not columns:
        return Codes(np.zeros(frame.height, dtype=np.int32), 1 if frame.height else 0)
    codes, count = _dense(*_combined(frame, columns, missing))
    return Codes(codes.astype(np.int32 if count < 2**31 else np.int64, copy=False), count)


def joint_values(frame: pl.DataFrame, columns: Sequence[str], *, missing: str = "error") -> NDArray[Any]:
    """One integer for the combination of some columns: equal where all of them are, and not numbered."""
    return _combined(frame, columns, missing)[0]


def determines(frame: pl.DataFrame, fine: str, coarse: str, *, missing: str = "error") -> bool:
    """Whether records that have one column in common always have the other in common."""
    values, low, levels = _ranged(physical(frame[fine], missing=missing))
    return maps(Codes(values, levels), physical(frame[coarse], missing=missing), low)


def maps(fine: Codes, coarse: NDArray[Any], low: int = 0) -> bool:
    """Whether equal codes have equal values in another column; the codes begin with ``low``."""
    images, seen = np.empty(fine.count, dtype=np.int64), np.zeros(fine.count, dtype=np.bool_)
    return all(
        same_images(whole_words(fine.values[part]), np.int64(low), whole_words(coarse[part]), images, seen)
        for part in blocks(0, coarse.size)
    )


def in_groups(codes: Codes) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The rows in the order of their codes, and where each code begins (with the end at the last place)."""
    offsets = np.zeros(codes.count + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes.values, minlength=codes.count), out=offsets[1:])
    rows = np.arange(codes.values.size, dtype=np.int32 if codes.values.size < 2**31 else np.int64)
    return group_rows(codes.values, rows, offsets), offsets


def _combined(frame: pl.DataFrame, columns: Sequence[str], missing: str) -> tuple[NDArray[Any], int]:
    """The columns as digits of one number, and a bound of it; numbered where the bound grows too large."""
    require_columns(frame, columns, "columns")
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
    return codes, count


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
    _in_slices(
        hashes.size, lambda part: mix_rows(hashes[part], whole_words(values[part]), np.uint64(key | 1))
    )


def _append(codes: NDArray[Any], values: NDArray[Any], low: int, levels: int) -> None:
    _in_slices(
        codes.size,
        lambda part: append_digit(codes[part], whole_words(values[part]), np.int64(low), np.int64(levels)),
    )


def _in_slices(size: int, work: Callable[[slice], None]) -> None:
    """Run a kernel over blocks of the records, on every core; kernels release the interpreter."""
    threads = os.cpu_count() or 1
    if size < PARALLEL or threads == 1:
        threads = 1
    cuts = [size * i // threads for i in range(threads + 1)]

    def share(part: tuple[int, int]) -> None:
        for block in blocks(*part):
            work(block)

    if threads == 1:
        share((0, size))
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(share, itertools.pairwise(cuts)))


def blocks(start: int, stop: int) -> Iterator[slice]:
    """A range of records in blocks that stay in the cache."""
    for low in range(start, stop, BLOCK):
        yield slice(low, min(low + BLOCK, stop))


def whole_words(values: NDArray[Any]) -> NDArray[np.int64]:
    """A block of integers as 64-bit ones: a kernel for every width would have to be compiled for each."""
    return values.view(np.int64) if values.dtype == np.uint64 else values.astype(np.int64, copy=False)


def physical(series: pl.Series, *, missing: str = "error") -> NDArray[Any]:
    """The column as integers, equal where values are equal; the order has no meaning."""
    import polars as pl

    if series.null_count():
        if missing == "error":
            raise InputError(
                f"the column {series.name} has missing values",
                field=series.name,
                expected="a value in every record",
                hint="Complete the records, or make 'missing' a level: missing='level', --missing-level.",
            )
        series = _with_missing_level(series)
    kind = series.dtype
    require_kind(kind, series.name)
    if kind == pl.String:
        series = series.cast(pl.Categorical).to_physical()
    elif kind == pl.Categorical or isinstance(kind, pl.Enum) or kind.is_temporal() or kind == pl.Boolean:
        series = series.to_physical() if kind != pl.Boolean else series.cast(pl.UInt8)
    elif kind.is_float():
        return _plain_floats(series).view(np.int64)
    return series.to_numpy()


def _plain_floats(series: pl.Series) -> NDArray[np.float64]:
    """Floats of which equal ones have equal bits: one zero, one not-a-number."""
    values = series.to_numpy().astype(np.float64) + 0.0
    values[np.isnan(values)] = np.nan
    return values


def _with_missing_level(series: pl.Series) -> pl.Series:
    import polars as pl

    plain = series.set(series == 0, 0.0) if series.dtype.is_float() else series
    text = plain.cast(pl.String)
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
    if span > max(SMALL, 4 * codes.size):
        levels, numbered = np.unique(codes, return_inverse=True)
        return numbered.astype(np.int64), levels.size
    return codes, int(renumber(codes, span))
