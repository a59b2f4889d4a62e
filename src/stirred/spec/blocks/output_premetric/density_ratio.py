"""Bounds on ratios of densities."""

from __future__ import annotations

from typing import ClassVar, Literal

from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.budget import Parametrisation
from stirred.spec.blocks.output_premetric.base import ONE, Bound, Premetric, Properties
from stirred.spec.finite import divergence
from stirred.spec.finite.distribution import Distribution


class DensityRatio(Premetric):
    """Density ratio metric: between once and twice D_Mult."""

    kind: Literal["density-ratio"] = "density-ratio"
    symbol: ClassVar[str] = "d_DR"
    properties: ClassVar[Properties] = Properties(
        law="sum",
        positive=True,
        symmetric=True,
        triangle=True,
        infinite_if_singular=True,
        post_processing=True,
        linear_composition=True,
        linear_group=True,
    )
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("epsilon",)
    below: ClassVar[dict[str, Bound]] = {"multiplicative": (Exact.of(2), "d_DR <= 2 D_Mult (Wasserman 1992)")}
    above: ClassVar[dict[str, Bound]] = {"multiplicative": (ONE, "D_Mult <= d_DR (Wasserman 1992)")}

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return divergence.density_ratio(p, q)

    def sentence(self) -> str:
        """In words."""
        return "the odds of any two outcomes may change by a factor of at most e to the budget"
