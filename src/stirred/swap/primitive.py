"""Swapped records: the primitive output of a swap, in fresh random order with fresh identifiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stirred.data import tabulate

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]

COUNT = "count"


@dataclass(frozen=True)
class Swapped:
    """What one draw made of the records.

    ``parts`` has, where one file for each value of a column is asked for, the value, first row and number of
    rows of every part. ``publishable`` says that the operating system's randomness was used.
    """

    households: pl.DataFrame
    persons: pl.DataFrame | None = None
    parts: tuple[tuple[str, int, int], ...] = ()
    publishable: bool = False


def counted(frame: pl.DataFrame, parts: tuple[str, ...]) -> pl.DataFrame:
    """A table of some columns, with its last column named ``count`` unless one of them is."""
    made = tabulate(frame, parts)
    return made if COUNT in parts else made.rename({made.columns[-1]: COUNT})


def table_key(parts: tuple[str, ...]) -> str:
    """The name of a table among the products; no column can make it that of another product."""
    return f"table: {' * '.join(parts)}"


def aligned(true: pl.DataFrame, made: pl.DataFrame, parts: tuple[str, ...]) -> tuple[Counts, Counts]:
    """The counts of two tables over all cells that occur in either."""
    both = true.join(made, on=parts, how="full", coalesce=True, suffix="_made", nulls_equal=True)
    counts = both.select(COUNT, f"{COUNT}_made").fill_null(0)
    return counts[COUNT].to_numpy(), counts[f"{COUNT}_made"].to_numpy()
