"""Census of universes, what invariants alone determine, and sensitivity inside a universe."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import reproducibly

from stirred.audit import (
    census,
    determined,
    determined_given_rest,
    distance_between,
    frame_of,
    frechet,
    sensitivity_in_universe,
    universe_of,
)
from stirred.errors import InputError, NotComputable
from stirred.spec import (
    INFINITY,
    ZERO,
    Budget,
    Count,
    Domain,
    Exact,
    Hamming,
    HammingUnordered,
    Multiplicative,
    Schema,
    Specification,
    Stage,
    SymmetricDifference,
    Trivial,
    from_invariants,
    margins,
    swapping_invariants,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.swap import margin_patterns, pattern_records

BITS = Schema.of(h=(0, 1), s=(0, 1))
REPLACE = HammingUnordered(unit="record")
MARGINS = from_invariants(margins("record", "h", "s"))


def claim(domain: Domain, multiverse: Any, premetric: Any = REPLACE) -> Specification:
    return Specification(
        domain=domain,
        multiverse=multiverse,
        input_premetric=premetric,
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )


def test_census_of_two_margins_of_four_records() -> None:
    found = census(claim(Domain.datasets(BITS, [4]), MARGINS))
    assert found.record() == {
        "datasets": 35,
        "universes": 25,
        "singletons": 16,
        "alone": 16,
        "share_alone": "16/35",
        "largest": 3,
        "in_one_piece_by_one": 16,
        "in_one_piece_by_two": 25,
        "nearest": "2",
    }
    table = found.to_polars().sort("size")
    assert table["size"].value_counts().sort("size").rows() == [(1, 16), (2, 8), (3, 1)]
    assert table.row(-1) == (3, 3, 1, "2")


def test_census_without_invariants_is_one_connected_universe() -> None:
    found = census(claim(Domain.datasets(BITS, [3]), Trivial()))
    assert found.record()["universes"] == 1 and found.alone == 0
    assert found.universes[0].pieces_by_one == 1 and found.nearest == Exact.of(1)


def test_injective_invariants_leave_every_data_set_alone() -> None:
    """Acceptance test 23: singleton universes promise nothing."""
    found = census(claim(Domain.datasets(BITS, [2]), from_invariants(Count(unit="record", by=("h", "s")))))
    assert found.share_alone == 1 and found.singletons == 10
    assert found.nearest == INFINITY


def test_sizes_that_are_infinitely_far_apart_are_alone() -> None:
    schema = Schema.of(h=(0,))
    apart = census(claim(Domain.datasets(schema, [1, 2]), Trivial()))
    assert apart.singletons == 0 and apart.alone == 2 and apart.universes[0].pieces_by_one == 2
    near = census(claim(Domain.datasets(schema, [1, 2]), Trivial(), SymmetricDifference(unit="record")))
    assert near.alone == 0 and near.universes[0].pieces_by_one == 1


def test_listed_universes_may_overlap_or_leave_points_out() -> None:
    table = [["0" if i == j else "ln(3)" for j in range(4)] for i in range(4)]
    premetric = Given.read({"unit": "point", "points": list(range(4)), "distances": table})
    found = census(claim(Domain.finite(range(4)), Explicit.read({"parts": [[0, 1], [1, 2], [2]]}), premetric))
    assert found.datasets == 4 and found.alone == 1 and found.singletons == 1
    assert [u.pieces_by_one for u in found.universes] == [2, 2, 1]
    assert [u.pieces_by_two for u in found.universes] == [1, 1, 1]
    assert found.nearest == Exact.log(3)


@pytest.mark.parametrize("premetric", [REPLACE, SymmetricDifference(unit="record"), Hamming(unit="record")])
def test_the_nearest_pair_agrees_with_the_plain_search(premetric: Any) -> None:
    spec = claim(Domain.datasets(BITS, [2, 3]), MARGINS, premetric)
    found = census(spec)
    plain = [
        min(
            (d for x, y in itertools.permutations(universe, 2) if (d := distance_between(spec, x, y)) > ZERO),
            default=INFINITY,
        )
        for universe in spec.universes()
    ]
    assert [u.nearest for u in found.universes] == plain


def test_determined_records_are_those_that_every_data_set_has() -> None:
    universe = universe_of(claim(Domain.datasets(BITS, [4]), MARGINS), ((0, 0), (0, 0), (0, 1), (1, 0)))
    assert len(universe) == 2
    found = determined(universe)
    assert found.records == ((0, 0), (0, 0)) and found.share == Fraction(1, 2)
    assert found.record() == {"number": 2, "share": "1/2"}
    with pytest.raises(InputError, match="empty"):
        determined([])


def test_a_value_may_be_fixed_given_the_rest() -> None:
    schema = Schema.of(m=(0, 1), h=(0, 1, 2), s=(0, 1))
    spec = claim(Domain.datasets(schema, [4]), swapping_invariants("record", ["m"], ["s"], ["h"]))
    # In the first stratum h varies and s does not; in the second both do.
    point = ((0, 0, 1), (0, 1, 1), (1, 0, 0), (1, 2, 1))
    universe = universe_of(spec, point)
    assert len(universe) == 2
    assert determined_given_rest(universe, point, "s", schema) == Fraction(1, 2)
    assert determined_given_rest(universe, point, "m", schema) == Fraction(3, 4)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_frechet_bounds_are_sharp(size: int) -> None:
    schema = Schema.of(m=None, h=None, s=None)
    domain = Domain(name="X", stage=Stage.DATABASE, record_schema=schema)
    spec = claim(domain, swapping_invariants("record", ["m"], ["s"], ["h"]))
    for hold, swap in margin_patterns(size):
        point = pattern_records(hold, swap)
        bounds = frechet(frame_of(point, schema), ["m"], ["h"], ["s"])
        exact = determined(universe_of(spec, point))
        rows = [tuple(row[:3]) for row in bounds.to_polars().rows() for _ in range(row[3])]
        assert tuple(rows) == exact.records
        assert bounds.share == exact.share


@reproducibly(40)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 3)), max_size=30),
    match=st.sampled_from([[], ["m"]]),
)
def test_frechet_agrees_with_the_full_cross_product(rows: list[tuple[int, ...]], match: list[str]) -> None:
    frame = pl.DataFrame(rows, schema={"m": pl.Int64, "h": pl.Int64, "s": pl.Int64}, orient="row")
    expected = 0
    for m in {row[0] for row in rows} if match else {None}:
        stratum = [row for row in rows if m is None or row[0] == m]
        for h, s in itertools.product(range(3), range(4)):
            here = sum(row[1] == h for row in stratum) + sum(row[2] == s for row in stratum)
            expected += max(0, here - len(stratum))
    bounds = frechet(frame, match, ["h"], ["s"])
    assert bounds.record()["determined"] == expected
    assert bounds.record()["records"] == len(rows)


def test_frechet_of_many_strata_builds_no_cross_product() -> None:
    generator = np.random.default_rng(1)
    size = 200_000
    frame = pl.DataFrame(
        {
            "m": generator.integers(0, 5, size),
            "h": generator.integers(0, 40_000, size),
            "s": generator.integers(0, 40_000, size),
        }
    )
    # The cross product has 5 times 25,000 squared cells or more.
    assert frechet(frame, ["m"], ["h"], ["s"]).number == 0
    alone = frame.with_columns(m=pl.int_range(size))
    assert frechet(alone, ["m"], ["h"], ["s"]).share == 1


def test_frechet_needs_its_columns() -> None:
    frame = pl.DataFrame({"h": [1], "s": [2]})
    with pytest.raises(InputError, match="no column m"):
        frechet(frame, ["m"], ["h"], ["s"])
    with pytest.raises(InputError, match="of their own"):
        frechet(frame, ["h"], [], ["s"])


def count(place: int, level: int) -> Callable[[Any], int]:
    return lambda point: sum(record[place] == level for record in point)


def cell_counts(point: Any) -> list[int]:
    return [sum(record == cell for record in point) for cell in BITS.records()]


def largest(statistic: Any, spec: Specification, norm: Any = "l1") -> Exact:
    return max(
        sensitivity_in_universe(spec, statistic, sorted(universe, key=repr), norm=norm)
        for universe in spec.universes()
    )


def test_an_invariant_count_has_sensitivity_zero() -> None:
    free, held = (claim(Domain.datasets(BITS, [4]), m) for m in (Trivial(), MARGINS))
    assert largest(count(0, 1), free) == Exact.of(1)
    assert largest(count(0, 1), held) == ZERO


def test_for_each_unit_of_distance_a_universe_is_never_more_sensitive() -> None:
    """The triangle inequality: d counts neighbours along a shortest path through the whole domain."""
    domain = Domain.datasets(BITS, [4])
    free, held = (claim(domain, m) for m in (Trivial(), MARGINS))
    joint = count(0, 1), lambda point: sum(record == (1, 1) for record in point)
    for statistic in (*joint, cell_counts, lambda point: sum(h * s for h, s in point)):
        for norm in ("l1", "l2"):
            assert largest(statistic, held, norm) <= largest(statistic, free, norm)
    assert largest(cell_counts, free) == largest(cell_counts, held) == Exact.of(2)
    assert largest(cell_counts, free, "l2") == Exact.sqrt(2)
    assert largest(cell_counts, held, "l2") == Exact.of(1)


@reproducibly(30)
@given(values=st.lists(st.integers(-3, 3), min_size=10, max_size=10))
def test_no_statistic_is_more_sensitive_in_a_universe(values: list[int]) -> None:
    domain = Domain.datasets(BITS, [2])
    table = dict(zip(domain.enumerate(), values, strict=True))
    free, held = (claim(domain, m) for m in (Trivial(), MARGINS))
    neighbours = max(
        abs(table[x] - table[y])
        for x, y in itertools.combinations(table, 2)
        if REPLACE.distance(x, y) == Exact.of(1)
    )
    assert largest(table.__getitem__, held) <= largest(table.__getitem__, free) == Exact.of(neighbours)


def test_the_change_between_nearest_data_sets_grows_with_their_distance() -> None:
    """The other direction: without division by the distance, margins double the change of the table."""
    domain = Domain.datasets(BITS, [4])
    changes = []
    for multiverse in (Trivial(), MARGINS):
        spec = claim(domain, multiverse)
        apart = census(spec).nearest
        pairs = [p for u in spec.universes() for p in itertools.combinations(u, 2)]
        near = [(cell_counts(x), cell_counts(y)) for x, y in pairs if REPLACE.distance(x, y) == apart]
        changes.append(max(sum(abs(a - b) for a, b in zip(*pair, strict=True)) for pair in near))
    assert changes == [2, 4]


def test_a_domain_with_gaps_has_no_such_bound() -> None:
    """Where no path of neighbours joins two points, the largest change between neighbours says nothing."""
    points = (((0, 0), (0, 0)), ((0, 0), (0, 1)), ((1, 1), (1, 1)))
    domain = Domain.finite(points, structure="multiset", record_schema=BITS)
    spec = claim(domain, Trivial())
    total = {points[0]: 0, points[1]: 1, points[2]: 8}
    assert sensitivity_in_universe(spec, total.__getitem__, points) == Exact.of(4)
    assert abs(total[points[0]] - total[points[1]]) == 1


def test_sensitivity_at_distance_zero_or_an_irrational_one() -> None:
    vectors = Domain.datasets(Schema.of(h=(0, 1)), [2], structure="vector")
    spec = claim(vectors, Trivial())
    assert sensitivity_in_universe(spec, lambda x: x[0][0], vectors.enumerate()) == INFINITY
    table = [["0", "ln(3)"], ["ln(3)", "0"]]
    premetric = Given.read({"unit": "point", "points": [0, 1], "distances": table})
    spec = claim(Domain.finite([0, 1]), Trivial(), premetric)
    with pytest.raises(NotComputable, match="rational"):
        sensitivity_in_universe(spec, lambda x: x, (0, 1))
