"""Normal form: the same mechanisms, written another way (Appendix A.3 and A.4 of the thesis; R31)."""

import itertools
import math
import random
from collections.abc import Iterable
from fractions import Fraction

import pytest
from support.comparable import finite_pairs, implicit_pairs

from stirred.spec import (
    INFINITY,
    ZERO,
    Budget,
    Distribution,
    Domain,
    Encoded,
    Exact,
    FiniteMechanism,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Order,
    Schema,
    Sharpened,
    Specification,
    Trivial,
    compare,
    protection_loss,
    satisfies,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.blocks.output_premetric import KullbackLeibler, TotalVariation
from stirred.spec.disclosure import components
from stirred.spec.order.comparison import not_stronger
from stirred.spec.order.normal_form import all_constraints, explicit_constraints

SEEDS = range(40)
DISTANCES = (0, "1/2", 1, 1, 1, 2, "inf")
EPSILONS = (0, "ln(3/2)", "ln(2)", 1, "ln(4)", "inf")


def build(
    size: int,
    parts: Iterable[Iterable[int]],
    distances: object,
    budgets: Iterable[object],
    output: object = None,
    kind: str = "epsilon",
) -> Specification:
    return Specification(
        domain=Domain.finite(range(size)),
        multiverse=Explicit(parts=parts),
        input_premetric=Given(unit="unit", points=range(size), distances=distances),
        output_premetric=output or Multiplicative(),
        budget=Budget.by_universe(kind, budgets),
    )


def drawn(seed: int, *, constant: bool = False, powers: bool = False) -> Specification:
    """A random specification on two to four points: overlapping universes, asymmetric distances.

    With ``powers`` every bound is the logarithm of a rational, so that witnesses have exact masses.
    """
    random_ = random.Random(f"normal form {seed}")
    size = random_.randint(2, 4)
    parts = [random_.sample(range(size), random_.choice((1, 2, size))) for _ in range(random_.randint(1, 3))]
    lengths = (0, 1, 1, 1, 2, 3, "inf") if powers else DISTANCES
    distances = [[0 if x == y else random_.choice(lengths) for y in range(size)] for x in range(size)]
    epsilons = ("ln(3/2)", "ln(2)", "ln(4)", "ln(5)") if powers else EPSILONS
    amounts = [random_.choice(epsilons) for _ in (parts[:1] if constant else parts)]
    return build(size, parts, distances, amounts)


def mechanisms(specification: Specification, seed: int) -> list[FiniteMechanism]:
    """Mechanisms with small integer odds: some points share a law, some laws miss an output."""
    random_ = random.Random(f"mechanism {seed}")
    found = []
    for _ in range(30):
        laws = []
        for _ in specification.domain.enumerate():
            if laws and random_.random() < 0.45:
                laws.append(random_.choice(laws))
                continue
            weights = [random_.choice((1, 2, 2, 3, 4, 4, 0)) for _ in range(3)]
            weights[0] += sum(weights) == 0
            laws.append(Distribution({i: Fraction(w, sum(weights)) for i, w in enumerate(weights)}))
        found.append(FiniteMechanism(specification.domain, dict(enumerate(laws))))
    return found


def with_blocks(specification: Specification, **blocks: object) -> Specification:
    return Specification(**dict(specification) | blocks)


def infima(specification: Specification, parts: Iterable[frozenset[object]]) -> list[Exact]:
    """For every new universe the least budget of an old one that contains it (inf of nothing: infinity)."""
    old = list(enumerate(specification.universes()))
    return [
        min((specification.budget.linear(i) for i, u in old if part <= u), default=INFINITY) for part in parts
    ]


def assert_same_mechanisms(first: Specification, second: Specification, seed: int) -> None:
    verdict = compare(first, second)
    assert verdict.overall == Order.EQUIVALENT, verdict.reason
    for mechanism in mechanisms(first, seed):
        assert satisfies(mechanism, first).satisfied == satisfies(mechanism, second).satisfied


@pytest.mark.parametrize("seed", SEEDS)
def test_r31_the_explicit_normal_form_has_the_same_mechanisms(seed: int) -> None:
    """M(X, D, d, D_Pr, eps) = M(X, {X}, L, D_Pr, 1), for L as it stands and for L*."""
    specification = drawn(seed)
    points = specification.domain.enumerate()
    for table in (explicit_constraints(specification), all_constraints(specification)):
        plain = with_blocks(
            specification,
            multiverse=Trivial(),
            input_premetric=Given(unit="unit", points=points, distances=table),
            budget=Budget.epsilon(1),
        )
        assert_same_mechanisms(specification, plain, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_r31_the_normal_form_is_a_symmetric_pseudo_metric_below_the_explicit_one(seed: int) -> None:
    specification = drawn(seed)
    explicit, full = explicit_constraints(specification), all_constraints(specification)
    points = range(len(full))
    for x, y in itertools.product(points, repeat=2):
        assert full[x][y] == full[y][x] <= explicit[x][y]
        assert (x != y) or full[x][y] == ZERO
        assert all(full[x][y] <= full[x][z] + full[z][y] for z in points)
    listed = specification.domain.enumerate()
    expected = [(listed[x], listed[y]) for x in points for y in points if full[x][y] < explicit[x][y]]
    assert implicit_pairs(specification) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_r31_the_two_output_witness_attains_every_constraint(seed: int) -> None:
    """P_x(1) = e^(h(x) - L)/2 with h(x) = min(L*(x0, x), L) satisfies the specification and attains L.

    Loss L between x0 and x1, and |h(x) - h(y)| between all other pairs, by exact arithmetic.
    """
    specification = drawn(seed, powers=True)
    full = all_constraints(specification)
    points = range(len(full))
    for start, end in itertools.permutations(points, 2):
        top = full[start][end]
        if top.is_infinite:
            continue
        heights = [min(full[start][x], top).exponential for x in points]
        masses = [h / top.exponential / 2 for h in heights]
        laws = {x: Distribution({1: mass, 0: 1 - mass}) for x, mass in enumerate(masses)}
        mechanism = FiniteMechanism(specification.domain, laws)
        assert satisfies(mechanism, specification).satisfied
        for x, y in itertools.product(points, repeat=2):
            gap = heights[x] / heights[y]
            assert Multiplicative().between(laws[x], laws[y]) == Exact.log(max(gap, 1 / gap))
        assert Multiplicative().between(laws[start], laws[end]) == top


def test_r31_the_witness_of_the_comparison_is_the_two_output_mechanism() -> None:
    """Along a chain 0 - 1 - 2 of ln 2 each, the witness against a bound of ln 3 reaches ln 4 exactly."""
    chain = build(3, [(0, 1), (1, 2)], [[0, 1, 9], [1, 0, 1], [9, 1, 0]], ["ln(2)", "ln(2)"])
    bound = build(3, [(0, 2)], [[0, 1, 1], [1, 0, 1], [1, 1, 0]], ["ln(3)"])
    found = not_stronger(chain, bound)
    assert found is not None and found.mechanism is not None
    assert set(found.pair) == {0, 2}
    assert (found.reachable, found.allowed) == (Exact.log(4), Exact.log(3))
    masses = [found.mechanism.laws[x]["1"] for x in range(3)]
    assert sorted(masses) == [Fraction(1, 8), Fraction(1, 4), Fraction(1, 2)]
    assert satisfies(found.mechanism, chain).satisfied
    assert protection_loss(found.mechanism, bound).overall == Exact.log(4)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_3_1_a_constant_budget_lets_the_distance_carry_the_multiverse(seed: int) -> None:
    specification = drawn(seed, constant=True)
    encoded = with_blocks(
        specification,
        multiverse=Trivial(),
        input_premetric=Encoded(base=specification.input_premetric, multiverse=specification.multiverse),
    )
    assert_same_mechanisms(specification, encoded, seed)


def test_a_3_1_needs_a_constant_budget() -> None:
    """Two universes with two budgets: no single number serves the encoded distance."""
    varied = build(3, [(0, 1), (1, 2)], [[0, 1, 1], [1, 0, 1], [1, 1, 0]], ["ln(2)", "ln(4)"])
    for amount in ("ln(2)", "ln(3)", "ln(4)"):
        encoded = with_blocks(
            varied,
            multiverse=Trivial(),
            input_premetric=Encoded(base=varied.input_premetric, multiverse=varied.multiverse),
            budget=Budget.epsilon(amount),
        )
        assert compare(varied, encoded).overall != Order.EQUIVALENT


@pytest.mark.parametrize("seed", SEEDS)
def test_a_3_2_pairs_at_finite_distance_are_enough(seed: int) -> None:
    """D_0 and {D_0 meet {x, x'} : d(x, x') finite} with infimum budgets have the same mechanisms."""
    specification = drawn(seed)
    pairs = finite_pairs(specification.input_premetric, specification.domain).parts
    parts = list(dict.fromkeys(u & pair for u in specification.universes() for pair in pairs if u & pair))
    if not parts:
        assert all(
            entry.is_infinite or x == y
            for x, row in enumerate(explicit_constraints(specification))
            for y, entry in enumerate(row)
        )
        return
    refined = with_blocks(
        specification,
        multiverse=Explicit(parts=parts),
        budget=Budget.by_universe("epsilon", infima(specification, parts)),
    )
    assert_same_mechanisms(specification, refined, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_3_3_the_components_of_the_distance_are_hidden_invariants(seed: int) -> None:
    specification = drawn(seed)
    own = components(with_blocks(specification, multiverse=Trivial(), budget=Budget.epsilon(1)))
    parts = list(dict.fromkeys(u & c for u in specification.universes() for c in own if u & c))
    refined = with_blocks(
        specification,
        multiverse=Explicit(parts=parts),
        budget=Budget.by_universe("epsilon", infima(specification, parts)),
    )
    assert_same_mechanisms(specification, refined, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_3_3_nothing_is_restricted_across_components(seed: int) -> None:
    specification = drawn(seed)
    full, points = all_constraints(specification), specification.domain.enumerate()
    home = {point: c for c in components(specification) for point in c}
    for (i, x), (j, y) in itertools.product(enumerate(points), repeat=2):
        if home[x] != home[y]:
            assert full[i][j].is_infinite


def bounded(size: int) -> Specification:
    domain = Domain.datasets(Schema.of(bit=(0, 1)), sizes=range(size + 1))
    return Specification(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=HammingUnordered(unit="record"),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon("ln(2)"),
    )


def test_a_3_3_bounded_dp_holds_the_number_of_records_invariant() -> None:
    """d_HamS is infinite across sizes: {X} and {data sets of one size} have the same mechanisms."""
    specification = bounded(3)
    assert set(components(specification)) == set(
        Explicit.from_function(specification.domain, len).universes(specification.domain)
    )
    sized = with_blocks(specification, multiverse=Explicit.from_function(specification.domain, len))
    assert compare(specification, sized).overall == Order.EQUIVALENT


def test_a_1_overlapping_universes_imply_a_constraint_that_neither_states() -> None:
    """R13: D(P1, P3) <= eps d(1, 2) + eps' d(2, 3) <= max(eps, eps') d(1, 3)."""
    specification = build(3, [(0, 1), (1, 2)], [[0, 1, 2], [1, 0, 1], [2, 1, 0]], ["ln(2)", "ln(3)"])
    explicit, full = explicit_constraints(specification), all_constraints(specification)
    assert explicit[0][2] == INFINITY
    assert full[0][2] == Exact.log(6)
    assert full[0][2] <= Exact.log(3) * 2
    assert implicit_pairs(specification) == [(0, 2), (2, 0)]
    laws = [Fraction(1, 12), Fraction(1, 6), Fraction(1, 2)]
    extreme = FiniteMechanism(
        specification.domain, {x: Distribution({1: mass, 0: 1 - mass}) for x, mass in enumerate(laws)}
    )
    assert satisfies(extreme, specification).satisfied
    assert Multiplicative().between(extreme.laws[0], extreme.laws[2]) == Exact.log(6)


def test_a_1_disjoint_universes_and_a_metric_imply_nothing() -> None:
    specification = build(4, [(0, 1), (2, 3)], [[abs(x - y) for y in range(4)] for x in range(4)], [1, 2])
    assert implicit_pairs(specification) == []


@pytest.mark.parametrize(("output", "kind"), [(KullbackLeibler(), "loss"), (NormalisedRenyi(), "rho")])
def test_a_1_implication_asks_for_the_triangle_inequality(output: object, kind: str) -> None:
    distances = [[0, 1, "inf"], ["inf", 0, 1], ["inf", "inf", 0]]
    specification = build(3, [(0, 1), (1, 2)], distances, [1, 1], output, kind)
    implied = implicit_pairs(specification)
    assert implied == ([(0, 2), (2, 0)] if kind == "rho" else [])
    explicit = explicit_constraints(specification)
    assert explicit[1][0].is_infinite == (kind == "loss"), "an asymmetric divergence is bounded one way only"


def cut(specification: Specification, *, all_pairs: bool) -> Specification:
    """A.4.2: i=1 cuts every universe down to components, i=2 takes every pair inside a component."""
    own = components(specification)
    if all_pairs:
        parts = [frozenset(pair) for c in own for pair in itertools.combinations(sorted(c), 2)]
        meeting = specification.universes()
        amounts = [
            min(specification.budget.linear(i) for i, u in enumerate(meeting) if u & part) for part in parts
        ]
    else:
        parts = list(dict.fromkeys(u & c for u in specification.universes() for c in own if u & c))
        amounts = infima(specification, parts)
    return with_blocks(
        specification, multiverse=Explicit(parts=parts), budget=Budget.by_universe("epsilon", amounts)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_4_2_cutting_universes_to_components_is_true(seed: int) -> None:
    specification = drawn(seed)
    assert_same_mechanisms(specification, cut(specification, all_pairs=False), seed)


def test_a_4_2_taking_all_pairs_of_a_component_is_false() -> None:
    """Erratum 8.6: {{0,1},{0,2}} with d = 1 does not bound the pair (1, 2) by its budget."""
    specification = build(3, [(0, 1), (0, 2)], [[0, 1, 1], [1, 0, 1], [1, 1, 0]], ["ln(2)", "ln(2)"])
    claimed = cut(specification, all_pairs=True)
    assert components(specification) == (frozenset({0, 1, 2}),)
    verdict = compare(specification, claimed)
    assert verdict.overall == Order.WEAKER
    assert verdict.first_not_stronger is not None
    assert set(verdict.first_not_stronger.pair) == {1, 2}
    masses = {0: Fraction(1, 4), 1: Fraction(1, 8), 2: Fraction(1, 2)}
    mechanism = FiniteMechanism(
        specification.domain, {x: Distribution({1: mass, 0: 1 - mass}) for x, mass in masses.items()}
    )
    assert satisfies(mechanism, specification).satisfied
    assert not satisfies(mechanism, claimed).satisfied


@pytest.mark.parametrize("relation", ["replace", "add-remove"])
def test_a_4_1_neighbours_and_their_sharpening_have_the_same_mechanisms(relation: str) -> None:
    """Under {X} and a metric on laws, a bound between neighbours is a bound along every chain."""
    domain = Domain.datasets(Schema.of(bit=(0, 1)), sizes=(0, 1, 2))
    near = Neighbours.model_validate({"relation": relation, "unit": "record"})

    def on(premetric: object, output: object, budget: Budget) -> Specification:
        return Specification(
            domain=domain,
            multiverse=Trivial(),
            input_premetric=premetric,
            output_premetric=output,
            budget=budget,
        )

    for output, budget in (
        (Multiplicative(), Budget.epsilon("ln(2)")),
        (NormalisedRenyi(), Budget.zcdp(rho_squared="1/2")),
    ):
        first, second = on(near, output, budget), on(Sharpened(base=near), output, budget)
        assert compare(first, second).overall == Order.EQUIVALENT
        assert all_constraints(first) == all_constraints(second)
        assert all_constraints(first) == all_constraints(on(near.sharpened, output, budget))


def test_r7_a_chain_must_stay_in_its_universe() -> None:
    """Two points at distance two whose midpoint lies elsewhere: neighbours alone bound nothing."""
    distances = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    near = [[0, 1, "inf"], [1, 0, 1], ["inf", 1, 0]]
    apart = build(3, [(0, 2), (1,)], distances, [1, 1])
    chained = build(3, [(0, 2), (1,)], near, [1, 1])
    assert all_constraints(apart)[0][2] == Exact.of(2)
    assert all_constraints(chained)[0][2] == INFINITY
    assert compare(apart, chained).overall == Order.STRONGER


@pytest.mark.parametrize("seed", range(15))
def test_r31_holds_for_d_nor_along_chains(seed: int) -> None:
    """The surds of zCDP budgets add along a path exactly as floats do."""
    random_ = random.Random(seed)
    steps = [random_.choice(("1/2", "2", "3", "1/3", "5")) for _ in range(3)]
    parts = [(i, i + 1) for i in range(3)]
    table = [[1 if x != y else 0 for y in range(4)] for x in range(4)]
    specification = build(4, parts, table, steps, NormalisedRenyi(), "rho_squared")
    full = all_constraints(specification)
    for x, y in itertools.combinations(range(4), 2):
        expected = math.fsum(math.sqrt(Fraction(step)) for step in steps[x:y])
        assert float(full[x][y]) == pytest.approx(expected, rel=1e-12)


def test_total_variation_is_a_metric_with_implied_constraints() -> None:
    specification = build(
        3, [(0, 1), (1, 2)], [[0, 1, 1], [1, 0, 1], [1, 1, 0]], ["1/4", "1/3"], TotalVariation(), "loss"
    )
    assert all_constraints(specification)[0][2] == Exact.of("7/12")
