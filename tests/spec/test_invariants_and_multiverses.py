"""Domains, invariants and multiverses: Propositions 2.4.11 to 2.4.13 on random flavors, and frames."""

import itertools
from collections import Counter
from fractions import Fraction
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.comparable import completion, finite_pairs, is_vacuous
from support.strategies import (
    approximate,
    close_mechanisms,
    distributions,
    domains,
    mechanisms,
    multiplicative,
    multiverses,
    normalised_renyi,
    partitions,
    premetrics,
    rational_amounts,
    reproducibly,
    statistics,
)

from stirred.errors import (
    AccidentalMultiverse,
    DomainMismatch,
    InputError,
    NotComputable,
    StirredError,
    UnknownName,
)
from stirred.spec import (
    INFINITY,
    ZERO,
    Approximate,
    Attribute,
    Budget,
    Condition,
    Count,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Flavor,
    GaussianTradeOff,
    HammingUnordered,
    Invariants,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Order,
    Recode,
    Renyi,
    Schema,
    Specification,
    Stage,
    Sum,
    Threshold,
    Trivial,
    compare,
    compose,
    evaluate,
    from_invariants,
    margins,
    meet,
    protection_loss,
    satisfies,
)
from stirred.spec.arithmetic.extended import infimum, supremum
from stirred.spec.blocks.domain import require_same
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.invariant import Named, implied_by
from stirred.spec.blocks.multiverse import (
    DescribedMultiverse,
    Explicit,
    Intersection,
    conditions_on,
    intersect,
    refines,
)
from stirred.spec.blocks.output_premetric import (
    ApproximateCurve,
    ChiSquared,
    DensityRatio,
    Hellinger,
    KullbackLeibler,
    TotalVariation,
    TradeOffCurve,
)
from stirred.spec.finite.scope import coverage, singletons
from stirred.spec.order.bounds import bounds

ONE = Exact.of(1)
SINGULAR = [
    Multiplicative(),
    Approximate(delta=Exact.of("1/10")),
    NormalisedRenyi(),
    Renyi(alpha=Exact.of(2)),
    KullbackLeibler(),
    ChiSquared(),
    DensityRatio(),
    GaussianTradeOff(),
]
POSITIVE = [
    Multiplicative(),
    NormalisedRenyi(),
    Renyi(alpha=Exact.of("3/2")),
    KullbackLeibler(),
    TotalVariation(),
    Hellinger(),
    ChiSquared(),
    DensityRatio(),
    GaussianTradeOff(),
]
ALL = [*SINGULAR, TotalVariation(), Hellinger()]


def budget_for(output: Any, amount: object) -> Budget:
    return Budget.by_universe(output.parametrisations[0], (amount,))


def comparable(flavor: Flavor, universe: frozenset[Any]) -> list[tuple[Any, Any]]:
    """Ordered pairs of a universe at finite distance."""
    index = {point: i for i, point in enumerate(flavor.domain.enumerate())}
    table = flavor.input_premetric.matrix(flavor.domain)
    pairs = itertools.permutations(universe, 2)
    return [(x, y) for x, y in pairs if not table[index[x]][index[y]].is_infinite]


# Acceptance test 2: a mechanism and its specification have exactly the same domain (Remark 2.4.7).


def small(points: tuple[Any, ...] = (0, 1), output: Any = None, **budget: Any) -> Specification:
    size = len(points)
    table = tuple(tuple(ZERO if i == j else ONE for j in range(size)) for i in range(size))
    return Specification(
        domain=Domain.finite(points),
        multiverse=Trivial(),
        input_premetric=Given(unit="record", points=points, distances=table),
        output_premetric=output or Multiplicative(),
        budget=budget.get("budget", Budget.epsilon(1)),
    )


def constant(domain: Domain) -> FiniteMechanism:
    return FiniteMechanism.exact_release(domain, lambda _: "same")


CURVES = [
    (Multiplicative(), Budget.epsilon(1)),
    (TradeOffCurve(), Budget(parametrisation="tradeoff", curve=((0, 1), (1, 0)))),
    (ApproximateCurve(), Budget.of_delta({"1/10": 1})),
]


@pytest.mark.parametrize(("output", "budget"), CURVES, ids=["number", "trade-off", "epsilon of delta"])
@pytest.mark.parametrize("points", [(0, 1, 2), (0,), (0, 2), ("0", "1")])
def test_remark_2_4_7_mechanisms_on_another_domain_are_refused(
    output: Any, budget: Budget, points: tuple[Any, ...]
) -> None:
    specification = small(output=output, budget=budget)
    with pytest.raises(DomainMismatch):
        satisfies(constant(Domain.finite(points)), specification)


def test_remark_2_4_7_domains_of_other_stage_or_structure_differ() -> None:
    first = Domain.finite([0, 1])
    for second in (
        Domain.finite([0, 1], stage=Stage.RAW_RESPONSES),
        Domain.finite([0, 1], structure="graph"),
        Domain.finite([0, 1], name="Y"),
    ):
        with pytest.raises(DomainMismatch):
            require_same(first, second, "compare")
        with pytest.raises(DomainMismatch):
            protection_loss(constant(second), small().flavor)
    require_same(first, Domain.finite([0, 1]), "compare")


