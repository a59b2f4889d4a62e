"""The protocol: what a mechanism offers, and what a release is.

``guarantee`` uses the data only through their declared invariants: it is the same for every data set of a
universe, and runs before anything is spent. ``products`` may be published; ``diagnostics`` compare with
the confidential truth and never leave the building; the two never meet.

What a mechanism can do besides, audits ask for by name:

| capability                        | what it gives                                                        |
| --------------------------------- | -------------------------------------------------------------------- |
| outcomes(data)                    | every product with its exact probability, for small data             |
| sample(data, count, random)       | independent products, named as ``outcomes`` names them, by the code  |
|                                   | that releases use                                                    |
| measure(data, random),            | the noisy measurements, and all that is made from them and the       |
| finish(measurements, invariants)  | invariants alone                                                     |
| divergence(data, other)           | the exact divergence of the output laws of two data sets             |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from stirred.errors import Refusal
from stirred.spec.specification import Specification

TRIAL = "it was not paid for in a ledger: a trial"


@dataclass(frozen=True)
class Release:
    """What a mechanism made.

    ``uncertainty`` gives the law and scale of every published figure, in words or numbers. A mechanism cannot
    know that anyone paid, so what it makes is a trial and never ``publishable``: only a release that a ledger
    paid for is. ``reason`` says so, and what else stands in the way: a test seed, a guarantee that is not
    certified.
    """

    products: Mapping[str, Any]
    specification: Specification
    uncertainty: Mapping[str, Any] = field(default_factory=dict)
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    publishable: bool = False
    reason: str = TRIAL

    def require_publishable(self) -> None:
        """Refuse to publish a trial, what was made with a test seed, or without a certified guarantee."""
        if not self.publishable:
            raise Refusal(
                f"this release is not for publication: {self.reason}",
                field="release",
                expected="a certified guarantee, the operating system's randomness, and a ledger that paid",
                hint="Write it to internal/ only; a release is made from a plan: stirred release run.",
            )


def trial(*others: str) -> str:
    """Why a trial is not for publication, with what else stands in the way."""
    return "; ".join((TRIAL, *others))


@runtime_checkable
class Mechanism(Protocol):
    """A mechanism states its specification before it touches data."""

    def guarantee(self, data: Any) -> Specification:
        """The specification, from the declared invariants of the data alone."""

    def release(self, data: Any, random: Any = None) -> Release:
        """Run; ``None`` takes the operating system's randomness."""
