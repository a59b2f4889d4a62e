"""The distance of an integer from a real target, cut into pieces of constant slope.

For an integer ``n`` and a target ``x`` with ``lower <= n <= upper``, the function ``weight * |n - x|`` is
convex and, between neighbouring integers, linear. Started at its smallest point, the allowed integer
nearest to ``x`` (the *base*), it is therefore a sum of at most three pieces: one unit towards ``x`` at
slope ``1 - 2|base - x|``, and all further units up and down at slope one. No slope is negative, so a
minimising solver takes the cheap unit first by itself; and because only moves away from the base are
counted, the numbers that the solver sees stay small however large the counts are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNBOUNDED = 2**40


@dataclass(frozen=True)
class Penalty:
    """Integers of one weight, one for each entry of ``target``, from ``lower`` to ``upper``."""

    target: NDArray[np.float64]
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]
    weight: int

    @cached_property
    def base(self) -> NDArray[np.int64]:
        """The allowed integers nearest to the targets."""
        nearest: NDArray[np.int64] = np.clip(np.rint(self.target).astype(np.int64), self.lower, self.upper)
        return nearest

    @property
    def binds(self) -> bool:
        """Whether there is a penalty or a bound at all (counts are never negative)."""
        return bool(self.weight or (self.lower > 0).any() or (self.upper < UNBOUNDED).any())

    def distance(self, counts: NDArray[np.int64]) -> float:
        """Weighted L1 distance of ``counts`` from the targets."""
        return self.weight * float(np.abs(counts - self.target).sum()) if self.weight else 0.0

    def allows(self, counts: NDArray[np.int64]) -> bool:
        return bool((counts >= self.lower).all() and (counts <= self.upper).all())


@dataclass(frozen=True)
class Pieces:
    """Moves away from the base: entry ``owner`` (of the flat table) moves by ``sign`` a unit at ``cost``."""

    owner: NDArray[np.int64]
    sign: NDArray[np.int64]
    capacity: NDArray[np.int64]
    cost: NDArray[np.float64]

    def moved(self, units: NDArray[np.int64], base: NDArray[np.int64]) -> NDArray[np.int64]:
        """The table after ``units`` of every piece."""
        flat = base.ravel().copy()
        np.add.at(flat, self.owner, self.sign * units)
        return flat.reshape(base.shape)


def cut(penalty: Penalty, resolution: float) -> Pieces:
    """The pieces of a penalty; targets within ``resolution`` of an integer count as that integer.

    Examples
    --------
    A target of 2.25 has its base at 2: one unit up costs 0.5, further units up and all units down cost 1.

    >>> import numpy as np
    >>> from stirred.topdown import Penalty, cut
    >>> one = Penalty(np.array([2.25]), np.array([0]), np.array([9]), weight=1)
    >>> pieces = cut(one, resolution=1e-9)
    >>> [
    ...     (int(s), int(n), float(c))
    ...     for s, n, c in zip(pieces.sign, pieces.capacity, pieces.cost, strict=True)
    ... ]
    [(1, 1, 0.5), (1, 6, 1.0), (-1, 2, 1.0)]
    """
    base = penalty.base.ravel()
    up = penalty.upper.ravel() - base
    down = base - penalty.lower.ravel()
    if penalty.weight:
        left = penalty.target.ravel() - base
        towards_up = np.flatnonzero((left > resolution) & (up > 0))
        towards_down = np.flatnonzero((left < -resolution) & (down > 0))
        up[towards_up] -= 1
        down[towards_down] -= 1
    else:
        left = np.zeros(base.shape)
        towards_up = towards_down = np.zeros(0, dtype=np.int64)
    far_up, far_down = np.flatnonzero(up), np.flatnonzero(down)
    near = np.concatenate([towards_up, towards_down])
    sizes = [towards_up.size, towards_down.size, far_up.size, far_down.size]
    return Pieces(
        owner=np.concatenate([near, far_up, far_down]),
        sign=np.repeat(np.array([1, -1, 1, -1]), sizes),
        capacity=np.concatenate([np.ones(near.size, dtype=np.int64), up[far_up], down[far_down]]),
        cost=penalty.weight
        * np.concatenate([1.0 - 2.0 * np.abs(left[near]), np.ones(far_up.size + far_down.size)]),
    )