def test_remark_2_4_7_laws_on_fewer_or_more_points_are_refused() -> None:
    law = Distribution.point("same")
    for points in [(0,), (0, 1, 2), (0, 2), ()]:
        with pytest.raises(DomainMismatch):
            FiniteMechanism(Domain.finite([0, 1]), dict.fromkeys(points, law))


@pytest.mark.parametrize("points", [(0, 1, 2), (0, 2), (0,)])
def test_remark_2_4_7_composition_across_domains_is_refused(points: tuple[int, ...]) -> None:
    first, second = constant(Domain.finite([0, 1])), constant(Domain.finite(points))
    with pytest.raises(DomainMismatch):
        first.compose_fresh(second)
    with pytest.raises(DomainMismatch):
        compose(small(), small(points))
    with pytest.raises(DomainMismatch):
        meet(small().flavor, small(points).flavor)
    assert compare(small(), small(points)).overall == Order.INCOMPARABLE


def test_blocks_on_other_points_than_the_domain_are_refused() -> None:
    domain = Domain.finite([0, 1])
    table = Given(unit="record", points=(0, 2), distances=((ZERO, ONE), (ONE, ZERO)))
    with pytest.raises(DomainMismatch):
        table.matrix(domain)
    with pytest.raises(DomainMismatch):
        bounds(table, small().input_premetric, domain)
    with pytest.raises(InputError):
        Explicit(parts=((0, 7),)).universes(domain)


def test_points_are_distinct_and_built_of_integers_text_and_tuples() -> None:
    for points in ([0, 0], [1, True], [0.5], [{1}], [None]):
        with pytest.raises(StirredError):
            Domain.finite(points)
    assert Domain.finite([[1, [2]], "a"]).enumerate() == ((1, (2,)), "a")


# Acceptance test 3: Propositions 2.4.11 and 2.4.12 and singletons.


@st.composite
def invariant_flavors(draw: st.DrawFn, outputs: list[Any], **fields: Any) -> tuple[Flavor, dict[Any, int]]:
    """A flavor whose universes are the fibres of a random statistic, or lie inside them."""
    domain = draw(domains())
    table = draw(statistics(domain))
    fibres = Explicit.from_function(domain, table.__getitem__)
    finer = intersect(fibres, draw(multiverses(domain)))
    flavor = Flavor(
        domain=domain,
        multiverse=draw(st.sampled_from([fibres, finer])),
        input_premetric=draw(premetrics(domain, **fields)),
        output_premetric=draw(st.sampled_from(outputs)),
    )
    return flavor, table


@reproducibly(120)
@given(invariant_flavors(ALL))
def test_proposition_2_4_11a_an_invariant_is_released_at_budget_zero(
    drawn: tuple[Flavor, dict[Any, int]],
) -> None:
    flavor, table = drawn
    release = FiniteMechanism.exact_release(flavor.domain, table.__getitem__)
    assert set(protection_loss(release, flavor).by_universe) <= {ZERO}
    assert satisfies(release, flavor.with_budget(budget_for(flavor.output_premetric, 0))).satisfied


@reproducibly(150)
@given(st.data())
def test_proposition_2_4_11b_what_is_not_invariant_has_infinite_loss(data: st.DataObject) -> None:
    domain = data.draw(domains())
    table = data.draw(statistics(domain))
    flavor = Flavor(
        domain=domain,
        multiverse=data.draw(st.one_of(multiverses(domain), st.just(Trivial()))),
        input_premetric=data.draw(premetrics(domain)),
        output_premetric=data.draw(st.sampled_from(SINGULAR)),
    )
    release = FiniteMechanism.exact_release(domain, table.__getitem__)
    betrayed = [
        any(table[x] != table[y] for x, y in comparable(flavor, universe))
        for universe in flavor.multiverse.universes(domain)
    ]
    expected = tuple(INFINITY if b else ZERO for b in betrayed)
    assert protection_loss(release, flavor).by_universe == expected
    for amount in (0, 1000):
        verdict = satisfies(release, flavor.with_budget(budget_for(flavor.output_premetric, amount)))
        assert verdict.satisfied == (not any(betrayed))
    assert satisfies(release, flavor.with_budget(budget_for(flavor.output_premetric, "inf"))).satisfied


@reproducibly(60)
@given(st.data())
def test_proposition_2_4_11b_fails_for_total_variation(data: st.DataObject) -> None:
    """The hypothesis "infinite if singular" is needed: here the exact release has a finite loss."""
    domain = data.draw(domains())
    table = data.draw(statistics(domain))
    flavor = Flavor(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=data.draw(premetrics(domain, zero=False)),
        output_premetric=data.draw(st.sampled_from([TotalVariation(), Hellinger()])),
    )
    release = FiniteMechanism.exact_release(domain, table.__getitem__)
    index = {point: i for i, point in enumerate(domain.enumerate())}
    matrix = flavor.input_premetric.matrix(domain)
    demands = (
        ONE / matrix[index[x]][index[y]].rational
        for x, y in comparable(flavor, frozenset(domain.enumerate()))
        if table[x] != table[y]
    )
    loss = protection_loss(release, flavor).overall
    assert not loss.is_infinite
    assert loss == supremum(demands)
    assert satisfies(release, flavor.with_budget(Budget.loss(2))).satisfied


