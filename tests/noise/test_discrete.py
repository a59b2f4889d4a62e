"""The table sampler: exact law by a battery that its mutants fail, ties and ends by scripted words.

The battery raises a false alarm with probability at most 1e-6: its tests share that level. Seeds are fixed.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.rejection import gaussian_by_rejection, laplace_by_rejection

from stirred.errors import InputError
from stirred.noise import (
    LARGEST_DRAW,
    Source,
    TestSource,
    discrete,
    discrete_gaussian,
    discrete_laplace,
    gaussian_cdf,
    table,
)
from stirred.noise.discrete import draw
from stirred.noise.law import Law, gaussian_law, laplace_law, thresholds

ALPHA = 1e-6
CENSUS = Fraction(114921, 293764) * Fraction(4099 * 4097, 165 * 5)
TOP = 2**64 - 1
MANY = 1_000_000

NARROW = [
    ("gaussian", Fraction(1)),
    ("gaussian", Fraction(1, 5)),
    ("gaussian", Fraction(22, 7)),
    ("gaussian", Fraction(10**4)),
    ("gaussian", CENSUS),
    ("laplace", Fraction(1)),
    ("laplace", Fraction(1, 3)),
    ("laplace", Fraction(355, 113)),
    ("laplace", Fraction(40)),
]
CASES = [
    *NARROW,
    ("gaussian", Fraction(181**2)),
    ("gaussian", Fraction(182**2)),
    ("gaussian", Fraction(4001**2, 3)),
    ("laplace", Fraction(256)),
    ("laplace", Fraction(257)),
    ("laplace", Fraction(7501, 10)),
]
MAKE = {"gaussian": gaussian_law, "laplace": laplace_law}


class Scripted(Source):
    """Words from a list, to force ties; an empty list is an error."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(bytes(32))
        self.script = list(words)

    @property
    def publishable(self) -> bool:
        return False

    def child(self, *path: int) -> Source:
        return self

    def _key_after_fork(self) -> bytes:
        return bytes(32)

    def words(self, count: int) -> NDArray[np.uint64]:
        assert len(self.script) >= count
        taken, self.script = self.script[:count], self.script[count:]
        return np.array(taken, dtype=np.uint64)


def spelled(number: int, negative: int = 0, shift: int = 0, place: int = 0) -> list[int]:
    """The word and the further one that give a number of 64 bits, a sign and a place in a strip."""
    low = (2 << shift) - 1
    return [number & ~low | place << 1 | negative, number & low]


def masses(name: str, parameter: Fraction) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The support that matters and its probabilities, in floats and apart from the sampler's arithmetic."""
    spread = float(parameter) ** 0.5 if name == "gaussian" else float(parameter)
    reach = int((12 if name == "gaussian" else 60) * spread) + 5
    k = np.arange(-reach, reach + 1)
    exponent = k * k / (2 * float(parameter)) if name == "gaussian" else np.abs(k) / float(parameter)
    weights = np.exp(-exponent)
    return k, weights / weights.sum()


