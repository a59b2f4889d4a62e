"""A column that nobody named is never written, and an identifier is not written under any name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from support.releasing import TRIAL, reason_of, report_of, try_swap

from stirred.errors import InputError, Refusal, StirredError
from stirred.swap import PermutationSwap


def homes(count: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    return pl.DataFrame(
        {
            "id": rng.permutation(count),
            "size": rng.integers(1, 4, count),
            "county": rng.integers(0, 6, count),
            "rooms": rng.integers(1, 12, count),
            "phone": [f"555-{number:04}" for number in rng.permutation(count)],
        }
    )


def swap(**fields: object) -> PermutationSwap:
    given = {"match": ("size",), "swap": ("county",), "hold": ("rooms",), "rate": "1/2", "nesting": ()}
    return PermutationSwap(**given | fields)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    frame = homes()
    frame.write_parquet(tmp_path / "homes.parquet")
    rng = np.random.default_rng(6)
    persons = pl.DataFrame(
        {
            "id": [i for i in frame["id"] for _ in range(2)],
            "sex": rng.integers(0, 2, 600),
            "passport": [f"P{n}" for n in rng.permutation(600)],
            "diary": ["dear diary"] * 600,
        }
    )
    persons.write_parquet(tmp_path / "persons.parquet")
    return tmp_path


def written(folder: Path, mechanism: PermutationSwap, **arguments: object) -> list[str]:
    try_swap(mechanism, folder / "homes.parquet", folder / "out", id="id", **arguments)  # type: ignore[arg-type]
    files = sorted((folder / "out").rglob("*.parquet"))
    assert {path.parent for path in files} == {folder / "out" / "internal" / "microdata"}
    return [c for path in files for c in pl.read_parquet(path).columns]


def test_a_run_without_a_ledger_is_a_trial_and_says_so_everywhere(folder: Path) -> None:
    done = try_swap(swap(), folder / "homes.parquet", folder / "out", id="id")
    manifest = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["publishable"], manifest["reason"]) == (False, TRIAL)
    assert (done.publishable, reason_of(done)) == (False, TRIAL)
    report = report_of(folder / "out")["release"]
    assert (report["publishable"], report["reason"]) == (False, TRIAL)
    for page in ("report.html", "report-internal.html", "report.md"):
        assert TRIAL in (folder / "out" / "internal" / page).read_text(encoding="utf-8")


def test_a_column_that_nobody_named_is_never_written(folder: Path) -> None:
    with pytest.raises(InputError, match="nobody named") as caught:
        written(folder, swap(hold=None))
    assert caught.value.field == "hold"
    assert "--hold" in caught.value.hint
    assert written(folder, swap()) == ["size", "county", "rooms", "id"]


def test_persons_are_written_with_named_columns_alone(folder: Path) -> None:
    with pytest.raises(InputError, match="nobody named the columns of persons") as caught:
        written(folder, swap(), persons=folder / "persons.parquet")
    assert "--hold-person" in caught.value.hint
    assert not (folder / "out").exists()
    columns = written(
        folder, swap(), persons=folder / "persons.parquet", hold_persons=["sex"], accept="a test"
    )
    assert columns == ["size", "county", "rooms", "id", "id", "sex"]


@pytest.mark.parametrize(
    ("roles", "arguments", "name"),
    [
        ({"hold": ("rooms", "phone")}, {}, "phone"),
        ({"swap": ("county", "phone")}, {}, "phone"),
        ({}, {"persons": "persons.parquet", "hold_persons": ["sex", "passport"]}, "passport"),
    ],
)
def test_a_column_that_is_unique_per_record_is_refused(
    folder: Path, roles: dict[str, object], arguments: dict[str, object], name: str
) -> None:
    given = arguments | ({"persons": folder / "persons.parquet"} if "persons" in arguments else {})
    with pytest.raises(InputError, match=f"the column {name} is different in") as caught:
        written(folder, swap(**roles), **given)
    assert "identifier" in caught.value.hint
    assert not (folder / "out").exists()


def test_a_match_that_is_unique_per_record_leaves_every_record_alone(folder: Path) -> None:
    with pytest.raises(Refusal, match="determine more than 1% of the households"):
        written(folder, swap(match=("phone",)))


@pytest.mark.parametrize(
    ("values", "unique"),
    [
        ([None] * 150 + [f"x{i}" for i in range(150)], True),
        ([None] * 151 + [f"x{i}" for i in range(149)], False),
        (["x0"] + [f"x{i}" for i in range(299)], True),
        (["x0"] * 15 + [f"x{i}" for i in range(285)], True),
        (["x0"] * 16 + [f"x{i}" for i in range(284)], False),
    ],
)
def test_when_a_column_identifies(folder: Path, values: list[str | None], unique: bool) -> None:
    """Nineteen in twenty of the values that are there differ, and they are there for half of the records."""
    homes().with_columns(phone=pl.Series(values)).write_parquet(folder / "homes.parquet")
    mechanism = swap(hold=("rooms", "phone"), missing="level")
    if unique:
        with pytest.raises(InputError, match="identifies"):
            written(folder, mechanism)
    else:
        assert "phone" in written(folder, mechanism)


def test_a_file_that_swapping_leaves_unchanged_is_refused(folder: Path) -> None:
    """Every record alone in its stratum: epsilon is 0 and the file comes out as it went in."""
    frame = homes().with_columns(size=pl.int_range(300) // 2 * 2 + pl.int_range(300) % 2 * 1000)
    frame = pl.concat([frame, frame.head(1)]).with_columns(id=pl.int_range(301))
    frame.write_parquet(folder / "homes.parquet")
    with pytest.raises(Refusal, match="determine more than 1% of the households") as caught:
        written(folder, swap())
    assert caught.value.exit_code == 3
    assert not (folder / "out").exists()
    written(folder, swap(), accept="a drill, nothing leaves")
    report = report_of(folder / "out")
    assert report["checklist"]["override"]["reason"] == "a drill, nothing leaves"
    assert "determined by the exact statistics" in report["checklist"]["sentence"]
    assert report["exposure"][0]["determined"] == 301


def test_columns_of_persons_need_persons(folder: Path) -> None:
    with pytest.raises(StirredError, match="there are no persons"):
        written(folder, swap(), hold_persons=["sex"])
