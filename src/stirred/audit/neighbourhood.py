"""Neighbours: from one data set to another of its universe, without listing the universe.

Files have local moves: one record is replaced, or two records exchange some of their values; one is added or
removed where the number of records is free. Which records may move is read off the few statistics of them
that the invariants see.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.audit.claim import distance_between, require_same_universe, same_universe
from stirred.audit.movable import (
    Feature,
    Indices,
    Mask,
    MovableTable,
    codes_of,
    differ,
    is_counted,
    is_value,
    same_statistics,
    table_of,
    truth_of,
)
from stirred.audit.universe import fixes_size
from stirred.errors import NotComputable
from stirred.noise import Source, integers, permutation
from stirred.spec import ZERO, Exact, Specification

ATTEMPTS = 100_000
_ALL_SUBSETS = 6
_KEYS = 8
_TRIES = 64
_COPIES = 16
_ROUNDS = 16
_WIDE = 1 << 62

Kind = Callable[[Indices], Iterator["_Proposal"]]


def neighbour(
    claim: Specification,
    data: Any,
    source: Source,
    *,
    attempts: int = ATTEMPTS,
    columns: Iterable[str] | None = None,
    places: pl.DataFrame | None = None,
) -> tuple[Any, Exact]:
    """Another data set of the same universe, near and with much changed, and its true distance."""
    return neighbours(claim, data, source, 1, attempts=attempts, columns=columns, places=places)[0]


def neighbours(
    claim: Specification,
    data: Any,
    source: Source,
    count: int,
    *,
    attempts: int = ATTEMPTS,
    columns: Iterable[str] | None = None,
    places: pl.DataFrame | None = None,
) -> tuple[tuple[Any, Exact], ...]:
    """Up to so many different data sets of the same universe, with their true distances.

    Parameters
    ----------
    data
        A frame, or a mapping from unit to frame; the table of the protection unit is changed.
    source
        Where the random choices come from; the same source gives the same neighbours.
    attempts
        How many records, or pairs of records, to look at before all records are.
    columns
        The attributes that may change; all, unless told. Columns that nest move together.
    places
        Public combinations of nested columns, such as block, tract and county; those seen, unless told.

    Guarantee
        Every result lies in the universe of the data, which is checked on the whole, at finite positive
        distance. Additions and removals come first where sizes may differ, then replacements of one record,
        then exchanges between two; within a kind, those that change most.
    Assumes
        Nothing is known of structural zeros that the claim does not declare: leave out their ``columns``.
        Moves of three records or more are not tried, nor two that change a sum against each other, and a
        record that is added is a copy of one that is there.
    """
    table = table_of(claim, data, columns, places)
    seen: set[Any] = set()
    streams = [
        _accepted(claim, data, table, proposals, seen)
        for proposals in _streams(claim, table, source, attempts, _COPIES * count)
    ]
    found = tuple(itertools.islice(_in_turn(streams), count))
    if not found:
        raise NotComputable(
            "no other data set of the universe was found",
            field="data",
            expected="a record that can be replaced, or two that can exchange values, under the invariants",
            hint="The universe may be a singleton, and the claim vacuous there; list it where it is small.",
        )
    return found


def _accepted(
    claim: Specification, data: Any, table: MovableTable, proposals: Iterable[_Proposal], seen: set[Any]
) -> Iterator[tuple[Any, Exact]]:
    """The data sets that proposals lead to, each once, if they share the universe."""
    failures = 0
    for proposal in proposals:
        identity = proposal.identity(table.frame)
        if identity in seen:
            continue
        seen.add(identity)
        after = proposal.applied(table.frame)
        other = {**data, claim.input_premetric.unit: after} if isinstance(data, Mapping) else after
        if not table.thresholds:
            require_same_universe(claim, data, other)
        elif not same_universe(claim, data, other):
            failures += 1
            if failures == _TRIES:
                return
            continue
        distance = distance_between(claim, data, other)
        if distance > ZERO and not distance.is_infinite:
            yield other, distance


def _in_turn(streams: Iterable[Iterator[Any]]) -> Iterator[Any]:
    """One of each stream, then the next of each, and so on."""
    waiting = list(streams)
    while waiting:
        for stream in tuple(waiting):
            try:
                yield next(stream)
            except StopIteration:
                waiting.remove(stream)


@dataclass(frozen=True)
class _Proposal:
    """Rows to take out of a frame and rows to put in their place, or at the end."""

    rows: tuple[int, ...]
    added: pl.DataFrame

    def identity(self, frame: pl.DataFrame) -> Any:
        """What is taken and what is put, as multisets."""
        removed = frame.select(self.added.columns)[list(self.rows)]
        return tuple(tuple(sorted(map(repr, part.rows()))) for part in (removed, self.added))

    def applied(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The frame after the move; columns that the schema does not name stay with their row."""
        if not self.added.height:
            return frame[np.delete(np.arange(frame.height), self.rows)]
        beside = frame[list(self.rows)] if self.rows else frame.clear(self.added.height)
        both = pl.concat([frame, beside.with_columns(self.added)])
        if not self.rows:
            return both
        order = np.arange(frame.height)
        order[list(self.rows)] = frame.height + np.arange(self.added.height)
        return both[order]


