"""Counts: the number of units."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from stirred.spec.blocks.invariant.additive import Additive
from stirred.spec.blocks.invariant.condition import Condition, plural, qualifiers
from stirred.spec.blocks.schema import Record, Schema

if TYPE_CHECKING:
    import polars as pl


class Count(Additive):
    """The number of units in every combination of some attributes: a marginal table, or a total."""

    kind: Literal["count"] = "count"
    unit: str
    by: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()

    def sentence(self) -> str:
        return f"the number of {plural(self.unit)}" + qualifiers(self.by, self.where)

    def amount(self, record: Record, schema: Schema) -> int:
        return 1

    def total(self, frame: pl.DataFrame) -> pl.Expr:
        """The number of rows."""
        import polars as pl

        return pl.len()

    @property
    def is_margin(self) -> bool:
        """Whether all units are counted."""
        return not self.where

    @property
    def kept(self) -> tuple[str, ...]:
        """Those of its cells: the cell of the old record loses one, that of the new one gains one."""
        return self.by if self.is_margin else ()


def margins(unit: str, *tables: Iterable[str]) -> tuple[Count, ...]:
    """Margins of a contingency table, each given by its attributes."""
    return tuple(Count(unit=unit, by=tuple(table)) for table in tables)
