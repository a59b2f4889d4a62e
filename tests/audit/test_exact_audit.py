"""The exact audit against its slow twin, the claims of swapping, certificates and bad input."""

from __future__ import annotations

import itertools
from collections import Counter
from fractions import Fraction
from types import SimpleNamespace

import polars as pl
import pytest
from support.patterns import universe_patterns, universe_records

from stirred.audit import Verdict, exact_audit
from stirred.errors import InputError, Refusal
from stirred.spec import (
    INFINITY,
    Approximate,
    Budget,
    Count,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Hamming,
    HammingUnordered,
    Multiplicative,
    NormalisedRenyi,
    Schema,
    Specification,
    Trivial,
    from_invariants,
    protection_loss,
    swapping_loss,
)
from stirred.spec.finite.mechanism import randomised_response
from stirred.swap import PermutationSwap, lower_bound, pattern_records, universe

VECTORS = Domain.finite(tuple(itertools.product((0, 1), repeat=2)), structure="vector")


def _claim(epsilon: object, premetric: object = None) -> Specification:
    return Specification(
        domain=VECTORS,
        multiverse=Trivial(),
        input_premetric=Hamming(unit="person"),
        output_premetric=premetric or Multiplicative(),
        budget=Budget.epsilon(epsilon),
        standing="proved",
    )


def _enumerated(mechanism: FiniteMechanism) -> SimpleNamespace:
    return SimpleNamespace(outcomes=lambda point: dict(mechanism.laws[point].items()))


RR = randomised_response(VECTORS, Fraction(3, 4), (0, 1))


def test_randomised_response_attains_its_claim():
    found = exact_audit(_enumerated(RR), VECTORS.enumerate(), _claim("ln(3)"))
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.measured == Exact.log(3) and found.details["attained"]


def test_a_claim_too_small_is_refuted_with_a_checkable_certificate():
    found = exact_audit(_enumerated(RR), VECTORS.enumerate(), _claim("ln(29/10)"))
    assert found.verdict is Verdict.VIOLATED
    certificate = found.certificate
    x, y = certificate.pair
    event = certificate.event
    chances = RR.laws[x].probability(event), RR.laws[y].probability(event)
    assert chances == certificate.probabilities
    assert Exact.log(chances[0] / chances[1]) / certificate.distance.rational == certificate.measured
    assert certificate.measured > certificate.claimed


@pytest.mark.parametrize("truth", [Fraction(3, 5), Fraction(9, 10)])
def test_the_exact_audit_agrees_with_its_slow_twin(truth):
    mechanism = randomised_response(VECTORS, truth, (0, 1))
    for premetric, budget in [
        (Multiplicative(), Budget.epsilon(1)),
        (NormalisedRenyi(), Budget.zcdp(rho="1")),
    ]:
        claim = _claim(1).model_copy(update={"output_premetric": premetric, "budget": budget})
        fast = exact_audit(_enumerated(mechanism), VECTORS.enumerate(), claim)
        slow = protection_loss(mechanism, claim)
        assert fast.measured == slow.overall


def test_an_error_on_some_data_sets_is_a_finding():
    def outcomes(point):
        if point == (1, 1):
            raise ValueError("n is 2")
        return {0: Fraction(1)}

    found = exact_audit(SimpleNamespace(outcomes=outcomes), VECTORS.enumerate(), _claim(10))
    assert found.violated and found.measured.is_infinite
    assert "2" not in str(found.certificate.event).replace("(2", "")


def test_a_guarantee_that_depends_on_the_data_within_a_universe_is_a_finding():
    mechanism = SimpleNamespace(
        outcomes=lambda point: {0: Fraction(1)}, guarantee=lambda point: _claim(1 + sum(point))
    )
    found = exact_audit(mechanism, VECTORS.enumerate())
    assert found.violated and "guarantee" in found.sentence


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="no outcomes") as caught:
        exact_audit(SimpleNamespace(measure=len), VECTORS.enumerate(), _claim(1))
    assert "replay" in caught.value.hint
    with pytest.raises(InputError, match="infinite"):
        exact_audit(_enumerated(RR), VECTORS.enumerate(), _claim(INFINITY))
    with pytest.raises(InputError, match="not a probability law"):
        exact_audit(SimpleNamespace(outcomes=lambda p: {0: Fraction(1, 2)}), VECTORS.enumerate(), _claim(1))


