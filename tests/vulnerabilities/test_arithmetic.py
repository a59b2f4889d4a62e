"""Threats 15 to 18: units, stale bounds, invariants and post-processing.

Numbers are those of the page on threats in the documentation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from ledger.common import pure, zcdp
from support.threats import PEOPLE, TWIN, X, county

from stirred.audit import Verdict, replay_audit
from stirred.data import Histogram, Spine, levels_of
from stirred.errors import Refusal, StirredError
from stirred.noise import TestSource
from stirred.release.kinds.topdown.audits import located
from stirred.spec import (
    Attribute,
    Condition,
    Count,
    Exact,
    Recode,
    Schema,
    Specification,
    Sum,
    Threshold,
    change_unit,
    convert,
)
from stirred.spec.blocks.invariant import implied_by
from stirred.spec.calculus.closed_form import DiscreteLaplace
from stirred.topdown import Allocation, Cells, Design

WINDOW = np.arange(-90, 91)


def log_masses(name: str, parameter: Fraction) -> np.ndarray:
    """Computed here from the definition, without the library."""
    x = WINDOW.astype(float)
    weights = -(x**2) / (2 * float(parameter)) if name == "gaussian" else -np.abs(x) / float(parameter)
    return weights - np.log(np.exp(weights).sum())


class Pair:
    """The joint laws of noisy counts before and after a unit changes: one count moves, or two do."""

    def __init__(self, name: str, parameter: Fraction, change: str) -> None:
        logs = log_masses(name, parameter)
        own, up, down = logs[1:-1], logs[2:], logs[:-2]
        if change == "replace-one":
            own, up = ((a[:, None] + b[None, :]).reshape(-1) for a, b in ((own, own), (up, down)))
        self.p, self.q, self.log_p, self.loss = np.exp(own), np.exp(up), own, own - up

    def multiplicative(self) -> float:
        return float(np.abs(self.loss).max())

    def renyi(self, alpha: float) -> float:
        return float(np.log(np.sum(np.exp(self.log_p + (alpha - 1) * self.loss))) / (alpha - 1))

    def normalised_renyi(self) -> float:
        return max(math.sqrt(max(self.renyi(a), 0) / a) for a in (1.0001, 1.5, 2, 3, 5))

    def kullback_leibler(self) -> float:
        return float(np.sum(self.p * self.loss))

    def total_variation(self) -> float:
        return float(np.abs(self.p - self.q).sum() / 2)

    def delta(self, epsilon: float) -> float:
        return float(np.maximum(self.p - math.exp(epsilon) * self.q, 0).sum())


CHANGES = {"add-remove": 1, "replace-one": 2}


def amount(specification: Specification) -> float:
    return float(specification.budget.linear())


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("scale", [Fraction(2), Fraction(7, 2)])
def test_threat_15_discrete_laplace_noise_under_every_unit_and_divergence(
    change: str, scale: Fraction
) -> None:
    """Noise of scale b on counts: epsilon = 1/b if one record comes or goes, 2/b if one becomes another."""
    pair = Pair("laplace", scale, change)
    stated = pure(Fraction(CHANGES[change]) / scale)
    assert pair.multiplicative() == pytest.approx(amount(stated), rel=1e-9)
    assert DiscreteLaplace(scale).multiplicative(1) * CHANGES[change] == pytest.approx(pair.multiplicative())
    slack = 1 + 1e-9
    assert pair.normalised_renyi() <= amount(convert(stated, "zcdp").specification) * slack
    assert pair.kullback_leibler() <= amount(convert(stated, "kullback-leibler").specification) * slack
    assert pair.total_variation() <= amount(convert(stated, "total-variation").specification) * slack
    for alpha in (2, 5):
        assert pair.renyi(alpha) <= amount(convert(stated, "renyi", alpha=alpha).specification) * slack
    for delta in ("1e-2", "1e-5"):
        converted = convert(stated, "approximate", delta=delta).specification
        assert pair.delta(amount(converted)) <= float(delta)
    if change == "add-remove":
        own = DiscreteLaplace(scale)
        assert own.kullback_leibler(1) == pytest.approx(pair.kullback_leibler(), rel=1e-9)
        assert own.total_variation(1) == pytest.approx(pair.total_variation(), rel=1e-9)
        assert own.renyi(2, 1) == pytest.approx(pair.renyi(2), rel=1e-9)
        assert own.delta(0.1, 1) == pytest.approx(pair.delta(0.1), rel=1e-9)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("rho_squared", ["1/10", "1/2"])
def test_threat_15_discrete_gaussian_noise_under_every_unit_and_divergence(
    change: str, rho_squared: str
) -> None:
    """TopDown's own variance for a budget, and what that noise really loses for the unit of the budget."""
    cells = Cells(PEOPLE)
    allocation = Allocation.of(cells, rho_squared, {"block": 1}, {"detailed": 1}, change)  # type: ignore[arg-type]
    pair = Pair("gaussian", allocation.variance("block", "detailed"), change)
    stated = zcdp(rho_squared)
    rho = amount(stated)
    slack = 1 + 1e-9
    assert pair.kullback_leibler() == pytest.approx(rho**2, rel=1e-9)
    assert pair.normalised_renyi() <= rho * slack
    assert pair.normalised_renyi() == pytest.approx(rho, rel=1e-3)
    for alpha in (2, 5):
        converted = convert(stated, "renyi", alpha=alpha, on_distance="neighbours").specification
        assert pair.renyi(alpha) <= amount(converted) * slack
    for delta, method in itertools.product(("1e-2", "1e-5"), ("census", "optimal")):
        converted = convert(
            stated,
            "approximate",
            delta=delta,
            method=method,
            on_distance="neighbours",  # type: ignore[arg-type]
        ).specification
        assert pair.delta(amount(converted)) <= float(delta)
    with pytest.raises(StirredError):
        convert(stated, "approximate", delta="1e-5")


