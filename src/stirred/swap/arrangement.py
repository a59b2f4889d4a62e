"""From donors to swapped records: gathered columns, persons with their household, invariants recounted."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.data import Codes, code_columns, in_groups, row_hashes, tabulate
from stirred.errors import InputError, Refusal
from stirred.noise import Source, permutation
from stirred.swap.prepared import Prepared
from stirred.swap.primitive import Swapped

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

LARGEST_COUNTED = 200_000
DEFECT = "Nothing was written. This is a defect: please report it."


def arranged(prepared: Prepared, donors: NDArray[Any], source: Source) -> Swapped:
    """The swapped records in a fresh random order, with new identifiers; verified."""
    by = prepared.swap.by
    if by is not None:
        return _by_place(prepared, donors, by, source)
    records = prepared.records
    order = permutation(source.child(1), records.households.height)
    households, persons = gathered(prepared, donors, order), None
    if records.persons is not None:
        persons = _persons(prepared, households, order, source.child(2))
        _require_together(prepared, households, persons)
    if records.id is not None:
        households = households.with_columns(_new_ids(records.id, households.height))
    verify(prepared, households)
    return Swapped(households, persons, publishable=source.publishable)


def gathered(prepared: Prepared, donors: NDArray[Any], order: NDArray[Any]) -> pl.DataFrame:
    """Gather every column once: held columns by the new order, swapped columns through the donors."""
    import polars as pl

    frame, roles = prepared.records.households, prepared.roles
    rows, givers = pl.lit(pl.Series(order)), pl.lit(pl.Series(donors[order]))
    names = [c for c in frame.columns if c in {*roles.match, *roles.hold, *roles.swap}]
    return frame.select(pl.col(name).gather(givers if name in roles.swap else rows) for name in names)


def _by_place(prepared: Prepared, donors: NDArray[Any], by: str, source: Source) -> Swapped:
    """One part for each value of a column, each in a random order of its own: for files of a nation."""
    import polars as pl

    records, roles = prepared.records, prepared.roles
    frame = records.households
    places = code_columns(frame, (by,), missing=prepared.swap.missing)
    codes = places.values[donors] if by in roles.swap else places.values
    grouped, offsets = in_groups(Codes(codes, places.count))
    for number, (low, high) in enumerate(itertools.pairwise(offsets.tolist())):
        grouped[low:high] = grouped[low:high][permutation(source.child(1, number), high - low)]
    output = gathered(prepared, donors, grouped)
    verify(prepared, output)
    if records.id is not None:
        ids = np.arange(frame.height) - np.repeat(offsets[:-1], np.diff(offsets))
        output = output.with_columns(pl.Series(records.id, ids))
    values = [str(output[by][start]) for start in offsets[:-1].tolist()]
    parts = zip(values, offsets[:-1].tolist(), np.diff(offsets).tolist(), strict=True)
    # Codes are numbered as the records come: parts stand in the order of their names instead.
    return Swapped(output, parts=tuple(sorted(parts)), publishable=source.publishable)


def require_parts(prepared: Prepared, by: str) -> None:
    """Refuse to divide files by a column that they do not have, or where persons are in one file."""
    if prepared.records.persons is not None:
        raise InputError(
            "persons are written in one file beside their households",
            field="by",
            expected="no column to split by where persons are given",
            hint="Leave out by=, or split the files afterwards.",
        )
    if by not in (*prepared.roles.match, *prepared.roles.hold, *prepared.roles.swap):
        raise InputError(
            f"the column {by} has no role in the swap, so the output does not have it",
            field="by",
            expected="a matching, holding or swapping variable",
            hint="Name a place that is matched or swapped.",
        )


def _persons(
    prepared: Prepared, households: pl.DataFrame, order: NDArray[Any], source: Source
) -> pl.DataFrame:
    """Persons follow their household: new identifier, new places, fresh order within it."""
    import polars as pl

    records, roles = prepared.records, prepared.roles
    assert records.persons is not None
    assert records.id is not None
    moved = [name for name in roles.swap if name in records.persons.columns]
    link = pl.DataFrame(
        {
            records.id: records.households[records.id].gather(pl.Series(order)),
            "__new": pl.int_range(households.height, eager=True, dtype=pl.Int64),
        }
    ).with_columns(households[name].alias(f"__{name}") for name in moved)
    shuffled = records.persons[pl.Series(permutation(source, records.persons.height))]
    joined = shuffled.join(link, on=records.id, how="left").sort("__new", maintain_order=True)
    replaced = [pl.col(f"__{name}").alias(name) for name in moved]
    return joined.with_columns(*replaced, pl.col("__new").alias(records.id)).select(records.persons.columns)


def _require_together(prepared: Prepared, households: pl.DataFrame, persons: pl.DataFrame) -> None:
    """Stop a release in which somebody is not where their household is."""
    import polars as pl

    records = prepared.records
    assert records.id is not None
    rows = pl.Series(persons[records.id].to_numpy())
    for name in prepared.roles.swap:
        if name in persons.columns and not persons[name].equals(
            households[name].gather(rows), check_names=False, null_equal=True
        ):
            raise Refusal(
                f"persons and their households differ in {name}",
                field="persons",
                expected="persons who follow their household",
                hint=DEFECT,
            )


def verify(prepared: Prepared, output: pl.DataFrame) -> None:
    """Recount both families of invariant tables on the output; a difference stops the release."""
    roles, before, imputed = prepared.roles, prepared.records.households, prepared.swap.imputed
    key = secrets.randbits(64)
    tables = [((*roles.match, *roles.hold), before, output), ((*roles.match, *roles.swap), before, output)]
    if imputed is not None:
        whole = (*roles.match, *roles.hold, *roles.swap)
        tables.append((whole, before.filter(imputed), output.filter(imputed)))
    for names, first, second in tables:
        if not _same_table(first, second, names, key):
            raise Refusal(
                f"the swapped records do not keep the table of {', '.join(names)}",
                field="invariants",
                expected="both swapping invariants, exactly",
                hint=DEFECT,
            )


def _same_table(before: pl.DataFrame, after: pl.DataFrame, names: Sequence[str], key: int) -> bool:
    """Whether some columns have the same counts: recounted if few records, by an order-free hash if many."""
    if max(before.height, after.height) <= LARGEST_COUNTED:
        return tabulate(before, names).equals(tabulate(after, names))
    sums = []
    for frame in (before, after):
        hashes = row_hashes(frame, names, key)
        sums.append((hashes.sum(dtype=np.uint64), (hashes * hashes).sum(dtype=np.uint64), frame.height))
    return bool(sums[0] == sums[1])


def _new_ids(name: str, count: int) -> Any:
    import polars as pl

    return pl.int_range(count, eager=True, dtype=pl.Int64).alias(name)
