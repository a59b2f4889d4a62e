"""Tails of binomial and beta laws, their quantiles and masses, for whole arrays.

In the logarithm of the odds, y = ln(x / (1 - x)), the beta law of a and b has the density
exp(a ln x + b ln(1 - x)) / B(a, b), which is log-concave. Left of y it falls by a known exponent, so that

    ln I_x(a, b) = ln(x^a (1 - x)^b / B(a, b)) + ln S,    S = integral over s > 0 of exp(-drop(s)),
    drop(s) = a s + (a + b) ln(1 + x (e^-s - 1)).

The first part is Stirling's formula with its series, the second a Gauss-Legendre sum as far as the drop stays
below 40. What is added is positive or small, so that tails of any depth keep their digits.

Guarantee
    The error of ``log_tail`` is below ``error(a + b)`` where the tail is at least e^-700.
    ``log_odds`` lies outward: at what it gives the tail is at most alpha, by more than that error.
Assumes
    Double precision, and a and b of at least 1. The error is measured, against rigorous balls in the tests,
    and is there at most a third of what is claimed.
Reference
    Binomial tails are incomplete beta functions: Abramowitz and Stegun 26.5.24; Stirling's series: 6.1.41.
    Loader, Fast and accurate computation of binomial probabilities (2000), for masses without cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

NODES = 48
DROP = 40.0
_BLOCK = 1 << 13
_STEPS = 100
_SHIFTS = 14
_MOST = 700.0
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def error(size: ArrayLike) -> Floats:
    """A bound on the error of ``log_tail`` where a + b is ``size`` and the tail at least e^-700."""
    return np.asarray(1e-12 + 2e-14 * np.sqrt(np.asarray(size, dtype=np.float64)))


def log_tail(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Floats:
    """ln I_x(a, b), for a and b of at least 1 and x strictly between 0 and 1.

    P(Binomial(n, p) >= k) is I_p(k, n - k + 1), and P(Binomial(n, p) <= k) is I_(1-p)(n - k, k + 1).

    Examples
    --------
    >>> round(math.exp(log_tail(2, 1, 0.5)), 12)
    0.25
    """
    first, second, at = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (a, b, x)))
    odds = np.log(at) - np.log1p(-at)
    return _in_blocks(lambda a, b, y: _log_tail(a, b, y, _log_weight(a, b, y)), first, second, odds)


def log_odds(a: ArrayLike, b: ArrayLike, alpha: float) -> Floats:
    """The logarithm of the odds x / (1 - x) at which I_x(a, b) is alpha, rounded downward.

    Newton's method: ln I is concave and rises in the logarithm of the odds, so that after its first step it
    comes from below and never passes the solution.

    Examples
    --------
    >>> round(float(log_odds(1, 1, 0.5)), 9)
    -0.0
    """
    first, second = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (a, b)))
    target = math.log(alpha)

    def solved(a: Floats, b: Floats, y: Floats) -> Floats:
        goal = target - 2 * error(a + b)
        for _ in range(_STEPS):
            weight = _log_weight(a, b, y)
            tail = _log_tail(a, b, y, weight)
            y = y + (goal - tail) * np.exp(np.minimum(tail - weight, _MOST))
            if np.all(np.abs(goal - tail) <= error(a + b)):
                break
        return y - 1e-15 * np.abs(y)

    start = np.log(first / second) + NormalDist().inv_cdf(alpha) * np.sqrt(1 / first + 1 / second)
    return _in_blocks(solved, first, second, start)


def masses(hits: ArrayLike, draws: int, chance: float) -> Floats:
    """P(Binomial(draws, chance) = hits), for whole numbers of hits; zero where there cannot be so many.

    Examples
    --------
    >>> [round(mass, 12) for mass in masses([0, 1, 2], 2, 0.5).tolist()]
    [0.25, 0.5, 0.25]
    """
    h = np.asarray(hits, dtype=np.float64)
    if not 0 < chance < 1:
        return np.where(h == draws * chance, 1.0, 0.0)
    inner = np.clip(h, 1, max(draws - 1, 1))
    rest = np.maximum(draws - inner, 1)
    odds = np.full(h.shape, math.log(chance) - math.log1p(-chance))
    middle = _log_weight(inner, rest, odds) + np.log(max(draws, 1) / (inner * rest))
    ends = np.where(h == 0, draws * math.log1p(-chance), draws * math.log(chance))
    found = np.exp(np.where((h == 0) | (h == draws), ends, middle))
    return np.where((h < 0) | (h > draws), 0.0, found)


def _in_blocks(function: Callable[[Floats, Floats, Floats], Floats], *arrays: Floats) -> Floats:
    """A function of three arrays, a block at a time: the nodes of a block are a table that fits a cache."""
    shape = arrays[0].shape
    flat = [np.reshape(array, -1) for array in arrays]
    blocks = [
        function(*(array[start : start + _BLOCK] for array in flat))
        for start in range(0, flat[0].size, _BLOCK)
    ]
    return np.concatenate(blocks).reshape(shape) if blocks else np.zeros(shape)


def _log_tail(a: Floats, b: Floats, y: Floats, weight: Floats) -> Floats:
    """ln I at the log-odds y, where ``weight`` is the density's: right of its mode by the other tail."""
    right = y > np.log(a / b)
    swapped = np.where(right, b, a), np.where(right, a, b), np.where(right, -y, y)
    tail = weight + np.log(_spread(*swapped))
    return np.where(right, np.log1p(-np.exp(np.where(right, tail, -1.0))), tail)


