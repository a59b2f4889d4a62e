"""Composition, post-processing and pull-back, against the enumerated loss of the composed mechanism."""

import itertools
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import pytest

from stirred.errors import DomainMismatch, InputError, NonFreshSeeds, NotImplied, StirredError
from stirred.spec import (
    INFINITY,
    ZERO,
    Approximate,
    Budget,
    Condition,
    Count,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Flavor,
    GaussianTradeOff,
    Hamming,
    HammingUnordered,
    Maximum,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Renyi,
    Schema,
    Specification,
    Stage,
    SymmetricDifference,
    Trivial,
    change_unit,
    compose,
    from_invariants,
    meet,
    parallel,
    post_process,
    protection_loss,
    pull_back,
    satisfies,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.blocks.output_premetric import (
    ChiSquared,
    Coarsened,
    DensityRatio,
    Described,
    Hellinger,
    KullbackLeibler,
    TotalVariation,
    TradeOffCurve,
    TradeOffFunctional,
    Wasserstein,
)

SEEDS = range(12)
DELTA = Exact.of("1/20")
LINEAR = [
    (Multiplicative(), "epsilon"),
    (Approximate(delta=DELTA), "epsilon"),
    (NormalisedRenyi(), "rho_squared"),
    (NormalisedRenyi(), "rho"),
    (Renyi(alpha=Exact.of(2)), "epsilon"),
    (KullbackLeibler(), "loss"),
    (TotalVariation(), "loss"),
    (Hellinger(), "loss"),
    (DensityRatio(), "epsilon"),
    (GaussianTradeOff(), "mu"),
]


def drawn_flavor(
    random_: random.Random, output: object, size: int = 3, lengths: object = (0, "1/2", 1, 2, "inf")
) -> Flavor:
    """Overlapping universes and an asymmetric premetric on a few points."""
    points = range(size)
    parts = [random_.sample(points, random_.choice((2, size))) for _ in range(random_.randint(1, 3))]
    table = [[0 if x == y else random_.choice(lengths) for y in points] for x in points]
    return Flavor(
        domain=Domain.finite(points),
        multiverse=Explicit(parts=parts),
        input_premetric=Given(unit="unit", points=points, distances=table),
        output_premetric=output,
    )


def drawn_mechanism(random_: random.Random, domain: Domain) -> FiniteMechanism:
    """Small integer odds; sometimes an output is missing, sometimes two points share a law."""
    laws: dict[Any, Distribution] = {}
    for point in domain.enumerate():
        if laws and random_.random() < 0.2:
            laws[point] = random_.choice(list(laws.values()))
            continue
        weights = [random_.choice((1, 1, 2, 3, 5)) if random_.random() < 0.97 else 0 for _ in range(3)]
        weights[0] += 1
        laws[point] = Distribution({i: Fraction(w, sum(weights)) for i, w in enumerate(weights)})
    return FiniteMechanism(domain, laws)


def squared(value: Exact) -> Exact:
    return INFINITY if value.is_infinite else Exact(value.rounded_up() ** 2)


def stated(mechanism: FiniteMechanism, flavor: Flavor, kind: str) -> Specification:
    """The mechanism's own loss, universe by universe, as its budget."""
    losses = protection_loss(mechanism, flavor).by_universe
    amounts = [squared(loss) if kind == "rho_squared" else loss for loss in losses]
    return flavor.with_budget(Budget.by_universe(kind, amounts))


def assert_covers(specification: Specification, mechanism: FiniteMechanism) -> None:
    """In no universe does the composed budget fall below the enumerated loss."""
    losses = protection_loss(mechanism, specification).by_universe
    for number, loss in enumerate(losses):
        allowed = specification.budget.linear(number)
        assert float(loss) <= float(allowed) * (1 + 1e-9) + 1e-12, (number, loss, allowed)
    assert satisfies(mechanism, specification).satisfied


@pytest.mark.parametrize(("output", "kind"), LINEAR)
@pytest.mark.parametrize("seed", SEEDS)
def test_proposition_2_5_3_the_composed_budget_covers_the_enumerated_loss(
    seed: int, output: object, kind: str
) -> None:
    random_ = random.Random(f"sequential {seed}")
    flavor = drawn_flavor(random_, output)
    first, second = (drawn_mechanism(random_, flavor.domain) for _ in range(2))
    composed = compose(stated(first, flavor, kind), stated(second, flavor, kind))
    assert_covers(composed, first.compose_fresh(second))
    assert "the seeds of all parts are independent" in composed.assumptions


@pytest.mark.parametrize("seed", SEEDS)
def test_chi_squared_composes_as_a_product_between_neighbours(seed: int) -> None:
    """(1+a)(1+b) - 1: exact for neighbours, refused where distances are longer."""
    random_ = random.Random(f"product {seed}")
    near = drawn_flavor(random_, ChiSquared(), lengths=(1, 1, "inf"))
    first, second = (drawn_mechanism(random_, near.domain) for _ in range(2))
    parts = stated(first, near, "loss"), stated(second, near, "loss")
    assert_covers(compose(*parts), first.compose_fresh(second))
    far = drawn_flavor(random.Random(f"far {seed}"), ChiSquared(), lengths=(1, 2))
    if not far.input_premetric.flags.neighbour_valued:
        spread = far.with_budget(Budget.loss(1))
        with pytest.raises(NotImplied, match="not linear in the distance"):
            compose(spread, spread)


def test_chi_squared_product_is_attained() -> None:
    law = {
        0: Distribution({0: Fraction(3, 4), 1: Fraction(1, 4)}),
        1: Distribution({0: Fraction(1, 4), 1: Fraction(3, 4)}),
    }
    flavor = pair_flavor(ChiSquared())
    mechanism = FiniteMechanism(flavor.domain, law)
    part = stated(mechanism, flavor, "loss")
    assert part.budget.amount == Exact.of("4/3")
    assert compose(part, part).budget.amount == Exact.of("40/9")
    assert protection_loss(mechanism.compose_fresh(mechanism), flavor).overall == Exact.of("40/9")


def pair_flavor(output: object, domain: Domain | None = None) -> Flavor:
    return Flavor(
        domain=domain or Domain.finite((0, 1)),
        multiverse=Trivial(),
        input_premetric=Given(unit="unit", points=(0, 1), distances=((0, 1), (1, 0))),
        output_premetric=output,
    )


def test_r20_d_nor_adds_in_squares() -> None:
    flavor = pair_flavor(NormalisedRenyi())
    half, third = Budget.zcdp(rho_squared="1/2"), Budget.zcdp(rho="1/3")
    composed = compose(*(flavor.with_budget(b) for b in (half, half, third)))
    assert composed.budget == Budget.zcdp(rho_squared="10/9")
    assert composed.budget.linear() == Exact.sqrt("10/9")


def test_gaussian_dp_adds_in_squares() -> None:
    flavor = pair_flavor(GaussianTradeOff())
    composed = compose(flavor.with_budget(Budget.gdp(mu=3)), flavor.with_budget(Budget.gdp(mu=4)))
    assert composed.budget.amount == Exact.of(5)


def test_approximate_dp_adds_epsilons_and_deltas() -> None:
    parts = [
        pair_flavor(Approximate(delta=Exact.of(delta))).with_budget(Budget.epsilon(epsilon))
        for delta, epsilon in (("1e-6", 1), ("2e-6", "1/2"))
    ]
    composed = compose(*parts)
    assert composed.output_premetric == Approximate(delta=Exact.of("3e-6"))
    assert composed.budget.amount == Exact.of("3/2")


def test_r21_two_mechanisms_of_loss_zero_reveal_everything_together() -> None:
    """Acceptance 13: T1 = x xor U and T2 = U. Each has loss zero; with one U they give x away."""
    flavor = pair_flavor(Multiplicative())
    half = Fraction(1, 2)
    coin = Distribution({0: half, 1: half})
    alone = FiniteMechanism(flavor.domain, {0: coin, 1: coin})
    joint = FiniteMechanism(
        flavor.domain, {x: Distribution({(x ^ u, u): half for u in (0, 1)}) for x in (0, 1)}
    )
    assert protection_loss(alone, flavor).overall == ZERO
    assert protection_loss(joint.post_process(lambda pair: pair[0]), flavor).overall == ZERO
    assert protection_loss(joint.post_process(lambda pair: pair[1]), flavor).overall == ZERO
    zero = flavor.with_budget(Budget.epsilon(0))
    assert compose(zero, zero).budget.amount == ZERO
    with pytest.raises(NonFreshSeeds, match="share randomness"):
        compose(zero, zero, seeds="shared")
    together = compose(zero, zero, seeds="shared", joint=joint)
    assert together.budget.amount == INFINITY
    assert together.constrains_nothing
    assert together.standing == "enumerated"
    fresh = compose(zero, zero, seeds="shared", joint=alone.compose_fresh(alone))
    assert fresh.budget.amount == ZERO


@pytest.mark.parametrize(("output", "kind"), LINEAR)
def test_a_5_5_the_joint_law_decides_where_seeds_are_shared(output: object, kind: str) -> None:
    """Publishing one draw twice costs what publishing it once does, under every premetric."""
    random_ = random.Random(f"joint {kind}")
    flavor = drawn_flavor(random_, output)
    mechanism = drawn_mechanism(random_, flavor.domain)
    part = stated(mechanism, flavor, kind)
    twice = compose(
        part, part, seeds="shared", joint=mechanism.post_process(lambda outcome: (outcome, outcome))
    )
    pairs = zip(twice.budget.amounts, part.budget.amounts, strict=True)
    assert all(float(a) == pytest.approx(float(b), rel=1e-9) for a, b in pairs)


@pytest.mark.parametrize("seed", range(40))
def test_r32_both_parts_keep_their_budgets_under_the_meet(seed: int) -> None:
    """Universes intersect and the larger distance counts; the composition covers the enumerated loss."""
    random_ = random.Random(f"meet {seed}")
    output, kind = random_.choice(LINEAR[:4])
    one, two = drawn_flavor(random_, output), drawn_flavor(random_, output)
    first, second = (drawn_mechanism(random_, one.domain) for _ in range(2))
    parts = stated(first, one, kind), stated(second, two, kind)
    together = meet(one, two)
    crossed = {a & b for a in one.multiverse.parts for b in two.multiverse.parts} - {frozenset()}
    assert set(together.multiverse.universes(one.domain)) == crossed
    tables = [f.input_premetric.matrix(one.domain) for f in (one, two, together)]
    for x, y in itertools.product(range(3), repeat=2):
        assert tables[2][x][y] == max(tables[0][x][y], tables[1][x][y])
    assert_covers(compose(*parts), first.compose_fresh(second))
    assert_covers(compose(parts[0], under=together), first)
    assert_covers(compose(parts[1], under=together), second)


def test_r32_the_infimum_of_covering_budgets_is_taken_in_every_universe() -> None:
    domain = Domain.finite(range(4))
    table = Given(unit="unit", points=range(4), distances=[[abs(x - y) for y in range(4)] for x in range(4)])

    def on(parts: Iterable[Iterable[int]], amounts: Iterable[object]) -> Specification:
        return Specification(
            domain=domain,
            multiverse=Explicit(parts=parts),
            input_premetric=table,
            output_premetric=Multiplicative(),
            budget=Budget.by_universe("epsilon", amounts),
        )

    first = on([(0, 1, 2), (1, 2, 3)], [5, 1])
    second = on([(0, 1), (1, 2, 3)], [2, 3])
    composed = compose(first, second)
    budgets = dict(zip(composed.universes(), composed.budget.amounts, strict=True))
    assert budgets == {
        frozenset({0, 1}): Exact.of(7),
        frozenset({1, 2}): Exact.of(4),
        frozenset({1}): Exact.of(3),
        frozenset({1, 2, 3}): Exact.of(4),
    }


def test_r32_refuses_other_domains_and_other_measures() -> None:
    flavor = pair_flavor(Multiplicative())
    elsewhere = pair_flavor(Multiplicative(), Domain.finite((0, 1), stage=Stage.RAW_RESPONSES))
    with pytest.raises(DomainMismatch):
        meet(flavor, elsewhere)
    with pytest.raises(NotImplied, match="do not compose"):
        meet(flavor, pair_flavor(NormalisedRenyi()))


def test_r32_keeps_the_maximum_where_neither_distance_bounds_the_other() -> None:
    domain = Domain(name="X", stage=Stage.DATABASE)
    one, two = (
        Flavor(
            domain=domain,
            multiverse=Trivial(),
            input_premetric=HammingUnordered(unit=unit),
            output_premetric=Multiplicative(),
        )
        for unit in ("person", "household")
    )
    assert meet(one, two).input_premetric == Maximum(parts=(one.input_premetric, two.input_premetric))
    assert meet(one, one) == one


def test_compose_under_refuses_a_flavor_that_the_parts_do_not_reach() -> None:
    wide = pair_flavor(Multiplicative())
    fine = Flavor(**dict(wide) | {"multiverse": Explicit(parts=((0,), (1,)))})
    short = Flavor(
        **dict(wide)
        | {"input_premetric": Given(unit="unit", points=(0, 1), distances=((0, "1/2"), ("1/2", 0)))}
    )
    part = wide.with_budget(Budget.epsilon(1))
    assert compose(part, under=fine).multiverse == fine.multiverse
    with pytest.raises(NotImplied, match="multiverse does not condition"):
        compose(fine.with_budget(Budget.epsilon(1)), under=wide)
    with pytest.raises(NotImplied, match="distances are not known"):
        compose(part, under=short)


ADAPTIVE = LINEAR[:5] + LINEAR[-1:]


@pytest.mark.parametrize(("output", "kind"), ADAPTIVE)
@pytest.mark.parametrize("seed", range(6))
def test_adaptive_composition_covers_a_second_mechanism_that_depends_on_the_first_output(
    seed: int, output: object, kind: str
) -> None:
    random_ = random.Random(f"adaptive {seed}")
    flavor = drawn_flavor(random_, output)
    first = drawn_mechanism(random_, flavor.domain)
    choices = [drawn_mechanism(random_, flavor.domain) for _ in range(3)]
    losses = [protection_loss(choice, flavor).by_universe for choice in choices]
    worst = [max(column) for column in zip(*losses, strict=True)]
    amounts = [squared(loss) if kind == "rho_squared" else loss for loss in worst]
    second = flavor.with_budget(Budget.by_universe(kind, amounts))
    laws = {
        x: Distribution(
            {(y, z): p * q for y, p in law.items() for z, q in choices[int(str(y))].laws[x].items()}
        )
        for x, law in first.laws.items()
    }
    composed = compose(stated(first, flavor, kind), second, order="adaptive")
    assert_covers(composed, FiniteMechanism(flavor.domain, laws))


@pytest.mark.parametrize("order", ["adaptive", "concurrent"])
@pytest.mark.parametrize(("output", "kind"), [case for case in LINEAR if case not in ADAPTIVE])
def test_adaptive_and_concurrent_composition_are_refused_where_no_theorem_is_known(
    order: Any, output: object, kind: str
) -> None:
    part = pair_flavor(output).with_budget(Budget.by_universe(kind, (1,)))
    with pytest.raises(NotImplied, match=f"{order} composition is not established"):
        compose(part, part, order=order)
    assert compose(part, part).budget.linear() > part.budget.linear()


@pytest.mark.parametrize("order", ["adaptive", "concurrent"])
@pytest.mark.parametrize(("output", "kind"), ADAPTIVE)
def test_adaptive_and_concurrent_composition_cost_what_sequential_does(
    order: Any, output: object, kind: str
) -> None:
    part = pair_flavor(output).with_budget(Budget.by_universe(kind, (1,)))
    assert compose(part, part, order=order).budget == compose(part, part).budget


def test_composition_without_a_law_is_refused() -> None:
    for output, budget in (
        (TradeOffFunctional(functional="advantage"), Budget.loss(1)),
        (Described(name="D", meaning="something"), Budget.loss(1)),
    ):
        part = pair_flavor(output).with_budget(budget)
        with pytest.raises(NotImplied, match="no composition law"):
            compose(part, part)
    curve = Budget(parametrisation="tradeoff", curve=((0, 1), (1, 0)))
    part = pair_flavor(TradeOffCurve()).with_budget(curve)
    with pytest.raises(NotImplied, match="accountant"):
        compose(part, part)
    with pytest.raises(InputError, match="nothing to compose"):
        compose()
    with pytest.raises(InputError, match="nothing to compose"):
        parallel(by="part")


def test_coarsened_premetrics_are_not_composed_on_events_that_the_pair_does_not_have() -> None:
    """The groups partition single outputs; the outputs of a composition are pairs."""
    coarse = Coarsened(base=Multiplicative(), groups=((0,), (1, 2)), reason="test")
    flavor = pair_flavor(coarse)
    law = Distribution({0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)})
    mechanism = FiniteMechanism(flavor.domain, {0: law, 1: law})
    part = flavor.with_budget(Budget.epsilon(1))
    assert satisfies(mechanism, part).satisfied
    try:
        composed = compose(part, part)
    except NotImplied:
        return
    assert satisfies(mechanism.compose_fresh(mechanism), composed).satisfied