@reproducibly(150)
@given(st.data())
def test_proposition_2_4_12_only_equal_laws_have_loss_zero(data: st.DataObject) -> None:
    domain = data.draw(domains())
    mechanism = data.draw(mechanisms(domain, largest=3))
    flavor = Flavor(
        domain=domain,
        multiverse=data.draw(st.one_of(multiverses(domain), st.just(Trivial()))),
        input_premetric=data.draw(premetrics(domain)),
        output_premetric=data.draw(st.sampled_from(POSITIVE)),
    )
    losses = protection_loss(mechanism, flavor).by_universe
    for universe, loss in zip(flavor.multiverse.universes(domain), losses, strict=True):
        changed = any(mechanism.laws[x] != mechanism.laws[y] for x, y in comparable(flavor, universe))
        assert (loss > ZERO) == changed
    verdict = satisfies(mechanism, flavor.with_budget(budget_for(flavor.output_premetric, 0)))
    assert verdict.satisfied == all(loss.is_zero for loss in losses)


@pytest.mark.parametrize("output", POSITIVE, ids=lambda output: output.kind)
@pytest.mark.parametrize("exponent", [5, 9, 20])
def test_proposition_2_4_12_holds_for_laws_that_hardly_differ(output: Any, exponent: int) -> None:
    """A budget of zero asks for equal laws; no tolerance makes different laws equal."""
    gap = Fraction(1, 10**exponent)
    specification = small(output=output, budget=budget_for(output, 0))
    laws = {
        0: Distribution({"a": "1/2", "b": "1/2"}),
        1: Distribution({"a": Fraction(1, 2) + gap, "b": Fraction(1, 2) - gap}),
    }
    mechanism = FiniteMechanism(specification.domain, laws)
    assert protection_loss(mechanism, specification).overall > ZERO
    assert not satisfies(mechanism, specification).satisfied


@reproducibly(60)
@given(approximate(), distributions(largest=4), distributions(largest=4))
def test_proposition_2_4_12_fails_for_approximate_dp(
    output: Approximate, p: Distribution, q: Distribution
) -> None:
    """Positivity is needed: the loss is zero exactly when total variation is at most delta."""
    specification = small(output=output, budget=Budget.epsilon(0))
    mechanism = FiniteMechanism(specification.domain, {0: p, 1: q})
    close = TotalVariation().between(p, q) <= output.delta
    assert protection_loss(mechanism, specification).overall.is_zero == close
    assert satisfies(mechanism, specification).satisfied == close


def test_proposition_2_4_12_fails_for_approximate_dp_on_different_laws() -> None:
    specification = small(output=Approximate(delta=Exact.of("1/10")), budget=Budget.epsilon(0))
    laws = {0: Distribution({"a": 1}), 1: Distribution({"a": "9/10", "b": "1/10"})}
    assert satisfies(FiniteMechanism(specification.domain, laws), specification).satisfied


@reproducibly(50)
@given(st.data())
def test_an_injective_invariant_leaves_singletons_and_no_protection(data: st.DataObject) -> None:
    domain = data.draw(domains())
    identity = Explicit.from_function(domain, lambda point: point)
    output = data.draw(st.sampled_from(ALL))
    specification = Specification(
        domain=domain,
        multiverse=identity,
        input_premetric=data.draw(premetrics(domain)),
        output_premetric=output,
        budget=budget_for(output, 0),
    )
    for mechanism in (
        FiniteMechanism.exact_release(domain, lambda point: point),
        data.draw(mechanisms(domain)),
    ):
        verdict = satisfies(mechanism, specification)
        assert verdict.satisfied
        assert verdict.loss.overall == ZERO
        assert any("protects nothing" in warning for warning in verdict.warnings)
    assert singletons(identity, domain) == len(domain.enumerate())
    assert all(len(universe) == 1 for universe in identity.universes(domain))


# Acceptance test 4: Proposition 2.4.13, with both rules for the budgets.


@st.composite
def shatterings(draw: st.DrawFn) -> tuple[Flavor, Explicit, FiniteMechanism]:
    """A flavor, a refinement of its multiverse, and a mechanism that is not too lossy."""
    domain = draw(domains())
    coarse = draw(multiverses(domain, min_size=1, max_size=3))
    parts = coarse.universes(domain)
    pieces = draw(st.lists(st.tuples(st.sampled_from(parts), draw_subset(domain)), max_size=4))
    flavor = Flavor(
        domain=domain,
        multiverse=coarse,
        input_premetric=draw(premetrics(domain)),
        output_premetric=draw(st.one_of(multiplicative(), normalised_renyi(), approximate())),
    )
    return flavor, Explicit(parts=tuple(whole & cut for whole, cut in pieces)), draw(close_mechanisms(domain))


