"""TopDown as a job of a release."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.data import Exposures, Histogram, count_cells, levels_of, read_table
from stirred.noise import Source
from stirred.places import inside, slug
from stirred.release.dictionary import meanings_of, write_table
from stirred.release.job import Expected, Facts, Progress, Published, with_bases
from stirred.release.plan import Plan, TopDownPlan
from stirred.report import BudgetShare, InternalRecord, LevelOfGeography, PublishedFile, PublishedTable
from stirred.spec import Budget, Release, Specification, plural
from stirred.topdown import (
    Chunk,
    Design,
    Invariant,
    Measurements,
    TablePlan,
    TopDown,
    estimator_of,
    exposures_of,
    file_of,
    measured_again,
    noise_of,
    split_count,
    table_with_intervals,
)

NOISE = "discrete Gaussian noise on every measured count, then estimation that adds no protection loss"


@dataclass(frozen=True, eq=False)
class Noisy:
    """The primitive output: noisy measurements and the values of the invariants."""

    measurements: dict[str, Measurements]
    invariants: dict[str, NDArray[np.int64]]


class Noise(dict[tuple[str, str, str, Fraction], NDArray[np.int64]]):
    """Noise by unit, level, query and variance parameter: a table of nodes by counts each.

    ``counted`` has, for each, which of the true counts are not zero.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counted: dict[tuple[str, str, str, Fraction], NDArray[np.bool_]] = {}


class TopDownJob:
    """Measure, estimate, tabulate."""

    def __init__(
        self,
        plan: Plan,
        settings: TopDownPlan,
        folder: Path,
        frames: Mapping[str, Any] | None = None,
        mechanism: TopDown | None = None,
    ) -> None:
        self.plan = plan
        self.settings = settings
        self.folder = folder
        self._frames = frames
        self._mechanism = mechanism

    @cached_property
    def mechanism(self) -> TopDown:
        """The mechanism; reads the public geography."""
        return self._mechanism or self.settings.mechanism(self.folder, self.plan.domain)

    @cached_property
    def _prepared(self) -> tuple[dict[str, tuple[Histogram, ...]], dict[str, NDArray[np.int64]]]:
        return self.mechanism.prepare(self.data())

    @cached_property
    def _read(self) -> Mapping[str, Any]:
        return self.settings.data(self.folder)

    def data(self) -> Mapping[str, Any]:
        """The confidential tables, by unit."""
        return self._read if self._frames is None else self._frames

    def tables(self) -> Mapping[str, Any]:
        """The tables of protected units, with every column of their files and as the plan names them.

        What is only counted is public: another data set may well have the same.
        """
        leaf, data = self.mechanism.spine.levels[-1], self.data()
        out = {}
        for universe in self.mechanism.universes:
            out[universe.unit] = data[universe.unit]
            out[f"{universe.unit}, as named"] = data[universe.unit].select(leaf, *universe.schema.names)
        return out

    def public_files(self) -> tuple[str, ...]:
        """The geography, unless its path does not depend on the folder."""
        file = self.settings.geography.file
        return () if Path(file).is_absolute() else (file,)

    def on(self, data: Mapping[str, Any], folder: Path | None = None) -> TopDownJob:
        """The same job on other tables, which stay in memory; elsewhere, the geography is read again."""
        same = self.mechanism if folder is None else None
        return TopDownJob(self.plan, self.settings, folder or self.folder, data, same)

    def specification(self) -> Specification:
        """The guarantee: it does not depend on the data."""
        return self.mechanism.guarantee()

    def least_budget(self) -> Budget:
        """The budget of the guarantee: it does not depend on the data."""
        return self.specification().budget

    def facts(self) -> Facts:
        """Budget, geography, exact statistics and expected errors; no data are read."""
        mechanism = self.mechanism
        exact = []
        for constraint in mechanism.constraints:
            if isinstance(constraint, Invariant):
                cells = mechanism.units[constraint.count.unit]
                level, query, _ = split_count(constraint.count, cells, mechanism.spine)
                exact.append((constraint.count.sentence(), mechanism.spine.size(level) * query.size))
        shares = tuple(
            BudgetShare(
                (plural(universe.unit), level, query),
                universe.allocation.rho(level, query),
                float(universe.allocation.variance(level, query)) ** 0.5,
            )
            for universe in mechanism.universes
            for level, queries in universe.allocation.queries.items()
            for query in queries
        )
        levels = tuple(
            LevelOfGeography(name, mechanism.spine.size(i), int(mechanism.spine.only_child(i).sum()))
            for i, name in enumerate(mechanism.spine.levels)
        )
        return Facts(
            mechanism="TopDown",
            settings={
                "estimator": self.settings.estimator,
                **{
                    f"budget of {plural(u.unit)} (ρ²)": str(u.allocation.rho_squared)
                    for u in mechanism.universes
                },
            },
            exact=with_bases(exact, self.plan),
            constraints=tuple(c.sentence() for c in mechanism.constraints if not isinstance(c, Invariant)),
            expected=tuple(self._expected(table) for table in self.settings.tables),
            budget=shares,
            geography=levels,
        )

    def exposures(self) -> Exposures:
        """What the values of the invariants determine and expose."""
        return exposures_of(self.mechanism, self._prepared[1])

    def _expected(self, table: TablePlan) -> Expected:
        """The noise of a table's own measurement, where it is measured: the error is about that or less."""
        universe = next(u for u in self.mechanism.universes if u.unit == table.unit)
        name = self.mechanism.units[table.unit].canonical(table.query)
        product = table.title
        if name in universe.allocation.queries[table.level]:
            deviation = float(universe.allocation.variance(table.level, name)) ** 0.5
            text = f"measured itself, with standard deviation {deviation:.3g}; estimation uses more than that"
            return Expected(product, text, deviation)
        return Expected(product, "not measured itself: added up from finer measurements", None)

    def require_presentable(self) -> None:
        """Nothing to refuse: records are made anew, from declared levels in public places."""

    def prepare(self) -> None:
        """Read the records and count them."""
        _ = self._prepared

    def room(self) -> int:
        """Measurements, microdata and documents."""
        return self.mechanism.room(self._prepared[0])

    def draw(self, source: Source, folder: Path) -> Noisy:
        """Measure into the folder of public measurements."""
        counts, invariants = self._prepared
        return Noisy(self.mechanism.measure(counts, source, folder / "measurements"), invariants)

    def added_noise(self, source: Source, folder: Path, largest: int) -> Noise:
        """What one draw adds to the counts of every query, about so many of each at most: for audits."""
        counts, out = self._prepared[0], Noise()
        for unit, made in self.draw(source, folder).measurements.items():
            for level in range(made.design.spine.depth):
                _add(out, unit, made.design, made.level(level), counts[unit][level], largest)
        return out

    def added_again(self, unit: str, level: int, source: Source, largest: int) -> Noise:
        """What another draw of one level adds, in memory: for audits."""
        number = list(self.mechanism.designs).index(unit)
        design, truth, out = self.mechanism.designs[unit], self._prepared[0][unit][level], Noise()
        _add(out, unit, design, measured_again(design, level, truth, source.child(number)), truth, largest)
        return out

    def _finished(self, primitive: Noisy, progress: Progress | None = None) -> Release:
        return self.mechanism.finish(primitive.measurements, primitive.invariants, progress)

    def publish(self, primitive: Noisy, folder: Path, progress: Progress | None = None) -> Published:
        """Microdata, tables with intervals, and the description of the measurements."""
        made = self._finished(primitive, progress)
        self._made = made
        files: list[PublishedFile] = []
        tables: list[PublishedTable] = []
        for universe in self.mechanism.universes:
            meanings = meanings_of(universe.schema)
            files += write_table(
                made.products[universe.unit].microdata(),
                folder,
                f"microdata/{slug(universe.unit)}",
                kind="microdata",
                title=f"Protected {universe.unit.replace('_', ' ')} records",
                uncertainty=NOISE,
                meanings=meanings,
                csv=False,
            )
            files += _measurement_files(primitive.measurements[universe.unit], universe.unit)
        intervals = {unit: estimator_of(m) for unit, m in primitive.measurements.items()}
        for table in self.settings.tables:
            frame = table_with_intervals(
                made.products[table.unit], intervals[table.unit], table.level, table.query
            )
            files += write_table(
                frame,
                folder,
                f"tables/{slug(table.name)}",
                kind="table",
                title=table.title,
                uncertainty=self._expected(table).sentence,
                meanings=meanings_of(self.mechanism.units[table.unit].schema),
            )
            parts = self.mechanism.units[table.unit].query(table.query).parts
            tables.append(PublishedTable(table.title, table.level, parts, frame))
        return Published(tuple(files), tuple(tables))

    def recheck(self, folder: Path) -> None:
        """Hold the published records against the invariants and bounds of the data."""
        _, invariants = self._prepared
        for unit, bounds in self.mechanism.bounds(invariants).items():
            bounds.check(_counted(inside(folder, f"microdata/{slug(unit)}.parquet"), self.mechanism, unit))

    def diagnose(self, primitive: Noisy) -> InternalRecord:
        """Errors by level, query and population, and the published tables against the truth."""
        counts, _ = self._prepared
        made = getattr(self, "_made", None) or self._finished(primitive)
        errors = self.mechanism.assess(counts, made).diagnostics
        against = {}
        for table in self.settings.tables:
            level = self.mechanism.spine.levels.index(table.level)
            query = self.mechanism.units[table.unit].query(table.query)
            true = counts[table.unit][level].grouped(query.groups, query.size).reshape(-1)
            protected = made.products[table.unit].levels[level].grouped(query.groups, query.size).reshape(-1)
            against[table.title] = (true.tolist(), protected.tolist())
        return InternalRecord({unit: e.to_polars() for unit, e in errors.items()}, against)


