"""Restriction: a specification read on some data sets of its domain alone.

A verifier lists data sets; most specifications are about more than can be listed. What a mechanism does on a
few small ones can refute a guarantee, and never confirm it beyond them.
"""

from __future__ import annotations

from typing import Any

from stirred.errors import DomainMismatch, NotComputable
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.multiverse import declared_invariants
from stirred.spec.blocks.schema import Schema
from stirred.spec.specification import Specification


def restricted(specification: Specification, domain: Domain) -> Specification:
    """The specification on a finite part of its domain.

    Guarantee
        A mechanism that satisfies the specification satisfies the result on the part: a refutation there is a
        refutation of the specification. The converse does not hold.
    Assumes
        The part lies in the domain, which is checked as far as the domain is declared: stage, structure,
        points, sizes, attributes, levels and recodes.
    Reference
        Two data sets of the part that agree on the invariants share a universe of the whole, and distance
        and budget are the same there: both are required not to depend on other data sets.
    """
    if specification.domain == domain:
        return specification
    _require_local(specification)
    _require_part(domain, specification.domain)
    return Specification(**dict(specification) | {"domain": domain})


def _require_local(specification: Specification) -> None:
    """Refuse blocks that mean something else, or nothing, when data sets are left out."""
    budget = specification.budget
    if declared_invariants(specification.multiverse) is None:
        field, reason = "multiverse", "its universes are not given by declared invariants"
    elif not specification.input_premetric.of_two_points:
        field, reason = "input_premetric", "its distances depend on more than the two data sets compared"
    elif len(budget.amounts) > 1 or budget.policy is not None:
        field, reason = "budget", "its budget depends on the universe"
    else:
        return
    raise NotComputable(
        f"the specification cannot be restricted to some data sets: {reason}",
        field=field,
        expected="declared invariants, a distance of two data sets, and one budget for all universes",
        hint="Write a specification on the mechanism's own domain.",
    )


def _require_part(part: Domain, whole: Domain) -> None:
    field = _outside(part, whole)
    if field is not None:
        raise DomainMismatch(
            f"the mechanism's domain {part.name} is not part of {whole.name}: {field} does not fit",
            field=f"domain.{field}",
            expected="data sets of the specification's domain, of the same stage and structure",
            hint="Correct the domain of the mechanism, or write a specification on it.",
        )


def _outside(part: Domain, whole: Domain) -> str | None:
    """The field that shows that a finite domain is not part of another."""
    if part.stage != whole.stage:
        return "stage"
    points: tuple[Any, ...] = part.enumerate()
    if part.structure != whole.structure or (whole.points is None and not _structured(points, whole)):
        return "structure"
    if whole.points is not None and not set(points) <= set(whole.points):
        return "points"
    if whole.sizes is not None and not {len(point) for point in points} <= set(whole.sizes):
        return "sizes"
    if whole.record_schema is None:
        return None
    fits = part.record_schema is not None and _same_reading(part.record_schema, whole.record_schema)
    listed = whole.points is not None or all(
        _complies(record, whole.record_schema) for point in points for record in point
    )
    if not (fits and listed):
        return "record_schema"
    nested = whole.points is not None or _nests(points, whole.record_schema)
    return None if nested else "record_schema"


def _nests(points: tuple[Any, ...], schema: Schema) -> bool:
    """Whether every finer level lies in one coarser level, over all these data sets."""
    records = {record for point in points for record in point}
    places = {name: i for i, name in enumerate(schema.names)}
    for fine, coarse in schema.nesting:
        if fine in places and coarse in places:
            pairs = {(record[places[fine]], record[places[coarse]]) for record in records}
            if len(pairs) > len({one for one, _ in pairs}):
                return False
    return True


def _structured(points: tuple[Any, ...], whole: Domain) -> bool:
    """Whether these are data sets or graphs: of other objects only a list says which belong."""
    return whole.structure in {"multiset", "vector", "graph"} and all(isinstance(p, tuple) for p in points)


def _same_reading(part: Schema, whole: Schema) -> bool:
    """Whether attributes and recodes of a record mean the same in both."""
    groups = {recode.name: (recode.attribute, recode.mapping()) for recode in part.recodes}
    return part.names == whole.names and all(
        recode.name in groups
        and groups[recode.name][0] == recode.attribute
        and groups[recode.name][1].items() <= recode.mapping().items()
        for recode in whole.recodes
    )


def _complies(record: object, schema: Schema) -> bool:
    levels = schema.codebook().values()
    return (
        isinstance(record, tuple)
        and len(record) == len(levels)
        and all(known is None or value in known for value, known in zip(record, levels, strict=True))
    )
