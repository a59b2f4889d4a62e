"""Protection loss of the Permutation Swapping Algorithm, as functions of stratum size and swap rate.

Reference
    Theorems 1, 3 and 4 of Bailie, Gong and Meng. All losses are nominal: relative to the swapping
    invariants. The largest stratum b is a function of those invariants, so it may be published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from stirred.errors import InputError, Refusal
from stirred.spec import INFINITY, ZERO, Exact, as_fraction

EXACT_DERANGEMENTS = 400
LARGEST_EXACT_POWER = 2_000
LARGEST_TARGET = 1_000


def least_loss(largest_stratum: int) -> Exact:
    """The least loss that Theorem 1 gives any swap rate: ln(b+1)/2. The tighter loss goes below it.

    Examples
    --------
    >>> least_loss(10).rounded(2)
    '1.20'
    """
    if largest_stratum < 2:
        return ZERO
    return Exact.log(largest_stratum + 1, 2)


def least_loss_rate(largest_stratum: int) -> float:
    """The swap rate at which Theorem 1 gives its least loss: sqrt(b+1)/(sqrt(b+1)+1)."""
    root = math.sqrt(largest_stratum + 1)
    return root / (root + 1)


def least_tighter_loss(largest_stratum: int) -> Exact:
    """The least value of ``tighter_loss`` over all swap rates.

    Guarantee
        It is ln[d(b)/d(b-2)]/4 for b of at least 4, ln(2)/3 for b = 3 and 0 for b = 2; no rate loses less
        in the universes whose records all differ.
    Reference
        Theorem B of the page "Proofs for swapping": the two terms of the maximum cross where their mean is.

    Examples
    --------
    >>> least_tighter_loss(4).rounded(4)
    '0.5493'
    """
    if largest_stratum <= 2:
        return ZERO
    if largest_stratum == 3:
        return Exact.log(2, 3)
    return Exact.log(derangement_ratio(largest_stratum), 4)


def least_tighter_loss_rate(largest_stratum: int) -> float:
    """The swap rate at which the tighter loss is least: its log-odds are that loss."""
    odds = math.exp(float(least_tighter_loss(largest_stratum)))
    return odds / (1 + odds)


def rates_for(largest_stratum: int, epsilon: object) -> tuple[Fraction, Fraction]:
    """Both swap rates that attain a loss by Theorem 1: low and high, to twelve significant digits.

    They are rounded towards each other, so that their loss does not exceed epsilon, except within twelve
    digits of the least loss, where both are the rate that attains it. A smaller budget is refused.
    """
    target = Exact.of(epsilon)
    if target < least_loss(largest_stratum):
        tighter = least_tighter_loss(largest_stratum)
        aside = f"; by the tighter bound a rate attains {tighter.rounded(4, up=True)}"
        raise Refusal(
            "no swap rate attains this loss by Theorem 1",
            field="epsilon",
            expected=f"at least ln(b+1)/2 = {least_loss(largest_stratum).rounded(4, up=True)}",
            hint="Add matching variables (and publish more exactly), or accept a larger budget"
            f"{aside if tighter <= target else ''}.",
        )
    if largest_stratum < 2 or target.is_infinite:
        return Fraction(0), Fraction(1)
    if target > Exact.of(LARGEST_TARGET):
        raise InputError(
            "the loss aimed at is too large",
            field="epsilon",
            expected=f"at most {LARGEST_TARGET:,}, or inf",
            hint="Such a rate swaps nobody, or everybody: aim at a loss that protects.",
        )
    with localcontext() as context:
        context.prec = 60 + int(float(target))
        growth = _decimal(target).exp()
        low = _twelve_up((largest_stratum + 1) / (largest_stratum + 1 + growth))
        high = 1 - _twelve_up(1 / (1 + growth))
    return (low, high) if low <= high else (low, low)


def _decimal(value: Exact) -> Decimal:
    rational = value.rounded_up(60)
    return Decimal(rational.numerator) / Decimal(rational.denominator)


def _twelve_up(value: Decimal) -> Fraction:
    """Twelve significant digits, rounded up."""
    unit = Decimal(1).scaleb(value.adjusted() - 11)
    return Fraction(value.quantize(unit, rounding=ROUND_CEILING))


def swap_probability(stratum: int, rate: object) -> Fraction:
    """Probability that a record of a stratum is selected and deranged.

    The paper omits the reselection when exactly one record is selected; with it the probability is
    p[1 - (1-p)^(n-1)] / [1 - n p (1-p)^(n-1)].
    """
    p = as_fraction(rate)
    if stratum < 2:
        return Fraction(0)
    others = _power(1 - p, stratum - 1)
    return p * (1 - others) / (1 - stratum * p * others)


def _power(base: Fraction, exponent: int) -> Fraction:
    """Exactly for small exponents; beyond, to sixty digits: the exact fraction would fill pages."""
    if exponent <= LARGEST_EXACT_POWER:
        return base**exponent
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(base.numerator) / Decimal(base.denominator)) ** exponent)


def lower_bound(largest_stratum: int, rate: object) -> Exact:
    """Theorem 3: in some universe the loss is at least this, whatever the analysis.

    Strata of two and three records are decided: there Theorem B is exact where all records differ.
    """
    p = as_fraction(rate)
    if largest_stratum <= 3 or p in (0, 1):
        return tighter_loss(largest_stratum, p)
    odds = Exact.log(p / (1 - p))
    return max(ZERO, odds, Exact.log(derangement_ratio(largest_stratum, up=False), 2) - odds)


def gap(largest_stratum: int) -> float:
    """f(b) of Theorem 4: how far Theorem 1 may lie above the best possible loss; for b of at least 4."""
    if largest_stratum < 4:
        raise InputError(
            "the gap is defined for strata of at least four records",
            field="largest_stratum",
            expected="an integer of at least 4 (with three records f(b) is smaller than the gap)",
            hint="For smaller strata use the tighter loss, which is exact.",
        )
    b = largest_stratum
    above = 1 + math.e / 2 * math.exp(-math.lgamma(b - 1))
    below = 1 - math.e / 2 * math.exp(-math.lgamma(b + 1))
    return 0.5 * math.log((b + 1) ** 2 / (b * (b - 1)) * above / below)


def tighter_loss(largest_stratum: int, rate: object) -> Exact:
    """A smaller loss for one common rate, proved: an upper bound in every universe.

    For b of at least 4 it is max(ln o, ln[d(b)/d(b-2)]/2 - ln o); b = 2 gives |ln o|; b = 3 gives
    max(ln o, ln(2)/3 - ln o, (ln 2 - ln o)/2). It is exact where all records differ in both variables.

    Reference
        Theorem B of the page "Proofs for swapping" in the documentation; enumerated up to six records.
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

    ``strata`` has the size, least rate and largest rate of every stratum with at least two distinct records.

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


def derangement_ratio(count: int, *, up: bool = True) -> Fraction:
    """d(b)/d(b-2), exactly for small b; for large b a rational within 1e-300 of it, above or below.

    d(b) = b d(b-1) + (-1)^b, so the ratio lies within (b -+ 1/d(b-1)) (b - 1 -+ 1/d(b-2)).
    """
    if count <= EXACT_DERANGEMENTS:
        return Fraction(derangements(count), derangements(count - 2))
    excess = Fraction(1 if up else -1, derangements(EXACT_DERANGEMENTS - 2))
    return (count + excess) * (count - 1 + excess)
