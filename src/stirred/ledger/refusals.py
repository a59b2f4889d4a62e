"""What the ledger says no with: each refusal says what it refused and what would have been accepted."""

from __future__ import annotations

from stirred.errors import InputError, Refusal
from stirred.ledger.amount import Amount


class OverBudget(Refusal):
    """A release does not fit: requested, remaining and their difference, exactly."""

    code = "over-budget"

    def __init__(self, where: str, requested: Amount, remaining: Amount) -> None:
        difference = requested.beyond(remaining)
        super().__init__(
            f"{where} has no room for this: requested {requested}, remaining {remaining}, "
            f"difference {difference}",
            field="specification.budget",
            expected=f"at most {remaining}",
            hint="Spend less, or ask for a larger budget before the data are opened: nothing is refunded.",
        )
        self.requested, self.remaining, self.difference = requested, remaining, difference

    def as_dict(self) -> dict[str, str]:
        return super().as_dict() | {
            "requested": str(self.requested),
            "remaining": str(self.remaining),
            "difference": str(self.difference),
        }


class IncomparableFlavor(Refusal):
    """A release whose guarantee is not known to carry over to the flavor of the data set's ceiling."""

    code = "incomparable-flavor"


class SameData(Refusal):
    """Data that are known under another name: a second name would give them a second ceiling."""

    code = "same-data"

    def __init__(self, dataset: str, others: tuple[str, ...]) -> None:
        super().__init__(
            f"the data of {dataset} are known to this ledger as {', '.join(others)}",
            field="dataset",
            expected="one name, and so one ceiling, for the same data",
            hint="Release them under that name; or let an owner permit a second ceiling, with the reason: "
            "stirred release open PLAN --same-data WHY.",
        )


class Elsewhere(Refusal):
    """A release that would be resumed in another place or on other data: a second draw for one payment."""

    code = "elsewhere"

    def __init__(self, problem: str) -> None:
        super().__init__(
            problem,
            field="output",
            expected="the folder and the data that the release was paid for",
            hint="Resume it there; or give it up and pay again (--pay-again): what it had drawn is then "
            "destroyed, and the ledger says so.",
        )


class NotPermitted(Refusal):
    """A person who does not hold a role that may do this."""

    code = "not-permitted"


class NotOpen(Refusal):
    """A spend that is finished, was resumed by another run, or never was."""

    code = "not-open"


class TamperedLedger(Refusal):
    """The chain of events is broken: nothing is spent on such a ledger."""

    code = "tampered-ledger"


class LedgerBusy(InputError):
    """Another process held the ledger for longer than the time allowed."""

    code = "ledger-busy"


def unmade(what: str, error: OSError) -> InputError:
    """The refusal where a file of the ledger cannot be made or written."""
    return InputError(
        f"{what} ({error.strerror})",
        field="path",
        expected="a folder that exists or can be made, with room and permission to write",
        hint="Choose another folder, or make room.",
    )


def tampered(message: str, expected: str) -> TamperedLedger:
    """The refusal of a ledger that somebody wrote to past its rules."""
    return TamperedLedger(
        message,
        field="ledger",
        expected=expected,
        hint="Run `stirred ledger verify`, restore a copy, and find out who wrote to the ledger.",
    )