def by_part(
    sizes: Iterable[int] | None,
    premetric: object,
    invariants: Iterable[Any] = (),
    output: object = None,
    budget: Budget | None = None,
    parts: tuple[str, ...] = ("a", "b"),
) -> Specification:
    """Data sets of records that carry nothing but their part; of every size where no sizes are given."""
    declared, schema = tuple(invariants), Schema.of(part=parts)
    every = Domain(name="X", stage=Stage.DATABASE, record_schema=schema)
    return Specification(
        domain=every if sizes is None else Domain.datasets(schema, sizes=sizes),
        multiverse=from_invariants(*declared) if declared else Trivial(),
        input_premetric=premetric,
        output_premetric=output or Multiplicative(),
        budget=budget or Budget.epsilon("ln(2)"),
    )


def counting(domain: Domain, part: str, mass: Callable[[int], Fraction]) -> FiniteMechanism:
    """Reads the number of records in one part, and answers 1 with the given probability."""

    def law(point: Any) -> Distribution:
        chance = mass(sum(record == (part,) for record in point))
        return Distribution({1: chance, 0: 1 - chance})

    return FiniteMechanism.from_function(domain, law)


ADD_REMOVE = SymmetricDifference(unit="record")
REPLACE = HammingUnordered(unit="record")
SIZES = Count(unit="record", by=("part",))


