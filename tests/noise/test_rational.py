"""The slow exact sampler: its coins and integers, word by word where that is possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from support.rejection import (
    _below,
    _exponential_coin,
    _stream,
    gaussian_by_rejection,
    laplace_by_rejection,
)

from stirred.errors import InputError
from stirred.noise import TestSource, gaussian_mass, laplace_mass

ALPHA = 1e-6


def test_integers_take_the_top_bits_and_redraw() -> None:
    words = iter([3 << 62, 2 << 62])
    assert _below(words, 3) == 2
    assert list(words) == []
    assert _below(iter([]), 1) == 0
    wide = iter([1, 5])
    assert _below(wide, 1 << 128) == (1 << 64) + 5


@pytest.mark.parametrize("bound", [3, 10, 2**64 // 3 * 2 + 1])
def test_integers_are_uniform(bound: int) -> None:
    words = _stream(TestSource(1))
    scaled = [_below(words, bound) * 3 // bound for _ in range(20_000)]
    assert stats.chisquare(np.bincount(scaled), np.array(thirds(bound)) * 20_000).pvalue > ALPHA


def thirds(bound: int) -> list[float]:
    ends = [-(-bound * i // 3) for i in range(4)]
    return [(b - a) / bound for a, b in pairwise(ends)]


@pytest.mark.parametrize("exponent", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(5)])
def test_coins_have_their_bias(exponent: Fraction) -> None:
    words: Iterator[int] = _stream(TestSource(2))
    hits = sum(_exponential_coin(words, exponent) for _ in range(30_000))
    if exponent == 0:
        assert hits == 30_000
    else:
        assert stats.binomtest(hits, 30_000, float(np.exp(-float(exponent)))).pvalue > ALPHA


@pytest.mark.parametrize(
    ("draw", "mass", "parameter"),
    [
        (gaussian_by_rejection, gaussian_mass, Fraction(3, 2)),
        (laplace_by_rejection, laplace_mass, Fraction(5, 7)),
    ],
)
def test_masses(draw: Callable[..., NDArray[np.int64]], mass: Callable, parameter: Fraction) -> None:
    sample = draw(TestSource(3), parameter, 20_000)
    inner = range(-2, 3)
    p = [float(mass(parameter, k)) for k in inner]
    seen = [int((sample == k).sum()) for k in inner]
    both = stats.chisquare([*seen, 20_000 - sum(seen)], np.array([*p, 1 - sum(p)]) * 20_000)
    assert both.pvalue > ALPHA


@pytest.mark.parametrize("draw", [gaussian_by_rejection, laplace_by_rejection])
@pytest.mark.parametrize("bad", [0.5, 0, -1, True])
def test_inexact_parameters_are_refused(draw: Callable[..., NDArray[np.int64]], bad: object) -> None:
    with pytest.raises(InputError):
        draw(TestSource(1), bad, 1)
