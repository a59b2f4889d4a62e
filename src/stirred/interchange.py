"""Frames and files in and out: whatever speaks the Arrow C stream comes in, and three kinds go out."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred.errors import InputError
from stirred.extras import require
from stirred.places import make_durable, neighbour, require_file, unwritable

if TYPE_CHECKING:
    import polars as pl


def as_polars(frame: object, field: str = "frame") -> pl.DataFrame:
    """Read a Polars, pandas, PyArrow or DuckDB table, or anything with ``__arrow_c_stream__``.

    A reader of record batches is refused: it gives every batch once, and what is left of it, nothing perhaps,
    looks like a whole table.
    """
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if type(frame).__module__.partition(".")[0] == "pandas":
        require("pandas")
    if hasattr(frame, "__arrow_c_stream__") and not isinstance(frame, Iterator):
        return pl.DataFrame(frame)
    raise InputError(
        "a reader is not a table" if isinstance(frame, Iterator) else "this object is not a table",
        field=field,
        expected="a Polars, pandas, PyArrow or DuckDB table (anything with __arrow_c_stream__)",
        hint="Read the file first, for example with polars.read_parquet; a reader with read_all().",
    )


class Tabular(ABC):
    """A result that is a table: the subclass says how as Polars, the rest follows."""

    @abstractmethod
    def to_polars(self) -> pl.DataFrame:
        """The result as a Polars data frame."""

    def to_arrow(self) -> Any:
        """The result as a PyArrow table (of the extra ``files``)."""
        require("files")
        return self.to_polars().to_arrow()

    def to_pandas(self) -> Any:
        """The result as a pandas data frame (of the extra ``pandas``)."""
        require("pandas")
        return self.to_polars().to_pandas()


@contextlib.contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """A temporary name to write under, renamed at the end: the file appears complete or not at all."""
    require_file(path)
    temporary = neighbour(path, os.getpid())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        make_durable(temporary)
        temporary.replace(path)
    except OSError as error:
        hint = "Choose another folder; nothing was left half-written."
        raise unwritable(error, f"the file {path.name}", hint) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that it appears complete or not at all."""
    with replace_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame as Parquet; whatever goes wrong is an ``OSError`` without a value of the data."""
    with _as_os_error():
        frame.write_parquet(path)


def write_csv(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame as CSV that no spreadsheet takes for formulas; failures as in ``write_parquet``."""
    with _as_os_error():
        _harmless_frame(frame).write_csv(path)


def csv_text(rows: Iterable[Iterable[object]]) -> str:
    """Rows, the headings first, as CSV that no spreadsheet takes for formulas."""
    stream = io.StringIO()
    plain = csv.writer(stream, lineterminator="\n")
    # Only the end of a line that the writer itself uses is quoted; a carriage return would end one too.
    quoted = csv.writer(stream, lineterminator="\n", quoting=csv.QUOTE_ALL)
    for row in rows:
        cells = [harmless(cell) for cell in row]
        (quoted if any("\r" in str(cell) for cell in cells) else plain).writerow(cells)
    return stream.getvalue()


def harmless(cell: object) -> object:
    """A cell that a spreadsheet does not take for a formula: such text gets an apostrophe in front.

    Numbers stay numbers, also where they are text.

    Examples
    --------
    >>> harmless("=1+1"), harmless("-2.5"), harmless(-2.5), harmless("county")
    ("'=1+1", '-2.5', -2.5, 'county')
    """
    if isinstance(cell, str) and _FORMULA.match(cell) and not _DECIMAL.fullmatch(cell):
        return f"'{cell}"
    return cell


_STARTS = r"=+\-@＝＋－＠"
_FORMULA = re.compile(rf"\s*[{_STARTS}]|[\t\r\n]")
_DECIMAL = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def _harmless_frame(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl
    import polars.selectors as cs

    cells = frame.with_columns((cs.categorical() | cs.enum()).cast(pl.String))
    cells = cells.with_columns(_harmless_column(cells[name]) for name in cells.select(cs.string()).columns)
    headings: list[str] = []
    for name in cells.columns:
        heading = str(harmless(name))
        while heading != name and heading in {*cells.columns, *headings}:
            heading = f"'{heading}"
        headings.append(heading)
    return cells.rename(dict(zip(cells.columns, headings, strict=True)))


def _harmless_column(column: pl.Series) -> pl.Series:
    formula = column.str.contains(f"^(?:{_FORMULA.pattern})")
    decimal = column.str.contains(f"^(?:{_DECIMAL.pattern})$")
    return column.zip_with(~formula | decimal, "'" + column)


@contextlib.contextmanager
def _as_os_error() -> Iterator[None]:
    """Errors of the writer as errors of the system: the message of the first kind may hold data."""
    import polars as pl

    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        found = re.search(r"os error (\d+)", str(error))
        number = getattr(error, "errno", None) or (int(found[1]) if found else errno.EIO)
        raise OSError(number, os.strerror(number)) from None
