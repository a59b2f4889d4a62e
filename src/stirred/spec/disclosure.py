"""What may be said about the budget: the policy always, the realised budget only sometimes.

Reference
    Appendix A.2 of the thesis. With [x] the component of x among comparable points, the set
    b(x) = {budget_D : D meets [x]} has loss zero; b'(x) = {budget_D : x in D} has infinite loss unless it
    equals b(x) everywhere. The thesis' condition II for that is wrong as written, so both are computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stirred.spec.arithmetic.exact import Exact
from stirred.spec.specification import Flavor, Specification


@dataclass(frozen=True)
class BudgetDisclosure:
    """Which statements about the budget cost nothing."""

    policy: bool
    component_budgets: bool
    realised_budget: bool
    reason: str


def components(flavor: Flavor | Specification) -> tuple[frozenset[Any], ...]:
    """Classes of points that are connected by comparable pairs."""
    points = flavor.domain.enumerate()
    distances = flavor.input_premetric.matrix(flavor.domain)
    label = list(range(len(points)))

    def root(i: int) -> int:
        while label[i] != i:
            label[i] = label[label[i]]
            i = label[i]
        return i

    for _, i, j in flavor.pairs():
        if not (distances[i][j].is_infinite and distances[j][i].is_infinite):
            label[root(i)] = root(j)
    groups: dict[int, list[Any]] = {}
    for i, point in enumerate(points):
        groups.setdefault(root(i), []).append(point)
    return tuple(frozenset(group) for group in groups.values())


def component_budgets(specification: Specification, point: Any) -> frozenset[Exact]:
    """b(x): budgets of the universes that meet the component of x."""
    return _budgets_at(specification, next(c for c in components(specification) if point in c))


def realised_budgets(specification: Specification, point: Any) -> frozenset[Exact]:
    """b'(x): budgets of the universes that contain x."""
    return _budgets_at(specification, frozenset({point}))


def _budgets_at(specification: Specification, points: frozenset[Any]) -> frozenset[Exact]:
    universes = specification.universes()
    specification.budget.require_everywhere(len(universes))
    return frozenset(specification.budget.linear(i) for i, u in enumerate(universes) if u & points)


def budget_disclosure(specification: Specification) -> BudgetDisclosure:
    """Decide what may be said about the budget of a finite specification."""
    same = all(
        component_budgets(specification, point) == realised_budgets(specification, point)
        for point in specification.domain.enumerate()
    )
    reason = (
        "the realised budget is the same throughout each component, so stating it reveals nothing"
        if same
        else "the realised budget tells comparable points apart: state the policy, not the number"
    )
    return BudgetDisclosure(policy=True, component_budgets=True, realised_budget=same, reason=reason)
