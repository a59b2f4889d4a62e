"""Output premetrics: how a change of output is measured, with the properties that theorems ask for.

The flags follow section 5.2 of our digest of the thesis: which axioms hold, whether the premetric is
infinite between mutually singular laws (then no exact release of a non-invariant has finite loss),
whether it falls under post-processing, and how it composes and scales.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from stirred.errors import InputError, NotComputable
from stirred.spec.arithmetic.exact import INFINITY, Exact
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.budget import Parametrisation
from stirred.spec.finite import divergence, tradeoff
from stirred.spec.finite.distribution import Distribution, Outcome

UNDERFLOW = Exact.of("1e-300")
# Masses and their ratios are floats.
LEAST_MASS = Fraction(1, 10**300)

Law = Literal["sum", "sum of squares", "product", "sum and deltas", "tensor", "none"]


@dataclass(frozen=True)
class Properties:
    """What is proved of an output premetric."""

    positive: bool
    symmetric: bool
    triangle: bool
    infinite_if_singular: bool
    post_processing: bool
    linear_composition: bool
    law: Law
    linear_group: bool
    exact: bool

    @property
    def metric(self) -> bool:
        """Whether all metric axioms hold."""
        return self.positive and self.symmetric and self.triangle


def _properties(flags: str, law: Law, *, exact: bool = True) -> Properties:
    """Read seven flags, y or n, in the order of the fields."""
    names = (
        "positive",
        "symmetric",
        "triangle",
        "infinite_if_singular",
        "post_processing",
        "linear_composition",
        "linear_group",
    )
    given = {name: flag == "y" for name, flag in zip(names, flags, strict=True)}
    return Properties(**given, law=law, exact=exact)


class _OutputPremetric(Block):
    properties: ClassVar[Properties]
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("loss",)

    def between(self, p: Distribution, q: Distribution) -> Exact:
        """Divergence of two finite distributions; infinite on different spaces.

        What is computed in floating point is refused where masses, or their ratios, are beyond floats.
        """
        if p.space != q.space:
            return INFINITY
        if not self.properties.exact:
            _require_floats(p, q)
        value = self._between(p, q)
        lost = value.is_zero and self.properties.positive and p != q
        return UNDERFLOW if lost else value

    @abstractmethod
    def _between(self, p: Distribution, q: Distribution) -> Exact: ...

    def worst_event(self, p: Distribution, q: Distribution) -> frozenset[Outcome]:
        """An event that shows the divergence; the likeliest-ratio outcome unless said otherwise."""
        return divergence.multiplicative_event(p, q)


class Multiplicative(_OutputPremetric):
    """D_Mult, of pure differential privacy: the largest log-ratio of the probabilities of an event."""

    kind: Literal["multiplicative"] = "multiplicative"
    properties: ClassVar[Properties] = _properties("yyyyyyy", "sum")
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon",)
    symbol: ClassVar[str] = "D_Mult"
    latex: ClassVar[str] = r"D_{\mathrm{Mult}}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.multiplicative(p, q)

    def sentence(self) -> str:
        """In words."""
        return "the probability of any event may change by a factor of at most e to the budget"


LEAST_DELTA = Fraction(1, 10**300)


class Approximate(_OutputPremetric):
    """D_Mult^delta, of approximate differential privacy."""

    kind: Literal["approximate"] = "approximate"
    delta: Exact
    properties: ClassVar[Properties] = _properties("nynyynn", "sum and deltas")
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon",)

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
        """The likelihood-ratio prefix."""
        return divergence.approximate_event(p, q, self.mass)

    def sentence(self) -> str:
        """In words."""
        return (
            "the probability of any event may change by a factor of at most e to the budget, "
            f"apart from {_scientific(self.mass)} of probability that is not bounded at all"
        )

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"D_Mult^(δ={_scientific(self.mass)})"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return r"D_{\mathrm{Mult}}^{\delta}"


class NormalisedRenyi(_OutputPremetric):
    """D_NoR, of zero-concentrated differential privacy; its budget is rho, published as rho squared."""

    kind: Literal["normalised-renyi"] = "normalised-renyi"
    properties: ClassVar[Properties] = _properties("yyyyyyy", "sum of squares", exact=False)
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("rho_squared", "rho")
    symbol: ClassVar[str] = "D_NoR"
    latex: ClassVar[str] = r"D_{\mathrm{NoR}}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.normalised_renyi(p, q)

    def sentence(self) -> str:
        """In words."""
        return (
            "the log-ratio of probabilities is allowed a mean and a spread no larger than that of "
            "Gaussian noise; rare outputs may change by more"
        )


class Renyi(_OutputPremetric):
    """Renyi divergence of one order above one."""

    kind: Literal["renyi"] = "renyi"
    alpha: Exact
    properties: ClassVar[Properties] = _properties("ynnyyyn", "sum", exact=False)
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon",)

    @model_validator(mode="after")
    def _range(self) -> Self:
        if self.alpha <= Exact.of(1):
            raise ValueError("an order alpha above 1 (inf allowed)")
        return self

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.renyi(p, q, float(self.alpha))

    def sentence(self) -> str:
        """In words."""
        return f"the Rényi divergence of order {self.alpha} is at most the budget"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"D_α={self.alpha}"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"D_{{\alpha={self.alpha}}}"


class KullbackLeibler(_OutputPremetric):
    """Relative entropy."""

    kind: Literal["kullback-leibler"] = "kullback-leibler"
    properties: ClassVar[Properties] = _properties("ynnyyyn", "sum", exact=False)
    symbol: ClassVar[str] = "D_KL"
    latex: ClassVar[str] = r"D_{\mathrm{KL}}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.kullback_leibler(p, q)

    def sentence(self) -> str:
        """In words."""
        return "the expected log-ratio of probabilities is at most the budget"


class TotalVariation(_OutputPremetric):
    """Total variation: finite even where outputs betray inputs, so it guards no exact release."""

    kind: Literal["total-variation"] = "total-variation"
    properties: ClassVar[Properties] = _properties("yyynyyy", "sum")
    symbol: ClassVar[str] = "d_TV"
    latex: ClassVar[str] = r"d_{\mathrm{TV}}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.total_variation(p, q)

    def worst_event(self, p: Distribution, q: Distribution) -> frozenset[Outcome]:
        """All outcomes that P favours."""
        return frozenset(outcome for outcome in p.support if p[outcome] > q[outcome])

    def sentence(self) -> str:
        """In words."""
        return "the probability of any event may change by at most the budget"


class Hellinger(_OutputPremetric):
    """Hellinger distance, at most one."""

    kind: Literal["hellinger"] = "hellinger"
    properties: ClassVar[Properties] = _properties("yyynyyy", "sum of squares", exact=False)
    symbol: ClassVar[str] = "d_H"
    latex: ClassVar[str] = r"d_{\mathrm{H}}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.hellinger(p, q)

    def sentence(self) -> str:
        """In words."""
        return "the Hellinger distance is at most the budget"


class ChiSquared(_OutputPremetric):
    """Chi-squared divergence: composes as (1+a)(1+b) - 1, not linearly."""

    kind: Literal["chi-squared"] = "chi-squared"
    properties: ClassVar[Properties] = _properties("ynnyynn", "product")
    symbol: ClassVar[str] = "D_χ²"
    latex: ClassVar[str] = r"D_{\chi^2}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.chi_squared(p, q)

    def sentence(self) -> str:
        """In words."""
        return "the chi-squared divergence is at most the budget"


class DensityRatio(_OutputPremetric):
    """Density ratio metric: between once and twice D_Mult."""

    kind: Literal["density-ratio"] = "density-ratio"
    properties: ClassVar[Properties] = _properties("yyyyyyy", "sum")
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon",)
    symbol: ClassVar[str] = "d_DR"
    latex: ClassVar[str] = r"d_{\mathrm{DR}}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.density_ratio(p, q)

    def sentence(self) -> str:
        """In words."""
        return "the odds of any two outcomes may change by a factor of at most e to the budget"


class Wasserstein(_OutputPremetric):
    """Earth mover's distance: scaling the output scales it, so it is not immune to post-processing."""

    kind: Literal["wasserstein"] = "wasserstein"
    properties: ClassVar[Properties] = _properties("yyynnyy", "sum")
    symbol: ClassVar[str] = "W_1"
    latex: ClassVar[str] = "W_1"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.wasserstein(p, q)

    def sentence(self) -> str:
        """In words."""
        return "probability mass moves at most as far as the budget"


