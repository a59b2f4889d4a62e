"""From neighbours to distances, and changes of unit, by brute force that shares no code with ``spec``."""

import itertools
import random
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import pytest
from support import tiny_universes as tiny
from support.declarations import declared

from stirred.errors import NotImplied
from stirred.spec import (
    INFINITY,
    ZERO,
    Budget,
    Condition,
    Count,
    Domain,
    FiniteMechanism,
    Flavor,
    Hamming,
    HammingUnordered,
    Maximum,
    Multiplicative,
    Neighbours,
    Schema,
    Specification,
    Stage,
    Sum,
    SymmetricDifference,
    Threshold,
    Trivial,
    change_unit,
    compose,
    from_invariants,
    margins,
    meet,
    protection_loss,
    pull_back,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.calculus.lifting import lifts

NEAR = Neighbours(relation="replace", unit="record")
FAR = HammingUnordered(unit="record")
TWO = Schema.of(a=(0, 1), b=(0, 1))


def flavor(
    schema: Schema | None,
    invariants: Iterable[Any] = (),
    premetric: object = NEAR,
    sizes: Iterable[int] | None = None,
    structure: str = "multiset",
) -> Flavor:
    """Listed where sizes are given, otherwise all data sets over the schema."""
    invariants = tuple(invariants)
    fields = {"name": "X", "stage": Stage.DATABASE, "structure": structure, "record_schema": schema}
    return Flavor(
        domain=Domain(**fields, sizes=None if sizes is None else tuple(sizes)),
        multiverse=from_invariants(*invariants) if invariants else Trivial(),
        input_premetric=premetric,
        output_premetric=Multiplicative(),
    )


MARGINS = margins("record", ("a",), ("b",))


@pytest.mark.parametrize("sizes", [None, (2,)])
def test_two_margins_turn_a_promise_between_neighbours_into_nothing(sizes: tuple[int, ...] | None) -> None:
    """Two binary attributes, two records: the identity loses 0 between neighbours, infinity under d_HamS."""
    near = flavor(TWO, MARGINS, sizes=sizes).with_budget(Budget.epsilon(0))
    far = flavor(TWO, MARGINS, FAR, sizes=(2,))
    telling = FiniteMechanism.exact_release(far.domain, lambda point: point)
    assert protection_loss(telling, flavor(TWO, MARGINS, sizes=(2,))).overall == ZERO
    assert protection_loss(telling, far).overall == INFINITY
    with pytest.raises(NotImplied, match="neighbours only"):
        change_unit(near, FAR, 1, "each change is a chain of replacements")
    with pytest.raises(NotImplied, match="neighbours only"):
        change_unit(near, HammingUnordered(unit="person"), 2, "at most two records a person")
    with pytest.raises(NotImplied, match="neighbours only"):
        change_unit(near, Neighbours(relation="replace", unit="person"), 2, "at most two records a person")
    raw = Domain(name="raw", stage=Stage.RAW_RESPONSES)
    with pytest.raises(NotImplied, match="neighbours only"):
        pull_back(near, raw, "edit", premetric=HammingUnordered(unit="person"), stability=1)


def test_a_promise_between_neighbours_is_lifted_where_chains_exist() -> None:
    """No invariants, one table, nested tables, a count with a condition."""
    men = Condition(attribute="b", levels=(0,))
    nested = margins("record", ("a", "b"), ("a",), ())
    for invariants in ((), MARGINS[:1], nested, (Count(unit="record", where=(men,)),)):
        assert lifts(flavor(TWO, invariants))
        assert lifts(flavor(TWO, invariants, sizes=(2, 3)))
        near = flavor(TWO, invariants).with_budget(Budget.epsilon(1))
        assert change_unit(near, FAR, 1, "chains").budget == near.budget
        assert change_unit(near, HammingUnordered(unit="person"), 2, "pairs").budget == Budget.epsilon(2)
        far = flavor(TWO, invariants, FAR)
        assert compose(near, near, under=far).budget == Budget.epsilon(2)
    assert lifts(flavor(None))


def test_crossed_margins_and_sums_of_three_levels_are_not_lifted() -> None:
    """{0, 2} and {1, 1} have one sum and no neighbours; a sum of two levels counts them."""
    three, two = Schema.of(w=(0, 1, 2)), Schema.of(w=(3, 7))
    weights = (Sum(attribute="w", unit="record"),)
    for sizes in (None, (2,)):
        assert not lifts(flavor(TWO, MARGINS, sizes=sizes))
        assert not lifts(flavor(three, weights, sizes=sizes))
        assert lifts(flavor(two, weights, sizes=sizes))
    assert not lifts(flavor(Schema.of(w=None), weights))
    far = flavor(TWO, MARGINS, FAR)
    with pytest.raises(NotImplied, match="distances are not known"):
        compose(flavor(TWO, MARGINS).with_budget(Budget.epsilon(1)), under=far)


def test_the_meet_of_neighbours_and_a_distance_stays_between_neighbours() -> None:
    near, far = flavor(TWO, MARGINS), flavor(TWO, MARGINS, FAR)
    assert meet(near, far).input_premetric == meet(far, near).input_premetric == NEAR


def test_thresholds_and_other_units_are_not_lifted() -> None:
    one = Threshold(statistic=Count(unit="record", by=("a",)), at_least=1)
    assert not lifts(flavor(TWO, (one,)))
    assert not lifts(flavor(TWO, (Count(unit="household", by=("a",)),)))
    assert lifts(flavor(TWO, (one, Count(unit="record", by=("a",)))))


def test_additions_and_replacements_in_place_are_lifted_without_invariants_only() -> None:
    added = Neighbours(relation="add-remove", unit="record")
    placed = Neighbours(relation="replace-ordered", unit="record")
    assert lifts(flavor(TWO, (), added))
    assert not lifts(flavor(TWO, (Count(unit="record"),), added))
    assert not lifts(flavor(TWO, (), added, sizes=(2,)))
    assert lifts(flavor(TWO, (), placed, structure="vector"))
    assert not lifts(flavor(TWO, MARGINS[:1], placed, structure="vector"))
    assert not lifts(flavor(TWO, MARGINS[:1], placed, sizes=(2,), structure="vector"))
    assert not lifts(flavor(TWO, (), NEAR, structure="vector"))


def test_a_domain_of_listed_points_is_searched_for_chains() -> None:
    """{00, 11}: no replacement leads from one to the other."""
    points = (((0,), (0,)), ((1,), (1,)))
    domain = Domain.finite(points, structure="multiset", record_schema=Schema.of(w=(0, 1)))
    gap = Flavor(**dict(flavor(None)) | {"domain": domain})
    assert not lifts(gap)
    with pytest.raises(NotImplied):
        change_unit(gap.with_budget(Budget.epsilon(1)), FAR, 2, "two replacements")


# Stated factors and stabilities on domains that refute them


def table(rows: list[list[object]], unit: str = "unit") -> Given:
    return Given(unit=unit, points=range(len(rows)), distances=rows)


def on_points(premetric: object, parts: Iterable[Iterable[int]] | None = None) -> Specification:
    return Specification(
        domain=Domain.finite(range(3)),
        multiverse=Trivial() if parts is None else Explicit(parts=parts),
        input_premetric=premetric,
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )


def test_a_finite_domain_refutes_a_factor_that_is_too_small() -> None:
    old = table([[0, 3, 1], [3, 0, 1], [1, 1, 0]])
    new = table([[0, 1, 1], [1, 0, 1], [1, 1, 0]], "person")
    with pytest.raises(NotImplied, match="too small"):
        change_unit(on_points(old), new, 2, "at most two")
    assert change_unit(on_points(old), new, 3, "at most three").budget == Budget.epsilon(3)
    apart = on_points(old, ((0, 2), (1, 2)))
    assert change_unit(apart, new, 1, "the far pair shares no universe").budget == Budget.epsilon(1)


def test_a_finite_domain_refutes_d_hams_for_data_sets_of_several_sizes() -> None:
    """One record added: d_SymDiff is 1, d_HamS infinite; no factor carries the promise over."""
    added = SymmetricDifference(unit="record")
    listed = flavor(TWO, (), FAR, sizes=(1, 2)).with_budget(Budget.epsilon(1))
    with pytest.raises(NotImplied, match="too small"):
        change_unit(listed, added, 100, "wishful")
    one_size = flavor(TWO, (), FAR, sizes=(2,)).with_budget(Budget.epsilon(1))
    assert change_unit(one_size, added, 1, "half of it").budget == Budget.epsilon(1)


def test_listed_images_refute_a_stability_that_is_too_small() -> None:
    old = table([[0, 3, 1], [3, 0, 1], [1, 1, 0]])
    raw = Domain.finite(("r", "s"), name="raw")
    ground = Given(unit="respondent", points=("r", "s"), distances=((0, 1), (1, 0)))
    images = (("r", 0), ("s", 1))
    with pytest.raises(NotImplied, match="too small"):
        pull_back(on_points(old), raw, "edit", premetric=ground, stability=2, images=images)
    pulled = pull_back(on_points(old), raw, "edit", premetric=ground, stability=3, images=images)
    assert pulled.budget == Budget.epsilon(3)


def test_stability_of_neighbours_counts_the_chain_after_the_step() -> None:
    chain = table([[0, "inf", 1], ["inf", 0, 1], [1, 1, 0]])
    raw = Domain.finite(("r", "s"), name="raw")
    ground = Given(unit="respondent", points=("r", "s"), distances=((0, 1), (1, 0)))
    images = (("r", 0), ("s", 1))
    fields: dict[str, Any] = {"premetric": ground, "images": images}
    assert pull_back(on_points(chain), raw, "edit", stability=2, **fields).budget == Budget.epsilon(2)
    with pytest.raises(NotImplied, match="too small"):
        pull_back(on_points(chain), raw, "edit", stability=1, **fields)
    cut = on_points(chain, ((0, 1), (2,)))
    with pytest.raises(NotImplied, match="too small"):
        pull_back(cut, raw, "edit", stability=2, **fields)


def test_chains_through_universes_of_different_budgets_are_refused() -> None:
    chain = table([[0, "inf", 1], ["inf", 0, 1], [1, 1, 0]])
    every = table([[0, 2, 1], [2, 0, 1], [1, 1, 0]])
    meeting = Specification(
        **dict(on_points(chain, ((0, 1, 2), (0, 2)))) | {"budget": Budget.by_universe("epsilon", (9, 1))}
    )
    with pytest.raises(NotImplied, match="neighbours only"):
        change_unit(meeting, every, 1, "chains")
    assert change_unit(on_points(chain, ((0, 1, 2), (0, 2))), every, 1, "chains").budget == Budget.epsilon(1)


def test_a_promise_between_neighbours_may_become_one_between_neighbours_of_another_unit() -> None:
    """With factor one no chain is needed: one unit of the new kind changes one of the old."""
    near = flavor(TWO, MARGINS).with_budget(Budget.epsilon(1))
    other = Neighbours(relation="replace", unit="person")
    assert change_unit(near, other, 1, "one record a person").budget == Budget.epsilon(1)


def test_a_maximum_that_holds_neighbours_is_not_restated_for_distances() -> None:
    """Beyond neighbours it is infinite, so no factor bounds it; neither listed nor not."""
    mixed = Maximum(parts=(NEAR, HammingUnordered(unit="record")))
    for sizes in (None, (2,)):
        held = flavor(TWO, (), mixed, sizes=sizes).with_budget(Budget.epsilon(1))
        with pytest.raises(NotImplied, match="neighbours only"):
            change_unit(held, FAR, 5, "wishful")


# Exchanges under two margins (rule 2.3)


def test_exchanges_per_distance_where_all_records_differ() -> None:
    """A cycle of all n records needs n - 1 exchanges at distance n: 1/2, 2/3, 3/4, 4/5."""
    for size, expected in zip(
        range(2, 6), (Fraction(1, 2), Fraction(2, 3), Fraction(3, 4), Fraction(4, 5)), strict=True
    ):
        universe = [tuple(enumerate(p)) for p in itertools.permutations(range(size))]
        lengths = tiny.chains(universe, lambda x, y: tiny.removed_and_added(x, y) == (2, 2))
        start = universe[0]
        ratios = [Fraction(int(lengths[start, y]), int(tiny.hamming(start, y))) for y in universe[1:]]
        assert max(ratios) == expected


def test_exchanges_are_half_the_distance_where_an_attribute_has_two_values() -> None:
    for shape in ([0, 0, 1, 1], [0, 1, 1, 1], [0, 0, 0, 1, 1]):
        rows = {tuple(sorted(zip(shape, p, strict=True))) for p in itertools.permutations(range(len(shape)))}
        lengths = tiny.chains(sorted(rows), lambda x, y: tiny.removed_and_added(x, y) == (2, 2))
        assert all(2 * lengths[x, y] == tiny.hamming(x, y) for x, y in itertools.combinations(rows, 2))


# Rule 2.2 on random additive invariants


def check_the_rule(seed: int) -> bool:
    """What is lifted has chains as long as d_HamS in tiny universes; on listed domains the reverse too."""
    random_ = random.Random(f"lifting {seed}")
    levels: list[tuple[Any, ...]] = random_.choice(
        ([(0, 1), (0, 1)], [(0, 1, 2)], [(1, 2, 4)], [(0, 1), ("f", "m")], [(0, 1, 3), ("f", "m")])
    )
    names = ("a", "b")[: len(levels)]
    schema = Schema.of(**dict(zip(names, levels, strict=True)))
    statistics = [tiny.drawn_statistic(random_, levels, None) for _ in range(random_.choice((1, 1, 2, 3)))]
    invariants = [declared(s, names) for s in statistics]
    largest = 4 if len(list(itertools.product(*levels))) < 5 else 3
    joined = all(
        lengths == tiny.hamming(x, y) or tiny.hamming(x, y) == tiny.INFINITE
        for universe in tiny.universes(tiny.data_sets(levels, range(largest + 1)), statistics)
        for (x, y), lengths in tiny.chains(universe, tiny.replaced).items()
    )
    claimed = lifts(flavor(schema, invariants))
    assert joined or not claimed
    if seed % 10 == 0:
        sizes = (1, 2)
        exact = all(
            lengths == tiny.hamming(x, y) or tiny.hamming(x, y) == tiny.INFINITE
            for universe in tiny.universes(tiny.data_sets(levels, sizes), statistics)
            for (x, y), lengths in tiny.chains(universe, tiny.replaced).items()
        )
        assert lifts(flavor(schema, invariants, sizes=sizes)) == exact
    return claimed


def test_rule_2_on_random_additive_invariants() -> None:
    claims = sum(check_the_rule(seed) for seed in range(200))
    assert 40 < claims < 160


@pytest.mark.slow
def test_rule_2_on_two_thousand_random_additive_invariants() -> None:
    for seed in range(200, 2200):
        check_the_rule(seed)


def test_the_sharpened_distance_of_ordered_records_is_not_d_hams() -> None:
    assert Neighbours(relation="replace-ordered", unit="record").sharpened == Hamming(unit="record")
