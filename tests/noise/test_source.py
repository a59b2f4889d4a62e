"""The random source: independence, fork safety, exact coins and integers."""

from __future__ import annotations

import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from stirred.errors import InputError
from stirred.noise import RandomSource, Source, TestSource, bernoulli, integers, permutation
from stirred.noise.uniform import WORD

ALPHA = 1e-6


class Scripted(Source):
    """Words from a list, to force ties and rejections."""

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

    def words(self, count: int) -> np.ndarray:
        taken, self.script = self.script[:count], self.script[count:]
        return np.array(taken, dtype=np.uint64)


def test_the_operating_systems_source_never_repeats() -> None:
    assert not np.array_equal(RandomSource().words(8), RandomSource().words(8))
    source = RandomSource()
    assert not np.array_equal(source.words(8), source.words(8))


def test_a_test_source_repeats_and_is_not_publishable() -> None:
    assert np.array_equal(TestSource(7).words(100), TestSource(7).words(100))
    assert not np.array_equal(TestSource(7).words(100), TestSource(8).words(100))
    assert not TestSource(7).publishable
    assert RandomSource().publishable
    assert not isinstance(TestSource(7), RandomSource)


def test_words_do_not_depend_on_the_sizes_of_the_draws() -> None:
    whole = TestSource(1).words(300_000)
    source = TestSource(1)
    parts = np.concatenate([source.words(n) for n in (1, 7, 131_072, 168_920)])
    assert np.array_equal(whole, parts)


def test_child_streams_differ_from_each_other_and_from_their_parent() -> None:
    parent = TestSource(3)
    streams = [parent.child(), parent.child(0), parent.child(1), parent.child(0, 0), parent.child(-1), parent]
    firsts = {tuple(s.words(2)) for s in streams}
    assert len(firsts) == len(streams)
    assert np.array_equal(TestSource(3).child(5).words(4), TestSource(3).child(5).words(4))


def test_drawing_from_a_child_leaves_the_parent_alone() -> None:
    untouched = TestSource(3).words(4)
    parent = TestSource(3)
    parent.child(1).words(1000)
    assert np.array_equal(parent.words(4), untouched)


@pytest.mark.parametrize("make", ["RandomSource()", "TestSource(9)"])
def test_a_forked_process_takes_other_words(make: str) -> None:
    script = (
        "import os; from stirred.noise import RandomSource, TestSource; "
        f"source = {make}; source.words(1); child = os.fork(); "
        "print(source.words(4).tolist(), flush=True); child and os.waitpid(child, 0)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    lines = done.stdout.split("\n")[:2]
    assert len(lines) == 2
    assert lines[0] != lines[1]


def test_sources_are_not_pickled() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(RandomSource())


def test_words_are_uniform_in_every_byte() -> None:
    data = TestSource(11).words(200_000).view(np.uint8)
    counts = np.bincount(data, minlength=256)
    assert stats.chisquare(counts).pvalue > ALPHA


@pytest.mark.parametrize("bound", [1, 2, 3, 6, 10, 1000])
def test_bounded_integers_are_uniform(bound: int) -> None:
    drawn = integers(TestSource(bound), bound, 60_000)
    assert drawn.max() < bound
    if bound > 1:
        assert stats.chisquare(np.bincount(drawn.astype(np.int64), minlength=bound)).pvalue > ALPHA


def test_bounded_integers_reject_the_incomplete_multiple() -> None:
    limit = WORD - WORD % 3
    assert integers(Scripted([limit, WORD - 1, 5]), 3, 1).tolist() == [2]


def test_bernoulli_decides_ties_by_the_remainder() -> None:
    threshold, remainder = divmod(WORD, 3)
    assert remainder == 1
    below, tie, above = threshold - 1, threshold, threshold + 1
    assert bernoulli(Scripted([below]), Fraction(1, 3), 1).tolist() == [True]
    assert bernoulli(Scripted([above]), Fraction(1, 3), 1).tolist() == [False]
    assert bernoulli(Scripted([tie, below]), Fraction(1, 3), 1).tolist() == [True]
    assert bernoulli(Scripted([tie, above]), Fraction(1, 3), 1).tolist() == [False]
    assert bernoulli(Scripted([WORD // 2]), Fraction(1, 2), 1).tolist() == [False]


@pytest.mark.parametrize("rate", ["0", "1", "1/2", "1/3", "999/1000", "1/100000"])
def test_bernoulli_has_its_rate(rate: str) -> None:
    p = Fraction(rate)
    hits = int(bernoulli(TestSource(5), p, 500_000).sum())
    if p in (0, 1):
        assert hits == 500_000 * p
    else:
        assert stats.binomtest(hits, 500_000, float(p)).pvalue > ALPHA


def test_permutations_are_uniform() -> None:
    source = TestSource(2)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(12_000):
        key = tuple(permutation(source, 4).tolist())
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 24
    assert stats.chisquare(list(counts.values())).pvalue > ALPHA
    assert sorted(permutation(source, 100_000).tolist()) == list(range(100_000))


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(InputError):
        integers(TestSource(1), 0, 1)
    with pytest.raises(InputError):
        bernoulli(TestSource(1), Fraction(3, 2), 1)
    with pytest.raises(InputError):
        TestSource(1).words(-1)
