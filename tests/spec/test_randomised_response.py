"""Acceptance test 8: randomised response protects a known order of records, not an unordered set."""

import itertools
from fractions import Fraction
from typing import Any

import pytest

from stirred.spec import (
    INFINITY,
    Domain,
    Exact,
    FiniteMechanism,
    Flavor,
    Hamming,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Schema,
    Sharpened,
    Trivial,
    protection_loss,
)
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.finite.mechanism import randomised_response

BITS = Schema.of(bit=(0, 1))
ANSWERS = ((0,), (1,))
FACTORS = {1: 1, 2: 1, 3: 3, 4: 3, 5: 5, 6: 5}


def vectors(*sizes: int) -> Domain:
    return Domain.datasets(BITS, sizes, structure="vector")


def loss(domain: Domain, premetric: Any, truth: Fraction = Fraction(3, 4), **blocks: Any) -> Exact:
    flavor = Flavor(
        domain=domain,
        multiverse=blocks.get("multiverse", Trivial()),
        input_premetric=premetric,
        output_premetric=blocks.get("output", Multiplicative()),
    )
    return protection_loss(randomised_response(domain, truth, ANSWERS), flavor).overall


@pytest.mark.parametrize("n", sorted(FACTORS))
def test_unordered_neighbours_cost_an_odd_multiple(n: int) -> None:
    """Replace one record and shuffle: up to n coordinates differ, and always an odd number of them."""
    found = loss(vectors(n), Neighbours(relation="replace", unit="record"))
    assert found == Exact.log(3) * FACTORS[n]
    assert FACTORS[n] == (n if n % 2 else n - 1)


@pytest.mark.parametrize("n", range(1, 6))
def test_ordered_neighbours_cost_one_coin(n: int) -> None:
    domain = vectors(n)
    assert loss(domain, Neighbours(relation="replace-ordered", unit="record")) == Exact.log(3)
    assert loss(domain, Hamming(unit="record")) == Exact.log(3)


@pytest.mark.parametrize("truth", ["1/2", "3/5", "3/4", "99/100", "1/4"])
def test_one_respondent_costs_the_absolute_logit(truth: str) -> None:
    p = Fraction(truth)
    expected = Exact.log(max(p / (1 - p), (1 - p) / p))
    assert loss(vectors(1), Hamming(unit="record"), p) == expected


def test_unordered_distance_on_ordered_vectors_is_infinite_from_two_records_on() -> None:
    """A permutation is at distance zero, and randomised response tells the order."""
    distance = HammingUnordered(unit="record")
    assert loss(vectors(1), distance) == Exact.log(3)
    for n in (2, 3):
        assert loss(vectors(n), distance) == INFINITY


def test_the_pair_that_shows_it_is_a_permutation() -> None:
    domain = vectors(2)
    flavor = Flavor(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=HammingUnordered(unit="record"),
        output_premetric=Multiplicative(),
    )
    worst = protection_loss(randomised_response(domain, Fraction(3, 4), ANSWERS), flavor).worst
    assert worst is not None
    assert worst.x != worst.y and sorted(worst.x) == sorted(worst.y)
    assert worst.distance.is_zero and worst.loss == INFINITY


def test_sharpened_unordered_neighbours_keep_permutations_apart() -> None:
    base = Neighbours(relation="replace", unit="record")
    for n in (2, 3):
        assert loss(vectors(n), Sharpened(base=base)) == loss(vectors(n), base)


def test_the_loss_grows_without_bound_over_all_sizes() -> None:
    relation = Neighbours(relation="replace", unit="record")
    assert [loss(vectors(*range(1, n + 1)), relation) for n in (1, 2, 3, 4)] == [
        Exact.log(3) * k for k in (1, 1, 3, 3)
    ]


def test_counting_the_answers_satisfies_the_unordered_specification() -> None:
    """Post-processing to a count forgets the order; then both specifications cost one coin."""
    domain = vectors(3)
    counts = randomised_response(domain, Fraction(3, 4), ANSWERS).post_process(
        lambda answers: sum(bit for (bit,) in answers)
    )
    for premetric in (HammingUnordered(unit="record"), Hamming(unit="record")):
        flavor = Flavor(
            domain=domain,
            multiverse=Trivial(),
            input_premetric=premetric,
            output_premetric=Multiplicative(),
        )
        found = protection_loss(counts, flavor).overall
        assert found <= Exact.log(3)
        assert not found.is_zero


def test_invariant_order_statistics_leave_permutations_only() -> None:
    """With the multiset invariant, what is left to protect is the order itself."""
    domain = vectors(3)
    by_content = Explicit.from_function(domain, lambda point: tuple(sorted(point)))
    assert loss(domain, Hamming(unit="record"), multiverse=by_content) == Exact.log(3)
    assert loss(domain, HammingUnordered(unit="record"), multiverse=by_content) == INFINITY


def test_laws_multiply_over_respondents() -> None:
    domain = vectors(2)
    mechanism = randomised_response(domain, Fraction(3, 4), ANSWERS)
    for point, law in mechanism.laws.items():
        assert sum(mass for _, mass in law.items()) == 1
        for answers in itertools.product(ANSWERS, repeat=2):
            lies = sum(a != b for a, b in zip(point, answers, strict=True))
            assert law[answers] == Fraction(3, 4) ** (2 - lies) * Fraction(1, 4) ** lies


def test_zcdp_of_randomised_response_is_the_limit_of_order_one() -> None:
    found = loss(vectors(1), Hamming(unit="record"), output=NormalisedRenyi())
    assert float(found) ** 2 == pytest.approx(0.5493061443340549, rel=1e-12)
    identity = FiniteMechanism.exact_release(vectors(1), lambda point: point)
    flavor = Flavor(
        domain=vectors(1),
        multiverse=Trivial(),
        input_premetric=Hamming(unit="record"),
        output_premetric=NormalisedRenyi(),
    )
    assert protection_loss(identity, flavor).overall == INFINITY
