"""Witness mechanisms: a finite mechanism that satisfies one specification and violates another.

Reference
    R31 of our digest. Let L* be the normal form of the first specification and x0, x1 a pair that the
    second bounds by less. With h(x) = min(L*(x0, x), L) the mechanism with two outputs and
    P_x(1) = e^(h(x) - L)/2 has D_Mult(P_x, P_y) = |h(x) - h(y)|; Gaussian noise around sqrt(2) h(x), put
    into finitely many bins, does the same for D_NoR up to a loss that is smaller than the gap.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

from stirred.errors import NotComputable
from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.input_premetric import Matrix
from stirred.spec.blocks.output_premetric import Multiplicative
from stirred.spec.finite.distribution import Distribution
from stirred.spec.finite.mechanism import FiniteMechanism, satisfies
from stirred.spec.specification import Specification

WIDEST = 16.0
FINEST = 1 / 64
SCALE = 10**60
PRECISIONS = (60, 200, 1200)


def witness(
    first: Specification, second: Specification, full: Matrix, i: int, j: int, allowed: Exact
) -> FiniteMechanism:
    """A mechanism that satisfies the first and exceeds what the second allows between points i and j."""
    target = _target(full[i][j], allowed)
    heights = [min(row, target) for row in full[i]]
    if isinstance(first.output_premetric, Multiplicative):
        return _two_outputs(first, second, heights, target, allowed)
    return _binned_gaussian(first, second, heights, target, allowed)


def _target(reachable: Exact, allowed: Exact) -> Exact:
    """A finite height above what is allowed and not above what is reachable."""
    return min(reachable, allowed + Exact.of(1))


def _two_outputs(
    first: Specification, second: Specification, heights: list[Exact], target: Exact, allowed: Exact
) -> FiniteMechanism:
    """Rational masses near e^(h - L)/2; heights are shrunk a little so that rounding breaks nothing."""
    exact, top = [h.exponential for h in heights], target.exponential
    if top is not None and all(e is not None for e in exact):
        return _coin(first, [e / top / 2 for e in exact if e is not None])
    for digits in PRECISIONS:
        with localcontext() as context:
            context.prec = digits
            goal, bound = _decimal(target, digits), _decimal(allowed, digits)
            shrink = (bound + (goal - bound) * 2 / 3) / goal
            masses = [Fraction((shrink * (_decimal(h, digits) - goal)).exp()) / 2 for h in heights]
        mechanism = _coin(first, masses)
        if satisfies(mechanism, first).satisfied and not satisfies(mechanism, second).satisfied:
            return mechanism
    raise NotComputable(
        "the gap between the two specifications is too narrow for a witness",
        field="budget",
        expected=f"a gap that shows within {PRECISIONS[-1]} digits",
        hint="The verdict stands: it rests on the normal form, not on the witness.",
    )


def _coin(first: Specification, masses: list[Fraction]) -> FiniteMechanism:
    """Two outputs; the first has these masses."""
    points = first.domain.enumerate()
    laws = {
        point: Distribution({"1": mass, "0": 1 - mass}) for point, mass in zip(points, masses, strict=True)
    }
    return FiniteMechanism(first.domain, laws)


def _decimal(value: Exact, digits: int) -> Decimal:
    ticks = value.rounded_up(digits)
    return Decimal(ticks.numerator) / Decimal(ticks.denominator)


def _binned_gaussian(
    first: Specification,
    second: Specification,
    heights: list[Exact],
    target: Exact,
    allowed: Exact,
) -> FiniteMechanism:
    shrink = _shrink(target, allowed)
    means = [math.sqrt(2) * shrink * float(h) for h in heights]
    spread = max(means) - min(means)
    if spread > WIDEST:
        raise NotComputable(
            "the witness needs masses below floating-point range",
            field="budget",
            expected=f"a gap that shows within {WIDEST} standard deviations",
            hint="The verdict stands; compare specifications with smaller budgets to see a witness.",
        )
    width = 0.5
    while width >= FINEST:
        low, high = min(means) - 5, max(means) + 5
        edges = [low + k * width for k in range(math.ceil((high - low) / width) + 1)]
        laws = {}
        for point, mean in zip(first.domain.enumerate(), means, strict=True):
            cuts = [(edge - mean) for edge in edges]
            masses = [_below(cuts[0])]
            for a, b in itertools.pairwise(cuts):
                masses.append(_below(b) - _below(a) if b <= 0 else _below(-a) - _below(-b))
            masses.append(_below(-cuts[-1]))
            weights = [round(Fraction(mass) * SCALE) + 1 for mass in masses]
            total = sum(weights)
            laws[point] = Distribution({k: Fraction(w, total) for k, w in enumerate(weights)})
        mechanism = FiniteMechanism(first.domain, laws)
        if satisfies(mechanism, first).satisfied and not satisfies(mechanism, second).satisfied:
            return mechanism
        width /= 4
    raise NotComputable(
        "the gap between the two specifications is too narrow for a discretised witness",
        field="budget",
        expected="a relative gap above about one in a million",
        hint="The verdict stands: it rests on the normal form, not on the witness.",
    )


def _below(x: float) -> float:
    """The normal distribution function, as floats have it: what is made of it is verified exactly."""
    return math.erfc(-x / math.sqrt(2)) / 2


def _shrink(target: Exact, allowed: Exact) -> float:
    """A factor below one that keeps the target above what is allowed."""
    ratio = float(allowed) / float(target)
    return ratio + (1 - ratio) * 2 / 3