def _streams(
    claim: Specification, table: MovableTable, source: Source, attempts: int, count: int
) -> list[Iterator[_Proposal]]:
    """Moves of every kind; of each, first those that keep thresholds for certain, then others."""
    everyone = permutation(source, table.frame.height).astype(np.int64)
    views = (table.strict(), table) if table.thresholds else (table,)
    kinds = zip(*(_kinds(claim, view, source, attempts, count) for view in views), strict=True)
    return [_widening(kind, everyone, attempts) for of_views in kinds for kind in of_views]


def _widening(kind: Kind, everyone: Indices, attempts: int) -> Iterator[_Proposal]:
    """Moves of some records; of all, where those have none."""
    found = list(kind(everyone[:attempts]))
    yield from found or (kind(everyone) if len(everyone) > attempts else ())


def _kinds(
    claim: Specification, table: MovableTable, source: Source, attempts: int, count: int
) -> Iterator[Kind]:
    whole = {name for compound in table.movable for name in compound} == set(table.names)
    if whole and not fixes_size(claim.input_premetric):
        for change in (-1, 1):
            sizes = claim.domain.sizes
            if sizes is None or table.frame.height + change in sizes:
                yield partial(_additions, table, change, count)
    yield partial(_replacements, table, source, attempts, count)
    yield partial(_exchanges, table, source, attempts, count)


def _additions(table: MovableTable, change: int, count: int, rows: Indices) -> Iterator[_Proposal]:
    """Remove a record that no invariant counts, or add a copy of it."""
    some = table.frame[rows].select(table.names)
    features = table.evaluated(some, range(len(table.features))).to_dict()
    free = np.ones(len(rows), dtype=np.bool_)
    for seen in table.seen:
        free &= ~is_counted(features, seen, len(rows))
    for position in np.flatnonzero(free)[:count]:
        if change > 0:
            yield _Proposal((), some[[int(position)]])
        else:
            yield _Proposal((int(rows[position]),), some.clear())


def _replacements(
    table: MovableTable, source: Source, attempts: int, count: int, rows: Indices
) -> Iterator[_Proposal]:
    """Replace one record by another that the invariants cannot tell from it."""
    before = table.frame[rows].select(table.names)
    everything = range(len(table.features))
    old = table.evaluated(before, everything).to_dict()
    groups = dict.fromkeys([table.movable, *((compound,) for compound in table.movable)])
    found: list[tuple[int, int, int, pl.DataFrame]] = []
    for careful, (number, group) in itertools.product(_care(table, attempts, len(rows)), enumerate(groups)):
        after = before
        for compound in group:
            after = _redrawn(table, after, compound, table.pinned(compound) if careful else [], source)
        new = table.evaluated(after, everything).to_dict()
        score = np.zeros(len(rows), dtype=np.int64)
        for name in table.names:
            score += differ(before[name], after[name])
        for seen in table.seen:
            score *= same_statistics(old, new, seen, len(rows))
        for position in _best(score, count):
            found.append((int(score[position]), number, int(rows[position]), after[[position]]))
    for _, _, row, record in _varied(found):
        yield _Proposal((row,), record)


