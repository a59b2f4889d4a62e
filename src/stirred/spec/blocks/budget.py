"""Budget: how much protection loss is allowed, exactly, with its parametrisation in the type.

A number is not a budget. zCDP is published as rho squared by some and as rho by others; the type says
which, and ``Budget.linear`` gives the number that multiplies a distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Literal, Self

from pydantic import model_validator

from stirred.errors import InvalidBudget, NotComputable, ParametrisationMissing, StirredError
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.latex import latex
from stirred.spec.blocks.policy import Policy, Restated, Statistic, Swapping

Parametrisation = Literal["epsilon", "rho", "rho_squared", "mu", "loss", "epsilon_of_delta", "tradeoff"]

LETTER = {
    "epsilon": "ε",
    "delta": "δ",
    "rho": "ρ",
    "rho_squared": "ρ²",
    "mu": "μ",
    "mu_squared": "μ²",
    "loss": "L",
    "epsilon_of_delta": "ε(δ)",
    "tradeoff": "f",
}

HERE = " in this universe"


class Budget(Block):
    """A protection loss budget.

    ``amounts`` has one number for a constant budget, or one for each universe in the order in which
    the multiverse lists them. With a ``policy`` the one amount is its value in the universe of the data,
    which ``at`` describes; the policy may always be published (Corollary A.2.2). ``curve`` holds
    (delta, epsilon) or (level, type-II error) pairs.

    Examples
    --------
    >>> import stirred as st
    >>> st.Budget.zcdp(rho_squared="15.29").linear()
    Exact('sqrt(1529)/10')
    >>> print(st.Budget.epsilon("ln(3)"))
    ε = 1.0987
    """

    parametrisation: Parametrisation
    amounts: tuple[Exact, ...] = ()
    policy: Policy | None = None
    at: tuple[Statistic, ...] = ()
    curve: tuple[tuple[Exact, Exact], ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _explain(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping) or "parametrisation" not in fields:
            raise ParametrisationMissing(
                "a bare number is not a budget",
                field="budget.parametrisation",
                expected="epsilon, rho, rho_squared, mu, loss, epsilon_of_delta or tradeoff",
                hint="Use Budget.epsilon(...), Budget.zcdp(rho_squared=...) or Budget.gdp(mu=...).",
            )
        checked = dict(fields)
        checked["amounts"] = tuple(_amount(value) for value in fields.get("amounts", ()))
        return checked

    @model_validator(mode="after")
    def _non_negative(self) -> Self:
        is_curve = self.parametrisation in {"epsilon_of_delta", "tradeoff"}
        if is_curve == bool(self.amounts) or is_curve != bool(self.curve):
            raise ValueError("a curve for epsilon_of_delta and tradeoff, amounts for all else")
        if self.policy is not None and len(self.amounts) != 1:
            raise ValueError("one amount beside a policy: its value in the universe of the data")
        if isinstance(self.policy, Swapping):
            here = [s.value for s in self.at if s.name == self.policy.statistic]
            value = self.policy.value(here[0]) if here else None
            if value is not None and self.amounts[0] < value:
                raise ValueError("an amount of at least the value of the policy at the size that is stated")
        if any(value < ZERO for pair in self.curve for value in pair):
            raise ValueError("a curve of non-negative numbers")
        return self

    @classmethod
    def epsilon(cls, value: object, policy: Policy | None = None, at: tuple[Statistic, ...] = ()) -> Self:
        """For D_Mult, its delta-approximation, Renyi divergence and the density ratio."""
        return cls(parametrisation="epsilon", amounts=(_amount(value),), policy=policy, at=at)

    @classmethod
    def zcdp(cls, *, rho_squared: object = None, rho: object = None) -> Self:
        """For D_NoR: give either rho squared (the published number) or rho, by name."""
        if (rho_squared is None) == (rho is None):
            raise ParametrisationMissing(
                "zCDP has two parametrisations",
                field="budget.parametrisation",
                expected="exactly one of rho_squared= and rho=",
                hint="Published zCDP budgets (2.63, 15.29) are rho squared here.",
            )
        if rho is not None:
            return cls(parametrisation="rho", amounts=(_amount(rho),))
        return cls(parametrisation="rho_squared", amounts=(_amount(rho_squared),))

    @classmethod
    def gdp(cls, *, mu: object) -> Self:
        """For Gaussian DP."""
        return cls(parametrisation="mu", amounts=(_amount(mu),))

    @classmethod
    def loss(cls, value: object) -> Self:
        """For total variation, Hellinger, Kullback-Leibler, chi-squared and other divergences."""
        return cls(parametrisation="loss", amounts=(_amount(value),))

    @classmethod
    def by_universe(cls, parametrisation: Parametrisation, values: Iterable[object]) -> Self:
        """One amount for each universe of a finite multiverse."""
        return cls(parametrisation=parametrisation, amounts=tuple(map(_amount, values)))

    @classmethod
    def of_delta(cls, curve: Mapping[object, object]) -> Self:
        """A curve: for each delta its epsilon."""
        pairs = sorted((Exact.of(d), Exact.of(e)) for d, e in curve.items())
        return cls(parametrisation="epsilon_of_delta", curve=tuple(pairs))

    @property
    def letter(self) -> str:
        """The letter of the parametrisation."""
        return LETTER[self.parametrisation]

    @property
    def rule(self) -> str:
        """The policy in words, with the universe in which the amount is its value."""
        if self.policy is None:
            return ""
        where = f" In the universe of the data {' and '.join(map(str, self.at))}." if self.at else ""
        return f"{self.policy.text}.{where}"

    @property
    def is_constant(self) -> bool:
        """Whether there is one amount: for every universe, or with a policy for that of the data."""
        return len(self.amounts) == 1

    @property
    def amount(self) -> Exact:
        """The constant amount, in the budget's own parametrisation."""
        if not self.is_constant:
            raise InvalidBudget(
                "this budget is not a single number",
                field="budget",
                expected="a constant budget",
                hint="Ask for linear(universe=...) or read the curve.",
            )
        return self.amounts[0]

    @property
    def largest(self) -> Exact:
        """The largest amount over the universes, in the budget's own parametrisation."""
        return max(self.amounts)

    def linear(self, universe: int = 0) -> Exact:
        """The number that multiplies a distance in D_Pr <= budget * d: rho where rho squared is given."""
        if not self.amounts:
            raise InvalidBudget(
                "a curve has no single number",
                field="budget",
                expected="a constant budget or one amount for each universe",
                hint="Curves go with neighbour premetrics only; read budget.curve.",
            )
        value = self.amounts[0 if self.is_constant else universe]
        if self.parametrisation != "rho_squared" or value.is_infinite:
            return value
        square = value.rational
        if square is None:
            return Exact.sqrt(value.rounded_up())
        return Exact.sqrt(square)

    def require_everywhere(self, universes: int) -> None:
        """Refuse to take the value of a policy in one universe for its value in others."""
        if self.policy is not None and universes > 1:
            raise NotComputable(
                "the budget is a policy, stated for the universe of the data alone",
                field="budget.policy",
                expected="a constant, or an amount for each universe",
                hint="Evaluate the policy in every universe: Budget.by_universe(...).",
            )

    def scaled(self, factor: Fraction | int) -> Budget:
        """The budget whose linear number is so many times larger."""
        scale = Fraction(factor)
        power = scale**2 if self.parametrisation == "rho_squared" else scale
        amounts = tuple(a if a.is_infinite else a * power for a in self.amounts)
        policy = self.policy
        if policy is not None and power != 1:
            policy = Restated(formula=f"{power} times the amount", of=policy)
        return Budget(parametrisation=self.parametrisation, amounts=amounts, policy=policy, at=self.at)

    def same_units(self, other: Budget) -> bool:
        """Whether the two linear numbers are in one currency."""
        zcdp = {"rho", "rho_squared"}
        return self.parametrisation == other.parametrisation or (
            self.parametrisation in zcdp and other.parametrisation in zcdp
        )

    def __str__(self) -> str:
        if self.curve:
            return f"{self.letter}: a curve of {len(self.curve)} points"
        if self.is_constant:
            return f"{self.letter} = {shown(self.amount)}{'' if self.policy is None else HERE}"
        low = min(self.amounts)
        return f"{self.letter} from {shown(low)} to {shown(self.largest)}, by universe"

    @property
    def latex(self) -> str:
        """LaTeX text of the budget."""
        if not self.is_constant:
            return latex(self.letter) + r"_{\mathcal{D}}"
        return latex(f"{self.letter} = {shown(self.amount)}") + (
            "" if self.policy is None else rf"\text{{{HERE}}}"
        )

    def nominal(self) -> str:
        """The budget with the reminder that it means nothing without its flavor."""
        return f"{self} (nominal: relative to the other four building blocks)"


