"""A branch of the geography, for audits: small, and shaped as the whole is.

A branch is a path from the root to a leaf with every family along it whole (up to ``FAMILY`` children), and
one leaf below each of the other children. Families are therefore as large as those of the plan, upper nodes
have the content of several lower ones, and what is cut off shows only as places that have a single child.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.data import Spine
from stirred.errors import StirredError
from stirred.noise import Source, integers, permutation
from stirred.topdown import Geography

if TYPE_CHECKING:
    from stirred.release.kinds.topdown.job import TopDownJob

FAMILY = 40
FILE = "branch.parquet"


def on_branch(job: TopDownJob, source: Source, folder: Path) -> TopDownJob:
    """The job on a branch of its map that has records; the job itself where that is no smaller.

    The branch is written to the folder, as the geography of a plan. Where the plan does not accept a part of
    its data (a bound that the part breaks), the job stays whole.
    """
    spine = job.mechanism.spine
    data: dict[str, Any] = dict(job.dataset)
    places = {unit: spine.locate(data[unit][spine.levels[-1]]) for unit in job.mechanism.units}
    populated = np.unique(places[job.mechanism.universes[0].unit])
    leaves = branch(spine, source, populated)
    if leaves.size > spine.size(spine.depth - 1) // 2:
        return job
    kept = np.zeros(spine.size(spine.depth - 1), dtype=np.bool_)
    kept[leaves] = True
    frames = {unit: data[unit].filter(kept[found]) for unit, found in places.items()}
    part = _cut(job, leaves, frames, folder)
    try:
        _ = part.prepared
    except StirredError:
        return job
    return part


def empty_branch(job: TopDownJob, source: Source, folder: Path) -> TopDownJob:
    """The job on a branch of its map, chosen by the map alone and without records.

    What is found there depends on no record, and may be published.
    """
    spine = job.mechanism.spine
    leaves = branch(spine, source, np.empty(0, dtype=np.int64))
    if leaves.size > spine.size(spine.depth - 1) // 2:
        return job
    return _cut(job, leaves, {unit: job.dataset[unit].clear() for unit in job.mechanism.units}, folder)


def branch(spine: Spine, source: Source, populated: NDArray[np.int64]) -> NDArray[np.int64]:
    """The leaves of a random branch, in order; populated ones where there are any."""
    words = iter(integers(source, 1 << 62, FAMILY * spine.depth + 1).tolist())

    def leaf_in(low: int, high: int) -> int:
        first, last = np.searchsorted(populated, [low, high])
        if first < last:
            return int(populated[first + next(words) % (last - first)])
        return low + int(next(words)) % (high - low)

    path = leaf_in(0, spine.size(spine.depth - 1))
    leaves = {path}
    for level in range(spine.depth):
        above = spine.ancestors(level)
        own = int(above[path])
        family = np.arange(spine.size(0))
        if level:
            family = np.flatnonzero(spine.parents[level] == spine.parents[level][own])
        others = family[family != own]
        for node in others[permutation(source.child(level), others.size)[: FAMILY - 1]].tolist():
            low, high = np.searchsorted(above, [node, node + 1]).tolist()
            leaves.add(leaf_in(low, high))
    return np.array(sorted(leaves), dtype=np.int64)


def _cut(job: TopDownJob, leaves: NDArray[np.int64], frames: dict[str, Any], folder: Path) -> TopDownJob:
    """The same plan on some leaves of its map, which are written as a geography of their own."""
    spine = job.mechanism.spine
    spine.table()[leaves].write_parquet(folder / FILE)
    section = job.section.model_copy(update={"geography": Geography(file=FILE, levels=spine.levels)})
    plan = job.plan.model_copy(update={"mechanism": section})
    return type(job)(plan, folder, frames)
