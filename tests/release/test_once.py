"""What a release does once: strata are formed, tables counted, bounds derived, files read."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.release_case import new_ledger, write_case

import stirred.release.kinds.swap.job as swap_job
import stirred.swap.primitive as primitive
import stirred.topdown.mechanism as topdown
from stirred.ledger import Ledger
from stirred.release import Plan, run
from stirred.swap.strata import Strata
from stirred.topdown import Plan as TopDownSettings


class Counting:
    """A function that counts its calls."""

    def __init__(self, function: Any) -> None:
        self.function, self.calls = function, []

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self.calls.append((arguments, options))
        return self.function(*arguments, **options)


@pytest.fixture
def case(tmp_path: Path) -> tuple[Path, Ledger]:
    folder = write_case(tmp_path / "case")
    return folder, new_ledger(tmp_path / "ledger.db", folder, ["swap", "topdown"])


def test_a_swap_forms_its_strata_once_and_counts_every_table_once(
    case: tuple[Path, Ledger], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ledger = case
    formed, counted = Counting(Strata.of), Counting(primitive.tabulate)
    plans, records = Counting(Plan.load.__func__), Counting(swap_job.Records.of)
    monkeypatch.setattr(Strata, "of", formed)
    monkeypatch.setattr(primitive, "tabulate", counted)
    monkeypatch.setattr(Plan, "load", classmethod(plans))
    monkeypatch.setattr(swap_job.Records, "of", records)
    made = run(folder / "swap.yaml", tmp_path / "out", ledger, audit=False)
    assert made.publishable
    assert len(formed.calls) == len(plans.calls) == len(records.calls) == 1
    # Each of the two tables is counted once of the swapped records, and once of the true ones to assess it.
    tables = Counter((id(frame), parts) for (frame, parts), _ in counted.calls)
    assert set(tables.values()) == {1} and len(tables) == 4
    assert Counter(parts for _, parts in tables) == {("block", "tenure"): 2, ("block", "size"): 2}


def test_topdown_derives_its_bounds_and_estimates_once(
    case: tuple[Path, Ledger], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, ledger = case
    bounds, estimated = Counting(topdown.Bounds), Counting(topdown.estimate)
    spines, read = Counting(TopDownSettings.mechanism), Counting(TopDownSettings.data)
    monkeypatch.setattr(topdown, "Bounds", bounds)
    monkeypatch.setattr(topdown, "estimate", estimated)
    monkeypatch.setattr(TopDownSettings, "mechanism", lambda self, *rest: spines(self, *rest))  # noqa: PLW0108
    monkeypatch.setattr(TopDownSettings, "data", lambda self, *rest: read(self, *rest))  # noqa: PLW0108
    assert run(folder / "topdown.yaml", tmp_path / "out", ledger, audit=False).publishable
    assert len(bounds.calls) == len(estimated.calls) == len(spines.calls) == len(read.calls) == 1
