"""Noisy measurements: every query of every node, answered and noised; the only contact with the data.

A node that is an only child in the public spine has its parent's content. It is not measured again: the
budgets of both levels go into one measurement, so that every path from root to leaf spends the total.

Measurements are made, stored and read in chunks of neighbouring nodes, so that memory is bounded by a chunk.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.data import Histogram, Spine
from stirred.errors import InputError
from stirred.extras import require
from stirred.interchange import replace_atomically
from stirred.noise import Source, discrete_gaussian
from stirred.places import inside, slug
from stirred.topdown.budget import Allocation
from stirred.topdown.cells import Cells

CHUNK = 1 << 23


@dataclass(frozen=True, eq=False)
class Chunk:
    """Measurements of the measured nodes from ``start`` to ``stop`` of one level, a table for every query.

    Where a node does not measure a query (it lends or borrows no level that asks it) the row is zero and
    its precision is zero.
    """

    level: int
    start: int
    stop: int
    values: Mapping[str, NDArray[np.int32]]


class Design:
    """What is measured where, and how precisely: cells, spine and allocation of one universe.

    All of it is public: a design depends on the plan and the map, never on the data.
    """

    def __init__(self, cells: Cells, spine: Spine, allocation: Allocation) -> None:
        self.cells = cells
        self.spine = spine
        self.allocation = allocation
        self.reach = tuple(spine.reach(level) for level in range(spine.depth))
        self.measured = tuple(np.flatnonzero(~spine.only_child(level)) for level in range(spine.depth))

    def chain(self, level: int, reach: int) -> tuple[str, ...]:
        """The names of the levels whose budgets a node spends."""
        return self.spine.levels[level : reach + 1]

    def reaches(self, level: int) -> tuple[int, ...]:
        """The reaches that measured nodes of a level have."""
        return tuple(int(r) for r in np.unique(self.reach[level][self.measured[level]]))

    def queries(self, level: int) -> tuple[str, ...]:
        """Every query that some node of a level measures, in the order of the allocation."""
        names: dict[str, None] = {}
        for reach in self.reaches(level):
            names |= dict.fromkeys(self.allocation.variances(self.chain(level, reach)))
        return tuple(names)

    def precisions(self, level: int, reach: int) -> dict[str, float]:
        """One over the variance parameter of every query of a node of this level and reach."""
        found = self.allocation.variances(self.chain(level, reach))
        return {name: float(1 / variance) for name, variance in found.items()}

    def width(self, level: int) -> int:
        """How many counts a node of a level measures."""
        return sum(self.cells.query(name).size for name in self.queries(level))

    def chunks(self, level: int) -> list[tuple[int, int]]:
        """Ranges of measured nodes, whole families of siblings, of about ``CHUNK`` counts each."""
        nodes = self.measured[level]
        if nodes.size == 0:
            return []
        target = max(1, CHUNK // max(1, self.width(level)))
        family = self.spine.parents[level][nodes] if level else np.arange(nodes.size)
        first = np.append(np.flatnonzero(np.diff(family, prepend=-1)), nodes.size)
        out, start = [], 0
        for stop, after in zip(first[1:], [*first[2:], None], strict=True):
            if after is None or after - start > target:
                out.append((start, int(stop)))
                start = int(stop)
        return out

    @cached_property
    def spent(self) -> Fraction:
        """The most that the measurements from root to leaf spend, in rho squared, by their own variances."""
        totals, at = [Fraction(0)], np.zeros(1, dtype=np.int64)
        for level in range(self.spine.depth):
            above = at[self.spine.parents[level]] if level else np.zeros(self.spine.size(0), dtype=np.int64)
            reaches = np.full(above.size, -1, dtype=np.int64)
            reaches[self.measured[level]] = self.reach[level][self.measured[level]]
            pairs, inverse = np.unique(np.stack([above, reaches]), axis=1, return_inverse=True)
            totals = [totals[before] + self._cost(level, reach) for before, reach in pairs.T.tolist()]
            at = inverse.reshape(-1)
        return max(totals)

    def _cost(self, level: int, reach: int) -> Fraction:
        """What a node of this level and reach spends; nothing if it is not measured."""
        if reach < 0:
            return Fraction(0)
        half = Fraction(self.allocation.squared_sensitivity, 2)
        variances = self.allocation.variances(self.chain(level, reach)).values()
        return sum((half / variance for variance in variances), Fraction(0))

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the design: measurements fit a design with the same one."""
        body = json.dumps(
            {
                "schema": self.cells.schema.model_dump(mode="json"),
                "levels": self.spine.levels,
                "codes": self.spine.codes,
                "parents": [p.tolist() for p in self.spine.parents],
                "allocation": self.allocation.record(),
            },
            sort_keys=True,
            default=str,
        )
        return hashlib.sha256(body.encode()).hexdigest()


