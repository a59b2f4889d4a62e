"""Run a plan once: gate, spend, draw, publish.

Guarantee
    The spend is in the ledger before a random word is drawn. The folder appears complete or not at all. A run
    that fails or is killed keeps its spend; run again with the same plan, folder and data, it is resumed and
    nothing is spent twice. Of two runs of one plan at one time the later is refused; where the system has no
    locks, the ledger lets one of them publish. What an interrupted run had
    drawn is destroyed before anything is drawn again. Bad data and a folder that cannot be written are
    refused before anything is spent.
Assumes
    What ``release.folder`` and ``release.payment`` assume.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from stirred.alone import alone
from stirred.errors import InputError, Refusal, StirredError
from stirred.ledger import Ledger, Spend
from stirred.noise import RandomSource, Source
from stirred.places import neighbour, require_new, require_room
from stirred.release.documents import record_of, write_documents, write_internal
from stirred.release.folder import (
    INTERNAL,
    PUBLIC,
    Work,
    appear,
    part_of,
    place_of,
    settle,
    unwritten,
    working_folder,
)
from stirred.release.job import Job, Progress
from stirred.release.kinds import opened
from stirred.release.manifest import NAME, SEALS, Manifest, Seals, manifest_of
from stirred.release.manifest import PURPOSE as INTERNAL_FILES
from stirred.release.payment import drawing_of, known_spend, paid, remove_parts, require_payable
from stirred.release.plan import Plan
from stirred.release.plan_audit import AuditRecord, claim_of, require_claim
from stirred.release.plan_audit import audit as audit_of
from stirred.release.protection import protected
from stirred.report import Facts, Override, Passage, gate, lint
from stirred.report import record_of as registry_record
from stirred.spec import Release, Specification
from stirred.spec import trial as trial_reason

SEEDED = "it was made with a test seed"


@dataclass(frozen=True)
class Made:
    """A release: where it is and what it promises."""

    folder: Path
    specification: Specification
    publishable: bool
    resumed: bool
    manifest: Manifest


def run(
    plan: Path | Job,
    output: Path,
    ledger: Ledger | None,
    *,
    random: Source | None = None,
    override: Override | None = None,
    progress: Progress | None = None,
    audit: AuditRecord | bool = True,
    pay_again: bool = False,
) -> Made:
    """Run a plan into a folder.

    Without a ledger only a test run is made: it takes a test seed and writes ``internal/`` alone. The plan is
    audited after everything that is quickly refused and before anything is spent, unless ``audit`` is false
    or the record of an audit of this plan; the record is published with the release, and one that refuted
    the claim stops it. ``pay_again`` gives up an interrupted run that was paid for in another folder, or on
    other data.

    Examples
    --------
    >>> from pathlib import Path
    >>> run(Path("no-plan.yaml"), Path("made"), None)
    Traceback (most recent call last):
    ...
    stirred.errors.InputError: ...
    """
    job = opened(plan)
    # A link that leads nowhere, or in circles, is refused before it is followed.
    output = Path(output)
    require_new(output)
    named, output = output, place_of(output)
    source = RandomSource() if random is None else random
    if source.publishable and ledger is None:
        raise Refusal(
            "a release is paid for in a ledger",
            field="ledger",
            expected="a ledger in which the data set is open",
            hint="Create one and open the data set, or make a test run.",
        )
    known = None if ledger is None or not source.publishable else known_spend(job.plan, ledger)
    if ledger is not None and known is not None and known.manifest is not None:
        return _recovered(output, named, ledger, known)
    job.require_complete()
    passage = gate(job.plan.checklist, override)
    specification, facts = job.specification(), job.facts()
    _require_consistent(job.plan, specification)
    require_claim(job.plan, specification)
    facts, passage = protected(job, facts, passage, override)
    _ = job.prepared
    job.require_presentable()
    require_room(output, job.room())
    drawing = None
    if ledger is not None and source.publishable:
        drawing = drawing_of(job, output, ledger)
        require_payable(job.plan, specification, ledger, known, drawing, pay_again=pay_again)
    audited = (audit_of(job) if audit else None) if isinstance(audit, bool) else audit
    _require_clean(job.plan, specification, audited)
    made = _Run(job, facts, specification, passage, source, ledger, progress, audited)
    if ledger is None or drawing is None:
        manifest = made.tried(output, SEEDED)
        return Made(named, specification, False, False, manifest)
    with alone(output):
        # Auditing takes time: another process may have released the plan meanwhile.
        known = known_spend(job.plan, ledger)
        if known is not None and known.manifest is not None:
            return _recovered(output, named, ledger, known)
        require_new(output)
        spend = paid(job.plan, specification, passage, ledger, known, drawing, pay_again=pay_again)
        manifest = made.published(output, spend, ledger)
    return Made(named, specification, True, spend.attempt > 1, manifest)


def trial(
    plan: Path | Job,
    output: Path,
    *,
    random: Source | None = None,
    progress: Progress | None = None,
    drawn: Path | None = None,
    accept_determined: str = "",
) -> Made:
    """Run a job as a trial: nothing is paid, and everything is ``internal/``.

    Nobody sees it, so the checklist stays open. ``drawn`` is a folder with what an earlier trial drew:
    nothing is drawn then. Where the estimates cannot be finished, what was drawn is kept all the same, and
    the refusal is raised. ``accept_determined`` says why more determined records are accepted than the plan
    allows.
    """
    job, output = opened(plan), Path(output)
    require_new(output)
    named, output = output, place_of(output)
    specification, accepted = job.specification(), accept_determined.strip()
    at = datetime.now(UTC)
    override = Override(determined=True, by=job.plan.curator, reason=accepted, at=at) if accepted else None
    facts, passage = protected(job, job.facts(), Passage(consulted=False), override)
    job.require_presentable()
    require_room(output, job.room())
    source = RandomSource() if random is None else random
    made = _Run(
        job,
        facts,
        specification,
        passage,
        source,
        None,
        progress,
        None,
        None if drawn is None else Path(drawn),
    )
    manifest = made.tried(output, trial_reason(*([] if source.publishable else [SEEDED])))
    return Made(named, specification, False, False, manifest)


def _require_consistent(plan: Plan, specification: Specification) -> None:
    """Refuse a record for the registry that contradicts itself or the guarantee."""
    if plan.registry is None:
        return
    found = lint(registry_record(specification, plan.registry, delta=Fraction(plan.delta)), specification)
    if found:
        raise InputError(
            f"the record for the registry contradicts itself: {found[0]}",
            field="registry",
            expected="fields that agree with each other and with the guarantee",
            hint="Correct the plan; nothing was drawn or spent.",
        )


def _require_clean(plan: Plan, specification: Specification, audit: AuditRecord | None) -> None:
    """Refuse an audit that refuted the claim, or that is of another plan or claim."""
    if audit is None:
        return
    same = audit.plan == plan.digest and audit.claim == str(claim_of(plan, specification))
    if not same or not audit.findings:
        raise InputError(
            "the audit is of another plan, or of another claim",
            field="audit",
            expected="the record of an audit of this very plan",
            hint="Audit the plan again: it was changed.",
        )
    if not audit.clean:
        raise Refusal(
            audit.sentence,
            field="audit",
            expected="a claim that no audit refutes",
            hint="Nothing was drawn or spent. See what refuted it: stirred audit run PLAN.",
        )


def _recovered(output: Path, named: Path, ledger: Ledger, spend: Spend) -> Made:
    """A run that was killed between its last entry in the ledger and the appearance of the folder."""
    folder = part_of(output, spend.sequence, spend.attempt)
    if not folder.is_dir():
        raise Refusal(
            "this plan has been released already",
            field="plan",
            expected="a plan that was not run before",
            hint="A second release of the same data costs again: write a new plan for it. If the first run "
            "was interrupted, name the folder that it was to write.",
        )
    manifest, seals = Manifest.read(folder), Seals.read(folder)
    key = ledger.derived_key(INTERNAL_FILES)
    internal = ["the seals"] if seals is None else seals.differences(folder, key)
    if manifest.digest != spend.manifest or manifest.differences(folder) or internal:
        raise Refusal(
            "the products of a finished run are damaged",
            field="output",
            expected="the folder as the interrupted run left it",
            hint="The spend stays in the ledger; a new release needs a new plan and costs again.",
        )
    try:
        appear(folder, output, manifest)
    except OSError as error:
        raise unwritten(error) from None
    return Made(named, spend.specification, True, True, manifest)


def _discard(ledger: Ledger, spend: Spend, by: str) -> None:
    """Say that a failed run removes what it drew; where the ledger cannot be written it stays unsaid."""
    with contextlib.suppress(StirredError):
        ledger.discard(spend, spend.attempt, by=by)


def _finish(ledger: Ledger, spend: Spend, manifest: Manifest, by: str, work: Work) -> None:
    """Enter the products in the ledger; unless it refuses them they are kept, whatever interrupts."""
    work.finished = True
    try:
        ledger.finish(spend, manifest.digest, by=by)
    except StirredError:
        work.finished = False
        raise


@dataclass(frozen=True)
class _Run:
    """What is known before the draw: everything that a release is made from."""

    job: Job
    facts: Facts
    specification: Specification
    passage: Passage
    source: Source
    ledger: Ledger | None
    progress: Progress | None
    audit: AuditRecord | None
    drawn: Path | None = None

    def published(self, output: Path, spend: Spend, ledger: Ledger) -> Manifest:
        """Draw what was paid for; the folder appears when the ledger has its manifest."""
        by = self.job.plan.curator
        part = part_of(output, spend.sequence, spend.attempt)
        with working_folder(part, lambda: _discard(ledger, spend, by)) as work:
            ledger.begin(spend, by=by)
            public = work.folder / PUBLIC
            public.mkdir(exist_ok=True)
            primitive = self.job.draw(self.source.spawn(), public)
            made = self.job.finish(primitive, self.job.prepared.public, self.progress)
            manifest = self._written(work.folder, public, primitive, made, spend)
            settle(work.folder)
            _finish(ledger, spend, manifest, by, work)
            appear(work.folder, output, manifest)
        # A run that was overtaken may have written on after its leftovers were destroyed.
        remove_parts(output, spend, spend.attempt - 1)
        return manifest

    def tried(self, output: Path, reason: str) -> Manifest:
        """Draw, or take what was drawn, and write everything to ``internal/``."""
        refused = None
        with alone(output), working_folder(neighbour(output, "test")) as work:
            folder = work.folder / INTERNAL
            if self.drawn is None:
                primitive = self.job.draw(self.source.spawn(), folder)
            else:
                primitive = self.job.recall(self.drawn)
            try:
                made = self.job.finish(primitive, self.job.prepared.public, self.progress)
            except Refusal as refusal:
                if self.drawn is not None or not any(folder.iterdir()):
                    raise
                refused = refusal
                manifest = self._sealed(work.folder, None, f"{reason}; drawn only: {refusal.problem}")
            else:
                manifest = self._written(work.folder, folder, primitive, made, None, reason)
            settle(work.folder)
            work.folder.rename(output)
        if refused is not None:
            raise refused
        return manifest

    def _written(
        self, folder: Path, public: Path, primitive: Any, made: Release, spend: Spend | None, reason: str = ""
    ) -> Manifest:
        """Publish, assess, report; everything under a temporary name."""
        job, ledger = self.job, None if spend is None else self.ledger
        published = job.publish(made, public)
        record = record_of(
            job.plan, self.facts, self.specification, self.passage, published,
            ledger, spend, self.audit, reason,
        )  # fmt: skip
        write_documents(record, public)
        write_internal(record, job.assess(primitive, made), self.audit, folder / INTERNAL)
        return self._sealed(folder, spend, reason)

    def _sealed(self, folder: Path, spend: Spend | None, reason: str = "") -> Manifest:
        key = None if self.ledger is None or spend is None else self.ledger.derived_key(INTERNAL_FILES)
        (folder / SEALS).write_text(Seals.of(folder, key).text(), encoding="utf-8")
        manifest = manifest_of(self.job.plan, folder, spend, reason)
        (folder / NAME).write_text(manifest.text(), encoding="utf-8")
        return manifest
