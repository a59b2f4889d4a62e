"""Selection and derangement: Algorithm 1 on integer strata, with exact rational rates.

Reference
    Algorithm 1 of Bailie, Gong and Meng. Each record is selected independently; a stratum in which
    exactly one record is selected is reselected whole; the selected records of a stratum are deranged
    uniformly. Linear in the number of records.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.data import group_rows
from stirred.errors import NotComputable
from stirred.noise import LARGEST_DRAW, Source, bernoulli, half_words
from stirred.swap.kernel import EVERYONE, count_all, count_by_stratum, derange_groups, donors_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 1 << 18
WORDS = 1 << 20


@dataclass(frozen=True)
class Rates:
    """Swap rates: one for all, or one for each class of records."""

    values: tuple[Fraction, ...]
    classes: NDArray[Any] | None = None

    @classmethod
    def common(cls, rate: Fraction) -> Rates:
        return cls((rate,))

    def select(self, source: Source, records: NDArray[np.int64] | None, count: int) -> NDArray[np.bool_]:
        """Draw one coin for each of these records (``None``: for all of them)."""
        if self.classes is None:
            return bernoulli(source, self.values[0], count)
        chosen = np.zeros(count, dtype=np.bool_)
        classes = self.classes if records is None else self.classes[records]
        for index, rate in enumerate(self.values):
            members = np.flatnonzero(classes == index)
            chosen[members] = bernoulli(source, rate, members.size)
        return chosen


def draw_donors(
    strata: NDArray[Any],
    stratum_count: int,
    rates: Rates,
    source: Source,
    *,
    eligible: NDArray[np.bool_] | None = None,
    threads: int = 1,
) -> NDArray[Any]:
    """For every record the record whose swapping values it receives; itself if it is not swapped.

    The result depends on the source alone, not on the number of threads.
    """
    chosen = select_records(strata, stratum_count, rates, source.child(0), eligible)
    counts = count_by_stratum(strata, chosen, stratum_count)
    offsets = np.zeros(stratum_count + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    grouped = group_rows(strata, chosen, offsets)
    order = np.empty(chosen.size, dtype=chosen.dtype)
    derange(offsets, order, source.child(1), threads)
    donors = np.arange(strata.size, dtype=chosen.dtype)
    donors_of(grouped, offsets, order, donors)
    return donors


def select_records(
    strata: NDArray[Any],
    stratum_count: int,
    rates: Rates,
    source: Source,
    eligible: NDArray[np.bool_] | None = None,
) -> NDArray[Any]:
    """Indices of the selected records; no stratum has exactly one.

    Strata with fewer than two eligible records are skipped, as Algorithm 1 does.
    """
    index = np.int32 if strata.size < 2**31 else np.int64
    allowed = _swappable(strata, stratum_count, eligible)
    mask = rates.select(source, None, strata.size) & allowed
    counts = count_by_stratum(strata, np.flatnonzero(mask).astype(index), stratum_count)
    lonely = counts == 1
    if lonely.any():
        pending = np.flatnonzero(lonely[strata] & allowed)
        while pending.size:
            mask[pending] = rates.select(source, pending, pending.size)
            hit = pending[mask[pending]]
            counts = np.bincount(strata[hit], minlength=stratum_count)
            pending = pending[counts[strata[pending]] == 1]
    return np.flatnonzero(mask).astype(index)


def stratum_sizes(
    strata: NDArray[Any], stratum_count: int, eligible: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Number of (eligible) records in every stratum."""
    sizes: NDArray[np.int64] = count_all(strata, EVERYONE if eligible is None else eligible, stratum_count)
    return sizes


def _swappable(
    strata: NDArray[Any], stratum_count: int, eligible: NDArray[np.bool_] | None
) -> NDArray[np.bool_]:
    """Records in strata with at least two eligible records, themselves eligible."""
    sizes = stratum_sizes(strata, stratum_count, eligible)
    allowed: NDArray[np.bool_] = (sizes >= 2)[strata]
    return allowed if eligible is None else allowed & eligible


def derange(offsets: NDArray[np.int64], order: NDArray[Any], source: Source, threads: int = 1) -> int:
    """Derange every group in place, in blocks of groups that have a stream of their own each.

    Returns the number of attempts; about e for each group of more than a few records.
    """
    blocks = _blocks(offsets)
    tasks = [(number, first, last) for number, (first, last) in enumerate(blocks)]

    def work(task: tuple[int, int, int]) -> int:
        number, first, last = task
        return _derange_block(offsets, order, first, last, source.child(number))

    if threads == 1 or len(tasks) == 1:
        return sum(map(work, tasks))
    with ThreadPoolExecutor(threads) as pool:
        return sum(pool.map(work, tasks))


def _derange_block(
    offsets: NDArray[np.int64], order: NDArray[Any], first: int, last: int, source: Source
) -> int:
    """Feed words to the kernel; a group that runs out is begun again with a larger buffer."""
    attempts, size = 0, min(WORDS, max(64, 4 * int(offsets[last] - offsets[first])))
    while first < last:
        reached, made = derange_groups(offsets, first, last, half_words(source, size), order)
        attempts += made
        if reached == first and size == LARGEST_DRAW:
            raise NotComputable(
                "a stratum is too large to be deranged at once",
                field="match",
                expected=f"fewer than {LARGEST_DRAW} selected records in a stratum",
                hint="Add a matching variable, or lower the swap rate.",
            )
        size = min(2 * size, LARGEST_DRAW) if reached == first else size
        first = reached
    return attempts


def _blocks(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Cut the groups into ranges of about BLOCK selected records, wherever the groups allow."""
    count = offsets.size - 1
    cuts = [0]
    while cuts[-1] < count:
        target = offsets[cuts[-1]] + BLOCK
        nxt = int(np.searchsorted(offsets, target, side="left"))
        cuts.append(min(max(nxt, cuts[-1] + 1), count))
    return list(itertools.pairwise(cuts))
