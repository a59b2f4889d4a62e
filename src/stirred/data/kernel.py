"""Compiled passes over columns of integers: combine codes, number, group and count them, fingerprint rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from stirred.compiled import kernel


@kernel()
def append_digit(codes: Any, values: Any, low: Any, levels: Any) -> None:
    """Mixed radix: codes become codes * levels + (values - low), in place."""
    for i in range(codes.size):
        codes[i] = codes[i] * levels + (values[i] - low)


@kernel()
def renumber(codes: Any, span: int) -> int:
    """Number the codes that occur from zero, in place and in their order; returns how many there are."""
    numbers = np.zeros(span, dtype=np.int64)
    for i in range(codes.size):
        numbers[codes[i]] = 1
    count = 0
    for code in range(span):
        if numbers[code]:
            numbers[code] = count
            count += 1
    for i in range(codes.size):
        codes[i] = numbers[codes[i]]
    return count


@kernel()
def same_images(fine: Any, low: Any, coarse: Any, images: Any, seen: Any) -> bool:
    """Whether equal values of the first column have equal ones of the second; two arrays are scratch."""
    for i in range(fine.size):
        value = fine[i] - low
        if not seen[value]:
            seen[value] = True
            images[value] = coarse[i]
        elif images[value] != coarse[i]:
            return False
    return True


@kernel()
def group_rows(codes: Any, chosen: Any, offsets: Any) -> Any:
    """The chosen rows in the order of their codes: a counting sort."""
    cursor = offsets[:-1].copy()
    grouped = np.empty_like(chosen)
    for i in range(chosen.size):
        code = codes[chosen[i]]
        grouped[cursor[code]] = chosen[i]
        cursor[code] += 1
    return grouped


@kernel(inline="always")
def count_cells_of(rows: Any, values: Any, scratch: Any, sizes: Any) -> Any:
    """How many distinct values some rows have; their sizes, in any order, come first in ``sizes``.

    A table of twice as many slots, open addressing; the slots that were used are emptied again.
    """
    keys, counts, used = scratch
    mask = 1
    while mask < 2 * rows.size:
        mask *= 2
    mask -= 1
    found = 0
    for i in range(rows.size):
        value = np.int64(values[rows[i]])
        slot = (value ^ (value >> 17) ^ (value >> 31)) & mask
        while counts[slot] > 0 and keys[slot] != value:
            slot = (slot + 1) & mask
        if counts[slot] == 0:
            keys[slot] = value
            used[found] = slot
            found += 1
        counts[slot] += 1
    for i in range(found):
        sizes[i] = counts[used[i]]
        counts[used[i]] = 0
    return found


@kernel()
def count_two_tables(
    order: Any, offsets: Any, first: int, last: int, held: Any, moved: Any, scratch: Any
) -> Any:
    """Cells and single records of two tables within groups, and the sum of their Frechet bounds.

    The groups are those from ``first`` up to ``last`` of the rows in ``order``.
    """
    keys, counts, used, rows, columns = scratch
    table = (keys, counts, used)
    out = np.zeros(5, dtype=np.int64)
    for group in range(first, last):
        members = order[offsets[group] : offsets[group + 1]]
        size = members.size
        if size == 0:
            continue
        many = count_cells_of(members, held, table, rows)
        places = count_cells_of(members, moved, table, columns)
        row = 0
        for i in range(many):
            row = max(row, rows[i])
            out[1] += rows[i] == 1
        column = 0
        for i in range(places):
            column = max(column, columns[i])
            out[3] += columns[i] == 1
        out[0] += many
        out[2] += places
        for i in range(places):
            out[4] += max(0, columns[i] + row - size)
        for i in range(many):
            out[4] += max(0, rows[i] + column - size)
        out[4] -= max(0, row + column - size)
    return out


@kernel()
def mix_rows(hashes: Any, values: Any, key: Any) -> None:
    """Fold a column into the hash of every row (a keyed multiply and shift, twice)."""
    for i in range(hashes.size):
        h = (hashes[i] ^ np.uint64(values[i])) * key
        h ^= h >> np.uint64(32)
        h *= np.uint64(0x9E3779B97F4A7C15)
        hashes[i] = h ^ (h >> np.uint64(29))


@kernel()
def hash_texts(text: Any, ends: Any, start: Any, factor: Any) -> Any:
    """A keyed word for every text; the texts lie behind each other and end where ``ends`` says."""
    out = np.empty(ends.size, dtype=np.uint64)
    begin = 0
    for i in range(ends.size):
        word = start
        for j in range(begin, ends[i]):
            word = (word ^ np.uint64(text[j])) * factor
            word ^= word >> np.uint64(29)
        out[i] = word ^ np.uint64(ends[i] - begin)
        begin = ends[i]
    return out