def draw_subset(domain: Domain) -> st.SearchStrategy[frozenset[Any]]:
    return st.frozensets(st.sampled_from(domain.enumerate()))


def parametrised(output: Any, losses: list[Exact]) -> Budget:
    """Budgets by universe from linear numbers; zCDP in rho."""
    name = "rho" if isinstance(output, NormalisedRenyi) else "epsilon"
    return Budget.by_universe(name, losses)


def refined(flavor: Flavor, multiverse: Explicit, losses: list[Exact]) -> Specification:
    fields = dict(flavor) | {"multiverse": multiverse}
    return Specification(**fields, budget=parametrised(flavor.output_premetric, losses))


@reproducibly(50)
@given(shatterings(), st.lists(rational_amounts(), min_size=4, max_size=4))
def test_proposition_2_4_13_rule_ii_budget_of_a_piece_is_the_least_of_its_wholes(
    drawn: tuple[Flavor, Explicit, FiniteMechanism], extra: list[Exact]
) -> None:
    flavor, fine, mechanism = drawn
    wholes = flavor.multiverse.universes(flavor.domain)
    losses = protection_loss(mechanism, flavor).by_universe
    allowed = [loss + more for loss, more in zip(losses, extra, strict=False)]
    first = refined(flavor, flavor.multiverse, allowed)
    assert satisfies(mechanism, first).satisfied
    if not fine.parts:
        return
    pieces = [
        infimum(a for a, whole in zip(allowed, wholes, strict=True) if piece <= whole) for piece in fine.parts
    ]
    second = refined(flavor, fine, pieces)
    assert refines(fine, flavor.multiverse, flavor.domain)
    assert satisfies(mechanism, second).satisfied
    if isinstance(flavor.output_premetric, Multiplicative):
        assert compare(first, second).overall in {Order.STRONGER, Order.EQUIVALENT}


@reproducibly(50)
@given(shatterings(), st.lists(rational_amounts(), min_size=4, max_size=4))
def test_proposition_2_4_13_rule_i_budget_of_a_whole_is_the_least_of_its_pieces(
    drawn: tuple[Flavor, Explicit, FiniteMechanism], extra: list[Exact]
) -> None:
    flavor, fine, mechanism = drawn
    wholes = flavor.multiverse.universes(flavor.domain)
    losses = protection_loss(mechanism, flavor).by_universe
    pieces = [
        supremum(loss for loss, whole in zip(losses, wholes, strict=True) if piece <= whole) + more
        for piece, more in zip(fine.parts, extra, strict=False)
    ]
    allowed = [
        infimum(amount for amount, piece in zip(pieces, fine.parts, strict=True) if piece <= whole)
        for whole in wholes
    ]
    first = refined(flavor, flavor.multiverse, allowed)
    assert satisfies(mechanism, first).satisfied
    if not fine.parts:
        assert first.constrains_nothing
        return
    second = refined(flavor, fine, pieces)
    assert satisfies(mechanism, second).satisfied
    if isinstance(flavor.output_premetric, Multiplicative):
        assert compare(first, second).overall in {Order.STRONGER, Order.EQUIVALENT}


def test_proposition_2_4_13_needs_the_refinement() -> None:
    """A universe that no whole contains brings a constraint that the coarser multiverse lacks."""
    domain = Domain.finite([0, 1, 2])
    table = tuple(tuple(ZERO if i == j else ONE for j in range(3)) for i in range(3))
    flavor = Flavor(
        domain=domain,
        multiverse=Explicit(parts=((0, 1), (2,))),
        input_premetric=Given(unit="record", points=(0, 1, 2), distances=table),
        output_premetric=Multiplicative(),
    )
    other = Explicit(parts=((1, 2),))
    release = FiniteMechanism.exact_release(domain, lambda point: point == 2)
    assert not refines(other, flavor.multiverse, domain)
    assert protection_loss(release, flavor).overall == ZERO
    assert not satisfies(release, refined(flavor, other, [ONE])).satisfied


@reproducibly(80)
@given(st.data())
def test_proposition_a_3_2_pairs_at_finite_distance_suffice(data: st.DataObject) -> None:
    domain = data.draw(domains())
    flavor = Flavor(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=data.draw(premetrics(domain)),
        output_premetric=Multiplicative(),
    )
    mechanism = data.draw(mechanisms(domain))
    pairs = Flavor(**dict(flavor) | {"multiverse": finite_pairs(flavor.input_premetric, domain)})
    assert protection_loss(mechanism, flavor).overall == protection_loss(mechanism, pairs).overall


# Refinement, vacuity, completion, coverage: each against its definition.


@reproducibly(100)
@given(st.data())
def test_refinement_is_its_definition_and_a_preorder(data: st.DataObject) -> None:
    domain = data.draw(domains())
    three = [data.draw(st.one_of(multiverses(domain), partitions(domain))) for _ in range(3)]
    a, b, c = three
    parts = [m.universes(domain) for m in three]
    assert refines(a, b, domain) == all(any(d <= e for e in parts[1]) for d in parts[0])
    assert refines(a, a, domain)
    assert refines(a, Trivial(), domain)
    if refines(a, b, domain) and refines(b, c, domain):
        assert refines(a, c, domain)
    both = intersect(a, b)
    assert refines(both, a, domain) and refines(both, b, domain)
    whole = frozenset(domain.enumerate())
    assert refines(Trivial(), a, domain) == any(whole <= e for e in parts[0])


