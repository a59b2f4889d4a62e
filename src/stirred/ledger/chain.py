"""The chain: every entry carries the hash of the one before it, and is hashed as a whole.

Guarantee
    An entry that was edited, removed from the middle, inserted, duplicated or moved is found, and named.
Assumes
    SHA-256; and, for the end of the chain, an anchor. Whoever can write the whole file can cut its tail,
    or rewrite it from some event on with fresh hashes: the chain alone cannot tell. A head (sequence and
    hash) that was kept or published elsewhere can.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from stirred.errors import InputError, NewerSchema, StirredError
from stirred.ledger.canonical import canonical, digest, require_digest
from stirred.ledger.events import Event, Spent, read, specification_in, text_of
from stirred.ledger.refusals import tampered
from stirred.ledger.roles import Role

FORMAT = 1
NOTHING = "0" * 64


class Row(NamedTuple):
    """An entry as it is stored."""

    sequence: int
    body: str
    hash: str


@dataclass(frozen=True)
class Head:
    """The end of the chain: what to keep elsewhere, so that nobody can cut the ledger short."""

    sequence: int
    hash: str

    def __str__(self) -> str:
        return f"{self.sequence}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Head:
        number, _, name = text.partition(":")
        if not number.isdecimal():
            raise InputError(
                "this is not a head of a ledger",
                field="anchor",
                expected="SEQUENCE:HASH, as `stirred ledger export --format head` prints it",
                hint="Copy the whole line.",
            )
        return cls(int(number), require_digest(name, "anchor"))


@dataclass(frozen=True)
class Entry:
    """An event with its place in the chain: when (UTC), by whom, in which role."""

    sequence: int
    previous: str
    at: str
    name: str
    role: Role
    event: Event

    def body(self) -> str:
        """Canonical text; its digest is the entry's hash."""
        return self._around(text_of(self.event))

    def _around(self, event: str) -> str:
        """The canonical text with that of the event in it: the keys are in order."""
        by = f'{{"name":{canonical(self.name)},"role":{canonical(self.role)}}}'
        place = f'"format":{FORMAT},"previous":{canonical(self.previous)},"sequence":{self.sequence}'
        return f'{{"at":{canonical(self.at)},"by":{by},"event":{event},{place}}}'

    def row(self) -> Row:
        """The entry as it is stored."""
        return self._row

    @cached_property
    def _row(self) -> Row:
        body = self.body()
        return Row(self.sequence, body, digest(body))

    def is_written(self, body: str, true_hash: str) -> bool:
        """Whether a text with this digest is the canonical one; if it is, it is not computed again."""
        event, known = self.event, specification_in(body)
        try:
            if known is not None and isinstance(event, Spent) and body == self._around(text_of(event, known)):
                # What is around is true, so that what was cut out is the text of this event's specification.
                event.__dict__["text"] = known
            elif body != self.body():
                return False
        except ValueError:  # not a number, or half a letter: what has no canonical text
            return False
        self.__dict__["_row"] = Row(self.sequence, body, true_hash)
        return True


@dataclass(frozen=True)
class Finding:
    """Something that is not as it must be: at which event, what kind of fault, in words."""

    event: int | None
    kind: str
    message: str

    def __str__(self) -> str:
        return self.message


def follow(rows: Iterable[Row], after: Head | None = None) -> Iterator[Entry]:
    """The entries of a chain, one by one; the first fault is refused by name."""
    for entry, findings in inspect(rows, after):
        if findings or entry is None:
            raise tampered(findings[0].message, "an unbroken chain of events")
        yield entry


def unchanged(rows: Iterable[Row], head: Head) -> bool:
    """Whether the rows up to a head that was followed before are still the same; by hashes, with no parser.

    The canonical text of an entry ends with the hash before it and its number, so that a chain of texts with
    true hashes that ends in the same head is the same chain, as SHA-256 is collision resistant.
    """
    expected, previous = 0, NOTHING
    for row in rows:
        end = f',"format":{FORMAT},"previous":"{previous}","sequence":{expected}}}'
        if row.sequence != expected or not row.body.endswith(end) or digest(row.body) != row.hash:
            return False
        if expected == head.sequence:
            return row.hash == head.hash
        expected, previous = expected + 1, row.hash
    return False


def inspect(
    rows: Iterable[Row], after: Head | None = None
) -> Iterator[tuple[Entry | None, tuple[Finding, ...]]]:
    """Every row with what is wrong with it; reading goes on after a fault."""
    expected, previous = (0, NOTHING) if after is None else (after.sequence + 1, after.hash)
    for row in rows:
        entry, findings = _inspected(row, expected, previous)
        yield entry, findings
        expected, previous = row.sequence + 1, row.hash


def _inspected(row: Row, expected: int, previous: str) -> tuple[Entry | None, tuple[Finding, ...]]:
    found: list[Finding] = []
    if row.sequence != expected:
        gone = (
            f"event {expected}"
            if row.sequence == expected + 1
            else f"events {expected} to {row.sequence - 1}"
        )
        found.append(Finding(expected, "missing", f"{gone} missing from the ledger"))
    true_hash = digest(row.body)
    if true_hash != row.hash:
        found.append(Finding(row.sequence, "edited", f"event {row.sequence} was edited: its hash is another"))
    entry = _read(row)
    if entry is None:
        found.append(Finding(row.sequence, "unreadable", f"event {row.sequence} cannot be read"))
        return None, tuple(found)
    if entry.sequence != row.sequence:
        message = f"event {row.sequence} holds what was event {entry.sequence}: the order was changed"
        found.append(Finding(row.sequence, "reordered", message))
    elif entry.previous != previous and not found:
        message = f"event {row.sequence} does not follow the event before it: one of them was replaced"
        found.append(Finding(row.sequence, "broken", message))
    elif not entry.is_written(row.body, true_hash):
        message = f"event {row.sequence} is not in canonical form"
        found.append(Finding(row.sequence, "edited", message))
    return entry, tuple(found)


def _read(row: Row) -> Entry | None:
    """The entry in a row, or nothing where it is not one; an intact event of an unknown kind is refused."""
    try:
        body: Any = json.loads(row.body)
        by = body["by"]
        whole = body["format"] == FORMAT and isinstance(body["event"], dict)
        named = isinstance(by["name"], str) and isinstance(by["role"], str)
        if not whole or not named or type(body["sequence"]) is not int:
            return None
        previous, at, event = str(body["previous"]), str(body["at"]), read(body["event"])
        return Entry(body["sequence"], previous, at, by["name"], by["role"], event)
    except NewerSchema:
        if digest(row.body) == row.hash:
            raise
        return None
    except (ValueError, KeyError, TypeError, StirredError):
        return None