class Measurements:
    """The noisy measurements of a design, chunk by chunk, in memory or in a folder.

    ``publishable`` is true only where they were made with the operating system's randomness.
    """

    def __init__(
        self, design: Design, load: Callable[[int, int], Chunk], *, publishable: bool = False
    ) -> None:
        self.design = design
        self.publishable = publishable
        self._load = load

    def chunk(self, level: int, number: int) -> Chunk:
        """One chunk of a level."""
        return self._load(level, number)

    def level(self, level: int) -> Iterator[Chunk]:
        """All chunks of a level in order."""
        for number in range(len(self.design.chunks(level))):
            yield self._load(level, number)

    def write(self, folder: Path) -> None:
        """Write the noisy measurement files: one Parquet file a level."""
        require("topdown")
        for level in range(self.design.spine.depth):
            _write_level(self.design, level, self.level(level), folder, self.publishable)

    @classmethod
    def read(cls, design: Design, folder: Path) -> Measurements:
        """Measurements from their files; refused where they were made for another design."""
        require("topdown")
        publishable = True
        for level in range(design.spine.depth):
            path = _path(folder, design, level)
            if not path.is_file():
                raise InputError(
                    f"the measurements of level {design.spine.levels[level]} are missing",
                    field="measurements",
                    expected="one Parquet file for every level",
                    hint="Name the folder that the measurements were written to.",
                )
            publishable = _check_file(design, level, path) and publishable
        return cls(
            design, lambda level, number: _read_chunk(design, level, number, folder), publishable=publishable
        )


def measure(
    design: Design, levels: Sequence[Histogram], source: Source, folder: Path | None = None
) -> Measurements:
    """Answer and noise every query of every node; into files if a folder is given, else in memory.

    Every chunk has a random stream of its own: the result does not depend on the number of threads. Every
    call takes a new stream from the source: noise is never used twice.
    """
    source = source.spawn()
    if folder is not None and any(
        _path(folder, design, level).exists() for level in range(design.spine.depth)
    ):
        raise InputError(
            "the folder has measurements already",
            field="measurements",
            expected="a folder without measurements",
            hint="Measure into another folder: two runs must not mix.",
        )
    kept: dict[tuple[int, int], Chunk] = {}
    for level in range(design.spine.depth):
        ranges = design.chunks(level)

        def made(number: int, level: int = level, ranges: list[tuple[int, int]] = ranges) -> Chunk:
            return _measured(design, level, levels[level], *ranges[number], source.child(level, number))

        with ThreadPoolExecutor(2) as pool:
            stream = _in_order(pool, made, len(ranges))
            if folder is not None:
                _write_level(design, level, stream, folder, source.publishable)
            else:
                kept |= {(level, number): chunk for number, chunk in enumerate(stream)}
    if folder is not None:
        return Measurements.read(design, folder)
    return Measurements(design, lambda level, number: kept[level, number], publishable=source.publishable)


def measured_again(
    design: Design, level: int, truth: Histogram, source: Source, most: int
) -> Iterator[Chunk]:
    """Chunks of one level, as ``measure`` would draw them from this source: for audits, never for a release.

    At most so many of them, from the first to the last at equal steps.
    """
    ranges = design.chunks(level)
    steps = np.linspace(0, len(ranges) - 1, min(most, len(ranges)), dtype=np.int64)
    for number in np.unique(steps).tolist():
        start, stop = ranges[number]
        yield _measured(design, level, truth, start, stop, source.child(level, number))


def noise_of(
    design: Design, chunk: Chunk, truth: Histogram
) -> Iterator[tuple[str, Fraction, NDArray[np.int64], NDArray[np.bool_]]]:
    """Measured minus true: for every query and variance parameter a table of nodes by counts.

    With each comes which of the true counts are not zero.
    """
    nodes = design.measured[chunk.level][chunk.start : chunk.stop]
    table = truth.dense(int(nodes[0]), int(nodes[-1]) + 1)[nodes - int(nodes[0])]
    reaches = design.reach[chunk.level][nodes]
    for reach in np.unique(reaches):
        rows = np.flatnonzero(reaches == reach)
        for name, variance in design.allocation.variances(design.chain(chunk.level, int(reach))).items():
            true = design.cells.query(name).answer(table[rows])
            yield name, variance, chunk.values[name][rows].astype(np.int64) - true, true != 0


def _in_order(pool: ThreadPoolExecutor, task: Callable[[int], Chunk], count: int) -> Iterator[Chunk]:
    """Run tasks two at a time and yield their results in order."""
    waiting = [pool.submit(task, i) for i in range(min(2, count))]
    for i in range(count):
        done = waiting.pop(0).result()
        if i + 2 < count:
            waiting.append(pool.submit(task, i + 2))
        yield done


