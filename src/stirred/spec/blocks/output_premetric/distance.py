"""Distances of laws that are not read as odds."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.output_premetric.base import METRIC, Bound, OfLaws, Premetric, Properties
from stirred.spec.finite import divergence
from stirred.spec.finite.distribution import Distribution, Outcome


class TotalVariation(Premetric):
    """Total variation: finite even where outputs betray inputs, so it guards no exact release."""

    kind: Literal["total-variation"] = "total-variation"
    symbol: ClassVar[str] = "d_TV"
    words: ClassVar[str] = "the probability of any event may change by at most the budget"
    of_laws: ClassVar[OfLaws] = divergence.total_variation
    properties: ClassVar[Properties] = replace(METRIC, infinite_if_singular=False)
    below: ClassVar[dict[str, Bound]] = {
        "multiplicative": (Exact.of("1/2"), "TV <= tanh(D_Mult / 2) <= D_Mult / 2")
    }

    def worst_event(self, p: Distribution, q: Distribution) -> frozenset[Outcome]:
        return frozenset(outcome for outcome in p.support if p[outcome] > q[outcome])


class Hellinger(Premetric):
    """Hellinger distance, at most one."""

    kind: Literal["hellinger"] = "hellinger"
    symbol: ClassVar[str] = "d_H"
    words: ClassVar[str] = "the Hellinger distance is at most the budget"
    of_laws: ClassVar[OfLaws] = divergence.hellinger
    properties: ClassVar[Properties] = replace(
        METRIC, law="sum of squares", infinite_if_singular=False, exact=False
    )


class ChiSquared(Premetric):
    """Chi-squared divergence: composes as (1+a)(1+b) - 1, not linearly."""

    kind: Literal["chi-squared"] = "chi-squared"
    symbol: ClassVar[str] = "D_χ²"
    words: ClassVar[str] = "the chi-squared divergence is at most the budget"
    of_laws: ClassVar[OfLaws] = divergence.chi_squared
    properties: ClassVar[Properties] = Properties(
        law="product", positive=True, infinite_if_singular=True, post_processing=True
    )


class Wasserstein(Premetric):
    """Earth mover's distance: scaling the output scales it, so it is not immune to post-processing."""

    kind: Literal["wasserstein"] = "wasserstein"
    symbol: ClassVar[str] = "W_1"
    words: ClassVar[str] = "probability mass moves at most as far as the budget"
    of_laws: ClassVar[OfLaws] = divergence.wasserstein
    properties: ClassVar[Properties] = replace(METRIC, infinite_if_singular=False, post_processing=False)