def test_parallel_composition_of_additions_and_removals_costs_the_largest_budget() -> None:
    """McSherry 2009: one change touches one part. Enumerated on the data sets of up to three records."""
    parts = [by_part(None, ADD_REMOVE, budget=Budget.epsilon(epsilon)) for epsilon in ("ln(2)", "ln(3)")]
    together = parallel(*parts, by="part")
    assert together.budget.amount == Exact.log(3)
    twin = by_part(range(4), ADD_REMOVE)
    one = counting(twin.domain, "a", lambda n: Fraction(1, 2 ** (n + 1)))
    two = counting(twin.domain, "b", lambda n: Fraction(1, 2 * 3**n))
    assert protection_loss(one, twin).overall == Exact.log(2)
    assert protection_loss(two, twin).overall == Exact.log(3)
    assert protection_loss(one.compose_fresh(two), twin).overall == Exact.log(3)


def test_parallel_composition_of_replacements_adds_two_losses() -> None:
    """A record that moves from a to b changes both parts: enumerated, ln 2 and ln 3 make ln 6."""
    first = by_part((3,), REPLACE)
    second = Specification(**dict(first) | {"budget": Budget.epsilon("ln(3)")})
    one = counting(first.domain, "a", lambda n: Fraction(1, 2 ** (n + 1)))
    two = counting(first.domain, "b", lambda n: Fraction(1, 2 * 3 ** (3 - n)))
    assert satisfies(one, first).satisfied and satisfies(two, second).satisfied
    joint = protection_loss(one.compose_fresh(two), first).overall
    assert joint == Exact.log(6)
    assert parallel(first, second, by="part").budget.amount == joint


