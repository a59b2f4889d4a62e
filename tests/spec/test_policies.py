"""Budgets that follow from the universe: rule 4 of the algebra of guarantees."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
import pytest
from support.protocol import guaranteed

from stirred.audit.claim import allowed_loss
from stirred.errors import InputError, NotComputable, NotImplied, UnknownName
from stirred.ledger import Ledger
from stirred.ledger.accountant import carried, tally
from stirred.spec import (
    Approximate,
    Attribute,
    Budget,
    Count,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Flavor,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    Order,
    Restated,
    Schema,
    Specification,
    Stated,
    Swapping,
    catalogue,
    change_unit,
    compare,
    compose,
    convert,
    from_invariants,
    jointly,
    parallel,
    satisfies,
    swapping_invariants,
    swapping_loss,
)
from stirred.spec.blocks.policy import Fixed, Together
from stirred.spec.blocks.psa import swapping_budget
from stirred.spec.disclosure import component_budgets
from stirred.spec.order.policy_order import pointwise
from stirred.swap import PermutationSwap


def swapped(rate: object = "0.5", b: int = 2, match: tuple[str, ...] = ("state",)) -> Specification:
    base = catalogue.specification("psa-2020-county")
    budget = swapping_budget(b, rate, "household", match)
    return Specification(**dict(base) | {"budget": budget})


def by_hand(b: int, p: Fraction) -> float:
    """Theorem 1, from its statement."""
    u = math.log(p / (1 - p))
    return max(math.log(b + 1) - u, u)


def test_one_policy_on_two_data_sets_is_one_guarantee() -> None:
    small, large = swapped(b=2), swapped(b=100)
    assert small.budget.amount < large.budget.amount
    assert compare(small, large).overall == Order.EQUIVALENT


def test_a_rate_of_97_percent_is_not_stronger_than_one_of_50() -> None:
    assert float(swapping_loss(2, "0.97")) == pytest.approx(3.476, abs=5e-4)
    assert float(swapping_loss(2, "0.5")) == pytest.approx(1.099, abs=5e-4)
    assert float(swapping_loss(1000, "0.97")) == pytest.approx(3.476, abs=5e-4)
    assert float(swapping_loss(1000, "0.5")) == pytest.approx(6.909, abs=5e-4)
    for b in (2, 32, 1000):
        verdict = compare(swapped("0.97", b), swapped("0.5", b))
        assert verdict.overall == Order.INCOMPARABLE
        assert (
            verdict.blocks[-1].reason == "the first budget is smaller in some universes and larger in others"
        )
    crossing = [b for b in range(2, 100) if by_hand(b, Fraction(97, 100)) < by_hand(b, Fraction(1, 2))]
    assert crossing[0] == 32


RATES = [Fraction(k, 100) for k in range(1, 100)]
SIZES = np.array([*range(2, 3000), 10**5, 10**7, 10**9], dtype=float)


def theorem_1(u: float) -> np.ndarray:
    return np.maximum(np.log(SIZES + 1) - u, u)


def theorem_b(u: float) -> np.ndarray:
    """By hand: derangements as n!/e to the nearest integer, their ratio n(n-1) for large n."""
    small = {n: round(math.factorial(n) / math.e) for n in range(2, 15)}
    ratio = np.array([small[int(n)] / small[int(n) - 2] if 4 <= n < 15 else n * (n - 1) for n in SIZES])
    loss = np.maximum(u, np.log(ratio) / 2 - u)
    loss[SIZES == 2] = abs(u)
    loss[SIZES == 3] = max(u, math.log(2) / 3 - u, (math.log(2) - u) / 2)
    return loss


@pytest.mark.parametrize(("theorem", "by_hand"), [("1", theorem_1), ("B", theorem_b)])
def test_the_order_of_two_rates_is_that_of_their_losses_at_every_size(
    theorem: Literal["1", "B"], by_hand: Callable[[float], np.ndarray]
) -> None:
    """All pairs of percentages, 9,801 for each theorem."""
    losses = {p: by_hand(math.log(p / (1 - p))) for p in RATES}
    domain = catalogue.specification("psa-2020-county").domain
    budgets = {
        p: Budget.epsilon(1, Swapping(theorem=theorem, unit="household", match=("a",), rate=p)) for p in RATES
    }
    for p, q in itertools.product(RATES, RATES):
        gap = losses[p] - losses[q]
        expected = {
            (True, True): "equal",
            (True, False): "below",
            (False, True): "above",
            (False, False): "crossing",
        }[bool((gap <= 1e-12).all()), bool((gap >= -1e-12).all())]
        assert pointwise(budgets[p], budgets[q], domain) == expected, (p, q)


def largest_by_hand(strata: list[list[tuple[str, ...]]]) -> int:
    """The largest stratum in which held and swapped values both vary."""
    mixed = [s for s in strata if len({r[:2] for r in s}) > 1 and len({r[2] for r in s}) > 1]
    return max(map(len, mixed), default=0)


def test_a_finer_key_loses_less_in_every_universe() -> None:
    """The largest stratum with two distinct records, counted by hand, never grows with the key."""
    records = list(itertools.product("ab", "xy", "12"))  # matched or held, held, swapped
    for data in itertools.combinations_with_replacement(records, 4):
        by_first = [[r for r in data if r[0] == key] for key in "ab"]
        assert largest_by_hand(by_first) <= largest_by_hand([list(data)])
    fine, coarse = swapped(match=("state", "household_size")), swapped(match=("state",))
    domain = fine.domain
    assert pointwise(fine.budget, coarse.budget, domain) == "below"
    assert pointwise(coarse.budget, fine.budget, domain) == "above"
    assert pointwise(fine.budget, swapped("0.2").budget, domain) == "below"
    assert pointwise(fine.budget, swapped("0.6").budget, domain) is None
    assert pointwise(fine.budget, swapped(match=("county",)).budget, domain) is None


def test_a_constant_against_a_policy() -> None:
    policy = swapped("0.5", 50)
    constant = {
        c: Specification(**dict(policy) | {"budget": Budget.epsilon(c)}) for c in ("1", "ln(3)", "2", "9")
    }
    assert compare(constant["1"], policy).overall == Order.STRONGER
    assert compare(constant["ln(3)"], policy).overall == Order.STRONGER
    assert compare(constant["2"], policy).overall == Order.INCOMPARABLE
    assert compare(policy, constant["9"]).overall == Order.INCOMPARABLE
    assert float(policy.budget.amount) < 9


def test_unknown_pairs_of_rules_are_undecided() -> None:
    policy = swapped()
    other = Specification(**dict(policy) | {"budget": Budget.epsilon(1, Stated(text="one rule"))})
    another = Specification(**dict(policy) | {"budget": Budget.epsilon(2, Stated(text="another rule"))})
    assert compare(policy, other).overall == Order.UNDECIDED
    assert compare(other, another).overall == Order.UNDECIDED
    assert compare(other, other).overall == Order.EQUIVALENT


def test_composition_keeps_the_rules_and_adds_their_values() -> None:
    first, second = swapped("0.5", 7), swapped("0.2", 7)
    both = compose(first, second)
    assert both.budget.amount == first.budget.amount + second.budget.amount
    assert both.budget.policy == Together(how="the sum", parts=(first.budget.policy, second.budget.policy))
    assert both.budget.at == first.budget.at
    again = compose(both, second)
    assert isinstance(again.budget.policy, Together)
    assert len(again.budget.policy.parts) == 3
    with_noise = compose(first, Specification(**dict(first) | {"budget": Budget.epsilon("1/2")}))
    assert isinstance(with_noise.budget.policy, Together)
    assert with_noise.budget.policy.parts[1] == Fixed(parametrisation="epsilon", amount="1/2")


def test_values_of_two_universes_do_not_add_up() -> None:
    with pytest.raises(NotImplied, match="different universes"):
        compose(swapped("0.5", 7), swapped("0.2", 8))


def test_conversions_and_changes_of_unit_keep_the_rule() -> None:
    swap = swapped("0.5", 7)
    converted = convert(swap, "zcdp").specification
    assert isinstance(converted.budget.policy, Restated)
    assert converted.budget.policy.of == swap.budget.policy
    assert converted.budget.at == swap.budget.at
    person = change_unit(swap, catalogue.specification("tda-dhc").input_premetric, 2, "two households a move")
    assert person.budget.policy == Restated(formula="2 times the amount", of=swap.budget.policy)
    joint = jointly(swap, catalogue.specification("tda-dhc"))
    assert isinstance(joint.budget.policy, Together)
    assert "the largest stratum of household records by state" in joint.budget.rule


def test_the_order_of_converted_policies_is_that_of_the_policies() -> None:
    low, high = (convert(swapped(rate, 7), "zcdp").specification for rate in ("0.5", "0.6"))
    assert compare(high, low).overall == Order.STRONGER
    assert compare(convert(swapped("0.5", 90), "zcdp").specification, low).overall == Order.EQUIVALENT


def test_parallel_parts_keep_the_rules() -> None:
    parts = [swapped("0.5", 7), swapped("0.2", 7)]
    both = parallel(*parts, by="state")
    assert both.budget.policy is not None
    assert both.budget.amount >= max(part.budget.amount for part in parts)


def test_the_number_is_said_to_hold_in_this_universe() -> None:
    swap = swapped("0.5", 7)
    assert str(swap).endswith("ε = 2.0795 in this universe")
    assert "with two distinct ones has size 7." in swap.budget.rule
    constant = Specification(**dict(swap) | {"budget": Budget.epsilon(1)})
    assert str(constant).endswith("ε = 1")


def test_a_policy_survives_its_file() -> None:
    for spec in (
        swapped(),
        compose(swapped("0.5", 7), swapped("0.2", 7)),
        convert(swapped(), "zcdp").specification,
    ):
        assert Specification.from_json(spec.to_json()) == spec


def test_the_mechanism_states_its_policy() -> None:
    frame = pl.DataFrame({"m": ["a"] * 4, "h": ["1", "2", "3", "4"], "s": ["x", "y", "z", "w"]})
    half = PermutationSwap(unit="household", match=("m",), swap=("s",), hold=("h",), rate="1/2")
    high = PermutationSwap(unit="household", match=("m",), swap=("s",), hold=("h",), rate="0.97")
    tighter = PermutationSwap(
        unit="household", match=("m",), swap=("s",), hold=("h",), rate="1/2", loss="tighter"
    )
    one, two, three = (guaranteed(m, frame) for m in (half, high, tighter))
    assert isinstance(one.budget.policy, Swapping)
    assert one.budget.at[0].value == 4
    assert compare(one, guaranteed(half, pl.concat([frame, frame]))).overall == Order.EQUIVALENT
    assert compare(one, two).overall == Order.INCOMPARABLE
    assert compare(three, one).overall == Order.STRONGER


def test_the_value_in_one_universe_is_not_verified_in_others() -> None:
    domain = Domain(
        name="two", stage="database", record_schema=Schema.of(h=("a", "b"), s=("x", "y")), sizes=(2, 3)
    )
    flavor = Flavor(
        domain=domain,
        multiverse=swapping_invariants("household", (), ("s",), ("h",)),
        input_premetric=HammingUnordered(unit="household"),
        output_premetric=Multiplicative(),
    )
    spec = flavor.with_budget(swapping_budget(2, "1/2", "household", ()))
    mechanism = FiniteMechanism(domain, {point: Distribution({"out": 1}) for point in domain.enumerate()})
    with pytest.raises(NotComputable, match="the universe of the data alone"):
        satisfies(mechanism, spec)
    with pytest.raises(NotComputable):
        component_budgets(spec, domain.enumerate()[0])
    assert compare(spec, spec).overall == Order.EQUIVALENT
    high = flavor.with_budget(swapping_budget(2, "0.97", "household", ()))
    assert compare(spec, high).overall == Order.STRONGER  # three records at most: b + 1 <= o1 o2 everywhere


def test_the_ledger_keeps_the_policy_of_what_was_spent() -> None:
    swap = swapped("0.5", 7)
    part = carried(swap, swap.flavor, None, None)
    assert part.specification.budget.policy == swap.budget.policy
    spent = tally([part, part], swap.flavor).specification()
    assert isinstance(spent.budget.policy, Together)
    assert str(spent).endswith("in this universe")


def test_an_amount_below_the_value_of_its_policy_is_refused() -> None:
    policy = Swapping(theorem="1", unit="household", match=(), rate="1/2")
    with pytest.raises(InputError, match="not valid"):
        Budget.epsilon("1/1000", policy, (policy.at(2),))
    assert Budget.epsilon(2, policy, (policy.at(2),)).amount == Exact.of(2)


def test_a_policy_matches_on_attributes_of_the_domain() -> None:
    base = Domain(name="t", stage="database", record_schema=Schema.of(h=("a", "b"), s=("x", "y")))
    fields = {
        "domain": base,
        "multiverse": swapping_invariants("household", (), ("s",), ("h",)),
        "input_premetric": HammingUnordered(unit="household"),
        "output_premetric": Multiplicative(),
    }
    with pytest.raises(UnknownName, match="no attribute county"):
        Specification(**fields, budget=swapping_budget(2, "1/2", "household", ("county",)))


def test_parts_in_rho_and_in_rho_squared_are_one_currency() -> None:
    """A referee's finding: rho = 3 beside a policy was called stronger than rho squared = 4."""
    base = convert(swapped("0.5", 7), "zcdp").specification
    rho, square = (
        compose(base, Specification(**dict(base) | {"budget": budget}))
        for budget in (Budget.zcdp(rho=3), Budget.zcdp(rho_squared=4))
    )
    assert rho.budget.amount > square.budget.amount
    assert compare(rho, square).overall == Order.WEAKER
    same = compose(base, Specification(**dict(base) | {"budget": Budget.zcdp(rho=2)}))
    assert compare(same, square).overall == Order.EQUIVALENT


