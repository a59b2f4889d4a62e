"""The steepest likelihood ratio of a finite mechanism for each unit of distance, exactly and fast.

Floats only narrow the search: at each distance the largest ratios, and all within a slack far above their
rounding error, are compared as rationals, and the distances by exact logarithms. The slow twin compares every
pair in rationals: ``stirred.spec.protection_loss``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.arithmetic.extended import least_budget
from stirred.spec.finite.distribution import Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SLACK = 1e-9

Law = Mapping[Any, Fraction]


@dataclass(frozen=True)
class Steepest:
    """The largest loss, and the triple that attains it: P_x(outcome) / P_y(outcome), x and y by position."""

    loss: Exact
    x: int | None = None
    y: int | None = None
    outcome: Outcome = None
    distance: Exact = ZERO


def steepest(laws: Sequence[Law], distances: NDArray[np.int64], values: Sequence[Exact]) -> Steepest:
    """The largest |ln[P_x(z) / P_y(z)]| / d(x, y) over pairs at finite distance, and outcomes z.

    D_Mult is symmetric: a pair whose two distances differ is held to the smaller one. ``distances`` has for
    each pair the position of its distance in ``values``, negative where the pair is not compared. Masses of
    zero are left out.
    """
    laws = [{z: chance for z, chance in law.items() if chance} for law in laws]
    rank = np.array([*(sum(v < w for v in values) for w in values), len(values)])[distances]
    distances = np.where(rank <= rank.T, distances, distances.T)
    compared = distances >= 0
    np.fill_diagonal(compared, False)
    apart = _apart(laws, compared, distances, values)
    if apart is not None:
        return apart
    return max(
        (_within(laws, np.array(group), compared, distances, values) for group in _groups(laws)),
        key=lambda found: found.loss,
        default=Steepest(ZERO),
    )


def _groups(laws: Sequence[Law]) -> list[list[int]]:
    """Positions of the laws by support: only laws of one support are compared further."""
    groups: dict[frozenset[Outcome], list[int]] = {}
    for position, law in enumerate(laws):
        groups.setdefault(frozenset(law), []).append(position)
    return list(groups.values())


def _apart(
    laws: Sequence[Law], compared: NDArray[np.bool_], distances: NDArray[np.int64], values: Sequence[Exact]
) -> Steepest | None:
    """A compared pair of which one can give what the other cannot: the loss is infinite."""
    for first, second in permutations(_groups(laws), 2):
        missing = laws[first[0]].keys() - laws[second[0]].keys()
        if missing:
            pairs = np.argwhere(compared[np.ix_(first, second)])
            if pairs.size:
                x, y = first[int(pairs[0][0])], second[int(pairs[0][1])]
                return Steepest(INFINITY, x, y, min(missing, key=repr), values[int(distances[x, y])])
    return None


def _within(
    laws: Sequence[Law],
    group: NDArray[np.int64],
    compared: NDArray[np.bool_],
    distances: NDArray[np.int64],
    values: Sequence[Exact],
) -> Steepest:
    """The steepest pair among laws of one support."""
    outputs = sorted(laws[group[0]], key=repr)
    masses = list({chance: None for i in group for chance in laws[i].values()})
    place = {mass: number for number, mass in enumerate(masses)}
    numbers = np.array([[place[laws[i][z]] for z in outputs] for i in group], dtype=np.int64)
    logs = np.array([_log(mass) for mass in masses])[numbers]
    peaks = np.array([(row - logs).max(axis=1) for row in logs])
    inside = np.ix_(group, group)
    far = np.where(compared[inside], distances[inside], -1)
    best = Steepest(ZERO)
    for code in sorted(set(far.flat) - {-1}):
        candidates = _candidates(numbers, logs, peaks, far == code)
        (top, bottom), (x, y, z) = max(
            candidates.items(), key=lambda found: masses[found[0][0]] / masses[found[0][1]]
        )
        loss = least_budget(Exact.log(masses[top] / masses[bottom]), values[code])
        if loss > best.loss:
            best = Steepest(loss, int(group[x]), int(group[y]), outputs[z], values[code])
    return best


def _candidates(
    numbers: NDArray[np.int64],
    logs: NDArray[np.float64],
    peaks: NDArray[np.float64],
    pairs: NDArray[np.bool_],
) -> dict[tuple[int, int], tuple[int, int, int]]:
    """The largest ratios among some pairs of laws: numbers of both masses, and where they stand."""
    floor = peaks[pairs].max() - _SLACK
    found: dict[tuple[int, int], tuple[int, int, int]] = {}
    for x in np.flatnonzero((pairs & (peaks >= floor)).any(axis=1)):
        others = np.flatnonzero(pairs[x] & (peaks[x] >= floor))
        rows, columns = np.nonzero(logs[x] - logs[others] >= floor)
        both = np.stack([numbers[x, columns], numbers[others[rows], columns]])
        distinct, first = np.unique(both, axis=1, return_index=True)
        for (top, bottom), i in zip(distinct.T.tolist(), first.tolist(), strict=True):
            found.setdefault((top, bottom), (int(x), int(others[rows[i]]), int(columns[i])))
    return found


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)
