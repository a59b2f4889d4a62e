"""Premetrics that are made from others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import field_validator

from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.input_premetric.premetric import Flags, Matrix, Premetric, elsewhere
from stirred.spec.blocks.kept import Kept
from stirred.spec.blocks.multiverse import AnyMultiverse, Multiverse, invariant_units, known_invariants
from stirred.spec.blocks.schema import canonical

if TYPE_CHECKING:
    from stirred.spec.blocks.input_premetric import InputPremetric


class _Derived(Premetric):
    """Made from one other; the field stands in each kind, in the order in which it is written."""

    if TYPE_CHECKING:
        base: InputPremetric

    @property
    def unit(self) -> str:
        return self.base.unit

    @property
    def inner(self) -> tuple[Premetric, ...]:
        return (self.base,)


class Encoded(_Derived):
    """A multiverse written into the distance: infinite for pairs that share no universe (A.3.1)."""

    kind: Literal["encoded"] = "encoded"
    base: InputPremetric
    multiverse: Multiverse

    @property
    def flags(self) -> Flags:
        """Symmetry and positivity are kept; the triangle inequality may break."""
        base = self.base.flags
        return Flags(base.symmetric, base.positive, False, base.neighbour_valued)

    @property
    def record_units(self) -> frozenset[str]:
        """Those of the base and of the invariants."""
        return self.base.record_units | invariant_units(self.multiverse)

    @property
    def multiverses(self) -> tuple[AnyMultiverse, ...]:
        """Its own, and those of the base."""
        return (self.multiverse, *self.base.multiverses)

    def matrix(self, domain: Domain) -> Matrix:
        """The base's distances inside universes, infinity outside, zero on the diagonal."""
        points, base = domain.enumerate(), self.base.matrix(domain)
        universes = self.multiverse.universes(domain)

        def entry(i: int, j: int) -> Exact:
            if i == j:
                return ZERO
            shared = any(points[i] in u and points[j] in u for u in universes)
            return base[i][j] if shared else INFINITY

        indices = range(len(points))
        return tuple(tuple(entry(i, j) for j in indices) for i in indices)

    def sentence(self) -> str:
        return f"{self.base.sentence()}, only between {self.multiverse.sentence()}"

    @property
    def symbol(self) -> str:
        return f"{self.base.symbol}|{self.multiverse.symbol}"

    def separation(self, kept: Kept) -> Exact | None:
        """That of the base, under more invariants."""
        return self.base.separation(kept.under(*kept.invariants, *known_invariants(self.multiverse)))


class Sharpened(_Derived):
    """Shortest directed path through the domain with the base as lengths (Definition A.4.1)."""

    kind: Literal["sharpened"] = "sharpened"
    base: InputPremetric

    @property
    def flags(self) -> Flags:
        """Shortest paths obey the triangle inequality."""
        return Flags(self.base.flags.symmetric, self.base.flags.positive, True, False)

    def matrix(self, domain: Domain) -> Matrix:
        """All shortest paths (Floyd and Warshall)."""
        return shortest_paths(self.base.matrix(domain))

    def sentence(self) -> str:
        return f"{self.base.sentence()}; larger changes count as chains of these"

    @property
    def symbol(self) -> str:
        return f"{self.base.symbol}*"

    def separation(self, kept: Kept) -> Exact | None:
        """Paths may leave the universe, and are at least as long as their longest step."""
        return self.base.separation(kept.under())


class PulledBack(_Derived):
    """The distance between what a preprocessing step makes of two raw points."""

    kind: Literal["pulled-back"] = "pulled-back"
    base: InputPremetric
    step: str
    images: tuple[tuple[Any, Any], ...] = ()

    @field_validator("images", mode="before")
    @classmethod
    def _hashable(cls, images: Iterable[Iterable[object]]) -> tuple[object, ...]:
        return tuple(canonical(list(pair)) for pair in images)

    @property
    def flags(self) -> Flags:
        """Two raw points may have one image, so positivity is lost."""
        base = self.base.flags
        return Flags(base.symmetric, False, base.triangle, base.neighbour_valued)

    @property
    def record_units(self) -> frozenset[str]:
        """None: the records that are compared are not those of the domain."""
        return frozenset()

    @property
    def fixed_totals(self) -> frozenset[str]:
        """None: the images are data sets of another domain."""
        return frozenset()

    def distance(self, x: Any, y: Any) -> Exact:
        """Distance of the images."""
        lookup = dict(self.images)
        if x not in lookup or y not in lookup:
            raise elsewhere("input_premetric.images", f"the step {self.step}")
        return self.base.distance(lookup[x], lookup[y])

    def sentence(self) -> str:
        return f"{self.base.sentence()}, measured after {self.step}"

    @property
    def symbol(self) -> str:
        return f"{self.base.symbol}∘{self.step}"

    def separation(self, kept: Kept) -> Exact | None:
        """That of the base in another domain, whose invariants are not declared here."""
        return self.base.separation(Kept((), None))


class Maximum(Premetric):
    """The larger of several distances: the premetric of a meet (R32)."""

    kind: Literal["maximum"] = "maximum"
    parts: tuple[InputPremetric, ...]

    @property
    def unit(self) -> str:
        """All units."""
        return " and ".join(dict.fromkeys(part.unit for part in self.parts))

    @property
    def flags(self) -> Flags:
        """What all parts share; one positive part is enough."""
        flags = [part.flags for part in self.parts]
        return Flags(
            symmetric=all(f.symmetric for f in flags),
            positive=any(f.positive for f in flags),
            triangle=all(f.triangle for f in flags),
            neighbour_valued=all(f.neighbour_valued for f in flags),
        )

    @property
    def inner(self) -> tuple[Premetric, ...]:
        return self.parts

    @property
    def pieces(self) -> tuple[Premetric, ...]:
        return self.parts

    @property
    def of_two_points(self) -> bool:
        """Whether all parts are."""
        return all(part.of_two_points for part in self.parts)

    def distance(self, x: Any, y: Any) -> Exact:
        return max(part.distance(x, y) for part in self.parts)

    def matrix(self, domain: Domain) -> Matrix:
        matrices = [part.matrix(domain) for part in self.parts]
        return tuple(
            tuple(max(entries) for entries in zip(*rows, strict=True)) for rows in zip(*matrices, strict=True)
        )

    def sentence(self) -> str:
        return "a change that is at most one unit in each of: " + "; ".join(
            part.sentence() for part in self.parts
        )

    @property
    def symbol(self) -> str:
        return f"max({', '.join(part.symbol for part in self.parts)})"

    def separation(self, kept: Kept) -> Exact | None:
        """The least of the parts, where all are known."""
        found = [part.separation(kept) for part in self.parts]
        known = [part for part in found if part is not None]
        return min(known) if len(known) == len(found) else None


def shortest_paths(matrix: Matrix) -> Matrix:
    """All-pairs shortest paths of a matrix of lengths."""
    paths = [list(row) for row in matrix]
    indices = range(len(paths))
    for k in indices:
        for i in indices:
            if not paths[i][k].is_infinite:
                for j in indices:
                    paths[i][j] = min(paths[i][j], paths[i][k] + paths[k][j])
    return tuple(tuple(row) for row in paths)
