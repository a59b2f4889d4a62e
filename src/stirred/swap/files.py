"""Swapping at the scale of a nation: from Parquet to one protected Parquet file for each top-level place.

What is written is a trial: no ledger paid for it, and it is not for publication. Columns that nobody named,
identifiers, torn places and exact statistics that leave nothing to protect are refused before anything is
drawn.

The output folder appears complete or not at all: files are written under a temporary name and the folder
is renamed last. Each file is in fresh random order. Memory holds the table, its codes and one gathered
copy; time is linear in the records.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from stirred.data import MOST_DETERMINED, Exposures, code_columns, require_columns
from stirred.errors import InputError
from stirred.interchange import write_parquet
from stirred.noise import RandomSource, Source
from stirred.places import inside, require_new, slugs, whole_folder
from stirred.spec import Specification
from stirred.swap.derangement import stratum_sizes
from stirred.swap.kernel import group_by_stratum
from stirred.swap.mechanism import PermutationSwap, unpublishable
from stirred.swap.named import require_hold, require_presentable, with_named_persons
from stirred.swap.order import random_order
from stirred.swap.prepared import Prepared
from stirred.swap.records import Records
from stirred.swap.strata import InvariantReport


@dataclass(frozen=True)
class SwappedFiles:
    """Where the protected files are, and what they promise."""

    folder: Path
    files: tuple[str, ...]
    records: int
    specification: Specification
    reason: str
    exposures: Exposures

    @property
    def publishable(self) -> bool:
        """Never: a ledger pays for what is published, and a plan says what it is."""
        return False


def swap_files(
    swap: PermutationSwap,
    households: str | Path,
    output: str | Path,
    *,
    by: str | None = None,
    id: str | None = None,
    persons: str | Path | None = None,
    hold_persons: Sequence[str] | None = None,
    most_determined: Fraction = MOST_DETERMINED,
    accept_determined: str = "",
    random: Source | None = None,
    report: Callable[[Specification, InvariantReport, str], str] | None = None,
) -> SwappedFiles:
    """Swap a file and write the protected records, one file for each value of ``by``.

    Parameters
    ----------
    hold_persons
        The columns of persons to write; needed where there are persons.
    most_determined
        The share of records that the exact statistics may determine.
    accept_determined
        Why more than that is accepted; kept in the manifest.
    report
        Makes a page from the specification, the report on the invariants, and the reason why the files may
        not be published; it is written beside them as ``report.html``.
    """
    folder = Path(output)
    require_new(folder)
    if by is not None and persons is not None:
        raise InputError(
            "persons are written in one file beside their households",
            field="by",
            expected="no column to split by where persons are given",
            hint="Leave out by=, or split the files afterwards.",
        )
    require_hold(swap.hold)
    source = RandomSource() if random is None else random.spawn()
    records = with_named_persons(Records.of(households, persons, id), swap.swap, hold_persons)
    prepared = swap.prepare(records)
    found = swap.report_of(prepared)
    exposures = Exposures((found.exposure,))
    accepted = accept_determined.strip()
    if not accepted:
        exposures.require(most_determined)
    require_presentable(swap, prepared)
    with whole_folder(folder, room=records.room) as temporary:
        if persons is not None or by is None:
            made = swap.release(records, source)
            specification, count = made.specification, records.households.height
            names = [name for name in ("households", "persons") if name in made.products]
            for name in names:
                write_parquet(made.products[name], temporary / f"{name}.parquet")
        else:
            specification, names, count = _by_place(swap, prepared, by, source, temporary)
        (temporary / "specification.json").write_text(specification.to_json(), encoding="utf-8")
        reason = unpublishable(source, specification)
        notice = {
            "schema_version": 1,
            "type": "swap",
            "publishable": False,
            "reason": reason,
            "records": count,
            "exposure": exposures.record(),
            "accepted_determined": accepted or None,
        }
        if report is not None:
            page = report(specification, found, reason)
            (temporary / "report.html").write_text(page, encoding="utf-8")
        (temporary / "manifest.json").write_text(json.dumps(notice, indent=2) + "\n", encoding="utf-8")
    return SwappedFiles(folder, tuple(names), count, specification, reason, exposures)


def _by_place(
    swap: PermutationSwap, prepared: Prepared, by: str, source: Source, folder: Path
) -> tuple[Specification, list[str], int]:
    import polars as pl

    records, roles = prepared.records, prepared.roles
    frame = records.households
    require_columns(frame, (by,), "by")
    if by not in (*roles.match, *roles.hold, *roles.swap):
        raise InputError(
            f"the column {by} has no role in the swap, so the output does not have it",
            field="by",
            expected="a matching, holding or swapping variable",
            hint="Name a place that is matched or swapped.",
        )
    specification = swap.specification(prepared)
    donors = swap.donors(prepared, source.child(0))
    places = code_columns(frame, (by,), missing=swap.missing)
    codes = places.values[donors] if by in prepared.roles.swap else places.values
    offsets = np.zeros(places.count + 1, dtype=np.int64)
    np.cumsum(stratum_sizes(codes, places.count), out=offsets[1:])
    rows = np.arange(frame.height, dtype=np.int32 if frame.height < 2**31 else np.int64)
    grouped: Any = group_by_stratum(codes, rows, offsets)
    for number, (low, high) in enumerate(itertools.pairwise(offsets.tolist())):
        grouped[low:high] = grouped[low:high][random_order(high - low, source.child(1, number))]
    output = swap.arranged(prepared, donors, grouped)
    swap.verify(prepared, output)
    values = [str(output[by][start]) for start in offsets[:-1].tolist()]
    # Codes are numbered as the records come: files are made in the order of their names instead.
    order = sorted(range(places.count), key=lambda number: values[number])
    names = slugs(f"{by}={values[number]}" for number in order)
    for number, name in zip(order, names, strict=True):
        part = output.slice(int(offsets[number]), int(offsets[number + 1] - offsets[number]))
        if records.id is not None:
            part = part.with_columns(pl.int_range(part.height, dtype=pl.Int64, eager=True).alias(records.id))
        write_parquet(part, inside(folder, f"{name}.parquet"))
    return specification, names, frame.height
