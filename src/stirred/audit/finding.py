"""What an audit says: a verdict, and where a claim is refuted, a certificate that anyone can check.

No audit says "verified": an audit can refute a claim, or fail to refute it up to what it measured. A
certificate may hold data (a pair of data sets, an event): ``Finding.record`` leaves it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from stirred.spec import Exact

LONGEST = 200

Kind = Literal["universe", "exact", "replay", "statistical", "conformity", "accounting"]


class Verdict(StrEnum):
    """The possible ends of an audit."""

    VIOLATED = "violated"
    NOT_REFUTED = "not refuted"
    VACUOUS = "vacuous"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Certificate:
    """What refutes a claim: two data sets of one universe, an event or artefact, and two numbers.

    ``distance`` is the true distance of the pair; ``measured`` is what the pair demands for each unit of
    distance and ``claimed`` is what the specification allows. ``probabilities`` are those of the event under
    the first and under the second data set, exact or bounded.
    """

    pair: tuple[Any, Any]
    distance: Exact
    measured: Exact
    claimed: Exact
    event: Any = None
    probabilities: tuple[Any, Any] | None = None


@dataclass(frozen=True)
class Finding:
    """The result of one audit of one claim.

    ``sentence`` is for people and never shows a data value. ``measured`` is the protection loss that was
    found or bounded from below, in the linear unit of the budget that was ``claimed``. ``details`` are public
    facts: draws, confidence, ceiling, counts of universes.
    """

    audit: Kind
    subject: str
    verdict: Verdict
    sentence: str
    measured: Exact | None = None
    claimed: Exact | None = None
    certificate: Certificate | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def violated(self) -> bool:
        return self.verdict is Verdict.VIOLATED

    def record(self) -> dict[str, Any]:
        """Plain data with stable keys, without the certificate's pair and event."""
        return {
            "audit": self.audit,
            "subject": self.subject,
            "verdict": self.verdict.value,
            "sentence": self.sentence,
            "measured": _number(self.measured),
            "claimed": _number(self.claimed),
            "details": dict(self.details),
        }


def _number(value: Exact | None) -> dict[str, Any] | None:
    if value is None:
        return None
    text = str(value)
    return {
        "exact": text if len(text) <= LONGEST else None,
        "approximately": None if value.is_infinite else float(value),
    }
