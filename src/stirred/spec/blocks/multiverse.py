"""Multiverse: where protection extends to. Universes are sets of points that are told apart never.

Protection is promised between two points only if they share a universe. Invariants carve the domain
into universes on which they are constant (equation 2.4 of the thesis).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_serializer, field_validator

from stirred.errors import InputError, NotComputable
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.domain import Domain, Point
from stirred.spec.blocks.invariant import Declared, Invariant, accidental, implied_by
from stirred.spec.blocks.schema import Schema, canonical

Universe = frozenset[Any]


class Trivial(Block):
    """One universe: the whole domain. Nothing is invariant."""

    symbol: ClassVar[str] = "{X}"

    kind: Literal["trivial"] = "trivial"

    def universes(self, domain: Domain) -> tuple[Universe, ...]:
        """The domain itself."""
        return (frozenset(domain.enumerate()),)

    def sentence(self) -> str:
        """In words."""
        return "every pair of data sets in the domain; nothing is kept exact"


class Invariants(Block):
    """Universes on which the declared invariants are constant: a partition of the domain."""

    kind: Literal["invariants"] = "invariants"
    invariants: tuple[Invariant, ...]
    label: str = "c"

    def universes(self, domain: Domain) -> tuple[Universe, ...]:
        """Group the points of a finite domain by the values of the invariants."""
        if domain.record_schema is None or domain.structure not in {"multiset", "vector"}:
            raise NotComputable(
                "invariants are computed on data sets",
                field="multiverse.invariants",
                expected="a finite domain of multisets or vectors with a schema",
                hint="Use Domain.datasets, or Explicit.from_function for other domains.",
            )
        if len(invariant_units(self)) > 1:
            raise NotComputable(
                "the invariants count different units",
                field="multiverse.invariants",
                expected="invariants of the one unit whose records the domain lists",
                hint="A domain that can be listed has one kind of record; list the universes instead.",
            )
        schema = domain.record_schema
        return Explicit.from_function(domain, lambda point: self.value(point, schema)).parts

    def value(self, point: Any, schema: Schema) -> tuple[object, ...]:
        """The values of all invariants on one data set."""
        return tuple(invariant.of_records(point, schema) for invariant in self.invariants)

    def sentence(self) -> str:
        """In words."""
        return "data sets that agree on " + "; ".join(i.sentence() for i in self.invariants)

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return f"𝒟_{self.label}"


class Explicit(Block):
    """A finite multiverse given by its universes; they may overlap and need not cover the domain."""

    symbol: ClassVar[str] = "𝒟"

    kind: Literal["explicit"] = "explicit"
    parts: tuple[Any, ...]

    @field_validator("parts", mode="before")
    @classmethod
    def _sets(cls, parts: Iterable[Iterable[object]]) -> tuple[Universe, ...]:
        return tuple(frozenset(canonical(point) for point in part) for part in parts)

    @field_serializer("parts")
    def _lists(self, parts: tuple[Universe, ...]) -> list[list[object]]:
        return [sorted((_jsonable(p) for p in part), key=repr) for part in parts]

    @classmethod
    def from_function(cls, domain: Domain, function: Callable[[Any], object]) -> Explicit:
        """Universes on which a function of the point is constant (a universe function's fibres)."""
        groups: dict[object, list[Point]] = {}
        for point in domain.enumerate():
            groups.setdefault(function(point), []).append(point)
        return cls(parts=tuple(groups.values()))

    @classmethod
    def from_universe_function(cls, domain: Domain, function: Callable[[Any], Iterable[object]]) -> Explicit:
        """The image of a universe function D(x); x need not belong to D(x)."""
        images = (frozenset(canonical(p) for p in function(x)) for x in domain.enumerate())
        return cls(parts=tuple(dict.fromkeys(images)))

    def universes(self, domain: Domain) -> tuple[Universe, ...]:
        """The universes, checked against the domain."""
        points = frozenset(domain.enumerate())
        for index, part in enumerate(self.parts):
            if not part <= points:
                raise InputError(
                    f"universe {index} contains points outside the domain",
                    field=f"multiverse.parts[{index}]",
                    expected=f"a subset of the domain {domain.name}",
                    hint="List only points of the domain.",
                )
        return tuple(self.parts)

    def sentence(self) -> str:
        """In words."""
        return f"pairs of points that share one of {len(self.parts)} listed universes"


class Intersection(Block):
    """All non-empty intersections of universes, one of each part: the multiverse of a meet (R32)."""

    kind: Literal["intersection"] = "intersection"
    parts: tuple[Multiverse, ...]

    def universes(self, domain: Domain) -> tuple[Universe, ...]:
        """Intersect the universes of all parts."""
        current = [frozenset(domain.enumerate())]
        for part in self.parts:
            crossed = (a & b for a in current for b in part.universes(domain))
            current = [u for u in dict.fromkeys(crossed) if u]
        return tuple(current)

    def sentence(self) -> str:
        """In words."""
        return ", and at once ".join(part.sentence() for part in self.parts)

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return " ⊓ ".join(part.symbol for part in self.parts)


class DescribedMultiverse(Block):
    """A multiverse that is only described. ``accidental`` marks one pinned to realised data."""

    kind: Literal["described"] = "described"
    name: str
    meaning: str
    accidental: bool = False

    def universes(self, domain: Domain) -> tuple[Universe, ...]:
        """Refused: there is nothing to enumerate."""
        raise NotComputable(
            f"the multiverse {self.name} is described, not defined",
            field="multiverse",
            expected="invariants, or a list of universes",
            hint="Use Explicit.from_universe_function on a finite domain.",
        )

    def sentence(self) -> str:
        """In words."""
        return self.meaning

    @property
    def symbol(self) -> str:
        """Unicode symbol."""
        return self.name


AnyMultiverse = Trivial | Invariants | Explicit | Intersection | DescribedMultiverse
Multiverse = Annotated[AnyMultiverse, Field(discriminator="kind")]
Intersection.model_rebuild()


def pairs_in(universes: Iterable[Universe], domain: Domain) -> Iterator[tuple[int, int, int]]:
    """Every ordered pair of different points that share a universe: its number, and theirs in the domain."""
    index = {point: i for i, point in enumerate(domain.enumerate())}
    for number, universe in enumerate(universes):
        for i, j in itertools.permutations(sorted(index[point] for point in universe), 2):
            yield number, i, j


def from_invariants(*invariants: object, label: str = "c") -> Invariants:
    """The multiverse of some invariants; anything that is not a declaration is refused as accidental."""
    flat: list[Any] = []
    for item in invariants:
        flat.extend(item if isinstance(item, list | tuple) else [item])
    if not all(isinstance(item, Declared) for item in flat):
        raise accidental("multiverse.invariants")
    return Invariants(invariants=tuple(flat), label=label)


def intersect(first: AnyMultiverse, second: AnyMultiverse) -> AnyMultiverse:
    """The coarsest multiverse that refines both."""
    if first == second or isinstance(second, Trivial):
        return first
    if isinstance(first, Trivial):
        return second
    if isinstance(first, Invariants) and isinstance(second, Invariants):
        added = (i for i in second.invariants if not implied_by(i, first.invariants))
        merged = tuple(dict.fromkeys((*first.invariants, *added)))
        labels = dict.fromkeys((first.label, second.label))
        label = first.label if merged == first.invariants else "+".join(labels)
        return Invariants(invariants=merged, label=label)
    flat = [p for m in (first, second) for p in (m.parts if isinstance(m, Intersection) else (m,))]
    return Intersection(parts=tuple(dict.fromkeys(flat)))


def declared_invariants(multiverse: AnyMultiverse) -> tuple[Any, ...] | None:
    """The invariants on which a multiverse conditions; ``None`` where they are not declared as such."""
    if isinstance(multiverse, Trivial):
        return ()
    if isinstance(multiverse, Invariants):
        return multiverse.invariants
    if isinstance(multiverse, Intersection):
        parts = [declared_invariants(part) for part in multiverse.parts]
        return None if None in parts else known_invariants(multiverse)
    return None


def known_invariants(multiverse: AnyMultiverse) -> tuple[Declared, ...]:
    """Invariants on which a multiverse certainly conditions, perhaps among others."""
    if isinstance(multiverse, Invariants):
        return multiverse.invariants
    if isinstance(multiverse, Intersection):
        return tuple(i for part in multiverse.parts for i in known_invariants(part))
    return ()


def invariant_units(multiverse: AnyMultiverse) -> frozenset[str]:
    """The units that the declared invariants of a multiverse count."""
    return frozenset().union(*(invariant.units for invariant in known_invariants(multiverse)))


def conditions_on(
    multiverse: AnyMultiverse, invariant: Declared, domain: Domain, units: frozenset[str] = frozenset()
) -> bool:
    """Whether the invariant is constant on every universe.

    Finite domains are listed where the invariants, and ``units`` that others read there, are one unit.
    """
    schema = domain.record_schema
    one = len(units | invariant_units(multiverse) | invariant.units) <= 1
    with contextlib.suppress(NotComputable):
        if schema is not None and one:
            return all(
                len({invariant.of_records(point, schema) for point in universe}) <= 1
                for universe in multiverse.universes(domain)
            )
    return implied_by(invariant, known_invariants(multiverse), schema)


def refines(
    fine: AnyMultiverse, coarse: AnyMultiverse, domain: Domain, units: frozenset[str] = frozenset()
) -> bool | None:
    """Whether every universe of the first lies inside one of the second; ``None`` if not decided.

    Reference
        Section 2.4.3 of the thesis; Proposition 3 of Bailie, Gong and Meng. Finite domains are decided by
        enumeration, where all invariants (and ``units`` that others read there) are of one unit. Declared
        invariants are decided by aggregation; "no" is said of plain marginal tables only, for a domain whose
        attributes vary freely: such a table is a function of others only if it is a margin of one of them.
    """
    if fine == coarse or isinstance(coarse, Trivial):
        return True
    invariants = invariant_units(fine) | invariant_units(coarse)
    with contextlib.suppress(NotComputable):
        if not invariants or len(invariants | units) == 1:
            inside = coarse.universes(domain)
            return all(any(d <= e for e in inside) for d in fine.universes(domain))
    given, wanted = known_invariants(fine), declared_invariants(coarse)
    if wanted is None:
        return None
    unproved = [target for target in wanted if not implied_by(target, given, domain.record_schema)]
    if not unproved:
        return True
    plain = declared_invariants(fine) is not None and all(i.is_margin for i in given)
    return False if plain and any(i.is_margin for i in unproved) else None


def _jsonable(point: object) -> object:
    return [_jsonable(p) for p in point] if isinstance(point, tuple) else point
