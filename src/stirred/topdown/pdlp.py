"""The quadratic programme of a family by OR-tools' PDLP: slower, for whatever ADMM does not solve.

PDLP takes a diagonal quadratic: with H = F'F the residuals f_c = F (x_c - y_c) become variables. F is the
stack of weighted queries where H is a sum of theirs, and a Cholesky factor of H elsewhere. The table y is
near the unconstrained optimum, and all else is written relative to it, with weights of about one: PDLP's
tolerances are relative to the size of the numbers it sees, which are then residuals, not counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.topdown.quadratic import Form, Solution, unsolved

if TYPE_CHECKING:
    from stirred.topdown.quadratic import Programme

NEAR_STEPS = 100


def solve_pdlp(programme: Programme, tolerance: float) -> Solution:
    """Solve with PDLP; refused where it finds no optimum."""
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp

    factors = [_factor(form, programme.cells) for form in programme.forms]
    curvature = max((factor.multiply(factor).sum() / factor.shape[1] for factor in factors), default=0.0)
    unit = float(curvature) or 1.0
    factors = [factor / np.sqrt(unit) for factor in factors]
    linear = programme.linear / unit
    near = _near(programme, factors, linear)
    problem = _problem(programme, factors, linear, near)
    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = parameters.termination_criteria
    criteria.simple_optimality_criteria.eps_optimal_absolute = tolerance
    criteria.simple_optimality_criteria.eps_optimal_relative = tolerance
    criteria.iteration_limit = 200_000
    parameters.initial_primal_weight = 1.0  # the linear term is near zero, and no guide to the right one
    result = pdlp.primal_dual_hybrid_gradient(problem, parameters)
    log = result.solve_log
    if log.termination_reason != solve_log_pb2.TERMINATION_REASON_OPTIMAL:
        raise unsolved()
    children, cells = programme.shape
    x = np.asarray(result.primal_solution)[: children * cells].reshape(children, cells) + near
    return Solution(np.clip(x, 0.0, programme.upper), int(log.iteration_count), tolerance, tolerance, "pdlp")


def _near(programme: Programme, factors: list[Any], linear: NDArray[np.float64]) -> NDArray[np.float64]:
    """Non-negative tables close to where the quadratics are least: some steps of conjugate gradients.

    Any table is right; a near one makes PDLP exact to small fractions of the noise.
    """
    x = np.zeros(programme.shape)
    for kind, factor in enumerate(factors):
        members = np.flatnonzero(programme.kinds == kind)
        residual = linear[members].T.copy()
        table, direction = np.zeros_like(residual), residual.copy()
        square = (residual**2).sum(axis=0)
        enough = 1e-20 * square
        for _ in range(NEAR_STEPS):
            image = factor.T @ (factor @ direction)
            curvature = (direction * image).sum(axis=0)
            length = np.divide(
                square, curvature, out=np.zeros_like(square), where=(square > enough) & (curvature > 0)
            )
            table += length * direction
            residual -= length * image
            before, square = square, (residual**2).sum(axis=0)
            direction = (
                residual + np.divide(square, before, out=np.zeros_like(square), where=before > 0) * direction
            )
        x[members] = table.T
    most = programme.upper if programme.parent is None else np.minimum(programme.upper, programme.parent)
    return np.clip(x, 0.0, most)


def _problem(
    programme: Programme, factors: list[Any], linear: NDArray[np.float64], near: NDArray[np.float64]
) -> Any:
    """Variables: the table less ``near``, then the residuals; rows: residuals, parent's sums, own rows."""
    import scipy.sparse as sp
    from ortools.pdlp.python import pdlp

    children, cells = programme.shape
    own = sp.block_diag([factors[kind] for kind in programme.kinds], format="csr")
    count = own.shape[0]
    blocks = [sp.hstack([own, -sp.identity(count)])]
    lower, upper = [np.zeros(count)], [np.zeros(count)]
    if programme.parent is not None:
        sums = sp.kron(np.ones((1, children)), sp.identity(cells))
        blocks.append(sp.hstack([sums, sp.csr_matrix((cells, count))]))
        missing = programme.parent - near.sum(axis=0)
        lower.append(missing)
        upper.append(missing)
    if programme.rows.shape[0]:
        rows = sp.kron(sp.identity(children), sp.csr_matrix(programme.rows))
        blocks.append(sp.hstack([rows, sp.csr_matrix((rows.shape[0], count))]))
        known = near @ programme.rows.T
        lower.append((programme.low - known).reshape(-1))
        upper.append((_open(programme.high) - known).reshape(-1))
    slope = (own.T @ (own @ near.reshape(-1))) - linear.reshape(-1)
    problem = pdlp.QuadraticProgram()
    matrix = sp.vstack(blocks, format="csc")
    problem.resize_and_initialize(matrix.shape[1], matrix.shape[0])
    problem.constraint_matrix = matrix
    problem.constraint_lower_bounds = np.concatenate(lower)
    problem.constraint_upper_bounds = np.concatenate(upper)
    problem.variable_lower_bounds = np.concatenate([-near.reshape(-1), np.full(count, -np.inf)])
    most = (_open(programme.upper) - near).reshape(-1)
    problem.variable_upper_bounds = np.concatenate([most, np.full(count, np.inf)])
    problem.objective_vector = np.concatenate([slope, np.zeros(count)])
    problem.set_objective_matrix_diagonal(np.concatenate([np.zeros(children * cells), np.ones(count)]))
    return problem


def _factor(form: Form | NDArray[np.float64], cells: NDArray[np.int64]) -> Any:
    """F with F'F = H: weighted queries, or the Cholesky factor, or from eigenvalues where H is singular."""
    import scipy.sparse as sp

    if isinstance(form, Form) and form.weights is not None:
        parts = [sp.csr_matrix((0, cells.size))]  # a child that measures nothing in this pass
        for name, weight in form.weights.items():
            groups = np.unique(form.algebra.cells.query(name).groups[cells], return_inverse=True)[1]
            values = np.full(cells.size, np.sqrt(weight))
            parts.append(sp.csr_matrix((values, (groups, np.arange(cells.size)))))
        return sp.vstack(parts, format="csr")
    matrix = form.dense(cells) if isinstance(form, Form) else form
    try:
        return sp.csr_matrix(np.linalg.cholesky(matrix).T)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(matrix)
        kept = values > values.max() * 1e-12
        return sp.csr_matrix(np.sqrt(values[kept])[:, None] * vectors[:, kept].T)


def _open(bounds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bounds beyond any population are none."""
    return np.where(bounds >= 1e12, np.inf, bounds)
