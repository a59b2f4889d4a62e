"""Invariants that are only described."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from stirred.errors import NotComputable
from stirred.spec.blocks.invariant.declared import Declared, Statistic
from stirred.spec.blocks.schema import Record, Schema

if TYPE_CHECKING:
    import polars as pl


class Named(Declared):
    """An invariant that is only described: it can be stated and compared, not computed."""

    kind: Literal["named"] = "named"
    name: str
    meaning: str = ""

    def sentence(self) -> str:
        return self.meaning or self.name

    def needs(self) -> tuple[str, ...]:
        """It reads no declared attribute."""
        return ()

    def of_frame(self, frame: pl.DataFrame, schema: Schema | None = None) -> pl.DataFrame:
        raise self._symbolic()

    def of_records(self, records: Iterable[Record], schema: Schema) -> Statistic:
        raise self._symbolic()

    def _symbolic(self) -> NotComputable:
        return NotComputable(
            f"the invariant {self.name} is described, not defined",
            field="invariant",
            expected="a count, a sum or a threshold over declared attributes",
            hint="Declare it with Count, Sum or Threshold to compute it.",
        )
