"""Input premetrics: closed forms against breadth-first search, Proposition 2.4.15, units and errata."""

import itertools
from collections import Counter, deque
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import (
    approximate,
    close_mechanisms,
    domains,
    mechanisms,
    multiplicative,
    multiverses,
    normalised_renyi,
    premetrics,
    reproducibly,
)

from stirred.errors import InputError, NotImplied, StirredError
from stirred.spec import (
    INFINITY,
    ZERO,
    Approximate,
    Budget,
    Distribution,
    Domain,
    EditDistance,
    Encoded,
    Exact,
    FiniteMechanism,
    Flavor,
    Hamming,
    HammingUnordered,
    Maximum,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Order,
    Schema,
    Sharpened,
    Specification,
    Stage,
    SymmetricDifference,
    Trivial,
    change_unit,
    compare,
    protection_loss,
    pull_back,
    satisfies,
    undo_imputation,
)
from stirred.spec.arithmetic.extended import budget_bound, infimum, supremum
from stirred.spec.blocks.input_premetric import (
    KINDS,
    Given,
    GraphEdit,
    Premetric,
    PulledBack,
    neighbours_of,
    shortest_paths,
)
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.calculus.unit import imputation_factor
from stirred.spec.finite.mechanism import randomised_response
from stirred.spec.order.bounds import Bounds, bounds

ONE = Exact.of(1)
Relation = Callable[[Any, Any], bool]


def multiset_difference(x: Any, y: Any) -> int:
    """|x - y| + |y - x|, counted element by element."""
    first, second = Counter(x), Counter(y)
    return sum(abs(first[e] - second[e]) for e in first.keys() | second.keys())


def deletions(x: tuple[Any, ...]) -> set[tuple[Any, ...]]:
    return {x[:i] + x[i + 1 :] for i in range(len(x))}


def touches_one_node(x: Any, y: Any) -> bool:
    changed = set(x[1]) ^ set(y[1])
    return bool(changed) and any(all(v in edge for edge in changed) for v in range(x[0]))


RELATIONS: dict[str, Relation] = {
    "replace": lambda x, y: len(x) == len(y) and multiset_difference(x, y) == 2,
    "replace-ordered": lambda x, y: len(x) == len(y) and sum(a != b for a, b in zip(x, y, strict=True)) == 1,
    "add-remove": lambda x, y: multiset_difference(x, y) == 1,
    "add-remove-ordered": lambda x, y: y in deletions(x) or x in deletions(y),
    "edge": lambda x, y: x[0] == y[0] and len(set(x[1]) ^ set(y[1])) == 1,
    "node": lambda x, y: x[0] == y[0] and touches_one_node(x, y),
}
CLOSED_FORMS: dict[str, Any] = {
    "replace": HammingUnordered(unit="record"),
    "replace-ordered": Hamming(unit="record"),
    "add-remove": SymmetricDifference(unit="record"),
    "add-remove-ordered": EditDistance(unit="record"),
    "edge": GraphEdit(unit="edge"),
    "node": GraphEdit(unit="node"),
}


def steps(points: tuple[Any, ...], relation: Relation) -> dict[tuple[Any, Any], Exact]:
    """Shortest-path lengths in the graph of neighbours, by breadth-first search."""
    near = {x: [y for y in points if x != y and relation(x, y)] for x in points}
    found = {}
    for start in points:
        depth, queue = {start: 0}, deque([start])
        while queue:
            x = queue.popleft()
            for y in near[x]:
                if y not in depth:
                    depth[y] = depth[x] + 1
                    queue.append(y)
        for y in points:
            found[start, y] = Exact.of(depth[y]) if y in depth else INFINITY
    return found


def graphs(vertices: int) -> tuple[Any, ...]:
    edges = list(itertools.combinations(range(vertices), 2))
    chosen = itertools.chain.from_iterable(itertools.combinations(edges, k) for k in range(len(edges) + 1))
    return tuple((vertices, subset) for subset in chosen)


LETTERS = Schema.of(letter=("a", "b", "c"))
FULL: dict[str, Domain] = {
    "replace": Domain.datasets(LETTERS, [0, 1, 2, 3, 4]),
    "replace-ordered": Domain.datasets(LETTERS, [0, 1, 2, 3], structure="vector"),
    "add-remove": Domain.datasets(LETTERS, [0, 1, 2, 3, 4]),
    "add-remove-ordered": Domain.datasets(Schema.of(letter=("a", "b")), range(6), structure="vector"),
    "edge": Domain.finite(graphs(4), structure="graph"),
    "node": Domain.finite(graphs(4), structure="graph"),
}


def table_of(premetric: Any, domain: Domain) -> dict[tuple[Any, Any], Exact]:
    points, matrix = domain.enumerate(), premetric.matrix(domain)
    return {(x, y): matrix[i][j] for i, x in enumerate(points) for j, y in enumerate(points)}


# Acceptance test 6: A1, A2, B1, B2 and graphs against breadth-first search.


@pytest.mark.parametrize("relation", sorted(RELATIONS))
def test_appendix_a_4_closed_forms_are_shortest_paths_on_full_domains(relation: str) -> None:
    domain = FULL[relation]
    expected = steps(domain.enumerate(), RELATIONS[relation])
    assert table_of(CLOSED_FORMS[relation], domain) == expected


