"""Threats 10 to 14: errors, odd values, keys, metadata and missing bounds.

Numbers are those of the page on threats in the documentation.
"""

from __future__ import annotations

import json
import math
import traceback
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from ledger.common import pure
from support.patterns import hamming
from support.protocol import guaranteed
from support.release_case import MECHANISMS, new_ledger, write_case
from support.releasing import run_release
from support.threats import LEVELS, PEOPLE, TWIN, Counted, X, county

from stirred.errors import InputError, StirredError
from stirred.noise import TestSource, discrete_gaussian, discrete_laplace
from stirred.release import Plan, job_of
from stirred.spec import Budget, Count, Exact, Schema, change_unit
from stirred.spec.blocks.invariant import implied_by
from stirred.spec.calculus.closed_form import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from stirred.swap import PermutationSwap, Records, VariableRate, universe
from stirred.swap.enumeration import stratum_outcomes
from stirred.topdown import Allocation, Cells

SENTINEL = "Wq-secret-zq"


def said(act: Callable[[], object]) -> tuple[str, str]:
    """How an act ends: the kind of its end and all that is said about it, traceback included."""
    try:
        act()
    except StirredError as error:
        return type(error).__name__, f"{error}\n{error!r}\n{json.dumps(error.as_dict())}"
    except Exception as error:
        return f"passed through: {type(error).__name__}", "".join(traceback.format_exception(error))
    return "released", ""


def spoiled(frame: pl.DataFrame, column: str, value: Any) -> pl.DataFrame:
    """The frame with another value in one record, in a column that takes it."""
    values = [*frame[column].to_list()[:-1], value]
    kind = pl.List(pl.String) if isinstance(value, list) else None
    if kind is not None:
        values = [value] * frame.height
    return frame.with_columns(pl.Series(column, values, dtype=kind, strict=False))


HOMES = pl.DataFrame(
    {"id": [f"h{i}" for i in range(8)], "m": [1, 2] * 4, "h": ["a", "b", "b", "a"] * 2, "s": ["n", "e"] * 4}
)


CODES = Schema.of(m=(1, 2), h=("a", "b"), s=("n", "e"))


def swap_homes(frame: pl.DataFrame, source: TestSource) -> object:
    mechanism = PermutationSwap(match=("m",), swap=("s",), hold=("h",), rate="1/2", codebook=CODES)
    return mechanism.release(Records.of(frame, id="id"), source)


def count_people(frame: pl.DataFrame, source: TestSource) -> object:
    return county().release(frame, source)


PATHOLOGIES: dict[str, Callable[[str], Any]] = {
    "outside": lambda secret: secret,
    "huge": lambda secret: secret * 10_000,
    "null": lambda _: None,
    "number": lambda secret: len(secret) * 1000 + 987_654_321_001,
    "negative": lambda secret: -len(secret) - 987_654_321_001,
    "nan": lambda _: math.nan,
    "infinite": lambda _: math.inf,
    "list": lambda secret: [secret],
    "control": lambda secret: f"\x00\n{secret}\ud7ff",
}


TABLES = {
    "swap": (HOMES, ("id", "m", "h", "s"), swap_homes),
    "topdown": (X, ("block", "sex", "age"), count_people),
}


FUZZ = [
    (m, column, kind) for m, (_, columns, _) in TABLES.items() for column in columns for kind in PATHOLOGIES
]


@pytest.mark.parametrize(("mechanism", "column", "kind"), FUZZ)
def test_threat_10_two_secrets_end_alike_and_are_not_said(mechanism: str, column: str, kind: str) -> None:
    frame, _, act = TABLES[mechanism]
    ends = []
    for secret in (SENTINEL, f"{SENTINEL}-other-one"):
        bad = spoiled(frame, column, PATHOLOGIES[kind](secret))
        ends.append(said(lambda bad=bad: act(bad, TestSource(1))))
    assert ends[0] == ends[1]
    assert SENTINEL not in ends[0][1] and "987" not in ends[0][1]
    assert not ends[0][0].startswith("passed through"), ends[0][1][-400:]


@pytest.mark.parametrize("column", ["block", "sex"])
def test_threat_10_who_is_at_fault_is_not_said(column: str) -> None:
    """TopDown says how many records lie outside its domain: nothing of which, where or what they are."""
    ends = []
    for rows in (X, X.reverse(), TWIN):
        ends.append(said(lambda rows=rows: count_people(spoiled(rows, column, SENTINEL), TestSource(1))))
    assert ends[0] == ends[1] == ends[2] and ends[0][0] == "InputError"