def test_converted_policies_name_every_number_of_the_conversion() -> None:
    zcdp = convert(swapped("0.5", 7), "zcdp").specification
    two, three = (
        convert(zcdp, "renyi", alpha=alpha, on_distance="neighbours").specification for alpha in (2, 3)
    )
    assert two.budget.policy != three.budget.policy
    assert compare(three, two).overall not in {Order.STRONGER, Order.EQUIVALENT}
    near = [
        convert(s, "approximate", delta="1e-6", on_distance="neighbours").specification for s in (two, three)
    ]
    assert near[0].budget.policy != near[1].budget.policy
    assert compare(*near).overall == Order.UNDECIDED


def test_a_delta_that_grows_with_epsilon_is_no_function_of_one_universe() -> None:
    schema = Schema(attributes=(Attribute(name="a"),))
    near = Neighbours(relation="replace", unit="record")
    spec = Specification(
        domain=Domain(name="t", stage="database", record_schema=schema),
        multiverse=from_invariants(Count(unit="record")),
        input_premetric=near,
        output_premetric=Approximate(delta="1e-6"),
        budget=Budget.epsilon(1, Stated(text="a rule")),
    )
    with pytest.raises(NotImplied, match="differs from universe to universe"):
        change_unit(spec, near, 3, "three records")


