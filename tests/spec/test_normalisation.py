"""Normalisations of the comparison, against a normal form that shares no code with ``spec``."""

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from support import tiny_universes as tiny
from support.declarations import declared

from stirred.spec import (
    Approximate,
    Budget,
    Count,
    Domain,
    Exact,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Order,
    Renyi,
    Schema,
    Specification,
    Stage,
    SymmetricDifference,
    Trivial,
    compare,
    from_invariants,
    margins,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.order.output_order import demands_more

FAR, ADDED = HammingUnordered(unit="record"), SymmetricDifference(unit="record")
NEAR = Neighbours(relation="replace", unit="record")
NEXT = Neighbours(relation="add-remove", unit="record")
PURE = Multiplicative()
SUPREMUM, NO_DELTA = Renyi(alpha=Exact.of("inf")), Approximate(delta=Exact.of(0))
TWO = Schema.of(a=(0, 1), b=(0, 1))
TOTAL = Count(unit="record")


def stated(
    invariants: Iterable[Any] = (),
    premetric: object = FAR,
    epsilon: object = 1,
    *,
    output: object = PURE,
    sizes: Iterable[int] | None = None,
    schema: Schema = TWO,
) -> Specification:
    invariants = tuple(invariants)
    domain = Domain(name="X", stage=Stage.DATABASE, record_schema=schema)
    return Specification(
        domain=domain if sizes is None else Domain.datasets(schema, sizes),
        multiverse=from_invariants(*invariants) if invariants else Trivial(),
        input_premetric=premetric,
        output_premetric=output,
        budget=Budget.epsilon(epsilon),
    )


LISTED = pytest.mark.parametrize("sizes", [None, (1, 2)])


@LISTED
def test_the_total_is_no_reason_to_differ_where_records_are_replaced(sizes: tuple[int, ...] | None) -> None:
    verdict = compare(stated(sizes=sizes), stated((TOTAL,), sizes=sizes))
    assert verdict.overall == verdict.flavor_order == Order.EQUIVALENT
    assert verdict.budgets_ranked
    smaller = compare(stated(sizes=sizes), stated((TOTAL,), epsilon=2, sizes=sizes))
    assert smaller.overall == Order.STRONGER
    added = compare(stated((), ADDED, sizes=sizes), stated((TOTAL,), ADDED, sizes=sizes))
    assert added.overall == Order.STRONGER


@LISTED
@pytest.mark.parametrize("other", [SUPREMUM, NO_DELTA])
def test_pure_dp_by_another_name_is_equivalent(other: object, sizes: tuple[int, ...] | None) -> None:
    verdict = compare(stated(sizes=sizes), stated(output=other, sizes=sizes))
    assert verdict.overall == verdict.flavor_order == Order.EQUIVALENT
    assert (
        compare(stated(sizes=sizes), stated(output=other, epsilon=2, sizes=sizes)).overall == Order.STRONGER
    )
    assert verdict.second.output_premetric == other


def test_infinite_order_ranks_above_zcdp() -> None:
    assert demands_more(SUPREMUM, NormalisedRenyi())
    assert demands_more(NormalisedRenyi(), SUPREMUM) is False
    assert demands_more(NormalisedRenyi(), Renyi(alpha=Exact.of(2)))


def test_infinite_order_of_one_direction_is_weaker_than_pure_dp() -> None:
    """With d(0, 1) = 1 and d(1, 0) infinite max-divergence binds one order, D_Mult both."""
    one_way = Given(unit="unit", points=(0, 1), distances=((0, 1), ("inf", 0)))
    a, b = (
        Specification(
            domain=Domain.finite((0, 1)),
            multiverse=Trivial(),
            input_premetric=one_way,
            output_premetric=output,
            budget=Budget.epsilon(1),
        )
        for output in (PURE, SUPREMUM)
    )
    assert compare(a, b).overall == Order.STRONGER
    assert compare(b, a).overall == Order.WEAKER


@pytest.mark.parametrize("sizes", [None, (2,)])
def test_where_no_pair_is_compared_all_budgets_say_the_same(sizes: tuple[int, ...] | None) -> None:
    """The complete table invariant leaves no pair; nor do added records with their number invariant."""
    complete = Count(unit="record", by=("a", "b"))
    empty = [
        stated((complete,), FAR, 1, sizes=sizes),
        stated((complete,), FAR, 5, sizes=sizes),
        stated((complete,), ADDED, 2, sizes=sizes),
        stated((TOTAL,), NEXT, 0, sizes=sizes),
        stated((), FAR, "inf", sizes=sizes),
        stated(margins("record", ("a",), ("b",)), NEAR, 0, sizes=sizes),
    ]
    for a, b in itertools.pairwise((*empty, empty[0])):
        assert compare(a, b).overall == Order.EQUIVALENT
    for a in empty:
        assert compare(a, stated((), FAR, 100, sizes=sizes)).overall == Order.WEAKER
        assert compare(stated((), FAR, 100, sizes=sizes), a).overall == Order.STRONGER


@pytest.mark.parametrize("output", [PURE, Approximate(delta=Exact.of("1/10"))])
def test_a_pair_at_distance_zero_binds_at_every_budget(output: object) -> None:
    same = Given(unit="unit", points=(0, 1), distances=((0, 0), (0, 0)))
    apart = Given(unit="unit", points=(0, 1), distances=((0, "inf"), ("inf", 0)))
    a, b, c = (
        Specification(
            domain=Domain.finite((0, 1)),
            multiverse=Trivial(),
            input_premetric=premetric,
            output_premetric=output,
            budget=Budget.epsilon(epsilon),
        )
        for premetric, epsilon in ((same, 1), (same, 5), (apart, 1))
    )
    assert compare(a, c).overall == compare(b, c).overall == Order.STRONGER
    if output == PURE:
        assert compare(a, b).overall == Order.EQUIVALENT


THREE = Schema.of(a=(0, 1), b=(0, 1), c=(0, 1))


@pytest.mark.parametrize("schema", [TWO, THREE])
@pytest.mark.parametrize("sizes", [None, (2,)])
def test_neighbours_under_margins_are_neighbours_under_their_common_table(
    schema: Schema, sizes: tuple[int, ...] | None
) -> None:
    crossed = stated(margins("record", ("a",), ("b",)), NEAR, sizes=sizes, schema=schema)
    complete = stated(margins("record", ("a", "b")), NEAR, sizes=sizes, schema=schema)
    assert compare(crossed, complete).overall == Order.EQUIVALENT
    far = stated(margins("record", ("a",), ("b",)), FAR, sizes=sizes, schema=schema)
    assert compare(far, crossed).overall == Order.STRONGER
    assert compare(crossed, far).overall == Order.WEAKER


@LISTED
def test_neighbours_are_distances_where_chains_stay_in_the_universe(
    sizes: tuple[int, ...] | None,
) -> None:
    for invariants in ((), margins("record", ("a",)), margins("record", ("a",), ())):
        near, far = (stated(invariants, premetric, sizes=sizes) for premetric in (NEAR, FAR))
        assert compare(near, far).overall == compare(far, near).overall == Order.EQUIVALENT
    added, following = stated((), ADDED, sizes=sizes), stated((), NEXT, sizes=sizes)
    assert compare(added, following).overall == Order.EQUIVALENT


# A normal form by brute force


Sketch = tuple[list[tiny.Statistic], str, int]
DISTANCES: dict[str, tuple[object, Callable[[tiny.Data, tiny.Data], float]]] = {
    "far": (FAR, tiny.hamming),
    "added": (ADDED, tiny.difference),
    "near": (NEAR, lambda x, y: 0 if x == y else 1 if tiny.replaced(x, y) else tiny.INFINITE),
    "next": (NEXT, lambda x, y: d if (d := tiny.difference(x, y)) <= 1 else tiny.INFINITE),
}


def bounded(points: list[tiny.Data], sketch: Sketch) -> list[list[float]]:
    """What the sketch allows every pair."""
    statistics, kind, epsilon = sketch
    world = {x: tuple(s.of(x) for s in statistics) for x in points}
    distance = DISTANCES[kind][1]
    return [
        [
            epsilon * d if world[x] == world[y] and (d := distance(x, y)) < tiny.INFINITE else tiny.INFINITE
            for y in points
        ]
        for x in points
    ]


def shortest(lengths: list[list[float]]) -> list[list[float]]:
    rows = [list(row) for row in lengths]
    indices = range(len(rows))
    for k, i in itertools.product(indices, repeat=2):
        if rows[i][k] < tiny.INFINITE:
            here = rows[i][k]
            rows[i] = [min(a, here + b) for a, b in zip(rows[i], rows[k], strict=True)]
    return rows


def implies(points: list[tiny.Data], first: Sketch, second: Sketch) -> bool:
    reachable, allowed = shortest(bounded(points, first)), bounded(points, second)
    return all(
        r <= a for row, other in zip(reachable, allowed, strict=True) for r, a in zip(row, other, strict=True)
    )


def drawn(random_: random.Random, levels: list[tuple[Any, ...]]) -> Sketch:
    count = random_.choice((0, 1, 1, 2))
    statistics = [tiny.drawn_statistic(random_, levels, None) for _ in range(count)]
    if random_.random() < 0.3:
        statistics.append(tiny.Statistic())
    return (
        statistics,
        random_.choice(("far", "far", "near", "near", "added", "next")),
        random_.choice((1, 1, 2)),
    )


def check_the_rule(seed: int, sizes: tuple[int, ...]) -> Order:
    """Verdicts on the full domain and on a listed one, against the normal form of tiny data sets."""
    random_ = random.Random(f"normal {seed}")
    levels: list[tuple[Any, ...]] = random_.choice(([(0, 1), (0, 1)], [(0, 1, 2)], [("f", "m"), (1, 2)]))
    names = ("a", "b")[: len(levels)]
    schema = Schema.of(**dict(zip(names, levels, strict=True)))
    points = tiny.data_sets(levels, sizes)
    first, second = drawn(random_, levels), drawn(random_, levels)
    if random_.random() < 0.3:
        second = (first[0], second[1], second[2])
    outputs = [random_.choice((PURE, PURE, SUPREMUM, NO_DELTA)) for _ in range(2)]
    truth = implies(points, first, second), implies(points, second, first)

    def build(sketch: Sketch, output: object, listed: bool) -> Specification:
        invariants = [declared(s, names) for s in sketch[0]]
        return stated(
            invariants,
            DISTANCES[sketch[1]][0],
            sketch[2],
            output=output,
            sizes=sizes if listed else None,
            schema=schema,
        )

    full = compare(*(build(s, o, False) for s, o in zip((first, second), outputs, strict=True))).overall
    if full in {Order.EQUIVALENT, Order.STRONGER}:
        assert truth[0], (first, second)
    if full in {Order.EQUIVALENT, Order.WEAKER}:
        assert truth[1], (first, second)
    if full == Order.INCOMPARABLE:
        assert not truth[0] and not truth[1], (first, second)
    if seed % 20 == 0:
        exact = compare(*(build(s, o, True) for s, o in zip((first, second), outputs, strict=True))).overall
        expected = {
            (True, True): Order.EQUIVALENT,
            (True, False): Order.STRONGER,
            (False, True): Order.WEAKER,
            (False, False): Order.INCOMPARABLE,
        }
        assert exact == expected[truth]
    return full


def test_rule_5_on_random_pairs_of_specifications() -> None:
    verdicts = [check_the_rule(seed, (0, 1, 2)) for seed in range(200)]
    assert all(verdicts.count(order) >= 5 for order in (Order.EQUIVALENT, Order.STRONGER, Order.WEAKER))


@pytest.mark.slow
def test_rule_5_on_two_thousand_random_pairs_of_specifications() -> None:
    for seed in range(200, 2200):
        check_the_rule(seed, (0, 1, 2, 3))


@pytest.mark.parametrize("sizes", [(2,), (4,), (1, 2, 3)])
def test_nesting_says_nothing_on_a_listed_domain_however_large(sizes: tuple[int, ...]) -> None:
    """A listed domain has records that break the nesting: two budgets of one flavor are never equivalent."""
    schema = Schema.of(block=("a1", "a2", "b1"), county=("a", "b"), nesting=[("block", "county")])
    one, five = (
        Specification(
            domain=Domain.datasets(schema, sizes),
            multiverse=from_invariants(Count(unit="person", by=("block",))),
            input_premetric=HammingUnordered(unit="person"),
            output_premetric=Multiplicative(),
            budget=Budget.epsilon(epsilon),
        )
        for epsilon in (1, 5)
    )
    assert str(compare(one, five).overall) == "stronger"
