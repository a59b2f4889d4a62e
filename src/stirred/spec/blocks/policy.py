"""Policies: how a budget follows from the universe, and where it was evaluated.

A budget that differs from universe to universe is a policy e: universes -> [0, inf], given by a rule and its
parameters. A release states its value in the universe of the data, which is true in that universe and says
nothing of others. A policy is the same whatever the data are: two releases by one policy have one guarantee,
and their numbers decide nothing.

Reference
    Section 2.4.6 and Corollary A.2.2 of the thesis: the policy may always be published, its value where it
    does not tell comparable data sets apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from stirred.errors import NotImplied
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.blocks.block import Block


class Statistic(Block):
    """A size that is a function of the universe, with its value in the universe of the data."""

    name: str
    value: int

    def __str__(self) -> str:
        return f"{self.name} has size {self.value:,}"


class Stated(Block):
    """A rule in words; the words hold all its parameters."""

    kind: Literal["stated"] = "stated"
    text: str


class Fixed(Block):
    """The same amount in every universe: a part of a policy."""

    kind: Literal["fixed"] = "fixed"
    parametrisation: str
    amount: Exact

    @property
    def text(self) -> str:
        """The amount."""
        return f"{self.amount} in every universe ({self.parametrisation.replace('_', ' ')})"


class Swapping(Block):
    """The loss of permutation swapping, in epsilon: a function of the largest stratum b.

    ``theorem`` is "1" (Bailie, Gong and Meng) or "B", the tighter loss of our page of proofs.
    """

    kind: Literal["swapping"] = "swapping"
    theorem: Literal["1", "B"]
    unit: str
    match: tuple[str, ...] = ()
    rate: Exact
    where: str = ""

    @property
    def statistic(self) -> str:
        """b, in words."""
        among = f" {self.where}" if self.where else ""
        strata = f"by {', '.join(self.match)}" if self.match else "(all records are one stratum)"
        return f"the largest stratum of {self.unit} records{among} {strata} with two distinct ones"

    @property
    def text(self) -> str:
        """The rule with its parameters."""
        formula = {
            "1": "ln(b+1) - ln o up to o = sqrt(b+1), then ln o",
            "B": "max(ln o, ln[d(b)/d(b-2)]/2 - ln o) for b of at least 4, d the derangement numbers; |ln o| "
            "for b = 2; max(ln o, ln(2)/3 - ln o, (ln 2 - ln o)/2) for b = 3",
        }[self.theorem]
        rate = self.rate.rational
        return (
            f"with b the size of {self.statistic}, at the swap rate p = {rate} and odds o = p/(1-p): "
            f"{formula}; zero where b = 0"
        )

    def value(self, largest_stratum: int) -> Exact | None:
        """Theorem 1 at a size of the largest stratum; Theorem B is evaluated by ``stirred.swap``."""
        rate = self.rate.rational
        if self.theorem != "1" or rate is None:
            return None
        if largest_stratum == 0:
            return ZERO
        if rate in (0, 1):
            return INFINITY
        odds = rate / (1 - rate)
        return Exact.log(max((largest_stratum + 1) / odds, odds))

    def at(self, largest_stratum: int) -> Statistic:
        """b in the universe of the data."""
        return Statistic(name=self.statistic, value=largest_stratum)


class Restated(Block):
    """A rising formula of another policy: a conversion, or a change of unit."""

    kind: Literal["restated"] = "restated"
    formula: str
    of: Policy

    @property
    def text(self) -> str:
        """The formula and what it is applied to."""
        return f"{self.formula}, of the following. {self.of.text}"


class Together(Block):
    """Several policies combined in every universe by a formula that rises in each."""

    kind: Literal["together"] = "together"
    how: str
    parts: tuple[Policy, ...]

    @property
    def text(self) -> str:
        """The formula and its parts."""
        listed = "; ".join(f"({i}) {part.text}" for i, part in enumerate(self.parts, 1))
        return f"{self.how} of {len(self.parts)} parts: {listed}"


Policy = Annotated[Stated | Fixed | Swapping | Restated | Together, Field(discriminator="kind")]
for _model in (Restated, Together):
    _model.model_rebuild()


def together(how: str, parts: Sequence[Policy]) -> Policy:
    """Policies combined; those that were combined in the same way before are one list."""
    if len(parts) == 1:
        return parts[0]
    flat = [
        inner
        for part in parts
        for inner in (part.parts if isinstance(part, Together) and part.how == how == SUM else (part,))
    ]
    return Together(how=how, parts=tuple(flat))


SUM = "the sum"


def matched(policy: Policy | None) -> frozenset[str]:
    """The variables whose strata a policy looks at."""
    rules = () if policy is None else _swapping(policy)
    return frozenset(name for rule in rules for name in rule.match)


def realised_together(statistics: Iterable[tuple[Statistic, ...]]) -> tuple[Statistic, ...]:
    """The statistics of several budgets of one universe; refused where they show two universes.

    Values of policies add up in one universe only.
    """
    known: dict[str, Statistic] = {}
    for statistic in (one for some in statistics for one in some):
        if known.setdefault(statistic.name, statistic) != statistic:
            raise _different_universes(f"{statistic.name} has two sizes")
    return tuple(known.values())


def require_one_universe(policies: Iterable[Policy], statistics: Iterable[Statistic]) -> None:
    """Refuse sizes that no universe has: a stratum of a finer key is part of one of a coarser key."""
    sizes = {statistic.name: statistic.value for statistic in statistics}
    rules = [rule for policy in policies for rule in _swapping(policy) if rule.statistic in sizes]
    for fine in rules:
        for coarse in rules:
            same = (fine.unit, fine.where) == (coarse.unit, coarse.where)
            nested = same and set(fine.match) >= set(coarse.match)
            if nested and sizes[fine.statistic] > sizes[coarse.statistic]:
                raise _different_universes(f"{fine.statistic} is larger than a coarser one")


def _different_universes(shown: str) -> NotImplied:
    return NotImplied(
        f"the budgets hold in different universes: {shown}",
        field="budget.at",
        expected="budgets of releases of one data set",
        hint="Budgets that follow from the universe add up where they follow from the same one. "
        "Compare the policies, or state both guarantees apart.",
    )


def _swapping(policy: Policy) -> tuple[Swapping, ...]:
    if isinstance(policy, Swapping):
        return (policy,)
    inner = (
        policy.parts if isinstance(policy, Together) else (policy.of,) if isinstance(policy, Restated) else ()
    )
    return tuple(rule for part in inner for rule in _swapping(part))