def _log_weight(a: Floats, b: Floats, y: Floats) -> Floats:
    """ln(x^a (1 - x)^b / B(a, b)) at the log-odds y: the deviance, and what Stirling's formula leaves over.

    With d = (a + b) x - a the deviance is a (ln(1 + d/a) - d/a) + b (ln(1 - d/b) + d/b): the linear parts
    cancel on paper, not in floats.
    """
    n = a + b
    x, rest = _sides(y)
    d = np.where(y < 0, n * x - a, b - n * rest)
    deviance = a * _log_less_linear(d / a, n * x / a) + b * _log_less_linear(-d / b, n * rest / b)
    root = np.log(a / n * b / (2 * math.pi)) / 2
    return np.asarray(deviance + root + _stirling(n) - _stirling(a) - _stirling(b))


def _log_less_linear(e: Floats, whole: Floats) -> Floats:
    """ln(1 + e) - e, where 1 + e is ``whole``; a series near zero: with r = e / (2 + e), 2 artanh(r) - e."""
    near = np.abs(e) < 0.3
    r = np.where(near, e / (2 + np.where(near, e, 0.0)), 0.0)
    square, series = r * r, np.zeros(r.shape)
    for k in range(23, 1, -2):
        series = (series + 1 / k) * square
    return np.where(near, r * (2 * series - e), np.log(np.where(near, 1.0, whole)) - e)


def _stirling(z: Floats) -> Floats:
    """ln Gamma(z) less (z - 1/2) ln z - z + ln(2 pi) / 2, for positive z: shifted up, then the series."""
    total = np.zeros(z.shape)
    small = z < _SHIFTS
    shifted = z
    if small.any():
        low = z[small]
        steps = low[:, None] + np.arange(_SHIFTS)
        total[small] = ((steps + 0.5) * np.log1p(1 / steps) - 1).sum(axis=1)
        shifted = np.where(small, z + _SHIFTS, z)
    series = np.zeros(z.shape)
    for coefficient in reversed(_STIRLING):
        series = series / shifted**2 + coefficient
    return np.asarray(total + series / shifted)


def _spread(a: Floats, b: Floats, y: Floats) -> Floats:
    """The integral S, left of the mode: nodes from zero to where the drop passes 40.

    That point is found from the right by Newton's method, which does not pass it: the drop is convex.
    """
    n = a + b
    x, rest = _sides(y)
    reach = (DROP - n * np.where(y < 0, np.log1p(-x), np.log(rest))) / a
    for _ in range(_STEPS):
        shrunk = x * np.exp(-reach)
        drop = a * reach + n * np.log(rest + shrunk)
        if np.all(drop <= DROP + 5):
            break
        reach = reach - (drop - DROP) / (a - n * shrunk / (rest + shrunk))
    s = reach[:, None] * _PLACES
    left = x < rest
    smaller, turn, slope = np.where(left, x, rest), np.where(left, -1.0, 1.0), np.where(left, a, -b)
    # n ln(1 - x + x e^-s) + a s and n ln(x + (1 - x) e^s) - b s are one number: in the smaller parts.
    drops = n[:, None] * np.log1p(smaller[:, None] * np.expm1(turn[:, None] * s)) + slope[:, None] * s
    return np.asarray(reach * (np.exp(-drops) @ _WEIGHTS))


def _sides(y: Floats) -> tuple[Floats, Floats]:
    """The probability x whose log-odds are y, and 1 - x."""
    small = np.exp(-np.abs(y))
    low, high = small / (1 + small), 1 / (1 + small)
    return np.where(y < 0, low, high), np.where(y < 0, high, low)


_PLACES, _WEIGHTS = (part / 2 for part in np.polynomial.legendre.leggauss(NODES))
_PLACES += 0.5
