"""Domain: who is eligible for protection, and at which stage of the data's life."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable
from enum import StrEnum
from typing import Any, Literal, Self

from pydantic import field_validator, model_validator

from stirred.errors import DomainMismatch, NotComputable
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.schema import Schema, canonical

Point = Hashable
Structure = Literal["multiset", "vector", "graph", "table", "distribution", "object"]

LARGEST_ENUMERATION = 200_000

_SMALLER = "Use fewer levels or records: exact methods are for small twins."


class Stage(StrEnum):
    """Where in the life cycle the protection object stands; what happens upstream is not covered."""

    RAW_RESPONSES = "raw responses"
    EDITED_FILE = "edited file"
    PSEUDO_POPULATION = "pseudo-population"
    FRAME = "frame"
    TARGET_SAMPLE = "target sample"
    RESPONDING_SAMPLE = "responding sample"
    POPULATION = "population"
    DATABASE = "database"
    LAW = "law of the data"
    UNSTATED = "unstated"


class Domain(Block):
    """The set X of protection objects.

    Two domains are the same when every declared field is the same: a mechanism and its specification
    must have exactly the same domain (Remark 2.4.7 of the thesis).
    """

    name: str
    stage: Stage
    structure: Structure = "multiset"
    meaning: str = ""
    symbol: str = "X"
    latex: str = r"\mathcal{X}"
    record_schema: Schema | None = None
    sizes: tuple[int, ...] | None = None
    points: tuple[Any, ...] | None = None

    @field_validator("points", mode="before")
    @classmethod
    def _points_hashable(cls, points: Iterable[object] | None) -> tuple[object, ...] | None:
        return None if points is None else tuple(canonical(point) for point in points)

    @field_validator("sizes")
    @classmethod
    def _sizes_count(cls, sizes: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if sizes is not None and any(size < 0 for size in sizes):
            raise ValueError("sizes of at least zero")
        return sizes

    @model_validator(mode="after")
    def _points_distinct(self) -> Self:
        if self.points is not None and len(set(self.points)) != len(self.points):
            raise ValueError("points that are all different")
        return self

    @classmethod
    def finite(cls, points: Iterable[object], name: str = "X", **fields: Any) -> Self:
        """A finite domain given by its points."""
        fields.setdefault("stage", Stage.DATABASE)
        fields.setdefault("structure", "object")
        return cls(name=name, points=tuple(points), **fields)

    @classmethod
    def datasets(
        cls,
        schema: Schema,
        sizes: Iterable[int],
        *,
        structure: Literal["multiset", "vector"] = "multiset",
        name: str = "X",
        stage: Stage = Stage.DATABASE,
    ) -> Self:
        """All data sets of the given sizes over a schema with finite levels."""
        return cls(name=name, stage=stage, structure=structure, record_schema=schema, sizes=tuple(sizes))

    @property
    def is_finite(self) -> bool:
        """Whether the points can be listed."""
        if self.points is not None:
            return True
        if self.record_schema is None or self.sizes is None or self.structure not in {"multiset", "vector"}:
            return False
        return all(a.levels is not None for a in self.record_schema.attributes)

    def enumerate(self) -> tuple[Point, ...]:
        """Every point; data sets as tuples of records, sorted where order does not count."""
        if self.points is not None:
            return self.points
        if not self.is_finite or self.record_schema is None or self.sizes is None:
            raise NotComputable(
                f"the domain {self.name} is not finite",
                field="domain",
                expected="points, or a schema with levels and a list of sizes",
                hint="Build a small twin with Domain.finite or Domain.datasets.",
            )
        self._refuse_too_many()
        records = sorted(self.record_schema.records(), key=repr)
        ordered = self.structure == "vector"
        listing = (
            itertools.product(records, repeat=size)
            if ordered
            else itertools.combinations_with_replacement(records, size)
            for size in self.sizes
        )
        return tuple(itertools.chain.from_iterable(listing))

    def enumerate_at_most(self, most: int, purpose: str) -> tuple[Point, ...]:
        """Every point, or the refusal of so many."""
        points = self.enumerate()
        if len(points) > most:
            raise NotComputable(
                f"the domain {self.name} has {len(points)} points",
                field="domain",
                expected=f"at most {most} points {purpose}",
                hint=_SMALLER,
            )
        return points

    @property
    def holds_records(self) -> bool:
        """Whether the points are the data sets over a schema."""
        given = self.record_schema is not None and self.points is None
        return given and self.structure in {"multiset", "vector"}

    @property
    def obeyed_schema(self) -> Schema | None:
        """The schema; without nesting on a finite domain, which lists all combinations of levels."""
        schema = self.record_schema
        return schema.model_copy(update={"nesting": ()}) if schema and self.is_finite else schema

    def _refuse_too_many(self) -> None:
        assert self.record_schema is not None and self.sizes is not None
        cells = math.prod(len(a.levels or ()) for a in self.record_schema.attributes)
        ordered = self.structure == "vector"
        longest = max(self.sizes, default=0)
        if longest <= LARGEST_ENUMERATION:
            counts = (cells**n if ordered else math.comb(max(cells + n - 1, 0), n) for n in self.sizes)
            total = sum(counts)
        if longest > LARGEST_ENUMERATION or total > LARGEST_ENUMERATION:
            raise NotComputable(
                f"the domain {self.name} has too many points, or points of too many records",
                field="domain.sizes",
                expected=f"at most {LARGEST_ENUMERATION} points to enumerate",
                hint=_SMALLER,
            )


def differing(first: Domain, second: Domain) -> list[str]:
    """The fields in which two domains differ."""
    return [f for f in Domain.model_fields if getattr(first, f) != getattr(second, f)]


def require_same(first: Domain, second: Domain, purpose: str) -> None:
    """Refuse two domains that differ, and say in which field."""
    if first == second:
        return
    raise DomainMismatch(
        f"the domains {first.name} and {second.name} differ ({', '.join(differing(first, second))})",
        field="domain",
        expected=f"exactly the same domain on both sides to {purpose}",
        hint="Pull one specification back to the other's domain (stirred.spec.pull_back) first.",
    )
