"""Blackwell's order: one pair of distributions is a randomised post-processing of another.

Reference
    Theorem A.6.2 of the thesis (Blackwell): Tr(P, Q) is easier than Tr(P', Q') exactly when a Markov
    kernel sends P to P' and Q to Q'. The order is decided exactly by trade-off curves; the kernel is
    recovered by a linear programme.
"""

from __future__ import annotations

from dataclasses import dataclass

from stirred.spec.finite.distribution import Distribution, Outcome


@dataclass(frozen=True)
class Kernel:
    """A Markov kernel between two finite spaces, found numerically, with its residual."""

    sources: tuple[Outcome, ...]
    targets: tuple[Outcome, ...]
    probabilities: tuple[tuple[float, ...], ...]
    residual: float


def kernel(p: Distribution, q: Distribution, p2: Distribution, q2: Distribution) -> Kernel | None:
    """A kernel that sends P to P' and Q to Q', or ``None`` where there is none."""
    import numpy as np
    from scipy.optimize import linprog

    sources = tuple(sorted(p.support | q.support, key=repr))
    targets = tuple(sorted(p2.support | q2.support, key=repr))
    n, m = len(sources), len(targets)
    rows, right = [], []
    for i in range(n):
        row = np.zeros((n, m))
        row[i, :] = 1
        rows.append(row.ravel())
        right.append(1.0)
    for source, target in ((p, p2), (q, q2)):
        masses = np.array([float(source[s]) for s in sources])
        for j, outcome in enumerate(targets):
            row = np.zeros((n, m))
            row[:, j] = masses
            rows.append(row.ravel())
            right.append(float(target[outcome]))
    matrix, vector = np.array(rows), np.array(right)
    found = linprog(np.zeros(n * m), A_eq=matrix, b_eq=vector, bounds=(0, 1), method="highs")
    if not found.success:
        return None
    residual = float(np.abs(matrix @ found.x - vector).max())
    table = found.x.reshape(n, m)
    return Kernel(sources, targets, tuple(tuple(map(float, row)) for row in table), residual)
