"""A plan on a tiny county, written to a folder: persons, housing units, group quarters, eight blocks."""

from __future__ import annotations

from pathlib import Path

import polars as pl

PLAN = """\
geography: {file: blocks.parquet, levels: [county, tract, block]}
units:
  person:
    file: persons.parquet
    schema:
      attributes:
        - {name: quarters, levels: [1, 2]}
        - {name: sex, levels: [f, m]}
        - {name: age, levels: [child, adult]}
    budget:
      rho_squared: 2.5
      levels: {county: 0.25, tract: 0.25, block: 1/2}
      queries: {total: 1/10, sex * age: 3/10, detailed: 6/10}
    passes: {tract: [[total], [sex * age, detailed]]}
    rounding_chain: [total, quarters, detailed]
  housing_unit:
    file: units.parquet
    schema: {attributes: [{name: occupancy, levels: [occupied, vacant]}]}
    budget:
      rho_squared: 1/3
      levels: {county: 1/3, tract: 1/3, block: 1/3}
      queries: {detailed: 1}
  group_quarters:
    file: quarters.parquet
    schema: {attributes: [{name: quarters, levels: [2]}]}
constraints:
  - {kind: invariant, count: {unit: person, by: [county]}}
  - {kind: invariant, count: {unit: housing_unit, by: [block]}}
  - {kind: invariant, count: {unit: group_quarters, by: [block, quarters]}}
  - kind: facilities
    attribute: quarters
    level: block
    cap: 60
    sources: {housing_unit: [1], group_quarters: [2]}
    at_least_one: [2]
  - {kind: structural_zero, where: {quarters: [2], age: [child]}}
tables:
  - {level: tract, query: sex * age}
  - {unit: housing_unit, level: block, query: occupancy}
"""


def write_plan(folder: Path, plan: str = PLAN) -> Path:
    """Write the plan and its files; returns the path of the plan."""
    blocks = [f"1{tract}{block}" for tract in "12" for block in "1234"]
    pl.DataFrame({"county": ["1"] * 8, "tract": [b[:2] for b in blocks], "block": blocks}).write_parquet(
        folder / "blocks.parquet"
    )
    rows = [
        {"block": b, "quarters": 1, "sex": "fm"[(i + n) % 2], "age": ("child", "adult")[n % 3 > 0]}
        for i, b in enumerate(blocks[:-1])
        for n in range(5 * i)
    ]
    rows += [{"block": blocks[2], "quarters": 2, "sex": "m", "age": "adult"}] * 4
    pl.DataFrame(rows).write_parquet(folder / "persons.parquet")
    units = [
        {"block": b, "occupancy": ("occupied", "vacant")[n % 4 == 3]}
        for i, b in enumerate(blocks[:-1])
        for n in range(2 * i)
    ]
    pl.DataFrame(units).write_parquet(folder / "units.parquet")
    pl.DataFrame({"block": [blocks[2]], "quarters": [2]}).write_parquet(folder / "quarters.parquet")
    path = folder / "plan.yaml"
    path.write_text(plan, encoding="utf-8")
    return path
