"""Permutation swapping as a job of a release."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from stirred.data import Exposures, compare_tables, read_table, require_columns, require_levels, tabulate
from stirred.errors import InputError
from stirred.noise import Source
from stirred.places import slug
from stirred.release.dictionary import meanings_of, write_table
from stirred.release.job import Expected, Facts, Progress, Published, with_bases
from stirred.release.plan import Plan, SwapPlan, parts_of, table_file
from stirred.report import InternalRecord, PublishedFile, PublishedTable
from stirred.spec import Budget, Specification, as_fraction, declared_invariants, plural, swapping_loss
from stirred.swap import (
    PermutationSwap,
    Records,
    least_loss,
    rates_for,
    require_presentable,
    require_whole,
    swap_probability,
    tighter_loss,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from stirred.swap import InvariantReport


@dataclass(frozen=True)
class Swapped:
    """The primitive output: the swapped records, in fresh random order with fresh identifiers."""

    households: pl.DataFrame
    persons: pl.DataFrame | None


class SwapJob:
    """Swap, tabulate."""

    def __init__(self, plan: Plan, settings: SwapPlan, folder: Path, records: Records | None = None) -> None:
        self.plan = plan
        self.settings = settings
        self.folder = folder
        self._given = records
        _require_named_columns(settings)
        _require_whole(plan, settings)
        for table in settings.tables:
            for part in parts_of(table):
                if part not in (*settings.match, *settings.swap, *(settings.hold or ())):
                    raise InputError(
                        f"the table {table} names {part}, which has no role in the swap",
                        field="mechanism.tables",
                        expected="matching, holding or swapping variables joined by *",
                        hint="Correct the name, or give the column a role.",
                    )

    @cached_property
    def _records(self) -> Records:
        if self._given is not None:
            return self._given
        persons = (
            None if self.settings.persons is None else self._persons(self.folder / self.settings.persons)
        )
        return Records.of(self.folder / self.settings.households, persons, self.settings.id)

    def data(self) -> Records:
        """The confidential records."""
        return self._records

    def tables(self) -> dict[str, pl.DataFrame]:
        """Households and persons with every column of their files; households also as the plan names them."""
        out = {"households": self._records.households}
        if self._records.persons is not None:
            given = self._records.persons if self._given is not None else None
            file = self.folder / (self.settings.persons or "")
            out["persons"] = read_table(file, "persons") if given is None else given
        s = self.settings
        out["households, as named"] = self._records.households.select(*s.match, *s.swap, *(s.hold or ()))
        return out

    def public_files(self) -> tuple[str, ...]:
        """None: a swap reads records only."""
        return ()

    def on(self, data: Records, folder: Path | None = None) -> SwapJob:
        """The same job on other records, which stay in memory."""
        return SwapJob(self.plan, self.settings, folder or self.folder, data)

    def _persons(self, path: Path) -> pl.DataFrame:
        """The columns of persons that the plan names: the codebook, the places that move, the identifier."""
        s = self.settings
        assert s.codebook is not None
        frame, listed = read_table(path, "persons"), {a.name for a in s.codebook.attributes}
        named = [c for c in frame.columns if c in listed | set(s.swap) and c != s.id]
        require_levels(frame, s.codebook, named)
        return frame.select(*([s.id] if s.id in frame.columns else []), *named)

    def _mechanism(self, rate: object) -> PermutationSwap:
        s = self.settings
        return PermutationSwap(
            match=s.match, swap=s.swap, hold=s.hold, rate=rate, unit=s.unit, nesting=s.nesting, loss=s.loss,
            codebook=s.codebook, stage=self.plan.stage, domain=self.plan.domain,
        )  # fmt: skip

    @cached_property
    def rate(self) -> Fraction:
        """The swap rate; where a loss is aimed at, the smaller of the two rates that attain it."""
        if self.settings.rate is not None:
            return as_fraction(self.settings.rate)
        largest = self._mechanism("1/2").report(self._records).largest_stratum
        return rates_for(largest, self.settings.target_epsilon)[0]

    @cached_property
    def mechanism(self) -> PermutationSwap:
        """The mechanism with its rate."""
        return self._mechanism(self.rate)

    @cached_property
    def _report(self) -> InvariantReport:
        return self.mechanism.report(self._records)

    def specification(self) -> Specification:
        """The guarantee, from the sizes of the strata: functions of the invariants."""
        return self.mechanism.guarantee(self._records)

    def least_budget(self) -> Budget:
        """The loss for the smallest strata in which records can be told apart; where sought, at any rate."""
        if self.settings.rate is None:
            return Budget.epsilon(least_loss(2))
        loss = tighter_loss if self.settings.loss == "tighter" else swapping_loss
        return Budget.epsilon(loss(2, self.rate))

    def facts(self) -> Facts:
        """Strata, exact tables, and how many records move; from the invariants alone."""
        report, invariants = self._report, declared_invariants(self.specification().multiverse) or ()
        figures = {True: report.swap_cells, False: report.hold_cells}
        exact = [(i.sentence(), figures[set(self.settings.swap) <= set(i.needs())]) for i in invariants]
        moved = float(swap_probability(max(report.largest_stratum, 2), self.rate))
        return Facts(
            mechanism="Permutation swapping",
            settings={
                "swap rate": str(self.rate),
                "matched": ", ".join(self.settings.match) or "nothing",
                "swapped": ", ".join(self.settings.swap),
                "strata": f"{report.strata:,}",
            },
            exact=with_bases(exact, self.plan),
            constraints=(),
            expected=tuple(self._expected(table, moved) for table in self.settings.tables),
            swap_rate=self.rate,
            largest_stratum=report.largest_stratum,
        )

    def exposures(self) -> Exposures:
        """What the two exact tables of every stratum determine and expose."""
        return Exposures((self._report.exposure,))

    def _expected(self, table: str, moved: float) -> Expected:
        parts = set(parts_of(table))
        swapped = parts & set(self.settings.swap)
        held = parts - set(self.settings.swap) - set(self.settings.match)
        if not swapped or not held:
            return Expected(table, "exact: the table is invariant under swapping", 0.0)
        text = f"in a large stratum each record changes places with probability {moved:.3g}"
        return Expected(table, text)

    def require_presentable(self) -> None:
        """Refuse identifiers, and places that look nested where nobody said so."""
        require_presentable(self.mechanism, self.mechanism.prepare(self._records))

    def prepare(self) -> None:
        """Read the records and form the strata."""
        self.mechanism.prepare(self._records)

    def room(self) -> int:
        """The records, and each table at most once more."""
        return self._records.room * (1 + len(self.settings.tables))

    def draw(self, source: Source, folder: Path) -> Swapped:
        """Swap the records."""
        made = self.mechanism.release(self._records, source)
        return Swapped(made.products["households"], made.products.get("persons"))

    def publish(self, primitive: Swapped, folder: Path, progress: Progress | None = None) -> Published:
        """Protected records and tables of them."""
        meanings = meanings_of(self.settings.codebook)
        files: list[PublishedFile] = []
        for name, frame in (("households", primitive.households), ("persons", primitive.persons)):
            if frame is not None:
                files += write_table(
                    frame,
                    folder,
                    f"microdata/{name}",
                    kind="microdata",
                    title=f"Swapped {name}",
                    uncertainty="places of selected records are permuted within strata",
                    meanings=meanings,
                    csv=False,
                )
        tables = []
        for table in self.settings.tables:
            parts = parts_of(table)
            require_columns(primitive.households, parts, "mechanism.tables")
            frame = tabulate(primitive.households, parts)
            frame = frame.rename({frame.columns[-1]: "count"})
            files += write_table(
                frame,
                folder,
                f"tables/{slug(table_file(table))}",
                kind="table",
                title=self._title(table),
                uncertainty=self._expected(table, float(self.rate)).sentence,
                meanings=meanings,
            )
            tables.append(PublishedTable(self._title(table), parts[0], tuple(parts[1:]), frame))
        return Published(tuple(files), tuple(tables))

    def recheck(self, folder: Path) -> None:
        """Recount both families of invariant tables on the published records."""
        households = read_table(folder / "microdata" / "households.parquet", "microdata.households")
        self.mechanism.verify(self.mechanism.prepare(self._records), households)

    def _title(self, table: str) -> str:
        return f"{plural(self.settings.unit)}: {table}".capitalize()

    def diagnose(self, primitive: Swapped) -> InternalRecord:
        """Errors of the published tables against the truth."""
        true, rows, against = self._records.households, [], {}
        for table in self.settings.tables:
            parts = parts_of(table)
            rows.append({"table": table} | compare_tables(true, primitive.households, parts).record())
            both = (
                tabulate(true, parts)
                .join(
                    tabulate(primitive.households, parts), on=parts, how="full", coalesce=True, suffix="_made"
                )
                .fill_null(0)
            )
            count = next(c for c in both.columns if c.endswith("_made")).removesuffix("_made")
            against[table] = (both[count].to_list(), both[f"{count}_made"].to_list())
        return InternalRecord({"tables": pl.DataFrame(rows)} if rows else {}, against)


def _require_named_columns(settings: SwapPlan) -> None:
    """Refuse a plan that would publish columns it does not name."""
    if settings.hold is None:
        raise InputError(
            "the plan does not say which columns stay with their record",
            field="mechanism.hold",
            expected="the names of the columns to publish",
            hint="List them: a column that the plan does not name is never published.",
        )
    if settings.persons is not None and settings.codebook is None:
        raise InputError(
            "the plan does not say which columns of persons are published",
            field="mechanism.codebook",
            expected="a codebook that lists them",
            hint="List every column with a role and every column of persons to publish.",
        )


def _require_whole(plan: Plan, settings: SwapPlan) -> None:
    """Refuse roles that tear declared places apart, before any data are read."""
    schema = plan.domain.record_schema if plan.domain is not None else None
    nesting = (*(settings.nesting or ()), *(schema.nesting if schema is not None else ()))
    if settings.nesting is None and not nesting:
        # Whether the records look nested depends on the link that swapping hides, and all see a release.
        raise InputError(
            "the plan does not say which places lie in others",
            field="mechanism.nesting",
            expected="pairs of columns, the finer first, or [] if nothing is nested",
            hint="For example nesting: [[block, tract]]; places that travel apart show which records moved.",
        )
    roles = {*settings.match, *settings.swap, *(settings.hold or ()), settings.id}
    listed = settings.codebook.names if settings.persons is not None and settings.codebook else ()
    persons = [name for name in listed if name not in roles]
    require_whole(nesting, settings.match, settings.swap, settings.hold or (), persons)
