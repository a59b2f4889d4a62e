"""Seals: what the ledger keeps beside an event, under its key, and never lets out.

Where a release is drawn, and from which data: a fingerprint of the data is a function of the truth, so it
may not stand in an event, whose hash everyone can see, not even under a key.

Guarantee
    A seal that was edited, moved to another event, added or removed is found by whoever holds the key. No
    byte of the export depends on a seal.
Assumes
    HMAC-SHA-256; the key file stays apart from those who may write the ledger.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stirred.ledger.canonical import canonical
from stirred.ledger.key import Key
from stirred.ledger.refusals import Elsewhere

SECOND_CEILING = "a ceiling of its own, also for data that the ledger knows under another name"


class Seal(NamedTuple):
    """What is kept beside an event: its number, the text, and the proof that it was not changed."""

    sequence: int
    body: str
    seal: str


@dataclass(frozen=True)
class Drawing:
    """Where a release is drawn, and from which data.

    ``place`` is the folder in which it appears; ``data`` maps each confidential table to its keyed
    fingerprint (``stirred.data.fingerprints``).
    """

    place: str
    data: Mapping[str, str]

    def text(self, dataset: str) -> str:
        return canonical({"dataset": dataset, "place": self.place, "data": dict(self.data)})

    @classmethod
    def read(cls, text: str) -> tuple[str, Drawing]:
        """The data set and the drawing that ``text`` wrote."""
        body = json.loads(text)
        return body["dataset"], cls(body["place"], body["data"])

    def shares_data(self, other: Drawing) -> bool:
        """Whether a table of the one is a table of the other."""
        return not set(self.data.values()).isdisjoint(other.data.values())

    def require_same(self, now: Drawing | None) -> None:
        """Refuse a second draw for one payment: in another place, or from other data."""
        if now is None or dict(now.data) != dict(self.data):
            raise Elsewhere("the data are not those that the release was paid for")
        if now.place != self.place:
            raise Elsewhere("the release was paid for in another folder")


def sealed(key: Key, sequence: int, event_hash: str, body: str) -> Seal:
    """A seal for an event, which is named by its hash."""
    message = f"{sequence}\0{event_hash}\0{body}".encode()
    return Seal(sequence, body, hmac.new(key.derived("seal"), message, hashlib.sha256).hexdigest())


def drawing_of(seals: Iterable[Seal], sequence: int) -> Drawing | None:
    """What was sealed with an event."""
    texts = [seal.body for seal in seals if seal.sequence == sequence]
    return Drawing.read(texts[0])[1] if texts else None


def known_elsewhere(seals: Iterable[Seal], dataset: str, drawing: Drawing) -> tuple[str, ...]:
    """Other data sets under whose names these data are known."""
    known = (Drawing.read(seal.body) for seal in seals)
    return tuple(
        dict.fromkeys(name for name, other in known if name != dataset and drawing.shares_data(other))
    )
