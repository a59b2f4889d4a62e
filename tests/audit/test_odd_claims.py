"""Claims and mechanisms at the edge: asymmetric distances, listed universes, curves, errors everywhere."""

from __future__ import annotations

import random
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.audit import (
    Tape,
    Verdict,
    WorstCase,
    accounting_audit,
    divergence_audit,
    exact_audit,
    replay_audit,
    same_universe,
)
from stirred.audit.accounting import EpsilonDelta
from stirred.errors import InputError, NotComputable, Refusal
from stirred.noise import TestSource
from stirred.spec import (
    INFINITY,
    Approximate,
    Budget,
    Count,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    Schema,
    Specification,
    Trivial,
    from_invariants,
    protection_loss,
    satisfies,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit, Intersection
from stirred.spec.blocks.output_premetric import ApproximateCurve

POINTS = (0, 1, 2)


def _claim(distances: Any, budget: Budget, multiverse: Any = None, premetric: Any = None) -> Specification:
    return Specification(
        domain=Domain.finite(POINTS),
        multiverse=multiverse or Trivial(),
        input_premetric=Given(unit="unit", points=POINTS, distances=distances),
        output_premetric=premetric or Multiplicative(),
        budget=budget,
        standing="proved",
    )


def _mechanism(laws: dict[int, dict[Any, Any]]) -> tuple[FiniteMechanism, SimpleNamespace]:
    finite = FiniteMechanism(Domain.finite(POINTS), {x: Distribution(law) for x, law in laws.items()})
    return finite, SimpleNamespace(outcomes=lambda x: dict(finite.laws[x].items()))


def _random_law(draw: random.Random) -> dict[str, Fraction]:
    weights = [draw.choice([0, 1, 1, 2, 3, 7]) for _ in "abcd"]
    if not any(weights):
        weights[0] = 1
    return {z: Fraction(w, sum(weights)) for z, w in zip("abcd", weights, strict=True) if w}


@pytest.mark.parametrize("seed", range(150))
def test_the_fast_search_agrees_with_its_twin_on_odd_distances(seed: int) -> None:
    """Asymmetric, zero and infinite distances: D_Mult is symmetric, distances need not be."""
    draw = random.Random(seed)
    choices = ["0", "1", "1", "2", "1/2", "inf"]
    distances = [["0" if i == j else draw.choice(choices) for j in range(3)] for i in range(3)]
    claim = _claim(distances, Budget.epsilon(1))
    laws = {x: _random_law(draw) for x in POINTS}
    if draw.random() < 0.5:
        support = "abc"
        weights = [(1, 1, 10), (4, 4, 4), (2, 3, 7)]
        chosen = {x: draw.choice(weights) for x in POINTS}
        laws = {
            x: {z: Fraction(w, 12) for z, w in zip(support, row, strict=True)} for x, row in chosen.items()
        }
    finite, mechanism = _mechanism(laws)
    found = exact_audit(mechanism, POINTS, claim)
    if found.verdict is Verdict.VACUOUS:
        assert all(d == "inf" for i, row in enumerate(distances) for j, d in enumerate(row) if i != j)
        return
    assert found.measured == protection_loss(finite, claim).overall
    assert found.violated is not satisfies(finite, claim).satisfied


def test_listed_universes_that_overlap_are_audited_one_by_one() -> None:
    """0 shares a universe with 1 and with 2, but 1 and 2 do not: they are never compared."""
    listed = Explicit(parts=((0, 1), (0, 2)))
    claim = _claim([[0, 1, 1], [1, 0, 1], [1, 1, 0]], Budget.epsilon(1), listed)
    _, mechanism = _mechanism({x: {"a": "1/2", "b": "1/2"} for x in POINTS})
    with pytest.raises(Refusal):
        exact_audit(mechanism, POINTS, claim)
    assert exact_audit(mechanism, (0, 2), claim).verdict is Verdict.NOT_REFUTED


def test_a_budget_by_universe_is_that_of_the_pair() -> None:
    listed = Explicit(parts=((0, 1), (0, 2)))
    budget = Budget.by_universe("epsilon", ["1/2", "3"])
    claim = _claim([[0, 1, 1], [1, 0, 1], [1, 1, 0]], budget, listed)
    lower, upper = {"a": "1/4", "b": "3/4"}, {"a": "3/4", "b": "1/4"}
    _, mechanism = _mechanism({0: lower, 1: upper, 2: upper})
    assert exact_audit(mechanism, (0, 1), claim).violated
    assert exact_audit(mechanism, (0, 2), claim).verdict is Verdict.NOT_REFUTED
    gap = SimpleNamespace(divergence=lambda x, y: Exact.of(2))
    assert divergence_audit(gap, [(0, 2)], claim).verdict is Verdict.NOT_REFUTED
    assert divergence_audit(gap, [(0, 1)], claim).violated


def test_a_mechanism_that_raises_everywhere_is_not_called_sound() -> None:
    def outcomes(point: int) -> Any:
        raise ValueError(point)

    claim = _claim([[0, 1, 1], [1, 0, 1], [1, 1, 0]], Budget.epsilon(1))
    found = exact_audit(SimpleNamespace(outcomes=outcomes), POINTS, claim)
    assert found.verdict is Verdict.NOT_APPLICABLE and "ValueError" in found.sentence

    def run(point: int, tape: Tape) -> Any:
        raise ValueError(point)

    assert replay_audit(run, 0, 1, claim, TestSource(1)).verdict is Verdict.NOT_APPLICABLE


def test_a_full_disk_is_no_finding() -> None:
    claim = _claim([[0, 1, 1], [1, 0, 1], [1, 1, 0]], Budget.epsilon(1))

    def run(point: int, tape: Tape) -> Any:
        if point:
            raise OSError(28, "no space left")
        return {}

    with pytest.raises(OSError, match="no space"):
        replay_audit(run, 0, 1, claim, TestSource(1))


def _sizes(premetric: Any, output: Any = None, budget: Budget | None = None) -> Specification:
    return Specification(
        domain=Domain.datasets(Schema.of(sex=("f", "m")), (1, 2)),
        multiverse=Trivial(),
        input_premetric=premetric,
        output_premetric=output or Multiplicative(),
        budget=budget or Budget.epsilon(1),
        standing="proved",
    )


def test_data_sets_that_are_infinitely_far_apart_are_not_replayed() -> None:
    claim = _sizes(HammingUnordered(unit="person"))
    with pytest.raises(InputError, match="infinitely far"):
        replay_audit(lambda data, tape: {"n": len(data)}, (("f",),), (("f",), ("m",)), claim, TestSource(1))


def test_different_guarantees_in_different_universes_are_refused_not_blamed() -> None:
    from stirred.spec import Count, from_invariants

    def guarantee(point: Any) -> Specification:
        fixed = from_invariants(Count(unit="person"))
        return _sizes(HammingUnordered(unit="person"), budget=Budget.epsilon(len(point))).model_copy(
            update={"multiverse": fixed}
        )

    mechanism = SimpleNamespace(outcomes=lambda point: {0: Fraction(1)}, guarantee=guarantee)
    with pytest.raises(Refusal, match="different universes"):
        exact_audit(mechanism, [(("f",),), (("f",), ("m",))])
    with pytest.raises(InputError, match="no data set"):
        exact_audit(mechanism, [])


def test_approximate_claims_speak_of_neighbours() -> None:
    """Two records apart a mechanism of delta 1/10 has 19/100: the claim does not speak of that."""
    domain = Domain.finite(((0, 0), (0, 1), (1, 1)), structure="vector")
    laws = {
        (0, 0): {"quiet": Fraction(1)},
        (0, 1): {"quiet": Fraction(9, 10), "b": Fraction(1, 10)},
        (1, 1): {"quiet": Fraction(81, 100), "b": Fraction(9, 100), "c": Fraction(1, 10)},
    }
    claim = Specification(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=HammingUnordered(unit="person"),
        output_premetric=Approximate(delta=Exact.of("1/10")),
        budget=Budget.epsilon("ln(10/9)"),
        standing="proved",
    )
    mechanism = SimpleNamespace(outcomes=laws.get)
    assert exact_audit(mechanism, domain.enumerate(), claim).verdict is Verdict.NOT_REFUTED
    far = exact_audit(mechanism, [(0, 0), (1, 1)], claim)
    assert far.verdict is Verdict.VACUOUS


def test_a_curve_is_audited_on_some_of_its_points() -> None:
    claim = _claim(
        [[0, 1, 0], [1, 0, 1], [0, 1, 0]],
        Budget.of_delta({"0": "ln(3)", "1/4": "ln(2)"}),
        premetric=ApproximateCurve(),
    )
    _, mechanism = _mechanism(
        {0: {"a": "1/4", "b": "3/4"}, 1: {"a": "3/4", "b": "1/4"}, 2: {"a": "1/4", "b": "3/4"}}
    )
    assert exact_audit(mechanism, POINTS, claim).verdict is Verdict.NOT_REFUTED
    _, broken = _mechanism(
        {0: {"a": "1/8", "b": "7/8"}, 1: {"a": "3/4", "b": "1/4"}, 2: {"a": "1/4", "b": "3/4"}}
    )
    assert exact_audit(broken, (0, 1), claim).violated
    at_zero = exact_audit(broken, (0, 2), claim)
    assert at_zero.violated and at_zero.certificate.distance == Exact.of(0)


@pytest.mark.parametrize("delta", [0.3, 0.7, 0.1])
def test_an_honest_float_is_not_blamed(delta: float) -> None:
    truth = WorstCase(count=1, ratio=Fraction(1), delta=Fraction(str(delta)))
    assert accounting_audit(EpsilonDelta(0.0, delta), truth).verdict is Verdict.NOT_REFUTED


def test_a_tape_takes_arrays_and_text() -> None:
    claim = _claim([[0, 1, 1], [1, 0, 1], [1, 1, 0]], Budget.epsilon(1))

    def arrays(point: int, tape: Tape) -> dict[str, Any]:
        return {"a": tape.draw("sum", np.array([[point, 0]]), lambda s: 0, sensitivity=1, cost=1)}

    assert replay_audit(arrays, 0, 1, claim, TestSource(1)).verdict is Verdict.NOT_REFUTED

    def text(point: int, tape: Tape) -> dict[str, Any]:
        return {"a": tape.draw("name", str(point), lambda s: 0, sensitivity=1, cost=1)}

    found = replay_audit(text, 0, 1, claim, TestSource(1))
    assert found.violated and found.certificate.measured == INFINITY


def test_further_data_sets_are_replayed_too() -> None:
    claim = _claim([[0, 1, 1], [1, 0, 1], [1, 1, 0]], Budget.epsilon(1))

    def run(point: int, tape: Tape) -> dict[str, Any]:
        return {"two": point == 2}

    assert replay_audit(run, 0, 1, claim, TestSource(1)).verdict is Verdict.NOT_REFUTED
    assert replay_audit(run, 0, 1, claim, TestSource(1), more=[2]).violated


def test_neighbour_premetrics_have_their_pairs() -> None:
    claim = _sizes(Neighbours(relation="add-remove", unit="person"))
    mechanism = SimpleNamespace(outcomes=lambda data: {len(data): Fraction(1)})
    assert exact_audit(mechanism, [(("f",),), (("f",), ("m",))], claim).violated


@pytest.mark.parametrize("invariant", ["person", "household"])
def test_data_sets_of_one_unit_are_not_told_apart_by_invariants_of_another(invariant: str) -> None:
    """A count of households evaluated on records of persons is a number, and a wrong one."""
    domain = Domain.datasets(Schema.of(block=("a", "b")), sizes=(2,))
    claim = Specification(
        domain=domain,
        multiverse=from_invariants(Count(unit=invariant, by=("block",))),
        input_premetric=HammingUnordered(unit="person"),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )
    listed = Specification(
        **dict(claim)
        | {"multiverse": Intersection(parts=(claim.multiverse, Explicit(parts=(domain.enumerate(),))))}
    )
    same, other = (("a",), ("b",)), (("b",), ("b",))
    frames = [pl.DataFrame({"block": [record[0] for record in point]}) for point in (same, other)]
    for one in (claim, listed):
        for x, y in ((same, other), tuple(frames)):
            if invariant == "person":
                assert same_universe(one, x, x) and not same_universe(one, x, y)
            else:
                with pytest.raises(NotComputable, match="different units"):
                    same_universe(one, x, y)
    both = dict.fromkeys(("person", "household"), frames[0])
    assert same_universe(claim, both, both)
