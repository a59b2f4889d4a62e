"""Massachusetts in 1940, swapped between counties within household sizes: Table 1 and Figure 1.

The records are made from a published table by an arithmetic rule, so these comparisons with the truth
disclose nothing and may be shown.

Reference
    Section 3.4 of Bailie, Gong and Meng.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl

from stirred.casebook.case import Recomputed
from stirred.casebook.massachusetts_1940 import OWNERSHIP, households
from stirred.data import code_columns, compare_counts, tabulate
from stirred.errors import InputError
from stirred.noise import RandomSource, Source
from stirred.spec import as_fraction
from stirred.swap import PermutationSwap, as_records, table_after

SWAP = PermutationSwap(match=("state", "household_size"), swap=("county",), rate="1/2")
FIGURE_1_RATES = tuple(Fraction(percent, 100) for percent in range(1, 51))


def table_1(random: Source | None = None) -> Recomputed:
    """Dwellings by county and ownership, true and after one swap of half of the households."""
    frame = households()
    swapped = SWAP.release(frame, random or RandomSource()).products["households"]
    left, right = _by_county(frame), _by_county(swapped)
    after = right.rename({name: f"{name}_swapped" for name in right.columns if name != "county"})
    table = left.join(after, on="county", maintain_order="left")
    whole = pl.concat([table, table.select(pl.lit("Total").alias("county"), pl.exclude("county").sum())])
    note = (
        "The true columns are those of the paper. The swapped ones are a fresh draw, on records whose sizes "
        "follow a rule of our own: near those of the paper, and different at every call."
    )
    return Recomputed(tuple(whole.to_dicts()), (note,))


def _by_county(frame: pl.DataFrame) -> pl.DataFrame:
    wide = tabulate(frame, ("county", "ownership")).pivot("ownership", index="county", values="count")
    return wide.select(
        pl.col("county").cast(pl.String),
        *(pl.col(name).fill_null(0) for name in OWNERSHIP),
        pl.sum_horizontal(OWNERSHIP).alias("total"),
    )


def figure_1(
    runs: int = 20, rates: Sequence[object] = FIGURE_1_RATES, random: Source | None = None
) -> Recomputed:
    """The mean absolute percentage error (a share) of Table 1 in every run at every swap rate.

    Parameters
    ----------
    runs
        Independent runs at each rate.
    rates
        Swap rates.
    random
        Source of randomness; ``None`` takes the operating system's.
    """
    shares = tuple(as_fraction(rate) for rate in rates)
    if runs < 1 or not shares or not all(0 < share < 1 for share in shares):
        raise InputError(
            "the simulation needs runs and swap rates",
            field="runs" if runs < 1 else "rates",
            expected="at least one run, and rates above 0 and below 1",
            hint="The paper makes 20 runs at each rate from 0.01 to 0.50.",
        )
    source = random or RandomSource()
    frame = households()
    prepared = SWAP.prepare(as_records(frame))
    county, ownership = code_columns(frame, ("county",)), code_columns(frame, ("ownership",))
    true = np.bincount(county.values * ownership.count + ownership.values).reshape(-1, ownership.count)
    rows = []
    for index, share in enumerate(shares):
        tables = (
            table_after(prepared, county, ownership, share, source.child(index, run)) for run in range(runs)
        )
        errors = tuple(compare_counts(true, table).mape for table in tables)
        rows.append(
            {
                "rate": float(share),
                "least": min(errors),
                "median": statistics.median(errors),
                "largest": max(errors),
                "errors": errors,
            }
        )
    return Recomputed(tuple(rows), (f"{runs} runs at each swap rate; different at every call.",))