def _measured(design: Design, level: int, truth: Histogram, start: int, stop: int, source: Source) -> Chunk:
    nodes = design.measured[level][start:stop]
    low, high = int(nodes[0]), int(nodes[-1]) + 1
    table = truth.dense(low, high)[nodes - low]
    reaches = design.reach[level][nodes]
    values = {}
    for position, name in enumerate(design.queries(level)):
        query = design.cells.query(name)
        answers = query.answer(table)
        noisy = np.zeros(answers.shape, dtype=np.int64)
        for reach in np.unique(reaches):
            variance = design.allocation.variances(design.chain(level, int(reach))).get(name)
            if variance is None:
                continue
            rows = np.flatnonzero(reaches == reach)
            stream = source.child(position, int(reach))
            noise = discrete_gaussian(stream, variance, rows.size * query.size)
            noisy[rows] = answers[rows] + noise.reshape(rows.size, query.size)
        # Counts and noise stay far inside 32 bits for any population; clip rather than wrap.
        limits = np.iinfo(np.int32)
        values[name] = np.clip(noisy, limits.min, limits.max).astype(np.int32)
    return Chunk(level, start, stop, values)


def _path(folder: Path, design: Design, level: int) -> Path:
    return inside(folder, file_of(level, design.spine.levels[level]))


def file_of(number: int, level: str) -> str:
    """The name of the file with the measurements of a level."""
    return f"{number}-{slug(level)}.parquet"


def _write_level(
    design: Design, level: int, chunks: Iterator[Chunk], folder: Path, publishable: bool
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    spine = design.spine
    metadata = {
        "stirred.design": design.digest,
        "stirred.law": "discrete Gaussian with the variance parameter of each row",
        "stirred.level": spine.levels[level],
        "stirred.publishable": "yes" if publishable else "no: made with a test seed or of unknown origin",
    }
    schema = pa.schema(
        [
            ("node", pa.string()),
            ("levels", pa.string()),
            ("query", pa.string()),
            ("variance", pa.string()),
            ("values", pa.list_(pa.int32())),
        ],
        metadata=metadata,
    )
    folder.mkdir(parents=True, exist_ok=True)
    with (
        replace_atomically(_path(folder, design, level)) as path,
        pq.ParquetWriter(path, schema, compression="zstd") as writer,
    ):
        for chunk in chunks:
            table = _rows(design, chunk, schema)
            writer.write_table(table, row_group_size=max(1, table.num_rows))


def _rows(design: Design, chunk: Chunk, schema: Any) -> Any:
    """A chunk as rows (node, query), queries outermost."""
    import pyarrow as pa

    level, spine = chunk.level, design.spine
    nodes = design.measured[level][chunk.start : chunk.stop]
    reaches = design.reach[level][nodes]
    names = [spine.code(level, int(node)) for node in nodes]
    parts = []
    for name in design.queries(level):
        size = design.cells.query(name).size
        scale = {
            int(r): design.allocation.variances(design.chain(level, int(r))).get(name)
            for r in np.unique(reaches)
        }
        flat = pa.array(np.ascontiguousarray(chunk.values[name]).reshape(-1))
        offsets = pa.array(np.arange(nodes.size + 1, dtype=np.int32) * np.int32(size))
        variances = [scale[int(r)] for r in reaches]
        parts.append(
            pa.Table.from_arrays(
                [
                    pa.array(names, pa.string()),
                    pa.array(["+".join(design.chain(level, int(r))) for r in reaches], pa.string()),
                    pa.array([name] * nodes.size, pa.string()),
                    pa.array([None if v is None else str(v) for v in variances], pa.string()),
                    pa.ListArray.from_arrays(offsets, flat),
                ],
                schema=schema,
            )
        )
    return pa.concat_tables(parts)


def _check_file(design: Design, level: int, path: Path) -> bool:
    """Refuse a file that is damaged, of another design, or cut differently; says if it is publishable."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        raise InputError(
            f"the measurements of level {design.spine.levels[level]} cannot be read",
            field="measurements",
            expected="a well-formed Parquet file",
            hint="Copy the file again from where it was written.",
        ) from None
    if (found.metadata or {}).get(b"stirred.design", b"").decode() != design.digest:
        raise InputError(
            "the measurements were made for another design",
            field="measurements",
            expected="the same schema, geography and budget",
            hint="Use the plan that they were made with.",
        )
    queries = len(design.queries(level))
    expected = [(stop - start) * queries for start, stop in design.chunks(level)]
    if [found.row_group(i).num_rows for i in range(found.num_row_groups)] != expected:
        raise InputError(
            f"the measurements of level {design.spine.levels[level]} are cut into other chunks",
            field="measurements",
            expected="the file as it was written, by this version",
            hint="Use the original file; do not sort, filter or rewrite it.",
        )
    return (found.metadata or {}).get(b"stirred.publishable") == b"yes"


def _read_chunk(design: Design, level: int, number: int, folder: Path) -> Chunk:
    import pyarrow.parquet as pq

    start, stop = design.chunks(level)[number]
    count = stop - start
    column = pq.ParquetFile(_path(folder, design, level)).read_row_group(number, columns=["values"])
    lists = column.column("values").combine_chunks()
    flat = lists.flatten().to_numpy(zero_copy_only=False)
    values, position = {}, 0
    for name in design.queries(level):
        size = design.cells.query(name).size
        values[name] = flat[position : position + count * size].reshape(count, size)
        position += count * size
    return Chunk(level, start, stop, values)
