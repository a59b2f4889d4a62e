"""Places that lie in other places: what must not be torn apart when some of them move.

Guarantee
    A declared hierarchy is *torn* by roles if a swapping variable s and a held variable h both lie in a
    common place c (which may be s or h itself) and no matching variable fixes c: a record that moves gets
    another c with s and keeps its own with h, and everyone who has the map sees that it moved. Where a
    matching variable fixes c, records move within it and agree. The rule is checked on the transitive
    closure of the declared pairs, so a place without a role still links those that have one.
    Variables that are both held, or both swapped, travel together and cannot be torn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from stirred.data import Codes, code_columns, determines, maps
from stirred.errors import InputError
from stirred.swap.records import Records
from stirred.swap.roles import Roles

if TYPE_CHECKING:
    import polars as pl

Pairs = Sequence[tuple[str, str]]
ENOUGH = 20


def places_of(nesting: Pairs, name: str) -> frozenset[str]:
    """A place and everything that it lies in, directly or through others."""
    found, new = {name}, {name}
    while new:
        new = {coarse for fine, coarse in nesting if fine in new} - found
        found |= new
    return frozenset(found)


def require_whole(
    nesting: Pairs,
    match: Iterable[str],
    swap: Iterable[str],
    hold: Iterable[str],
    persons: Iterable[str] = (),
) -> None:
    """Refuse roles that tear a declared hierarchy apart; ``persons`` are columns that only persons have."""
    fixed = frozenset[str]().union(*(places_of(nesting, name) for name in match))
    moving = {name: places_of(nesting, name) for name in swap}
    for column, of_persons in [*((name, False) for name in hold), *((name, True) for name in persons)]:
        around = places_of(nesting, column)
        for moved, places in moving.items():
            common = (places & around) - fixed
            if common and of_persons:
                raise InputError(
                    f"the place {column} is a column of persons alone, so it would not move with {moved}",
                    field="persons",
                    expected="every place among the columns of the households",
                    hint="Add the place to the households and to the swapping variables, or drop it.",
                )
            if common:
                raise _torn(moved, column, common)


def _torn(moved: str, held: str, common: frozenset[str]) -> InputError:
    if held in common:
        how = f"{moved} is nested in {held}"
        expected, hint = (
            f"{held} among the swapping or the matching variables",
            "Match on it, or swap it too.",
        )
    elif moved in common:
        how = f"{held} is nested in {moved}"
        expected, hint = f"{held} among the swapping variables", "Places travel together: swap it too."
    else:
        place = min(common)
        how = f"{moved} and {held} are nested in {place}"
        expected = f"{held} among the swapping variables, or {place} among the matching ones"
        hint = "Match on the common place, or let both travel."
    problem = f"{how}: {moved} would move while {held} stays"
    return InputError(problem, field="swap", expected=expected, hint=hint)


def require_nested(frame: pl.DataFrame, nesting: Pairs) -> None:
    """Refuse data in which a place lies in several of those that are declared to hold it."""
    for fine, coarse in nesting:
        here = {fine, coarse} <= set(frame.columns)
        if here and not determines(frame, fine, coarse, missing="level"):
            raise InputError(
                f"{fine} is declared as nested in {coarse}, but some {fine} lies in several",
                field="nesting",
                expected=f"exactly one {coarse} for every {fine}",
                hint="Use full codes (for example state and county digits together).",
            )


def require_declared(records: Records, roles: Roles) -> None:
    """Refuse records that look nested, where nobody said what is nested and what is not.

    A swapping variable that determines a held one, or the reverse, in the whole file or within the strata,
    would show which records moved, unless the strata fix what is determined. Some evidence is asked for, so
    that tiny files do not look nested by chance. Linear in the records, for every pair of a swapping and a
    held variable.
    """
    frame = records.households
    names = (*roles.swap, *roles.hold)
    codes = {name: code_columns(frame, (name,), missing="level") for name in names}
    moved = {name: codes[name] for name in roles.swap}
    if len(moved) > 1:
        moved[" with ".join(roles.swap)] = code_columns(frame, roles.swap, missing="level")
    strata = code_columns(frame, roles.match, missing="level")
    _refuse_functions(moved, {name: codes[name] for name in roles.hold}, strata)
    if records.persons is not None and records.id is not None:
        persons = records.persons
        own = [name for name in persons.columns if name not in {records.id, *roles.swap}]
        home = (
            persons.select(records.id)
            .join(
                frame.select(records.id).with_row_index("__home"),
                on=records.id,
                how="left",
                maintain_order="left",
            )["__home"]
            .to_numpy()
        )
        _refuse_functions(
            {name: Codes(code.values[home], code.count) for name, code in moved.items()},
            {name: code_columns(persons, (name,), missing="level") for name in own},
            Codes(strata.values[home], strata.count),
        )


def _refuse_functions(moved: dict[str, Codes], held: dict[str, Codes], strata: Codes) -> None:
    for one, mine in moved.items():
        for other, theirs in held.items():
            for fine, coarse, names in ((mine, theirs, (one, other)), (theirs, mine, (other, one))):
                if maps(strata, coarse.values):
                    continue
                if _determines(fine, coarse) or _determines_within(strata, fine, coarse):
                    raise InputError(
                        f"in these records {names[0]} determines {names[1]}: {one} would move while {other} "
                        "stays, and show which records moved",
                        field="nesting",
                        expected="the nesting of the places, or the word that nothing is nested",
                        hint="Declare it in the plan (nesting: [[block, tract]]) or with --nest block:tract; "
                        "if it is chance, say so: nesting: [] or --no-nesting.",
                    )


def _determines(fine: Codes, coarse: Codes) -> bool:
    """Whether one variable is a function of another, on evidence: repeated values, and a varying image."""
    evidence = fine.values.size - fine.count
    return coarse.count >= 2 and evidence >= ENOUGH and maps(fine, coarse.values)


def _determines_within(strata: Codes, fine: Codes, coarse: Codes) -> bool:
    """Whether one variable is a function of another within every stratum: local codes of places, say.

    The evidence are repeated values, each weighed by the chance that two records of its stratum differ.
    """
    if strata.count < 2:
        return False
    inner = _together(strata, fine)
    if not maps(inner, coarse.values):
        return False
    sizes = np.bincount(strata.values, minlength=strata.count)
    place = np.zeros(inner.count, dtype=np.int64)
    place[inner.values] = strata.values
    repeated = sizes - np.bincount(place, minlength=strata.count)
    outer = _together(strata, coarse)
    place = np.zeros(outer.count, dtype=np.int64)
    place[outer.values] = strata.values
    squares = np.bincount(outer.values, minlength=outer.count).astype(np.float64) ** 2
    alike = np.bincount(place, weights=squares, minlength=strata.count) / sizes.astype(np.float64) ** 2
    return bool((repeated * (1 - alike)).sum() >= ENOUGH)


def _together(first: Codes, second: Codes) -> Codes:
    import polars as pl

    return code_columns(pl.DataFrame({"a": first.values, "b": second.values}), ("a", "b"))
