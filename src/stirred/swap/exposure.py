"""What the swapping invariants determine and expose: a function of their values alone.

Guarantee
    The universe of swapping has two exact tables in every stratum: matching by holding variables (with the
    persons of a household as part of its record) and matching by swapping variables. The records that it
    determines are those of the Frechet bounds. Imputed records that are held fixed are published as they
    are, and count as determined; the others form a universe of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.data import Codes, ExactTable, Exposure, alone, code_columns, joint_values, two_tables
from stirred.spec import Count

if TYPE_CHECKING:
    import polars as pl

    from stirred.swap.prepared import Prepared
    from stirred.swap.records import Records
    from stirred.swap.roles import Roles

PERSONS = "__persons"


def exposure_of(prepared: Prepared, unit: str, missing: str, imputed: str | None = None) -> Exposure:
    """What the swapping invariants of some records determine and expose."""
    roles, records = prepared.roles, prepared.records
    frame = _with_persons(records, roles)
    held = (*roles.match, *roles.hold, *((PERSONS,) if PERSONS in frame.columns else ()))
    moved, match = (*roles.match, *roles.swap), len(roles.match)
    whole = Codes(prepared.strata.codes, prepared.strata.count)
    sides = [joint_values(frame, names, missing=missing) for names in (held[match:], roles.swap)]
    found = two_tables(whole, *sides)
    determined = found.determined
    tables = [
        ExactTable(_named(unit, held), found.held_alone, found.held_cells),
        ExactTable(_named(unit, moved), found.moved_alone, found.moved_cells),
    ]
    if prepared.eligible is not None and imputed is not None:
        kept = code_columns(frame.filter(~prepared.eligible), (*held, *roles.swap), missing=missing)
        name = f"{_named(unit, (*held, *roles.swap))}, where {imputed}"
        tables.append(ExactTable(name, alone(kept), kept.count))
        able = prepared.eligible
        rest = two_tables(Codes(whole.values[able], whole.count), *(side[able] for side in sides))
        determined = kept.values.size + rest.determined
    return Exposure(unit, records.households.height, determined, determined, tuple(tables))


def _named(unit: str, names: tuple[str, ...]) -> str:
    shown = Count(unit=unit, by=tuple(name for name in names if name != PERSONS)).sentence()
    return shown + (" and their persons" if PERSONS in names else "")


def _with_persons(records: Records, roles: Roles) -> pl.DataFrame:
    """Households with one code for the persons in them: equal codes, equal persons in any order."""
    import polars as pl

    frame = records.households
    if records.persons is None or records.id is None:
        return frame
    own = [name for name in records.persons.columns if name not in {records.id, *roles.swap}]
    codes = pl.Series("code", code_columns(records.persons, own, missing="level").values)
    bags = (
        pl.DataFrame([records.persons[records.id], codes])
        .group_by(records.id)
        .agg(pl.col("code").sort().cast(pl.String).str.join(" ").alias(PERSONS))
    )
    return frame.join(bags, on=records.id, how="left", maintain_order="left").with_columns(
        pl.col(PERSONS).fill_null("")
    )
