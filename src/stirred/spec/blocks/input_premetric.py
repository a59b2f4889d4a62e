"""Input premetrics: the protection unit, as a distance between data sets.

A premetric is zero on the diagonal and may be infinite; symmetry, positivity and the triangle
inequality are not required but declared as flags (Definition 2.4.14 of the thesis). Two data sets are
neighbours when their distance is one; a pair at infinite distance is not compared at all.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from stirred.errors import DomainMismatch, InputError, NotComputable
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.multiverse import Multiverse
from stirred.spec.blocks.schema import canonical

Matrix = tuple[tuple[Exact, ...], ...]
Relation = Literal["replace", "replace-ordered", "add-remove", "add-remove-ordered", "edge", "node"]

ONE = Exact.of(1)
LARGEST_MATRIX = 2_000

_SHORT = {"person": "p", "household": "hh", "record": "r"}


@dataclass(frozen=True)
class Flags:
    """What is known of a premetric; theorems ask for these, never for a name."""

    symmetric: bool = True
    positive: bool = True
    triangle: bool = True
    neighbour_valued: bool = False


class _Premetric(Block):
    @property
    def flags(self) -> Flags:
        """Which axioms hold."""
        return Flags()

    def distance(self, x: Any, y: Any) -> Exact:
        """Distance of two points."""
        raise NotComputable(
            "the distances of this premetric depend on the domain, or are not given",
            field="input_premetric",
            expected="a premetric that is computed from two points alone",
            hint="Use matrix(domain) on a finite domain, or give the distances as a table.",
        )

    def matrix(self, domain: Domain) -> Matrix:
        """All distances of a finite domain, in the order of its points."""
        points = domain.enumerate()
        if len(points) > LARGEST_MATRIX:
            raise NotComputable(
                f"the domain {domain.name} has {len(points)} points",
                field="domain",
                expected=f"at most {LARGEST_MATRIX} points for a table of all distances",
                hint="Use fewer levels or records: exact methods are for small twins.",
            )
        return tuple(tuple(self.distance(x, y) for y in points) for x in points)


class Hamming(_Premetric):
    """Number of positions at which two vectors of one length differ; infinite across lengths."""

    kind: Literal["hamming"] = "hamming"
    unit: str

    def distance(self, x: Any, y: Any) -> Exact:
        """Positions that differ."""
        x, y = _records(x, y)
        if len(x) != len(y):
            return INFINITY
        return Exact.of(sum(a != b for a, b in zip(x, y, strict=True)))

    def sentence(self) -> str:
        """In words."""
        return f"one {_record(self.unit)} is replaced in its place (the order and number are known)"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"d_Ham^{_short(self.unit)}"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return _latex("Ham", self.unit)


class HammingUnordered(_Premetric):
    """Half the symmetric multiset difference of two data sets of one size; infinite across sizes.

    On ordered vectors it is a pseudo-metric: a permutation is at distance zero.
    """

    kind: Literal["hamming-unordered"] = "hamming-unordered"
    unit: str

    def distance(self, x: Any, y: Any) -> Exact:
        """Records to replace."""
        x, y = _records(x, y)
        return INFINITY if len(x) != len(y) else Exact.of(_multiset_difference(x, y)) / 2

    def sentence(self) -> str:
        """In words."""
        return f"one {_record(self.unit)} is replaced (the number of records is known)"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"d_HamS^{_short(self.unit)}"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return _latex("HamS", self.unit)


class SymmetricDifference(_Premetric):
    """Number of records to add and remove."""

    kind: Literal["symmetric-difference"] = "symmetric-difference"
    unit: str

    def distance(self, x: Any, y: Any) -> Exact:
        """Size of the symmetric multiset difference."""
        x, y = _records(x, y)
        return Exact.of(_multiset_difference(x, y))

    def sentence(self) -> str:
        """In words."""
        return f"one {_record(self.unit)} is added or removed"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"d_SymDiff^{_short(self.unit)}"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return _latex("SymDiff", self.unit)


class EditDistance(_Premetric):
    """Fewest deletions and insertions that turn one vector into the other."""

    kind: Literal["edit"] = "edit"
    unit: str

    def distance(self, x: Any, y: Any) -> Exact:
        """|x| + |y| - 2 LCS(x, y)."""
        x, y = _records(x, y)
        row = [0] * (len(y) + 1)
        for a in x:
            diagonal = 0
            for j, b in enumerate(y):
                above = row[j + 1]
                row[j + 1] = diagonal + 1 if a == b else max(above, row[j])
                diagonal = above
        return Exact.of(len(x) + len(y) - 2 * row[-1])

    def sentence(self) -> str:
        """In words."""
        return f"one {_record(self.unit)} is inserted into or deleted from the sequence"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"d_edit^{_short(self.unit)}"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return _latex("edit", self.unit)


class GraphEdit(_Premetric):
    """Edges, or nodes with all their edges, in which two graphs on the same vertices differ.

    A graph is a point (number of vertices, ((i, j), ...)) with i < j.
    """

    kind: Literal["graph"] = "graph"
    unit: Literal["edge", "node"]

    def distance(self, x: Any, y: Any) -> Exact:
        """Size of the edge difference, or of its least vertex cover."""
        x, y = _records(x, y)
        if x[0] != y[0]:
            return INFINITY
        changed = set(x[1]) ^ set(y[1])
        if self.unit == "edge":
            return Exact.of(len(changed))
        return Exact.of(_least_cover(x[0], changed))

    def sentence(self) -> str:
        """In words."""
        return (
            "one edge is added or removed"
            if self.unit == "edge"
            else "all edges of one node are changed at will"
        )

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"d_{self.unit}"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"d_{{\mathrm{{{self.unit}}}}}"


_SHARPENED: dict[str, Any] = {
    "replace": lambda unit: HammingUnordered(unit=unit),
    "replace-ordered": lambda unit: Hamming(unit=unit),
    "add-remove": lambda unit: SymmetricDifference(unit=unit),
    "add-remove-ordered": lambda unit: EditDistance(unit=unit),
    "edge": lambda unit: GraphEdit(unit="edge"),
    "node": lambda unit: GraphEdit(unit="node"),
}

_RELATION_SYMBOL = {
    "replace": "bs",
    "replace-ordered": "bv",
    "add-remove": "us",
    "add-remove-ordered": "uv",
    "edge": "edge",
    "node": "node",
}


class Neighbours(_Premetric):
    """Induced by a neighbour relation: 0 if equal, 1 if neighbours, infinite otherwise (A.2)."""

    kind: Literal["neighbours"] = "neighbours"
    relation: Relation
    unit: str

    @property
    def flags(self) -> Flags:
        """Only neighbours are compared, so the triangle inequality fails."""
        return Flags(triangle=False, neighbour_valued=True)

    @property
    def sharpened(self) -> Any:
        """The shortest-path distance on a full domain (Appendix A.4 of the thesis)."""
        return _SHARPENED[self.relation](self.unit)

    def distance(self, x: Any, y: Any) -> Exact:
        """0, 1 or infinity."""
        if x == y:
            return ZERO
        return ONE if self.sharpened.distance(x, y) == ONE else INFINITY

    def sentence(self) -> str:
        """In words."""
        return f"{self.sharpened.sentence()}; larger changes are not compared"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"d_r({_RELATION_SYMBOL[self.relation]})^{_short(self.unit)}"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"d_{{r_{{\mathrm{{{_RELATION_SYMBOL[self.relation]}}}}}}}^{{{_short(self.unit)}}}"


class Given(_Premetric):
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

    def matrix(self, domain: Domain) -> Matrix:
        """The table, in the order of the domain's points."""
        index = {point: i for i, point in enumerate(self.points)}
        order = domain.enumerate()
        if set(index) != set(order):
            raise _elsewhere("input_premetric.points", "the table of distances")
        return tuple(tuple(self.distances[index[x]][index[y]] for y in order) for x in order)

    def distance(self, x: Any, y: Any) -> Exact:
        """Look the pair up."""
        if x not in self.points or y not in self.points:
            raise _elsewhere("input_premetric.points", "the table of distances")
        return self.distances[self.points.index(x)][self.points.index(y)]

    def sentence(self) -> str:
        """In words."""
        return f"a change of one {self.unit}, by a given table of distances"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return "d_given"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return r"d_{\mathrm{given}}"


