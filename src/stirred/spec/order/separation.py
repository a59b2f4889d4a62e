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

from stirred.errors import InputError, NotImplied
from stirred.spec.arithmetic.exact import ZERO, Exact
from stirred.spec.arithmetic.extended import infimum
from stirred.spec.blocks.input_premetric import ADDED, REPLACED, REPLACED_IN_PLACE
from stirred.spec.blocks.kept import Kept
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
    names = None if attributes is None else require_reads(specification, attributes)
    with contextlib.suppress(InputError):
        if names is None and _listable(specification):
            return _enumerated(specification)
    kept = Kept(known_invariants(specification.multiverse), specification.domain, names)
    return specification.input_premetric.separation(kept)


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
    schema = domain.obeyed_schema
    if schema is not None:
        schema.require(names, "attributes")
    invariants = declared_invariants(specification.multiverse)
    if premetric.sharpened is not None or premetric.change not in (REPLACED, REPLACED_IN_PLACE, ADDED):
        missing = f"{premetric.symbol} does not compare records one by one"
    elif schema is None or not domain.holds_records:
        missing = f"the domain {domain.name} is not that of all data sets over a schema"
    elif invariants is None or not all(
        i.units == {premetric.unit} and set(i.needs()) <= schema.closure(names) for i in invariants
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
    multiverses = (specification.multiverse, *premetric.multiverses)
    same_unit = all(i.units == {premetric.unit} for m in multiverses for i in known_invariants(m))
    return same_unit and domain.is_finite and len(domain.enumerate()) <= LARGEST_LISTED


def _enumerated(specification: Specification) -> Exact:
    distances = specification.input_premetric.matrix(specification.domain)
    return infimum(distances[i][j] for _, i, j in specification.pairs() if distances[i][j] > ZERO)
