"""Additive invariants: an amount of every record, added up in every combination of some attributes."""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.errors import InputError
from stirred.spec.blocks.invariant.condition import Condition
from stirred.spec.blocks.invariant.declared import Declared, Statistic
from stirred.spec.blocks.schema import Level, Record, Schema

if TYPE_CHECKING:
    import polars as pl


class Additive(Declared):
    """A table of counts or sums; its fields stand in each kind, in the order in which they are written."""

    if TYPE_CHECKING:
        unit: str
        by: tuple[str, ...]
        where: tuple[Condition, ...]

    @property
    def summed(self) -> str | None:
        """The attribute that is added up; ``None`` where records are counted."""
        return None

    @abstractmethod
    def amount(self, record: Record, schema: Schema) -> int:
        """What one record that meets the conditions contributes to its cell."""

    @abstractmethod
    def total(self, frame: pl.DataFrame) -> pl.Expr:
        """The sum of all amounts in a frame, or in each of its groups."""

    def needs(self) -> tuple[str, ...]:
        return (*self._shown, *(c.attribute for c in self.where))

    @property
    def _shown(self) -> tuple[str, ...]:
        return self.by if self.summed is None else (self.summed, *self.by)

    @property
    def units(self) -> frozenset[str]:
        """The unit that is counted, or over which is summed."""
        return frozenset({self.unit})

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.where

    @property
    def underlying(self) -> Additive:
        return self

    @property
    def result(self) -> str:
        """The name of the result column: ``value``, lengthened where an attribute has that name."""
        name = "value"
        while name in self.by:
            name += "_"
        return name

    def of_frame(self, frame: pl.DataFrame, schema: Schema | None = None) -> pl.DataFrame:
        """The table of values that are not zero."""
        import polars as pl

        selected = self._selected(frame, schema)
        total, by = self.total(selected).alias(self.result), list(self.by)
        table = selected.group_by(by).agg(total).sort(by) if by else selected.select(total)
        return table.with_columns(pl.col(self.result).cast(pl.Int64)).filter(pl.col(self.result) != 0)

    def _selected(self, frame: pl.DataFrame, schema: Schema | None) -> pl.DataFrame:
        import polars as pl

        needs = self.needs()
        for recode in schema.recodes if schema else ():
            if recode.name in needs and recode.attribute in frame.columns:
                mapping = recode.mapping()
                column = pl.col(recode.attribute).replace_strict(
                    list(mapping), list(mapping.values()), return_dtype=pl.String
                )
                frame = frame.with_columns(column.alias(recode.name))
        missing = [name for name in needs if name not in frame.columns]
        if missing:
            raise InputError(
                f"the frame has no column {missing[0]}",
                field=missing[0],
                expected="a column for every attribute the invariant reads",
                hint="Rename the column, or correct the invariant.",
            )
        for condition in self.where:
            column = pl.col(condition.attribute)
            if frame.schema[condition.attribute] == pl.Boolean:
                column = column.cast(pl.String)
            frame = frame.filter(column.is_in(list(condition.levels)))
        return frame.select(list(dict.fromkeys(self._shown))) if self._shown else frame

    def of_records(self, records: Iterable[Record], schema: Schema) -> Statistic:
        cells: defaultdict[tuple[Level, ...], int] = defaultdict(int)
        for record in records:
            if all(schema.value(record, c.attribute) in c.levels for c in self.where):
                cells[tuple(schema.value(record, name) for name in self.by)] += self.amount(record, schema)
        return frozenset((cell, Fraction(total)) for cell, total in cells.items() if total)

    def follows_from(self, source: Declared, schema: Schema | None = None) -> bool:
        """Whether its cells are unions of cells of the source, and amounts are known from these cells."""
        if not isinstance(source, Additive) or self.unit != source.unit:
            return False
        needed = {*self.by, *(c.attribute for c in set(self.where) - set(source.where))}
        if self.summed != source.summed:
            if self.summed is None or source.summed is not None:
                return False
            needed.add(self.summed)
        determined = schema.closure(source.by) if schema else frozenset(source.by)
        return needed <= determined and set(source.where) <= set(self.where)
