"""Protection loss of repeated releases: composition formulas and two numerical accountants.

What happened is told by events, what it costs by an accountant. The events here are few, frozen and
our own; ``dp_accounting`` (Google, in the extra ``accounting``) does the numerics of Renyi differential
privacy (RDP) and of the privacy loss distribution (PLD), and is imported only when asked.

A noise multiplier is the standard deviation (Gaussian) or the scale (Laplace) of the noise divided
by the query's sensitivity under the neighbouring relation named in the call. That reading is ours:
the two accountants of ``dp_accounting`` differ by a factor of two on Gaussian noise under
replacement, so the pair of worst neighbours is chosen here and never left to the library.

Results are upper bounds. Floating-point error is absorbed by rounding upward.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from stirred.errors import InputError, NotComputable
from stirred.extras import require
from stirred.spec.accountants.amplification import Relation, check_relation, round_up
from stirred.spec.arithmetic.exact import Exact

Accountant = Literal["rdp", "pld"]
"""Renyi differential privacy, or the privacy loss distribution."""

_RDP_ERROR = 1e-13


class EpsilonDelta(NamedTuple):
    """The two parameters of approximate differential privacy."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class GaussianEvent:
    """Gaussian noise; the multiplier is its standard deviation over the L2 sensitivity."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check_noise(self.noise_multiplier)


@dataclass(frozen=True)
class LaplaceEvent:
    """Laplace noise; the multiplier is its scale over the L1 sensitivity, the inverse of ε."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _check_noise(self.noise_multiplier)


@dataclass(frozen=True)
class RandomisedResponse:
    """One answer per unit: uniform over the categories with probability ``noise``, else true."""

    noise: float
    categories: int

    def __post_init__(self) -> None:
        _require(0 < self.noise < 1, "noise", "a probability strictly between 0 and 1")
        _require(self.categories >= 2, "categories", "at least two categories")


@dataclass(frozen=True)
class PoissonSampled:
    """An event on a fresh Poisson sample; what is composed inside shares that sample."""

    rate: float
    event: Event

    def __post_init__(self) -> None:
        _require(0 < self.rate <= 1, "rate", "a probability above 0 and at most 1")


@dataclass(frozen=True)
class SampledWithoutReplacement:
    """An event on a fresh simple random sample; what is composed inside shares that sample."""

    size: int
    population: int
    event: Event

    def __post_init__(self) -> None:
        _require(0 < self.size <= self.population, "size", "between 1 and the population")


@dataclass(frozen=True)
class SelfComposed:
    """The same event several times, each time with fresh randomness; later ones may adapt."""

    event: Event
    count: int

    def __post_init__(self) -> None:
        _check_count(self.count)


@dataclass(frozen=True)
class Composed:
    """Several events, each with fresh randomness; later ones may adapt to earlier results."""

    events: tuple[Event, ...]


@dataclass(frozen=True)
class NonPrivate:
    """A release without noise: whatever it is composed with has infinite protection loss."""


Event: TypeAlias = (
    GaussianEvent
    | LaplaceEvent
    | RandomisedResponse
    | PoissonSampled
    | SampledWithoutReplacement
    | SelfComposed
    | Composed
    | NonPrivate
)


def advanced_composition(epsilon: float, delta: float, count: int, slack: float) -> EpsilonDelta:
    """Loss of k adaptive (ε, δ)-DP releases, by the classical formula.

    Guarantee
        (ε √(2 k ln(1/δ')) + k ε (e^ε - 1), k δ + δ')-DP with δ' the slack.
    Assumes
        Independent seeds. Releases of unequal ε enter with the largest.
    Reference
        Dwork, Rothblum and Vadhan (2010), Theorem III.3.

    Examples
    --------
    >>> round(advanced_composition(0.1, 0.0, 100, 1e-6).epsilon, 6)
    6.308231
    """
    _check_composition(epsilon, delta, count)
    _require(0 < slack < 1, "slack", "a number strictly between 0 and 1")
    drift = math.expm1(epsilon) if epsilon < 700 else math.inf
    total = epsilon * math.sqrt(2 * count * -math.log(slack)) + count * epsilon * drift
    total_delta = Exact.computed(delta) * count + Exact.computed(slack)
    return EpsilonDelta(_up(total), min(1.0, total_delta.float_up()))


