"""Conversion between output premetrics: a graph of edges that carry their validity.

Some edges hold for the whole Lipschitz condition (they are linear in the distance); others hold only
between neighbours. The thesis converts zCDP to (epsilon, delta) and keeps d_HamS: that is false beyond
distance one (errata 8.1 of our digest: a Gaussian at rho^2 = 55.371, distance 2, delta 1e-10 has 354.50,
not twice 126.78). Such an edge here moves the premetric to neighbours, or refuses, and says what it did.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Literal

from stirred.errors import InputError, NotImplied
from stirred.spec.budget import Budget
from stirred.spec.exact import Exact, as_fraction, ceil_decimal
from stirred.spec.extended import product
from stirred.spec.input_premetric import neighbours_of
from stirred.spec.output_premetric import (
    LEAST_DELTA,
    Approximate,
    GaussianTradeOff,
    KullbackLeibler,
    Multiplicative,
    NormalisedRenyi,
    Renyi,
    TotalVariation,
)
from stirred.spec.specification import Specification

Target = Literal["approximate", "zcdp", "renyi", "gdp", "kullback-leibler", "total-variation"]
Method = Literal["census", "optimal", "gaussian"]
OnDistance = Literal["refuse", "neighbours"]


@dataclass(frozen=True)
class Converted:
    """A converted specification, with what was done to get there."""

    specification: Specification
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """One conversion: from, to, whether it is linear in the distance, and its source."""

    source: type
    target: Target
    linear: bool
    reference: str
    apply: Callable[[Specification, Any], tuple[Any, Budget]]


def convert(
    specification: Specification,
    target: Target,
    *,
    delta: object = None,
    alpha: object = None,
    method: Method = "census",
    on_distance: OnDistance = "refuse",
) -> Converted:
    """Restate a guarantee in another output premetric.

    Parameters
    ----------
    delta
        For the target ``approximate``.
    alpha
        For the target ``renyi``.
    method
        From zCDP to approximate DP: ``census`` is rho^2 + 2 rho sqrt(-ln delta); ``optimal`` is Canonne,
        Kamath and Steinke 2020; ``gaussian`` is exact for Gaussian noise and for nothing else.
    on_distance
        What to do with an edge that holds between neighbours only when the specification measures larger
        distances: ``refuse``, or restrict it to ``neighbours``.
    """
    edge = _edge(specification, target)
    steps = [f"{specification.output_premetric.symbol} to {target}: {edge.reference}"]
    if not edge.linear and not specification.input_premetric.flags.neighbour_valued:
        specification, note = _to_neighbours(specification, on_distance)
        steps.append(note)
    options = _Options(delta, alpha, method)
    premetric, budget = edge.apply(specification, options)
    fields = dict(specification) | {"output_premetric": premetric, "budget": budget}
    if options.assumption:
        fields["assumptions"] = (*specification.assumptions, options.assumption)
        steps.append(f"assumes: {options.assumption}")
    return Converted(Specification(**fields), tuple(steps))


def edges() -> tuple[Edge, ...]:
    """All conversions, for documentation and for the command line."""
    return _EDGES


def epsilon_at_distance(
    specification: Specification, distance: int, delta: object, method: Method = "census"
) -> Exact:
    """The epsilon of a zCDP guarantee at some distance: a function of it, not a multiple of epsilon(1).

    At distance k the Lipschitz condition gives D_NoR <= k rho, which is then converted.
    """
    if not isinstance(specification.output_premetric, NormalisedRenyi):
        raise InputError(
            "epsilon as a function of the distance is for zCDP",
            field="output_premetric",
            expected="D_NoR",
            hint="Pure DP is linear: distance k costs k epsilon.",
        )
    at = Budget.by_universe(specification.budget.parametrisation, (specification.budget.amount,)).scaled(
        distance
    )
    return Exact(_zcdp_epsilon(_rho_squared(at), as_fraction(delta), method))


@dataclass
class _Options:
    delta: object
    alpha: object
    method: Method
    assumption: str = ""

    def exact_delta(self) -> Fraction:
        if self.delta is None:
            raise InputError(
                "the target needs a delta",
                field="delta",
                expected="a rational above 0 and below 1, such as 1e-10",
                hint="Pass delta=; the Census Bureau used 1e-10.",
            )
        value = as_fraction(self.delta)
        if not LEAST_DELTA <= value < 1:
            raise InputError(
                "delta is out of range",
                field="delta",
                expected="a rational of at least 1e-300 and below 1",
                hint="Choose delta well below one over the number of people.",
            )
        return value


def _edge(specification: Specification, target: Target) -> Edge:
    for edge in _EDGES:
        if isinstance(specification.output_premetric, edge.source) and edge.target == target:
            if not specification.budget.is_constant:
                break
            return edge
    raise NotImplied(
        f"there is no conversion from {specification.output_premetric.symbol} to {target}",
        field="target",
        expected="an edge of the conversion graph, and a constant budget",
        hint="See stirred.spec.conversion.edges(); conversions go from stronger to weaker only.",
    )


def _to_neighbours(specification: Specification, on_distance: OnDistance) -> tuple[Specification, str]:
    symbol = specification.input_premetric.symbol
    if on_distance == "refuse":
        raise NotImplied(
            f"this conversion holds between neighbours only, and {symbol} measures larger distances",
            field="input_premetric",
            expected="a neighbour premetric",
            hint="Pass on_distance='neighbours' (--neighbours) to give up the guarantee beyond distance "
            "one, or ask for epsilon_at_distance.",
        )
    near = neighbours_of(specification.input_premetric)
    moved = Specification(**dict(specification) | {"input_premetric": near})
    note = (
        f"the input premetric moved from {symbol} to {near.symbol}: changes of more than one unit are "
        "no longer bounded"
    )
    return moved, f"{note}; {_neighbour_warning(moved)}"


def _neighbour_warning(moved: Specification) -> str:
    """Say whether invariants leave any neighbours at all, where that can be counted."""
    if not moved.is_finite:
        return "where invariants leave no neighbours, nothing is promised"
    points = moved.domain.enumerate()
    index = {point: i for i, point in enumerate(points)}
    distances = moved.input_premetric.matrix(moved.domain)
    one = Exact.of(1)
    pairs = {
        frozenset((x, y))
        for universe in moved.universes()
        for x in universe
        for y in universe
        if x != y and distances[index[x]][index[y]] == one
    }
    return f"{len(pairs)} pairs of neighbours remain inside universes" + (
        ": the converted guarantee is VACUOUS" if not pairs else ""
    )


def _pure_to_zcdp(specification: Specification, _: _Options) -> tuple[Any, Budget]:
    epsilon = specification.budget.linear()
    if epsilon.is_infinite:
        return NormalisedRenyi(), Budget.zcdp(rho_squared="inf")
    square = epsilon.square
    exact = epsilon.rounded_up() ** 2 if square is None else square
    return NormalisedRenyi(), Budget.zcdp(rho_squared=Exact(exact / 2))


def _pure_to_approximate(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    return Approximate(delta=Exact(options.exact_delta())), specification.budget


def _pure_to_renyi(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    return Renyi(alpha=Exact.of(_alpha(options))), specification.budget


def _pure_to_kl(specification: Specification, _: _Options) -> tuple[Any, Budget]:
    return KullbackLeibler(), Budget.loss(specification.budget.linear())


def _pure_to_tv(specification: Specification, _: _Options) -> tuple[Any, Budget]:
    epsilon = specification.budget.linear()
    return TotalVariation(), Budget.loss(epsilon if epsilon.is_infinite else epsilon / 2)


def _pure_to_gdp(specification: Specification, _: _Options) -> tuple[Any, Budget]:
    """mu = -2 Phi^-1(1/(1 + e^epsilon)): the least Gaussian curve under the pure one."""
    from scipy.special import ndtri_exp

    epsilon = specification.budget.linear()
    if epsilon.is_infinite:
        return GaussianTradeOff(), Budget.gdp(mu="inf")
    value = epsilon.float_up()
    mu = -2 * float(ndtri_exp(-value - math.log1p(math.exp(-value))))
    return GaussianTradeOff(), Budget.gdp(mu=Exact.computed(_upward(max(mu, 0.0))))


def _zcdp_to_renyi(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    alpha = Exact.of(_alpha(options))
    square = Exact(_rho_squared(specification.budget))
    return Renyi(alpha=alpha), Budget.epsilon(product(alpha, square))


def _zcdp_to_approximate(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    delta = options.exact_delta()
    if options.method == "gaussian":
        options.assumption = "the mechanism adds Gaussian noise and nothing else"
    epsilon = _zcdp_epsilon(_rho_squared(specification.budget), delta, options.method)
    return Approximate(delta=Exact(delta)), Budget.epsilon(Exact(epsilon))


def _gdp_to_approximate(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    from stirred.spec.closed_form import gaussian_epsilon

    delta = options.exact_delta()
    epsilon = gaussian_epsilon(specification.budget.linear().float_up(), float(delta))
    return Approximate(delta=Exact(delta)), Budget.epsilon(Exact.computed(_upward(epsilon)))


def _renyi_to_approximate(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    delta = options.exact_delta()
    source = specification.output_premetric
    assert isinstance(source, Renyi)
    if source.alpha.is_infinite:
        return Approximate(delta=Exact(delta)), specification.budget
    order = float(source.alpha)
    slack = math.log(1 / delta) / (order - 1)
    total = specification.budget.linear().float_up() + slack
    return Approximate(delta=Exact(delta)), Budget.epsilon(Exact.computed(_upward(total)))


def _rho_squared(budget: Budget) -> Fraction:
    value = budget.linear()
    if value.is_infinite:
        raise NotImplied(
            "an infinite budget converts to nothing",
            field="budget",
            expected="a finite rho",
            hint="There is no guarantee to convert.",
        )
    square = value.square
    return value.rounded_up() ** 2 if square is None else square


def _zcdp_epsilon(rho_squared: Fraction, delta: Fraction, method: Method) -> Fraction:
    """Epsilon at delta, rounded up to thirty places (census) or twelve digits (the others)."""
    if method == "census":
        return census_epsilon(rho_squared, delta)
    if method == "gaussian":
        from stirred.spec.closed_form import gaussian_epsilon

        mu = math.sqrt(2 * rho_squared)
        return Fraction(_upward(gaussian_epsilon(mu, float(delta))))
    return Fraction(_upward(optimal_epsilon(float(rho_squared), float(delta))))


def census_epsilon(rho_squared: Fraction, delta: Fraction) -> Fraction:
    """rho^2 + 2 rho sqrt(-ln delta), rounded up at thirty decimal places.

    Reference
        Proposition 1.3 of Bun and Steinke 2016, as the Census Bureau uses it.
    """
    with localcontext() as context:
        context.prec = 80
        square = Decimal(rho_squared.numerator) / Decimal(rho_squared.denominator)
        log = (Decimal(delta.denominator) / Decimal(delta.numerator)).ln()
        value = square + 2 * (square * log).sqrt()
        return ceil_decimal((value, Decimal(1).scaleb(-60) * (1 + value)), 30)


def optimal_epsilon(rho_squared: float, delta: float) -> float:
    """Least epsilon that zCDP alone implies, by the bound of Canonne, Kamath and Steinke (2020).

    inf over alpha > 1 of  rho^2 alpha + ln(1/(alpha delta))/(alpha - 1) + ln(1 - 1/alpha),
    which is valid at every alpha, so a numerical minimiser only costs tightness.
    """
    if rho_squared == 0:
        return 0.0

    def bound(log_excess: float) -> float:
        excess = math.exp(log_excess)
        alpha = 1 + excess
        return (
            rho_squared * alpha - (math.log(delta) + math.log(alpha)) / excess + log_excess - math.log(alpha)
        )

    centre = math.log(math.sqrt(-math.log(delta) / rho_squared))
    low, high = centre - 12, centre + 12
    for _ in range(200):
        third = (high - low) / 3
        if bound(low + third) <= bound(high - third):
            high -= third
        else:
            low += third
    return max(0.0, bound((low + high) / 2))


def _alpha(options: _Options) -> object:
    if options.alpha is None:
        raise InputError(
            "the target needs an order alpha",
            field="alpha",
            expected="a number above one",
            hint="Pass alpha=, for example 2.",
        )
    return options.alpha


def _upward(value: float) -> float:
    """Against the user: a relative 1e-12 covers the error of the special functions."""
    return value * (1 + 1e-12)


_EDGES = (
    Edge(Multiplicative, "zcdp", True, "D_NoR <= D_Mult/sqrt 2 (Bun, Steinke 2016)", _pure_to_zcdp),
    Edge(Multiplicative, "approximate", True, "D_Mult^delta <= D_Mult", _pure_to_approximate),
    Edge(Multiplicative, "renyi", True, "D_alpha <= D_Mult", _pure_to_renyi),
    Edge(Multiplicative, "kullback-leibler", True, "KL <= D_Mult", _pure_to_kl),
    Edge(Multiplicative, "total-variation", True, "TV <= D_Mult/2", _pure_to_tv),
    Edge(Multiplicative, "gdp", False, "trade-off of randomised response (Dong 2022)", _pure_to_gdp),
    Edge(NormalisedRenyi, "renyi", False, "D_alpha <= alpha rho^2 at distance one", _zcdp_to_renyi),
    Edge(
        NormalisedRenyi,
        "approximate",
        False,
        "rho^2 + 2 rho sqrt(-ln delta), or tighter; at distance k the bound is not k times that",
        _zcdp_to_approximate,
    ),
    Edge(
        GaussianTradeOff,
        "approximate",
        False,
        "Dong, Roth, Su 2022, cor. 2.13",
        _gdp_to_approximate,
    ),
    Edge(Renyi, "approximate", False, "Mironov 2017, prop. 3", _renyi_to_approximate),
)
