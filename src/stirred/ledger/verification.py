"""Verification: whether the ledger is what it was.

Guarantee
    The chain is recomputed, every event is replayed under the rules that a writer obeys, totals are
    composed anew from all parts at once, the salted ids are compared with the digests in their events,
    what is sealed is held against its seal where the key is at hand, and the end is compared with every
    anchor at hand. What is wrong is named.
Assumes
    An anchor, for the tail. Without one, a ledger cut after some event is a true ledger of an earlier day;
    rewritten from some event on with fresh hashes, it is a true ledger of another history.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stirred.errors import StirredError
from stirred.ledger.books import Books
from stirred.ledger.chain import Entry, Finding, Head, Row, follow, inspect, unchanged
from stirred.ledger.events import Participated
from stirred.ledger.key import Key
from stirred.ledger.participation import tags_digest
from stirred.ledger.refusals import tampered
from stirred.ledger.seal import sealed
from stirred.ledger.storage import Transaction
from stirred.spec import Specification


@dataclass(frozen=True)
class Verification:
    """What was found; ``ok`` if nothing was wrong. ``notes`` say what could not be checked."""

    events: int
    head: Head | None
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    totals: dict[str, Specification]

    @property
    def ok(self) -> bool:
        return not self.findings

    def as_dict(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "events": self.events,
            "head": None if self.head is None else str(self.head),
            "findings": [{"event": f.event, "kind": f.kind, "message": f.message} for f in self.findings],
            "notes": list(self.notes),
            "totals": {name: str(total) for name, total in self.totals.items()},
        }


def verify(
    transaction: Transaction,
    anchors: Iterable[tuple[str, Head]],
    faults: Iterable[Finding] = (),
    *,
    key: Key | None = None,
    notes: Iterable[str] = (),
) -> Verification:
    """Check everything that can be checked, and go on after a fault."""
    findings = [*faults, *(Finding(None, "damaged", fault) for fault in transaction.faults())]
    rows = list(transaction.rows())
    books, entries, broken = _replayed(rows)
    findings += broken
    if not rows:
        findings.append(Finding(0, "missing", "the ledger is empty: not even its founding is there"))
    findings += _participants(transaction, entries)
    asked = {entry.sequence: entry.row().hash for entry in entries if getattr(entry.event, "sealed", False)}
    findings += _seals(transaction, asked, key)
    said = list(notes)
    anchored = False
    for name, head in anchors:
        anchored = True
        fault, note = _anchored(name, head, rows)
        findings += fault
        said += note
    if not anchored:
        said.append("no anchor was at hand: events cut from the end of the ledger would not be noticed")
    totals: dict[str, Specification] = {}
    if books is not None:
        for name, account in books.accounts.items():
            totals[name] = account.composed()
            if account.recomputed() != account.spent.amount():
                findings.append(
                    Finding(None, "total", f"the total of {name} is not the composition of its parts")
                )
    last = Head(rows[-1].sequence, rows[-1].hash) if rows else None
    return Verification(len(rows), last, tuple(findings), tuple(said), totals)


def _replayed(rows: list[Row]) -> tuple[Books | None, list[Entry], list[Finding]]:
    """The books after all entries, or nothing if an entry has no lawful place."""
    books: Books | None = Books()
    entries: list[Entry] = []
    findings: list[Finding] = []
    for entry, faults in inspect(rows):
        findings += faults
        if entry is None or faults:
            books = None
            continue
        entries.append(entry)
        if books is None:
            continue
        try:
            books = books.after(entry)
        except StirredError as error:
            message = f"event {entry.sequence} breaks the rules: {error.problem}"
            findings.append(Finding(entry.sequence, "unlawful", message))
            books = None
    return books, entries, findings


def _participants(transaction: Transaction, entries: list[Entry]) -> list[Finding]:
    events = [(entry.sequence, entry.event) for entry in entries]
    recorded = {
        event.spend: (number, event.tags) for number, event in events if isinstance(event, Participated)
    }
    findings = []
    for spend, (number, expected) in recorded.items():
        if tags_digest(transaction.tags(spend)) != expected:
            message = f"the participants recorded in event {number} are not those that were recorded"
            findings.append(Finding(number, "participants", message))
    for spend in sorted(transaction.tagged() - set(recorded)):
        message = f"participants are kept for event {spend}, but no event records them"
        findings.append(Finding(spend, "participants", message))
    return findings


def require_seals(transaction: Transaction, books: Books, key: Key) -> None:
    """Refuse a ledger in which something sealed was changed or removed: its data may have another name.

    The events that ask for seals are those of the books, if the chain is still the one they were read from.
    """
    if books.head is not None and not unchanged(transaction.rows(), books.head):
        for _ in follow(transaction.rows()):
            pass
        raise tampered("the events are not those that this process has read", "every event, unchanged")
    found = _seals(transaction, books.sealed, key)
    if found:
        raise tampered(found[0].message, "everything that was sealed, unchanged")


def _seals(transaction: Transaction, asked: Mapping[int, str], key: Key | None) -> list[Finding]:
    """What is kept beside the events: as many seals as events ask for, each unchanged if the key is there."""
    kept = {seal.sequence: seal for seal in transaction.sealed()}
    findings = [
        Finding(number, "sealed", f"what was sealed with event {number} is missing")
        for number in sorted(asked.keys() - kept.keys())
    ]
    for number in sorted(kept.keys() - asked.keys()):
        findings.append(
            Finding(number, "sealed", f"something is sealed with event {number}, which has no seal")
        )
    if key is None:
        return findings
    for number in sorted(asked.keys() & kept.keys()):
        if sealed(key, number, asked[number], kept[number].body) != kept[number]:
            findings.append(Finding(number, "sealed", f"what was sealed with event {number} was changed"))
    return findings


def _anchored(name: str, head: Head, rows: list[Row]) -> tuple[list[Finding], list[str]]:
    found = {row.sequence: row.hash for row in rows}
    last = rows[-1].sequence if rows else -1
    if head.sequence > last:
        gone = f"event {last + 1}" if head.sequence == last + 1 else f"events {last + 1} to {head.sequence}"
        return [
            Finding(last + 1, "cut", f"the end was cut: the {name} knows {gone}, the ledger does not")
        ], []
    if found.get(head.sequence) != head.hash:
        message = f"event {head.sequence} is not the one that the {name} knows: history was rewritten"
        return [Finding(head.sequence, "rewritten", message)], []
    if head.sequence < last:
        return [], [f"the {name} vouches for events up to {head.sequence} of {last}"]
    return [], []
