"""Flavor and specification: the guarantee as an object of five building blocks.

A mechanism T satisfies a specification when, for every universe D and every ordered pair x, x' in D,

    D_Pr(P_x, P_x') <= budget_D * d(x, x')

(equation 2.3 of the thesis). The first four blocks are the flavor; a budget says nothing without it.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Self

from pydantic import model_validator

from stirred.documents import parse_json
from stirred.errors import InputError, NewerSchema, NotComputable, ParametrisationMismatch
from stirred.spec.arithmetic.exact import INFINITY
from stirred.spec.blocks.block import BLOCKS, Block
from stirred.spec.blocks.budget import Budget
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.input_premetric import InputPremetric
from stirred.spec.blocks.invariant import accidental
from stirred.spec.blocks.latex import latex
from stirred.spec.blocks.multiverse import (
    AnyMultiverse,
    DescribedMultiverse,
    Multiverse,
    Trivial,
    known_invariants,
    pairs_in,
)
from stirred.spec.blocks.output_premetric import OutputPremetric
from stirred.spec.blocks.policy import matched
from stirred.spec.finite.record_unit import require_one_unit

SCHEMA_VERSION = 1

Standing = Literal["proved", "enumerated", "published", "uncertified", "unstated"]


class Flavor(Block):
    """The kind of guarantee, without its amount: domain, multiverse, input and output premetric."""

    domain: Domain
    multiverse: Multiverse
    input_premetric: InputPremetric
    output_premetric: OutputPremetric

    @model_validator(mode="after")
    def _blocks_fit(self) -> Self:
        if isinstance(self.multiverse, DescribedMultiverse) and self.multiverse.accidental:
            raise accidental("multiverse")
        _invariants_fit(self.multiverse, self.domain)
        return self

    def __str__(self) -> str:
        symbols = [block.symbol for block in self._blocks()]
        if isinstance(self.multiverse, Trivial):
            symbols[1] = f"{{{self.domain.symbol}}}"
        return f"({', '.join(symbols)})"

    @property
    def latex(self) -> str:
        """LaTeX text of the four symbols."""
        symbols = [self.domain.latex, *(latex(block.symbol) for block in self._blocks()[1:])]
        if isinstance(self.multiverse, Trivial):
            symbols[1] = rf"\{{{self.domain.latex}\}}"
        return f"({', '.join(symbols)})"

    def _blocks(self) -> tuple[Any, ...]:
        return (self.domain, self.multiverse, self.input_premetric, self.output_premetric)

    def universes(self) -> tuple[frozenset[Any], ...]:
        """The universes of a finite flavor; refused where its blocks speak of records of two units."""
        require_one_unit(self.multiverse, self.input_premetric)
        return self.multiverse.universes(self.domain)

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Every ordered pair that a universe compares (``pairs_in``)."""
        return pairs_in(self.universes(), self.domain)

    def with_budget(self, budget: Budget, **extra: Any) -> Specification:
        """The specification of this flavor with a budget."""
        return Specification(**dict(self), budget=budget, **extra)


