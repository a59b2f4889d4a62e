"""The algebra of marginal queries: against explicit matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import reproducibly

from stirred.spec import Attribute, Recode, Schema
from stirred.topdown import Cells, Query
from stirred.topdown.algebra import Algebra
from stirred.topdown.cells import Coarsening


@st.composite
def workloads(draw: st.DrawFn) -> tuple[Cells, dict[str, float]]:
    """Cells with up to two recodes an attribute, and weights of some queries; the detailed one among them."""
    attributes, recodes = [], []
    for i in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 4))
        attributes.append(Attribute(name=f"a{i}", levels=tuple(range(size))))
        for j in range(draw(st.integers(0, 2))):
            of = [draw(st.integers(0, 2)) for _ in range(size)]
            groups = {f"g{g}": tuple(x for x in range(size) if of[x] == g) for g in dict.fromkeys(of)}
            recodes.append(Recode(name=f"r{i}{j}", attribute=f"a{i}", groups=groups))
    cells = Cells(Schema(attributes=tuple(attributes), recodes=tuple(recodes)))
    weight = st.floats(0.1, 4)
    weights = {"detailed": draw(weight)}
    for _ in range(draw(st.integers(0, 4))):
        weights[draw(names(cells))] = draw(weight)
    return cells, weights


@st.composite
def names(draw: st.DrawFn, cells: Cells) -> str:
    parts = []
    for name in cells.names:
        choices = ["", name, *(r.name for r in cells.schema.recodes if r.attribute == name)]
        parts.append(draw(st.sampled_from(choices)))
    return cells.canonical(" * ".join(p for p in parts if p) or "total")


def algebra_of(cells: Cells, weights: dict[str, float], extra: tuple[int, ...] = ()) -> Algebra:
    return Algebra.of(cells, [cells.query(name) for name in weights], also_core=extra)


def plain_of(algebra: Algebra, query: Query) -> list[tuple[Coarsening, int]]:
    return [(query.coarsenings[a], algebra.cells.shape[a]) for a in algebra.plain]


def matrix(cells: Cells, name: str) -> np.ndarray:
    query = cells.query(name)
    out = np.zeros((query.size, cells.count))
    out[query.groups, np.arange(cells.count)] = 1
    return out


def gram(cells: Cells, weights: dict[str, float]) -> np.ndarray:
    parts = [w * matrix(cells, n).T @ matrix(cells, n) for n, w in weights.items()]
    return np.asarray(np.sum(parts, axis=0))


def close(actual: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-9)


extras = st.sampled_from([(), (0,)])


@reproducibly(100)
@given(workloads(), extras)
def test_gram_matrices(case: tuple[Cells, dict[str, float]], extra: tuple[int, ...]) -> None:
    cells, weights = case
    algebra = algebra_of(cells, weights, extra)
    assert sorted((*algebra.core, *algebra.plain)) == list(range(len(cells.shape)))
    coefficients = algebra.gram(weights)
    assert coefficients.shape == (2 ** len(algebra.plain), algebra.width, algebra.width)
    close(algebra.dense(coefficients), gram(cells, weights))


@reproducibly(60)
@given(workloads(), extras, st.integers(0, 2**32 - 1))
def test_blocks_and_coefficients_are_inverse(
    case: tuple[Cells, dict[str, float]], extra: tuple[int, ...], seed: int
) -> None:
    cells, weights = case
    algebra = algebra_of(cells, weights, extra)
    shape = (2, len(algebra.subsets), algebra.width, algebra.width)
    values = np.random.default_rng(seed).standard_normal(shape)
    close(algebra.blocks(algebra.coefficients(values)), values)
    close(algebra.coefficients(algebra.blocks(values)), values)
    close(algebra.blocks(values)[1], algebra.blocks(values[1]))


@reproducibly(60)
@given(workloads(), extras, st.integers(0, 2**32 - 1))
def test_blocks_multiply_and_add_like_matrices(
    case: tuple[Cells, dict[str, float]], extra: tuple[int, ...], seed: int
) -> None:
    cells, weights = case
    algebra = algebra_of(cells, weights, extra)
    rng = np.random.default_rng(seed)
    shape = (len(algebra.subsets), algebra.width, algebra.width)
    one, two = rng.standard_normal(shape), rng.standard_normal(shape)
    a, b = algebra.dense(one), algebra.dense(two)
    close(algebra.dense(algebra.coefficients(algebra.blocks(one) @ algebra.blocks(two))), a @ b)
    close(algebra.dense(algebra.coefficients(algebra.blocks(one) + algebra.blocks(two))), a + b)
    close(algebra.dense(algebra.coefficients(algebra.identity())), np.eye(cells.count))


@reproducibly(60)
@given(workloads(), extras)
def test_inverses_are_taken_blockwise(case: tuple[Cells, dict[str, float]], extra: tuple[int, ...]) -> None:
    cells, weights = case
    algebra = algebra_of(cells, weights, extra)
    inverses = np.linalg.inv(algebra.blocks(algebra.gram(weights)))
    close(algebra.dense(algebra.coefficients(inverses)), np.linalg.inv(gram(cells, weights)))


@reproducibly(60)
@given(workloads(), extras)
def test_eigenvalues_are_those_of_the_blocks_that_are_not_empty(
    case: tuple[Cells, dict[str, float]], extra: tuple[int, ...]
) -> None:
    cells, weights = case
    algebra = algebra_of(cells, weights, extra)
    blocks = algebra.blocks(algebra.gram(weights))
    found: list[float] = []
    for subset, block in zip(algebra.subsets, blocks, strict=True):
        times = int(np.prod([algebra.sizes[i] - 1 for i in subset], dtype=int))
        found += sorted(np.linalg.eigvalsh(block).tolist()) * times
    close(np.sort(found), np.linalg.eigvalsh(gram(cells, weights)))


@reproducibly(60)
@given(workloads(), extras, st.integers(0, 2**32 - 1))
def test_maps_are_applied_to_tables(
    case: tuple[Cells, dict[str, float]], extra: tuple[int, ...], seed: int
) -> None:
    cells, weights = case
    algebra = algebra_of(cells, weights, extra)
    rng = np.random.default_rng(seed)
    # not symmetric, so that a transposed map would show
    coefficients = rng.standard_normal((len(algebra.subsets), algebra.width, algebra.width))
    table = rng.standard_normal((2, 3, cells.count))
    close(algebra.apply(coefficients, table), table @ algebra.dense(coefficients).T)
    close(algebra.apply(coefficients, table[0, 0]), algebra.dense(coefficients) @ table[0, 0])


@reproducibly(40)
@given(workloads(), extras, st.integers(0, 2**32 - 1))
def test_dense_on_a_support(case: tuple[Cells, dict[str, float]], extra: tuple[int, ...], seed: int) -> None:
    cells, weights = case
    algebra = algebra_of(cells, weights, extra)
    support = np.flatnonzero(np.random.default_rng(seed).random(cells.count) < 0.5)
    coefficients = algebra.gram(weights)
    close(algebra.dense(coefficients, support), gram(cells, weights)[np.ix_(support, support)])


@reproducibly(40)
@given(workloads(), extras)
def test_folding(case: tuple[Cells, dict[str, float]], extra: tuple[int, ...]) -> None:
    cells, weights = case
    algebra = algebra_of(cells, weights, extra)
    table = np.arange(6.0 * cells.count).reshape(2, 3, cells.count)
    folded = algebra.fold(table)
    assert folded.shape == (2, 3, algebra.width, *algebra.sizes)
    assert np.array_equal(algebra.unfold(folded, 2), table)
    # where a cell goes: core attributes in order, then plain ones
    for cell in range(cells.count):
        levels = np.unravel_index(cell, cells.shape)
        core = 0
        for axis in algebra.core:
            core = core * cells.shape[axis] + int(levels[axis])
        place = (core, *(levels[axis] for axis in algebra.plain))
        assert folded[(1, 2, *place)] == table[1, 2, cell]


def example() -> Cells:
    recode = Recode(name="big", attribute="b", groups={"no": (0,), "yes": (1, 2)})
    sizes = {"a": 2, "b": 3, "c": 4}
    attributes = tuple(Attribute(name=n, levels=tuple(range(s))) for n, s in sizes.items())
    return Cells(Schema(attributes=attributes, recodes=(recode,)))


@pytest.mark.parametrize(
    ("queries", "extra", "core", "plain"),
    [
        (["total", "detailed", "a * c"], (), (), (0, 1, 2)),
        (["big * c"], (), (1,), (0, 2)),
        (["big"], (2,), (1, 2), (0,)),
        ([], (0, 1, 2), (0, 1, 2), ()),
    ],
)
def test_recoded_attributes_and_those_asked_for_are_core(
    queries: list[str], extra: tuple[int, ...], core: tuple[int, ...], plain: tuple[int, ...]
) -> None:
    cells = example()
    algebra = Algebra.of(cells, [cells.query(q) for q in queries], also_core=extra)
    assert (algebra.core, algebra.plain) == (core, plain)
    assert algebra.width == int(np.prod([cells.shape[a] for a in core], dtype=int))
    assert algebra.sizes == tuple(cells.shape[a] for a in plain)
    assert len(algebra.subsets) == 2 ** len(plain)
    assert [sum(1 << i for i in subset) for subset in algebra.subsets] == list(range(2 ** len(plain)))


def test_blocks_by_hand() -> None:
    """Two plain attributes: the total acts on means only, a marginal on what varies along it as well."""
    cells = Cells(Schema.of(a=range(2), b=range(3)))
    algebra = Algebra.of(cells, [cells.query("total")])
    blocks = algebra.blocks(algebra.gram({"total": 1.0, "a": 10.0, "detailed": 100.0}))
    assert blocks.reshape(-1).tolist() == [6 + 30 + 100, 30 + 100, 100, 100]
    assert algebra.subset_of(cells.query("a")) == 1
    assert algebra.subset_of(cells.query("b")) == 2
    assert algebra.subset_of(cells.query("detailed")) == 3


def test_core_groups_by_hand() -> None:
    cells = example()
    algebra = Algebra.of(cells, [cells.query("big")], also_core=(0,))
    query = cells.query("big * c")
    assert algebra.core_groups(query).tolist() == [0, 1, 1, 0, 1, 1]
    same = np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]], dtype=float)
    assert np.array_equal(algebra.same_core_group(query), np.kron(np.ones((2, 2)), same))
