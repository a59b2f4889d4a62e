"""What every invariant says of itself: its words, what it reads, its value, and what it follows from."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pydantic import model_validator

from stirred.errors import AccidentalMultiverse, InputError
from stirred.interchange import as_polars
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.invariant.condition import Condition, plural
from stirred.spec.blocks.schema import Level, Record, Schema

if TYPE_CHECKING:
    import polars as pl

    from stirred.spec.blocks.invariant.additive import Additive

Statistic = frozenset[tuple[tuple[Level, ...], Fraction | bool]]

_REALISED = {"value", "values", "realised", "realized", "equals", "total", "data", "frame", "counts"}


class Declared(Block):
    """An invariant of some kind; what is not said here of a kind is not assumed of it."""

    @model_validator(mode="before")
    @classmethod
    def _essential(cls, fields: Any) -> Any:
        if isinstance(fields, Mapping):
            for name in sorted(_REALISED & set(fields)):
                raise accidental(f"invariant.{name}")
        return fields

    @abstractmethod
    def sentence(self) -> str:
        """In words."""

    @abstractmethod
    def needs(self) -> tuple[str, ...]:
        """Names of the attributes it reads."""

    @abstractmethod
    def of_frame(self, frame: pl.DataFrame, schema: Schema | None = None) -> pl.DataFrame:
        """Its value on a frame of records, as a table."""

    @abstractmethod
    def of_records(self, records: Iterable[Record], schema: Schema) -> Statistic:
        """The same from records, one by one: the twin of ``of_frame``."""

    @property
    def units(self) -> frozenset[str]:
        """Units whose records it reads; none where that is not known."""
        return frozenset()

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions whose levels the schema must have."""
        return ()

    @property
    def underlying(self) -> Additive | None:
        """The count or sum of which it is a function: itself, another, or none."""
        return None

    @property
    def is_margin(self) -> bool:
        """Whether it is a table of counts of all units: whether one follows from others is known."""
        return False

    @property
    def kept(self) -> tuple[str, ...]:
        """Attributes on which two records agree if one replaces the other and the invariant stays."""
        return ()

    def follows_from(self, source: Declared, schema: Schema | None = None) -> bool:
        """Whether it is a function of the source on every domain with this schema, by aggregation."""
        return self == source


def evaluate(invariant: Declared, data: Any, schema: Schema | None = None) -> pl.DataFrame:
    """Compute an invariant on a frame, or on a mapping from unit to frame."""
    if isinstance(data, Mapping):
        for unit in invariant.units:
            if unit not in data:
                raise InputError(
                    f"there is no frame of {plural(unit)}",
                    field="data",
                    expected=f"a frame under the key {unit}",
                    hint="Pass a mapping from unit name to frame.",
                )
            data = data[unit]
    import polars as pl

    try:
        return invariant.of_frame(as_polars(data), schema)
    except pl.exceptions.PolarsError:
        raise InputError(
            f"{invariant.sentence()} cannot be computed on this table",
            field="data",
            expected="columns of the types that the schema and the invariant declare",
            hint="Check the types of the columns; levels of conditions and recodes must match them.",
        ) from None


def implied_by(target: Declared, given: Iterable[Declared], schema: Schema | None = None) -> bool:
    """Whether the target is a function of one of the given invariants, by aggregation.

    Assumes
        Nothing: an implication found here holds on every domain with this schema. One that is not
        found may still hold on a restricted domain; finite domains decide by enumeration.
    """
    return any(target.follows_from(source, schema) for source in given)


def accidental(field: str) -> AccidentalMultiverse:
    """The refusal of a multiverse or invariant built from realised values."""
    return AccidentalMultiverse(
        "an invariant is the statistic, not the value that the confidential data have",
        field=field,
        expected="the name of a statistic (unit, by, where), never a number or a frame",
        hint="Declare for example Count(unit='household', by=('block',)); its value is read when the "
        "mechanism runs, and published because the invariant is declared.",
    )
