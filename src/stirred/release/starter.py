"""Starter plans: commented, to be filled in."""

from __future__ import annotations

from stirred.report import starter_yaml

STARTERS = ("swap", "topdown")

_HEAD = """\
# A plan for `stirred release`. Every key is explained in the reference of formats.
# An editor can complete keys: `stirred release schema > plan.schema.json`.
name: my-release            # small letters, digits and hyphens
title: What is released, in one line
description: ""
agency: Who releases it
curator: Who runs it        # must be a curator in the ledger
dataset:
  name: my-data             # the account in the ledger
  description: ""
  population: 100000        # public knowledge; for warnings only
  ceiling: {ceiling:<17}# total budget of the account: {currency}
delta: "1e-10"              # for converted numbers only
# domain: ...               # all possible data sets; the same one in plans that are to be compared
"""

_SWAP = """\
mechanism:
  kind: swap
  households: households.parquet
  # persons: persons.parquet        # follow their household, linked by id
  id: household_id
  match: [county, size]             # records are exchanged only if they agree on these
  swap: [tract, block]              # these travel, together
  hold: [tenure]                    # these stay with the record; what is not named is not published
  nesting: [[block, tract]]         # places that lie in others, the finer first; [] if there are none
  rate: 1/20                        # or target_epsilon: 12
  provenance: public                # where levels and roles come from; never from the data
  tables: [tract * tenure]
"""

_TOPDOWN = """\
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

_TAIL = """\
legal_bases: []
#  - {statistic: the number of persons in each state, basis: which law}
governance:
  regime: US                        # US, EU, UK, AU or CA
checklist:
"""


def starter_plan(mechanism: str) -> str:
    """The text of a starter plan."""
    swap = mechanism == "swap"
    head = _HEAD.format(ceiling=15 if swap else 3, currency="epsilon" if swap else "rho squared")
    return head + (_SWAP if swap else _TOPDOWN) + _TAIL + starter_yaml(2)
