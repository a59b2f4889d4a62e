"""Run a plan into a folder, as a trial: no ledger paid for it, so everything is ``internal/``.

The folder appears complete or not at all. What may be published is made by a release, which pays first.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from stirred.data import MOST_DETERMINED, Exposures
from stirred.errors import Refusal
from stirred.interchange import write_csv, write_parquet
from stirred.noise import RandomSource, Source
from stirred.places import inside, private_folder, require_new, slug, whole_folder
from stirred.spec import Release, Specification, trial
from stirred.topdown.estimates import Estimates
from stirred.topdown.exposure import exposures_of
from stirred.topdown.intervals import estimator_of, table_with_intervals
from stirred.topdown.measurement import Measurements
from stirred.topdown.mechanism import Progress, TopDown
from stirred.topdown.plan import Plan, TablePlan


@dataclass(frozen=True)
class Made:
    """Where the products of a run are, and what they promise."""

    folder: Path
    files: tuple[str, ...]
    specification: Specification
    reason: str
    exposures: Exposures

    @property
    def publishable(self) -> bool:
        """Never: a ledger pays for what is published."""
        return False


def run_plan(
    path: Path,
    output: Path,
    random: Source | None = None,
    progress: Progress | None = None,
    measurements: Path | None = None,
    most_determined: Fraction = MOST_DETERMINED,
    accept_determined: str = "",
) -> Made:
    """Read a plan, run it, and write its products to ``internal/``.

    They are microdata, tables with confidence intervals, noisy measurements, the specification, the budget,
    and accuracy against the truth. A plan whose invariants determine more than ``most_determined`` of the
    records is refused, unless ``accept_determined`` says why it is accepted; the manifest keeps that.

    ``measurements`` is a folder of noisy measurements of the same design, made by an earlier run: nothing is
    drawn then. If no table can be found that keeps the constraints, the measurements are written all the
    same, since they were paid for.
    """
    require_new(output)
    plan = Plan.load(path)
    mechanism = plan.mechanism(path.parent)
    counts, invariants = mechanism.prepare(plan.data(path.parent))
    exposures, accepted = exposures_of(mechanism, invariants), accept_determined.strip()
    if not accepted:
        exposures.require(most_determined)
    known = {"exposure": exposures.record(), "accepted_determined": accepted or None}
    refused = None
    with whole_folder(output, room=mechanism.room(counts)) as folder:
        internal = private_folder(folder / "internal")
        noisy = _noisy(mechanism, counts, random, measurements, internal)
        try:
            made = mechanism.assess(counts, mechanism.finish(noisy, invariants, progress))
        except Refusal as refusal:
            refused = refusal
            reason = trial(f"measured only: {refusal.problem}")
            _write_json(folder / "manifest.json", _notice(reason) | known)
        else:
            _write_all(plan, mechanism, made, internal)
            _write_json(folder / "manifest.json", _notice(made.reason) | known)
    if refused is not None:
        raise refused
    files = sorted(str(p.relative_to(output)) for p in output.rglob("*") if p.is_file())
    return Made(output, tuple(files), made.specification, made.reason, exposures)


def _noisy(
    mechanism: TopDown,
    counts: Any,
    random: Source | None,
    measurements: Path | None,
    folder: Path,
) -> dict[str, Measurements]:
    """The measurements, made into a folder or read from another."""
    if measurements is not None:
        return {
            unit: Measurements.read(d, measurements / slug(unit)) for unit, d in mechanism.designs.items()
        }
    source = RandomSource() if random is None else random
    return mechanism.measure(counts, source, folder / "measurements")


def _notice(reason: str) -> dict[str, Any]:
    return {"schema_version": 1, "type": "topdown", "publishable": False, "reason": reason}


def _write_all(plan: Plan, mechanism: TopDown, made: Release, folder: Path) -> None:
    """Products and diagnostics; none of it may be published."""
    _write_products(plan, mechanism, made, folder)
    for unit, errors in made.diagnostics.items():
        write_csv(errors.to_polars(), inside(folder, f"accuracy-{slug(unit)}.csv"))
    effort = {u.unit: _effort(made.uncertainty[u.unit]) for u in mechanism.universes}
    _write_json(folder / "estimation.json", effort)


def _write_products(plan: Plan, mechanism: TopDown, made: Release, folder: Path) -> None:
    (folder / "specification.json").write_text(made.specification.to_json(), encoding="utf-8")
    _write_json(folder / "constraints.json", [c.sentence() for c in mechanism.constraints])
    for universe in mechanism.universes:
        unit = universe.unit
        name = slug(unit)
        write_parquet(made.products[unit].microdata(), inside(folder, f"{name}.parquet"))
        _write_json(inside(folder, f"schema-{name}.json"), universe.schema.record())
        write_csv(universe.allocation.to_polars(), inside(folder, f"budget-{name}.csv"))
        tables = [table for table in plan.tables if table.unit == unit]
        if tables:
            (folder / "tables").mkdir(exist_ok=True)
            _write_tables(tables, made.products[unit], made.products["measurements"][unit], folder / "tables")


def _write_tables(tables: list[TablePlan], estimates: Estimates, measurements: Any, folder: Path) -> None:
    """Protected counts beside the best linear estimate with its 95% interval."""
    gls = estimator_of(measurements)
    for table in tables:
        frame = table_with_intervals(estimates, gls, table.level, table.query)
        write_csv(frame, inside(folder, f"{slug(table.name)}.csv"))


def _effort(levels: Any) -> dict[str, Any]:
    return {
        level: {
            "families": effort.families,
            "solvers": dict(effort.methods),
            "rounding": dict(effort.rounding),
            "most_steps": effort.steps,
            "largest_gap": effort.gap,
        }
        for level, effort in levels.items()
    }


def _write_json(path: Path, body: Any) -> None:
    path.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