def test_parallel_composition_of_replacements_adds_only_the_two_largest() -> None:
    """Three parts: a replacement leaves one and enters another, never a third."""
    epsilons = ("ln(2)", "ln(3)", "ln(5)")
    parts = [
        by_part((2,), REPLACE, budget=Budget.epsilon(epsilon), parts=("a", "b", "c")) for epsilon in epsilons
    ]
    together = parallel(*parts, by="part")
    assert together.budget.amount == Exact.log(15)
    rates = {"a": 2, "b": 3, "c": 5}
    for signs in itertools.product((1, -1), repeat=3):
        tables = [
            counting(
                parts[0].domain,
                part,
                lambda n, r=rate, s=sign: Fraction(1, 2 * r ** (n if s > 0 else 2 - n)),
            )
            for (part, rate), sign in zip(rates.items(), signs, strict=True)
        ]
        assert all(satisfies(t, p).satisfied for t, p in zip(tables, parts, strict=True))
        joint = tables[0].compose_fresh(tables[1]).compose_fresh(tables[2])
        assert satisfies(joint, together).satisfied


def test_parallel_composition_of_replacements_costs_the_largest_where_sizes_are_invariant() -> None:
    """With the size of every part invariant a record changes within its part."""
    schema = Schema.of(part=("a", "b"), bit=(0, 1))
    flavor = Flavor(
        domain=Domain.datasets(schema, sizes=(3,)),
        multiverse=from_invariants(SIZES),
        input_premetric=REPLACE,
        output_premetric=Multiplicative(),
    )

    def ones(part: str, rate: int) -> FiniteMechanism:
        def law(point: Any) -> Distribution:
            mass = Fraction(1, 2 * rate ** sum(record == (part, 1) for record in point))
            return Distribution({1: mass, 0: 1 - mass})

        return FiniteMechanism.from_function(flavor.domain, law)

    parts = [flavor.with_budget(Budget.epsilon(epsilon)) for epsilon in ("ln(2)", "ln(3)")]
    tables = [ones("a", 2), ones("b", 3)]
    assert all(satisfies(t, p).satisfied for t, p in zip(tables, parts, strict=True))
    together = parallel(*parts, by="part")
    assert together.budget.amount == Exact.log(3)
    assert satisfies(tables[0].compose_fresh(tables[1]), together).satisfied


