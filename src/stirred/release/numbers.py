"""Numbers as plans write them: exact, checked, and kept as they were written."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
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


def _fraction(what: str, such_as: str, inside: Callable[[Fraction], bool], limits: str) -> AfterValidator:
    def check(value: object) -> object:
        try:
            number = as_fraction(value)
        except (StirredError, ValueError, TypeError):
            raise ValueError(f"{what} such as {such_as}") from None
        if not inside(number):
            raise ValueError(f"{what} {limits}")
        return value

    return AfterValidator(check)


_DELTA = _fraction("a probability", "1e-10", lambda p: LEAST_DELTA <= p < 1, "of at least 1e-300 and below 1")
_RATE = _fraction("a rate", "1/20 or 0.05", lambda rate: 0 <= rate <= 1, "above 0 and below 1")
_SHARE = _fraction("a share", "0.01", lambda share: 0 <= share < 1, "of at least 0 and below 1")
_WRITTEN = WithJsonSchema({"type": ["string", "number"]})

Number = Annotated[str | int, AfterValidator(_positive), _WRITTEN]
Probability = Annotated[str, _DELTA, _WRITTEN]
Rate = Annotated[str | int, _RATE, _WRITTEN]
Share = Annotated[str | int, _SHARE, _WRITTEN]
