"""Allocation: how a data set's budget is divided among analysts, exactly.

Guarantee
    Shares of a division add up to what is divided, to the last digit. Shares by wanted accuracy are what
    each analyst's noise needs; if they exceed what is left they are refused, never scaled down silently.
Assumes
    For wanted accuracy: one query of the stated sensitivity, answered with Laplace noise (pure DP) or
    Gaussian noise (zCDP); the discrete versions are at least as accurate at whole numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from stirred.errors import InputError, NotImplied, StirredError
from stirred.ledger.amount import Amount
from stirred.spec import Exact, Flavor, Multiplicative, NormalisedRenyi, as_fraction

Rule = Literal["equal", "weighted", "accuracy"]


@dataclass(frozen=True)
class Equal:
    """The same for everybody."""

    analysts: Sequence[str]
    rule: Rule = "equal"

    def shares(self, whole: Amount, flavor: Flavor) -> dict[str, Amount]:
        return Weighted(dict.fromkeys(_distinct(self.analysts), 1)).shares(whole, flavor)


@dataclass(frozen=True)
class Weighted:
    """In proportion to weights: positive rationals."""

    weights: Mapping[str, object]
    rule: Rule = "weighted"

    def shares(self, whole: Amount, flavor: Flavor) -> dict[str, Amount]:
        weights = {name: _positive(weight, "weights") for name, weight in self.weights.items()}
        _require_some(weights)
        if whole.is_infinite:
            raise InputError(
                "an unlimited budget is not divided",
                field="of",
                expected="a finite amount to divide",
                hint="Name the amount with of=.",
            )
        everything = sum(weights.values(), Fraction(0))
        return {name: whole.share(weight / everything) for name, weight in weights.items()}


@dataclass(frozen=True)
class Wanted:
    """The accuracy of one query.

    ``sensitivity`` is how much one unit changes the query. ``error`` is for zCDP the noise's standard
    deviation, and for pure DP the half-width of an interval that the noise leaves with probability ``miss``.
    """

    sensitivity: object
    error: object
    miss: object = "0.05"


@dataclass(frozen=True)
class Accurate:
    """To each analyst what the wanted accuracy costs."""

    wanted: Mapping[str, Wanted]
    rule: Rule = "accuracy"

    def shares(self, whole: Amount, flavor: Flavor) -> dict[str, Amount]:
        """The cost of each query; the whole does not matter here."""
        _require_some(self.wanted)
        return {name: cost(wanted, flavor) for name, wanted in self.wanted.items()}


Division = Equal | Weighted | Accurate


def cost(wanted: Wanted, flavor: Flavor) -> Amount:
    """The budget at which a query has the wanted accuracy.

    Guarantee
        Laplace noise of scale b exceeds w with probability e^(-w/b), so epsilon = sensitivity ln(1/miss)/w.
        Gaussian noise of standard deviation s has rho squared = sensitivity^2 / (2 s^2).
    """
    ratio = _positive(wanted.sensitivity, "sensitivity") / _positive(wanted.error, "error")
    if isinstance(flavor.output_premetric, Multiplicative):
        miss = _positive(wanted.miss, "miss")
        if miss >= 1:
            raise InputError(
                "the probability of a miss is not a probability",
                field="miss",
                expected="a number above 0 and below 1",
                hint="0.05 gives a 95% interval.",
            )
        return Amount(("epsilon",), (Exact.log(1 / miss) * ratio,))
    if isinstance(flavor.output_premetric, NormalisedRenyi):
        return Amount(("rho_squared",), (Exact(ratio**2 / 2),))
    raise NotImplied(
        f"the cost of an accuracy is not known under {flavor.output_premetric.symbol}",
        field="accuracy",
        expected="a data set whose ceiling is pure DP or zCDP",
        hint="Divide equally or by weights instead.",
    )


def _distinct(names: Sequence[str]) -> Sequence[str]:
    if isinstance(names, str) or len(set(names)) != len(names):
        raise InputError(
            "an analyst is named twice, or the analysts are not a list",
            field="analysts",
            expected="a list of different names",
            hint="Use weights for unequal shares.",
        )
    return names


def _require_some(names: Mapping[str, object]) -> None:
    if not names:
        raise InputError(
            "there is nobody to allocate to",
            field="analysts",
            expected="at least one analyst",
            hint="Name the analysts.",
        )


def _positive(value: object, name: str) -> Fraction:
    try:
        number = as_fraction(value)
    except StirredError:
        number = Fraction(0)
    if number <= 0:
        raise InputError(
            f"{name} is not positive",
            field=name,
            expected="an exact number above zero, such as 2, 1/3 or '0.5'",
            hint="Correct the number.",
        )
    return number