@pytest.mark.parametrize("relation", sorted(RELATIONS))
def test_appendix_a_2_neighbour_premetrics_take_three_values(relation: str) -> None:
    domain = FULL[relation]
    unit = relation if relation in {"edge", "node"} else "record"
    premetric = Neighbours(relation=relation, unit=unit)
    for (x, y), distance in table_of(premetric, domain).items():
        expected = ZERO if x == y else ONE if RELATIONS[relation](x, y) else INFINITY
        assert distance == expected
    assert premetric.sharpened == CLOSED_FORMS[relation]
    assert neighbours_of(CLOSED_FORMS[relation]) == premetric
    assert neighbours_of(premetric) == premetric


@pytest.mark.parametrize("relation", sorted(set(RELATIONS) - {"node", "add-remove-ordered"}))
def test_definition_a_4_1_sharpening_computes_the_shortest_paths(relation: str) -> None:
    small = {
        "replace": Domain.datasets(LETTERS, [0, 1, 2, 3]),
        "replace-ordered": Domain.datasets(LETTERS, [2], structure="vector"),
        "add-remove": Domain.datasets(LETTERS, [0, 1, 2]),
        "edge": Domain.finite(graphs(3), structure="graph"),
    }[relation]
    sharpened = Sharpened(base=Neighbours(relation=relation, unit="record"))
    assert table_of(sharpened, small) == steps(small.enumerate(), RELATIONS[relation])


def test_a1_fails_on_ordered_vectors_where_permutations_are_two_steps_apart() -> None:
    domain = Domain.datasets(Schema.of(bit=(0, 1)), [3], structure="vector")
    walked = steps(domain.enumerate(), RELATIONS["replace"])
    closed = table_of(HammingUnordered(unit="record"), domain)
    exceptions = {pair for pair in walked if walked[pair] != closed[pair]}
    assert len(walked) == 64
    assert len(exceptions) == 12
    for x, y in exceptions:
        assert sorted(x) == sorted(y)
        assert (walked[x, y], closed[x, y]) == (Exact.of(2), ZERO)
    sharpened = Sharpened(base=Neighbours(relation="replace", unit="record"))
    assert table_of(sharpened, domain) == walked


def test_a2_fails_on_a_restricted_domain_without_the_points_between() -> None:
    domain = Domain.finite([((0,), (0,)), ((1,), (1,))], structure="vector")
    x, y = domain.enumerate()
    sharpened = Sharpened(base=Neighbours(relation="replace-ordered", unit="record"))
    assert table_of(sharpened, domain)[x, y] == INFINITY
    assert Hamming(unit="record").distance(x, y) == Exact.of(2)


def test_edit_distance_is_the_fewest_insertions_and_deletions() -> None:
    distance = EditDistance(unit="record")
    assert distance.distance("kitten", "sitting") == Exact.of(5)
    assert distance.distance((), ("a", "b")) == Exact.of(2)
    assert distance.distance(("a", "b"), ("b", "a")) == Exact.of(2)
    assert SymmetricDifference(unit="record").distance(("a", "b"), ("b", "a")) == ZERO


def test_multiset_difference_counts_duplicates() -> None:
    """The thesis writes the symmetric difference of sets; with duplicates it must be of multisets."""
    assert SymmetricDifference(unit="record").distance(("a", "a"), ("a",)) == ONE
    assert HammingUnordered(unit="record").distance(("a", "a"), ("a", "b")) == ONE
    assert HammingUnordered(unit="record").distance(("a", "a", "b"), ("a", "b", "b")) == ONE
    assert HammingUnordered(unit="record").distance(("a",), ("a", "a")) == INFINITY


def test_graphs_on_different_vertices_are_not_compared() -> None:
    for unit in ("edge", "node"):
        assert GraphEdit(unit=unit).distance((2, ()), (3, ())) == INFINITY
    star = (5, ((0, 1), (0, 2), (0, 3), (0, 4)))
    assert GraphEdit(unit="edge").distance((5, ()), star) == Exact.of(4)
    assert GraphEdit(unit="node").distance((5, ()), star) == ONE


