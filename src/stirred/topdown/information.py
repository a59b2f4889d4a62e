"""How precise the two passes of generalised least squares are: from the design alone, never from data.

Nodes with the same content (a node and the only child that stands for it, and so on down) form a *chain*,
measured once at its *head*. A chain ends in a *fork*, a node with two or more children, or at a leaf.

Bottom-up, the information on a head v is U_v = H_v + (sum over the children c of its fork of U_c^-1)^-1,
with H_v = sum of w Q'Q over its own measurements; top-down, with W the sum of the U_c^-1 under a fork whose
head has the covariance V,

    V_c = U_c^-1 - U_c^-1 G U_c^-1,    G = W^-1 - W^-1 V W^-1.

All of these are maps of one ``Algebra``, kept as blocks and computed once for every class of nodes that
share them: leaves form one class, and a fork over leaves depends on the number of its children only.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.data import Spine
from stirred.errors import InputError, NotComputable
from stirred.topdown.algebra import LARGEST_CORE, Algebra
from stirred.topdown.measurement import Design

Float = NDArray[np.float64]
Int = NDArray[np.int64]
RANK_TOLERANCE = 1e-9


class Chains:
    """Heads and forks of a spine. A head is named by its level and its position among the measured nodes."""

    def __init__(self, spine: Spine) -> None:
        self.spine = spine
        depth = spine.depth
        self.head_level: list[Int] = []
        self.head: list[Int] = []
        for level in range(depth):
            only = spine.only_child(level)
            own = np.cumsum(~only) - 1
            at = np.full(only.size, level, dtype=np.int64)
            if level:
                parents = spine.parents[level]
                at = np.where(only, self.head_level[-1][parents], at)
                own = np.where(only, self.head[-1][parents], own)
            self.head_level.append(at)
            self.head.append(own)
        self.measured = [np.flatnonzero(at == level) for level, at in enumerate(self.head_level)]
        children = [np.diff(spine.starts(level)) for level in range(depth - 1)]
        self.forks = [np.flatnonzero(c > 1) for c in children]
        # The children of forks are the measured nodes of the level below, family by family.
        self.families = [
            np.concatenate([[0], np.cumsum(c[f])]) for c, f in zip(children, self.forks, strict=True)
        ]
        # Of every head: the level and number of the fork that its chain ends in, -1 if it ends at a leaf.
        self.fork_level = [np.full(m.size, -1, dtype=np.int64) for m in self.measured]
        self.fork = [np.full(m.size, -1, dtype=np.int64) for m in self.measured]
        for level, forks in enumerate(self.forks):
            at, head = self.head_level[level][forks], self.head[level][forks]
            for above in np.unique(at):
                rows = np.flatnonzero(at == above)
                self.fork_level[above][head[rows]] = level
                self.fork[above][head[rows]] = rows

    def above(self, level: int) -> Int:
        """The fork on the level above that every measured node of a level is under."""
        return np.repeat(np.arange(self.forks[level - 1].size), np.diff(self.families[level - 1]))


@dataclass(frozen=True, eq=False)
class Classes:
    """Maps shared by many nodes: the class of each, and the blocks of each class."""

    of: Int
    blocks: Float


class Information:
    """Bottom-up information and two-pass covariances of every node of a design.

    Refused if the measurements of a leaf do not identify all its cells, or if the algebra lacks queries of
    the design.
    """

    def __init__(self, design: Design, algebra: Algebra) -> None:
        self.design = design
        self.algebra = algebra
        self.chains = Chains(design.spine)
        _check_algebra(design, algebra)
        _check_identified(design, algebra)
        depth = design.spine.depth
        self.up: list[Classes] = [Classes(np.empty(0, dtype=np.int64), np.empty(0))] * depth
        self.up_inverse: list[Float] = [np.empty(0)] * depth
        self.below: list[Classes] = [self.up[0]] * (depth - 1)
        self.below_inverse: list[Float] = [np.empty(0)] * (depth - 1)
        for level in range(depth - 1, -1, -1):
            if level < depth - 1:
                self.below[level] = self._children(level)
                self.below_inverse[level] = inverse(self.below[level].blocks)
            self.up[level] = self._heads(level)
            self.up_inverse[level] = inverse(self.up[level].blocks)
        self.gain: list[Classes] = []
        self._kinds: dict[int, tuple[Int, Int]] = {}
        for level in range(depth - 1):
            self.gain.append(self._gains(level))

    def own(self, level: int, reach: int) -> Float:
        """Blocks of the information in the measurement of a head itself."""
        return _gram(self.algebra, self.design.precisions(level, reach))

    def _children(self, level: int) -> Classes:
        """W of every fork of a level: classes are multisets of classes of children."""
        child, inverses = self.up[level + 1].of, self.up_inverse[level + 1]
        known: dict[bytes, int] = {}
        blocks, of = [], np.empty(self.chains.forks[level].size, dtype=np.int64)
        families = self.chains.families[level]
        for fork in range(of.size):
            members = np.sort(child[families[fork] : families[fork + 1]])
            key = members.tobytes()
            if key not in known:
                known[key] = len(known)
                found, times = np.unique(members, return_counts=True)
                blocks.append(np.tensordot(times.astype(np.float64), inverses[found], axes=1))
            of[fork] = known[key]
        width = self.algebra.width
        empty = np.empty((0, len(self.algebra.subsets), width, width))
        return Classes(of, np.stack(blocks) if blocks else empty)

    def _heads(self, level: int) -> Classes:
        """U of every measured node of a level."""
        chains, last = self.chains, self.design.spine.depth - 1
        reach = np.where(chains.fork_level[level] < 0, last, chains.fork_level[level])
        below = np.full(reach.size, -1, dtype=np.int64)
        for r in np.unique(reach[chains.fork[level] >= 0]):
            rows = np.flatnonzero((reach == r) & (chains.fork[level] >= 0))
            below[rows] = self.below[r].of[chains.fork[level][rows]]
        keys, of = np.unique(np.stack([reach, below], axis=1), axis=0, return_inverse=True)
        blocks = np.zeros((len(keys), *self.algebra.identity().shape))
        for r in np.unique(keys[:, 0]):
            blocks[keys[:, 0] == r] = self.own(level, int(r))
        for number, (r, b) in enumerate(keys):
            if b >= 0:
                blocks[number] += self.below_inverse[r][b]
        return Classes(of.reshape(-1), symmetric(blocks))

    def _gains(self, level: int) -> Classes:
        """G of every fork of a level: how much its children learn from what is known above."""
        forks = self.chains.forks[level]
        at, head = self.chains.head_level[level][forks], self.chains.head[level][forks]
        kind = np.empty(forks.size, dtype=np.int64)
        for above in np.unique(at):
            rows = at == above
            kind[rows] = self.kinds(int(above))[1][head[rows]]
        triples = np.stack([at, kind, self.below[level].of], axis=1)
        keys, of = np.unique(triples, axis=0, return_inverse=True)
        inverses = self.below_inverse[level][keys[:, 2]]
        known = np.empty_like(inverses)
        for above in np.unique(keys[:, 0]):
            rows = keys[:, 0] == above
            known[rows] = self.covariance(int(above), keys[rows, 1])
        return Classes(of.reshape(-1), symmetric(inverses - inverses @ known @ inverses))

    def kinds(self, level: int) -> tuple[Int, Int]:
        """Kinds of measured nodes with one final covariance: (class of U, class of G); and the kind of each.

        At the first level, where nothing is known above, the class of G is -1.
        """
        if level not in self._kinds:
            own = self.up[level].of
            gain = self.gain[level - 1].of[self.chains.above(level)] if level else np.full(own.size, -1)
            keys, of = np.unique(np.stack([own, gain], axis=1), axis=0, return_inverse=True)
            self._kinds[level] = (keys, of.reshape(-1))
        return self._kinds[level]

    def covariance(self, level: int, kinds: Int) -> Float:
        """Blocks of the final covariance of nodes of some kinds."""
        keys = self.kinds(level)[0][kinds]
        known = self.up_inverse[level][keys[:, 0]]
        if level == 0:
            return known
        gain = self.gain[level - 1].blocks[keys[:, 1]]
        return symmetric(known - known @ gain @ known)


def symmetric(blocks: Float) -> Float:
    """Rounding errors made even."""
    return np.asarray(0.5 * (blocks + np.swapaxes(blocks, -1, -2)))


def inverse(blocks: Float) -> Float:
    """Inverses of positive definite blocks."""
    return symmetric(np.asarray(np.linalg.inv(blocks), dtype=np.float64))


def _gram(algebra: Algebra, weights: dict[str, float]) -> Float:
    """Blocks of a sum of w Q'Q.

    An attribute with one level does not vary: the components in which it would are empty, and their blocks
    are made those of the component without it, so that every block can be inverted.
    """
    blocks = algebra.blocks(algebra.gram(weights))
    varying = sum(1 << i for i, size in enumerate(algebra.sizes) if size > 1)
    return np.asarray(blocks[np.arange(len(blocks)) & varying])


def _check_algebra(design: Design, algebra: Algebra) -> None:
    names = dict.fromkeys(name for level in range(design.spine.depth) for name in design.queries(level))
    needed = Algebra.of(design.cells, [design.cells.query(name) for name in names])
    if not set(needed.core) <= set(algebra.core) or algebra.cells.shape != design.cells.shape:
        raise InputError(
            "the algebra does not contain the queries that are measured",
            field="algebra",
            expected="every attribute that a query recodes in the core",
            hint="Leave the algebra out, or build it from all queries of the design.",
        )
    if algebra.width > LARGEST_CORE:
        raise NotComputable(
            "the recoded attributes together have too many levels",
            field="queries",
            expected=f"at most {LARGEST_CORE} combinations of levels of recoded attributes",
            hint="Recode fewer attributes, or leave out the least squares estimates.",
        )


def _check_identified(design: Design, algebra: Algebra) -> None:
    """Refuse a design in which a chain that ends at a leaf does not determine its cells."""
    last, cells = design.spine.depth - 1, design.cells
    for level in range(last + 1):
        if last not in design.reaches(level):
            continue
        names = design.precisions(level, last)
        blocks = _gram(algebra, {name: cells.query(name).size / cells.count for name in names})
        if not names or np.linalg.eigvalsh(blocks).min() < RANK_TOLERANCE:
            raise NotComputable(
                f"the queries of level {design.spine.levels[last]} do not determine the cells of a node",
                field="queries",
                expected="queries that together determine every cell",
                hint="Measure the query detailed on the last level, with a share as small as you like.",
            )
