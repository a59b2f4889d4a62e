"""What a data set can pay for: exactly the composition of its releases, in the ceiling's flavor."""

from __future__ import annotations

import copy
import math
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger.common import (
    HOUSEHOLDS,
    NEIGHBOURS,
    approximate,
    counted,
    desk,
    gaussian,
    make,
    plan,
    pure,
    zcdp,
)

from stirred.errors import DomainMismatch, InputError, NonFreshSeeds, NotImplied, Refusal
from stirred.ledger import Amount, Group, IncomparableFlavor, OverBudget, Sample
from stirred.ledger.accountant import Tally, carried, tally
from stirred.spec import Budget, Domain, Exact, Neighbours, Specification, Stage, compose
from stirred.spec.blocks.output_premetric import TotalVariation


def epsilon(specification: Specification) -> Exact:
    return specification.budget.amount


@pytest.mark.parametrize("kind", [pure, zcdp])
def test_ten_spends_of_a_tenth_fit_in_one_and_the_eleventh_is_refused(tmp_path: Path, kind: object) -> None:
    ledger = make(tmp_path, kind(1))
    for _ in range(10):
        ledger.spend("a", kind(0.1), plan(), by="Ben")
    assert epsilon(ledger.total("a")) == Exact.of(1)
    assert epsilon(ledger.remaining("a")) == Exact.of(0)
    before = ledger.head()
    with pytest.raises(OverBudget) as refused:
        ledger.spend("a", kind(0.1), plan(), by="Ben")
    letter = "ε" if kind is pure else "ρ²"
    found = refused.value.as_dict()
    assert (found["requested"], found["remaining"], found["difference"]) == (
        f"{letter} = 1/10",
        f"{letter} = 0",
        f"{letter} = 1/10",
    )
    assert refused.value.exit_code == 3
    assert ledger.head() == before


