"""Audits of large plans look at a part: a branch of the map, some strata; it is shaped as the whole is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from support.small_release import tiny_county, village

from stirred.data import Spine
from stirred.noise import TestSource
from stirred.release.job import Job
from stirred.release.kinds import opened
from stirred.release.kinds.swap import excerpt as strata_excerpt
from stirred.release.kinds.swap.job import SwapJob
from stirred.release.kinds.topdown.excerpt import FAMILY, branch
from stirred.release.kinds.topdown.job import TopDownJob
from stirred.release.replay import replayed

COUNTIES, TRACTS, BLOCKS = 3, 8, 15


def large_county(folder: Path) -> Path:
    """The plan of the tiny county on 360 blocks."""
    path = tiny_county(folder)
    blocks = [
        (f"{c}", f"{c}{t}", f"{c}{t}{b:02}")
        for c in range(COUNTIES)
        for t in range(TRACTS)
        for b in range(BLOCKS)
    ]
    leaves = pl.DataFrame(blocks, schema=["county", "tract", "block"], orient="row")
    leaves.write_parquet(folder / "blocks.parquet")
    homes = leaves["block"].gather_every(2)
    persons = [
        {"block": block, "quarters": 1, "sex": "fm"[(i + n) % 2], "age": ("child", "adult")[(i * n) % 3 > 0]}
        for i, block in enumerate(homes)
        for n in range(1 + i % 4)
    ]
    wards = homes.gather_every(9)
    persons += [{"block": block, "quarters": 2, "sex": "f", "age": "adult"} for block in wards]
    pl.DataFrame(persons).write_parquet(folder / "persons.parquet")
    units = pl.DataFrame({"block": homes, "occupancy": ["occupied", "vacant"] * (len(homes) // 2)})
    units.write_parquet(folder / "units.parquet")
    pl.DataFrame({"block": wards, "quarters": [2] * len(wards)}).write_parquet(folder / "quarters.parquet")
    return path


def large_village(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The village, of which at most ten households are taken at once."""
    monkeypatch.setattr(strata_excerpt, "RECORDS", 10)
    return village(folder)


def families(spine: Spine) -> Iterator[tuple[int, set[str]]]:
    """Every family: its level and the codes of its children."""
    yield 0, {str(code) for code in spine.codes[0]}
    for level in range(1, spine.depth):
        for parent in range(spine.size(level - 1)):
            yield level, {str(spine.codes[level][i]) for i in np.flatnonzero(spine.parents[level] == parent)}


@pytest.mark.parametrize("seed", range(20))
def test_a_branch_has_a_whole_family_on_every_level(seed: int) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 9, 3)
    rows = [
        (f"{a}", f"{a}-{b}", f"{a}-{b}-{c}")
        for a in range(counts[0])
        for b in range(counts[1])
        for c in range(counts[2])
    ]
    spine = Spine.from_columns(pl.DataFrame(rows, schema=["a", "b", "c"], orient="row"), ["a", "b", "c"])
    leaves = branch(spine, TestSource(seed), np.empty(0, dtype=np.int64))
    assert leaves.size == 1 + (counts - 1).sum() == np.unique(leaves).size
    part = Spine.from_columns(spine.table()[leaves], spine.levels)
    whole = list(families(spine))
    for level in range(spine.depth):
        assert any(found in whole for found in families(part) if found[0] == level)


