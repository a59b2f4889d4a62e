"""Run a plan once: gate, spend, draw, publish.

Guarantee
    The spend is in the ledger before a random word is drawn. The folder appears complete or not at all. A run
    that fails or is killed keeps its spend; run again with the same plan, it is resumed and nothing is
    spent twice. Of two runs of one plan the ledger lets one publish. What an interrupted run had drawn is
    removed before anything is drawn again. Bad data and a folder that cannot be written are refused before
    anything is spent.
Assumes
    The folder and its temporary neighbour are on one file system, where renaming is atomic.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from stirred import __version__
from stirred.errors import InputError, Refusal, StirredError
from stirred.ledger import Ledger, Spend, Statement
from stirred.ledger.amount import Amount
from stirred.noise import RandomSource, Source
from stirred.release.audit import AuditRecord, claim_of, require_claim
from stirred.release.checklist import Override, Passage, gate
from stirred.release.job import Facts, Job, Progress, Published, job_of
from stirred.release.manifest import NAME, Manifest
from stirred.release.plan import Plan
from stirred.release.protection import protected
from stirred.release.record import InternalRecord, ReleaseRecord
from stirred.release.registry import lint
from stirred.release.registry import record_of as registry_record
from stirred.release.report import report_html, report_json, report_markdown
from stirred.release.table import ReleaseRow, ReleaseTable
from stirred.spec.specification import Specification


@dataclass(frozen=True)
class Made:
    """A release: where it is and what it promises."""

    folder: Path
    specification: Specification
    publishable: bool
    resumed: bool
    manifest: Manifest


def open_account(plan: Plan, folder: Path, ledger: Ledger, *, by: str) -> Specification:
    """Open the plan's data set in a ledger, with the ceiling of the plan in the flavor of its mechanism."""
    if plan.dataset.ceiling is None:
        raise InputError(
            "the plan has no ceiling for its data set",
            field="dataset.ceiling",
            expected="the total budget of the data set, in the currency of the mechanism",
            hint="For TopDown that is rho squared, for swapping epsilon.",
        )
    specification = job_of(plan, folder).specification()
    ceiling = specification.flavor.with_budget(
        specification.budget.model_copy(update={"amounts": (_exact(plan.dataset.ceiling),), "rule": ""})
    )
    ledger.open_dataset(plan.dataset.name, ceiling, by=by)
    return ceiling


def run_release(
    path: Path,
    output: Path,
    ledger: Ledger | None,
    *,
    random: Source | None = None,
    override: Override | None = None,
    progress: Progress | None = None,
    audit: AuditRecord | Callable[[], AuditRecord] | None = None,
) -> Made:
    """Run a plan into a folder.

    Without a ledger only a test run is made: it takes a test seed and writes ``internal/`` alone. The record
    of an audit of this plan is published with the release; one that refuted the claim stops it. A function
    that audits is called after everything that is quickly refused, and before anything is spent.
    """
    plan = Plan.load(path)
    source = RandomSource() if random is None else random
    if source.publishable and ledger is None:
        raise Refusal(
            "a release is paid for in a ledger",
            field="ledger",
            expected="a ledger in which the data set is open",
            hint="Create one and open the data set, or make a test run.",
        )
    if output.exists():
        raise _exists(output)
    known = None if ledger is None or not source.publishable else _known(plan, ledger)
    if known is not None and known.manifest is not None:
        return _recovered(output, known)
    job = job_of(plan, path.parent)
    passage = gate(plan.checklist, override)
    specification, facts = job.specification(), job.facts()
    _require_consistent(plan, specification)
    require_claim(plan, specification)
    facts, passage = protected(plan, job, facts, passage, override)
    job.prepare()
    _require_writable(output)
    if ledger is not None and source.publishable and known is None:
        refusal = ledger.preview(plan.dataset.name, specification, period=plan.dataset.period).refusal
        if refusal is not None:
            raise refusal
    audited = audit() if callable(audit) else audit
    _require_clean(plan, specification, audited)
    if not source.publishable or ledger is None:
        with _working_folder(output, "test") as work:
            manifest = _written(
                plan, job, facts, specification, passage, source, work.folder, None, None, progress, audited
            )
            work.folder.rename(output)
        return Made(output, specification, False, False, manifest)
    # Auditing takes time: another process may have released the plan meanwhile.
    known = _known(plan, ledger)
    if known is not None and known.manifest is not None:
        return _recovered(output, known)
    spend = _paid(plan, specification, passage, ledger, known)
    for attempt in range(1, spend.attempt):
        shutil.rmtree(_part(output, spend, attempt), ignore_errors=True)
    with _working_folder(output, f"{spend.sequence}-{spend.attempt}") as work:
        manifest = _written(
            plan, job, facts, specification, passage, source, work.folder, ledger, spend, progress, audited
        )
        _make_durable(work.folder)
        _finish(ledger, spend, manifest, plan.curator, work)
        _appear(work.folder, output, manifest)
    return Made(output, specification, True, known is not None, manifest)


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


