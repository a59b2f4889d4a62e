"""A ledger to try things on, and the specifications to try them with."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

from ledger.memory import MemoryStorage

from stirred.ledger import Ledger
from stirred.spec import (
    Approximate,
    Budget,
    Count,
    Domain,
    Flavor,
    GaussianTradeOff,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Specification,
    Stage,
    Trivial,
    from_invariants,
)

DOMAIN = Domain(name="persons", stage=Stage.EDITED_FILE)
PERSONS = HammingUnordered(unit="person")
HOUSEHOLDS = HammingUnordered(unit="household")
NEIGHBOURS = Neighbours(relation="replace", unit="person")

_PLANS = itertools.count()


def flavor(output: object, premetric: object = PERSONS, multiverse: object = None) -> Flavor:
    return Flavor(
        domain=DOMAIN,
        multiverse=Trivial() if multiverse is None else multiverse,
        input_premetric=premetric,
        output_premetric=output,
    )


def pure(epsilon: object, premetric: object = PERSONS, multiverse: object = None) -> Specification:
    return flavor(Multiplicative(), premetric, multiverse).with_budget(Budget.epsilon(epsilon))


def zcdp(rho_squared: object, premetric: object = PERSONS) -> Specification:
    return flavor(NormalisedRenyi(), premetric).with_budget(Budget.zcdp(rho_squared=rho_squared))


def approximate(epsilon: object, delta: object) -> Specification:
    return flavor(Approximate(delta=delta), NEIGHBOURS).with_budget(Budget.epsilon(epsilon))


def gaussian(mu: object) -> Specification:
    return flavor(GaussianTradeOff()).with_budget(Budget.gdp(mu=mu))


def counted() -> object:
    """A multiverse in which the number of persons by state is invariant."""
    return from_invariants(Count(unit="person", by=("state",)))


def plan(number: int | None = None) -> str:
    """A digest of some plan; a new one each time unless a number is given."""
    text = f"plan {next(_PLANS)}" if number is None else f"numbered plan {number}"
    return hashlib.sha256(text.encode()).hexdigest()


MANIFEST = hashlib.sha256(b"manifest").hexdigest()


def make(folder: Path, *ceilings: Specification, name: str = "ledger.db") -> Ledger:
    """Ada owns, Ben curates, Cy allocates, Di and Ed analyse; data sets a, b, c, ... are open."""
    ledger = Ledger.create(folder / name, owner="Ada")
    staff(ledger)
    for letter, ceiling in zip("abcdef", ceilings, strict=False):
        ledger.open_dataset(letter, ceiling, by="Ada")
    return ledger


def desk(*ceilings: Specification) -> Ledger:
    """The same, in memory: for tests that make many."""
    ledger = Ledger(MemoryStorage())
    ledger.found("Ada")
    staff(ledger)
    for letter, ceiling in zip("abcdef", ceilings, strict=False):
        ledger.open_dataset(letter, ceiling, by="Ada")
    return ledger


def staff(ledger: Ledger) -> None:
    ledger.appoint("Ben", "curator", by="Ada")
    ledger.appoint("Cy", "allocator", by="Ada")
    ledger.appoint("Di", "analyst", by="Ada")
    ledger.appoint("Ed", "analyst", by="Ada")