class Specification(Block):
    """A guarantee: five building blocks, all mandatory.

    ``assumptions`` lists what the guarantee rests on beyond the blocks; ``standing`` says how it is
    known: proved, enumerated on small universes, published by others, or uncertified.

    Examples
    --------
    >>> from stirred.spec import Budget, catalogue
    >>> print(catalogue.specification("pure-dp", Budget.epsilon(1)))
    ε-DP(X, {X}, d_Ham^r, D_Mult), ε = 1
    """

    domain: Domain
    multiverse: Multiverse
    input_premetric: InputPremetric
    output_premetric: OutputPremetric
    budget: Budget
    assumptions: tuple[str, ...] = ()
    standing: Standing = "unstated"

    @model_validator(mode="after")
    def _blocks_fit(self) -> Self:
        flavor = self.flavor
        allowed = flavor.output_premetric.parametrisations
        if self.budget.parametrisation not in allowed:
            raise ParametrisationMismatch(
                f"{flavor.output_premetric.symbol} is not measured in {self.budget.parametrisation}",
                field="budget.parametrisation",
                expected=" or ".join(allowed),
                hint="Convert the specification (stirred.spec.convert) instead of relabelling its budget.",
            )
        if self.budget.curve and not flavor.input_premetric.flags.neighbour_valued:
            raise InputError(
                "a curve is a budget for neighbours only",
                field="input_premetric",
                expected="a neighbour premetric: a curve times a distance has no meaning",
                hint="Use kind 'neighbours', or a constant budget.",
            )
        if len(self.budget.amounts) > 1:
            self._one_amount_for_each_universe()
        if self.domain.record_schema is not None:
            for name in sorted(matched(self.budget.policy)):
                self.domain.record_schema.require((name,), "budget.policy.match")
        return self

    def _one_amount_for_each_universe(self) -> None:
        count = len(self.universes())
        if count != len(self.budget.amounts):
            raise InputError(
                "the budget does not match the multiverse",
                field="budget.amounts",
                expected=f"one amount, or one for each of the {count} universes",
                hint="The order is that of multiverse.universes(domain).",
            )

    @property
    def flavor(self) -> Flavor:
        """The first four blocks."""
        return Flavor(
            domain=self.domain,
            multiverse=self.multiverse,
            input_premetric=self.input_premetric,
            output_premetric=self.output_premetric,
        )

    def universes(self) -> tuple[frozenset[Any], ...]:
        """The universes of a finite flavor."""
        return self.flavor.universes()

    def pairs(self) -> Iterator[tuple[int, int, int]]:
        """Every ordered pair that a universe compares."""
        return self.flavor.pairs()

    @property
    def is_finite(self) -> bool:
        """Whether universes and distances can all be listed."""
        try:
            self.universes()
            self.input_premetric.matrix(self.domain)
        except NotComputable:
            return False
        return True

    @property
    def constrains_nothing(self) -> bool:
        """Whether the budget is infinite everywhere; a policy that is infinite here may bind elsewhere."""
        amounts = () if self.budget.policy is not None else self.budget.amounts
        return bool(amounts) and all(a == INFINITY for a in amounts)

    @property
    def _letter(self) -> str:
        return self.budget.letter.removesuffix("²")

    def statement(self) -> str:
        """The guarantee as mathematics, in Unicode."""
        return f"{self._letter}-DP{self.flavor}"

    def __str__(self) -> str:
        return f"{self.statement()}, {self.budget}"

    @property
    def latex(self) -> str:
        """The guarantee as mathematics, in LaTeX."""
        return rf"{latex(self._letter)}\text{{-DP}}{self.flavor.latex},\; {self.budget.latex}"

    def card(self) -> Any:
        """The specification in plain language."""
        from stirred.spec.card import Card

        return Card.of(self)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(line.question)}</th>"
            f"<td style='text-align:left'>{html.escape(line.answer)}</td></tr>"
            for line in self.card().lines
        )
        return f"<p><b>{html.escape(str(self))}</b></p><table>{rows}</table>"

    def to_json(self) -> str:
        """Write as JSON text, exactly and with the schema version."""
        body = {"schema_version": SCHEMA_VERSION, "type": "specification", **self.record()}
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"

    def record(self) -> dict[str, Any]:
        """The blocks as plain data, kinds included."""
        pruned: dict[str, Any] = _pruned(self.model_dump(mode="json"))
        return pruned

    @classmethod
    def from_json(cls, text: str) -> Specification:
        """Read what ``to_json`` wrote; a file of a newer version is refused."""
        body = parse_json(text, "specification file")
        example = "See `stirred spec show tda-dhc --output FILE` for an example."
        return cls.read(document(body, "specification", "a JSON object", example))


def document(body: object, kind: str, expected: str, hint: str) -> dict[str, Any]:
    """The content of a file that stirred wrote, without its version and type, which are checked."""
    if not isinstance(body, dict):
        raise InputError(f"this is not a {kind} file", field="file", expected=expected, hint=hint)
    check_version(body, kind)
    return {key: value for key, value in body.items() if key not in {"schema_version", "type"}}


def check_version(body: dict[str, Any], kind: str) -> None:
    """Refuse a file of another type, without a version, or of a newer version."""
    version = body.get("schema_version")
    if type(version) is not int or version < 1 or body.get("type") != kind:
        raise InputError(
            f"this is not a {kind} file",
            field="schema_version",
            expected=f'"schema_version": {SCHEMA_VERSION} and "type": "{kind}"',
            hint="Every file that stirred writes carries both.",
        )
    if version > SCHEMA_VERSION:
        raise NewerSchema(
            f"the file has schema version {version}; this stirred reads up to {SCHEMA_VERSION}",
            field="schema_version",
            expected=f"at most {SCHEMA_VERSION}",
            hint="Upgrade stirred; nothing is guessed from a newer file.",
        )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a specification file."""
    return document_schema(Specification, "specification", "stirred DP specification", BLOCKS)


def document_schema(block: type[Block], kind: str, title: str, required: Iterable[str]) -> dict[str, Any]:
    """The JSON Schema of a file that holds a block."""
    schema = block.model_json_schema(mode="validation")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = title
    marks = {"schema_version": {"const": SCHEMA_VERSION}, "type": {"const": kind}}
    schema["properties"] = marks | schema["properties"]
    schema["required"] = ["schema_version", "type", *required]
    return schema


def _pruned(value: Any) -> Any:
    """Drop empty text and empty lists: they are the defaults, and files stay readable."""
    if isinstance(value, dict):
        return {k: _pruned(v) for k, v in value.items() if v not in ("", [], {}, None)}
    return [_pruned(v) for v in value] if isinstance(value, list) else value


def _invariants_fit(multiverse: AnyMultiverse, domain: Domain) -> None:
    if domain.record_schema is not None:
        for invariant in known_invariants(multiverse):
            domain.record_schema.require(invariant.needs(), "multiverse.invariants")
            for condition in invariant.conditions:
                domain.record_schema.require_levels(condition.attribute, condition.levels)
