"""Additive invariants: what one record contributes to every statistic, and what their linear span holds.

Counts and sums are sums over the records of a vector f(record). Whether a function of the record is, summed
over the records, fixed by such statistics is a question of linear algebra, answered here in rationals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from stirred.errors import NotComputable
from stirred.spec.blocks.invariant import Additive
from stirred.spec.blocks.schema import Record, Schema

LARGEST_TABLE = 4_096

Column = tuple[int, Any]
Contribution = Mapping[Column, Fraction]


def relevant(schema: Schema, names: Iterable[str]) -> Schema:
    """The schema of the attributes that these names read, without nesting: every combination occurs."""
    origin = {recode.name: recode.attribute for recode in schema.recodes}
    needed = {origin.get(name, name) for name in names}
    return Schema(
        attributes=tuple(a for a in schema.attributes if a.name in needed),
        recodes=tuple(r for r in schema.recodes if r.attribute in needed),
    )


def contributions(statistics: Iterable[Additive], schema: Schema) -> dict[Record, Contribution]:
    """f of every record over a schema with finite levels: its own value of every cell that it enters.

    The columns are numbered by statistic. More than ``LARGEST_TABLE`` records are not listed.
    """
    cells = 1
    for attribute in schema.attributes:
        cells *= len(attribute.levels) if attribute.levels is not None else LARGEST_TABLE + 1
    if cells > LARGEST_TABLE:
        raise NotComputable(
            "the records over the invariants' attributes cannot be listed",
            field="domain.record_schema",
            expected=f"levels for every attribute, and at most {LARGEST_TABLE} combinations",
            hint="Declare the levels of the attributes that the invariants read.",
        )
    numbered = tuple(enumerate(statistics))
    return {
        record: {
            (number, cell): Fraction(value)
            for number, statistic in numbered
            for cell, value in statistic.of_records((record,), schema)
        }
        for record in schema.records()
    }


def independent(rows: Iterable[Contribution]) -> bool:
    """Whether the rows, each with a constant one, are linearly independent.

    For distinct rows this says that every class of equal rows has its indicator in the linear span of one
    and the columns.
    """
    pivots: dict[int, dict[int, Fraction]] = {}
    numbers: dict[Column, int] = {}
    return all(bool(_reduced(_numbered(row, numbers), pivots)) for row in rows)


def spans(rows: Iterable[tuple[Contribution, Fraction]]) -> bool:
    """Whether the second entry is, over all rows, a linear function of one and the first."""
    pivots: dict[int, dict[int, Fraction]] = {}
    numbers: dict[Column, int] = {}
    for row, value in rows:
        left = _reduced({**_numbered(row, numbers), _LAST: value}, pivots)
        if set(left) == {_LAST}:
            return False
    return True


_CONSTANT, _LAST = 0, 10**12


def _numbered(row: Contribution, numbers: dict[Column, int]) -> dict[int, Fraction]:
    out = {_CONSTANT: Fraction(1)}
    for column, value in row.items():
        out[numbers.setdefault(column, len(numbers) + 1)] = value
    return out


def _reduced(row: dict[int, Fraction], pivots: dict[int, dict[int, Fraction]]) -> dict[int, Fraction]:
    """The row after elimination; what is left becomes a pivot. The last column never leads."""
    row = {column: value for column, value in row.items() if value}
    while row:
        lead = min(row)
        pivot = pivots.get(lead)
        if pivot is None:
            if lead != _LAST:
                pivots[lead] = row
            return row
        factor = row[lead] / pivot[lead]
        for column, value in pivot.items():
            rest = row.get(column, Fraction(0)) - factor * value
            if rest:
                row[column] = rest
            else:
                row.pop(column, None)
    return row
