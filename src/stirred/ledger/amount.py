"""Amounts: a budget in the coordinates in which releases of one flavor simply add up.

Guarantee
    Addition, comparison and difference of amounts are exact, and equal the composition law of the output
    premetric: epsilon adds under D_Mult and Renyi divergence, epsilon and delta under approximate DP,
    rho squared under D_NoR (zCDP), mu squared under Gaussian DP.
Assumes
    The amounts belong to one flavor: an amount is never shown or compared without it.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stirred.errors import InputError, NotImplied
from stirred.spec import INFINITY, LETTER, ZERO, Exact, Flavor, Premetric, Specification, shown


@dataclass(frozen=True)
class Amount:
    """Exact numbers that add up under composition, with the name of each.

    Examples
    --------
    >>> tenth = Amount(("epsilon",), (Exact.of("0.1"),))
    >>> print(tenth + tenth)
    ε = 1/5
    """

    units: tuple[str, ...]
    values: tuple[Exact, ...]

    @classmethod
    def of(cls, specification: Specification) -> Amount:
        """The budget of a specification; the largest where it differs by universe."""
        premetric = specification.output_premetric
        return cls(units_of(premetric), premetric.counted(specification.budget))

    @classmethod
    def none(cls, flavor: Flavor) -> Amount:
        """Nothing, in the coordinates of a flavor."""
        units = units_of(flavor.output_premetric)
        return cls(units, (ZERO,) * len(units))

    @classmethod
    def read(cls, record: Mapping[str, str], flavor: Flavor) -> Amount:
        """Read what ``record`` wrote of an amount of this flavor."""
        units = tuple(unit for unit in units_of(flavor.output_premetric) if unit in record)
        return cls(units, tuple(Exact.parse(record[unit]) for unit in units))

    def record(self) -> dict[str, str]:
        """The numbers as exact text."""
        return {unit: str(value) for unit, value in zip(self.units, self.values, strict=True)}

    def within(self, flavor: Flavor) -> Specification:
        """The amount as a guarantee: an amount means nothing without its flavor."""
        premetric, budget = flavor.output_premetric.restated(self.values)
        return Flavor(**dict(flavor) | {"output_premetric": premetric}).with_budget(budget)

    def __add__(self, other: Amount) -> Amount:
        return self._pairwise(other, operator.add)

    def minus(self, other: Amount) -> Amount:
        """What is left of this amount; infinity less anything is infinity."""
        return self._pairwise(other, lambda a, b: INFINITY if a.is_infinite else a - b)

    def beyond(self, other: Amount) -> Amount:
        """How much this amount exceeds the other, coordinate by coordinate; zero where it does not."""
        return self._pairwise(other, lambda a, b: ZERO if a <= b else INFINITY if a.is_infinite else a - b)

    def fits(self, other: Amount) -> bool:
        """Whether no coordinate exceeds that of the other."""
        self._require_same(other)
        return not any(map(operator.lt, other.values, self.values))

    def share(self, part: Fraction) -> Amount:
        """A fraction of the amount, exactly."""
        return Amount(self.units, tuple(ZERO if not part else value * part for value in self.values))

    @property
    def is_infinite(self) -> bool:
        """Whether a coordinate is unbounded."""
        return INFINITY in self.values

    def __str__(self) -> str:
        pairs = zip(self.units, self.values, strict=True)
        return ", ".join(f"{LETTER.get(unit, unit)} = {_text(value)}" for unit, value in pairs)

    def rounded(self, *, up: bool) -> str:
        """For people, with four places: up for what is spent, down for what is left; ``str`` is exact."""
        pairs = zip(self.units, self.values, strict=True)
        return ", ".join(f"{LETTER.get(unit, unit)} {_rounded(value, up)}" for unit, value in pairs)

    def _pairwise(self, other: Amount, combine: Any) -> Amount:
        self._require_same(other)
        return Amount(self.units, tuple(map(combine, self.values, other.values)))

    def _require_same(self, other: Amount) -> None:
        if self.units != other.units:
            raise InputError(
                f"{' and '.join(self.units)} cannot be compared with {' and '.join(other.units)}",
                field="budget",
                expected="amounts of one flavor",
                hint="Convert the specification first (stirred.spec.convert).",
            )


def total(amounts: Iterable[Amount], flavor: Flavor) -> Amount:
    """The sum of amounts of one flavor."""
    return sum(amounts, Amount.none(flavor))


def units_of(premetric: Premetric) -> tuple[str, ...]:
    """The names of the coordinates that add up; a premetric without such coordinates is refused.

    Reference
        Adaptively chosen budgets add up under D_Mult and its approximation (Rogers, Roth, Ullman and
        Vadhan 2016), under D_NoR and Renyi divergence (Feldman and Zrnic 2021) and in mu squared
        (Smith and Thakurta 2022). The other output premetrics have no such filter here.
    """
    if premetric.coordinates:
        return premetric.coordinates
    raise NotImplied(
        f"releases measured by {premetric.symbol} and chosen one after the other do not add up",
        field="output_premetric",
        expected="D_Mult, its delta-approximation, D_NoR, Renyi or Gaussian DP",
        hint="Convert the specification to one of these (stirred.spec.convert) and keep the books in it.",
    )


def _text(value: Exact) -> str:
    """Exact, followed by its value to six places where it is not a short rational."""
    exact = "∞" if value.is_infinite else str(value)
    if value.is_infinite or (value.rational is not None and value.rational.denominator <= 10_000):
        return exact
    return f"{exact} (about {value.rounded(6)})"


def _rounded(value: Exact, up: bool) -> str:
    if value.is_infinite or (value.rational is not None and 10_000 % value.rational.denominator == 0):
        return f"= {shown(value)}"
    return f"of about {value.rounded(4, up=up, down=not up)}"
