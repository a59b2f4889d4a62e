"""Bounds between input premetrics: the largest l and least u with l d <= d' <= u d.

Reference
    Proposition 2.4.15 of the thesis: then M(d, eps) is inside M(d', eps/l), and M(d', eps) inside
    M(d, u eps). Only pairs that share a universe need the inequalities, so invariants may rescue a
    comparison that fails on the whole domain.
"""

from __future__ import annotations

from dataclasses import dataclass

from stirred.errors import NotComputable
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.arithmetic.extended import infimum, quotient, supremum
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.input_premetric import ONE, Matrix, Premetric
from stirred.spec.blocks.multiverse import AnyMultiverse, Trivial, invariant_units, pairs_in


@dataclass(frozen=True)
class Bounds:
    """l and u of Proposition 2.4.15, and why they hold."""

    lower: Exact
    upper: Exact
    reason: str


def bounds(
    first: Premetric, second: Premetric, domain: Domain, multiverse: AnyMultiverse | None = None
) -> Bounds | None:
    """Bounds of the second premetric by the first on pairs that share a universe.

    Finite domains are enumerated, where everything reads records of one unit; otherwise known orders are
    used, and ``None`` says that none applies.
    """
    if first == second:
        return Bounds(ONE, ONE, "the premetrics are the same")
    universes = multiverse or Trivial()
    if len(first.record_units | second.record_units | invariant_units(universes)) > 1:
        return _known(first, second)
    try:
        return enumerated_bounds(first, second, domain, universes)
    except NotComputable:
        return _known(first, second)


def enumerated_bounds(
    first: Premetric, second: Premetric, domain: Domain, multiverse: AnyMultiverse
) -> Bounds:
    """The bounds on a domain that can be listed."""
    a, b = first.matrix(domain), second.matrix(domain)
    pairs = {(i, j) for _, i, j in pairs_in(multiverse.universes(domain), domain)}
    lower = infimum(_lower_ratio(a, b, i, j) for i, j in pairs)
    upper = supremum(_upper_ratio(a, b, i, j) for i, j in pairs)
    return Bounds(lower, upper, "enumerated over all pairs that share a universe")


def _lower_ratio(a: Matrix, b: Matrix, i: int, j: int) -> Exact:
    """The largest l with l a <= b at one pair."""
    d, e = a[i][j], b[i][j]
    if e.is_infinite or d.is_zero:
        return INFINITY
    return ZERO if d.is_infinite else quotient(e, d, up=False)


def _upper_ratio(a: Matrix, b: Matrix, i: int, j: int) -> Exact:
    """The least u with b <= u a at one pair."""
    d, e = a[i][j], b[i][j]
    if d.is_infinite or e.is_zero:
        return ZERO
    return INFINITY if d.is_zero or e.is_infinite else quotient(e, d)


def _known(first: Premetric, second: Premetric) -> Bounds | None:
    if first.unit != second.unit:
        return None
    if (found := first.bounded_by(second)) is not None:
        return Bounds(Exact(found[0]), INFINITY, found[1])
    if (found := second.bounded_by(first)) is not None:
        return Bounds(ZERO, Exact(1 / found[0]), found[1])
    return None
