"""Exact draws of integers, by which all that is random in the county is decided."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from stirred.noise import Source, integers

Whole = NDArray[np.int64]

# Every bound up to 18 divides this number, so that one draw serves children of all parents.
_COMMON_MULTIPLE = math.lcm(*range(1, 19))
_MILLION = 1_000_000


def draw(source: Source, bound: int, count: int) -> Whole:
    """Whole numbers from zero to below the bound."""
    return integers(source, bound, count).astype(np.int64)


def spread(bounds: Whole, source: Source) -> Whole:
    """A whole number from zero to below the bound of each row; no bound is above 18."""
    return draw(source, _COMMON_MULTIPLE, bounds.size) % bounds


def pick(weights: Whole, rows: Whole, source: Source) -> Whole:
    """For each entry of ``rows`` a column of that row of the weights, shares exact to a millionth."""
    rising = np.cumsum(weights, axis=1)
    limits = rising * _MILLION // rising[:, -1:]
    drawn = draw(source, _MILLION, rows.size)
    picked: Whole = (drawn[:, None] >= limits[rows]).sum(axis=1)
    return picked


def scatter(weights: Whole, count: int, source: Source) -> Whole:
    """Positions drawn in proportion to their weights."""
    rising = np.cumsum(weights)
    drawn = draw(source, int(rising[-1]), count)
    return np.searchsorted(rising, drawn, side="right").astype(np.int64)
