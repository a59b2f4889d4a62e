"""Exhibits: the mechanisms are sound and their loss is added up wrongly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from stirred.audit import Finding, Tape, WorstCase, accounting_audit, stated_composition
from stirred.museum.claims import REPLACE_IN_PLACE, Data, Law, claim, enumerated, gathered, noisy, replayed
from stirred.museum.exhibit import Examine, Exhibit
from stirred.noise import Source
from stirred.spec import Budget, EpsilonDelta, Exact, NormalisedRenyi

EPSILON = Fraction(1)
HALF_RATIO = Fraction(2)
"""e to half the epsilon of the selection, so that its epsilon is 2 ln 2."""

_SELECTION = claim(
    Budget.zcdp(rho=Exact.computed(2 * math.log(2) / math.sqrt(8))), REPLACE_IN_PLACE, NormalisedRenyi()
)
_PURE = claim(Budget.epsilon(1))


def noisy_max(data: Data, *, broken: bool) -> Law:
    """The best of some candidates, whose scores move by at most one; ``data`` is the one record's choice.

    Permute-and-flip and the exponential mechanism both have the epsilon; only the latter has a bounded range,
    and with it a rho squared of epsilon^2 / 8 instead of epsilon^2 / 2.
    """
    scores = {"even": (0, 0), "first": (1, -1)}[data[0]]
    weights = [HALF_RATIO ** (score - max(scores)) for score in scores]
    if not broken:
        return {i: weight / sum(weights) for i, weight in enumerate(weights)}
    orders = list(itertools.permutations(range(len(weights))))
    return gathered(
        (i, mass / len(orders)) for order in orders for i, mass in flips([(j, weights[j]) for j in order])
    )


def flips(coins: list[tuple[int, Fraction]]) -> list[tuple[int, Fraction]]:
    """Which coin in a row is the first to fall on heads, one of which is certain to."""
    left = Fraction(1)
    first = []
    for i, heads in coins:
        first.append((i, left * heads))
        left *= 1 - heads
    return first


def odometer(
    epsilon: float, delta: float, count: int, slack: float, *, without_log: bool, rest_twice: bool
) -> EpsilonDelta:
    """What an odometer reports that cites Theorem 3.4 of Kairouz, Oh and Viswanath.

    Two mistakes were published: the third form lacks its logarithm, and the probability that some mechanism
    fails is multiplied by its own complement.
    """
    lead = (math.exp(epsilon) - 1) * epsilon * count / (math.exp(epsilon) + 1)
    second = lead + epsilon * math.sqrt(2 * count * math.log(math.e + math.sqrt(count * epsilon**2) / slack))
    inverse = 1 / slack
    third = lead + epsilon * math.sqrt(2 * count * (inverse if without_log else math.log(inverse)))
    some = 1 - (1 - delta) ** count
    total = some * (1 - some) + slack if rest_twice else 1 - (1 - some) * (1 - slack)
    return EpsilonDelta(min(count * epsilon, second, third), total)


def two_counts(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """Two counts from one budget: each with all of it, or with half."""
    share = EPSILON if broken else EPSILON / 2
    return {
        name: noisy(tape, name, len(data), sensitivity=1, epsilon=share) for name in ("persons", "answers")
    }


def _odometer(
    ratio: Fraction, delta: Fraction, count: int, slack: Fraction, *, log: bool, rest: bool
) -> Examine:
    """Audit an odometer with the published mistakes that are asked for."""
    public = math.log(ratio), float(delta), count, float(slack)

    def examine(broken: bool, source: Source) -> Finding:
        reported = odometer(*public, without_log=broken and log, rest_twice=broken and rest)
        truth = WorstCase(ratio, delta, count)
        return accounting_audit(reported, truth, stated=stated_composition(*public), subject="an odometer")

    return examine


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "noisy-max-range",
        "Permute-and-flip is accounted as the exponential mechanism: rho squared too small.",
        "OpenDP issue 2911",
        enumerated(noisy_max, (("even",), ("first",)), _SELECTION, "a selection"),
    ),
    Exhibit(
        "odometer-log",
        "An odometer's formula lacks a logarithm and reports more loss than its theorem.",
        "SmartNoise SDK issue 621",
        _odometer(Fraction(11, 10), Fraction(0), 400, Fraction(1, 10**6), log=True, rest=False),
    ),
    Exhibit(
        "odometer-delta",
        "An odometer multiplies the chance of a failure by that of none, and reports too small a delta.",
        "SmartNoise SDK, sql/snsql/sql/odometer.py at 81d1351",
        _odometer(Fraction(11, 10), Fraction(1, 100), 50, Fraction(1, 200), log=False, rest=True),
    ),
    Exhibit(
        "double-spending",
        "Two queries are answered with the whole budget each.",
        "dp-recorder, test_double_spending",
        replayed(two_counts, (1, 2), (1,), _PURE, "two counts"),
    ),
)
