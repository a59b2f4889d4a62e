"""Exhibits: noise that does not have the law that is claimed for it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.audit import Finding, conformity_audit
from stirred.museum.claims import REPLACE_IN_PLACE, Data, Law, claim, enumerated, gathered, geometric, pushed
from stirred.museum.exhibit import Examine, Exhibit
from stirred.noise import Source, bernoulli, gaussian_cdf, gaussian_mass, integers
from stirred.spec import Budget, Exact, NormalisedRenyi

DRAWS = 40_000
VARIANCE = Fraction(2)
CUT = 6
UNIFORMS = 1 << 10
SIGNIFICANT_BITS = 2
FAR = 8
COIN = Fraction(2, 3)
RATIO = Fraction(1, 4)
LARGEST_NOISE = 3

_ONE_COUNT = claim(Budget.epsilon("ln(2)"))
_TWO_COUNTS = claim(Budget.epsilon("2*ln(2)"))
_NUMBER = claim(Budget.epsilon("ln(2)"), REPLACE_IN_PLACE)
_FAR_NUMBER = claim(Budget.epsilon(Exact.log(2) * FAR), REPLACE_IN_PLACE)
_GAUSSIAN = claim(Budget.zcdp(rho_squared=1 / (2 * VARIANCE)), REPLACE_IN_PLACE, NormalisedRenyi())


def two_counts(first: int, second: int, *, one_draw: bool) -> Law:
    """Two noisy counts between -3 and 4, with one draw of noise for both or with two."""
    noise = geometric(8)
    draws = (
        [(z, z, p) for z, p in noise.items()]
        if one_draw
        else [(z, w, p * q) for (z, p), (w, q) in itertools.product(noise.items(), repeat=2)]
    )
    return gathered(((_within(first + z, -3, 4), _within(second + w, -3, 4)), p) for z, w, p in draws)


def joined_histogram(data: Data, *, broken: bool) -> Law:
    """Counts of two declared keys; those without a record get their noise in a join."""
    first, second = data.count("a"), data.count("b")
    both_missing = first == second == 0
    return two_counts(first, second, one_draw=broken and both_missing)


def two_releases(data: Data, *, broken: bool) -> Law:
    """The number of records, and of those from the city: two mechanisms, perhaps with one seed."""
    return two_counts(len(data), data.count("city"), one_draw=broken)


def porous_laplace(data: Data, *, broken: bool) -> Law:
    """A number with Laplace noise by inversion of every uniform of a small generator, or on the integers."""
    (x,) = data
    if not broken:
        return pushed(geometric(8), lambda z: _within(x + z, -3, 4))
    centred = ((j + 0.5) / UNIFORMS - 0.5 for j in range(UNIFORMS))
    noise = (-math.copysign(math.log1p(-2 * abs(u)), u) / math.log(2) for u in centred)
    return gathered((x + z, Fraction(1, UNIFORMS)) for z in noise)


def short_floats(data: Data, *, broken: bool) -> Law:
    """A number plus noise, either of which may be rounded to a float of two significant bits.

    To round the sum is post-processing. To round the noise leaves small outputs to small numbers only.
    """
    (x,) = data
    noise = geometric(2 * FAR)
    if broken:
        return pushed(noise, lambda z: _within(x + rounded(z), -3, FAR + 3))
    return pushed(noise, lambda z: _within(rounded(x + z), -3, FAR + 3))


def rounded(number: int) -> int:
    """The nearest number of two significant bits, ties to even."""
    unit = 1 << max(0, abs(number).bit_length() - SIGNIFICANT_BITS)
    return round(Fraction(number, unit)) * unit


def tabled_gaussian(data: Data, *, broken: bool) -> Law:
    """A number with discrete Gaussian noise: from a table that was cut, or clamped after the addition.

    Masses are rationals within a relative 2^-64 of the true ones; the middle takes what is left.
    """
    (x,) = data
    masses = {z: gaussian_mass(VARIANCE, z).low for z in range(-CUT, CUT + 1)}
    if broken:
        whole = sum(masses.values())
        return {x + z: mass / whole for z, mass in masses.items()}
    inner = {x + z: mass for z, mass in masses.items() if abs(x + z) < CUT - 1}
    ends = {side * (CUT - 1): gaussian_cdf(VARIANCE, side * x - CUT + 1).low for side in (-1, 1)}
    law = inner | ends
    return law | {x: law[x] + 1 - sum(law.values())}


def coin(data: Data, count: int, source: Source, *, broken: bool) -> NDArray[Any]:
    """A biased coin; a faulty division leaves three bits of its bias."""
    bias = Fraction(math.floor(COIN * 8), 8) if broken else COIN
    return bernoulli(source, bias, count).astype(np.int64)


def integer_noise(data: Data, count: int, source: Source, *, broken: bool) -> NDArray[Any]:
    """Two-sided geometric noise, clamped: by rounding Laplace noise, or by exact inversion."""
    if broken:
        uniforms = (source.words(count).astype(np.float64) + 0.5) / 2.0**64 - 0.5
        laplace = np.copysign(np.log1p(-2 * np.abs(uniforms)), uniforms) / math.log(RATIO)
        return np.asarray(np.clip(np.rint(laplace), -LARGEST_NOISE, LARGEST_NOISE), dtype=np.int64)
    law = geometric(LARGEST_NOISE, RATIO)
    whole = math.lcm(*(mass.denominator for mass in law.values()))
    outcomes = sorted(law)
    ends = np.cumsum([int(law[z] * whole) for z in outcomes])
    places = np.searchsorted(ends, integers(source, whole, count).astype(np.int64), side="right")
    return np.asarray(np.take(outcomes, places))


def _within(value: int, low: int, high: int) -> int:
    return min(max(value, low), high)


def _conforming(sample: Any, law: Mapping[Any, Fraction], subject: str) -> Examine:
    def examine(broken: bool, source: Source) -> Finding:
        def drawn(data: Data, count: int, source: Source) -> NDArray[Any]:
            return np.asarray(sample(data, count, source, broken=broken))

        return conformity_audit(drawn, (), law, draws=DRAWS, source=source, subject=subject)

    return examine


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "broadcast-noise",
        "Keys without records get one draw of noise between them, and so betray that they are empty.",
        "OpenDP issue 2344",
        enumerated(joined_histogram, ((), ("a",), ("b",)), _ONE_COUNT, "a histogram with public keys"),
    ),
    Exhibit(
        "biased-sampler",
        "A dependency divides wrongly, and every coin that the sampler throws is biased.",
        "OpenDP issue 2638",
        _conforming(coin, {1: COIN, 0: 1 - COIN}, "a coin"),
        random=True,
    ),
    Exhibit(
        "float-noise",
        "Laplace noise from floating-point uniforms has holes, and they lie elsewhere for other data.",
        "Mironov 2012; diffprivlib issues 19 and 94",
        enumerated(porous_laplace, ((0,), (1,)), _NUMBER, "a number with Laplace noise"),
    ),
    Exhibit(
        "float-addition",
        "Large noise is rounded more coarsely than small noise, before it is added.",
        "Haney et al. 2022; Opacus issue 616, SmartNoise Core issue 242",
        enumerated(short_floats, ((0,), (FAR,)), _FAR_NUMBER, "a number plus noise in floats"),
    ),
    Exhibit(
        "rounded-laplace",
        "Rounded Laplace noise is sold as geometric noise: as private, but another law with more spread.",
        "WFA cardinality estimation framework, pull request 97",
        _conforming(integer_noise, geometric(LARGEST_NOISE, RATIO), "geometric noise"),
        random=True,
    ),
    Exhibit(
        "truncated-gaussian",
        "Discrete Gaussian noise from a table that ends somewhere: the ends tell the data.",
        "our own",
        enumerated(tabled_gaussian, ((0,), (1,)), _GAUSSIAN, "a number with Gaussian noise"),
    ),
    Exhibit(
        "seed-reuse",
        "Two mechanisms start from one seed: the difference of their releases has no noise.",
        "IBM diffprivlib issues 27 and 31",
        enumerated(two_releases, ((), ("city",), ("farm",)), _TWO_COUNTS, "two releases"),
    ),
)