@reproducibly(80)
@given(st.data())
def test_the_intersection_is_the_coarsest_common_refinement(data: st.DataObject) -> None:
    domain = data.draw(domains(max_size=4))
    a, b = data.draw(multiverses(domain)), data.draw(multiverses(domain))
    other = Explicit(parts=[d for d in data.draw(multiverses(domain)).universes(domain) if d])
    if refines(other, a, domain) and refines(other, b, domain):
        assert refines(other, intersect(a, b), domain)


@reproducibly(100)
@given(st.data())
def test_vacuous_completion_and_coverage_are_their_definitions(data: st.DataObject) -> None:
    domain = data.draw(domains())
    multiverse = data.draw(st.one_of(multiverses(domain), partitions(domain), st.just(Trivial())))
    premetric = data.draw(premetrics(domain))
    points, universes = domain.enumerate(), multiverse.universes(domain)
    distance = {(x, y): premetric.distance(x, y) for x, y in itertools.product(points, repeat=2)}
    finite = [pair for pair in itertools.permutations(points, 2) if not distance[pair].is_infinite]
    shared = [any(x in d and y in d for d in universes) for x, y in finite]
    assert is_vacuous(multiverse, premetric, domain) == all(shared)
    ball = {x: frozenset(y for y in points if not distance[x, y].is_infinite) for x in points}
    completed = completion(multiverse, premetric, domain)
    assert set(completed.universes(domain)) == {d & ball[x] for d in universes for x in d}
    assert refines(completed, multiverse, domain)
    covered = {x for d in universes for x in d}
    assert coverage(multiverse, domain) == (len(covered), len(points))
    alone = [x for x in points if not any(x in d and len(d) > 1 for d in universes)]
    assert singletons(multiverse, domain) == len(alone)


@reproducibly(60)
@given(st.data())
def test_a_completion_of_a_symmetric_transitive_comparison_is_complete(data: st.DataObject) -> None:
    domain = data.draw(domains())
    label = data.draw(statistics(domain))
    points = domain.enumerate()
    table = tuple(
        tuple(ZERO if x == y else ONE if label[x] == label[y] else INFINITY for y in points) for x in points
    )
    premetric = Given(unit="record", points=points, distances=table)
    completed = completion(data.draw(multiverses(domain)), premetric, domain)
    for universe in completed.universes(domain):
        for x, y in itertools.product(universe, repeat=2):
            assert not premetric.distance(x, y).is_infinite


def test_universe_functions_need_not_contain_their_argument() -> None:
    domain = Domain.finite([0, 1, 2])
    shifted = Explicit.from_universe_function(domain, lambda x: [(x + 1) % 3])
    assert set(shifted.universes(domain)) == {frozenset({0}), frozenset({1}), frozenset({2})}
    upwards = Explicit.from_universe_function(domain, lambda x: range(x, 3))
    assert coverage(upwards, domain) == (3, 3)
    fibres = Explicit.from_function(domain, lambda x: x == 1)
    assert refines(fibres, upwards, domain) and not refines(upwards, fibres, domain)


def test_refinement_is_not_claimed_where_a_part_cannot_be_listed() -> None:
    """An intersection with listed universes is finer than its invariants, on any domain."""
    unlisted = Domain(name="X", stage=Stage.DATABASE)
    by_block = from_invariants(Count(unit="person", by=("block",)))
    finer = Intersection(parts=(by_block, Explicit(parts=(("a",),))))
    assert refines(finer, by_block, unlisted) is not False
    assert refines(by_block, finer, unlisted) is not True
    described = DescribedMultiverse(name="D", meaning="as agreed")
    assert refines(by_block, described, unlisted) is None
    assert refines(Intersection(parts=(by_block, described)), by_block, unlisted) in (True, None)


# Acceptance test 7: the margins of a two-by-two table with four records.


def test_margins_of_four_records_leave_no_neighbours() -> None:
    schema = Schema.of(row=(0, 1), column=(0, 1))
    domain = Domain.datasets(schema, [4])
    multiverse = from_invariants(margins("record", ("row",), ("column",)))
    distance = HammingUnordered(unit="record")
    found = Counter(
        distance.distance(x, y)
        for universe in multiverse.universes(domain)
        for x, y in itertools.combinations(sorted(universe), 2)
    )
    assert found == {Exact.of(2): 10, Exact.of(4): 1}
    neighbours = Neighbours(relation="replace", unit="record")
    flavor = Flavor(
        domain=domain,
        multiverse=multiverse,
        input_premetric=neighbours,
        output_premetric=Multiplicative(),
    )
    identity = FiniteMechanism.exact_release(domain, lambda point: point)
    verdict = satisfies(identity, flavor.with_budget(Budget.epsilon(0)))
    assert verdict.satisfied and verdict.warnings
    kept = Flavor(**dict(flavor) | {"input_premetric": distance})
    assert protection_loss(identity, kept).overall == INFINITY


