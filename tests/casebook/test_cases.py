"""The table of cases: numbers until they are shown, and a note wherever a published figure differs."""

from __future__ import annotations

import json
from numbers import Real

import pytest

from stirred.casebook import CASES, Case, Recomputed, case_named, reproduce
from stirred.errors import InputError, UnknownName

QUICK = ("table-2", "table-3", "table-4", "table-5", "figure-2", "like-2010", "duplicated-record")


def test_every_table_and_figure_of_the_paper_is_listed() -> None:
    assert set(CASES) == {"table-1", "figure-1", *QUICK}
    assert all(name == case.name and case.source and case.shows for name, case in CASES.items())
    assert [case.name for case in CASES.values() if case.draw] == ["figure-1", "figure-2"]
    assert [case.name for case in CASES.values() if case.runs] == ["figure-1"]


@pytest.mark.parametrize("name", QUICK)
def test_published_figures_follow_or_a_note_says_so(name: str) -> None:
    """To the digits that are printed."""
    found = reproduce(name)
    for row in found.rows:
        for key in row:
            if f"published_{key}" not in row or row[f"published_{key}"] is None:
                continue
            pairs = row[key], row[f"published_{key}"]
            parts = zip(*pairs, strict=True) if isinstance(row[key], tuple) else [pairs]
            for computed, published in parts:
                told = any(
                    f"ε = {computed:.2f}; the paper prints {published}" in note for note in found.notes
                )
                assert (round(computed, 2) == published) != told


@pytest.mark.parametrize("name", QUICK)
def test_rows_hold_numbers_and_their_record_is_plain_json(name: str) -> None:
    case, found = CASES[name], reproduce(name)
    record = case.record(found)
    assert json.loads(json.dumps(record))["rows"] == json.loads(json.dumps([dict(row) for row in found.rows]))
    for column, form in case.columns.items():
        cells = [row[column] for row in found.rows if row[column] is not None]
        flat = [part for cell in cells for part in (cell if isinstance(cell, tuple) else (cell,))]
        assert all(isinstance(part, Real if form else str) for part in flat), column


def test_lines_are_formatted_once() -> None:
    made = Recomputed(({"n": 1234, "share": 0.5, "range": (1.0, 2.5), "why": ("a", "b"), "none": None},))
    columns = {"n": ",", "share": ".0%", "range": ".2f", "why": "", "none": ".2f"}
    case = Case("toy-1", "us", "A toy", lambda: made, columns)
    assert case.lines(case.again()) == [["1,234", "50%", "1.00 to 2.50", "a; b", ""]]
    assert case.title == "Toy 1. A toy"


def test_runs_are_for_simulations() -> None:
    with pytest.raises(InputError, match="not a simulation"):
        reproduce("table-2", runs=3)
    counted = Case("toy", "us", "A toy", lambda runs: Recomputed(({"runs": runs},)), runs=20)
    assert [counted.again(runs).rows[0]["runs"] for runs in (None, 3)] == [20, 3]


def test_an_unknown_name_gets_near_ones() -> None:
    with pytest.raises(UnknownName) as refusal:
        case_named("tabel-4")
    assert "table-4" in refusal.value.hint
    with pytest.raises(UnknownName) as refusal:
        case_named("zzz")
    assert "reproduce list" in refusal.value.hint