def _care(table: MovableTable, attempts: int, height: int) -> list[bool]:
    """Rounds of draws: those that keep every feature, and others where some records do not count."""
    rounds = max(1, min(_ROUNDS, attempts // max(height, 1)))
    careful = rounds if table.thresholds else 1
    return [True] * careful + [False] * rounds * any(seen.where for seen in table.seen)


def _redrawn(
    table: MovableTable, frame: pl.DataFrame, compound: tuple[str, ...], pinned: list[int], source: Source
) -> pl.DataFrame:
    """Give every record another value of a compound, with the same pinned features, where there is one."""
    names = list(compound)
    pool = _pool(table, compound)
    keys = [f"__f{f}" for f in pinned]
    if keys:
        pool = pl.concat([pool, table.evaluated(pool, pinned)], how="horizontal").sort(
            keys, maintain_order=True
        )
        spans = (
            pool.with_row_index("__start")
            .group_by(keys)
            .agg(pl.col("__start").min(), pl.len().alias("__many"))
        )
        own = table.evaluated(frame, pinned).join(
            spans, on=keys, how="left", nulls_equal=True, maintain_order="left"
        )
        start, many = (own[name].fill_null(0).to_numpy().astype(np.int64) for name in ("__start", "__many"))
    else:
        start, many = np.zeros(frame.height, dtype=np.int64), np.full(frame.height, pool.height)
    place = frame.select(names).join(
        pool.select(names).with_row_index("__place"),
        on=names,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )["__place"]
    own_place = place.cast(pl.Int64).fill_null(-1).to_numpy()
    draws = integers(source, _WIDE, frame.height).astype(np.int64)
    beside = start + (own_place - start + 1 + draws % np.maximum(many - 1, 1)) % np.maximum(many, 1)
    anywhere = start + draws % np.maximum(many, 1)
    chosen = np.where(own_place < 0, anywhere, beside)
    can = (many > 1) | ((many == 1) & (own_place < 0))
    drawn = pool.select(names)[np.where(can, chosen, 0)]
    mask = pl.Series(can)
    return frame.with_columns(drawn[name].zip_with(mask, frame[name]).alias(name) for name in names)


def _pool(table: MovableTable, compound: tuple[str, ...]) -> pl.DataFrame:
    """The values that a compound may take: public places, declared levels, or what is seen."""
    names = list(compound)
    types = {name: table.frame.schema[name] for name in names}
    if table.places is not None and set(names) <= set(table.places.columns):
        return table.places.select(names).cast(types).unique(maintain_order=True)  # type: ignore[arg-type]
    levels = table.schema.codebook()[names[0]]
    if len(names) == 1 and levels is not None and types[names[0]] != pl.Boolean:
        return pl.DataFrame({names[0]: pl.Series(levels).cast(types[names[0]])})
    return table.frame.select(names).unique(maintain_order=True)


def _exchanges(
    table: MovableTable, source: Source, attempts: int, count: int, rows: Indices
) -> Iterator[_Proposal]:
    """Let two records exchange some compounds, so that every invariant keeps its multiset of cells."""
    frame = table.frame[rows].select(table.names)
    codes = {name: codes_of(frame.select(name)) for name in table.names}
    features = [
        codes_of(table.evaluated(frame, [f])) if is_value(feature) else truth_of(table, frame, f)
        for f, feature in enumerate(table.features)
    ]
    found: list[tuple[int, int, tuple[int, int], frozenset[tuple[str, ...]]]] = []
    for number, moved in enumerate(_moved_sets(table, source)):
        for key in _keys(table, moved):
            a, b = _pairs([features[f] for f in key], len(rows), attempts)
            score = _tables_changed(table, codes, moved, a, b)
            score = np.where(_exchangeable(table, features, moved, a, b), score, 0)
            found += [(int(score[i]), number, (int(a[i]), int(b[i])), moved) for i in _best(score, count)]
    for _, _, (i, j), moved in _varied(found):
        names = [name for compound in moved for name in compound]
        first, second = frame[[i, j]], frame[[j, i]]
        yield _Proposal((int(rows[i]), int(rows[j])), first.with_columns(second[name] for name in names))


def _moved_sets(table: MovableTable, source: Source) -> list[frozenset[tuple[str, ...]]]:
    """Sets of compounds to exchange; a set and its complement give the same pair of records."""
    movable = table.movable
    if len(movable) <= _ALL_SUBSETS:
        sizes = range(1, len(movable) + 1)
        sets = [frozenset(s) for size in sizes for s in itertools.combinations(movable, size)]
    else:
        sets = [frozenset((compound,)) for compound in movable]
        for invariant in table.linear:
            owners = {Feature(name).owner(table.schema) for name in invariant.needs()}
            sets.append(frozenset(c for c in movable if owners & set(c)))
        coins = integers(source, 2, 16 * len(movable)).reshape(16, -1).astype(np.bool_)
        sets += [frozenset(itertools.compress(movable, row)) for row in coins.tolist()]
    everything = frozenset(table.compounds)
    out: dict[frozenset[tuple[str, ...]], None] = {}
    for moved in sets:
        if moved and moved != everything and everything - moved not in out:
            out[moved] = None
    return list(out)


def _keys(table: MovableTable, moved: frozenset[tuple[str, ...]]) -> list[tuple[int, ...]]:
    """Features on which two records should agree: for each invariant, those on one side of the exchange.

    An invariant that sees moved and unmoved features is kept where the records agree on either; one with a
    condition also where the exchange leaves both outside it.
    """
    choices: list[list[frozenset[int]]] = []
    for seen in table.seen:
        needed = frozenset((*seen.cell, *seen.where))
        inside = frozenset(f for f in needed if table.compound_of_feature[f] in moved)
        if inside and inside != needed:
            conditional = [frozenset(seen.where)] if seen.where else []
            choices.append([needed - inside, inside, *conditional])
    keys = (tuple(sorted(frozenset().union(*choice))) for choice in itertools.product(*choices))
    return list(itertools.islice(dict.fromkeys(keys), _KEYS))


def _exchangeable(
    table: MovableTable,
    features: Sequence[NDArray[Any]],
    moved: frozenset[tuple[str, ...]],
    a: Indices,
    b: Indices,
) -> Mask:
    """Whether every invariant sees the same two cells before and after."""
    crossed = [owner in moved for owner in table.compound_of_feature]
    before = [{f"__f{f}": values[rows] for f, values in enumerate(features)} for rows in (a, b)]
    after = [
        {f"__f{f}": values[other if crossed[f] else rows] for f, values in enumerate(features)}
        for rows, other in ((a, b), (b, a))
    ]
    kept = np.ones(len(a), dtype=np.bool_)
    for seen in table.seen:
        same = [[same_statistics(one, two, seen, len(a)) for two in after] for one in before]
        kept &= (same[0][0] & same[1][1]) | (same[0][1] & same[1][0])
    return kept


def _tables_changed(
    table: MovableTable,
    codes: Mapping[str, Indices],
    moved: frozenset[tuple[str, ...]],
    a: Indices,
    b: Indices,
) -> Indices:
    """How many two-way tables the exchange changes: a moved and an unmoved attribute that both differ."""
    sides = [np.zeros(len(a), dtype=np.int64), np.zeros(len(a), dtype=np.int64)]
    for compound in table.compounds:
        for name in compound:
            sides[compound in moved] += codes[name][a] != codes[name][b]
    return sides[0] * sides[1]


def _pairs(keys: Sequence[NDArray[Any]], height: int, attempts: int) -> tuple[Indices, Indices]:
    """Pairs of rows with equal keys: neighbours in the order of the keys, and as many more as allowed."""
    order = np.lexsort(tuple(keys)) if keys else np.arange(height)
    new = np.zeros(height, dtype=np.bool_)
    for key in keys:
        new[1:] |= key[order][1:] != key[order][:-1]
    group = np.cumsum(new)
    farthest = max(1, min(height - 1, attempts // max(height, 1)))
    first, second = [], []
    for offset in range(1, farthest + 1):
        alike = group[offset:] == group[:-offset]
        first.append(order[:-offset][alike])
        second.append(order[offset:][alike])
    return np.concatenate(first), np.concatenate(second)


def _best(score: Indices, count: int) -> list[int]:
    """Positions of the largest positive scores."""
    top = np.argsort(-score, kind="stable")[:count]
    return [int(i) for i in top if score[i] > 0]


def _varied(found: list[Any]) -> list[Any]:
    """The best of each number first, then the second best of each, and so on."""
    ranked = sorted(found, key=lambda entry: (-entry[0], entry[1]))
    turn: Counter[int] = Counter()
    placed = []
    for entry in ranked:
        turn[entry[1]] += 1
        placed.append((turn[entry[1]], entry))
    return [entry for _, entry in sorted(placed, key=lambda item: item[0])]
