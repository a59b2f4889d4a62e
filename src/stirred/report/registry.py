"""A record for the OpenDP deployments registry, written from a specification, and a linter for such records.

The fields are those that the registry published in July 2026; ``json_schema`` writes their JSON Schema. A
schema checks one field at a time. What it cannot see is a pure guarantee with a delta, a local model with a
trusted curator, or invariants that nobody lists: ``lint`` does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, WithJsonSchema, field_serializer, field_validator
from pydantic.json_schema import GenerateJsonSchema

from stirred.errors import InputError, Refusal, StirredError
from stirred.report.table import NOMINAL, invariants_text, parameters, significant, upward
from stirred.spec import ZERO, Block, Exact, Method, Specification, Stage, Variant, declared_invariants

Status = Literal[
    "Converted",
    "Draft",
    "Pending",
    "Changes Required",
    "Approved",
    "Approved (Update Requested)",
    "Approved (Pending)",
]
Tier = Literal[1, 2, 3]
ProductType = Literal[
    "Summary statistics",
    "Machine learning model",
    "Dataset",
    "Synthetic data",
    "Interactive API",
    "SQL queries",
]
Model = Literal["Local", "Central", "Shuffle", "Federated", "Varies"]
ReleaseType = Literal["One release", "Many releases"]
SourceType = Literal["Static", "Dynamic"]
AccessType = Literal["Interactive", "Non-interactive"]

Text = Annotated[str, Field(min_length=1)]
Day = Annotated[
    date, WithJsonSchema({"type": "string", "format": "date", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"})
]
Curators = Annotated[tuple["Text | Curator", ...], Field(min_length=1)]
Authors = Annotated[tuple[Text, ...], Field(min_length=1)]
Parameter = Annotated[Exact | None, WithJsonSchema({"type": "number"})]

PLACES = 6

_Section = TypeVar("_Section", bound=Block)


def _exactly(value: object) -> object:
    """A number wherever it is one; other text (a formula in n) stays text."""
    try:
        return value if value is None else Exact.of(value)
    except StirredError:
        return value


def _field(description: str, tier: Tier | None = None, default: Any = ...) -> Any:
    """A field of the registry: what it holds, and from which tier on it is expected."""
    extra = None if tier is None else {"tier": tier}
    return Field(default, description=description, json_schema_extra=extra)  # type: ignore[arg-type]


class Curator(Block):
    """A curator with its kind."""

    data_curator_name: Text
    data_curator_type: str = ""


class Basic(Block):
    """What was published, by whom and what for."""

    name: Text = _field("Name of the data product.", 1)
    data_curators: Curators = _field("Who publishes the data product.", 1)
    intended_use: Text = _field("What the data product is for.", 1)
    data_product_type: ProductType = _field("Kind of data product.", 1)
    data_product_region: Text = _field("Region that the data describe.", 1)
    description: Text = _field("What the data product contains.", 1)
    publication_date: Day = _field("Day of (first) publication, as YYYY-MM-DD.", 1)
    data_product_sector: str = _field("Sector that the data describe.", 1, "")


class DpVariant(Block):
    """Which guarantee, on which data sets."""

    variant_name: Variant | None = _field("Kind of guarantee.", 2, None)
    data_domain: str = _field("Data sets eligible for protection.", 3, "")
    unprotected_quantities: str = _field("What is published exactly (invariants).", 3, "")


class PrivacyParameters(Block):
    """The budget; rho is the number that the literature publishes."""

    epsilon: Parameter = None
    delta: Annotated[
        Exact | str | None, BeforeValidator(_exactly), WithJsonSchema({"type": ["number", "string"]})
    ] = None
    rho: Parameter = None

    @field_validator("epsilon", "delta", "rho")
    @classmethod
    def _finite(cls, value: Exact | str | None) -> Exact | str | None:
        if isinstance(value, Exact) and value.is_infinite:
            raise ValueError("a finite number")
        return value

    @field_serializer("epsilon", "delta", "rho")
    def _published(self, value: Exact | str | None) -> float | str | None:
        """A short decimal that is not below the number."""
        return upward(value) if isinstance(value, Exact) else value


class PrivacyLoss(Block):
    """The protection unit and the budget."""

    privacy_unit: str = _field("The entity whose data change between neighbours.", 2, "")
    privacy_unit_details: str = _field("What a change of one unit means.", 3, "")
    privacy_parameters: PrivacyParameters = _field(
        "The budget; rho is the number that the literature publishes.", 2, PrivacyParameters()
    )
    privacy_parameters_details: str = _field("How the parameters are to be read.", 3, "")


class DeploymentModel(Block):
    """Who trusts whom, and how often something is released."""

    model_name: Model | None = _field("Where protection is applied.", 2, None)
    model_name_details: str = _field("More on the model.", default="")
    actors: str = _field("Who takes part, who may see what, who is trusted.", 3, "")
    release_type: ReleaseType | None = _field("Whether the product is released once.", 2, None)
    release_type_details: str = _field(
        "Plans for further releases, or how often and at what cost.", default=""
    )
    data_source_type: SourceType | None = _field("Whether new data come in.", 2, None)
    data_source_type_details: str = _field("More on the source.", default="")
    access_type: AccessType | None = _field(
        "Whether people may query the confidential data under protection.", 2, None
    )
    access_type_details: str = _field("How the budget is shared among analysts.", default="")


class Accounting(Block):
    """How budgets add up."""

    post_processing: str = _field("What was done to protected outputs.", 3, "")
    composition: str = _field("How the budgets of several outputs were added.", 3, "")


class Implementation(Block):
    """How it was done."""

    preprocessing_and_hyperparameter_tuning: str = _field(
        "What was done to the data before, and at what cost.", 3, ""
    )
    mechanisms: str = _field("Mechanisms, code, and defences of the platform.", 3, "")
    justification: str = _field("Why the choices above were made.", 3, "")


class Administrative(Block):
    """Who wrote the record, from what."""

    sources: str = _field("Where the statements come from.", default="")
    notes: str = _field("Anything else.", default="")
    registry_authors: Authors = _field("Who wrote the record.")


class Deployment(Block):
    """What was deployed."""

    basic: Basic
    dp_variant: DpVariant = DpVariant()
    privacy_loss: PrivacyLoss = PrivacyLoss()
    deployment_model: DeploymentModel = DeploymentModel()
    accounting: Accounting = Accounting()
    implementation: Implementation = Implementation()
    administrative: Administrative


class Record(Block):
    """One deployment of differential privacy."""

    url_slug: Annotated[str, Field(pattern="^[a-z0-9]+(-[a-z0-9]+)*$")] = _field(
        "Last part of the record's address."
    )
    status: Status = _field("Where the registry's review of the record stands.")
    tier: Tier = _field("How complete the record is.")
    deployment: Deployment

    def to_yaml(self) -> str:
        """The record as the registry stores it."""
        import yaml

        class Readable(yaml.SafeDumper):
            """Text of several lines as a literal block."""

        Readable.add_representer(str, _literal)
        text: str = yaml.dump(
            self.record(), Dumper=Readable, sort_keys=False, allow_unicode=True, width=1_000_000
        )
        return text

    def record(self) -> dict[str, Any]:
        """The record as plain JSON data, without the fields that say nothing."""
        plain: dict[str, Any] = _spoken(self.model_dump(mode="json"))
        return plain

    def filled(self) -> frozenset[str]:
        """Paths of the fields that say something."""
        return frozenset(path for path, _ in _leaves(self.record()))


@dataclass(frozen=True)
class Fills:
    """The field of the registry that a field of ``About`` fills, where its name is another."""

    name: str


class About(Block):
    """What a plan says about a deployment that its specification does not."""

    name: Text
    curators: Annotated[Curators, Fills("data_curators")]
    intended_use: Text
    description: Text
    region: Annotated[Text, Fills("data_product_region")]
    publication_date: date
    product: Annotated[ProductType, Fills("data_product_type")] = "Summary statistics"
    sector: Annotated[str, Fills("data_product_sector")] = ""
    model: Annotated[Model, Fills("model_name")] = "Central"
    model_details: Annotated[str, Fills("model_name_details")] = ""
    actors: str = ""
    release: Annotated[ReleaseType, Fills("release_type")] = "One release"
    release_details: Annotated[str, Fills("release_type_details")] = ""
    source: Annotated[SourceType, Fills("data_source_type")] = "Static"
    source_details: Annotated[str, Fills("data_source_type_details")] = ""
    access: Annotated[AccessType, Fills("access_type")] = "Non-interactive"
    access_details: Annotated[str, Fills("access_type_details")] = ""
    post_processing: str = ""
    composition: str = ""
    preprocessing: Annotated[str, Fills("preprocessing_and_hyperparameter_tuning")] = ""
    mechanisms: str = ""
    justification: str = ""
    sources: str = ""
    notes: str = ""
    authors: Annotated[Authors, Fills("registry_authors")]
    url_slug: str = ""

    def section(self, section: type[_Section]) -> _Section:
        """A section of the record that the specification says nothing about."""
        told = {
            next((m.name for m in field.metadata if isinstance(m, Fills)), name): getattr(self, name)
            for name, field in About.model_fields.items()
        }
        return section(**{name: told[name] for name in section.model_fields})


def record_of(
    specification: Specification, about: About, *, delta: object = None, method: Method = "census"
) -> Record:
    """Write the record of a release.

    Parameters
    ----------
    delta
        For guarantees in another currency: the delta at which the details also give (epsilon, delta). The
        parameters themselves are those of the guarantee, never converted ones.
    """
    if specification.constrains_nothing:
        raise Refusal(
            "an infinite budget is no guarantee to register",
            field="specification.budget",
            expected="a finite budget in some universe",
            hint="The registry lists deployments of differential privacy; this release has none.",
        )
    deployment = Deployment(
        basic=about.section(Basic),
        dp_variant=DpVariant(
            variant_name=variant_of(specification),
            data_domain=_domain_text(specification),
            unprotected_quantities=_unprotected_text(specification),
        ),
        privacy_loss=PrivacyLoss(
            privacy_unit=f"{specification.input_premetric.unit.capitalize()}-level",
            privacy_unit_details=_unit_text(specification),
            privacy_parameters=_parameters(specification),
            privacy_parameters_details=_parameters_text(specification, delta, method),
        ),
        deployment_model=about.section(DeploymentModel),
        accounting=about.section(Accounting),
        implementation=about.section(Implementation),
        administrative=about.section(Administrative),
    )
    slug = about.url_slug or _slug(about.name)
    draft = Record(url_slug=slug, status="Draft", tier=1, deployment=deployment)
    return Record(**dict(draft) | {"tier": tier_of(draft)})


def variant_of(specification: Specification) -> Variant:
    """The registry's name of the guarantee's kind."""
    return specification.output_premetric.variant


def tier_of(record: Record) -> Tier:
    """The highest tier all of whose fields are filled."""
    filled = record.filled()

    def complete(tier: int) -> bool:
        return all(
            any(path == field or path.startswith(f"{field}.") for path in filled)
            for field, expected in field_tiers().items()
            if 1 < expected <= tier
        )

    return 3 if complete(3) else 2 if complete(2) else 1


class _Plain(GenerateJsonSchema):
    """A schema of what is written: fields that say nothing are absent, never null."""

    def nullable_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> dict[str, Any]:
        return self.generate_inner(schema["schema"])


@cache
def json_schema() -> dict[str, Any]:
    """The JSON Schema of a record; the keyword ``tier`` says from which tier on a field is expected."""
    written = Record.model_json_schema(schema_generator=_Plain)
    definitions = written.pop("$defs")

    def inlined(node: Any) -> Any:
        if isinstance(node, list):
            return [inlined(below) for below in node]
        if not isinstance(node, dict):
            return node
        named = definitions[node["$ref"].rpartition("/")[2]] if "$ref" in node else {}
        merged = named | {name: below for name, below in node.items() if name != "$ref"}
        return {
            name: inlined(below)
            for name, below in merged.items()
            if name != "title" or not isinstance(below, str)
        }

    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://stirred.invalid/registry.schema.json",
        "title": "A record of the OpenDP deployments registry",
        "$comment": "Written from the field list that the registry published in July 2026. The keyword tier "
        "says from which tier on a field is expected. Contradictions between fields are found by a linter.",
        **inlined(written),
    }


@cache
def field_tiers() -> dict[str, int]:
    """From which tier on each field is expected, by its path."""

    def walk(node: dict[str, Any], path: str) -> Iterator[tuple[str, int]]:
        if "tier" in node and isinstance(node["tier"], int):
            yield path, node["tier"]
            return
        for name, below in node.get("properties", {}).items():
            yield from walk(below, f"{path}.{name}".lstrip("."))

    return dict(walk(json_schema(), ""))


@dataclass(frozen=True)
class Finding:
    """A contradiction or a gap that the linter found in a record."""

    rule: str
    field: str
    problem: str
    hint: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem} [{self.rule}] {self.hint}"


def lint(record: Record, specification: Specification | None = None) -> tuple[Finding, ...]:
    """Contradictions between the fields of a record; with a specification, also with the guarantee itself."""
    seen = _Seen(record, specification)
    return tuple(
        Finding(rule.name, rule.field, rule.problem, rule.hint) for rule in RULES if rule.broken(seen)
    )


@dataclass(frozen=True)
class Rule:
    """A cross-field rule: a record breaks it or not."""

    name: str
    field: str
    problem: str
    hint: str
    broken: Callable[[_Seen], bool]


class _Seen:
    """A record as the rules look at it."""

    def __init__(self, record: Record, specification: Specification | None) -> None:
        deployment = record.deployment
        self.record = record
        self.specification = specification
        self.variant = deployment.dp_variant.variant_name
        self.domain = deployment.dp_variant
        self.loss = deployment.privacy_loss
        self.model = deployment.deployment_model
        self.accounting = deployment.accounting
        self.implementation = deployment.implementation
        self.epsilon = self.loss.privacy_parameters.epsilon
        self.delta = self.loss.privacy_parameters.delta
        self.rho = self.loss.privacy_parameters.rho

    @property
    def has_parameters(self) -> bool:
        """Whether any parameter is given."""
        return any(value is not None for value in (self.epsilon, self.delta, self.rho))

    @property
    def positive_delta(self) -> bool:
        """Whether a delta other than zero is given (a formula counts)."""
        return self.delta is not None and not (isinstance(self.delta, Exact) and self.delta.is_zero)

    def says(self, pattern: re.Pattern[str], *texts: str) -> bool:
        """Whether one of the texts says it, and not in a negation."""
        return any(
            not _NEGATION.search(text[max(0, match.start() - 40) : match.start()])
            for text in texts
            for match in pattern.finditer(text)
        )


_NEGATION = re.compile(r"\b(?:no|not|nor|never|none|without)\b[^.;]*$", re.IGNORECASE)
_CURATOR = re.compile(
    r"\b(?:trusted|central|centrali[sz]ed)\s+(?:data\s+)?(?:curator|custodian|server|controller|authority)\b",
    re.IGNORECASE,
)
_REPEATED = re.compile(
    r"\b(?:daily|weekly|monthly|quarterly|yearly|annual|annually"
    r"|(?:per|each|every)\s+(?:day|week|month|quarter|year|release)"
    r"|(?:across|over|between|of)\s+(?:(?:many|several|multiple|all|successive|further|later)\s+)?releases)\b",
    re.IGNORECASE,
)
_INVARIANT = re.compile(r"\binvariants?\b|\b(?:kept|held|released|published) exact(?:ly)?\b", re.IGNORECASE)
_ORDER = re.compile(r"\balpha\b|\border\b|α", re.IGNORECASE)
_PLACEHOLDER = re.compile(
    r"\btbd\b|\bto be (?:determined|confirmed|written)\b|\bfill in\b|\blorem ipsum\b", re.IGNORECASE
)
_NOTHING = re.compile(
    r"\s*(?:none|n/?a|-|nothing|unknown|unspecified|not specified)?\s*\.?\s*", re.IGNORECASE
)

_PARAMETERS = "deployment.privacy_loss.privacy_parameters"
_VARIANT = "deployment.dp_variant.variant_name"
_MODEL = "deployment.deployment_model"


def _says_nothing(text: str) -> bool:
    return _NOTHING.fullmatch(text) is not None


def _local_with_curator(seen: _Seen) -> bool:
    if seen.model.model_name != "Local":
        return False
    stage = seen.specification.domain.stage if seen.specification is not None else Stage.UNSTATED
    collected = stage not in {Stage.RAW_RESPONSES, Stage.UNSTATED}
    texts = (seen.model.actors, seen.model.model_name_details, seen.implementation.mechanisms)
    return collected or seen.says(_CURATOR, *texts)


def _repeats_one_release(seen: _Seen) -> bool:
    texts = (seen.model.release_type_details, seen.accounting.composition)
    return seen.model.release_type == "One release" and seen.says(_REPEATED, *texts)


def _hides_invariants(seen: _Seen) -> bool:
    if not _says_nothing(seen.domain.unprotected_quantities):
        return False
    if seen.specification is not None and declared_invariants(seen.specification.multiverse) != ():
        return True
    texts = (
        seen.domain.data_domain,
        seen.loss.privacy_unit_details,
        seen.accounting.post_processing,
        seen.implementation.mechanisms,
    )
    return seen.says(_INVARIANT, *texts)


def _omits_invariants(seen: _Seen) -> bool:
    if seen.specification is None or _says_nothing(seen.domain.unprotected_quantities):
        return False
    listed = seen.domain.unprotected_quantities
    declared = declared_invariants(seen.specification.multiverse) or ()
    return any(invariant.sentence() not in listed for invariant in declared)


def _understates(seen: _Seen) -> bool:
    if seen.specification is None:
        return False
    real = _parameters(seen.specification)
    claimed = seen.loss.privacy_parameters
    pairs = ((real.epsilon, claimed.epsilon), (real.delta, claimed.delta), (real.rho, claimed.rho))
    return any(isinstance(a, Exact) and isinstance(b, Exact) and b < a for a, b in pairs)


def _out_of_range(seen: _Seen) -> bool:
    return isinstance(seen.delta, Exact) and not (ZERO <= seen.delta < Exact.of(1))


def _negative_or_zero(value: Exact | None) -> bool:
    return value is not None and value <= ZERO


RULES: tuple[Rule, ...] = (
    Rule(
        "pure-with-delta",
        _PARAMETERS,
        "pure DP has no delta",
        "Remove the delta, or name the variant Approximate DP.",
        lambda s: s.variant == "Pure DP" and s.positive_delta,
    ),
    Rule(
        "pure-without-epsilon",
        _PARAMETERS,
        "pure DP is stated without its epsilon",
        "Give epsilon.",
        lambda s: s.variant == "Pure DP" and s.epsilon is None,
    ),
    Rule(
        "approximate-without-epsilon",
        _PARAMETERS,
        "approximate DP is stated without its epsilon",
        "Give epsilon.",
        lambda s: s.variant == "Approximate DP" and s.epsilon is None,
    ),
    Rule(
        "approximate-without-delta",
        _PARAMETERS,
        "approximate DP is stated without a delta above zero",
        "Give delta; with a delta of zero the variant is Pure DP.",
        lambda s: s.variant == "Approximate DP" and not s.positive_delta,
    ),
    Rule(
        "zcdp-without-rho",
        _PARAMETERS,
        "zero-concentrated DP is stated without rho",
        "Give rho, the number that the accounting adds up.",
        lambda s: s.variant == "Zero-concentrated DP" and s.rho is None,
    ),
    Rule(
        "rho-without-zcdp",
        _PARAMETERS,
        "rho is given, but the variant is not zero-concentrated DP",
        "Name the variant that the mechanism satisfies; convert in the details.",
        lambda s: s.rho is not None and s.variant in {"Pure DP", "Approximate DP", "Renyi DP"},
    ),
    Rule(
        "half-converted",
        _PARAMETERS,
        "an epsilon converted from rho needs its delta, and a delta its epsilon",
        "Give both, or neither.",
        lambda s: s.variant == "Zero-concentrated DP" and (s.epsilon is None) != (s.delta is None),
    ),
    Rule(
        "conversion-unnamed",
        "deployment.privacy_loss.privacy_parameters_details",
        "epsilon and delta stand beside rho and nothing says how they were converted",
        "Name the rule of conversion.",
        lambda s: (
            s.variant == "Zero-concentrated DP"
            and s.epsilon is not None
            and _says_nothing(s.loss.privacy_parameters_details)
        ),
    ),
    Rule(
        "renyi-without-order",
        "deployment.privacy_loss.privacy_parameters_details",
        "Renyi DP needs its order",
        "Give epsilon, and say the order alpha in the details: the registry has no field for it.",
        lambda s: (
            s.variant == "Renyi DP"
            and (s.epsilon is None or not s.says(_ORDER, s.loss.privacy_parameters_details))
        ),
    ),
    Rule(
        "custom-without-details",
        "deployment.privacy_loss.privacy_parameters_details",
        "a custom variant says nothing by itself",
        "Describe the measure and the budget in the details.",
        lambda s: s.variant == "Custom" and _says_nothing(s.loss.privacy_parameters_details),
    ),
    Rule(
        "parameters-without-variant",
        _VARIANT,
        "parameters are given without the variant that they belong to",
        "Name the variant: a bare number is not a budget.",
        lambda s: s.variant is None and s.has_parameters,
    ),
    Rule(
        "epsilon-not-positive",
        f"{_PARAMETERS}.epsilon",
        "epsilon is zero or negative",
        "A release that depends on the data at all has an epsilon above zero.",
        lambda s: _negative_or_zero(s.epsilon),
    ),
    Rule(
        "rho-not-positive",
        f"{_PARAMETERS}.rho",
        "rho is zero or negative",
        "A release that depends on the data at all has a rho above zero.",
        lambda s: _negative_or_zero(s.rho),
    ),
    Rule(
        "delta-out-of-range",
        f"{_PARAMETERS}.delta",
        "delta is not a probability below one",
        "Give a delta from 0 to well below one over the number of people.",
        _out_of_range,
    ),
    Rule(
        "unit-missing",
        "deployment.privacy_loss.privacy_unit",
        "a budget is stated without the unit that it protects",
        "Say whose change the parameters bound: a person, a household, an event.",
        lambda s: (s.has_parameters or s.variant is not None) and _says_nothing(s.loss.privacy_unit),
    ),
    Rule(
        "local-with-curator",
        f"{_MODEL}.model_name",
        "the model is local, but a trusted curator or a central step handles the data first",
        "Name the model Central, or apply protection before collection.",
        _local_with_curator,
    ),
    Rule(
        "one-release-repeated",
        f"{_MODEL}.release_type",
        "one release is declared, but its details or composition speak of many",
        "Declare Many releases, or account for this release alone.",
        _repeats_one_release,
    ),
    Rule(
        "many-releases-uncomposed",
        "deployment.accounting.composition",
        "many releases are declared and nothing says how their losses add up",
        "Describe the composition over releases and the period after which a budget starts anew.",
        lambda s: s.model.release_type == "Many releases" and _says_nothing(s.accounting.composition),
    ),
    Rule(
        "interactive-unapportioned",
        f"{_MODEL}.access_type_details",
        "access is interactive and nothing says how analysts share the budget",
        "Describe the shares, and whether analysts are assumed not to collude.",
        lambda s: s.model.access_type == "Interactive" and _says_nothing(s.model.access_type_details),
    ),
    Rule(
        "invariants-hidden",
        "deployment.dp_variant.unprotected_quantities",
        "invariants are kept, but no unprotected quantity is listed",
        "List every statistic that is published exactly.",
        _hides_invariants,
    ),
    Rule(
        "invariants-incomplete",
        "deployment.dp_variant.unprotected_quantities",
        "the specification keeps invariants that are not listed",
        "List every statistic that is published exactly, in the words of the specification.",
        _omits_invariants,
    ),
    Rule(
        "variant-mismatch",
        _VARIANT,
        "the variant is not that of the specification",
        "Write the record with record_of.",
        lambda s: s.specification is not None and s.variant not in {None, variant_of(s.specification)},
    ),
    Rule(
        "understated",
        _PARAMETERS,
        "a parameter is smaller than the guarantee allows",
        "Round parameters up, never down.",
        _understates,
    ),
    Rule(
        "tier-overstated",
        "tier",
        "the tier promises fields that are empty",
        "Fill the fields of the tier, or lower it.",
        lambda s: s.record.tier > tier_of(s.record),
    ),
    Rule(
        "placeholder",
        "deployment",
        "a field holds a placeholder",
        "Write the value, or leave the field out.",
        lambda s: any(
            _PLACEHOLDER.search(value) for _, value in _leaves(s.record.record()) if isinstance(value, str)
        ),
    ),
)


def _parameters(specification: Specification) -> PrivacyParameters:
    """The guarantee's own parameters, rounded up; none for a measure that the registry has no field for."""
    premetric, budget = specification.output_premetric, specification.budget
    if budget.curve or budget.largest.is_infinite or not premetric.coordinates:
        return PrivacyParameters()
    counted = dict(zip(premetric.coordinates, premetric.counted(budget), strict=True))
    own = {_NAMES[name]: _published(name, value) for name, value in counted.items() if name in _NAMES}
    return PrivacyParameters(**own)


