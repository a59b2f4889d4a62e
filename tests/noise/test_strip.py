"""Strips: their law by exhaustive enumeration, and every step of the compiled draw against a slow twin."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from support.digits import enumerated
from support.strips import Twin

from stirred.noise import TestSource, gaussian_mass, laplace_mass
from stirred.noise.discrete import _settled, draw
from stirred.noise.law import Law, gaussian_law, laplace_law, thresholds
from stirred.noise.source import Source
from stirred.noise.strip import REFUSED, member
from stirred.noise.table import REJECTED, STRIPS, UNDECIDED, Table, _loss, draw_words, settle, table

TOP = 2**64 - 1
NEAR = [0, 1, 2, 3, 4, 10, 1000, *(1 << n for n in range(12, 54, 3))]

# The law, the number of strips up to exponent 1, and the width of a strip that this makes.
TABLES = [
    (gaussian_law(Fraction(1)), 4, 0),
    (laplace_law(Fraction(1, 3)), 4, 0),
    (gaussian_law(Fraction(22, 7) ** 4), 8, 1),
    (laplace_law(Fraction(355, 113)), 1, 2),
    (gaussian_law(Fraction(10**9 + 7, 10**4) ** 2), 32, 13),
    (laplace_law(Fraction(10**9 + 7, 10**4)), 8, 14),
    (gaussian_law(Fraction(2**100)), 32, 46),
    (laplace_law(Fraction(2**50)), 8, 47),
    (gaussian_law(Fraction(10**9 + 7, 10**4) ** 2), STRIPS, 10),
    (laplace_law(Fraction(2000, 3)), STRIPS, 2),
]
GAUSSIAN, LAPLACE = TABLES[4][:2], TABLES[5][:2]


@pytest.mark.parametrize(("law", "strips", "shift"), TABLES)
def test_the_width_of_a_strip(law: Law, strips: int, shift: int) -> None:
    assert table(law, strips).shift == shift


@pytest.mark.parametrize(
    ("name", "parameter", "shift"),
    [("gaussian", 9, 1), ("laplace", 2, 1), ("laplace", 4, 2), ("gaussian", 25, 3)],
)
@pytest.mark.parametrize(("bits", "depth"), [(13, 1), (3, 4)])
def test_strips_with_small_digits_have_exactly_the_law(
    name: str, parameter: int, shift: int, bits: int, depth: int
) -> None:
    """Accepted members have the ratios of the law: P(x) / P(0) = w(x), for every place of a strip."""
    law, mass = (
        (gaussian_law(Fraction(parameter)), gaussian_mass)
        if name == "gaussian"
        else (laplace_law(Fraction(parameter)), laplace_mass)
    )
    at_zero = None
    for place in range(1 << shift):
        decided, strings = enumerated(
            lambda first, more, place=place: member(law, shift, place, first, more, bits), bits, depth
        )
        left = Fraction(strings, 2 ** (bits * depth))
        assert left < Fraction(1, 20)
        assert sum(decided.values()) + left == 1
        assert {x % (1 << shift) for x in decided if x != REFUSED} == {place}
        at_zero = at_zero or (decided[0], decided[0] + left)
        zero = mass(Fraction(parameter), 0)
        for x in range(place, max(decided) + 1, 1 << shift):
            exact, found = mass(Fraction(parameter), x), decided.get(x, Fraction(0))
            assert found * zero.low <= exact.high * at_zero[1]
            assert exact.low * at_zero[0] <= (found + left) * zero.high


def test_what_is_refused_is_half_of_the_first_strip_of_numbers() -> None:
    law, shift = gaussian_law(Fraction(9)), 1
    decided, _ = enumerated(lambda first, more: member(law, shift, 1, first, more, 12), 12, 1)
    first = Fraction(thresholds(law.coarse(2), 64)[0], 2**64)
    assert 0.4 * first < decided[REFUSED] < 0.6 * first


class _Fixed(Source):
    """Further words from a list, zero after its end."""

    def __init__(self, words: list[int]) -> None:
        super().__init__(bytes(32))
        self.script = list(words)

    @property
    def publishable(self) -> bool:
        return False

    def _key_after_fork(self) -> bytes:
        return bytes(32)

    def words(self, count: int) -> np.ndarray:
        assert count == 1
        return np.array([self.script.pop(0) if self.script else 0], dtype=np.uint64)


def _numbers(made: Table, twin: Twin, generator: random.Random) -> Iterator[tuple[int, int]]:
    """Numbers of 64 bits and places that a draw might get wrong: edges, and points at and near the curve."""
    levels = made.thresholds.tolist()
    width = 1 << made.shift
    some = sorted({0, 1, 2, len(levels) - 1, len(levels) - 2, *generator.choices(range(len(levels)), k=12)})
    for number in [*range(5), TOP, TOP - 1, *(generator.getrandbits(64) for _ in range(400))]:
        yield number, generator.randrange(width)
    for k in some:
        for step in NEAR:
            yield levels[k] - step, generator.randrange(width)
            yield levels[k] + step, generator.randrange(width)
    if not made.shift:
        return
    for _ in range(400):
        yield generator.randrange(levels[0]), generator.randrange(width)
    for m in some[:-1]:
        for place in {0, 1, width // 2, width - 1, generator.randrange(width)}:
            with mpmath.workprec(200):
                height = int(
                    mpmath.floor(mpmath.ldexp(twin.weight((m << made.shift) + place) / twin.total, 64))
                )
            for step in NEAR:
                yield height - step, place
                yield height + step, place


@pytest.mark.parametrize(("law", "strips", "shift"), TABLES)
def test_every_draw_is_that_of_the_twin(law: Law, strips: int, shift: int) -> None:
    made, twin, generator = table(law, strips), Twin(law, shift), random.Random(1)
    low = (2 << shift) - 1
    words, further = [], []
    for number, place in _numbers(made, twin, generator):
        if 0 <= number <= TOP:
            words.append(number & ~low | place << 1 | generator.getrandbits(1))
            further.append(generator.getrandbits(64) & ~low | number & low)
    deeper = [[generator.getrandbits(64) for _ in range(3)] for _ in words]
    true = [twin.value(*given, *rest) for *given, rest in zip(words, further, deeper, strict=True)]

    given = np.array(words, dtype=np.uint64)
    out, listed = np.empty(given.size, dtype=np.int64), np.empty(given.size, dtype=np.int64)
    pending = listed[: draw_words(given, made.thresholds, made.guide, shift, out, listed)]
    sure = sorted(set(range(given.size)) - set(pending.tolist()))
    assert [out[i] for i in sure] == [true[i] for i in sure]

    extended = np.array(further, dtype=np.uint64)[pending]
    settle(given, extended, pending, made.thresholds, made.guide, shift, made.rises, made.curved, out)
    undecided = [i for i in pending.tolist() if out[i] == UNDECIDED]
    decided = sorted(set(pending.tolist()) - set(undecided))
    named = [REJECTED if value is None else value for value in true]
    assert [out[i] for i in decided] == [named[i] for i in decided]
    assert min(len(sure), len(decided), len(undecided)) > 0

    slow = [_settled(_Fixed(deeper[i]), made, words[i], further[i]) for i in undecided]
    assert slow == [named[i] for i in undecided]


@pytest.mark.parametrize(("law", "strips"), [GAUSSIAN, LAPLACE])
def test_exact_arithmetic_alone_agrees_with_the_kernels(law: Law, strips: int) -> None:
    made, source = table(law, strips), TestSource(1)
    words = source.words(4000)
    words[::2] %= made.thresholds[0]
    out, listed = np.empty(words.size, dtype=np.int64), np.empty(words.size, dtype=np.int64)
    pending = listed[: draw_words(words, made.thresholds, made.guide, made.shift, out, listed)]
    further = source.words(words.size)
    settle(
        words,
        further[pending],
        pending,
        made.thresholds,
        made.guide,
        made.shift,
        made.rises,
        made.curved,
        out,
    )
    assert pending.size >= 2000
    for value, word, more in zip(out.tolist(), words.tolist(), further.tolist(), strict=True):
        assert value in (UNDECIDED, _settled(_Fixed([]), made, word, more))


@pytest.mark.parametrize("law", [gaussian_law(Fraction(10**10)), laplace_law(Fraction(750))])
def test_few_draws_are_left_to_exact_arithmetic(law: Law) -> None:
    """At most 2e-6 of the draws are expected to be; 60 of 2^22 has probability below 1e-30 (Chernoff)."""
    made, source = table(law), TestSource(2)
    undecided = 0
    for _ in range(64):
        words = source.words(1 << 16)
        out, listed = np.empty(words.size, dtype=np.int64), np.empty(words.size, dtype=np.int64)
        pending = listed[: draw_words(words, made.thresholds, made.guide, made.shift, out, listed)]
        further = source.words(pending.size)
        settle(words, further, pending, made.thresholds, made.guide, made.shift, made.rises, made.curved, out)
        undecided += int((out == UNDECIDED).sum())
    assert undecided < 60


@pytest.mark.parametrize("shift", [1, 5, 31, 32, 33, 48])
def test_the_loss_is_between_its_bounds(shift: int) -> None:
    generator, width, one = random.Random(3), 1 << shift, 1 << 32
    places = [0, 1, width // 2, width - 1, *(generator.randrange(width) for _ in range(40))]
    for place in places:
        for _ in range(20):
            rise = Fraction(generator.randrange(1, 10**12), 2 * 10 ** generator.randrange(12, 18))
            curved = rise * generator.randrange(1000) / 999
            low, high = _loss(place, shift, int(rise * one), int(curved * one))
            f = Fraction(place, width)
            with mpmath.workprec(120):
                t = f * rise - f * (1 - f) * curved
                true = -mpmath.expm1(-mpmath.mpf(t.numerator) / t.denominator) * one
                assert 0 <= low <= true <= high
                assert high - low <= 16 + mpmath.mpf(t.numerator) ** 3 / t.denominator**3 * one / 5


def test_the_bounds_of_rises_of_a_table() -> None:
    law = gaussian_law(Fraction(10**9 + 7, 10**4) ** 2)
    made = table(law)
    assert made.shift == 10
    for m in (0, 1, 17, 500, made.rises.size - 1):
        assert int(made.rises[m]) == int(law.rise(m << 10, m + 1 << 10) * 2**32)
    assert made.curved == int(law.quadratic * 2**52)
    steep = table(laplace_law(Fraction(355, 113)), 1)
    assert set(steep.rises.tolist()) == {2**31}


def test_kernels_without_compilation_draw_the_same() -> None:
    script = (
        "from fractions import Fraction as F; from stirred.noise import TestSource as T; "
        "from stirred.noise import discrete_gaussian as g, discrete_laplace as l; "
        "print([d(T(4), F(p), 1500).tolist() for d, p in "
        "((g, '1'), (g, '10000000000'), (l, '1/3'), (l, '1000'), (l, '10000000'))])"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    laws = [gaussian_law(Fraction(1)), gaussian_law(Fraction(10**10))]
    laws += [laplace_law(Fraction(p)) for p in ("1/3", "1000", "10000000")]
    assert done.stdout == f"{[draw(TestSource(4), law, 1500).tolist() for law in laws]}\n"
