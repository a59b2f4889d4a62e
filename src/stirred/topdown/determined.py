"""Records that exact counts over a geography determine: the same in every table that keeps them.

A table has a count for every leaf of the spine and every cell of the schema. Constraints bound sums of it: a
*family* bounds, in every node of one level, every group of a partition of the cells. What is wanted is, over
all counts, the least value that a table of the universe can have, added up.

How
    Cells that no family tells apart are one *atom*; so are the leaves of a node below the finest level that
    speaks of an atom. Where an atom has two cells or two leaves, one of them can give all it has to the
    other: neither is determined. Only single counts are. Then

    - if any two of the bounded sums are nested or disjoint (a *laminar* family) the sums form a tree, and one
      pass up and one down give the sharp bounds of each;
    - if all that is left after dropping implied sums is two exact partitions that cross, the counts are
      two-way tables with given margins, and their Frechet bounds are sharp;
    - otherwise a part of the constraints gives a lower bound, and the smallest sum around a single count an
      upper one: the answer says so.

Guarantee
    ``least <= true <= most`` always, and ``records`` is at most the size of the smallest table (equal to it
    in the first two cases); the numbers depend on the bounds alone.
Assumes
    Some table keeps all bounds.
Reference
    Dobra and Fienberg 2000 (sharp bounds of tables with given margins); bounds on a tree are a flow, whose
    extreme points are integral.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stirred.data import Spine
from stirred.topdown.bounds import UNBOUNDED

LARGEST = 50_000
WHOLE = -1


@dataclass(frozen=True, eq=False)
class Family:
    """Bounds on every group of cells in every node of a level; group -1 is not bounded."""

    level: int
    groups: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]

    @cached_property
    def exact(self) -> bool:
        """Whether every bounded sum is known."""
        used = np.unique(self.groups[self.groups >= 0])
        return bool((self.lower[:, used] == self.upper[:, used]).all())


@dataclass(frozen=True)
class Determined:
    """How many records are determined, from below and from above, and how many there are at least.

    ``sized`` says that there is a table with no more records than that.
    """

    records: int
    least: int
    most: int
    sized: bool = True


def determined(spine: Spine, possible: NDArray[np.bool_], families: Sequence[Family]) -> Determined:
    """Records that some families of bounds determine, on the cells that are possible."""
    useful = [_informative(_canonical(family, spine)) for family in families]
    useful = [family for family in useful if (family.groups[possible] >= 0).any()]
    if not useful:
        return Determined(0, 0, 0)
    problem = _Problem.of(spine, possible, useful)
    if problem.laminar:
        return _Forest(problem).determined()
    needed = problem.without_implied()
    if len(needed.families) == 2 and all(f.exact for f in needed.families) and needed.covered:
        return _two_tables(needed)
    return _bounded(problem)


def _canonical(family: Family, spine: Spine) -> Family:
    """At the first level that has the same nodes."""
    size = spine.size(family.level)
    first = next(level for level in range(spine.depth) if spine.size(level) == size)
    return replace(family, level=first)


def _informative(family: Family) -> Family:
    """Without the groups that no node bounds."""
    free = ((family.lower <= 0) & (family.upper >= UNBOUNDED)).all(axis=0)
    return replace(family, groups=np.where(np.append(free, False)[family.groups], -1, family.groups))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Families on atoms: ``signature[f, a]`` is the group of atom a in family f, ``cells[a]`` its size."""

    spine: Spine
    families: tuple[Family, ...]
    signature: NDArray[np.int64]
    cells: NDArray[np.int64]

    @classmethod
    def of(cls, spine: Spine, possible: NDArray[np.bool_], families: Sequence[Family]) -> _Problem:
        ordered = tuple(sorted(families, key=lambda family: family.level))
        seen = np.stack([family.groups[possible] for family in ordered])
        signature, cells = np.unique(seen, axis=1, return_counts=True)
        return cls(spine, ordered, signature, cells)

    def only(self, chosen: Sequence[int]) -> _Problem:
        """Some of the families, on the same atoms."""
        return replace(
            self, families=tuple(self.families[f] for f in chosen), signature=self.signature[list(chosen)]
        )

    @property
    def covered(self) -> bool:
        """Whether every family speaks of every atom."""
        return bool((self.signature >= 0).all())

    def single(self, level: int) -> NDArray[np.bool_]:
        """Which nodes of a level have one leaf."""
        return self._single[level]

    @cached_property
    def _single(self) -> tuple[NDArray[np.bool_], ...]:
        spine = self.spine
        return tuple(
            np.bincount(spine.ancestors(level), minlength=spine.size(level)) == 1
            for level in range(spine.depth)
        )

    @cached_property
    def laminar(self) -> bool:
        """Whether any two bounded sums are nested or disjoint, and there are not too many of them."""
        groups = sum(np.unique(row[row >= 0]).size for row in self.signature)
        pairs = [(i, j) for j in range(len(self.families)) for i in range(j)]
        return groups <= LARGEST and all(self._nested(i, j) for i, j in pairs)

    def _nested(self, i: int, j: int) -> bool:
        """Whether the sums of two families are nested or disjoint; the second is not of a higher level."""
        common, mine, theirs = self._meeting(i, j)
        if self.families[i].level < self.families[j].level:
            return bool((common == theirs).all())
        return bool(((common == mine) | (common == theirs)).all())

    def _meeting(self, i: int, j: int) -> tuple[NDArray[np.int64], ...]:
        """For every two groups that meet: how many atoms both have, the first, the second."""
        first, second = self.signature[i], self.signature[j]
        both = (first >= 0) & (second >= 0)
        pairs, common = np.unique(np.stack([first[both], second[both]]), axis=1, return_counts=True)
        mine = np.bincount(first[first >= 0], minlength=1)
        theirs = np.bincount(second[second >= 0], minlength=1)
        return common, mine[pairs[0]], theirs[pairs[1]]

    def without_implied(self) -> _Problem:
        """Without exact families that are sums of another exact one."""
        kept = list(range(len(self.families)))
        for i in range(len(self.families)):
            if any(j != i and self._implied(i, j) for j in kept):
                kept.remove(i)
        return self.only(kept)

    def _implied(self, i: int, j: int) -> bool:
        one, other = self.families[i], self.families[j]
        if not (one.exact and other.exact and one.level <= other.level):
            return False
        common, _, theirs = self._meeting(i, j)
        inside = self.signature[i] >= 0
        return bool((common == theirs).all() and (self.signature[j][inside] >= 0).all())