@pytest.mark.parametrize(
    ("premetric", "domain"),
    [
        (Hamming(unit="record"), Domain.datasets(LETTERS, [1, 2], structure="vector")),
        (HammingUnordered(unit="record"), Domain.datasets(LETTERS, [1, 2, 3])),
        (SymmetricDifference(unit="record"), Domain.datasets(LETTERS, [0, 1, 2])),
        (EditDistance(unit="record"), Domain.datasets(LETTERS, [0, 1, 2], structure="vector")),
        (GraphEdit(unit="edge"), Domain.finite(graphs(3), structure="graph")),
        (GraphEdit(unit="node"), Domain.finite(graphs(3), structure="graph")),
        (Neighbours(relation="replace", unit="record"), Domain.datasets(LETTERS, [1, 2])),
        (Neighbours(relation="add-remove", unit="record"), Domain.datasets(LETTERS, [0, 1, 2])),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_flags_hold_on_a_full_domain(premetric: Any, domain: Domain) -> None:
    points = domain.enumerate()
    computed = Given(unit="record", points=points, distances=premetric.matrix(domain)).flags
    claimed = premetric.flags
    for axiom in ("symmetric", "positive", "triangle", "neighbour_valued"):
        assert not getattr(claimed, axiom) or getattr(computed, axiom), axiom
    assert claimed.triangle == computed.triangle
    assert claimed.neighbour_valued == computed.neighbour_valued


@reproducibly(80)
@given(st.data())
def test_flags_of_built_premetrics_hold(data: st.DataObject) -> None:
    domain = data.draw(domains(max_size=4))
    points = domain.enumerate()
    first = data.draw(premetrics(domain, symmetric=data.draw(st.booleans())))
    second = data.draw(premetrics(domain, symmetric=data.draw(st.booleans())))
    images = tuple((point, data.draw(st.sampled_from(points))) for point in points)
    for built in (
        Sharpened(base=first),
        Encoded(base=first, multiverse=data.draw(multiverses(domain))),
        Maximum(parts=(first, second)),
        PulledBack(base=first, step="g", images=images),
        Sharpened(base=Encoded(base=first, multiverse=data.draw(multiverses(domain)))),
    ):
        computed = Given(unit="record", points=points, distances=built.matrix(domain)).flags
        for axiom in ("symmetric", "positive", "triangle", "neighbour_valued"):
            assert not getattr(built.flags, axiom) or getattr(computed, axiom), (built.kind, axiom)


# Sharpening and encoding of arbitrary premetrics.


def least_path(table: Any, start: int, end: int) -> Exact:
    """The least length over all simple paths."""
    others = [k for k in range(len(table)) if k not in (start, end)]
    middles = itertools.chain.from_iterable(itertools.permutations(others, k) for k in range(len(others) + 1))
    lengths = []
    for middle in middles:
        path = (start, *middle, end)
        total = ZERO
        for a, b in itertools.pairwise(path):
            total = total + table[a][b]
        lengths.append(total)
    return ZERO if start == end else infimum(lengths)


@reproducibly(80)
@given(st.data())
def test_definition_a_4_1_sharpening_is_the_least_directed_path(data: st.DataObject) -> None:
    domain = data.draw(domains(max_size=4))
    base = data.draw(premetrics(domain))
    sharp = Sharpened(base=base).matrix(domain)
    size = range(len(domain.enumerate()))
    table = base.matrix(domain)
    for i, j in itertools.product(size, repeat=2):
        assert sharp[i][j] == least_path(table, i, j)
        assert sharp[i][j] <= table[i][j]
    assert shortest_paths(sharp) == sharp


@reproducibly(60)
@given(st.data())
def test_sharpening_keeps_the_loss_under_a_metric(data: st.DataObject) -> None:
    """M(d*) = M(d) on the whole domain where the output premetric is a metric and d is symmetric."""
    domain = data.draw(domains(max_size=4))
    base = data.draw(premetrics(domain, symmetric=True))
    mechanism = data.draw(mechanisms(domain))
    flavor = Flavor(
        domain=domain, multiverse=Trivial(), input_premetric=base, output_premetric=Multiplicative()
    )
    sharp = Flavor(**dict(flavor) | {"input_premetric": Sharpened(base=base)})
    assert protection_loss(mechanism, flavor).overall == protection_loss(mechanism, sharp).overall


@reproducibly(60)
@given(st.data())
def test_proposition_a_3_1_a_multiverse_may_be_written_into_the_distance(data: st.DataObject) -> None:
    domain = data.draw(domains())
    multiverse = data.draw(multiverses(domain))
    base = data.draw(premetrics(domain))
    encoded = Encoded(base=base, multiverse=multiverse)
    output = data.draw(st.one_of(multiplicative(), approximate()))
    mechanism = data.draw(mechanisms(domain))
    inside = Flavor(domain=domain, multiverse=multiverse, input_premetric=base, output_premetric=output)
    across = Flavor(domain=domain, multiverse=Trivial(), input_premetric=encoded, output_premetric=output)
    loss = protection_loss(mechanism, inside).overall
    assert loss == protection_loss(mechanism, across).overall
    for amount in (ZERO, loss, ONE, INFINITY):
        budget = Budget.epsilon(amount)
        first = satisfies(mechanism, inside.with_budget(budget))
        second = satisfies(mechanism, across.with_budget(budget))
        assert first.satisfied == second.satisfied == (loss <= amount or amount.is_infinite)
    assert all(row[i].is_zero for i, row in enumerate(encoded.matrix(domain)))


def test_proposition_a_3_1_needs_a_constant_budget() -> None:
    """Two universes over one pair: the encoded distance cannot tell which budget applies."""
    domain = Domain.finite([0, 1, 2])
    flat = tuple(tuple(ZERO if i == j else ONE for j in range(3)) for i in range(3))
    base = Given(unit="record", points=(0, 1, 2), distances=flat)
    multiverse = Explicit(parts=((0, 1), (1, 2)))
    fields = {
        "domain": domain,
        "multiverse": multiverse,
        "input_premetric": base,
        "output_premetric": Multiplicative(),
    }
    varying = Specification(**fields, budget=Budget.by_universe("epsilon", ("ln(2)", 0)))
    constant = Specification(
        **fields | {"multiverse": Trivial(), "input_premetric": Encoded(base=base, multiverse=multiverse)},
        budget=Budget.epsilon("ln(2)"),
    )
    assert compare(varying, constant).overall == Order.STRONGER


# Acceptance test 5: Proposition 2.4.15.


def lossy(mechanism: FiniteMechanism, flavor: Flavor) -> tuple[Exact, ...]:
    return protection_loss(mechanism, flavor).by_universe


@st.composite
def two_premetrics(draw: st.DrawFn) -> tuple[Flavor, Any, Bounds]:
    domain = draw(domains())
    multiverse = draw(st.one_of(multiverses(domain), st.just(Trivial())))
    flavor = Flavor(
        domain=domain,
        multiverse=multiverse,
        input_premetric=draw(premetrics(domain)),
        output_premetric=draw(multiplicative()),
    )
    other = draw(premetrics(domain))
    found = bounds(flavor.input_premetric, other, domain, multiverse)
    assert found is not None
    return flavor, other, found


@reproducibly(150)
@given(two_premetrics())
def test_proposition_2_4_15_bounds_are_the_tightest(drawn: tuple[Flavor, Any, Bounds]) -> None:
    flavor, other, found = drawn
    if flavor.input_premetric == other:
        assert (found.lower, found.upper) == (ONE, ONE)
        return
    d, e = table_of(flavor.input_premetric, flavor.domain), table_of(other, flavor.domain)
    pairs = [
        pair
        for universe in flavor.multiverse.universes(flavor.domain)
        for pair in itertools.permutations(universe, 2)
    ]
    for pair in pairs:
        if not found.lower.is_zero and not found.lower.is_infinite:
            assert budget_bound(found.lower, d[pair]) <= e[pair]
        assert e[pair] <= budget_bound(found.upper, d[pair])
    for factor in (Fraction(7, 8), Fraction(9, 8)):
        if factor > 1 and not found.lower.is_infinite and not found.lower.is_zero:
            assert any(budget_bound(found.lower * factor, d[pair]) > e[pair] for pair in pairs)
        if factor < 1 and not found.upper.is_infinite and not found.upper.is_zero:
            assert any(e[pair] > budget_bound(found.upper * factor, d[pair]) for pair in pairs)
    if found.lower.is_zero:
        assert any(d[pair].is_infinite and not e[pair].is_infinite for pair in pairs) or any(
            e[pair].is_zero and not d[pair].is_zero for pair in pairs
        )


@reproducibly(150)
@given(two_premetrics(), st.data())
def test_proposition_2_4_15_budgets_scale_with_the_bounds(
    drawn: tuple[Flavor, Any, Bounds], data: st.DataObject
) -> None:
    """M(d, eps) lies in M(d', eps/l), and M(d', eps) in M(d, u eps), also at u infinite and eps zero."""
    flavor, other, found = drawn
    changed = Flavor(**dict(flavor) | {"input_premetric": other})
    mechanism = data.draw(
        st.one_of(mechanisms(flavor.domain, largest=2), close_mechanisms(flavor.domain, within=1))
    )
    under_d, under_e = lossy(mechanism, flavor), lossy(mechanism, changed)
    for a, b in zip(under_d, under_e, strict=True):
        if found.lower.is_infinite and not a.is_infinite:
            assert b.is_zero
        elif not found.lower.is_zero and not found.lower.is_infinite:
            assert b <= a / found.lower.rational
        assert a <= budget_bound(b, found.upper)
    if under_e:
        scaled = Budget.by_universe("epsilon", [budget_bound(b, found.upper) for b in under_e])
        assert satisfies(mechanism, flavor.with_budget(scaled)).satisfied


def sizes_domain() -> Domain:
    return Domain.datasets(Schema.of(bit=(0, 1)), [1, 2])


def test_proposition_2_4_15_with_infinite_upper_bound_and_budget_zero() -> None:
    domain = sizes_domain()
    symmetric, hamming = SymmetricDifference(unit="record"), HammingUnordered(unit="record")
    found = bounds(symmetric, hamming, domain)
    assert (found.lower, found.upper) == (Exact.of("1/2"), INFINITY)
    assert budget_bound(ZERO, found.upper) == INFINITY
    size = FiniteMechanism.exact_release(domain, len)
    bounded = Flavor(
        domain=domain, multiverse=Trivial(), input_premetric=hamming, output_premetric=Multiplicative()
    )
    unbounded = Flavor(**dict(bounded) | {"input_premetric": symmetric})
    assert satisfies(size, bounded.with_budget(Budget.epsilon(0))).satisfied
    assert not satisfies(size, unbounded.with_budget(Budget.epsilon(10**9))).satisfied
    assert satisfies(size, unbounded.with_budget(Budget.epsilon("inf"))).satisfied


def test_proposition_2_4_15_is_rescued_by_universes() -> None:
    """Only pairs that share a universe need the inequalities: with sizes invariant, d' = d/2."""
    domain = sizes_domain()
    symmetric, hamming = SymmetricDifference(unit="record"), HammingUnordered(unit="record")
    sizes = Explicit.from_function(domain, len)
    found = bounds(symmetric, hamming, domain, sizes)
    assert (found.lower, found.upper) == (Exact.of("1/2"), Exact.of("1/2"))
    back = bounds(hamming, symmetric, domain, sizes)
    assert (back.lower, back.upper) == (Exact.of(2), Exact.of(2))


@pytest.mark.parametrize(
    ("d", "e"),
    [
        ("ln(2)", "ln(3)"),
        ("ln(3)", "ln(2)"),
        ("sqrt(2)", "ln(7)"),
        ("sqrt(2)", "sqrt(3)"),
        ("1 + sqrt(2)", "3"),
    ],
)
def test_proposition_2_4_15_bounds_hold_at_irrational_distances(d: str, e: str) -> None:
    """Where a quotient has no exact form, the lower bound rounds down and the upper bound up."""
    domain = Domain.finite([0, 1])
    first, second = (
        Given(unit="record", points=(0, 1), distances=((0, value), (value, 0))) for value in (d, e)
    )
    found = bounds(first, second, domain)
    lower, upper = found.lower.rational, found.upper.rational
    if lower is not None:
        assert Exact.of(d) * lower <= Exact.of(e)
    if upper is not None:
        assert Exact.of(e) <= Exact.of(d) * upper
    assert float(found.upper) == pytest.approx(float(found.lower), rel=1e-9)


def test_proposition_2_4_15_without_any_pair_to_compare() -> None:
    domain = sizes_domain()
    singles = Explicit.from_function(domain, lambda point: point)
    found = bounds(SymmetricDifference(unit="record"), Hamming(unit="record"), domain, singles)
    assert (found.lower, found.upper) == (INFINITY, ZERO)


@pytest.mark.parametrize(
    ("first", "second", "structure"),
    [
        (SymmetricDifference(unit="record"), HammingUnordered(unit="record"), "multiset"),
        (HammingUnordered(unit="record"), Hamming(unit="record"), "vector"),
        (SymmetricDifference(unit="record"), EditDistance(unit="record"), "vector"),
        (HammingUnordered(unit="record"), Neighbours(relation="replace", unit="record"), "multiset"),
        (Hamming(unit="record"), Neighbours(relation="replace-ordered", unit="record"), "vector"),
        (SymmetricDifference(unit="record"), Neighbours(relation="add-remove", unit="record"), "multiset"),
        (EditDistance(unit="record"), Neighbours(relation="add-remove-ordered", unit="record"), "vector"),
    ],
    ids=lambda value: getattr(value, "kind", value),
)
def test_known_orders_hold_on_small_twins(first: Any, second: Any, structure: Any) -> None:
    """What is claimed on a domain that cannot be listed is true on every small one, both ways round."""
    unlisted = Domain(name="X", stage=Stage.DATABASE, structure=structure)
    for a, b in ((first, second), (second, first)):
        claimed = bounds(a, b, unlisted)
        for sizes in ([2], [3], [0, 1, 2, 3]):
            listed = bounds(a, b, Domain.datasets(Schema.of(bit=(0, 1)), sizes, structure=structure))
            assert claimed.lower <= listed.lower
            assert listed.upper <= claimed.upper


def test_orders_between_different_units_are_not_claimed() -> None:
    unlisted = Domain(name="X", stage=Stage.EDITED_FILE)
    assert bounds(HammingUnordered(unit="person"), SymmetricDifference(unit="household"), unlisted) is None
    assert bounds(HammingUnordered(unit="person"), HammingUnordered(unit="household"), unlisted) is None


# Tables of distances.


@pytest.mark.parametrize(
    "distances",
    [
        ((0, 1),),
        ((0, 1), (1,)),
        ((0, -1), (1, 0)),
        ((1, 1), (1, 0)),
        ((0, "nan"), (1, 0)),
        ((0, True), (1, 0)),
    ],
)
def test_tables_that_are_no_premetric_are_refused(distances: Any) -> None:
    with pytest.raises(InputError):
        Given(unit="record", points=(0, 1), distances=distances)


def test_tables_with_repeated_points_are_refused() -> None:
    with pytest.raises(InputError):
        Given(unit="record", points=(0, 0), distances=((0, 1), (1, 0)))


@pytest.mark.parametrize(
    "compute",
    [
        lambda: small_table().distance(0, 7),
        lambda: PulledBack(base=small_table(), step="g", images=((0, 0),)).distance(0, 1),
        lambda: Hamming(unit="record").matrix(Domain.finite([0, 1])),
        lambda: HammingUnordered(unit="record").matrix(Domain.finite([0, 1])),
        lambda: GraphEdit(unit="edge").matrix(Domain.finite([0, 1])),
    ],
    ids=["given", "pulled back", "hamming", "hamming unordered", "graph"],
)
def test_points_that_a_premetric_cannot_read_are_refused(compute: Any) -> None:
    with pytest.raises(StirredError):
        compute()


def small_table() -> Given:
    return Given(unit="record", points=(0, 1), distances=((ZERO, ONE), (ONE, ZERO)))


def test_the_asymmetric_two_point_premetric_constrains_one_direction() -> None:
    domain = Domain.finite([1, 2])
    one_way = Given(unit="record", points=(1, 2), distances=((ZERO, ONE), (INFINITY, ZERO)))
    mechanism = FiniteMechanism(
        domain, {1: Distribution({"a": "1/2", "b": "1/2"}), 2: Distribution({"a": "1/3", "b": "2/3"})}
    )
    flavor = Flavor(
        domain=domain, multiverse=Trivial(), input_premetric=one_way, output_premetric=Multiplicative()
    )
    assert protection_loss(mechanism, flavor).overall == Exact.log("3/2")
    assert not one_way.flags.symmetric
    backwards = one_way.model_copy(update={"distances": ((ZERO, INFINITY), (INFINITY, ZERO))})
    silent = Flavor(**dict(flavor) | {"input_premetric": backwards})
    assert protection_loss(mechanism, silent).overall == ZERO


# Change of unit, imputation and preprocessing.


def household_domain(sizes: tuple[int, ...]) -> tuple[Domain, Given]:
    """Vectors of bits split into households of fixed membership, with the household distance."""
    cuts = [0, *itertools.accumulate(sizes)]
    points = tuple(itertools.product((0, 1), repeat=sum(sizes)))
    households = {p: [p[a:b] for a, b in itertools.pairwise(cuts)] for p in points}
    table = tuple(
        tuple(
            Exact.of(sum(h != k for h, k in zip(households[x], households[y], strict=True))) for y in points
        )
        for x in points
    )
    return Domain.finite(points, structure="vector"), Given(unit="household", points=points, distances=table)


@pytest.mark.parametrize("sizes", [(1, 2), (2, 2), (3, 1), (1, 1, 2)])
def test_household_and_person_distance_with_fixed_membership(sizes: tuple[int, ...]) -> None:
    """d^h <= d^p <= b d^h where nobody moves and no household changes size."""
    domain, household = household_domain(sizes)
    found = bounds(household, Hamming(unit="person"), domain)
    assert (found.lower, found.upper) == (ONE, Exact.of(max(sizes)))


@pytest.mark.parametrize("sizes", [(1, 2), (2, 2), (3, 1)])
def test_proposition_2_4_15_change_of_unit_is_valid_and_tight(sizes: tuple[int, ...]) -> None:
    domain, household = household_domain(sizes)
    mechanism = randomised_response(domain, Fraction(3, 4), (0, 1))
    by_person = Specification(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=Hamming(unit="person"),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon("ln(3)"),
    )
    assert satisfies(mechanism, by_person).satisfied
    factor = bounds(household, by_person.input_premetric, domain).upper.rational
    by_household = change_unit(by_person, household, factor, "no household is larger")
    assert satisfies(mechanism, by_household).satisfied
    assert by_household.budget.amount == Exact.log(3**factor)
    assert protection_loss(mechanism, by_household).overall == by_household.budget.amount
    assert any("no household is larger" in a for a in by_household.assumptions)


def bare(output: Any, budget: Budget, premetric: Any = None) -> Specification:
    return Specification(
        domain=Domain(name="X", stage=Stage.EDITED_FILE),
        multiverse=Trivial(),
        input_premetric=premetric or HammingUnordered(unit="person"),
        output_premetric=output,
        budget=budget,
    )


@pytest.mark.parametrize(
    ("output", "budget", "amount"),
    [
        (Multiplicative(), Budget.epsilon("ln(3)"), Exact.log(27)),
        (NormalisedRenyi(), Budget.zcdp(rho="1/2"), Exact.of("3/2")),
        (NormalisedRenyi(), Budget.zcdp(rho_squared="2.63"), Exact.of("23.67")),
        (Multiplicative(), Budget.epsilon("inf"), INFINITY),
        (Multiplicative(), Budget.epsilon(0), ZERO),
    ],
)
def test_the_linear_budget_grows_by_the_factor(output: Any, budget: Budget, amount: Exact) -> None:
    before = bare(output, budget)
    after = change_unit(before, HammingUnordered(unit="household"), 3, "at most three persons")
    assert after.budget.amount == amount
    if not amount.is_infinite:
        assert after.budget.linear() == before.budget.linear() * 3


def test_a_change_of_unit_needs_a_factor_and_a_reason() -> None:
    specification = bare(Multiplicative(), Budget.epsilon(1))
    household = HammingUnordered(unit="household")
    for factor, reason in ((0, "why"), ("1/2", "why"), (2, ""), (2, "  "), ("nan", "why"), (True, "why")):
        with pytest.raises(InputError):
            change_unit(specification, household, factor, reason)


def test_imputation_counts_the_respondent_and_every_recipient() -> None:
    """Erratum 8.4: one recipient doubles rho, so it multiplies rho squared by four."""
    assert [imputation_factor(k) for k in range(4)] == [1, 2, 3, 4]
    with pytest.raises(InputError):
        imputation_factor(-1)
    specification = bare(NormalisedRenyi(), Budget.zcdp(rho_squared="2.63"))
    respondents = HammingUnordered(unit="respondent")
    assert undo_imputation(specification, respondents, 1).budget.amount == Exact.of("10.52")
    assert undo_imputation(specification, respondents, 0).budget.amount == Exact.of("2.63")


@pytest.mark.parametrize("recipients", [0, 1, 2])
def test_imputation_factor_is_what_a_hot_deck_does(recipients: int) -> None:
    """A donor whose record fills so many gaps moves 1 + recipients records of the edited file."""
    raw = Domain.finite(tuple(itertools.product((0, 1), repeat=2)), name="raw", structure="vector")
    edited = Domain.finite(
        tuple((a, b, *[a] * recipients) for a, b in raw.enumerate()), name="edited", structure="vector"
    )
    images = tuple((r, (r[0], r[1], *[r[0]] * recipients)) for r in raw.enumerate())
    person = Hamming(unit="person")
    pulled = PulledBack(base=person, step="imputation", images=images)
    found = bounds(person, pulled, raw)
    assert found.upper == Exact.of(imputation_factor(recipients))
    after = Specification(
        domain=edited,
        multiverse=Trivial(),
        input_premetric=person,
        output_premetric=Multiplicative(),
        budget=Budget.epsilon("ln(3)"),
    )
    release = randomised_response(edited, Fraction(3, 4), (0, 1))
    upstream = FiniteMechanism(raw, {r: release.laws[image] for r, image in images})
    assert satisfies(release, after).satisfied
    before = pull_back(
        after,
        raw,
        "imputation",
        premetric=person,
        stability=imputation_factor(recipients),
        images=images,
    )
    assert satisfies(upstream, before).satisfied
    assert protection_loss(upstream, before).overall == before.budget.amount


@reproducibly(60)
@given(st.data())
def test_pull_back_keeps_the_losses_exactly(data: st.DataObject) -> None:
    domain = data.draw(domains())
    multiverse = data.draw(multiverses(domain, min_size=1))
    flavor = Flavor(
        domain=domain,
        multiverse=multiverse,
        input_premetric=data.draw(premetrics(domain)),
        output_premetric=Multiplicative(),
    )
    mechanism = data.draw(mechanisms(domain))
    losses = protection_loss(mechanism, flavor).by_universe
    specification = flavor.with_budget(Budget.by_universe("epsilon", losses))
    raw = Domain.finite(range(6), name="raw", stage=Stage.RAW_RESPONSES)
    images = tuple((r, data.draw(st.sampled_from(domain.enumerate()))) for r in raw.enumerate())
    upstream = FiniteMechanism(raw, {r: mechanism.laws[image] for r, image in images})
    pulled = pull_back(specification, raw, "editing", images=images)
    assert satisfies(upstream, pulled).satisfied
    reached = protection_loss(upstream, pulled).by_universe
    assert all(a <= b for a, b in zip(reached, losses, strict=True))
    if {image for _, image in images} == set(domain.enumerate()):
        assert reached == losses


def test_an_unstable_step_carries_no_guarantee_upstream() -> None:
    after = bare(Multiplicative(), Budget.epsilon(1))
    raw = Domain(name="raw", stage=Stage.RAW_RESPONSES)
    before = pull_back(
        after, raw, "deduplication", premetric=HammingUnordered(unit="person"), stability="inf"
    )
    assert before.constrains_nothing


# The group rule of approximate DP, for neighbours.


def chain(delta: str, epsilon: object) -> Specification:
    points = (0, 1, 2)
    near = tuple(
        tuple(ZERO if i == j else ONE if abs(i - j) == 1 else INFINITY for j in points) for i in points
    )
    return Specification(
        domain=Domain.finite(points),
        multiverse=Trivial(),
        input_premetric=Given(unit="person", points=points, distances=near),
        output_premetric=Approximate(delta=Exact.of(delta)),
        budget=Budget.epsilon(epsilon),
    )


def all_near() -> Given:
    points = (0, 1, 2)
    return Given(
        unit="household",
        points=points,
        distances=tuple(tuple(ZERO if i == j else ONE for j in points) for i in points),
    )


@reproducibly(50)
@given(
    st.sampled_from(["1/100", "1/10", "1/3"]),
    st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(any), min_size=3, max_size=3),
)
def test_group_rule_of_approximate_dp_covers_chains_of_two(delta: str, weights: list[list[int]]) -> None:
    laws = {
        i: Distribution({k: Fraction(w, sum(row)) for k, w in enumerate(row)})
        for i, row in enumerate(weights)
    }
    domain = chain(delta, 0).domain
    mechanism = FiniteMechanism(domain, laws)
    loss = protection_loss(mechanism, chain(delta, 0)).overall
    if loss.is_infinite:
        return
    neighbours = chain(delta, loss)
    assert satisfies(mechanism, neighbours).satisfied
    try:
        grouped = change_unit(neighbours, all_near(), 2, "two persons at most")
    except NotImplied:
        return
    assert satisfies(mechanism, grouped).satisfied


def test_group_rule_of_approximate_dp_claims_nothing_where_delta_reaches_one() -> None:
    """Three laws, each within total variation one half of the next, the ends mutually singular."""
    neighbours = chain("1/2", 0)
    laws = {
        0: Distribution({"a": 1}),
        1: Distribution({"a": "1/2", "b": "1/2"}),
        2: Distribution({"b": 1}),
    }
    mechanism = FiniteMechanism(neighbours.domain, laws)
    assert satisfies(mechanism, neighbours).satisfied
    try:
        grouped = change_unit(neighbours, all_near(), 2, "two persons at most")
    except NotImplied:
        return
    assert satisfies(mechanism, grouped).satisfied


# Erratum 8.9: households and persons where people move and households grow.


def household_record(point: Any) -> Counter[Any]:
    """The non-empty and empty households of two addresses, each with its members."""
    members: dict[int, list[Any]] = {1: [], 2: []}
    for address, value in point:
        members[address].append(value)
    return Counter((address, tuple(sorted(values))) for address, values in members.items())


def household_distance(points: tuple[Any, ...]) -> Given:
    rows = tuple(
        tuple(Exact.of(multiset_difference(household_record(x), household_record(y))) / 2 for y in points)
        for x in points
    )
    return Given(unit="household", points=points, distances=rows)


@pytest.fixture(scope="module")
def addresses() -> tuple[Domain, Given]:
    schema = Schema.of(address=(1, 2), value=("f", "m"))
    domain = Domain.datasets(schema, [1, 2], stage=Stage.EDITED_FILE)
    return domain, household_distance(domain.enumerate())


def test_erratum_8_9_moving_one_person_changes_two_households(addresses: tuple[Domain, Given]) -> None:
    domain, household = addresses
    apart, together = ((1, "f"), (2, "m")), ((1, "f"), (1, "m"))
    assert apart in domain.enumerate() and together in domain.enumerate()
    assert HammingUnordered(unit="person").distance(apart, together) == ONE
    assert household.distance(apart, together) == Exact.of(2)


def test_erratum_8_9_a_growing_household_is_not_compared_by_persons(addresses: tuple[Domain, Given]) -> None:
    alone, couple = ((1, "f"),), ((1, "f"), (1, "m"))
    assert addresses[1].distance(alone, couple) == ONE
    assert HammingUnordered(unit="person").distance(alone, couple) == INFINITY


def test_erratum_8_9_bounds_are_computed_never_assumed(addresses: tuple[Domain, Given]) -> None:
    domain, household = addresses
    person = HammingUnordered(unit="person")
    found = bounds(person, household, domain)
    assert found.upper == Exact.of(2)
    back = bounds(household, person, domain)
    assert back.upper == INFINITY
    assert bounds(household, person, domain, Explicit.from_function(domain, len)).upper == Exact.of(2)


def test_erratum_8_9_household_level_zcdp_quadruples_at_person_level(
    addresses: tuple[Domain, Given],
) -> None:
    domain, household = addresses
    by_household = Specification(
        domain=domain,
        multiverse=Explicit.from_function(domain, len),
        input_premetric=household,
        output_premetric=NormalisedRenyi(),
        budget=Budget.zcdp(rho_squared="1/4"),
    )
    person = HammingUnordered(unit="person")
    factor = bounds(person, household, domain, by_household.multiverse).upper
    restated = change_unit(by_household, person, factor.rational, "a person lives in one household")
    assert restated.budget.amount == ONE
    pure = Specification(
        **dict(by_household) | {"output_premetric": Multiplicative(), "budget": Budget.epsilon("ln(2)")}
    )
    doubled = change_unit(pure, person, factor.rational, "a person lives in one household")
    same = Specification(**dict(pure) | {"input_premetric": person})
    assert doubled.budget.amount == Exact.log(4)
    assert compare(pure, doubled).overall in {Order.STRONGER, Order.EQUIVALENT}
    assert compare(pure, same).overall not in {Order.STRONGER, Order.EQUIVALENT}


# Maxima, for meets.


@reproducibly(60)
@given(st.data())
def test_the_maximum_of_two_distances_weakens_both(data: st.DataObject) -> None:
    domain = data.draw(domains(max_size=4))
    first, second = data.draw(premetrics(domain)), data.draw(premetrics(domain))
    both = Maximum(parts=(first, second))
    output = data.draw(st.one_of(multiplicative(), normalised_renyi()))
    mechanism = data.draw(mechanisms(domain))
    for part in (first, second):
        flavor = Flavor(domain=domain, multiverse=Trivial(), input_premetric=part, output_premetric=output)
        weaker = Flavor(**dict(flavor) | {"input_premetric": both})
        loss = protection_loss(mechanism, flavor).overall
        assert protection_loss(mechanism, weaker).overall <= loss
    matrices = zip(first.matrix(domain), second.matrix(domain), both.matrix(domain), strict=True)
    for a, b, m in matrices:
        assert all(z == supremum([x, y]) for x, y, z in zip(a, b, m, strict=True))


@KINDS.add
class Discrete(Premetric):
    """One between any two data sets: a kind of one's own, not known to any other module."""

    kind: Literal["discrete"] = "discrete"
    unit: str

    def distance(self, x: Any, y: Any) -> Exact:
        return Exact.of(int(x != y))

    @property
    def symbol(self) -> str:
        return "d_discrete"

    def sentence(self) -> str:
        return f"any number of {self.unit} records change"


def test_a_premetric_of_ones_own_is_written_compared_and_verified() -> None:
    domain = Domain.datasets(Schema.of(age=range(2)), sizes=(2,))
    blocks: dict[str, Any] = {
        "domain": domain,
        "multiverse": Trivial(),
        "output_premetric": Multiplicative(),
        "budget": Budget.epsilon(0),
    }
    group = Specification(**blocks, input_premetric=Discrete(unit="record"))
    record = Specification(**blocks, input_premetric=HammingUnordered(unit="record"))
    assert Specification.from_json(group.to_json()) == group
    assert "any number of record records change" in str(group.card())
    assert compare(group, record).overall == Order.EQUIVALENT
    tells = FiniteMechanism.exact_release(domain, lambda point: point)
    assert not satisfies(tells, group).satisfied
