"""What swapping costs the user of a table: error over repeated runs, against the confidential truth.

These figures compare with the truth. They are diagnostics for internal use only: they are not covered by
the guarantee of the swap and are never published. Their random draws are their own, never a release's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.data import Codes, code_columns, compare_counts
from stirred.errors import InputError, UnknownName
from stirred.interchange import Tabular
from stirred.noise import RandomSource, Source
from stirred.swap.derangement import Rates, draw_donors
from stirred.swap.mechanism import PermutationSwap
from stirred.swap.prepared import Prepared
from stirred.swap.roles import Roles

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

NOTICE = "CONFIDENTIAL, internal use only: these figures compare with the truth and are never published."
DENSE = 1 << 22
STREAM = -1


@dataclass(frozen=True, eq=False, repr=False)
class Utility(Tabular):
    """Errors of tables after swapping, one row for each run and table. Internal use only.

    Columns: ``run``, ``table``, the fields of ``stirred.data.ErrorSummary``, and Cramer's V between
    the table's swapping variables and its holding variables besides the swap key: ``association_true``,
    ``association_protected`` and ``association_lost``, their difference (null where the table lacks either
    kind of variable).
    """

    rows: pl.DataFrame

    def to_polars(self) -> pl.DataFrame:
        """One row for each run and table. Internal use only."""
        return self.rows

    def summary(self) -> pl.DataFrame:
        """Mean, standard deviation and extremes over the runs, by table and measure. Internal use only."""
        import polars as pl

        return (
            self.rows.with_columns(pl.col("table").cast(pl.String))
            .unpivot(index=["run", "table"], variable_name="measure")
            .group_by(["table", "measure"], maintain_order=True)
            .agg(
                mean=pl.col("value").mean(),
                standard_deviation=pl.col("value").std(),
                least=pl.col("value").min(),
                largest=pl.col("value").max(),
            )
            .sort("table", maintain_order=True)
        )

    def __str__(self) -> str:
        return f"{NOTICE}\n{self.summary()}"

    def __repr__(self) -> str:
        return str(self)


def utility(
    swap: PermutationSwap,
    data: object,
    tables: Mapping[str, Sequence[str]],
    runs: int = 20,
    random: Source | None = None,
) -> Utility:
    """Swap repeatedly and measure how far some tables are from the truth. Internal use only.

    Parameters
    ----------
    swap
        The mechanism; its strata are prepared once for all runs.
    data
        A table of households, or ``stirred.swap.records.Records``.
    tables
        For each table its name and the columns that are cross-classified.
    runs
        Number of independent runs.
    random
        Source of randomness; each run takes a child of its own.

    Examples
    --------
    >>> import polars as pl
    >>> from stirred.noise import TestSource
    >>> frame = pl.DataFrame({"owner": [0, 0, 1, 1], "county": [1, 1, 2, 2]})
    >>> psa = PermutationSwap(match=(), swap=("county",), rate="0.5")
    >>> found = utility(psa, frame, {"owners": ("county", "owner")}, runs=2, random=TestSource(1))
    >>> found.to_polars()["association_true"].to_list()
    [1.0, 1.0]
    """
    import polars as pl

    if runs < 1 or not tables:
        raise InputError(
            "there is nothing to measure",
            field="runs" if runs < 1 else "tables",
            expected="at least one run and one table",
            hint="Name a table and its columns.",
        )
    source = random or RandomSource()
    prepared = swap.prepare(data)
    measured = {name: _Table.of(prepared, columns, name, swap.missing) for name, columns in tables.items()}
    rows = []
    for run in range(runs):
        donors = swap.donors(prepared, source.child(STREAM, run))
        rows += [{"run": run, "table": name} | table.measure(donors) for name, table in measured.items()]
    types = {f"association_{kind}": pl.Float64 for kind in ("true", "protected", "lost")}
    return Utility(pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None))


def table_after(
    prepared: Prepared, moved: Codes, held: Codes, rate: Fraction, source: Source
) -> NDArray[np.int64]:
    """Swap once at a common rate and count a swapping by a holding code, and nothing else.

    The fast path for many runs at many rates: no records are arranged and nothing is released.
    """
    strata, rates = prepared.strata, Rates.common(rate)
    donors = draw_donors(strata.codes, strata.count, rates, source, eligible=prepared.eligible)
    keys = moved.values[donors].astype(np.int64) * held.count + held.values
    return np.bincount(keys, minlength=moved.count * held.count).reshape(moved.count, held.count)


@dataclass(frozen=True)
class _Table:
    """A table as integer codes: the columns that move, the columns that stay, and the true counts."""

    moved: Codes
    stays: Codes
    held: Codes | None
    cells: _Cells
    association: float | None

    @classmethod
    def of(cls, prepared: Prepared, columns: Sequence[str], name: str, missing: str) -> _Table:
        frame, roles = prepared.records.households, prepared.roles
        _require_roles(columns, roles, name)
        moving = [c for c in columns if c in roles.swap]
        holding = [c for c in columns if c in roles.hold]
        staying = [c for c in columns if c not in roles.swap]
        moved, stays = (code_columns(frame, names, missing=missing) for names in (moving, staying))
        held = code_columns(frame, holding, missing=missing) if moving and holding else None
        cells = _Cells.of(moved.values, stays)
        association = None if held is None else _association(moved, held, moved.values)
        return cls(moved, stays, held, cells, association)

    def measure(self, donors: NDArray[Any]) -> dict[str, float | int | None]:
        """One row: the errors of the table when every record takes its donor's place."""
        values = self.moved.values[donors]
        row: dict[str, float | int | None] = {}
        row |= compare_counts(*self.cells.aligned(_Cells.of(values, self.stays))).record()
        if self.held is None or self.association is None:
            return row | {"association_true": None, "association_protected": None, "association_lost": None}
        after = _association(self.moved, self.held, values)
        return row | {
            "association_true": self.association,
            "association_protected": after,
            "association_lost": self.association - after,
        }