LARGEST = Exact.of(10**100)


def squared(value: Exact) -> Exact:
    """The square, rounded up where it has no exact form."""
    if value.is_infinite:
        return INFINITY
    square = value.square
    return Exact(value.rounded_up() ** 2 if square is None else square)


def shown(value: Exact, places: int = 4) -> str:
    """An amount for people: exact where it fits, otherwise rounded up."""
    if value.is_infinite:
        return "∞"
    text = value.rounded(places, up=True)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _amount(value: object) -> Exact:
    try:
        amount = Exact.of(value)
    except StirredError:
        raise InvalidBudget(
            "the budget is not a number",
            field="budget.amounts",
            expected="a non-negative exact number: 15.29, 1/3, ln(3/2), sqrt(2) or inf (never NaN)",
            hint="Budgets are exact; write them as text or as fractions.",
        ) from None
    if amount < ZERO:
        raise InvalidBudget(
            "the budget is negative",
            field="budget.amounts",
            expected="a number of at least zero",
            hint="A budget bounds a divergence, which is never negative.",
        )
    if not amount.is_infinite and amount > LARGEST:
        raise InvalidBudget(
            "the budget is too large to mean anything",
            field="budget.amounts",
            expected="at most 10^100, or inf",
            hint="Write inf for a budget that bounds nothing.",
        )
    return amount
