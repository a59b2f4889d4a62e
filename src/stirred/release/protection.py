"""The second gate of a release: exact statistics that leave too little to protect are refused.

The checklist asks whether people did their part; this gate asks whether the guarantee says anything. The
share of records that the invariants alone determine must not exceed the plan's ``most_determined``, for
any protected unit. An override is possible, in writing, and travels with the one of the checklist.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from stirred.release.job import Job
from stirred.release.plan import Plan
from stirred.report import Facts, Override, Passage
from stirred.spec import as_fraction


def most_determined(plan: Plan) -> Fraction:
    """The share of records that the exact statistics of a plan may determine."""
    return as_fraction(plan.protection.most_determined)


def protected(
    job: Job, facts: Facts, passage: Passage, override: Override | None = None
) -> tuple[Facts, Passage]:
    """The facts with what is determined and exposed, and the passage through this gate too."""
    found = job.exposures()
    refusal = found.refusal(most_determined(job.plan))
    if refusal is not None:
        if override is None or not override.determined:
            raise refusal
        passage = passage.although_determined(override)
    return replace(facts, exposures=found), passage