class Described(_Premetric):
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
        """As claimed."""
        return Flags(self.symmetric, self.positive, self.triangle, self.neighbour_valued)

    def sentence(self) -> str:
        """In words."""
        return self.meaning

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return self.name

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"\mathit{{{self.name}}}"


class Encoded(_Premetric):
    """A multiverse written into the distance: infinite for pairs that share no universe (A.3.1)."""

    kind: Literal["encoded"] = "encoded"
    base: InputPremetric
    multiverse: Multiverse

    @property
    def unit(self) -> str:
        """The base's unit."""
        return self.base.unit

    @property
    def flags(self) -> Flags:
        """Symmetry and positivity are kept; the triangle inequality may break."""
        base = self.base.flags
        return Flags(base.symmetric, base.positive, False, base.neighbour_valued)

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
        """In words."""
        return f"{self.base.sentence()}, only between {self.multiverse.sentence()}"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"{self.base.symbol}|{self.multiverse.symbol}"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"{self.base.latex}|_{{{self.multiverse.latex}}}"


class Sharpened(_Premetric):
    """Shortest directed path through the domain with the base as lengths (Definition A.4.1)."""

    kind: Literal["sharpened"] = "sharpened"
    base: InputPremetric

    @property
    def unit(self) -> str:
        """The base's unit."""
        return self.base.unit

    @property
    def flags(self) -> Flags:
        """Shortest paths obey the triangle inequality."""
        return Flags(self.base.flags.symmetric, self.base.flags.positive, True, False)

    def matrix(self, domain: Domain) -> Matrix:
        """All shortest paths (Floyd and Warshall)."""
        return shortest_paths(self.base.matrix(domain))

    def sentence(self) -> str:
        """In words."""
        return f"{self.base.sentence()}; larger changes count as chains of these"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"{self.base.symbol}*"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"{{{self.base.latex}}}^{{*}}"