def pooled_chi_square(counts: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float:
    """P-value of Pearson's statistic; neighbours are pooled until at least ten are expected in every bin."""
    size, seen, expected = counts.sum(), [0.0], [0.0]
    for count, probability in zip(counts, probabilities, strict=True):
        if expected[-1] >= 10:
            seen.append(0.0)
            expected.append(0.0)
        seen[-1] += count
        expected[-1] += probability * size
    if expected[-1] < 10 and len(seen) > 1:
        seen[-2:] = [sum(seen[-2:])]
        expected[-2:] = [sum(expected[-2:])]
    statistic = sum((s - e) ** 2 / e for s, e in zip(seen, expected, strict=True))
    return float(stats.chi2.sf(statistic, len(seen) - 1)) if len(seen) > 1 else 1.0


def alarms(sample: NDArray[np.int64], name: str, parameter: Fraction) -> set[str]:
    """The tests that reject the law, at level ALPHA for all of them together."""
    k, p = masses(name, parameter)
    size, reach = sample.size, int(k[-1])
    if np.abs(sample).max() > reach:
        return {"support"}
    found = {"chi-square": pooled_chi_square(np.bincount(sample + reach, minlength=k.size), p)}
    found["zero"] = stats.binomtest(int((sample == 0).sum()), size, float(p[reach])).pvalue
    signed = int((sample != 0).sum())
    found["symmetry"] = stats.binomtest(int((sample > 0).sum()), signed, 0.5).pvalue if signed else 1.0
    beyond = 2 * np.cumsum(p[::-1])[reach - 1 :: -1]
    for level in (0.3, 0.03, 0.003, 0.0003):
        j = int(np.argmax(beyond <= level))
        tail = int((np.abs(sample) > j).sum())
        found[f"tail {level}"] = stats.binomtest(tail, size, float(beyond[j])).pvalue
    values = sample.astype(np.float64)
    for power in (1, 2, 4):
        moment, square = (p * k.astype(float) ** power).sum(), (p * k.astype(float) ** (2 * power)).sum()
        z = ((values**power).mean() - moment) / np.sqrt((square - moment**2) / size)
        # The normal approximation needs a margin for the skewness of high powers.
        found[f"moment {power}"] = 2 * stats.norm.sf(abs(z)) * (1 if power == 1 else 10 ** (power // 2))
    return {test for test, pvalue in found.items() if pvalue * len(found) < ALPHA}


def sampled(name: str, parameter: Fraction, count: int, seed: int) -> NDArray[np.int64]:
    function = discrete_gaussian if name == "gaussian" else discrete_laplace
    return function(TestSource(seed), parameter, count)


@pytest.mark.parametrize(("name", "parameter"), CASES)
def test_the_law_passes_the_battery(name: str, parameter: Fraction) -> None:
    assert alarms(sampled(name, parameter, MANY, 1), name, parameter) == set()


def scaled(factor: str) -> Callable[[str, Fraction], NDArray[np.int64]]:
    def mutant(name: str, parameter: Fraction) -> NDArray[np.int64]:
        power = 2 if name == "gaussian" else 1
        return sampled(name, parameter * Fraction(factor) ** power, MANY, 2)

    return mutant


def truncated(name: str, parameter: Fraction) -> NDArray[np.int64]:
    """Values beyond a one-in-a-thousand point are drawn again."""
    sample = sampled(name, parameter, 2 * MANY, 3)
    end = np.quantile(np.abs(sample), 0.999)
    return sample[np.abs(sample) <= end][:MANY]


def without_last(name: str, parameter: Fraction) -> NDArray[np.int64]:
    """Magnitudes found one threshold too late: the walk's comparison is off by one."""
    sample = sampled(name, parameter, MANY, 4)
    return sample + np.sign(sample)


MUTANTS: dict[str, Callable[[str, Fraction], NDArray[np.int64]]] = {
    "scale x 1.1": scaled("1.1"),
    "scale x 0.9": scaled("0.9"),
    "scale x 1.01": scaled("1.01"),
    "shifted by one": lambda name, parameter: sampled(name, parameter, MANY, 5) + 1,
    "magnitude off by one": without_last,
    "truncated": truncated,
    "zero counted twice": lambda name, parameter: draw(
        TestSource(6), Law(MAKE[name](parameter).linear, MAKE[name](parameter).quadratic, Fraction(1)), MANY
    ),
    "always plus": lambda name, parameter: np.abs(sampled(name, parameter, MANY, 7)),
}


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize(("name", "parameter"), [CASES[0], CASES[3], CASES[4], CASES[7], CASES[8]])
def test_the_battery_catches_mutants(mutant: str, name: str, parameter: Fraction) -> None:
    assert alarms(MUTANTS[mutant](name, parameter), name, parameter)


def same_law(first: NDArray[np.int64], second: NDArray[np.int64]) -> bool:
    """Two-sample chi-square on the common values, rare ones pooled."""
    reach = int(max(np.abs(first).max(), np.abs(second).max()))
    a, b = (np.bincount(np.clip(x, -reach, reach) + reach, minlength=2 * reach + 1) for x in (first, second))
    common = a + b >= 40
    grid = np.array([[*x[common], x[~common].sum()] for x in (a, b)])
    return stats.chi2_contingency(grid[:, grid.sum(axis=0) > 0]).pvalue > ALPHA


@pytest.mark.parametrize(
    ("name", "parameter"),
    [*CASES[:5], *CASES[5:8], ("gaussian", Fraction(1, 20)), ("laplace", Fraction(9, 2))],
)
def test_the_table_agrees_with_the_slow_exact_sampler(name: str, parameter: Fraction) -> None:
    slow = (gaussian_by_rejection if name == "gaussian" else laplace_by_rejection)(
        TestSource(8), parameter, 15_000
    )
    assert alarms(slow, name, parameter) == set()
    assert same_law(slow, sampled(name, parameter, 200_000, 9))


def test_two_samples_of_different_laws_are_told_apart() -> None:
    slow = gaussian_by_rejection(TestSource(10), Fraction(9), 15_000)
    assert not same_law(slow, sampled("gaussian", Fraction(9) * Fraction(121, 100), 200_000, 11))


@pytest.mark.parametrize(("name", "parameter", "scale"), [("gaussian", 9, 3.0), ("laplace", 2, 2.0)])
def test_the_table_agrees_with_opendp(name: str, parameter: int, scale: float) -> None:
    opendp = pytest.importorskip("opendp.prelude", reason="OpenDP, the oracle, is not installed")
    opendp.enable_features("contrib")
    domain = opendp.vector_domain(opendp.atom_domain(T=int))
    make = opendp.m.make_gaussian if name == "gaussian" else opendp.m.make_laplace
    metric = opendp.l2_distance(T=float) if name == "gaussian" else opendp.l1_distance(T=int)
    oracle = np.array(make(domain, metric, scale=scale)([0] * 60_000))
    assert alarms(oracle, name, Fraction(parameter)) == set()
    assert same_law(oracle, sampled(name, Fraction(parameter), 500_000, 12))


def test_a_word_below_at_and_above_a_threshold() -> None:
    variance = Fraction(1)
    level = thresholds(gaussian_law(variance), 64)[1]
    finer = thresholds(gaussian_law(variance), 128)[1] & TOP
    deeper = thresholds(gaussian_law(variance), 192)[1] & TOP

    def drawn(number: int, negative: int, *more: int) -> list[int]:
        return discrete_gaussian(Scripted([*spelled(number, negative), *more]), variance, 1).tolist()

    assert drawn(level - 1, 0) == [1]
    assert drawn(level + 1, 0) == [2]
    assert drawn(level, 0, finer - 1) == [1]
    assert drawn(level, 0, finer + 1) == [2]
    assert drawn(level, 1, finer, deeper - 1) == [-1]
    assert drawn(level, 1, finer, deeper + 1) == [-2]


@pytest.mark.parametrize(("name", "parameter"), NARROW)
def test_a_word_beyond_the_table_is_resolved_and_not_cut_off(name: str, parameter: Fraction) -> None:
    law = MAKE[name](parameter)
    last = len(thresholds(law, 64)) - 1
    finer = thresholds(law, 128)
    furthest = max(k for k in range(1, len(finer)) if finer[k] > finer[k - 1] + 1)
    assert furthest > last
    for k in (last + 1, furthest):
        within = finer[k - 1] + 1
        assert within >> 64 == TOP
        assert draw(Scripted([*spelled(TOP, 1), within & TOP]), law, 1).tolist() == [-k]
    source = Scripted([*spelled(TOP), TOP, TOP, 5])
    assert draw(source, law, 1)[0] >= len(finer) - 1
    assert source.script == []


def test_every_tie_of_a_block_gets_words_of_its_own() -> None:
    law = gaussian_law(Fraction(1))
    levels, finer = thresholds(law, 64), thresholds(law, 128)
    first, first_low = spelled(levels[0], 1)
    third, third_low = spelled(levels[1], 1)
    source = Scripted([first, 5, third, first_low, third_low, (finer[0] & TOP) + 1, (finer[1] & TOP) - 1])
    assert draw(source, law, 3).tolist() == [-1, 0, -1]
    assert source.script == []


def test_signs_come_from_the_lowest_bit_and_zero_has_none() -> None:
    law = laplace_law(Fraction(1))
    one = thresholds(law, 64)[0] + 4 & ~1
    signs = [1, 1, 0, 1]
    assert draw(Scripted([one | sign for sign in signs]), law, 4).tolist() == [-1, -1, 1, -1]
    assert draw(Scripted(signs), law, 4).tolist() == [0] * 4


@pytest.mark.parametrize(("name", "parameter"), NARROW)
def test_the_compiled_search_agrees_with_bisection_at_every_edge(name: str, parameter: Fraction) -> None:
    law = MAKE[name](parameter)
    levels = thresholds(law, 64)
    ties = {t >> 1 for t in levels}
    edges = {w for t in ties for w in (t - 1, t + 1)} | {c << 50 for c in range(0, 2**13, 37)}
    words = [2 * w for w in sorted(edges - ties) if 0 <= w < 2**63]
    expected = np.searchsorted(np.array(levels, dtype=np.uint64), np.array(words, dtype=np.uint64))
    assert np.array_equal(draw(Scripted(words), law, len(words)), expected)


@pytest.fixture
def _short_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a few wide strips, for narrow laws too."""
    whole = table.table
    monkeypatch.setattr(table, "table", lambda law: whole(law, 4))


@pytest.mark.usefixtures("_short_tables")
@pytest.mark.parametrize(
    ("name", "parameter", "shift"),
    [
        ("gaussian", Fraction(100), 2),
        ("gaussian", CENSUS, 5),
        ("gaussian", Fraction(22, 7) ** 4, 2),
        ("laplace", Fraction(40), 4),
        ("laplace", Fraction(9), 2),
    ],
)
def test_drawing_by_strips_passes_the_battery(name: str, parameter: Fraction, shift: int) -> None:
    assert table.table(MAKE[name](parameter)).shift == shift
    assert alarms(draw(TestSource(13), MAKE[name](parameter), 30_000), name, parameter) == set()


@pytest.mark.usefixtures("_short_tables")
def test_the_battery_catches_strips_without_rejection(monkeypatch: pytest.MonkeyPatch) -> None:
    short = table.table

    def flat(law: Law) -> table.Table:
        made = short(law)
        return replace(made, rises=np.zeros_like(made.rises), curved=0)

    monkeypatch.setattr(table, "table", flat)
    drawn = draw(TestSource(13), gaussian_law(CENSUS), 60_000)
    assert alarms(drawn, "gaussian", CENSUS)


@pytest.mark.usefixtures("_short_tables")
def test_a_scripted_draw_by_strips() -> None:
    law = gaussian_law(Fraction(25))
    made = table.table(law)
    assert made.shift == 1
    levels = thresholds(made.tabled, 64)
    finer = thresholds(made.tabled, 128)

    def drawn(number: int, negative: int, place: int, *more: int) -> list[int]:
        source = Scripted([*spelled(number, negative, 1, place), *more])
        found = draw(source, law, 1).tolist()
        assert source.script == []
        return found

    second = (levels[1] & ~3) + 4
    word = spelled(second, 1, 1, 1)[0]
    assert draw(Scripted([word]), law, 1).tolist() == [-3]
    assert drawn(levels[0] + 1, 0, 0) == [0]
    assert drawn(levels[0] + 1, 1, 0, word) == [-3]  # minus zero is drawn again
    assert drawn(levels[1], 0, 1, (finer[1] & TOP) - 1) == [1]
    assert drawn(levels[1], 0, 1, (finer[1] & TOP) + 1) == [3]
    end = max(k for k in range(1, len(finer)) if finer[k] > finer[k - 1] + 1)
    assert finer[end - 1] >> 64 == TOP
    assert drawn(TOP, 1, 1, finer[end - 1] + 1 & TOP) == [-(2 * (end - 1) + 1)]
    weight = levels[0] * math.exp(-1 / 50)  # of the member 1, where the first one has the first threshold
    assert drawn(int(weight * (1 - 1e-5)), 0, 1) == [1]
    assert drawn(int(weight * (1 + 1e-5)), 0, 1, word) == [-3]
    assert drawn(int(weight * (1 + 1e-5)), 0, 0) == [0]


def test_a_huge_variance() -> None:
    variance, count = Fraction(10**12), 400_000
    sample = discrete_gaussian(TestSource(14), variance, count)
    edges = np.linspace(-4e6, 4e6, 41).astype(np.int64)
    below = [0.0, *(float(gaussian_cdf(variance, int(edge))) for edge in edges), 1.0]
    counts = np.bincount(np.searchsorted(edges, sample, side="left"), minlength=edges.size + 1)
    assert pooled_chi_square(counts, np.diff(below)) > ALPHA
    assert stats.chisquare(np.bincount(sample & 511, minlength=512)).pvalue > ALPHA
    mutant = np.bincount(np.searchsorted(edges, sample * 1.1, side="left"), minlength=edges.size + 1)
    assert pooled_chi_square(mutant, np.diff(below)) < ALPHA


def test_a_wide_laplace() -> None:
    scale, count = Fraction(10**7, 3), 200_000
    sample = discrete_laplace(TestSource(15), scale, count)
    assert stats.kstest(np.abs(sample) / float(scale), "expon").pvalue > ALPHA
    assert stats.kstest(np.abs(sample) * 1.1 / float(scale), "expon").pvalue < ALPHA
    assert stats.binomtest(int((sample > 0).sum()), int((sample != 0).sum()), 0.5).pvalue > ALPHA


def test_the_widest_laws_stay_in_range() -> None:
    sample = discrete_gaussian(TestSource(16), Fraction(2**100), 10_000)
    assert stats.kstest(sample / 2.0**50, "norm").pvalue > ALPHA
    sample = discrete_laplace(TestSource(16), Fraction(2**50), 10_000)
    assert stats.kstest(sample / 2.0**50, "laplace").pvalue > ALPHA


def test_a_tiny_variance_is_not_cut_off_to_zero() -> None:
    variance = Fraction(1, 1000)
    assert not discrete_gaussian(TestSource(17), variance, 10_000).any()
    length = 64 * 12
    levels = thresholds(gaussian_law(variance), length)
    assert len(levels) > 1
    number = levels[0] + 1
    words = [number >> shift & TOP for shift in range(length - 64, -64, -64)]
    assert discrete_gaussian(Scripted([words[0], 1, *words[1:]]), variance, 1).tolist() == [-1]


def test_blocks_of_any_count_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert discrete._BLOCK <= LARGEST_DRAW
    monkeypatch.setattr(discrete, "_BLOCK", 1000)
    sample = discrete_gaussian(TestSource(18), Fraction(100), 300_001)
    assert sample.size == 300_001
    assert alarms(sample, "gaussian", Fraction(100)) == set()


def test_draws_are_not_correlated() -> None:
    sample = discrete_gaussian(TestSource(19), Fraction(100), 500_000).astype(float)
    for lag in (1, 2, 64, 65_536):
        assert stats.pearsonr(sample[:-lag], sample[lag:]).pvalue > ALPHA


def test_threads_with_sources_of_their_own_draw_what_they_would_draw_alone() -> None:
    table.table.cache_clear()
    found: dict[int, NDArray[np.int64]] = {}

    def work(number: int) -> None:
        found[number] = discrete_gaussian(
            TestSource(20).child(number), Fraction(100 + number % 3, 7), 100_000
        )

    workers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for number, sample in found.items():
        alone = discrete_gaussian(TestSource(20).child(number), Fraction(100 + number % 3, 7), 100_000)
        assert np.array_equal(sample, alone)
    assert not np.array_equal(found[0], found[3])


def test_tables_are_kept_within_bounds_and_are_read_only() -> None:
    law = gaussian_law(Fraction(3))
    assert table.table(law) is table.table(gaussian_law(3))
    assert table.table.cache_info().maxsize == 64
    with pytest.raises(ValueError, match="read-only"):
        table.table(law).thresholds[0] = 0


@pytest.mark.parametrize("function", [discrete_gaussian, discrete_laplace])
@pytest.mark.parametrize("bad", [0.5, 1.0, 0, -1, Fraction(-1, 2), True, "1", None, np.float64(2), 2**101])
def test_parameters_that_are_not_exact_and_positive_are_refused(
    function: Callable[..., NDArray[np.int64]], bad: object
) -> None:
    with pytest.raises(InputError):
        function(TestSource(1), bad, 1)


@pytest.mark.parametrize("bad", [-1, 1.0, True, "3", None])
def test_counts_that_are_no_counts_are_refused(bad: object) -> None:
    with pytest.raises(InputError) as refused:
        discrete_gaussian(TestSource(1), Fraction(1), bad)  # type: ignore[arg-type]
    assert refused.value.field == "count"


def test_no_draws_and_integer_parameters() -> None:
    assert discrete_gaussian(TestSource(1), Fraction(1), 0).tolist() == []
    whole = discrete_laplace(TestSource(1), 3, 100)  # type: ignore[arg-type]
    assert np.array_equal(whole, discrete_laplace(TestSource(1), Fraction(3), np.int64(100)))
    assert whole.dtype == np.int64