def test_a_policy_that_is_infinite_here_may_bind_elsewhere() -> None:
    rule = Stated(text="2 if even, infinite otherwise")
    here, there = (
        Specification(**dict(swapped()) | {"budget": Budget.epsilon(value, rule)}) for value in (2, "inf")
    )
    assert compare(here, there).overall == Order.EQUIVALENT
    assert not there.constrains_nothing
    constant = Specification(**dict(here) | {"budget": Budget.epsilon(1000)})
    assert compare(constant, there).overall == Order.UNDECIDED


def test_declared_sizes_bound_the_largest_stratum() -> None:
    schema = Schema(attributes=(Attribute(name="h"), Attribute(name="s")))
    domain = Domain(name="t", stage="database", record_schema=schema, sizes=tuple(range(11)))
    high, half = (
        Budget.epsilon(9, Swapping(theorem="1", unit="household", match=(), rate=rate))
        for rate in ("0.97", "0.5")
    )
    assert pointwise(high, half, domain) == "above"


def test_keys_that_are_the_same_strata_by_nesting_are_one_policy() -> None:
    base = swapped(match=("county",))
    both = swapped(match=("county", "state"))
    assert ("county", "state") in base.domain.record_schema.nesting
    assert pointwise(base.budget, both.budget, base.domain) == "equal"


