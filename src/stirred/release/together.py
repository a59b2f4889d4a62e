"""What several releases of one data set promise together."""

from __future__ import annotations

from collections.abc import Sequence

from stirred.release.plan import GroupPlan, Plan
from stirred.spec import HammingUnordered, InUnit, Specification, jointly


def joint_guarantee(parts: Sequence[tuple[Plan, Specification]]) -> Specification:
    """The guarantee of all releases together, in one flavor: the units that the plans restate them for."""
    return jointly(*(own for _, own in parts), units=[unit_of(plan.dataset.group) for plan, _ in parts])


def unit_of(group: GroupPlan | None) -> InUnit | None:
    """The unit of an account, as a change of the release's own."""
    return None if group is None else InUnit(HammingUnordered(unit=group.unit), group.factor, group.because)
