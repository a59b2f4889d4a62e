"""Tiny universes by brute force: data sets as tuples of records, straight from the definitions.

Nothing here is imported from ``stirred``: these are the twins against which its rules are held.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

Record = tuple[Any, ...]
Data = tuple[Record, ...]
INFINITE = float("inf")


@dataclass(frozen=True)
class Statistic:
    """A count (``summed`` is none) or sum in every cell; with ``least``, only whether it reaches a bound."""

    by: tuple[int, ...] = ()
    where: tuple[tuple[int, tuple[Any, ...]], ...] = ()
    summed: int | None = None
    least: int | None = None

    def of(self, data: Data) -> frozenset[Any]:
        cells: Counter[Any] = Counter()
        for record in data:
            if all(record[position] in levels for position, levels in self.where):
                weight = 1 if self.summed is None else record[self.summed]
                cells[tuple(record[position] for position in self.by)] += weight
        if self.least is not None:
            return frozenset(cell for cell, total in cells.items() if total >= self.least)
        return frozenset((cell, total) for cell, total in cells.items() if total)


def data_sets(levels: Iterable[Iterable[Any]], sizes: Iterable[int]) -> list[Data]:
    """Every multiset of records of the given sizes."""
    records = sorted(itertools.product(*levels), key=repr)
    return [d for n in sizes for d in itertools.combinations_with_replacement(records, n)]


def universes(data: Iterable[Data], statistics: Iterable[Statistic]) -> list[list[Data]]:
    """The data sets grouped by the values of all statistics."""
    groups: dict[Any, list[Data]] = {}
    statistics = tuple(statistics)
    for point in data:
        groups.setdefault(tuple(s.of(point) for s in statistics), []).append(point)
    return list(groups.values())


def removed_and_added(x: Data, y: Data) -> tuple[int, int]:
    rest = list(y)
    for record in x:
        if record in rest:
            rest.remove(record)
    return len(x) - len(y) + len(rest), len(rest)


def hamming(x: Data, y: Data) -> float:
    """d_HamS."""
    removed, added = removed_and_added(x, y)
    return removed if removed == added else INFINITE


def difference(x: Data, y: Data) -> float:
    """d_SymDiff."""
    return sum(removed_and_added(x, y))


def replaced(x: Data, y: Data) -> bool:
    """Neighbours: one record replaced."""
    return removed_and_added(x, y) == (1, 1)


def chains(universe: list[Data], step: Callable[[Data, Data], bool]) -> dict[tuple[Data, Data], float]:
    """Lengths of the shortest chains of steps inside one universe (breadth first)."""
    lengths = {(x, y): 0 if x == y else INFINITE for x in universe for y in universe}
    near = {x: [y for y in universe if step(x, y)] for x in universe}
    for start in universe:
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for there in near[here]:
                if lengths[start, there] == INFINITE:
                    lengths[start, there] = lengths[start, here] + 1
                    queue.append(there)
    return lengths


def part(data: Data, position: int, level: Any) -> Data:
    return tuple(record for record in data if record[position] == level)


def kappas(
    worlds: Iterable[list[Data]], position: int, distance: Callable[[Data, Data], float]
) -> Callable[[Any, Data, Data], float]:
    """The least distance in one universe of two data sets with given contents of one part."""
    least: dict[tuple[Any, Data, Data], float] = {}
    for universe in worlds:
        split = {x: {r[position]: part(x, position, r[position]) for r in x} for x in universe}
        for x, y in itertools.product(universe, repeat=2):
            d = distance(x, y)
            for level in split[x].keys() | split[y].keys():
                key = (level, split[x].get(level, ()), split[y].get(level, ()))
                least[key] = min(d, least.get(key, INFINITE))
    return lambda level, a, b: 0 if a == b else least.get((level, a, b), INFINITE)


def drawn_statistic(random_: random.Random, levels: list[tuple[Any, ...]], by: int | None) -> Statistic:
    """A random statistic; with ``by`` most of them are tabulated by that attribute, or conditioned on it."""
    positions = range(len(levels))
    table = [i for i in positions if random_.random() < 0.3]
    where = []
    for position in positions:
        if random_.random() < 0.35:
            chosen = random_.sample(levels[position], random_.randint(1, len(levels[position])))
            where.append((position, tuple(chosen)))
    if by is not None and random_.random() < 0.75 and by not in table:
        table.append(by)
    numeric = [i for i in positions if all(isinstance(level, int) for level in levels[i])]
    summed = random_.choice(numeric) if numeric and random_.random() < 0.4 else None
    least = random_.choice((1, 2)) if random_.random() < 0.15 else None
    return Statistic(tuple(sorted(table)), tuple(where), summed, least)
