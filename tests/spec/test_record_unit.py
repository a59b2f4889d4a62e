"""The unit of an invariant is honoured on domains that can be listed."""

import pytest

from stirred.errors import NotComputable, NotImplied
from stirred.spec import (
    Budget,
    Condition,
    Count,
    Distribution,
    Domain,
    FiniteMechanism,
    HammingUnordered,
    Maximum,
    Multiplicative,
    Order,
    Schema,
    Specification,
    Threshold,
    Trivial,
    compare,
    from_invariants,
    meet,
    post_process,
    protection_loss,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import refines
from stirred.spec.order.bounds import bounds

DOMAIN = Domain.datasets(Schema.of(block=("a", "b"), sex=("f", "m")), sizes=(2,))
PERSONS, HOUSEHOLDS = (Count(unit=unit, by=("block",)) for unit in ("person", "household"))


def held(*invariants: object, unit: str = "household") -> Specification:
    return Specification(
        domain=DOMAIN,
        multiverse=from_invariants(*invariants) if invariants else Trivial(),
        input_premetric=HammingUnordered(unit=unit),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )


def test_post_processing_may_not_read_persons_where_households_are_invariant() -> None:
    for reads in (PERSONS, Threshold(statistic=PERSONS, at_least=1), Count(unit="person")):
        with pytest.raises(NotImplied, match="does not condition"):
            post_process(held(HOUSEHOLDS), reads=[reads])
    assert post_process(held(HOUSEHOLDS), reads=[HOUSEHOLDS]) == held(HOUSEHOLDS)
    women = Count(unit="household", where=(Condition(attribute="block", levels=("a",)),))
    assert post_process(held(HOUSEHOLDS), reads=[women]) == held(HOUSEHOLDS)


def test_the_size_of_a_listed_domain_counts_its_own_unit_only() -> None:
    """Two records are two households; how many persons live in them is not said."""
    assert post_process(held(), reads=[Count(unit="household")]) == held()
    with pytest.raises(NotImplied, match="does not condition"):
        post_process(held(), reads=[Count(unit="person")])


def test_invariants_of_different_units_are_not_called_equivalent() -> None:
    verdict = compare(held(HOUSEHOLDS), held(PERSONS))
    assert verdict.overall not in {Order.EQUIVALENT, Order.STRONGER, Order.WEAKER}
    assert not verdict.exact and not verdict.budgets_ranked
    assert compare(held(HOUSEHOLDS), held(HOUSEHOLDS)).overall == Order.EQUIVALENT
    assert compare(held(Count(unit="person")), held()).overall != Order.EQUIVALENT
    units = frozenset({"household"})
    assert not refines(Trivial(), from_invariants(Count(unit="person")), DOMAIN, units)
    assert refines(Trivial(), from_invariants(Count(unit="household")), DOMAIN, units)


def test_universes_of_two_units_are_not_listed() -> None:
    with pytest.raises(NotComputable, match="different units"):
        held(HOUSEHOLDS, PERSONS).universes()
    mixed = held(PERSONS)
    silent = FiniteMechanism.from_function(DOMAIN, lambda _: Distribution.point("nothing"))
    with pytest.raises(NotComputable, match="different units"):
        protection_loss(silent, mixed)
    assert not mixed.is_finite


def test_the_meet_of_two_units_keeps_both_distances_on_a_listed_domain() -> None:
    """Computed on the same records they agree, and one of them would have been dropped."""
    person, household = held(unit="person").flavor, held(unit="household").flavor
    assert isinstance(meet(person, household).input_premetric, Maximum)
    assert bounds(person.input_premetric, household.input_premetric, DOMAIN) is None


def test_a_table_of_distances_reads_no_records() -> None:
    points = DOMAIN.enumerate()
    distances = [[0 if x == y else 1 for y in points] for x in points]
    given = Given(unit="family", points=points, distances=distances)
    assert Specification(**dict(held(PERSONS)) | {"input_premetric": given}).is_finite