class Maximum(_Premetric):
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

    def distance(self, x: Any, y: Any) -> Exact:
        """The largest."""
        return max(part.distance(x, y) for part in self.parts)

    def matrix(self, domain: Domain) -> Matrix:
        """Entry by entry."""
        matrices = [part.matrix(domain) for part in self.parts]
        return tuple(
            tuple(max(entries) for entries in zip(*rows, strict=True)) for rows in zip(*matrices, strict=True)
        )

    def sentence(self) -> str:
        """In words."""
        return "a change that is at most one unit in each of: " + "; ".join(
            part.sentence() for part in self.parts
        )

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"max({', '.join(part.symbol for part in self.parts)})"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"\max({', '.join(part.latex for part in self.parts)})"


class PulledBack(_Premetric):
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
    def unit(self) -> str:
        """The base's unit."""
        return self.base.unit

    @property
    def flags(self) -> Flags:
        """Two raw points may have one image, so positivity is lost."""
        base = self.base.flags
        return Flags(base.symmetric, False, base.triangle, base.neighbour_valued)

    def distance(self, x: Any, y: Any) -> Exact:
        """Distance of the images."""
        lookup = dict(self.images)
        if x not in lookup or y not in lookup:
            raise _elsewhere("input_premetric.images", f"the step {self.step}")
        return self.base.distance(lookup[x], lookup[y])

    def sentence(self) -> str:
        """In words."""
        return f"{self.base.sentence()}, measured after {self.step}"

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"{self.base.symbol}∘{self.step}"

    @property
    def latex(self) -> str:
        """LaTeX symbol."""
        return rf"{self.base.latex} \circ \mathrm{{{self.step}}}"


InputPremetric = Annotated[
    Hamming
    | HammingUnordered
    | SymmetricDifference
    | EditDistance
    | GraphEdit
    | Neighbours
    | Given
    | Described
    | Encoded
    | Sharpened
    | Maximum
    | PulledBack,
    Field(discriminator="kind"),
]
for _model in (Encoded, Sharpened, Maximum, PulledBack):
    _model.model_rebuild()


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


def neighbours_of(premetric: Any) -> Any:
    """The neighbour premetric of a distance: what remains when only distance one is kept."""
    if premetric.flags.neighbour_valued:
        return premetric
    for relation, sharpened in _SHARPENED.items():
        if sharpened(premetric.unit) == premetric:
            return Neighbours.model_validate({"relation": relation, "unit": premetric.unit})
    if isinstance(premetric, Maximum):
        return Maximum(parts=tuple(neighbours_of(part) for part in premetric.parts))
    raise InputError(
        "this premetric has no known neighbour relation",
        field="input_premetric",
        expected="a Hamming, symmetric-difference, edit or graph distance",
        hint="State the neighbours yourself with kind 'given' or 'described'.",
    )


def _elsewhere(field: str, what: str) -> DomainMismatch:
    return DomainMismatch(
        f"{what} is not on the points of the domain",
        field=field,
        expected="exactly the points of the domain",
        hint="Give one row, column or image for every point.",
    )


def _records(*points: Any) -> tuple[Any, ...]:
    """Points as data sets; anything that is not a tuple of records is refused."""
    if not all(isinstance(point, tuple | list | str) for point in points):
        raise InputError(
            "this premetric compares data sets, and the points are not data sets",
            field="input_premetric",
            expected="points that are tuples of records (graphs: vertices and edges)",
            hint="Use kind 'given' for a domain of plain labels.",
        )
    return points


def _record(unit: str) -> str:
    return unit if unit.endswith("record") else f"{unit} record"


def _short(unit: str) -> str:
    return _SHORT.get(unit, unit.replace(" ", "-"))


def _latex(base: str, unit: str) -> str:
    return rf"d_{{\mathrm{{{base}}}}}^{{\mathrm{{{_short(unit)}}}}}"


def _multiset_difference(x: Iterable[Any], y: Iterable[Any]) -> int:
    first, second = Counter(x), Counter(y)
    return (first - second).total() + (second - first).total()


def _least_cover(vertices: int, edges: set[tuple[int, int]]) -> int:
    touched = sorted({v for edge in edges for v in edge})
    for size in range(min(len(touched), vertices) + 1):
        for cover in itertools.combinations(touched, size):
            if all(i in cover or j in cover for i, j in edges):
                return size
    return len(touched)
