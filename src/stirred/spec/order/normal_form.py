"""Normal form of a finite specification: every constraint it makes, explicit and implied.

Reference
    R31 of our digest (derived, and checked on random specifications): with
    L(x, x') = min over universes that contain both of budget * d(x, x'), symmetrised where the output
    premetric is symmetric, and L* its shortest paths where it has the triangle inequality, a
    specification and (X, {X}, L, D_Pr, 1) have the same mechanisms. For D_Mult and D_NoR specification
    A is stronger than B exactly when L*_A <= L_B everywhere.
"""

from __future__ import annotations

from stirred.spec.arithmetic.exact import INFINITY, ZERO
from stirred.spec.arithmetic.extended import budget_bound
from stirred.spec.blocks.input_premetric import Matrix, shortest_paths
from stirred.spec.specification import Specification


def explicit_constraints(specification: Specification) -> Matrix:
    """L: the bound on the divergence of every ordered pair that some universe compares."""
    distances = specification.input_premetric.matrix(specification.domain)
    size = range(len(distances))
    bounds = [[ZERO if i == j else INFINITY for j in size] for i in size]
    specification.budget.require_everywhere(len(specification.universes()))
    for number, i, j in specification.pairs():
        bound = budget_bound(specification.budget.linear(number), distances[i][j])
        bounds[i][j] = min(bounds[i][j], bound)
    if specification.output_premetric.properties.symmetric:
        for i in size:
            for j in range(i):
                bounds[i][j] = bounds[j][i] = min(bounds[i][j], bounds[j][i])
    return tuple(tuple(row) for row in bounds)


def all_constraints(specification: Specification) -> Matrix:
    """L*: explicit constraints and those that the triangle inequality implies."""
    explicit = explicit_constraints(specification)
    if not specification.output_premetric.properties.triangle:
        return explicit
    return shortest_paths(explicit)