def test_a_branch_is_populated_where_it_can_be_and_large_families_are_cut() -> None:
    codes = [f"{n:04}" for n in range(3000)]
    spine = Spine.from_prefixes(codes, {"top": 1, "leaf": 4})
    populated = np.arange(0, 3000, 7)
    for seed in range(10):
        leaves = branch(spine, TestSource(seed), populated)
        assert leaves.size == FAMILY + 2
        chosen = np.isin(leaves, populated)
        tops = leaves // 1000
        path = np.bincount(tops).argmax()
        assert chosen[tops != path].all() and (leaves[tops == path] // 1000 == path).all()


def test_the_part_of_a_topdown_plan_is_a_plan_of_its_own(tmp_path: Path) -> None:
    job = opened(large_county(tmp_path / "plan"))
    (tmp_path / "part").mkdir()
    part = job.excerpt(TestSource(1), tmp_path / "part")
    assert isinstance(part, TopDownJob) and part is not job
    spine = part.mechanism.spine
    assert spine.size(2) == 1 + (COUNTIES - 1) + (TRACTS - 1) + (BLOCKS - 1)
    kept = set(spine.leaf_codes())
    for unit, frame in job.dataset.items():
        assert part.dataset[unit].equals(frame.filter(pl.col("block").is_in(kept)))
    assert part.specification() == job.specification()
    assert part.public_files() == ("branch.parquet",)


def test_the_part_of_a_swap_has_whole_strata_and_all_their_persons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = opened(large_village(tmp_path, monkeypatch))
    part = job.excerpt(TestSource(1), tmp_path)
    assert isinstance(part, SwapJob) and part is not job
    households = part.dataset.households
    assert households.height == 10
    whole = job.dataset.households
    assert households.join(whole, on=whole.columns, how="semi").height == 10
    keys = list(job.section.match)
    sizes = whole.group_by(keys).len().join(households.group_by(keys).len(), on=keys, suffix="_part")
    assert (sizes["len"] > sizes["len_part"]).sum() <= 1


@pytest.mark.parametrize("kind", ["swap", "topdown"])
def test_a_small_plan_is_looked_at_whole(kind: str, tmp_path: Path) -> None:
    job = opened(village(tmp_path) if kind == "swap" else tiny_county(tmp_path))
    assert job.excerpt(TestSource(1), tmp_path) is job


@pytest.mark.parametrize("kind", ["swap", "topdown"])
def test_a_large_plan_is_not_refuted_and_a_step_that_peeks_is(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_village(tmp_path, monkeypatch) if kind == "swap" else large_county(tmp_path)
    job = opened(path)
    assert not replayed(job, job.specification(), TestSource(3)).violated
    honest = Job.publish

    def peeking(self: Any, made: Any, folder: Path) -> Any:
        frame = self.dataset.households if kind == "swap" else self.dataset["person"]
        (folder / "peek.txt").write_text(str(frame.hash_rows(1).sum()), encoding="utf-8")
        return honest(self, made, folder)

    monkeypatch.setattr(Job, "publish", peeking)
    job = opened(path)
    found = replayed(job, job.specification(), TestSource(3))
    assert found.violated and found.details["first difference"] == "peek.txt"


def test_the_noise_of_a_large_plan_is_seen_in_its_draw_and_on_every_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stirred.release.kinds.topdown import audits
    from stirred.topdown import measurement

    job = opened(large_county(tmp_path))
    assert isinstance(job, TopDownJob)
    assert not any(finding.violated for finding in audits._noise(job, TestSource(1), 2000))
    seen: list[tuple[str, int]] = []
    honest = measurement._measured

    def measured(design: Any, level: int, truth: Any, start: int, stop: int, source: Any) -> Any:
        made = honest(design, level, truth, start, stop, source)
        whole = design.spine.size(2) == COUNTIES * TRACTS * BLOCKS
        seen.append(("whole" if whole else "part", level))
        return made

    monkeypatch.setattr(measurement, "_measured", measured)
    audits._noise(job, TestSource(1), 2000)
    assert {("whole", level) for level in range(3)} | {("part", level) for level in range(3)} == set(seen)


def test_a_plan_that_refuses_a_part_of_its_data_is_looked_at_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = large_county(tmp_path)
    text = path.read_text(encoding="utf-8")
    bound = "    - {kind: edit, level: county, query: total, at_least: 40}\n"
    path.write_text(
        text.replace("    - kind: facilities\n", bound + "    - kind: facilities\n"), encoding="utf-8"
    )
    job = opened(path)
    assert job.prepared is not None
    assert job.excerpt(TestSource(1), tmp_path) is job
