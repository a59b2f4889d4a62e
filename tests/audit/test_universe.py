"""Universes by search, against the filter of the whole domain and against swapping's enumeration."""

from __future__ import annotations

import itertools
from collections import Counter
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import reproducibly

from stirred.audit import (
    census,
    distance_between,
    exact_audit,
    frame_of,
    neighbours,
    records_of,
    same_universe,
    universe_of,
)
from stirred.errors import InputError, NotComputable
from stirred.noise import TestSource
from stirred.spec import (
    Attribute,
    Budget,
    Condition,
    Count,
    Domain,
    Encoded,
    Hamming,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    Recode,
    Schema,
    Specification,
    Stage,
    Sum,
    SymmetricDifference,
    Threshold,
    Trivial,
    from_invariants,
    margins,
    swapping_invariants,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.invariant import Named
from stirred.spec.blocks.multiverse import Explicit, Intersection
from stirred.swap import margin_patterns, pattern_records, universe

REPLACE = HammingUnordered(unit="record")
BITS = Schema.of(h=(0, 1), s=(0, 1))


def claim(domain: Domain, multiverse: Any, premetric: Any = REPLACE) -> Specification:
    return Specification(
        domain=domain,
        multiverse=multiverse,
        input_premetric=premetric,
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )


def open_domain(schema: Schema) -> Domain:
    return Domain(name="X", stage=Stage.DATABASE, record_schema=schema)


def brute_force(point: Any, spec: Specification) -> tuple[Any, ...]:
    """The twin: every data set of the domain, kept if it shares the universe."""
    return tuple(
        other
        for other in spec.domain.enumerate()
        if same_universe(spec, point, other) and not distance_between(spec, point, other).is_infinite
    )


def test_acceptance_7_two_margins_of_four_records_leave_no_neighbours() -> None:
    domain = Domain.datasets(BITS, [4])
    spec = claim(domain, from_invariants(margins("record", ["h"], ["s"])))
    distances: Counter[str] = Counter()
    for found in {universe_of(spec, point) for point in domain.enumerate()}:
        for x, y in itertools.combinations(found, 2):
            distances[str(distance_between(spec, x, y))] += 1
    assert distances == {"2": 10, "4": 1}


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_agrees_with_the_universes_of_swapping(size: int) -> None:
    spec = claim(
        open_domain(Schema.of(m=None, h=None, s=None)), swapping_invariants("record", ["m"], ["s"], ["h"])
    )
    for hold, swap in margin_patterns(size):
        records = pattern_records(hold, swap)
        found = universe_of(spec, records)
        assert len(found) == len(set(found))
        assert {tuple(sorted(data)) for data in found} == set(universe(records))


def test_agrees_with_swapping_in_two_strata() -> None:
    spec = claim(
        open_domain(Schema.of(m=None, h=None, s=None)), swapping_invariants("record", ["m"], ["s"], ["h"])
    )
    records = ((0, "a", 1), (0, "b", 2), (0, "b", 3), (1, "a", 1), (1, "b", 2), (1, "c", 2))
    found = universe_of(spec, records)
    assert {tuple(sorted(data)) for data in found} == set(universe(records))


CONDITION = Condition(attribute="s", levels=(1,))
SCHEMA = Schema(
    attributes=(
        Attribute(name="h", levels=(0, 1)),
        Attribute(name="s", levels=(0, 1, 2)),
    ),
    recodes=(Recode(name="small", attribute="s", groups={"yes": (0, 1), "no": (2,)}),),
)
INVARIANTS = (
    Count(unit="record"),
    Count(unit="record", by=("h",)),
    Count(unit="record", by=("s",)),
    Count(unit="record", by=("small",)),
    Count(unit="record", by=("h", "small")),
    Count(unit="record", by=("h",), where=(CONDITION,)),
    Sum(unit="record", attribute="s"),
    Sum(unit="record", attribute="s", by=("h",)),
    Threshold(statistic=Count(unit="record", by=("s",)), at_least=1),
    Threshold(statistic=Count(unit="record", where=(CONDITION,)), at_most=1),
)


@reproducibly(60)
@given(
    invariants=st.lists(st.sampled_from(INVARIANTS), max_size=3, unique=True),
    premetric=st.sampled_from(
        [
            REPLACE,
            SymmetricDifference(unit="record"),
            Neighbours(relation="replace", unit="record"),
            Neighbours(relation="add-remove", unit="record"),
        ]
    ),
    sizes=st.sampled_from([(3,), (2, 3), (4,)]),
    data=st.data(),
)
def test_the_search_agrees_with_brute_force(
    invariants: list[Any], premetric: Any, sizes: tuple[int, ...], data: st.DataObject
) -> None:
    domain = Domain.datasets(SCHEMA, sizes)
    spec = claim(domain, from_invariants(invariants), premetric)
    point = data.draw(st.sampled_from(domain.enumerate()))
    assert universe_of(spec, point) == brute_force(point, spec)


def test_intersections_of_invariants_are_searched_too() -> None:
    domain = Domain.datasets(BITS, [3])
    parts = tuple(from_invariants(i) for i in margins("record", ["h"], ["s"]))
    spec = claim(domain, Intersection(parts=parts))
    for point in domain.enumerate():
        assert universe_of(spec, point) == brute_force(point, spec)


def test_vectors_are_filtered_from_the_domain() -> None:
    domain = Domain.datasets(BITS, [2], structure="vector")
    spec = claim(domain, from_invariants(Count(unit="record", by=("h",))), Hamming(unit="record"))
    for point in domain.enumerate():
        assert universe_of(spec, point) == brute_force(point, spec)


def test_listed_universes_are_joined_and_a_point_outside_has_none() -> None:
    domain = Domain.finite(range(5))
    table = [[0 if i == j else 1 for j in range(5)] for i in range(5)]
    premetric = Given.read({"unit": "point", "points": list(range(5)), "distances": table})
    spec = claim(domain, Explicit.read({"parts": [[0, 1], [1, 2], [4]]}), premetric)
    assert universe_of(spec, 1) == (0, 1, 2)
    assert universe_of(spec, 4) == (4,)
    assert universe_of(spec, 3) == ()
    with pytest.raises(InputError, match="does not belong"):
        universe_of(spec, 7)


def test_distances_that_need_the_domain_come_from_their_table() -> None:
    domain = Domain.datasets(BITS, [2])
    inner = from_invariants(Count(unit="record", by=("h",)))
    spec = claim(domain, Trivial(), Encoded(base=REPLACE, multiverse=inner))
    plain = claim(domain, inner)
    for point in domain.enumerate():
        assert universe_of(spec, point) == universe_of(plain, point)


def test_nesting_holds_values_that_are_only_seen_in_the_data() -> None:
    schema = Schema.of(nesting=[("block", "county")], block=None, county=None, age=(0, 1))
    records = (("b1", "c1", 0), ("b2", "c1", 1), ("b3", "c2", 1))
    spec = claim(open_domain(schema), from_invariants(Count(unit="record", by=("county",))))
    found = universe_of(spec, records)
    places = {(record[0], record[1]) for data in found for record in data}
    assert places == {("b1", "c1"), ("b2", "c1"), ("b3", "c2")}
    # Two people in c1 over four cells, and one in c2 over two.
    assert len(found) == 10 * 2


def test_declared_levels_are_crossed_freely_under_nesting() -> None:
    schema = Schema.of(nesting=[("block", "county")], block=(1, 2), county=(1, 2))
    domain = Domain.datasets(schema, [2])
    spec = claim(domain, Trivial())
    assert universe_of(spec, ((1, 1), (2, 2))) == domain.enumerate()


def test_bounded_cells_need_no_list_of_sizes() -> None:
    schema = Schema.of(h=(0, 1))
    add = SymmetricDifference(unit="record")
    bounded = from_invariants(
        *(Count(unit="r", where=(Condition(attribute="h", levels=(level,)),)) for level in (0, 1))
    )
    assert universe_of(claim(open_domain(schema), bounded, add), ((0,), (1,))) == (((0,), (1,)),)
    half = from_invariants(Count(unit="r", where=(Condition(attribute="h", levels=(0,)),)))
    with pytest.raises(NotComputable, match="infinite"):
        universe_of(claim(open_domain(schema), half, add), ((0,), (1,)))


def test_large_universes_and_long_searches_are_refused() -> None:
    schema = Schema.of(h=tuple(range(12)))
    spec = claim(open_domain(schema), Trivial())
    point = ((0,),) * 8
    with pytest.raises(NotComputable, match="more than 1000 data sets"):
        universe_of(spec, point, largest=1000)
    hidden = claim(open_domain(schema), from_invariants(Sum(unit="r", attribute="h")))
    with pytest.raises(NotComputable, match="too many steps"):
        universe_of(hidden, ((11,),) * 8, largest=10)


def test_what_is_not_in_the_domain_or_not_defined_is_refused() -> None:
    domain = Domain.datasets(BITS, [2])
    with pytest.raises(InputError, match="does not belong"):
        universe_of(claim(domain, Trivial()), ((0, 7), (0, 0)))
    with pytest.raises(InputError, match="does not belong"):
        universe_of(claim(domain, Trivial()), ((0, 0),))
    with pytest.raises(NotComputable, match="described"):
        universe_of(claim(domain, from_invariants(Named(name="secret"))), ((0, 0), (0, 1)))


def test_frames_and_points_are_inverse() -> None:
    schema = Schema.of(h=("a", "b"), s=(0, 1), flag=None)
    point = (("a", 1, True), ("b", 0, False), ("b", 0, False))
    frame = frame_of(point, schema)
    assert frame.schema == {"h": pl.String, "s": pl.Int64, "flag": pl.Boolean}
    assert records_of(frame, open_domain(schema)) == point
    assert frame_of((), schema).schema == {"h": pl.String, "s": pl.Int64, "flag": pl.String}
    with pytest.raises(InputError, match="does not make a column"):
        frame_of(((1,), ("a",)), Schema.of(h=None))


def test_exchanged_and_wrong_arguments_are_named() -> None:
    """``universe_of(frame, claim)`` ended in a bare TypeError."""
    schema = Schema.of(a=(0, 1))
    spec = claim(Domain.datasets(schema, [1]), Trivial())
    frame, mechanism = frame_of(((0,),), schema), SimpleNamespace(outcomes=dict)
    for exchanged in (
        lambda: universe_of(frame, spec),
        lambda: universe_of(((0,),), spec),
        lambda: neighbours(frame, spec, TestSource(1), 1),
        lambda: same_universe(frame, frame, spec),
        lambda: distance_between(frame, frame, spec),
        lambda: census(frame),
        lambda: exact_audit(mechanism, [frame], frame),
    ):
        with pytest.raises(InputError) as refused:
            exchanged()
        assert refused.value.field == "claim"
    for point in (frame, spec, None, ([0],), (0,), ((0, 1),)):
        with pytest.raises(InputError) as refused:
            universe_of(spec, point)
        assert refused.value.field == "point"
