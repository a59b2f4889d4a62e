"""Which pairs of points a multiverse and its distances compare, by their definitions."""

from __future__ import annotations

from typing import Any

from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.multiverse import AnyMultiverse, Explicit
from stirred.spec.order.normal_form import all_constraints, explicit_constraints
from stirred.spec.specification import Specification


def is_vacuous(multiverse: AnyMultiverse, premetric: Any, domain: Domain) -> bool:
    """Whether the multiverse removes no comparison: every pair at finite distance shares a universe.

    The thesis (T:1028) calls such a multiverse vacuous: it restricts nothing.
    """
    universes = multiverse.universes(domain)
    return all(any(x in u and y in u for u in universes) for x, y in _comparable_pairs(premetric, domain))


def completion(multiverse: AnyMultiverse, premetric: Any, domain: Domain) -> Explicit:
    """Universes cut down to the points at finite distance from one another (Definition 6.2.10)."""
    points = domain.enumerate()
    index = {point: i for i, point in enumerate(points)}
    distances = premetric.matrix(domain)
    parts = dict.fromkeys(
        frozenset(y for y in universe if not distances[index[x]][index[y]].is_infinite)
        for universe in multiverse.universes(domain)
        for x in universe
    )
    return Explicit(parts=tuple(parts))


def finite_pairs(premetric: Any, domain: Domain) -> Explicit:
    """One universe for every pair at finite distance (A.3.2): the same mechanisms as the whole domain."""
    parts = dict.fromkeys(frozenset(pair) for pair in _comparable_pairs(premetric, domain))
    return Explicit(parts=tuple(parts))


def implicit_pairs(specification: Specification) -> list[tuple[object, object]]:
    """Pairs that are bounded, or bounded more tightly, only by way of other points."""
    points = specification.domain.enumerate()
    explicit, full = explicit_constraints(specification), all_constraints(specification)
    pairs = ((i, j) for i in range(len(points)) for j in range(len(points)))
    return [(points[i], points[j]) for i, j in pairs if full[i][j] < explicit[i][j]]


def _comparable_pairs(premetric: Any, domain: Domain) -> list[tuple[Any, Any]]:
    points = domain.enumerate()
    distances = premetric.matrix(domain)
    size = range(len(points))
    return [
        (points[i], points[j])
        for i in size
        for j in size
        if i < j and not (distances[i][j].is_infinite and distances[j][i].is_infinite)
    ]
