"""What an audit says of the universe of the data: how much of it the exact statistics leave open."""

from __future__ import annotations

from stirred.audit import Finding, Verdict
from stirred.data import percent
from stirred.release.job import Job
from stirred.spec import plural


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
