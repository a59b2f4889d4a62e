"""Constraints as numbers, against enumeration of every integer table on tiny trees."""

from __future__ import annotations

import itertools
import math
from functools import cache, cached_property, reduce

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from support.strategies import reproducibly
from support.topdown_strategies import Case, cases, cross, histograms, matches

from stirred.data import Spine
from stirred.errors import InputError
from stirred.spec import Condition, Count, Schema
from stirred.topdown import Cells, Edit, EqualTo, Facilities, Invariant, StructuralZero
from stirred.topdown.bounds import UNBOUNDED, Bounds
from stirred.topdown.constraint import Declared
from stirred.topdown.invariants import earlier_key, invariant_values

Table = tuple[int, ...]


def bounds_of(case: Case) -> Bounds:
    values = invariant_values(case.constraints, case.units(), case.spine, case.histograms())
    return Bounds(case.cells, case.spine, "person", case.constraints, values, case.units())


class Oracle:
    """The tables that nodes can have, by enumeration from the leaves; nothing is taken from ``Bounds``."""

    def __init__(self, case: Case, most: int) -> None:
        self.case, self.most = case, most
        self.cells = case.cells
        self.truth = case.histograms()

    @cached_property
    def wide(self) -> np.ndarray:
        """Every table with at most this total, a row each."""
        count = self.cells.count
        bars = np.array(list(itertools.combinations(range(self.most + count), count)))
        return np.diff(bars, axis=1, prepend=-1) - 1

    @cache  # noqa: B019
    def rules(self, level: int, node: int) -> list[tuple[np.ndarray, int, int]]:
        """The declared constraints of one node as (cells, least, most)."""
        out = []
        for declared in self.case.constraints:
            out += self._rules(declared, level, node)
        return out

    def _rules(self, declared: Declared, level: int, node: int) -> list[tuple[np.ndarray, int, int]]:
        name = self.case.spine.levels[level]
        own = self.truth["person"][level].dense(node, node + 1)[0]
        if isinstance(declared, StructuralZero):
            return [(matches(self.cells, declared.where), 0, 0)]
        if isinstance(declared, Invariant):
            if declared.count.unit != "person" or name not in declared.count.by:
                return []
            where = {c.attribute: c.levels for c in declared.count.where}
            parts = [part for part in declared.count.by if part != name]
            groups = [g & matches(self.cells, where) for g in self._groups(parts)]
            return [(g, int(own[g].sum()), int(own[g].sum())) for g in groups]
        assert isinstance(declared, Edit | Facilities)
        if name != declared.level:
            return []
        if isinstance(declared, Edit):
            most = UNBOUNDED if declared.at_most is None else declared.at_most
            groups = self._groups([] if declared.query == "total" else [declared.query])
            inside = matches(self.cells, declared.where)
            return [(g & inside, declared.at_least, most) for g in groups if (g & inside).any()]
        built = self.truth["building"][level].dense(node, node + 1)[0]
        out = []
        for kind, (label, group) in enumerate(
            zip(
                self.case.counted["building"].attributes[0].levels,
                self._groups([declared.attribute]),
                strict=True,
            )
        ):
            least = int(built[kind]) if label in declared.at_least_one else 0
            out.append((group, least, int(built[kind]) * declared.cap))
        return out

    def _groups(self, parts: list[str]) -> list[np.ndarray]:
        schema = self.case.schema
        keys = [tuple(schema.value(r, part) for part in parts) for r in schema.records()]
        return [np.array([key == one for key in keys]) for one in dict.fromkeys(keys)]

    def allowed(self, level: int, node: int, tables: np.ndarray) -> np.ndarray:
        """Those tables that keep the declared constraints of one node."""
        kept = np.ones(len(tables), dtype=bool)
        for cells, least, most in self.rules(level, node):
            sums = tables[:, cells].sum(axis=1)
            kept &= (least <= sums) & (sums <= most)
        return tables[kept]

    @cache  # noqa: B019
    def possible(self, level: int, node: int) -> np.ndarray:
        """Tables of a node, with at most ``most`` records, that leaves below it can add up to."""
        spine = self.case.spine
        own = self.wide
        if level < spine.depth - 1:
            start, stop = spine.starts(level)[node : node + 2]
            own = reduce(self._sum, (self.possible(level + 1, child) for child in range(start, stop)))
        return self.allowed(level, node, own)

    def _sum(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        sums = (first[:, None, :] + second[None, :, :]).reshape(-1, self.cells.count)
        return np.unique(sums[sums.sum(axis=1) <= self.most], axis=0)


def as_set(tables: np.ndarray) -> set[Table]:
    return set(map(tuple, tables.tolist()))


def claimed(bounds: Bounds, level: int, node: int, tables: np.ndarray, *, sets: bool = True) -> set[Table]:
    """Those tables that keep the numbers that ``Bounds`` has for a node."""
    kept = ~tables[:, bounds.zero].any(axis=1)
    for partition, low, high in bounds.at(level, node, node + 1):
        for g in range(partition.size):
            sums = tables[:, partition.groups == g].sum(axis=1)
            kept &= (low[0, g] <= sums) & (sums <= high[0, g])
    for extra in bounds.set_bounds(level, node, node + 1) if sets else ():
        sums = tables[:, extra.cells].sum(axis=1)
        kept &= (extra.lower[0] <= sums) & (sums <= extra.upper[0])
    return as_set(tables[kept])


def nodes(spine: Spine) -> list[tuple[int, int]]:
    return [(level, node) for level in range(spine.depth) for node in range(spine.size(level))]


def small(case: Case) -> int:
    """Enough records for every bound to bite, few enough to enumerate; zero if that is too many."""
    total = int(case.tables["person"].sum()) + 1
    return total if math.comb(total + case.cells.count, total) <= 2000 else 0


def splits(case: Case, most: int) -> Bounds:
    """Assert that tables keep the bounds of a node if and only if leaves can add up to them."""
    bounds, oracle = bounds_of(case), Oracle(case, most)
    for level, node in nodes(case.spine):
        possible = as_set(oracle.possible(level, node))
        assert claimed(bounds, level, node, oracle.wide) == possible, (level, node)
    return bounds


@reproducibly(100)
@given(cases(largest=2, max_leaves=4, max_attributes=2))
def test_what_keeps_the_bounds_of_a_node_is_what_its_leaves_can_add_up_to(case):
    """The guarantee: a table that keeps the bounds can be split down to the leaves; and no more is asked."""
    most = small(case)
    if not most:
        return
    splits(case, most)


@pytest.mark.parametrize("block", range(4))
def test_totals_and_groups_at_different_levels_never_end_in_a_dead_end(block):
    enumerated = with_sets = 0
    for seed in range(80 * block, 80 * (block + 1)):
        case = cross(seed)
        most = small(case)
        if not most:
            continue
        enumerated += 1
        with_sets += any(splits(case, most).sets.values())
    assert enumerated >= 40 and with_sets >= 1


@pytest.mark.parametrize("block", range(4))
def test_group_bounds_are_exactly_the_projections(block):
    """The least and the most that a group has, over all tables that its node can have."""
    compared = 0
    for seed in range(1000 + 40 * block, 1040 + 40 * block):
        case = cross(seed)
        most = small(case)
        if not most:
            continue
        bounds, oracle = bounds_of(case), Oracle(case, most)
        for level, node in nodes(case.spine):
            possible = oracle.possible(level, node)
            found = bounds.at(level, node, node + 1)
            if not any(p.size == 1 and high[0, 0] <= most for p, _, high in found):
                continue  # the enumeration would stop short of what is possible
            for partition, low, high in found:
                compared += 1
                for g in range(partition.size):
                    sums = possible[:, partition.groups == g].sum(axis=1)
                    assert (sums.min(), sums.max()) == (low[0, g], high[0, g]), (seed, level, node, g)
    assert compared >= 30


def tree(*rows: str) -> Spine:
    """A spine of states and blocks, or of states, counties and blocks, from paths."""
    split = [row.split(".") for row in rows]
    levels = ("state", "block") if len(split[0]) == 2 else ("state", "county", "block")
    return Spine.from_columns(pl.DataFrame(split, schema=list(levels), orient="row"), levels)


def of_person(*by: str) -> Invariant:
    return Invariant(count=Count(unit="person", by=by))


def housed(level: str, labels: tuple[int, ...], **fields) -> list[Declared]:
    """Bounds on the people in each of some groups by the number of buildings for it."""
    return [
        Invariant(count=Count(unit="building", by=(level, "kind"))),
        Facilities(attribute="group", level=level, sources={"building": labels}, **fields),
    ]


def test_bounds_on_groups_and_totals_alone_would_end_in_a_dead_end():
    """Two blocks, one person each; one has places for groups 0 and 1, the other for 2 and 3.

    Two persons in groups 0 and 1 keep every bound on a group and the total of the state, and cannot be
    split: the second block would have nobody. The bound on the set {0, 1} rules them out.
    """
    labels = (0, 1, 2, 3)
    person, building = np.array([[1, 0, 0, 0], [0, 0, 1, 0]]), np.array([[1, 1, 0, 0], [0, 0, 1, 1]])
    declared = (of_person("block"), *housed("block", labels, cap=5))
    case = Case(
        tree("0.a", "0.b"),
        Schema.of(group=labels),
        {"person": person, "building": building},
        declared,
        {"building": Schema.of(kind=labels)},
    )
    bounds, oracle = bounds_of(case), Oracle(case, 3)
    possible = as_set(oracle.possible(0, 0))
    assert (1, 1, 0, 0) in claimed(bounds, 0, 0, oracle.wide, sets=False) - possible
    assert claimed(bounds, 0, 0, oracle.wide) == possible
    assert possible == {(1, 0, 1, 0), (1, 0, 0, 1), (0, 1, 1, 0), (0, 1, 0, 1)}


def test_groups_bounded_above_the_level_whose_totals_are_fixed_need_sets_too():
    """The same in counties: totals of blocks, places by county."""
    labels = (0, 1, 2, 3)
    building = np.array([[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 0, 0]])
    person = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]])
    declared = (of_person("block"), *housed("county", labels, cap=5))
    case = Case(
        tree("0.a.a1", "0.a.a2", "0.b.b1", "0.b.b2"),
        Schema.of(group=labels),
        {"person": person, "building": building},
        declared,
        {"building": Schema.of(kind=labels)},
    )
    bounds = splits(case, 5)
    assert any(bounds.sets.values())


