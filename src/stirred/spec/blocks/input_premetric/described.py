"""Premetrics that are only described."""

from __future__ import annotations

from typing import Literal

from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.input_premetric.premetric import ONE, Flags, Premetric
from stirred.spec.blocks.kept import Kept


class DescribedPremetric(Premetric):
    """A premetric that is only described, with the axioms its author claims."""

    kind: Literal["described"] = "described"
    name: str
    unit: str
    meaning: str
    symmetric: bool = True
    positive: bool = True
    triangle: bool = True
    neighbour_valued: bool = False

    @property
    def flags(self) -> Flags:
        return Flags(self.symmetric, self.positive, self.triangle, self.neighbour_valued)

    @property
    def record_units(self) -> frozenset[str]:
        """None: nothing is computed."""
        return frozenset()

    def sentence(self) -> str:
        return self.meaning

    @property
    def symbol(self) -> str:
        return self.name

    def separation(self, kept: Kept) -> Exact | None:
        """One between neighbours."""
        return ONE if self.neighbour_valued else None