def _known(plan: Plan, ledger: Ledger) -> Spend | None:
    """The spend of an earlier run of this plan."""
    spends = [s for s in ledger.statement(plan.dataset.name).spends if s.plan == plan.digest]
    return spends[-1] if spends else None


def _paid(
    plan: Plan, specification: Specification, passage: Passage, ledger: Ledger, known: Spend | None
) -> Spend:
    """The spend of this plan: a new one, or the one of a run that was interrupted. Overrides come first."""
    name, period = plan.dataset.name, plan.dataset.period
    if known is not None and known.specification != specification:
        raise Refusal(
            "the guarantee is not the one that was paid for",
            field="plan",
            expected="the data as they were when the release was paid for",
            hint="Restore the data and run again, or write a new plan, which costs again.",
        )
    if passage.override is not None:
        refusal = ledger.preview(name, specification, period=period).refusal if known is None else None
        if refusal is not None:
            raise refusal
        ledger.override(name, passage.what(), passage.override.reason, by=passage.override.by)
    if known is not None:
        return ledger.resume(name, plan.digest, by=plan.curator)
    return ledger.spend(name, specification, plan.digest, by=plan.curator, period=period, once=True)


def _recovered(output: Path, spend: Spend) -> Made:
    """A run that was killed between its last entry in the ledger and the appearance of the folder."""
    folder = _part(output, spend, spend.attempt)
    if not folder.is_dir():
        raise Refusal(
            "this plan has been released already",
            field="plan",
            expected="a plan that was not run before",
            hint="A second release of the same data costs again: write a new plan for it. If the first run "
            "was interrupted, name the folder that it was to write.",
        )
    manifest = Manifest.read(folder)
    if manifest.digest != spend.manifest or manifest.differences(folder):
        raise Refusal(
            "the products of a finished run are damaged",
            field="output",
            expected="the folder as the interrupted run left it",
            hint="The spend stays in the ledger; a new release needs a new plan and costs again.",
        )
    try:
        _appear(folder, output, manifest)
    except OSError as error:
        raise _unwritable(error) from None
    return Made(output, spend.specification, True, True, manifest)


def _finish(ledger: Ledger, spend: Spend, manifest: Manifest, by: str, work: _Work) -> None:
    """Enter the products in the ledger; unless it refuses them they are kept, whatever interrupts."""
    work.finished = True
    try:
        ledger.finish(spend, manifest.digest, by=by)
    except StirredError:
        work.finished = False
        raise


def _appear(folder: Path, output: Path, manifest: Manifest) -> None:
    """Give the finished folder its name; another run of the same plan may have done so just now."""
    try:
        folder.rename(output)
    except FileNotFoundError:
        if not output.is_dir() or Manifest.read(output).digest != manifest.digest:
            raise


