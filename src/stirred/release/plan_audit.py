"""Audit a plan: everything that applies, on the data that it names, before anything is spent.

What is drawn for an audit stays in a private temporary folder and is removed. The record says verdicts,
losses and counts that are functions of the invariants or of the audit's own toys; it carries no value of the
data.
"""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stirred.audit import ANNOUNCED, Finding, Verdict, claim_audit, falls_short, require_auditable
from stirred.data import percent
from stirred.errors import Refusal
from stirred.noise import Source, TestSource
from stirred.places import removed_when_terminated
from stirred.release.job import Job
from stirred.release.kinds import opened
from stirred.release.plan import Plan
from stirred.release.release_audit import add_to, published_claim
from stirred.release.replay import replayed
from stirred.spec import Budget, Exact, Specification, plural
from stirred.version import __version__

DRAWS = 100_000


@dataclass(frozen=True)
class AuditRecord:
    """What the audits of a plan found."""

    plan: str
    title: str
    claim: str
    made_on: str
    version: str
    findings: tuple[Finding, ...]

    @property
    def clean(self) -> bool:
        """Whether no audit refuted the claim."""
        return not any(finding.violated for finding in self.findings)

    @property
    def sentence(self) -> str:
        """The record in one sentence."""
        broken = sum(finding.violated for finding in self.findings)
        tried = sum(finding.verdict is Verdict.NOT_REFUTED for finding in self.findings) + broken
        empty = len(self.findings) - tried
        rest = f" {empty} more had nothing to look at." if empty else ""
        vacuous = [
            f.sentence for f in self.findings if f.audit == "universe" and f.verdict is Verdict.VACUOUS
        ]
        if self.clean and vacuous:
            return f"The guarantee is VACUOUS for these data: {'; '.join(vacuous)}. No audit can refute it."
        if self.clean:
            return f"{tried} audits tried to refute this guarantee, and none did.{rest}"
        return f"{broken} of {tried} audits REFUTED the claim.{rest}"

    def public(self) -> AuditRecord:
        """What may be published of it.

        Whether and how often another data set of the universe was found to replay on can depend on the data
        beyond their invariants; that nothing differed cannot, since a release is made only then.
        """
        return replace(self, findings=tuple(map(_public, self.findings)))

    def record(self) -> dict[str, Any]:
        """Plain data with stable keys; no pair of data sets, no event."""
        return {
            "schema_version": 1,
            "type": "audit",
            "plan": self.plan,
            "title": self.title,
            "claim": self.claim,
            "made_on": self.made_on,
            "version": self.version,
            "clean": self.clean,
            "sentence": self.sentence,
            "findings": [finding.record() for finding in self.findings],
        }

    def to_markdown(self) -> str:
        """As a page of text."""
        from stirred.report import audit_page

        return audit_page(self.title, self.claim, self.record())

    def to_json(self) -> str:
        """As JSON text."""
        return json.dumps(self.record(), indent=2, ensure_ascii=False) + "\n"


def _public(finding: Finding) -> Finding:
    if finding.audit != "replay" or finding.violated:
        return finding
    sentence = (
        "published again from the same draw on other data sets of the universe, as far as these were found: "
        "no public file, no entry of the manifest and no event of the ledger differs"
    )
    return Finding("replay", finding.subject, Verdict.NOT_REFUTED, sentence)


def claim_of(plan: Plan, guarantee: Specification) -> Specification:
    """What a plan claims: the guarantee of its mechanism, with the announced budget if there is one."""
    if plan.claim is None:
        return guarantee
    budget = Budget(
        parametrisation=guarantee.budget.parametrisation,
        amounts=(Exact.of(plan.claim),),
        policy=None if guarantee.budget.policy is None else ANNOUNCED,
        at=guarantee.budget.at,
    )
    return guarantee.flavor.with_budget(
        budget, assumptions=guarantee.assumptions, standing=guarantee.standing
    )


def require_claim(plan: Plan, guarantee: Specification) -> None:
    """Refuse a plan whose mechanism needs more than the announced budget."""
    if falls_short(claim_of(plan, guarantee), guarantee):
        raise _claims_less(str(guarantee.budget))


def require_claim_without_data(job: Job) -> None:
    """Refuse a plan whose mechanism needs more than the announced budget on any data."""
    if job.plan.claim is None:
        return
    least = job.least_budget()
    if least.amount > Exact.of(job.plan.claim):
        raise _claims_less(f"{least}, or more")


def _claims_less(guaranteed: str) -> Refusal:
    return Refusal(
        f"the plan claims less than its mechanism guarantees ({guaranteed})",
        field="claim",
        expected="at least the budget of the mechanism",
        hint="Correct the claim, or protect more; `stirred audit run` shows what refutes it.",
    )


def audit(
    plan: Path | Job,
    release: Path | None = None,
    *,
    claim: Specification | None = None,
    random: Source | None = None,
    draws: int = DRAWS,
) -> AuditRecord:
    """Run every audit that applies to a plan, or to a release that was made from it.

    Parameters
    ----------
    plan
        The plan.
    release
        The folder of a release of the plan: what it published is audited, and the record is added to it.
    claim
        What is audited; what the plan claims, or the release published, if not given.
    random
        Randomness of the audits; the operating system's if not given.
    draws
        Draws of each statistical audit.

    Examples
    --------
    >>> from pathlib import Path
    >>> audit(Path("no-plan.yaml"))
    Traceback (most recent call last):
    ...
    stirred.errors.InputError: ...
    """
    job = opened(plan)
    if release is not None:
        claim = published_claim(job.plan, release)
    guarantee = job.specification()
    claimed = claim_of(job.plan, guarantee) if claim is None else claim
    require_auditable(claimed)
    # What is drawn for an audit is marked as never to be published; nobody knows the seed.
    source = TestSource(secrets.randbits(256)) if random is None else random.spawn()
    with removed_when_terminated():
        held = claim_audit(claimed, guarantee, subject="the claim against what the mechanism guarantees")
        findings = (held, *_findings(job, claimed, source, draws))
    found = AuditRecord(
        plan=job.plan.digest,
        title=job.plan.title,
        claim=str(claimed),
        made_on=datetime.now(UTC).date().isoformat(),
        version=__version__,
        findings=findings,
    )
    if release is not None:
        add_to(release, found)
    return found


def _findings(job: Job, claim: Specification, source: Source, draws: int) -> tuple[Finding, ...]:
    _ = job.prepared
    own = job.audits(claim, source.child(1), draws)
    return (*universe_findings(job), *own, replayed(job, claim, source.child(2)))


def universe_findings(job: Job) -> list[Finding]:
    """One finding a protected unit: what the exact statistics determine, as the gate counts it."""
    out = []
    for exposure in job.exposures().units:
        kind = plural(exposure.unit)
        about = f"{'' if exposure.decided else 'at most '}{exposure.at_most:,} of {exposure.records:,}"
        bare = "; no budget protects these" if exposure.at_most else ""
        share = percent(exposure.determined_share)
        sentence = f"the exact statistics alone determine {about} {kind} ({share}){bare}"
        if exposure.vacuous:
            sentence = f"the exact statistics alone determine all {exposure.records:,} {kind}"
        verdict = Verdict.VACUOUS if exposure.vacuous else Verdict.NOT_REFUTED
        subject = f"the universe of the {kind}"
        out.append(Finding("universe", subject, verdict, sentence, details=exposure.record()))
    return out
