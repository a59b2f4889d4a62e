"""How far apart the measurements of two data sets are: D_NoR between their laws, exactly.

Guarantee
    The squared divergence is the sum over measured counts of (difference)^2 / (2 variance).
Reference
    For integer shifts the Renyi divergence of order alpha between discrete Gaussians is at most alpha
    (mu - nu)^2 / (2 sigma^2), with equality for every integer alpha (Canonne, Kamath and Steinke,
    Proposition 5: the theta series of an integer shift is the whole one). Order two is common to all counts,
    so the supremum of D_alpha / alpha over the product is attained there, and is the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from stirred.data import Histogram
from stirred.topdown.measurement import Design


def squared_divergence(design: Design, first: Sequence[Histogram], second: Sequence[Histogram]) -> Fraction:
    """D_NoR squared between the measurements of two data sets, given by their counts at every level.

    Work is proportional to the nodes in which the two differ, times the cells.
    """
    total = Fraction(0)
    for level, (x, y) in enumerate(zip(first, second, strict=True)):
        gap = _difference(x, y)
        measured = np.zeros(gap.nodes, dtype=np.bool_)
        measured[design.measured[level]] = True
        for node in np.flatnonzero((np.diff(gap.starts) > 0) & measured).tolist():
            table = gap.dense(node, node + 1)
            reach = int(design.reach[level][node])
            for name, variance in design.allocation.variances(design.chain(level, reach)).items():
                moved = design.cells.query(name).answer(table)
                total += Fraction(int((moved.astype(object) ** 2).sum())) / (2 * variance)
    return total


def _difference(x: Histogram, y: Histogram) -> Histogram:
    return Histogram.of_counts(
        np.concatenate([x.rows(), y.rows()]),
        np.concatenate([x.cells, y.cells]),
        np.concatenate([x.counts, -y.counts]),
        x.nodes,
        x.width,
    )
