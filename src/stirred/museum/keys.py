"""Exhibits: keys, counts, errors and parameters that tell of the data, beside well calibrated noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import Any

from stirred.audit import Tape
from stirred.museum.claims import (
    ADD_OR_REMOVE_ONE,
    REPLACE,
    Data,
    Law,
    claim,
    enumerated,
    gathered,
    geometric,
    noisy,
    replayed,
)
from stirred.museum.exhibit import Exhibit
from stirred.spec import Approximate, Budget, Count, Exact, Schema

EPSILON = Fraction(1)
THRESHOLD = 4
LARGEST_COUNT = 7
NOISE = geometric(LARGEST_COUNT)
DELTA = sum((mass for z, mass in NOISE.items() if 1 + z > THRESHOLD), Fraction(0))
LARGEST_QUANTILE = 1492

_PURE = claim(Budget.epsilon(1))
_THRESHOLDED = claim(Budget.epsilon("ln(2)"), ADD_OR_REMOVE_ONE, Approximate(delta=Exact(DELTA)))
_SIZED = claim(
    Budget.epsilon(1), REPLACE, schema=Schema.of(age=("7", "12", "?")), invariants=[Count(unit="record")]
)


def thresholded_key(data: Data, *, broken: bool) -> Law:
    """A key with its noisy count, if that is above the threshold; nothing if no record has the key.

    The claimed delta is the probability that one record brings the key above the threshold.
    """
    if not data:
        return {None: Fraction(1)}
    least = THRESHOLD if broken else THRESHOLD + 1
    counts = ((min(len(data) + z, LARGEST_COUNT), mass) for z, mass in NOISE.items())
    return gathered((count if count >= least else None, mass) for count, mass in counts)


def rows_after_cast(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """The number of rows, which is invariant and free; what cannot be cast to an integer turns null."""
    cast = [int(age) if age.isdigit() else None for (age,) in data]
    return {"rows": sum(age is not None for age in cast) if broken else len(data)}


def median_gap(data: Data, *, broken: bool) -> Law:
    """The median by the exponential mechanism over the gaps between values, weighted by their length."""
    values = sorted((0, *data, 1))
    gaps = [(pair, abs(rank - len(data) / 2)) for rank, pair in enumerate(pairwise(values))]
    scores = {pair: score for pair, score in gaps if pair[0] < pair[1]}
    shift = 0.0 if broken else min(scores.values())
    weights = {(a, b): (b - a) * math.exp(shift - score) for (a, b), score in scores.items()}
    total = sum(weights.values())
    return {pair: Fraction(weight) / Fraction(total) for pair, weight in weights.items()}


def histogram(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """Counts by category, of the categories that occur or of those that were declared."""
    categories = sorted(set(data)) if broken else ("a", "b", "c")
    share = EPSILON / 3
    return {
        key: noisy(tape, "count", data.count(key), sensitivity=1, epsilon=share, category=key)
        for key in categories
    }


def mean(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """The mean of values from 0 to 10, whose number is as confidential as they are."""
    if broken:
        per_record = Fraction(10, len(data))
        value = Fraction(sum(data), len(data))
        return {"mean": float(noisy(tape, "mean", value, sensitivity=per_record, epsilon=EPSILON))}
    total = noisy(tape, "sum", sum(data), sensitivity=10, epsilon=EPSILON / 2)
    size = noisy(tape, "size", len(data), sensitivity=1, epsilon=EPSILON / 2)
    return {"mean": total / max(size, 1)}


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "threshold-tie",
        "Delta leaves out the mass exactly at the threshold, where a key is released all the same.",
        "OpenDP issue 2922",
        enumerated(thresholded_key, ((), ("a",), ("a", "a")), _THRESHOLDED, "a thresholded key"),
    ),
    Exhibit(
        "null-count",
        "A cast turns values into nulls, and the count of the others is taken for the invariant length.",
        "OpenDP issues 2938 and 2939",
        replayed(rows_after_cast, (("7",), ("12",)), (("7",), ("?",)), _SIZED, "the number of rows"),
    ),
    Exhibit(
        "quantile-crash",
        "A quantile fails by underflow from one record more on: the error tells the size of the data.",
        "SmartNoise SDK issue 572",
        enumerated(
            median_gap,
            tuple((*(0,) * (size - 1), 1) for size in (LARGEST_QUANTILE, LARGEST_QUANTILE + 1)),
            _PURE,
            "a median",
        ),
    ),
    Exhibit(
        "inferred-domain",
        "The categories are those that occur in the data, so that a rare one betrays its only member.",
        "dp-recorder, test_domain_inference (diffprivlib, dpmm); reprosyn issue 38",
        replayed(histogram, ("a", "b", "c"), ("a", "b"), _PURE, "a histogram"),
    ),
    Exhibit(
        "public-size",
        "The number of records scales the noise as if it were public, while records come and go.",
        "Opacus issues 571 and 819",
        replayed(mean, (1, 2, 9), (1, 2), _PURE, "a mean"),
    ),
)
