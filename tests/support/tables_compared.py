"""Two sets of records compared table by table: the slow twin of ``compare_counts`` on aligned counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from stirred.data import ErrorSummary, compare_counts, tabulate


def compare_tables(true: pl.DataFrame, protected: pl.DataFrame, by: Sequence[str]) -> ErrorSummary:
    """Compare the contingency tables of two sets of records; cells empty in both do not count."""
    left, right = (
        tabulate(true, by).to_dict(as_series=False),
        tabulate(protected, by).to_dict(as_series=False),
    )
    tables = [dict(_counted(table)) for table in (left, right)]
    cells = list(dict.fromkeys(chain(*tables)))
    before, after = (np.array([table.get(cell, 0) for cell in cells]) for table in tables)
    return compare_counts(before, after)


def _counted(table: dict[str, list[Any]]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Cells and counts of a contingency table, whose last column is the count."""
    *keys, counts = table.values()
    for row in zip(*keys, counts, strict=True):
        yield row[:-1], row[-1]