def test_one_group_and_the_rest_are_a_partition():
    """A bound on adults alone, with totals: the minors are what is left."""
    table = np.array([[1, 2], [0, 1]])
    adults = (Condition(attribute="age", levels=("adult",)),)
    declared = (of_person("block"), Invariant(count=Count(unit="person", by=("state",), where=adults)))
    case = Case(tree("0.a", "0.b"), Schema.of(age=("minor", "adult")), {"person": table}, declared)
    bounds = splits(case, 5)
    (rest,) = [(p, low, high) for p, low, high in bounds.at(0, 0, 1) if p.size == 2]
    assert sorted(map(tuple, np.stack([rest[1][0], rest[2][0]], axis=1).tolist())) == [(1, 1), (3, 3)]


def test_an_edit_of_some_groups_leaves_the_others_alone():
    table = np.array([[0, 2], [3, 1]])
    declared = (Edit(level="block", query="age", where={"age": ("adult",)}, at_least=1, at_most=2),)
    case = Case(tree("0.a", "0.b"), Schema.of(age=("minor", "adult")), {"person": table}, declared)
    bounds_of(case).check(case.histograms()["person"])
    splits(case, 6)


def test_the_same_groups_in_another_order_are_one_partition():
    table = np.array([[1, 2], [0, 1]])
    adults = (Condition(attribute="age", levels=("adult",)),)
    declared = (
        of_person("block"),
        Invariant(count=Count(unit="person", by=("block",), where=adults)),
        Edit(level="state", query="age", at_least=1, at_most=3),
    )
    case = Case(tree("0.a", "0.b"), Schema.of(age=("minor", "adult")), {"person": table}, declared)
    assert sorted(p.size for p in splits(case, 5).partitions) == [1, 2]


