"""The protocol: what a mechanism offers, and what a release is.

``prepare`` checks and counts, once. ``guarantee`` reads what is prepared through the declared invariants
only: it is the same for every data set of a universe, and runs before anything is spent. ``draw`` is the only
step that sees records and randomness together. ``finish`` sees neither: the primitive and what is public.
``assess`` compares with the confidential truth and never leaves the building.

What a mechanism can do besides, audits ask for by name:

| capability                        | what it gives                                                        |
| --------------------------------- | -------------------------------------------------------------------- |
| outcomes(prepared)                | every primitive with its exact probability, for small data           |
| sample(prepared, count, random)   | independent primitives, named as ``outcomes`` names them, by the     |
|                                   | code that releases use                                               |
| divergence(prepared, other)       | the exact divergence of the output laws of two data sets             |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from stirred.errors import InputError, Refusal
from stirred.spec.specification import Specification

TRIAL = "it was not paid for in a ledger: a trial"
Law = Literal["exact", "discrete Gaussian", "discrete Laplace", "estimate", "permutation within strata"]


@dataclass(frozen=True)
class Uncertainty:
    """How a published figure may differ from the truth, by design and for every data set alike.

    ``scale`` is the parameter of the law: the standard deviation of noise, or of an estimate the noise of its
    own measurement; for a permutation the probability that a record changes places. ``interval`` is where the
    error lies with a probability of 95%. Where figures of one table differ, both are left out here and stand
    in columns beside the figures.

    Examples
    --------
    >>> print(Uncertainty("discrete Gaussian", 2.0))
    discrete Gaussian noise with standard deviation 2
    """

    law: Law
    scale: float | None = None
    interval: tuple[float, float] | None = None
    note: str = ""

    @classmethod
    def exact(cls, because: str = "") -> Uncertainty:
        """None at all."""
        return cls("exact", 0.0, (0.0, 0.0), because)

    def record(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        interval = None if self.interval is None else list(self.interval)
        return {"law": self.law, "scale": self.scale, "interval": interval, "note": self.note}

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Uncertainty:
        """Read what ``record`` wrote."""
        scale, interval = record["scale"], record["interval"]
        ends = None if interval is None else (float(interval[0]), float(interval[1]))
        return cls(record["law"], None if scale is None else float(scale), ends, record["note"])

    def __str__(self) -> str:
        words = {
            "exact": "exact",
            "discrete Gaussian": "discrete Gaussian noise",
            "discrete Laplace": "discrete Laplace noise",
            "estimate": "estimated from noisy measurements",
            "permutation within strata": "selected records change places within their stratum",
        }[self.law]
        if self.scale and self.law == "permutation within strata":
            words += f", each with probability {self.scale:.3g} in a large one"
        elif self.scale:
            words += f" with standard deviation {self.scale:.3g}"
        return f"{words}: {self.note}" if self.note else words


class Products(Mapping[str, Any]):
    """Products by name, each made when it is first asked for."""

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


@dataclass(frozen=True)
class Release:
    """What a mechanism made: products, made when they are asked for, and what is promised of them.

    ``uncertainty`` has that of every product by its name. A mechanism cannot know that anyone paid, so what
    it makes is a trial and never ``publishable``: only a release that a ledger paid for is. ``reason`` says
    so, and what else stands in the way: a test seed, a guarantee that is not certified.
    """

    products: Mapping[str, Any]
    specification: Specification
    uncertainty: Mapping[str, Uncertainty] = field(default_factory=dict)
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


def require_prepared(value: Any, kind: type) -> None:
    """Refuse data where a mechanism needs what it prepared of them."""
    if not isinstance(value, kind):
        raise InputError(
            "this is not what the mechanism prepared",
            field="prepared",
            expected="the answer of prepare(data)",
            hint="Write prepared = mechanism.prepare(data), once, and hand that over.",
        )


class Prepared(Protocol):
    """Checked records, with everything that was counted in them; once for all steps."""

    @property
    def public(self) -> Any:
        """What ``finish`` may read: values of the declared invariants, and what follows from them."""


@runtime_checkable
class Mechanism(Protocol):
    """A mechanism states its specification before it draws.

    Examples
    --------
    >>> from stirred.swap import PermutationSwap
    >>> isinstance(PermutationSwap(match=(), swap=("place",), rate="0.1"), Mechanism)
    True
    """

    def prepare(self, dataset: Any) -> Any:
        """Check, code and count: once, and before anything is spent."""

    def guarantee(self, prepared: Any) -> Specification:
        """The specification, through the declared invariants alone."""

    def draw(self, prepared: Any, random: Any = None) -> Any:
        """The primitive output; ``None`` takes the operating system's randomness."""

    def finish(self, primitive: Any, public: Any) -> Release:
        """All that is made of the primitive; reads neither records nor randomness."""

    def assess(self, primitive: Any, prepared: Any, made: Any = None) -> Mapping[str, Any]:
        """Errors against the truth: confidential; ``made`` is what was finished, where it is at hand."""

    def release(self, dataset: Any, random: Any = None) -> Release:
        """Prepare, draw, finish."""
        prepared = self.prepare(dataset)
        return self.finish(self.draw(prepared, random), prepared.public)