def test_threat_15_another_unit_costs_what_the_numbers_say() -> None:
    """From one record to two: epsilon doubles, rho squared is fourfold; the noise never loses more."""
    near = Pair("laplace", Fraction(3), "replace-one").multiplicative()
    doubled = change_unit(pure("1/3"), pure(1).input_premetric, 2, "a change is a removal and an addition")
    assert near == pytest.approx(amount(doubled))
    allocation = Allocation.of(Cells(PEOPLE), "1/4", {"block": 1}, {"total": 1}, "add-remove")
    pair = Pair("gaussian", allocation.variance("block", "total"), "replace-one")
    fourfold = change_unit(zcdp("1/4"), pure(1).input_premetric, 2, "a change is a removal and an addition")
    assert fourfold.budget.amount == Exact.of(1)
    assert pair.kullback_leibler() == pytest.approx(1 / 2) and pair.normalised_renyi() <= amount(fourfold)


RAGGED = [("1", "11", "111"), ("1", "11", "112"), ("1", "12", "121"), ("1", "13", "131"), ("1", "13", "132")]


RECODED = Schema(
    attributes=(Attribute(name="sex", levels=("f", "m")), Attribute(name="age", levels=(0, 1, 2))),
    recodes=(Recode(name="grown", attribute="age", groups={"no": (0,), "yes": (1, 2)}),),
)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("seed", range(4))
def test_threat_16_the_loss_of_every_change_of_a_record_is_recomputed_from_the_answers(
    change: str, seed: int
) -> None:
    """Random workloads of recodes and marginals, added up a ragged spine: brute force over all records."""
    rng = np.random.default_rng(seed)
    levels = ("state", "county", "block")
    tree = Spine.from_columns(pl.DataFrame(RAGGED, schema=list(levels), orient="row"), levels)
    cells = Cells(RECODED)
    asked = ["total", "sex", "grown", "sex * grown", "age", "detailed"]

    def shares(names: Sequence[str]) -> dict[str, Fraction]:
        weights = rng.integers(1, 6, len(names)).tolist()
        return {name: Fraction(w, sum(weights)) for name, w in zip(names, weights, strict=True)}

    queries = {level: shares(list(rng.choice(asked, 3, replace=False))) for level in levels}
    allocation = Allocation.of(cells, "3/2", shares(levels), queries, change)  # type: ignore[arg-type]
    design = Design(cells, tree, allocation)
    records = list(itertools.product(range(len(RAGGED)), range(6)))

    def answers(record: tuple[int, int]) -> tuple[np.ndarray, list[Fraction]]:
        leaf, cell = (np.array([part]) for part in record)
        parts, precisions = [], []
        for level, truth in enumerate(levels_of(Histogram.of_pairs(leaf, cell, len(RAGGED), 6), tree)):
            for node in design.measured[level]:
                chain = design.chain(level, int(design.reach[level][node]))
                for name, variance in allocation.variances(chain).items():
                    answer = cells.query(name).answer(truth.dense(int(node), int(node) + 1))[0]
                    parts.append(answer)
                    precisions += [1 / variance] * answer.size
        return np.concatenate(parts), precisions

    made = [answers(record) for record in records]

    def loss(difference: np.ndarray) -> Fraction:
        places = np.flatnonzero(difference)
        return sum((int(difference[i]) ** 2 * made[0][1][i] / 2 for i in places), Fraction(0))

    if change == "add-remove":
        assert {loss(answer) for answer, _ in made} == {Fraction(3, 2)}
    else:
        losses = [loss(a - b) for (a, _), (b, _) in itertools.combinations(made, 2)]
        unseen = allocation.rho("state", "total") if "total" in allocation.queries["state"] else 0
        assert max(losses) == Fraction(3, 2) - unseen


