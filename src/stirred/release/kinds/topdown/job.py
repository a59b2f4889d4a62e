"""A plan that runs TopDown, as a job of a release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.data import Exposures, Histogram, count_cells, levels_of, read_table
from stirred.errors import InputError
from stirred.extras import require
from stirred.places import inside, slug
from stirred.release.job import Job, Members, Progress, require_recounted, with_bases
from stirred.release.kinds.topdown import audits
from stirred.release.kinds.topdown.excerpt import on_branch
from stirred.release.kinds.topdown.report import (
    BudgetShare,
    LevelOfGeography,
    budget_section,
    geography_section,
)
from stirred.release.kinds.topdown.section import TopDownSection
from stirred.release.product import Product, meanings_of, require_free
from stirred.report import Expected, Facts, InternalRecord, PublishedFile
from stirred.spec import Release, Specification, Uncertainty, plural
from stirred.topdown import (
    Chunk,
    Design,
    Estimates,
    Invariant,
    Measurements,
    Noisy,
    Public,
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

if TYPE_CHECKING:
    from stirred.audit import Finding
    from stirred.noise import Source
    from stirred.release.plan import Plan

FOLDER = "measurements"
CHUNKS = 3


class Noise(dict[tuple[str, str, str, Fraction], NDArray[np.int64]]):
    """Noise by unit, level, query and variance parameter: a table of nodes by counts each.

    ``counted`` has, for each, which of the true counts are not zero.
    """

    def __init__(self) -> None:
        super().__init__()
        self.counted: dict[tuple[str, str, str, Fraction], NDArray[np.bool_]] = {}


class TopDownJob(Job):
    """Measure, estimate, tabulate."""

    section: TopDownSection

    def __init__(self, plan: Plan, folder: Path, dataset: Any = None) -> None:
        require("topdown")
        super().__init__(plan, folder, dataset)

    @cached_property
    def mechanism(self) -> TopDown:
        """The mechanism; reads the public geography."""
        made = self.section.mechanism(self.folder, self.plan.domain, self.plan.stage)
        for table in self.section.tables:
            require_free((table.level, *made.units[table.unit].schema.names))
        return made

    def read(self) -> Mapping[str, Any]:
        """The confidential tables, by unit."""
        return self.section.data(self.folder)

    def tables(self) -> Mapping[str, Any]:
        """The tables of protected units, with every column of their files and as the plan names them.

        What is only counted is public: another data set may well have the same.
        """
        leaf, data = self.mechanism.spine.levels[-1], self.dataset
        out = {}
        for universe in self.mechanism.universes:
            out[universe.unit] = data[universe.unit]
            out[f"{universe.unit}, as named"] = data[universe.unit].select(leaf, *universe.schema.names)
        return out

    def public_files(self) -> tuple[str, ...]:
        """The geography, unless its path does not depend on the folder."""
        file = self.section.geography.file
        return () if Path(file).is_absolute() else (file,)

    def on(self, dataset: Mapping[str, Any], folder: Path | None = None) -> TopDownJob:
        """The same job on other tables, which stay in memory; elsewhere, the geography is read again."""
        other = super().on(dataset, folder)
        if folder is None:
            other.mechanism = self.mechanism
        return other

    def specification(self) -> Specification:
        """The guarantee: it does not depend on the data, and none are read."""
        return self.mechanism.guarantee()

    def facts(self) -> Facts:
        """Budget, geography, exact statistics and expected errors; no data are read."""
        mechanism = self.mechanism
        exact = []
        for constraint in mechanism.constraints:
            if isinstance(constraint, Invariant):
                cells = mechanism.units[constraint.count.unit]
                level, query, _ = split_count(constraint.count, cells, mechanism.spine)
                exact.append((constraint.count.sentence(), mechanism.spine.size(level) * query.size))
        budgets = {f"budget of {plural(u.unit)} (ρ²)": u.allocation.rho_squared for u in mechanism.universes}
        return Facts(
            mechanism="TopDown",
            settings={"estimator": self.section.estimator, **budgets},
            exact=with_bases(exact, self.plan),
            constraints=tuple(c.sentence() for c in mechanism.constraints if not isinstance(c, Invariant)),
            expected=tuple(Expected(t.title, self._uncertainty(t)) for t in self.section.tables),
            sections=(budget_section(self._shares()), geography_section(self._levels())),
        )

    def _shares(self) -> list[BudgetShare]:
        return [
            BudgetShare(
                (plural(universe.unit), level, query),
                universe.allocation.rho(level, query),
                float(universe.allocation.variance(level, query)) ** 0.5,
            )
            for universe in self.mechanism.universes
            for level, queries in universe.allocation.queries.items()
            for query in queries
        ]

    def _levels(self) -> list[LevelOfGeography]:
        spine = self.mechanism.spine
        return [
            LevelOfGeography(name, spine.size(i), int(spine.only_child(i).sum()))
            for i, name in enumerate(spine.levels)
        ]

    def _uncertainty(self, table: TablePlan) -> Uncertainty:
        """The noise of a table's own measurement, where it is measured: the error is about that or less."""
        if self._invariant(table):
            return Uncertainty.exact("the table follows from an invariant")
        universe = next(u for u in self.mechanism.universes if u.unit == table.unit)
        name = self.mechanism.units[table.unit].canonical(table.query)
        if name not in universe.allocation.queries[table.level]:
            return Uncertainty("estimate", note="not measured itself: added up from finer measurements")
        deviation = float(universe.allocation.variance(table.level, name)) ** 0.5
        note = "the noise of its own measurement; estimation uses more than that"
        return Uncertainty("estimate", deviation, note=note)

    def _invariant(self, table: TablePlan) -> bool:
        """Whether a declared invariant of this level, or of a finer one, gives every count of a table."""
        mechanism = self.mechanism
        cells, level = mechanism.units[table.unit], mechanism.spine.levels.index(table.level)
        for declared in mechanism.constraints:
            if isinstance(declared, Invariant) and declared.count.unit == table.unit:
                fine, query, where = split_count(declared.count, cells, mechanism.spine)
                if not where and fine >= level and set(cells.query(table.query).parts) <= set(query.parts):
                    return True
        return False

    def require_complete(self) -> None:
        """Refuse a stage of its own (that of the plan counts), and what the geography shows to be wrong."""
        if self.section.stage is not None:
            raise InputError(
                "the mechanism has a stage of its own",
                field="mechanism.stage",
                expected="the stage of the data in the plan itself, once",
                hint="Move it to the key stage of the plan.",
            )
        if (self.folder / self.section.geography.file).is_file():
            _ = self.mechanism

    def exposures(self) -> Exposures:
        """What the values of the invariants determine and expose."""
        return exposures_of(self.mechanism, self.prepared)

    def room(self) -> int:
        """Measurements, microdata and documents."""
        return self.mechanism.room(self.prepared)

    def draw(self, source: Source, folder: Path) -> Noisy:
        """Measure into the folder of public measurements."""
        return self.mechanism.draw(self.prepared, source, folder / FOLDER)

    def recall(self, folder: Path) -> Noisy:
        """Measurements of the same design, from their files."""
        return self.mechanism.recall(folder)

    def added_noise(self, source: Source, folder: Path, largest: int) -> Noise:
        """What one draw adds to the counts of every query, about so many of each at most: for audits."""
        counts, out = self.prepared.counts, Noise()
        for unit, made in self.draw(source, folder).measurements.items():
            for level in range(made.design.spine.depth):
                _add(out, unit, made.design, made.level(level), counts[unit][level], largest)
        return out

    def added_again(self, unit: str, level: int, source: Source, largest: int) -> Noise:
        """What another draw of a level adds, in memory, in chunks from the first to the last: for audits."""
        number = list(self.mechanism.designs).index(unit)
        design, truth, out = self.mechanism.designs[unit], self.prepared.counts[unit][level], Noise()
        chunks = measured_again(design, level, truth, source.child(number), CHUNKS)
        _add(out, unit, design, chunks, truth, largest)
        return out

    def finish(self, primitive: Noisy, public: Public, progress: Progress | None = None) -> Release:
        """Estimate from the measurements and the invariants."""
        return self.mechanism.finish(primitive, public, progress)

    def products(self, made: Release) -> Iterator[Product | PublishedFile]:
        """Microdata, tables with intervals, and the description of the measurements."""
        measurements = made.products["measurements"]
        for universe in self.mechanism.universes:
            unit = universe.unit
            title = f"Protected {unit.replace('_', ' ')} records"
            frame, meanings = made.products[unit].microdata(), meanings_of(universe.schema)
            yield Product(
                f"microdata/{slug(unit)}", "microdata", title, frame, made.uncertainty[unit], meanings
            )
            yield from _measurement_files(measurements[unit], unit, made.uncertainty["measurements"])
        intervals = {unit: estimator_of(m) for unit, m in measurements.items()}
        for table in self.section.tables:
            cells = self.mechanism.units[table.unit]
            gls = None if self._invariant(table) else intervals[table.unit]
            frame = table_with_intervals(made.products[table.unit], gls, table.level, table.query)
            yield Product(
                f"tables/{slug(table.name)}", "table", table.title, frame, self._uncertainty(table),
                meanings_of(cells.schema), table.level, cells.query(table.query).parts,
            )  # fmt: skip

    def assess(self, primitive: Noisy, made: Release) -> InternalRecord:
        """Errors by level, query and population, and the published tables against the truth."""
        errors = self.mechanism.assess(primitive, self.prepared, made)
        against = {}
        for table in self.section.tables:
            level = self.mechanism.spine.levels.index(table.level)
            query = self.mechanism.units[table.unit].query(table.query)
            sides = (self.prepared.counts[table.unit], made.products[table.unit].levels)
            true, protected = (side[level].grouped(query.groups, query.size).reshape(-1) for side in sides)
            against[table.title] = (true.tolist(), protected.tolist())
        frames = {unit: found.to_polars() for unit, found in errors.items()}
        means = {
            TablePlan(unit=unit, level=row["level"], query=row["query"]).title: float(row["mean_absolute"])
            for unit, frame in frames.items()
            for row in frame.filter(population="all").to_dicts()
        }
        return InternalRecord(frames, against, means)

    def recheck(self, folder: Path) -> None:
        """Hold the published records against invariants and bounds, and the tables against the records."""
        for unit, bounds in self.prepared.public.bounds.items():
            levels = _counted(inside(folder, f"microdata/{slug(unit)}.parquet"), self.mechanism, unit)
            bounds.check(levels)
            counts = Estimates(unit, self.mechanism.units[unit], self.mechanism.spine, levels)
            for table in self.section.tables:
                if table.unit == unit:
                    published = read_table(inside(folder, f"tables/{slug(table.name)}.parquet"), "tables")
                    require_recounted(published, counts.table(table.level, table.query), table.title)

    def excerpt(self, source: Source, folder: Path) -> TopDownJob:
        """The job on a branch of its geography."""
        return on_branch(self, source, folder)

    def audits(self, claim: Specification, source: Source, draws: int) -> list[Finding]:
        """Its universe, small public data sets that differ, and the noise it draws."""
        return audits.audits(self, claim, source, draws)

    def members(self, claim: Specification, source: Source) -> Members:
        """Records that exchange what no bound speaks of."""
        return audits.members(self, claim, source)


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


def _measurement_files(
    measurements: Measurements, unit: str, uncertainty: Uncertainty
) -> list[PublishedFile]:
    levels = measurements.design.spine.levels
    return [
        PublishedFile(
            f"{FOLDER}/{slug(unit)}/{file_of(number, level)}",
            FOLDER,
            f"Noisy measurements of {plural(unit)} by {level.replace('_', ' ')}",
            int(measurements.design.measured[number].size) * len(measurements.design.queries(number)),
            uncertainty=uncertainty,
        )
        for number, level in enumerate(levels)
    ]
