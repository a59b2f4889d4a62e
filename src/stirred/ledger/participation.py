"""Participation: in how many releases does a person appear? Answered without keeping who.

Guarantee
    Ids are stored only as HMAC-SHA-256 under the ledger's secret key; the answer is a number of persons.
Assumes
    The key file stays apart from those who may read the ledger: with the key, guesses of ids can be
    tested. The same person has the same id in every release. The answer is itself confidential: it is a
    statistic of the data, for the steward and not for publication.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Participation:
    """How many persons appear in more releases than the limit."""

    limit: int
    over: int

    @property
    def alarm(self) -> bool:
        return self.over > 0


def tags_digest(tags: Iterable[bytes]) -> str:
    """One digest for a sorted list of salted ids."""
    whole = hashlib.sha256()
    for tag in tags:
        whole.update(tag)
    return whole.hexdigest()
