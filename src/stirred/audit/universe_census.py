"""Census of universes: how much of the domain a claim speaks of, and what its invariants alone give away.

A universe of one data set is protected by nothing: every mechanism satisfies every budget there. A larger one
may still hold records that all its data sets share; these are known to whoever knows the invariants.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from stirred.audit.claim import require_claim
from stirred.audit.universe import distance_of
from stirred.errors import InputError, NotComputable
from stirred.interchange import Tabular, as_polars
from stirred.spec import (
    INFINITY,
    ZERO,
    Exact,
    HammingUnordered,
    Record,
    Schema,
    Specification,
    SymmetricDifference,
    as_fraction,
)

if TYPE_CHECKING:
    import polars as pl

LARGEST_TABLE = 5_000


@dataclass(frozen=True)
class UniverseCount:
    """One universe: its size, its pieces under steps of at most one and two units, its nearest pair."""

    size: int
    pieces_by_one: int
    pieces_by_two: int
    nearest: Exact

    def record(self) -> dict[str, Any]:
        return vars(self) | {"nearest": str(self.nearest)}


@dataclass(frozen=True)
class UniverseCensus(Tabular):
    """All universes of a claim on a finite domain.

    ``alone`` counts the data sets that share a universe with no other at finite distance: for them the claim
    is vacuous.
    """

    datasets: int
    alone: int
    universes: tuple[UniverseCount, ...]

    @property
    def singletons(self) -> int:
        return sum(universe.size == 1 for universe in self.universes)

    @property
    def share_alone(self) -> Fraction:
        """The share of data sets for which the claim is vacuous."""
        return Fraction(self.alone, self.datasets) if self.datasets else Fraction(0)

    @property
    def nearest(self) -> Exact:
        """The smallest positive distance in any universe; infinite where there is none."""
        return min((universe.nearest for universe in self.universes), default=INFINITY)

    def record(self) -> dict[str, Any]:
        return {
            "datasets": self.datasets,
            "universes": len(self.universes),
            "singletons": self.singletons,
            "alone": self.alone,
            "share_alone": str(self.share_alone),
            "largest": max((universe.size for universe in self.universes), default=0),
            "in_one_piece_by_one": sum(universe.pieces_by_one == 1 for universe in self.universes),
            "in_one_piece_by_two": sum(universe.pieces_by_two == 1 for universe in self.universes),
            "nearest": str(self.nearest),
        }

    def to_polars(self) -> pl.DataFrame:
        import polars as pl

        types = {"size": pl.Int64, "pieces_by_one": pl.Int64, "pieces_by_two": pl.Int64, "nearest": pl.String}
        return pl.DataFrame([universe.record() for universe in self.universes], schema=types)


def census(claim: Specification) -> UniverseCensus:
    """Count the universes of a claim on a finite domain.

    Guarantee
        Exact counts. A step joins two data sets of a universe whose distance in either direction is at most
        one unit, or two; a universe in several pieces by one has data sets that no chain of neighbours
        inside it connects, so a loss between neighbours does not bound the loss between these.
    """
    require_claim(claim)
    universes = [sorted(universe, key=repr) for universe in claim.universes()]
    tables = [_distances(claim, universe) for universe in universes]
    accompanied = {
        point
        for universe, table in zip(universes, tables, strict=True)
        for point in itertools.compress(universe, table.accompanied())
    }
    datasets = claim.domain.enumerate()
    return UniverseCensus(
        datasets=len(datasets), alone=len(datasets) - len(accompanied), universes=tuple(map(_counted, tables))
    )


@dataclass(frozen=True)
class Determined:
    """The records that every data set of a universe contains, with multiplicity."""

    records: tuple[Record, ...]
    smallest: int

    @property
    def number(self) -> int:
        return len(self.records)

    @property
    def share(self) -> Fraction:
        """Their share of the smallest data set."""
        return Fraction(self.number, self.smallest) if self.smallest else Fraction(0)

    def record(self) -> dict[str, Any]:
        """Plain data with stable keys, without the records."""
        return {"number": self.number, "share": str(self.share)}


def determined(universe: Sequence[Sequence[Record]]) -> Determined:
    """What the invariants alone give away in one universe: the intersection of its data sets."""
    if not universe:
        raise InputError(
            "the universe is empty",
            field="universe",
            expected="at least one data set",
            hint="Pass the result of universe_of for a data set of the domain.",
        )
    common = Counter(universe[0])
    for point in universe[1:]:
        common &= Counter(point)
    records = tuple(sorted(common.elements(), key=repr))
    return Determined(records, min(len(point) for point in universe))


def determined_given_rest(
    universe: Iterable[Sequence[Record]], point: Sequence[Record], attribute: str, schema: Schema
) -> Fraction:
    """The share of records of a data set whose value follows from the invariants and their other values.

    Guarantee
        A record counts where, in every data set of the universe, all records with its other values have its
        value of the attribute.
    """
    schema.require([attribute], "attribute")
    place = schema.names.index(attribute)
    values: dict[Record, set[Any]] = {}
    for record in itertools.chain.from_iterable(universe):
        values.setdefault(_rest(record, place), set()).add(record[place])
    fixed = sum(values.get(_rest(record, place), set()) == {record[place]} for record in point)
    return Fraction(fixed, len(point)) if point else Fraction(0)


@dataclass(frozen=True)
class Frechet(Tabular):
    """Cells that the two swapping tables keep from being empty, with how many records they must hold."""

    cells: pl.DataFrame
    records: int

    @property
    def number(self) -> int:
        """Records that the two tables alone determine."""
        return int(self.cells["at_least"].sum())

    @property
    def share(self) -> Fraction:
        """Their share of all records."""
        return Fraction(self.number, self.records) if self.records else Fraction(0)

    def record(self) -> dict[str, Any]:
        """Plain data with stable keys, without the cells."""
        return {"records": self.records, "determined": self.number, "share": str(self.share)}

    def to_polars(self) -> pl.DataFrame:
        """The cells, which follow from the invariants."""
        return self.cells


def frechet(frame: object, match: Sequence[str], hold: Sequence[str], swap: Sequence[str]) -> Frechet:
    """How many records the swapping invariants alone determine, at any scale.

    Guarantee
        In a stratum of n records a cell (h, s) holds at least max(0, n_h + n_s - n) of them, and some data
        set of the universe attains this; so the sum over all cells is ``determined(universe).number``.
        A bound is positive only if n_h or n_s exceeds n/2, which one value of each can do in a stratum:
        the work is linear in the sizes of the two tables, not in their product.
    Reference
        Frechet 1940; the bounds of a two-way table with given margins are sharp (Dobra and Fienberg 2000).

    Examples
    --------
    >>> import polars as pl
    >>> frechet(pl.DataFrame({"h": ["a", "a", "b"], "s": [1, 1, 2]}), [], ["h"], ["s"]).number
    1
    """
    import polars as pl

    table = as_polars(frame)
    missing = [name for name in (*match, *hold, *swap) if name not in table.columns]
    if missing or not hold or not swap:
        raise InputError(
            f"there is no column {missing[0]}" if missing else "both tables need variables of their own",
            field=missing[0] if missing else "hold",
            expected="columns to match, and at least one to hold and one to swap",
            hint="Give the roles that the swapping plan gives.",
        )
    sizes = [
        table.group_by([*match, *side])
        .agg(pl.len().cast(pl.Int64).alias(f"__{name}"))
        .with_columns(pl.lit(0).alias("__all"))
        for name, side in (("h", hold), ("s", swap))
    ]
    stratum = ["__all", *match]
    total = sizes[0].group_by(stratum).agg(pl.col("__h").sum().alias("__n"))
    held, swapped = (
        size.join(total, on=stratum, nulls_equal=True).with_columns(
            (2 * pl.col(f"__{name}") > pl.col("__n")).alias(f"__most_{name}")
        )
        for name, size in zip("hs", sizes, strict=True)
    )
    others = swapped.drop("__n")
    pairs = pl.concat(
        [
            held.filter("__most_h").join(others, on=stratum, nulls_equal=True),
            held.filter(~pl.col("__most_h")).join(others.filter("__most_s"), on=stratum, nulls_equal=True),
        ]
    )
    cells = (
        pairs.with_columns((pl.col("__h") + pl.col("__s") - pl.col("__n")).alias("at_least"))
        .filter(pl.col("at_least") > 0)
        .select([*match, *hold, *swap, "at_least"])
        .sort([*match, *hold, *swap])
    )
    return Frechet(cells, table.height)


def sensitivity_in_universe(
    claim: Specification,
    statistic: Callable[[Any], Any],
    universe: Sequence[Any],
    *,
    norm: Literal["l1", "l2"] = "l1",
) -> Exact:
    """The largest change of a statistic for each unit of distance, within one universe.

    The distance is that of the claim; the statistic makes a number or a sequence of numbers of a data set.

    Guarantee
        max over pairs of |q(x) - q(x')| / d(x, x'); infinite where the statistic differs at distance zero.
        Where d is the shortest-path distance of neighbours in the whole domain, this is at most the largest
        change between neighbours, by the triangle inequality. Invariants can only lower it; what they can
        raise is the change between the nearest data sets, which are then farther than one unit apart.
    """
    require_claim(claim)
    values = [_vector(statistic(point)) for point in universe]
    distances = _distances(claim, universe)
    worst = ZERO
    changes: dict[int, Fraction] = {}
    for i, j in itertools.permutations(range(len(universe)), 2):
        code = int(distances.codes[i, j])
        if not distances.values[code].is_infinite:
            changes[code] = max(changes.get(code, Fraction(0)), _change(values[i], values[j], norm))
    for code, change in changes.items():
        if change:
            size = Exact.sqrt(change) if norm == "l2" else Exact.of(change)
            worst = max(worst, _for_each_unit(size, distances.values[code]))
    return worst


@dataclass(frozen=True)
class _Distances:
    """All distances of some points: the values in order, and for each pair the number of its value."""

    values: tuple[Exact, ...]
    codes: NDArray[np.int64]

    def within(self, limit: int) -> NDArray[np.bool_]:
        """Pairs at most so far apart, in either direction."""
        near = self.codes < sum(value <= Exact.of(limit) for value in self.values)
        return near | near.T

    def accompanied(self) -> NDArray[np.bool_]:
        """Points that are compared with another one."""
        compared = self.codes < sum(not value.is_infinite for value in self.values)
        compared[np.diag_indices(len(compared))] = False
        found: NDArray[np.bool_] = np.asarray((compared | compared.T).any(axis=1))
        return found


def _counted(distances: _Distances) -> UniverseCount:
    used = (distances.values[code] for code in np.unique(distances.codes))
    return UniverseCount(
        size=len(distances.codes),
        pieces_by_one=_pieces(distances.within(1)),
        pieces_by_two=_pieces(distances.within(2)),
        nearest=min((value for value in used if value > ZERO), default=INFINITY),
    )


def _pieces(joined: NDArray[np.bool_]) -> int:
    """Connected pieces of a symmetric table of who is joined to whom: each is walked from its first point."""
    left = np.ones(len(joined), dtype=np.bool_)
    pieces = 0
    while left.any():
        pieces += 1
        reached = np.zeros(len(joined), dtype=np.bool_)
        reached[np.argmax(left)] = True
        while reached.any():
            left &= ~reached
            reached = joined[reached].any(axis=0) & left
    return pieces


def _distances(claim: Specification, points: Sequence[Any]) -> _Distances:
    if len(points) > LARGEST_TABLE:
        raise NotComputable(
            f"the universe has {len(points)} data sets",
            field="universe",
            expected=f"at most {LARGEST_TABLE} data sets for a table of all distances",
            hint="Use fewer levels or records: a census is for small twins.",
        )
    if not points:
        return _Distances((), np.zeros((0, 0), dtype=np.int64))
    premetric = claim.input_premetric
    records = all(isinstance(point, tuple) for point in points)
    if records and isinstance(premetric, HammingUnordered | SymmetricDifference):
        return _multiset_distances(points, isinstance(premetric, HammingUnordered))
    distance = distance_of(claim, points[0])
    rows = [[distance(x, y) for y in points] for x in points]
    values = sorted(set(itertools.chain.from_iterable(rows)))
    place = {value: number for number, value in enumerate(values)}
    return _Distances(tuple(values), np.array([[place[d] for d in row] for row in rows], dtype=np.int64))


def _multiset_distances(points: Sequence[Any], halved: bool) -> _Distances:
    """Distances of data sets from their tables of counts, all at once."""
    cells = {record: i for i, record in enumerate(dict.fromkeys(itertools.chain(*points)))}
    counts = np.zeros((len(points), len(cells)), dtype=np.int64)
    for row, point in enumerate(points):
        for record in point:
            counts[row, cells[record]] += 1
    difference = np.array([np.abs(counts - row).sum(axis=1) for row in counts])
    if halved:
        sizes = counts.sum(axis=1)
        difference = np.where(sizes[:, None] == sizes[None, :], difference // 2, -1)
    values, codes = np.unique(difference, return_inverse=True)
    # Minus one stands for infinity, and moves from the first place to the last.
    exact = [Exact.of(int(value)) for value in values if value >= 0]
    infinite = len(values) - len(exact)
    codes = (codes.reshape(difference.shape) - infinite) % len(values)
    return _Distances((*exact, *[INFINITY] * infinite), codes.astype(np.int64))


def _change(first: tuple[Fraction, ...], second: tuple[Fraction, ...], norm: str) -> Fraction:
    """The size of a difference; its square for l2."""
    power = 2 if norm == "l2" else 1
    return sum((abs(a - b) ** power for a, b in zip(first, second, strict=True)), start=Fraction(0))


def _for_each_unit(change: Exact, distance: Exact) -> Exact:
    if distance.is_zero:
        return INFINITY
    if distance.rational is None:
        raise NotComputable(
            "a change is divided by rational distances only",
            field="claim.input_premetric",
            expected="distances that are rational or infinite",
            hint="Use a distance that counts records.",
        )
    return change / distance.rational


def _vector(value: Any) -> tuple[Fraction, ...]:
    if isinstance(value, Iterable) and not isinstance(value, str):
        return tuple(as_fraction(part) for part in value)
    return (as_fraction(value),)


def _rest(record: Record, place: int) -> Record:
    return (*record[:place], *record[place + 1 :])
