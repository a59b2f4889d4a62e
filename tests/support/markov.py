"""Markov moves of small tables: which records can be exchanged for which without touching an invariant.

Reference
    Diaconis and Sturmfels 1998 (Markov bases); Dobra 2003 (decomposable models have quadratic ones).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from stirred.errors import NotComputable
from stirred.spec import Count, Record, Schema, Sum

LARGEST_LISTING = 100_000


@dataclass(frozen=True)
class Move:
    """Records to take out and records to put in; its negative is the way back."""

    removed: tuple[Record, ...]
    added: tuple[Record, ...]

    @property
    def degree(self) -> int:
        """How many records it replaces."""
        return len(self.removed)

    def __neg__(self) -> Move:
        return Move(self.added, self.removed)

    def apply(self, point: Sequence[Record]) -> tuple[Record, ...] | None:
        """The data set after the move, with its records in order; ``None`` where one of them is missing."""
        before, removed = Counter(point), Counter(self.removed)
        if not removed <= before:
            return None
        after = before - removed + Counter(self.added)
        return tuple(sorted(after.elements(), key=repr))

    def contains(self, part: Move) -> bool:
        """Whether the other move takes and puts no more than this one does."""
        return _within(part.removed, self.removed) and _within(part.added, self.added)


def markov_moves(schema: Schema, invariants: Iterable[Any], degree: int = 2) -> tuple[Move, ...]:
    """All primitive moves of at most so many records, one of each pair m and -m.

    Guarantee
        Each keeps every invariant of every data set to which it applies, takes no record that it puts, and
        is no sum of smaller moves that take and put parts of it: the Graver basis up to this degree.
    Assumes
        Invariants that are counts or sums; every attribute has declared levels.

    Examples
    --------
    >>> from stirred.spec import margins
    >>> len(markov_moves(Schema.of(h=(0, 1, 2), s=(0, 1, 2)), margins("record", "h", "s")))
    9
    """
    linear = _require_linear(invariants)
    records = sorted(schema.records(), key=repr)
    if math.comb(len(records) + degree - 1, degree) > LARGEST_LISTING:
        raise NotComputable(
            "there are too many cells for moves of this degree",
            field="degree",
            expected=f"at most {LARGEST_LISTING} multisets of records",
            hint="Use a smaller degree or fewer levels; for files use neighbours.",
        )
    moves: list[Move] = []
    for size in range(1, degree + 1):
        fibres: dict[Any, list[tuple[Record, ...]]] = {}
        for chosen in itertools.combinations_with_replacement(records, size):
            value = tuple(invariant.of_records(chosen, schema) for invariant in linear)
            fibres.setdefault(value, []).append(chosen)
        pairs = itertools.chain.from_iterable(itertools.combinations(fibre, 2) for fibre in fibres.values())
        found = [Move(x, y) for x, y in pairs if not set(x) & set(y)]
        parts = [signed for move in moves for signed in (move, -move)]
        moves += [move for move in found if not any(move.contains(part) for part in parts)]
    return tuple(moves)


def is_markov_basis(schema: Schema, invariants: Iterable[Any], degree: int = 2) -> bool | None:
    """Whether the moves up to this degree connect every universe; ``None`` where no theorem says so.

    Guarantee
        True for the margins of a decomposable model and degree 2, or for one margin and degree 1.
    Reference
        Dobra 2003. A family of index sets is decomposable when it has the running intersection property:
        when Graham's reduction empties it (Beeri, Fagin, Maier and Yannakakis 1983).
    """
    given = tuple(invariants)
    if not all(isinstance(i, Count) and not i.where and set(i.by) <= set(schema.names) for i in given):
        return None
    family = [frozenset(i.by) for i in given]
    largest = {s for s in family if not any(s < other for other in family)}
    enough = degree >= 2 or (len(largest) <= 1 and degree == 1)
    return True if enough and _decomposable(largest) else None


def connected(universe: Iterable[Sequence[Record]], moves: Iterable[Move]) -> bool:
    """Whether moves lead from every data set of a universe to every other, through the universe."""
    points = {tuple(sorted(point, key=repr)) for point in universe}
    signed = [way for move in moves for way in (move, -move)]
    start = next(iter(points), None)
    waiting, reached = [start] if start is not None else [], {start}
    while waiting:
        point = waiting.pop()
        for move in signed:
            other = move.apply(point)
            if other in points and other not in reached:
                reached.add(other)
                waiting.append(other)
    return reached >= points


def _require_linear(invariants: Iterable[Any]) -> tuple[Count | Sum, ...]:
    """Refuse invariants that are not counts or sums."""
    given = tuple(invariants)
    if not all(isinstance(invariant, Count | Sum) for invariant in given):
        raise NotComputable(
            "a move that keeps a threshold depends on the data",
            field="invariants",
            expected="counts and sums",
            hint="Leave thresholds out and check them on each data set.",
        )
    return given


def _decomposable(family: Iterable[frozenset[str]]) -> bool:
    """Graham's reduction: drop what only one set has, and sets within others, until nothing changes."""
    sets = list(family)
    while True:
        often = Counter(name for s in sets for name in s)
        shared = list(dict.fromkeys(frozenset(n for n in s if often[n] > 1) for s in sets))
        kept = [s for s in shared if not any(s < other for other in shared)]
        if kept == sets:
            return len(sets) <= 1
        sets = kept


def _within(part: Iterable[Record], whole: Iterable[Record]) -> bool:
    return Counter(part) <= Counter(whole)