def _require_roles(columns: Sequence[str], roles: Roles, name: str) -> None:
    known = (*roles.match, *roles.swap, *roles.hold)
    for column in columns:
        if column not in known:
            raise UnknownName(
                f"the table {name} asks for {column}, which has no role in the swap",
                field="tables",
                expected="one of " + ", ".join(known),
                hint="Only matching, swapping and holding variables of the households are released.",
            )


@dataclass(frozen=True)
class _Cells:
    """The cells of a table that are not empty, in increasing order, with their counts."""

    keys: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, moved: NDArray[Any], stays: Codes) -> _Cells:
        keys = moved.astype(np.int64) * stays.count + stays.values
        if keys.size and int(keys.max()) < max(DENSE, keys.size):
            counts = np.bincount(keys)
            occurring = np.flatnonzero(counts)
            return cls(occurring, counts[occurring])
        return cls(*np.unique(keys, return_counts=True))

    def aligned(self, other: _Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Both tables' counts over all cells that occur in either."""
        keys = np.union1d(self.keys, other.keys)
        mine, theirs = np.zeros(keys.size, dtype=np.int64), np.zeros(keys.size, dtype=np.int64)
        mine[np.searchsorted(keys, self.keys)] = self.counts
        theirs[np.searchsorted(keys, other.keys)] = other.counts
        return mine, theirs


def _association(moved: Codes, held: Codes, values: NDArray[Any]) -> float:
    """Cramer's V between the places of the records and a holding code."""
    smaller = min(moved.count, held.count) - 1
    if smaller < 1:
        return 0.0
    cells = _Cells.of(values, held)
    places, kinds = np.bincount(values), np.bincount(held.values)
    expected = places[cells.keys // held.count] * (kinds[cells.keys % held.count] / values.size)
    excess = float((cells.counts.astype(np.float64) ** 2 / expected).sum()) - values.size
    return math.sqrt(max(0.0, excess) / (values.size * smaller))
