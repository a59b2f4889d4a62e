"""Renyi divergences: of one order, normalised over all orders, and of order one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.budget import Budget, Parametrisation, shown, squared
from stirred.spec.blocks.output_premetric.base import (
    METRIC,
    ONE,
    Bound,
    OfLaws,
    Premetric,
    Properties,
    Variant,
)
from stirred.spec.calculus.closed_form.concentrated import census_epsilon
from stirred.spec.finite import divergence
from stirred.spec.finite.distribution import Distribution

_OF_ONE_ORDER = replace(METRIC, symmetric=False, triangle=False, linear_group=False, exact=False)
_BY_SUPREMUM: Bound = (ONE, "Renyi divergence is at most max-divergence")
_GROWING = "Renyi divergence grows with its order"


class NormalisedRenyi(Premetric):
    """D_NoR, of zero-concentrated differential privacy; its budget is rho, published as rho squared."""

    kind: Literal["normalised-renyi"] = "normalised-renyi"
    symbol: ClassVar[str] = "D_NoR"
    words: ClassVar[str] = (
        "the log-ratio of probabilities is allowed a mean and a spread no larger than that of "
        "Gaussian noise; rare outputs may change by more"
    )
    of_laws: ClassVar[OfLaws] = divergence.normalised_renyi
    properties: ClassVar[Properties] = replace(METRIC, law="sum of squares", exact=False)
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("rho_squared", "rho")
    coordinates: ClassVar[tuple[str, ...]] = ("rho_squared",)
    rank: ClassVar[int] = 2
    below: ClassVar[dict[str, Bound]] = {
        "multiplicative": (Exact.sqrt("1/2"), "D_NoR <= D_Mult / sqrt 2 (Bun and Steinke 2016)")
    }
    variant: ClassVar[Variant] = "Zero-concentrated DP"
    remark: ClassVar[str] = "rho is the number that the literature publishes; here it is written ρ²."
    tail: ClassVar[str] = "ρ² + 2ρ√(−ln δ) (Bun and Steinke 2016)"

    def own(self, budget: Budget) -> tuple[str, Exact]:
        return "ρ²", self.counted(budget)[0]

    def log_odds(self, amount: Exact, delta: Fraction) -> Exact:
        """The tail of the privacy loss (proposition 1.3, whose proof bounds the tail itself)."""
        square = squared(amount)
        return square if square.rational is None else Exact(census_epsilon(square.rational, delta))

    def allows(self, amount: Exact, unit: str, alike: str, further: str) -> str:
        square = amount.square
        shift = Exact.computed(1.4142135623731 * float(amount)) if square is None else Exact.sqrt(2 * square)
        return (
            f"One changed {unit} is allowed what Gaussian noise allows whose mean moves by "
            f"{shown(shift, 2)} standard deviations."
        )


class Renyi(Premetric):
    """Renyi divergence of one order above one."""

    kind: Literal["renyi"] = "renyi"
    alpha: Exact
    properties: ClassVar[Properties] = _OF_ONE_ORDER
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon",)
    coordinates: ClassVar[tuple[str, ...]] = ("epsilon",)
    below: ClassVar[dict[str, Bound]] = {"multiplicative": _BY_SUPREMUM}
    monotone: ClassVar[str] = _GROWING
    variant: ClassVar[Variant] = "Renyi DP"

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.alpha <= ONE:
            raise ValueError("an order alpha above 1 (inf allowed)")
        return self

    @property
    def rank(self) -> int:
        """Of infinite order, max-divergence: D_Mult where distances are symmetric, and above D_NoR anyway."""
        return 1 if self.alpha.is_infinite else 3

    def stronger(self, other: Self) -> bool:
        return self.alpha > other.alpha

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.renyi(p, q, float(self.alpha))

    def own(self, budget: Budget) -> tuple[str, Exact]:
        return f"ε of order α = {self.alpha}", budget.largest

    @property
    def remark(self) -> str:
        """The order, for which the registry has no field."""
        return f"Order alpha = {self.alpha}."

    def sentence(self) -> str:
        return f"the Rényi divergence of order {self.alpha} is at most the budget"

    @property
    def symbol(self) -> str:
        return f"D_α={self.alpha}"


class KullbackLeibler(Premetric):
    """Relative entropy."""

    kind: Literal["kullback-leibler"] = "kullback-leibler"
    symbol: ClassVar[str] = "D_KL"
    words: ClassVar[str] = "the expected log-ratio of probabilities is at most the budget"
    of_laws: ClassVar[OfLaws] = divergence.kullback_leibler
    properties: ClassVar[Properties] = _OF_ONE_ORDER
    below: ClassVar[dict[str, Bound]] = {"multiplicative": _BY_SUPREMUM, "renyi": (ONE, _GROWING)}
