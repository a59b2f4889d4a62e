"""Mechanism files: a finite mechanism as text, exactly, and back.

Guarantee
    What is read is the mechanism that was written: masses are rationals as their digits say, the masses of a
    law sum to exactly one, and every data set of the domain has one law. Anything else is refused by its
    place and without a value; so is what would take hours to verify.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema, field_validator, model_validator

from stirred.documents import parse_json, parse_yaml, read_text
from stirred.errors import DomainMismatch, InputError, StirredError
from stirred.spec.arithmetic.exact import as_fraction
from stirred.spec.blocks.block import Block
from stirred.spec.blocks.domain import Domain, Point
from stirred.spec.finite.distribution import Distribution
from stirred.spec.finite.mechanism import FiniteMechanism
from stirred.spec.specification import SCHEMA_VERSION, document, document_schema

MOST_LAWS = 128
MOST_MASSES = 64_000
# The ratio of two masses has twice as many digits, and the interpreter writes no more than 4,300.
MOST_DIGITS = 2_000
_LARGEST = 10**MOST_DIGITS
WHAT = "mechanism file"


def _mass(value: object) -> Fraction:
    try:
        mass = as_fraction(value)
    except StirredError:
        raise ValueError("an exact number, as text: 3/4 or 0.75") from None
    if mass < 0:
        raise ValueError("a mass of at least zero")
    return mass


def _value(value: object) -> Hashable:
    if isinstance(value, bool):
        raise ValueError("numbers or text; put true and false in quotes")
    if isinstance(value, list | tuple):
        return tuple(map(_value, value))
    if not isinstance(value, int | str):
        raise ValueError("integers, text or lists of these")
    return value


Mass = Annotated[
    Fraction,
    PlainValidator(_mass, json_schema_input_type=str | float),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {
            "type": ["string", "number"],
            "description": "an exact number from 0 to 1, best as text: 3/4, 0.75",
        }
    ),
]
Value = Annotated[Any, PlainValidator(_value, json_schema_input_type=int | str | list[Any])]


class Law(Block):
    """The law of the output for one data set: a mass for each output, in the order of the outputs.

    ``space`` names the space of the output. Laws on different spaces are infinitely far apart.
    """

    data: Value
    masses: tuple[Mass, ...]
    space: str = "T"

    @model_validator(mode="after")
    def _is_a_law(self) -> Self:
        common = 1
        for mass in self.masses:
            common = math.lcm(common, mass.denominator)
            if common >= _LARGEST:
                raise ValueError(f"masses with a common denominator of at most {MOST_DIGITS:,} digits")
        if sum(mass.numerator * (common // mass.denominator) for mass in self.masses) != common:
            raise ValueError("masses that sum to exactly one")
        return self


class MechanismFile(Block):
    """A finite mechanism as a table: data sets in rows, outputs in columns."""

    domain: Domain
    outputs: tuple[Value, ...]
    laws: tuple[Law, ...]

    @field_validator("outputs")
    @classmethod
    def _outputs_distinct(cls, outputs: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
        if not outputs or len(set(outputs)) != len(outputs):
            raise ValueError("at least one output, and outputs that are all different")
        return outputs

    @model_validator(mode="before")
    @classmethod
    def _small(cls, fields: Any) -> Any:
        laws, outputs = (fields.get(k) if isinstance(fields, dict) else None for k in ("laws", "outputs"))
        if isinstance(laws, list | tuple) and isinstance(outputs, list | tuple):
            require_small(len(laws), len(outputs))
        return fields

    @model_validator(mode="after")
    def _one_mass_for_each_output(self) -> Self:
        for number, law in enumerate(self.laws):
            if len(law.masses) != len(self.outputs):
                raise InputError(
                    f"laws.{number} does not have one mass for each output",
                    field=f"laws.{number}.masses",
                    expected=f"{len(self.outputs)} masses, in the order of the outputs",
                    hint="Write 0 for an output that never occurs.",
                )
        return self

    @classmethod
    def of(cls, mechanism: FiniteMechanism) -> Self:
        """The table of a mechanism, its data sets in the order of the domain."""
        laws = [(point, mechanism.laws[point]) for point in mechanism.domain.enumerate()]
        outputs = tuple(dict.fromkeys(outcome for _, law in laws for outcome, _ in law.items()))
        require_small(len(laws), len(outputs))
        rows = tuple(
            Law(data=point, masses=tuple(law[outcome] for outcome in outputs), space=law.space)
            for point, law in laws
        )
        return cls(domain=mechanism.domain, outputs=outputs, laws=rows)

    def mechanism(self) -> FiniteMechanism:
        """The mechanism; refused where a data set has no law, or two, or is not in the domain."""
        points = self.domain.enumerate()
        known, laws = frozenset(points), dict[Point, Distribution]()
        for number, law in enumerate(self.laws):
            point = self._point(law.data)
            if point not in known or point in laws:
                raise DomainMismatch(
                    f"laws.{number} is for a data set that "
                    + ("has a law already" if point in laws else "the domain does not have"),
                    field=f"laws.{number}.data",
                    expected="every data set of the domain once",
                    hint="A data set is a list of records, and a record a list of values.",
                )
            laws[point] = Distribution(dict(zip(self.outputs, law.masses, strict=True)), law.space)
        if len(laws) != len(points):
            raise DomainMismatch(
                f"{len(points) - len(laws):,} of {len(points):,} data sets of the domain have no law",
                field="laws",
                expected="one law for every data set of the domain",
                hint="Add the laws, or make the domain smaller.",
            )
        return FiniteMechanism(self.domain, laws)

    def _point(self, data: Any) -> Point:
        """A data set as the domain lists it: where order is no data, the records in the domain's order."""
        free = self.domain.points is None and self.domain.structure == "multiset"
        point: Point = tuple(sorted(data, key=repr)) if free and isinstance(data, tuple) else data
        return point

    def to_json(self) -> str:
        """Write as JSON text, a law on a line."""
        body = {"schema_version": SCHEMA_VERSION, "type": "mechanism", "domain": self.domain.record()}
        head = json.dumps(body, indent=2, ensure_ascii=False).removesuffix("\n}")
        laws = ",\n".join(f"    {_line(law.record())}" for law in self.laws)
        return f'{head},\n  "outputs": {_line(self.outputs)},\n  "laws": [\n{laws}\n  ]\n}}\n'


def read_mechanism(path: Path) -> FiniteMechanism:
    """The mechanism of a file: JSON where its name ends in ``.json``, otherwise YAML."""
    parse = parse_json if path.suffix == ".json" else parse_yaml
    return mechanism_of(parse(read_text(path, WHAT), WHAT))


def mechanism_of(body: object) -> FiniteMechanism:
    """The mechanism that the plain data of a file describe; a file of a newer version is refused."""
    expected = "a mapping with schema_version, type, domain, outputs and laws"
    fields = document(body, "mechanism", expected, "See `stirred spec schema mechanism`.")
    return MechanismFile.read(fields).mechanism()


def mechanism_schema() -> dict[str, Any]:
    """The JSON Schema of a mechanism file."""
    return document_schema(MechanismFile, "mechanism", "stirred mechanism", MechanismFile.model_fields)


def require_small(laws: int, outputs: int) -> None:
    """Refuse a table that is too large to verify in good time."""
    if laws > MOST_LAWS or laws * outputs > MOST_MASSES:
        raise InputError(
            f"the mechanism has {laws:,} laws of {outputs:,} masses",
            field="laws",
            expected=f"at most {MOST_LAWS} laws and {MOST_MASSES:,} masses in all",
            hint="Exact methods are for small twins: use fewer levels, records or outputs.",
        )


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