_NAMES = {"epsilon": "epsilon", "delta": "delta", "rho_squared": "rho"}


def _published(name: str, value: Exact) -> Exact:
    """Rounded up: a probability to three digits, another number to some places."""
    above = value.rounded_up()
    if name == "delta":
        return Exact(Fraction(significant(above)))
    return Exact(Fraction(math.ceil(above * 10**PLACES), 10**PLACES))


def _parameters_text(specification: Specification, delta: object, method: Method) -> str:
    found = parameters(specification, delta, method)
    lines = [f"Guarantee: {specification} ({NOMINAL})."]
    if not specification.budget.curve and specification.budget.is_constant:
        lines.append(f"Exact amount: {specification.budget.amount}.")
    if specification.output_premetric.remark:
        lines.append(specification.output_premetric.remark)
    if found.epsilon.converted:
        lines.append(f"As (ε, δ): ε = {found.epsilon}, δ = {found.delta}.")
    lines += [f"Note: {remark}." for remark in found.remarks]
    lines += [f"Assumes that {assumption}." for assumption in specification.assumptions]
    return "\n".join(lines)


def _unit_text(specification: Specification) -> str:
    premetric = specification.input_premetric
    return f"A change of one unit means that {premetric.sentence()}. Input premetric: {premetric.symbol}."