def optimal_composition(epsilon: float, delta: float, count: int, slack: float) -> EpsilonDelta:
    """Loss of k adaptive (ε, δ)-DP releases: the least that holds for all of them.

    Guarantee
        (ε', 1 - (1 - δ)^k (1 - δ'))-DP with δ' the slack and ε' the largest over j of
        ln[(P(X ≥ j) - δ') / P(Y ≥ j)], where X and Y count the successes in k trials of
        probability e^ε / (1 + e^ε) and 1 / (1 + e^ε). No smaller ε' holds.
    Assumes
        Independent seeds. Releases of unequal ε enter with the largest.
    Reference
        Kairouz, Oh and Viswanath (2015), Theorem 3.3; Murtagh and Vadhan (2016), Theorem 1.4.

    Examples
    --------
    >>> round(optimal_composition(0.1, 0.0, 100, 1e-6).epsilon, 6)
    4.774568
    """
    _check_composition(epsilon, delta, count)
    _require(0 <= slack < 1, "slack", "a number of at least 0 and below 1")
    total_delta = _union_delta(delta, count, slack)
    basic = (Exact.computed(epsilon) * count).float_up()
    if slack == 0 or epsilon == 0 or math.isinf(epsilon):
        return EpsilonDelta(basic, total_delta)
    return EpsilonDelta(min(basic, _optimal_epsilon(epsilon, count, slack)), total_delta)


def _union_delta(delta: float, count: int, slack: float) -> float:
    """1 - (1 - δ)^k (1 - δ')."""
    if delta == 0:
        return slack
    if delta == 1:
        return 1.0
    return min(1.0, _up(-math.expm1(count * math.log1p(-delta) + math.log1p(-slack))))


def _optimal_epsilon(epsilon: float, count: int, slack: float) -> float:
    """The largest ln[(P(X ≥ j) - slack) / P(Y ≥ j)] over j, tails inflated by rounding error."""
    factorials = np.array([math.lgamma(j + 1) for j in range(count + 1)])
    choose = factorials[-1] - factorials - factorials[::-1]
    errors = count * math.log1p(math.exp(-epsilon))
    successes = np.arange(count, -1, -1)
    upper = np.logaddexp.accumulate(choose - errors - (count - successes) * epsilon)
    lower = np.logaddexp.accumulate(choose - errors - successes * epsilon)
    inflation = 2.0**-49 * (factorials[-1] + count * (1 + epsilon))
    excess = math.log(slack) - (upper + inflation)
    reached = excess < 0
    ratios = upper[reached] + np.log(-np.expm1(excess[reached])) - lower[reached]
    return float(ratios.max(initial=0.0) + 2 * inflation)


def gaussian_dp_composition(mus: Iterable[float]) -> float:
    """Parameter of the composition of μ-Gaussian-DP releases: √(Σ μ²).

    Guarantee
        Composition, adaptive or not, is √(Σ μ²)-Gaussian-DP. Tight.
    Assumes
        Independent seeds, one neighbouring relation.
    Reference
        Dong, Roth and Su (2022), Corollary 3.3.

    Examples
    --------
    >>> round(gaussian_dp_composition([3.0, 4.0]), 6)
    5.0
    """
    parameters = tuple(mus)
    for mu in parameters:
        _require(mu >= 0, "mus", "numbers that are not negative, possibly infinite")
    return _up(math.hypot(*parameters))


def supports(event: Event, accountant: Accountant, relation: Relation) -> bool:
    """Whether the accountant can compute the loss of the event under the relation."""
    _check_accountant(accountant)
    check_relation(relation)
    return _obstacle(_normal_form(event), accountant, relation) is None


def rdp_epsilon(event: Event, delta: float, relation: Relation) -> float:
    """The ε of the event at δ, by Renyi differential privacy.

    Guarantee
        (ε, δ)-DP for neighbours under ``relation``; infinite if the event is not private.
    Assumes
        Noise multipliers refer to sensitivities under ``relation``.
    Reference
        Mironov (2017) for RDP; Mironov, Talwar and Zhang (2019) for Poisson sampling; Wang, Balle
        and Kasiviswanathan (2019), Theorem 27, for sampling without replacement; Canonne, Kamath
        and Steinke (2020), Proposition 12, for the conversion.
    """
    _check_delta(delta)
    leaves = _accountable(event, "rdp", relation)
    from dp_accounting import rdp

    orders = rdp.rdp_privacy_accountant.DEFAULT_RDP_ORDERS
    epsilon, _ = rdp.compute_epsilon(orders, _renyi(leaves, orders, relation), delta)
    return _up(epsilon)


