"""No public byte tells more of the truth than the invariants: not a file, not the manifest, not the ledger.

Two data sets of one universe; primitive output, clock, identifiers and keys stand still. Whoever knows all
records but one, and everything that is public, rebuilds the digests for every candidate: all are the same.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.release_case import BLOCKS, MECHANISMS, FrozenSource, frozen_ledger, members, write_case
from support.releasing import run_release

from stirred.ledger import Ledger
from stirred.noise import Source, TestSource
from stirred.release import Plan, job_of
from stirred.release import audit as audit_plan
from stirred.release.job import Job
from stirred.release.kinds.swap.job import SwapJob
from stirred.release.kinds.topdown.job import TopDownJob

both = pytest.mark.parametrize("mechanism", MECHANISMS)
JOBS: dict[str, type[Any]] = {"swap": SwapJob, "topdown": TopDownJob}
FORMS = ("json", "jsonl", "csv", "head")


def released(case: Path, mechanism: str, truth: Path, audit: bool = False) -> tuple[Path, Ledger]:
    """Release the data of a case with the primitive output that the truth would give."""
    place = case.parent
    ledger = frozen_ledger(place / "ledger.db", case, [mechanism])
    drawn_from = job_of(Plan.load(truth / f"{mechanism}.yaml"), truth)
    own = JOBS[mechanism].draw
    plan = case / f"{mechanism}.yaml"
    record = audit_plan(plan, random=TestSource(3), draws=2_000) if audit else None
    with pytest.MonkeyPatch.context() as patch:

        def draw(self: Job, source: Source, folder: Path) -> Any:
            return own(drawn_from, source, folder)

        patch.setattr(JOBS[mechanism], "draw", draw)
        made = run_release(plan, place / "out", ledger, random=FrozenSource(5), audit=record)
    return made.folder, ledger


def public_bytes(folder: Path, ledger: Ledger) -> dict[str, bytes]:
    """Everything that anyone may see."""
    files = {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in (folder / "public").rglob("*")
        if p.is_file()
    }
    exports = {f"ledger.{form}": ledger.export(form).encode() for form in FORMS}  # type: ignore[arg-type]
    return files | exports | {"manifest.json": (folder / "manifest.json").read_bytes()}


@pytest.mark.parametrize("audit", [False, pytest.param(True, marks=pytest.mark.slow)])
@both
def test_every_public_byte_is_the_same_for_two_data_sets_of_one_universe(
    mechanism: str, audit: bool, tmp_path: Path
) -> None:
    one, two = write_case(tmp_path / "one" / "case"), write_case(tmp_path / "two" / "case", twin=True)
    first = public_bytes(*released(one, mechanism, one, audit=audit))
    second = public_bytes(*released(two, mechanism, one, audit=audit))
    assert first.keys() == second.keys()
    assert [name for name in first if first[name] != second[name]] == []
    names = {"manifest.json", "ledger.json", "ledger.csv", "public/report.html"}
    assert names | ({"public/audit.json"} if audit else set()) <= first.keys()


@both
def test_the_public_manifest_names_no_internal_file_and_the_seals_are_keyed(
    mechanism: str, tmp_path: Path
) -> None:
    case = write_case(tmp_path / "case")
    folder, ledger = released(case, mechanism, case)
    internal = [p for p in (folder / "internal").rglob("*") if p.is_file() and p.name != "seals.json"]
    everything = b"".join(public_bytes(folder, ledger).values())
    assert internal
    for path in internal:
        assert path.name.encode() not in (folder / "manifest.json").read_bytes()
        for name in ("sha256", "sha1", "md5", "blake2b", "sha512"):
            assert hashlib.new(name, path.read_bytes()).hexdigest().encode() not in everything
    seals = json.loads((folder / "internal" / "seals.json").read_text())
    assert seals["key"] is None
    assert set(seals["files"]) == {p.relative_to(folder).as_posix() for p in internal}
    for path in internal:
        assert hashlib.sha256(path.read_bytes()).hexdigest() not in seals["files"].values()


def neighbours(truth: Path, mechanism: str) -> list[pl.DataFrame]:
    """Data sets of the truth's universe, each one exchange or one changed record away from it."""
    if mechanism == "swap":
        homes = pl.read_parquet(truth / "households.parquet")
        rows = homes.to_dicts()
        pairs = [
            (i, j)
            for i, j in itertools.combinations(range(len(rows)), 2)
            if rows[i]["size"] == rows[j]["size"]
            and rows[i]["block"] != rows[j]["block"]
            and rows[i]["tenure"] != rows[j]["tenure"]
        ]
        return [_exchanged(homes, i, j) for i, j in pairs]
    people = pl.read_parquet(truth / "persons.parquet")
    return [
        people.with_columns(
            pl.when(pl.int_range(pl.len()) == i).then(pl.lit(value)).otherwise(name).alias(name)
        )
        for i in range(people.height)
        for name, value in (("sex", "f"), ("sex", "m"), ("block", BLOCKS[3]))
        if people[name][i] != value
    ]


def _exchanged(homes: pl.DataFrame, i: int, j: int) -> pl.DataFrame:
    order = list(range(homes.height))
    order[i], order[j] = j, i
    return homes.with_columns(homes["block"].gather(order))


@pytest.mark.parametrize("count", [4, pytest.param(40, marks=pytest.mark.slow)])
@both
def test_the_oracle_attack_finds_nothing_to_distinguish(mechanism: str, count: int, tmp_path: Path) -> None:
    """The attacker rebuilds everything public for the truth and its neighbours: no candidate stands out."""
    truth = write_case(tmp_path / "truth" / "case")
    published = public_bytes(*released(truth, mechanism, truth))
    candidates = neighbours(truth, mechanism)
    assert len(candidates) >= count
    matching = 0
    for number, frame in enumerate(candidates[:: len(candidates) // count][:count]):
        case = write_case(tmp_path / f"{number}" / "case")
        if mechanism == "swap":
            frame.write_parquet(case / "households.parquet")
            members(frame).write_parquet(case / "members.parquet")
        else:
            frame.write_parquet(case / "persons.parquet")
        matching += public_bytes(*released(case, mechanism, truth)) == published
    assert matching == count


@both
def test_the_attack_tells_truth_from_neighbour_where_a_digest_of_internal_files_is_public(
    mechanism: str, tmp_path: Path
) -> None:
    """The fault as it was: a plain digest of an internal file singles out the truth; the attack can win."""
    truth = write_case(tmp_path / "truth" / "case")
    made, _ = released(truth, mechanism, truth)
    other = write_case(tmp_path / "other" / "case", twin=True)
    rebuilt, _ = released(other, mechanism, truth)
    again = write_case(tmp_path / "again" / "case")
    same, _ = released(again, mechanism, truth)

    def digests(folder: Path) -> set[str]:
        files = (p for p in (folder / "internal").glob("accuracy*.csv"))
        return {hashlib.sha256(p.read_bytes()).hexdigest() for p in files}

    assert digests(made) == digests(same) != digests(rebuilt)
