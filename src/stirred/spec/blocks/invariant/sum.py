"""Sums of a numeric attribute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from stirred.errors import InputError
from stirred.spec.blocks.invariant.additive import Additive
from stirred.spec.blocks.invariant.condition import Condition, plural, qualifiers, words
from stirred.spec.blocks.schema import Record, Schema

if TYPE_CHECKING:
    import polars as pl


class Sum(Additive):
    """The sum of a numeric attribute in every combination of some other attributes."""

    kind: Literal["sum"] = "sum"
    attribute: str
    unit: str
    by: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()

    @property
    def summed(self) -> str:
        """The attribute that is added up."""
        return self.attribute

    def sentence(self) -> str:
        start = f"the sum of {words(self.attribute)} over {plural(self.unit)}"
        return start + qualifiers(self.by, self.where)

    def amount(self, record: Record, schema: Schema) -> int:
        """The value of the attribute."""
        value = schema.value(record, self.attribute)
        if not isinstance(value, int):
            raise self._not_numeric()
        return value

    def total(self, frame: pl.DataFrame) -> pl.Expr:
        """128 bits hold the sum of any file; one beyond 64 bits is refused later, never wrapped around."""
        import polars as pl

        if not frame.schema[self.attribute].is_integer():
            raise self._not_numeric()
        return pl.col(self.attribute).cast(pl.Int128).sum()

    def _not_numeric(self) -> InputError:
        return InputError(
            f"the attribute {self.attribute} is summed but is not numeric",
            field=self.attribute,
            expected="integer levels",
            hint="Count the levels instead, or recode them as integers.",
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """The attribute: the total changes by the difference of the amounts of the two records."""
        return () if self.where else (self.attribute,)