def test_parallel_composition_takes_the_largest_budget_in_every_universe() -> None:
    """Budgets by universe are ranked universe by universe, not by the first."""
    domain = Domain.datasets(Schema.of(part=("a", "b"), bit=(0, 1)), sizes=(1, 2))
    multiverse = from_invariants(SIZES)
    count = len(multiverse.universes(domain))

    def on(amounts: Iterable[object]) -> Specification:
        return Specification(
            domain=domain,
            multiverse=multiverse,
            input_premetric=REPLACE,
            output_premetric=Multiplicative(),
            budget=Budget.by_universe("epsilon", amounts),
        )

    rising, falling = on(range(1, count + 1)), on(range(count, 0, -1))
    together = parallel(rising, falling, by="part")
    for number in range(count):
        largest = max(rising.budget.linear(number), falling.budget.linear(number))
        assert together.budget.linear(number) >= largest


def test_parallel_composition_is_not_free_on_a_domain_of_one_size() -> None:
    """With the total fixed, an addition to one part is a removal from another: the domain ties them.

    Each part has loss ln 2 under the symmetric difference (ln 4 at distance 2); together ln 16 at distance 2.
    """
    part = by_part((2,), ADD_REMOVE)
    up = counting(part.domain, "a", lambda n: Fraction(1, 2 * 4 ** (2 - n)))
    down = counting(part.domain, "b", lambda n: Fraction(1, 2 * 4**n))
    assert protection_loss(up, part).overall == protection_loss(down, part).overall == Exact.log(2)
    joint = up.compose_fresh(down)
    assert protection_loss(joint, part).overall == Exact.log(4)
    try:
        together = parallel(part, part, by="part")
    except NotImplied:
        return
    assert satisfies(joint, together).satisfied


