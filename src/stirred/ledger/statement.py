"""Statements: the account of a data set, and what a release would leave of it, for people and for plans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stirred.errors import StirredError
from stirred.ledger.account import Account, Spend
from stirred.ledger.amount import Amount
from stirred.spec import Specification


@dataclass(frozen=True)
class Statement:
    """The account of one data set. Every budget comes with its flavor."""

    dataset: str
    ceiling: Specification
    each_period: Specification | None
    spent: Specification
    remaining: Specification
    unallocated: Specification
    periods: dict[str, Specification]
    units: dict[str, Specification]
    allocations: dict[str, tuple[Specification, Specification]]
    spends: tuple[Spend, ...]
    tainted: tuple[str, ...]
    overridden: tuple[str, ...]

    @classmethod
    def of(cls, account: Account) -> Statement:
        flavor = account.flavor
        return cls(
            dataset=account.name,
            ceiling=account.ceiling,
            each_period=account.each_period,
            spent=account.composed(),
            remaining=account.remaining().within(flavor),
            unallocated=account.unreserved().within(flavor),
            periods={period: account.composed(period) for period in account.periods},
            units=account.by_unit(),
            allocations={
                name: (granted.within(flavor), account.held(name).specification())
                for name, granted in account.allowances.items()
            },
            spends=tuple(account.spends.values()),
            tainted=account.tainted,
            overridden=account.overridden,
        )

    def as_dict(self) -> dict[str, Any]:
        """For ``--json``: guarantees as text, budgets exact."""
        return {
            "dataset": self.dataset,
            "flavor": str(self.ceiling.flavor),
            "ceiling": Amount.of(self.ceiling).record(),
            "each_period": None if self.each_period is None else Amount.of(self.each_period).record(),
            "spent": Amount.of(self.spent).record(),
            "remaining": Amount.of(self.remaining).record(),
            "unallocated": Amount.of(self.unallocated).record(),
            "periods": {name: Amount.of(part).record() for name, part in self.periods.items()},
            "units": {name: str(part) for name, part in self.units.items()},
            "allocations": {
                name: {"granted": Amount.of(granted).record(), "spent": Amount.of(spent).record()}
                for name, (granted, spent) in self.allocations.items()
            },
            "spends": [_spend(spend) for spend in self.spends],
            "tainted": list(self.tainted),
            "overridden": list(self.overridden),
        }


@dataclass(frozen=True)
class Preview:
    """What a release would leave, with nothing spent; ``refusal`` says why it would not be made."""

    dataset: str
    requested: Amount | None
    remaining: Specification
    afterwards: Specification | None
    tainted: tuple[str, ...]
    refusal: StirredError | None

    @property
    def fits(self) -> bool:
        return self.refusal is None


def _spend(spend: Spend) -> dict[str, Any]:
    return {
        "event": spend.sequence,
        "at": spend.at,
        "by": spend.name,
        "guarantee": str(spend.specification),
        "plan": spend.plan,
        "analyst": spend.analyst,
        "period": spend.period,
        "status": spend.status,
        "attempt": spend.attempt,
        "manifest": spend.manifest,
        "tainted": list(spend.tainted),
    }
