"""A table and what the invariants see of its records: which of them may move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.audit.claim import require_claim, table_in
from stirred.errors import NotComputable
from stirred.interchange import as_polars
from stirred.spec import (
    Condition,
    Count,
    Schema,
    Specification,
    Sum,
    Threshold,
    declared_invariants,
    evaluate,
)

Indices = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Feature:
    """One thing that an invariant sees of a record: a value, a group, or whether the record counts."""

    name: str
    condition: Condition | Literal["not zero"] | None = None

    def of(self, frame: pl.DataFrame, schema: Schema) -> pl.Expr:
        """The feature as an expression over the columns of a frame."""
        column = pl.col(self.name)
        for recode in schema.recodes:
            if recode.name == self.name:
                mapping = recode.mapping()
                column = pl.col(recode.attribute).replace_strict(
                    list(mapping), list(mapping.values()), return_dtype=pl.String
                )
        if self.condition is None:
            return column
        if not isinstance(self.condition, Condition):
            return (column != 0).fill_null(False)
        if self.name in frame.columns and frame.schema[self.name] == pl.Boolean:
            column = column.cast(pl.String)
        return column.is_in(list(self.condition.levels)).fill_null(False)

    def owner(self, schema: Schema) -> str:
        """The attribute that it is a function of."""
        return next((r.attribute for r in schema.recodes if r.name == self.name), self.name)


@dataclass(frozen=True)
class Seen:
    """What one linear invariant sees: the table it counts in, and who is counted."""

    cell: tuple[int, ...]
    where: tuple[int, ...]


@dataclass(frozen=True)
class MovableTable:
    """A frame with what moves must know of it."""

    frame: pl.DataFrame
    schema: Schema
    linear: tuple[Count | Sum, ...]
    thresholds: tuple[Threshold, ...]
    movable: tuple[tuple[str, ...], ...]
    compounds: tuple[tuple[str, ...], ...]
    places: pl.DataFrame | None

    @cached_property
    def names(self) -> list[str]:
        return [name for compound in self.compounds for name in compound]

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        out: dict[Feature, None] = {}
        for invariant in self.linear:
            out |= dict.fromkeys([*_cell_features(invariant), *_where_features(invariant)])
        return tuple(out)

    @cached_property
    def seen(self) -> tuple[Seen, ...]:
        place = {feature: number for number, feature in enumerate(self.features)}
        return tuple(
            Seen(tuple(place[f] for f in _cell_features(i)), tuple(place[f] for f in _where_features(i)))
            for i in self.linear
        )

    @cached_property
    def compound_of_feature(self) -> tuple[tuple[str, ...], ...]:
        owners = [feature.owner(self.schema) for feature in self.features]
        return tuple(next(c for c in self.compounds if owner in c) for owner in owners)

    def evaluated(self, frame: pl.DataFrame, features: Sequence[int]) -> pl.DataFrame:
        """Some features of some records, in columns named by their numbers."""
        expressions = [self.features[f].of(frame, self.schema).alias(f"__f{f}") for f in features]
        return frame.select(expressions)

    def pinned(self, compound: tuple[str, ...]) -> list[int]:
        """The features that a compound decides."""
        return [f for f, owner in enumerate(self.compound_of_feature) if owner == compound]

    def strict(self) -> MovableTable:
        """The same table with every thresholded statistic held fixed: enough to keep the threshold."""
        linear = (*self.linear, *(t.statistic for t in self.thresholds))
        return MovableTable(self.frame, self.schema, linear, (), self.movable, self.compounds, self.places)


def table_of(
    claim: Specification, data: Any, columns: Iterable[str] | None, places: pl.DataFrame | None
) -> MovableTable:
    """The table of the protection unit, with what the claim's invariants see of it."""
    require_claim(claim)
    schema, invariants = claim.domain.record_schema, declared_invariants(claim.multiverse)
    if schema is None or invariants is None:
        raise NotComputable(
            "moves are made from declared attributes and invariants",
            field="claim",
            expected="a domain with a schema, and a multiverse of invariants",
            hint="List the universe instead.",
        )
    for invariant in invariants:
        evaluate(invariant, data, schema)
    unit = claim.input_premetric.unit
    if isinstance(data, Mapping):
        frame = table_in(data, unit)
        invariants = tuple(i for i in invariants if _unit(i) == unit)
    else:
        frame = as_polars(data)
    compounds = _compounds(schema, frame.columns)
    allowed = set(schema.names if columns is None else columns)
    schema.require(allowed, "columns")
    return MovableTable(
        frame=frame,
        schema=schema,
        linear=tuple(i for i in invariants if isinstance(i, Count | Sum)),
        thresholds=tuple(i for i in invariants if isinstance(i, Threshold)),
        movable=tuple(c for c in compounds if allowed & set(c)),
        compounds=compounds,
        places=places,
    )


