"""Tables of many nodes, folded so that the maps of an algebra act on them by small matrix products.

A folded table has the axes (nodes, plain attribute, plain attribute, ..., core): the core is last, so that a
d x d block multiplies all nodes and all plain levels in one product. A table can be kept *summed* over some
plain attributes: sums over an attribute commute with every map of the algebra (the map keeps its blocks on
the components in which that attribute does not vary), so that what a query does not ask for is summed away
before any work is done. A folded table then costs the counts that the query tells apart, times the core.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.topdown.algebra import Algebra
from stirred.topdown.cells import Query

Float = NDArray[np.float64]


class Folded:
    """Folded tables of an algebra, summed over the plain attributes that a query (if given) sums over."""

    def __init__(self, algebra: Algebra, query: Query | None = None) -> None:
        self.algebra = algebra
        self.kept = tuple(
            i
            for i, axis in enumerate(algebra.plain)
            if algebra.sizes[i] > 1 and (query is None or query.coarsenings[axis].size > 1)
        )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Axes of one node: plain attributes (1 where summed), then the core."""
        sizes = (size if i in self.kept else 1 for i, size in enumerate(self.algebra.sizes))
        return (*sizes, self.algebra.width)

    @cached_property
    def count(self) -> int:
        """Numbers in the table of one node."""
        return math.prod(self.shape)

    def reduced(self, blocks: Float) -> Float:
        """The blocks that act on these tables: of the sets of kept attributes, numbered by their bits."""
        bits = [sum(1 << self.kept[j] for j in range(len(self.kept)) if s >> j & 1) for s in self._sets]
        return blocks[..., bits, :, :]

    @property
    def _sets(self) -> range:
        return range(1 << len(self.kept))

    def coefficients(self, blocks: Float) -> Float:
        """What ``apply`` takes, from blocks of the algebra; leading axes are kept."""
        out = self.reduced(blocks).copy()
        for j, i in enumerate(self.kept):
            bits = np.arange(len(self._sets)) >> j & 1
            deviation, mean = out[..., bits == 1, :, :], out[..., bits == 0, :, :]
            out[..., bits == 0, :, :] = (mean - deviation) / self.algebra.sizes[i]
        return out

    def apply(self, coefficients: Float, table: Float) -> Float:
        """Multiply every node by its own map, or all by one if there is one: maps are on the first axis."""
        return _applied(coefficients, table, [1 + i for i in self.kept])

    def summed(self, table: Float) -> Float:
        """A table that keeps every attribute, summed to the ones kept here."""
        axes = tuple(1 + i for i in range(len(self.algebra.plain)) if i not in self.kept)
        return table.sum(axis=axes, keepdims=True) if axes else table

    def adjoint(self, query: Query, values: NDArray[Any], weight: Float | float) -> Float:
        """``weight`` times Q'y for every node, with axes of length 1 where it is constant.

        ``values`` has one row a node; the query recodes no plain attribute.
        """
        algebra = self.algebra
        table = values.reshape(len(values), *query.shape)
        factor = 1.0
        gone = []
        for i, axis in enumerate(algebra.plain):
            if i not in self.kept:
                gone.append(1 + axis)
                factor *= algebra.sizes[i] if query.coarsenings[axis].size == 1 else 1
        dtype = np.int64 if table.dtype.kind == "i" else np.float64
        small = table.sum(axis=tuple(gone), keepdims=True, dtype=dtype) if gone else table
        order = (0, *(1 + a for a in algebra.plain), *(1 + a for a in algebra.core))
        small = small.transpose(order).reshape(len(values), *self._plain_shape(query), -1)
        for i in self.kept:
            groups = query.coarsenings[algebra.plain[i]].groups
            if small.shape[1 + i] > 1 and not np.array_equal(groups, np.arange(groups.size)):
                small = small.take(groups, axis=1 + i)
        scale = factor * weight if isinstance(weight, float) else _column(factor * weight, small.ndim)
        out: Float = small * scale
        groups = algebra.core_groups(query)
        if np.array_equal(groups, np.arange(out.shape[-1])):
            return out
        return out.take(groups, axis=-1) if out.shape[-1] > 1 else out

    def _plain_shape(self, query: Query) -> tuple[int, ...]:
        plain = self.algebra.plain
        return tuple(query.coarsenings[a].size if i in self.kept else 1 for i, a in enumerate(plain))

    def answer(self, query: Query, table: Float) -> Float:
        """The counts of a query, one row a node, from a folded table."""
        algebra = self.algebra
        out = table
        for i in self.kept:
            coarsening = query.coarsenings[algebra.plain[i]]
            if not np.array_equal(coarsening.groups, np.arange(coarsening.size)):
                indicator = _indicator(coarsening.groups, coarsening.size)
                out = np.moveaxis(np.moveaxis(out, 1 + i, -1) @ indicator.T, -1, 1 + i)
        out = out @ self._core_indicator(query).T
        return self._in_order(query, out)

    def variances(self, query: Query, blocks: Float) -> Float:
        """Variances of the counts of a query, one row for every covariance that blocks give."""
        algebra = self.algebra
        reduced = self.reduced(blocks)
        indicator = self._core_indicator(query)
        total = np.zeros((len(blocks), *self._plain_shape(query), indicator.shape[0]))
        for bits in self._sets:
            part = ((indicator @ reduced[:, bits]) * indicator).sum(axis=-1)
            part = part.reshape(len(blocks), *(1 for _ in algebra.plain), -1)
            for i, axis in enumerate(algebra.plain):
                coarsening, size = query.coarsenings[axis], algebra.sizes[i]
                members = np.bincount(coarsening.groups, minlength=coarsening.size).astype(np.float64)
                mean = members**2 / size
                varies = i in self.kept and bits >> self.kept.index(i) & 1
                norm = members - mean if varies else mean
                part = part * norm.reshape(-1, *(1 for _ in range(len(algebra.plain) - i)))
            total += part
        return self._in_order(query, total)

    def _core_indicator(self, query: Query) -> Float:
        groups = self.algebra.core_groups(query)
        return _indicator(groups, math.prod(query.coarsenings[a].size for a in self.algebra.core))

    def _in_order(self, query: Query, table: Float) -> Float:
        """From (nodes, plain groups, core groups) to (nodes, counts of the query)."""
        algebra = self.algebra
        order = (*algebra.plain, *algebra.core)
        table = table.reshape(len(table), *(query.coarsenings[a].size for a in order))
        table = table.transpose(0, *(1 + order.index(a) for a in range(len(order))))
        return table.reshape(len(table), query.size)

    def unfold(self, table: Float) -> Float:
        """From a table that keeps every attribute to (nodes, cells)."""
        return self.algebra.unfold(np.moveaxis(table, -1, 1), 1)


def _applied(coefficients: Float, table: Float, axes: list[int]) -> Float:
    """Sum over sets of kept axes: those with the last axis act on the table, the others on its sum."""
    if not axes:
        return _product(table, coefficients[:, 0])
    half = coefficients.shape[1] // 2
    out = _applied(coefficients[:, half:], table, axes[:-1])
    out += _applied(coefficients[:, :half], table.sum(axis=axes[-1], keepdims=True), axes[:-1])
    return out


def _product(table: Float, matrices: Float) -> Float:
    """Multiply the core axis by the matrix of each node, or by the only one there is."""
    width = table.shape[-1]
    if width == 1:
        return table * _column(matrices.reshape(-1), table.ndim)
    if len(matrices) == 1:
        return np.asarray(table.reshape(-1, width) @ matrices[0].T).reshape(table.shape)
    flat = table.reshape(len(table), -1, width)
    return np.asarray(flat @ matrices.transpose(0, 2, 1)).reshape(table.shape)


def _column(values: Float, ndim: int) -> Float:
    return values.reshape(-1, *(1 for _ in range(ndim - 1)))


def _indicator(groups: NDArray[np.int64], size: int) -> Float:
    return np.asarray(groups[None, :] == np.arange(size)[:, None], dtype=np.float64)