def test_parallel_composition_is_not_free_on_a_domain_of_listed_points() -> None:
    """Two data sets that differ in four parts at once: four losses add, whatever the premetric."""
    schema = Schema.of(part=("a", "b", "c", "d"))
    points = ((("a",), ("b",)), (("c",), ("d",)))
    domain = Domain.finite(points, structure="multiset", record_schema=schema)
    flavor = Flavor(
        domain=domain, multiverse=Trivial(), input_premetric=REPLACE, output_premetric=Multiplicative()
    )
    part = flavor.with_budget(Budget.epsilon("ln(2)"))
    tables = [counting(domain, name, lambda n: Fraction(1, 2 * 4**n)) for name in "ab"]
    tables += [counting(domain, name, lambda n: Fraction(1, 2 * 4 ** (1 - n))) for name in "cd"]
    assert all(satisfies(table, part).satisfied for table in tables)
    joint = tables[0].compose_fresh(tables[1]).compose_fresh(tables[2]).compose_fresh(tables[3])
    assert protection_loss(joint, flavor).overall == Exact.log(16)
    try:
        together = parallel(part, part, part, part, by="part")
    except NotImplied:
        return
    assert satisfies(joint, together).satisfied


def test_parallel_composition_costs_the_sum_where_invariants_tie_the_parts() -> None:
    tied = by_part((2,), REPLACE, (Count(unit="record"),))
    assert parallel(tied, tied, by="part") == compose(tied, tied)
    described = Flavor(**dict(tied.flavor) | {"multiverse": Explicit(parts=(tied.domain.enumerate(),))})
    listed = described.with_budget(Budget.epsilon(1))
    assert parallel(listed, listed, by="part") == compose(listed, listed)


@pytest.mark.parametrize(
    ("output", "budget"),
    [(Approximate(delta=Exact.of("1/10")), Budget.epsilon(0)), (ChiSquared(), Budget.loss(1))],
)
def test_parallel_composition_beyond_neighbours_needs_an_additive_premetric(
    output: object, budget: Budget
) -> None:
    """At distance two both parts may change: deltas add, and chi-squared multiplies."""
    near = Neighbours(relation="add-remove", unit="record")
    far = by_part(None, ADD_REMOVE, output=output, budget=budget)
    close = by_part(None, near, output=output, budget=budget)
    together = parallel(close, close, by="part")
    assert (together.flavor, together.budget) == (close.flavor, close.budget)
    assert together.assumptions == ("each release reads the records of one part alone",)
    if isinstance(output, ChiSquared):
        with pytest.raises(NotImplied, match="not linear in the distance"):
            parallel(far, far, by="part")
    if isinstance(output, Approximate):
        assert parallel(far, far, by="part") == compose(far, far)
        twin, short = (by_part(range(3), d, output=output, budget=budget) for d in (ADD_REMOVE, near))
        tenth = Fraction(1, 10)
        tables = [counting(twin.domain, part, lambda n: tenth if n else Fraction(0)) for part in "ab"]
        assert all(satisfies(table, twin).satisfied for table in tables)
        joint = tables[0].compose_fresh(tables[1])
        assert satisfies(joint, short).satisfied
        assert not satisfies(joint, twin).satisfied


def test_parallel_composition_of_ordered_records_costs_the_sum_and_mixed_flavors_are_refused() -> None:
    ordered = by_part((2,), Hamming(unit="record"))
    assert parallel(ordered, ordered, by="part") == compose(ordered, ordered)
    with pytest.raises(NotImplied, match="different flavors"):
        parallel(by_part((2,), REPLACE), by_part((2,), ADD_REMOVE), by="part")
    with pytest.raises(DomainMismatch):
        parallel(by_part((2,), REPLACE), by_part((3,), REPLACE), by="part")


IMMUNE = [case for case in LINEAR if case[0] != Wasserstein()]


@pytest.mark.parametrize(("output", "kind"), [*IMMUNE, (ChiSquared(), "loss")])
@pytest.mark.parametrize("seed", range(6))
def test_proposition_2_5_4_post_processing_never_raises_the_loss(
    seed: int, output: object, kind: str
) -> None:
    random_ = random.Random(f"post {seed}")
    flavor = drawn_flavor(random_, output)
    mechanism = drawn_mechanism(random_, flavor.domain)
    specification = stated(mechanism, flavor, kind)
    after = post_process(specification)
    assert after == specification
    for images in itertools.product(range(2), repeat=3):
        assert_covers(after, mechanism.post_process(lambda outcome, i=images: i[int(str(outcome))]))