def test_threat_17_only_the_invariant_itself_and_what_adds_up_from_it_is_free() -> None:
    schema = Schema(
        attributes=tuple(Attribute(name=n, levels=(0, 1, 2)) for n in ("block", "county", "age", "income")),
        recodes=(Recode(name="grown", attribute="age", groups={"no": (0,), "yes": (1, 2)}),),
        nesting=(("block", "county"),),
    )
    given = (Count(unit="person", by=("block", "age")),)

    def count(*by: str, unit: str = "person", where: tuple[Condition, ...] = ()) -> Count:
        return Count(unit=unit, by=by, where=where)

    adults = Condition(attribute="age", levels=(1, 2))
    rich = Condition(attribute="income", levels=(2,))
    free = [
        given[0],
        count("block"),
        count(),
        count("county", "age"),
        count("block", "grown"),
        count("block", where=(adults,)),
        Sum(unit="person", attribute="age", by=("county",)),
        Threshold(statistic=count("block"), at_least=1),
    ]
    not_free = [
        count("block", "income"),
        count("income"),
        count("block", where=(rich,)),
        count("block", "age", where=(rich,)),
        count("block", unit="household"),
        Sum(unit="person", attribute="income", by=("block",)),
        Threshold(statistic=count("income"), at_least=1),
    ]
    assert all(implied_by(target, given, schema) for target in free)
    assert not any(implied_by(target, given, schema) for target in not_free)
    # Of a recode, of a filtered count, of a sum or of an indicator nothing finer follows.
    for source in (
        count("block", "grown"),
        count("block", "age", where=(adults,)),
        Sum(unit="person", attribute="age", by=("block",)),
        Threshold(statistic=count("block", "age"), at_least=1),
    ):
        assert not implied_by(given[0], (source,), schema)
        assert not implied_by(count("block"), (source,), schema) or source == count("block", "grown")
    # Without the schema nobody knows that blocks nest in counties, or what grown means.
    assert not implied_by(count("county"), given) and not implied_by(count("block", "grown"), given)


def test_threat_17_a_column_cannot_be_put_in_the_place_of_another() -> None:
    ages = Attribute(name="age", levels=(0, 1))
    with pytest.raises(StirredError):
        Schema.read(
            {
                "attributes": [ages.record(), {"name": "income", "levels": [0, 1]}],
                "recodes": [{"name": "age", "attribute": "income", "groups": {"a": [0], "b": [1]}}],
            }
        )
    with pytest.raises(Refusal, match="not the value"):
        Count.read({"unit": "person", "by": ["age"], "value": 12})


def test_threat_18_estimation_sees_noise_and_invariants_alone() -> None:
    """The Bureau's order of steps, replayed on another data set of the universe; bytes: test_replay.py."""
    mechanism = county()
    what = mechanism.guarantee()

    def run(data: pl.DataFrame, tape: Any, peek: bool = False) -> dict[str, Any]:
        prepared = mechanism.prepare(data)
        counts = prepared.counts
        answers = [int(n) for h in counts["person"] for n in h.dense(0, h.nodes).reshape(-1)]
        measurements = tape.draw(
            "measurements",
            answers,
            lambda source: mechanism.draw(prepared, source),
            sensitivity=2,
            cost=what.budget.linear(),
            norm="l2",
        )
        made = mechanism.finish(measurements, prepared.public).products["person"]
        table = made.table("block", "sex")
        if peek:
            there = counts["person"][1].totals() > 0
            table = table.filter(pl.Series(np.repeat(there, 2)))
        return {"microdata": made.microdata().write_csv(), "table": table.write_csv()}

    def view(frame: pl.DataFrame) -> pl.DataFrame:
        return located({"person": frame}, mechanism)["person"]

    held = replay_audit(run, X, TWIN, what, TestSource(8), view=view)
    assert held.verdict is Verdict.NOT_REFUTED and held.details["artefacts"] == 2
    found = replay_audit(
        lambda data, tape: run(data, tape, peek=True), X, TWIN, what, TestSource(9), view=view
    )
    assert found.violated and found.details["first difference"] == "table"
