"""Rounding along a chain of nested partitions: a minimum-cost flow, exact.

Guarantee
    The table returned is a minimiser over *all* non-negative integer tables that keep the bounds and the
    parent's counts, not only over those that round each cell up or down; None means that no such table
    exists. Costs are integers in units of ``1 / SCALE`` (coarser only where the weights would overflow 64
    bits), so the objective is the minimum up to half a unit for every count that moves.
Assumes
    The partitions are nested: each refines the one before it.
Reference
    Edmonds (1970), Submodular functions, matroids, and certain polyhedra: the incidence matrix of two
    laminar families is totally unimodular. Here one family is the sets of the chain within every child,
    the other the columns that add up to the parent; the matrix is that of a network, and the vertices of
    the polyhedron are integer.

The network: a source, a tree for every child (an arc for every set of the chain), a sink for every cell.
Each arc starts from the integer nearest to its target; what the nodes then lack or have over is the
supply, and the pieces of the penalties are the arcs that move it, back arcs included. All costs are
non-negative, so an optimal flow need not carry a cycle and no arc carries more than the whole supply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from stirred.errors import Refusal
from stirred.topdown.penalty import Penalty, Pieces, cut

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCALE = 10**6


@dataclass(frozen=True)
class Level:
    """One partition of the cells, all its groups in use, with the penalty of its sums (children x groups)."""

    groups: NDArray[np.int64]
    penalty: Penalty

    @property
    def size(self) -> int:
        return int(self.penalty.target.shape[1])

    def sums(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Group sums of a table of cells (children x cells)."""
        found = np.zeros((self.size, counts.shape[0]), dtype=np.int64)
        np.add.at(found, self.groups, counts.T)
        return np.ascontiguousarray(found.T)


def nested(chain: Sequence[Level]) -> bool:
    """Whether each level refines the one before it."""
    return all(_refines(fine, coarse) for coarse, fine in pairwise(chain))


def _refines(fine: Level, coarse: Level) -> bool:
    above = np.zeros(fine.size, dtype=np.int64)
    above[fine.groups] = coarse.groups
    return np.array_equal(above[fine.groups], coarse.groups)


def solve_flow(
    cells: Penalty, chain: Sequence[Level], parent: NDArray[np.int64] | None
) -> NDArray[np.int64] | None:
    """Nearest integer table (children x cells) along a chain of nested levels, the coarsest first.

    ``parent`` has the cells' sums over the children; None leaves them free. None is returned if no table
    keeps every constraint.
    """
    tails, heads, nodes = _tree(cells, chain, free=parent is None)
    penalties = [*(level.penalty for level in chain), cells]
    supply = np.zeros(nodes, dtype=np.int64)
    if parent is not None:
        supply[0] = parent.sum()
        supply[nodes - parent.size :] = -parent
    for penalty, tail, head in zip(penalties, tails, heads, strict=True):
        np.subtract.at(supply, tail, penalty.base.ravel())
        np.add.at(supply, head, penalty.base.ravel())
    if not supply.any():
        return cells.base
    scale = _scale(max(penalty.weight for penalty in penalties), nodes)
    pieces = [cut(penalty, 0.5 / scale) for penalty in penalties]
    units = _solve(pieces, tails, heads, supply, scale)
    return None if units is None else pieces[-1].moved(units, cells.base)


def _tree(
    cells: Penalty, chain: Sequence[Level], *, free: bool
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]], int]:
    """Tail and head of the arc of every quantity, and the number of nodes; node 0 is the source.

    Without a parent the cells drain into the source, whose balance is then free.
    """
    children, width = cells.target.shape
    above = np.zeros((children, width), dtype=np.int64)  # node above each cell
    tails, heads, nodes = [], [], 1
    for level in chain:
        tail = np.zeros((children, level.size), dtype=np.int64)
        tail[:, level.groups] = above
        head = nodes + np.arange(children * level.size).reshape(children, level.size)
        above = head[:, level.groups]
        tails.append(tail.ravel())
        heads.append(head.ravel())
        nodes += head.size
    tails.append(above.ravel())
    sink = np.zeros(width, dtype=np.int64) if free else np.arange(nodes, nodes + width)
    heads.append(np.tile(sink, children))
    return tails, heads, nodes + (0 if free else width)


def _scale(weight: int, nodes: int) -> int:
    """Cost units: the solver multiplies by the nodes, and a price may add up the nodes' costs once more."""
    return max(1, min(SCALE, 2**60 // (max(weight, 1) * (nodes + 1) ** 2)))


def _solve(
    pieces: Sequence[Pieces],
    tails: Sequence[NDArray[np.int64]],
    heads: Sequence[NDArray[np.int64]],
    supply: NDArray[np.int64],
    scale: int,
) -> NDArray[np.int64] | None:
    """Flow on the pieces of the last penalty (the cells)."""
    from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

    sign = np.concatenate([part.sign for part in pieces])
    tail = np.concatenate([ends[part.owner] for part, ends in zip(pieces, tails, strict=True)])
    head = np.concatenate([ends[part.owner] for part, ends in zip(pieces, heads, strict=True)])
    whole = int(supply[supply > 0].sum())
    capacity = np.minimum(np.concatenate([part.capacity for part in pieces]), whole)
    cost = np.rint(np.concatenate([part.cost for part in pieces]) * scale).astype(np.int64)
    network = SimpleMinCostFlow()
    arcs = network.add_arcs_with_capacity_and_unit_cost(
        np.where(sign > 0, tail, head).astype(np.int32),
        np.where(sign > 0, head, tail).astype(np.int32),
        capacity,
        cost,
    )
    network.set_nodes_supplies(np.arange(supply.size, dtype=np.int32), supply)
    status = network.solve()
    if status == SimpleMinCostFlow.INFEASIBLE:
        return None
    if status != SimpleMinCostFlow.OPTIMAL:
        raise Refusal(
            f"The minimum-cost flow ended with status {status.name}.",
            field="layers",
            expected="counts and weights within the range of 64-bit integers",
            hint="Use smaller weights.",
        )
    flows: NDArray[np.int64] = network.flows(arcs[arcs.size - pieces[-1].owner.size :])
    return flows
