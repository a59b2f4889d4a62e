"""Households and the persons who live in them, checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stirred.data import read_table, require_columns
from stirred.errors import InputError

if TYPE_CHECKING:
    import polars as pl

DOCUMENTS = 16 << 20


@dataclass(frozen=True)
class Records:
    """The table that is swapped, and optionally a table of persons linked to it by an identifier."""

    households: pl.DataFrame
    persons: pl.DataFrame | None = None
    id: str | None = None

    @property
    def room(self) -> int:
        """About how many bytes the protected records and their documents take."""
        persons = 0 if self.persons is None else self.persons.estimated_size()
        return int(2 * (self.households.estimated_size() + persons)) + DOCUMENTS

    @classmethod
    def of(cls, households: object, persons: object = None, id: str | None = None) -> Records:
        """Read and check: identifiers are unique, and every person has a household."""
        main = read_table(households, "households")
        if main.height == 0:
            raise InputError(
                "the table is empty",
                field="households",
                expected="at least one record",
                hint="Check the file and its filters.",
            )
        if id is not None:
            require_columns(main, (id,), "id")
            if main[id].null_count() or main[id].n_unique() != main.height:
                raise InputError(
                    f"the identifier {id} is missing or repeated in the households",
                    field="id",
                    expected="one identifier for every household, each once",
                    hint="Remove duplicates before swapping.",
                )
        if persons is None:
            return cls(main, None, id)
        if id is None:
            raise InputError(
                "persons need the identifier that links them to households",
                field="id",
                expected="the name of a column in both tables",
                hint="Pass id=.",
            )
        members = read_table(persons, "persons")
        require_columns(members, (id,), "id")
        require_columns(members, members.columns, "persons")
        orphans = members.join(main.select(id), on=id, how="anti", nulls_equal=False).height
        if orphans:
            raise InputError(
                "some persons have no household",
                field="persons",
                expected="every person's identifier among the households",
                hint="Add the households, or remove these persons.",
            )
        return cls(main, members, id)


def as_records(data: object) -> Records:
    """Records as they are, a data set of households and perhaps persons, or a table of households alone."""
    if isinstance(data, Records):
        return data
    if isinstance(data, Mapping):
        households, *persons = data.values()
        return Records.of(households, persons[0] if persons else None, getattr(data, "id", None))
    return Records.of(data)
