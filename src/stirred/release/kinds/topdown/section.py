"""The section of a plan that runs TopDown."""

from __future__ import annotations

from typing import Literal

from stirred.release.numbers import Provenance
from stirred.topdown import Plan as Settings


class TopDownSection(Settings):
    """TopDown: geography, units with schemas and budgets, constraints, tables to publish."""

    kind: Literal["topdown"] = "topdown"
    provenance: Provenance = "public"


STARTER = """\
mechanism:
  kind: topdown
  geography: {file: blocks.parquet, levels: [state, county, tract, block_group, block]}
  units:
    person: {file: persons.parquet, preset: pl-2020-us-persons}
    housing_unit: {file: housing_units.parquet, preset: pl-2020-us-units}
    occupied_group_quarters:
      file: group_quarters.parquet
      schema: {attributes: [{name: group_quarters_type, levels: [2, 3, 4, 5, 6, 7, 8]}]}
  estimator: multipass              # or gls
  provenance: public
  tables:
    - {level: tract, query: hispanic * race}
"""
