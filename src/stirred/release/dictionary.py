"""Public tables as files: CSV and Parquet side by side, and the data dictionary of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.release.record import Column, PublishedFile

if TYPE_CHECKING:
    import polars as pl

    from stirred.spec.schema import Schema

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
    """Write a frame under ``folder`` and describe the files; paths are relative to it."""
    columns = tuple(
        Column(column, str(frame.schema[column]), meanings.get(column, MEANINGS.get(column, "")))
        for column in frame.columns
    )
    out = []
    for ending in ("parquet", "csv") if csv else ("parquet",):
        path = folder / f"{name}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if ending == "csv":
            frame.write_csv(path)
        else:
            frame.write_parquet(path)
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
