"""Neighbour relations: only a change of one unit is compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.blocks.input_premetric.derived import Maximum
from stirred.spec.blocks.input_premetric.graph import GraphEdit
from stirred.spec.blocks.input_premetric.premetric import ONE, Change, Flags, Premetric, short
from stirred.spec.blocks.input_premetric.records import (
    EditDistance,
    Hamming,
    HammingUnordered,
    SymmetricDifference,
)
from stirred.spec.blocks.kept import Kept

Relation = Literal["replace", "replace-ordered", "add-remove", "add-remove-ordered", "edge", "node"]

# Of every relation its letters in a symbol, and its distance.
_RELATIONS: dict[Relation, tuple[str, Callable[[str], Premetric]]] = {
    "replace": ("bs", lambda unit: HammingUnordered(unit=unit)),
    "replace-ordered": ("bv", lambda unit: Hamming(unit=unit)),
    "add-remove": ("us", lambda unit: SymmetricDifference(unit=unit)),
    "add-remove-ordered": ("uv", lambda unit: EditDistance(unit=unit)),
    "edge": ("edge", lambda unit: GraphEdit(unit="edge")),
    "node": ("node", lambda unit: GraphEdit(unit="node")),
}


class Neighbours(Premetric):
    """Induced by a neighbour relation: 0 if equal, 1 if neighbours, infinite otherwise (A.2)."""

    kind: Literal["neighbours"] = "neighbours"
    relation: Relation
    unit: str

    @property
    def flags(self) -> Flags:
        """Only neighbours are compared, so the triangle inequality fails."""
        return Flags(triangle=False, neighbour_valued=True)

    @property
    def sharpened(self) -> Premetric:
        """The shortest-path distance on a full domain (Appendix A.4 of the thesis)."""
        return _RELATIONS[self.relation][1](self.unit)

    @property
    def change(self) -> Change | None:
        return self.sharpened.change

    def distance(self, x: Any, y: Any) -> Exact:
        """0, 1 or infinity."""
        if x == y:
            return ZERO
        return ONE if self.sharpened.distance(x, y) == ONE else INFINITY

    def sentence(self) -> str:
        return f"{self.sharpened.sentence()}; larger changes are not compared"

    @property
    def symbol(self) -> str:
        return f"d_r({_RELATIONS[self.relation][0]})^{short(self.unit)}"

    def separation(self, kept: Kept) -> Exact:
        return ONE


def neighbours_of(premetric: Premetric) -> Premetric:
    """The neighbour premetric of a distance: what remains when only distance one is kept."""
    if premetric.flags.neighbour_valued:
        return premetric
    for relation, (_, distance) in _RELATIONS.items():
        if distance(premetric.unit) == premetric:
            return Neighbours(relation=relation, unit=premetric.unit)
    if premetric.pieces != (premetric,):
        return Maximum(parts=tuple(map(neighbours_of, premetric.pieces)))
    raise InputError(
        "this premetric has no known neighbour relation",
        field="input_premetric",
        expected="a Hamming, symmetric-difference, edit or graph distance",
        hint="State the neighbours yourself with kind 'given' or 'described'.",
    )
