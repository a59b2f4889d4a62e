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

from stirred.compiled import kernel

# Loops are written out, and every product of matrices is one of two tables into a third: array expressions
# would take many times longer to compile.


@kernel()
def gather_target(linear: Any, state: Any, rows: Any, rho: Any, sums: Any, out: Any) -> None:
    """The right-hand side of the x-step: b + rho (z - u + R'(s - v)), with a rho for every child."""
    z, u, s, v = state
    children, cells = z.shape
    if rows.shape[0] > 0:
        for c in range(children):
            for i in range(rows.shape[0]):
                sums[c, i] = s[c, i] - v[c, i]
        np.dot(sums, rows, out)
        for c in range(children):
            for k in range(cells):
                out[c, k] = linear[c, k] + rho[c] * (z[c, k] - u[c, k] + out[c, k])
    else:
        for c in range(children):
            for k in range(cells):
                out[c, k] = linear[c, k] + rho[c] * (z[c, k] - u[c, k])


@kernel()
def clip(x: Any, low: Any, high: Any, z: Any, u: Any, relax: float) -> None:
    """Clip to a box; without lower bounds to what is not negative."""
    bounded = low.size > 0
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            w = relax * x[c, k] + (1.0 - relax) * z[c, k] + u[c, k]
            least = low[c, k] if bounded else 0.0
            new = least if w < least else w
            new = high[c, k] if new > high[c, k] else new
            u[c, k] = w - new
            z[c, k] = new


@kernel()
def clip_step(x: Any, box: Any, state: Any, sums: Any, relax: float) -> None:
    """The other step: clip cells and rows, update the duals; ``sums`` are left to be those of the rows."""
    upper, _, rows_t, none, low, high = box
    z, u, s, v = state
    clip(x, none, upper, z, u, relax)
    if rows_t.shape[1] > 0:
        np.dot(x, rows_t, sums)
        clip(sums, low, high, s, v, relax)


@kernel()
def copy_of(table: Any, out: Any) -> None:
    """Copy a table."""
    for c in range(table.shape[0]):
        for k in range(table.shape[1]):
            out[c, k] = table[c, k]


@kernel()
def largest_difference(one: Any, other: Any) -> float:
    """The largest absolute difference of two tables."""
    most = 0.0
    for c in range(one.shape[0]):
        for k in range(one.shape[1]):
            most = max(most, abs(one[c, k] - other[c, k]))
    return most


@kernel()
def residuals(x: Any, sums: Any, state: Any, old: Any) -> tuple[float, float]:
    """After a step: the largest violation (x - z), and the largest change (z - old)."""
    z, _, s, _ = state
    z_old, s_old = old
    primal = max(largest_difference(x, z), largest_difference(sums, s))
    moved = max(largest_difference(z, z_old), largest_difference(s, s_old))
    return primal, moved


@kernel()
def shortfall(x: Any, parent: Any, out: Any) -> None:
    """What the children lack to their parent, as a table of one row."""
    for k in range(x.shape[1]):
        out[0, k] = parent[k]
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            out[0, k] -= x[c, k]


@kernel()
def spread_evenly(x: Any, parent: Any, missing: Any) -> None:
    """Correct the sums over children where all share one H: the shortfall is shared equally."""
    shortfall(x, parent, missing)
    for c in range(x.shape[0]):
        for k in range(x.shape[1]):
            x[c, k] += missing[0, k] / x.shape[0]


@kernel()
def correct_sums(
    x: Any, parent: Any, inverses: Any, correction: Any, kinds: Any, missing: Any, pull: Any
) -> None:
    """Correct the sums over children of several kinds: each kind takes what its H makes of one price."""
    shortfall(x, parent, missing)
    np.dot(missing, correction, pull)
    for j in range(inverses.shape[0]):
        np.dot(pull, inverses[j], missing)
        for c in range(x.shape[0]):
            if kinds[c] == j:
                for k in range(x.shape[1]):
                    x[c, k] += missing[0, k]


