"""Releases that each read one part of the records: how many of their budgets add up.

Let part i lose r_i records and gain a_i between two data sets of one universe. Release i has the same law
at x and at any y with the same part i, so its loss between x and x' is at most its budget times kappa_i, the
least distance in one universe of two data sets with those two contents of part i; always kappa_i <= d(x, x').
The rules below bound the kappa_i; the losses add, or their squares.
"""

from __future__ import annotations

from fractions import Fraction

from stirred.errors import InputError, NotComputable
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.invariant import Additive, Count, Declared
from stirred.spec.blocks.multiverse import conditions_on, declared_invariants
from stirred.spec.blocks.schema import Level, Schema
from stirred.spec.calculus.additive import contributions, relevant, spans
from stirred.spec.specification import Flavor

_ADDITIVE = {"sum", "sum of squares"}


def budgets_that_add(flavor: Flavor, by: str, count: int) -> int:
    """How many of the largest of ``count`` budgets compose to that of all releases together.

    Guarantee
        a. Between neighbours one addition or removal changes one part, one replacement at most two (one
           where part sizes are invariant), on any domain and under any invariants.
        b. d_SymDiff, separate, all sizes: kappa_i = r_i + a_i, which add up to the distance: one.
        c. d_HamS, separate, part sizes invariant: kappa_i = r_i, which add up to the distance: one.
        d. d_HamS, separate: a part of which another has a filler, a record that no invariant counts, has
           kappa_i = max(r_i, a_i): fillers balance the total. Two.
        e. Parts without such a partner: kappa_i <= d, so each adds its own budget to those of (d).
        f. d_HamS, separate, all sizes, every invariant the same function of every part: kappa_i <= r_i + a_i,
           which add up to twice the distance, as the change of part i can be undone in another part. Two.
        Otherwise all of them: sequential composition.
    Assumes
        Separate: the domain contains every data set over its schema, and every invariant is a statistic of
        one part. Which release reads which part is not known: the largest budgets are put in the worst place.
    Reference
        McSherry 2009 for additions and removals; the proofs are in the sentences above.
    """
    _require_enough_parts(flavor, by, count)
    premetric = flavor.input_premetric
    change = premetric.change
    if change is None or change.structure == "graph":
        return count
    if premetric.sharpened is not None:
        touched = 1 if not change.keeps_size or _sizes_invariant(flavor, by) else 2
        return min(count, touched)
    if flavor.output_premetric.properties.law not in _ADDITIVE or change.structure != "multiset":
        return count
    if not _separate(flavor, by):
        return count
    if not change.keeps_size:
        return 1 if flavor.domain.sizes is None else count
    return min(count, _touched_by_replacements(flavor, by) or count)


def _require_enough_parts(flavor: Flavor, by: str, count: int) -> None:
    schema = flavor.domain.record_schema
    if schema is None:
        return
    schema.require((by,), "by")
    levels = next((a.levels for a in schema.attributes if a.name == by), None)
    if levels is not None and len(levels) < count:
        raise InputError(
            f"there are more releases than levels of {by}",
            field="by",
            expected="at most one release for each part",
            hint="Compose the releases that read the same part first (stirred.spec.compose).",
        )


def _sizes_invariant(flavor: Flavor, by: str) -> bool:
    sizes = Count(unit=flavor.input_premetric.unit, by=(by,))
    return conditions_on(flavor.multiverse, sizes, flavor.domain, flavor.input_premetric.record_units)


def _separate(flavor: Flavor, by: str) -> bool:
    """Whether one part can change while the others stay, within the domain and the universe."""
    declared = declared_invariants(flavor.multiverse)
    if declared is None or flavor.domain.points is not None or flavor.domain.structure != "multiset":
        return False
    statistics = [invariant.underlying for invariant in declared]
    unit = flavor.input_premetric.unit
    return all(s is not None and s.unit == unit and _of_one_part(s, by, flavor.domain) for s in statistics)


def _of_one_part(statistic: Additive, by: str, domain: Domain) -> bool:
    """Whether each cell reads records of a single part: by its table, or by a condition."""
    schema = domain.obeyed_schema
    if schema is None:
        return by in statistic.by
    if by in schema.closure(statistic.by):
        return True
    return any(_inside_one_part(c.attribute, c.levels, by, schema) for c in statistic.where)


def _inside_one_part(attribute: str, levels: tuple[Level, ...], by: str, schema: Schema) -> bool:
    if attribute == by:
        return len(set(levels)) <= 1
    coarsening = next((r for r in schema.recodes if r.name == by and r.attribute == attribute), None)
    if coarsening is None:
        return False
    mapping = coarsening.mapping()
    return len({mapping.get(level) for level in levels}) <= 1


def _touched_by_replacements(flavor: Flavor, by: str) -> int | None:
    """Rules c to f; ``None`` where none of them is known to apply."""
    declared = declared_invariants(flavor.multiverse) or ()
    if not declared:
        return 2
    if _sizes_invariant(flavor, by):
        return 1
    found = [_alike(flavor.domain, declared, by), _balanced_or_failing(flavor.domain, declared, by)]
    return min((number for number in found if number is not None), default=None)


def _alike(domain: Domain, declared: tuple[Declared, ...], by: str) -> int | None:
    """Rule f: two, where no part is named and every part has the same record types."""
    schema = domain.record_schema
    if domain.sizes is not None or schema is None:
        return None
    for statistic in (invariant.underlying for invariant in declared):
        if statistic is None:
            return None
        others = set(statistic.needs()) - {by}
        tied = any(name in schema.closure((by,)) or by in schema.closure((name,)) for name in others)
        if by not in statistic.by or tied or any(c.attribute == by for c in statistic.where):
            return None
    return 2


def _balanced_or_failing(domain: Domain, declared: tuple[Declared, ...], by: str) -> int | None:
    """Rules d and e: one for every part that fails, and two (or one) for the others."""
    schema = domain.record_schema
    if schema is None:
        return None
    names = {by, *(name for invariant in declared for name in invariant.needs())}
    listed = relevant(schema, names)
    try:
        statistics = [i.underlying for i in declared if i.underlying is not None]
        values = contributions(statistics, listed)
    except NotComputable:
        return None
    part = {record: listed.value(record, by) for record in values}
    added = {i for i, invariant in enumerate(declared) if invariant.underlying is invariant}
    sums = {r: {c: v for c, v in f.items() if c[0] in added} for r, f in values.items()}
    # A filler must be a record that can occur, which nesting may forbid.
    nested = any(name in names for pair in schema.nesting for name in pair)
    fillers = set() if nested else {part[record] for record, f in values.items() if not f}
    fixed = {
        level
        for level in set(part.values())
        if spans((f, Fraction(part[record] == level)) for record, f in sums.items())
    }
    moving = set(part.values()) - fixed
    balanced = {level for level in moving if fillers - {level}}
    others = 2 if len(balanced) > 1 else 1 if balanced or fixed else 0
    return len(moving - balanced) + others
