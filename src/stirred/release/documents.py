"""The documents of a release: what it says of itself, in public and inside, beside its products."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from stirred.interchange import write_csv
from stirred.ledger import Amount, Ledger, Spend, Statement
from stirred.places import inside, slug
from stirred.release.plan import Plan
from stirred.release.plan_audit import AuditRecord
from stirred.report import (
    Account,
    Facts,
    Identity,
    InternalRecord,
    Passage,
    Published,
    PublishedFile,
    ReleaseRecord,
    ReleaseRow,
    ReleaseTable,
    report_html,
    report_json,
    report_markdown,
)
from stirred.report import record_of as registry_record
from stirred.spec import Specification
from stirred.version import __version__

ERRORS = "errors.json"


def record_of(
    plan: Plan,
    facts: Facts,
    specification: Specification,
    passage: Passage,
    published: Published,
    ledger: Ledger | None = None,
    spend: Spend | None = None,
    audit: AuditRecord | None = None,
    unpublishable: str = "",
) -> ReleaseRecord:
    """The public facts of a release; ``unpublishable`` says why it is not for publication."""
    statement = None if ledger is None else ledger.statement(plan.dataset.name)
    return ReleaseRecord(
        identity=Identity(
            name=plan.name,
            title=plan.title,
            description=plan.description,
            agency=plan.agency,
            dataset=plan.dataset.description or plan.dataset.name,
            stage=specification.domain.stage.value.replace("_", " "),
            made_on=datetime.now(UTC).date().isoformat() if spend is None else spend.at[:10],
            version=__version__,
            plan_digest=plan.digest,
        ),
        specification=specification,
        facts=facts,
        published=published,
        table=_release_table(plan, facts, specification, statement),
        governance=plan.governance,
        passage=passage,
        account=_account(ledger, statement),
        audit=None if audit is None else audit.public().record(),
        registry=registry_text(plan, specification),
        publishable=not unpublishable,
        reason=unpublishable,
    )


def _account(ledger: Ledger | None, statement: Statement | None) -> Account | None:
    if ledger is None or statement is None:
        return None
    return Account(Amount.of(statement.spent), Amount.of(statement.remaining), str(ledger.head()))


def registry_text(plan: Plan, specification: Specification) -> str | None:
    """The record for a registry of releases, if the plan describes one."""
    if plan.registry is None:
        return None
    return registry_record(specification, plan.registry, delta=Fraction(plan.delta)).to_yaml()


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


def write_documents(record: ReleaseRecord, folder: Path) -> None:
    """Specification, release table, data dictionary and report beside the products."""
    texts = {
        "specification.json": record.specification.to_json(),
        "release-table.md": record.table.to_markdown(),
        "release-table.csv": record.table.to_csv(),
        "release-table.json": record.table.to_json(),
        "data-dictionary.json": _json([_described(file) for file in record.published.files]),
        "report.html": report_html(record),
        "report.md": report_markdown(record),
        "report.json": report_json(record),
    }
    if record.audit is not None:
        texts["audit.json"] = _json(record.audit)
    if record.registry is not None:
        texts["registry.yaml"] = record.registry
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def _described(file: PublishedFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "kind": file.kind,
        "title": file.title,
        "rows": file.rows,
        "uncertainty": None if file.uncertainty is None else file.uncertainty.record(),
        "columns": [asdict(column) for column in file.columns],
    }


def write_internal(
    record: ReleaseRecord, internal: InternalRecord, audit: AuditRecord | None, folder: Path
) -> None:
    """Errors against the truth, the audit in full, and the internal edition of the report."""
    if audit is not None:
        (folder / "audit-internal.json").write_text(audit.to_json(), encoding="utf-8")
    for name, frame in internal.accuracy.items():
        write_csv(frame, inside(folder, f"accuracy-{slug(name)}.csv"))
    (folder / ERRORS).write_text(_json(dict(internal.errors)), encoding="utf-8")
    (folder / "report-internal.html").write_text(report_html(record, internal), encoding="utf-8")


def _json(body: Any) -> str:
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"