def blocks_with(person, building, declared, spine=None, labels=(0, 1)) -> Case:
    return Case(
        tree("0.a", "0.b") if spine is None else spine,
        Schema.of(group=labels),
        {"person": np.array(person), "building": np.array(building)},
        tuple(declared),
        {"building": Schema.of(kind=labels)},
    )


def refused(case: Case, *words: str) -> InputError:
    with pytest.raises(InputError) as caught:
        bounds_of(case)
    for word in words:
        assert word in caught.value.problem
    return caught.value


def test_more_occupied_buildings_than_people_are_refused_by_name():
    """Block b has one person and two occupied buildings of kind 1."""
    case = blocks_with(
        [[1, 1], [0, 1]],
        [[1, 1], [0, 2]],
        [of_person("block"), *housed("block", (0, 1), cap=9, at_least_one=(0, 1))],
    )
    refused(case, "block b", "the number of persons in each block", "for each facility of a type of group")


def test_what_the_blocks_imply_is_compared_with_the_state_above():
    """Each block is possible by itself; their sum is more than the state may have."""
    case = blocks_with(
        [[0, 1], [0, 1]],
        [[1, 1], [1, 1]],
        [Edit(level="state", at_most=3), *housed("block", (0, 1), cap=9, at_least_one=(0, 1))],
    )
    refused(case, "state 0", "every count of total by state is at least 0 and at most 3")


