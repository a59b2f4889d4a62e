"""The keyed fingerprint of a table: the same for the same records, whatever their order and file format.

Guarantee
    Tables with the same columns and the same records, in any order of rows and columns, have the same
    fingerprint; so have a table and its copy in CSV or Parquet. To that end 01, +1, 1 and 1.0 are one value,
    1.50 and 1.5, and an empty text and a missing value; nothing else is. Tables that differ otherwise have
    different fingerprints, but for a chance of about 2^-100, as long as whoever made them does not know
    the key.
Assumes
    The key is secret and the fingerprint stays inside: it is a function of the truth. It is for the ledger,
    which recognises data by it, and for nothing that is published.

Linear in the records: whole numbers are mixed as they are, texts are hashed byte by byte, rows are added up
in two lanes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.data.kernel import hash_texts

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

BLOCK = 1 << 22
LANES = 2
WHOLE = r"^[+-]?\d+$"
DECIMAL = r"^[+-]?\d+\.\d+$"


def fingerprint(frame: pl.DataFrame, key: bytes) -> str:
    """The fingerprint of a table under a key, in hexadecimal."""
    sums = [0] * (2 * LANES)
    for start in range(0, frame.height, BLOCK):
        rows = _rows(frame.slice(start, BLOCK), key)
        for lane in range(LANES):
            words = rows[lane]
            sums[2 * lane] += int(words.sum(dtype=np.uint64))
            sums[2 * lane + 1] += int((words * words).sum(dtype=np.uint64))
    body = [sorted(frame.columns), frame.height, [total % 2**64 for total in sums]]
    text = json.dumps(body, ensure_ascii=False)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _rows(block: pl.DataFrame, key: bytes) -> list[NDArray[np.uint64]]:
    """One word for every row and lane; the columns are told apart by their names."""
    rows = [np.zeros(block.height, dtype=np.uint64) for _ in range(LANES)]
    for column in block:
        own = _derived(key, column.name)
        words = _values(column, own)
        for lane in range(LANES):
            rows[lane] += _mixed(words[lane], own, lane)
    return [_mixed(words, key, lane) for lane, words in enumerate(rows)]


def _values(column: pl.Series, key: bytes) -> list[NDArray[np.uint64]]:
    """The canonical value of every cell as words: whole numbers as they are, other texts by their hash."""
    import polars as pl

    numbers = column.cast(pl.Int64, strict=False) if column.dtype.is_integer() else None
    if numbers is not None and numbers.null_count() == 0:
        return [numbers.to_numpy().view(np.uint64)] * LANES
    text = _canonical(_as_text(column)).fill_null("")
    whole = text.str.contains(WHOLE)
    numbers = text.zip_with(whole, pl.Series([None], dtype=pl.String)).cast(pl.Int64, strict=False)
    words = numbers.fill_null(0).to_numpy().view(np.uint64)
    lanes = [words.copy() for _ in range(LANES)]
    other = np.flatnonzero(numbers.is_null().to_numpy())
    if other.size:
        part = text.gather(other)
        for lane in range(LANES):
            lanes[lane][other] = _hashed(part, key, lane)
    return lanes


def _as_text(column: pl.Series) -> pl.Series:
    """Every cell as the CSV writer writes it."""
    import polars as pl

    kind = column.dtype
    if kind == pl.String:
        return column
    if isinstance(kind, pl.Datetime):
        digits = {"ms": 3, "us": 6, "ns": 9}[kind.time_unit]
        return column.dt.replace_time_zone(None).dt.strftime(f"%Y-%m-%dT%H:%M:%S%.{digits}f")
    if kind == pl.Time:
        return column.dt.strftime("%H:%M:%S%.9f")
    if kind.is_nested() or kind in (pl.Binary, pl.Object):
        return pl.Series(column.name, [None if v is None else repr(v) for v in column.to_list()], pl.String)
    return column.cast(pl.String)


def _canonical(text: pl.Series) -> pl.Series:
    """Decimals without zeros at their end, so that 1.50 and 1.5 are one, and 2.0 is the whole number 2."""
    import polars as pl

    decimal = text.str.contains(DECIMAL)
    if not decimal.any():
        return text
    return (
        text.to_frame("t")
        .select(pl.when(decimal).then(pl.col("t").str.replace(r"\.?0*$", "")).otherwise(pl.col("t")))
        .to_series()
    )


def _hashed(texts: pl.Series, key: bytes, lane: int) -> NDArray[np.uint64]:
    """A word for every text, under the key."""
    import polars as pl

    ends = texts.str.len_bytes().cast(pl.Int64).cum_sum().to_numpy()
    whole = np.frombuffer(str(texts.str.join("").item()).encode("utf-8"), dtype=np.uint8)
    start, factor = _words(key, lane, b"text", 2)
    made: NDArray[np.uint64] = hash_texts(whole, ends, np.uint64(start), np.uint64(factor | 1))
    return made


def _mixed(words: NDArray[np.uint64], key: bytes, lane: int) -> NDArray[np.uint64]:
    """A keyed bijection of words (two rounds of multiplication and shift)."""
    first, second, third, fourth = _words(key, lane, b"word", 4)
    with np.errstate(over="ignore"):
        out: Any = (words + np.uint64(first)) * np.uint64(second | 1)
        out ^= out >> np.uint64(32)
        out = (out + np.uint64(third)) * np.uint64(fourth | 1)
        out ^= out >> np.uint64(29)
    mixed: NDArray[np.uint64] = out
    return mixed


def _words(key: bytes, lane: int, purpose: bytes, count: int) -> list[int]:
    made = hashlib.blake2b(purpose + bytes([lane]), digest_size=8 * count, key=key).digest()
    return [int.from_bytes(made[8 * i : 8 * i + 8], "little") for i in range(count)]


def _derived(key: bytes, name: str) -> bytes:
    return hmac.new(key, b"column " + name.encode("utf-8"), hashlib.sha256).digest()