class GaussianTradeOff(_OutputPremetric):
    """Gaussian DP: the least mu whose Gaussian trade-off is not easier than this one."""

    kind: Literal["gaussian-trade-off"] = "gaussian-trade-off"
    properties: ClassVar[Properties] = _properties("yyyyyyy", "sum of squares", exact=False)
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("mu",)
    symbol: ClassVar[str] = "D_GDP"
    latex: ClassVar[str] = r"D_{\mathrm{GDP}}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return max(
            tradeoff.of_tradeoff("gaussian-separation", p, q),
            tradeoff.of_tradeoff("gaussian-separation", q, p),
        )

    def sentence(self) -> str:
        """In words."""
        return "no test tells the two apart better than one Gaussian from another, the budget away"


class TradeOffCurve(_OutputPremetric):
    """f-DP: the trade-off function itself; the budget is a curve, for neighbours only."""

    kind: Literal["trade-off"] = "trade-off"
    properties: ClassVar[Properties] = _properties("ynnyynn", "tensor")
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("tradeoff",)
    symbol: ClassVar[str] = "Tr"
    latex: ClassVar[str] = r"\mathrm{Tr}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        raise InputError(
            "a trade-off function is not a number",
            field="output_premetric",
            expected="a comparison of curves",
            hint="Use stirred.spec.finite.tradeoff.TradeOff.between, or a functional of it.",
        )

    def sentence(self) -> str:
        """In words."""
        return "no test between the two has a smaller error than the budget's curve"


