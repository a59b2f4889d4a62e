"""Threats 1 to 6: noise, precision, sensitivity, time and randomness.

Numbers are those of the page on threats in the documentation.
"""

from __future__ import annotations

import ast
import copy
import itertools
import math
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from support.releasing import run_release
from support.small_release import opened_ledger, village
from support.threats import BASE, LEVELS, TWIN, Counted, X, county, persons

import stirred
from stirred.audit import Verdict, exact_audit
from stirred.data import Histogram, Spine, count_cells, levels_of
from stirred.errors import Refusal, StirredError
from stirred.ledger import Ledger
from stirred.noise import (
    RandomSource,
    TestSource,
    discrete_gaussian,
    discrete_laplace,
    gaussian_cdf,
    gaussian_mass,
    laplace_cdf,
    laplace_mass,
)
from stirred.spec import (
    Budget,
    Domain,
    Hamming,
    Multiplicative,
    NormalisedRenyi,
    Schema,
    Specification,
    Sum,
    Trivial,
    evaluate,
)
from stirred.swap import PermutationSwap
from stirred.topdown import Allocation, Cells, Design
from stirred.topdown.measurement import measure

ALPHA = 1e-6


SOURCE = Path(stirred.__file__).parent


BITS = Domain.finite(((0,), (1,)), structure="vector")


def claim(budget: Budget, premetric: object = None, domain: Domain = BITS) -> Specification:
    return Specification(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=Hamming(unit="person"),
        output_premetric=premetric or Multiplicative(),
        budget=budget,
        standing="proved",
    )


def audited(laws: Callable[[Any], Mapping[Any, Fraction]], what: Specification) -> Any:
    return exact_audit(SimpleNamespace(outcomes=laws), what.domain.enumerate(), what)


