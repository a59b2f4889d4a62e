"""Bounds on ratios of probabilities or densities: pure and approximate differential privacy."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar, Literal, Self

from pydantic import model_validator

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import Exact
from stirred.spec.arithmetic.odds import LARGEST_FACTOR, factor_text, odds_exponent, odds_factor
from stirred.spec.blocks.budget import Budget, Parametrisation
from stirred.spec.blocks.output_premetric.base import (
    METRIC,
    ONE,
    Bound,
    OfLaws,
    Premetric,
    Properties,
    Variant,
)
from stirred.spec.finite import divergence
from stirred.spec.finite.distribution import Distribution, Outcome

LEAST_DELTA = Fraction(1, 10**300)


class _RatioBound(Premetric):
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon",)
    remark: ClassVar[str] = ""

    def log_odds(self, amount: Exact, delta: Fraction) -> Exact:
        return amount

    def allows(self, amount: Exact, unit: str, alike: str, further: str) -> str:
        factor = odds_factor(amount)
        text = factor_text(factor, odds_exponent(amount))
        if factor is None or factor >= LARGEST_FACTOR:
            text = f"about {text}, which on its own rules out almost nothing"
        caveat = " (apart from the probability delta)" if self.mass else ""
        return (
            "Whatever is released, and whoever looks at it: it can multiply the odds between two data sets "
            f"that differ in one {unit}{alike} by at most a factor of {text}{caveat}{further}."
        )


class Multiplicative(_RatioBound):
    """D_Mult, of pure differential privacy: the largest log-ratio of the probabilities of an event."""

    kind: Literal["multiplicative"] = "multiplicative"
    symbol: ClassVar[str] = "D_Mult"
    words: ClassVar[str] = "the probability of any event may change by a factor of at most e to the budget"
    of_laws: ClassVar[OfLaws] = divergence.multiplicative
    mass: ClassVar[Fraction] = Fraction(0)
    properties: ClassVar[Properties] = METRIC
    coordinates: ClassVar[tuple[str, ...]] = ("epsilon",)
    rank: ClassVar[int] = 0
    variant: ClassVar[Variant] = "Pure DP"


class Approximate(_RatioBound):
    """D_Mult^delta, of approximate differential privacy."""

    kind: Literal["approximate"] = "approximate"
    delta: Exact
    properties: ClassVar[Properties] = Properties(
        law="sum and deltas", symmetric=True, infinite_if_singular=True, post_processing=True
    )
    coordinates: ClassVar[tuple[str, ...]] = ("epsilon", "delta")
    rank: ClassVar[int] = 4
    below: ClassVar[dict[str, Bound]] = {"multiplicative": (ONE, "D_Mult^delta <= D_Mult")}
    monotone: ClassVar[str] = "D_Mult^delta falls as delta grows"
    variant: ClassVar[Variant] = "Approximate DP"

    @model_validator(mode="after")
    def _range(self) -> Self:
        value = self.delta.rational
        if value is None or not 0 <= value < 1:
            raise ValueError("a rational delta of at least 0 and below 1")
        if 0 < value < LEAST_DELTA:
            raise ValueError("a delta of 0 or of at least 1e-300: a smaller one would be shown as 0")
        return self

    @property
    def mass(self) -> Fraction:
        """Delta as a fraction."""
        value = self.delta.rational
        assert value is not None
        return value

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.approximate(p, q, self.mass)

    def worst_event(self, p: Distribution, q: Distribution) -> frozenset[Outcome]:
        return divergence.approximate_event(p, q, self.mass)

    def counted(self, budget: Budget) -> tuple[Exact, ...]:
        return budget.largest, self.delta

    def restated(self, values: Sequence[Exact]) -> tuple[Premetric, Budget]:
        return Approximate(delta=values[1]), Budget.epsilon(values[0])

    def stronger(self, other: Self) -> bool:
        return self.delta < other.delta

    def sentence(self) -> str:
        return (
            "the probability of any event may change by a factor of at most e to the budget, "
            f"apart from {float(self.mass):g} of probability that is not bounded at all"
        )

    @property
    def symbol(self) -> str:
        return f"D_Mult^(δ={float(self.mass):g})"


class ApproximateCurve(Premetric):
    """D_Mult^delta for many deltas at once: the budget is a curve epsilon(delta), for neighbours only."""

    kind: Literal["approximate-curve"] = "approximate-curve"
    symbol: ClassVar[str] = "D_Mult^(·)"
    words: ClassVar[str] = (
        "for each delta of the curve, the probability of any event may change by a factor of at most e "
        "to its epsilon, apart from probability delta"
    )
    properties: ClassVar[Properties] = Properties(
        law="tensor", positive=True, symmetric=True, infinite_if_singular=True, post_processing=True
    )
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon_of_delta",)

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        raise InputError(
            "a curve of approximations is not a number",
            field="output_premetric",
            expected="one delta",
            hint="Use kind 'approximate' with a delta, or verify the curve with satisfies.",
        )


class DensityRatio(Premetric):
    """Density ratio metric: between once and twice D_Mult."""

    kind: Literal["density-ratio"] = "density-ratio"
    symbol: ClassVar[str] = "d_DR"
    words: ClassVar[str] = "the odds of any two outcomes may change by a factor of at most e to the budget"
    of_laws: ClassVar[OfLaws] = divergence.density_ratio
    properties: ClassVar[Properties] = METRIC
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon",)
    below: ClassVar[dict[str, Bound]] = {"multiplicative": (Exact.of(2), "d_DR <= 2 D_Mult (Wasserman 1992)")}
    above: ClassVar[dict[str, Bound]] = {"multiplicative": (ONE, "D_Mult <= d_DR (Wasserman 1992)")}