def test_more_people_than_places_are_refused_by_name():
    case = blocks_with(
        [[4, 0], [0, 0]], [[1, 0], [1, 1]], [of_person("block"), *housed("block", (0, 1), cap=3)]
    )
    refused(case, "block a", "the number of persons in each block")


def test_a_conflict_that_only_sets_show_is_refused_by_name():
    """At most one person of each group in the state: room for four, but three must be of groups 0 and 1."""
    labels = (0, 1, 2, 3)
    case = blocks_with(
        [[3, 0, 0, 0], [0, 0, 1, 0]],
        [[1, 1, 0, 0], [0, 0, 1, 1]],
        [
            of_person("block"),
            *housed("block", labels, cap=5),
            Edit(level="state", query="group", at_most=1),
        ],
        labels=labels,
    )
    refused(case, "state 0", "every count of group by state", "the number of persons in each block")


def test_bounds_the_wrong_way_round_are_refused():
    case = Case(
        tree("0.a"),
        Schema.of(group=(0, 1)),
        {"person": np.array([[1, 1]])},
        (Edit(level="block", at_least=3, at_most=2),),
    )
    refused(case, "block a", "every count of total by block")


def test_two_partitions_with_different_sums_are_refused_naming_both():
    spine, cells = tree("0.a", "0.b"), Cells(Schema.of(sex=("f", "m"), age=(0, 1)))
    declared = (
        EqualTo(release="one", level="state", query="sex"),
        EqualTo(release="two", level="state", query="age"),
    )
    values = {
        earlier_key("one", "state", "sex"): np.array([[3, 4]]),
        earlier_key("two", "state", "age"): np.array([[3, 5]]),
    }
    with pytest.raises(InputError) as caught:
        Bounds(cells, spine, "person", declared, values)
    for word in ("state 0", "sex by state equals the release one", "age by state equals the release two"):
        assert word in caught.value.problem
    values[earlier_key("two", "state", "age")] = np.array([[2, 5]])
    Bounds(cells, spine, "person", declared, values)


def test_a_group_of_structural_zeros_has_nobody():
    case = blocks_with(
        [[0, 1], [0, 1]],
        [[1, 1], [0, 1]],
        [StructuralZero(where={"group": (0,)}), *housed("block", (0, 1), cap=9, at_least_one=(0, 1))],
    )
    refused(case, "block a", "facility")


def row(bounds: Bounds, level: int, node: int, size: int) -> list[tuple[int, int]]:
    """The bounds of a node on the partition of this size."""
    (found,) = [(low[0], high[0]) for p, low, high in bounds.at(level, node, node + 1) if p.size == size]
    return list(zip(*(side.tolist() for side in found), strict=True))


def test_facilities_by_hand():
    """None: nobody. Occupied ones: from one each to the cap each. Housing units may be vacant."""
    labels = (1, 2, 3)  # 1: housing units
    case = blocks_with(
        [[4, 2, 0], [0, 0, 0]],
        [[3, 2, 0], [2, 0, 0]],
        housed("block", labels, cap=5, at_least_one=(2, 3)),
        labels=labels,
    )
    bounds = bounds_of(case)
    assert row(bounds, 1, 0, 3) == [(0, 15), (2, 10), (0, 0)]
    assert row(bounds, 1, 1, 3) == [(0, 10), (0, 0), (0, 0)]
    assert row(bounds, 0, 0, 3) == [(0, 25), (2, 10), (0, 0)]
    assert row(bounds, 0, 0, 1) == [(2, 35)]


def test_a_known_total_tightens_facilities_as_in_the_production_code():
    """Most: the total less the least that others have, or the cap. Least: the total of an only type."""
    labels = (1, 2, 3)
    case = blocks_with(
        [[4, 2, 1], [0, 6, 0]],
        [[3, 2, 1], [0, 1, 0]],
        [of_person("block"), *housed("block", labels, cap=99_999, at_least_one=(2, 3))],
        labels=labels,
    )
    bounds = bounds_of(case)
    assert row(bounds, 1, 0, 3) == [(0, 7 - 3), (2, 7 - 1), (1, 7 - 2)]
    assert row(bounds, 1, 1, 3) == [(0, 0), (6, 6), (0, 0)]