def test_a_pair_from_different_universes_is_refused_not_repaired():
    schema = Schema.of(sex=("f", "m"))
    claim = Specification(
        domain=Domain.datasets(schema, (2,)),
        multiverse=from_invariants(Count(unit="person", by=("sex",))),
        input_premetric=HammingUnordered(unit="person"),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
        standing="proved",
    )
    with pytest.raises(Refusal, match="different universes"):
        exact_audit(
            SimpleNamespace(outcomes=lambda point: {0: Fraction(1)}),
            [(("f",), ("f",)), (("f",), ("m",))],
            claim,
        )


def test_a_universe_of_one_data_set_is_vacuous():
    found = exact_audit(_enumerated(RR), [(0, 0)], _claim("ln(2)"))
    assert found.verdict is Verdict.VACUOUS


def test_approximate_claims_count_the_whole_event():
    domain = Domain.finite(((0,), (1,)), structure="vector")
    laws = {
        (0,): Distribution({"a": "1/2", "b": "3/8", "c": "1/8"}),
        (1,): Distribution({"a": "5/8", "b": "3/8"}),
    }
    claim = _claim(0, Approximate(delta=Exact.of("1/8"))).model_copy(update={"domain": domain})
    mechanism = _enumerated(FiniteMechanism(domain, laws))
    assert exact_audit(mechanism, domain.enumerate(), claim).verdict is Verdict.NOT_REFUTED
    tight = claim.model_copy(update={"output_premetric": Approximate(delta=Exact.of("1/9"))})
    assert exact_audit(mechanism, domain.enumerate(), tight).violated


def _frames(records):
    return [pl.DataFrame(list(data), schema=["m", "h", "s"], orient="row") for data in universe(records)]


def _distinct(b):
    return _frames(pattern_records((1,) * b, (1,) * b))


def _swap(rate, loss="theorem-1"):
    return PermutationSwap(match=("m",), swap=("s",), rate=rate, loss=loss)


@pytest.mark.parametrize(
    ("rate", "loss"),
    [
        (Fraction(1, 20), "theorem-1"),
        pytest.param(Fraction(1, 2), "theorem-1", marks=pytest.mark.slow),
        pytest.param(Fraction(1, 20), "tighter", marks=pytest.mark.slow),
        pytest.param(Fraction(4, 5), "tighter", marks=pytest.mark.slow),
    ],
)
def test_theorem_1_every_universe_of_5_records_up_to_relabelling(rate, loss):
    """The production mechanism's own claim in every universe, strata included: never refuted."""
    verdicts = Counter()
    for pattern in universe_patterns(5):
        found = exact_audit(_swap(rate, loss), _frames(universe_records(pattern)))
        verdicts[found.verdict] += 1
    assert verdicts.total() == 134
    assert set(verdicts) == {Verdict.NOT_REFUTED, Verdict.VACUOUS}
    assert verdicts[Verdict.VACUOUS] == sum(
        len(universe(universe_records(pattern))) == 1 for pattern in universe_patterns(5)
    )


def test_proposition_8_the_claim_is_attained_from_the_turning_point_on():
    """p >= sqrt(b+1)/(sqrt(b+1)+1): with all records distinct, the loss is ln o, Theorem 1's."""
    for b, rate in [(2, "4/5"), (3, "2/3"), (3, "4/5"), (4, "4/5"), (5, "4/5")]:
        odds = Fraction(rate) / (1 - Fraction(rate))
        assert odds**2 >= b + 1
        found = exact_audit(_swap(rate), _distinct(b))
        assert found.details["attained"], b
        assert found.measured == swapping_loss(b, rate) == Exact.log(odds)


@pytest.mark.slow
def test_theorem_3_c_below_the_turning_point_the_loss_is_strictly_under_theorem_1():
    for b in (4, 5):
        for rate in (Fraction(1, 20), Fraction(1, 2)):
            found = exact_audit(_swap(rate), _distinct(b))
            assert found.measured < found.claimed
            assert found.measured == lower_bound(b, rate)
            sharp = exact_audit(_swap(rate, "tighter"), _distinct(b))
            assert sharp.details["attained"], (b, rate)