def test_margins_partition_the_domain_by_their_values() -> None:
    schema = Schema.of(row=(0, 1), column=(0, 1))
    domain = Domain.datasets(schema, [0, 1, 2, 3])
    multiverse = from_invariants(margins("record", ("row",), ("column",)))

    def value(point: Any) -> tuple[Any, ...]:
        return tuple(sorted(r for r, _ in point)), tuple(sorted(c for _, c in point))

    by_hand = Explicit.from_function(domain, value)
    assert set(multiverse.universes(domain)) == set(by_hand.universes(domain))
    universes = multiverse.universes(domain)
    assert sum(map(len, universes)) == len(domain.enumerate())


def test_bounded_dp_is_the_number_of_records_as_an_invariant() -> None:
    schema = Schema.of(value=(0, 1))
    domain = Domain.datasets(schema, range(4))
    sizes = from_invariants(Count(unit="record"))
    assert set(sizes.universes(domain)) == {
        frozenset(p for p in domain.enumerate() if len(p) == n) for n in range(4)
    }
    assert is_vacuous(sizes, HammingUnordered(unit="record"), domain)


# Essential against accidental: the statistic is declared, never its value.


@pytest.mark.parametrize(
    "declare",
    [
        lambda: from_invariants(331_449_281),
        lambda: from_invariants({"total": 331_449_281}),
        lambda: from_invariants(pl.DataFrame({"block": [1], "count": [17]})),
        lambda: from_invariants(Count(unit="person"), 17),
        lambda: Count(unit="person", value=17),
        lambda: Count(unit="person", by=("block",), values=(17,)),
        lambda: Sum(attribute="age", unit="person", total=17),
        lambda: Threshold(statistic=Count(unit="person"), at_least=1, realised=True),
        lambda: Named(name="c", equals=17),
        lambda: Count.read({"unit": "person", "counts": {"b1": 17}}),
        lambda: Invariants.read({"invariants": [{"kind": "count", "unit": "person", "value": 17}]}),
        lambda: Flavor(
            domain=Domain.finite([0, 1]),
            multiverse=DescribedMultiverse(name="D", meaning="neighbours of the data", accidental=True),
            input_premetric=Neighbours(relation="replace", unit="record"),
            output_premetric=Multiplicative(),
        ),
    ],
)
def test_accidental_multiverses_are_refused(declare: Any) -> None:
    with pytest.raises(AccidentalMultiverse) as caught:
        declare()
    assert "17" not in str(caught.value) and "331" not in str(caught.value)


def test_bounds_of_thresholds_are_part_of_the_design() -> None:
    assert Threshold(statistic=Count(unit="person"), at_least=1).sentence()
    for bad in ({}, {"at_least": 1, "at_most": 2}, {"at_least": 0}, {"at_most": -1}):
        with pytest.raises(InputError):
            Threshold(statistic=Count(unit="person"), **bad)


def test_invariants_read_only_declared_attributes() -> None:
    domain = Domain.datasets(Schema.of(sex=("f", "m")), [1])
    with pytest.raises(UnknownName):
        Flavor(
            domain=domain,
            multiverse=from_invariants(Count(unit="person", by=("age",))),
            input_premetric=HammingUnordered(unit="person"),
            output_premetric=Multiplicative(),
        )


# What one invariant implies, and what a multiverse conditions on, against enumeration.


SCHEMA = Schema(
    attributes=(
        Attribute(name="place", levels=("p", "q")),
        Attribute(name="age", levels=(0, 1, 2)),
    ),
    recodes=(Recode(name="adult", attribute="age", groups={"no": (0,), "yes": (1, 2)}),),
)


@st.composite
def invariants(draw: st.DrawFn) -> Any:
    names = ("place", "age", "adult")
    by = tuple(draw(st.lists(st.sampled_from(names), unique=True, max_size=2)))
    conditions = {
        "place": Condition(attribute="place", levels=("p",)),
        "adult": Condition(attribute="adult", levels=("yes",)),
        "age": Condition(attribute="age", levels=(0, 2)),
    }
    where = tuple(
        draw(
            st.lists(st.sampled_from(sorted(conditions)).map(conditions.__getitem__), unique=True, max_size=2)
        )
    )
    count = Count(unit="person", by=by, where=where)
    total = Sum(attribute="age", unit="person", by=by, where=where)
    statistic = draw(st.sampled_from([count, total]))
    bound = draw(st.sampled_from([None, {"at_least": 1}, {"at_least": 2}, {"at_most": 0}, {"at_most": 1}]))
    return statistic if bound is None else Threshold(statistic=statistic, **bound)


PERSONS = Domain.datasets(SCHEMA, [0, 1, 2])