@kernel()
def dense_steps(
    inverses: Any, correction: Any, kinds: Any, family: Any, state: Any, pace: Any
) -> tuple[float, float]:
    """Some steps in place on the state (z, u, s, v), dense form.

    ``family`` is (linear, parent, has_parent, (upper, rows, their transpose, nothing, low, high)), ``pace``
    is (rho, steps, relax). ``inverses[j]`` is (H_j + rho_j (I + R'R))^-1, symmetric like all of these;
    ``correction`` the inverse of their sum over children.
    """
    (linear, parent, has_parent, box), (rho, steps, relax) = family, pace
    z, s = state[0], state[2]
    children, cells = z.shape
    target, x, z_old = np.empty((children, cells)), np.empty((children, cells)), np.empty((children, cells))
    given, made = np.empty((children, cells)), np.empty((children, cells))
    sums, s_old = np.zeros(s.shape), np.zeros(s.shape)
    missing, pull = np.empty((1, cells)), np.empty((1, cells))
    for step in range(steps):
        gather_target(linear, state, box[1], rho, sums, target)
        if inverses.shape[0] == 1:
            np.dot(target, inverses[0], x)
        else:
            for j in range(inverses.shape[0]):
                many = 0
                for c in range(children):
                    if kinds[c] == j:
                        for k in range(cells):
                            given[many, k] = target[c, k]
                        many += 1
                np.dot(given[:many], inverses[j], made[:many])
                many = 0
                for c in range(children):
                    if kinds[c] == j:
                        for k in range(cells):
                            x[c, k] = made[many, k]
                        many += 1
        if has_parent and inverses.shape[0] == 1:
            spread_evenly(x, parent, missing)
        elif has_parent:
            correct_sums(x, parent, inverses, correction, kinds, missing, pull)
        if step == steps - 1:
            copy_of(z, z_old)
            copy_of(s, s_old)
        clip_step(x, box, state, sums, relax)
    return residuals(x, sums, state, (z_old, s_old))


@kernel(fastmath={"reassoc", "contract"})
def sum_axis(larger: Any, smaller: Any, outer: int, n: int, inner: int) -> None:
    """Sum the middle axis of an outer x n x inner array."""
    if inner == 1:
        for o in range(outer):
            total = 0.0
            for j in range(n):
                total += larger[o * n + j]
            smaller[o] = total
        return
    for o in range(outer):
        for i in range(inner):
            smaller[o * inner + i] = 0.0
        for j in range(n):
            for i in range(inner):
                smaller[o * inner + i] += larger[(o * n + j) * inner + i]


@kernel()
def spread_axis(smaller: Any, larger: Any, outer: int, n: int, inner: int) -> None:
    """Add an outer x inner array to every slice of the middle axis of an outer x n x inner array."""
    if inner == 1:
        for o in range(outer):
            for j in range(n):
                larger[o * n + j] += smaller[o]
        return
    for o in range(outer):
        for j in range(n):
            for i in range(inner):
                larger[(o * n + j) * inner + i] += smaller[o * inner + i]


@kernel()
def apply_structured(
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
            for k in range(plain):
                work[(d * children + c) * plain + k] = table[c, d * plain + k]
    for line in range(plan.shape[0]):
        small, large = sets[plan[line, 0], 0] * children, sets[plan[line, 1], 0] * children
        sum_axis(work[large:], work[small:], plan[line, 2] * children, plan[line, 3], plan[line, 4])
    for t in used:
        begin, end = sets[t, 0] * children, (sets[t, 0] + sets[t, 1]) * children
        if width == 1:
            scale = coefficients[t, 0, 0]
            for k in range(begin, end):
                moved[k] = scale * work[k]
        else:
            shape = (width, (end - begin) // width)
            np.dot(coefficients[t], work[begin:end].reshape(shape), moved[begin:end].reshape(shape))
    for line in range(plan.shape[0] - 1, -1, -1):
        small, large = sets[plan[line, 0], 0] * children, sets[plan[line, 1], 0] * children
        spread_axis(moved[small:], moved[large:], plan[line, 2] * children, plan[line, 3], plan[line, 4])
    for d in range(width):
        for c in range(children):
            for k in range(plain):
                table[c, d * plain + k] = moved[(d * children + c) * plain + k]


@kernel()
def structured_steps(
    inverse: Any, plan: Any, sets: Any, used: Any, family: Any, state: Any, pace: Any
) -> tuple[float, float]:
    """Some steps in place, structured form with one H for all children; rows sum over whole core levels."""
    (linear, parent, has_parent, box), (rho, steps, relax) = family, pace
    z, s = state[0], state[2]
    children, cells = z.shape
    x, z_old = np.empty((children, cells)), np.empty((children, cells))
    sums, s_old, missing = np.zeros(s.shape), np.zeros(s.shape), np.empty((1, cells))
    space = (sets[-1, 0] + sets[-1, 1]) * children
    work, moved = np.empty(space), np.empty(space)
    for step in range(steps):
        gather_target(linear, state, box[1], rho, sums, x)
        apply_structured(x, inverse, plan, sets, used, work, moved)
        if has_parent:
            spread_evenly(x, parent, missing)
        if step == steps - 1:
            copy_of(z, z_old)
            copy_of(s, s_old)
        clip_step(x, box, state, sums, relax)
    return residuals(x, sums, state, (z_old, s_old))
