"""The levels of a codebook, and the one rule by which a value is one of them.

Guarantee
    A value belongs to a level if the two are written alike. 1 and "1" are one code, and so are true and
    "true"; "01", 1.0 and " 1" are others; a negative zero is a zero. The rule looks at one value at a time,
    never at other records, and a column of integers holds the same codes as its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from stirred.data.table import require_kind
from stirred.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from stirred.spec import Level, Schema


def require_levels(frame: pl.DataFrame, schema: Schema, columns: Iterable[str]) -> None:
    """Refuse a table with a column that the codebook lacks, or a value outside its levels; gaps may be."""
    for name in columns:
        schema.require((name,), "codebook")
        require_kind(frame.schema[name], name)
        levels = schema.codebook().get(name)
        if levels is not None:
            _coded(frame[name].drop_nulls(), name, levels)


def level_codes(column: pl.Series, name: str, levels: Sequence[Level]) -> NDArray[np.int64]:
    """The position of every value among the levels; refused where one, or a gap, is not among them."""
    return spread(column, _coded(column, name, levels))


def _coded(column: pl.Series, name: str, levels: Sequence[Level]) -> pl.DataFrame:
    written = [str(level) for level in levels]
    if len(set(written)) != len(written):
        raise InputError(
            f"two levels of {name} are written alike",
            field=name,
            expected="levels that differ as text: 1 and '1' do not",
            hint="Keep one of the two in the schema.",
        )
    places, outside = located(column, name, written)
    if outside:
        raise InputError(
            f"some records have no value of {name} among its levels",
            field=name,
            expected="one of the levels that the schema lists, written alike: 1 is '1', but not '01' or 1.0",
            hint="Correct the data, or list every level of the codebook in the schema.",
        )
    return places


def located(column: pl.Series, name: str, written: Sequence[str]) -> tuple[pl.DataFrame, int]:
    """The place of every distinct value in a list of texts, and how many records have a value without one."""
    import polars as pl

    require_codes(column, name)
    listed = pl.DataFrame(
        {"text": written, "place": range(len(written))}, schema={"text": pl.String, "place": pl.Int64}
    )
    # Few values are distinct: only those are turned into text.
    plain = column.set(column == 0, 0.0) if column.dtype.is_float() else column
    distinct = plain.alias("value").value_counts(name="records")
    places = distinct.with_columns(text=pl.col("value").cast(pl.String)).join(listed, on="text", how="left")
    return places, int(places.filter(pl.col("place").is_null())["records"].sum())


def spread(column: pl.Series, places: pl.DataFrame) -> NDArray[Any]:
    """The place of every record's value, all of which have one."""
    records = column.alias("value").to_frame()
    return records.join(places, on="value", how="left", maintain_order="left")["place"].to_numpy()


def require_codes(column: pl.Series, name: str) -> None:
    """Refuse a column of lists, bytes or other things that are not one code a row; an empty one has none."""
    import polars as pl

    if column.dtype != pl.Null:
        require_kind(column.dtype, name)
