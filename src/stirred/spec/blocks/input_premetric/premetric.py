"""What every input premetric says of itself: distances, axioms, and what theorems ask of it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from stirred.errors import DomainMismatch, InputError, NotComputable
from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.domain import Domain, Structure
from stirred.spec.blocks.kept import Kept

if TYPE_CHECKING:
    from stirred.spec.blocks.multiverse import AnyMultiverse

Matrix = tuple[tuple[Exact, ...], ...]

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


class Change(NamedTuple):
    """What a change of one unit does: to which structure, and whether the number of records stays."""

    structure: Structure
    keeps_size: bool


REPLACED = Change("multiset", keeps_size=True)
REPLACED_IN_PLACE = Change("vector", keeps_size=True)
ADDED = Change("multiset", keeps_size=False)
INSERTED = Change("vector", keeps_size=False)


class Premetric(Block):
    """A distance between points; what is not said here of a kind is not assumed of it."""

    if TYPE_CHECKING:

        @property
        def unit(self) -> str:
            """The protection unit."""

    @property
    @abstractmethod
    def symbol(self) -> str:
        """Unicode symbol."""

    @abstractmethod
    def sentence(self) -> str:
        """What a change of one unit is, in words."""

    @property
    def flags(self) -> Flags:
        """Which axioms hold."""
        return Flags()

    @property
    def change(self) -> Change | None:
        """What a change of one unit does to a data set, where it is a change of records or of a graph."""
        return None

    @property
    def sharpened(self) -> Premetric | None:
        """Of a neighbour relation its shortest-path distance on a full domain (A.4 of the thesis)."""
        return None

    @property
    def inner(self) -> tuple[Premetric, ...]:
        """The premetrics from which it is made."""
        return ()

    @property
    def pieces(self) -> tuple[Premetric, ...]:
        """The premetrics of which it is the maximum."""
        return (self,)

    @property
    def record_units(self) -> frozenset[str]:
        """Units of the records that it reads; none where its distances are given or only described."""
        read = frozenset[str]().union(*(part.record_units for part in self.inner))
        return read if self.inner else frozenset({self.unit})

    @property
    def fixed_totals(self) -> frozenset[str]:
        """Units whose number is the same in data sets at finite distance."""
        if self.change in (REPLACED, REPLACED_IN_PLACE):
            return self.record_units
        return frozenset().union(*(part.fixed_totals for part in self.inner))

    @property
    def multiverses(self) -> tuple[AnyMultiverse, ...]:
        """The multiverses that are written into it."""
        return tuple(multiverse for part in self.inner for multiverse in part.multiverses)

    @property
    def of_two_points(self) -> bool:
        """Whether a distance is known from the two data sets alone, whatever the domain."""
        return self.change is not None

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
        points = domain.enumerate_at_most(LARGEST_MATRIX, "for a table of all distances")
        return tuple(tuple(self.distance(x, y) for y in points) for x in points)

    def separation(self, kept: Kept) -> Exact | None:
        """A lower bound on its positive distances in a universe; ``None`` where there is none."""
        return None

    def bounded_by(self, larger: Premetric) -> tuple[Fraction, str] | None:
        """The l of l d <= d' for a premetric of the same unit that is known to be larger, and why."""
        return None


def elsewhere(field: str, what: str) -> DomainMismatch:
    """The refusal of a table or step that is not on the points of the domain."""
    return DomainMismatch(
        f"{what} is not on the points of the domain",
        field=field,
        expected="exactly the points of the domain",
        hint="Give one row, column or image for every point.",
    )


def data_sets(*points: Any) -> tuple[Any, ...]:
    """Points as data sets; anything that is not a tuple of records is refused."""
    if not all(isinstance(point, tuple | list | str) for point in points):
        raise InputError(
            "this premetric compares data sets, and the points are not data sets",
            field="input_premetric",
            expected="points that are tuples of records (graphs: vertices and edges)",
            hint="Use kind 'given' for a domain of plain labels.",
        )
    return points


def short(unit: str) -> str:
    """The unit as it stands in a symbol."""
    return _SHORT.get(unit, unit.replace(" ", "-"))
