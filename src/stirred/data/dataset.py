"""A data set: its tables by the name of their unit, and the identifier that links them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from stirred.data.table import read_table, require_columns
from stirred.errors import InputError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Mapping[str, "pl.DataFrame"]):
    """Tables by name, in the order in which they were given. Shown, it names columns and no value."""

    tables: Mapping[str, pl.DataFrame]
    id: str | None = None

    def __post_init__(self) -> None:
        if not self.tables:
            raise _unnamed("a data set needs a table")
        for frame in self.tables.values():
            require_columns(frame, () if self.id is None else (self.id,), "id")
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))

    def __getitem__(self, name: str) -> pl.DataFrame:
        return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        parts = [f"{name}=({', '.join(frame.columns)})" for name, frame in self.tables.items()]
        return f"Dataset({', '.join([*parts, *([] if self.id is None else [f'id={self.id}'])])})"

    __eq__, __hash__ = object.__eq__, object.__hash__


def read(source: object = None, /, *, id: str | None = None, **tables: object) -> Dataset:
    """Read tables as a data set: Parquet and CSV files by their path, or anything that speaks Arrow.

    Parameters
    ----------
    source
        The only table; its name is that of its file, or else ``records``.
    id
        The column that links the tables.
    tables
        Tables by the name of their unit, the protected unit first.

    Examples
    --------
    >>> import polars as pl
    >>> import stirred as st
    >>> st.read(person=pl.DataFrame({"block": ["1a", "1b"], "sex": ["f", "m"]}))
    Dataset(person=(block, sex))
    """
    if source is not None and tables:
        raise _unnamed("one of several tables has no name")
    if source is not None:
        tables = {Path(source).stem if isinstance(source, str | Path) else "records": source}
    return Dataset({name: read_table(table, name) for name, table in tables.items()}, id)


def _unnamed(problem: str) -> InputError:
    return InputError(
        problem,
        field="data",
        expected="a single table, or tables by the name of their unit",
        hint="For example read('households.parquet'), or read(person=persons, housing_unit='units.csv').",
    )