@pytest.mark.parametrize("kind", ["repeated identifier", "no record", "absent column"])
def test_threat_10_tables_of_another_shape_end_alike(kind: str) -> None:
    change: dict[str, Callable[[pl.DataFrame], pl.DataFrame]] = {
        "repeated identifier": lambda f: pl.concat([f, f.tail(1)]),
        "no record": lambda f: f.head(0),
        "absent column": lambda f: f.drop("h"),
    }
    ends = []
    for secret in (SENTINEL, f"{SENTINEL}-other"):
        bad = change[kind](HOMES.with_columns(id=pl.lit(secret) + pl.col("id")))
        ends.append(said(lambda bad=bad: swap_homes(bad, TestSource(1))))
    assert ends[0] == ends[1] and ends[0][0] != "released"
    assert SENTINEL not in ends[0][1]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf], ids=str)
@pytest.mark.parametrize(
    ("mechanism", "column"),
    [("swap", "m"), ("swap", "h"), ("swap", "s")] + [("topdown", c) for c in X.columns],
)
def test_threat_11_what_is_not_a_level_is_refused_before_anything_is_drawn(
    mechanism: str, column: str, value: float | None
) -> None:
    frame, _, act = TABLES[mechanism]
    numbers = frame if value is None else frame.with_columns(pl.lit(1.0).alias(column))
    source = Counted(1)
    with pytest.raises(InputError):
        act(spoiled(numbers, column, value), source)
    assert source.drawn == []


@pytest.mark.parametrize("value", [None, math.nan, math.inf], ids=str)
@pytest.mark.parametrize("column", ["m", "h", "s"])
def test_threat_11_where_missing_is_a_level_it_is_one_of_its_own(column: str, value: float | None) -> None:
    """Without a codebook: the exact tables have the same keys in the output, the odd one included."""
    rows = {"m": [1.0, 2.0] * 8, "h": [1.0, 2.0, 2.0, 1.0] * 4, "s": [float(i % 4) for i in range(16)]}
    rows[column] = [*rows[column][:-4], *[value] * 4]  # type: ignore[list-item]
    frame = pl.DataFrame(rows, schema=dict.fromkeys("mhs", pl.Float64))
    mechanism = PermutationSwap(match=("m",), swap=("s",), hold=("h",), rate="1/2", missing="level")
    made = mechanism.release(frame, TestSource(2)).products["households"]
    for names in (["m", "h"], ["m", "s"]):
        before, after = (f.group_by(names).len().sort(names, nulls_last=True) for f in (frame, made))
        assert before.equals(after)
    if value is None:
        refusing = PermutationSwap(match=("m",), swap=("s",), hold=("h",), rate="1/2")
        with pytest.raises(InputError, match="missing values"):
            refusing.release(frame, TestSource(2))


def test_threat_12_topdown_lists_every_key_whoever_is_there() -> None:
    mechanism = county(100)
    tables = []
    for data, seed in ((X, 1), (TWIN, 2)):
        made = mechanism.release(data, TestSource(seed)).products["person"]
        keys = [made.table(level, q).drop("count") for level in LEVELS for q in ("total", "sex", "detailed")]
        tables.append([key.rows() for key in keys])
    assert tables[0] == tables[1]
    assert len(tables[0][-1]) == 4 * 4
    assert X.filter(pl.col("block") == "d").height == 1


def test_threat_12_swapped_keys_are_those_of_the_invariants_and_others_come_out_by_chance() -> None:
    """In a universe, a cell that only one data set has can come out of the other, and be missing in both."""
    here = (("key", "owner", "north"), ("key", "renter", "south"), ("key", "renter", "west"))
    datasets = universe(here)
    rare = ("owner", "north")
    having = [d for d in datasets if any(r[1:] == rare for r in d)]
    lacking = [d for d in datasets if d not in having]
    assert having and lacking and min(hamming(having[0], d) for d in lacking) == 2
    keys = [
        {frozenset(output) for output in stratum_outcomes([r[1:] for r in data], Fraction(1, 5))}
        for data in (having[0], lacking[0])
    ]
    assert keys[0] == keys[1]
    assert {rare in key for key in keys[0]} == {True, False}


