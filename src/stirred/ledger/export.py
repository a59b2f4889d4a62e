"""Export: the ledger as text that anyone can check without stirred.

Guarantee
    The JSON export holds every body as it was hashed: sha256(body) is its hash, and the body names the
    hash before it. Salted ids and the key are never exported.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from stirred.errors import InputError
from stirred.interchange import csv_text
from stirred.ledger.canonical import canonical
from stirred.ledger.chain import Entry
from stirred.ledger.events import guarantee, write

Format = Literal["json", "jsonl", "csv", "head"]
FORMATS: tuple[Format, ...] = ("json", "jsonl", "csv", "head")

_COLUMNS = ("sequence", "at", "name", "role", "kind", "dataset", "guarantee", "plan", "details", "hash")


def export(entries: Sequence[Entry], form: Format) -> str:
    """The entries in one of the formats."""
    if form == "json":
        rows = [{"sequence": r.sequence, "hash": r.hash, "body": r.body} for r in (e.row() for e in entries)]
        head = f"{rows[-1]['sequence']}:{rows[-1]['hash']}"
        body = {"schema_version": 1, "type": "ledger", "head": head, "events": rows}
        return json.dumps(body, ensure_ascii=False, indent=2) + "\n"
    if form == "jsonl":
        return "".join(f"{entry.body()}\n" for entry in entries)
    if form == "csv":
        return _csv(entries)
    if form == "head":
        last = entries[-1].row()
        return f"{last.sequence}:{last.hash}\n"
    raise InputError(
        "this format is not known", field="format", expected=" or ".join(FORMATS), hint="Choose one of them."
    )


def _csv(entries: Sequence[Entry]) -> str:
    rows: list[tuple[object, ...]] = [_COLUMNS]
    for entry in entries:
        record = write(entry.event)
        kind, dataset, plan = record.pop("kind"), record.pop("dataset", ""), record.pop("plan", "")
        given = record.pop("specification", None) or record.pop("ceiling", None)
        shown = "" if given is None else str(guarantee(given))
        rows.append(
            (
                *(entry.sequence, entry.at, entry.name, entry.role, kind),
                *(dataset, shown, plan, canonical(record), entry.row().hash),
            )
        )
    return csv_text(rows)
