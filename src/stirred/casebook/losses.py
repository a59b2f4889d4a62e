"""What swapping loses by Theorem 1: Tables 2 and 5, Figure 2, and a swap like that of 2010."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from stirred.casebook.case import Recomputed
from stirred.casebook.census_2020 import NOMINAL, SCHEMES, STRATUM_1940, STRATUM_2010
from stirred.show import swap_rate_curve
from stirred.spec import swapping_loss
from stirred.swap import least_loss, least_loss_rate

FIGURE_2_STRATA = (2, 10, 100, 1_000, 10_000, 1_000_000)


def table_2() -> Recomputed:
    """The loss at four swap rates, for the largest stratum of Massachusetts in 1940."""
    return Recomputed(_losses(STRATUM_1940, {1: 17.08, 5: 15.43, 10: 14.68, 50: 12.48}))


def like_2010() -> Recomputed:
    """The loss at the two swap rates that are said of 2010."""
    note = "An overestimate: the swap key of 2010 was finer than state × household size, its strata smaller."
    return Recomputed(_losses(STRATUM_2010, {4: 18.29, 2: 19.0}), (note, NOMINAL))


def _losses(largest_stratum: int, published: Mapping[int, float]) -> tuple[dict[str, Any], ...]:
    """The loss at rates in per cent, each with the published one."""
    losses = {percent: swapping_loss(largest_stratum, Fraction(percent, 100)) for percent in published}
    return tuple(
        {
            "largest_stratum": largest_stratum,
            "rate": percent / 100,
            "epsilon": float(loss),
            "exact": str(loss),
            "published_epsilon": published[percent],
        }
        for percent, loss in losses.items()
    )


def table_5() -> Recomputed:
    """The loss of six swaps that could have been applied in 2020, at 5% and at 50%."""
    rows = []
    for scheme in SCHEMES:
        row: dict[str, Any] = {
            "id": scheme.id,
            "match": scheme.key,
            "swap": scheme.swap[0].replace("_", " "),
            "largest_stratum": scheme.largest_stratum,
            "where": scheme.where,
        }
        for percent, printed in zip((5, 50), scheme.published, strict=True):
            loss = scheme.loss(percent)
            row |= {f"epsilon_{percent}": float(loss), f"exact_{percent}": str(loss)}
            row[f"published_epsilon_{percent}"] = printed
        rows.append(row)
    return Recomputed(tuple(rows), (NOMINAL,))


def figure_2() -> Recomputed:
    """For six sizes of the largest stratum the loss at every swap rate, and the least loss."""
    rows = (
        {
            "largest_stratum": size,
            "rate": least_loss_rate(size),
            "epsilon": float(least_loss(size)),
            "curve": swap_rate_curve(size),
        }
        for size in FIGURE_2_STRATA
    )
    return Recomputed(tuple(rows), (NOMINAL,))
