"""The plan of a release: one YAML file that says what is protected, how, by whose right, and at what cost.

Levels of attributes are declared with their provenance, never read from the data. Decimals stay exact. Paths
are relative to the plan. ``digest`` freezes a plan: a release that was paid for is resumed with the same one.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Self

from pydantic import Field, SerializeAsAny, TypeAdapter, field_validator

from stirred.data import MOST_DETERMINED
from stirred.documents import read_mapping
from stirred.release.numbers import Number, Probability, Share
from stirred.report import About, Checklist, Governance
from stirred.spec import Block, Domain, Stage


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
    mechanism: SerializeAsAny[Block]
    claim: Number | None = None
    domain: Domain | None = None
    protection: ProtectionPlan = Field(default_factory=ProtectionPlan)
    legal_bases: tuple[LegalBasis, ...] = ()
    delta: Probability = "1e-10"
    stage: Stage = Stage.EDITED_FILE
    checklist: Checklist = Field(default_factory=Checklist)
    governance: Governance = Field(default_factory=Governance)
    registry: About | None = None

    @field_validator("mechanism", mode="before")
    @classmethod
    def _section(cls, value: object) -> Block:
        from stirred.release.kinds import read_section

        return read_section(value)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a plan; an unknown key, a wrong type or a missing field is refused by name."""
        expected = "keys such as name, dataset, mechanism"
        hint = "Write a starter plan with `stirred release new`."
        return cls.read(read_mapping(path, "plan", expected, hint))

    @property
    def digest(self) -> str:
        """The fingerprint of everything in the plan."""
        body = json.dumps(self.model_dump(mode="json", by_alias=True), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(body.encode()).hexdigest()


def plan_schema() -> dict[str, Any]:
    """The JSON Schema of plans, for editors: the section of every kind is one way to write a mechanism."""
    from stirred.release.kinds import KINDS

    schema = TypeAdapter(Plan).json_schema(by_alias=True)
    sections = [_section_schema(kind.section, schema["$defs"]) for kind in KINDS.values()]
    schema["properties"]["mechanism"] = {"oneOf": sections}
    return schema


def _section_schema(section: type[Block], definitions: dict[str, Any]) -> dict[str, Any]:
    own = section.model_json_schema(by_alias=True)
    definitions |= own.pop("$defs", {})
    definitions[section.__name__] = own | {"required": ["kind", *own.get("required", [])]}
    return {"$ref": f"#/$defs/{section.__name__}"}
