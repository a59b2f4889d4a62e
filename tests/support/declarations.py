"""Invariants of ``stirred`` for the statistics of the tiny universes."""

from typing import Any

from support.tiny_universes import Statistic

from stirred.spec import Condition, Count, Sum, Threshold


def declared(statistic: Statistic, names: tuple[str, ...]) -> Any:
    """The invariant that the statistic is, for records with these attributes."""
    fields: dict[str, Any] = {
        "unit": "record",
        "by": tuple(names[i] for i in statistic.by),
        "where": tuple(Condition(attribute=names[i], levels=levels) for i, levels in statistic.where),
    }
    inner = Count(**fields) if statistic.summed is None else Sum(attribute=names[statistic.summed], **fields)
    return inner if statistic.least is None else Threshold(statistic=inner, at_least=statistic.least)
