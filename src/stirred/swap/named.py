"""What may leave in a file of swapped records: columns that somebody named, and no identifier.

The mechanism itself takes any table, the tiny ones of audits included; these rules are for whoever writes
files of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stirred.data import require_columns
from stirred.errors import InputError, MissingBlock
from stirred.swap.nesting import require_declared
from stirred.swap.prepared import Prepared
from stirred.swap.records import Records

if TYPE_CHECKING:
    import polars as pl


# One repeated value in twenty at most: then a column is an identifier.
NEARLY = 20


def require_hold(hold: Sequence[str] | None) -> None:
    """Refuse to publish whatever columns a file happens to have."""
    if not hold:
        raise MissingBlock(
            "nobody named the columns that stay with their record",
            field="hold",
            expected="the names of the columns to publish, besides those that are matched or swapped",
            hint="Name each with --hold COLUMN (hold= in Python): a column that nobody named is never "
            "published.",
        )


def with_named_persons(records: Records, swap: Sequence[str], hold: Sequence[str] | None) -> Records:
    """The records with the named columns of persons alone, and the places that move with the household."""
    if records.persons is None or records.id is None:
        if hold:
            raise InputError(
                "columns of persons are named, but there are no persons",
                field="hold_persons",
                expected="a table of persons",
                hint="Add it with --persons FILE (persons= in Python), or name no columns of persons.",
            )
        return records
    if not hold:
        raise MissingBlock(
            "nobody named the columns of persons to publish",
            field="hold_persons",
            expected="the names of columns of the table of persons",
            hint="Name each with --hold-person COLUMN (hold_persons= in Python): a column that nobody named "
            "is never published.",
        )
    require_columns(records.persons, hold, "hold_persons")
    chosen = {records.id, *swap, *hold}
    return replace(records, persons=records.persons.select(c for c in records.persons.columns if c in chosen))


def require_presentable(prepared: Prepared) -> None:
    """Refuse identifiers among the columns, and places that look nested where nobody said so."""
    records, roles = prepared.records, prepared.roles
    _refuse_identifiers(records.households, (*roles.swap, *roles.hold), "hold")
    if records.persons is not None:
        own = [name for name in records.persons.columns if name not in {records.id, *roles.swap}]
        _refuse_identifiers(records.persons, own, "persons")
    if prepared.swap.declared_nesting() is None:
        require_declared(records, roles)


def _refuse_identifiers(frame: pl.DataFrame, names: Sequence[str], field: str) -> None:
    """Refuse a column whose values are (nearly) all different: it names its records, wherever it goes.

    Every column with a role is in an exact table, so this is a function of the invariants.
    """
    for name in names:
        values = frame[name].drop_nulls()
        repeated = values.len() - values.n_unique()
        if values.len() >= 2 and 2 * values.len() >= frame.height and NEARLY * repeated <= values.len():
            raise InputError(
                f"the column {name} is different in (nearly) every record: it identifies them",
                field=field,
                expected="columns whose values several records share",
                hint="Name it as the identifier (it is replaced), or drop it, or make it coarser.",
            )