def test_the_refusal_is_exact_to_the_last_digit(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    ledger.spend("a", pure("9/10"), plan(), by="Ben")
    with pytest.raises(OverBudget) as refused:
        ledger.spend("a", pure(Fraction(1, 10) + Fraction(1, 10**30)), plan(), by="Ben")
    assert refused.value.difference.values == (Exact(Fraction(1, 10**30)),)
    ledger.spend("a", pure("1/10"), plan(), by="Ben")


def test_logarithms_of_rationals_add_up_exactly(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure("ln(6)"))
    ledger.spend("a", pure("ln(3/2)"), plan(), by="Ben")
    ledger.spend("a", pure("ln(4)"), plan(), by="Ben")
    assert epsilon(ledger.remaining("a")) == Exact.of(0)
    with pytest.raises(OverBudget):
        ledger.spend("a", pure("1/1000000000000"), plan(), by="Ben")


def test_rho_adds_in_squares(tmp_path: Path) -> None:
    ledger = make(tmp_path, zcdp(1))
    rho = zcdp(1).flavor.with_budget(Budget.zcdp(rho="1/2"))
    for _ in range(4):
        ledger.spend("a", rho, plan(), by="Ben")
    assert ledger.total("a").budget == Budget.zcdp(rho_squared=1)
    with pytest.raises(OverBudget):
        ledger.spend("a", rho, plan(), by="Ben")


def test_gaussian_dp_adds_in_squares(tmp_path: Path) -> None:
    ledger = make(tmp_path, gaussian("sqrt(2)"))
    ledger.spend("a", gaussian(1), plan(), by="Ben")
    assert epsilon(ledger.remaining("a")) == Exact.of(1)
    ledger.spend("a", gaussian(1), plan(), by="Ben")
    with pytest.raises(OverBudget, match="μ² = 1/100"):
        ledger.spend("a", gaussian("1/10"), plan(), by="Ben")


def test_approximate_dp_counts_epsilon_and_delta(tmp_path: Path) -> None:
    ledger = make(tmp_path, approximate(1, "1e-6"), approximate(9, "1/2"))
    ledger.spend("a", approximate("1/2", "9e-7"), plan(), by="Ben")
    with pytest.raises(OverBudget) as refused:
        ledger.spend("a", approximate("1/4", "2e-7"), plan(), by="Ben")
    assert refused.value.difference.record() == {"epsilon": "0", "delta": "1/10000000"}
    ledger.spend("a", approximate("1/2", "1e-7"), plan(), by="Ben")
    assert Amount.of(ledger.remaining("a")).record() == {"epsilon": "0", "delta": "0"}
    ledger.spend("b", approximate(1, "0.4"), plan(), by="Ben")
    with pytest.raises(OverBudget):
        ledger.spend("b", approximate(1, "0.7"), plan(), by="Ben")


def test_an_unlimited_ceiling_is_an_odometer(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure("inf"))
    ledger.spend("a", pure(50), plan(), by="Ben")
    assert epsilon(ledger.total("a")) == Exact.of(50)
    assert epsilon(ledger.remaining("a")).is_infinite
    ledger.spend("a", pure("inf"), plan(), by="Ben")
    assert epsilon(ledger.total("a")).is_infinite


def test_an_infinite_spend_is_refused_by_a_finite_ceiling(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    with pytest.raises(OverBudget, match="difference ε = ∞"):
        ledger.spend("a", pure("inf"), plan(), by="Ben")


def test_another_flavor_is_refused_with_a_reason_and_never_compared(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    for other, reason in (
        (zcdp("1/100"), "D_NoR is not restated as D_Mult"),
        (pure("1/100", HOUSEHOLDS), "distances are not known to bound"),
        (pure("1/100", multiverse=counted()), "does not condition on all invariants"),
    ):
        with pytest.raises(IncomparableFlavor, match=reason) as refused:
            ledger.spend("a", other, plan(), by="Ben")
        assert "currencies" in refused.value.hint
    elsewhere = Specification(
        **dict(pure("1/100")) | {"domain": Domain(name="dwellings", stage=Stage.EDITED_FILE)}
    )
    with pytest.raises(IncomparableFlavor, match="domains dwellings and persons differ"):
        ledger.spend("a", elsewhere, plan(), by="Ben")
    assert epsilon(ledger.total("a")) == Exact.of(0)
    with pytest.raises(DomainMismatch):
        compose(pure(1), elsewhere)


def test_a_ceiling_with_invariants_takes_releases_without_them(tmp_path: Path) -> None:
    """The meet: a ceiling that conditions on the invariants covers a release that conditions on fewer."""
    ledger = make(tmp_path, pure(1, multiverse=counted()))
    ledger.spend("a", pure("1/2"), plan(), by="Ben")
    ledger.spend("a", pure("1/2", multiverse=counted()), plan(), by="Ben")
    total = ledger.total("a")
    assert total.flavor == pure(1, multiverse=counted()).flavor
    assert epsilon(total) == Exact.of(1)


def test_a_number_is_not_a_ceiling_nor_a_release(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    with pytest.raises(InputError, match="not a specification"):
        ledger.open_dataset("x", 1, by="Ada")
    with pytest.raises(InputError, match="not a specification"):
        ledger.spend("a", 0.1, plan(), by="Ben")


def test_a_ceiling_must_have_an_adaptive_law_and_an_exact_square(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    total_variation = Specification(
        **dict(pure(1)) | {"output_premetric": TotalVariation(), "budget": Budget.loss("1/2")}
    )
    with pytest.raises(NotImplied, match="do not add up"):
        ledger.open_dataset("x", total_variation, by="Ada")
    irrational = zcdp(1).flavor.with_budget(Budget.zcdp(rho="ln(2)"))
    with pytest.raises(InputError, match="one exact number"):
        ledger.open_dataset("x", irrational, by="Ada")
    assert ledger.datasets() == ()


def test_a_data_set_is_opened_once(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    with pytest.raises(InputError, match="open already"):
        ledger.open_dataset("a", pure(100), by="Ada")
    assert epsilon(ledger.remaining("a")) == Exact.of(1)


@pytest.mark.parametrize(
    ("kind", "factor", "cost"), [(pure, 4, "2/5"), (zcdp, 4, "8/5"), (pure, "5/2", "1/4")]
)
def test_group_factors_multiply(tmp_path: Path, kind: object, factor: object, cost: str) -> None:
    """One household is at most so many persons: epsilon grows by the factor, rho squared by its square."""
    ledger = make(tmp_path, kind(2, HOUSEHOLDS))
    release = kind("1/10")
    group = Group(factor=factor, because="no household is larger")
    ledger.spend("a", release, plan(), by="Ben", group=group)
    total = ledger.total("a")
    assert epsilon(total) == Exact.of(cost)
    assert any("no household is larger" in line for line in total.assumptions)
    assert ledger.total("a", unit="person").budget.amount == Exact.of("1/10")


def test_totals_by_unit_stand_in_their_own_flavor(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(2, HOUSEHOLDS))
    four = Group(factor=4, because="at most four persons")
    ledger.spend("a", pure("1/8"), plan(), by="Ben", group=four)
    ledger.spend("a", pure("1/8"), plan(), by="Ben", group=four)
    ledger.spend("a", pure("1/3", HOUSEHOLDS), plan(), by="Ben")
    assert epsilon(ledger.total("a", unit="person")) == Exact.of("1/4")
    assert epsilon(ledger.total("a", unit="household")) == Exact.of("1/3")
    assert epsilon(ledger.total("a")) == Exact.of("4/3")
    with pytest.raises(InputError, match="protects this unit"):
        ledger.total("a", unit="tract")


def test_a_factor_below_one_is_refused() -> None:
    with pytest.raises(InputError):
        Group(factor="1/2", because="wishful")


def test_periods_have_a_ceiling_of_their_own(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    ledger.open_dataset("a", pure(1), by="Ada", each_period=pure("1/2"))
    ledger.spend("a", pure("1/2"), plan(), by="Ben", period="2026-Q1")
    with pytest.raises(OverBudget, match=r"period 2026-Q1 of a.*remaining ε = 0"):
        ledger.spend("a", pure("1/4"), plan(), by="Ben", period="2026-Q1")
    with pytest.raises(InputError, match="ceiling for each period"):
        ledger.spend("a", pure("1/4"), plan(), by="Ben")
    ledger.spend("a", pure("1/4"), plan(), by="Ben", period="2026-Q2")
    assert epsilon(ledger.total("a", period="2026-Q1")) == Exact.of("1/2")
    assert epsilon(ledger.total("a", period="2026-Q2")) == Exact.of("1/4")
    assert epsilon(ledger.total("a", period="2026-Q3")) == Exact.of(0)
    assert epsilon(ledger.remaining("a", period="2026-Q2")) == Exact.of("1/4")
    with pytest.raises(OverBudget, match="the data set a has"):
        ledger.spend("a", pure("1/2"), plan(), by="Ben", period="2026-Q3")


def test_a_period_ceiling_of_another_flavor_is_refused(tmp_path: Path) -> None:
    ledger = make(tmp_path)
    with pytest.raises(IncomparableFlavor):
        ledger.open_dataset("a", pure(1), by="Ada", each_period=zcdp(1))


def test_seeds_that_are_not_fresh_are_refused(tmp_path: Path) -> None:
    """U is a fair coin, x xor U and U have loss zero each: together they reveal x (R21)."""
    ledger = make(tmp_path, pure(1), pure(1))
    with pytest.raises(NonFreshSeeds):
        ledger.spend("a", pure(0), plan(), by="Ben", fresh=False)
    seed = plan()
    ledger.spend("a", pure(0), plan(), by="Ben", seed=seed)
    for dataset in "ab":
        with pytest.raises(NonFreshSeeds, match="fresh randomness"):
            ledger.spend(dataset, pure(0), plan(), by="Ben", seed=seed)
    assert not ledger.preview("b", pure(0), seed=seed).fits
    ledger.spend("b", pure(0), plan(), by="Ben", seed=plan())


def test_releases_of_one_sample_are_amplified_once(tmp_path: Path) -> None:
    """Section 6.5.2: sample A at 0.1 with losses 1 and 2, sample B at 0.05 with 1.5, together 1.2281446."""
    ledger = make(tmp_path, pure(2, NEIGHBOURS))
    first = Sample(name="A", rate="0.1", design="simple-random")
    second = Sample(name="B", rate="0.05", design="simple-random")
    ledger.spend("a", pure(1, NEIGHBOURS), plan(), by="Ben", sample=first)
    alone = float(epsilon(ledger.total("a")))
    assert math.isclose(alone, 0.158565078740, abs_tol=1e-11)
    ledger.spend("a", pure(2, NEIGHBOURS), plan(), by="Ben", sample=first)
    assert math.isclose(float(epsilon(ledger.total("a"))), 1.067655944684, abs_tol=1e-11)
    ledger.spend("a", pure("1.5", NEIGHBOURS), plan(), by="Ben", sample=second)
    whole = ledger.total("a")
    assert math.isclose(float(epsilon(whole)), 1.228144600057, abs_tol=1e-11)
    assert epsilon(whole).rational is not None
    assert sum("stays secret" in line for line in whole.assumptions) == 2
    assert ledger.verify().ok


def test_a_shared_sample_can_exhaust_a_budget_that_its_parts_would_fit(tmp_path: Path) -> None:
    """0.16 and 0.49 would fit in 1; the two releases of one sample cost 1.07."""
    ledger = make(tmp_path, pure(1, NEIGHBOURS))
    sample = Sample(name="A", rate="0.1", design="simple-random")
    ledger.spend("a", pure(1, NEIGHBOURS), plan(), by="Ben", sample=sample)
    with pytest.raises(OverBudget) as refused:
        ledger.spend("a", pure(2, NEIGHBOURS), plan(), by="Ben", sample=sample)
    assert math.isclose(float(refused.value.difference.values[0]), 0.067655944684, abs_tol=1e-11)
    other = Sample(name="B", rate="0.1", design="simple-random")
    ledger.spend("a", pure(2, NEIGHBOURS), plan(), by="Ben", sample=other)


def test_a_sample_has_one_design(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(9, NEIGHBOURS))
    ledger.spend(
        "a",
        pure(1, NEIGHBOURS),
        plan(),
        by="Ben",
        sample=Sample(name="A", rate="1/10", design="simple-random"),
    )
    with pytest.raises(Refusal, match="another rate or design"):
        ledger.spend(
            "a",
            pure(1, NEIGHBOURS),
            plan(),
            by="Ben",
            sample=Sample(name="A", rate="1/100", design="simple-random"),
        )


def test_amplification_is_refused_where_no_theorem_carries_it(tmp_path: Path) -> None:
    added = Neighbours(relation="add-remove", unit="person")
    ledger = make(tmp_path, pure(9), zcdp(9, NEIGHBOURS), pure(9, NEIGHBOURS), pure(9, added))
    simple = Sample(name="A", rate="1/10", design="simple-random")
    poisson = Sample(name="P", rate="1/10", design="poisson")
    for dataset, release, sample in (
        ("a", pure(1), simple),
        ("b", zcdp(1, NEIGHBOURS), simple),
        ("c", pure(1, NEIGHBOURS), poisson),
        ("d", pure(1, added), simple),
    ):
        with pytest.raises(NotImplied, match="no theorem here amplifies"):
            ledger.spend(dataset, release, plan(), by="Ben", sample=sample)
    ledger.spend("d", pure(1, added), plan(), by="Ben", sample=poisson)
    with pytest.raises(InputError):
        Sample(name="A", rate="3/2", design="simple-random")


def test_preview_says_what_would_be_left_and_writes_nothing(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    ledger.spend("a", pure("0.7"), plan(), by="Ben")
    before = ledger.head()
    seen = ledger.preview("a", pure("0.2"))
    assert seen.fits
    assert (epsilon(seen.remaining), epsilon(seen.afterwards)) == (Exact.of("3/10"), Exact.of("1/10"))
    assert seen.requested.record() == {"epsilon": "1/5"}
    much = ledger.preview("a", pure("0.4"))
    assert not much.fits
    assert much.afterwards is None
    assert isinstance(much.refusal, OverBudget)
    assert much.requested.record() == {"epsilon": "2/5"}
    assert isinstance(ledger.preview("a", zcdp("0.1")).refusal, IncomparableFlavor)
    assert ledger.head() == before


AMOUNTS = st.fractions(min_value=0, max_value=1, max_denominator=1000)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.fractions(min_value=0, max_value=3, max_denominator=100), st.lists(AMOUNTS, max_size=8), st.data())
def test_random_spends_equal_a_plain_sum_and_never_exceed_the_ceiling(
    ceiling: Fraction, amounts: list[Fraction], data: st.DataObject
) -> None:
    """A twin accountant in plain fractions decides the same, for pure DP and for zCDP."""
    kind = data.draw(st.sampled_from([pure, zcdp]))
    ledger = desk(kind(ceiling))
    spent = Fraction(0)
    for amount in amounts:
        if spent + amount <= ceiling:
            ledger.spend("a", kind(amount), plan(), by="Ben")
            spent += amount
        else:
            with pytest.raises(OverBudget) as refused:
                ledger.spend("a", kind(amount), plan(), by="Ben")
            assert refused.value.difference.values[0].rational == spent + amount - ceiling
    fresh = copy.copy(ledger)
    assert epsilon(fresh.total("a")).rational == spent
    assert epsilon(fresh.remaining("a")).rational == ceiling - spent
    assert fresh.verify().ok


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.fractions(min_value=Fraction(1, 9), max_value=9, max_denominator=9), min_size=1, max_size=7)
)
def test_the_running_tally_is_the_composition_of_all_parts(ratios: list[Fraction]) -> None:
    """One by one, all at once and by ``compose``: the same exact number, also for logarithms."""
    releases = [pure(Exact.log(max(r, 1 / r))) for r in ratios]
    ceiling = pure("inf").flavor
    parts = [carried(release, ceiling, None, None) for release in releases]
    running = Tally(ceiling)
    for part in parts:
        running = running.plus(part)
    product = math.prod((max(r, 1 / r) for r in ratios), start=Fraction(1))
    assert running.amount() == tally(parts, ceiling).amount()
    assert running.amount().values == (Exact.log(product),)
    assert compose(*releases).budget.amount == Exact.log(product)
    assert running.specification().assumptions == ("the seeds of all parts are independent",)
