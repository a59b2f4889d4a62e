"""Distances given as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.arithmetic.extended import infimum
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.input_premetric.premetric import ONE, Flags, Matrix, Premetric, elsewhere
from stirred.spec.blocks.kept import Kept
from stirred.spec.blocks.schema import canonical


class Given(Premetric):
    """A table of distances between the points of a finite domain."""

    kind: Literal["given"] = "given"
    unit: str
    points: tuple[Any, ...]
    distances: tuple[tuple[Exact, ...], ...]

    @field_validator("points", mode="before")
    @classmethod
    def _hashable(cls, points: Iterable[object]) -> tuple[object, ...]:
        return tuple(canonical(point) for point in points)

    @model_validator(mode="after")
    def _premetric(self) -> Self:
        size = len(self.points)
        if len(set(self.points)) != size:
            raise ValueError("points that are all different")
        if len(self.distances) != size or any(len(row) != size for row in self.distances):
            raise ValueError("a square table with a row for every point")
        if any(d < ZERO for row in self.distances for d in row):
            raise ValueError("distances of at least zero")
        if any(self.distances[i][i] != ZERO for i in range(size)):
            raise ValueError("zero on the diagonal: a premetric")
        return self

    @property
    def flags(self) -> Flags:
        """Computed from the table."""
        d, indices = self.distances, range(len(self.points))
        pairs = [(i, j) for i in indices for j in indices if i != j]
        return Flags(
            symmetric=all(d[i][j] == d[j][i] for i, j in pairs),
            positive=all(d[i][j] > ZERO for i, j in pairs),
            triangle=all(d[i][j] <= d[i][k] + d[k][j] for i, j in pairs for k in indices),
            neighbour_valued=all(d[i][j] in (ZERO, ONE, INFINITY) for i, j in pairs),
        )

    @property
    def record_units(self) -> frozenset[str]:
        """None: the table reads no records."""
        return frozenset()

    def matrix(self, domain: Domain) -> Matrix:
        """The table, in the order of the domain's points."""
        index = {point: i for i, point in enumerate(self.points)}
        order = domain.enumerate()
        if set(index) != set(order):
            raise elsewhere("input_premetric.points", "the table of distances")
        return tuple(tuple(self.distances[index[x]][index[y]] for y in order) for x in order)

    def distance(self, x: Any, y: Any) -> Exact:
        if x not in self.points or y not in self.points:
            raise elsewhere("input_premetric.points", "the table of distances")
        return self.distances[self.points.index(x)][self.points.index(y)]

    def sentence(self) -> str:
        return f"a change of one {self.unit}, by a given table of distances"

    @property
    def symbol(self) -> str:
        return "d_given"

    def separation(self, kept: Kept) -> Exact:
        """The least positive entry."""
        return infimum(d for row in self.distances for d in row if d > ZERO)