def test_post_processing_is_refused_for_premetrics_that_rise_under_it() -> None:
    wide = Flavor(**dict(pair_flavor(Wasserstein())))
    laws = {0: Distribution({0: 1}), 1: Distribution({0: Fraction(1, 2), 1: Fraction(1, 2)})}
    mechanism = FiniteMechanism(wide.domain, laws)
    assert protection_loss(mechanism, wide).overall == Exact.of("1/2")
    assert protection_loss(mechanism.post_process(lambda n: 2 * int(str(n))), wide).overall == Exact.of(1)
    with pytest.raises(NotImplied, match="not immune"):
        post_process(wide.with_budget(Budget.loss(1)))
    coarse = Coarsened(base=Multiplicative(), groups=((0, 1),), reason="test")
    with pytest.raises(NotImplied, match="not immune"):
        post_process(pair_flavor(coarse).with_budget(Budget.epsilon(1)))


def test_r22_post_processing_may_read_only_what_the_multiverse_conditions_on() -> None:
    """Publishing c(x) beside the output has loss zero where c is constant on universes, else infinity."""
    free = by_part((2,), REPLACE)
    held = by_part((2,), REPLACE, (SIZES,))
    silent = FiniteMechanism.from_function(free.domain, lambda _: Distribution.point("nothing"))
    schema = free.domain.record_schema
    assert schema is not None
    reading = FiniteMechanism.exact_release(free.domain, lambda point: SIZES.of_records(point, schema))
    assert protection_loss(silent, free).overall == ZERO
    assert protection_loss(reading, free).overall == INFINITY
    assert protection_loss(reading, held).overall == ZERO
    with pytest.raises(NotImplied, match="on which the multiverse does not condition"):
        post_process(free, reads=[SIZES])
    with pytest.raises(NotImplied, match="on which the multiverse does not condition"):
        compose(free, free, reads=[SIZES])
    assert post_process(held, reads=[SIZES]) == held
    assert compose(free, free, under=held.flavor, reads=[SIZES]).multiverse == held.multiverse


def test_r22_reads_may_be_margins_of_an_invariant_and_nothing_finer() -> None:
    """On a domain that cannot be listed, aggregation decides: block counts give state counts, not ages."""
    schema = Schema.of(nesting=(("block", "state"),), block=None, state=None, age=None)
    domain = Domain(name="X", stage=Stage.DATABASE, record_schema=schema)
    specification = Specification(
        domain=domain,
        multiverse=from_invariants(Count(unit="person", by=("block",))),
        input_premetric=HammingUnordered(unit="person"),
        output_premetric=NormalisedRenyi(),
        budget=Budget.zcdp(rho_squared=1),
    )
    coarser = [
        Count(unit="person"),
        Count(unit="person", by=("state",)),
        Count(unit="person", where=(Condition(attribute="state", levels=("RI",)),)),
    ]
    assert post_process(specification, reads=coarser) == specification
    for finer in (
        Count(unit="person", by=("block", "age")),
        Count(unit="household", by=("block",)),
        Count(unit="person", where=(Condition(attribute="age", levels=(1,)),)),
    ):
        with pytest.raises(NotImplied):
            post_process(specification, reads=[finer])


@pytest.mark.parametrize("seed", range(20))
def test_a_pull_back_without_stability_keeps_every_loss_exactly(seed: int) -> None:
    """T after g has, in every universe g^-1(D), the loss that T has in D restricted to images of g."""
    random_ = random.Random(f"pull {seed}")
    flavor = drawn_flavor(random_, Multiplicative())
    mechanism = drawn_mechanism(random_, flavor.domain)
    specification = stated(mechanism, flavor, "epsilon")
    raw = Domain.finite([("raw", i) for i in range(5)], name="raw")
    onto = [*range(3), random_.randrange(3), random_.randrange(3)]
    images = tuple(zip(raw.enumerate(), onto, strict=True))
    pulled = pull_back(specification, raw, "coding", images=images)
    lookup = dict(images)
    after = FiniteMechanism.from_function(raw, lambda point: mechanism.laws[lookup[point]])
    assert protection_loss(after, pulled).by_universe == specification_losses(specification)
    assert satisfies(after, pulled).satisfied
    for universe, old in zip(pulled.universes(), specification.universes(), strict=True):
        assert universe == {point for point in raw.enumerate() if lookup[point] in old}
    assert "coding is deterministic" in pulled.assumptions


def specification_losses(specification: Specification) -> tuple[Exact, ...]:
    return tuple(specification.budget.linear(i) for i in range(len(specification.universes())))


