"""The quadratic programme of a family by OR-tools' PDLP: slower, for whatever ADMM does not solve.

PDLP takes a diagonal quadratic: with H = F'F the residuals f_c = F x_c become variables. F is the stack of
weighted queries where H is a sum of theirs, and a Cholesky factor of H elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.topdown.quadratic import Form, Solution, unsolved

if TYPE_CHECKING:
    from stirred.topdown.quadratic import Programme


def solve_pdlp(programme: Programme, tolerance: float) -> Solution:
    """Solve with PDLP; refused where it finds no optimum."""
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp

    problem = _problem(programme)
    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = parameters.termination_criteria
    criteria.simple_optimality_criteria.eps_optimal_absolute = tolerance
    criteria.simple_optimality_criteria.eps_optimal_relative = tolerance
    criteria.iteration_limit = 200_000
    result = pdlp.primal_dual_hybrid_gradient(problem, parameters)
    log = result.solve_log
    if log.termination_reason != solve_log_pb2.TERMINATION_REASON_OPTIMAL:
        raise unsolved()
    children, cells = programme.shape
    x = np.asarray(result.primal_solution)[: children * cells].reshape(children, cells)
    return Solution(np.maximum(x, 0.0), int(log.iteration_count), tolerance, tolerance, "pdlp")


def _problem(programme: Programme) -> Any:
    """Variables: the table, then the residuals; rows: residuals, sums over children, rows of children."""
    import scipy.sparse as sp
    from ortools.pdlp.python import pdlp

    children, cells = programme.shape
    factors = [_factor(form, programme.cells) for form in programme.forms]
    own = sp.block_diag([factors[kind] for kind in programme.kinds], format="csr")
    count = own.shape[0]
    blocks = [sp.hstack([own, -sp.identity(count)])]
    lower, upper = [np.zeros(count)], [np.zeros(count)]
    if programme.parent is not None:
        sums = sp.kron(np.ones((1, children)), sp.identity(cells))
        blocks.append(sp.hstack([sums, sp.csr_matrix((cells, count))]))
        lower.append(programme.parent)
        upper.append(programme.parent)
    if programme.rows.shape[0]:
        rows = sp.kron(sp.identity(children), sp.csr_matrix(programme.rows))
        blocks.append(sp.hstack([rows, sp.csr_matrix((rows.shape[0], count))]))
        lower.append(programme.low.reshape(-1))
        upper.append(programme.high.reshape(-1))
    problem = pdlp.QuadraticProgram()
    matrix = sp.vstack(blocks, format="csc")
    problem.resize_and_initialize(matrix.shape[1], matrix.shape[0])
    problem.constraint_matrix = matrix
    problem.constraint_lower_bounds = _open(np.concatenate(lower))
    problem.constraint_upper_bounds = _open(np.concatenate(upper))
    problem.variable_lower_bounds = np.concatenate([np.zeros(children * cells), np.full(count, -np.inf)])
    problem.variable_upper_bounds = _open(
        np.concatenate([programme.upper.reshape(-1), np.full(count, np.inf)])
    )
    problem.objective_vector = np.concatenate([-programme.linear.reshape(-1), np.zeros(count)])
    problem.set_objective_matrix_diagonal(np.concatenate([np.zeros(children * cells), np.ones(count)]))
    return problem


def _factor(form: Form | NDArray[np.float64], cells: NDArray[np.int64]) -> Any:
    """F with F'F = H: weighted queries, or the Cholesky factor, or from eigenvalues where H is singular."""
    import scipy.sparse as sp

    if isinstance(form, Form) and form.weights is not None:
        parts = []
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
