"""Output premetrics: how a change of output is measured. One file a premetric or family, one line below."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field, SerializeAsAny, WrapValidator

from stirred.spec.blocks.output_premetric.base import Premetric, Properties, Variant
from stirred.spec.blocks.output_premetric.coarsened import Coarsened
from stirred.spec.blocks.output_premetric.described import Described
from stirred.spec.blocks.output_premetric.distance import ChiSquared, Hellinger, TotalVariation, Wasserstein
from stirred.spec.blocks.output_premetric.multiplicative import (
    LEAST_DELTA,
    Approximate,
    ApproximateCurve,
    DensityRatio,
    Multiplicative,
)
from stirred.spec.blocks.output_premetric.renyi import KullbackLeibler, NormalisedRenyi, Renyi
from stirred.spec.blocks.output_premetric.trade_off import GaussianTradeOff, TradeOffCurve, TradeOffFunctional


def _made_or_read(value: object, read: Callable[[object], Any]) -> Any:
    """A premetric that was made in Python stands as it is, of whatever kind; records are read by kind."""
    return value if isinstance(value, Premetric) else read(value)


OutputPremetric = Annotated[
    Multiplicative
    | Approximate
    | NormalisedRenyi
    | Renyi
    | KullbackLeibler
    | TotalVariation
    | Hellinger
    | ChiSquared
    | DensityRatio
    | Wasserstein
    | GaussianTradeOff
    | TradeOffCurve
    | ApproximateCurve
    | TradeOffFunctional
    | Coarsened
    | Described,
    Field(discriminator="kind"),
    SerializeAsAny(),
    WrapValidator(_made_or_read),
]
Coarsened.model_rebuild(_types_namespace={"OutputPremetric": OutputPremetric})

__all__ = [
    "LEAST_DELTA",
    "Approximate",
    "ApproximateCurve",
    "ChiSquared",
    "Coarsened",
    "DensityRatio",
    "Described",
    "GaussianTradeOff",
    "Hellinger",
    "KullbackLeibler",
    "Multiplicative",
    "NormalisedRenyi",
    "OutputPremetric",
    "Premetric",
    "Properties",
    "Renyi",
    "TotalVariation",
    "TradeOffCurve",
    "TradeOffFunctional",
    "Variant",
    "Wasserstein",
]
