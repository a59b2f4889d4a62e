"""Distances that stay finite between mutually singular laws."""

from __future__ import annotations

from typing import ClassVar, Literal

from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.output_premetric.base import Bound, Premetric, Properties
from stirred.spec.finite import divergence
from stirred.spec.finite.distribution import Distribution, Outcome


class TotalVariation(Premetric):
    """Total variation: finite even where outputs betray inputs, so it guards no exact release."""

    kind: Literal["total-variation"] = "total-variation"
    symbol: ClassVar[str] = "d_TV"
    properties: ClassVar[Properties] = Properties(
        law="sum",
        positive=True,
        symmetric=True,
        triangle=True,
        post_processing=True,
        linear_composition=True,
        linear_group=True,
    )
    below: ClassVar[dict[str, Bound]] = {
        "multiplicative": (Exact.of("1/2"), "TV <= tanh(D_Mult / 2) <= D_Mult / 2")
    }

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.total_variation(p, q)

    def worst_event(self, p: Distribution, q: Distribution) -> frozenset[Outcome]:
        """All outcomes that P favours."""
        return frozenset(outcome for outcome in p.support if p[outcome] > q[outcome])

    def sentence(self) -> str:
        """In words."""
        return "the probability of any event may change by at most the budget"


class Hellinger(Premetric):
    """Hellinger distance, at most one."""

    kind: Literal["hellinger"] = "hellinger"
    symbol: ClassVar[str] = "d_H"
    properties: ClassVar[Properties] = Properties(
        law="sum of squares",
        positive=True,
        symmetric=True,
        triangle=True,
        post_processing=True,
        linear_composition=True,
        linear_group=True,
        exact=False,
    )

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.hellinger(p, q)

    def sentence(self) -> str:
        """In words."""
        return "the Hellinger distance is at most the budget"


class Wasserstein(Premetric):
    """Earth mover's distance: scaling the output scales it, so it is not immune to post-processing."""

    kind: Literal["wasserstein"] = "wasserstein"
    symbol: ClassVar[str] = "W_1"
    properties: ClassVar[Properties] = Properties(
        law="sum",
        positive=True,
        symmetric=True,
        triangle=True,
        linear_composition=True,
        linear_group=True,
    )

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.wasserstein(p, q)

    def sentence(self) -> str:
        """In words."""
        return "probability mass moves at most as far as the budget"
