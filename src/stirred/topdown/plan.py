"""A plan for TopDown: geography, units with their files and budgets, constraints, tables to publish.

Written in YAML or JSON. Numbers with a decimal point are read exactly, as decimals and not as floats. Paths
are relative to the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from stirred.data import Spine, read_table, require_columns
from stirred.documents import read_mapping
from stirred.errors import InputError
from stirred.places import clash
from stirred.spec import Block, Domain, Schema, Stage, as_fraction, plural
from stirred.topdown.budget import Allocation
from stirred.topdown.cells import Cells
from stirred.topdown.constraint import Constraint, Declared, Invariant, as_constraints
from stirred.topdown.estimation import Settings
from stirred.topdown.mechanism import TopDown, Universe
from stirred.topdown.presets import Preset, preset


class Geography(Block):
    """The public list of leaves: columns of codes, or one column of codes and the length of each prefix."""

    file: str
    levels: tuple[str, ...] | None = None
    code: str | None = None
    prefixes: dict[str, int] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.levels is None) == (self.prefixes is None) or (self.prefixes is None) != (self.code is None):
            raise ValueError("either levels (columns), or code and prefixes")
        return self

    def spine(self, folder: Path) -> Spine:
        """Read the geography and build the tree."""
        frame = read_table(folder / self.file, "geography.file")
        if self.levels is not None:
            return Spine.from_columns(frame, self.levels)
        assert self.code is not None
        assert self.prefixes is not None
        require_columns(frame, (self.code,), "geography.code")
        codes = frame.get_column(self.code)
        if codes.dtype.is_numeric():
            raise InputError(
                "the codes of the geography are numbers",
                field="geography.code",
                expected="text, with leading zeros",
                hint="Write the codes as text.",
            )
        return Spine.from_prefixes(codes.to_list(), self.prefixes)


class BudgetPlan(Block):
    """A zCDP budget: the total, shares of the levels, shares of the queries (for all levels or for each)."""

    rho_squared: str | int
    levels: dict[str, str | int]
    queries: dict[str, Any]
    change: Literal["replace-one", "add-remove"] = "replace-one"


class UnitPlan(Block):
    """One kind of record: its file, and a preset, or a schema and (where it is measured) a budget."""

    file: str
    preset: str | None = None
    schema_: Schema | None = Field(default=None, alias="schema")
    budget: BudgetPlan | None = None
    passes: dict[str, tuple[tuple[str, ...], ...]] = Field(default_factory=dict)
    rounding_chain: tuple[str, ...] = ("total", "detailed")
    touched: Literal[1, 2] = 1

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.preset is None) == (self.schema_ is None):
            raise ValueError("either a preset or a schema")
        if self.preset is not None and self.budget is not None:
            raise ValueError("a preset, which has its own budget, or a schema with a budget")
        if self.touched != 1 and not self.measured:
            raise ValueError("touched for units that are measured alone")
        return self

    @property
    def measured(self) -> bool:
        """Whether the unit is measured, or only counted by invariants."""
        return self.preset is not None or self.budget is not None


class TablePlan(Block):
    """A table to publish: a query of a unit at a level."""

    unit: str = "person"
    level: str
    query: str = "total"

    @property
    def name(self) -> str:
        """A name for files."""
        return "-".join([self.unit, self.level, *(part.strip() for part in self.query.split("*"))])

    @property
    def title(self) -> str:
        """A title for people."""
        return f"{plural(self.unit)}: {self.query} by {self.level.replace('_', ' ')}".capitalize()


class AccuracyTarget(Block):
    """The standard deviation that the noise of a query at a level is to have: the budget is solved for."""

    unit: str = "person"
    level: str
    query: str
    standard_deviation: str | int

    def scaled(self, allocation: Allocation, cells: Cells) -> Allocation:
        """The allocation with the same shares and the total that gives this standard deviation exactly."""
        wanted = as_fraction(self.standard_deviation)
        query = cells.canonical(self.query)
        if wanted <= 0 or query not in allocation.queries.get(self.level, {}):
            raise InputError(
                f"the accuracy aimed at is of {query} by {self.level}, which is not measured",
                field="accuracy",
                expected="a measured query of a level, and a positive standard deviation",
                hint="Name a query that has a share of the budget at that level.",
            )
        factor = allocation.variance(self.level, query) / wanted**2
        return replace(allocation, rho_squared=allocation.rho_squared * factor)


class Plan(Block):
    """Everything that a run of TopDown needs; ``constraints`` defaults to those of the presets.

    ``stage`` is that of the data; in the plan of a release it stands there.
    """

    geography: Geography
    units: dict[str, UnitPlan]
    constraints: tuple[Constraint, ...] | None = None
    estimator: Literal["multipass", "gls"] = "multipass"
    tables: tuple[TablePlan, ...] = ()
    accuracy: tuple[AccuracyTarget, ...] = ()
    stage: Stage | None = None

    @model_validator(mode="after")
    def _own_files(self) -> Self:
        if clash(self.units) is not None:
            raise ValueError("units whose names differ in more than case and punctuation")
        if clash(table.name for table in self.tables) is not None:
            raise ValueError("tables that are all different, also as names of files")
        return self

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a plan from a YAML or JSON file."""
        expected = "keys such as geography, units, constraints, tables"
        hint = "See the reference of formats for an example."
        return cls.read(read_mapping(path, "plan", expected, hint))

    def presets(self) -> dict[str, Preset]:
        """The presets that the plan names, by unit."""
        return {name: preset(unit.preset) for name, unit in self.units.items() if unit.preset is not None}

    def mechanism(
        self, folder: Path, domain: Domain | None = None, stage: Stage = Stage.EDITED_FILE
    ) -> TopDown:
        """The mechanism that the plan describes; reads the geography, no data."""
        self._require_own_files()
        spine = self.geography.spine(folder)
        presets = self.presets()
        universes, counted = [], {}
        for name, unit in self.units.items():
            if name in presets:
                universes.append(self._from_preset(name, presets[name], spine))
            elif unit.measured:
                universes.append(self._from_budget(name, unit))
            else:
                assert unit.schema_ is not None
                counted[name] = unit.schema_
        universes = [
            replace(self._aimed(universe), touched=self.units[universe.unit].touched)
            for universe in universes
        ]
        if universes and universes[0].touched != 1:
            raise InputError(
                f"{universes[0].unit} is the unit of the guarantee",
                field=f"units.{universes[0].unit}.touched",
                expected="touched for the other measured units alone",
                hint="It says how many of their records one change of this unit touches.",
            )
        constraints = self.constraints
        if constraints is None:
            plain = [c for p in presets.values() for c in p.constraints]
            constraints = _distinct(as_constraints(plain))
            _require_levels(constraints, spine)
        mechanism = TopDown(spine, universes, constraints, counted, stage=self.stage or stage, domain=domain)
        self._require_tables(mechanism)
        return mechanism

    def _require_own_files(self) -> None:
        """Refuse a unit that is only counted in the file of a protected one: it would publish it exactly."""
        measured = {Path(unit.file): name for name, unit in self.units.items() if unit.measured}
        for name, unit in self.units.items():
            other = None if unit.measured else measured.get(Path(unit.file))
            if other is not None:
                raise InputError(
                    f"the unit {name} is only counted, in the file of {other}, which is protected",
                    field=f"units.{name}.file",
                    expected="a file of records that are published exactly by declaration",
                    hint="Give the unit a budget, or declare the invariants of the protected unit itself.",
                )

    def _require_tables(self, mechanism: TopDown) -> None:
        """Refuse a table of an unknown unit, level or query."""
        for table in self.tables:
            if table.unit not in mechanism.designs:
                raise InputError(
                    f"a table asks for {table.unit}, which is not measured",
                    field="tables.unit",
                    expected="one of " + ", ".join(mechanism.designs),
                    hint="Correct the unit, or give it a budget.",
                )
            if table.level not in mechanism.spine.levels:
                raise InputError(
                    f"a table asks for the level {table.level}",
                    field="tables.level",
                    expected="one of " + ", ".join(mechanism.spine.levels),
                    hint="Correct the level.",
                )
            mechanism.units[table.unit].query(table.query)

    def _aimed(self, universe: Universe) -> Universe:
        """A universe whose budget gives the accuracy that the plan asks for, if it does."""
        targets = [target for target in self.accuracy if target.unit == universe.unit]
        if len(targets) > 1:
            raise InputError(
                f"the plan aims at two accuracies of {universe.unit}",
                field="accuracy",
                expected="at most one for each unit: it decides the whole budget",
                hint="Change the shares of levels and queries to set the others.",
            )
        if not targets:
            return universe
        allocation = targets[0].scaled(universe.allocation, Cells(universe.schema))
        return replace(universe, allocation=allocation)

    def _from_preset(self, name: str, chosen: Preset, spine: Spine) -> Universe:
        if chosen.universe != name:
            raise InputError(
                f"the preset {chosen.name} is for {chosen.universe} records",
                field=f"units.{name}.preset",
                expected=f"a unit with the name {chosen.universe}",
                hint="Name the unit as the preset does.",
            )
        allocation = chosen.allocation
        if tuple(allocation.levels) != spine.levels:
            allocation = allocation.renormalised(spine.levels)
        settings = Settings(
            passes={level: p for level, p in chosen.passes.items() if level in spine.levels},
            chain=chosen.rounding_chain,
            estimator=self.estimator,
        )
        return Universe(name, chosen.schema, allocation, settings)

    def _from_budget(self, name: str, unit: UnitPlan) -> Universe:
        assert unit.schema_ is not None
        assert unit.budget is not None
        budget = unit.budget
        allocation = Allocation.of(
            Cells(unit.schema_), budget.rho_squared, budget.levels, budget.queries, change=budget.change
        )
        settings = Settings(passes=unit.passes, chain=unit.rounding_chain, estimator=self.estimator)
        return Universe(name, unit.schema_, allocation, settings)

    def at_hand(self, folder: Path) -> bool:
        """Whether the files of the confidential tables are there."""
        return all((folder / unit.file).exists() for unit in self.units.values())

    def data(self, folder: Path) -> Mapping[str, object]:
        """The confidential tables."""
        return {
            name: read_table(folder / unit.file, f"units.{name}.file") for name, unit in self.units.items()
        }


def _distinct(declared: Sequence[Declared]) -> tuple[Declared, ...]:
    """Each declaration once, in order."""
    out: list[Declared] = []
    for constraint in declared:
        if constraint not in out:
            out.append(constraint)
    return tuple(out)


def _require_levels(declared: Sequence[Declared], spine: Spine) -> None:
    """Refuse a preset's invariants at levels that the geography does not have."""
    places = {"us", "state", "county", "tract", "block_group", "block"} - set(spine.levels)
    for constraint in declared:
        missing = places & set(constraint.count.by) if isinstance(constraint, Invariant) else set()
        if missing:
            raise InputError(
                f"the preset has an invariant by {min(missing)}, a level that the geography lacks",
                field="constraints",
                expected="constraints of your own, at levels of your geography",
                hint="Copy those that apply from the documentation of presets, and declare them in the plan.",
            )
