"""Normalisations before two specifications are compared: one guarantee, written in one way.

Different blocks can make the same constraints. Renyi divergence of infinite order is D_Mult, a distance that
only replaces records keeps their number without any invariant, a promise between neighbours may be one for
all distances, and where no pair is compared every budget says the same.
"""

from __future__ import annotations

import contextlib
from typing import Any

from stirred.errors import NotComputable
from stirred.spec.blocks.input_premetric import (
    Hamming,
    HammingUnordered,
    Maximum,
    Neighbours,
    Sharpened,
    SymmetricDifference,
)
from stirred.spec.blocks.invariant import Count, implied_by
from stirred.spec.blocks.multiverse import (
    AnyMultiverse,
    Invariants,
    declared_invariants,
    from_invariants,
    intersect,
    known_invariants,
)
from stirred.spec.blocks.output_premetric import Approximate, Multiplicative, Renyi
from stirred.spec.calculus.lifting import lifts
from stirred.spec.specification import Specification

LARGEST_LISTED = 64


def normalised(specification: Specification) -> Specification:
    """An equivalent specification, with D_Mult and with distances where there were neighbours, if possible.

    Guarantee
        Both have the same mechanisms. D_Mult^0 is D_Mult, and so is Renyi divergence of infinite order for a
        symmetric distance, since both orders are bounded. With an output premetric that obeys the triangle
        inequality neighbours are the sharpened distance: under the same invariants where chains of them
        fill the universes, and under the counts by class of record where replacements keep tables of counts.
    """
    return _beyond_neighbours(with_plain_output(specification))


def with_plain_output(specification: Specification) -> Specification:
    """D_Mult where the output premetric is D_Mult by another name."""
    output = specification.output_premetric
    supremum = isinstance(output, Renyi) and output.alpha.is_infinite
    pure = isinstance(output, Approximate) and output.delta.is_zero
    if pure or (supremum and specification.input_premetric.flags.symmetric):
        return Specification(**dict(specification) | {"output_premetric": Multiplicative()})
    return specification


def _beyond_neighbours(specification: Specification) -> Specification:
    premetric = specification.input_premetric
    linear = specification.output_premetric.properties.linear_group
    if not (isinstance(premetric, Neighbours) and linear and specification.budget.is_constant):
        return specification
    if specification.budget.policy is not None and declared_invariants(specification.multiverse) is None:
        return specification
    multiverse: AnyMultiverse | None = specification.multiverse
    if not lifts(specification.flavor):
        multiverse = _class_counts(specification, premetric)
    if multiverse is None:
        return specification
    blocks = {"input_premetric": premetric.sharpened, "multiverse": multiverse}
    return Specification(**dict(specification) | blocks)


def _class_counts(specification: Specification, premetric: Neighbours) -> Invariants | None:
    """Counts by all attributes of several tables at once: what replacements keep if they keep the tables."""
    declared, domain = declared_invariants(specification.multiverse), specification.domain
    if premetric.relation != "replace" or domain.points is not None or domain.structure != "multiset":
        return None
    if not declared or not all(isinstance(i, Count) and not i.where for i in declared):
        return None
    if any(invariant.unit != premetric.unit for invariant in declared):
        return None
    together = dict.fromkeys(name for invariant in declared for name in invariant.by)
    return from_invariants(Count(unit=premetric.unit, by=tuple(together)))


def conditioned(specification: Specification) -> AnyMultiverse:
    """The multiverse, with the totals that finite distance already fixes."""
    domain, multiverse = specification.domain, specification.multiverse
    if domain.is_finite and (domain.record_schema is None or domain.structure == "object"):
        return multiverse
    for unit in sorted(_fixed_totals(specification.input_premetric)):
        multiverse = intersect(multiverse, from_invariants(Count(unit=unit)))
    return multiverse


def _fixed_totals(premetric: Any) -> frozenset[str]:
    """Units whose number is the same in data sets at finite distance."""
    if isinstance(premetric, Maximum):
        return frozenset().union(*map(_fixed_totals, premetric.parts))
    if isinstance(premetric, Sharpened):
        return _fixed_totals(premetric.base)
    if isinstance(premetric, Neighbours):
        return _fixed_totals(premetric.sharpened)
    return frozenset({premetric.unit}) if isinstance(premetric, Hamming | HammingUnordered) else frozenset()


def binds_nothing(specification: Specification) -> bool:
    """Whether no mechanism violates it: the budget is infinite, or no universe has two points to compare.

    A pair at distance zero is compared, and binds at every finite budget. ``False`` where it is not known.
    """
    if specification.constrains_nothing:
        return True
    with contextlib.suppress(NotComputable):
        if specification.domain.is_finite and len(specification.domain.enumerate()) <= LARGEST_LISTED:
            return _compares_no_listed_pair(specification)
    premetric, domain = specification.input_premetric, specification.domain
    known = known_invariants(specification.multiverse)
    added = isinstance(premetric, Neighbours) and premetric.relation == "add-remove"
    if added and any(isinstance(i, Count) and i.unit == premetric.unit and not i.where for i in known):
        return True
    if domain.record_schema is None or domain.structure != "multiset":
        return False
    # A listed domain has records that break the declared nesting: there it implies nothing.
    listed = domain.is_finite
    schema = domain.record_schema.model_copy(update={"nesting": ()}) if listed else domain.record_schema
    complete = Count(unit=premetric.unit, by=domain.record_schema.names)
    unordered = isinstance(premetric, HammingUnordered | SymmetricDifference) or (
        isinstance(premetric, Neighbours) and premetric.relation in {"replace", "add-remove"}
    )
    return unordered and implied_by(complete, known, schema)


def _compares_no_listed_pair(specification: Specification) -> bool:
    distances = specification.input_premetric.matrix(specification.domain)
    index = {point: i for i, point in enumerate(specification.domain.enumerate())}
    return all(
        x == y or distances[index[x]][index[y]].is_infinite
        for universe in specification.universes()
        for x in universe
        for y in universe
    )