@dataclass(eq=False)
class _Sum:
    """A bounded sum in every node of a level: a node of the tree, with what its children come to.

    ``endless`` counts the parts without an upper bound; ``rest`` the cells of no child.
    """

    level: int
    atoms: NDArray[np.int64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    parent: int = WHOLE
    rest: int = 0

    def __post_init__(self) -> None:
        self.low, self.high, self.endless = (np.zeros_like(self.lower) for _ in range(3))


class _Forest:
    """A laminar family as a tree of sums; the root is the whole table."""

    def __init__(self, problem: _Problem) -> None:
        self.problem = problem
        atoms = np.arange(problem.cells.size)
        whole = _Sum(WHOLE, atoms, np.zeros(1, dtype=np.int64), np.full(1, UNBOUNDED, dtype=np.int64))
        self.sums = [whole, *sorted(self._merged(), key=lambda s: (s.level, -s.atoms.size))]
        inner = np.zeros(atoms.size, dtype=np.int64)
        for number, one in enumerate(self.sums):
            # The sums around an atom are met from the outermost to the innermost.
            one.parent = int(inner[one.atoms[0]]) if number else WHOLE
            inner[one.atoms] = number
        rest = np.bincount(inner, weights=problem.cells, minlength=len(self.sums))
        for one, cells in zip(self.sums, rest, strict=True):
            one.rest = int(cells)

    def _merged(self) -> list[_Sum]:
        """Each set of atoms at a level once, with the tightest bounds."""
        found: dict[tuple[int, bytes], _Sum] = {}
        for family, row in zip(self.problem.families, self.problem.signature, strict=True):
            order = np.argsort(row, kind="stable")
            groups, starts = np.unique(row[order], return_index=True)
            for group, atoms in zip(groups.tolist(), np.split(order, starts[1:]), strict=True):
                if group < 0:
                    continue
                lower = np.maximum(family.lower[:, group], 0)
                upper = np.minimum(family.upper[:, group], UNBOUNDED)
                key = (family.level, atoms.tobytes())
                if key in found:
                    lower = np.maximum(lower, found[key].lower)
                    upper = np.minimum(upper, found[key].upper)
                found[key] = _Sum(family.level, atoms, lower, upper)
        return list(found.values())

    def determined(self) -> Determined:
        """Sharp bounds of every sum, and of what is left of it beside its children."""
        self._up()
        records = int(self.sums[0].lower[0])
        found = self._down()
        return Determined(records, found, found)

    def _up(self) -> None:
        """From the innermost sums outwards: what the children of a sum come to bounds it."""
        for one in self.sums:
            one.endless += 1 if one.rest else 0
        for one in reversed(self.sums):
            one.lower = np.maximum(one.lower, one.low)
            one.upper = np.where(one.endless > 0, one.upper, np.minimum(one.upper, one.high))
            if one.parent == WHOLE:
                continue
            above, free = self.sums[one.parent], one.upper >= UNBOUNDED
            above.low += self._lifted(one.lower, one.level, above.level)
            above.high += self._lifted(np.where(free, 0, one.upper), one.level, above.level)
            above.endless += self._lifted(free.astype(np.int64), one.level, above.level)

    def _down(self) -> int:
        """From the whole inwards: a sum has at least what its siblings cannot, at most what they leave."""
        found = 0
        for one in self.sums:
            if one.parent != WHOLE:
                self._tighten(one, self.sums[one.parent])
            if one.rest == 1:
                single = self.problem.single(one.level) if one.level != WHOLE else np.zeros(1, np.bool_)
                left = np.where(one.endless == 1, one.lower - one.high, 0)
                found += int(np.maximum(left, 0)[single].sum())
        return found

    def _tighten(self, one: _Sum, above: _Sum) -> None:
        parts = (above.low, above.high, above.endless, above.lower, above.upper)
        low, high, endless, floor, top = (self._spread(part, above.level, one.level) for part in parts)
        free = one.upper >= UNBOUNDED
        others = high - np.where(free, 0, one.upper)
        lower = np.where(endless - free == 0, np.maximum(one.lower, floor - others), one.lower)
        upper = np.where(top < UNBOUNDED, np.minimum(one.upper, top - (low - one.lower)), one.upper)
        one.lower, one.upper = lower, upper

    def _lifted(self, values: NDArray[np.int64], of: int, to: int) -> NDArray[np.int64]:
        """Sums over the nodes of a level, for the nodes of a level above."""
        for level in range(of - 1, max(to, 0) - 1, -1):
            values = self.problem.spine.sums(level, values)
        return values.sum(keepdims=True) if to == WHOLE else values

    def _spread(self, values: NDArray[np.int64], of: int, to: int) -> NDArray[np.int64]:
        """The values of a level for the nodes of a level below."""
        if of == WHOLE:
            return values if to == WHOLE else np.repeat(values, self.problem.spine.size(to))
        return values[self.problem.spine.ancestors(of, to)]


def _two_tables(problem: _Problem) -> Determined:
    """Two exact partitions that cross: two-way tables, with the groups of the second in its nodes as rows.

    Groups that meet through others belong together. Where each of these meets each, the table has no empty
    places and the Frechet bound is sharp; where not, it is one bound of several, and the margins are another.
    """
    columns, rows = problem.families
    within = problem.spine.ancestors(columns.level, rows.level)
    single = problem.single(rows.level)
    group, row = problem.signature
    component = _components(group, row, columns.lower.shape[1], rows.lower.shape[1])
    least = most = 0
    for number in np.unique(component):
        atoms = np.flatnonzero(component == number)
        whole = columns.lower[:, np.unique(group[atoms])].sum(axis=1)[within]
        full = np.unique(group[atoms]).size * np.unique(row[atoms]).size == atoms.size
        for atom in atoms[problem.cells[atoms] == 1]:
            margins = columns.lower[within, group[atom]][single], rows.lower[single, row[atom]]
            bound = int(np.maximum(0, margins[0] + margins[1] - whole[single]).sum())
            least += bound
            most += bound if full else int(np.minimum(*margins).sum())
    return Determined(int(columns.lower[:, np.unique(group)].sum()), least, most)


def _components(
    first: NDArray[np.int64], second: NDArray[np.int64], firsts: int, seconds: int
) -> NDArray[np.int64]:
    """For every atom the number of the component of groups that meet."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size = firsts + seconds
    meeting = coo_array((np.ones(first.size), (first, firsts + second)), shape=(size, size))
    _, labels = connected_components(meeting, directed=False)
    return np.asarray(labels[first])


def _bounded(problem: _Problem) -> Determined:
    """From below by families that form a tree, from above by the smallest sum around each single count."""
    chosen: list[int] = []
    for number in range(len(problem.families) - 1, -1, -1):
        if problem.only(sorted([*chosen, number])).laminar:
            chosen.append(number)
    below = _Forest(problem.only(sorted(chosen))).determined() if chosen else Determined(0, 0, 0)
    known = [int(f.lower[:, np.unique(f.groups[f.groups >= 0])].sum()) for f in problem.families]
    records, alone = max(below.records, *known), np.flatnonzero(problem.cells == 1)
    # A family of exact sums that leaves out no possible cell fixes how many records there are.
    sized = any(
        family.exact and bool((groups >= 0).all())
        for family, groups in zip(problem.families, problem.signature, strict=True)
    )
    if alone.size > LARGEST:
        return Determined(records, below.least, UNBOUNDED, sized=sized)
    most = 0
    for atom in alone:
        around = np.flatnonzero(problem.signature[:, atom] >= 0)
        if not around.size:
            continue
        finest = problem.families[around[-1]].level
        bounds = [
            problem.families[f].upper[:, problem.signature[f, atom]][
                problem.spine.ancestors(problem.families[f].level, finest)
            ]
            for f in around
        ]
        most += int(np.min(bounds, axis=0)[problem.single(finest)].sum())
    return Determined(records, below.least, max(below.least, most), sized=sized)