@reproducibly(120)
@given(st.lists(invariants(), min_size=1, max_size=2), invariants())
def test_implied_invariants_are_constant_on_every_universe(given_ones: list[Any], target: Any) -> None:
    multiverse = from_invariants(given_ones)
    constant_everywhere = all(
        len({target.of_records(point, SCHEMA) for point in universe}) <= 1
        for universe in multiverse.universes(PERSONS)
    )
    if implied_by(target, given_ones, SCHEMA):
        assert constant_everywhere
    assert conditions_on(multiverse, target, PERSONS) == constant_everywhere
    assert bool(refines(multiverse, from_invariants(target), PERSONS)) == constant_everywhere


def test_nested_attributes_are_conditioned_on_only_where_the_domain_nests() -> None:
    schema = Schema.of(nesting=[("block", "county")], block=("b1", "b2"), county=("A", "B"))
    domain = Domain.datasets(schema, [1])
    by_block = from_invariants(Count(unit="person", by=("block",)))
    by_county = Count(unit="person", by=("county",))
    listed = all(
        len({by_county.of_records(point, schema) for point in universe}) <= 1
        for universe in by_block.universes(domain)
    )
    assert conditions_on(by_block, by_county, domain) == listed


# Frames: the Polars computation equals the record-by-record twin.


FRAME_SCHEMA = Schema(
    attributes=(
        Attribute(name="sex", levels=("f", "m", "x")),
        Attribute(name="age", levels=(-2, 0, 1, 7, 40)),
        Attribute(name="block", levels=(101, 102)),
    ),
    recodes=(
        Recode(name="band", attribute="age", groups={"young": (-2, 0, 1), "old": (7, 40)}),
        Recode(name="binary", attribute="sex", groups={"fm": ("f", "m"), "other": ("x",)}),
    ),
)
COLUMNS = ("sex", "age", "block", "band", "binary")
rows = st.lists(st.tuples(*(st.sampled_from(a.levels) for a in FRAME_SCHEMA.attributes)), max_size=12)


@st.composite
def frame_invariants(draw: st.DrawFn) -> Any:
    by = tuple(draw(st.lists(st.sampled_from(COLUMNS), unique=True, max_size=3)))
    levels = {
        "sex": ("f", "m", "x"),
        "age": (-2, 0, 1, 7, 40),
        "block": (101, 102, 999),
        "band": ("young", "old"),
        "binary": ("fm", "other"),
    }
    where = tuple(
        Condition(
            attribute=name,
            levels=tuple(draw(st.lists(st.sampled_from(levels[name]), unique=True, min_size=1))),
        )
        for name in draw(st.lists(st.sampled_from(COLUMNS), unique=True, max_size=2))
    )
    if draw(st.booleans()):
        statistic: Any = Count(unit="person", by=by, where=where)
    else:
        statistic = Sum(attribute=draw(st.sampled_from(["age", "block"])), unit="person", by=by, where=where)
    bound = draw(
        st.sampled_from([None, None, {"at_least": 1}, {"at_least": 3}, {"at_most": 0}, {"at_most": 2}])
    )
    return statistic if bound is None else Threshold(statistic=statistic, **bound)


def as_statistic(table: pl.DataFrame, by: tuple[str, ...]) -> frozenset[Any]:
    cells = ((tuple(row[name] for name in by), row["value"]) for row in table.iter_rows(named=True))
    return frozenset((cell, value if isinstance(value, bool) else Fraction(value)) for cell, value in cells)


def frame_of(records: list[tuple[Any, ...]]) -> pl.DataFrame:
    types = {"sex": pl.String, "age": pl.Int64, "block": pl.Int64}
    return pl.DataFrame(records, schema=types, orient="row")


@reproducibly(200)
@given(rows, frame_invariants())
def test_frames_agree_with_records(records: list[tuple[Any, ...]], invariant: Any) -> None:
    statistic = getattr(invariant, "statistic", invariant)
    table = evaluate(invariant, frame_of(records), FRAME_SCHEMA)
    assert table.columns == [*statistic.by, "value"]
    assert as_statistic(table, statistic.by) == invariant.of_records(records, FRAME_SCHEMA)
    assert table.height == len(invariant.of_records(records, FRAME_SCHEMA))


@reproducibly(40)
@given(rows, frame_invariants(), st.randoms(use_true_random=False))
def test_invariants_do_not_depend_on_the_order_of_records(
    records: list[tuple[Any, ...]], invariant: Any, random: Any
) -> None:
    shuffled = random.sample(records, len(records))
    table = evaluate(invariant, frame_of(records), FRAME_SCHEMA)
    assert table.equals(evaluate(invariant, frame_of(shuffled), FRAME_SCHEMA))


@reproducibly(25)
@given(rows, frame_invariants())
def test_pandas_pyarrow_and_duckdb_frames_are_accepted(
    records: list[tuple[Any, ...]], invariant: Any
) -> None:
    frame = frame_of(records)
    by = getattr(invariant, "statistic", invariant).by
    expected = as_statistic(evaluate(invariant, frame, FRAME_SCHEMA), by)
    arrow = frame.to_arrow()
    with duckdb.connect() as connection:
        others = {
            "lazy": frame.lazy(),
            "arrow": arrow,
            "pandas": arrow.to_pandas(),
            "duckdb": connection.from_arrow(arrow),
            "mapping": {"person": frame, "household": None},
        }
        for name, other in others.items():
            assert as_statistic(evaluate(invariant, other, FRAME_SCHEMA), by) == expected, name


