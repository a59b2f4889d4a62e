"""Thresholds: inequality invariants."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from stirred.spec.blocks.invariant.condition import Condition
from stirred.spec.blocks.invariant.count import Count
from stirred.spec.blocks.invariant.declared import Declared, Statistic
from stirred.spec.blocks.invariant.sum import Sum
from stirred.spec.blocks.schema import Record, Schema

if TYPE_CHECKING:
    import polars as pl


class Threshold(Declared):
    """Whether a count or sum reaches a bound that is fixed in advance: an inequality invariant.

    ``at_least=1`` is the indicator "there is one". The bound is part of the design, not of the data.
    """

    kind: Literal["threshold"] = "threshold"
    statistic: Annotated[Count | Sum, Field(discriminator="kind")]
    at_least: int | None = None
    at_most: int | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("exactly one of at_least and at_most")
        if (self.at_least is not None and self.at_least < 1) or (
            self.at_most is not None and self.at_most < 0
        ):
            raise ValueError("at_least of one or more, or at_most of zero or more")
        return self

    def sentence(self) -> str:
        bound = f"at least {self.at_least}" if self.at_least is not None else f"at most {self.at_most}"
        return f"whether {self.statistic.sentence()} is {bound}"

    def needs(self) -> tuple[str, ...]:
        return self.statistic.needs()

    @property
    def units(self) -> frozenset[str]:
        return self.statistic.units

    @property
    def conditions(self) -> tuple[Condition, ...]:
        return self.statistic.conditions

    @property
    def underlying(self) -> Count | Sum:
        return self.statistic

    def of_frame(self, frame: pl.DataFrame, schema: Schema | None = None) -> pl.DataFrame:
        """The cells on the far side of the bound (the side that an empty cell is not on)."""
        import polars as pl

        name = self.statistic.result
        table = self.statistic.of_frame(frame, schema).filter(self._beyond(pl.col(name)))
        return table.with_columns(pl.lit(True).alias(name))

    def of_records(self, records: Iterable[Record], schema: Schema) -> Statistic:
        cells = self.statistic.of_records(records, schema)
        return frozenset((cell, True) for cell, value in cells if self._beyond(Fraction(value)))

    def _beyond(self, value: Any) -> Any:
        return value >= self.at_least if self.at_least is not None else value > self.at_most

    def follows_from(self, source: Declared, schema: Schema | None = None) -> bool:
        """Whether its statistic does, or it is the source."""
        return self == source or self.statistic.follows_from(source, schema)