class ApproximateCurve(_OutputPremetric):
    """D_Mult^delta for many deltas at once: the budget is a curve epsilon(delta), for neighbours only."""

    kind: Literal["approximate-curve"] = "approximate-curve"
    properties: ClassVar[Properties] = _properties("yynyynn", "tensor")
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon_of_delta",)
    symbol: ClassVar[str] = "D_Mult^(·)"
    latex: ClassVar[str] = r"D_{\mathrm{Mult}}^{(\cdot)}"

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        raise InputError(
            "a curve of approximations is not a number",
            field="output_premetric",
            expected="one delta",
            hint="Use kind 'approximate' with a delta, or verify the curve with satisfies.",
        )

    def sentence(self) -> str:
        """In words."""
        return (
            "for each delta of the curve, the probability of any event may change by a factor of at most e "
            "to its epsilon, apart from probability delta"
        )


class TradeOffFunctional(_OutputPremetric):
    """A non-decreasing functional of the power curve (Theorem 2.5.5): a factory of premetrics."""

    kind: Literal["functional"] = "functional"
    functional: str
    properties: ClassVar[Properties] = _properties("nnnnynn", "none")

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return tradeoff.of_tradeoff(self.functional, p, q)

    def sentence(self) -> str:
        """In words."""
        return f"the functional {self.functional} of the trade-off function is at most the budget"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"λ_{self.functional}∘Tr"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"\lambda_{{\mathrm{{{self.functional}}}}} \circ \mathrm{{Tr}}"