def _domain_text(specification: Specification) -> str:
    domain = specification.domain
    what = domain.meaning or f"the data sets of {domain.name}"
    text = f"{what[:1].upper()}{what[1:]} (stage: {domain.stage})."
    if declared_invariants(specification.multiverse) != ():
        text += " Protection extends only to pairs that agree on the unprotected quantities."
    return text


def _unprotected_text(specification: Specification) -> str:
    invariants = declared_invariants(specification.multiverse)
    if invariants:
        return "\n".join(f"- {invariant.sentence()}" for invariant in invariants)
    return invariants_text(specification).capitalize() if invariants == () else invariants_text(specification)


def _slug(name: str) -> str:
    plain = "-".join(re.findall(r"[a-z0-9]+", name.lower()))
    if not plain:
        raise InputError(
            "the name gives no address",
            field="url_slug",
            expected="lower-case letters and digits, joined by hyphens",
            hint="Give url_slug.",
        )
    return plain


def _spoken(node: Any) -> Any:
    if isinstance(node, dict):
        below = {name: _spoken(value) for name, value in node.items()}
        return {name: value for name, value in below.items() if value not in ("", None, {}, [])}
    return [_spoken(value) for value in node] if isinstance(node, list) else node


def _leaves(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(node, dict):
        for name, below in node.items():
            yield from _leaves(below, f"{path}.{name}".lstrip("."))
    elif isinstance(node, list):
        for below in node:
            yield from _leaves(below, path)
    else:
        yield path, node


def _literal(dumper: Any, text: str) -> Any:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
