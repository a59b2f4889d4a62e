"""D_NoR between the measurements of two data sets against a sum over every count, and against the budget."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest

from stirred.data import Spine
from stirred.noise import gaussian_mass
from stirred.spec import Distribution, Exact, Schema
from stirred.spec.finite.divergence import normalised_renyi
from stirred.topdown import Allocation, Cells, TopDown, Universe
from stirred.topdown.divergence import squared_divergence

BLOCKS = pl.DataFrame({"county": ["1", "1", "2"], "block": ["1a", "1b", "2a"]})
SCHEMA = Schema.of(sex=("f", "m"), age=("0", "1"))


def divergence(mechanism: TopDown, x: pl.DataFrame, y: pl.DataFrame) -> Exact:
    return mechanism.divergence(mechanism.prepare(x), mechanism.prepare(y))


def _mechanism(change="replace-one"):
    spine = Spine.from_columns(BLOCKS, ["county", "block"])
    budget = Allocation.of(
        Cells(SCHEMA),
        2,
        {"county": "1/3", "block": "2/3"},
        {"sex": "1/2", "detailed": "1/2"},
        change=change,
    )
    return TopDown(spine, [Universe("person", SCHEMA, budget)])


def _persons(*rows):
    return pl.DataFrame(rows, schema=["block", "sex", "age"], orient="row")


X = _persons(("1a", "f", "0"), ("1b", "m", "1"), ("2a", "m", "0"))


def _brute(mechanism, x, y):
    """Every measured count of every node, answered anew from the records."""
    (universe,) = mechanism.universes
    design, total = mechanism.designs["person"], Fraction(0)
    first, second = mechanism.counts(x)["person"], mechanism.counts(y)["person"]
    for level in range(mechanism.spine.depth):
        for node in design.measured[level]:
            chain = design.chain(level, int(design.reach[level][node]))
            for name, variance in universe.allocation.variances(chain).items():
                query = design.cells.query(name)
                a = query.answer(first[level].dense(int(node), int(node) + 1))
                b = query.answer(second[level].dense(int(node), int(node) + 1))
                total += sum(Fraction(int(d)) ** 2 for d in (a - b).ravel()) / (2 * variance)
    return total


@pytest.mark.parametrize(
    "y",
    [
        _persons(("2a", "m", "1"), ("1b", "m", "1"), ("2a", "m", "0")),
        _persons(("1b", "f", "0"), ("1a", "m", "1"), ("2a", "m", "0")),
        _persons(("1a", "f", "0"), ("1b", "f", "1"), ("2a", "f", "0")),
        X,
    ],
)
def test_the_divergence_agrees_with_a_sum_over_every_count(y):
    mechanism = _mechanism()
    expected = _brute(mechanism, X, y)
    assert divergence(mechanism, X, y) == Exact.sqrt(expected)
    design = mechanism.designs["person"]
    pair = (mechanism.counts(data)["person"] for data in (X, y))
    assert squared_divergence(design, *pair) == expected


def test_theorem_2_the_budget_is_attained_by_a_record_that_changes_every_count():
    """A person who moves to another county and changes sex moves two counts of every query by one."""
    mechanism = _mechanism()
    y = _persons(("2a", "m", "1"), ("1b", "m", "1"), ("2a", "m", "0"))
    assert divergence(mechanism, X, y) == mechanism.guarantee().budget.linear()


def test_add_or_remove_one_attains_its_budget_too():
    mechanism = _mechanism("add-remove")
    assert divergence(mechanism, X, X[1:]) == mechanism.guarantee().budget.linear()


def test_proposition_5_of_canonne_kamath_steinke_equality_at_integer_orders():
    """D_NoR of discrete Gaussians one apart, from masses on a wide window, is 1/(sqrt(2) sigma)."""
    variance = Fraction(3)
    window = range(-60, 61)
    masses = [sum(gaussian_mass(variance, k)) / 2 for k in window]
    whole = sum(masses)
    p = Distribution({k: m / whole for k, m in zip(window, masses, strict=True)})
    q = Distribution({k + 1: m / whole for k, m in zip(window, masses, strict=True)})
    inside = sorted(p.support & q.support)
    cut = [Distribution({k: d[k] / sum(d[j] for j in inside) for k in inside}) for d in (p, q)]
    assert float(normalised_renyi(*cut)) ** 2 == pytest.approx(float(1 / (2 * variance)), rel=1e-9)
