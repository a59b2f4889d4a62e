"""What may be said without loss: functions of the component, the policy, and sometimes the budget."""

import itertools
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import pytest

from stirred.spec import (
    INFINITY,
    ZERO,
    Budget,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    HammingUnordered,
    Multiplicative,
    NormalisedRenyi,
    Schema,
    Specification,
    budget_disclosure,
    from_invariants,
    margins,
    protection_loss,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.blocks.output_premetric import TotalVariation
from stirred.spec.disclosure import component_budgets, components, realised_budgets

SEEDS = range(80)


def build(
    size: int,
    parts: Iterable[Iterable[int]],
    distances: object,
    amounts: Iterable[object],
    output: object = None,
    kind: str = "epsilon",
) -> Specification:
    return Specification(
        domain=Domain.finite(range(size)),
        multiverse=Explicit(parts=parts),
        input_premetric=Given(unit="unit", points=range(size), distances=distances),
        output_premetric=output or Multiplicative(),
        budget=Budget.by_universe(kind, amounts),
    )


def drawn(seed: int) -> Specification:
    """Two to four points; universes that overlap, leave points out and may be single points."""
    random_ = random.Random(f"disclosure {seed}")
    size = random_.randint(2, 4)
    parts = [random_.sample(range(size), random_.randint(1, size)) for _ in range(random_.randint(1, 3))]
    lengths = (0, 1, 1, 2, "inf", "inf")
    distances = [[0 if x == y else random_.choice(lengths) for y in range(size)] for x in range(size)]
    return build(size, parts, distances, [random_.choice((0, 1, 2, "ln(2)")) for _ in parts])


def comparable(specification: Specification, x: int, y: int) -> bool:
    """Definition A.1.1: a shared universe, and a finite distance one way or the other."""
    d = specification.input_premetric
    near = not (d.distance(x, y).is_infinite and d.distance(y, x).is_infinite)
    return x != y and near and any({x, y} <= universe for universe in specification.universes())


def reachable(specification: Specification, start: int) -> frozenset[int]:
    """[x] by following comparable pairs, one at a time."""
    found, fresh = {start}, [start]
    while fresh:
        x = fresh.pop()
        more = {y for y in specification.domain.enumerate() if comparable(specification, x, y)} - found
        found |= more
        fresh += more
    return frozenset(found)


def released(specification: Specification, statistic: Callable[[Any], Any]) -> Exact:
    """Loss of publishing a function of the data as it is."""
    mechanism = FiniteMechanism.exact_release(specification.domain, statistic)
    return protection_loss(mechanism, specification).overall


@pytest.mark.parametrize("seed", SEEDS)
def test_a_1_1_components_are_the_classes_of_comparable_points(seed: int) -> None:
    specification = drawn(seed)
    expected = {reachable(specification, x) for x in specification.domain.enumerate()}
    assert set(components(specification)) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_a_2_1_an_exact_release_has_finite_loss_exactly_if_it_is_a_function_of_the_component(
    seed: int,
) -> None:
    """Then its loss is zero. Every two-valued function of the point is tried."""
    specification = drawn(seed)
    points = specification.domain.enumerate()
    own = components(specification)
    for values in itertools.product((0, 1), repeat=len(points)):
        constant = all(len({values[x] for x in component}) == 1 for component in own)
        assert released(specification, values.__getitem__) == (ZERO if constant else INFINITY)


def test_a_2_1_needs_a_premetric_that_is_infinite_between_singular_laws() -> None:
    """Total variation gives a secret that is published as it is a loss of one."""
    bit = build(2, [(0, 1)], [[0, 1], [1, 0]], ["1/2"], TotalVariation(), "loss")
    assert released(bit, lambda x: x) == Exact.of(1)
    zcdp = build(2, [(0, 1)], [[0, 1], [1, 0]], ["1/2"], NormalisedRenyi(), "rho")
    assert released(zcdp, lambda x: x) == INFINITY


@pytest.mark.parametrize("seed", SEEDS)
def test_a_2_2_what_may_be_said_about_the_budget(seed: int) -> None:
    """b(x) has loss zero; b'(x) has infinite loss unless it equals b everywhere; the policy is free."""
    specification = drawn(seed)
    points = specification.domain.enumerate()
    b = {x: component_budgets(specification, x) for x in points}
    b_prime = {x: realised_budgets(specification, x) for x in points}
    universes = list(enumerate(specification.universes()))
    for x in points:
        own = reachable(specification, x)
        assert b[x] == {specification.budget.linear(i) for i, u in universes if u & own}
        assert b_prime[x] == {specification.budget.linear(i) for i, u in universes if x in u}
        assert b_prime[x] <= b[x]
    verdict = budget_disclosure(specification)
    assert verdict.policy and verdict.component_budgets
    assert released(specification, b.__getitem__) == ZERO
    assert released(specification, lambda _: "the rule") == ZERO
    assert verdict.realised_budget == (b == b_prime)
    assert released(specification, b_prime.__getitem__) == (ZERO if verdict.realised_budget else INFINITY)


def test_8_5_condition_two_fails_on_three_points() -> None:
    """Acceptance 14: {{1,2},{2,3}} with d = 1. Every finite pair lies in one universe, and yet b differs.

    The realised budget of point 0 is {eps1}, of point 1 {eps1, eps2}: publishing it tells them apart.
    """
    specification = build(3, [(0, 1), (1, 2)], [[0, 1, 1], [1, 0, 1], [1, 1, 0]], [1, 2])
    for x, y in itertools.combinations(range(3), 2):
        assert sum({x, y} <= universe for universe in specification.universes()) <= 1
    both = frozenset({Exact.of(1), Exact.of(2)})
    assert [component_budgets(specification, x) for x in range(3)] == [both] * 3
    assert [realised_budgets(specification, x) for x in range(3)] == [
        frozenset({Exact.of(1)}),
        both,
        frozenset({Exact.of(2)}),
    ]
    verdict = budget_disclosure(specification)
    assert not verdict.realised_budget
    assert "state the policy" in verdict.reason
    assert released(specification, lambda x: realised_budgets(specification, x)) == INFINITY


def test_8_5_an_isolated_point_may_have_two_budgets_without_harm() -> None:
    """The other reading of condition II: b = b' holds, although b has two elements."""
    far = [[0, "inf"], ["inf", 0]]
    specification = build(2, [(0, 1), (0,)], far, [1, 2])
    assert len(realised_budgets(specification, 0)) == 2
    assert budget_disclosure(specification).realised_budget


def test_a_2_2_the_realised_budget_of_invariants_may_be_stated() -> None:
    """Universes of invariants are disjoint, so the budget of one's universe reveals only invariants."""
    domain = Domain.datasets(Schema.of(row=(0, 1), column=(0, 1)), sizes=(2, 3))
    multiverse = from_invariants(*margins("record", ("row",), ("column",)))
    count = len(multiverse.universes(domain))
    specification = Specification(
        domain=domain,
        multiverse=multiverse,
        input_premetric=HammingUnordered(unit="record"),
        output_premetric=Multiplicative(),
        budget=Budget.by_universe("epsilon", [Fraction(i + 1, 2) for i in range(count)]),
    )
    assert budget_disclosure(specification).realised_budget
    realised = {x: realised_budgets(specification, x) for x in domain.enumerate()}
    assert all(len(amounts) == 1 for amounts in realised.values())
    assert released(specification, realised.__getitem__) == ZERO


def test_a_2_2_a_constant_budget_may_be_stated_where_every_compared_point_is_covered() -> None:
    specification = build(3, [(0, 1), (1, 2)], [[0, 1, 1], [1, 0, 1], [1, 1, 0]], [1])
    assert budget_disclosure(specification).realised_budget


def test_r9_noise_does_not_cure_a_budget_that_tells_points_apart() -> None:
    """A mechanism that announces b'(x) beside an honest coin is as bad as one that announces b'(x)."""
    specification = build(3, [(0, 1), (1, 2)], [[0, 1, 1], [1, 0, 1], [1, 1, 0]], [1, 2])

    def law(x: Any) -> Distribution:
        stated = realised_budgets(specification, x)
        return Distribution({(stated, coin): Fraction(1, 2) for coin in (0, 1)})

    loud = FiniteMechanism.from_function(specification.domain, law)
    assert protection_loss(loud, specification).overall == INFINITY
    assert protection_loss(loud.post_process(lambda pair: pair[1]), specification).overall == ZERO