def _add(
    out: Noise, unit: str, design: Design, chunks: Iterable[Chunk], truth: Histogram, largest: int
) -> None:
    """Of every query the nodes of a level at equal steps, so many that their counts are about the largest."""
    for chunk in chunks:
        nodes = design.measured[chunk.level].size
        for query, variance, noise, counted in noise_of(design, chunk, truth):
            key = unit, design.spine.levels[chunk.level], query, variance
            step = max(1, -(-nodes * noise.shape[1] // max(largest, noise.shape[1])))
            rows = slice(-chunk.start % step, None, step)
            for table, found in ((out, noise), (out.counted, counted)):
                known = [table[key]] if key in table else []
                table[key] = np.concatenate([*known, found[rows]])


def _counted(microdata: Path, mechanism: TopDown, unit: str) -> tuple[Histogram, ...]:
    """The published records of a unit, counted like the confidential ones."""
    cells, spine = mechanism.units[unit], mechanism.spine
    frame = read_table(microdata, f"microdata.{unit}")
    return levels_of(count_cells(frame, cells.schema, spine, spine.levels[-1]), spine)


def _measurement_files(measurements: Measurements, unit: str) -> list[PublishedFile]:
    levels = measurements.design.spine.levels
    return [
        PublishedFile(
            f"measurements/{slug(unit)}/{file_of(number, level)}",
            "measurements",
            f"Noisy measurements of {plural(unit)} by {level.replace('_', ' ')}",
            int(measurements.design.measured[number].size),
            uncertainty="discrete Gaussian noise with the variance parameter of each row",
        )
        for number, level in enumerate(levels)
    ]
