"""Rounding under bounds of any shape: an integer programme, with a proved gap.

Guarantee
    The table returned keeps every constraint; its objective is at most ``gap`` (a share of the objective)
    above the minimum over all integer tables, zero if the search was completed. The same input gives the
    same table: the search is limited by nodes, never by time.
Assumes
    Nothing of the shape of the sets. Where they cross, the matrix is not totally unimodular and the
    linear relaxation has fractional vertices, so rounding it would break a constraint.

The variables are the pieces of the penalties, moves away from the nearest integers, so that the
relaxation is the convex hull of every single penalty and large counts never meet the solver's tolerances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.errors import Refusal
from stirred.topdown.flow import Level
from stirred.topdown.penalty import UNBOUNDED, Penalty, Pieces, cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

NODES = 500
RESOLUTION = 1e-9
COMPLETED, INFEASIBLE = 0, 2  # status of scipy.optimize.milp


@dataclass(frozen=True)
class Row:
    """Bounds on the sum of any set of cells, one pair for every child."""

    cells: NDArray[np.bool_]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]

    def allows(self, counts: NDArray[np.int64]) -> bool:
        sums = counts[:, self.cells].sum(axis=1)
        return bool((sums >= self.lower).all() and (sums <= self.upper).all())


@dataclass(frozen=True)
class Solution:
    """Integer counts (children x cells) and the least value the objective could have."""

    counts: NDArray[np.int64]
    bound: float
    proved: bool


def solve_integer(
    cells: Penalty,
    levels: Sequence[Level],
    parent: NDArray[np.int64] | None,
    bands: Sequence[Row] = (),
    nodes: int = NODES,
) -> Solution | None:
    """Nearest integer table under any partitions and bounds; None if no table keeps every constraint.

    ``parent`` has the cells' sums over the children; None leaves them free. ``nodes`` limits the search.
    """
    from scipy import sparse

    children, width = cells.target.shape
    weighted = [level for level in levels if level.penalty.weight]
    penalties = [cells, *(level.penalty for level in weighted)]
    pieces = [cut(penalty, RESOLUTION) for penalty in penalties]
    moves = [_moves(part, penalty) for part, penalty in zip(pieces, penalties, strict=True)]
    within = sparse.eye_array(children)
    sums, blocks = [], []
    if parent is not None:
        sums.append((sparse.kron(np.ones((1, children)), sparse.eye_array(width)), parent, parent))
    for level in levels:
        table = sparse.kron(within, _indicator(level.groups, level.size))
        if level.penalty.weight:
            blocks.append((table, level.penalty.base))
        else:
            sums.append((table, level.penalty.lower.ravel(), level.penalty.upper.ravel()))
    sums += [
        (sparse.kron(within, band.cells[None, :].astype(float)), band.lower, band.upper) for band in bands
    ]

    base = cells.base.ravel()
    matrix: list[list[Any]] = [[table @ moves[0], *(None for _ in weighted)] for table, _, _ in sums]
    lower = [low - table @ base for table, low, _ in sums]
    upper = [np.where(high >= UNBOUNDED, np.inf, high - table @ base) for table, _, high in sums]
    for i, (table, start) in enumerate(blocks):
        tied = [-moves[j + 1] if j == i else None for j in range(len(blocks))]
        matrix.append([table @ moves[0], *tied])
        lower.append(start.ravel() - table @ base)
        upper.append(lower[-1])
    found = _search(
        cost=np.concatenate([part.cost for part in pieces]),
        capacity=np.concatenate([part.capacity for part in pieces]).astype(float),
        whole=np.repeat([1, 0], [pieces[0].owner.size, sum(part.owner.size for part in pieces[1:])]),
        rows=(sparse.block_array(matrix, format="csr"), np.concatenate(lower), np.concatenate(upper))
        if matrix
        else None,
        nodes=nodes,
    )
    if found is None:
        return None
    units, bound, proved = found
    counts = pieces[0].moved(np.rint(units[: pieces[0].owner.size]).astype(np.int64), cells.base)
    return Solution(counts, bound + sum(penalty.distance(penalty.base) for penalty in penalties), proved)


def _moves(pieces: Pieces, penalty: Penalty) -> Any:
    """Matrix that turns units of the pieces into moves of the flat table."""
    from scipy import sparse

    count = pieces.owner.size
    return sparse.csr_array(
        (pieces.sign.astype(float), (pieces.owner, np.arange(count))), shape=(penalty.target.size, count)
    )


def _indicator(groups: NDArray[np.int64], size: int) -> Any:
    from scipy import sparse

    return sparse.csr_array(
        (np.ones(groups.size), (groups, np.arange(groups.size))), shape=(size, groups.size)
    )


def _search(
    cost: NDArray[np.float64],
    capacity: NDArray[np.float64],
    whole: NDArray[np.int64],
    rows: tuple[Any, NDArray[np.float64], NDArray[np.float64]] | None,
    nodes: int,
) -> tuple[NDArray[np.float64], float, bool] | None:
    """Units, lower bound of the cost, and whether the search was completed; None if nothing is feasible.

    If the search for a near table ends empty-handed, a second one looks for any table.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    bounds = Bounds(0.0, np.where(capacity >= UNBOUNDED / 2, np.inf, capacity))
    least = 0.0
    for attempt in (cost, np.zeros_like(cost)):
        result = milp(
            attempt,
            integrality=whole,
            bounds=bounds,
            constraints=() if rows is None else LinearConstraint(*rows),
            options={"node_limit": nodes, "mip_rel_gap": 0.0},
        )
        if result.status == INFEASIBLE:
            return None
        if attempt is cost and result.mip_dual_bound is not None and np.isfinite(result.mip_dual_bound):
            least = max(least, float(result.mip_dual_bound))
        if result.x is not None:
            return result.x, least, bool(attempt is cost and result.status == COMPLETED)
    raise Refusal(
        "The search for an integer table ended without one; there may be none.",
        field="rows",
        expected="bounds that an integer table can keep",
        hint="Leave out bounds that overlap, or make the layers nested: a chain is always solved exactly.",
    )
