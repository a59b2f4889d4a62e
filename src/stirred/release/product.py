"""Products as files: the one writer of what a release publishes, and the data dictionary of its columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.errors import InputError
from stirred.interchange import write_csv, write_parquet
from stirred.places import inside
from stirred.report import Column, Published, PublishedFile, PublishedTable

if TYPE_CHECKING:
    import polars as pl

    from stirred.spec import Schema, Uncertainty

MEANINGS = {
    "count": "protected count",
    "estimate": "unbiased estimate from the noisy measurements alone",
    "standard_error": "standard error of the estimate",
    "low_95": "lower end of the 95% interval",
    "high_95": "upper end of the 95% interval",
}


def require_free(names: Iterable[str]) -> None:
    """Refuse columns of tables that are called as the columns of figures are."""
    for name in names:
        if name in MEANINGS:
            raise InputError(
                f"a column of a published table is called {name}, as its figures are",
                field="mechanism.tables",
                expected="columns with other names than " + ", ".join(MEANINGS),
                hint="Rename the column.",
            )


@dataclass(frozen=True)
class Product:
    """One product: a frame, where it is written (without ending), and how uncertain its figures are.

    A table is also written as CSV, where text that a spreadsheet would take for a formula has an apostrophe
    in front, and shown in the report by ``level`` (a column of areas) and ``parts``.
    """

    path: str
    kind: str
    title: str
    frame: pl.DataFrame
    uncertainty: Uncertainty
    meanings: Mapping[str, str] = field(default_factory=dict)
    level: str | None = None
    parts: tuple[str, ...] = ()

    def write(self, folder: Path) -> list[PublishedFile]:
        """Write under ``folder`` and describe the files; paths are relative to it."""
        frame, out = self.frame, []
        columns = tuple(
            Column(name, str(frame.schema[name]), self.meanings.get(name, MEANINGS.get(name, "")))
            for name in frame.columns
        )
        for ending in ("parquet", "csv") if self.kind == "table" else ("parquet",):
            path = inside(folder, f"{self.path}.{ending}")
            path.parent.mkdir(parents=True, exist_ok=True)
            (write_csv if ending == "csv" else write_parquet)(frame, path)
            name, size = f"{self.path}.{ending}", path.stat().st_size
            out.append(
                PublishedFile(name, self.kind, self.title, frame.height, columns, self.uncertainty, size)
            )
        return out


def publish(products: Iterable[Product | PublishedFile], folder: Path) -> Published:
    """Write the products, each in turn; files that are there already are described."""
    files: list[PublishedFile] = []
    tables: list[PublishedTable] = []
    for product in products:
        if isinstance(product, PublishedFile):
            path = inside(folder, product.path)
            files.append(replace(product, size=path.stat().st_size if path.is_file() else None))
            continue
        files += product.write(folder)
        if product.level is not None:
            shown = product.title, product.level, product.parts, product.frame, product.uncertainty
            tables.append(PublishedTable(*shown))
    return Published(tuple(files), tuple(tables))


def meanings_of(*schemas: Schema | None) -> dict[str, str]:
    """What the attributes of some schemas mean."""
    return {
        attribute.name: attribute.meaning
        for schema in schemas
        if schema is not None
        for attribute in schema.attributes
        if attribute.meaning
    }
