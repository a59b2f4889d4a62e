"""A kind of invariant of one's own: one class, one line in the table of kinds, and everything works."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Literal

import polars as pl
import pytest

from stirred.errors import AccidentalMultiverse, InputError, UnknownName
from stirred.spec import (
    Budget,
    Count,
    Domain,
    HammingUnordered,
    Multiplicative,
    Order,
    Record,
    Schema,
    Specification,
    Trivial,
    compare,
    compose,
    declared_invariants,
    evaluate,
    from_invariants,
    satisfies,
)
from stirred.spec.blocks.invariant import KINDS, Declared, Statistic
from stirred.spec.finite.mechanism import FiniteMechanism

SCHEMA = Schema.of(sex=("f", "m"), age=range(3))


@KINDS.add
class Largest(Declared):
    """The largest value of an attribute."""

    kind: Literal["largest"] = "largest"
    attribute: str
    unit: str

    def sentence(self) -> str:
        return f"the largest {self.attribute} of any {self.unit}"

    def needs(self) -> tuple[str, ...]:
        return (self.attribute,)

    @property
    def units(self) -> frozenset[str]:
        return frozenset({self.unit})

    def of_frame(self, frame: pl.DataFrame, schema: Schema | None = None) -> pl.DataFrame:
        return frame.select(pl.col(self.attribute).max().alias("value"))

    def of_records(self, records: Iterable[Record], schema: Schema) -> Statistic:
        values = [schema.value(record, self.attribute) for record in records]
        return frozenset({((), Fraction(max(map(int, values))))} if values else ())

    def follows_from(self, source: Declared, schema: Schema | None = None) -> bool:
        return self == source or (isinstance(source, Count) and source.is_margin and "age" in source.by)


OLDEST = Largest(attribute="age", unit="person")
BY_AGE = Count(unit="person", by=("age",))


def stated(multiverse: object, domain: Domain) -> Specification:
    return Specification(
        domain=domain,
        multiverse=multiverse,
        input_premetric=HammingUnordered(unit="person"),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )


@pytest.fixture(params=["listed", "declared"])
def domain(request: pytest.FixtureRequest) -> Domain:
    if request.param == "listed":
        return Domain.datasets(SCHEMA, sizes=(2,))
    return Domain(name="persons", stage="edited file", record_schema=SCHEMA)


def test_a_kind_has_a_name_of_its_own() -> None:
    class Other(Largest):
        kind: Literal["count"] = "count"  # type: ignore[assignment]

    with pytest.raises(InputError, match="count"):
        KINDS.add(Other)


def test_a_kind_of_ones_own_is_stated_in_sentence_and_card(domain: Domain) -> None:
    specification = stated(from_invariants(OLDEST), domain)
    assert declared_invariants(specification.multiverse) == (OLDEST,)
    assert specification.multiverse.sentence() == "data sets that agree on the largest age of any person"
    assert "(1) the largest age of any person" in str(specification.card())


def test_a_kind_of_ones_own_is_written_and_read(domain: Domain) -> None:
    specification = stated(from_invariants(OLDEST, BY_AGE), domain)
    again = Specification.from_json(specification.to_json())
    assert again == specification
    assert again.to_json() == specification.to_json()
    assert '"kind": "largest"' in specification.to_json()


def test_a_kind_of_ones_own_is_checked_against_the_schema_and_for_realised_values(domain: Domain) -> None:
    with pytest.raises(UnknownName, match="income"):
        stated(from_invariants(Largest(attribute="income", unit="person")), domain)
    record = stated(from_invariants(OLDEST), domain).record()
    record["multiverse"]["invariants"][0]["value"] = 2
    with pytest.raises(AccidentalMultiverse):
        Specification.read(record)


def test_a_kind_of_ones_own_is_evaluated_on_frames() -> None:
    persons = pl.DataFrame({"sex": ["f", "m"], "age": [2, 1]})
    assert evaluate(OLDEST, persons).item() == 2
    assert evaluate(OLDEST, {"person": persons}).item() == 2


def test_a_kind_of_ones_own_makes_universes() -> None:
    universes = stated(from_invariants(OLDEST), Domain.datasets(SCHEMA, sizes=(2,))).universes()
    assert sorted(map(len, universes)) == [3, 7, 11]


def test_a_kind_of_ones_own_is_compared(domain: Domain) -> None:
    tables, oldest, nothing = (
        stated(m, domain) for m in (from_invariants(BY_AGE), from_invariants(OLDEST), Trivial())
    )
    assert compare(nothing, oldest).overall == Order.STRONGER
    assert compare(oldest, tables).overall == Order.STRONGER
    assert compare(tables, oldest).overall == Order.WEAKER
    assert compare(oldest, oldest).overall == Order.EQUIVALENT


def test_a_kind_of_ones_own_is_composed_and_verified() -> None:
    domain = Domain.datasets(SCHEMA, sizes=(2,))
    oldest, tables = stated(from_invariants(OLDEST), domain), stated(from_invariants(BY_AGE), domain)
    both = compose(oldest, tables)
    assert both.budget == Budget.epsilon(2)
    assert declared_invariants(both.multiverse) == (OLDEST, BY_AGE)
    tells = FiniteMechanism.exact_release(domain, lambda point: max(age for _, age in point))
    assert satisfies(tells, oldest).satisfied
    assert not satisfies(tells, stated(Trivial(), domain)).satisfied
