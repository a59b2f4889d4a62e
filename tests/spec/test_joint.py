"""Several releases of one data set in one flavor: numbers, orders, refusals, and joint laws enumerated."""

import itertools
import math
import random
from fractions import Fraction
from importlib import resources
from typing import Any

import pytest
import yaml

from stirred.errors import InputError, NotImplied
from stirred.spec import (
    Approximate,
    Budget,
    Count,
    Domain,
    Exact,
    GaussianTradeOff,
    HammingUnordered,
    InUnit,
    Maximum,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Renyi,
    Specification,
    Trivial,
    catalogue,
    change_unit,
    compose,
    convert,
    from_invariants,
    jointly,
    least_distance,
    restate,
    swapping_invariants,
)
from stirred.spec.blocks.input_premetric import DescribedPremetric, Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.blocks.output_premetric import KullbackLeibler
from stirred.spec.blocks.psa import swapping_budget

HOUSEHOLD, PERSON = HammingUnordered(unit="household"), HammingUnordered(unit="person")
MOVES = InUnit(PERSON, 2, "a person who moves changes two household records")
READ = ("state", "county", "household_size", "household_characteristics")


def with_budget(specification: Specification, budget: Budget) -> Specification:
    return Specification(**dict(specification) | {"budget": budget})


def swap(epsilon: object = "19.36") -> Specification:
    return with_budget(catalogue.specification("psa-2020-county"), Budget.epsilon(epsilon))


def topdown(rho_squared: object = "2.63") -> Specification:
    return with_budget(catalogue.specification("tda-dhc"), Budget.zcdp(rho_squared=rho_squared))


def test_6_2_swap_and_topdown_together_have_12_31_and_not_190_03() -> None:
    """Converted before the meet, in universes that start at two."""
    concentrated = convert(swap(), "zcdp", attributes=READ).specification
    joint = jointly(concentrated, topdown())
    assert joint.budget.amount.rounded(2) == "12.31"
    assert joint.budget.parametrisation == "rho_squared"
    assert joint.input_premetric == Maximum(parts=(HOUSEHOLD, PERSON))
    kept = (*swap().multiverse.invariants, *topdown().multiverse.invariants)  # type: ignore[union-attr]
    assert set(joint.multiverse.invariants) == set(kept)  # type: ignore[union-attr]
    loose = DescribedPremetric(name="d", unit="household", meaning="a distance that may be small")
    plain = convert(Specification(**dict(swap()) | {"input_premetric": loose}), "zcdp").specification
    assert (plain.budget.amount + Exact.of("2.63")).rounded(2) == "190.03"


def test_the_catalogue_alone_starts_at_one_since_its_domain_has_blocks() -> None:
    """A household may change its block inside the county: nothing that swapping keeps exact sees it."""
    assert jointly(swap(), topdown()).budget.amount.rounded(2) == "21.99"


@pytest.mark.parametrize("epsilon", ["1/2", "2", "19.36"])
def test_the_factor_of_a_change_of_unit_and_the_least_distance(epsilon: str) -> None:
    """Converted first: 4 times (epsilon/2) tanh(epsilon). Changed first: 2 epsilon at d0 = 1. The same."""
    value = float(Fraction(epsilon))
    concentrated = convert(swap(epsilon), "zcdp", attributes=READ).specification
    first = change_unit(concentrated, *MOVES)
    last = convert(change_unit(swap(epsilon), *MOVES), "zcdp").specification
    for found in (first, last):
        assert float(found.budget.amount) == pytest.approx(2 * value * math.tanh(value))
    joint = jointly(concentrated, topdown(), units=[MOVES, None])
    assert float(joint.budget.amount) == pytest.approx(2 * value * math.tanh(value) + 2.63)
    assert joint.input_premetric == PERSON
    assert any("a person who moves" in assumption for assumption in joint.assumptions)


