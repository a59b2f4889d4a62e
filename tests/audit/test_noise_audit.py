"""Noise against its law, family by family: twins by direct convolution, and sabotages that must be seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from stirred.audit import Family, Verdict, log_fair_tail, noise_audit
from stirred.audit.noise import cumulated, noise_problem
from stirred.audit.tails import (
    Checks,
    binomial_cumulants,
    log_entropy_tail,
    log_square_tail,
    log_tail,
    log_weight,
    worst,
)
from stirred.noise import TestSource, discrete_gaussian, gaussian_cdf, gaussian_mass

VARIANCES = [Fraction(1, 20), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(40)]


def weights(variance: float, reach: int = 400) -> dict[int, float]:
    raw = {k: math.exp(-k * k / (2 * variance)) for k in range(-reach, reach + 1)}
    whole = math.fsum(raw.values())
    return {k: w / whole for k, w in raw.items()}


def convolved(law: dict[int, float], times: int) -> dict[int, float]:
    out = {0: 1.0}
    for _ in range(times):
        new: dict[int, float] = {}
        for a, p in out.items():
            for b, q in law.items():
                if p * q > 1e-40:
                    new[a + b] = new.get(a + b, 0.0) + p * q
        out = new
    return out


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_weight_is_the_sum(variance: Fraction) -> None:
    direct = math.log(math.fsum(math.exp(-k * k / (2 * float(variance))) for k in range(-200, 201)))
    assert math.isclose(float(log_weight(np.array([float(variance)]))[0]), direct, abs_tol=1e-13)


@pytest.mark.parametrize("variance", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("count", [1, 3])
def test_the_tail_of_the_squares_bounds_the_convolution(variance: Fraction, count: int) -> None:
    """At every sum: twice the true tail on its side, and not hopelessly above it."""
    squares: dict[int, float] = {}
    for k, mass in weights(float(variance), 40).items():
        squares[k * k] = squares.get(k * k, 0.0) + mass
    law = convolved({s: m for s, m in squares.items() if m > 1e-18}, count)
    sums = np.array(sorted(s for s, m in law.items() if m > 1e-15), dtype=np.float64)
    groups = np.arange(sums.size)
    v = float(variance)
    found = log_square_tail(sums / v, groups, np.full(sums.size, float(count)), np.full(sums.size, v))
    for total, bound in zip(sums.tolist(), found.tolist(), strict=True):
        upper = math.fsum(m for s, m in law.items() if s >= total)
        lower = math.fsum(m for s, m in law.items() if s <= total)
        assert math.log(min(2 * min(upper, lower), 1)) <= bound + 1e-9
    assert found.min() < -20


def test_no_noise_at_all_has_exactly_the_probability_of_zeros() -> None:
    for variance, count in ((Fraction(1, 3), 7), (Fraction(9), 50)):
        found = log_square_tail(
            np.zeros(1), np.zeros(1, dtype=np.int64), np.array([float(count)]), np.array([float(variance)])
        )
        exact = count * math.log(gaussian_mass(variance, 0)) + math.log(2)
        assert math.isclose(found[0], exact, rel_tol=1e-6)


def test_the_tail_of_coins_bounds_the_binomial_sum_and_the_hypergeometric_one() -> None:
    n, chance = 30, 0.3
    exact = [math.comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
    drawn = [math.comb(30, k) * math.comb(70, n - k) / math.comb(100, n) for k in range(n + 1)]
    sums, groups = np.arange(n + 1, dtype=np.float64), np.arange(n + 1)
    found = log_tail(sums, groups, binomial_cumulants(np.full(n + 1, float(n)), np.full(n + 1, chance)))
    for law in (exact, drawn):
        for k in range(n + 1):
            tail = min(math.fsum(law[k:]), math.fsum(law[: k + 1]))
            assert math.log(min(2 * tail, 1)) <= found[k] + 1e-9
    certain = log_tail(
        np.array([5.0]), np.zeros(1, dtype=np.int64), binomial_cumulants(np.array([5.0]), np.ones(1))
    )
    assert certain[0] > -1e-9


def test_signs_and_shapes_have_their_tails() -> None:
    heads = np.array([0, 3, 5, 10])
    found = log_fair_tail(heads, np.full(4, 10))
    exact = [math.fsum(math.comb(10, k) for k in range(min(h, 10 - h) + 1)) / 2**10 for h in heads.tolist()]
    assert np.allclose(found, np.minimum(np.log(2 * np.array(exact)), 0), atol=1e-8)
    assert log_entropy_tail(np.array([50.0, 50.0]), np.array([0.5, 0.5])) == 0
    assert log_entropy_tail(np.array([90.0, 10.0]), np.array([0.5, 0.5])) < -20


@pytest.mark.parametrize("variance", [*VARIANCES, Fraction(10**9)])
def test_cells_have_the_enclosed_masses(variance: Fraction) -> None:
    edges = np.array([0, 1, 2, 7])
    exact = [2 * float(gaussian_cdf(variance, int(edge))) - 1 for edge in edges]
    assert np.allclose(cumulated(float(variance), edges), exact, rtol=1e-10)


def test_all_tests_share_alpha() -> None:
    quiet = Checks("quiet", np.log(np.array([0.5, 0.01])))
    assert worst([quiet], 0.019) is None
    failed = worst([quiet, Checks("empty", np.array([]))], 0.021)
    assert failed is not None and failed[0].what == "quiet"
    assert worst([quiet, Checks("other", np.zeros(1))], 0.021) is None
    assert worst([], 0.5) is None


# Sabotages


def families(seed: int = 1, draws: int = 60) -> list[Family]:
    """Two levels with three queries each, of one node and of eight."""
    out = []
    for number, (level, nodes) in enumerate((("county", 1), ("block", 8))):
        queries = {"total": (1, Fraction(9)), "sex": (2, Fraction(1, 2)), "detailed": (6, Fraction(4))}
        for place, (query, (cells, variance)) in enumerate(queries.items()):
            stream = TestSource(seed).child(number, place)
            made = discrete_gaussian(stream, variance, draws * nodes * cells).reshape(draws, nodes, cells)
            out.append(Family(("person", level, query), variance, list(made)))
    return out


def changed(at: list[int], change: Callable[[Any], Any], seed: int = 1) -> list[Family]:
    return [
        replace(f, draws=[change(d) for d in f.draws]) if i in at else f for i, f in enumerate(families(seed))
    ]


@pytest.mark.parametrize("family", range(6))
def test_no_noise_in_one_query_of_one_level_is_seen(family: int) -> None:
    found = noise_audit(changed([family], np.zeros_like))
    assert found.violated and "too small" in found.sentence


def test_half_the_variance_at_one_level_is_seen() -> None:
    honest = families()
    for level in ("county", "block"):
        made = [
            replace(f, draws=_noise(f.variance / 2, f, seed)) if f.place[1] == level else f
            for seed, f in enumerate(honest)
        ]
        assert noise_audit(made).violated, level


def _noise(variance: Fraction, family: Family, seed: int) -> list[Any]:
    shape = (len(family.draws), *family.draws[0].shape)
    return list(discrete_gaussian(TestSource(99 + seed), variance, math.prod(shape)).reshape(shape))


@pytest.mark.parametrize("family", range(6))
def test_absolute_values_are_seen(family: int) -> None:
    found = noise_audit(changed([family], np.abs))
    assert found.violated


def test_the_same_noise_in_two_levels_is_seen() -> None:
    made = families()
    made[0] = replace(made[0], draws=[d[:1] for d in made[3].draws])
    found = noise_audit(made)
    assert found.violated and "share" in found.sentence


def test_one_stream_for_two_variances_is_seen() -> None:
    made = families()
    for number in (2, 5):
        family = made[number]
        shape = (len(family.draws), *family.draws[0].shape)
        again = [
            discrete_gaussian(TestSource(7).child(i), family.variance, math.prod(shape[1:])).reshape(
                shape[1:]
            )
            for i in range(shape[0])
        ]
        made[number] = replace(family, draws=again)
    assert noise_audit(made).violated


@pytest.mark.parametrize(
    "repeat",
    [lambda d: np.repeat(d[:1], d.shape[0], axis=0), lambda d: np.repeat(d[:, :1], d.shape[1], axis=1)],
)
def test_noise_that_is_used_again_for_nodes_or_cells_is_seen(repeat: Callable[[Any], Any]) -> None:
    assert noise_audit(changed([5], repeat)).violated


def test_noise_that_is_the_same_in_every_draw_is_seen() -> None:
    made = families()
    made[5] = replace(made[5], draws=[made[5].draws[0]] * len(made[5].draws))
    assert noise_audit(made).violated


def test_noise_of_the_right_variance_and_another_shape_is_seen() -> None:
    def two_points(draw: Any) -> Any:
        return np.where(draw >= 0, 2, -2) * np.where(np.arange(draw.size).reshape(draw.shape) % 2, 1, -1)

    assert noise_audit(changed([5], two_points)).violated


def test_honest_noise_is_not_refuted_and_an_empty_design_is_vacuous() -> None:
    for seed in range(5):
        found = noise_audit(families(seed))
        assert found.verdict is Verdict.NOT_REFUTED
        assert found.details == {"families": 6, "alpha": 1e-6}
    assert noise_audit([]).verdict is Verdict.VACUOUS and noise_problem([]) is None


def test_false_alarms_are_rarer_than_alpha() -> None:
    alarms = sum(noise_problem(families(seed, draws=8), alpha=0.2) is not None for seed in range(20))
    assert alarms <= 4
