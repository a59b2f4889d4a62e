"""Outputs of a sampler in one shape: numbers, rows of numbers, or labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.audit.exact import require_capability
from stirred.audit.preparation import prepared_by
from stirred.errors import InputError
from stirred.noise import Source

Sample = Callable[[Any, int, Source], Any]
Outputs = Any


def sampler_of(sample: Any) -> Sample:
    """The function to draw with: the one that is given, or the method ``sample`` of a mechanism, prepared."""
    if callable(getattr(sample, "sample", None)) or not callable(sample):
        require_capability(sample, "sample")
        method, prepare = sample.sample, prepared_by(sample)
        return lambda data, count, source: method(prepare(data), count, source)
    function: Sample = sample
    return function


def outputs_of(raw: Any, count: int) -> Outputs:
    """Outputs as an array of numbers, or of rows of numbers, or as a list of labels."""
    listed = isinstance(raw, list | tuple) or (isinstance(raw, np.ndarray) and raw.ndim > 0)
    if not listed or len(raw) != count:
        raise InputError(
            "the sampler did not return the draws it was asked for",
            field="sample",
            expected="an array or a list with one output for each draw",
            hint="Return count outputs, drawn independently.",
        )
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "biuf" and raw.size:
        return _numbers(raw if raw.ndim == 1 else raw.reshape(count, -1))
    rows = raw.tolist() if isinstance(raw, np.ndarray) else list(raw)
    kinds = set(map(type, rows))
    if kinds and kinds <= {int, float}:
        array = np.asarray(rows)
        if array.dtype.kind in "if":
            return _numbers(array)
    return rows if kinds <= {str, int, bool, bytes, type(None)} else _labels(rows)


def _labels(rows: list[Any]) -> list[Hashable]:
    """A label for every row; rows that are one object are looked at once."""
    known: dict[int, Hashable] = {}
    for row in rows:
        if id(row) not in known:
            known[id(row)] = label_of(row)
    return [known[id(row)] for row in rows]


def _numbers(array: NDArray[Any]) -> NDArray[Any]:
    if array.dtype.kind == "f":
        return array.astype(np.float64, copy=False)
    return array if array.dtype == np.uint64 else array.astype(np.int64, copy=False)


def label_of(output: Any) -> Hashable:
    """An output as a dictionary key: a NaN equals itself, a list or an array is a tuple."""
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, list | tuple):
        return tuple(map(label_of, output))
    if isinstance(output, float) and math.isnan(output):
        return "NaN"
    if not isinstance(output, Hashable):
        raise InputError(
            "an output cannot be compared with another",
            field="sample",
            expected="numbers, rows of numbers, or hashable outputs",
            hint="Return a canonical form, such as a tuple or a string.",
        )
    return output


def alike(batches: Sequence[Outputs]) -> Sequence[Outputs]:
    """Batches of one kind: numbers, rows of one width, or else labels."""
    shapes = {b.shape[1:] if isinstance(b, np.ndarray) else None for b in batches}
    if len(shapes) == 1 and None in shapes:
        return batches
    if len(shapes) == 1:
        common = np.result_type(*(b.dtype for b in batches))
        return [b.astype(common, copy=False) for b in batches]
    return [[label_of(row) for row in b] for b in batches]
