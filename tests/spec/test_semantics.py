"""What a specification means: the figures of randomised response that the slides give."""

from __future__ import annotations

from fractions import Fraction

from stirred.spec import (
    Budget,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Hamming,
    Multiplicative,
    Schema,
    Specification,
    Trivial,
    protection_loss,
)
from stirred.spec.calculus.closed_form import RandomisedResponse
from stirred.spec.finite.mechanism import randomised_response

TRUTH = Fraction(3, 5)


def test_randomised_response_at_six_tenths_has_epsilon_0_405465() -> None:
    assert abs(RandomisedResponse(TRUTH).multiplicative() - 0.405465) < 1e-6
    assert abs(float(Exact.log(TRUTH / (1 - TRUTH))) - 0.405465) < 1e-6


def test_a_share_of_yes_of_0_45_comes_from_a_quarter() -> None:
    """The law of the report is p pi + (1 - p)(1 - pi); its inverse at 0.45 is 0.25."""
    share = Fraction(1, 4)
    answer = Distribution({1: share, 0: 1 - share})
    report = sum(mass * (TRUTH if value == 1 else 1 - TRUTH) for value, mass in answer.items())
    assert report == Fraction(9, 20)
    assert (report + TRUTH - 1) / (2 * TRUTH - 1) == share


def test_the_likelihood_ratio_of_two_copies_is_e_to_the_two_epsilon() -> None:
    """X1 = X2: both reports move together, at distance two."""
    mechanism = randomised_response(_pairs(), TRUTH, ((0,), (1,)))
    both = mechanism.laws[((1,), (1,))], mechanism.laws[((0,), (0,))]
    single = TRUTH / (1 - TRUTH)
    assert both[0][((1,), (1,))] / both[1][((1,), (1,))] == single**2


def test_the_protection_loss_of_the_vector_is_that_of_one_entry() -> None:
    domain = _pairs()
    specification = Specification(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=Hamming(unit="respondent"),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(Exact.log(TRUTH / (1 - TRUTH))),
    )
    mechanism = randomised_response(domain, TRUTH, ((0,), (1,)))
    assert isinstance(mechanism, FiniteMechanism)
    assert protection_loss(mechanism, specification).overall == specification.budget.amount


def _pairs() -> Domain:
    return Domain.datasets(Schema.of(answer=(0, 1)), [2], structure="vector")
