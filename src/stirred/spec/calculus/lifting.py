"""From neighbours to distances: where a promise between neighbours reaches all data sets of a universe.

A promise between neighbours extends to a larger distance along chains of neighbours, and every link of the
chain must lie in the universe. Invariants can cut all chains: no replacement keeps both margins of a table
of two records, so the promise is empty and its budget may be zero for a mechanism that tells all.
"""

from __future__ import annotations

from collections import deque
from fractions import Fraction

from stirred.errors import NotComputable, NotImplied
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.input_premetric import ONE, Matrix, Premetric
from stirred.spec.blocks.invariant import Declared, implied_by
from stirred.spec.blocks.multiverse import declared_invariants
from stirred.spec.blocks.schema import Schema
from stirred.spec.calculus.additive import contributions, independent, relevant
from stirred.spec.order.bounds import enumerated_bounds
from stirred.spec.specification import Flavor, Specification

LARGEST_SEARCH = 200


def lifts(flavor: Flavor) -> bool:
    """Whether a promise between neighbours is the promise for their sharpened distance, at the same budget.

    Guarantee
        Where it does, any two data sets of a universe are joined inside it by a chain of neighbours that is
        as long as their sharpened distance (d_HamS for replacements), so an output premetric with the
        triangle inequality carries the budget over.
    Assumes
        The domain contains every data set over its schema, where it is not listed.
    Reference
        For additive invariants (counts and sums of f over records) replacing r by r' keeps them where f(r) =
        f(r'), so chains join the data sets with equal counts by class of f. They fill the universe exactly if
        the indicator of each class is in the linear span of one and the components of f. Additions and
        removals, and replacements in place, keep no count at all: there nothing may be invariant.
    """
    premetric = flavor.input_premetric
    sharpened, change = premetric.sharpened, premetric.change
    if sharpened is None or change is None:
        return False
    try:
        return longest_chain(chains(flavor), sharpened.matrix(flavor.domain), flavor) <= ONE
    except NotComputable:
        pass
    declared, domain = declared_invariants(flavor.multiverse), flavor.domain
    if declared is None or domain.points is not None or domain.structure != change.structure:
        return False
    if change.keeps_size and change.structure == "multiset":
        return class_counts_follow(declared, premetric.unit, domain)
    return not declared and (change.keeps_size or domain.sizes is None)


def class_counts_follow(declared: tuple[Declared, ...], unit: str, domain: Domain) -> bool:
    """Whether the number of records in every class of f is fixed by the invariants, for one unit."""
    schema = domain.obeyed_schema
    kept = _without_implied(declared, schema)
    least = [invariant.underlying for invariant in kept if invariant.underlying is not None]
    if least != kept or any(statistic.unit != unit for statistic in least):
        return False
    if not least or (len(least) == 1 and least[0].summed is None):
        return True
    if schema is None:
        return False
    listed = relevant(schema, {name for statistic in least for name in statistic.needs()})
    try:
        values = contributions(least, listed)
    except NotComputable:
        return False
    return independent({frozenset(f.items()): f for f in values.values()}.values())


def _without_implied(declared: tuple[Declared, ...], schema: Schema | None) -> list[Declared]:
    """The invariants from which the others follow by aggregation."""
    kept = list(dict.fromkeys(declared))
    for invariant in tuple(kept):
        others = [other for other in kept if other != invariant]
        if implied_by(invariant, others, schema):
            kept = others
    return kept


def chains(flavor: Flavor) -> Matrix:
    """Least numbers of neighbours that lead from point to point, each step inside a universe."""
    domain = flavor.domain
    if not flavor.input_premetric.flags.neighbour_valued:
        raise NotComputable(
            f"{flavor.input_premetric.symbol} is not a relation of neighbours alone",
            field="input_premetric",
            expected="distances of 0, 1 and infinity",
            hint="State the guarantee between neighbours of one unit.",
        )
    points = domain.enumerate_at_most(LARGEST_SEARCH, "to search for chains of neighbours")
    distances = flavor.input_premetric.matrix(domain)
    steps: list[dict[int, int]] = [{} for _ in points]
    for _, i, j in flavor.pairs():
        if not distances[i][j].is_infinite:
            steps[i][j] = 0 if distances[i][j].is_zero else 1
    return tuple(_breadth_first(steps, start) for start in range(len(points)))


