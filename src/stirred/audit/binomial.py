"""What draws can show of a probability, and so of a protection loss: exact binomial bounds, ceiling, power.

Hits of an event in independent draws are binomial. Clopper and Pearson's bounds hold for every probability
and every number of draws, without an approximation. All else here follows from them.

Guarantee
    ``lower`` exceeds the probability, and ``upper`` falls short of it, with probability at most alpha each.
Assumes
    The draws are independent and the event was chosen before they were seen.
Reference
    Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of the binomial,
    Biometrika 26 (1934): the bounds are quantiles of beta laws.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from stirred.audit.incomplete_beta import log_odds, masses
from stirred.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

OUTWARD = 1e-12
LARGEST_SEARCH = 10**10
_WIDTH = 9.0
_THRESHOLDS = 513


def lower(hits: ArrayLike, draws: int, alpha: float) -> NDArray[np.float64]:
    """The one-sided lower bound of a probability: the p with P(Binomial(draws, p) >= hits) = alpha.

    Rounded outward, by more than the error of the beta quantile. Hits may be an array, and for planning
    fractions: expected hits. Fewer than one bound nothing.

    Examples
    --------
    >>> round(float(lower(10, 10, 0.05)), 6)
    0.741134
    """
    import numpy as np

    h = _checked(hits, draws, alpha)
    with np.errstate(all="ignore"):
        odds = np.exp(log_odds(np.maximum(h, 1.0), draws - np.minimum(h, draws) + 1, alpha))
        bound = np.where(h < 1, 0.0, odds / (1 + odds))
    # Where the quantile is not found (alpha close to one) nothing is bounded.
    return np.where(np.isnan(bound), 0.0, bound * (1 - OUTWARD))


def upper(hits: ArrayLike, draws: int, alpha: float) -> NDArray[np.float64]:
    """The one-sided upper bound of a probability: the p with P(Binomial(draws, p) <= hits) = alpha.

    Examples
    --------
    >>> round(float(upper(0, 10, 0.05)), 6)
    0.258866
    """
    import numpy as np

    h = _checked(hits, draws, alpha)
    with np.errstate(all="ignore"):
        odds = np.exp(-log_odds(np.maximum(draws - h, 1.0), h + 1, alpha))
        bound = np.where(h > draws - 1, 1.0, odds / (1 + odds))
    return np.where(np.isnan(bound), 1.0, np.minimum(bound * (1 + OUTWARD), 1.0))


def ceiling(draws: int, alpha: float = 0.05, delta: float = 0.0, share: float = 1.0) -> float:
    """The largest epsilon that so many draws of each data set can certify.

    No draw of the second data set hits the event, and a share of the draws of the first does: all of them,
    or about a half for a half-line under Laplace noise. Half of alpha goes to each bound.

    Examples
    --------
    >>> round(ceiling(10_000), 1), round(ceiling(10_000, share=0.5), 1)
    (7.9, 7.2)
    """
    low, high = float(lower(share * draws, draws, alpha / 2)), float(upper(0, draws, alpha / 2))
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def power(
    claim: float,
    truth: float,
    draws: int,
    alpha: float = 0.05,
    events: int = 1,
    threshold: float | None = None,
) -> float:
    """The probability that a claim is refuted, for Laplace noise of loss ``truth`` and one half-line.

    ``alpha`` is shared by the two bounds of so many events, of which one is this half-line. Exact binomial
    sums: for each number of hits under the first data set, the chance of few enough under the second. Hits
    further than nine standard deviations out are left out, so that the result errs to the low side.
    """
    return _power(claim, truth, draws, alpha / (2 * events), threshold)


def draws_for_power(
    claim: float, factor: float = 1.2, power: float = 0.9, alpha: float = 0.05, events: int = 1
) -> int:
    """Draws of each data set that refute a claim too small by a factor, with the power asked for.

    Hits are whole numbers, so power climbs in small steps back and forth: the answer has the power, and a
    slightly smaller number may have it too.
    """
    truth, share = claim * factor, alpha / (2 * events)
    _exposable(claim, truth)
    return _least(lambda n: _power(claim, truth, n, share, None) >= power)


def _power(claim: float, truth: float, draws: int, share: float, threshold: float | None) -> float:
    import numpy as np

    chosen = _best_threshold(draws, truth, share) if threshold is None else threshold
    p, q = (float(side) for side in _half_line(chosen, truth))
    hits, few = _likely(draws, p), _likely(draws, q)
    allowed = lower(hits, draws, share) * math.exp(-claim) / (1 + OUTWARD)
    refuting = np.searchsorted(upper(few, draws, share), allowed)
    below = np.concatenate([[0.0], np.cumsum(masses(few, draws, q))])
    return float(min(1.0, np.sum(masses(hits, draws, p) * below[refuting])))


def _likely(draws: int, chance: float) -> NDArray[np.int64]:
    """Numbers of hits within nine standard deviations and a little more."""
    import numpy as np

    reach = _WIDTH * math.sqrt(draws * chance * (1 - chance)) + _WIDTH**2
    middle = draws * chance
    return np.arange(max(0, math.floor(middle - reach)), min(draws, math.ceil(middle + reach)) + 1)


def _half_line(threshold: ArrayLike, truth: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """P(Z <= threshold) and P(1 + Z <= threshold), Z Laplace of scale 1/truth, threshold up to 1."""
    import numpy as np

    t = np.asarray(threshold, dtype=np.float64)
    first = np.where(t > 0, 1 - np.exp(-truth * np.maximum(t, 0)) / 2, np.exp(truth * np.minimum(t, 0)) / 2)
    return first, np.exp(truth * (t - 1)) / 2


def _loss(draws: int, truth: float, share: float, threshold: ArrayLike) -> NDArray[np.float64]:
    """The loss that expected hits certify."""
    import numpy as np

    p, q = _half_line(threshold, truth)
    low, high = lower(draws * p, draws, share), upper(draws * q, draws, share)
    return np.asarray(np.log(np.maximum(low, math.ulp(0.0)) / high))


def _best_threshold(draws: int, truth: float, share: float) -> float:
    """The end of the half-line that certifies most at expected hits.

    It lies between the two values: below 0 both probabilities shrink in one proportion.
    """
    import numpy as np

    grid = np.linspace(0, 1, _THRESHOLDS)
    return float(grid[np.argmax(_loss(draws, truth, share, grid))])


def _least(enough: Callable[[int], bool]) -> int:
    """A number of draws that is enough, by doubling and bisection."""
    high = 1
    while not enough(high):
        high *= 2
        if high > LARGEST_SEARCH:
            raise InputError(
                "no feasible number of draws is enough",
                field="claim",
                expected=f"a claim that {LARGEST_SEARCH} draws of each data set can expose",
                hint="Ask for less power, or for a larger factor between claim and truth.",
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _exposable(claim: float, truth: float) -> None:
    if not 0 <= claim < truth:
        raise InputError(
            "the claim is not too small",
            field="claim",
            expected="a claim of at least zero and a truth above it",
            hint="Draws can only expose a claim below the truth.",
        )


def _checked(hits: ArrayLike, draws: int, alpha: float) -> NDArray[np.float64]:
    import numpy as np

    h = np.asarray(hits, dtype=np.float64)
    if draws < 1 or not 0 < alpha < 1 or bool(np.any((h < 0) | (h > draws))):
        raise InputError(
            "these are not hits among draws",
            field="hits",
            expected="hits from 0 to draws, at least one draw, and alpha between 0 and 1",
            hint="Count the draws that fall in the event.",
        )
    return h
