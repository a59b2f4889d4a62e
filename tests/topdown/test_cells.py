"""Cells and queries: against records counted one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import reproducibly

from stirred.errors import InputError, UnknownName
from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Cells
from stirred.topdown.cells import LARGEST


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """One to three attributes of one to five levels, each with up to two recodes; groups are in any order,
    except where every group is one level.
    """
    attributes, recodes = [], []
    for i in range(draw(st.integers(1, 3))):
        levels = tuple(range(10 * i, 10 * i + draw(st.integers(1, 5))))
        attributes.append(Attribute(name=f"a{i}", levels=levels))
        for j in range(draw(st.integers(0, 2))):
            labels = draw(st.permutations(["p", "q", "r"]))
            of = [draw(st.sampled_from(labels)) for _ in levels]
            groups = {
                g: tuple(x for x, y in zip(levels, of, strict=True) if y == g) for g in labels if g in of
            }
            recodes.append(Recode(name=f"r{i}{j}", attribute=f"a{i}", groups=groups))
    return Schema(attributes=tuple(attributes), recodes=tuple(recodes))


@st.composite
def queries(draw: st.DrawFn) -> tuple[Cells, list[str]]:
    """Cells and the parts of a query, in any order."""
    schema = draw(schemas())
    parts = []
    for name in schema.names:
        choices = [None, name, *(r.name for r in schema.recodes if r.attribute == name)]
        chosen = draw(st.sampled_from(choices))
        parts += [chosen] if chosen else []
    return Cells(schema), draw(st.permutations(parts))


def text_of(parts: list[str]) -> str:
    return " * ".join(parts) if parts else "total"


def counted(cells: Cells, parts: list[str]) -> list[tuple[object, ...]]:
    """For every cell the values of its record on the parts of a query, in the order of the schema."""
    attribute = {r.name: r.attribute for r in cells.schema.recodes}
    ordered = sorted(parts, key=lambda part: cells.names.index(attribute.get(part, part)))
    return [tuple(cells.schema.value(record, part) for part in ordered) for record in cells.schema.records()]


@reproducibly(200)
@given(queries(), st.integers(0, 2**32 - 1))
def test_answers_are_counts_of_records(case: tuple[Cells, list[str]], seed: int) -> None:
    cells, parts = case
    query = cells.query(text_of(parts))
    table = np.random.default_rng(seed).integers(-50, 50, (2, 3, cells.count))
    answers = query.answer(table)
    labels = query.labels()
    assert answers.shape == (2, 3, query.size)
    assert len(labels) == query.size == len(set(labels))
    values = counted(cells, parts)
    for position, label in enumerate(labels):
        members = [i for i, value in enumerate(values) if value == label]
        assert np.array_equal(answers[..., position], table[..., members].sum(axis=-1))
        assert np.array_equal(np.flatnonzero(query.groups == position), members)


@reproducibly(100)
@given(queries())
def test_a_query_has_one_spelling(case: tuple[Cells, list[str]]) -> None:
    cells, parts = case
    query = cells.query(text_of(parts))
    assert cells.query(text_of(parts[::-1])) is query
    assert cells.query("  " + text_of(parts).replace(" * ", "*") + " ") is query
    assert cells.query(query.name) is query
    assert cells.canonical(query.name) == query.name == cells.canonical(text_of(parts))
    assert sorted(query.parts) == sorted(parts)
    if parts == []:
        assert query.name == "total"
    elif sorted(parts) == sorted(cells.names):
        assert query.name == "detailed"
    else:
        assert sorted(query.name.split(" * ")) == sorted(parts)


def example() -> Cells:
    return Cells(
        Schema(
            attributes=(
                Attribute(name="quarters", levels=("home", "prison", "nursing", "college")),
                Attribute(name="sex", levels=("f", "m")),
                Attribute(name="race", levels=(1, 2, 3)),
            ),
            recodes=(
                Recode(
                    name="institution",
                    attribute="quarters",
                    groups={"none": ("home",), "yes": ("prison", "nursing"), "no": ("college",)},
                ),
            ),
        )
    )


def test_shapes_and_labels() -> None:
    cells = example()
    assert (cells.shape, cells.count, cells.names) == ((4, 2, 3), 24, ("quarters", "sex", "race"))
    query = cells.query("race*institution")
    assert (query.name, query.parts) == ("institution * race", ("institution", "race"))
    assert (query.shape, query.size) == ((3, 1, 3), 9)
    assert query.labels() == list(itertools.product(("none", "yes", "no"), (1, 2, 3)))
    assert cells.query("total").labels() == [()]
    assert [cells.query(n).size for n in ("total", "detailed", "sex")] == [1, 24, 2]
    # home, prison, nursing, college in rows; every cell is its own number
    answers = query.answer(np.arange(24))
    assert answers.tolist() == [3, 5, 7, 42, 46, 50, 39, 41, 43]


def test_answers_keep_their_type() -> None:
    cells = example()
    for name in ("total", "detailed", "institution", "sex * race"):
        assert cells.query(name).answer(np.ones(24)).dtype == np.float64
        assert cells.query(name).answer(np.ones((0, 24), dtype=np.int64)).shape == (0, cells.query(name).size)
        answers = cells.query(name).answer(np.ones(24, dtype=np.int64))
        assert answers.dtype == np.int64
        assert answers.flags.c_contiguous


@pytest.mark.parametrize(
    "text", ["height", "", "*", "sex *", "* sex", "sex * total", "detailed * sex", "SEX"]
)
def test_unknown_names_are_refused(text: str) -> None:
    with pytest.raises(UnknownName, match="unknown attribute") as caught:
        example().query(text)
    assert caught.value.field == "query"
    assert "institution" in caught.value.expected


@pytest.mark.parametrize("text", ["sex * sex", "quarters * institution", "institution*race*quarters"])
def test_an_attribute_named_twice_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="twice"):
        example().query(text)


@pytest.mark.parametrize("levels", [None, ()])
def test_levels_must_be_listed(levels: tuple[int, ...] | None) -> None:
    schema = Schema(attributes=(Attribute(name="age", levels=levels),))
    with pytest.raises(InputError, match="age") as caught:
        Cells(schema)
    assert caught.value.field == "schema.age.levels"


def test_too_many_cells_are_refused() -> None:
    fits = Schema.of(a=range(1 << 12), b=range(1 << 12))
    assert Cells(fits).count == LARGEST
    with pytest.raises(InputError, match="too many cells"):
        Cells(Schema.of(a=range(1 << 12), b=range((1 << 12) + 1)))


def test_one_cell() -> None:
    cells = Cells(Schema.of(a=(7,)))
    assert cells.canonical("a") == "detailed"
    assert cells.query("total").answer(np.array([5])).tolist() == [5]
    assert cells.query("detailed").answer(np.array([5])).tolist() == [5]


def test_groups_in_another_order_than_the_levels() -> None:
    """A recode that only renames and reorders levels."""
    swapped = Recode(name="named", attribute="sex", groups={"man": ("m",), "woman": ("f",)})
    schema = Schema(attributes=(Attribute(name="sex", levels=("f", "m")),), recodes=(swapped,))
    query = Cells(schema).query("named")
    assert query.labels() == [("man",), ("woman",)]
    assert query.answer(np.array([10, 20])).tolist() == [20, 10]


def test_a_group_without_levels_is_refused() -> None:
    recode = Recode(name="r", attribute="a", groups={"none": (), "all": (0, 1)})
    with pytest.raises(InputError, match="not valid") as refusal:
        Schema(attributes=(Attribute(name="a", levels=(0, 1)),), recodes=(recode,))
    assert "no empty group" in refusal.value.expected


@pytest.mark.parametrize("name", ["total", "detailed", "a * b", " a"])
def test_names_that_a_query_could_not_name_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="cannot be named"):
        Cells(Schema(attributes=(Attribute(name=name, levels=(0, 1)),)))
