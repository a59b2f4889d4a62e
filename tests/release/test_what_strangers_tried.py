"""Plans that strangers got past the gates: each is refused now, before anything is paid."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from support.release_case import new_ledger, plan_of, write_case, write_plan
from support.releasing import run_release

from stirred.data import read_table
from stirred.errors import InputError
from stirred.release import Plan, job_of


def test_an_identifier_with_one_duplicate_is_an_identifier(tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    homes = pl.read_parquet(case / "households.parquet")
    phones = [f"555-{n:04}" for n in range(homes.height)]
    phones[1] = phones[0]
    homes.with_columns(phone=pl.Series(phones)).write_parquet(case / "households.parquet")
    plan = plan_of("swap", hold=["tenure", "phone"], codebook=None, persons=None)
    path = write_plan(case / "swap.yaml", plan)
    with pytest.raises(InputError, match="the column phone is different in"):
        job_of(Plan.load(path), case).require_presentable()
    ledger = new_ledger(tmp_path / "ledger.db", case, ["swap"])
    with pytest.raises(InputError, match=r"phone|determine"):
        run_release(path, tmp_path / "out", ledger)


def test_whether_a_release_exists_does_not_depend_on_the_link_that_swapping_hides(tmp_path: Path) -> None:
    """Where nothing was said of nesting, a block that determines the tenure stopped the release."""
    case = write_case(tmp_path / "case")
    plan = plan_of("swap")
    del plan["mechanism"]["nesting"]
    with pytest.raises(InputError, match="does not say which places lie in others"):
        job_of(Plan.load(write_plan(case / "silent.yaml", plan)), case)


def test_a_unit_that_is_only_counted_does_not_publish_the_records_of_a_protected_one(tmp_path: Path) -> None:
    case = write_case(tmp_path / "case")
    plan = plan_of("topdown")
    person = plan["mechanism"]["units"]["person"]
    twin = {"file": "./persons.parquet", "schema": person["schema"]}
    exact = {"kind": "invariant", "count": {"unit": "resident", "by": ["block", "sex", "age"]}}
    changed = plan_of("topdown", units={"person": person, "resident": twin}, constraints=[exact])
    with pytest.raises(InputError, match="resident is only counted, in the file of person"):
        _ = job_of(Plan.load(write_plan(case / "twin.yaml", changed)), case).specification()


def test_whether_a_csv_can_be_read_does_not_depend_on_the_order_of_its_rows(tmp_path: Path) -> None:
    lines = [*["1"] * 150, "a"]
    for number, rows in enumerate((lines, lines[::-1])):
        path = tmp_path / f"{number}.csv"
        path.write_text("\n".join(["code", *rows]) + "\n", encoding="utf-8")
        assert read_table(path)["code"].sort().to_list() == sorted(lines)
