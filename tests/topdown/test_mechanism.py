"""TopDown as a whole: every constraint in every output, the specification, refusals before any draw."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import reproducibly
from support.topdown_strategies import Case, allocations, cases, cross, matches

from stirred.data import Spine
from stirred.errors import DomainMismatch, InputError, InvalidBudget, NotComputable, Refusal, UnknownName
from stirred.noise import Source, TestSource
from stirred.spec import (
    Attribute,
    Condition,
    Count,
    HammingUnordered,
    Invariants,
    NormalisedRenyi,
    Recode,
    Schema,
    SymmetricDifference,
    Trivial,
)
from stirred.topdown import (
    Allocation,
    Cells,
    Earlier,
    Edit,
    EqualTo,
    Estimates,
    Facilities,
    Invariant,
    Settings,
    StructuralZero,
    TopDown,
    Universe,
    preset,
)


class Dry(Source):
    """A source that fails when it is asked for words."""

    def __init__(self) -> None:
        super().__init__(bytes(32))

    @property
    def publishable(self) -> bool:
        return False

    def child(self, *path: int) -> Dry:
        return Dry()

    def words(self, count: int) -> Any:
        raise AssertionError("something was drawn")

    def _key_after_fork(self) -> bytes:
        return bytes(32)


def settled(estimator: str, **fields: Any) -> Settings:
    return Settings(estimator=estimator, threads=1, **fields)


def verify(made: Estimates, case: Case, data: dict[str, pl.DataFrame]) -> None:
    """Every promise about the output, from its microdata and tables and from the declarations alone."""
    spine, cells, schema = made.spine, made.cells, made.cells.schema
    leaf = spine.levels[-1]
    for depth, level in enumerate(made.levels):
        assert level.counts.dtype == np.int64 and (level.counts > 0).all()
        dense = level.dense(0, spine.size(depth))
        if depth + 1 < spine.depth:
            below = made.levels[depth + 1].dense(0, spine.size(depth + 1))
            assert np.array_equal(spine.sums(depth, below), dense)
    records = made.microdata()
    assert records.columns == [leaf, *schema.names]
    for name, levels in schema.codebook().items():
        assert set(records[name].to_list()) <= set(levels)
    index = {code: i for i, code in enumerate(spine.leaf_codes())}
    places = [levels.index for levels in cells.levels]
    order = [
        (index[row[0]], *(place(value) for place, value in zip(places, row[1:], strict=True)))
        for row in records.iter_rows()
    ]
    assert order == sorted(order)
    geography = spine.table().with_columns(pl.Series("__leaf", spine.leaf_codes()))
    node = {
        name: dict(zip(geography["__leaf"], spine.ancestors(d), strict=True))
        for d, name in enumerate(spine.levels)
    }
    for depth, level_name in enumerate(spine.levels):
        for query in ("total", "detailed"):
            table = made.table(level_name, query)
            counts = np.zeros((spine.size(depth), cells.query(query).size), dtype=np.int64)
            for row in records.iter_rows():
                cell = int(
                    np.ravel_multi_index([p(v) for p, v in zip(places, row[1:], strict=True)], cells.shape)
                )
                counts[node[level_name][row[0]], cells.query(query).groups[cell]] += 1
            assert np.array_equal(table["count"].to_numpy(), counts.reshape(-1))
    own = made.levels[-1].dense(0, spine.size(spine.depth - 1))
    for declared in case.constraints:
        kept(declared, case, own, data)


def kept(declared: Any, case: Case, leaves: np.ndarray, data: dict[str, pl.DataFrame]) -> None:
    """One declaration, on the tables of the leaves."""
    spine, cells, schema = case.spine, case.cells, case.schema
    records = list(schema.records())

    def by(level: str, parts: list[str], where: Any, table: np.ndarray) -> dict[Any, int]:
        at = spine.ancestors(spine.levels.index(level))
        inside = matches(cells, where)
        out: dict[Any, int] = {}
        for leaf in range(len(table)):
            for cell, record in enumerate(records):
                if inside[cell]:
                    key = (int(at[leaf]), *(schema.value(record, part) for part in parts))
                    out[key] = out.get(key, 0) + int(table[leaf, cell])
        return out

    if isinstance(declared, StructuralZero):
        assert not leaves[:, matches(cells, declared.where)].any()
    elif isinstance(declared, Invariant) and declared.count.unit == "person":
        level = next(name for name in declared.count.by if name in spine.levels)
        parts = [name for name in declared.count.by if name != level]
        where = {c.attribute: c.levels for c in declared.count.where}
        assert by(level, parts, where, leaves) == by(level, parts, where, case.tables["person"])
    elif isinstance(declared, Edit):
        parts = [] if declared.query == "total" else [declared.query]
        for count in by(declared.level, parts, declared.where, leaves).values():
            assert declared.at_least <= count
            assert declared.at_most is None or count <= declared.at_most
    elif isinstance(declared, Facilities):
        at = spine.ancestors(spine.levels.index(declared.level))
        labels = list(case.counted["building"].attributes[0].levels or ())
        for (place, label), count in by(declared.level, [declared.attribute], {}, leaves).items():
            built = int(case.tables["building"][at == place][:, labels.index(label)].sum())
            assert count <= built * declared.cap
            assert label not in declared.at_least_one or count >= built


@st.composite
def runs(draw: st.DrawFn, estimator: str) -> tuple[Case, TopDown, int]:
    case = draw(cases(max_leaves=7))
    allocation = draw(allocations(case.cells, case.spine.levels, detailed=estimator == "gls"))
    chain = draw(
        st.sampled_from(
            (("total", "detailed"), ("detailed",), (), ("total", case.schema.names[0], "detailed"))
        )
    )
    passes = {}
    if draw(st.booleans()):
        level = draw(st.sampled_from(case.spine.levels))
        names = list(allocation.queries[level])
        cut = draw(st.integers(0, len(names)))
        passes = {level: [group for group in (names[:cut], names[cut:]) if group]}
    settings = settled(estimator, chain=chain, passes=passes)
    mechanism = TopDown(
        case.spine, [Universe("person", case.schema, allocation, settings)], case.constraints, case.counted
    )
    return case, mechanism, draw(st.integers(0, 2**30))


@reproducibly(40)
@given(runs("multipass"))
def test_every_constraint_holds_in_the_output_of_many_passes(run):
    case, mechanism, seed = run
    data = case.data()
    verify(mechanism.release(data, TestSource(seed)).products["person"], case, data)


@reproducibly(30)
@given(runs("gls"))
def test_every_constraint_holds_in_the_output_of_generalised_least_squares(run):
    case, mechanism, seed = run
    data = case.data()
    verify(mechanism.release(data, TestSource(seed)).products["person"], case, data)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["multipass", "gls"])
def test_every_constraint_holds_in_many_more_outputs(estimator):
    @reproducibly(800)
    @given(runs(estimator))
    def check(run):
        case, mechanism, seed = run
        data = case.data()
        verify(mechanism.release(data, TestSource(seed)).products["person"], case, data)

    check()


def crossed(seeds: range, estimator: str) -> None:
    """Totals and groups bounded at different levels, with noise far larger than the counts."""
    for seed in seeds:
        case = cross(seed)
        shares = {level: Fraction(1, case.spine.depth) for level in case.spine.levels}
        allocation = Allocation.of(case.cells, "1/20", shares, {"total": "1/3", "detailed": "2/3"})
        universe = Universe("person", case.schema, allocation, settled(estimator))
        mechanism = TopDown(case.spine, [universe], case.constraints, case.counted)
        data = case.data()
        verify(mechanism.release(data, TestSource(seed)).products["person"], case, data)


@pytest.mark.parametrize("estimator", ["multipass", "gls"])
def test_totals_and_groups_at_different_levels_are_kept_under_much_noise(estimator):
    crossed(range(25), estimator)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", ["multipass", "gls"])
def test_totals_and_groups_at_different_levels_are_kept_in_many_runs(estimator):
    crossed(range(25, 400), estimator)


# Two universes, and the specification.


def town() -> pl.DataFrame:
    rows = [
        ("0", "0a", "0a1"),
        ("0", "0a", "0a2"),
        ("0", "0b", "0b1"),
        ("0", "0c", "0c1"),
        ("0", "0c", "0c2"),
    ]
    return pl.DataFrame(rows, schema=["state", "county", "block"], orient="row")


LEVELS = ("state", "county", "block")
PERSON = Schema(
    attributes=(
        Attribute(name="quarters", levels=(1, 2, 3)),
        Attribute(name="age", levels=("minor", "adult")),
    ),
    recodes=(Recode(name="household", attribute="quarters", groups={"yes": (1,), "no": (2, 3)}),),
)
UNIT = Schema.of(occupancy=("occupied", "vacant"))
COUNTED = {"facility": Schema.of(kind=(2, 3))}
HOUSED = (
    {"kind": "invariant", "count": {"unit": "person", "by": ["state"]}},
    {"kind": "invariant", "count": {"unit": "housing_unit", "by": ["block"]}},
    {"kind": "invariant", "count": {"unit": "facility", "by": ["block", "kind"]}},
    {
        "kind": "facilities",
        "attribute": "quarters",
        "level": "block",
        "cap": 4,
        "sources": {"housing_unit": [1], "facility": [2, 3]},
        "at_least_one": [2, 3],
    },
    {"kind": "structural_zero", "where": {"quarters": [3], "age": ["minor"]}},
)


def even(schema: Schema, rho: object = 2, queries: Any = None, change: Any = "replace-one") -> Allocation:
    shares = dict.fromkeys(LEVELS, Fraction(1, 3))
    return Allocation.of(Cells(schema), rho, shares, queries or {"total": "1/2", "detailed": "1/2"}, change)


def town_spine() -> Spine:
    return Spine.from_columns(town(), LEVELS)


def town_data() -> dict[str, pl.DataFrame]:
    persons = [("0a1", 1, "minor")] * 3 + [("0a1", 1, "adult")] * 4 + [("0a2", 2, "adult")] * 5
    persons += [("0c1", 1, "adult"), ("0c1", 3, "adult"), ("0c1", 3, "adult"), ("0c2", 2, "minor")]
    units = [("0a1", "occupied")] * 2 + [("0a1", "vacant"), ("0b1", "vacant"), ("0c1", "occupied")]
    facilities = [("0a2", 2), ("0a2", 2), ("0c1", 3), ("0c2", 2)]
    return {
        "person": pl.DataFrame(persons, schema=["block", "quarters", "age"], orient="row"),
        "housing_unit": pl.DataFrame(units, schema=["block", "occupancy"], orient="row"),
        "facility": pl.DataFrame(facilities, schema=["block", "kind"], orient="row"),
    }


def two_universes(estimator: str = "multipass", **fields: Any) -> TopDown:
    universes = [
        Universe("person", PERSON, even(PERSON), settled(estimator)),
        Universe("housing_unit", UNIT, even(UNIT, "1/2"), settled(estimator)),
    ]
    return TopDown(town_spine(), universes, HOUSED, COUNTED, **fields)


@pytest.mark.parametrize("estimator", ["multipass", "gls"])
@pytest.mark.parametrize("seed", range(4))
def test_persons_and_housing_units_are_two_universes_of_one_release(estimator, seed):
    data = town_data()
    made = two_universes(estimator).release(data, TestSource(seed))
    persons, units = made.products["person"].microdata(), made.products["housing_unit"].microdata()
    assert persons.height == data["person"].height
    assert (
        units.group_by("block")
        .len()
        .sort("block")
        .equals(data["housing_unit"].group_by("block").len().sort("block"))
    )
    buildings = {(b, 1): n for b, n in data["housing_unit"].group_by("block").len().iter_rows()}
    facilities = {(b, k): n for b, k, n in data["facility"].group_by("block", "kind").len().iter_rows()}
    people = {(b, q): n for b, q, n in persons.group_by("block", "quarters").len().iter_rows()}
    assert set(people) <= set(buildings) | set(facilities)
    assert all(people.get(key, 0) <= 4 * n for key, n in (buildings | facilities).items())
    assert all(people.get(key, 0) >= n for key, n in facilities.items())
    assert persons.filter((pl.col("quarters") == 3) & (pl.col("age") == "minor")).is_empty()
    assert not made.publishable and "test seed" in made.reason


def test_the_specification_of_two_universes_composes_under_an_assumption():
    spec = two_universes().guarantee()
    assert spec.budget.amount.rational == Fraction(5, 2)
    assert spec.budget.parametrisation == "rho_squared"
    assert spec.input_premetric == HammingUnordered(unit="person")
    assert spec.output_premetric == NormalisedRenyi()
    assert spec.multiverse == Invariants(
        invariants=(
            Count(unit="person", by=("state",)),
            Count(unit="housing_unit", by=("block",)),
            Count(unit="facility", by=("block", "kind")),
        ),
        label="c_TDA",
    )
    fixed, fresh = spec.assumptions
    assert "one person record belongs to one housing unit record" in fixed
    assert "independent" in fresh
    assert spec.standing == "proved"


def test_the_specification_says_nothing_of_the_data():
    mechanism = two_universes()
    other = {unit: frame.head(1) for unit, frame in town_data().items()}
    assert mechanism.guarantee(town_data()) == mechanism.guarantee(other) == mechanism.guarantee()
    made = mechanism.release(town_data(), TestSource(1))
    assert made.specification == mechanism.guarantee()


def test_without_invariants_the_multiverse_is_trivial():
    mechanism = TopDown(
        town_spine(), [Universe("person", PERSON, even(PERSON))], [Edit(level="block", at_most=99)]
    )
    assert isinstance(mechanism.guarantee().multiverse, Trivial)


def test_adding_and_removing_has_its_own_distance_and_half_the_noise():
    allocation = even(PERSON, 2, change="add-remove")
    mechanism = TopDown(town_spine(), [Universe("person", PERSON, allocation)])
    spec = mechanism.guarantee()
    assert spec.input_premetric == SymmetricDifference(unit="person")
    assert spec.budget.amount.rational == 2
    assert allocation.variance("block", "total") * 2 == even(PERSON, 2).variance("block", "total")


@pytest.mark.parametrize(
    ("first", "second", "factor"),
    [
        ("replace-one", "replace-one", 1),
        ("replace-one", "add-remove", 4),
        ("add-remove", "replace-one", 1),
        ("add-remove", "add-remove", 4),
    ],
)
def test_a_changed_unit_is_one_removed_and_one_added(first, second, factor):
    """A housing unit that changes is at distance two where units come and go: rho doubles."""
    universes = [
        Universe("person", PERSON, even(PERSON, 2, change=first)),
        Universe("housing_unit", UNIT, even(UNIT, "1/2", change=second)),
    ]
    spec = TopDown(town_spine(), universes, HOUSED, COUNTED).guarantee()
    assert spec.budget.amount.rational == 2 + factor * Fraction(1, 2)


def of_presets(which: tuple[str, ...]) -> TopDown:
    levels = ("us", "state", "county", "tract", "block_group", "block")
    row = ["us", "1", "11", "111", "1111"]
    frame = pl.DataFrame([[*row, "11111"], [*row, "11112"]], schema=list(levels), orient="row")
    chosen = [preset(name) for name in which]
    universes = [
        Universe(
            p.universe, p.schema, p.allocation, settled("multipass", passes=p.passes, chain=p.rounding_chain)
        )
        for p in chosen
    ]
    counted = {"occupied_group_quarters": Schema.of(group_quarters_type=range(2, 9))}
    if "pl-2020-us-units" not in which:
        counted["housing_unit"] = preset("pl-2020-us-units").schema
    constraints = list({repr(c): c for p in chosen for c in p.constraints}.values())
    return TopDown(Spine.from_columns(frame, levels), universes, constraints, counted)


PERSONS, UNITS = Fraction(293764, 114921), Fraction(11417641, 152349649)


@pytest.mark.parametrize(
    ("which", "amount"),
    [
        (("pl-2020-us-persons",), PERSONS),
        (("pl-2020-us-persons", "pl-2020-us-units"), PERSONS + UNITS),
    ],
)
def test_the_preset_run_has_exactly_the_budget_of_the_settings(which, amount):
    mechanism = of_presets(which)
    persons = pl.DataFrame(
        {
            "block": ["11111", "11111", "11112"],
            "hhgq": [1, 1, 2],
            "voting_age": [1, 2, 2],
            "hispanic": [1, 2, 1],
            "race": [1, 63, 5],
        }
    )
    data = {
        "person": persons,
        "housing_unit": pl.DataFrame({"block": ["11111", "11112"], "occupancy": ["occupied", "vacant"]}),
        "occupied_group_quarters": pl.DataFrame({"block": ["11112"], "group_quarters_type": [2]}),
    }
    made = mechanism.release(data, TestSource(3))
    spec = made.specification
    assert spec.budget.amount.rational == amount and spec.budget.parametrisation == "rho_squared"
    assert spec.input_premetric == HammingUnordered(unit="person")
    assert spec.output_premetric == NormalisedRenyi()
    assert {(i.unit, i.by) for i in spec.multiverse.invariants} == {
        ("person", ("state",)),
        ("housing_unit", ("block",)),
        ("occupied_group_quarters", ("block", "group_quarters_type")),
    }
    assert any("belongs to one housing unit" in text for text in spec.assumptions) == (len(which) == 2)
    people = made.products["person"].microdata()
    assert people.height == 3
    assert people.filter(pl.col("hhgq") == 2).select("block").unique().to_series().to_list() == ["11112"]
    assert people.filter(pl.col("hhgq") > 2).is_empty()


def test_the_units_preset_alone():
    spec = of_presets(("pl-2020-us-units",)).guarantee()
    assert spec.budget.amount.rational == UNITS
    assert spec.input_premetric == HammingUnordered(unit="housing_unit")


# A second product, made consistent with a first.


def second(
    first: Any, mechanism: TopDown, query: str, level: str, schema: Schema = PERSON, rho: object = 3
) -> TopDown:
    earlier = Earlier("pl", mechanism.guarantee(), first.products["person"])
    constraints = [*HOUSED, EqualTo(release="pl", level=level, query=query)]
    universes = [
        Universe("person", schema, even(schema, rho), settled("multipass")),
        Universe("housing_unit", UNIT, even(UNIT, "1/2"), settled("multipass")),
    ]
    return TopDown(town_spine(), universes, constraints, COUNTED, [earlier])


@pytest.mark.parametrize(
    ("query", "level"), [("total", "block"), ("quarters", "county"), ("quarters", "block")]
)
def test_a_second_product_equals_the_first_on_a_query_and_composes_its_budget(query, level):
    data, one = town_data(), two_universes()
    first = one.release(data, TestSource(11))
    two = second(first, one, query, level)
    made = two.release(data, TestSource(12))
    old, new = first.products["person"], made.products["person"]
    assert new.table(level, query).equals(old.table(level, query))
    assert not old.table(level, query).equals(truth_table(level, query)), "the first release has noise here"
    assert made.specification.budget.amount.rational == 3 + Fraction(1, 2) + Fraction(5, 2)


def truth_table(level: str, query: str) -> pl.DataFrame:
    mechanism = two_universes()
    return Estimates(
        "person", mechanism.units["person"], mechanism.spine, mechanism.counts(town_data())["person"]
    ).table(level, query)


def test_a_second_product_on_another_domain_is_refused_before_anything_is_drawn():
    data, one = town_data(), two_universes()
    first = one.release(data, TestSource(11))
    turned = Schema(
        attributes=(
            Attribute(name="age", levels=("adult", "minor")),
            Attribute(name="quarters", levels=(3, 1, 2)),
        ),
    )
    with pytest.raises(DomainMismatch):
        second(first, one, "quarters", "block", turned).release(data, Dry())


def test_an_earlier_release_that_is_not_at_hand_is_refused():
    mechanism = TopDown(
        town_spine(),
        [Universe("person", PERSON, even(PERSON))],
        [EqualTo(release="pl", level="block", query="total")],
    )
    with pytest.raises(UnknownName, match="the release pl, which is not at hand"):
        mechanism.release(town_data()["person"], Dry())


def test_an_earlier_release_of_another_geography_is_refused():
    data, one = town_data(), two_universes()
    first = one.release(data, TestSource(11))
    earlier = Earlier("pl", one.guarantee(), first.products["person"])
    moved = Spine.from_columns(town().with_columns(pl.lit("1").alias("state")), LEVELS)
    with pytest.raises(InputError, match="another geography"):
        TopDown(moved, [Universe("person", PERSON, even(PERSON))], (), {}, [earlier])


def test_other_areas_are_sums_of_leaves():
    made = two_universes().release(town_data(), TestSource(5)).products["person"]
    walk = pl.DataFrame({"block": ["0a1", "0c2", "0b1", "0a2"], "school": ["north", "north", "south", None]})
    found = made.other_areas(walk, "school", "age")
    blocks = made.table("block", "age")
    for school, members in (("north", ["0a1", "0c2"]), ("south", ["0b1"])):
        for age in ("minor", "adult"):
            expected = blocks.filter(pl.col("block").is_in(members) & (pl.col("age") == age))["count"].sum()
            own = found.filter((pl.col("school") == school) & (pl.col("age") == age))["count"].to_list()
            assert own == [expected]
    assert found.height == 4
    with pytest.raises(InputError, match="listed twice"):
        made.other_areas(pl.concat([walk, walk]), "school")
    with pytest.raises(InputError, match="does not list"):
        made.other_areas(pl.DataFrame({"block": ["0z9"], "school": ["north"]}), "school")
    with pytest.raises(UnknownName, match="no column district"):
        made.other_areas(walk, "district")


# Bad input. Values of the data are planted sentinels: no message may show one.

SECRETS = ("sentinel-block", "sentinel-age", "987654", "424242")


def plain(
    constraints: Any = (), estimator: str = "multipass", queries: Any = None, spine: Any = None
) -> TopDown:
    universe = Universe("person", PERSON, even(PERSON, 2, queries), settled(estimator))
    return TopDown(spine or town_spine(), [universe], constraints)


def says_no(mechanism: TopDown, data: Any, *words: str, kind: Any = InputError) -> None:
    """Refused, with these words, before anything is drawn, and without a value of the data."""
    with pytest.raises(kind) as caught:
        mechanism.release(data, Dry())
    message = f"{caught.value} {caught.value.as_dict()}"
    for word in words:
        assert word in message
    assert not any(secret in message for secret in SECRETS)


def persons(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"block": ["0a1", "0a2"], "quarters": [1, 2], "age": ["minor", "adult"]} | columns)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (persons(block=["0a1", "sentinel-block"]), ("some records have a block", "block")),
        (persons(block=[None, "0a1"]), ("some records have a block",)),
        (persons(age=["minor", "sentinel-age"]), ("no value of age among its levels",)),
        (persons(age=[None, "minor"]), ("no value of age among its levels",)),
        (persons(quarters=[987654, 1]), ("no value of quarters among its levels",)),
        (persons(quarters=[1.5, 424242.0]), ("no value of quarters among its levels",)),
        (persons().rename({"age": "years"}), ("no column age",)),
        (persons().drop("block"), ("no column block",)),
        ({"people": persons()}, ("no table of persons",)),
        ("sentinel-block", ()),
        (987654, ()),
    ],
)
def test_bad_records_are_refused_without_showing_them(data, words):
    says_no(plain(), data, *words)


def test_a_unit_that_is_only_counted_needs_its_table_too():
    data = town_data()
    del data["facility"]
    says_no(two_universes(), data, "no table of facilities")


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ([Edit(level="block", at_most=3)], ("in block 0a1", "every count of total by block")),
        ([Edit(level="county", query="age", at_least=1)], ("in county 0a", "every count of age by county")),
        ([StructuralZero(where={"age": ("adult",)})], ("in block 0a1", "no record has age in")),
        ([Edit(level="state", at_least=5, at_most=4)], ("in state 0", "cannot hold together")),
        (
            [
                Invariant(count=Count(unit="person", by=("block",))),
                Edit(level="block", query="age", at_least=1),
            ],
            ("cannot hold together in block", "the number of persons in each block"),
        ),
    ],
)
def test_constraints_that_the_records_break_are_refused(constraints, words):
    data = pl.DataFrame({"block": ["0a1"] * 4, "quarters": [1] * 4, "age": ["adult"] * 4})
    says_no(plain(constraints), data, *words)


@pytest.mark.parametrize(
    ("constraint", "kind"),
    [
        (Edit(level="parish"), InputError),
        (Edit(level="block", query="income"), UnknownName),
        (StructuralZero(where={"income": (1,)}), UnknownName),
        (StructuralZero(where={"age": ("ancient",)}), InputError),
        (Facilities(attribute="quarters", level="block", sources={"barn": (1,)}), InputError),
    ],
)
def test_constraints_that_name_what_there_is_not_are_refused_at_once(constraint, kind):
    with pytest.raises(kind):
        plain([constraint])


def test_an_earlier_release_that_is_not_there_is_refused_before_anything_is_drawn():
    says_no(plain([EqualTo(release="pl", level="block", query="total")]), persons(), kind=UnknownName)


@pytest.mark.parametrize(
    ("count", "kind"),
    [
        (Count(unit="dog", by=("block",)), UnknownName),
        (Count(unit="person", by=("block", "income")), UnknownName),
    ],
)
def test_invariants_of_what_there_is_not_are_refused(count, kind):
    with pytest.raises(kind):
        plain([Invariant(count=count)])


def test_an_invariant_where_a_level_does_not_exist_is_refused():
    only = (Condition(attribute="age", levels=("ancient",)),)
    with pytest.raises(InputError, match="age"):
        plain([Invariant(count=Count(unit="person", by=("block",), where=only))])


def test_least_squares_on_too_few_queries_is_refused_before_anything_is_drawn():
    says_no(plain(estimator="gls", queries={"total": 1}), persons(), "do not determine", kind=NotComputable)


def test_unknown_settings_are_refused():
    with pytest.raises(UnknownName, match="estimator"):
        plain(estimator="magic")
    for settings in (Settings(chain=("income",)), Settings(passes={"block": [["income"]]})):
        with pytest.raises(UnknownName):
            TopDown(town_spine(), [Universe("person", PERSON, even(PERSON), settings)])
    with pytest.raises(InputError):
        TopDown(town_spine(), [Universe("person", PERSON, even(PERSON), Settings(passes={"parish": []}))])


def test_budgets_that_do_not_fit_are_refused():
    cells = Cells(PERSON)
    thirds = dict.fromkeys(LEVELS, Fraction(1, 3))
    for levels, queries in (
        (thirds | {"block": Fraction(1, 4)}, {"total": 1}),
        (thirds, {"total": "1/2", "detailed": "1/3"}),
        ({"state": "1/2", "county": "1/2", "block": 0}, {"total": 1}),
    ):
        with pytest.raises(InvalidBudget):
            Allocation.of(cells, 1, levels, queries)
    with pytest.raises(UnknownName, match="unknown attribute"):
        Allocation.of(cells, 1, thirds, {"income": 1})
    fewer = Allocation.of(cells, 1, {"state": "1/2", "block": "1/2"}, {"total": 1})
    with pytest.raises(InputError, match="other levels than the spine has"):
        TopDown(town_spine(), [Universe("person", PERSON, fewer)])


def test_universes_need_names_of_their_own():
    universe = Universe("person", PERSON, even(PERSON))
    for universes, counted in (([], {}), ([universe, universe], {}), ([universe], {"person": PERSON})):
        with pytest.raises(InputError, match="universes"):
            TopDown(town_spine(), universes, (), counted)


def test_codes_that_do_not_nest_are_refused():
    frame = pl.DataFrame({"state": ["0", "1"], "county": ["a", "a"], "block": ["x", "y"]})
    with pytest.raises(InputError, match="do not nest: county a"):
        Spine.from_columns(frame, LEVELS)


# Odd input that is fine.


@pytest.mark.parametrize("estimator", ["multipass", "gls"])
def test_empty_places_and_levels_that_never_occur_are_fine(estimator):
    """County 0b has nobody, no minor occurs, and at last there is nobody at all."""
    data = pl.DataFrame({"block": ["0a1", "0c2"], "quarters": [1, 2], "age": ["adult", "adult"]})
    mechanism = plain([Invariant(count=Count(unit="person", by=("county",)))], estimator)
    made = mechanism.release(data, TestSource(2)).products["person"]
    assert made.table("county")["count"].to_list() == [1, 0, 1]
    nobody = mechanism.release(data.head(0), TestSource(2)).products["person"]
    assert nobody.microdata().is_empty()
    assert nobody.microdata().columns == ["block", "quarters", "age"]


@pytest.mark.parametrize("estimator", ["multipass", "gls"])
@pytest.mark.parametrize("levels", [("block",), LEVELS])
@pytest.mark.parametrize("sizes", [1, 3])
def test_one_block_and_one_cell_are_fine(estimator, levels, sizes):
    spine = Spine.from_columns(pl.DataFrame({level: ["x"] for level in levels}), levels)
    schema = Schema.of(kind=range(sizes))
    allocation = Allocation.of(
        Cells(schema), 100, dict.fromkeys(levels, Fraction(1, len(levels))), {"detailed": 1}
    )
    total = Invariant(count=Count(unit="person", by=(levels[0],)))
    data = pl.DataFrame({"block": ["x"] * 7, "kind": [0] * 7})
    for constraints in ((), (total,)):
        mechanism = TopDown(spine, [Universe("person", schema, allocation, settled(estimator))], constraints)
        made = mechanism.release(data, TestSource(1)).products["person"]
        assert set(made.microdata()["kind"]) <= set(range(sizes))
        assert not constraints or made.microdata().height == 7


@pytest.mark.parametrize("estimator", ["multipass", "gls"])
def test_a_huge_budget_gives_the_truth(estimator):
    universes = [
        Universe("person", PERSON, even(PERSON, 10**9), settled(estimator)),
        Universe("housing_unit", UNIT, even(UNIT, 10**9), settled(estimator)),
    ]
    mechanism = TopDown(town_spine(), universes, HOUSED, COUNTED)
    made = mechanism.release(town_data(), TestSource(7))
    for unit, counts in mechanism.counts(town_data()).items():
        if unit in made.products:
            for ours, truth in zip(made.products[unit].levels, counts, strict=True):
                assert np.array_equal(ours.cells, truth.cells) and np.array_equal(ours.counts, truth.counts)


def test_a_release_from_a_test_source_is_not_published():
    made = plain().release(persons(), TestSource(1))
    with pytest.raises(Refusal):
        made.require_publishable()
    mechanism = plain()
    prepared = mechanism.prepare(persons())
    assert set(mechanism.assess(mechanism.draw(prepared, TestSource(1)), prepared)) == {"person"}
    assert "person" in made.products and "measurements" in made.products


def test_two_runs_have_different_noise_and_one_seed_repeats():
    mechanism = plain()
    one, two = (
        mechanism.release(persons(), TestSource(seed)).products["person"].microdata() for seed in (1, 2)
    )
    assert not one.equals(two)
    again = mechanism.release(persons(), TestSource(1)).products["person"].microdata()
    assert again.equals(one)
