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

import contextlib
from fractions import Fraction
from typing import Literal, NamedTuple

from stirred.errors import NotComputable
from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.budget import Budget
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.policy import Fixed, Policy, Restated, Swapping, Together
from stirred.spec.blocks.schema import Schema

Pointwise = Literal["equal", "below", "above", "crossing"]

_MIRRORED: dict[Pointwise, Pointwise] = {"below": "above", "above": "below"}
_LEAST: dict[str, int] = {"1": 3, "B": 1}


def pointwise(first: Budget, second: Budget, domain: Domain) -> Pointwise | None:
    """How two budgets compare in all universes, at least one of them by a policy; ``None`` if not known."""
    if first.curve or second.curve or first.parametrisation != second.parametrisation:
        return None
    one, two = policy_of(first), policy_of(second)
    return None if one is None or two is None else _order(one, two, _Room.of(domain))


def policy_of(budget: Budget) -> Policy | None:
    """The policy of a budget; a constant is one, and a list by universe is not stated as a rule."""
    if budget.policy is not None or not budget.is_constant:
        return budget.policy
    return Fixed(parametrisation=budget.parametrisation, amount=budget.amount)


class _Room(NamedTuple):
    """What a domain says of strata: no universe has a larger one than ``largest``, and what nests in what."""

    largest: int | None
    schema: Schema | None

    @classmethod
    def of(cls, domain: Domain) -> _Room:
        largest = None if domain.sizes is None else max(domain.sizes, default=0)
        if largest is None and domain.is_finite:
            with contextlib.suppress(NotComputable):
                points = domain.enumerate()
                largest = max((len(point) for point in points if isinstance(point, tuple)), default=0)
        # The records of a listed domain are all combinations of levels, whatever nests in what.
        return cls(largest, None if domain.is_finite else domain.record_schema)

    def closure(self, match: tuple[str, ...]) -> frozenset[str]:
        return frozenset(match) if self.schema is None else self.schema.closure(match)


def _order(one: Policy, two: Policy, room: _Room) -> Pointwise | None:
    if one == two:
        return "equal"
    if isinstance(one, Swapping) and isinstance(two, Swapping):
        return _both(_strata(one, two, room), _rates(one, two, room))
    if isinstance(one, Fixed) and isinstance(two, Swapping):
        return _constant(one, two, room)
    if isinstance(one, Swapping) and isinstance(two, Fixed):
        found = _constant(two, one, room)
        return None if found is None else _MIRRORED.get(found, found)
    if isinstance(one, Fixed) and isinstance(two, Fixed):
        return _fixed(one, two)
    if isinstance(one, Restated) and isinstance(two, Restated) and one.formula == two.formula:
        return _order(one.of, two.of, room)
    if isinstance(one, Together) and isinstance(two, Together) and one.how == two.how:
        return _parts(one, two, room)
    return None


def _fixed(one: Fixed, two: Fixed) -> Pointwise | None:
    if one.parametrisation != two.parametrisation:
        return None
    return "below" if one.amount < two.amount else "above"


def _both(first: Pointwise | None, second: Pointwise | None) -> Pointwise | None:
    """Two changes one after the other, in either of which the order is known."""
    if "equal" in (first, second):
        return second if first == "equal" else first
    return first if first == second != "crossing" else None


def _strata(one: Swapping, two: Swapping, room: _Room) -> Pointwise | None:
    """Of two keys the one with more variables has the smaller strata, and both losses rise with b."""
    if (one.unit, one.where) != (two.unit, two.where):
        return None
    first, second = room.closure(one.match), room.closure(two.match)
    if first == second:
        return "equal"
    return "below" if first > second else "above" if first < second else None


def _rates(one: Swapping, two: Swapping, room: _Room) -> Pointwise | None:
    """Two rates of one scheme, or two theorems at one rate."""
    p, q = _rational(one), _rational(two)
    if one.theorem != two.theorem:
        return ("below" if one.theorem == "B" else "above") if p == q and 0 < p < 1 else None
    if p == q:
        return "equal"
    if p < q:
        found = _rates(two, one, room)
        return None if found is None else _MIRRORED.get(found, found)
    if q == 0 or p == 1:
        return None if q == 0 and p == 1 else "below" if q == 0 else "above"
    odds = p / (1 - p) * q / (1 - q)
    if odds <= _LEAST[one.theorem]:
        return "below"
    if room.largest is None:
        return "crossing"
    return "above" if one.theorem == "1" and odds >= room.largest + 1 else None


def _constant(one: Fixed, two: Swapping, room: _Room) -> Pointwise | None:
    """A constant is below a policy that rises with b if it is at its least value, at b = 2."""
    p = _rational(two)
    if p in (0, 1) or one.parametrisation != "epsilon":
        return None
    odds = p / (1 - p)
    least = Exact.log(max((3 if two.theorem == "1" else 1) / odds, odds))
    if one.amount <= least:
        return "below"
    return "crossing" if room.largest is None and not one.amount.is_infinite else None


def _parts(one: Together, two: Together, room: _Room) -> Pointwise | None:
    """Part by part: all at most, or all at least."""
    if len(one.parts) != len(two.parts):
        return None
    found = {_order(a, b, room) for a, b in zip(one.parts, two.parts, strict=True)}
    if found == {"equal"}:
        return "equal"
    if found <= {"equal", "below"}:
        return "below"
    return "above" if found <= {"equal", "above"} else None


def _rational(policy: Swapping) -> Fraction:
    rate = policy.rate.rational
    assert rate is not None
    return rate
