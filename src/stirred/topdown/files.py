"""Run a plan into a folder: ``public/`` is what may be published, ``internal/`` compares with the truth.

The folder appears complete or not at all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stirred.errors import Refusal
from stirred.interchange import write_csv, write_parquet
from stirred.noise import RandomSource, Source
from stirred.places import inside, private_folder, require_new, slug, whole_folder
from stirred.spec.protocol import Release
from stirred.spec.specification import Specification
from stirred.topdown.estimates import Estimates
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
    publishable: bool


def run_plan(
    path: Path,
    output: Path,
    random: Source | None = None,
    progress: Progress | None = None,
    measurements: Path | None = None,
) -> Made:
    """Read a plan, run it, and write its products.

    Without a test seed: microdata, tables with confidence intervals, noisy measurements, the specification
    and the budget in ``public/``, accuracy in ``internal/``. With one, everything goes to ``internal/``.

    ``measurements`` is a folder of noisy measurements of the same design, made by an earlier run: nothing is
    drawn then. If no table can be found that keeps the constraints, the measurements are written all the
    same, since they were paid for.
    """
    require_new(output)
    plan = Plan.load(path)
    mechanism = plan.mechanism(path.parent)
    counts, invariants = mechanism.prepare(plan.data(path.parent))
    refused = None
    with whole_folder(output, room=mechanism.room(counts)) as folder:
        noisy, public = _noisy(mechanism, counts, random, measurements, folder)
        try:
            made = mechanism.assess(counts, mechanism.finish(noisy, invariants, progress))
        except Refusal as refusal:
            refused = refusal
            _write_json(folder / "manifest.json", _notice(False, f"measured only: {refusal.problem}"))
        else:
            _write_all(plan, mechanism, made, folder, public)
    if refused is not None:
        raise refused
    files = sorted(str(p.relative_to(output)) for p in output.rglob("*") if p.is_file())
    return Made(output, tuple(files), made.specification, made.publishable)


def _noisy(
    mechanism: TopDown,
    counts: Any,
    random: Source | None,
    measurements: Path | None,
    folder: Path,
) -> tuple[dict[str, Measurements], Path]:
    """The measurements, made or read, and the folder of the products that they allow."""
    private_folder(folder / "internal")
    if measurements is not None:
        read = {
            unit: Measurements.read(d, measurements / slug(unit)) for unit, d in mechanism.designs.items()
        }
        public = folder / ("public" if all(m.publishable for m in read.values()) else "internal")
        public.mkdir(exist_ok=True)
        return read, public
    source = RandomSource() if random is None else random
    public = folder / ("public" if source.publishable else "internal")
    public.mkdir(exist_ok=True)
    return mechanism.measure(counts, source, public / "measurements"), public


def _notice(publishable: bool, reason: str) -> dict[str, Any]:
    return {"schema_version": 1, "type": "topdown", "publishable": publishable, "reason": reason}


def _write_all(plan: Plan, mechanism: TopDown, made: Release, folder: Path, public: Path) -> None:
    """Products where they may be read, diagnostics where they may not."""
    _write_products(plan, mechanism, made, public)
    for unit, errors in made.diagnostics.items():
        write_csv(errors.to_polars(), inside(folder / "internal", f"accuracy-{slug(unit)}.csv"))
    effort = {u.unit: _effort(made.uncertainty[u.unit]) for u in mechanism.universes}
    _write_json(folder / "internal" / "estimation.json", effort)
    _write_json(folder / "manifest.json", _notice(made.publishable, made.reason))


def _write_products(plan: Plan, mechanism: TopDown, made: Release, public: Path) -> None:
    (public / "specification.json").write_text(made.specification.to_json(), encoding="utf-8")
    _write_json(public / "constraints.json", [c.sentence() for c in mechanism.constraints])
    for universe in mechanism.universes:
        unit = universe.unit
        name = slug(unit)
        write_parquet(made.products[unit].microdata(), inside(public, f"{name}.parquet"))
        _write_json(inside(public, f"schema-{name}.json"), universe.schema.record())
        write_csv(universe.allocation.to_polars(), inside(public, f"budget-{name}.csv"))
        tables = [table for table in plan.tables if table.unit == unit]
        if tables:
            (public / "tables").mkdir(exist_ok=True)
            _write_tables(tables, made.products[unit], made.products["measurements"][unit], public / "tables")


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