@pytest.mark.parametrize("seed", range(20))
def test_a_pull_back_with_stability_multiplies_the_budget(seed: int) -> None:
    """Where d(g(r), g(r')) <= k d_raw(r, r') the raw guarantee has k times the budget."""
    random_ = random.Random(f"stability {seed}")
    flavor = drawn_flavor(random_, random_.choice((Multiplicative(), NormalisedRenyi())), lengths=(1, 2, 3))
    kind = "epsilon" if isinstance(flavor.output_premetric, Multiplicative) else "rho_squared"
    mechanism = drawn_mechanism(random_, flavor.domain)
    specification = stated(mechanism, flavor, kind)
    raw = Domain.finite([("raw", i) for i in range(4)], name="raw")
    lookup = {point: random_.randrange(3) for point in raw.enumerate()}
    table = [[0 if x == y else random_.choice((1, 2)) for y in range(4)] for x in range(4)]
    ground = Given(unit="respondent", points=raw.enumerate(), distances=table)
    inner = flavor.input_premetric.matrix(flavor.domain)
    pairs = [(x, y) for x in raw.enumerate() for y in raw.enumerate() if x != y]
    factor = max(
        inner[lookup[x]][lookup[y]].rounded_up() / ground.distance(x, y).rounded_up() for x, y in pairs
    )
    pulled = pull_back(
        specification, raw, "coding", premetric=ground, stability=factor, images=tuple(lookup.items())
    )
    after = FiniteMechanism.from_function(raw, lambda point: mechanism.laws[lookup[point]])
    assert_covers(pulled, after)
    scale = max(factor, Fraction(1))
    assert pulled.budget == specification.budget.scaled(scale)
    assert any("stability of coding" in text for text in pulled.assumptions)


def test_a_step_without_stability_carries_nothing_upstream() -> None:
    part = pair_flavor(Multiplicative()).with_budget(Budget.epsilon(1))
    raw = Domain.finite(("r", "s"), name="raw")
    ground = Given(unit="respondent", points=("r", "s"), distances=((0, 1), (1, 0)))
    pulled = pull_back(part, raw, "clipping", premetric=ground, stability="inf", images=(("r", 0), ("s", 1)))
    assert pulled.constrains_nothing
    with pytest.raises(InputError, match="raw premetric"):
        pull_back(part, raw, "clipping", stability=2, images=(("r", 0), ("s", 1)))
    with pytest.raises(StirredError):
        pull_back(part, raw, "clipping", images=(("r", 0),)).universes()


def test_a_group_of_approximate_units_gets_no_delta_below_one_that_is_not_proved() -> None:
    """(10, 1/1000)-DP between neighbours promises nothing for groups of three: the chain 0-1-2-3 shows it.

    P(S) is 0, 1/1000, 999/1000 and 1 along the chain: every step is (10, 1/1000), and the ends are told
    apart with certainty, so no delta below one holds at any epsilon.
    """
    delta = Approximate(delta=Exact.of("1/1000"))
    domain = Domain.finite(range(4))
    near = [[0 if x == y else 1 if abs(x - y) == 1 else "inf" for y in range(4)] for x in range(4)]
    chain = Specification(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=Given(unit="unit", points=range(4), distances=near),
        output_premetric=delta,
        budget=Budget.epsilon(10),
    )
    masses = [Fraction(0), Fraction(1, 1000), Fraction(999, 1000), Fraction(1)]
    mechanism = FiniteMechanism(
        domain, {x: Distribution({1: mass, 0: 1 - mass}) for x, mass in enumerate(masses)}
    )
    assert satisfies(mechanism, chain).satisfied
    far = [[0 if x == y else 1 if {x, y} == {0, 3} else "inf" for y in range(4)] for x in range(4)]
    group = Given(unit="three units", points=range(4), distances=far)
    try:
        claimed = change_unit(chain, group, 3, "a chain of three")
    except StirredError:
        return
    assert satisfies(mechanism, claimed).satisfied


def test_a_group_of_approximate_units_follows_the_rule_of_dwork_and_roth() -> None:
    near = Neighbours(relation="replace", unit="record")
    part = by_part((2,), near, output=Approximate(delta=Exact.of("1e-6")), budget=Budget.epsilon("ln(2)"))
    group = change_unit(part, Neighbours(relation="replace", unit="pair"), 2, "pairs")
    assert group.budget.amount == Exact.log(4)
    assert isinstance(group.output_premetric, Approximate)
    assert float(group.output_premetric.mass) == pytest.approx(3e-6, rel=1e-9)
    assert group.output_premetric.mass >= Fraction(3, 10**6)


def test_a_large_epsilon_does_not_overflow_the_group_rule() -> None:
    near = Neighbours(relation="replace", unit="record")
    part = by_part((2,), near, output=Approximate(delta=Exact.of("1e-6")), budget=Budget.epsilon(1000))
    try:
        group = change_unit(part, Neighbours(relation="replace", unit="pair"), 2, "pairs")
    except StirredError:
        return
    assert group.constrains_nothing
