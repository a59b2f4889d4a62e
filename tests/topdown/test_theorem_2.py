"""Theorem 2 of Bailie, Gong and Meng, on toys that are enumerated: exact laws of the real estimation.

Two states, one binary attribute, two or three persons. The noise is a two-sided geometric law clamped to a
finite range, with a rational ratio, so that every measurement has an exact and positive probability for
every data set. The real post-processing maps each possible vector of measurements, with the invariants of
the data set, to protected microdata; the finite verifier compares the laws of these.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.data import Spine
from stirred.spec import (
    Budget,
    Condition,
    Count,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Flavor,
    HammingUnordered,
    Invariants,
    Multiplicative,
    NormalisedRenyi,
    Schema,
    SymmetricDifference,
    Trivial,
    protection_loss,
    satisfies,
)
from stirred.topdown import Allocation, Cells, Chunk, Invariant, Measurements, Settings, TopDown, Universe
from stirred.topdown.prepared import Noisy, Public

STATES = ("a", "b")
PERSON = Schema.of(sick=(0, 1))
RECORD = Schema.of(state=STATES, sick=(0, 1))
RATIO = Fraction(1, 2)

STATE_TOTALS = Count(unit="person", by=("state",))
US_TOTAL = Count(unit="person", by=("us",))
SICK = Count(unit="person", by=("us",), where=(Condition(attribute="sick", levels=(1,)),))
# The same counts as functions of records of the toy's domain, which has no column for the whole country.
AS_RECORDS = {
    STATE_TOTALS: STATE_TOTALS,
    US_TOTAL: Count(unit="person"),
    SICK: Count(unit="person", where=SICK.where),
}


def clamped(truth: int, values: Sequence[int]) -> dict[int, Fraction]:
    """The law of a count with geometric noise, P(k) proportional to RATIO^|k|, clamped to a range."""
    low, high = values[0], values[-1]
    tail = 1 / (1 + RATIO)  # P(noise >= 0)

    def beyond(distance: int) -> Fraction:
        return tail * RATIO**distance if distance >= 0 else 1 - tail * RATIO ** (1 - distance)

    middle = (1 - RATIO) / (1 + RATIO)
    law = {v: middle * RATIO ** abs(v - truth) for v in values[1:-1]}
    return {low: beyond(truth - low)} | law | {high: beyond(high - truth)}


def test_the_clamped_geometric_law_has_its_budget():
    """Adjacent truths: the log-ratio of every value is at most ln(1 / ratio), with equality."""
    for values in ((0, 1), (0, 1, 2), (-1, 0, 1, 2, 3)):
        laws = [clamped(truth, values) for truth in range(-2, 5)]
        assert all(sum(law.values()) == 1 and min(law.values()) > 0 for law in laws)
        ratios = [p[v] / q[v] for p, q in itertools.pairwise(laws) for v in values]
        assert min(ratios) >= RATIO and max(ratios) <= 1 / RATIO and max(ratios) == 1 / RATIO


class Toy:
    """TopDown with these invariants, as a finite mechanism on all data sets of some sizes."""

    def __init__(
        self, invariants: Sequence[Count], sizes: Sequence[int], values: Sequence[int], estimator: Any
    ) -> None:
        self.values = tuple(values)
        spine = Spine.from_columns(pl.DataFrame({"us": ["us", "us"], "state": list(STATES)}), ["us", "state"])
        queries = {"us": {"total": 1}, "state": {"detailed": 1}}
        allocation = Allocation.of(Cells(PERSON), 1, {"us": "1/2", "state": "1/2"}, queries)
        settings = Settings(estimator=estimator, threads=1)
        universe = Universe("person", PERSON, allocation, settings)
        self.topdown = TopDown(spine, [universe], [Invariant(count=count) for count in invariants])
        self.design = self.topdown.designs["person"]
        self.domain = Domain.datasets(RECORD, sizes)
        self.finished: dict[Any, Any] = {}

    @cached_property
    def mechanism(self) -> FiniteMechanism:
        return FiniteMechanism.from_function(self.domain, self.law)

    def law(self, point: Any) -> Distribution:
        """The exact law of the protected microdata of one data set."""
        frame = pl.DataFrame(point, schema={"state": pl.String, "sick": pl.Int64}, orient="row")
        prepared = self.topdown.prepare(frame)
        counts, public = prepared.counts, prepared.public
        tables = [h.dense(0, h.nodes) for h in counts["person"]]
        truth = [int(tables[0].sum()), *tables[1].reshape(-1).tolist()]
        laws = [clamped(t, self.values) for t in truth]
        masses: dict[Any, Fraction] = {}
        for vector in itertools.product(self.values, repeat=len(truth)):
            weight = Fraction(1)
            for value, law in zip(vector, laws, strict=True):
                weight *= law[value]
            output = self.estimated(vector, public)
            masses[output] = masses.get(output, Fraction(0)) + weight
        return Distribution(masses)

    def estimated(self, vector: tuple[int, ...], public: Public) -> Any:
        """The real post-processing, which sees the vector and the invariants."""
        key = (vector, *((name, *values.reshape(-1).tolist()) for name, values in public.invariants.items()))
        if key not in self.finished:
            chunks = {
                0: Chunk(0, 0, 1, {"total": np.array([[vector[0]]], dtype=np.int32)}),
                1: Chunk(1, 0, 2, {"detailed": np.array(vector[1:], dtype=np.int32).reshape(2, 2)}),
            }
            measurements = Measurements(self.design, lambda level, _: chunks[level])
            made = self.topdown.finish(Noisy({"person": measurements}), public)
            self.finished[key] = tuple(made.products["person"].microdata().iter_rows())
        return self.finished[key]

    def flavor(self, invariants: Sequence[Count], output: Any = None, premetric: Any = None) -> Flavor:
        counts = tuple(AS_RECORDS[count] for count in invariants)
        return Flavor(
            domain=self.domain,
            multiverse=Invariants(invariants=counts) if counts else Trivial(),
            input_premetric=premetric or HammingUnordered(unit="person"),
            output_premetric=output or Multiplicative(),
        )


@cache
def toy(
    *invariants: Count,
    sizes: tuple[int, ...] = (2,),
    values: tuple[int, ...] = (0, 1),
    estimator: str = "multipass",
) -> Toy:
    return Toy(invariants, sizes, values, estimator)


# Replacing one person moves one count of the detailed query of a state down and one up; the total of the
# country stays. With noise of ratio r each costs ln(1/r).
EPSILON = Exact.log(RATIO**-2)
RHO_SQUARED = "0.961"  # above epsilon^2 / 2 = 0.9609 (Bun and Steinke 2016, Proposition 1.4)
TOYS = [
    ((STATE_TOTALS,), (2,), (0, 1)),
    pytest.param((STATE_TOTALS,), (2,), (0, 1, 2), marks=pytest.mark.slow),
    pytest.param((STATE_TOTALS, SICK), (3,), (0, 1), marks=pytest.mark.slow),
]


def test_the_toy_measures_what_the_budget_says():
    design = toy(STATE_TOTALS).design
    assert [design.queries(level) for level in (0, 1)] == [("total",), ("detailed",)]
    assert design.chunks(0) == [(0, 1)] and design.chunks(1) == [(0, 2)]


def test_the_specification_of_the_toy_has_its_invariants_as_multiverse():
    spec = toy(STATE_TOTALS, SICK, sizes=(3,), values=(0, 1)).topdown.guarantee()
    assert spec.multiverse.invariants == (STATE_TOTALS, SICK)
    assert spec.input_premetric == HammingUnordered(unit="person")
    assert spec.output_premetric == NormalisedRenyi()


@pytest.mark.parametrize(("invariants", "sizes", "values"), TOYS)
def test_theorem_2_with_all_invariants_the_loss_is_within_the_budget_of_the_noise(invariants, sizes, values):
    made = toy(*invariants, sizes=sizes, values=values)
    pure = made.flavor(invariants).with_budget(Budget.epsilon(EPSILON))
    verdict = satisfies(made.mechanism, pure)
    assert verdict.satisfied and not verdict.warnings
    assert Exact.of(0) < verdict.loss.overall <= EPSILON
    concentrated = made.flavor(invariants, NormalisedRenyi()).with_budget(
        Budget.zcdp(rho_squared=RHO_SQUARED)
    )
    assert satisfies(made.mechanism, concentrated).satisfied


def test_theorem_2_a_budget_that_is_too_small_is_noticed():
    """The verifier does not say yes to everything."""
    made = toy(STATE_TOTALS)
    loss = protection_loss(made.mechanism, made.flavor([STATE_TOTALS])).overall
    smaller = made.flavor([STATE_TOTALS]).with_budget(Budget.epsilon(Exact.log(Fraction(11, 10))))
    assert loss > Exact.log(Fraction(11, 10))
    assert not satisfies(made.mechanism, smaller).satisfied


@pytest.mark.parametrize(
    ("invariants", "size"),
    [((STATE_TOTALS,), 2), pytest.param((STATE_TOTALS, SICK), 3, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("output", [Multiplicative(), NormalisedRenyi()], ids=["D_Mult", "D_NoR"])
def test_theorem_2_without_any_one_of_the_invariants_the_loss_is_infinite(invariants, size, output):
    made = toy(*invariants, sizes=(size,))
    for left_out in invariants:
        rest = [count for count in invariants if count != left_out]
        loss = protection_loss(made.mechanism, made.flavor(rest, output))
        assert loss.overall.is_infinite
        assert loss.worst is not None
        function = AS_RECORDS[left_out]
        assert function.of_records(loss.worst.x, RECORD) != function.of_records(loss.worst.y, RECORD)


def test_theorem_2_an_invariant_that_others_imply_may_be_left_out():
    """The total of the country is the sum of the states' totals."""
    made = toy(US_TOTAL, STATE_TOTALS)
    both = protection_loss(made.mechanism, made.flavor([US_TOTAL, STATE_TOTALS])).overall
    alone = protection_loss(made.mechanism, made.flavor([STATE_TOTALS])).overall
    assert alone == both <= EPSILON
    assert protection_loss(made.mechanism, made.flavor([US_TOTAL])).overall.is_infinite