def test_a_finer_key_cannot_have_the_larger_stratum() -> None:
    fine = swapped("0.5", 900, ("state", "household_size"))
    with pytest.raises(NotImplied, match="different universes"):
        compose(swapped("0.5", 30), fine)
    compose(swapped("0.5", 900), fine)


def test_a_claim_of_another_universe_is_not_audited() -> None:
    frame = pl.DataFrame({"h": ["1", "2", "3", "4"], "s": ["x", "y", "z", "w"]})
    swap = PermutationSwap(unit="household", match=(), swap=("s",), hold=("h",), rate="1/2")
    with pytest.raises(InputError, match="another universe"):
        allowed_loss(guaranteed(swap, frame.head(2)), [frame])
    assert allowed_loss(guaranteed(swap, frame), [frame]) == guaranteed(swap, frame).budget.amount


def test_ceilings_are_constants(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "ledger.db", owner="Ann")
    with pytest.raises(InputError, match="in every universe"):
        ledger.open_dataset("a", swapped(), by="Ann")


def test_ordered_neighbours_never_meet_where_tables_keep_the_record() -> None:
    """A referee's finding: one replacement in place that keeps both margins keeps the record."""
    schema = Schema(attributes=(Attribute(name="a"), Attribute(name="b")))
    domain = Domain(name="v", stage="database", structure="vector", record_schema=schema)
    joint, margins = (
        Specification(
            domain=domain,
            multiverse=from_invariants(*(Count(unit="record", by=by) for by in tables)),
            input_premetric=Neighbours(relation="replace-ordered", unit="record"),
            output_premetric=Multiplicative(),
            budget=Budget.epsilon(1),
        )
        for tables in ([("a", "b")], [("a",), ("b",)])
    )
    assert compare(joint, margins).implied is not False
