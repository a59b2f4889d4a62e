"""The order of policies: pointwise over all universes, never by the values of one.

Guarantee
    "Below" is said only where the first policy is at most the second in every universe with a pair to
    compare, "above" likewise; "crossing" where each is the smaller one in some universe of a domain without
    bounds.
Reference
    With u = ln o, Theorem 1 is ln(b+1)/2 + |u - ln(b+1)/2|: of two rates the larger one loses less exactly
    where o1 o2 <= b + 1, and the least b is 2. Theorem B is c/2 + |u - c/2| with c = ln[d(b)/d(b-2)]/2 for b
    of at least 4, |u| at b = 2, where the larger rate loses less only if o1 o2 <= 1; that suffices for all b.
    At one rate Theorem B is below Theorem 1. A stratum with two distinct records lies in one of every coarser
    key.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal

from stirred.errors import NotComputable
from stirred.spec.budget import Budget
from stirred.spec.domain import Domain
from stirred.spec.exact import Exact
from stirred.spec.policy import Fixed, Policy, Restated, Swapping, Together

Pointwise = Literal["equal", "below", "above", "crossing"]

_MIRRORED: dict[Pointwise, Pointwise] = {"below": "above", "above": "below"}
_LEAST: dict[str, int] = {"1": 3, "B": 1}


def pointwise(first: Budget, second: Budget, domain: Domain) -> Pointwise | None:
    """How two budgets compare in all universes, at least one of them by a policy; ``None`` if not known."""
    if first.curve or second.curve or first.parametrisation != second.parametrisation:
        return None
    one, two = policy_of(first), policy_of(second)
    return None if one is None or two is None else _order(one, two, _largest(domain))


def policy_of(budget: Budget) -> Policy | None:
    """The policy of a budget; a constant is one, and a list by universe is not stated as a rule."""
    if budget.policy is not None or not budget.is_constant:
        return budget.policy
    return Fixed(parametrisation=budget.parametrisation, amount=budget.amount)


def _largest(domain: Domain) -> int | None:
    """No universe of a listed domain has a larger stratum than this; ``None`` where nothing bounds it."""
    if not domain.is_finite:
        return None
    try:
        return max((len(point) for point in domain.enumerate() if isinstance(point, tuple)), default=0)
    except NotComputable:
        return None


def _order(one: Policy, two: Policy, largest: int | None) -> Pointwise | None:
    if one == two:
        return "equal"
    if isinstance(one, Swapping) and isinstance(two, Swapping):
        return _both(_strata(one, two), _rates(one, two, largest))
    if isinstance(one, Fixed) and isinstance(two, Swapping):
        return _constant(one, two, largest)
    if isinstance(one, Swapping) and isinstance(two, Fixed):
        found = _constant(two, one, largest)
        return None if found is None else _MIRRORED.get(found, found)
    if isinstance(one, Fixed) and isinstance(two, Fixed):
        return "below" if one.amount < two.amount else "above"
    if isinstance(one, Restated) and isinstance(two, Restated) and one.formula == two.formula:
        return _order(one.of, two.of, largest)
    if isinstance(one, Together) and isinstance(two, Together) and one.how == two.how:
        return _parts(one, two, largest)
    return None


def _both(first: Pointwise | None, second: Pointwise | None) -> Pointwise | None:
    """Two changes one after the other, in either of which the order is known."""
    if "equal" in (first, second):
        return second if first == "equal" else first
    return first if first == second != "crossing" else None


def _strata(one: Swapping, two: Swapping) -> Pointwise | None:
    """Of two keys the one with more variables has the smaller strata, and both losses rise with b."""
    if (one.unit, one.where) != (two.unit, two.where):
        return None
    first, second = set(one.match), set(two.match)
    if first == second:
        return "equal"
    return "below" if first > second else "above" if first < second else None


def _rates(one: Swapping, two: Swapping, largest: int | None) -> Pointwise | None:
    """Two rates of one scheme, or two theorems at one rate."""
    p, q = _rational(one), _rational(two)
    if one.theorem != two.theorem:
        return ("below" if one.theorem == "B" else "above") if p == q and 0 < p < 1 else None
    if p == q:
        return "equal"
    if p < q:
        found = _rates(two, one, largest)
        return None if found is None else _MIRRORED.get(found, found)
    if q == 0 or p == 1:
        return None if q == 0 and p == 1 else "below" if q == 0 else "above"
    odds = p / (1 - p) * q / (1 - q)
    if odds <= _LEAST[one.theorem]:
        return "below"
    if largest is None:
        return "crossing"
    return "above" if one.theorem == "1" and odds >= largest + 1 else None


def _constant(one: Fixed, two: Swapping, largest: int | None) -> Pointwise | None:
    """A constant is below a policy that rises with b if it is at its least value, at b = 2."""
    p = _rational(two)
    if p in (0, 1) or one.parametrisation != "epsilon":
        return None
    odds = p / (1 - p)
    least = Exact.log(max((3 if two.theorem == "1" else 1) / odds, odds))
    if one.amount <= least:
        return "below"
    return "crossing" if largest is None and not one.amount.is_infinite else None


def _parts(one: Together, two: Together, largest: int | None) -> Pointwise | None:
    """Part by part: all at most, or all at least."""
    if len(one.parts) != len(two.parts):
        return None
    found = {_order(a, b, largest) for a, b in zip(one.parts, two.parts, strict=True)}
    if found == {"equal"}:
        return "equal"
    if found <= {"equal", "below"}:
        return "below"
    return "above" if found <= {"equal", "above"} else None


def _rational(policy: Swapping) -> Fraction:
    rate = policy.rate.rational
    assert rate is not None
    return rate