@pytest.mark.parametrize(("factor", "effective"), [(1, 2), (2, 2), (3, 3), ("7/2", "7/2")])
def test_the_smaller_of_both_orders_is_taken(factor: object, effective: object) -> None:
    """k^2 epsilon tanh(epsilon m/2)/m with m the larger of the old least distance and k times the new."""
    release = swap(1)
    k, m = (float(Fraction(str(value))) for value in (factor, effective))
    flavor = Specification(**dict(topdown()) | {"multiverse": release.multiverse}).flavor
    found = restate(release, flavor, factor=factor, because="as stated", attributes=READ)
    assert float(found.budget.amount) == pytest.approx(k**2 * math.tanh(m / 2) / m)
    assert found.flavor == flavor


def example(name: str) -> Any:
    text = (resources.files("stirred.casebook") / "examples" / f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


def shipped() -> tuple[Specification, Specification, tuple[str, ...]]:
    """The guarantees of both plans of the county, as their mechanisms state them."""
    plan = example("swap")
    domain = Domain.read(plan["domain"])
    assert domain == Domain.read(example("topdown")["domain"])
    roles = [tuple(plan["mechanism"][role]) for role in ("match", "swap", "hold")]
    swapped = Specification(
        domain=domain,
        multiverse=swapping_invariants("household", *roles),
        input_premetric=HOUSEHOLD,
        output_premetric=Multiplicative(),
        budget=swapping_budget(4_200, plan["mechanism"]["rate"], "household", plan["mechanism"]["match"]),
        standing="proved",
    )
    quarters = Count(unit="occupied_group_quarters", by=("block", "group_quarters_type"))
    measured = Specification(
        domain=domain,
        multiverse=from_invariants(
            Count(unit="person", by=("state",)),
            Count(unit="housing_unit", by=("block",)),
            quarters,
            label="c_TDA",
        ),
        input_premetric=PERSON,
        output_premetric=NormalisedRenyi(),
        budget=Budget.zcdp(rho_squared="2.63"),
        standing="proved",
    )
    return swapped, measured, tuple(itertools.chain(*roles))


def test_the_shipped_plans_have_one_guarantee_together() -> None:
    """Swapped households and measured persons of X_county, under the union of their invariants."""
    swapped, measured, read = shipped()
    epsilon = float(swapped.budget.amount)
    assert least_distance(swapped) == Exact.of(1), "the domain also holds attributes of persons and quarters"
    assert least_distance(swapped, read) == Exact.of(2)
    concentrated = convert(swapped, "zcdp", attributes=read).specification
    joint = jointly(concentrated, measured, units=[MOVES, None])
    assert float(joint.budget.amount) == pytest.approx(2 * epsilon * math.tanh(epsilon) + 2.63)
    assert joint.standing == "proved"
    invariants = joint.multiverse.invariants  # type: ignore[union-attr]
    assert len(invariants) == 5 and joint.input_premetric == PERSON
    told = " ".join(joint.assumptions)
    assert "nothing but county, size, tract" in told
    assert "a person who moves" in told and "independent" in told
    apart = jointly(swapped, measured)
    assert float(apart.budget.amount) == pytest.approx(epsilon * math.tanh(epsilon / 2) + 2.63)


def test_a_pure_release_is_stated_in_the_flavor_of_a_zcdp_account() -> None:
    """What a ledger needs: the flavor of the joint guarantee, to which both releases are charged."""
    swapped, measured, read = shipped()
    concentrated = convert(swapped, "zcdp", attributes=read).specification
    account = jointly(concentrated, measured, units=[MOVES, None])
    charged = restate(swapped, account.flavor, factor=2, because=MOVES.because, attributes=read)
    rest = restate(measured, account.flavor)
    assert charged.flavor == rest.flavor == account.flavor
    assert charged.budget.amount + rest.budget.amount == account.budget.amount
    assert set(charged.assumptions) | set(rest.assumptions) == set(account.assumptions)
    again = restate(charged, account.flavor)
    assert again == charged, "restated already: nothing changes, and assumptions are said once"


def test_restating_says_why_not() -> None:
    swapped, measured, _ = shipped()
    account = jointly(swapped, measured).flavor
    with pytest.raises(NotImplied, match="does not carry over"):
        restate(swapped, measured.flavor)
    with pytest.raises(NotImplied, match="is not restated"):
        restate(measured, swapped.flavor)
    with pytest.raises(InputError, match="factor and its reason"):
        restate(swapped, account, factor=2)
    with pytest.raises(InputError, match="changes of unit do not match"):
        jointly(swapped, measured, units=[None])
    with pytest.raises(InputError, match="nothing to compose"):
        jointly()


def on_pair(output: Any, budget: Budget, near: bool = True) -> Specification:
    distance = 1 if near else 2
    return Specification(
        domain=Domain.finite((0, 1)),
        multiverse=Trivial(),
        input_premetric=Given(unit="unit", points=(0, 1), distances=((0, distance), (distance, 0))),
        output_premetric=output,
        budget=budget,
        assumptions=(f"measured by {output.symbol}",),
    )


PURE = on_pair(Multiplicative(), Budget.epsilon(2))


@pytest.mark.parametrize(
    ("other", "amount"),
    [
        (PURE, 4.0),
        (on_pair(NormalisedRenyi(), Budget.zcdp(rho_squared=1)), 1 + 2 * math.tanh(1)),
        (on_pair(Renyi(alpha=Exact.of(3)), Budget.epsilon("1/2")), 2.5),
        (on_pair(Approximate(delta=Exact.of("1/100")), Budget.epsilon(1)), 3.0),
    ],
)
def test_pure_dp_follows_the_other_output_premetric(other: Specification, amount: float) -> None:
    for parts in ((PURE, other), (other, PURE)):
        joint = jointly(*parts)
        assert joint.output_premetric == other.output_premetric, (
            "approximate DP keeps its delta: pure has none"
        )
        assert float(joint.budget.amount) == pytest.approx(amount)
        assert {*PURE.assumptions, *other.assumptions} <= set(joint.assumptions)


def test_pure_dp_becomes_gaussian_between_neighbours_only() -> None:
    gaussian = on_pair(GaussianTradeOff(), Budget.gdp(mu=1))
    joint = jointly(PURE, gaussian)
    mu = float(convert(PURE, "gdp").specification.budget.amount)
    assert float(joint.budget.amount) == pytest.approx(math.hypot(mu, 1))
    far = on_pair(Multiplicative(), Budget.epsilon(2), near=False)
    with pytest.raises(NotImplied, match="between neighbours only"):
        jointly(far, on_pair(GaussianTradeOff(), Budget.gdp(mu=1), near=False))


def test_measures_without_an_edge_are_refused_with_what_to_convert() -> None:
    concentrated = on_pair(NormalisedRenyi(), Budget.zcdp(rho_squared=1))
    approximate = on_pair(Approximate(delta=Exact.of("1/100")), Budget.epsilon(1))
    gaussian = on_pair(GaussianTradeOff(), Budget.gdp(mu=1))
    for parts in ((concentrated, approximate), (PURE, gaussian, concentrated), (gaussian, approximate)):
        with pytest.raises(NotImplied, match="do not compose") as refused:
            jointly(*parts)
        assert "convert" in refused.value.hint.lower()
    divergence = on_pair(KullbackLeibler(), Budget.loss(1))
    with pytest.raises(NotImplied, match="is not restated"):
        jointly(PURE, divergence)
    with pytest.raises(NotImplied, match="is not restated"):
        restate(concentrated, approximate.flavor)


def test_two_approximate_releases_add_their_deltas_and_pure_adds_none() -> None:
    parts = [on_pair(Approximate(delta=Exact.of(d)), Budget.epsilon(1)) for d in ("1/100", "1/50")]
    joint = jointly(PURE, *parts)
    assert joint.output_premetric == Approximate(delta=Exact.of("3/100"))
    assert joint.budget.amount == Exact.of(4)


def test_converting_a_unit_to_neighbours_uses_the_order_that_is_possible() -> None:
    """Pure to Gaussian DP holds between neighbours: only after the change of unit, or only before it."""
    near = Neighbours(relation="replace", unit="person")
    far = Specification(
        domain=Domain(name="X", stage="database"),
        multiverse=Trivial(),
        input_premetric=PERSON,
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )
    flavor = Specification(
        **dict(far)
        | {"input_premetric": near, "output_premetric": GaussianTradeOff(), "budget": Budget.gdp(mu=1)}
    ).flavor
    found = restate(far, flavor, factor=1, because="neighbours are at distance one")
    assert found.budget.amount.rounded(4) == "1.2320"


def normalised_renyi(p: list[float], q: list[float]) -> float:
    """Largest D_alpha / alpha on a grid of orders, from the definition."""
    losses = [(a, math.log(a / b)) for a, b in zip(p, q, strict=True)]
    top = max(loss for _, loss in losses)
    worst = 0.0
    for order in (1 + 10 ** (k / 5) for k in range(-20, 11)):
        moment = math.fsum(a * math.expm1((order - 1) * (loss - top)) for a, loss in losses)
        worst = max(worst, (top + math.log1p(moment) / (order - 1)) / order)
    return worst


@pytest.mark.parametrize("seed", range(60))
def test_the_joint_guarantee_holds_for_random_mechanisms(seed: int) -> None:
    """A pure and a concentrated mechanism with their own universes and distances, and their product law."""
    random_ = random.Random(f"joint {seed}")
    points, lengths = range(4), (Fraction(1, 2), Fraction(1), Fraction(2), Fraction(3))

    def distances() -> list[list[Fraction]]:
        return [[Fraction(0) if x == y else random_.choice(lengths) for y in points] for x in points]

    def universes() -> list[list[int]]:
        return random_.choice(([[0, 1, 2, 3]], [[0, 1], [2, 3]], [[0, 1, 2], [2, 3]]))

    def law() -> list[float]:
        weights = [random_.choice((1, 2, 3, 5, 9)) for _ in range(3)]
        return [w / sum(weights) for w in weights]

    d1, d2, u1, u2 = distances(), distances(), universes(), universes()
    first, second = ([law() for _ in points] for _ in range(2))

    def pairs(parts: list[list[int]]) -> set[tuple[int, int]]:
        return {pair for part in parts for pair in itertools.permutations(part, 2)}

    losses = [
        max(abs(math.log(a / b)) for a, b in zip(first[x], first[y], strict=True)) / float(d1[x][y])
        for x, y in pairs(u1)
    ]
    squares = [normalised_renyi(second[x], second[y]) / float(d2[x][y]) ** 2 for x, y in pairs(u2)]

    def stated(d: Any, parts: Any, output: Any, budget: Budget) -> Specification:
        return Specification(
            domain=Domain.finite(points),
            multiverse=Explicit(parts=parts),
            input_premetric=Given(unit="unit", points=points, distances=d),
            output_premetric=output,
            budget=budget,
        )

    pure = stated(d1, u1, Multiplicative(), Budget.epsilon(Exact.computed(max(losses))))
    rho_squared = Exact.computed(max(squares) * (1 + 1e-3))
    concentrated = stated(d2, u2, NormalisedRenyi(), Budget.zcdp(rho_squared=rho_squared))
    total = float(jointly(pure, concentrated).budget.amount)
    for x, y in pairs(u1) & pairs(u2):
        product = [[a * b for a in first[z] for b in second[z]] for z in (x, y)]
        larger = float(max(d1[x][y], d2[x][y]))
        assert normalised_renyi(*product) <= total * larger**2 * (1 + 1e-6)


def test_jointly_of_one_currency_is_composition() -> None:
    parts = (topdown("2.63"), catalogue.specification("safetab-p"))
    assert jointly(*parts) == compose(*parts, order="adaptive")
