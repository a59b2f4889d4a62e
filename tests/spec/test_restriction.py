"""A specification on part of its domain: the refutation carries over, and only what is part is let in."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import pytest

from stirred.errors import DomainMismatch, NotComputable, UnknownName
from stirred.spec import (
    Attribute,
    Budget,
    Count,
    Distribution,
    Domain,
    EditDistance,
    Encoded,
    Exact,
    FiniteMechanism,
    Hamming,
    HammingUnordered,
    Maximum,
    Multiplicative,
    Neighbours,
    Recode,
    Schema,
    Sharpened,
    Specification,
    Stated,
    SymmetricDifference,
    Trivial,
    catalogue,
    from_invariants,
    least_budget,
    restricted,
    satisfies,
)
from stirred.spec.blocks.multiverse import Explicit

SCHEMA = Schema.of(block=("A", "B"), sex=("f", "m"))
WHOLE = Domain.datasets(SCHEMA, sizes=(1, 2))


def promised(domain: Domain = WHOLE, **blocks: Any) -> Specification:
    fields = {
        "domain": domain,
        "multiverse": from_invariants(Count(unit="record", by=("block",))),
        "input_premetric": HammingUnordered(unit="record"),
        "output_premetric": Multiplicative(),
        "budget": Budget.epsilon("ln(2)"),
    }
    return Specification(**fields | blocks)


def part_of(points: Any, **fields: Any) -> Domain:
    given = {"structure": "multiset", "record_schema": SCHEMA, "name": "part"}
    return Domain.finite(points, **given | fields)


@pytest.mark.parametrize("seed", range(40))
def test_what_satisfies_the_whole_satisfies_every_part(seed: int) -> None:
    """So a part refutes; and its loss is that of the pairs inside it that the whole compares."""
    draw = random.Random(f"restriction {seed}")
    premetric = draw.choice([HammingUnordered, SymmetricDifference, Hamming, EditDistance])(unit="record")
    if draw.random() < 0.3:
        premetric = Maximum(parts=(premetric, Neighbours(relation="replace", unit="record")))
    multiverse = draw.choice([Trivial(), from_invariants(Count(unit="record", by=("sex",)))])
    claim = promised(input_premetric=premetric, multiverse=multiverse)
    masses = {x: Fraction(draw.choice([3, 4, 5, 6]), 8) for x in WHOLE.enumerate()}
    mechanism = FiniteMechanism(WHOLE, {x: Distribution({1: m, 0: 1 - m}) for x, m in masses.items()})
    chosen = part_of(draw.sample(WHOLE.enumerate(), 6))
    inside = FiniteMechanism(chosen, {x: mechanism.laws[x] for x in chosen.enumerate()})
    found = satisfies(inside, restricted(claim, chosen))
    losses = [Exact.of(0)]
    for x, y in itertools.permutations(chosen.enumerate(), 2):
        together = any({x, y} <= universe for universe in claim.universes())
        distance = premetric.distance(x, y)
        if together and not distance.is_infinite and mechanism.laws[x] != mechanism.laws[y]:
            divergence = Multiplicative().between(mechanism.laws[x], mechanism.laws[y])
            losses.append(least_budget(divergence, distance))
    assert found.loss.overall == max(losses)
    assert found.satisfied or not satisfies(mechanism, claim).satisfied


def test_the_same_domain_is_left_alone() -> None:
    assert restricted(promised(), WHOLE) is not None
    assert restricted(promised(), WHOLE) == promised()


def test_a_catalogue_flavor_is_held_against_a_small_twin() -> None:
    pure = catalogue.specification("pure-dp", Budget.epsilon(1))
    twin = Domain.datasets(Schema.of(bit=(0, 1)), sizes=(2,), structure="vector")
    assert restricted(pure, twin).domain == twin
    assert restricted(pure, twin).input_premetric == pure.input_premetric


@pytest.mark.parametrize(
    ("domain", "field"),
    [
        (part_of([(("A", "f"),)], stage="edited file"), "stage"),
        (part_of([(("A", "f"),)], structure="vector"), "structure"),
        (part_of(["A"]), "structure"),
        (part_of([(("A", "f"),) * 3]), "sizes"),
        (part_of([(("C", "f"),)]), "record_schema"),
        (part_of([("A",)]), "record_schema"),
        (
            part_of([(("A", "f"),)], record_schema=Schema.of(sex=("f", "m"), block=("A", "B"))),
            "record_schema",
        ),
        (part_of([(("A", "f"),)], record_schema=None), "record_schema"),
    ],
)
def test_a_domain_that_is_not_part_is_refused_by_field(domain: Domain, field: str) -> None:
    with pytest.raises(DomainMismatch) as caught:
        restricted(promised(multiverse=Trivial()), domain)
    assert caught.value.field == f"domain.{field}"


def test_points_outside_a_listed_domain_are_refused() -> None:
    listed = part_of([(("A", "f"),), (("B", "f"),)])
    assert restricted(promised(listed), part_of([(("B", "f"),)])).domain.name == "part"
    with pytest.raises(DomainMismatch) as caught:
        restricted(promised(listed), part_of([(("B", "m"),)]))
    assert caught.value.field == "domain.points"


def test_objects_without_a_list_have_no_parts() -> None:
    objects = Domain(name="things", stage="database", structure="object")
    claim = promised(objects, multiverse=Trivial())
    with pytest.raises(DomainMismatch):
        restricted(claim, Domain.finite(["a"]))


def test_a_recode_must_mean_the_same() -> None:
    def coded(**groups: tuple[int, ...]) -> Schema:
        levels = tuple(level for members in groups.values() for level in members)
        return Schema(
            attributes=(Attribute(name="age", levels=levels),),
            recodes=(Recode(name="band", attribute="age", groups=groups),),
        )

    whole = Domain.datasets(coded(young=(0, 1), old=(2, 3)), sizes=(1,))
    claim = promised(whole, multiverse=from_invariants(Count(unit="record", by=("band",))))
    assert restricted(claim, Domain.datasets(coded(young=(1,), old=(2,)), sizes=(1,))).domain != whole
    with pytest.raises(DomainMismatch):
        restricted(claim, Domain.datasets(coded(young=(1, 2), old=(3,)), sizes=(1,)))
    with pytest.raises(DomainMismatch):
        restricted(claim, Domain.datasets(Schema.of(age=(1, 2)), sizes=(1,)))


def test_an_invariant_that_the_part_cannot_compute_is_refused() -> None:
    claim = catalogue.specification("psa-2020-county")
    open_ended = Specification(**dict(claim) | {"budget": Budget.epsilon(1)})
    twin = Domain.finite([((1,),)], structure="multiset", stage=claim.domain.stage)
    with pytest.raises((DomainMismatch, UnknownName)):
        restricted(open_ended, twin)


@pytest.mark.parametrize(
    ("blocks", "field"),
    [
        ({"multiverse": Explicit(parts=(WHOLE.enumerate(),))}, "multiverse"),
        (
            {"input_premetric": Sharpened(base=Neighbours(relation="replace", unit="record"))},
            "input_premetric",
        ),
        (
            {"input_premetric": Encoded(base=HammingUnordered(unit="record"), multiverse=Trivial())},
            "input_premetric",
        ),
        ({"budget": Budget.epsilon(1, Stated(text="by the largest block"))}, "budget"),
        (
            {
                "multiverse": from_invariants(Count(unit="record")),
                "budget": Budget.by_universe("epsilon", (1, 2)),
            },
            "budget",
        ),
    ],
)
def test_blocks_that_depend_on_other_data_sets_are_refused(blocks: dict[str, Any], field: str) -> None:
    """A shortest path through the whole domain may be longer inside the part: that is another distance."""
    with pytest.raises(NotComputable) as caught:
        restricted(promised(**blocks), part_of([(("A", "f"),), (("A", "m"),)]))
    assert caught.value.field == field
