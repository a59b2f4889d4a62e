"""Finite probability distributions with exact masses, and the pushforward and product of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Mapping
from fractions import Fraction

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import as_fraction

Outcome = Hashable


class Distribution:
    """Masses on the outcomes of a named space.

    Two distributions on spaces of different name are infinitely far apart (Definition 2.4.16), which
    is not the same as having different supports on one space.

    Examples
    --------
    >>> Distribution({"yes": "3/4", "no": "1/4"})["yes"]
    Fraction(3, 4)
    """

    __slots__ = ("_masses", "space")

    def __init__(self, masses: Mapping[Outcome, object], space: str = "T") -> None:
        exact = {outcome: as_fraction(mass) for outcome, mass in masses.items()}
        if any(mass < 0 for mass in exact.values()) or sum(exact.values()) != 1:
            raise InputError(
                "the masses are not a probability distribution",
                field="masses",
                expected="non-negative exact numbers that sum to exactly one",
                hint="Give fractions such as 1/3, not rounded decimals.",
            )
        self._masses = {outcome: mass for outcome, mass in exact.items() if mass > 0}
        self.space = space

    @classmethod
    def point(cls, outcome: Outcome, space: str = "T") -> Distribution:
        """All mass on one outcome: a mechanism without randomness."""
        return cls({outcome: 1}, space)

    def __getitem__(self, outcome: Outcome) -> Fraction:
        return self._masses.get(outcome, Fraction(0))

    def probability(self, event: Iterable[Outcome]) -> Fraction:
        """Mass of an event."""
        return sum((self[outcome] for outcome in set(event)), Fraction(0))

    @property
    def support(self) -> frozenset[Outcome]:
        """Outcomes with positive mass."""
        return frozenset(self._masses)

    def items(self) -> Iterable[tuple[Outcome, Fraction]]:
        """Outcomes and their masses."""
        return self._masses.items()

    def pushforward(self, function: Callable[[Outcome], Outcome], space: str | None = None) -> Distribution:
        """The law of a function of the outcome: deterministic post-processing."""
        masses: dict[Outcome, Fraction] = {}
        for outcome, mass in self.items():
            image = function(outcome)
            masses[image] = masses.get(image, Fraction(0)) + mass
        return Distribution(masses, space or self.space)

    def __matmul__(self, other: Distribution) -> Distribution:
        """Product: both outcomes, drawn with fresh seeds."""
        pairs = itertools.product(self.items(), other.items())
        masses: dict[Outcome, Fraction] = {(a, b): p * q for (a, p), (b, q) in pairs}
        return Distribution(masses, f"{self.space}×{other.space}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Distribution):
            return NotImplemented
        return self.space == other.space and self._masses == other._masses

    def __hash__(self) -> int:
        return hash((self.space, frozenset(self._masses.items())))

    def __repr__(self) -> str:
        masses = ", ".join(f"{outcome!r}: {mass}" for outcome, mass in self.items())
        return f"Distribution({{{masses}}})"


def atoms(first: Distribution, second: Distribution) -> list[tuple[Outcome, Fraction, Fraction]]:
    """Every outcome of either distribution with its two masses, in a fixed order."""
    outcomes = sorted(first.support | second.support, key=repr)
    return [(outcome, first[outcome], second[outcome]) for outcome in outcomes]
