"""The quadratic programme of one family of siblings, by ADMM in compiled code.

    minimise    sum over children c of  1/2 x_c' H_c x_c - b_c' x_c
    subject to  0 <= x_c <= upper_c,   low_c <= R x_c <= high_c,   sum over c of x_c = parent,

with rows R shared by all children. The x-step solves the equality-constrained quadratic exactly: one product
with (H + rho (I + R'R))^-1 a child, and a correction for the parent's sums; the other step clips. Sums to
the parent therefore hold at every step up to rounding. Children of different kinds have a rho in proportion
to their own H.

Two forms of H: *dense*, a matrix for every kind of child on the cells that the parent has (a step costs
K^2 a child); and *structured*, an element of the algebra of marginal queries on a full product of cells,
where the product with the inverse takes a few partial sums (a step is linear in K).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def gather_target(  # pragma: no cover
    linear: Any, state: Any, rows: Any, rho: Any, out: Any
) -> None:
    """The right-hand side of the x-step: b + rho (z - u + R'(s - v)), with a rho for every child."""
    z, u, s, v = state
    children, cells = z.shape
    if rows.shape[0] > 0:
        back = np.dot(s - v, rows)
        for c in range(children):
            for k in range(cells):
                out[c, k] = linear[c, k] + rho[c] * (z[c, k] - u[c, k] + back[c, k])
    else:
        for c in range(children):
            for k in range(cells):
                out[c, k] = linear[c, k] + rho[c] * (z[c, k] - u[c, k])


@njit(cache=True, nogil=True)
def clip_step(x: Any, box: Any, rows_t: Any, state: Any, relax: float) -> None:  # pragma: no cover
    """The other step: clip cells and rows, update the duals."""
    upper, _, low, high = box
    z, u, s, v = state
    clip(x, np.zeros((1, 1)), upper, z, u, relax)
    if rows_t.shape[1] > 0:
        clip(np.dot(x, rows_t), low, high, s, v, relax)


@njit(cache=True, nogil=True)
def clip(x: Any, low: Any, high: Any, z: Any, u: Any, relax: float) -> None:  # pragma: no cover
    """Clip to a box; a lower bound of one entry is for all."""
    single = low.size == 1
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            w = relax * x[c, k] + (1.0 - relax) * z[c, k] + u[c, k]
            least = low[0, 0] if single else low[c, k]
            new = least if w < least else w
            new = high[c, k] if new > high[c, k] else new
            u[c, k] = w - new
            z[c, k] = new


@njit(cache=True, nogil=True)
def largest_difference(one: Any, other: Any) -> float:  # pragma: no cover
    """The largest absolute difference of two tables."""
    most = 0.0
    for c in range(one.shape[0]):
        for k in range(one.shape[1]):
            most = max(most, abs(one[c, k] - other[c, k]))
    return most


@njit(cache=True, nogil=True)
def residuals(  # pragma: no cover
    x: Any, rows_t: Any, z: Any, s: Any, z_old: Any, s_old: Any
) -> tuple[float, float]:
    """After a step: the largest violation (x - z), and the largest change (z - old)."""
    primal, moved = largest_difference(x, z), largest_difference(z, z_old)
    if rows_t.shape[1] > 0:
        primal = max(primal, largest_difference(np.dot(x, rows_t), s))
        moved = max(moved, largest_difference(s, s_old))
    return primal, moved


@njit(cache=True, nogil=True)
def spread_evenly(x: Any, parent: Any) -> None:  # pragma: no cover
    """Correct the sums over children where all share one H: the shortfall is shared equally."""
    children, cells = x.shape
    shift = parent.copy()
    for c in range(children):
        for k in range(cells):
            shift[k] -= x[c, k]
    for k in range(cells):
        shift[k] /= children
    for c in range(children):
        for k in range(cells):
            x[c, k] += shift[k]


@njit(cache=True, nogil=True)
def dense_steps(  # pragma: no cover
    inverses: Any, correction: Any, kinds: Any, family: Any, state: Any, pace: Any
) -> tuple[float, float]:
    """Some steps in place on the state (z, u, s, v), dense form.

    ``family`` is (linear, parent, has_parent, (upper, rows, low, high)), ``pace`` is (rho, steps, relax).
    ``inverses[j]`` is (H_j + rho_j (I + R'R))^-1; ``correction`` the inverse of their sum over children.
    """
    (linear, parent, has_parent, box), (rho, steps, relax) = family, pace
    z, rows, s = state[0], box[1], state[2]
    children, cells = z.shape
    r = np.empty((children, cells))
    x = np.empty((children, cells))
    rows_t = np.ascontiguousarray(rows.T)
    z_old, s_old = z, s
    for step in range(steps):
        gather_target(linear, state, rows, rho, r)
        if inverses.shape[0] == 1:
            x = np.dot(r, inverses[0])
            if has_parent:
                spread_evenly(x, parent)
        elif inverses.shape[0] == children:
            for c in range(children):
                x[c] = np.dot(inverses[kinds[c]], r[c])
        else:
            for j in range(inverses.shape[0]):
                members = np.flatnonzero(kinds == j)
                part = np.dot(r[members], inverses[j])
                for i in range(members.size):
                    x[members[i]] = part[i]
        if has_parent and inverses.shape[0] > 1:
            missing = parent - x.sum(axis=0)
            nu = np.dot(correction, missing)
            for j in range(inverses.shape[0]):
                add = np.dot(inverses[j], nu)
                for c in range(children):
                    if kinds[c] == j:
                        x[c] += add
        if step == steps - 1:
            z_old, s_old = z.copy(), s.copy()
        clip_step(x, box, rows_t, state, relax)
    return residuals(x, rows_t, z, s, z_old, s_old)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def sum_axis(larger: Any, smaller: Any, outer: int, n: int, inner: int) -> None:  # pragma: no cover
    """Sum the middle axis of an outer x n x inner array."""
    if inner == 1:
        for o in range(outer):
            line = larger[o * n : (o + 1) * n]
            total = 0.0
            for j in range(n):
                total += line[j]
            smaller[o] = total
        return
    for o in range(outer):
        target = smaller[o * inner : (o + 1) * inner]
        target[:] = 0.0
        for j in range(n):
            line = larger[(o * n + j) * inner : (o * n + j + 1) * inner]
            for i in range(inner):
                target[i] += line[i]


@njit(cache=True, nogil=True)
def spread_axis(smaller: Any, larger: Any, outer: int, n: int, inner: int) -> None:  # pragma: no cover
    """Add an outer x inner array to every slice of the middle axis of an outer x n x inner array."""
    if inner == 1:
        for o in range(outer):
            value = smaller[o]
            line = larger[o * n : (o + 1) * n]
            for j in range(n):
                line[j] += value
        return
    for o in range(outer):
        source = smaller[o * inner : (o + 1) * inner]
        for j in range(n):
            line = larger[(o * n + j) * inner : (o * n + j + 1) * inner]
            for i in range(inner):
                line[i] += source[i]


@njit(cache=True, nogil=True)
def part_of(space: Any, place: Any, children: int) -> Any:  # pragma: no cover
    """The array of one set, which starts and has the size that its place says, in a work space."""
    return space[place[0] * children : (place[0] + place[1]) * children]


@njit(cache=True, nogil=True)
def apply_structured(  # pragma: no cover
    table: Any, coefficients: Any, plan: Any, sets: Any, used: Any, work: Any, moved: Any
) -> None:
    """Multiply every row of ``table`` (children, cells) by one element of the algebra, in place.

    ``sets[T]`` = (start, size) per child of the partial sums of a set T, the full set first; ``used`` are the
    sets that take part. ``plan`` has a row for each but the full one: (set, from set, outer, n, inner), to
    sum the middle axis of the larger set's outer x n x inner array. ``coefficients[T]`` is width x width. The
    work spaces hold, for each set, an array (width, children, plain).
    """
    children = table.shape[0]
    width = coefficients.shape[1]
    plain = sets[0, 1] // width
    for d in range(width):
        for c in range(children):
            start = (d * children + c) * plain
            work[start : start + plain] = table[c, d * plain : (d + 1) * plain]
    for line in range(plan.shape[0]):
        small, large = plan[line, 0], plan[line, 1]
        larger, smaller = part_of(work, sets[large], children), part_of(work, sets[small], children)
        sum_axis(larger, smaller, plan[line, 2] * children, plan[line, 3], plan[line, 4])
    for t in used:
        begin, end = sets[t, 0] * children, (sets[t, 0] + sets[t, 1]) * children
        if width == 1:
            scale = coefficients[t, 0, 0]
            for k in range(begin, end):
                moved[k] = scale * work[k]
        else:
            part = np.dot(coefficients[t], work[begin:end].reshape(width, (end - begin) // width))
            moved[begin:end] = part.reshape(end - begin)
    for line in range(plan.shape[0] - 1, -1, -1):
        small, large = plan[line, 0], plan[line, 1]
        larger, smaller = part_of(moved, sets[large], children), part_of(moved, sets[small], children)
        spread_axis(smaller, larger, plan[line, 2] * children, plan[line, 3], plan[line, 4])
    for d in range(width):
        for c in range(children):
            start = (d * children + c) * plain
            table[c, d * plain : (d + 1) * plain] = moved[start : start + plain]


@njit(cache=True, nogil=True)
def structured_steps(  # pragma: no cover
    inverse: Any, plan: Any, sets: Any, used: Any, family: Any, state: Any, pace: Any
) -> tuple[float, float]:
    """Some steps in place, structured form with one H for all children; rows sum over whole core levels."""
    (linear, parent, has_parent, box), (rho, steps, relax) = family, pace
    z, rows, s = state[0], box[1], state[2]
    children, cells = z.shape
    x = np.empty((children, cells))
    space = (sets[-1, 0] + sets[-1, 1]) * children
    work = np.empty(space)
    moved_space = np.empty(space)
    rows_t = np.ascontiguousarray(rows.T)
    z_old, s_old = z, s
    for step in range(steps):
        gather_target(linear, state, rows, rho, x)
        apply_structured(x, inverse, plan, sets, used, work, moved_space)
        if has_parent:
            spread_evenly(x, parent)
        if step == steps - 1:
            z_old, s_old = z.copy(), s.copy()
        clip_step(x, box, rows_t, state, relax)
    return residuals(x, rows_t, z, s, z_old, s_old)
