"""Two data sets of one universe: what is public depends on the primitive output and on nothing else.

The primitive output is drawn from one data set and published by the release of the other: noisy measurements
with the invariants, or the swapped records. Clock and randomness stand still.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from support.release_case import MECHANISMS, FrozenSource, frozen_ledger, write_case
from support.releasing import run_release

from stirred.noise import Source
from stirred.release import Plan, dry_run, job_of
from stirred.release import verify as verify_release
from stirred.release.job import Job
from stirred.release.kinds.swap.job import SwapJob
from stirred.release.kinds.topdown.job import TopDownJob

both = pytest.mark.parametrize("mechanism", MECHANISMS)
JOBS: dict[str, type[Any]] = {"swap": SwapJob, "topdown": TopDownJob}


@pytest.fixture
def cases(tmp_path: Path) -> tuple[Path, Path]:
    """The folders have one name, so that no path can tell them apart."""
    return write_case(tmp_path / "one" / "case"), write_case(tmp_path / "two" / "case", twin=True)


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def released(case: Path, mechanism: str, draw_from: Job | None, name: str = "out", seed: int = 5) -> Path:
    """Release one data set, with the primitive output of another where it is given."""
    place = case.parent
    ledger = frozen_ledger(place / f"{name}.db", case, [mechanism])
    with pytest.MonkeyPatch.context() as patch:
        if draw_from is not None:
            own = JOBS[mechanism].draw

            def draw(self: Job, source: Source, folder: Path) -> Any:
                return own(draw_from, source, folder)

            patch.setattr(JOBS[mechanism], "draw", draw)
        made = run_release(case / f"{mechanism}.yaml", place / name, ledger, random=FrozenSource(seed))
    assert verify_release(made.folder, ledger).sound
    return made.folder


def job(case: Path, mechanism: str) -> Job:
    return job_of(Plan.load(case / f"{mechanism}.yaml"), case)


def test_the_two_data_sets_are_different_and_of_one_universe(cases: tuple[Path, Path]) -> None:
    one, two = ({n: pl.read_parquet(c / f"{n}.parquet") for n in ("households", "persons")} for c in cases)
    for by in (["county", "size", "tenure"], ["county", "size", "block"]):
        first, second = (d["households"].group_by(by).len().sort(by) for d in (one, two))
        assert first.equals(second)
    assert one["persons"].height == two["persons"].height
    for name, by in (("households", ["block", "tenure"]), ("persons", ["block", "sex"])):
        first, second = (d[name].group_by(by).len().sort(by) for d in (one, two))
        assert not first.equals(second)


@both
def test_with_the_primitive_output_frozen_the_public_folder_is_the_same_byte_for_byte(
    mechanism: str, cases: tuple[Path, Path]
) -> None:
    one, two = cases
    first = released(one, mechanism, None)
    second = released(two, mechanism, job(one, mechanism))
    assert files(first / "public") == files(second / "public")
    assert len(files(first / "public")) > 8
    assert files(first / "internal") != files(second / "internal")


@both
def test_with_nothing_frozen_but_the_seed_the_public_folders_differ(
    mechanism: str, cases: tuple[Path, Path]
) -> None:
    """Otherwise the test above would pass on an empty or a constant folder."""
    one, two = cases
    first, second = released(one, mechanism, None), released(two, mechanism, None)
    different = {n for n, text in files(first / "public").items() if files(second / "public")[n] != text}
    assert any(name.startswith("tables/") for name in different)
    assert any(name.startswith("microdata/") for name in different)
    assert "specification.json" not in different


@both
def test_the_same_run_on_the_same_data_repeats_every_byte(mechanism: str, cases: tuple[Path, Path]) -> None:
    one, _ = cases
    first, again = released(one, mechanism, None), released(one, mechanism, None, "again")
    assert files(first / "public") == files(again / "public")
    other = released(one, mechanism, None, "other", seed=6)
    assert files(first / "public") != files(other / "public")


@both
def test_publishing_does_not_read_the_records(
    mechanism: str, cases: tuple[Path, Path], tmp_path: Path
) -> None:
    """Publish from a primitive output where the confidential files are gone."""
    one, two = cases
    public = tmp_path / "public"
    public.mkdir()
    drawing = job(one, mechanism)
    primitive, known = drawing.draw(FrozenSource(5), public), drawing.prepared.public
    for name in ("persons", "members") + (("households",) if mechanism == "topdown" else ()):
        (two / f"{name}.parquet").unlink()
    if mechanism == "swap":
        (two / "households.parquet").unlink()
    own = job(two, mechanism)
    published = own.publish(own.finish(primitive, known), public)
    assert all((public / file.path).is_file() for file in published.files)


@both
def test_specification_facts_and_dry_run_are_the_same_with_nothing_frozen(
    mechanism: str, cases: tuple[Path, Path]
) -> None:
    one, two = (job(case, mechanism) for case in cases)
    assert one.specification().to_json() == two.specification().to_json()
    assert one.facts() == two.facts()
    runs = []
    for case in cases:
        ledger = frozen_ledger(case.parent / "dry.db", case, [mechanism])
        runs.append(dry_run(case / f"{mechanism}.yaml", ledger).record())
    assert runs[0] == runs[1]


def test_a_data_set_of_another_universe_has_another_specification(tmp_path: Path) -> None:
    """The specification of swapping follows the invariants: another largest stratum gives another one."""
    one, other = write_case(tmp_path / "one"), write_case(tmp_path / "other")
    homes = pl.read_parquet(other / "households.parquet").head(20)
    homes.write_parquet(other / "households.parquet")
    people = pl.read_parquet(other / "members.parquet")
    people.filter(pl.col("household_id").is_in(homes["household_id"].to_list())).write_parquet(
        other / "members.parquet"
    )
    assert job(one, "swap").specification() != job(other, "swap").specification()
    assert job(one, "topdown").specification() == job(other, "topdown").specification()
