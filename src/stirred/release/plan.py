"""The plan of a release: one YAML file that says what is protected, how, by whose right, and at what cost.

Levels of attributes are declared with their provenance, never read from the data. Decimals stay exact. Paths
are relative to the plan. ``digest`` freezes a plan: a release that was paid for is resumed with the same one.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, TypeAdapter, WithJsonSchema, model_validator

from stirred.data import MOST_DETERMINED
from stirred.documents import read_yaml
from stirred.errors import InputError, StirredError
from stirred.places import clash
from stirred.report import About, Checklist, Governance
from stirred.spec import LEAST_DELTA, Block, Domain, Exact, Schema, Stage, as_fraction
from stirred.topdown import Plan as TopDownSettings

Provenance = Literal["public", "earlier DP release", "assumption"]


def _positive(value: object) -> object:
    """Exact, positive and finite; kept as it was written."""
    try:
        number = Exact.of(value)
    except (StirredError, ValueError, TypeError):
        raise ValueError("a number such as 1/20, 0.05 or ln(3)") from None
    if number.is_infinite or not number > Exact.of(0):
        raise ValueError("a positive, finite number")
    return value


def _below_one(value: object) -> object:
    try:
        probability = as_fraction(value)
    except (StirredError, ValueError, TypeError):
        raise ValueError("a probability such as 1e-10") from None
    if not LEAST_DELTA <= probability < 1:
        raise ValueError("a probability of at least 1e-300 and below 1")
    return value


def _share(value: object) -> object:
    try:
        share = as_fraction(value)
    except (StirredError, ValueError, TypeError):
        raise ValueError("a share such as 0.01") from None
    if not 0 <= share < 1:
        raise ValueError("a share of at least 0 and below 1")
    return value


_WRITTEN = WithJsonSchema({"type": ["string", "number"]})
Number = Annotated[str | int, AfterValidator(_positive), _WRITTEN]
Probability = Annotated[str, AfterValidator(_below_one), _WRITTEN]
Share = Annotated[str | int, AfterValidator(_share), _WRITTEN]


class SwapPlan(Block):
    """Permutation swapping: roles of the columns, the rate or the loss to aim at, and tables to publish.

    ``codebook`` lists the levels of every column that has a role; ``provenance`` says where they come from.
    ``nesting`` has pairs of places, the finer first; an empty list says that nothing is nested. Tables are
    written ``tenure * county``.
    """

    kind: Literal["swap"] = "swap"
    households: str
    persons: str | None = None
    id: str | None = None
    match: tuple[str, ...] = ()
    swap: tuple[str, ...]
    hold: tuple[str, ...] | None = None
    rate: Number | None = None
    target_epsilon: Number | None = None
    unit: str = "household"
    nesting: tuple[tuple[str, str], ...] | None = None
    loss: Literal["theorem-1", "tighter"] = "theorem-1"
    codebook: Schema | None = None
    provenance: Provenance = "public"
    tables: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _one_aim(self) -> Self:
        if (self.rate is None) == (self.target_epsilon is None):
            raise ValueError("exactly one of rate and target_epsilon")
        if self.target_epsilon is not None and self.loss == "tighter":
            raise ValueError("a rate, where the tighter loss is asked for")
        return self

    @model_validator(mode="after")
    def _own_files(self) -> Self:
        if clash(table_file(table) for table in self.tables) is not None:
            raise ValueError("tables that are all different, also as names of files")
        return self


def parts_of(table: str) -> list[str]:
    """The variables of a table that is written ``tenure * county``."""
    return [part.strip() for part in table.split("*")]


def table_file(table: str) -> str:
    """The name that a table gives its files."""
    return "-".join(parts_of(table))


class TopDownPlan(TopDownSettings):
    """TopDown: geography, units with schemas and budgets, constraints, tables to publish."""

    kind: Literal["topdown"] = "topdown"
    provenance: Provenance = "public"


MechanismPlan = Annotated[SwapPlan | TopDownPlan, Field(discriminator="kind")]


class GroupPlan(Block):
    """How many units of the mechanism one unit of the account can be, and why.

    For a release of households on an account of persons: a person who moves changes two households.
    """

    unit: str
    factor: Number
    because: str = Field(min_length=1)


class DatasetPlan(Block):
    """The confidential data: the name of their account in the ledger, and how many units are said to exist.

    ``population`` is public knowledge, used for warnings only. ``ceiling`` is the total budget with which the
    account is opened: in the currency of the mechanism (rho squared for TopDown, epsilon for swapping), or,
    where plans of several mechanisms share the account, in the currency that they have in common (rho
    squared). ``group`` restates the release for the protection unit of the account.
    """

    name: str
    description: str = ""
    population: int | None = Field(default=None, ge=1)
    period: str | None = None
    ceiling: Number | None = None
    group: GroupPlan | None = None


class ProtectionPlan(Block):
    """What must be left to protect: the largest share of a unit's records that may be determined.

    A record is determined where the exact statistics alone give it the same values in every data set.
    """

    most_determined: Share = str(MOST_DETERMINED)


class LegalBasis(Block):
    """Why a statistic is published exactly."""

    statistic: str
    basis: str


class Plan(Block):
    """Everything that a release needs to be checked, run and explained.

    ``claim`` is the budget that the agency announces, in the currency of the mechanism (rho squared for
    TopDown, epsilon for swapping): a run that needs more is refused, and the audit tries to refute it.
    ``domain`` is the set of all possible data sets. Give the same one to plans whose guarantees are to be
    compared or composed; without it each mechanism makes its own from the variables that it uses.
    ``protection`` refuses a plan whose exact statistics leave too little to protect.
    """

    name: str = Field(pattern="^[a-z0-9][a-z0-9-]*$")
    title: str
    description: str = ""
    agency: str
    curator: str
    dataset: DatasetPlan
    mechanism: MechanismPlan
    claim: Number | None = None
    domain: Domain | None = None
    protection: ProtectionPlan = Field(default_factory=ProtectionPlan)
    legal_bases: tuple[LegalBasis, ...] = ()
    delta: Probability = "1e-10"
    stage: Stage = Stage.EDITED_FILE
    checklist: Checklist = Field(default_factory=Checklist)
    governance: Governance = Field(default_factory=Governance)
    registry: About | None = None

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a plan; an unknown key, a wrong type or a missing field is refused by name."""
        record = read_yaml(path)
        if not isinstance(record, dict):
            raise InputError(
                f"the plan {path.name} is empty or not a mapping",
                field="plan",
                expected="keys such as name, dataset, mechanism",
                hint="Write a starter plan with `stirred release new`.",
            )
        return cls.read(record)

    @property
    def digest(self) -> str:
        """The fingerprint of everything in the plan."""
        body = json.dumps(self.model_dump(mode="json", by_alias=True), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(body.encode()).hexdigest()


def plan_schema() -> dict[str, Any]:
    """The JSON Schema of plans, for editors."""
    return TypeAdapter(Plan).json_schema(by_alias=True)
