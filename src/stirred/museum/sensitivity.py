"""Exhibits: the declared sensitivity is not the true one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from stirred.audit import Tape
from stirred.errors import InputError
from stirred.museum.claims import REPLACE, Data, claim, noisy, noisy_vector, replayed
from stirred.museum.exhibit import Exhibit
from stirred.spec import Budget, Count, NormalisedRenyi, Schema

EPSILON = Fraction(1)
RHO_SQUARED = Fraction(1, 2)
GROUPS = 4

_PURE = claim(Budget.epsilon(1))
_SIZED = claim(Budget.epsilon(1), schema=Schema.of(value=(0, 1, 2, 3)), invariants=[Count(unit="record")])
_REPLACED = claim(Budget.epsilon(1), REPLACE)
_CONCENTRATED = claim(Budget.zcdp(rho_squared="1/2"), measure=NormalisedRenyi())
_CONCENTRATED_REPLACED = claim(Budget.zcdp(rho_squared="1/2"), REPLACE, NormalisedRenyi())


def filled_sum(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """A sum from 0 to 10 for each record, after missing values were filled with NaN."""
    filled = [math.nan if value is None else value for value in data]
    may_hold_nan = not broken
    if may_hold_nan:
        filled = [0 if math.isnan(value) else value for value in filled]
    total = sum(min(max(value, 0), 10) for value in filled)
    return {"sum": noisy(tape, "sum", total, sensitivity=10, epsilon=EPSILON)}


def merged_counts(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """Each record is a user with groups. Four groups a user are kept; then all groups become one."""
    merged = [sum(len(user[:GROUPS]) for user in data)]
    square_of_bound = GROUPS if broken else GROUPS**2
    counts = noisy_vector(
        tape, "counts", merged, squared_sensitivity=square_of_bound, rho_squared=RHO_SQUARED
    )
    return {"counts": counts}


def clipped_norm_sum(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """A sum of values of size at most 5, under replacement of a record."""
    bound = 5
    total = sum(min(max(value, -bound), bound) for value in data)
    reach = bound if broken else 2 * bound
    return {"sum": noisy_vector(tape, "sum", [total], squared_sensitivity=reach**2, rho_squared=RHO_SQUARED)}


def squared_sum(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """The sum of squares of a feature between 0 and 100."""
    bounds = (0, 100)
    total = sum(min(max(value, bounds[0]), bounds[1]) ** 2 for value in data)
    largest = max(abs(bounds[0]), abs(bounds[0 if broken else 1])) ** 2
    return {"sum": noisy(tape, "sum of squares", total, sensitivity=largest, epsilon=EPSILON)}


def censored_sum(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """A sum of values from 0 to 10: the values are clipped first, and perhaps forgotten."""
    clipped = [min(max(value, 0), 10) for value in data]
    used = data if broken else clipped
    return {"sum": noisy(tape, "sum", sum(used), sensitivity=10, epsilon=EPSILON)}


def sum_without_bounds(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """A sum of a column without declared bounds: it gets no noise, or is refused before data are read."""
    if not broken:
        raise InputError(
            "the column has no bounds",
            field="bounds",
            expected="a lower and an upper bound",
            hint="Declare them before the data are opened.",
        )
    return {"sum": sum(data)}


def clip_and_add(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """A sum of clipped values, where a value may not be a number."""
    values = np.asarray(data, dtype=np.float64)
    known = values if broken else np.nan_to_num(values, nan=0.0)
    total = float(np.clip(known, 0.0, 10.0).sum())
    return {"sum": noisy(tape, "sum", total, sensitivity=10, epsilon=EPSILON)}


def network_cell(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """A cell of the table of a Bayesian network whose degree is that of its attributes, as is legal.

    A network of degree k over d attributes has d - k tables, and one table where k = d.
    """
    attributes, degree = 2, 2
    tables = attributes - degree if broken else max(attributes - degree, 1)
    count = sum(record == (1, 1) for record in data)
    return {"cell": noisy(tape, "cell", count, sensitivity=tables, epsilon=EPSILON)}


def sized_sum(data: Data, tape: Tape, *, broken: bool) -> Mapping[str, Any]:
    """A sum of integers from 0 to 3 in data of known size: half the range for each record that differs."""
    lower, upper = 0, 3
    total = sum(min(max(value, lower), upper) for (value,) in data)
    half = (upper - lower) // 2 if broken else Fraction(upper - lower, 2)
    return {"sum": noisy(tape, "sum", total, sensitivity=half, epsilon=EPSILON)}


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "nan-fill",
        "Filling missing values with NaN leaves the mark that no value is NaN, and a sum becomes NaN.",
        "OpenDP issues 2936 and 2935",
        replayed(filled_sum, (1, None), (1,), _PURE, "a sum after filling missing values"),
    ),
    Exhibit(
        "stale-truncation",
        "A column is redefined after truncation, and the L2 bound of the old groups is kept.",
        "OpenDP issue 2949",
        replayed(merged_counts, (tuple("abcd"), ("a",)), (("a",),), _CONCENTRATED, "counts of merged groups"),
    ),
    Exhibit(
        "replace-as-add-remove",
        "Replacing a record is accounted as adding one: Rényi divergence four times too small.",
        "Google differential-privacy issue 378 and pull request 464",
        replayed(clipped_norm_sum, (5, 1), (-5, 1), _CONCENTRATED_REPLACED, "a clipped sum"),
    ),
    Exhibit(
        "lower-bound-twice",
        "The sensitivity is computed from the lower bound twice, and for bounds 0 and 100 there is no noise.",
        "IBM diffprivlib issues 105 and 104, pull request 110",
        replayed(squared_sum, (3, 100), (3,), _PURE, "a regression coefficient"),
    ),
    Exhibit(
        "clip-unused",
        "The data are clipped, and then the unclipped data are used.",
        "SmartNoise SDK issue 622",
        replayed(censored_sum, (3, 47), (3, 6), _REPLACED, "a censored sum"),
    ),
    Exhibit(
        "missing-bounds",
        "A column without bounds has no sensitivity, and its sum is published without noise.",
        "SmartNoise SDK issue 317",
        replayed(sum_without_bounds, (3, 50), (3,), _PURE, "a sum without bounds"),
    ),
    Exhibit(
        "nan-clip",
        "NaN passes through clipping unchanged, so that no bound holds.",
        "dp-recorder, test_nan_injection (SmartNoise Synth, dpmm, Synthcity, Opacus, diffprivlib)",
        replayed(clip_and_add, (1.0, math.nan), (1.0,), _PURE, "a clipped sum of floats"),
    ),
    Exhibit(
        "zero-by-parameter",
        "A legal value of a hyper-parameter makes the sensitivity zero, and nothing is protected.",
        "dp-recorder, test_noise_miscalibration (Synthcity)",
        replayed(network_cell, ((1, 0), (1, 1)), ((1, 0),), _PURE, "the table of a network"),
    ),
    Exhibit(
        "integer-halves",
        "Half of an odd range is rounded down in integers: the sensitivity is too small by a half.",
        "OpenDP issue 314",
        replayed(sized_sum, ((0,), (1,)), ((3,), (1,)), _SIZED, "a sum in data of known size"),
    ),
)
