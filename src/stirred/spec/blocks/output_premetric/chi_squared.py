"""The chi-squared divergence."""

from __future__ import annotations

from typing import ClassVar, Literal

from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.output_premetric.base import Premetric, Properties
from stirred.spec.finite import divergence
from stirred.spec.finite.distribution import Distribution


class ChiSquared(Premetric):
    """Chi-squared divergence: composes as (1+a)(1+b) - 1, not linearly."""

    kind: Literal["chi-squared"] = "chi-squared"
    symbol: ClassVar[str] = "D_χ²"
    properties: ClassVar[Properties] = Properties(
        law="product", positive=True, infinite_if_singular=True, post_processing=True
    )

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.chi_squared(p, q)

    def sentence(self) -> str:
        """In words."""
        return "the chi-squared divergence is at most the budget"
