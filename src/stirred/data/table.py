"""Reading tables and tabulating them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.errors import InputError, UnknownName
from stirred.interchange import as_polars

if TYPE_CHECKING:
    import polars as pl


def read_table(source: object, field: str = "data") -> pl.DataFrame:
    """A Parquet or CSV file by its path, or any table that speaks Arrow."""
    import polars as pl

    if not isinstance(source, str | Path):
        return _whole(as_polars(source, field))
    path = Path(source)
    if not os.path.isfile(path):
        raise UnknownName(
            f"there is no file {path.name}",
            field=field,
            expected="the path of a Parquet or CSV file",
            hint="Check the path.",
        )
    if path.suffix in {".parquet", ".csv"}:
        try:
            return _whole(
                pl.read_parquet(path)
                if path.suffix == ".parquet"
                else pl.read_csv(path, infer_schema_length=None)
            )
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
            raise InputError(
                f"the file {path.name} could not be read",
                field=field,
                expected=f"a well-formed {path.suffix} file with one type in every column",
                hint="Write the file again; what is wrong in it is not shown, since it may be a data value.",
            ) from None
    raise InputError(
        f"files of type {path.suffix or 'unknown'} are not read",
        field=field,
        expected="a .parquet or .csv file",
        hint="Convert the file to Parquet.",
    )


def _whole(frame: pl.DataFrame) -> pl.DataFrame:
    """Every column in one piece: rows are looked up at random, and in pieces that takes far longer."""
    return _as_text(frame).rechunk()


def _as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Enumerated types as text.

    Such a type lists levels that no record has, or lists them as the records come, and would publish that.
    """
    import polars as pl
    import polars.selectors as cs

    return frame.with_columns((cs.enum() | cs.categorical()).cast(pl.String))


def require_columns(frame: pl.DataFrame, columns: Iterable[str], field: str) -> None:
    """Refuse a table that lacks a column, or has one of a kind that is not read."""
    for column in columns:
        if column not in frame.columns:
            raise UnknownName(
                f"the table has no column {column}",
                field=field,
                expected="one of " + ", ".join(frame.columns),
                hint="Correct the name, or add the column to the table.",
            )
        require_kind(frame.schema[column], column)
        if not column:
            raise InputError(
                "a column has no name",
                field=field,
                expected="a name for every column that is used",
                hint="Name the column in the file.",
            )
        if column.startswith("^") and column.endswith("$"):
            raise InputError(
                f"the name of the column {column} reads as a pattern of names",
                field=field,
                expected="a name that does not stand between ^ and $",
                hint="Rename the column: a pattern could stand for columns that nobody named.",
            )


def require_kind(kind: pl.DataType, column: str) -> None:
    """Refuse a column of a type that is not read exactly by every step: it is named, its values are not."""
    import polars as pl

    known = {
        pl.Boolean, pl.String, pl.Categorical, pl.Enum, pl.Date, pl.Datetime, pl.Float32, pl.Float64,
        pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64,
    }  # fmt: skip
    if kind.base_type() not in known:
        raise InputError(
            f"the column {column} has the type {kind.base_type()}, which is not read",
            field=column,
            expected="text, whole numbers of up to 64 bits, floats, dates, date-times or true/false",
            hint="Convert the column, or leave it out of the plan.",
        )


def tabulate(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The contingency table of some columns: one row for every combination that occurs, the count last."""
    import polars as pl

    require_columns(frame, by, "by")
    name = "count"
    while name in by:
        name += "_"
    count = pl.len().cast(pl.Int64).alias(name)
    if not by:
        return frame.select(count)
    return frame.group_by(list(by)).agg(count).sort(list(by))
