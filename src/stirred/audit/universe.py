"""The universe of a data set: every other data set that the claim compares it with, listed.

A data set is a table of counts over the cells of the schema. A count invariant fixes sums of these counts, so
a universe is the set of non-negative integer solutions of linear equations: a fibre. It is searched depth
first, cell by cell; a cell that is the last of an equation is forced.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stirred.audit.claim import require_claim
from stirred.errors import InputError, NotComputable
from stirred.spec import (
    Attribute,
    Count,
    EditDistance,
    Encoded,
    Exact,
    Hamming,
    HammingUnordered,
    Level,
    Maximum,
    Neighbours,
    Record,
    Schema,
    Sharpened,
    Specification,
    SymmetricDifference,
    declared_invariants,
)

if TYPE_CHECKING:
    import polars as pl

LARGEST_UNIVERSE = 20_000
_STEPS_FOR_EACH = 100


def universe_of(claim: Specification, point: Any, *, largest: int = LARGEST_UNIVERSE) -> tuple[Any, ...]:
    """Every data set that shares a universe with this one and is at finite distance of it, itself included.

    ``point`` is a tuple of records in the order of the schema's names, or a point of a listed domain. More
    than ``largest`` data sets are refused.

    Guarantee
        The data sets come in the order of ``Domain.enumerate``, each with its records in order. Where listed
        universes overlap, their union; empty for a point that lies in no universe.
    Assumes
        An attribute without declared levels takes the values that the point has, and one that is also the
        finer of a nesting pair belongs to the coarser value that the point shows. Declared levels are
        crossed freely, as in ``Domain.enumerate``.
    """
    require_claim(claim)
    _require_point(point)
    invariants, domain = declared_invariants(claim.multiverse), claim.domain
    schema = domain.record_schema
    if invariants is None or schema is None or domain.points is not None or domain.structure != "multiset":
        found = _listed(claim, point)
    else:
        found = _fibre(claim, tuple(point), invariants, schema, _STEPS_FOR_EACH * largest)
    members = tuple(itertools.islice(_compared(claim, point, found), largest + 1))
    if len(members) > largest:
        raise _too_large(f"the universe has more than {largest} data sets")
    return members


def _require_point(point: object) -> None:
    if not isinstance(point, tuple | list | frozenset | str | int):
        raise InputError(
            "the data set is not a point of a domain",
            field="point",
            expected="a tuple of records in the order of the schema, or a point of a listed domain",
            hint="Turn a frame into records: records_of(frame, claim.domain).",
        )


def frame_of(point: Sequence[Record], schema: Schema) -> pl.DataFrame:
    """A data set as a frame with the schema's columns, one row for each record; undone by ``records_of``."""
    import polars as pl

    columns = zip(*point, strict=True) if point else ((),) * len(schema.names)
    return pl.DataFrame(
        [
            pl.Series(attribute.name, values, dtype=_dtype(attribute, values))
            for attribute, values in zip(schema.attributes, columns, strict=True)
        ]
    )


def fixes_size(premetric: Any) -> bool:
    """Whether data sets of different sizes are infinitely far apart."""
    if isinstance(premetric, Neighbours | Encoded | Sharpened):
        return fixes_size(premetric.sharpened if isinstance(premetric, Neighbours) else premetric.base)
    if isinstance(premetric, Maximum):
        return any(map(fixes_size, premetric.parts))
    return isinstance(premetric, Hamming | HammingUnordered)


def distance_of(claim: Specification, example: Any) -> Callable[[Any, Any], Exact]:
    """The distance of two points; from the table of the whole domain where two points alone do not say it."""
    premetric = claim.input_premetric
    try:
        premetric.distance(example, example)
    except NotComputable:
        matrix = premetric.matrix(claim.domain)
        place = {point: number for number, point in enumerate(claim.domain.enumerate())}
        return lambda x, y: matrix[place[x]][place[y]]
    return premetric.distance


def _listed(claim: Specification, point: Any) -> Iterator[Any]:
    order = claim.domain.enumerate()
    if point not in order:
        raise _outside()
    shared = [universe for universe in claim.universes() if point in universe]
    return (other for other in order if any(other in universe for universe in shared))


def _compared(claim: Specification, point: Any, found: Iterable[Any]) -> Iterator[Any]:
    """Those at finite distance, in either direction."""
    premetric = claim.input_premetric
    if isinstance(premetric, HammingUnordered | Hamming):
        yield from (other for other in found if len(other) == len(point))
    elif isinstance(premetric, SymmetricDifference | EditDistance):
        yield from found
    else:
        distance = distance_of(claim, point)
        for other in found:
            if not (distance(point, other).is_infinite and distance(other, point).is_infinite):
                yield other


def _fibre(
    claim: Specification, point: tuple[Any, ...], invariants: tuple[Any, ...], schema: Schema, steps: int
) -> Iterator[tuple[Record, ...]]:
    """Solutions of the count equations that keep the other invariants too."""
    if not all(isinstance(record, tuple) and len(record) == len(schema.names) for record in point):
        raise _outside()
    cells = _cells(point, schema)
    sizes = claim.domain.sizes
    if not set(point) <= set(cells) or (sizes is not None and len(point) not in sizes):
        raise _outside()
    counts = [i for i in invariants if isinstance(i, Count)]
    others = [(i, i.of_records(point, schema)) for i in invariants if not isinstance(i, Count)]
    search = _Search(cells, counts, point, schema, steps)
    for size in _sizes(claim, point, search):
        for found in search.solutions(size):
            if all(i.of_records(found, schema) == value for i, value in others):
                yield found