def test_theorem_2_an_invariant_that_finite_distance_implies_may_be_left_out():
    """Replacing persons keeps their number; data sets of different sizes are not compared."""
    made = toy(US_TOTAL, sizes=(1, 2))
    assert Exact.of(0) < protection_loss(made.mechanism, made.flavor([])).overall <= EPSILON
    assert (
        protection_loss(made.mechanism, made.flavor([])).overall
        == protection_loss(made.mechanism, made.flavor([US_TOTAL])).overall
    )


def test_theorem_2_the_same_invariant_may_not_be_left_out_where_persons_come_and_go():
    """Under the symmetric difference the number of persons is at finite distance from another."""
    made = toy(US_TOTAL, sizes=(1, 2))
    unbounded = SymmetricDifference(unit="person")
    assert protection_loss(made.mechanism, made.flavor([], premetric=unbounded)).overall.is_infinite
    with_it = protection_loss(made.mechanism, made.flavor([US_TOTAL], premetric=unbounded)).overall
    assert with_it <= EPSILON / 2  # one replacement is two steps


def test_theorem_2_without_invariants_there_is_nothing_to_leave_out():
    """One step more or less also moves the total of the country: three counts in all, at most."""
    made = toy(sizes=(1, 2))
    loss = protection_loss(made.mechanism, made.flavor([], premetric=SymmetricDifference(unit="person")))
    assert not loss.overall.is_infinite
    assert loss.overall <= Exact.log(RATIO**-2)  # the total and one count of a state


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["multipass", "gls"])
@pytest.mark.parametrize("sizes", [(2,), (3,)])
def test_theorem_2_in_full_on_larger_toys(estimator, sizes):
    made = toy(STATE_TOTALS, SICK, sizes=sizes, values=(0, 1, 2), estimator=estimator)
    full = protection_loss(made.mechanism, made.flavor([STATE_TOTALS, SICK])).overall
    assert Exact.of(0) < full <= EPSILON
    for rest in ([STATE_TOTALS], [SICK], []):
        assert protection_loss(made.mechanism, made.flavor(rest)).overall.is_infinite