def _breadth_first(steps: list[dict[int, int]], start: int) -> tuple[Exact, ...]:
    lengths: dict[int, int] = {}
    queue = deque([(start, 0)])
    while queue:
        here, length = queue.popleft()
        if here in lengths:
            continue
        lengths[here] = length
        for there, step in steps[here].items():
            if there not in lengths:
                queue.append((there, length + 1)) if step else queue.appendleft((there, length))
    return tuple(Exact.of(lengths[i]) if i in lengths else INFINITY for i in range(len(steps)))


def longest_chain(found: Matrix, distances: Matrix, flavor: Flavor) -> Exact:
    """The largest ratio of chain to distance over pairs that share a universe at finite distance."""
    worst = ZERO
    for _, i, j in flavor.pairs():
        chain, distance = found[i][j], distances[i][j]
        if distance.is_infinite or chain.is_zero:
            continue
        if chain.is_infinite or distance.is_zero:
            return INFINITY
        whole, length = distance.rational, chain.rational
        assert length is not None
        worst = max(worst, chain / whole if whole else Exact(length / _below(distance)))
    return worst


def _below(distance: Exact) -> Fraction:
    """A rational not above an irrational distance."""
    return Fraction(float(distance)) * (1 - Fraction(1, 10**12))


def require_within(specification: Specification, premetric: Premetric, factor: Fraction) -> None:
    """Refuse to state a guarantee at ``factor`` times its budget for a premetric that does not bear it.

    Guarantee
        What passes is the caller's claim that one unit of the new distance is at most ``factor`` of the old,
        where the domain cannot be listed, and a fact where it can. A promise between neighbours needs a
        chain of them inside the universe, unless both are neighbours and the factor is one.
    Reference
        Proposition 2.4.15 of the thesis; for chains see ``lifts``.
    """
    old = specification.input_premetric
    chained = needs_chains(old, premetric, factor)
    measured = not premetric.record_units - old.record_units - {old.unit}
    if not chained:
        if measured:
            require_bounded(specification, premetric, factor)
    elif not (
        one_budget_along_chains(specification)
        and _chain_within(specification.flavor, premetric, factor, measured=measured)
    ):
        raise no_chain(old)


def needs_chains(old: Premetric, new: Premetric, factor: Fraction) -> bool:
    """Whether some pair at finite new distance may be no pair of neighbours of the old one."""
    if new.flags.neighbour_valued and factor == 1:
        return False
    return any(piece.flags.neighbour_valued for piece in old.pieces)


def one_budget_along_chains(specification: Specification) -> bool:
    """Whether a chain stays within one budget: it is constant, or the universes do not meet."""
    budget = specification.budget
    if len(budget.amounts) <= 1 and budget.policy is None:
        return True
    if declared_invariants(specification.multiverse) is not None:
        return True
    universes = specification.universes()
    return sum(map(len, universes)) == len(frozenset().union(*universes))


def require_bounded(specification: Specification, premetric: Premetric, factor: Fraction) -> None:
    """Refute a factor that is too small on a domain that can be listed."""
    flavor = specification.flavor
    try:
        flavor.universes()
        found = enumerated_bounds(premetric, flavor.input_premetric, flavor.domain, flavor.multiverse)
    except NotComputable:
        return
    if found.upper > Exact(factor):
        raise too_small(flavor.domain)


def _chain_within(flavor: Flavor, premetric: Premetric, factor: Fraction, *, measured: bool) -> bool:
    if measured:
        try:
            return longest_chain(chains(flavor), premetric.matrix(flavor.domain), flavor) <= Exact(factor)
        except NotComputable:
            pass
    return lifts(flavor)


def too_small(domain: Domain) -> NotImplied:
    """The refusal of a factor that the domain itself refutes."""
    return NotImplied(
        f"the factor is too small: two points of {domain.name} in one universe are further apart",
        field="factor",
        expected="the largest ratio of the old distance to the new one over pairs that share a universe",
        hint="stirred.spec.order.bounds.bounds(new, old, domain, multiverse).upper is that ratio.",
    )


def no_chain(premetric: Premetric) -> NotImplied:
    """The refusal of a promise between neighbours as one for a larger distance."""
    return NotImplied(
        f"{premetric.symbol} compares neighbours only, and no chains of them are known to join the data sets "
        "of a universe",
        field="input_premetric",
        expected="invariants that leave such chains: none, one table of counts with its margins, or classes "
        "of records whose numbers the invariants fix; or a domain that can be listed, and has them",
        hint="Start from the guarantee for the distance itself; between neighbours under crossed margins a "
        "budget of zero may promise nothing.",
    )