def _compounds(schema: Schema, columns: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """The attributes that are columns, those that nest together."""
    parts = [{name} for name in schema.names]
    for pair in schema.nesting:
        owners = {Feature(name).owner(schema) for name in pair}
        joined = set().union(*(part for part in parts if part & owners))
        parts = [part for part in parts if not part & owners] + [joined]
    present = [tuple(n for n in schema.names if n in part and n in columns) for part in parts]
    return tuple(sorted((c for c in present if c), key=lambda c: schema.names.index(c[0])))


def _cell_features(invariant: Count | Sum) -> list[Feature]:
    names = (*invariant.by, invariant.attribute) if isinstance(invariant, Sum) else invariant.by
    return [Feature(name) for name in names]


def _where_features(invariant: Count | Sum) -> list[Feature]:
    """What decides whether a record counts; one that adds zero to a sum does not."""
    conditions = [Feature(condition.attribute, condition) for condition in invariant.where]
    return (
        [*conditions, Feature(invariant.attribute, "not zero")] if isinstance(invariant, Sum) else conditions
    )


def _unit(invariant: Any) -> str:
    return str(invariant.statistic.unit if isinstance(invariant, Threshold) else invariant.unit)


def codes_of(frame: pl.DataFrame) -> Indices:
    """The number of each row's value among the distinct values."""
    names = frame.columns
    distinct = frame.unique(maintain_order=True).with_row_index("__code")
    joined = frame.join(distinct, on=names, how="left", nulls_equal=True, maintain_order="left")
    return joined["__code"].to_numpy().astype(np.int64)


def is_value(feature: Feature) -> bool:
    """Whether a feature is a value, not the truth of a condition."""
    return feature.condition is None


def truth_of(table: MovableTable, frame: pl.DataFrame, feature: int) -> Mask:
    """Where the condition of a feature holds."""
    return table.evaluated(frame, [feature]).to_series().to_numpy()


def differ(first: Any, second: Any) -> Mask:
    """Where two columns differ; a missing value equals another."""
    unequal = first.ne_missing(second) if isinstance(first, pl.Series) else first != second
    return np.asarray(unequal, dtype=np.bool_)


def is_counted(features: Mapping[str, Any], seen: Seen, height: int) -> Mask:
    """Which records an invariant counts at all."""
    counted = np.ones(height, dtype=np.bool_)
    for f in seen.where:
        counted &= np.asarray(features[f"__f{f}"], dtype=np.bool_)
    return counted


def same_statistics(first: Mapping[str, Any], second: Mapping[str, Any], seen: Seen, height: int) -> Mask:
    """Whether one invariant sees the same in two records."""
    counted, still = (is_counted(features, seen, height) for features in (first, second))
    alike = np.ones(height, dtype=np.bool_)
    for f in seen.cell:
        alike &= ~differ(first[f"__f{f}"], second[f"__f{f}"])
    same: Mask = (counted == still) & (~counted | alike)
    return same
