"""Values of invariants: what the data publish exactly, by declaration, and estimation may read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from stirred.data import Histogram, Spine
from stirred.errors import InputError
from stirred.spec import Count, Level, plural
from stirred.topdown.cells import Cells, Query
from stirred.topdown.constraint import Declared, Facilities, Invariant

Values = Mapping[str, NDArray[np.int64]]


def matching(cells: Cells, where: Mapping[str, tuple[Level, ...]]) -> NDArray[np.bool_]:
    """The cells whose attributes (or recodes) have one of the given levels."""
    out = np.ones(cells.count, dtype=np.bool_)
    for name, levels in where.items():
        query = cells.query(name)
        labels = [label[0] for label in query.labels()]
        unknown = [level for level in levels if level not in labels]
        if unknown:
            raise InputError(
                f"a constraint names a level that {name} does not have",
                field="constraints",
                expected=f"levels of {name} in the schema",
                hint="Correct the constraint or the schema.",
            )
        out &= np.isin(query.groups, [labels.index(level) for level in levels])
    return out


def level_number(
    spine: Spine,
    name: str,
    field: str = "constraints.level",
    hint: str = "Constraints are declared at a level of the spine.",
) -> int:
    """The position of a level by its name."""
    if name not in spine.levels:
        expected = "one of " + ", ".join(spine.levels)
        raise InputError(f"the spine has no level {name}", field=field, expected=expected, hint=hint)
    return spine.levels.index(name)


def split_count(count: Count, cells: Cells, spine: Spine) -> tuple[int, Query, dict[str, tuple[Level, ...]]]:
    """A declared count as a level, a query over the other attributes, and conditions."""
    places = [name for name in count.by if name in spine.levels]
    level = max((spine.levels.index(name) for name in places), default=0)
    if not places and spine.size(0) > 1:
        raise InputError(
            "an invariant of the whole needs a spine with one root",
            field="constraints.invariant",
            expected="a level in its list of attributes",
            hint="Add a level above the first, or declare the invariant by that level.",
        )
    others = [name for name in count.by if name not in spine.levels]
    query = cells.query(" * ".join(others) if others else "total")
    return level, query, {condition.attribute: condition.levels for condition in count.where}


def value_key(count: Count) -> str:
    """The name under which the values of an invariant are kept."""
    return count.model_dump_json()


def earlier_key(release: str, level: str, query: str) -> str:
    """The name under which a table of an earlier release is kept."""
    return f"{release}: {query} by {level}"


def invariant_values(
    declared: Sequence[Declared],
    units: Mapping[str, Cells],
    spine: Spine,
    histograms: Mapping[str, Sequence[Histogram]],
) -> dict[str, NDArray[np.int64]]:
    """The values of all declared invariants: what the data publish exactly."""
    out = {}
    for declaration in declared:
        if not isinstance(declaration, Invariant):
            continue
        count = declaration.count
        level, query, where = split_count(count, units[count.unit], spine)
        groups = query.groups
        if where:
            groups = np.where(matching(units[count.unit], where), groups, -1)
        out[value_key(count)] = histograms[count.unit][level].grouped(groups, query.size)
    return out


def facilities(
    declared: Facilities,
    labels: Sequence[Level],
    spine: Spine,
    units: Mapping[str, Cells],
    values: Values,
) -> NDArray[np.int64]:
    """Facilities of every type in every node, from the invariants that count them."""
    known = {label for types in declared.sources.values() for label in types}
    if not set(declared.at_least_one) <= known or not known <= set(labels):
        raise InputError(
            f"the bounds on {declared.attribute} name a type that it does not have, or that has no source",
            field="constraints.facilities",
            expected=f"levels of {declared.attribute} in sources, and some of these in at_least_one",
            hint="Correct the constraint or the schema.",
        )
    level = level_number(spine, declared.level)
    out = np.zeros((spine.size(level), len(labels)), dtype=np.int64)
    for unit, types in declared.sources.items():
        found = _counted(unit, types, level, spine, units, values)
        if found is None:
            raise InputError(
                f"the bounds on {declared.attribute} need the number of {plural(unit)}",
                field="constraints.facilities.sources",
                expected=f"an invariant that counts them by {declared.level}, and by these types if several",
                hint="Declare that count as an invariant, or leave the bounds out.",
            )
        for column, kind in enumerate(types):
            out[:, list(labels).index(kind)] += found[:, column]
    return out


def _counted(
    unit: str,
    types: Sequence[Level],
    level: int,
    spine: Spine,
    units: Mapping[str, Cells],
    values: Values,
) -> NDArray[np.int64] | None:
    """How many units of each of some types every node of a level has, if an invariant says so.

    A count by type comes before a count of all units, which serves where there is one type.
    """
    whole: NDArray[np.int64] | None = None
    for key, table in values.items():
        if not key.startswith("{") or unit not in units:
            continue
        count = Count.model_validate_json(key)
        if count.unit != unit or count.where:
            continue
        depth, query, _ = split_count(count, units[unit], spine)
        if depth != level:
            continue
        if not query.parts and len(types) == 1:
            whole = table
        columns = {label[0]: column for column, label in enumerate(query.labels()) if len(label) == 1}
        if set(types) <= set(columns):
            return table[:, [columns[kind] for kind in types]]
    return whole
