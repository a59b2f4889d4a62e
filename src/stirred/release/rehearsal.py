"""A dry run: what a plan promises and costs, before anything is drawn or spent.

No confidential value appears except through the declared invariants.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from stirred.data import Exposures
from stirred.errors import StirredError
from stirred.ledger import Amount, Drawing, Ledger, Preview
from stirred.release.job import Job
from stirred.release.kinds import opened
from stirred.release.payment import fingerprints, group_of
from stirred.release.plan import Plan
from stirred.release.plan_audit import require_claim
from stirred.release.protection import most_determined
from stirred.report import Facts
from stirred.spec import Specification, declared_invariants


@dataclass(frozen=True)
class DryRun:
    """What a dry run found."""

    plan: Plan
    specification: Specification
    facts: Facts
    exposures: Exposures
    refused: str | None
    cost: Preview | None
    open_steps: tuple[str, ...]
    warnings: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "plan": self.plan.name,
            "plan_digest": self.plan.digest,
            "guarantee": str(self.specification),
            "specification": self.specification.record(),
            "mechanism": self.facts.mechanism,
            "settings": {name: str(value) for name, value in self.facts.settings.items()},
            "exact": [
                {"statistic": e.sentence, "legal_basis": e.legal_basis, "figures": e.figures}
                for e in self.facts.exact
            ],
            "constraints": list(self.facts.constraints),
            "expected": [e.record() for e in self.facts.expected],
            "exposure": self.exposures.record(),
            "refused": self.refused,
            "cost": None if self.cost is None else _cost(self.cost),
            "open_steps": list(self.open_steps),
            "warnings": list(self.warnings),
        }


def dry_run(plan: Path | Job, ledger: Ledger | None = None) -> DryRun:
    """Check a plan and say what it promises, what it costs and what to think about."""
    job = opened(plan)
    specification, facts = job.specification(), job.facts()
    require_claim(job.plan, specification)
    exposures = job.exposures()
    refusal = exposures.refusal(most_determined(job.plan)) or _unpresentable(job)
    cost = None if ledger is None else _preview(job, specification, ledger)
    return DryRun(
        plan=job.plan,
        specification=specification,
        facts=facts,
        exposures=exposures,
        refused=None if refusal is None else refusal.problem,
        cost=cost,
        open_steps=tuple(step.name for step in job.plan.checklist.blocking()),
        warnings=(*facts.warnings, *_warnings(job.plan, specification, cost)),
    )


def _unpresentable(job: Job) -> StirredError | None:
    try:
        job.require_presentable()
    except StirredError as refusal:
        return refusal
    return None


def _preview(job: Job, specification: Specification, ledger: Ledger) -> Preview:
    plan = job.plan
    name, period, drawing = plan.dataset.name, plan.dataset.period, Drawing("", fingerprints(job, ledger))
    return ledger.preview(name, specification, period=period, group=group_of(plan), drawing=drawing)


def _warnings(plan: Plan, specification: Specification, cost: Preview | None) -> list[str]:
    out = []
    if plan.dataset.population is not None and Fraction(plan.delta) * plan.dataset.population >= 1:
        out.append(
            f"delta = {plan.delta} is not below one over the declared population: with such a delta a record "
            "may be published outright."
        )
    if cost is not None and cost.tainted:
        out.append("The data set is tainted by a step without protection: " + "; ".join(cost.tainted))
    if cost is not None and cost.refusal is not None:
        out.append(f"The ledger would refuse this release: {cost.refusal.problem}")
    known = {e.statistic for e in plan.legal_bases}
    said = {i for i in known if i not in _sentences(specification)}
    out += [f"A legal basis is given for what is not published exactly: {text}" for text in sorted(said)]
    return out


def _sentences(specification: Specification) -> set[str]:
    return {i.sentence() for i in declared_invariants(specification.multiverse) or ()}


def _cost(preview: Preview) -> dict[str, Any]:
    refusal: StirredError | None = preview.refusal
    return {
        "dataset": preview.dataset,
        "requested": None if preview.requested is None else str(preview.requested),
        "remaining": str(Amount.of(preview.remaining)),
        "afterwards": None if preview.afterwards is None else str(Amount.of(preview.afterwards)),
        "refused": None if refusal is None else refusal.problem,
    }
