"""Frames and files in and out: whatever speaks the Arrow C stream comes in, and three kinds go out."""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred.errors import InputError

if TYPE_CHECKING:
    import polars as pl


def as_polars(frame: object, field: str = "frame") -> pl.DataFrame:
    """Read a Polars, pandas, PyArrow or DuckDB table, or anything with ``__arrow_c_stream__``."""
    import polars as pl

    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if hasattr(frame, "__arrow_c_stream__"):
        return pl.DataFrame(frame)
    raise InputError(
        "this object is not a table",
        field=field,
        expected="a Polars, pandas, PyArrow or DuckDB table (anything with __arrow_c_stream__)",
        hint="Read the file first, for example with polars.read_parquet.",
    )


class Tabular(ABC):
    """A result that is a table: the subclass says how as Polars, the rest follows."""

    @abstractmethod
    def to_polars(self) -> pl.DataFrame:
        """The result as a Polars data frame."""

    def to_arrow(self) -> Any:
        """The result as a PyArrow table."""
        return self.to_polars().to_arrow()

    def to_pandas(self) -> Any:
        """The result as a pandas data frame (pandas must be installed)."""
        return self.to_polars().to_pandas()


@contextlib.contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """A temporary name to write under, renamed at the end: the file appears complete or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(
            f"the file {path.name} could not be written ({error.strerror})",
            field="output",
            expected="a folder that exists or can be made, with room and permission to write",
            hint="Choose another folder; nothing was left half-written.",
        ) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_atomically(path: Path, text: str) -> None:
    """Write a text file so that it appears complete or not at all."""
    with replace_atomically(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
