"""Allocation to analysts: exact shares that together never exceed the data set's budget."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger.common import MANIFEST, NEIGHBOURS, approximate, desk, make, plan, pure, zcdp

from stirred.errors import InputError, NotImplied, Refusal
from stirred.ledger import Accurate, Amount, Equal, NotPermitted, OverBudget, Sample, Wanted, Weighted
from stirred.ledger.amount import total
from stirred.spec import Exact


def test_equal_shares_of_a_logarithm_are_exact(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure("ln(10)"))
    shares = ledger.allocate("a", Equal(["Di", "Ed"]), by="Cy")
    assert shares["Di"].budget.amount == Exact.log(10) / 2
    assert shares["Di"].budget.amount + shares["Ed"].budget.amount == Exact.log(10)
    assert shares["Di"].flavor == pure(1).flavor


def test_weighted_shares_of_what_is_left(tmp_path: Path) -> None:
    ledger = make(tmp_path, zcdp(1))
    ledger.spend("a", zcdp("1/10"), plan(), by="Ben")
    shares = ledger.allocate("a", Weighted({"Di": 2, "Ed": "0.25"}), by="Cy")
    assert shares["Di"].budget.amount == Exact.of("4/5")
    assert shares["Ed"].budget.amount == Exact.of("1/10")
    assert Amount.of(ledger.statement("a").unallocated).record() == {"rho_squared": "0"}


def test_shares_by_wanted_accuracy(tmp_path: Path) -> None:
    """Laplace: P(|noise| > 50) = 1/20 at epsilon = ln(20)/50. Gaussian: rho squared = 1/(2 sd^2)."""
    ledger = make(tmp_path, pure(1), zcdp(1), approximate(1, "1e-9"))
    wanted = Accurate({"Di": Wanted(1, 50), "Ed": Wanted(sensitivity=2, error=50, miss="0.01")})
    shares = ledger.allocate("a", wanted, by="Cy")
    assert shares["Di"].budget.amount == Exact.log(20) / 50
    assert shares["Ed"].budget.amount == Exact.log(100) / 25
    assert math.isclose(math.exp(-50 * float(shares["Di"].budget.amount)), 0.05)
    assert ledger.allocate("b", Accurate({"Di": Wanted(1, 5)}), by="Cy")["Di"].budget.amount == Exact.of(
        "1/50"
    )
    with pytest.raises(NotImplied):
        ledger.allocate("c", Accurate({"Di": Wanted(1, 5)}), by="Cy")
    with pytest.raises(OverBudget, match="what is not allocated"):
        ledger.allocate("b", Accurate({"Ed": Wanted(1, "1/2")}), by="Cy")


def test_allocations_cannot_exceed_the_data_set(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    ledger.spend("a", pure("1/4"), plan(), by="Ben")
    ledger.allocate("a", Equal(["Di"]), by="Cy", of=pure("1/2"))
    with pytest.raises(OverBudget) as refused:
        ledger.allocate("a", Equal(["Ed"]), by="Cy", of=pure("1/2"))
    assert refused.value.difference.record() == {"epsilon": "1/4"}
    ledger.allocate("a", Equal(["Ed"]), by="Cy", of=pure("1/4"))
    with pytest.raises(OverBudget, match="what is not allocated of a"):
        ledger.spend("a", pure("1/100"), plan(), by="Ben")


def test_an_analyst_spends_their_own_allocation_only(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    ledger.allocate("a", Weighted({"Di": 3, "Ed": 1}), by="Cy")
    mine = ledger.spend("a", pure("1/2"), plan(), by="Di", analyst="Di")
    assert ledger.remaining("a", analyst="Di").budget.amount == Exact.of("1/4")
    with pytest.raises(OverBudget, match="allocation of Di"):
        ledger.spend("a", pure("1/2"), plan(), by="Di", analyst="Di")
    with pytest.raises(NotPermitted, match="own allocation"):
        ledger.spend("a", pure("1/8"), plan(), by="Di", analyst="Ed")
    with pytest.raises(NotPermitted, match="own allocation"):
        ledger.spend("a", pure("1/8"), plan(), by="Di")
    with pytest.raises(NotPermitted, match="own allocation"):
        ledger.finish(mine, MANIFEST, by="Ed")
    ledger.spend("a", pure("1/8"), plan(), by="Ben", analyst="Ed")
    assert ledger.finish(mine, MANIFEST, by="Di").status == "finished"
    assert ledger.total("a").budget.amount == Exact.of("5/8")


def test_only_analysts_are_allocated_to(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    with pytest.raises(NotPermitted, match="Ben is not an analyst"):
        ledger.allocate("a", Equal(["Ben"]), by="Cy")
    with pytest.raises(Refusal, match="no allocation"):
        ledger.spend("a", pure("1/8"), plan(), by="Di", analyst="Di")


def test_what_is_unspent_can_be_withdrawn_and_what_is_spent_cannot(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    ledger.allocate("a", Equal(["Di"]), by="Cy")
    ledger.spend("a", pure("1/4"), plan(), by="Di", analyst="Di")
    ledger.withdraw("a", "Di", by="Cy")
    assert ledger.remaining("a", analyst="Di").budget.amount == Exact.of(0)
    assert ledger.remaining("a").budget.amount == Exact.of("3/4")
    ledger.spend("a", pure("3/4"), plan(), by="Ben")
    with pytest.raises(OverBudget):
        ledger.spend("a", pure("1/100"), plan(), by="Di", analyst="Di")


def test_a_sample_shared_by_analysts_cannot_outspend_the_data_set(tmp_path: Path) -> None:
    """Apart, each is within their allocation; together, one sample costs more than both."""
    ledger = make(tmp_path, pure(1, NEIGHBOURS))
    ledger.allocate("a", Equal(["Di", "Ed"]), by="Cy")
    sample = Sample(name="A", rate="0.1", design="simple-random")
    ledger.spend("a", pure(2, NEIGHBOURS), plan(), by="Di", analyst="Di", sample=sample)
    with pytest.raises(OverBudget, match="the data set a"):
        ledger.spend("a", pure(2, NEIGHBOURS), plan(), by="Ed", analyst="Ed", sample=sample)


@pytest.mark.parametrize(
    "division",
    [
        Equal([]),
        Equal(["Di", "Di"]),
        Equal("Di"),
        Weighted({"Di": 0}),
        Weighted({"Di": -1}),
        Weighted({"Di": "much"}),
        Accurate({"Di": Wanted(1, 0)}),
        Accurate({"Di": Wanted(1, 1, miss=1)}),
        Accurate({}),
    ],
    ids=str,
)
def test_a_division_that_makes_no_sense_is_refused(tmp_path: Path, division: object) -> None:
    ledger = make(tmp_path, pure(1))
    with pytest.raises(InputError):
        ledger.allocate("a", division, by="Cy")
    assert ledger.statement("a").allocations == {}


def test_an_unlimited_budget_is_not_divided_unless_an_amount_is_named(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure("inf"))
    with pytest.raises(InputError, match="not divided"):
        ledger.allocate("a", Equal(["Di"]), by="Cy")
    assert ledger.allocate("a", Equal(["Di"]), by="Cy", of=pure(1))["Di"].budget.amount == Exact.of(1)


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["allocate Di", "allocate Ed", "Di", "Ed", "Ben", "withdraw Di"]),
        st.fractions(min_value=0, max_value=1, max_denominator=20),
    ),
    max_size=9,
)


@settings(max_examples=80, deadline=None)
@given(ACTS)
def test_any_sequence_of_acts_keeps_every_account_within_bounds(acts: list[tuple[str, Fraction]]) -> None:
    """A twin in plain fractions: allowed and refused alike, and the sum over analysts within the ceiling."""
    ledger = desk(pure(1))
    granted: dict[str, Fraction] = {}
    spent = {"Di": Fraction(0), "Ed": Fraction(0), "Ben": Fraction(0)}
    for act, amount in acts:
        verb, _, name = act.rpartition(" ")
        try:
            if verb == "allocate":
                fits = sum(granted.values()) + spent["Ben"] + amount <= 1
                ledger.allocate("a", Equal([name]), by="Cy", of=pure(amount))
                granted[name] = granted.get(name, Fraction(0)) + amount
            elif verb == "withdraw":
                fits = name in granted
                ledger.withdraw("a", name, by="Cy")
                granted[name] = spent[name]
            elif name == "Ben":
                fits = sum(granted.values()) + spent["Ben"] + amount <= 1
                ledger.spend("a", pure(amount), plan(), by="Ben")
                spent["Ben"] += amount
            else:
                fits = name in granted and spent[name] + amount <= granted[name]
                ledger.spend("a", pure(amount), plan(), by=name, analyst=name)
                spent[name] += amount
        except Refusal:
            assert not fits
        else:
            assert fits
    statement = ledger.statement("a")
    assert statement.spent.budget.amount.rational == sum(spent.values()) <= 1
    shares = total((Amount.of(part) for part, _ in statement.allocations.values()), pure(1).flavor)
    assert shares.values[0].rational == sum(granted.values()) <= 1
