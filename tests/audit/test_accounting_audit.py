"""The accounting audit: the worst mechanism against enumeration and theorems, certificates, bad input."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest

from stirred.audit import Verdict, WorstCase, accounting_audit, stated_composition
from stirred.errors import InputError
from stirred.spec import Distribution, EpsilonDelta, Exact
from stirred.spec.accountants.accounting import advanced_composition, optimal_composition
from stirred.spec.finite.divergence import approximate

RATIO, DELTA = Fraction(3, 2), Fraction(1, 20)


def _pair() -> tuple[Distribution, Distribution]:
    hidden = (1 - DELTA) / (1 + RATIO)
    masses = {"open": DELTA, "likely": hidden * RATIO, "unlikely": hidden}
    mirrored = {"other": DELTA, "likely": hidden, "unlikely": hidden * RATIO}
    return Distribution(masses), Distribution(mirrored)


def least_delta(truth: WorstCase, factor: Fraction) -> Fraction:
    _, p, q = truth.event(factor)
    return p - factor * q


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("factor", [Fraction(1), Fraction(6, 5), Fraction(3, 2), Fraction(5, 2), Fraction(9)])
def test_the_count_of_answers_agrees_with_enumeration_of_all_of_them(count, factor):
    first, second = _pair()
    total = Fraction(0)
    for answers in itertools.product(first.support | second.support, repeat=count):
        p, q = (math.prod(law[answer] for answer in answers) for law in (first, second))
        total += max(p - factor * q, Fraction(0))
    assert least_delta(WorstCase(RATIO, DELTA, count), factor) == total


def test_one_mechanism_has_exactly_its_own_epsilon_and_delta():
    assert least_delta(WorstCase(RATIO, DELTA, 1), RATIO) == DELTA
    assert approximate(*_pair(), DELTA) == Exact.log(RATIO)


@pytest.mark.parametrize("count", [2, 10, 60])
def test_the_optimal_composition_is_attained_and_nothing_below_it_holds(count):
    truth = WorstCase(RATIO, DELTA, count)
    claimed = optimal_composition(math.log(RATIO), float(DELTA), count, 1e-3)
    assert accounting_audit(claimed, truth).verdict is Verdict.NOT_REFUTED
    for less in (
        claimed._replace(epsilon=claimed.epsilon * (1 - 1e-6)),
        claimed._replace(delta=claimed.delta * (1 - 1e-6)),
    ):
        assert accounting_audit(less, truth).violated


@pytest.mark.parametrize("formula", [advanced_composition, stated_composition])
@pytest.mark.parametrize("count", [1, 7, 200])
def test_the_theorems_hold(formula, count):
    claimed = formula(math.log(RATIO), float(DELTA), count, 1e-4)
    assert accounting_audit(claimed, WorstCase(RATIO, DELTA, count)).verdict is Verdict.NOT_REFUTED


def test_the_certificate_can_be_checked():
    found = accounting_audit(EpsilonDelta(1.0, 0.1), WorstCase(RATIO, DELTA, 10), subject="a sum")
    p, q = found.certificate.probabilities
    assert found.violated and found.subject == "a sum"
    assert p > math.exp(1.0) * q + 0.1
    assert found.measured > found.claimed


def test_a_claim_above_its_theorem_is_misstated():
    truth = WorstCase(RATIO, Fraction(0), 10)
    stated = stated_composition(math.log(RATIO), 0.0, 10, 1e-6)
    loose = stated._replace(epsilon=stated.epsilon * 1.01)
    assert accounting_audit(loose, truth).verdict is Verdict.NOT_REFUTED
    found = accounting_audit(loose, truth, stated=stated)
    assert found.violated and "misstated" in found.sentence and found.certificate is None
    assert accounting_audit(loose, truth, stated=stated, tolerance=0.02).verdict is Verdict.NOT_REFUTED


def test_bad_input_is_refused():
    for bad in [(Fraction(1, 2), DELTA, 1), (RATIO, Fraction(2), 1), (RATIO, DELTA, 0)]:
        with pytest.raises(InputError, match="not a composition"):
            WorstCase(*bad)
    with pytest.raises(InputError, match="out of range"):
        accounting_audit(EpsilonDelta(math.inf, 0.0), WorstCase(RATIO, DELTA, 1))