class Coarsened(_OutputPremetric):
    """A premetric that looks at fewer events: weaker, and disclosed wherever the flavor is shown.

    ``groups`` partitions the outcomes; only unions of groups count as events. One group alone is the
    trivial algebra, under which every mechanism has loss zero.
    """

    kind: Literal["coarsened"] = "coarsened"
    base: OutputPremetric
    groups: tuple[tuple[str | int, ...], ...]
    reason: str

    @model_validator(mode="after")
    def _partition(self) -> Self:
        members = [outcome for group in self.groups for outcome in group]
        if len(set(members)) != len(members):
            raise ValueError("groups that share no outcome")
        return self

    @property
    def properties(self) -> Properties:  # type: ignore[override]
        """As the base, except that different laws may look the same."""
        base: Properties = self.base.properties
        return Properties(
            positive=False,
            symmetric=base.symmetric,
            triangle=base.triangle,
            infinite_if_singular=False,
            post_processing=False,
            linear_composition=base.linear_composition,
            law=base.law,
            linear_group=base.linear_group,
            exact=base.exact,
        )

    @property
    def parametrisations(self) -> tuple[Parametrisation, ...]:  # type: ignore[override]
        """As the base."""
        allowed: tuple[Parametrisation, ...] = self.base.parametrisations
        return allowed

    def worst_event(self, p: Distribution, q: Distribution) -> frozenset[Outcome]:
        """A union of groups."""
        members = dict(enumerate(self.groups))
        coarse = self.base.worst_event(self._pushed(p), self._pushed(q))
        return frozenset(o for index, group in members.items() if index in coarse for o in group)

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        pushed: Exact = self.base.between(self._pushed(p), self._pushed(q))
        return pushed

    def _pushed(self, law: Distribution) -> Distribution:
        group: dict[Outcome, Outcome] = {
            outcome: i for i, members in enumerate(self.groups) for outcome in members
        }
        for outcome in law.support:
            if outcome not in group:
                raise InputError(
                    "the coarsened event algebra does not cover every outcome",
                    field="output_premetric.groups",
                    expected="every outcome in exactly one group",
                    hint="List the missing outcomes.",
                )
        return law.pushforward(group.__getitem__)

    def sentence(self) -> str:
        """In words."""
        return f"{self.base.sentence()}, LOOKING ONLY AT SOME EVENTS ({self.reason})"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"{self.base.symbol}|coarse"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"{self.base.latex}|_{{\mathrm{{coarse}}}}"


class Described(_OutputPremetric):
    """A way of measuring that is only described: it can be named, not computed or composed."""

    kind: Literal["described"] = "described"
    name: str
    meaning: str
    properties: ClassVar[Properties] = _properties("nnnnnnn", "none")
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = (
        "epsilon",
        "rho",
        "rho_squared",
        "mu",
        "loss",
    )

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        raise InputError(
            f"the output premetric {self.name} is described, not defined",
            field="output_premetric",
            expected="a premetric that can be computed",
            hint="Choose one of the defined kinds to compute with.",
        )

    def sentence(self) -> str:
        """In words."""
        return self.meaning

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return self.name

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"\mathit{{{self.name}}}"


OutputPremetric = Annotated[
    Multiplicative
    | Approximate
    | NormalisedRenyi
    | Renyi
    | KullbackLeibler
    | TotalVariation
    | Hellinger
    | ChiSquared
    | DensityRatio
    | Wasserstein
    | GaussianTradeOff
    | TradeOffCurve
    | ApproximateCurve
    | TradeOffFunctional
    | Coarsened
    | Described,
    Field(discriminator="kind"),
]
Coarsened.model_rebuild()


def _scientific(value: Fraction) -> str:
    number = float(value)
    return f"{number:g}"


def _require_floats(p: Distribution, q: Distribution) -> None:
    if p != q and min(mass for law in (p, q) for _, mass in law.items()) < LEAST_MASS:
        raise NotComputable(
            "a mass is too small for a divergence that is computed in floating point",
            field="masses",
            expected="masses of zero, or of at least 1e-300",
            hint="Use an output premetric that is computed exactly, such as D_Mult.",
        )