def _sizes(claim: Specification, point: tuple[Record, ...], search: _Search) -> tuple[int | None, ...]:
    """The sizes to search; ``None`` where the invariants bound every cell."""
    if fixes_size(claim.input_premetric):
        return (len(point),)
    if claim.domain.sizes is not None:
        return claim.domain.sizes
    if search.bounded:
        return (None,)
    raise NotComputable(
        "the universe is infinite: no invariant bounds the number of records",
        field="claim.domain.sizes",
        expected="a list of sizes, an invariant that counts every record, or a distance between equal sizes",
        hint="List the sizes of the domain.",
    )


class _Search:
    """Depth-first search for the counts of cells, with what remains of every equation."""

    def __init__(
        self,
        cells: Sequence[Record],
        counts: Sequence[Count],
        point: tuple[Record, ...],
        schema: Schema,
        steps: int,
    ) -> None:
        totals: dict[Any, int] = {}
        member: dict[Record, list[Any]] = {}
        for cell in cells:
            member[cell] = [
                (number, key)
                for number, count in enumerate(counts)
                for key, _ in count.of_records((cell,), schema)
            ]
        for record in point:
            for equation in member[record]:
                totals[equation] = totals.get(equation, 0) + 1
        self.bounded = all(member.values())
        self.cells = [cell for cell in cells if all(e in totals for e in member[cell])]
        place = {equation: number for number, equation in enumerate(totals)}
        self.totals = list(totals.values())
        self.equations = [[place[e] for e in member[cell]] for cell in self.cells]
        self.steps = steps

    def solutions(self, size: int | None) -> Iterator[tuple[Record, ...]]:
        """Data sets of one size, or of any where that is bounded, the fullest first cells first."""
        remaining, equations = list(self.totals), self.equations
        if size is not None:
            equations = [[*of_cell, len(remaining)] for of_cell in equations]
            remaining.append(size)
        later: list[list[int]] = [[] for _ in remaining]
        for cell, of_cell in enumerate(equations):
            for equation in of_cell:
                later[equation].append(cell)
        return self._descend(0, remaining, equations, later, [])

    def _descend(
        self,
        cell: int,
        remaining: list[int],
        equations: list[list[int]],
        later: list[list[int]],
        chosen: list[Record],
    ) -> Iterator[tuple[Record, ...]]:
        self.steps -= 1
        if self.steps < 0:
            raise _too_large("the search for the universe takes too many steps")
        if cell == len(equations):
            if not any(remaining):
                yield tuple(chosen)
            return
        of_cell = equations[cell]
        for count in range(min(remaining[e] for e in of_cell), -1, -1):
            for equation in of_cell:
                remaining[equation] -= count
            if all(_can_fill(e, cell, remaining, equations, later) for e in of_cell):
                yield from self._descend(
                    cell + 1, remaining, equations, later, chosen + [self.cells[cell]] * count
                )
            for equation in of_cell:
                remaining[equation] += count


def _can_fill(
    equation: int, cell: int, remaining: list[int], equations: list[list[int]], later: list[list[int]]
) -> bool:
    """Whether the cells after this one can hold what remains of an equation."""
    room = remaining[equation]
    for other in later[equation]:
        if room <= 0:
            break
        if other > cell:
            room -= min(remaining[e] for e in equations[other])
    return room <= 0


def _cells(point: tuple[Record, ...], schema: Schema) -> list[Record]:
    levels = [_levels(attribute, point, place) for place, attribute in enumerate(schema.attributes)]
    open_ended = {a.name for a in schema.attributes if a.levels is None}
    parents = [
        (finer, coarser, {schema.value(r, finer): schema.value(r, coarser) for r in point})
        for finer, coarser in schema.nesting
        if finer in open_ended
    ]
    cells = (
        cell
        for cell in itertools.product(*levels)
        if all(parent[schema.value(cell, f)] == schema.value(cell, c) for f, c, parent in parents)
    )
    return sorted(cells, key=repr)


def _levels(attribute: Attribute, point: tuple[Record, ...], place: int) -> tuple[Level, ...]:
    if attribute.levels is not None:
        return attribute.levels
    return tuple(dict.fromkeys(record[place] for record in point))


def _dtype(attribute: Attribute, values: Sequence[Level]) -> Any:
    import polars as pl

    kinds = {type(value) for value in (*values, *(attribute.levels or ()))}
    known = {bool: pl.Boolean, int: pl.Int64, str: pl.String}
    if kinds == set():
        return pl.String
    if len(kinds) > 1 or not kinds <= set(known):
        raise InputError(
            f"the attribute {attribute.name} does not make a column",
            field=attribute.name,
            expected="levels that are all integers or all text",
            hint="Write all levels of the attribute in one type.",
        )
    return known[kinds.pop()]


def _outside() -> InputError:
    return InputError(
        "the data set does not belong to the domain of the claim",
        field="point",
        expected="records with declared levels, in the order of the schema, and a size that the domain lists",
        hint="Check the claim's domain.",
    )


def _too_large(problem: str) -> NotComputable:
    return NotComputable(
        problem,
        field="point",
        expected="a universe that can be listed within the given limit",
        hint="Use fewer records or levels, or make single neighbours with stirred.audit.neighbours.",
    )
