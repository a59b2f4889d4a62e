"""Compiled kernels of permutation swapping: group the selected by stratum, derange each group.

Kernels are pure functions from arrays to arrays. They never call a generator: they are handed a buffer of
random 32-bit words and say how far they came, so that the caller can refill it. Linear in the records.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stirred.compiled import kernel
from stirred.noise import below

EVERYONE = np.empty(0, dtype=np.bool_)


@kernel()
def count_by_stratum(strata: Any, chosen: Any, count: int) -> Any:
    """Number of chosen records in every stratum."""
    counts = np.zeros(count, dtype=np.int64)
    for i in range(chosen.size):
        counts[strata[chosen[i]]] += 1
    return counts


@kernel()
def count_all(strata: Any, eligible: Any, count: int) -> Any:
    """Number of eligible records in every stratum."""
    counts = np.zeros(count, dtype=np.int64)
    everyone = eligible.size == 0
    for i in range(strata.size):
        if everyone or eligible[i]:
            counts[strata[i]] += 1
    return counts


@kernel()
def mark_mixed(strata: Any, values: Any, eligible: Any, first: Any, seen: Any, mixed: Any) -> None:
    """Mark the strata in which a column takes at least two values among eligible records.

    ``first`` and ``seen`` go from one block of records to the next.
    """
    everyone = eligible.size == 0
    for i in range(strata.size):
        if everyone or eligible[i]:
            stratum = strata[i]
            if not seen[stratum]:
                seen[stratum] = True
                first[stratum] = values[i]
            elif values[i] != first[stratum]:
                mixed[stratum] = True


@kernel()
def derange_groups(offsets: Any, first: int, last: int, words: Any, order: Any) -> tuple[int, int]:
    """Fill ``order`` with a uniform derangement of every group from ``first`` up to ``last``.

    Fisher and Yates from the top; a fixed point aborts the attempt at once and starts it afresh, so that
    what is kept is uniform among derangements. A group that runs out of words is begun again by the
    caller with new ones: whether an attempt runs out does not depend on which derangement it would give.

    Returns the first group that is not finished, and the number of attempts made.
    """
    position = 0
    attempts = 0
    for group in range(first, last):
        low, high = offsets[group], offsets[group + 1]
        size = high - low
        if size < 2:
            continue
        finished = False
        while not finished:
            attempts += 1
            for i in range(size):
                order[low + i] = i
            finished = True
            for i in range(size - 1, 0, -1):
                j, position = below(words, position, i + 1)
                if j < 0:
                    return group, attempts
                order[low + i], order[low + j] = order[low + j], order[low + i]
                if order[low + i] == i:
                    finished = False
                    break
            if finished and order[low] == 0:
                finished = False
    return last, attempts


@kernel()
def donors_of(grouped: Any, offsets: Any, order: Any, donors: Any) -> None:
    """Write for every deranged record whose swapping values it receives."""
    for group in range(offsets.size - 1):
        low, high = offsets[group], offsets[group + 1]
        for i in range(low, high):
            donors[grouped[i]] = grouped[low + order[i]]
