"""The DP release table: eight fields that every release publishes, and one row for each step.

The fields are those of *Hands-On Differential Privacy* (tables 13-1 and 13-2): project scope, preprocessing,
epsilon, delta, unit of privacy, mechanism, implementation, URL. They are written from specifications, never
typed. Three things are added, without which the numbers mislead: what is kept exact, the whole guarantee, and
what the numbers are relative to. A step that no guarantee covers stays in the table and says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stirred.errors import InputError, NotImplied
from stirred.interchange import Tabular, csv_text
from stirred.report.markdown import rows_of
from stirred.spec import (
    Exact,
    Method,
    Specification,
    as_fraction,
    compose,
    convert,
    converts,
    declared_invariants,
    shown,
)

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION = 1

HEADINGS = {
    "scope": "Project scope",
    "preprocessing": "Preprocessing methods",
    "epsilon": "ε",
    "delta": "δ",
    "unit": "Unit of privacy",
    "mechanism": "Mechanism",
    "implementation": "Implementation",
    "url": "URL",
    "invariants": "Kept exact (invariants)",
    "guarantee": "Guarantee",
    "reading": "How to read the numbers",
}

NOMINAL = (
    "nominal: relative to what is kept exact, the unit and the measure; not comparable with a number of "
    "another kind of guarantee"
)

_NO_GUARANTEE = "∞ (no guarantee covers this step)"
_NONE = "none"
_ONE_UNIT = (
    "ε holds for a change of one unit; for k units it is not k times as much and has to be converted anew"
)


@dataclass(frozen=True)
class ReleaseRow:
    """One step of a release, as the ledger knows it: what was done, under which guarantee, with what.

    Without a ``specification`` the step read confidential data outside any guarantee (tuning, say).
    """

    step: str
    scope: str
    mechanism: str
    implementation: str
    specification: Specification | None
    preprocessing: str = ""
    url: str = ""


Value = TypeVar("Value", bound=Exact | Fraction)


@dataclass(frozen=True)
class Number(Generic[Value]):
    """A parameter as it is published: its exact value, and by which rule it was come by if it was converted.

    Without a value the ``rule`` says why.
    """

    value: Value | None
    rule: str = ""
    converted: bool = False

    def record(self) -> dict[str, Any]:
        """A float that is not below the value, none if that is infinite; the value itself as exact text."""
        rounded = None if self.value is None else upward(self.value)
        return {
            "value": None if rounded == math.inf else rounded,
            "exact": "" if self.value is None else str(self.value),
            "converted": self.converted,
            "rule": self.rule,
        }

    @property
    def shown(self) -> str:
        """The value for people, rounded up."""
        if self.value is None:
            return self.rule
        return scientific(self.value) if isinstance(self.value, Fraction) else shown(self.value)

    def __str__(self) -> str:
        return f"{self.shown} ({self.rule})" if self.converted else self.shown


@dataclass(frozen=True)
class Parameters:
    """Epsilon and delta of a guarantee, its own parameter where that is another, and remarks."""

    epsilon: Number[Exact]
    delta: Number[Fraction]
    own: Number[Exact] | None = None
    own_name: str = ""
    remarks: tuple[str, ...] = ()

    def epsilon_text(self) -> str:
        """Epsilon with the parameter it was converted from."""
        own = "" if self.own is None else f"; guaranteed is {self.own_name} = {self.own.shown}"
        return f"{self.epsilon}{own}"

    def record(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "epsilon": self.epsilon.record(),
            "delta": self.delta.record(),
            "own": None if self.own is None else self.own.record(),
            "own_name": self.own_name,
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True)
class Fields:
    """The fields of the table in words, in their order."""

    scope: str
    preprocessing: str
    epsilon: str
    delta: str
    unit: str
    mechanism: str
    implementation: str
    url: str
    invariants: str
    guarantee: str
    reading: str


@dataclass(frozen=True)
class ReleaseTable(Tabular):
    """The release table: the release as a whole, then its steps.

    ``total`` is the guarantee of all steps together; ``None`` where a step has none.
    """

    release: Fields
    steps: tuple[tuple[str, Fields], ...]
    total: Specification | None
    parameters: Parameters | None

    @classmethod
    def of(
        cls,
        rows: Iterable[ReleaseRow],
        *,
        total: Specification | None = None,
        delta: object = None,
        method: Method = "census",
        scope: str = "",
        url: str = "",
    ) -> ReleaseTable:
        """Write the table of some steps.

        Parameters
        ----------
        total
            The guarantee of all steps together, from the ledger. Without it the steps are composed, which
            asks for one domain and one output premetric.
        delta
            The delta at which guarantees in another currency (zCDP, Renyi, Gaussian DP) are also shown as
            (epsilon, delta). Without it nothing is converted.
        method
            The rule for zCDP; it is named beside every converted number.
        """
        listed = tuple(rows)
        if not listed:
            raise InputError(
                "a release table needs a step",
                field="rows",
                expected="at least one row",
                hint="The ledger has one for every spend.",
            )
        covered = [row.specification for row in listed if row.specification is not None]
        bare = [row.step for row in listed if row.specification is None]
        whole = total if total is not None else _together(covered)
        summary = ReleaseRow(
            step="release",
            scope=scope or _joined(row.scope for row in listed),
            mechanism=_joined(row.mechanism for row in listed),
            implementation=_joined(row.implementation for row in listed),
            specification=whole,
            preprocessing=_joined(row.preprocessing for row in listed),
            url=url or _joined(row.url for row in listed),
        )
        fields = _fields(summary, delta, method, bare)
        steps = tuple((row.step, _fields(row, delta, method)) for row in listed)
        if bare or whole is None:
            return cls(fields, steps, None, None)
        return cls(fields, steps, whole, parameters(whole, delta, method))

    def to_markdown(self) -> str:
        """The release as a table of fields, then one row for each step."""
        release = zip(HEADINGS.values(), asdict(self.release).values(), strict=True)
        steps = [(name, *asdict(fields).values()) for name, fields in self.steps]
        return "\n".join([rows_of(("Name", "Value"), release), rows_of(("Step", *HEADINGS.values()), steps)])

    def to_csv(self) -> str:
        """One line for the release and one for each step."""
        rows = [(name, *asdict(fields).values()) for name, fields in self._rows()]
        return csv_text([("row", *HEADINGS), *rows])

    def to_json(self) -> str:
        """Fields in words, with the exact parameters and the specification beside them."""
        body: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "type": "release-table",
            "release": asdict(self.release),
            "steps": [{"step": name, **asdict(fields)} for name, fields in self.steps],
            "parameters": None if self.parameters is None else self.parameters.record(),
            "specification": None if self.total is None else self.total.record(),
        }
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"

    def to_polars(self) -> pl.DataFrame:
        """The lines of the CSV file."""
        import polars as pl

        return pl.DataFrame([{"row": name, **asdict(fields)} for name, fields in self._rows()])

    def _rows(self) -> tuple[tuple[str, Fields], ...]:
        return (("release", self.release), *self.steps)


def parameters(specification: Specification, delta: object = None, method: Method = "census") -> Parameters:
    """Epsilon and delta as they may honestly be published.

    Pure and approximate DP have them. Other guarantees have a parameter of their own, which is given first;
    (epsilon, delta) is then a conversion, at the delta asked for, by the rule that is named, between data
    sets that differ in one unit.
    """
    premetric, budget = specification.output_premetric, specification.budget
    if premetric.mass is not None:
        return Parameters(Number(budget.largest), Number(premetric.mass), remarks=_varies(specification))
    name, own = _own(specification)
    unstated = Number[Fraction](None, "not stated")
    if delta is None or not converts(premetric, "approximate"):
        missing = Number[Exact](None, f"not stated: the guarantee is measured by {premetric.symbol}")
        return Parameters(missing, unstated, own, name, _varies(specification))
    try:
        found = convert(specification, "approximate", delta=delta, method=method, on_distance="neighbours")
    except NotImplied:
        missing = Number[Exact](None, f"not converted: no theorem carries {budget} to (ε, δ)")
        return Parameters(missing, unstated, own, name, _varies(specification))
    epsilon = Number(found.specification.budget.amount, f"converted by {found.rule}", converted=True)
    chosen = Number(as_fraction(delta), "chosen for the conversion", converted=True)
    return Parameters(epsilon, chosen, own, name, (_ONE_UNIT, *found.remarks))


def unit_text(specification: Specification) -> str:
    """The protection unit and what a change of one means."""
    return f"{specification.input_premetric.unit}: {specification.input_premetric.sentence()}"


def invariants_text(specification: Specification) -> str:
    """What is kept exact, in words: named, never counted."""
    invariants = declared_invariants(specification.multiverse)
    if invariants is None:
        return f"whatever is constant on {specification.multiverse.sentence()}"
    return "; ".join(invariant.sentence() for invariant in invariants) or _NONE


def scientific(value: Fraction, digits: int = 3) -> str:
    """A probability as decimal text with a few significant digits, rounded up.

    Examples
    --------
    >>> scientific(Fraction(1, 10**10)), scientific(Fraction(1, 3)), scientific(Fraction(0))
    ('1e-10', '0.334', '0')
    """
    rounded = significant(value, digits)
    return f"{rounded:f}" if rounded >= Decimal("0.001") or not rounded else f"{rounded:e}".replace("E", "e")


def significant(value: Fraction, digits: int = 3) -> Decimal:
    """A decimal of a few significant digits that is not below the number."""
    context = Context(prec=digits, rounding=ROUND_CEILING)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize()


def upward(value: Exact | Fraction) -> float:
    """The nearest float whose decimal text is the number or just above it: the text is what people read.

    Examples
    --------
    >>> upward(Fraction(1, 10)), upward(Fraction(1, 3))
    (0.1, 0.33333333333333337)
    """
    exact = value if isinstance(value, Exact) else Exact(value)
    near = float(exact)
    while Exact.of(near) < exact:
        near = math.nextafter(near, math.inf)
    return near


def _together(parts: list[Specification]) -> Specification | None:
    return compose(*parts) if len(parts) > 1 else next(iter(parts), None)


def _fields(row: ReleaseRow, delta: object, method: Method, bare: Iterable[str] = ()) -> Fields:
    specification, outside = row.specification, tuple(bare)
    words = {
        "scope": row.scope,
        "preprocessing": row.preprocessing or "None",
        "mechanism": row.mechanism,
        "implementation": row.implementation,
        "url": row.url,
    }
    if specification is None:
        return Fields(
            epsilon=_NO_GUARANTEE,
            delta="not stated",
            unit="none is protected",
            invariants="not stated",
            guarantee="none: confidential data were read outside any guarantee",
            reading="nothing is promised about what this step reveals",
            **words,
        )
    found = parameters(specification, delta, method)
    reading = "; ".join((NOMINAL, *found.remarks, *_assumed(specification)))
    epsilon = found.epsilon_text()
    if outside:
        epsilon = f"∞: outside any guarantee ran {', '.join(outside)}; without it {epsilon}"
        reading = f"NOT COVERED: what {', '.join(outside)} reveals is bounded by nothing; {reading}"
    return Fields(
        epsilon=epsilon,
        delta=str(found.delta),
        unit=unit_text(specification),
        invariants=invariants_text(specification),
        guarantee=str(specification),
        reading=reading,
        **words,
    )


def _varies(specification: Specification) -> tuple[str, ...]:
    if len(specification.budget.amounts) < 2:
        return ()
    return (f"the number is the largest over the universes; it ranges: {specification.budget}",)


def _own(specification: Specification) -> tuple[str, Number[Exact]]:
    """The guarantee's own parameter: rho squared, mu, a loss, or a curve."""
    budget = specification.budget
    if budget.curve:
        return "the curve", Number(None, str(budget))
    name, value = specification.output_premetric.own(budget)
    return name, Number(value)


def _assumed(specification: Specification) -> tuple[str, ...]:
    standing = {"uncertified": ("UNCERTIFIED: no proof stands behind this guarantee",)}
    assumed = tuple(f"assumes that {text}" for text in specification.assumptions)
    return standing.get(specification.standing, ()) + assumed


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(text for text in texts if text))
