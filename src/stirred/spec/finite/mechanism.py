"""Finite mechanisms: one exact output law for every point, and the protection loss they have.

Definition 2.4.5 of the thesis: the protection loss of a mechanism under a flavor is, in each universe,
the least budget with which it satisfies the specification. It belongs to the mechanism relative to the
flavor; the budget belongs to the specification.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from stirred.errors import DomainMismatch, InputError
from stirred.spec.arithmetic.exact import INFINITY, Exact
from stirred.spec.arithmetic.extended import budget_bound, least_budget, supremum
from stirred.spec.blocks.domain import Domain, Point, differing, require_same
from stirred.spec.blocks.output_premetric import Approximate, TradeOffCurve
from stirred.spec.finite.distribution import Distribution, Outcome
from stirred.spec.finite.tradeoff import TradeOff
from stirred.spec.specification import Flavor, Specification

TOLERANCE = 1e-9


class FiniteMechanism:
    """A mechanism on a finite domain, as a table from point to output law."""

    def __init__(self, domain: Domain, laws: Mapping[Point, Distribution]) -> None:
        if set(laws) != set(domain.enumerate()):
            raise DomainMismatch(
                "the mechanism is not defined on exactly the points of the domain",
                field="mechanism.laws",
                expected=f"one law for every point of {domain.name}, and no other",
                hint="A mechanism and its specification must have the same domain.",
            )
        self.domain = domain
        self.laws = dict(laws)

    @classmethod
    def from_function(cls, domain: Domain, function: Callable[[Any], Distribution]) -> FiniteMechanism:
        """Evaluate a function of the point everywhere."""
        return cls(domain, {point: function(point) for point in domain.enumerate()})

    @classmethod
    def exact_release(cls, domain: Domain, statistic: Callable[[Any], Outcome]) -> FiniteMechanism:
        """The mechanism that publishes a statistic as it is."""
        return cls.from_function(domain, lambda point: Distribution.point(statistic(point)))

    def post_process(self, function: Callable[[Outcome], Outcome]) -> FiniteMechanism:
        """Apply a function to every output."""
        return FiniteMechanism(
            self.domain, {point: law.pushforward(function) for point, law in self.laws.items()}
        )

    def compose_fresh(self, other: FiniteMechanism) -> FiniteMechanism:
        """Run both with independent seeds."""
        require_same(self.domain, other.domain, "run two mechanisms together")
        return FiniteMechanism(
            self.domain, {point: law @ other.laws[point] for point, law in self.laws.items()}
        )


@dataclass(frozen=True)
class PairLoss:
    """A pair of points with its divergence, its distance, and the budget that the pair demands."""

    universe: int
    x: Point
    y: Point
    divergence: Exact
    distance: Exact
    loss: Exact
    event: frozenset[Outcome] = frozenset()


@dataclass(frozen=True)
class ProtectionLoss:
    """The loss in every universe, with the pair that attains the largest."""

    by_universe: tuple[Exact, ...]
    worst: PairLoss | None

    @property
    def overall(self) -> Exact:
        """The largest loss; zero where no universe has a pair to compare."""
        return supremum(self.by_universe)


@dataclass(frozen=True)
class Verdict:
    """Whether a mechanism satisfies a specification, with the pair that shows it where it does not.

    ``numerical`` says that the divergence is computed in floating point, to a relative 1e-9.
    """

    satisfied: bool
    loss: ProtectionLoss
    violation: PairLoss | None
    allowed: Exact | None
    numerical: bool
    warnings: tuple[str, ...] = ()


def protection_loss(mechanism: FiniteMechanism, flavor: Flavor | Specification) -> ProtectionLoss:
    """Least budget of the mechanism in every universe of the flavor."""
    return _overall(_pair_losses(mechanism, flavor), mechanism, flavor)


def satisfies(mechanism: FiniteMechanism, specification: Specification) -> Verdict:
    """Decide by enumeration whether a mechanism satisfies a specification."""
    if specification.budget.curve:
        return _satisfies_curve(mechanism, specification, curve_test(specification))
    pairs = _pair_losses(mechanism, specification)
    specification.budget.require_everywhere(len(specification.universes()))
    violation, allowed = None, None
    for pair in pairs:
        bound = budget_bound(specification.budget.linear(pair.universe), pair.distance)
        if exceeds(pair.divergence, bound, specification) and (
            violation is None or pair.loss > violation.loss
        ):
            violation, allowed = pair, bound
    return Verdict(
        satisfied=violation is None,
        loss=_overall(pairs, mechanism, specification),
        violation=None if violation is None else _with_event(violation, mechanism, specification),
        allowed=allowed,
        numerical=not specification.output_premetric.properties.exact,
        warnings=_warnings(bool(pairs), specification),
    )


def curve_test(specification: Specification) -> Callable[[Distribution, Distribution], bool]:
    """Whether two laws keep the curve that a specification has for a budget."""
    if isinstance(specification.output_premetric, TradeOffCurve):
        curve = _tradeoff(specification)
        return lambda p, q: curve.easier_than(TradeOff.between(p, q))
    measures = [(Approximate(delta=delta), epsilon) for delta, epsilon in specification.budget.curve]
    return lambda p, q: all(d.between(p, q) <= e for d, e in measures)


def exceeds(divergence: Exact, bound: Exact, specification: Specification) -> bool:
    """Whether a divergence is above a bound; beyond a relative 1e-9 where it is computed in floats."""
    if divergence <= bound:
        return False
    if specification.output_premetric.properties.exact or bound.is_infinite:
        return True
    if divergence.is_infinite or bound.is_zero:
        return True
    return not math.isclose(float(divergence), float(bound), rel_tol=TOLERANCE, abs_tol=0.0)


def _require_domain(mechanism: FiniteMechanism, flavor: Flavor | Specification) -> None:
    if mechanism.domain != flavor.domain:
        fields = ", ".join(differing(mechanism.domain, flavor.domain))
        raise DomainMismatch(
            f"the domains of mechanism and flavor differ ({fields})",
            field="domain",
            expected="exactly the same domain",
            hint="Restate the specification on the mechanism's domain: if that is part of its own, "
            "by stirred.spec.restricted (--restrict).",
        )


def _pair_losses(mechanism: FiniteMechanism, flavor: Flavor | Specification) -> list[PairLoss]:
    _require_domain(mechanism, flavor)
    cache: dict[tuple[Point, Point], Exact] = {}
    found = []
    for number, x, y, distance in _compared(flavor):
        if (x, y) not in cache:
            divergence = flavor.output_premetric.between(mechanism.laws[x], mechanism.laws[y])
            cache[x, y] = divergence
            if flavor.output_premetric.properties.symmetric:
                cache[y, x] = divergence
        loss = least_budget(cache[x, y], distance)
        found.append(PairLoss(number, x, y, cache[x, y], distance, loss))
    return found


def _compared(flavor: Flavor | Specification) -> Iterator[tuple[int, Point, Point, Exact]]:
    """Pairs at finite distance, with it and the number of their universe."""
    points, distances = flavor.domain.enumerate(), flavor.input_premetric.matrix(flavor.domain)
    for number, i, j in flavor.pairs():
        if not distances[i][j].is_infinite:
            yield number, points[i], points[j], distances[i][j]


def _overall(
    pairs: list[PairLoss], mechanism: FiniteMechanism, flavor: Flavor | Specification
) -> ProtectionLoss:
    count = len(flavor.universes())
    by_universe = tuple(
        supremum(pair.loss for pair in pairs if pair.universe == index) for index in range(count)
    )
    worst = max(pairs, key=lambda pair: pair.loss, default=None)
    return ProtectionLoss(by_universe, None if worst is None else _with_event(worst, mechanism, flavor))


def _with_event(pair: PairLoss, mechanism: FiniteMechanism, flavor: Flavor | Specification) -> PairLoss:
    p, q = mechanism.laws[pair.x], mechanism.laws[pair.y]
    return pair if p.space != q.space else replace(pair, event=flavor.output_premetric.worst_event(p, q))


def _tradeoff(specification: Specification) -> TradeOff:
    vertices = []
    for level, error in specification.budget.curve:
        a, e = level.rational, error.rational
        if a is None or e is None:
            raise InputError(
                "a trade-off curve is verified on rational vertices",
                field="budget.curve",
                expected="rational levels and errors",
                hint="Round the errors down.",
            )
        vertices.append((a, e))
    return TradeOff(tuple(vertices))


def _satisfies_curve(
    mechanism: FiniteMechanism,
    specification: Specification,
    holds: Callable[[Distribution, Distribution], bool],
) -> Verdict:
    """Check a curve between neighbours; a curve has no single loss, so a violation shows the pair only."""
    _require_domain(mechanism, specification)
    compared = False
    for number, x, y, distance in _compared(specification):
        compared = True
        p, q = mechanism.laws[x], mechanism.laws[y]
        if p != q and (distance.is_zero or p.space != q.space or not holds(p, q)):
            pair = PairLoss(number, x, y, INFINITY, Exact.of(1), INFINITY)
            return Verdict(False, ProtectionLoss((), pair), pair, None, False)
    warnings = _warnings(compared, specification)
    return Verdict(True, ProtectionLoss((), None), None, None, False, warnings)


def _warnings(compared: bool, specification: Specification) -> tuple[str, ...]:
    if not compared:
        return ("no pair of points is compared: the guarantee is vacuous and protects nothing",)
    if specification.constrains_nothing:
        return ("the budget is infinite: the guarantee is vacuous and protects nothing",)
    return ()


def randomised_response(domain: Domain, truth: Fraction, outcomes: tuple[Outcome, ...]) -> FiniteMechanism:
    """Report each entry of a vector truthfully with some probability, else another outcome at random."""
    lie = (1 - truth) / (len(outcomes) - 1)

    def law(vector: Any) -> Distribution:
        current = Distribution({(): 1})
        for entry in vector:
            single = Distribution({o: truth if o == entry else lie for o in outcomes})
            current = (current @ single).pushforward(lambda pair: (*pair[0], pair[1]), "T")  # type: ignore[index]
        return current

    return FiniteMechanism.from_function(domain, law)
