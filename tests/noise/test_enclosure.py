"""Enclosures of masses, distribution functions and variances against mpmath at 400 bits."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import pytest

from stirred.errors import InputError, NotComputable
from stirred.noise import (
    Enclosure,
    enclosure,
    gaussian_cdf,
    gaussian_mass,
    gaussian_variance,
    laplace_cdf,
    laplace_mass,
    laplace_variance,
)

PARAMETERS = [Fraction(1, 1000), Fraction(1, 7), Fraction(1), Fraction(5, 3), Fraction(2**200 + 1, 2**197)]


def real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def encloses(found: Enclosure, value: mpmath.mpf, bits: int) -> bool:
    narrow = (found.high - found.low) * 2**bits <= found.high
    slack = abs(value) * mpmath.mpf(2) ** -380
    return narrow and real(found.low) <= value + slack and value - slack <= real(found.high)


def summed(weight: Callable[[int], mpmath.mpf]) -> dict[int, mpmath.mpf]:
    """Normalised masses on -200..200, beyond which the parameters here leave less than 2^-400."""
    weights = {k: weight(k) for k in range(-400, 401)}
    total = mpmath.fsum(weights.values())
    return {k: w / total for k, w in weights.items()}


@pytest.mark.parametrize("bits", [20, 64, 200])
@pytest.mark.parametrize("variance", PARAMETERS)
def test_the_gaussian_law_agrees_with_mpmath(variance: Fraction, bits: int) -> None:
    with mpmath.workprec(400):
        masses = summed(lambda k: mpmath.exp(-k * k / (2 * real(variance))))
        for k in (0, 1, -1, 3, -12):
            assert encloses(gaussian_mass(variance, k, bits), masses[k], bits)
            below = mpmath.fsum(m for j, m in masses.items() if j <= k)
            assert encloses(gaussian_cdf(variance, k, bits), below, bits)
        true = mpmath.fsum(k * k * m for k, m in masses.items())
        assert encloses(gaussian_variance(variance, bits), true, bits)
        assert true < real(variance)


@pytest.mark.parametrize("scale", PARAMETERS[:-1])
def test_the_laplace_law_agrees_with_mpmath(scale: Fraction) -> None:
    with mpmath.workprec(400):
        masses = summed(lambda k: mpmath.exp(-abs(k) / real(scale)))
        for k in (0, 1, -1, 3, -12):
            assert encloses(laplace_mass(scale, k), masses[k], 64)
            below = mpmath.fsum(m for j, m in masses.items() if j <= k)
            assert encloses(laplace_cdf(scale, k), below, 64)
        true = mpmath.fsum(k * k * m for k, m in masses.items())
        assert encloses(laplace_variance(scale), true, 64)


@pytest.mark.parametrize("k", [-1, -700, -3_000, -20_000, 0, 999])
def test_euler_maclaurin_agrees_with_the_sum_term_by_term(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    variance = Fraction(10**6)
    quick = gaussian_cdf(variance, k, 100)
    monkeypatch.setattr(enclosure, "_euler_maclaurin", lambda *_: pytest.fail("not term by term"))
    monkeypatch.setattr(enclosure, "_LARGEST_SUM", 1 << 40)
    slow = gaussian_cdf(variance, k, 100)
    assert max(quick.low, slow.low) <= min(quick.high, slow.high)


def test_the_sum_is_taken_by_euler_maclaurin_when_it_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    whole = enclosure._euler_maclaurin
    monkeypatch.setattr(enclosure, "_euler_maclaurin", lambda *a: calls.append(1) or whole(*a))
    gaussian_cdf(Fraction(10**6), -1)
    assert calls


@pytest.mark.parametrize("parameter", [Fraction(1, 3), Fraction(40), Fraction(10**12)])
def test_the_laws_are_normalised_and_symmetric(parameter: Fraction) -> None:
    for mass, cdf in ((gaussian_mass, gaussian_cdf), (laplace_mass, laplace_cdf)):
        zero, below, up_to = mass(parameter, 0), cdf(parameter, -1), cdf(parameter, 0)
        assert 2 * below.low + zero.low <= 1 <= 2 * below.high + zero.high
        assert below.low + zero.low <= up_to.high and up_to.low <= below.high + zero.high
        assert mass(parameter, 5) == mass(parameter, -5)
        step = cdf(parameter, -4).high - cdf(parameter, -5).low
        assert mass(parameter, -4).low <= step


def test_the_variance_of_wide_laws() -> None:
    found = gaussian_variance(Fraction(10**12))
    assert found.low <= 10**12 <= found.high
    assert 0 < 1 - float(gaussian_variance(Fraction(1))) < 3e-7
    assert float(laplace_variance(Fraction(10**6))) == pytest.approx(2e12 - 1 / 6, rel=1e-15)


def test_far_tails_are_refused_rather_than_guessed() -> None:
    with pytest.raises(NotComputable):
        gaussian_cdf(Fraction(10**12), -(10**10))
    with pytest.raises(NotComputable):
        gaussian_mass(Fraction(1), 10**9)
    with pytest.raises(NotComputable):
        laplace_variance(Fraction(1, 10**30))
    assert 0 < gaussian_cdf(Fraction(10**12), -(10**8)).low < Fraction(1, 2**7000)


@pytest.mark.parametrize("function", [gaussian_mass, gaussian_cdf, laplace_mass, laplace_cdf])
@pytest.mark.parametrize("bad", [0.5, 0, -1, True])
def test_inexact_parameters_are_refused(function: Callable[[object, int], Enclosure], bad: object) -> None:
    with pytest.raises(InputError):
        function(bad, 0)


@pytest.mark.parametrize("function", [gaussian_variance, laplace_variance])
@pytest.mark.parametrize("bad", [0.5, 0, -1, True])
def test_inexact_parameters_have_no_variance(function: Callable[[object], Enclosure], bad: object) -> None:
    with pytest.raises(InputError):
        function(bad)
