"""Events that may tell two samples apart: intervals, atoms, labels, and the lowest bits of floats."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.audit.outputs import Outputs

CELLS = 128
ATOMS = 1024
COLUMNS = 32


class Partition(Protocol):
    """A way to sort outputs into cells; an event is a union of cells."""

    @property
    def family(self) -> str:
        """The kind of event, in words."""

    @property
    def size(self) -> int:
        """How many cells there are."""

    @property
    def ordered(self) -> bool:
        """Whether initial and final runs of cells are events worth a try."""

    def cells(self, outputs: Outputs) -> NDArray[np.int64]:
        """The cell of every output."""


@dataclass(frozen=True, eq=False)
class Event:
    """A set of outputs: some cells of a partition."""

    partition: Partition
    chosen: NDArray[np.bool_]

    @property
    def family(self) -> str:
        return self.partition.family

    def contains(self, outputs: Outputs) -> NDArray[np.bool_]:
        return self.chosen[self.partition.cells(outputs)]


@dataclass(frozen=True, eq=False)
class View:
    """One number of each output: itself, a column of its row, or a weighted sum of them."""

    column: int | None = None
    weights: NDArray[np.float64] | None = None

    def __call__(self, outputs: NDArray[Any]) -> NDArray[Any]:
        if self.weights is not None:
            with np.errstate(invalid="ignore"):
                return np.asarray(outputs @ self.weights)
        return outputs if self.column is None else outputs[:, self.column]


@dataclass(frozen=True, eq=False)
class Intervals:
    """Cells between edges, and cells of their own for infinities and NaN: half-lines, likelihood ratios."""

    view: View
    edges: NDArray[Any]
    family: str = "intervals"
    ordered: bool = True

    @property
    def size(self) -> int:
        """The intervals, minus and plus infinity, NaN."""
        return len(self.edges) + 4

    def cells(self, outputs: Outputs) -> NDArray[np.int64]:
        """Edges belong to the interval below them."""
        values = self.view(outputs)
        found = np.searchsorted(self.edges, values, side="left") + 1
        if values.dtype.kind == "f":
            found[values == -np.inf] = 0
            found[values == np.inf] = len(self.edges) + 2
            found[np.isnan(values)] = len(self.edges) + 3
        return found


@dataclass(frozen=True, eq=False)
class LowBits:
    """Cells by the lowest bit that a float uses: in absolute terms, or counted from its mantissa's end.

    A value is a multiple of 2^k exactly if its lowest bit is not below k. Noise that is computed in floats
    leaves the lattice of the float that it is added to.
    """

    view: View
    absolute: bool
    family: str = "low bits of a float"
    ordered: bool = True

    @property
    def size(self) -> int:
        """From 2^-1074 up, then zero, then what is not finite; or from 0 to 52 trailing zeros."""
        return 2100 if self.absolute else 55

    def cells(self, outputs: Outputs) -> NDArray[np.int64]:
        """Read the mantissa as an integer and take its lowest set bit."""
        values = self.view(outputs)
        finite = np.isfinite(values)
        mantissa, exponent = np.frexp(np.where(finite, values, 0.0))
        whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
        trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
        place = trailing + (exponent - 53 + 1074) if self.absolute else trailing
        place = np.where(whole == 0, self.size - 2, place)
        return np.where(finite, place, self.size - 1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Atoms:
    """Cells of single values, compared bit by bit; values that are not listed fall in the last cell."""

    view: View
    keys: NDArray[Any]
    places: NDArray[np.int64]
    size: int
    family: str
    ordered: bool = False

    def cells(self, outputs: Outputs) -> NDArray[np.int64]:
        bits = _bits(self.view(outputs))
        near = np.minimum(np.searchsorted(self.keys, bits), len(self.keys) - 1)
        return np.where(self.keys[near] == bits, self.places[near], self.size - 1)


@dataclass(frozen=True, eq=False)
class Labels:
    """Cells of labels; labels that are not listed fall in the last cell."""

    places: Mapping[Hashable, int]
    size: int
    family: str
    ordered: bool = False

    def cells(self, outputs: Outputs) -> NDArray[np.int64]:
        last = self.size - 1
        return np.fromiter((self.places.get(label, last) for label in outputs), np.int64, len(outputs))


def partitions(first: Outputs, second: Outputs) -> Iterator[Partition]:
    """The ways to sort outputs that the draws for choosing suggest."""
    if not isinstance(first, np.ndarray):
        yield from _label_partitions(first, second)
        return
    if first.ndim == 1:
        yield from _number_partitions(View(), first, second)
        return
    yield from _atom_partitions(View(), first, second)
    for view in _views(first, second):
        yield from _number_partitions(view, view(first), view(second))


def _views(first: NDArray[Any], second: NDArray[Any]) -> Iterator[View]:
    """The columns whose means differ most, the best direction between two normal laws, and the quietest.

    Columns that share their noise have a direction without any.
    """
    clean = [np.where(np.isfinite(side), side, 0).astype(np.float64) for side in (first, second)]
    gap = clean[0].mean(axis=0) - clean[1].mean(axis=0)
    spread = clean[0].var(axis=0) + clean[1].var(axis=0)
    tiny = float(spread.max()) * 1e-9 + math.ulp(1.0)
    strongest = np.argsort(-np.abs(gap) / np.sqrt(spread + tiny), kind="stable")[:COLUMNS]
    for column in strongest:
        yield View(column=int(column))
    if len(strongest) > 1:
        inner = [side[:, strongest] - side[:, strongest].mean(axis=0) for side in clean]
        scatter = sum((side.T @ side / len(side) for side in inner), np.zeros((len(strongest),) * 2))
        values, vectors = np.linalg.eigh(scatter)
        for direction in (vectors @ (vectors.T @ gap[strongest] / (values + tiny)), vectors[:, 0]):
            if np.any(direction):
                weights = np.zeros(first.shape[1])
                weights[strongest] = direction / np.abs(direction).max()
                yield View(weights=weights)


def _number_partitions(view: View, first: NDArray[Any], second: NDArray[Any]) -> Iterator[Partition]:
    edges = np.unique(np.concatenate([_quantiles(first), _quantiles(second)]))
    if len(edges):
        yield Intervals(view, edges)
    if view.weights is None:
        yield from _atom_partitions(view, first, second)
        if first.dtype.kind == "f" and any(np.any(np.floor(side) != side) for side in (first, second)):
            yield LowBits(view, absolute=True)
            yield LowBits(view, absolute=False)


def _quantiles(values: NDArray[Any]) -> NDArray[Any]:
    """Evenly spaced quantiles, and ever finer ones in both tails."""
    finite = np.sort(values[np.isfinite(values)] if values.dtype.kind == "f" else values)
    if not len(finite):
        return finite
    tail = 2.0 ** -np.arange(8, max(9.0, math.log2(len(finite)) - 2))
    levels = np.concatenate([np.arange(1, CELLS) / CELLS, tail, 1 - tail])
    return finite[np.minimum((levels * len(finite)).astype(np.int64), len(finite) - 1)]


def _atom_partitions(view: View, first: NDArray[Any], second: NDArray[Any]) -> Iterator[Partition]:
    """Values that repeat, the most frequent apart; and all values by which of the two data sets gave them."""
    sides = [_bits(side) for side in (first, second)]
    keys, inverse = np.unique(np.concatenate(sides), return_inverse=True)
    a, b = (np.bincount(part, minlength=len(keys)) for part in np.split(inverse, [len(sides[0])]))
    if not np.any(np.maximum(a, b) > 1):
        return
    frequent = np.sort(np.argsort(-(a + b), kind="stable")[:ATOMS])
    frequent = frequent[(a + b)[frequent] > 1]
    yield Atoms(view, keys[frequent], np.arange(len(frequent)), len(frequent) + 1, "single outcomes")
    yield Atoms(view, keys, _given_by(a, b), 4, "outcomes that one data set gives")


def _label_partitions(first: Sequence[Hashable], second: Sequence[Hashable]) -> Iterator[Partition]:
    codes: dict[Hashable, int] = {}
    a, b = (
        np.fromiter((codes.setdefault(label, len(codes)) for label in side), np.int64, len(side))
        for side in (first, second)
    )
    a, b = (np.bincount(side, minlength=len(codes)) for side in (a, b))
    labels = list(codes)
    frequent = np.argsort(-(a + b), kind="stable")[:ATOMS]
    places = {labels[code]: place for place, code in enumerate(frequent)}
    yield Labels(places, len(places) + 1, "single outcomes")
    given = dict(zip(labels, _given_by(a, b).tolist(), strict=True))
    yield Labels(given, 4, "outcomes that one data set gives")


def _given_by(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 for the first data set alone, 1 for the second alone, 2 for both."""
    return np.where(b == 0, 0, np.where(a == 0, 1, 2))


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers by their bits, so that NaN, infinities and minus zero are values like others; rows as bytes."""
    if values.ndim == 1:
        return values.view(np.int64) if values.flags.c_contiguous else values.copy().view(np.int64)
    rows = np.ascontiguousarray(values)
    return rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()


def counts_of(partition: Partition, outputs: Outputs) -> NDArray[np.int64]:
    """How many outputs fall into each cell."""
    return np.bincount(partition.cells(outputs), minlength=partition.size)
