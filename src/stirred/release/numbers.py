"""Numbers as plans write them: exact, checked, and kept as they were written."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, WithJsonSchema

from stirred.errors import StirredError
from stirred.spec import LEAST_DELTA, Exact, as_fraction

Provenance = Literal["public", "earlier DP release", "assumption"]


def _positive(value: object) -> object:
    try:
        number = Exact.of(value)
    except (StirredError, ValueError, TypeError):
        raise ValueError("a number such as 1/20, 0.05 or ln(3)") from None
    if number.is_infinite or not number > Exact.of(0):
        raise ValueError("a positive, finite number")
    return value


def _below_one(value: object) -> object:
    try:
        probability = as_fraction(value)
    except (StirredError, ValueError, TypeError):
        raise ValueError("a probability such as 1e-10") from None
    if not LEAST_DELTA <= probability < 1:
        raise ValueError("a probability of at least 1e-300 and below 1")
    return value


def _share(value: object) -> object:
    try:
        share = as_fraction(value)
    except (StirredError, ValueError, TypeError):
        raise ValueError("a share such as 0.01") from None
    if not 0 <= share < 1:
        raise ValueError("a share of at least 0 and below 1")
    return value


def _probability(value: object) -> object:
    try:
        rate = as_fraction(value)
    except (StirredError, ValueError, TypeError):
        raise ValueError("a rate such as 1/20 or 0.05") from None
    if not 0 <= rate <= 1:
        raise ValueError("a rate above 0 and below 1")
    return value


_WRITTEN = WithJsonSchema({"type": ["string", "number"]})
Number = Annotated[str | int, AfterValidator(_positive), _WRITTEN]
Probability = Annotated[str, AfterValidator(_below_one), _WRITTEN]
Rate = Annotated[str | int, AfterValidator(_probability), _WRITTEN]
Share = Annotated[str | int, AfterValidator(_share), _WRITTEN]
