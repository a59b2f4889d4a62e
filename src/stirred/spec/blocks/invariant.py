"""Invariants: statistics that are published exactly, declared as functions and never as values.

An invariant is *essential*: it is the function c, not the number c(x*) that the confidential data
happen to have (section 2.2 of the thesis). It serialises, computes on a frame, and prints as a
sentence; a declaration that carries a realised value is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from stirred.errors import AccidentalMultiverse, InputError, NotComputable
from stirred.interchange import as_polars
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.schema import Level, Record, Schema

if TYPE_CHECKING:
    import polars as pl

_REALISED = {
    "value",
    "values",
    "realised",
    "realized",
    "equals",
    "total",
    "data",
    "frame",
    "counts",
}

Statistic = frozenset[tuple[tuple[Level, ...], Fraction | bool]]


class Condition(Block):
    """Restricts a statistic to records whose attribute has one of these levels."""

    attribute: str
    levels: tuple[Level, ...]

    def sentence(self) -> str:
        """In words."""
        return f"{_words(self.attribute)} in {{{', '.join(map(str, self.levels))}}}"


class _Declared(Block):
    @model_validator(mode="before")
    @classmethod
    def _essential(cls, fields: Any) -> Any:
        if isinstance(fields, Mapping):
            for name in sorted(_REALISED & set(fields)):
                raise accidental(f"invariant.{name}")
        return fields


class Count(_Declared):
    """The number of units in every combination of some attributes: a marginal table, or a total."""

    kind: Literal["count"] = "count"
    unit: str
    by: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()

    def sentence(self) -> str:
        """In words."""
        return f"the number of {plural(self.unit)}" + _qualifiers(self.by, self.where)

    def needs(self) -> tuple[str, ...]:
        """Names of the attributes it reads."""
        return (*self.by, *(c.attribute for c in self.where))

    def of_frame(self, frame: pl.DataFrame, schema: Schema | None = None) -> pl.DataFrame:
        """The table of non-zero counts."""
        import polars as pl

        selected = _selected(frame, self.needs(), self.by, self.where, schema)
        return _tabulated(selected, self.by, pl.len().cast(pl.Int64).alias(_result(self.by)))

    def of_records(self, records: Iterable[Record], schema: Schema) -> Statistic:
        """The same table from records, one by one: the twin of ``of_frame``."""
        cells = Counter(_cell(r, self.by, schema) for r in records if _holds(r, self.where, schema))
        return frozenset((cell, Fraction(count)) for cell, count in cells.items())


class Sum(_Declared):
    """The sum of a numeric attribute in every combination of some other attributes."""

    kind: Literal["sum"] = "sum"
    attribute: str
    unit: str
    by: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()

    def sentence(self) -> str:
        """In words."""
        start = f"the sum of {_words(self.attribute)} over {plural(self.unit)}"
        return start + _qualifiers(self.by, self.where)

    def needs(self) -> tuple[str, ...]:
        """Names of the attributes it reads."""
        return (self.attribute, *self.by, *(c.attribute for c in self.where))

    def of_frame(self, frame: pl.DataFrame, schema: Schema | None = None) -> pl.DataFrame:
        """The table of non-zero sums."""
        import polars as pl

        selected = _selected(frame, self.needs(), (*self.by, self.attribute), self.where, schema)
        if not selected.schema[self.attribute].is_integer():
            raise _not_numeric(self.attribute)
        # 128 bits hold the sum of any file; one beyond 64 bits is refused, never wrapped around.
        name = _result(self.by)
        total = pl.col(self.attribute).cast(pl.Int128).sum().alias(name)
        table = _tabulated(selected, self.by, total)
        return table.with_columns(pl.col(name).cast(pl.Int64)).filter(pl.col(name) != 0)

    def of_records(self, records: Iterable[Record], schema: Schema) -> Statistic:
        """The same table from records, one by one."""
        sums: dict[tuple[Level, ...], Fraction] = {}
        for record in records:
            if _holds(record, self.where, schema):
                cell = _cell(record, self.by, schema)
                amount = _numeric(schema.value(record, self.attribute), self.attribute)
                sums[cell] = sums.get(cell, Fraction(0)) + amount
        return frozenset((cell, total) for cell, total in sums.items() if total != 0)


class Threshold(_Declared):
    """Whether a count or sum reaches a bound that is fixed in advance: an inequality invariant.

    ``at_least=1`` is the indicator "there is one". The bound is part of the design, not of the data.
    """

    kind: Literal["threshold"] = "threshold"
    statistic: Annotated[Count | Sum, Field(discriminator="kind")]
    at_least: int | None = None
    at_most: int | None = None

    @model_validator(mode="after")
    def _one_bound(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("exactly one of at_least and at_most")
        if (self.at_least is not None and self.at_least < 1) or (
            self.at_most is not None and self.at_most < 0
        ):
            raise ValueError("at_least of one or more, or at_most of zero or more")
        return self

    def sentence(self) -> str:
        """In words."""
        bound = f"at least {self.at_least}" if self.at_least is not None else f"at most {self.at_most}"
        return f"whether {self.statistic.sentence()} is {bound}"

    def needs(self) -> tuple[str, ...]:
        """Names of the attributes it reads."""
        return self.statistic.needs()

    def of_frame(self, frame: pl.DataFrame, schema: Schema | None = None) -> pl.DataFrame:
        """The cells on the far side of the bound (the side that an empty cell is not on)."""
        import polars as pl

        table = self.statistic.of_frame(frame, schema)
        name = _result(self.statistic.by)
        value = pl.col(name)
        beyond = value >= self.at_least if self.at_least is not None else value > self.at_most
        return table.filter(beyond).with_columns(pl.lit(True).alias(name))

    def of_records(self, records: Iterable[Record], schema: Schema) -> Statistic:
        """The same cells from records, one by one."""
        cells = self.statistic.of_records(records, schema)
        return frozenset((cell, True) for cell, value in cells if self._beyond(Fraction(value)))

    def _beyond(self, value: Fraction) -> bool:
        if self.at_least is not None:
            return value >= self.at_least
        assert self.at_most is not None
        return value > self.at_most


class Named(_Declared):
    """An invariant that is only described: it can be stated and compared, not computed."""

    kind: Literal["named"] = "named"
    name: str
    meaning: str = ""

    def sentence(self) -> str:
        """In words."""
        return self.meaning or self.name

    def needs(self) -> tuple[str, ...]:
        """It reads no declared attribute."""
        return ()

    def of_frame(self, frame: pl.DataFrame, schema: Schema | None = None) -> pl.DataFrame:
        """Refused: there is nothing to compute."""
        raise self._symbolic()

    def of_records(self, records: Iterable[Record], schema: Schema) -> Statistic:
        """Refused: there is nothing to compute."""
        raise self._symbolic()

    def _symbolic(self) -> NotComputable:
        return NotComputable(
            f"the invariant {self.name} is described, not defined",
            field="invariant",
            expected="a count, a sum or a threshold over declared attributes",
            hint="Declare it with Count, Sum or Threshold to compute it.",
        )


Invariant = Annotated[Count | Sum | Threshold | Named, Field(discriminator="kind")]


def evaluate(
    invariant: Count | Sum | Threshold | Named,
    data: object,
    schema: Schema | None = None,
) -> pl.DataFrame:
    """Compute an invariant on a frame, or on a mapping from unit to frame."""
    if isinstance(data, Mapping):
        unit = invariant.statistic.unit if isinstance(invariant, Threshold) else _unit(invariant)
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


def margins(unit: str, *tables: Iterable[str]) -> tuple[Count, ...]:
    """Margins of a contingency table, each given by its attributes."""
    return tuple(Count(unit=unit, by=tuple(table)) for table in tables)


def implied_by(
    target: Count | Sum | Threshold | Named,
    given: Iterable[Count | Sum | Threshold | Named],
    schema: Schema | None = None,
) -> bool:
    """Whether the target is a function of one of the given invariants, by aggregation.

    Assumes
        Nothing: an implication found here holds on every domain with this schema. One that is not
        found may still hold on a restricted domain; finite domains decide by enumeration.
    """
    return any(_aggregates(target, source, schema) for source in given)


def accidental(field: str) -> AccidentalMultiverse:
    """The refusal of a multiverse or invariant built from realised values."""
    return AccidentalMultiverse(
        "an invariant is the statistic, not the value that the confidential data have",
        field=field,
        expected="the name of a statistic (unit, by, where), never a number or a frame",
        hint="Declare for example Count(unit='household', by=('block',)); its value is read when the "
        "mechanism runs, and published because the invariant is declared.",
    )


def _unit(invariant: Count | Sum | Named) -> str:
    return invariant.name if isinstance(invariant, Named) else invariant.unit


def _aggregates(target: Any, source: Any, schema: Schema | None) -> bool:
    if target == source:
        return True
    if isinstance(target, Threshold):
        return _aggregates(target.statistic, source, schema)
    if not isinstance(target, Count | Sum) or not isinstance(source, Count | Sum):
        return False
    if target.unit != source.unit:
        return False
    if isinstance(source, Sum) and (not isinstance(target, Sum) or target.attribute != source.attribute):
        return False
    determined = schema.closure(source.by) if schema else frozenset(source.by)
    needed = set(target.by)
    if isinstance(target, Sum) and isinstance(source, Count):
        needed.add(target.attribute)
    extra = set(target.where) - set(source.where)
    needed |= {condition.attribute for condition in extra}
    return needed <= determined and set(source.where) <= set(target.where)


def _selected(
    frame: pl.DataFrame,
    needs: Iterable[str],
    keep: Iterable[str],
    where: Iterable[Condition],
    schema: Schema | None,
) -> pl.DataFrame:
    import polars as pl

    for recode in schema.recodes if schema else ():
        if recode.name in needs and recode.attribute in frame.columns:
            mapping = recode.mapping()
            column = pl.col(recode.attribute).replace_strict(
                list(mapping), list(mapping.values()), return_dtype=pl.String
            )
            frame = frame.with_columns(column.alias(recode.name))
    missing = [name for name in needs if name not in frame.columns]
    if missing:
        raise InputError(
            f"the frame has no column {missing[0]}",
            field=missing[0],
            expected="a column for every attribute the invariant reads",
            hint="Rename the column, or correct the invariant.",
        )
    for condition in where:
        column = pl.col(condition.attribute)
        if frame.schema[condition.attribute] == pl.Boolean:
            column = column.cast(pl.String)
        frame = frame.filter(column.is_in(list(condition.levels)))
    return frame.select(list(dict.fromkeys(keep))) if list(keep) else frame


def _tabulated(frame: pl.DataFrame, by: tuple[str, ...], aggregate: pl.Expr) -> pl.DataFrame:
    import polars as pl

    if not by:
        table = frame.select(aggregate)
        return table.filter(pl.col(_result(by)) != 0)
    return frame.group_by(list(by)).agg(aggregate).sort(list(by))


def _numeric(value: Level, attribute: str) -> Fraction:
    if isinstance(value, int):
        return Fraction(value)
    raise _not_numeric(attribute)


def _not_numeric(attribute: str) -> InputError:
    return InputError(
        f"the attribute {attribute} is summed but is not numeric",
        field=attribute,
        expected="integer levels",
        hint="Count the levels instead, or recode them as integers.",
    )


def _result(by: tuple[str, ...]) -> str:
    """The name of the result column: ``value``, lengthened where an attribute has that name."""
    name = "value"
    while name in by:
        name += "_"
    return name


def _cell(record: Record, by: Iterable[str], schema: Schema) -> tuple[Level, ...]:
    return tuple(schema.value(record, name) for name in by)


def _holds(record: Record, where: Iterable[Condition], schema: Schema) -> bool:
    return all(schema.value(record, c.attribute) in c.levels for c in where)


def _qualifiers(by: tuple[str, ...], where: tuple[Condition, ...]) -> str:
    text = f" with {' and '.join(c.sentence() for c in where)}" if where else ""
    if not by:
        return text + " in total"
    if len(by) == 1:
        return text + f" in each {_words(by[0])}"
    names = [_words(name) for name in by]
    return text + f" in each combination of {', '.join(names[:-1])} and {names[-1]}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def plural(unit: str) -> str:
    """Several units, in words."""
    words = _words(unit)
    if words.endswith("y") and words[-2:-1] not in "aeiou":
        return words[:-1] + "ies"
    return words if words.endswith("s") else words + "s"
