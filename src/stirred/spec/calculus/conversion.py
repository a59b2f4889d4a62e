"""Conversion between output premetrics: a graph of edges that carry their validity.

Some edges hold for the whole Lipschitz condition (they are linear in the distance); others hold only
between neighbours. The thesis converts zCDP to (epsilon, delta) and keeps d_HamS: that is false beyond
distance one (errata 8.1 of our digest: a Gaussian at rho^2 = 55.371, distance 2, delta 1e-10 has 354.50,
not twice 126.78). Such an edge here moves the premetric to neighbours, or refuses, and says what it did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from stirred.errors import InputError, NotImplied
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact, as_fraction
from stirred.spec.arithmetic.extended import product
from stirred.spec.blocks.budget import Budget, squared
from stirred.spec.blocks.input_premetric import neighbours_of
from stirred.spec.blocks.output_premetric import (
    LEAST_DELTA,
    Approximate,
    GaussianTradeOff,
    KullbackLeibler,
    Multiplicative,
    NormalisedRenyi,
    Premetric,
    Renyi,
    TotalVariation,
)
from stirred.spec.blocks.policy import Restated
from stirred.spec.calculus.closed_form import gaussian_epsilon, mu_of_pure, rho_squared_of_pure
from stirred.spec.calculus.closed_form.concentrated import census_epsilon, optimal_epsilon
from stirred.spec.calculus.closed_form.rounding import (
    float_not_above,
    float_not_below,
    raised_root,
    rational_below,
)
from stirred.spec.order.separation import least_distance
from stirred.spec.specification import Specification

Target = Literal["approximate", "zcdp", "renyi", "gdp", "kullback-leibler", "total-variation"]
Method = Literal["census", "optimal", "gaussian"]
OnDistance = Literal["refuse", "neighbours"]

METHODS: dict[Method, str] = {
    "census": "ρ² + 2ρ√(−ln δ) (Bun and Steinke 2016, proposition 1.3)",
    "optimal": "the bound of Canonne, Kamath and Steinke 2020",
    "gaussian": "the exact curve of Gaussian noise, which is assumed to be all the noise there is",
}


@dataclass(frozen=True)
class Converted:
    """A converted specification, with what was done to get there, by which rule, and what it rests on."""

    specification: Specification
    steps: tuple[str, ...]
    rule: str
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Edge:
    """One conversion: from, to, whether it is linear in the distance, its source, and its formula.

    ``formula`` is empty where the budget stays as it is.
    """

    source: type
    target: Target
    linear: bool
    reference: str
    apply: Callable[[Specification, Any], tuple[Any, Budget]]
    formula: str = ""


def convert(
    specification: Specification,
    target: Target,
    *,
    delta: object = None,
    alpha: object = None,
    method: Method = "census",
    on_distance: OnDistance = "refuse",
    attributes: Iterable[str] | None = None,
) -> Converted:
    """Restate a guarantee in another output premetric.

    A budget that follows from the universe by a policy keeps the policy, under the formula of the conversion,
    which rises with the budget.

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
    attributes
        From pure DP to zCDP: all that the mechanism reads of a record, where the domain's schema has more.
        This becomes an assumption of the result (``separation.require_reads``).

    Examples
    --------
    >>> import stirred as st
    >>> census = st.catalogue.specification("tda-dhc")
    >>> made = st.convert(census, "approximate", delta="1e-10", on_distance="neighbours")
    >>> print(made.specification.budget)
    ε = 52.8169
    """
    edge = _edge(specification, target)
    _require_concentrated(edge, attributes)
    source, remarks = specification.output_premetric, []
    if not edge.linear and not specification.input_premetric.flags.neighbour_valued:
        specification, note = _to_neighbours(specification, on_distance)
        remarks.append(note)
    options = _Options(delta, alpha, method, None if attributes is None else tuple(attributes))
    premetric, budget = edge.apply(specification, options)
    if (policy := specification.budget.policy) is not None:
        if edge.formula:
            policy = Restated(formula=options.formula or edge.formula, of=policy)
        budget = Budget(
            parametrisation=budget.parametrisation,
            amounts=budget.amounts,
            policy=policy,
            at=specification.budget.at,
        )
    fields = dict(specification) | {"output_premetric": premetric, "budget": budget}
    remarks += [options.step] if options.step else []
    if options.assumption:
        fields["assumptions"] = (*specification.assumptions, options.assumption)
        remarks.append(f"assumes: {options.assumption}")
    steps = (f"{source.symbol} to {target}: {edge.reference}", *remarks)
    return Converted(Specification(**fields), steps, options.rule or edge.reference, tuple(remarks))


def edges() -> tuple[Edge, ...]:
    """All conversions, for documentation and for the command line."""
    return _EDGES


def converts(premetric: Premetric, target: Target) -> bool:
    """Whether there is a conversion from a premetric to a target."""
    return any(isinstance(premetric, edge.source) and edge.target == target for edge in _EDGES)


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
    return _zcdp_epsilon(_rho_squared(at), _Options(delta, None, method).exact_delta(), method)


@dataclass
class _Options:
    delta: object
    alpha: object
    method: Method
    attributes: tuple[str, ...] | None = None
    assumption: str = ""
    formula: str = ""
    step: str = ""
    rule: str = ""

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
        hint="See stirred.spec.calculus.conversion.edges(); conversions go from stronger to weaker only.",
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


def _require_concentrated(edge: Edge, attributes: object) -> None:
    if attributes is not None and edge.apply is not _pure_to_zcdp:
        raise InputError(
            "the attributes that a mechanism reads bear on pure DP to zCDP alone",
            field="attributes",
            expected="no attributes for this conversion",
            hint="Leave them out.",
        )


def _pure_to_zcdp(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    least = least_distance(specification, options.attributes)
    if least is None or least.is_infinite:
        options.formula = "ε²/2"
        options.step = "without a least distance inside universes rho^2 = epsilon^2/2"
    else:
        options.formula = f"ε tanh(ε d₀/2)/d₀ at the least distance d₀ = {least}"
        options.step = f"the least distance inside universes is d0 = {least}"
    if options.attributes is not None:
        unit, names = specification.input_premetric.unit, ", ".join(options.attributes)
        options.assumption = f"the mechanism reads of a {unit} record nothing but {names}"
    square = rho_squared_of_pure(specification.budget.linear(), least)
    return NormalisedRenyi(), Budget.zcdp(rho_squared=square)


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
    return GaussianTradeOff(), Budget.gdp(mu=mu_of_pure(specification.budget.linear()))


def _zcdp_to_renyi(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    alpha = Exact.of(_alpha(options))
    options.formula = f"{alpha} ρ²"
    square = Exact(_rho_squared(specification.budget))
    if alpha.is_infinite or square.is_zero:
        return Renyi(alpha=alpha), Budget.epsilon(ZERO if square.is_zero else INFINITY)
    return Renyi(alpha=alpha), Budget.epsilon(product(alpha, square))


def _zcdp_to_approximate(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    delta = options.exact_delta()
    if options.method == "gaussian":
        options.assumption = "the mechanism adds Gaussian noise and nothing else"
    options.rule = METHODS[options.method]
    options.formula = f"the ε of ρ at δ = {delta} by the {options.method} conversion"
    epsilon = _zcdp_epsilon(_rho_squared(specification.budget), delta, options.method)
    return Approximate(delta=Exact(delta)), Budget.epsilon(epsilon)


def _gdp_to_approximate(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    delta = options.exact_delta()
    options.formula = f"the ε of μ at δ = {delta}"
    epsilon = _gaussian_epsilon(specification.budget.linear().float_up(), delta)
    return Approximate(delta=Exact(delta)), Budget.epsilon(epsilon)


def _renyi_to_approximate(specification: Specification, options: _Options) -> tuple[Any, Budget]:
    """epsilon + ln(1/delta) / (alpha - 1), exactly where alpha is rational."""
    delta = options.exact_delta()
    source = specification.output_premetric
    assert isinstance(source, Renyi)
    if source.alpha.is_infinite:
        return Approximate(delta=Exact(delta)), specification.budget
    options.formula = f"ε + ln(1/{delta})/({source.alpha} - 1)"
    slack = Exact.log(1 / delta) / rational_below(source.alpha - Exact.of(1))
    return Approximate(delta=Exact(delta)), Budget.epsilon(specification.budget.linear() + slack)


def _gaussian_epsilon(mu: float, delta: Fraction) -> Exact:
    """Epsilon of a Gaussian trade-off whose mu, like one over delta, was rounded up to a float."""
    if mu == float("inf"):
        return INFINITY
    return Exact.computed(gaussian_epsilon(mu, float_not_above(delta)))


def _rho_squared(budget: Budget) -> Fraction:
    square = squared(budget.linear()).rational
    if square is None:
        raise NotImplied(
            "an infinite budget converts to nothing",
            field="budget",
            expected="a finite rho",
            hint="There is no guarantee to convert.",
        )
    return square


def _zcdp_epsilon(rho_squared: Fraction, delta: Fraction, method: Method) -> Exact:
    """Epsilon at delta, rounded up."""
    if method == "census":
        return Exact(census_epsilon(rho_squared, delta))
    if method == "gaussian":
        return _gaussian_epsilon(raised_root(float_not_below(2 * rho_squared)), delta)
    return Exact(optimal_epsilon(rho_squared, delta))


def _alpha(options: _Options) -> object:
    if options.alpha is None:
        raise InputError(
            "the target needs an order alpha",
            field="alpha",
            expected="a number above one",
            hint="Pass alpha=, for example 2.",
        )
    return options.alpha


_EDGES = (
    Edge(
        Multiplicative,
        "zcdp",
        True,
        "D_NoR^2 <= epsilon tanh(epsilon d0/2)/d0 with d0 the least distance, or epsilon^2/2 without one",
        _pure_to_zcdp,
        "ε tanh(ε d₀/2)/d₀",
    ),
    Edge(Multiplicative, "approximate", True, "D_Mult^delta <= D_Mult", _pure_to_approximate),
    Edge(Multiplicative, "renyi", True, "D_alpha <= D_Mult", _pure_to_renyi),
    Edge(Multiplicative, "kullback-leibler", True, "KL <= D_Mult", _pure_to_kl),
    Edge(Multiplicative, "total-variation", True, "TV <= D_Mult/2", _pure_to_tv, "ε/2"),
    Edge(
        Multiplicative,
        "gdp",
        False,
        "trade-off of randomised response (Dong 2022)",
        _pure_to_gdp,
        "-2 Φ⁻¹(1/(1 + e^ε))",
    ),
    Edge(NormalisedRenyi, "renyi", False, "D_alpha <= alpha rho^2 at distance one", _zcdp_to_renyi, "α ρ²"),
    Edge(
        NormalisedRenyi,
        "approximate",
        False,
        "rho^2 + 2 rho sqrt(-ln delta), or tighter; at distance k the bound is not k times that",
        _zcdp_to_approximate,
        "the ε of ρ at δ",
    ),
    Edge(
        GaussianTradeOff,
        "approximate",
        False,
        "Dong, Roth, Su 2022, cor. 2.13",
        _gdp_to_approximate,
        "the ε of μ at δ",
    ),
    Edge(Renyi, "approximate", False, "Mironov 2017, prop. 3", _renyi_to_approximate, "ε + ln(1/δ)/(α - 1)"),
)