def test_a_small_cap_leaves_the_rest_for_the_others():
    case = blocks_with(
        [[2, 4]], [[1, 3]], [of_person("block"), *housed("block", (0, 1), cap=2)], spine=tree("0.a")
    )
    assert row(bounds_of(case), 1, 0, 2) == [(0, 2), (4, 6)]


@pytest.mark.parametrize(
    ("sources", "count"),
    [
        ({"building": (0, 1)}, ("block",)),  # both kinds from one total
        ({"building": (0, 1)}, ("state", "kind")),  # counted at another level
        ({"shed": (0,)}, ("block", "kind")),  # not counted at all
    ],
)
def test_facilities_that_are_not_counted_are_refused(sources, count):
    declared = (
        Invariant(count=Count(unit="building", by=count)),
        Facilities(attribute="group", level="block", cap=3, sources=sources),
    )
    refused(
        blocks_with([[1, 1], [1, 1]], [[1, 1], [1, 1]], declared), "the bounds on group need the number of"
    )


@pytest.mark.parametrize(
    ("sources", "at_least_one"),
    [({"building": (0, 7)}, ()), ({"building": (0,)}, (1,)), ({"building": (0,)}, (7,))],
)
def test_types_of_facilities_that_there_are_not_are_refused(sources, at_least_one):
    declared = (
        Invariant(count=Count(unit="building", by=("block", "kind"))),
        Facilities(attribute="group", level="block", sources=sources, at_least_one=at_least_one),
    )
    refused(blocks_with([[1, 1], [1, 1]], [[1, 1], [1, 1]], declared), "name a type")


def test_a_type_without_a_source_is_not_bounded():
    declared = (
        Invariant(count=Count(unit="building", by=("block", "kind"))),
        Facilities(attribute="group", level="block", cap=3, sources={"building": (0,)}),
    )
    case = blocks_with([[1, 5], [1, 1]], [[1, 1], [1, 1]], declared)
    assert [high for _, high in row(bounds_of(case), 1, 0, 2)] == [3, UNBOUNDED]


def test_facilities_find_the_right_count_among_several():
    """Totals, counts at another level and counts by more attributes do not get in the way."""
    spine, labels = tree("0.a", "0.b"), (0, 1)
    kinds = Schema.of(size=("small", "large"), kind=labels)
    built = np.array([[1, 0, 0, 2], [0, 1, 1, 0]])  # small 0, small 1, large 0, large 1
    counts = [("block", "kind"), ("block",), ("state", "kind"), ("block", "size", "kind"), ("block", "size")]
    for order in itertools.permutations(counts, 3):
        if ("block", "kind") not in order:
            continue
        declared = tuple(Invariant(count=Count(unit="building", by=by)) for by in order)
        declared += (Facilities(attribute="group", level="block", cap=2, sources={"building": labels}),)
        case = Case(
            spine,
            Schema.of(group=labels),
            {"person": np.ones((2, 2), dtype=int), "building": built},
            declared,
            {"building": kinds},
        )
        bounds = bounds_of(case)
        assert row(bounds, 1, 0, 2) == [(0, 2), (0, 4)], order
        assert row(bounds, 1, 1, 2) == [(0, 2), (0, 2)], order


def test_check_names_the_constraint_the_level_and_the_node():
    case = blocks_with([[1, 1], [2, 0]], [[1, 1], [1, 0]], housed("block", (0, 1), cap=2))
    bounds = bounds_of(case)
    bounds.check(case.histograms()["person"])
    with pytest.raises(InputError, match=r"in block b: every block has from 1"):
        bounds.check(histograms(np.array([[1, 1], [3, 0]]), case.spine))
    zeros = (StructuralZero(where={"group": (1,)}),)
    with pytest.raises(InputError, match=r"in block a: no record has group in \{1\}"):
        Bounds(case.cells, case.spine, "person", zeros, {}).check(case.histograms()["person"])


def test_no_constraint_is_no_bound():
    case = Case(tree("0.a", "0.b"), Schema.of(group=(0, 1)), {"person": np.array([[1, 0], [0, 4]])}, ())
    bounds = bounds_of(case)
    assert not bounds.partitions and not bounds.sets and bounds.at(0, 0, 1) == []
    splits(case, 6)
