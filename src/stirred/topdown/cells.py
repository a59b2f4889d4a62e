"""The cells of a schema and the queries over them: coarsened marginals, written ``hispanic * race``.

A query is a Kronecker product of one small coarsening per attribute. The product is never formed: a query
keeps the group of each level of each attribute, and answers by summing axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError, UnknownName
from stirred.spec import Level, Recode, Schema

TOTAL, DETAILED = "total", "detailed"
LARGEST = 1 << 24


@dataclass(frozen=True)
class Coarsening:
    """How one query sees one attribute: the group of each level; not ``kept`` where it is summed over."""

    groups: NDArray[np.int64]
    labels: tuple[Level, ...]
    kept: bool = True

    @property
    def size(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class Query:
    """A coarsened marginal: one coarsening per attribute, in the order of the schema.

    ``parts`` are the attributes and recodes that it names, also in that order; the total has none.
    """

    name: str
    parts: tuple[str, ...]
    coarsenings: tuple[Coarsening, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(c.size for c in self.coarsenings)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def groups(self) -> NDArray[np.int64]:
        """The group of every cell."""
        index = np.zeros((), dtype=np.int64)
        for coarsening in self.coarsenings:
            index = index[..., None] * coarsening.size + coarsening.groups
        return index.reshape(-1)

    def answer(self, table: NDArray[Any]) -> NDArray[Any]:
        """Sum the cells of each group; cells are on the last axis."""
        shape = tuple(c.groups.size for c in self.coarsenings)
        out = table.reshape(*table.shape[:-1], *shape)
        for axis, coarsening in enumerate(self.coarsenings):
            where = table.ndim - 1 + axis
            if coarsening.size == 1:
                out = out.sum(axis=where, keepdims=True)
            elif not np.array_equal(coarsening.groups, np.arange(coarsening.groups.size)):
                parts = [
                    out.take(np.flatnonzero(coarsening.groups == g), axis=where).sum(axis=where)
                    for g in range(coarsening.size)
                ]
                out = np.stack(parts, axis=where)
        return np.ascontiguousarray(out.reshape(*table.shape[:-1], self.size))

    def labels(self) -> list[tuple[Level, ...]]:
        """For every count the levels or groups that it counts, one per named part."""
        out: list[tuple[Level, ...]] = [()]
        for coarsening in self.coarsenings:
            if coarsening.kept:
                out = [(*row, label) for row in out for label in coarsening.labels]
        return out


class Cells:
    """Every combination of levels of a schema, numbered in row-major order."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        for name in (*schema.names, *(r.name for r in schema.recodes)):
            if name in (TOTAL, DETAILED) or "*" in name or name != name.strip():
                raise InputError(
                    f"an attribute or recode cannot be named {name!r}",
                    field="schema",
                    expected=f"names other than {TOTAL} and {DETAILED}, without * and outer spaces",
                    hint="Rename the column.",
                )
        levels: list[tuple[Level, ...]] = []
        for attribute in schema.attributes:
            if not attribute.levels:
                raise InputError(
                    f"the attribute {attribute.name} has no list of levels",
                    field=f"schema.{attribute.name}.levels",
                    expected="the levels it can have, whether or not they occur",
                    hint="Take them from the questionnaire or the codebook, never from the data.",
                )
            levels.append(attribute.levels)
        self.levels = tuple(levels)
        self.shape = tuple(len(x) for x in levels)
        self.count = math.prod(self.shape)
        if self.count > LARGEST:
            raise InputError(
                "the schema has too many cells",
                field="schema",
                expected=f"at most {LARGEST:,} combinations of levels",
                hint="Recode attributes with many levels, or split the release into two universes.",
            )
        self._queries: dict[str, Query] = {}

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    def query(self, text: str) -> Query:
        """Parse ``a * b``, ``total`` or ``detailed``; the order of the parts does not matter."""
        name = self.canonical(text)
        if name not in self._queries:
            self._queries[name] = self._parsed(name)
        return self._queries[name]

    def canonical(self, text: str) -> str:
        """The one spelling of a query: its parts in the order of the schema."""
        parts = [part.strip() for part in text.split("*")]
        if parts == [TOTAL]:
            return TOTAL
        if parts == [DETAILED]:
            return DETAILED
        axes = {}
        for part in parts:
            axis = self._axis(part, text)
            if axis in axes:
                raise InputError(
                    f"the query names the attribute {self.names[axis]} twice",
                    field="query",
                    expected="at most one of an attribute and its recodes",
                    hint="Keep the finer of the two.",
                )
            axes[axis] = part
        ordered = [axes[axis] for axis in sorted(axes)]
        return DETAILED if ordered == list(self.names) else " * ".join(ordered)

    def _axis(self, part: str, text: str) -> int:
        recode = self._recode(part)
        name = recode.attribute if recode is not None else part
        if name not in self.names:
            known = ", ".join((*self.names, *(r.name for r in self.schema.recodes), TOTAL, DETAILED))
            raise UnknownName(
                f"the query {text!r} names an unknown attribute",
                field="query",
                expected=f"parts joined by *, each one of {known}",
                hint="Declare the attribute or recode in the schema, or correct the name.",
            )
        return self.names.index(name)

    def _recode(self, name: str) -> Recode | None:
        return next((r for r in self.schema.recodes if r.name == name), None)

    def _parsed(self, name: str) -> Query:
        parts: Sequence[str] = () if name == TOTAL else self.names if name == DETAILED else name.split(" * ")
        chosen = {self._axis(part, name): part for part in parts}
        coarsenings = tuple(
            self._coarsening(axis, chosen[axis]) if axis in chosen else self._summed(axis)
            for axis in range(len(self.shape))
        )
        return Query(name, tuple(parts), coarsenings)

    def _summed(self, axis: int) -> Coarsening:
        return Coarsening(np.zeros(self.shape[axis], dtype=np.int64), (TOTAL,), kept=False)

    def _coarsening(self, axis: int, part: str) -> Coarsening:
        recode = self._recode(part)
        if recode is None:
            return Coarsening(np.arange(self.shape[axis]), self.levels[axis])
        labels = tuple(recode.groups)
        mapping = recode.mapping()
        groups = [labels.index(mapping[level]) for level in self.levels[axis]]
        return Coarsening(np.array(groups, dtype=np.int64), labels)
