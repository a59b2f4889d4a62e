"""Separation: the least positive distance between two data sets of one universe.

A conversion that bends with the distance is tightest where distances cannot be small: pure DP becomes
zCDP with rho^2 = epsilon tanh(epsilon d0 / 2) / d0, which falls in d0 (``closed_form.rho_squared_of_pure``).
Every number here is a lower bound, so a conversion that uses it is valid.

Reference
    Let x' be x with one record r replaced by r' != r.

    * A count of the unit by attributes B, without condition, is kept only if r and r' agree on B: the cell
      of r loses one and the cell of r' gains one. A sum of an attribute by B, without condition, is kept only
      if r and r' have the same amount, zero or not.
    * So if the attributes that such invariants fix, with all that they determine, are the whole record, then
      r = r': no two data sets of a universe differ in one record, and d_Ham and d_HamS, being integers, start
      at two. Both margins of a table are the example: swapping universes.
    * Such a count also fixes the number of records. Then the symmetric difference is twice d_HamS, and an
      edit distance is even.

    Invariants of other units, with conditions, or of other kinds only make universes smaller.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from stirred.errors import InputError, NotImplied
from stirred.spec.arithmetic.exact import ZERO, Exact
from stirred.spec.arithmetic.extended import infimum
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.input_premetric import (
    Described,
    EditDistance,
    Encoded,
    Given,
    GraphEdit,
    Hamming,
    HammingUnordered,
    Maximum,
    Neighbours,
    PulledBack,
    Sharpened,
    SymmetricDifference,
)
from stirred.spec.blocks.invariant import Count, Named, Sum, Threshold
from stirred.spec.blocks.multiverse import declared_invariants, known_invariants
from stirred.spec.specification import Specification

LARGEST_LISTED = 150


def least_distance(specification: Specification, attributes: Iterable[str] | None = None) -> Exact | None:
    """A lower bound on the positive, finite distances inside universes; ``None`` where there is none.

    Small finite domains are enumerated, which gives the least distance itself, or infinity where no two
    data sets of one universe are compared. Elsewhere the bound is one for distances that count, and more
    where the declared invariants leave no smaller change.

    Assumes
        Declared nesting holds in the data, except on a finite domain, which lists all combinations of levels.

    Parameters
    ----------
    attributes
        All that the mechanism reads of a record of the unit, where the domain's schema has more (attributes
        of other units, for example). The bound is then that of the records cut down to these attributes, and
        serves a mechanism that reads no others (see ``require_reads``).
    """
    if attributes is not None:
        names = require_reads(specification, attributes)
        return _bound(specification.input_premetric, specification.multiverse, specification.domain, names)
    with contextlib.suppress(InputError):
        if _listable(specification):
            return _enumerated(specification)
    return _bound(specification.input_premetric, specification.multiverse, specification.domain)


def require_reads(specification: Specification, attributes: Iterable[str]) -> tuple[str, ...]:
    """The attributes that a mechanism reads, where its guarantee is one for records cut down to them.

    Guarantee
        Let g cut records down to the attributes, and d be the distance. A mechanism that reads g(x) alone and
        satisfies the specification has D(P_x, P_x') <= budget * d(g(x), g(x')) inside universes, and
        d(g(x), g(x')) <= d(x, x').
    Assumes
        The domain holds every data set over its schema.
    Reference
        Exchange in x only the records whose image differs from that of x': the result y has g(y) = g(x'), so
        the law of the output is that of x'; it is at distance d(g(x), g(x')) from x, and in its universe,
        since every invariant is a statistic of g(x). The guarantee at x and y is the claim.
    """
    names, domain, premetric = tuple(attributes), specification.domain, specification.input_premetric
    schema = domain.record_schema
    if schema is not None:
        schema.require(names, "attributes")
    invariants = declared_invariants(specification.multiverse)
    if not isinstance(premetric, HammingUnordered | Hamming | SymmetricDifference):
        missing = f"{premetric.symbol} does not compare records one by one"
    elif not _of_records(domain):
        missing = f"the domain {domain.name} is not that of all data sets over a schema"
    elif invariants is None or not all(
        _unit(i) == premetric.unit and set(i.needs()) <= _determined(names, domain) for i in invariants
    ):
        missing = f"an invariant is not a statistic of these attributes of {premetric.unit} records"
    else:
        return names
    raise NotImplied(
        f"the guarantee is not one for records cut down to these attributes: {missing}",
        field="attributes",
        expected="a distance between records of a schema, and invariants of these attributes alone",
        hint="Leave the attributes out, or state the guarantee under the mechanism's own invariants first.",
    )


def _listable(specification: Specification) -> bool:
    """Whether distances can be listed, and invariants are statistics of the records that are compared."""
    domain, premetric = specification.domain, specification.input_premetric
    multiverses = [specification.multiverse, *_written_into(premetric)]
    same_unit = all(_unit(i) == premetric.unit for m in multiverses for i in known_invariants(m))
    return same_unit and domain.is_finite and len(domain.enumerate()) <= LARGEST_LISTED


def _written_into(premetric: Any) -> list[Any]:
    """The multiverses that a premetric carries in itself."""
    if isinstance(premetric, Maximum):
        return [multiverse for part in premetric.parts for multiverse in _written_into(part)]
    if isinstance(premetric, Encoded):
        return [premetric.multiverse, *_written_into(premetric.base)]
    return _written_into(premetric.base) if isinstance(premetric, Sharpened | PulledBack) else []


def _enumerated(specification: Specification) -> Exact:
    index = {point: i for i, point in enumerate(specification.domain.enumerate())}
    distances = specification.input_premetric.matrix(specification.domain)
    return infimum(
        distances[index[x]][index[y]]
        for universe in specification.universes()
        for x in universe
        for y in universe
        if distances[index[x]][index[y]] > ZERO
    )


def _bound(
    premetric: Any, multiverse: Any, domain: Domain | None, attributes: tuple[str, ...] | None = None
) -> Exact | None:
    """The bound that the kind of distance and the declared invariants give."""
    return _of_kind(premetric, known_invariants(multiverse), domain, attributes)


def _of_kind(
    premetric: Any,
    invariants: tuple[Any, ...],
    domain: Domain | None,
    attributes: tuple[str, ...] | None = None,
) -> Exact | None:
    match premetric:
        case Hamming() | HammingUnordered():
            return Exact.of(2 if _fixes_record(premetric.unit, invariants, domain, attributes) else 1)
        case SymmetricDifference():
            if not _fixes_total(premetric.unit, invariants):
                return Exact.of(1)
            return Exact.of(4 if _fixes_record(premetric.unit, invariants, domain, attributes) else 2)
        case EditDistance():
            return Exact.of(2 if _fixes_total(premetric.unit, invariants) else 1)
        case GraphEdit() | Neighbours():
            return Exact.of(1)
        case Given():
            return infimum(d for row in premetric.distances for d in row if d > ZERO)
        case Described():
            return Exact.of(1) if premetric.flags.neighbour_valued else None
        case Encoded():
            return _of_kind(premetric.base, (*invariants, *known_invariants(premetric.multiverse)), domain)
        case Sharpened():
            # Paths may leave the universe, and are at least as long as their longest step.
            return _of_kind(premetric.base, (), domain)
        case PulledBack():
            # The images are data sets of another domain, whose invariants are not declared here.
            return _of_kind(premetric.base, (), None)
        case Maximum():
            parts = [_of_kind(part, invariants, domain) for part in premetric.parts]
            known = [part for part in parts if part is not None]
            return min(known) if len(known) == len(parts) else None
    return None


def _fixes_total(unit: str, invariants: tuple[Any, ...]) -> bool:
    return any(isinstance(i, Count) and i.unit == unit and not i.where for i in invariants)


def _fixes_record(
    unit: str, invariants: tuple[Any, ...], domain: Domain | None, attributes: tuple[str, ...] | None
) -> bool:
    """Whether one replaced record that keeps the invariants is the same record."""
    if domain is None or not _of_records(domain):
        return False
    assert domain.record_schema is not None
    plain = [i for i in invariants if isinstance(i, Count | Sum) and i.unit == unit and not i.where]
    fixed = {name for i in plain for name in (i.by if isinstance(i, Count) else (i.attribute,))}
    wanted = domain.record_schema.names if attributes is None else attributes
    return set(wanted) <= _determined(fixed, domain)


def _of_records(domain: Domain) -> bool:
    """Whether the points are the data sets over a schema."""
    given = domain.record_schema is not None and domain.points is None
    return given and domain.structure in {"multiset", "vector"}


def _determined(names: Iterable[str], domain: Domain) -> frozenset[str]:
    """What attributes determine; a finite domain holds records that break the declared nesting."""
    schema = domain.record_schema
    assert schema is not None
    free = schema.model_copy(update={"nesting": ()}) if domain.is_finite else schema
    return free.closure(names)


def _unit(invariant: Any) -> str | None:
    if isinstance(invariant, Named):
        return None
    return str(invariant.statistic.unit if isinstance(invariant, Threshold) else invariant.unit)