def _make_durable(folder: Path) -> None:
    """Wait until everything is on the disk: after a power cut the ledger must not know more than it."""
    for path in (*folder.rglob("*"), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _require_writable(output: Path) -> None:
    """Refuse, before anything is spent, a place where nothing can be written."""
    place = next(folder for folder in output.absolute().parents if folder.exists())
    try:
        Path(tempfile.mkdtemp(prefix=".stirred-", dir=place)).rmdir()
    except OSError as error:
        raise _unwritable(error) from None


def _part(output: Path, spend: Spend, attempt: int) -> Path:
    return output.with_name(f".{output.name}.{spend.sequence}-{attempt}.part")


@dataclass
class _Work:
    """A temporary neighbour of the output; once finished in the ledger it is kept until it is renamed."""

    folder: Path
    finished: bool = False


@contextmanager
def _working_folder(output: Path, label: str) -> Iterator[_Work]:
    """Removed on failure before the ledger's last entry; kept after it, or if the machine dies."""
    work = _Work(output.with_name(f".{output.name}.{label}.part"))
    try:
        if work.folder.exists():
            shutil.rmtree(work.folder)
        (work.folder / "internal").mkdir(parents=True)
        yield work
    except OSError as error:
        raise _unwritable(error) from None
    finally:
        if not work.finished:
            shutil.rmtree(work.folder, ignore_errors=True)


def _written(
    plan: Plan,
    job: Job,
    facts: Facts,
    specification: Specification,
    passage: Passage,
    source: Source,
    folder: Path,
    ledger: Ledger | None,
    spend: Spend | None,
    progress: Progress | None,
    audit: AuditRecord | None,
) -> Manifest:
    """Draw, publish, diagnose, report; everything under a temporary name."""
    public = folder / ("public" if source.publishable else "internal")
    public.mkdir(exist_ok=True)
    primitive = job.draw(source.spawn(), public)
    published = job.publish(primitive, public, progress)
    internal = job.diagnose(primitive)
    record = record_of(plan, facts, specification, passage, published, ledger, spend, audit)
    if not source.publishable:
        record = _unpublishable(record, "it was made with a test seed")
    write_documents(record, public)
    if plan.registry is not None:
        text = registry_record(specification, plan.registry, delta=Fraction(plan.delta)).to_yaml()
        (public / "registry.yaml").write_text(text, encoding="utf-8")
    _write_internal(record, internal, folder / "internal")
    manifest = Manifest.of(
        folder,
        {
            "type": "release",
            "name": plan.name,
            "plan": plan.digest,
            "publishable": source.publishable,
            "dataset": plan.dataset.name,
            "spend": None if spend is None else spend.sequence,
        },
    )
    (folder / NAME).write_text(manifest.text(), encoding="utf-8")
    return manifest


def record_of(
    plan: Plan,
    facts: Facts,
    specification: Specification,
    passage: Passage,
    published: Published,
    ledger: Ledger | None = None,
    spend: Spend | None = None,
    audit: AuditRecord | None = None,
) -> ReleaseRecord:
    """The public facts of a release."""
    statement = None if ledger is None else ledger.statement(plan.dataset.name)
    table = _release_table(plan, facts, specification, statement)
    day = datetime.now(UTC).date().isoformat() if spend is None else spend.at[:10]
    return ReleaseRecord(
        name=plan.name,
        title=plan.title,
        description=plan.description,
        agency=plan.agency,
        dataset=plan.dataset.description or plan.dataset.name,
        stage=plan.stage.value.replace("_", " "),
        made_on=day,
        version=__version__,
        mechanism=facts.mechanism,
        settings=facts.settings,
        specification=specification,
        exact=facts.exact,
        constraints=facts.constraints,
        files=published.files,
        tables=published.tables,
        table=table,
        governance=plan.governance,
        passage=passage,
        budget=facts.budget,
        geography=facts.geography,
        swap_rate=facts.swap_rate,
        largest_stratum=facts.largest_stratum,
        spent="" if statement is None else str(Amount.of(statement.spent)),
        remaining="" if statement is None else str(Amount.of(statement.remaining)),
        ledger_head="" if ledger is None else str(ledger.head()),
        plan_digest=plan.digest,
        warnings=facts.warnings,
        exposures=facts.exposures,
        audit=audit,
    )


def _release_table(
    plan: Plan, facts: Facts, specification: Specification, statement: Statement | None
) -> ReleaseTable:
    """One row for every release of the data set in the ledger, and for every step without protection."""

    def row(step: str, mechanism: str, own: Specification | None) -> ReleaseRow:
        return ReleaseRow(
            step=step,
            scope=plan.description or plan.title,
            mechanism=mechanism,
            implementation=f"stirred {__version__}",
            specification=own,
        )

    if statement is None:
        return ReleaseTable.of(
            [row(plan.title, facts.mechanism, specification)], delta=Fraction(plan.delta), scope=plan.title
        )
    rows = [
        row(plan.title, facts.mechanism, spend.specification)
        if spend.plan == plan.digest
        else row(f"release of event {spend.sequence}", "as that release says", spend.specification)
        for spend in statement.spends
    ]
    rows += [row(step, "none: not protected", None) for step in statement.tainted]
    total = None if statement.tainted else statement.spent
    return ReleaseTable.of(rows, total=total, delta=Fraction(plan.delta), scope=plan.title)


def _unpublishable(record: ReleaseRecord, reason: str) -> ReleaseRecord:
    from dataclasses import replace

    return replace(record, publishable=False, reason=reason)


def write_documents(record: ReleaseRecord, folder: Path) -> None:
    """Specification, release table, data dictionary and report beside the products."""
    texts = {
        "specification.json": record.specification.to_json(),
        "release-table.md": record.table.to_markdown(),
        "release-table.csv": record.table.to_csv(),
        "release-table.json": record.table.to_json(),
        "data-dictionary.json": json.dumps(_dictionary(record), indent=2, ensure_ascii=False) + "\n",
        "report.html": report_html(record),
        "report.md": report_markdown(record),
        "report.json": report_json(record),
    }
    if record.audit is not None:
        texts["audit.json"] = record.audit.to_json()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _dictionary(record: ReleaseRecord) -> list[dict[str, Any]]:
    return [
        {
            "path": file.path,
            "kind": file.kind,
            "title": file.title,
            "rows": file.rows,
            "uncertainty": file.uncertainty,
            "columns": [{"name": c.name, "type": c.type, "meaning": c.meaning} for c in file.columns],
        }
        for file in record.files
    ]


def _write_internal(record: ReleaseRecord, internal: InternalRecord, folder: Path) -> None:
    for name, frame in internal.accuracy.items():
        frame.write_csv(folder / f"accuracy-{name}.csv")
    (folder / "report-internal.html").write_text(report_html(record, internal), encoding="utf-8")


def _unwritable(error: OSError) -> InputError:
    return InputError(
        f"the release could not be written ({error.strerror or 'input or output failed'})",
        field="output",
        expected="a folder with room and permission to write",
        hint="What was spent stays spent; run the same plan again to resume.",
    )


def _exists(output: Path) -> InputError:
    return InputError(
        f"the folder {output.name} exists already",
        field="output",
        expected="a folder that does not exist yet",
        hint="Choose another name; nothing is overwritten.",
    )


def _exact(text: str | int) -> Any:
    from stirred.spec.exact import Exact

    return Exact.of(text)
