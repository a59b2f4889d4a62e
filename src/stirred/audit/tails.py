"""Certified tails of sums, and many tests of one draw at one level.

A sum of independent parts has its tail bounded by its generating function: P(T >= t) is at most
exp(K(u) - u t) for every u > 0, K the logarithm of the generating function, and the same below for u < 0. K
is known in closed form for everything that is tested here, so no limit theorem is used.

Guarantee
    If the parts have their laws, ``log_tail`` lies below ln(p) with probability at most p, for every p.
Assumes
    Double precision: every bound is widened by far more than its rounding error.
Reference
    Chernoff (1952). For draws without replacement the generating function is at most that of draws with
    replacement: Hoeffding, Probability inequalities for sums of bounded random variables, JASA 58 (1963),
    Theorem 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.audit.incomplete_beta import log_tail as log_beta_tail

Floats = NDArray[np.float64]
Cumulants = Callable[[Floats], Floats]

STEPS = 80
SLACK = 1e-12
LEAST = -700.0
_GOLD = (math.sqrt(5) - 1) / 2
_REACH = 4.5
_SPREAD = 30.0


@dataclass(frozen=True)
class Checks:
    """Tests of one kind: what is odd where one fails, and the logarithm of every tail, two-sided."""

    what: str
    log_tails: Floats

    def excess(self, alpha: float) -> float:
        """How far the worst tail lies below its share of alpha, in logarithms; negative where above."""
        if not self.log_tails.size:
            return -math.inf
        return math.log(alpha / self.log_tails.size) - float(self.log_tails.min())


def worst(tests: Iterable[Checks], alpha: float) -> tuple[Checks, float] | None:
    """The kind of test that fails most clearly and the logarithm of its tail; None if none fails.

    Kinds share alpha, and so do the tests of a kind: all together fail by chance with probability alpha.
    """
    kinds = [kind for kind in tests if kind.log_tails.size]
    if not kinds:
        return None
    found = max(kinds, key=lambda kind: kind.excess(alpha / len(kinds)))
    if found.excess(alpha / len(kinds)) <= 0:
        return None
    return found, float(found.log_tails.min())


def problem_of(tests: Iterable[Checks], alpha: float) -> str | None:
    """What ``worst`` finds, in a sentence; None if nothing is found."""
    failed = worst(tests, alpha)
    if failed is None:
        return None
    kind, log_chance = failed
    power = math.ceil(log_chance / math.log(10))
    return f"{kind.what}: by chance with a probability of less than 1e{power:d}"


def log_tail(
    sums: Floats,
    groups: NDArray[np.int64],
    cumulants: Cumulants,
    tilt: Cumulants = np.sinh,
    reach: float = _REACH,
) -> Floats:
    """For every group the logarithm of twice the tail of its sum, on the side where it lies.

    ``sums`` is what was seen, a number for each group; ``groups`` has the group of each independent part.
    ``cumulants`` is, for one tilt a part, the logarithm of the part's generating function there. The tilts
    that are tried are ``tilt`` of numbers from minus to plus ``reach``.
    """
    count = sums.size

    def exponent(place: Floats) -> Floats:
        tilts = tilt(place)
        parts = cumulants(tilts[groups])
        whole = np.bincount(groups, parts, count)
        rounding = np.bincount(groups, np.abs(parts), count) + np.abs(tilts * sums) + 1
        return np.asarray(tilts * sums - whole - SLACK * rounding)

    low, high = np.full(count, -reach), np.full(count, reach)
    left, right = high - _GOLD * (high - low), low + _GOLD * (high - low)
    at_left, at_right = exponent(left), exponent(right)
    for _ in range(STEPS):
        down = at_left >= at_right
        low, high = np.where(down, low, left), np.where(down, right, high)
        probe = np.where(down, high - _GOLD * (high - low), low + _GOLD * (high - low))
        value = exponent(probe)
        left, right = np.where(down, probe, right), np.where(down, left, probe)
        at_left, at_right = np.where(down, value, at_right), np.where(down, at_left, value)
    best = np.maximum.reduce(
        [at_left, at_right, exponent(np.full(count, -reach)), exponent(np.full(count, reach))]
    )
    return np.asarray(np.minimum(math.log(2) - best, 0.0))


def summed(groups: NDArray[np.int64], values: Floats) -> Floats:
    """The sum of the values of every group."""
    return np.asarray(np.bincount(groups, values), dtype=np.float64)


def binomial_cumulants(counts: Floats, chances: Floats) -> Cumulants:
    """Of binomial parts; a bound for parts that are drawn without replacement."""
    least = -1 + math.ulp(0.5)
    return lambda tilts: counts * np.log1p(np.maximum(chances * np.expm1(tilts), least))


def square_cumulants(counts: Floats, variances: Floats) -> Cumulants:
    """Of squares of discrete Gaussians, each divided by its variance parameter: a tilt is another parameter.

    A tilt u turns the parameter v into v / (1 - 2u).
    """
    before = log_weight(variances)
    return lambda tilts: counts * (log_weight(variances / (1 - 2 * tilts)) - before)


def log_square_tail(sums: Floats, groups: NDArray[np.int64], counts: Floats, variances: Floats) -> Floats:
    """``log_tail`` of sums of squares, each divided by its variance parameter."""

    def tilt(place: Floats) -> Floats:
        return np.asarray(-np.expm1(-place) / 2)

    return log_tail(sums, groups, square_cumulants(counts, variances), tilt, _SPREAD)


def log_weight(variances: Floats) -> Floats:
    """The logarithm of the sum of exp(-k^2 / (2v)) over all integers, also by Poisson's formula."""
    v = np.asarray(variances, dtype=np.float64)
    wide = v >= 1
    rate = np.where(wide, 2 * math.pi**2 * v, 1 / (2 * np.where(wide, 1.0, v)))
    k = np.arange(1, 10, dtype=np.float64)
    series = 2 * np.exp(-np.minimum(rate[..., None] * k**2, 745.0)).sum(axis=-1)
    return np.asarray(np.log1p(series) + np.where(wide, np.log(2 * math.pi * v) / 2, 0.0))


def log_fair_tail(heads: NDArray[np.int64], tosses: NDArray[np.int64]) -> Floats:
    """The logarithm of twice the tail of a fair coin's heads: binomial tails, as far as floats reach."""
    h, n = np.asarray(heads), np.asarray(tosses)
    few = np.minimum(h, n - h)
    tails = log_beta_tail(np.maximum(n - few, 1), few + 1, 0.5)
    return np.asarray(np.clip(math.log(2) + tails * (1 - 1e-9), LEAST, 0.0))


def log_entropy_tail(hits: Floats, masses: Floats) -> float:
    """The logarithm of the tail of all counts together: their relative entropy to a law of these masses.

    The bound of Agrawal, see ``stirred.audit.conformity``. Masses are floats, widened.
    """
    draws, cells = float(hits.sum()), hits.size
    seen = hits > 0
    g = float(np.sum(hits[seen] * np.log(hits[seen] / (draws * masses[seen] * (1 + 1e-9))))) * (1 - 1e-9)
    if cells < 2 or g <= cells - 1:
        return 0.0
    return -g + (cells - 1) * (1 + math.log(g / (cells - 1)))
