"""Utility of swapping: the coded path against whole records, and known answers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tables_compared import compare_tables

import stirred.swap.accuracy as module
from stirred.casebook.massachusetts_1940 import households
from stirred.data import code_columns, compare_counts, cramers_v
from stirred.errors import InputError, UnknownName
from stirred.noise import TestSource
from stirred.swap import PermutationSwap, as_records, table_after
from stirred.swap.accuracy import STREAM, utility

TABLES = {
    "owners": ("county", "owner"),
    "sizes": ("size", "county"),
    "cars": ("cars", "owner", "county", "tract"),
    "held": ("owner", "cars"),
    "places": ("county", "tract"),
    "everyone": (),
}


def small(records: int = 300) -> pl.DataFrame:
    rows = np.arange(records)
    return pl.DataFrame(
        {
            "size": rows % 4,
            "owner": ["yes" if r % 3 else "no" for r in rows],
            "cars": rows // 7 % 5,
            "county": [f"c{r * r % 11 % 6}" for r in rows],
            "tract": rows // 2 % 3,
        }
    )


SWAP = PermutationSwap(match=("size",), swap=("county", "tract"), rate="0.4")


@pytest.mark.parametrize("dense", [1 << 22, 0], ids=["dense", "sparse"])
def test_every_measure_agrees_with_the_records(monkeypatch: pytest.MonkeyPatch, dense: int) -> None:
    monkeypatch.setattr(module, "DENSE", dense)
    frame, source = small(), TestSource(5)
    found = utility(SWAP, frame, TABLES, runs=3, random=source).to_polars()
    assert found.height == 3 * len(TABLES)
    prepared = SWAP.prepare(as_records(frame))
    for run in range(3):
        donors = SWAP.donors(prepared, source.child(STREAM, run))
        after = frame.with_columns(frame[name].gather(donors) for name in ("county", "tract"))
        for name, columns in TABLES.items():
            row = found.row(by_predicate=(pl.col("run") == run) & (pl.col("table") == name), named=True)
            if columns:
                for measure, value in compare_tables(frame, after, columns).record().items():
                    assert row[measure] == pytest.approx(value, abs=1e-7), (name, measure)
            moved = [c for c in columns if c in ("county", "tract")]
            held = [c for c in columns if c in ("owner", "cars")]
            if moved and held:
                assert row["association_true"] == pytest.approx(cramers_v(frame, moved, held))
                assert row["association_protected"] == pytest.approx(cramers_v(after, moved, held))
                assert row["association_lost"] == pytest.approx(
                    cramers_v(frame, moved, held) - cramers_v(after, moved, held)
                )
            else:
                assert row["association_true"] is row["association_lost"] is None


def test_invariant_tables_have_no_error() -> None:
    found = utility(
        SWAP, small(), {"hold": ("size", "owner", "cars"), "swap": ("size", "county", "tract")}, 2
    )
    rows = found.to_polars()
    for measure in ("mean_absolute", "mape", "false_zeros", "false_nonzeros", "q100"):
        assert rows[measure].to_list() == [0, 0, 0, 0]


def test_a_certain_swap_of_two_turns_every_cell_over() -> None:
    frame = pl.DataFrame({"owner": [0, 1], "county": ["a", "b"]})
    psa = PermutationSwap(match=(), swap=("county",), rate=1, allow_infinite_loss=True)
    row = utility(psa, frame, {"t": ("county", "owner")}, 1, TestSource(0)).to_polars().row(0, named=True)
    assert (row["false_zeros"], row["false_nonzeros"], row["cells"]) == (2, 2, 4)
    assert (row["mape"], row["mean_absolute"], row["hellinger"]) == (1.0, 1.0, 1.0)
    assert row["association_true"] == row["association_protected"] == pytest.approx(1)


def test_runs_differ_are_reproducible_and_are_not_those_of_a_release() -> None:
    frame, tables = small(), {"owners": ("county", "owner")}
    first = utility(SWAP, frame, tables, 4, TestSource(2)).to_polars()
    assert first.equals(utility(SWAP, frame, tables, 4, TestSource(2)).to_polars())
    assert first["mape"].n_unique() > 1
    released = SWAP.release(frame, TestSource(2)).products["households"]
    assert compare_tables(frame, released, tables["owners"]).mape not in first["mape"].to_list()


def test_summary_is_taken_over_the_runs_of_each_table() -> None:
    found = utility(SWAP, small(), {"b": ("county", "owner"), "a": ("county", "cars")}, 5, TestSource(8))
    summary, rows = found.summary(), found.to_polars()
    for name in ("a", "b"):
        runs = rows.filter(pl.col("table") == name)["mape"].to_numpy()
        row = summary.row(by_predicate=(pl.col("table") == name) & (pl.col("measure") == "mape"), named=True)
        assert row["mean"] == pytest.approx(runs.mean())
        assert row["standard_deviation"] == pytest.approx(runs.std(ddof=1))
        assert (row["least"], row["largest"]) == (runs.min(), runs.max())
    assert set(summary["measure"]) == set(rows.columns) - {"run", "table"}


def test_printed_result_says_that_it_is_confidential() -> None:
    found = utility(SWAP, small(), {"owners": ("county", "owner")}, 1)
    for text in (str(found), repr(found)):
        assert text.startswith("CONFIDENTIAL, internal use only")
    assert found.to_arrow().num_rows == found.to_pandas().shape[0] == 1


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InputError, match="nothing to measure"):
        utility(SWAP, small(), {"owners": ("county", "owner")}, runs=0)
    with pytest.raises(InputError, match="nothing to measure"):
        utility(SWAP, small(), {}, runs=1)
    with pytest.raises(UnknownName, match="no role in the swap"):
        utility(SWAP, small(), {"owners": ("county", "income")}, runs=1)


def test_missing_values_are_a_level_of_their_own() -> None:
    frame = small().with_columns(pl.when(pl.col("cars") > 0).then("cars"))
    psa = PermutationSwap(match=("size",), swap=("county", "tract"), rate="0.4", missing="level")
    found = utility(psa, frame, {"cars": ("cars",)}, 1, TestSource(1)).to_polars()
    assert found["cells"].to_list() == [5]
    with pytest.raises(InputError, match="missing values"):
        utility(SWAP, frame, {"cars": ("cars",)}, 1)


def test_imputed_records_stay_where_they_are() -> None:
    frame = small().with_columns(flag=pl.col("cars") > 0)
    psa = PermutationSwap(match=("size",), swap=("county", "tract"), rate="0.9", imputed="flag")
    donors_moved = utility(psa, frame, {"flags": ("county", "tract", "owner", "flag")}, 3, TestSource(4))
    assert donors_moved.to_polars()["mean_absolute"].min() > 0  # type: ignore[operator]
    kept = frame.filter("flag")
    after = psa.release(frame, TestSource(4)).products["households"].filter("flag")
    assert compare_tables(kept, after, ("county", "tract", "owner", "size")).mean_absolute == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=12))
def test_compare_counts_agrees_with_compare_tables(pairs: list[tuple[int, int]]) -> None:
    true, protected = (np.array(side) for side in zip(*pairs, strict=True))
    cells = pl.DataFrame({"cell": np.arange(len(pairs))})
    frames = [
        cells.select(pl.col("cell").repeat_by(pl.Series(n)).explode()).drop_nulls() for n in (true, protected)
    ]
    if not true.sum() or not protected.sum():
        assert compare_counts(true, protected).hellinger == float(true.sum() != protected.sum())
        return
    expected = compare_tables(*frames, ("cell",)).record()
    for measure, value in compare_counts(true, protected).record().items():
        assert value == pytest.approx(expected[measure], abs=1e-7), measure


def test_table_after_keeps_both_margins_and_needs_no_release() -> None:
    frame = small()
    prepared = SWAP.prepare(as_records(frame))
    county, owner = code_columns(frame, ("county",)), code_columns(frame, ("owner",))
    before = np.zeros((county.count, owner.count), dtype=np.int64)
    np.add.at(before, (county.values, owner.values), 1)
    after = table_after(prepared, county, owner, Fraction(2, 5), TestSource(9))
    assert (after.sum(axis=0) == before.sum(axis=0)).all()
    assert (after.sum(axis=1) == before.sum(axis=1)).all()
    assert (after != before).any()
    assert (table_after(prepared, county, owner, Fraction(0), TestSource(9)) == before).all()


def test_a_large_stratum_loses_the_swapped_share_of_its_association() -> None:
    """Selected records take places at random: the deviation from independence shrinks by 1 - p."""
    frame = pl.DataFrame({"owner": np.arange(40_000) % 2, "county": np.arange(40_000) % 2})
    for percent in (10, 50, 90):
        psa = PermutationSwap(match=(), swap=("county",), rate=Fraction(percent, 100))
        rows = utility(psa, frame, {"t": ("county", "owner")}, 5, TestSource(percent)).to_polars()
        kept = float(np.mean(rows["association_protected"].to_numpy()))
        assert kept == pytest.approx(1 - percent / 100, abs=4 / math.sqrt(5 * 40_000))


def test_error_grows_with_the_rate_on_massachusetts() -> None:
    frame, means = households(), []
    for percent in (1, 10, 50):
        psa = PermutationSwap(
            match=("state", "household_size"), swap=("county",), rate=Fraction(percent, 100)
        )
        found = utility(psa, frame, {"owners": ("county", "ownership")}, 2, TestSource(percent)).summary()
        means.append(dict(found.select("measure", "mean").iter_rows()))
    for measure in ("mape", "mean_absolute", "hellinger", "association_lost", "q50"):
        values = [row[measure] for row in means]
        assert values == sorted(values) and values[0] < values[-1], measure
    assert means[0]["association_true"] == pytest.approx(0.2025, abs=1e-4)
