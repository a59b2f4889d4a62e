"""Audits of a plan that swaps: its universe, its claim at full size, small twins, and what it draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

from stirred.audit import (
    Certificate,
    Finding,
    Verdict,
    conformity_audit,
    exact_audit,
    log_fair_tail,
    log_none_moves,
    permutation_audit,
    statistical_audit,
)
from stirred.data import code_columns, physical
from stirred.noise import Source, permutation
from stirred.release.job import Members
from stirred.release.replay import REPLAYS
from stirred.spec import Attribute, Exact, Specification, shown, swapping_loss
from stirred.swap import (
    PermutationSwap,
    Records,
    Swapped,
    lower_bound,
    margin_patterns,
    pattern_records,
    universe,
)

if TYPE_CHECKING:
    from stirred.release.kinds.swap.job import SwapJob

SMALL = 4
FEWEST_DRAWS, MOST_DRAWS, ALONE = 2, 5000, 6
RECORDS, MOST_RECORDS, AT_ONCE = 40_000, 1_000_000, 1 << 16
SURE, ORDERED = 1e-12, 1e-9
HELD, GIVEN, COPY = "__held", "__given", "__copy"
PERSON = "person_"
UNBOUNDED = 1 << 62


def audits(job: SwapJob, claim: Specification, source: Source, draws: int) -> list[Finding]:
    """Every audit of the swap itself."""
    twin = PermutationSwap(match=(), swap=("s",), rate=job.rate, loss=job.section.loss)
    sharp = PermutationSwap(match=(), swap=("s",), rate=job.rate, loss="tighter")
    everyone = [_frame(data) for data in universe(pattern_records((1,) * SMALL, (1,) * SMALL))]
    first, subject = twin.prepare(everyone[0]), f"the production kernel on {SMALL} records"
    return [
        _at_full_size(job, claim),
        _small_twins(twin),
        _drawn_by_the_plan(job, source.child(0)),
        conformity_audit(
            twin.sample, first, twin.outcomes(first), draws=draws, source=source.child(1), subject=subject,
        ),
        statistical_audit(
            sharp, [(everyone[0], everyone[1])], sharp.guarantee(sharp.prepare(everyone[0])), draws=draws,
            source=source.child(2), subject=f"{subject}, at the tighter loss",
        ),
    ]  # fmt: skip


def _at_full_size(job: SwapJob, claim: Specification) -> Finding:
    """The claim against the loss that a stratum as large as the largest one has where all records differ.

    The exact likelihood ratio of Theorem 3, for two data sets that differ by one exchange: of the output in
    which every record has moved for the one and all but two for the other, or two and none. Where declared
    levels do not let so many records differ, it is the stratum of as many as can: the rule claims no more for
    it.
    """
    largest = job.prepared.strata.largest
    sides = (tuple(job.section.hold or ()), job.section.swap)
    different = min(largest, *(_kinds(job, claim, names) for names in sides))
    loss, claimed = lower_bound(different, job.rate), claim.budget.linear()
    theorem = swapping_loss(largest, job.rate)
    details = {"largest stratum": largest, "different records": different, "rate": str(job.rate)}
    details["theorem 1"] = str(theorem)
    subject = "the claim at the size of the data"
    at_least = loss.rounded(4, down=True)
    if not loss > claimed:
        sentence = (
            f"a stratum of {different:,} records that all differ loses at least {at_least} for each unit of "
            f"distance, within the claimed {shown(claimed)}"
        )
        return Finding("exact", subject, Verdict.NOT_REFUTED, sentence, loss, claimed, details=details)
    sentence = (
        f"in a stratum of {different:,} records that all differ some output is likelier on one data set "
        f"than on another by a factor of e to the {at_least} or more for each unit of distance, above the "
        f"claimed {shown(claimed)} (Theorem 3)"
    )
    event = "the output in which the most, or the fewest, records have moved"
    pair = ("records that all differ", "some of them exchanged")
    cycle = Exact.log(2) / 3 - Exact.log(job.rate / (1 - job.rate))
    distance = 3 if different == 3 and loss == cycle else 2
    certificate = Certificate(pair, Exact.of(distance), loss, claimed, event)
    return Finding("exact", subject, Verdict.VIOLATED, sentence, loss, claimed, certificate, details)


def _kinds(job: SwapJob, claim: Specification, names: Sequence[str]) -> int:
    """How many records can differ in some columns: the product of the declared levels, if all are.

    What is held may also be told apart by the persons of the household.
    """
    schema, book = claim.domain.record_schema, job.section.codebook
    listed = dict(schema.codebook() if schema else {}) | dict(book.codebook() if book else {})
    levels = [listed.get(name) for name in names]
    if (job.dataset.persons is not None and names != job.section.swap) or None in levels:
        return UNBOUNDED
    return math.prod(len(known) for known in levels if known is not None)


def _small_twins(twin: PermutationSwap) -> Finding:
    """Every universe of a stratum of up to four records, enumerated at the rate of the plan."""
    subject = f"swapping at this rate in every universe of up to {SMALL} records"
    worst: Finding | None = None
    count = 0
    for size in range(2, SMALL + 1):
        for hold, swap in margin_patterns(size):
            frames = [_frame(data) for data in universe(pattern_records(hold, swap))]
            if len(frames) == 1:
                continue
            count += 1
            found = exact_audit(twin, frames, subject=subject)
            if found.violated:
                return found
            assert found.measured is not None
            if worst is None or worst.measured is None or found.measured > worst.measured:
                worst = found
    assert worst is not None and worst.measured is not None and worst.claimed is not None
    sentence = (
        f"the exact loss in {count} universes is at most {shown(worst.measured)}, within the "
        f"{shown(worst.claimed)} that the same rule claims for them"
    )
    return replace(worst, sentence=sentence, details={"universes": count})


def _drawn_by_the_plan(job: SwapJob, source: Source) -> Finding:
    """The plan's own draw on its own records, which are marked so that each permutation can be read off.

    Some draws are of the records as they are; the others are of many copies, each with strata of its own.
    """
    subject = "the plan's own draw, stratum by stratum"
    prepared = job.prepared
    frame, codes = prepared.records.households, prepared.strata.codes
    matched, marks = (
        {name: physical(frame[name]) for name in names}
        for names in (job.section.match, (*(job.section.hold or ()), *job.section.swap))
    )
    alone, copies = _numbers(prepared.strata.sizes, job.rate)
    try:
        drawn = [_permutations(job, source.child(0, i), 0) for i in range(alone)]
        copied = [_permutations(job, source.child(1, i), count) for i, count in enumerate(copies)]
    except (OSError, MemoryError):
        raise
    except _Misplaced:
        sentence = "a part of the output holds records of another part, or not all records are in one"
        return Finding("conformity", subject, Verdict.VIOLATED, sentence)
    except Exception as error:  # what a draw raises is an outcome, and the law of a swap excludes it
        sentence = f"the draw raises {type(error).__name__}"
        return Finding("conformity", subject, Verdict.VIOLATED, sentence)
    risen = sum(r.risen for r in (*drawn, *copied))
    if float(log_fair_tail(risen[:, 0], risen[:, 1]).min()) < math.log(ORDERED / len(risen)):
        sentence = "the records come out in an order that depends on that of the file, or on what was swapped"
        return Finding("conformity", subject, Verdict.VIOLATED, sentence)
    tables = [np.concatenate([row.given for row in rows]) for rows in (drawn, copied) if rows]
    return permutation_audit(
        tables, codes, job.rate, matched=matched, marks=marks, alpha=1e-6 - ORDERED, subject=subject
    )


class _Drawn(NamedTuple):
    """For every record the record whose values it receives, a row for every copy.

    ``risen``: of pairs in the output that differ, how many rise, and how many there are: by their place in
    the file, by that of their donor, by whether they moved, by where they were.
    """

    given: Any
    risen: Any


class _Misplaced(Exception):
    """A part with records of another, or records in no part or in two."""


def _require_own_parts(drawn: Swapped, by: str | None) -> None:
    covered = np.zeros(drawn.households.height, dtype=np.int64)
    for value, start, number in drawn.parts:
        covered[start : start + number] += 1
        held = drawn.households[str(by)].slice(start, number).unique()
        if [str(found) for found in held] != [value]:
            raise _Misplaced
    if drawn.parts and not (covered == 1).all():
        raise _Misplaced


def _risen(parts: Sequence[Any]) -> list[tuple[int, int]]:
    """Of disjoint pairs that differ, how many rise, and how many there are: neighbours, halves of parts."""
    even = [part[: part.size // 2 * 2].astype(np.int64) for part in parts]
    out = []
    for pairs in ([p.reshape(-1, 2) for p in even], [p.reshape(2, -1).T for p in even]):
        first, second = np.concatenate(pairs).T
        out.append((int((first < second).sum()), int((first != second).sum())))
    return out


def _numbers(sizes: Any, rate: Fraction) -> tuple[int, list[int]]:
    """How many draws of the records as they are, and of how many copies at once, by the sizes of strata.

    Enough that a swap which moves nothing is found, within reason.
    """
    records, stays = int(sizes.sum()), float(log_none_moves(sizes, float(rate)).sum())
    most = MOST_RECORDS // records
    needed = min(math.ceil(math.log(SURE) / stays) if stays < 0 else 0, most)
    total = min(max(RECORDS // records, needed, min(ALONE, most), FEWEST_DRAWS), MOST_DRAWS)
    alone = min(total, ALONE)
    each = max(1, AT_ONCE // records)
    rest = total - alone
    return alone, [min(each, rest - done) for done in range(0, rest, each)]


def _permutations(job: SwapJob, source: Source, copies: int) -> _Drawn:
    """A draw of the marked records: of so many copies, or of the records as they are."""
    s, records = job.section, job.dataset
    frame = records.households
    size, count = frame.height, max(copies, 1)
    rows = pl.Series(np.tile(np.arange(size), count))
    marked = (frame[rows] if copies else frame).with_columns(
        pl.int_range(pl.len()).alias(HELD), pl.int_range(pl.len()).alias(GIVEN)
    )
    match = s.match
    if copies:
        marked = marked.with_columns(pl.Series(COPY, np.repeat(np.arange(count), size)))
        match, records = (*match, COPY), replace(records, persons=None, id=None)
    book = s.codebook
    if book is not None:
        extra = tuple(Attribute(name=name) for name in (HELD, GIVEN, COPY))
        book = book.model_copy(update={"attributes": (*book.attributes, *extra)})
    # The domain does not know the marks; its places stay as they are nested.
    schema = job.plan.domain.record_schema if job.plan.domain is not None else None
    nesting = (*(s.nesting or ()), *(schema.nesting if schema is not None else ()))
    roles = {*s.match, *s.swap, *(s.hold or ())}
    settings = s.model_copy(
        update={
            "nesting": tuple(pair for pair in nesting if set(pair) <= roles),
            "match": match, "hold": (*(s.hold or ()), HELD), "swap": (*s.swap, GIVEN),
            "codebook": book, "tables": (), "rate": str(job.rate), "target_epsilon": None,
        }
    )  # fmt: skip
    plan = job.plan.model_copy(update={"domain": None, "mechanism": settings})
    drawn = type(job)(plan, job.folder, replace(records, households=marked)).draw(source, Path())
    made = drawn.households
    out = np.full(size * count, -1, dtype=np.int64)
    place = made[HELD].to_numpy()
    out[place] = made[GIVEN].to_numpy()
    given = made[GIVEN].to_numpy()
    _require_own_parts(drawn, s.by)
    true = code_columns(frame, s.swap, missing="level").values[place % size]
    # Parts stand in the order of their names: within a part the order must be fair, whatever one looks at.
    parts = [slice(start, start + number) for _, start, number in drawn.parts] or [slice(None)]
    looks = (place, given, place != given, true)
    risen = [found for values in looks for found in _risen([values[part] for part in parts])]
    return _Drawn(out.reshape(count, size) - np.arange(count)[:, None] * size, np.array(risen))


def members(job: SwapJob, claim: Specification, source: Source) -> Members:
    """Other data sets of the universe."""
    others = [_rearranged(job, source.child(number)) for number in range(REPLAYS)]
    return Members(others, lambda records: with_persons(records, job.section.swap))


def _rearranged(job: SwapJob, source: Source) -> Records:
    """Another data set of the same universe, far away: places are dealt out anew within every stratum.

    Identifiers are new and the order of the records is another; columns that the plan does not name are
    emptied.
    """
    records, s = job.dataset, job.section
    frame = records.households
    codes = job.prepared.strata.codes
    words = source.words(2 * frame.height)
    first, second = (np.lexsort((w, codes)) for w in (words[: frame.height], words[frame.height :]))
    taken = np.empty(frame.height, dtype=np.int64)
    taken[first] = second
    named = {*s.match, *s.swap, *(s.hold or ())}
    strange = [name for name in frame.columns if name not in {*named, s.id}]
    households = frame.with_columns(frame[name].gather(taken) for name in s.swap).with_columns(
        pl.lit(None, frame.schema[name]).alias(name) for name in strange
    )
    order = permutation(source.child(0), frame.height)
    return _renamed(_moved(records, households), order)


def _renamed(records: Records, order: Any) -> Records:
    """The same records in another order, with other identifiers."""
    households = records.households[order]
    if records.id is None:
        return replace(records, households=households)
    link = pl.DataFrame({records.id: households[records.id], "__new": households[records.id].reverse()})
    out = []
    for frame in (households, records.persons):
        if frame is not None:
            joined = frame.join(link, on=records.id, how="left", maintain_order="left")
            out.append(joined.with_columns(pl.col("__new").alias(records.id)).select(frame.columns))
    return replace(records, households=out[0], persons=out[1] if len(out) == 2 else None)


def with_persons(records: Records, swap: Sequence[str]) -> pl.DataFrame:
    """Households with what is known of their persons, as the invariants name it."""
    if records.persons is None or records.id is None:
        return records.households
    own = [n for n in records.persons.columns if n not in {records.id, *swap}]
    together = (
        records.persons.sort(own)
        .group_by(records.id)
        .agg(pl.col(own).cast(pl.String).str.join(";"))
        .rename({n: f"{PERSON}{n}" for n in own})
    )
    joined = records.households.join(together, on=records.id, how="left", maintain_order="left")
    return joined.with_columns(pl.col(f"{PERSON}{n}").fill_null("") for n in own)


def _moved(records: Records, households: pl.DataFrame) -> Records:
    """The records after an exchange: persons are where their household is."""
    if records.persons is None or records.id is None:
        return replace(records, households=households)
    places = [c for c in records.persons.columns if c in households.columns and c != records.id]
    persons = (
        records.persons.drop(places)
        .join(households.select(records.id, *places), on=records.id, how="left", maintain_order="left")
        .select(records.persons.columns)
    )
    return replace(records, households=households, persons=persons)


def _frame(data: Any) -> pl.DataFrame:
    return pl.DataFrame({"h": [record[1] for record in data], "s": [record[2] for record in data]})
