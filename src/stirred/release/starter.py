"""Starter plans: commented, to be filled in."""

from __future__ import annotations

from stirred.release.kinds import kind_named
from stirred.report import starter_yaml

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

_TAIL = """\
legal_bases: []
#  - {statistic: the number of persons in each state, basis: which law}
governance:
  regime: US                        # US, EU, UK, AU or CA
checklist:
"""


def starter_plan(kind: str) -> str:
    """The text of a starter plan of a kind."""
    found = kind_named(kind)
    return (
        _HEAD.format(ceiling=found.ceiling, currency=found.currency) + found.starter + _TAIL + starter_yaml(2)
    )
