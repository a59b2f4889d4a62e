"""Protection loss of the Permutation Swapping Algorithm, as functions of stratum size and swap rate.

Reference
    Theorems 1, 3 and 4 of Bailie, Gong and Meng. All losses are nominal: relative to the swapping
    invariants. The largest stratum b is a function of those invariants, so it may be published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

from stirred.errors import InputError, Refusal
from stirred.spec.exact import INFINITY, ZERO, Exact, as_fraction
from stirred.spec.psa import swapping_loss

EXACT_DERANGEMENTS = 400


def least_loss(largest_stratum: int) -> Exact:
    """The least loss that any swap rate attains: ln(b+1)/2.

    Examples
    --------
    >>> least_loss(10).rounded(2)
    '1.20'
    """
    if largest_stratum < 2:
        return ZERO
    return Exact.log(largest_stratum + 1, 2)


def least_loss_rate(largest_stratum: int) -> float:
    """The swap rate at which the least loss is attained: sqrt(b+1)/(sqrt(b+1)+1)."""
    root = math.sqrt(largest_stratum + 1)
    return root / (root + 1)


def rates_for(largest_stratum: int, epsilon: object) -> tuple[Fraction, Fraction]:
    """Both swap rates whose loss is at most epsilon and nearest to it: the low one and the high one.

    Rates are rounded towards each other at twelve decimals, so that their loss does not exceed epsilon.
    A budget below the least loss is refused.
    """
    target = Exact.of(epsilon)
    if target < least_loss(largest_stratum):
        raise Refusal(
            "no swap rate attains this loss",
            field="epsilon",
            expected=f"at least ln(b+1)/2 = {least_loss(largest_stratum).rounded(4, up=True)}",
            hint="Add matching variables (and publish more exactly), or accept a larger budget.",
        )
    if largest_stratum < 2 or target.is_infinite:
        return Fraction(0), Fraction(1)
    value = float(target)
    low = _inward(largest_stratum, target, (largest_stratum + 1) / (largest_stratum + 1 + math.exp(value)), 1)
    high = _inward(largest_stratum, target, 1 / (1 + math.exp(-value)), -1)
    return low, high


def _inward(size: int, target: Exact, near: float, direction: int) -> Fraction:
    """A rate of twelve decimals near a float, moved inward until its loss is within the target."""
    step = Fraction(direction, 10**12)
    rate = Fraction(round(near * 10**12), 10**12) - 2 * step
    while swapping_loss(size, rate) > target:
        rate += step
    return rate


def swap_probability(stratum: int, rate: object) -> Fraction:
    """Probability that a record of a stratum is selected and deranged.

    The paper omits the reselection when exactly one record is selected; with it the probability is
    p[1 - (1-p)^(n-1)] / [1 - n p (1-p)^(n-1)].
    """
    p = as_fraction(rate)
    if stratum < 2:
        return Fraction(0)
    others = (1 - p) ** (stratum - 1)
    return p * (1 - others) / (1 - stratum * p * others)


def lower_bound(largest_stratum: int, rate: object) -> Exact:
    """Theorem 3: in some universe the loss is at least this, whatever the analysis."""
    p = as_fraction(rate)
    if largest_stratum < 2:
        return ZERO
    if p in (0, 1):
        return INFINITY
    odds = p / (1 - p)
    bounds = [Exact.log(odds)]
    if largest_stratum >= 4:
        bounds.append(Exact.log(derangement_ratio(largest_stratum), 2) + Exact.log(1 / odds))
    return max(ZERO, *bounds)


def gap(largest_stratum: int) -> float:
    """f(b) of Theorem 4: how far Theorem 1 may lie above the best possible loss; for b of at least 4."""
    if largest_stratum < 4:
        raise InputError(
            "the gap is defined for strata of at least four records",
            field="largest_stratum",
            expected="an integer of at least 4 (there are no derangements of one record)",
            hint="For smaller strata use the tighter loss, which is exact.",
        )
    b = largest_stratum
    above = 1 + math.e / 2 * math.exp(-math.lgamma(b - 1))
    below = 1 - math.e / 2 * math.exp(-math.lgamma(b + 1))
    return 0.5 * math.log((b + 1) ** 2 / (b * (b - 1)) * above / below)


def tighter_loss(largest_stratum: int, rate: object) -> Exact:
    """A smaller loss for one common rate: enumerated on small universes, not proved.

    For b of at least 4 it is max(ln o, ln[d(b)/d(b-2)]/2 - ln o); b = 2 gives |ln o|; b = 3 gives
    max(ln o, ln(2)/3 - ln o, (ln 2 - ln o)/2), which is exact where all records differ.
    """
    p = as_fraction(rate)
    if largest_stratum < 2:
        return ZERO
    if p in (0, 1):
        return INFINITY
    odds = Exact.log(p / (1 - p))
    if largest_stratum == 2:
        return max(odds, -odds)
    if largest_stratum == 3:
        two = Exact.log(2)
        return max(odds, two / 3 - odds, (two - odds) / 2)
    return max(odds, Exact.log(derangement_ratio(largest_stratum), 2) - odds)


def variable_rate_loss(strata: Iterable[tuple[int, object, object]]) -> Exact:
    """Loss with rates that vary by record: the worst stratum's own size and extreme rates.

    Parameters
    ----------
    strata
        For every stratum with at least two distinct records: its size, least rate and largest rate.

    Guarantee
        max over strata of max(ln(n+1) - ln o_min, ln o_max).
    Assumes
        The rate of a record is a function of its matching and holding variables, or of its matching and
        swapping variables, never of both and never of other records.
    """
    worst = ZERO
    for size, least, largest in strata:
        low, high = as_fraction(least), as_fraction(largest)
        if low <= 0 or high >= 1:
            return INFINITY
        odds_low, odds_high = low / (1 - low), high / (1 - high)
        worst = max(worst, Exact.log((size + 1) / odds_low), Exact.log(odds_high))
    return worst


@lru_cache(maxsize=4096)
def derangements(count: int) -> int:
    """The number of permutations of so many records that fix none."""
    previous, current = 1, 0
    for k in range(2, count + 1):
        previous, current = current, (k - 1) * (previous + current)
    return previous if count == 0 else current


def derangement_ratio(count: int) -> Fraction:
    """d(b)/d(b-2), exactly for small b; for large b a rational above it by less than 1e-300.

    d(b) = b d(b-1) + (-1)^b, so the ratio is at most (b + 1/d(b-1)) (b - 1 + 1/d(b-2)).
    """
    if count <= EXACT_DERANGEMENTS:
        return Fraction(derangements(count), derangements(count - 2))
    excess = Fraction(1, derangements(EXACT_DERANGEMENTS - 2))
    return (count + excess) * (count - 1 + excess)
