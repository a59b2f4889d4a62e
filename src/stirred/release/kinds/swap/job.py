"""A plan that swaps, as a job of a release."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from stirred.data import Exposures, code_columns, compare_counts, read_table, require_levels
from stirred.errors import InputError, Refusal
from stirred.places import inside, slug, slugs
from stirred.release.job import Job, Members, require_recounted, with_bases
from stirred.release.kinds.swap import audits
from stirred.release.kinds.swap.excerpt import some_strata
from stirred.release.kinds.swap.report import swap_section
from stirred.release.kinds.swap.section import SwapSection, parts_of, table_file
from stirred.release.product import Product, meanings_of, require_free
from stirred.report import Expected, Facts, InternalRecord
from stirred.spec import Budget, Release, as_fraction, declared_invariants, plural, swapping_loss
from stirred.swap import (
    PermutationSwap,
    Prepared,
    Records,
    Swapped,
    counted,
    least_loss,
    rates_for,
    require_hold,
    require_presentable,
    require_whole,
    table_key,
    tighter_loss,
    verify,
    with_named_persons,
)

if TYPE_CHECKING:
    from fractions import Fraction

    from stirred.audit import Finding
    from stirred.noise import Source
    from stirred.spec import Specification


TRIALS = {"imputed": None, "missing": "error", "allow_infinite_loss": False}


class SwapJob(Job):
    """Swap, tabulate."""

    section: SwapSection

    @cached_property
    def _persons_file(self) -> pl.DataFrame:
        """Persons with every column: what is drawn from, and what the ledger knows again, are one reading."""
        return read_table(self.folder / str(self.section.persons), "persons")

    def read(self) -> Records:
        """Households, and of persons the columns that the plan names."""
        s = self.section
        require_hold(s.hold)
        persons = None if s.persons is None else self._persons()
        records = Records.of(self.folder / s.households, persons, s.id)
        if s.hold_persons is not None or (persons is not None and s.codebook is None):
            records = with_named_persons(records, s.swap, s.hold_persons)
            if records.persons is not None:
                code_columns(records.persons, s.hold_persons or (), missing=s.missing)
        return records

    def _persons(self) -> pl.DataFrame:
        """Persons; with a codebook its columns alone, besides the places that move and the identifier."""
        s, frame = self.section, self._persons_file
        if s.codebook is None:
            return frame
        named = [c for c in frame.columns if c in {*s.codebook.names, *s.swap} and c != s.id]
        require_levels(frame, s.codebook, named)
        return frame.select(*([s.id] if s.id in frame.columns else []), *named)

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """Households and persons with every column of their files; households also as the plan names them."""
        records, s = self.dataset, self.section
        out = {"households": records.households}
        if records.persons is not None:
            given = self._dataset is not None or s.persons is None
            out["persons"] = records.persons if given else self._persons_file
        out["households, as named"] = records.households.select(s.roles)
        return out

    @cached_property
    def prepared(self) -> Prepared:
        """The records with their strata, formed once; where a loss is aimed at, at the rate that attains it.

        Of the two rates that do, it is the smaller.
        """
        formed = self._swap(self.section.rate or "1/2").prepare(self.dataset)
        if self.section.rate is not None:
            return formed
        return formed.at_rate(rates_for(formed.strata.largest, self.section.target_epsilon)[0])

    @cached_property
    def mechanism(self) -> PermutationSwap:
        """The mechanism with its rate."""
        return self.prepared.swap if self.section.rate is None else self._swap(self.section.rate)

    def _swap(self, rate: object) -> PermutationSwap:
        s = self.section
        return PermutationSwap(
            match=s.match, swap=s.swap, hold=s.hold, rate=rate, unit=s.unit, imputed=s.imputed,
            nesting=s.nesting, loss=s.loss, missing=s.missing, codebook=s.codebook, stage=self.plan.stage,
            domain=self.plan.domain, tables=s.tables, by=s.by, allow_infinite_loss=s.allow_infinite_loss,
        )  # fmt: skip

    @property
    def rate(self) -> Fraction:
        """The swap rate."""
        return as_fraction(self.mechanism.rate)

    def least_budget(self) -> Budget:
        """The loss for the smallest strata in which records can be told apart; where sought, at any rate."""
        if self.section.rate is None:
            return Budget.epsilon(least_loss(2))
        loss = tighter_loss if self.section.loss == "tighter" else swapping_loss
        return Budget.epsilon(loss(2, self.rate))

    def facts(self) -> Facts:
        """Strata, exact tables, and how many records move; from the invariants alone."""
        report, s = self.prepared.report, self.section
        invariants = declared_invariants(self.specification().multiverse) or ()
        figures = {True: report.swap_cells, False: report.hold_cells}
        exact = [(i.sentence(), figures[set(s.swap) <= set(i.needs())]) for i in invariants]
        return Facts(
            mechanism="Permutation swapping",
            settings={
                "swap rate": self.rate,
                "matched": ", ".join(s.match) or "nothing",
                "swapped": ", ".join(s.swap),
                "strata": report.strata,
            },
            exact=with_bases(exact, self.plan),
            expected=tuple(
                Expected(self._title(table), self.prepared.public.uncertainty[parts_of(table)])
                for table in s.tables
            ),
            sections=(swap_section(self.rate, report.largest_stratum),),
        )

    def exposures(self) -> Exposures:
        """What the two exact tables of every stratum determine and expose."""
        return Exposures((self.prepared.report.exposure,))

    def require_complete(self) -> None:
        """Refuse columns and places that nobody named, before any data are read."""
        s = self.section
        if s.hold is None:
            raise InputError(
                "the plan does not say which columns stay with their record",
                field="mechanism.hold",
                expected="the names of the columns to publish",
                hint="List them: a column that the plan does not name is never published.",
            )
        if s.persons is not None and s.codebook is None and s.hold_persons is None:
            raise InputError(
                "the plan does not say which columns of persons are published",
                field="mechanism.codebook",
                expected="a codebook that lists them",
                hint="List every column with a role and every column of persons to publish.",
            )
        self._require_whole()
        for name, usual in TRIALS.items():
            if getattr(s, name) != usual:
                raise InputError(
                    f"{name} is for trials: the audits of a plan do not know it",
                    field=f"mechanism.{name}",
                    expected="a plan without it",
                    hint="Try it with `stirred swap run`.",
                )
        if s.by is not None and (s.persons is not None or s.by not in s.roles):
            raise InputError(
                f"the households cannot be divided by {s.by}",
                field="mechanism.by",
                expected="a matching, holding or swapping variable, and no persons",
                hint="Name a place that is matched or swapped; persons are written in one file.",
            )
        for table in s.tables:
            require_free(parts_of(table))
            for part in parts_of(table):
                if part not in s.roles:
                    raise InputError(
                        f"the table {table} names {part}, which has no role in the swap",
                        field="mechanism.tables",
                        expected="matching, holding or swapping variables joined by *",
                        hint="Correct the name, or give the column a role.",
                    )

    def _require_whole(self) -> None:
        """Refuse roles that tear declared places apart."""
        s, schema = self.section, self.plan.domain.record_schema if self.plan.domain is not None else None
        nesting = (*(s.nesting or ()), *(schema.nesting if schema is not None else ()))
        if s.nesting is None and not nesting:
            # Whether the records look nested depends on the link that swapping hides, and all see a release.
            raise InputError(
                "the plan does not say which places lie in others",
                field="mechanism.nesting",
                expected="pairs of columns, the finer first, or [] if nothing is nested",
                hint="For example nesting: [[block, tract]]; places that travel apart show which records "
                "moved.",
            )
        listed = s.codebook.names if s.persons is not None and s.codebook else ()
        persons = [name for name in (*listed, *(s.hold_persons or ())) if name not in {*s.roles, s.id}]
        require_whole(nesting, s.match, s.swap, s.hold or (), persons)

    def require_presentable(self) -> None:
        """Refuse identifiers, and places that look nested where nobody said so."""
        require_presentable(self.prepared)

    def room(self) -> int:
        """The records, and each table at most once more."""
        return self.prepared.records.room * (1 + len(self.section.tables))

    def products(self, made: Release) -> Iterator[Product]:
        """Protected records and tables of them."""
        s, meanings = self.section, meanings_of(self.section.codebook)
        for name in ("households", "persons"):
            if name in made.products:
                for path, title, frame in self._files(name, made.products):
                    yield Product(path, "microdata", title, frame, made.uncertainty[name], meanings)
        for table in s.tables:
            level, *parts = parts_of(table)
            key = table_key((level, *parts))
            yield Product(
                f"tables/{slug(table_file(table))}", "table", self._title(table), made.products[key],
                made.uncertainty[key], meanings, level, tuple(parts),
            )  # fmt: skip

    def _files(self, name: str, products: Mapping[str, Any]) -> Iterator[tuple[str, str, pl.DataFrame]]:
        """The files of one frame: one, or for households one a part."""
        frame, parts = products[name], products.get("parts", ()) if name == "households" else ()
        if not parts:
            yield f"microdata/{name}", f"Swapped {name}", frame
            return
        titles = [f"{self.section.by}={value}" for value, _, _ in parts]
        for title, path, (_, start, count) in zip(titles, slugs(titles), parts, strict=True):
            yield f"microdata/{path}", f"Swapped households: {title}", frame.slice(start, count)

    def _title(self, table: str) -> str:
        return f"{plural(self.section.unit)}: {table}".capitalize()

    def assess(self, primitive: Swapped, made: Release) -> InternalRecord:
        """Errors of the published tables against the truth."""
        pairs = self.mechanism.assess(primitive, self.prepared, made)
        rows = [{"table": table} | compare_counts(*pair).record() for table, pair in pairs.items()]
        against = {table: (true.tolist(), swapped.tolist()) for table, (true, swapped) in pairs.items()}
        errors = {self._title(str(row["table"])): float(row["mean_absolute"]) for row in rows}
        return InternalRecord({"tables": pl.DataFrame(rows)} if rows else {}, against, errors)

    def recheck(self, folder: Path) -> None:
        """Recount both families of invariant tables, and every published table, on the published records."""
        files = sorted((folder / "microdata").glob("*.parquet" if self.section.by else "households.parquet"))
        frames = [read_table(file, "microdata.households") for file in files]
        for file, frame in zip(files, frames, strict=True) if self.section.by else ():
            self._require_own(file.stem, frame)
        households = pl.concat(frames) if frames else self.prepared.records.households.head(0)
        verify(self.prepared, households)
        for table in self.section.tables:
            path = inside(folder, f"tables/{slug(table_file(table))}.parquet")
            require_recounted(read_table(path, "tables"), counted(households, parts_of(table)), table)

    def _require_own(self, name: str, frame: pl.DataFrame) -> None:
        """Refuse a file of a part in which records of another stand."""
        values = frame[str(self.section.by)].unique().to_list()
        if len(values) != 1 or not name.startswith(slugs([f"{self.section.by}={values[0]}"])[0]):
            raise Refusal(
                "a file of a part holds records of another part",
                field="by",
                expected=f"records of one {self.section.by} in the file that is named after it",
                hint="The release contradicts itself: do not use it.",
            )

    def excerpt(self, source: Source, folder: Path) -> SwapJob:
        """The job on some strata, drawn at random; on a part of one where that is too large."""
        return some_strata(self, source)

    def audits(self, claim: Specification, source: Source, draws: int) -> list[Finding]:
        """Its universe, its claim at full size, small twins, and what it draws."""
        return audits.audits(self, claim, source, draws)

    def members(self, claim: Specification, source: Source) -> Members:
        """Places dealt out anew within every stratum."""
        return audits.members(self, claim, source)
