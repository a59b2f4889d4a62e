"""DP specifications: the five building blocks of a guarantee, their arithmetic and their comparison.

Domain, multiverse (invariants), input premetric (protection unit), output premetric, budget: a
``Specification`` has all five. Compose, convert, compare and verify them here; nothing in this
room touches confidential data except to evaluate a declared invariant.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stirred.spec import catalogue as catalogue
    from stirred.spec.budget import Budget as Budget
    from stirred.spec.comparison import Comparison as Comparison
    from stirred.spec.comparison import Order as Order
    from stirred.spec.comparison import compare as compare
    from stirred.spec.composition import compose as compose
    from stirred.spec.composition import meet as meet
    from stirred.spec.composition import parallel as parallel
    from stirred.spec.composition import post_process as post_process
    from stirred.spec.conversion import convert as convert
    from stirred.spec.conversion import epsilon_at_distance as epsilon_at_distance
    from stirred.spec.disclosure import budget_disclosure as budget_disclosure
    from stirred.spec.distribution import Distribution as Distribution
    from stirred.spec.domain import Domain as Domain
    from stirred.spec.domain import Stage as Stage
    from stirred.spec.exact import Exact as Exact
    from stirred.spec.gaming import gaming_audit as gaming_audit
    from stirred.spec.invariant import Condition as Condition
    from stirred.spec.invariant import Count as Count
    from stirred.spec.invariant import Sum as Sum
    from stirred.spec.invariant import Threshold as Threshold
    from stirred.spec.invariant import evaluate as evaluate
    from stirred.spec.invariant import margins as margins
    from stirred.spec.joint import InUnit as InUnit
    from stirred.spec.joint import jointly as jointly
    from stirred.spec.joint import restate as restate
    from stirred.spec.mechanism import FiniteMechanism as FiniteMechanism
    from stirred.spec.mechanism import protection_loss as protection_loss
    from stirred.spec.mechanism import satisfies as satisfies
    from stirred.spec.mechanism_file import read_mechanism as read_mechanism
    from stirred.spec.multiverse import from_invariants as from_invariants
    from stirred.spec.restriction import restricted as restricted
    from stirred.spec.schema import Attribute as Attribute
    from stirred.spec.schema import Recode as Recode
    from stirred.spec.schema import Schema as Schema
    from stirred.spec.separation import least_distance as least_distance
    from stirred.spec.specification import Flavor as Flavor
    from stirred.spec.specification import Specification as Specification
    from stirred.spec.specification import json_schema as json_schema
    from stirred.spec.unit import change_unit as change_unit
    from stirred.spec.unit import pull_back as pull_back
    from stirred.spec.unit import undo_imputation as undo_imputation

__all__ = [
    "Attribute",
    "Budget",
    "Comparison",
    "Condition",
    "Count",
    "Distribution",
    "Domain",
    "Exact",
    "FiniteMechanism",
    "Flavor",
    "InUnit",
    "Order",
    "Recode",
    "Schema",
    "Specification",
    "Stage",
    "Sum",
    "Threshold",
    "budget_disclosure",
    "catalogue",
    "change_unit",
    "compare",
    "compose",
    "convert",
    "epsilon_at_distance",
    "evaluate",
    "from_invariants",
    "gaming_audit",
    "jointly",
    "json_schema",
    "least_distance",
    "margins",
    "meet",
    "parallel",
    "post_process",
    "protection_loss",
    "pull_back",
    "read_mechanism",
    "restate",
    "restricted",
    "satisfies",
    "undo_imputation",
]

_HOMES = {
    "budget": ("Budget",),
    "comparison": ("Comparison", "Order", "compare"),
    "composition": ("compose", "meet", "parallel", "post_process"),
    "conversion": ("convert", "epsilon_at_distance"),
    "disclosure": ("budget_disclosure",),
    "distribution": ("Distribution",),
    "domain": ("Domain", "Stage"),
    "exact": ("Exact",),
    "gaming": ("gaming_audit",),
    "invariant": ("Condition", "Count", "Sum", "Threshold", "evaluate", "margins"),
    "joint": ("InUnit", "jointly", "restate"),
    "mechanism": ("FiniteMechanism", "protection_loss", "satisfies"),
    "mechanism_file": ("read_mechanism",),
    "multiverse": ("from_invariants",),
    "restriction": ("restricted",),
    "schema": ("Attribute", "Recode", "Schema"),
    "separation": ("least_distance",),
    "specification": ("Flavor", "Specification", "json_schema"),
    "unit": ("change_unit", "pull_back", "undo_imputation"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line starts at once."""
    if name in _HOME:
        return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__} has no attribute {name}")


def __dir__() -> list[str]:
    return sorted(_HOME)
