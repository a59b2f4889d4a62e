"""Normalisations before two specifications are compared: one guarantee, written in one way.

Different blocks can make the same constraints. Renyi divergence of infinite order is D_Mult, a distance that
only replaces records keeps their number without any invariant, a promise between neighbours may be one for
all distances, and where no pair is compared every budget says the same.
"""

from __future__ import annotations

import contextlib

from stirred.errors import NotComputable
from stirred.spec.blocks.input_premetric import ADDED, REPLACED
from stirred.spec.blocks.invariant import Count, implied_by
from stirred.spec.blocks.kept import Kept
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
    sharpened = specification.input_premetric.sharpened
    linear = specification.output_premetric.properties.linear_group
    if sharpened is None or not (linear and specification.budget.is_constant):
        return specification
    if specification.budget.policy is not None and declared_invariants(specification.multiverse) is None:
        return specification
    multiverse: AnyMultiverse | None = specification.multiverse
    if not lifts(specification.flavor):
        multiverse = _class_counts(specification)
    if multiverse is None:
        return specification
    blocks = {"input_premetric": sharpened, "multiverse": multiverse}
    return Specification(**dict(specification) | blocks)


def _class_counts(specification: Specification) -> Invariants | None:
    """Counts by all attributes of several tables at once: what replacements keep if they keep the tables."""
    declared, domain = declared_invariants(specification.multiverse), specification.domain
    unit = specification.input_premetric.unit
    if specification.input_premetric.change != REPLACED or domain.points is not None:
        return None
    if not declared or domain.structure != "multiset":
        return None
    if not all(invariant.is_margin and unit in invariant.units for invariant in declared):
        return None
    together = dict.fromkeys(name for invariant in declared for name in invariant.kept)
    return from_invariants(Count(unit=unit, by=tuple(together)))


def conditioned(specification: Specification) -> AnyMultiverse:
    """The multiverse, with the totals that finite distance already fixes."""
    domain, multiverse = specification.domain, specification.multiverse
    if domain.is_finite and (domain.record_schema is None or domain.structure == "object"):
        return multiverse
    for unit in sorted(specification.input_premetric.fixed_totals):
        multiverse = intersect(multiverse, from_invariants(Count(unit=unit)))
    return multiverse


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
    if premetric.change not in (REPLACED, ADDED):
        return False
    known, schema = known_invariants(specification.multiverse), domain.obeyed_schema
    one_added = premetric.sharpened is not None and premetric.change == ADDED
    if one_added and Kept(known, domain).total(premetric.unit):
        return True
    if schema is None or domain.structure != "multiset":
        return False
    return implied_by(Count(unit=premetric.unit, by=schema.names), known, schema)


def _compares_no_listed_pair(specification: Specification) -> bool:
    distances = specification.input_premetric.matrix(specification.domain)
    return all(distances[i][j].is_infinite for _, i, j in specification.pairs())
