"""Constraints as declared: invariants, bounds, structural zeros, edits, equality to an earlier release.

A declaration names statistics, never values. Values of invariants are read from the data once, are public
by declaration, and are all that estimation learns of the data besides the noisy measurements.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from stirred.spec import Block, Count, Level


class Invariant(Block):
    """A count that is published exactly: by a level of the spine, and by attributes if any.

    The first name in ``by`` is the level; without one the count is of the whole spine.
    """

    kind: Literal["invariant"] = "invariant"
    count: Count

    def sentence(self) -> str:
        return f"{self.count.sentence()} is exact"


class Facilities(Block):
    """People in a type of quarters are bounded by its facilities: from one each up to ``cap`` each.

    ``attribute`` is the person's type of quarters. ``sources`` says which invariant counts the facilities of
    a type; types in ``at_least_one`` are occupied, so each facility holds at least one person. Where there
    are no facilities of a type there are no people in it. Types without a source are not bounded.
    """

    kind: Literal["facilities"] = "facilities"
    unit: str = "person"
    attribute: str
    level: str
    cap: int = 99_999
    sources: dict[str, tuple[Level, ...]]
    at_least_one: tuple[Level, ...] = ()

    def sentence(self) -> str:
        return (
            f"every {self.level} has from 1 (or 0 where units may be vacant) to {self.cap:,} people "
            f"for each facility of a type of {self.attribute.replace('_', ' ')}"
        )


class StructuralZero(Block):
    """A combination of levels that cannot occur anywhere."""

    kind: Literal["structural_zero"] = "structural_zero"
    unit: str = "person"
    where: dict[str, tuple[Level, ...]]

    def sentence(self) -> str:
        parts = [
            f"{name.replace('_', ' ')} in {{{', '.join(map(str, v))}}}" for name, v in self.where.items()
        ]
        return f"no record has {' and '.join(parts)}"


class Edit(Block):
    """A bound that is known in advance: every count of a query at a level, or of some of its groups."""

    kind: Literal["edit"] = "edit"
    unit: str = "person"
    level: str
    query: str = "total"
    where: dict[str, tuple[Level, ...]] = Field(default_factory=dict)
    at_least: int = 0
    at_most: int | None = None

    def sentence(self) -> str:
        most = f" and at most {self.at_most:,}" if self.at_most is not None else ""
        return f"every count of {self.query} by {self.level} is at least {self.at_least:,}{most}"


class EqualTo(Block):
    """Equality to a query of an earlier release of the same geography; its values are already public."""

    kind: Literal["equal_to"] = "equal_to"
    unit: str = "person"
    release: str
    level: str
    query: str

    def sentence(self) -> str:
        return f"{self.query} by {self.level} equals the release {self.release}"


Declared = Invariant | Facilities | StructuralZero | Edit | EqualTo
Constraint = Annotated[Declared, Field(discriminator="kind")]


class Constraints(Block):
    """A list of declarations."""

    constraints: tuple[Constraint, ...] = ()


def as_constraints(declared: Iterable[object]) -> tuple[Declared, ...]:
    """Declarations, or the plain data of a plan, checked."""
    plain = [item.record() | {"kind": item.kind} if isinstance(item, Declared) else item for item in declared]
    return Constraints.read({"constraints": plain}).constraints