def float_randomness(tree: ast.AST) -> set[str]:
    """Ways to draw randomness that is not ours: modules that are imported, attributes that are used."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if re.match(r"random$|numpy\.random", alias.name)}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in names if re.match(r"random\.|numpy\.random", name)}
        elif isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if (node.attr == "random" and owner in {"np", "numpy"}) or node.attr in {"default_rng", "rvs"}:
                found.add(f"{owner}.{node.attr}")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_frames = {"fraction", "seed", "shuffle", "with_replacement", "random_state"}
            if node.func.attr in {"sample", "shuffle"} and of_frames & {word.arg for word in node.keywords}:
                found.add(node.func.attr)
    return found


def test_threat_01_no_module_draws_from_another_generator() -> None:
    paths = [p for p in SOURCE.rglob("*.py") if "museum" not in p.parts]  # the museum shows broken ones
    assert len(paths) > 100
    assert {p.name: found for p in paths if (found := float_randomness(ast.parse(p.read_text())))} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import random",
        "from random import gauss",
        "import numpy.random",
        "from numpy.random import default_rng",
        "from numpy import random",
        "z = np.random.laplace(0, 1)",
        "g = numpy.random.Generator(bits)",
        "z = stats.norm.rvs(size=3)",
        "frame = frame.sample(3, seed=1)",
    ],
)
def test_threat_01_the_search_finds_them(line: str) -> None:
    assert float_randomness(ast.parse(line))


def test_threat_01_everything_that_is_measured_or_counted_is_an_integer() -> None:
    mechanism = county()
    made = mechanism.release(X, TestSource(1))
    for part in made.products["measurements"].values():
        for level in range(2):
            for chunk in part.level(level):
                assert all(np.issubdtype(v.dtype, np.integer) for v in chunk.values.values())
    assert all(h.counts.dtype == np.int64 for h in made.products["person"].levels)
    assert made.products["person"].table("block", "sex")["count"].dtype == pl.Int64
    homes = pl.DataFrame({"h": ["a", "b"] * 4, "s": [1, 2, 3, 4] * 2})
    swapped = PermutationSwap(match=(), swap=("s",), rate="1/2").release(homes, TestSource(1))
    assert swapped.products["table"]["count"].dtype == pl.Int64
    for draw in (discrete_gaussian, discrete_laplace):
        assert draw(TestSource(1), Fraction(9, 4), 10).dtype == np.int64


def float_laplace(point: tuple[int]) -> dict[float, Fraction]:
    """The textbook sampler in floating point, from a uniform number of ten bits and a sign, enumerated."""
    out: dict[float, Fraction] = {}
    for u, sign in itertools.product(range(1, 1 << 10), (-1, 1)):
        value = point[0] - sign / math.log(2) * math.log(u / (1 << 10))
        out[value] = out.get(value, Fraction(0)) + Fraction(1, 2 * ((1 << 10) - 1))
    return out


def two_sided_geometric(point: tuple[int], reach: int = 12) -> dict[int, Fraction]:
    """P(k) = (1/3) 2^-|k - x|, values beyond the reach put to its ends: the discrete Laplace, rational."""
    out = {x: Fraction(1, 3 * 2 ** abs(x - point[0])) for x in range(-reach, reach + 1)}
    out[-reach] += Fraction(1, 3 * 2 ** (reach + point[0]))
    out[reach] += Fraction(1, 3 * 2 ** (reach - point[0]))
    return out


def test_threat_01_float_laplace_noise_is_caught_and_integer_noise_is_not() -> None:
    """Both claim epsilon = ln 2. Sums of floats for 0 and for 1 are hardly ever the same number."""
    found = audited(float_laplace, claim(Budget.epsilon("ln(2)")))
    assert found.violated and found.measured.is_infinite
    held = audited(two_sided_geometric, claim(Budget.epsilon("ln(2)")))
    assert held.verdict is Verdict.NOT_REFUTED and held.details["attained"]


def lowest_bit(value: float | int) -> int:
    """The exponent of the largest power of two that divides a number; zero has none and gives 99."""
    if value == 0:
        return 99
    top, bottom = value.as_integer_ratio()
    return (top & -top).bit_length() - bottom.bit_length()


def same_bits(first: Iterable[Any], second: Iterable[Any]) -> float:
    """The p-value of the hypothesis that the lowest bits of two samples have one law; rare ones pooled."""
    tables = [dict(zip(*np.unique([lowest_bit(v) for v in s], return_counts=True), strict=True))
              for s in (first, second)]  # fmt: skip
    keys = sorted(tables[0].keys() | tables[1].keys())
    grid = np.array([[t.get(k, 0) for k in keys] for t in tables])
    often = grid.sum(axis=0) >= 40
    pooled = np.column_stack([grid[:, often], grid[:, ~often].sum(axis=1)])
    return float(stats.chi2_contingency(pooled[:, pooled.sum(axis=0) > 0]).pvalue)


def measured_blocks(value: int, seed: int, count: int = 4000) -> list[int]:
    """Noisy totals of many blocks that all have the same true count, as TopDown measures them."""
    places = [f"{i:05}" for i in range(count)]
    wide = Spine.from_columns(pl.DataFrame({"county": ["1"] * count, "block": places}), LEVELS)
    cells = Cells(Schema.of(one=("x",)))
    shares = Allocation.of(cells, "1/5000", {"county": "1/2", "block": "1/2"}, {"total": 1})
    node = np.arange(count)
    leaves = Histogram.of_counts(node, np.zeros_like(node), np.full(count, value), count, 1)
    made = measure(Design(cells, wide, shares), levels_of(leaves, wide), TestSource(seed))
    return np.concatenate([next(iter(c.values.values())).reshape(-1) for c in made.level(1)]).tolist()


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2**24)])
def test_threat_02_lowest_bits_of_measurements_do_not_tell_the_truth(one: int, other: int) -> None:
    assert same_bits(measured_blocks(one, 1), measured_blocks(other, 2)) > ALPHA


@pytest.mark.parametrize(("one", "other"), [(0, 1), (1, 2**40)])
def test_threat_02_lowest_bits_of_sums_with_integer_noise(one: int, other: int) -> None:
    sums = [
        (value + discrete_laplace(TestSource(seed), Fraction(500), 20_000)).tolist()
        for seed, value in enumerate((one, other))
    ]
    assert same_bits(*sums) > ALPHA


@pytest.mark.parametrize(("one", "other"), [(0.0, 1.0), (1.0, 2.0**40)])
def test_threat_02_the_same_check_catches_addition_in_floating_point(one: float, other: float) -> None:
    generator = np.random.default_rng(1)
    sums = [(value + generator.laplace(0, 1, 5_000)).tolist() for value in (one, other)]
    assert same_bits(*sums) < ALPHA


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt8, pl.Int16, pl.Int64, pl.String])
def test_threat_03_counts_do_not_wrap_or_depend_on_order_whatever_the_type(kind: Any) -> None:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {"block": rng.integers(1, 3, 3000), "v": rng.integers(0, 3, 3000)}, schema={"block": kind, "v": kind}
    )
    place = Spine.from_columns(pl.DataFrame({"block": ["1", "2"]}), ("block",))
    schema = Schema.of(v=(0, 1, 2))
    counted = count_cells(frame, schema, place, "block")
    shuffled = count_cells(frame.sample(fraction=1, shuffle=True, seed=2), schema, place, "block")
    expected = frame.group_by("block", "v").len().sort("block", "v")["len"].to_list()
    assert counted.dense(0, 2).reshape(-1).tolist() == expected
    assert np.array_equal(counted.dense(0, 2), shuffled.dense(0, 2))
    assert int(levels_of(counted, place)[0].totals().sum()) == 3000


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.int32, np.uint8])
def test_threat_03_adding_up_small_integers_does_not_wrap(kind: Any) -> None:
    top = int(np.iinfo(kind).max)
    nodes, cells, counts = np.zeros(5, kind), np.zeros(5, kind), np.full(5, top, kind)
    assert Histogram.of_counts(nodes, cells, counts, 1, 1).counts.tolist() == [5 * top]


@pytest.mark.parametrize("kind", [pl.Int8, pl.UInt8, pl.Int16, pl.Int32, pl.UInt32])
def test_threat_03_sums_that_are_invariant_do_not_wrap(kind: Any) -> None:
    top = int(pl.select(pl.lit(0, dtype=kind).upper_bound()).item())
    frame = pl.DataFrame({"g": ["a"] * 9, "v": [top] * 9}, schema={"g": pl.String, "v": kind})
    for by in ((), ("g",)):
        table = evaluate(Sum(unit="person", attribute="v", by=by), frame)
        assert table["value"].to_list() == [9 * top]


@pytest.mark.parametrize("values", [[2**62] * 4, [2.0**53, 1.0, 1.0, -(2.0**53)]], ids=["overflow", "order"])
def test_threat_03_a_sum_that_cannot_be_exact_is_refused(values: list[Any]) -> None:
    frame = pl.DataFrame({"v": values})
    total = Sum(unit="person", attribute="v")
    try:
        found = [evaluate(total, f)["value"].to_list() for f in (frame, frame.reverse())]
    except StirredError:
        return
    assert found == [[sum(map(Fraction, values))]] * 2


def test_threat_03_a_measurement_at_the_edge_of_32_bits_is_cut_and_never_wraps() -> None:
    """Cutting is post-processing. A count that wrapped would jump from one end to the other."""
    edge = np.iinfo(np.int32).max
    for value in (edge - 5, edge, edge + 5, 2**40):
        noisy = np.array(measured_blocks(value, 3, 500))
        assert noisy.min() > edge - 2000 and noisy.max() <= edge


def test_threat_04_how_many_words_are_drawn_does_not_depend_on_the_data() -> None:
    """What takes time is drawn words. Their number is a function of the plan, the map and the noise."""
    mechanism = county()
    drawn = []
    for data in (X, TWIN, persons(*BASE * 40, ("d", "m", "adult"))):
        source = Counted(5)
        mechanism.draw(mechanism.prepare(data), source)
        drawn.append(sorted(source.drawn))
    assert drawn[0] == drawn[1] == drawn[2] and sum(drawn[0]) > 0


def test_threat_04_swapping_draws_the_same_words_within_a_universe() -> None:
    rows = {"m": [1, 2] * 20, "h": ["a", "b", "b", "a"] * 10, "s": list(range(5)) * 8}
    one = pl.DataFrame(rows)
    other = one.with_columns(s=pl.col("s").reverse().over("m"))
    assert not one.equals(other)
    drawn = []
    for data in (one, other):
        source = Counted(5)
        PermutationSwap(match=("m",), swap=("s",), rate="1/4").release(data, source)
        drawn.append(sorted(source.drawn))
    assert drawn[0] == drawn[1] and sum(drawn[0]) > 0


@pytest.mark.parametrize("make_source", ["RandomSource()", "RandomSource().child(3)", "TestSource(9)"])
def test_threat_05_two_forked_children_and_their_parent_differ(make_source: str) -> None:
    script = (
        "import os, sys; from stirred.noise import *\n"
        f"source = {make_source}; source.words(1)\n"
        "for _ in range(2):\n"
        "    number = os.fork()\n"
        "    if number == 0:\n"
        "        print(source.words(4).tolist(), source.spawn().words(1).tolist(), flush=True); os._exit(0)\n"
        "    os.waitpid(number, 0)\n"
        "print(source.words(4).tolist(), source.spawn().words(1).tolist(), flush=True)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == len(set(lines)) == 3


def test_threat_05_what_a_seed_made_is_not_publishable(tmp_path: Path) -> None:
    made = county().release(X, TestSource(1))
    assert not made.publishable
    with pytest.raises(Refusal, match="not for publication"):
        made.require_publishable()
    homes = pl.DataFrame({"h": ["a", "b"] * 4, "s": [1, 2, 3, 4] * 2})
    with pytest.raises(Refusal, match="test seed"):
        PermutationSwap(match=(), swap=("s",), rate="1/2").release(homes, TestSource(1)).require_publishable()
    path = village(tmp_path / "case")
    book = Ledger.open(opened_ledger(tmp_path / "ledger.db", path))
    trial = run_release(path, tmp_path / "out", book, random=TestSource(1))
    assert not trial.publishable and not (tmp_path / "out" / "public").exists()
    assert book.statement("village").spends == ()


def test_threat_05_one_source_in_two_mechanisms_gives_independent_noise() -> None:
    """The same seed object, used twice, is spawned: noises agree as often as independent ones do."""
    mechanism = county("1/100")
    prepared, source = mechanism.prepare(X), TestSource(11)
    runs = []
    for _ in range(40):
        made = mechanism.draw(prepared, source).measurements["person"]
        runs.append(np.concatenate([v.reshape(-1) for c in made.level(1) for v in c.values.values()]))
    table = np.array(runs, dtype=float)
    assert len({tuple(run) for run in runs}) == 40
    centred = (table - table.mean(axis=0)).reshape(2, -1)
    r = float(np.corrcoef(centred)[0, 1])
    assert abs(r) < stats.norm.isf(ALPHA / 2) / math.sqrt(centred.shape[1] * 19 / 20)
    design = mechanism.designs["person"]
    true = prepared.counts["person"]
    direct = [measure(design, true, source).chunk(1, 0).values["total"] for _ in range(2)]
    assert not np.array_equal(*direct)
    with pytest.raises(TypeError, match="not copied"):
        copy.deepcopy(source)
    with pytest.raises(TypeError, match="not copied"):
        pickle.dumps(RandomSource())


PAIRS = Domain.finite(tuple(itertools.product((0, 1), repeat=2)), structure="vector")


def coins(shared: bool) -> Callable[[tuple[int, int]], dict[tuple[int, int], Fraction]]:
    """Two answers, each turned with probability 1/4: by coins of their own, or by one that is used twice."""

    def law(point: tuple[int, int]) -> dict[tuple[int, int], Fraction]:
        out: dict[tuple[int, int], Fraction] = {}
        for turns in itertools.product((0, 1), repeat=2):
            weights = [Fraction(1 if turn else 3, 4) for turn in turns]
            if shared and turns[0] != turns[1]:
                continue
            key = (point[0] ^ turns[0], point[1] ^ turns[1])
            out[key] = weights[0] if shared else weights[0] * weights[1]
        return out

    return law


def test_threat_05_a_seed_used_twice_is_caught() -> None:
    what = claim(Budget.epsilon("ln(3)"), domain=PAIRS)
    assert audited(coins(shared=False), what).details["attained"]
    found = audited(coins(shared=True), what)
    assert found.violated and found.measured.is_infinite
    one, two = (discrete_laplace(TestSource(7), Fraction(3), 100) for _ in range(2))
    assert np.array_equal(one, two)  # what happens to who seeds two mechanisms by hand


LAWS = [
    ("gaussian", Fraction(1, 4)),
    ("gaussian", Fraction(9)),
    ("gaussian", Fraction(2020, 3)),
    ("laplace", Fraction(1, 2)),
    ("laplace", Fraction(5)),
]


@pytest.mark.parametrize(("name", "parameter"), LAWS)
def test_threat_06_enclosed_masses_have_the_ratios_and_the_symmetry_of_the_law(
    name: str, parameter: Fraction
) -> None:
    mass = gaussian_mass if name == "gaussian" else laplace_mass
    for k in (0, 1, 2, 7, 20):
        here, there, mirrored = (mass(parameter, j) for j in (k, k + 1, -k))
        assert here == mirrored
        low, high = (float(a / b) for a, b in ((here.low, there.high), (here.high, there.low)))
        fall = Fraction(2 * k + 1, 2) / parameter if name == "gaussian" else 1 / parameter
        assert math.log(low) <= float(fall) * (1 + 1e-12) and float(fall) <= math.log(high) * (1 + 1e-12)
    reach = 40 if parameter < 10 else 500
    assert abs(sum(float(mass(parameter, k)) for k in range(-reach, reach + 1)) - 1) < 1e-3


@pytest.mark.parametrize(("name", "parameter"), LAWS)
def test_threat_06_zero_tails_signs_and_ratios_of_the_sampler(name: str, parameter: Fraction) -> None:
    count = 400_000
    draw = discrete_gaussian if name == "gaussian" else discrete_laplace
    mass = gaussian_mass if name == "gaussian" else laplace_mass
    below = gaussian_cdf if name == "gaussian" else laplace_cdf
    sample = draw(TestSource(6), parameter, count)
    spread = max(1, round(math.sqrt(parameter) if name == "gaussian" else float(parameter)))
    trials = [(int((sample == k).sum()), float(mass(parameter, k))) for k in (0, 1, -1, spread, -spread)]
    trials += [(int((sample <= -k).sum()), float(below(parameter, -k))) for k in (spread, 3 * spread)]
    trials += [(int((sample >= k).sum()), float(below(parameter, -k))) for k in (spread, 3 * spread)]
    trials.append((int((sample > 0).sum()), (1 - float(mass(parameter, 0))) / 2))
    for seen, chance in trials:
        assert stats.binomtest(seen, count, chance).pvalue > ALPHA / 100
    ones, zeros = int((np.abs(sample) == 1).sum()), int((sample == 0).sum())
    ratio = 2 * float(mass(parameter, 1)) / float(mass(parameter, 0))
    assert stats.binomtest(ones, ones + zeros, ratio / (1 + ratio)).pvalue > ALPHA / 100


def gaussian_table(reach: int, cut: bool) -> Callable[[tuple[int]], dict[int, Fraction]]:
    """The discrete Gaussian of variance 4, to 100 bits; beyond the reach cut off, or put to the ends."""

    def law(point: tuple[int]) -> dict[int, Fraction]:
        wide = {k: gaussian_mass(Fraction(4), k, 100).low for k in range(-60, 61)}
        out: dict[int, Fraction] = {}
        for k, weight in wide.items():
            if cut and abs(k) > reach:
                continue
            value = point[0] + k if cut else max(-reach, min(reach, point[0] + k))
            out[value] = out.get(value, Fraction(0)) + weight
        whole = sum(out.values())
        return {value: weight / whole for value, weight in out.items()}

    return law


def test_threat_06_a_table_that_is_cut_off_is_caught() -> None:
    what = claim(Budget.zcdp(rho_squared="1/8"), NormalisedRenyi())
    assert audited(gaussian_table(12, cut=False), what).verdict is Verdict.NOT_REFUTED
    found = audited(gaussian_table(12, cut=True), what)
    assert found.violated and found.measured.is_infinite
