"""Bugs as the statistical audit sees them: draws of a closed box, no code and no law.

What the exact audits know for certain is found again from outside where the loss is small enough; this is
where the false alarms of the statistics are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.audit import Finding, statistical_audit
from stirred.museum.claims import Data, claim
from stirred.museum.exhibit import Examine, Exhibit
from stirred.noise import Source, discrete_gaussian, discrete_laplace
from stirred.spec import Budget, NormalisedRenyi, Specification
from stirred.swap import PermutationSwap

DRAWS = 20_000
EPSILON = Fraction(1)
VARIANCE = Fraction(2)
PAIR: tuple[Data, Data] = ((), (("a",),))
FOUR = pl.DataFrame({"h": [1, 2, 3, 4], "s": [1, 2, 3, 4]})
EXCHANGED = FOUR.with_columns(s=pl.Series([2, 1, 3, 4]))


class Draw(Protocol):
    """Independent outputs, broken or not."""

    def __call__(self, data: Any, count: int, source: Source, *, broken: bool) -> Any:
        """So many outputs."""


def understated(data: Data, count: int, source: Source, *, broken: bool) -> NDArray[Any]:
    """A count with discrete Laplace noise; the noise of one and a half times the budget."""
    epsilon = EPSILON * Fraction(3, 2) if broken else EPSILON
    return len(data) + discrete_laplace(source, 1 / epsilon, count)


def answered_twice(data: Data, count: int, source: Source, *, broken: bool) -> NDArray[Any]:
    """A count that is answered twice: with the whole budget each time, or with half of it."""
    epsilon = EPSILON if broken else EPSILON / 2
    columns = [len(data) + discrete_laplace(source.child(i), 1 / epsilon, count) for i in range(2)]
    return np.stack(columns, axis=1)


def porous(data: Data, count: int, source: Source, *, broken: bool) -> NDArray[Any]:
    """A count with Laplace noise from the logarithm of a float, or on the integers."""
    if not broken:
        return len(data) + discrete_laplace(source, 1 / EPSILON, count)
    uniforms = (source.words(count) >> np.uint64(11)).astype(np.float64) / 2.0**53
    signs = np.where(source.words(count) & np.uint64(1), 1.0, -1.0)
    return len(data) + signs * np.log1p(-uniforms) / float(EPSILON)


def understated_variance(data: Data, count: int, source: Source, *, broken: bool) -> NDArray[Any]:
    """A count with discrete Gaussian noise of the stated variance, or of a third of it."""
    variance = VARIANCE / 3 if broken else VARIANCE
    return len(data) + discrete_gaussian(source, variance, count)


def seen_key(data: Data, count: int, source: Source, *, broken: bool) -> list[str]:
    """Which key is reported: the one that occurs, or the one of a declared list with noise on its count."""
    if broken:
        return ["a" if data else "none"] * count
    kept = len(data) + discrete_laplace(source, 1 / EPSILON, count) >= 1
    return ["a" if one else "none" for one in kept.tolist()]


def rate(data: pl.DataFrame, count: int, source: Source, *, broken: bool) -> Any:
    """Four different records, swapped at the stated rate or at a smaller one."""
    stated = Fraction(1, 20) if broken else Fraction(1, 2)
    swap = PermutationSwap(match=(), swap=("s",), rate=stated)
    return swap.sample(swap.prepare(data), count, source)


def _sampled(draw: Draw, pair: Sequence[Any], promised: Specification, subject: str) -> Examine:
    def examine(broken: bool, source: Source) -> Finding:
        def sample(data: Any, count: int, stream: Source) -> Any:
            return draw(data, count, stream, broken=broken)

        pairs = [(pair[0], pair[1])]
        return statistical_audit(sample, pairs, promised, draws=DRAWS, source=source, subject=subject)

    return examine


_PURE = claim(Budget.epsilon(EPSILON))
_ZCDP = claim(Budget.zcdp(rho_squared=1 / (2 * VARIANCE)), measure=NormalisedRenyi())
_HALF = PermutationSwap(match=(), swap=("s",), rate=Fraction(1, 2))
_SWAP = _HALF.guarantee(_HALF.prepare(FOUR))

EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "black-box-scale",
        "Laplace noise for one and a half times the claimed budget.",
        "our own",
        _sampled(understated, PAIR, _PURE, "a noisy count"),
        random=True,
    ),
    Exhibit(
        "black-box-double-spending",
        "Two answers, each with the whole budget.",
        "dp-recorder, test_double_spending",
        _sampled(answered_twice, PAIR, _PURE, "two noisy counts"),
        random=True,
    ),
    Exhibit(
        "black-box-float-noise",
        "Laplace noise from the logarithm of a float leaves its marks in the lowest bits.",
        "Mironov 2012; diffprivlib issues 19 and 94",
        _sampled(porous, PAIR, _PURE, "a noisy count"),
        random=True,
    ),
    Exhibit(
        "black-box-variance",
        "Gaussian noise with a third of the variance that the claimed rho needs.",
        "our own",
        _sampled(understated_variance, PAIR, _ZCDP, "a noisy count"),
        random=True,
    ),
    Exhibit(
        "black-box-key",
        "The keys of the answer are those that occur in the data.",
        "dp-recorder, test_domain_inference",
        _sampled(seen_key, PAIR, _PURE, "the keys of an answer"),
        random=True,
    ),
    Exhibit(
        "black-box-swap-rate",
        "Records are swapped at a tenth of the stated rate.",
        "our own",
        _sampled(rate, (FOUR, EXCHANGED), _SWAP, "swapped records"),
        random=True,
    ),
)