def test_frames_of_other_column_types_are_accepted() -> None:
    records = [("f", 1, 101), ("m", 40, 102), ("f", 7, 101)]
    count = Count(unit="person", by=("sex", "band"), where=(Condition(attribute="block", levels=(101,)),))
    expected = count.of_records(records, FRAME_SCHEMA)
    plain = frame_of(records)
    pandas = pd.DataFrame(records, columns=["sex", "age", "block"]).astype({"sex": "category", "age": "int8"})
    for frame in (
        plain.with_columns(pl.col("sex").cast(pl.Categorical), pl.col("age").cast(pl.Int8)),
        plain.with_columns(pl.col("sex").cast(pl.Enum(["f", "m", "x"])), pl.col("block").cast(pl.UInt16)),
        pandas,
        pa.Table.from_pandas(pandas),
    ):
        assert as_statistic(evaluate(count, frame, FRAME_SCHEMA), count.by) == expected


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt8, pl.Int16, pl.Int32, pl.UInt32, pl.Int64])
@pytest.mark.parametrize("by", [(), ("block",)])
def test_sums_do_not_overflow_the_column_type(kind: Any, by: tuple[str, ...]) -> None:
    top = 2**40 if kind == pl.Int64 else int(pl.select(kind.max()).item())
    frame = pl.DataFrame({"block": [1] * 5, "amount": pl.Series([top] * 5, dtype=kind)})
    table = evaluate(Sum(attribute="amount", unit="firm", by=by), frame)
    assert table["value"].to_list() == [5 * top]


@pytest.mark.parametrize("name", ["value", "len", "count", "literal", "a b"])
def test_attributes_may_have_any_name(name: str) -> None:
    schema = Schema(attributes=(Attribute(name=name, levels=("x", "y")),))
    count = Count(unit="person", by=(name,))
    table = evaluate(count, pl.DataFrame({name: ["x", "x", "y"]}), schema)
    assert sorted(table.row(i)[-1] for i in range(table.height)) == [1, 2]
    assert count.of_records([("x",), ("x",), ("y",)], schema) == {(("x",), 2), (("y",), 1)}


def test_undeclared_levels_are_refused_without_showing_them() -> None:
    frame = pl.DataFrame({"sex": ["f"], "age": [98765], "block": [101]})
    with pytest.raises(StirredError) as caught:
        evaluate(Count(unit="person", by=("band",)), frame, FRAME_SCHEMA)
    assert "98765" not in str(caught.value)


def test_sums_of_text_are_refused() -> None:
    with pytest.raises(StirredError):
        evaluate(Sum(attribute="sex", unit="person"), pl.DataFrame({"sex": ["f"]}))


def test_what_cannot_be_computed_is_refused() -> None:
    frame = pl.DataFrame({"sex": ["f"]})
    with pytest.raises(InputError):
        evaluate(Count(unit="person", by=("age",)), frame)
    with pytest.raises(InputError):
        evaluate(Count(unit="person"), {"household": frame})
    with pytest.raises(InputError):
        evaluate(Count(unit="person"), [("f",)])
    with pytest.raises(NotComputable):
        evaluate(Named(name="c"), frame)


def test_recodes_of_recodes_compute_or_are_refused() -> None:
    try:
        schema = Schema(
            attributes=(Attribute(name="age", levels=(0, 1, 2)),),
            recodes=(
                Recode(name="band", attribute="age", groups={"a": (0,), "b": (1,), "c": (2,)}),
                Recode(name="half", attribute="band", groups={"low": ("a", "b"), "high": ("c",)}),
            ),
        )
    except StirredError:
        return
    count = Count(unit="person", by=("half",))
    records = [(0,), (1,), (2,)]
    frame = pl.DataFrame({"age": [0, 1, 2]})
    assert as_statistic(evaluate(count, frame, schema), ("half",)) == count.of_records(records, schema)


def test_recodes_put_every_level_in_exactly_one_group() -> None:
    age = Attribute(name="age", levels=(0, 1))
    for groups in ({"a": (0,)}, {"a": (0, 1), "b": (1,)}, {"a": (0, 1, 2)}):
        with pytest.raises(StirredError):
            Schema(attributes=(age,), recodes=(Recode(name="band", attribute="age", groups=groups),))


@pytest.mark.parametrize("structure", ["multiset", "vector"])
def test_sizes_that_cannot_be_listed_are_refused_at_once(structure: str) -> None:
    """A size of many digits was raised to a power, or written out in the message."""
    schema = Schema.of(a=("x", "y"))
    for size in (40 if structure == "vector" else 10**6, 10**5 * 3, 10**200):
        with pytest.raises(NotComputable, match="too many points"):
            Domain.datasets(schema, sizes=(1, size), structure=structure).enumerate()
    with pytest.raises(InputError):
        Domain.datasets(schema, sizes=(-1,), structure=structure)
    assert Domain.datasets(Schema.of(a=()), sizes=(0, 1), structure=structure).enumerate() == ((),)
