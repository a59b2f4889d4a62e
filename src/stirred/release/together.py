"""What several releases of one data set promise together."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.release.plan import Plan
from stirred.spec.input_premetric import HammingUnordered
from stirred.spec.specification import Specification
from stirred.spec.unit import change_unit


def restated(plan: Plan, specification: Specification) -> Specification:
    """The guarantee of a release for the protection unit of its data set's account."""
    group = plan.dataset.group
    if group is None:
        return specification
    return change_unit(specification, HammingUnordered(unit=group.unit), group.factor, group.because)


def joint_guarantee(parts: Sequence[tuple[Plan, Specification]]) -> Specification:
    """The guarantee of all releases together, in one flavor."""
    return restated(*parts[0])
