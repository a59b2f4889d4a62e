"""Trade-offs between the errors of a test: Gaussian DP, f-DP, and functionals of the power curve."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar, Literal

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.budget import Parametrisation
from stirred.spec.blocks.output_premetric.base import METRIC, Premetric, Properties
from stirred.spec.finite import tradeoff
from stirred.spec.finite.distribution import Distribution


class GaussianTradeOff(Premetric):
    """Gaussian DP: the least mu whose Gaussian trade-off is not easier than this one."""

    kind: Literal["gaussian-trade-off"] = "gaussian-trade-off"
    symbol: ClassVar[str] = "D_GDP"
    words: ClassVar[str] = (
        "no test tells the two apart better than one Gaussian from another, the budget away"
    )
    properties: ClassVar[Properties] = replace(METRIC, law="sum of squares", exact=False)
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("mu",)
    coordinates: ClassVar[tuple[str, ...]] = ("mu_squared",)

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return max(
            tradeoff.of_tradeoff("gaussian-separation", p, q),
            tradeoff.of_tradeoff("gaussian-separation", q, p),
        )


class TradeOffCurve(Premetric):
    """f-DP: the trade-off function itself; the budget is a curve, for neighbours only."""

    kind: Literal["trade-off"] = "trade-off"
    symbol: ClassVar[str] = "Tr"
    words: ClassVar[str] = "no test between the two has a smaller error than the budget's curve"
    properties: ClassVar[Properties] = Properties(
        law="tensor", positive=True, infinite_if_singular=True, post_processing=True
    )
    parametrisations: ClassVar[tuple[Parametrisation, ...]] = ("tradeoff",)

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        raise InputError(
            "a trade-off function is not a number",
            field="output_premetric",
            expected="a comparison of curves",
            hint="Use stirred.spec.finite.tradeoff.TradeOff.between, or a functional of it.",
        )


class TradeOffFunctional(Premetric):
    """A non-decreasing functional of the power curve (Theorem 2.5.5): a factory of premetrics."""

    kind: Literal["functional"] = "functional"
    functional: str
    properties: ClassVar[Properties] = Properties(law="none", post_processing=True)

    def _between(self, p: Distribution, q: Distribution) -> Exact:
        return tradeoff.of_tradeoff(self.functional, p, q)

    def sentence(self) -> str:
        return f"the functional {self.functional} of the trade-off function is at most the budget"

    @property
    def symbol(self) -> str:
        return f"λ_{self.functional}∘Tr"
