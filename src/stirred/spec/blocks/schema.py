"""Schema: the attributes of a record, their levels, their coarsenings and how geographies nest."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Self

from pydantic import field_validator, model_validator

from stirred.errors import InputError, NotComputable, UnknownName
from stirred.spec.blocks.block import Block

Level = int | str
Record = tuple[Level, ...]


class Attribute(Block):
    """One variable; ``levels`` lists its values where they are known and finite."""

    name: str
    levels: tuple[Level, ...] | None = None
    meaning: str = ""
    provenance: str = ""

    @field_validator("levels", mode="before")
    @classmethod
    def _no_truth_values(cls, levels: object) -> object:
        if isinstance(levels, list | tuple) and any(isinstance(level, bool) for level in levels):
            raise ValueError("levels that are numbers or text; put true and false in quotes")
        return levels

    @model_validator(mode="after")
    def _levels_distinct(self) -> Self:
        if self.levels is not None and len(set(self.levels)) != len(self.levels):
            raise ValueError("levels that are all different")
        return self


class Recode(Block):
    """A coarsening of one attribute: every level belongs to exactly one group."""

    name: str
    attribute: str
    groups: dict[str, tuple[Level, ...]]

    def mapping(self) -> dict[Level, str]:
        """From level to group."""
        return {level: group for group, levels in self.groups.items() for level in levels}


class Schema(Block):
    """The attributes a record carries.

    ``nesting`` lists pairs (finer, coarser) in which the finer attribute determines the coarser one,
    such as (block, tract) and (tract, county).
    """

    attributes: tuple[Attribute, ...]
    recodes: tuple[Recode, ...] = ()
    nesting: tuple[tuple[str, str], ...] = ()

    @model_validator(mode="after")
    def _names_resolve(self) -> Self:
        names = [a.name for a in self.attributes] + [r.name for r in self.recodes]
        if len(set(names)) != len(names):
            raise ValueError("attribute and recode names that are all different")
        known = set(names)
        if not {n for pair in self.nesting for n in pair} <= known:
            raise ValueError("nesting that refers to declared attributes")
        if not {r.attribute for r in self.recodes} <= {a.name for a in self.attributes}:
            raise ValueError("recodes that refer to declared attributes, not to other recodes")
        for recode in self.recodes:
            self._check_partition(recode)
        return self

    def _check_partition(self, recode: Recode) -> None:
        members = [level for levels in recode.groups.values() for level in levels]
        levels = self._attribute(recode.attribute).levels
        if len(set(members)) != len(members) or (levels is not None and set(members) != set(levels)):
            raise ValueError(f"recode {recode.name} to put every level in exactly one group")
        if not all(recode.groups.values()):
            raise ValueError(f"recode {recode.name} to have no empty group")

    @classmethod
    def of(cls, nesting: Iterable[tuple[str, str]] = (), **levels: Iterable[Level] | None) -> Self:
        """Short form: ``Schema.of(sex=("f", "m"), age=range(3))``."""
        attributes = tuple(
            Attribute(name=name, levels=None if values is None else tuple(values))
            for name, values in levels.items()
        )
        return cls(attributes=attributes, nesting=tuple(nesting))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the attributes, in record order."""
        return tuple(a.name for a in self.attributes)

    def _attribute(self, name: str) -> Attribute:
        return next(a for a in self.attributes if a.name == name)

    def knows(self, name: str) -> bool:
        """Whether an attribute or a recode has this name."""
        return name in self.names or any(r.name == name for r in self.recodes)

    def require(self, names: Iterable[str], field: str) -> None:
        """Refuse a name that is neither an attribute nor a recode."""
        for name in names:
            if not self.knows(name):
                raise UnknownName(
                    f"the schema has no attribute {name}",
                    field=field,
                    expected="one of " + ", ".join(self.names),
                    hint="Declare the attribute or recode in the schema, or correct the name.",
                )

    def require_levels(self, name: str, levels: Iterable[Level]) -> None:
        """Refuse a level that an attribute with known levels does not have."""
        known = next((a.levels for a in self.attributes if a.name == name), None)
        if known is not None and not set(levels) <= set(known):
            raise UnknownName(
                f"a condition names a level that {name} does not have",
                field="multiverse.invariants.where.levels",
                expected=f"levels of {name} as the schema lists them",
                hint="Correct the level: a condition that no record meets keeps nothing exact.",
            )

    def closure(self, names: Iterable[str]) -> frozenset[str]:
        """Everything that these attributes determine, by nesting and by recodes."""
        determined = set(names)
        edges = [*self.nesting, *((r.attribute, r.name) for r in self.recodes)]
        while True:
            more = {coarse for fine, coarse in edges if fine in determined} - determined
            if not more:
                return frozenset(determined)
            determined |= more

    def value(self, record: Record, name: str) -> Level:
        """The value that a record has on an attribute or recode."""
        for recode in self.recodes:
            if recode.name == name:
                return recode.mapping()[record[self.names.index(recode.attribute)]]
        return record[self.names.index(name)]

    def records(self) -> Iterator[Record]:
        """Every record that complies with the schema."""
        levels = []
        for attribute in self.attributes:
            if attribute.levels is None:
                raise NotComputable(
                    f"attribute {attribute.name} has no list of levels",
                    field=f"schema.{attribute.name}.levels",
                    expected="a finite list of levels",
                    hint="Declare the levels to enumerate the domain.",
                )
            levels.append(attribute.levels)
        return itertools.product(*levels)

    def codebook(self) -> Mapping[str, tuple[Level, ...] | None]:
        """Levels of each attribute."""
        return {a.name: a.levels for a in self.attributes}


def canonical(record: object) -> object:
    """Lists become tuples, all the way down, so that points can be compared and hashed."""
    if isinstance(record, list | tuple):
        return tuple(canonical(part) for part in record)
    if isinstance(record, int | str):
        return record
    raise InputError(
        "a point of a finite domain is built from integers, text and tuples of these",
        field="domain.points",
        expected="integers, text or nested tuples",
        hint="Encode the data set as a tuple of records.",
    )