def rdp_curve(event: Event, orders: Sequence[float], relation: Relation) -> tuple[float, ...]:
    """The Renyi divergence bound of the event at each order.

    Guarantee
        (α, ε(α))-RDP for neighbours under ``relation``, for every order α.
    Assumes
        Noise multipliers refer to sensitivities under ``relation``.
    Reference
        As for ``rdp_epsilon``.
    """
    for order in orders:
        _require(1 < order < math.inf, "orders", "finite orders above 1")
    curve = _renyi(_accountable(event, "rdp", relation), orders, relation)
    return tuple(_up(value) for value in curve)


def pld_epsilon(event: Event, delta: float, relation: Relation, interval: float = 1e-4) -> float:
    """The ε of the event at δ, by the privacy loss distribution.

    Usually the tightest of the three: the loss is discretised upward in steps of ``interval``, and
    Gaussian releases are composed exactly before that. Below a δ of about 1e-13 the truncated tails
    make the answer infinite.

    Guarantee
        (ε, δ)-DP for neighbours under ``relation``; infinite if the event is not private.
    Assumes
        Noise multipliers refer to sensitivities under ``relation``.
    Reference
        Koskela, Jälkö and Honkela (2020); Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022).
    """
    _check_delta(delta)
    _require(0 < interval < math.inf, "interval", "a finite step above 0")
    leaves = _accountable(event, "pld", relation)
    if _is_tainted(leaves):
        return math.inf
    if not leaves:
        return 0.0
    parts = [_loss_distribution(leaf, count, interval) for leaf, count in leaves]
    total = reduce(lambda first, second: first.compose(second), parts)
    return _up(total.get_epsilon_for_delta(delta))


Leaves: TypeAlias = tuple[tuple[Event, int], ...]


def _accountable(event: Event, accountant: Accountant, relation: Relation) -> Leaves:
    """The normal form of an event that the accountant supports, or a refusal."""
    require("accounting")
    check_relation(relation)
    leaves = _normal_form(event)
    obstacle = _obstacle(leaves, accountant, relation)
    if obstacle is not None:
        raise NotComputable(
            f"no {accountant} accounting of this event under {relation} neighbours",
            field="event",
            expected=obstacle,
            hint="Ask supports() for the other accountant, or bound the loss with the formulas "
            "of amplification and composition.",
        )
    return leaves


def _normal_form(event: Event) -> Leaves:
    """The events without their nesting, with multiplicities; Gaussian ones merged into one."""
    leaves = tuple(_leaves(event, 1))
    if _is_tainted(leaves):
        return ((NonPrivate(), 1),)
    mus = [
        math.sqrt(count) / leaf.noise_multiplier for leaf, count in leaves if isinstance(leaf, GaussianEvent)
    ]
    others = tuple(pair for pair in leaves if not isinstance(pair[0], GaussianEvent))
    if not mus:
        return others
    return ((GaussianEvent(1 / gaussian_dp_composition(mus)), 1), *others)


def _leaves(event: Event, count: int) -> Iterator[tuple[Event, int]]:
    match event:
        case Composed(events):
            for part in events:
                yield from _leaves(part, count)
        case SelfComposed(part, times):
            yield from _leaves(part, count * times)
        case PoissonSampled() | SampledWithoutReplacement():
            yield _merged_inside(event), count
        case _:
            yield event, count


def _merged_inside(sample: PoissonSampled | SampledWithoutReplacement) -> Event:
    """The sample with its inner event in normal form, where that is one single event."""
    match _normal_form(sample.event):
        case ((NonPrivate() as leaf, _),):
            return leaf
        case ((leaf, 1),):
            return replace(sample, event=leaf)
        case _:
            return sample


def _is_tainted(leaves: Leaves) -> bool:
    return any(isinstance(leaf, NonPrivate) for leaf, _ in leaves)


def _obstacle(leaves: Leaves, accountant: Accountant, relation: Relation) -> str | None:
    """What would have to be otherwise for the accountant to answer."""
    found = (_leaf_obstacle(leaf, accountant, relation) for leaf, _ in leaves)
    return next((obstacle for obstacle in found if obstacle is not None), None)


