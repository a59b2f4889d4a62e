"""Variable swap rates: functions of matching and holding, or of matching and swapping variables.

A rate that looks at holding and swapping variables jointly, or at other records, breaks the guarantee
(with three records a joint rate reaches 6.688 where the formula says 5.981), so it cannot be declared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from stirred.data import code_columns, require_columns
from stirred.errors import InputError, Refusal
from stirred.interchange import as_polars
from stirred.spec import as_fraction
from stirred.swap.derangement import Rates
from stirred.swap.roles import Roles

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class VariableRate:
    """A table of rates: columns ``by`` and a column ``rate``; combinations not listed take ``otherwise``.

    Rates are exact: text such as ``"1/3"`` or ``"0.05"``, or floats read as they are written.
    """

    by: tuple[str, ...]
    table: tuple[tuple[tuple[object, ...], Fraction], ...]
    otherwise: Fraction

    @classmethod
    def of(cls, by: Sequence[str], table: object, otherwise: object) -> VariableRate:
        """Read the rates from any table that speaks Arrow, or from a mapping of tuples to rates."""
        if isinstance(table, dict):
            rows = [(k if isinstance(k, tuple) else (k,), as_fraction(v)) for k, v in table.items()]
        else:
            frame = as_polars(table, "rates")
            require_columns(frame, (*by, "rate"), "rates")
            rows = [
                (tuple(row[:-1]), as_fraction(row[-1])) for row in frame.select([*by, "rate"]).iter_rows()
            ]
        rates = [rate for _, rate in rows] + [as_fraction(otherwise)]
        if not all(0 < rate < 1 for rate in rates):
            raise InputError(
                "a variable swap rate is not strictly between 0 and 1",
                field="rates",
                expected="rates above 0 and below 1",
                hint="A rate of 0 or 1 has infinite loss; hold imputed records fixed instead.",
            )
        return cls(tuple(by), tuple(rows), as_fraction(otherwise))

    def check(self, roles: Roles) -> None:
        """Refuse a rate that looks at more than the guarantee allows."""
        looks = set(self.by) - set(roles.match)
        if looks & set(roles.swap) and looks & set(roles.hold):
            raise Refusal(
                "the swap rate looks at holding and swapping variables at once",
                field="rates.by",
                expected="matching and holding variables, or matching and swapping variables",
                hint="A joint rate reveals the link that swapping hides: with three records its loss is "
                "6.688 where the formula says 5.981. Choose one of the two sets.",
            )
        unknown = looks - set(roles.swap) - set(roles.hold)
        if unknown:
            raise Refusal(
                f"the swap rate looks at {', '.join(sorted(unknown))}, which has no role in the swap",
                field="rates.by",
                expected="variables of the record that are matched, held or swapped",
                hint="A rate that depends on other records (uniqueness in a block, say) has no guarantee.",
            )

    def rates(self, frame: pl.DataFrame, missing: str) -> Rates:
        """The class and rate of every record."""
        import polars as pl

        values = sorted({rate for _, rate in self.table} | {self.otherwise})
        coded = code_columns(frame, self.by, missing=missing)
        first = np.full(coded.count, -1, dtype=np.int64)
        first[coded.values[::-1]] = np.arange(frame.height - 1, -1, -1)
        combinations = frame.select(list(self.by))[pl.Series(first)] if coded.count else frame.select(self.by)
        lookup = {key: values.index(rate) for key, rate in self.table}
        fallback = values.index(self.otherwise)
        by_code = np.array([lookup.get(row, fallback) for row in combinations.iter_rows()], dtype=np.int16)
        return Rates(tuple(values), by_code[coded.values])
