"""The embedded households of 1940, and the paper's demonstration on them."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

from stirred.casebook import Recomputed, reproduce
from stirred.casebook.massachusetts_1940 import COUNTIES, SIZES, TABLE_1, households, share_out, size_table
from stirred.casebook.swapped_1940 import FIGURE_1_RATES, SWAP, figure_1, table_1
from stirred.data import cramers_v, tabulate
from stirred.errors import InputError
from stirred.noise import TestSource
from stirred.swap import PermutationSwap

PUBLISHED = {
    "Barnstable": (7461, 3825, 11286),
    "Berkshire": (14736, 18417, 33153),
    "Bristol": (33747, 63931, 97678),
    "Dukes": (1207, 534, 1741),
    "Essex": (53936, 81300, 135236),
    "Franklin": (7433, 6442, 13875),
    "Hampden": (30597, 58166, 88763),
    "Hampshire": (9427, 8630, 18057),
    "Middlesex": (104144, 147687, 251831),
    "Nantucket": (593, 432, 1025),
    "Norfolk": (44885, 40285, 85170),
    "Plymouth": (24857, 23882, 48739),
    "Suffolk": (49656, 176553, 226209),
    "Worcester": (53126, 78535, 131661),
    "Total": (435805, 708619, 1144424),
}
PAPER_OWNED_SWAPPED = {
    "Barnstable": 5907,
    "Berkshire": 13770,
    "Bristol": 35537,
    "Dukes": 946,
    "Essex": 52631,
    "Franklin": 6337,
    "Hampden": 32267,
    "Hampshire": 8145,
    "Middlesex": 100372,
    "Nantucket": 471,
    "Norfolk": 38566,
    "Plymouth": 21549,
    "Suffolk": 67357,
    "Worcester": 51950,
}


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return households()


@pytest.fixture(scope="module")
def swapped() -> Recomputed:
    return table_1(TestSource(1940))


def test_county_by_ownership_is_table_1(frame: pl.DataFrame) -> None:
    counted = {(c, o): n for c, o, n in tabulate(frame, ("county", "ownership")).iter_rows()}
    expected = {
        (c, o): n
        for c, row in PUBLISHED.items()
        if c != "Total"
        for o, n in zip(("owned", "rented"), row, strict=False)
    }
    assert counted == expected
    assert dict(TABLE_1) == {c: row[:2] for c, row in PUBLISHED.items() if c != "Total"}
    assert frame.height == 1_144_424
    assert frame["state"].unique().to_list() == ["Massachusetts"]


def test_two_person_households_are_the_largest_stratum(frame: pl.DataFrame) -> None:
    sizes = dict(tabulate(frame, ("household_size",)).iter_rows())
    assert sizes[2] == 264_331
    assert all(count < 264_331 for size, count in sizes.items() if size != 2)
    assert tuple(sizes) == SIZES
    psa = PermutationSwap(match=("state", "household_size"), swap=("county",), rate="0.05")
    assert psa.prepare(frame).report.largest_stratum == 264_331


def test_households_are_the_same_every_time(frame: pl.DataFrame) -> None:
    assert households().equals(frame)


def test_sizes_look_like_1940(frame: pl.DataFrame) -> None:
    mean = frame["household_size"].mean()
    assert isinstance(mean, float) and 3.5 < mean < 4.0
    by_owner = dict(
        frame.group_by(pl.col("ownership").cast(pl.String)).agg(pl.col("household_size").mean()).iter_rows()
    )
    assert by_owner["owned"] > by_owner["rented"]
    assert 0.02 < cramers_v(frame, ("household_size",), ("ownership",)) < 0.1
    assert 0.003 < cramers_v(frame, ("household_size",), ("county",)) < 0.1
    assert 0.2 < cramers_v(frame, ("county",), ("ownership",)) < 0.21


def test_size_table_has_every_size_everywhere() -> None:
    counts = size_table()
    assert counts.shape == (len(COUNTIES), 2, len(SIZES))
    assert counts.min() >= 1
    assert counts.sum(axis=2).tolist() == [list(TABLE_1[county]) for county in COUNTIES]


@pytest.mark.parametrize(("total", "weights"), [(7, [1, 2, 3]), (0, [5, 5]), (1, [3, 3, 4]), (100, [0, 1])])
def test_share_out_is_within_one_of_the_quota_and_adds_up(total: int, weights: Sequence[int]) -> None:
    shares = share_out(total, np.array(weights))
    assert shares.sum() == total
    for share, weight in zip(shares, weights, strict=True):
        assert abs(share - Fraction(total * weight, sum(weights))) < 1


def test_swapped_table_1_keeps_county_and_ownership_totals(swapped: Recomputed) -> None:
    assert {row["county"]: (row["owned"], row["rented"], row["total"]) for row in swapped.rows} == PUBLISHED
    for row in swapped.rows:
        assert row["owned_swapped"] + row["rented_swapped"] == row["total_swapped"] == row["total"]
    assert tuple(swapped.rows[-1].values()) == ("Total", 435805, 708619, 1144424, 435805, 708619, 1144424)
    assert any(row["owned_swapped"] != row["owned"] for row in swapped.rows)


def test_swapped_table_1_is_near_the_instantiation_of_the_paper(swapped: Recomputed) -> None:
    after = {row["county"]: row["owned_swapped"] for row in swapped.rows}
    for county, owned in PAPER_OWNED_SWAPPED.items():
        assert abs(after[county] - owned) < 0.01 * owned + 4 * owned**0.5, county


def test_the_swap_of_table_1_promises_the_last_loss_of_table_2(frame: pl.DataFrame) -> None:
    promised = SWAP.release(frame, TestSource(1)).specification.budget.linear()
    assert float(promised) == reproduce("table-2").rows[-1]["epsilon"]


def test_figure_1_error_grows_with_the_rate_up_to_that_of_the_papers_table() -> None:
    shown = figure_1(runs=2, rates=("0.01", "0.1", "0.3", "0.5"), random=TestSource(1940))
    assert [row["rate"] for row in shown.rows] == [0.01, 0.1, 0.3, 0.5]
    means = [sum(row["errors"]) / len(row["errors"]) for row in shown.rows]
    assert means == sorted(means) and means[0] > 0
    assert [row["median"] for row in shown.rows] == pytest.approx(means)
    assert all((row["least"], row["largest"]) == tuple(sorted(row["errors"])) for row in shown.rows)
    pairs = [(PUBLISHED[c], owned) for c, owned in PAPER_OWNED_SWAPPED.items()]
    paper = sum(abs(t[0] - o) / t[0] + abs(t[0] - o) / t[1] for t, o in pairs) / (2 * len(pairs))
    assert means[-1] == pytest.approx(paper, abs=0.01)


def test_figure_2_has_its_diamonds_at_the_least_loss() -> None:
    rows = {row["largest_stratum"]: row for row in reproduce("figure-2").rows}
    assert (round(rows[10]["rate"], 2), round(rows[10]["epsilon"], 2)) == (0.77, 1.20)
    assert (round(rows[1_000_000]["rate"], 3), round(rows[1_000_000]["epsilon"], 2)) == (0.999, 6.91)
    for row in rows.values():
        assert row["epsilon"] - 1e-9 <= min(loss for _, loss in row["curve"]) < row["epsilon"] + 0.05


@pytest.mark.parametrize(
    "wrong", [{"runs": 0}, {"rates": ()}, {"rates": ("0",)}, {"rates": ("0.5", "1")}], ids=str
)
def test_figure_1_refuses_no_runs_and_rates_out_of_range(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError):
        figure_1(**wrong)  # type: ignore[arg-type]


@pytest.mark.slow
def test_figure_1_in_full() -> None:
    rows = figure_1(runs=20, random=TestSource(3)).rows
    assert tuple(row["rate"] for row in rows) == tuple(map(float, FIGURE_1_RATES))
    assert all(len(row["errors"]) == 20 for row in rows)
    means = [float(np.mean(row["errors"])) for row in rows]
    assert all(later > earlier for earlier, later in zip(means, means[5:], strict=False))
    assert max(float(np.std(row["errors"])) for row in rows) < 0.005