def _leaf_obstacle(leaf: Event, accountant: Accountant, relation: Relation) -> str | None:
    match leaf:
        case RandomisedResponse():
            return _unless(relation == "replace-one", "replace-one: an absent unit has no answer")
        case PoissonSampled(event=inner):
            inside = isinstance(inner, GaussianEvent) or (
                isinstance(inner, LaplaceEvent) and accountant == "pld"
            )
            return _unless(
                relation == "add-remove", "add-remove, for a Poisson sample of random size"
            ) or _unless(inside, "Gaussian events inside a sample (or for pld one Laplace event)")
        case SampledWithoutReplacement(event=inner):
            return (
                _unless(relation == "replace-one", "replace-one, for a sample of fixed size")
                or _unless(accountant == "rdp", "the rdp accountant, for a sample of fixed size")
                or _unless(isinstance(inner, GaussianEvent), "Gaussian events inside a sample")
            )
        case _:
            return None


def _unless(accepted: bool, expected: str) -> str | None:
    return None if accepted else expected


def _renyi(leaves: Leaves, orders: Sequence[float], relation: Relation) -> list[float]:
    import dp_accounting as dp
    from dp_accounting import rdp

    neighbours = dp.NeighboringRelation
    accountant = rdp.RdpAccountant(
        orders,
        neighbours.REPLACE_ONE if relation == "replace-one" else neighbours.ADD_OR_REMOVE_ONE,
    )
    for leaf, count in leaves:
        accountant.compose(_dp_event(leaf), count)
    return [float(value) for value in accountant.rdp]


def _dp_event(leaf: Event) -> Any:
    """The event in the vocabulary of ``dp_accounting``."""
    import dp_accounting as dp

    match leaf:
        case GaussianEvent(noise):
            return dp.GaussianDpEvent(noise)
        case LaplaceEvent(noise):
            return dp.LaplaceDpEvent(noise)
        case RandomisedResponse(noise, categories):
            return dp.RandomizedResponseDpEvent(noise, categories)
        case PoissonSampled(rate, inner):
            return _padded(dp.PoissonSampledDpEvent(rate, _dp_event(inner)), rate)
        case SampledWithoutReplacement(size, population, inner):
            sampled = dp.SampledWithoutReplacementDpEvent(population, size, _dp_event(inner))
            return _padded(sampled, size / population)
        case _:
            return dp.NonPrivateDpEvent()


def _padded(sampled: Any, rate: float) -> Any:
    """Cover the rounding error of sampled RDP, which is of the order of the rate."""
    import dp_accounting as dp

    return dp.ComposedDpEvent([sampled, dp.ZCDpEvent(rho=0.0, xi=_RDP_ERROR * rate)])


def _loss_distribution(leaf: Event, count: int, interval: float) -> Any:
    """The privacy loss distribution of one event so many times.

    Unsampled noise has the same worst pair under both relations, at distance one sensitivity.
    Built here and not by the library's accountant, which counts repeated randomised response once.
    """
    once = _single_loss_distribution(leaf, interval)
    return once if count == 1 else once.self_compose(count)


def _single_loss_distribution(leaf: Any, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as pld

    rate, inner = (leaf.rate, leaf.event) if isinstance(leaf, PoissonSampled) else (1.0, leaf)
    match inner:
        case GaussianEvent(noise):
            return pld.from_gaussian_mechanism(
                noise, value_discretization_interval=interval, sampling_prob=rate
            )
        case LaplaceEvent(noise):
            return pld.from_laplace_mechanism(
                noise, value_discretization_interval=interval, sampling_prob=rate
            )
    return pld.from_randomized_response(leaf.noise, leaf.categories, value_discretization_interval=interval)


def _up(value: float) -> float:
    """A float above a computed bound; a bound of zero or less is zero."""
    return round_up(float(value)) if value > 0 else 0.0


def _check_composition(epsilon: float, delta: float, count: int) -> None:
    _require(epsilon >= 0, "epsilon", "a number that is not negative, possibly infinite")
    _require(0 <= delta <= 1, "delta", "a number between 0 and 1")
    _check_count(count)


def _check_count(count: int) -> None:
    _require(count >= 1, "count", "a count of at least 1")


def _check_noise(multiplier: float) -> None:
    _require(0 < multiplier < math.inf, "noise_multiplier", "a finite number above 0")


def _check_delta(delta: float) -> None:
    _require(0 <= delta < 1, "delta", "a number of at least 0 and below 1")


def _check_accountant(accountant: Accountant) -> None:
    _require(accountant in get_args(Accountant), "accountant", " or ".join(get_args(Accountant)))


def _require(accepted: bool, field: str, expected: str) -> None:
    if not accepted:
        raise InputError(
            "the accountant cannot read this",
            field=field,
            expected=expected,
            hint="Correct the event or the call; a non-private step is the event NonPrivate.",
        )
