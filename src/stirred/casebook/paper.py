"""The paper's demonstration again: Massachusetts in 1940, swapped between counties within household sizes.

The records come from ``stirred.casebook.massachusetts_1940``: they are made from a published table by an
arithmetic rule, so these comparisons with the truth disclose nothing and may be shown.

Reference
    Sections 3.4 and 3.6 of Bailie, Gong and Meng: Tables 1 and 2, Figures 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from stirred.casebook.massachusetts_1940 import OWNERSHIP, households
from stirred.data import code_columns, compare_counts, tabulate
from stirred.errors import InputError
from stirred.noise import RandomSource, Source
from stirred.spec import Specification, as_fraction, swapping_loss
from stirred.swap import PermutationSwap, Prepared, as_records, least_loss, least_loss_rate, table_after

if TYPE_CHECKING:
    import polars as pl

MATCH = ("state", "household_size")
SWAP = ("county",)
TABLE_1_RATE = Fraction(1, 2)
TABLE_2_RATES = tuple(Fraction(percent, 100) for percent in (1, 5, 10, 50))
FIGURE_1_RATES = tuple(Fraction(percent, 100) for percent in range(1, 51))
FIGURE_2_STRATA = (2, 10, 100, 1_000, 10_000, 1_000_000)
FIGURE_2_RATES = (
    *(Fraction(part, 1000) for part in range(1, 1000)),
    *(Fraction(part, 10_000) for part in range(9_991, 10_000)),
)


@dataclass(frozen=True, eq=False)
class Rerun:
    """What the paper shows about Massachusetts in 1940.

    ``table_1``: county, owned, rented and total, true and after one swap at half of the households, with a
    last row of totals. ``table_2``: rate and epsilon. ``figure_1``: for every rate the mean absolute
    percentage error (a share) of each run. ``figure_2``: largest stratum, rate and epsilon; ``diamonds``:
    the least epsilon of each stratum size and the rate that attains it.
    """

    specification: Specification
    largest_stratum: int
    table_1: pl.DataFrame
    table_2: pl.DataFrame
    figure_1: Mapping[Fraction, tuple[float, ...]]
    figure_2: pl.DataFrame
    diamonds: pl.DataFrame


def rerun(runs: int = 20, rates: Sequence[object] = FIGURE_1_RATES, random: Source | None = None) -> Rerun:
    """Run the demonstration.

    Parameters
    ----------
    runs
        Independent runs at each rate of Figure 1.
    rates
        Swap rates of Figure 1.
    random
        Source of randomness; ``None`` takes the operating system's.
    """
    shares = tuple(as_fraction(rate) for rate in rates)
    if runs < 1 or not shares or not all(0 < share < 1 for share in shares):
        raise InputError(
            "the demonstration needs runs and swap rates",
            field="runs" if runs < 1 else "rates",
            expected="at least one run, and rates above 0 and below 1",
            hint="The paper makes 20 runs at each rate from 0.01 to 0.50.",
        )
    source = random or RandomSource()
    frame = households()
    swap = PermutationSwap(match=MATCH, swap=SWAP, rate=TABLE_1_RATE)
    prepared = swap.prepare(as_records(frame))
    release = swap.release(frame, source.child(0))
    return Rerun(
        specification=release.specification,
        largest_stratum=prepared.strata.largest,
        table_1=_table_1(frame, release.products["households"]),
        table_2=_losses((prepared.strata.largest,), TABLE_2_RATES).drop("largest_stratum"),
        figure_1=_figure_1(prepared, shares, runs, source.child(1)),
        figure_2=_losses(FIGURE_2_STRATA, FIGURE_2_RATES),
        diamonds=_diamonds(),
    )


def _table_1(true: pl.DataFrame, swapped: pl.DataFrame) -> pl.DataFrame:
    """Both tabulations side by side, and their totals."""
    import polars as pl

    left, right = _by_county(true), _by_county(swapped)
    after = right.rename({name: f"{name}_swapped" for name in right.columns if name != "county"})
    table = left.join(after, on="county", maintain_order="left")
    return pl.concat([table, table.select(pl.lit("Total").alias("county"), pl.exclude("county").sum())])


def _by_county(frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    wide = tabulate(frame, ("county", "ownership")).pivot("ownership", index="county", values="count")
    return wide.select(
        pl.col("county").cast(pl.String),
        *(pl.col(name).fill_null(0) for name in OWNERSHIP),
        pl.sum_horizontal(OWNERSHIP).alias("total"),
    )


def _figure_1(
    prepared: Prepared, rates: Sequence[Fraction], runs: int, source: Source
) -> dict[Fraction, tuple[float, ...]]:
    frame = prepared.records.households
    county, ownership = code_columns(frame, ("county",)), code_columns(frame, ("ownership",))
    true = np.bincount(county.values * ownership.count + ownership.values).reshape(-1, ownership.count)
    errors = {}
    for index, rate in enumerate(rates):
        tables = (
            table_after(prepared, county, ownership, rate, source.child(index, run)) for run in range(runs)
        )
        errors[rate] = tuple(compare_counts(true, table).mape for table in tables)
    return errors


def _losses(strata: Sequence[int], rates: Sequence[Fraction]) -> pl.DataFrame:
    import polars as pl

    rows = [(size, float(rate), float(swapping_loss(size, rate))) for size in strata for rate in rates]
    return pl.DataFrame(rows, schema=["largest_stratum", "rate", "epsilon"], orient="row")


def _diamonds() -> pl.DataFrame:
    """Where each curve of Figure 2 is lowest."""
    import polars as pl

    rows = [(size, least_loss_rate(size), float(least_loss(size))) for size in FIGURE_2_STRATA]
    return pl.DataFrame(rows, schema=["largest_stratum", "rate", "epsilon"], orient="row")
