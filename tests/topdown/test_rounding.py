"""Rounding to integers: optimal against enumeration, every constraint kept, refused when impossible."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import InputError, Refusal
from stirred.topdown import rounding
from stirred.topdown.flow import Level, solve_flow
from stirred.topdown.integer import Row, Solution, solve_integer
from stirred.topdown.penalty import Penalty, cut
from stirred.topdown.rounding import Layer, round_children

LARGEST_FREE_CELL = 4  # the enumeration of a root stops here; the instances keep their bounds below it


def compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """All ways to write ``total`` as a sum of ``parts`` non-negative integers."""
    if parts == 1:
        return [(total,)]
    return [(n, *rest) for n in range(total + 1) for rest in compositions(total - n, parts - 1)]


def sums(table: np.ndarray, layer: Layer) -> np.ndarray:
    return np.stack([table[:, layer.groups == g].sum(axis=1) for g in range(layer.size)], axis=1)


def objective(table, x, layers, cell_weight=1) -> float:
    spread = cell_weight * np.abs(table - x).sum()
    return spread + sum(layer.weight * np.abs(sums(table, layer) - sums(x, layer)).sum() for layer in layers)


def keeps(table, parent, layers, rows) -> bool:
    if (table < 0).any() or (parent is not None and (table.sum(axis=0) != parent).any()):
        return False
    for layer in layers:
        found = sums(table, layer)
        if layer.lower is not None and (found < layer.lower).any():
            return False
        if layer.upper is not None and (found > layer.upper).any():
            return False
    for row in rows:
        found = table[:, row.cells].sum(axis=1)
        if (found < row.lower).any() or (found > row.upper).any():
            return False
    return True


def brute_force(x, parent, layers, rows=(), cell_weight=1) -> float | None:
    """Least objective over every integer table that keeps the constraints; None if there is none."""
    children, width = x.shape
    if parent is None:
        columns = [list(itertools.product(range(LARGEST_FREE_CELL + 1), repeat=children))] * width
    else:
        columns = [compositions(int(n), children) for n in parent]
    best = None
    for choice in itertools.product(*columns):
        table = np.array(choice).T
        if keeps(table, parent, layers, rows):
            value = objective(table, x, layers, cell_weight)
            best = value if best is None else min(best, value)
    return best


def agrees(x, parent, layers, rows=(), cell_weight=1) -> str:
    """Assert that rounding and enumeration agree, and say how it was done."""
    best = brute_force(x, parent, layers, rows, cell_weight)
    if best is None:
        with pytest.raises(Refusal):
            round_children(x, parent, layers, rows, cell_weight)
        return "refused"
    found = round_children(x, parent, layers, rows, cell_weight)
    assert found.counts.dtype == np.int64
    assert keeps(found.counts, parent, layers, rows)
    assert found.gap == 0.0
    assert found.objective == pytest.approx(objective(found.counts, x, layers, cell_weight), abs=1e-9)
    assert found.objective == pytest.approx(best, abs=1e-4)
    return found.method


def bounded(rng, truth: np.ndarray, groups: np.ndarray, size: int) -> dict[str, np.ndarray | None]:
    """Bounds around the truth, sometimes equal to it, sometimes off by so much that nothing fits."""
    middle = sums(truth, Layer(groups, size))
    kind = rng.integers(0, 5)
    if kind == 0:
        return {"lower": None, "upper": None}
    if kind == 1:
        return {"lower": middle, "upper": middle}
    if kind == 2:
        return {"lower": middle - rng.integers(0, 2, middle.shape), "upper": None}
    if kind == 3:
        return {"lower": None, "upper": middle + rng.integers(0, 2, middle.shape)}
    shifted = np.maximum(middle + rng.integers(-1, 2, middle.shape), 0)
    return {"lower": shifted, "upper": shifted + rng.integers(0, 2, middle.shape)}


def instance(seed: int, *, nested: bool, root: bool = False, with_rows: bool = False):
    """A small problem: estimate, parent, layers, rows, cell weight."""
    rng = np.random.default_rng(seed)
    most, widest = (2, 3) if root else (3, 4)
    children, width = int(rng.integers(1, most + 1)), int(rng.integers(1, widest + 1))
    if not nested:
        children, width = 2, 4  # two by two, so that there is something to cross
    truth = rng.integers(0, 3, (children, width))
    x = truth + rng.choice([0.0, 0.25, -0.4, 0.5, 1.7, -1e-5, 0.9], (children, width))
    if rng.random() < 0.5:
        x = np.maximum(x, 0.0)
    parent = None if root else truth.sum(axis=0)
    layers = []
    groups = np.zeros(width, dtype=np.int64)
    for _ in range(int(rng.integers(0, 4)) if nested else 3):  # the total and two that may cross
        size = int(groups.max()) + 1 + int(rng.integers(0, 2))  # a last group may be empty
        layers.append(
            Layer(groups, size, weight=int(rng.integers(0, 4)), **bounded(rng, truth, groups, size))
        )
        finer = groups * 2 + rng.integers(0, 2, width) if nested else rng.permutation([0, 0, 1, 1])
        groups = np.unique(finer, return_inverse=True)[1].astype(np.int64)
    if root:  # the enumeration of a root is finite only under an upper bound
        total = truth.sum(axis=1, keepdims=True)
        layers.append(Layer(np.zeros(width, dtype=np.int64), 1, upper=np.minimum(total, LARGEST_FREE_CELL)))
    rows = []
    if with_rows:
        chosen = rng.random(width) < 0.5
        inside = truth[:, chosen].sum(axis=1)
        rows.append(Row(chosen, np.maximum(inside - rng.integers(0, 2), 0), inside))
    rng.shuffle(layers)
    return x, parent, layers, rows, int(rng.integers(0, 3))


@pytest.mark.parametrize("block", [0, 1, *(pytest.param(b, marks=pytest.mark.slow) for b in range(2, 6))])
def test_a_nested_chain_is_optimal_among_all_integer_tables(block):
    methods = [agrees(*instance(1000 * block + seed, nested=True)) for seed in range(40)]
    assert set(methods) <= {"flow", "refused"}
    assert methods.count("flow") >= 20


def test_a_root_without_a_parent_is_optimal():
    methods = [agrees(*instance(20_000 + seed, nested=True, root=True)) for seed in range(30)]
    assert set(methods) <= {"flow", "refused"}
    assert methods.count("flow") >= 15


def test_crossing_layers_are_optimal():
    methods = [agrees(*instance(30_000 + seed, nested=False)) for seed in range(120)]
    assert methods.count("integer") >= 10


def test_rows_are_kept_and_optimal():
    methods = [agrees(*instance(40_000 + seed, nested=True, with_rows=True)) for seed in range(60)]
    assert methods.count("integer") >= 5
    assert methods.count("flow") >= 10
    methods = [agrees(*instance(50_000 + seed, nested=False, with_rows=True)) for seed in range(50)]
    assert methods.count("integer") >= 5


def test_refusal_is_reached_and_only_where_enumeration_finds_nothing():
    methods = [agrees(*instance(60_000 + seed, nested=True)) for seed in range(60)]
    assert methods.count("refused") >= 3


@st.composite
def estimates(draw):
    children, width = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    entry = st.floats(-0.5, 3.5, allow_nan=False)
    x = np.array(draw(st.lists(entry, min_size=children * width, max_size=children * width)))
    parent = np.array(draw(st.lists(st.integers(0, 4), min_size=width, max_size=width)))
    return x.reshape(children, width), parent, draw(st.integers(0, 5)), draw(st.integers(1, 5))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(estimates())
def test_any_estimate_even_far_from_the_parent_is_rounded_optimally(case):
    x, parent, layer_weight, cell_weight = case
    total = Layer(np.zeros(x.shape[1], dtype=np.int64), 1, weight=layer_weight)
    assert agrees(x, parent, [total], (), cell_weight) == "flow"


def medium(seed: int, children: int = 12, width: int = 24, *, exact: bool = True):
    """A chain of four layers with exact totals, bounds on the second layer, and a noisy estimate."""
    rng = np.random.default_rng(seed)
    truth = rng.poisson(rng.gamma(0.4, 5.0, (children, width)))
    x = np.maximum(truth + rng.normal(0, 1.5, truth.shape), 0)
    layers = []
    for i, size in enumerate((1, 3, 6, 12)):
        groups = np.arange(width) * size // width
        middle = sums(truth, Layer(groups, size))
        slack = 0 if i == 0 and exact else 2
        bounds = {"lower": np.maximum(middle - slack, 0), "upper": middle + slack} if i < 2 else {}
        layers.append(Layer(groups, size, weight=i + 1, **bounds))
    return x, truth.sum(axis=0), layers


def problem(x, parent, layers):
    upper = np.broadcast_to(parent, x.shape)
    cells = Penalty(x, np.zeros(x.shape, dtype=np.int64), upper, 1)
    levels = []
    for layer in layers:
        shape = (x.shape[0], layer.size)
        lower = np.zeros(shape, dtype=np.int64) if layer.lower is None else layer.lower
        upper = np.full(shape, 2**40) if layer.upper is None else layer.upper
        levels.append(Level(layer.groups, Penalty(sums(x, layer), lower, upper, layer.weight)))
    return cells, levels


@pytest.mark.parametrize("seed", range(6))
def test_flow_and_integer_programme_agree_on_nested_layers(seed):
    x, parent, layers = medium(seed)
    cells, levels = problem(x, parent, layers)
    flow = solve_flow(cells, levels, parent)
    programme = solve_integer(cells, levels, parent)
    assert flow is not None and isinstance(programme, Solution) and programme.proved
    for counts in (flow, programme.counts):
        assert keeps(counts, parent, layers, ())
    assert objective(flow, x, layers) == pytest.approx(objective(programme.counts, x, layers), abs=1e-3)
    assert programme.bound == pytest.approx(objective(flow, x, layers), abs=1e-3)


def test_rounding_each_cell_up_or_down_would_not_be_enough():
    """The total is fixed four above the estimate: no table of floors and ceilings adds up to it."""
    x = np.array([[0.5, 0.5], [5.5, 5.5]])
    total = Layer(np.array([0, 0]), 1, lower=np.array([[5], [7]]), upper=np.array([[5], [7]]))
    parent = np.array([6, 6])
    assert agrees(x, parent, [total]) == "flow"
    assert np.abs(round_children(x, parent, [total]).counts - x).max() > 1


def test_the_order_of_the_layers_does_not_matter():
    x, parent, layers = medium(3)
    values = {
        round(round_children(x, parent, list(order)).objective, 6) for order in itertools.permutations(layers)
    }
    assert len(values) == 1


def test_the_same_input_gives_the_same_table():
    x, parent, layers = medium(4)
    x[:] = np.round(x * 2) / 2  # many ties
    crossing = [*layers, Layer(np.arange(24) % 2, 2)]
    for chosen in (layers, crossing):
        first, second = (round_children(x.copy(), parent, chosen) for _ in range(2))
        assert np.array_equal(first.counts, second.counts)
        assert first == first and first.objective == second.objective and first.gap == second.gap


def test_an_integral_estimate_that_keeps_the_constraints_is_returned_unchanged():
    rng = np.random.default_rng(5)
    truth = rng.poisson(3.0, (9, 20))
    groups = np.arange(20) // 5
    total = truth.sum(axis=1, keepdims=True)
    layers = [Layer(np.zeros(20, dtype=np.int64), 1, lower=total, upper=total), Layer(groups, 4)]
    row = Row(np.arange(20) % 3 == 0, np.zeros(9, dtype=np.int64), np.full(9, 2**41))
    for parent in (truth.sum(axis=0), None):
        found = round_children(truth.astype(float), parent, layers, [row])
        assert np.array_equal(found.counts, truth)
        assert found.objective == 0.0 and found.method == "flow"


@pytest.mark.parametrize("noise", [1e-5, 1e-4])
def test_solver_noise_is_rounded_away(noise):
    rng = np.random.default_rng(6)
    truth = rng.poisson(rng.gamma(0.3, 8.0, (30, 60)))
    x = truth + rng.uniform(-noise, noise, truth.shape)
    layers = [Layer(np.arange(60) * size // 60, size) for size in (1, 5, 20)]
    assert (x < 0).any()
    assert np.array_equal(round_children(x, truth.sum(axis=0), layers).counts, truth)


def test_an_integral_estimate_that_misses_the_parent_is_moved_no_more_than_needed():
    x = np.array([[3.0, 1.0], [2.0, 4.0]])
    parent = np.array([6, 4])
    found = round_children(x, parent, [])
    assert keeps(found.counts, parent, [], ())
    assert found.objective == 2.0


def test_large_counts_do_not_overflow():
    rng = np.random.default_rng(7)
    truth = rng.integers(0, 10**7, (6, 8)) + 10**7
    x = truth + rng.choice([0.25, 0.5, -0.25, -0.5, 0.0], truth.shape)
    total = truth.sum(axis=1, keepdims=True)
    layers = [
        Layer(np.zeros(8, dtype=np.int64), 1, lower=total, upper=total, weight=10),
        Layer(np.arange(8) // 2, 4),
    ]
    parent = truth.sum(axis=0)
    found = round_children(x, parent, layers)
    assert keeps(found.counts, parent, layers, ())
    small = round_children(
        x - 10**7,
        parent - 6 * 10**7,
        [
            Layer(layers[0].groups, 1, lower=total - 8 * 10**7, upper=total - 8 * 10**7, weight=10),
            layers[1],
        ],
    )
    assert found.objective == pytest.approx(small.objective, abs=1e-5)
    row = Row(np.arange(8) < 3, truth[:, :3].sum(axis=1), truth[:, :3].sum(axis=1))
    held = round_children(x, parent, layers, [row])
    assert keeps(held.counts, parent, layers, [row])
    assert held.gap == 0.0 and held.objective >= found.objective - 1e-6


def test_an_estimate_millions_away_from_the_parent_is_still_solved_exactly():
    x = np.array([[1e7, 0.0], [0.0, 0.0]])
    parent = np.array([0, 10**7])
    found = round_children(x, parent, [Layer(np.array([0, 0]), 1, weight=3)])
    assert found.counts.tolist() == [[0, 10**7], [0, 0]]
    assert found.objective == 2e7


@pytest.mark.parametrize("weight", [10**3, 10**6])
def test_heavy_weights_rule_and_do_not_overflow(weight):
    x = np.full((4, 6), 0.3)
    parent = np.array([2, 1, 1, 1, 1, 1])
    total = Layer(np.zeros(6, dtype=np.int64), 1, weight=weight)
    found = round_children(x, parent, [total])
    assert keeps(found.counts, parent, [total], ())
    assert sorted(found.counts.sum(axis=1).tolist()) == [1, 2, 2, 2]  # targets 1.8: the least possible
    assert found.objective == pytest.approx(weight * 1.4 + np.abs(found.counts - x).sum())


def test_weights_decide_between_the_cells_and_their_sum():
    """0.4 + 0.4 + 0.4: the cells want three zeros, the sum of 1.2 wants a one."""
    x = np.array([[0.4, 0.4, 0.4]])
    groups = np.zeros(3, dtype=np.int64)
    assert round_children(x, None, [Layer(groups, 1, weight=1)]).counts.sum() == 1
    assert round_children(x, None, [Layer(groups, 1, weight=1)], cell_weight=10).counts.sum() == 0
    assert round_children(x, None, [Layer(groups, 1, weight=0)]).counts.sum() == 0


def test_zero_cells_of_the_parent_stay_zero():
    x = np.array([[0.4, 1.2], [0.7, 0.8]])
    found = round_children(x, np.array([0, 2]), [Layer(np.array([0, 0]), 1)])
    assert found.counts[:, 0].tolist() == [0, 0]
    assert found.counts[:, 1].sum() == 2


def test_narrow_integers_are_as_good_as_wide_ones():
    x, parent, layers = medium(9)
    narrow = [
        Layer(
            layer.groups.astype(np.int16),
            layer.size,
            None if layer.lower is None else layer.lower.astype(np.uint32),
            None if layer.upper is None else layer.upper.astype(np.int32),
            layer.weight,
        )
        for layer in layers
    ]
    row = Row(np.arange(24) < 5, np.zeros(12, dtype=np.int8), np.full(12, 120, dtype=np.int8))
    found = round_children(x, parent.astype(np.uint16), narrow, [row])
    assert found.counts.dtype == np.int64
    assert np.array_equal(found.counts, round_children(x, parent, layers).counts)


def test_one_child_is_the_parent():
    parent = np.array([3, 0, 7])
    x = np.array([[2.2, 0.1, 7.4]])
    assert round_children(x, parent, [Layer(np.zeros(3, dtype=np.int64), 1)]).counts.tolist() == [[3, 0, 7]]


def test_bounds_only_layers_that_cross_do_not_need_the_integer_programme_unless_they_bind():
    x = np.array([[1.2, 0.9, 2.1, 0.8], [0.8, 1.1, 0.9, 2.2]])
    parent = np.array([2, 2, 3, 3])
    rows, columns = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    loose = [Layer(rows, 2), Layer(columns, 2, upper=np.full((2, 2), 9), weight=0)]
    assert agrees(x, parent, loose) == "flow"
    tight = [Layer(rows, 2), Layer(columns, 2, upper=np.array([[2, 9], [9, 9]]), weight=0)]
    assert agrees(x, parent, tight) == "integer"


def test_a_row_that_holds_anyway_keeps_the_flow_and_one_that_binds_is_kept():
    x = np.array([[1.9, 0.2], [1.1, 0.8]])
    parent = np.array([3, 1])
    total = Layer(np.array([0, 0]), 1)
    either = np.array([True, False])
    loose = Row(either, np.array([0, 0]), np.array([3, 2**41]))
    binding = Row(either, np.array([0, 0]), np.array([1, 2**41]))
    assert agrees(x, parent, [total], [loose]) == "flow"
    assert agrees(x, parent, [total], [binding]) == "integer"
    assert round_children(x, parent, [total], [binding]).counts[0, 0] <= 1


def test_a_search_that_is_cut_short_says_so(monkeypatch):
    """With no node allowed the table still keeps everything, and the gap encloses the true minimum."""
    rng = np.random.default_rng(8)
    truth = rng.poisson(2.0, (10, 27))
    x = np.maximum(truth + rng.normal(0, 1, truth.shape), 0)
    parent = truth.sum(axis=0)
    digits = [np.arange(27) // 9, np.arange(27) // 3 % 3, np.arange(27) % 3]
    layers = [Layer(digits[a] * 3 + digits[b], 9) for a, b in ((0, 1), (1, 2), (0, 2))]

    def stop_early(cells, levels, parent, bands):
        return solve_integer(cells, levels, parent, bands, nodes=0)

    monkeypatch.setattr(rounding, "solve_integer", stop_early)
    early = round_children(x, parent, layers)
    assert keeps(early.counts, parent, layers, ())
    assert early.method == "integer"
    assert 0.0 < early.gap < 1.0


def test_no_cells_or_no_children():
    none = round_children(
        np.zeros((3, 0)), np.zeros(0, dtype=np.int64), [Layer(np.zeros(0, dtype=np.int64), 2)]
    )
    assert none.counts.shape == (3, 0) and none.objective == 0.0
    with pytest.raises(Refusal):
        round_children(np.zeros((0, 2)), np.array([1, 0]), [])
    one = np.ones((3, 1), dtype=np.int64)
    with pytest.raises(Refusal):
        round_children(np.zeros((3, 0)), None, [Layer(np.zeros(0, dtype=np.int64), 1, lower=one)])


def refused(*arguments) -> Refusal:
    with pytest.raises(Refusal) as caught:
        round_children(*arguments)
    assert caught.value.expected and caught.value.hint
    return caught.value


def test_impossible_bounds_are_refused_by_name_and_without_values():
    x = np.full((2, 2), 41.5)
    parent = np.array([83, 83])
    groups = np.array([0, 0])
    good = Layer(groups, 1)
    high = np.array([[97], [97]])
    assert refused(x, parent, [good, Layer(groups, 1, lower=high)]).field == "layers[1]"
    assert refused(x, parent, [Layer(groups, 1, upper=high - 40)]).field == "layers[0]"
    assert refused(x, parent, [Layer(groups, 1, lower=high, upper=high - 5)]).field == "layers[0]"
    assert refused(x, parent, [Layer(groups, 2, lower=np.array([[0, 1], [0, 0]]))]).field == "layers[0]"
    cells = np.array([True, False])
    short = Row(cells, np.array([0, 0]), np.array([11, 12]))
    assert refused(x, parent, [good], [short]).field == "rows[0]"
    both = [Layer(groups, 1, lower=high - 20), Layer(groups, 1, upper=high - 21 + np.array([[0], [40]]))]
    error = refused(x, parent, both)  # each possible by itself
    assert error.field == "layers"
    assert not any(character.isdigit() for character in str(error))


def test_crossing_bounds_that_contradict_each_other_are_refused():
    """Row and column sums of a child that add up to different totals."""
    one, two = np.array([[1, 1], [1, 1]]), np.array([[1, 0], [1, 2]])
    layers = [
        Layer(np.array([0, 0, 1, 1]), 2, lower=one, upper=one),
        Layer(np.array([0, 1, 0, 1]), 2, lower=two, upper=two),
    ]
    assert refused(np.full((2, 4), 0.5), np.ones(4, dtype=np.int64), layers).code == "refused"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("x", {"x": np.array([[np.nan, 1.0]])}),
        ("x", {"x": np.array([1.0, 1.0])}),
        ("parent", {"parent": np.array([1.5, 1.0])}),
        ("parent", {"parent": np.array([-1, 3])}),
        ("parent", {"parent": np.array([1, 1, 1])}),
        ("layers[0].groups", {"layers": [Layer(np.array([0, 1]), 1)]}),
        ("layers[0].groups", {"layers": [Layer(np.array([0]), 1)]}),
        ("layers[0].lower", {"layers": [Layer(np.array([0, 0]), 1, lower=np.array([0]))]}),
        ("layers[0].upper", {"layers": [Layer(np.array([0, 0]), 1, upper=np.array([[0.5]]))]}),
        ("layers[0].weight", {"layers": [Layer(np.array([0, 0]), 1, weight=-1)]}),
        ("cell_weight", {"cell_weight": -1}),
        ("rows[0].cells", {"rows": [Row(np.array([0, 1]), np.array([0]), np.array([1]))]}),
        ("rows[0]", {"rows": [Row(np.array([True, False]), np.array([0, 0]), np.array([1]))]}),
    ],
)
def test_a_problem_that_is_not_well_formed_is_an_input_error(field, change):
    right = {"x": np.array([[1.0, 1.0]]), "parent": np.array([1, 1]), "layers": [Layer(np.array([0, 0]), 1)]}
    assert round_children(**right).counts.tolist() == [[1, 1]]
    with pytest.raises(InputError) as caught:
        round_children(**{**right, **change})
    assert caught.value.field == field


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.floats(-3, 9), st.integers(0, 4), st.integers(0, 4), st.integers(0, 3), st.integers(0, 8))
def test_pieces_add_up_to_the_distance(target, low, room, weight, place):
    penalty = Penalty(np.array([target]), np.array([low]), np.array([low + room]), weight)
    pieces = cut(penalty, 1e-12)
    goal = low + place % (room + 1)
    direction = 1 if goal > penalty.base[0] else -1
    units, cost = abs(goal - int(penalty.base[0])), penalty.distance(penalty.base)
    ways = sorted(
        (price, int(size))
        for sign, size, price in zip(pieces.sign, pieces.capacity, pieces.cost, strict=True)
        if sign == direction
    )
    for price, size in ways:
        taken = min(units, size)
        cost, units = cost + taken * price, units - taken
    assert units == 0
    assert (pieces.cost >= 0).all() and pieces.owner.size <= 3
    room_up, room_down = (pieces.capacity[pieces.sign == sign].sum() for sign in (1, -1))
    assert (room_up, room_down) == (low + room - penalty.base[0], penalty.base[0] - low)
    assert cost == pytest.approx(penalty.distance(np.array([goal])), abs=1e-9)
