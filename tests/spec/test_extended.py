"""Acceptance test 1: every entry of the extended-real arithmetic, and no NaN anywhere."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import amounts, distances, reproducibly

from stirred.errors import NotComputable
from stirred.spec import (
    INFINITY,
    ZERO,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Flavor,
    Multiplicative,
    least_budget,
    protection_loss,
)
from stirred.spec.arithmetic.extended import budget_bound, infimum, mass_ratio, product, supremum
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.finite.divergence import approximate, multiplicative

ONE, TWO = Exact.of(1), Exact.of(2)


@st.composite
def surds(draw: st.DrawFn) -> Exact:
    return Exact.sqrt(draw(st.fractions(min_value="1/9", max_value=20, max_denominator=9)))


@pytest.mark.parametrize(
    ("budget", "distance", "bound"),
    [
        (ZERO, INFINITY, INFINITY),
        (INFINITY, ZERO, INFINITY),
        (INFINITY, INFINITY, INFINITY),
        (INFINITY, TWO, INFINITY),
        (TWO, INFINITY, INFINITY),
        (ZERO, ZERO, ZERO),
        (ZERO, TWO, ZERO),
        (TWO, ZERO, ZERO),
        (Exact.log(3), TWO, Exact.log(9)),
        (Exact.sqrt(2), Exact.sqrt(8), Exact.of(4)),
        (Exact.of("1/3"), Exact.log(8), Exact.log(2)),
    ],
)
def test_remark_2_4_6_budget_times_distance(budget: Exact, distance: Exact, bound: Exact) -> None:
    assert budget_bound(budget, distance) == bound


@pytest.mark.parametrize(
    ("divergence", "distance", "ratio"),
    [
        (INFINITY, INFINITY, ZERO),
        (ONE, INFINITY, ZERO),
        (ZERO, INFINITY, ZERO),
        (ZERO, ZERO, ZERO),
        (ZERO, ONE, ZERO),
        (ONE, ZERO, INFINITY),
        (INFINITY, ZERO, INFINITY),
        (INFINITY, ONE, INFINITY),
        (Exact.log(9), TWO, Exact.log(3)),
        (Exact.sqrt(8), Exact.sqrt(2), TWO),
    ],
)
def test_least_budget_of_a_pair(divergence: Exact, distance: Exact, ratio: Exact) -> None:
    assert least_budget(divergence, distance) == ratio


def test_infimum_of_nothing_is_infinite_and_supremum_of_nothing_zero() -> None:
    assert infimum([]) == INFINITY
    assert supremum([]) == ZERO
    assert infimum(iter([TWO, INFINITY, ONE])) == ONE
    assert supremum(iter([TWO, ZERO, ONE])) == TWO


def test_ratio_of_two_empty_masses_is_one() -> None:
    assert mass_ratio(Fraction(0), Fraction(0)) == 1
    assert mass_ratio(Fraction(1, 2), Fraction(0)) is None
    assert mass_ratio(Fraction(0), Fraction(1, 2)) == 0
    assert mass_ratio(Fraction(1, 2), Fraction(1, 3)) == Fraction(3, 2)


def test_outcomes_without_mass_under_both_laws_are_ignored() -> None:
    p = Distribution({"a": "1/2", "b": "1/2", "never": 0})
    q = Distribution({"a": "1/3", "b": "2/3", "nor": 0})
    assert multiplicative(p, q) == Exact.log("3/2")
    assert approximate(p, q, Fraction(0)) == Exact.log("3/2")
    assert approximate(p, q, Fraction(9, 10)) == ZERO


def test_singleton_and_empty_universes_have_loss_zero() -> None:
    domain = Domain.finite([0, 1])
    table = Given(unit="record", points=(0, 1), distances=((ZERO, ONE), (ONE, ZERO)))
    flavor = Flavor(
        domain=domain,
        multiverse=Explicit(parts=((), (0,), (0, 1))),
        input_premetric=table,
        output_premetric=Multiplicative(),
    )
    release = FiniteMechanism.exact_release(domain, lambda point: point)
    assert protection_loss(release, flavor).by_universe == (ZERO, ZERO, INFINITY)


@reproducibly(150)
@given(amounts(), distances())
def test_least_budget_and_bound_are_adjoint(amount: Exact, distance: Exact) -> None:
    """The least budget with D <= budget * d: it suffices, and every budget that suffices is not below."""
    divergence = amount
    least = least_budget(divergence, distance)
    assert budget_bound(least, distance) >= divergence
    if not least.is_zero and not least.is_infinite:
        assert budget_bound(least * Fraction(7, 8), distance) < divergence
    for other in (ZERO, ONE, Exact.log(5), INFINITY):
        assert (budget_bound(other, distance) >= divergence) == (other >= least)


@reproducibly(60)
@given(st.one_of(amounts(), surds()), surds())
def test_least_budget_suffices_at_irrational_distances(divergence: Exact, distance: Exact) -> None:
    least = least_budget(divergence, distance)
    assert budget_bound(least, distance) >= divergence


@reproducibly(150)
@given(st.one_of(amounts(), surds()), st.one_of(distances(), surds()))
def test_no_operation_yields_nan(first: Exact, second: Exact) -> None:
    results = [least_budget(first, second), first + second, infimum([first, second])]
    results.append(supremum([first, second]))
    try:
        results.append(budget_bound(first, second))
    except NotComputable:
        assert first.rational is None and second.rational is None
    for result in results:
        assert isinstance(result, Exact)
        assert not math.isnan(float(result))
        assert not math.isnan(result.float_up())
        assert result >= ZERO
        assert result == result


def test_products_without_an_exact_form_are_refused() -> None:
    for left, right in [
        (Exact.log(2), Exact.log(3)),
        (Exact.log(2), Exact.sqrt(2)),
        (Exact.sqrt(2) + Exact.sqrt(3), Exact.sqrt(2)),
    ]:
        with pytest.raises(NotComputable):
            product(left, right)
