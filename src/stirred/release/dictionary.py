"""Public tables as files: CSV and Parquet side by side, and the data dictionary of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.interchange import write_csv, write_parquet
from stirred.places import inside
from stirred.report import Column, PublishedFile

if TYPE_CHECKING:
    import polars as pl

    from stirred.spec import Schema

MEANINGS = {
    "count": "protected count",
    "estimate": "unbiased estimate from the noisy measurements alone",
    "standard_error": "standard error of the estimate",
    "low_95": "lower end of the 95% interval",
    "high_95": "upper end of the 95% interval",
}


def write_table(
    frame: pl.DataFrame,
    folder: Path,
    name: str,
    *,
    kind: str,
    title: str,
    uncertainty: str,
    meanings: Mapping[str, str],
    csv: bool = True,
) -> list[PublishedFile]:
    """Write a frame under ``folder`` and describe the files; paths are relative to it.

    In the CSV file text that a spreadsheet would take for a formula has an apostrophe in front; Parquet holds
    the text as it is.
    """
    columns = tuple(
        Column(column, str(frame.schema[column]), meanings.get(column, MEANINGS.get(column, "")))
        for column in frame.columns
    )
    out = []
    for ending in ("parquet", "csv") if csv else ("parquet",):
        path = inside(folder, f"{name}.{ending}")
        path.parent.mkdir(parents=True, exist_ok=True)
        (write_csv if ending == "csv" else write_parquet)(frame, path)
        size = path.stat().st_size
        out.append(
            PublishedFile(f"{name}.{ending}", kind, title, frame.height, columns, uncertainty, size=size)
        )
    return out


def meanings_of(*schemas: Schema | None) -> dict[str, str]:
    """What the attributes of some schemas mean."""
    return {
        attribute.name: attribute.meaning
        for schema in schemas
        if schema is not None
        for attribute in schema.attributes
        if attribute.meaning
    }