def test_threat_12_swapping_does_not_hide_the_keys_of_its_invariants() -> None:
    """Deleting the only owner of a stratum leaves the universe: the exact tables show it, as is declared."""
    frame = pl.DataFrame({"m": [1] * 5, "h": ["owner"] + ["renter"] * 4, "s": [1, 2, 3, 1, 2]})
    mechanism = PermutationSwap(match=("m",), swap=("s",), rate="1/2")
    multiverse = guaranteed(mechanism, frame).multiverse
    exact = Count(unit="household", by=("m", "h"))
    assert implied_by(exact, multiverse.invariants)
    made = [mechanism.release(f, TestSource(1)).products["households"] for f in (frame, frame.tail(4))]
    assert [set(m["h"]) for m in made] == [{"owner", "renter"}, {"renter"}]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_threat_13_specification_and_codebook_are_the_same_within_a_universe(
    mechanism: str, tmp_path: Path
) -> None:
    told = []
    for number, twin in enumerate((False, True)):
        case = write_case(tmp_path / str(number), twin=twin)
        job = job_of(Plan.load(case / f"{mechanism}.yaml"), case)
        folder = tmp_path / f"out{number}"
        folder.mkdir()
        published = job.publish(job.finish(job.draw(TestSource(number), folder), job.prepared.public), folder)
        columns = {file.path: (file.title, file.columns, file.uncertainty) for file in published.files}
        told.append((job.specification().to_json(), job.facts(), columns))
    assert told[0] == told[1]


def test_threat_13_topdown_states_its_guarantee_without_any_records(tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    (case / "persons.parquet").unlink()
    job = job_of(Plan.load(case / "topdown.yaml"), case)
    assert job.specification().budget.amount == Exact.of(1)
    assert job.facts().expected


def test_threat_13_levels_that_only_the_confidential_file_knows_are_not_published(tmp_path: Path) -> None:
    """An enumerated type lists levels that no record has; the codebook of the plan does not."""
    case = write_case(tmp_path / "case")
    homes = pl.read_parquet(case / "households.parquet")
    listed = pl.Enum(["owned", "rented", SENTINEL])
    homes.with_columns(pl.col("tenure").cast(listed)).write_parquet(case / "households.parquet")
    ledger = new_ledger(tmp_path / "ledger.db", case, ["swap"])
    run_release(case / "swap.yaml", tmp_path / "out", ledger)
    public = [p for p in (tmp_path / "out" / "public").rglob("*") if p.is_file()]
    assert public and not [p.name for p in public if SENTINEL.encode() in p.read_bytes()]


NOT_A_SCALE = [0, -1, None, math.inf, -math.inf, math.nan, 0.5, True, "1"]


@pytest.mark.parametrize("value", NOT_A_SCALE, ids=repr)
def test_threat_14_noise_without_a_positive_exact_scale_is_refused(value: Any) -> None:
    source = Counted(1)
    for draw in (discrete_gaussian, discrete_laplace):
        with pytest.raises(InputError):
            draw(source, value, 3)
    assert source.drawn == []


@pytest.mark.parametrize("value", [0, -1, None, math.inf, math.nan], ids=repr)
def test_threat_14_budgets_rates_and_scales_that_are_no_bound_are_refused(value: Any) -> None:
    cells = Cells(PEOPLE)
    halves = {"county": "1/2", "block": "1/2"}
    makers: dict[str, Callable[[], object]] = {
        "rho": lambda: Allocation.of(cells, value, halves, {"detailed": 1}),
        "share of a level": lambda: Allocation.of(cells, 1, {"county": 1, "block": value}, {"detailed": 1}),
        "share of a query": lambda: Allocation.of(cells, 1, halves, {"detailed": 1, "total": value}),
        "swap rate": lambda: PermutationSwap(match=(), swap=("s",), rate=value),
        "variable rate": lambda: VariableRate.of(("m",), {1: value}, "1/2"),
        "other rate": lambda: VariableRate.of(("m",), {1: "1/2"}, value),
        "unit": lambda: change_unit(pure(1), pure(1).input_premetric, value, "reason"),
    }
    makers |= {
        law.__name__: lambda law=law: law(value)
        for law in (Laplace, DiscreteLaplace, Gaussian, DiscreteGaussian)
    }
    for make_one in makers.values():
        with pytest.raises(StirredError):
            make_one()


@pytest.mark.parametrize("value", [-1, None, math.nan, "much"], ids=repr)
def test_threat_14_a_budget_is_a_number_of_at_least_zero(value: Any) -> None:
    for maker in (
        lambda: Budget.epsilon(value),
        lambda: Budget.zcdp(rho_squared=value),
        lambda: Budget.gdp(mu=value),
    ):
        with pytest.raises(InputError):
            maker()
