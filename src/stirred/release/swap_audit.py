"""Audits of a plan that swaps: its universe, its claim at full size, small twins, the production kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl

from stirred.audit import Certificate, Finding, Verdict, exact_audit
from stirred.audit.census import frechet
from stirred.audit.conformity import conformity_audit
from stirred.audit.neighbours import neighbours
from stirred.audit.statistical import statistical_audit
from stirred.errors import NotComputable
from stirred.noise import Source
from stirred.release.swap_job import SwapJob
from stirred.spec.budget import shown
from stirred.spec.exact import Exact
from stirred.spec.psa import swapping_loss
from stirred.spec.specification import Specification
from stirred.swap import PermutationSwap, Records
from stirred.swap.enumeration import margin_patterns, pattern_records, universe
from stirred.swap.loss import lower_bound

SMALL = 4


def audit_swapping(job: SwapJob, claim: Specification, source: Source, draws: int) -> list[Finding]:
    """Every audit of the swap itself."""
    twin = PermutationSwap(match=(), swap=("s",), rate=job.rate, loss=job.settings.loss)
    everyone = [_frame(data) for data in universe(pattern_records((1,) * SMALL, (1,) * SMALL))]
    law = twin.outcomes(everyone[0])
    subject = f"the production kernel on {SMALL} records"
    return [
        _determined(job),
        _at_full_size(job, claim),
        _small_twins(twin),
        conformity_audit(
            twin.sample, everyone[0], law, draws=draws, source=source.child(0), subject=subject
        ),
        statistical_audit(
            twin.sample, [(everyone[0], everyone[1])], twin.guarantee(everyone[0]), draws=draws,
            source=source.child(1), subject=subject,
        ),
    ]  # fmt: skip


def _determined(job: SwapJob) -> Finding:
    """How many records the invariants alone give away: a function of the published margins."""
    settings, households = job.settings, job.data().households
    found = frechet(households, settings.match, settings.hold or (), settings.swap)
    record = found.record()
    subject = "the universe of the data"
    sentence = (
        f"the invariants alone determine {found.number:,} of {found.records:,} records "
        f"({float(found.share):.2%}); no budget protects these"
    )
    verdict = Verdict.VACUOUS if found.number == found.records else Verdict.NOT_REFUTED
    return Finding("universe", subject, verdict, sentence, details=record)


def _at_full_size(job: SwapJob, claim: Specification) -> Finding:
    """The claim against the loss that a stratum as large as the largest one has where all records differ.

    The exact likelihood ratio of Theorem 3, for two data sets that differ by one exchange: of the output in
    which every record has moved for the one and all but two for the other, or two and none.
    """
    largest = int(job.facts().largest_stratum or 0)
    loss, claimed = lower_bound(largest, job.rate), claim.budget.linear()
    theorem = swapping_loss(largest, job.rate)
    details = {"largest stratum": largest, "rate": str(job.rate), "theorem 1": str(theorem)}
    subject = "the claim at the size of the data"
    if not loss > claimed:
        sentence = (
            f"a stratum of {largest:,} records that all differ loses at least {shown(loss)} for each unit of "
            f"distance, within the claimed {shown(claimed)}"
        )
        return Finding("exact", subject, Verdict.NOT_REFUTED, sentence, loss, claimed, details=details)
    sentence = (
        f"in a stratum of {largest:,} records that all differ an exchange of two changes the probability of "
        f"an output by a factor of e to the {shown(loss)} for each unit of distance, above the claimed "
        f"{shown(claimed)} (Theorem 3)"
    )
    event = "every record of the stratum, or only two, moved for the one data set; two fewer for the other"
    pair = ("all records differ", "two of them exchanged")
    certificate = Certificate(pair, Exact.of(2), loss, claimed, event)
    return Finding("exact", subject, Verdict.VIOLATED, sentence, loss, claimed, certificate, details)


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


def swapped_neighbours(job: SwapJob, claim: Specification, source: Source) -> list[tuple[Any, Exact]]:
    """Records of the same universe: two households of a stratum exchange their places, persons follow."""
    records = job.data()
    try:
        found = neighbours(_with_persons(records, claim), claim, source, 1, columns=list(job.settings.swap))
    except NotComputable:
        return []
    return [(_moved(records, frame), distance) for frame, distance in found]


def _with_persons(records: Records, claim: Specification) -> pl.DataFrame:
    """Households with what is known of their persons, as the specification names it."""
    if records.persons is None or records.id is None:
        return records.households
    schema = claim.domain.record_schema
    prefix = "person_"
    names = [n.removeprefix(prefix) for n in (schema.names if schema else ()) if n.startswith(prefix)]
    own = [n for n in names if n in records.persons.columns]
    together = (
        records.persons.sort(own)
        .group_by(records.id)
        .agg(pl.col(own).cast(pl.String).str.join(";"))
        .rename({n: f"{prefix}{n}" for n in own})
    )
    joined = records.households.join(together, on=records.id, how="left", maintain_order="left")
    return joined.with_columns(pl.col(f"{prefix}{n}").fill_null("") for n in own)


def _moved(records: Records, changed: pl.DataFrame) -> Records:
    """The records after an exchange: persons are where their household is."""
    households = changed.select(records.households.columns)
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
