"""Thresholds against another implementation, and the lazy inversion by exhaustive enumeration."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.digits import enumerated

from stirred.errors import InputError
from stirred.noise import gaussian_mass, laplace_mass
from stirred.noise.law import (
    Law,
    gaussian_law,
    invert,
    laplace_law,
    locate,
    partial_sums,
    thresholds,
)

CENSUS = Fraction(114921, 293764) * Fraction(4099 * 4097, 165 * 5)
LAWS = [
    gaussian_law(Fraction(1)),
    gaussian_law(Fraction(1, 1000)),
    gaussian_law(Fraction(22, 7)),
    gaussian_law(Fraction(10**4)),
    gaussian_law(CENSUS),
    laplace_law(Fraction(1)),
    laplace_law(Fraction(1, 50)),
    laplace_law(Fraction(355, 113)),
    gaussian_law(Fraction(10**6)).coarse(64),
    laplace_law(Fraction(1000)).coarse(64),
]


@pytest.mark.parametrize("bits", [2, 10, 60])
@pytest.mark.parametrize("law", [LAWS[0], *LAWS[2:]])
def test_the_whole_sum_is_enclosed_with_its_remainder(law: Law, bits: int) -> None:
    from flint import ctx

    with ctx.workprec(200):
        _, total = partial_sums(law, bits)
        mantissas = [end.man_exp() for end in (total.lower(), total.upper())]
    with mpmath.workprec(200):
        low, high = (mpmath.ldexp(int(m), int(e)) for m, e in mantissas)
        weights = [real(law.at_zero)]
        while weights[-1] > mpmath.mpf(2) ** -120:
            weights.append(mpmath.exp(-real(law.exponent(len(weights)))))
        true = mpmath.fsum(weights)
        assert low < true < high
        assert high - low < mpmath.mpf(2) ** -bits


def real(value: Fraction) -> mpmath.mpf:
    return mpmath.mpf(value.numerator) / value.denominator


def cumulated(law: Law, count: int) -> list[mpmath.mpf]:
    """P(|X| <= k) at the working precision of mpmath, summing far beyond it."""
    weights = [real(law.at_zero)]
    while len(weights) < count + 2 or weights[-1] > mpmath.mpf(2) ** -(mpmath.mp.prec + 50):
        weights.append(mpmath.exp(-real(law.exponent(len(weights)))))
    total = mpmath.fsum(weights)
    sums, partial = [], mpmath.mpf(0)
    for weight in weights[:count]:
        partial += weight
        sums.append(partial / total)
    return sums


@pytest.mark.parametrize("law", LAWS)
def test_thresholds_agree_with_mpmath_at_400_bits_or_more(law: Law) -> None:
    found = thresholds(law, 64)
    with mpmath.workprec(400 if law != LAWS[1] else 1000):
        expected = [int(mpmath.floor(c * 2**64)) for c in cumulated(law, len(found))]
    assert found == expected
    assert found[-1] == 2**64 - 1
    assert all(level < 2**64 - 1 for level in found[:-1])


@pytest.mark.parametrize("law", LAWS[:3])
@pytest.mark.parametrize("guard", [0, 1, 5])
def test_too_little_precision_is_noticed_and_raised(law: Law, guard: int) -> None:
    assert thresholds(law, 64, guard) == thresholds(law, 64, 300)


def test_another_working_precision_of_the_process_does_not_matter() -> None:
    from flint import ctx

    before = thresholds(LAWS[2], 64)
    with ctx.workprec(2):
        assert thresholds(LAWS[2], 64) == before
        assert ctx.prec == 2


@pytest.mark.parametrize(("bits", "depth"), [(3, 10), (1, 24), (8, 4)])
@pytest.mark.parametrize("name", ["gaussian", "laplace"])
@pytest.mark.parametrize("parameter", [Fraction(1), Fraction(5, 2), Fraction(1, 9)])
def test_inversion_with_small_digits_has_exactly_the_law(
    name: str, parameter: Fraction, bits: int, depth: int
) -> None:
    law, mass = (
        (gaussian_law(parameter), gaussian_mass)
        if name == "gaussian"
        else (laplace_law(parameter), laplace_mass)
    )
    decided, undecided = enumerated(lambda first, more: invert(law, first, more, bits), bits, depth)
    left = Fraction(undecided, 2 ** (bits * depth))
    assert left < Fraction(1, 2**18)
    assert sum(decided.values()) + left == 1
    for k in range(max(decided) + 2):
        both = 1 if k == 0 else 2
        exact = mass(parameter, k)
        assert decided.get(k, 0) <= both * exact.high
        assert both * exact.low <= decided.get(k, 0) + left


@pytest.mark.parametrize("law", LAWS[:8])
def test_longer_thresholds_extend_shorter_ones(law: Law) -> None:
    short, long = thresholds(law, 64), thresholds(law, 128)
    assert [level >> 64 for level in long[: len(short)]] == short
    assert len(long) >= len(short)


def test_locating_digits_on_both_sides_of_a_threshold() -> None:
    law = gaussian_law(Fraction(1))
    level = thresholds(law, 64)[1]
    assert locate(law, level - 1, 64) == 1
    assert locate(law, level, 64) is None
    assert locate(law, level + 1, 64) == 2
    assert locate(law, 2**64 - 1, 64) is None


rationals = st.fractions(min_value=Fraction(1, 50), max_value=50, max_denominator=10**6)


@settings(max_examples=40, deadline=None)
@given(rationals, st.integers(0, 10**9), st.integers(0, 12), st.booleans())
def test_block_then_member_has_the_weight_of_the_member(
    parameter: Fraction, k: int, shift: int, gaussian: bool
) -> None:
    law = gaussian_law(parameter) if gaussian else laplace_law(parameter)
    block = k >> shift
    first = block << shift
    assert law.coarse(1 << shift).exponent(block) + law.rise(first, k) == law.exponent(k)
    assert law.rise(first, k) >= 0


@settings(max_examples=25, deadline=None)
@given(rationals, st.booleans())
def test_thresholds_rise_and_end_at_the_top(parameter: Fraction, gaussian: bool) -> None:
    found = thresholds(gaussian_law(parameter) if gaussian else laplace_law(parameter), 64)
    assert all(a <= b for a, b in pairwise(found))
    assert [k for k, level in enumerate(found) if level == 2**64 - 1] == [len(found) - 1]


@pytest.mark.parametrize("bad", [0.5, 1.0, 0, -1, Fraction(-1, 2), True, "1", None, 2**200])
@pytest.mark.parametrize("make", [gaussian_law, laplace_law])
def test_parameters_are_exact_and_positive(make: Callable[[object], Law], bad: object) -> None:
    with pytest.raises(InputError) as refused:
        make(bad)
    assert refused.value.field in ("variance", "scale")
