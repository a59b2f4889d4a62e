"""The meet of approximate flavors, against the divergences of explicit pairs of laws."""

import itertools
import math
import random
from fractions import Fraction

import pytest

from stirred.errors import NotImplied
from stirred.spec import (
    Approximate,
    Budget,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Flavor,
    Trivial,
    compose,
    meet,
    satisfies,
)
from stirred.spec.blocks.input_premetric import Given


def flavor(delta: object) -> Flavor:
    """Two points at distance one."""
    return Flavor(
        domain=Domain.finite((0, 1)),
        multiverse=Trivial(),
        input_premetric=Given(unit="unit", points=(0, 1), distances=((0, 1), (1, 0))),
        output_premetric=Approximate(delta=Exact.of(delta)),
    )


def hockey_stick(p: tuple[Fraction, ...], q: tuple[Fraction, ...], epsilon: float) -> float:
    """The least delta at this epsilon, over all events and both orders."""
    growth = math.exp(epsilon)
    return max(
        sum(max(float(a) - growth * float(b), 0.0) for a, b in zip(*pq, strict=True))
        for pq in ((p, q), (q, p))
    )


def laws(random_: random.Random) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
    drawn = [[random_.choice((0, 1, 1, 2, 5, 30)) for _ in range(3)] for _ in range(2)]
    for weights in drawn:
        weights[random_.randrange(3)] += 1
    p, q = (tuple(Fraction(w, sum(weights)) for w in weights) for weights in drawn)
    return p, q


def test_the_meet_of_two_approximate_flavors_keeps_the_larger_delta_in_either_order() -> None:
    """P = (1, 0) and Q = (9/10, 1/10) satisfy (0, 0.1), and (epsilon, 10^-6) for no epsilon."""
    tiny, tenth = flavor("1e-6"), flavor("1/10")
    assert meet(tiny, tenth).output_premetric == meet(tenth, tiny).output_premetric == tenth.output_premetric
    told = FiniteMechanism(
        tiny.domain, {0: Distribution({0: 1}), 1: Distribution({0: Fraction(9, 10), 1: Fraction(1, 10)})}
    )
    assert satisfies(told, tenth.with_budget(Budget.epsilon(0))).satisfied
    for common in (meet(tiny, tenth), meet(tenth, tiny)):
        assert satisfies(told, common.with_budget(Budget.epsilon(0))).satisfied
    assert not satisfies(told, tiny.with_budget(Budget.epsilon(10**6))).satisfied


def test_composition_adds_the_deltas_of_its_parts_and_not_that_of_their_meet() -> None:
    for order in itertools.permutations(("1e-6", "1/10", "1/100")):
        parts = [flavor(delta).with_budget(Budget.epsilon(1)) for delta in order]
        together = compose(*parts)
        assert isinstance(together.output_premetric, Approximate)
        assert together.output_premetric.mass == Fraction(1, 10**6) + Fraction(11, 100)


def test_deltas_that_add_up_to_one_are_refused() -> None:
    half = flavor("1/2").with_budget(Budget.epsilon(1))
    with pytest.raises(NotImplied, match="add up to one"):
        compose(half, half)


def meet_at(epsilon: float, first: tuple[float, float], second: tuple[float, float]) -> float:
    """The delta of the meet as a curve: each part's least delta at this epsilon, and the larger of them."""

    def at(own: float, delta: float) -> float:
        return delta if epsilon >= own else 1 - (1 - delta) * (1 + math.exp(epsilon)) / (1 + math.exp(own))

    return max(at(*first), at(*second))


def test_the_oracle_numbers_of_the_curve_of_a_meet() -> None:
    assert meet_at(0.5, (0.1, 0.01), (1, 1e-6)) == pytest.approx(0.28765, abs=5e-6)
    assert meet_at(0.5, (1, 0.01), (1, 0.01)) == pytest.approx(0.29477, abs=5e-6)
    odds = math.exp(2)
    far = hockey_stick(
        (Fraction(odds / (1 + odds)), Fraction(1 / (1 + odds))),
        (Fraction(1 / (1 + odds)), Fraction(odds / (1 + odds))),
        1.0,
    )
    assert far == pytest.approx(0.5568, abs=5e-5)


def check_the_rule(seed: int) -> None:
    """A pair that satisfies one of two promises satisfies their meet, in numbers and as a curve."""
    random_ = random.Random(f"meet {seed}")
    p, q = laws(random_)
    promises = [(random_.choice((0.0, 0.3, 1.0, 2.5)), 0.0) for _ in range(2)]
    promises = [(e, hockey_stick(p, q, e)) for e, _ in promises]
    promises[1] = (promises[1][0], min(1.0, promises[1][1] + random_.choice((0.0, 0.05))))
    largest = max(e for e, _ in promises), max(d for _, d in promises)
    assert hockey_stick(p, q, largest[0]) <= largest[1] + 1e-12
    for e in (0.0, 0.1, 0.7, 1.5):
        assert hockey_stick(p, q, e) <= meet_at(e, promises[0], promises[1]) + 1e-12
    deltas = [Fraction(d).limit_denominator(10**6) for _, d in promises]
    if max(deltas) < 1:
        common = meet(flavor(deltas[0]), flavor(deltas[1])).output_premetric
        assert isinstance(common, Approximate) and common.mass == max(deltas)


def test_rule_3_on_random_pairs_of_laws() -> None:
    for seed in range(200):
        check_the_rule(seed)


@pytest.mark.slow
def test_rule_3_on_two_thousand_random_pairs_of_laws() -> None:
    for seed in range(200, 2200):
        check_the_rule(seed)
