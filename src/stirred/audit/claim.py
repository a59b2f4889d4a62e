"""A claim is a specification. Before two data sets are used against it: one universe, and their distance.

A pair from different universes is refused, never repaired: the claim says nothing about it. The distance is
always computed: where invariants are fixed, the nearest other data set is often two records away.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stirred.audit.finding import Finding, Verdict
from stirred.errors import InputError, Refusal, not_a_specification
from stirred.interchange import as_polars
from stirred.spec import (
    INFINITY,
    ZERO,
    Domain,
    Exact,
    HammingUnordered,
    Order,
    Record,
    Specification,
    Stated,
    Swapping,
    SymmetricDifference,
    compare,
    declared_invariants,
    evaluate,
    require_one_unit,
)

if TYPE_CHECKING:
    import polars as pl

ANNOUNCED = Stated(text="the amount that the plan announces")


def require_claim(claim: object) -> None:
    """Refuse what is no specification, where a function needs a claim first."""
    if not isinstance(claim, Specification):
        raise not_a_specification("claim")


def require_auditable(claim: Specification) -> None:
    """Refuse a claim that nothing can refute: an infinite budget."""
    require_claim(claim)
    if claim.budget.amounts and all(amount.is_infinite for amount in claim.budget.amounts):
        raise InputError(
            "the claim has an infinite budget",
            field="claim.budget",
            expected="a finite budget in at least one universe",
            hint="A mechanism without a finite budget claims nothing that could be refuted.",
        )


def require_same_universe(claim: Specification, x: Any, y: Any) -> None:
    """Refuse two data sets that do not share a universe of the claim."""
    if not same_universe(claim, x, y):
        raise Refusal(
            "the two data sets lie in different universes",
            field="pair",
            expected="two data sets on which every invariant of the claim is the same",
            hint="Make the second from the first by moves that keep the invariants; a pair is not repaired.",
        )


def same_universe(claim: Specification, x: Any, y: Any) -> bool:
    """Whether two data sets, as points or as frames, share a universe.

    One table has records of one unit: a claim whose invariants count another is refused for it.
    """
    require_claim(claim)
    invariants = declared_invariants(claim.multiverse)
    if invariants is None:
        return bool(_shared(claim, (x, y)))
    schema = claim.domain.record_schema
    if not isinstance(x, Mapping):
        require_one_unit(claim.multiverse, claim.input_premetric)
    if _is_point(x):
        if schema is None and invariants:
            raise InputError(
                f"the domain {claim.domain.name} has no schema, so its invariants cannot be computed",
                field="claim.domain",
                expected="a record schema, or a list of universes",
                hint="Give the domain a schema, or use an explicit multiverse.",
            )
        return all(i.of_records(x, schema) == i.of_records(y, schema) for i in invariants)
    return all(evaluate(i, x, schema).equals(evaluate(i, y, schema)) for i in invariants)


def require_one_universe(claim: Specification, datasets: Sequence[Any]) -> None:
    """Refuse data sets that do not all share one universe; two may share one and a third another."""
    for data in datasets[1:]:
        require_same_universe(claim, datasets[0], data)
    if declared_invariants(claim.multiverse) is None and not _shared(claim, datasets):
        require_same_universe(claim, *_apart(claim, datasets))


def allowed_loss(claim: Specification, datasets: Sequence[Any]) -> Exact:
    """What the claim allows for each unit of distance between these data sets, in its linear number."""
    if claim.budget.is_constant:
        _require_stated_here(claim, datasets[0])
        return claim.budget.linear()
    return min(claim.budget.linear(number) for number in _shared(claim, datasets))


def _require_stated_here(claim: Specification, data: Any) -> None:
    """Refuse the value of a policy in another universe: b must be the size of a stratum of the data."""
    policy, schema = claim.budget.policy, claim.domain.record_schema
    if not isinstance(policy, Swapping) or policy.where or isinstance(data, Mapping):
        return
    stated = [s.value for s in claim.budget.at if s.name == policy.statistic]
    if not stated or stated[0] == 0:
        return
    if _is_point(data):
        if schema is None:
            return
        places = [schema.names.index(name) for name in policy.match]
        keys = [tuple(record[i] for i in places) for record in data]
    else:
        keys = as_polars(data).select(policy.match).rows() if policy.match else [()] * len(as_polars(data))
    if stated[0] not in Counter(keys).values():
        raise InputError(
            "the claim is stated for another universe than that of the data sets",
            field="claim.budget.at",
            expected="the value of the policy in the universe of the data",
            hint="Ask the mechanism for its guarantee on these data.",
        )


def falls_short(claim: Specification, guarantee: Specification) -> bool:
    """Whether a claim promises more than the guarantee of the mechanism does: exactly, in any currency.

    A claim of the same flavor may have a larger budget. One of another flavor must follow from the guarantee.
    """
    require_claim(claim)
    one, two = guarantee.budget, claim.budget
    if one.policy is not None and two.policy is None:
        # One number for every universe, where the mechanism has a policy.
        return True
    known = two.policy in (one.policy, ANNOUNCED) and two.at == one.at
    if claim.flavor == guarantee.flavor and one.is_constant and two.is_constant and known:
        same = one.parametrisation == two.parametrisation
        return one.amount > two.amount if same else one.linear() > two.linear()
    return compare(guarantee, claim).overall not in {Order.STRONGER, Order.EQUIVALENT}


def claim_audit(
    claim: Specification, guarantee: Specification, *, subject: str = "the claim against the guarantee"
) -> Finding:
    """Hold a claim against the guarantee that the mechanism itself states.

    A claim that falls short of it is violated although no pair of data sets may show so: nothing stands
    behind it. Other audits look for what the guarantee itself does not keep.
    """
    short = falls_short(claim, guarantee)
    if claim.flavor != guarantee.flavor:
        said = "is of another kind than" if short else "follows from"
        sentence = f"the claim {said} the guarantee of the mechanism, {guarantee}"
    elif short:
        sentence = (
            f"the claim is {claim.budget}, and the mechanism guarantees no less than {guarantee.budget}: "
            "nothing stands behind the difference"
        )
    else:
        sentence = (
            f"the claim, {claim.budget}, is not below what the mechanism guarantees, {guarantee.budget}"
        )
    verdict = Verdict.VIOLATED if short else Verdict.NOT_REFUTED
    return Finding("accounting", subject, verdict, sentence, _linear(guarantee), _linear(claim))


def _linear(specification: Specification) -> Exact | None:
    return specification.budget.linear() if specification.budget.is_constant else None


def _shared(claim: Specification, datasets: Sequence[Any]) -> list[int]:
    """The numbers of the listed universes that hold all of these data sets."""
    points = {d if _is_point(d) else records_of(as_polars(d), claim.domain) for d in datasets}
    return [i for i, universe in enumerate(claim.universes()) if points <= universe]


def _apart(claim: Specification, datasets: Sequence[Any]) -> tuple[Any, Any]:
    """Two of the data sets that share no universe; the first two where every pair shares one."""
    pairs = itertools.combinations(datasets, 2)
    found = next(((x, y) for x, y in pairs if not same_universe(claim, x, y)), None)
    if found is None:
        raise Refusal(
            "the data sets do not lie in one universe together, although each pair does in some",
            field="datasets",
            expected="data sets of one universe of the claim",
            hint="Audit one universe after the other.",
        )
    return found


def distance_between(claim: Specification, x: Any, y: Any, companions: Collection[str] = ()) -> Exact:
    """The distance of two data sets under the input premetric of the claim.

    Frames are compared as multisets of rows in the columns that the domain's schema names. In a mapping from
    unit to frame the table of the protection unit counts, and the others must not differ. ``companions`` are
    units of which the claim says that one record may change with each record of the protection unit: they
    may differ in as many.
    """
    require_claim(claim)
    premetric = claim.input_premetric
    if _is_point(x):
        return premetric.distance(x, y)
    if isinstance(x, Mapping):
        changed = distance_between(claim, table_in(x, premetric.unit), table_in(y, premetric.unit))
        for unit in (set(x) | set(y)) - {premetric.unit}:
            before, after = table_in(x, unit), table_in(y, unit)
            followed = Exact.of(_difference(before, after, claim.domain)) / 2
            if followed > (changed if unit in companions and before.height == after.height else ZERO):
                return INFINITY
        return changed
    x, y = as_polars(x), as_polars(y)
    if isinstance(premetric, HammingUnordered | SymmetricDifference):
        difference = _difference(x, y, claim.domain)
        if isinstance(premetric, SymmetricDifference):
            return Exact.of(difference)
        return INFINITY if x.height != y.height else Exact.of(difference) / 2
    return premetric.distance(*(records_of(frame, claim.domain) for frame in (x, y)))


def compared_distance(claim: Specification, x: Any, y: Any, companions: Collection[str] = ()) -> Exact:
    """The distance of two data sets that a claim compares; refused where it does not."""
    require_same_universe(claim, x, y)
    distance = distance_between(claim, x, y, companions)
    if distance.is_infinite:
        raise far_apart()
    return distance


def far_apart() -> InputError:
    """The refusal of a pair of which the claim says nothing."""
    return InputError(
        "the two data sets of a pair are infinitely far apart",
        field="pairs",
        expected="a finite distance: the claim allows any difference otherwise",
        hint="Reach the second data set from the first by changes of single units.",
    )


def records_of(frame: pl.DataFrame, domain: Domain) -> tuple[Record, ...]:
    """The rows of a frame as records in the order of the domain's schema, sorted where order is no data."""
    rows = frame.select(_columns(frame, domain)).iter_rows()
    return tuple(rows) if domain.structure == "vector" else tuple(sorted(rows, key=repr))


def _difference(x: pl.DataFrame, y: pl.DataFrame, domain: Domain) -> int:
    """Rows of either frame that the other lacks, counted with multiplicity."""
    import polars as pl

    names = _columns(x, domain)
    signed = pl.concat(
        [frame.select(names).with_columns(pl.lit(sign).alias("__sign")) for frame, sign in ((x, 1), (y, -1))]
    )
    return int(signed.group_by(names).agg(pl.col("__sign").sum().abs())["__sign"].sum())


def _columns(frame: pl.DataFrame, domain: Domain) -> list[str]:
    names = domain.record_schema.names if domain.record_schema is not None else frame.columns
    return [name for name in names if name in frame.columns]


def table_in(data: Mapping[str, Any], unit: str) -> pl.DataFrame:
    """The table of a unit; refused where there is none."""
    if unit not in data:
        raise InputError(
            f"a data set has no table of {unit}",
            field="data",
            expected="the same units in both data sets, the protection unit among them",
            hint="Pass a mapping from unit to frame.",
        )
    return as_polars(data[unit])


def _is_point(x: Any) -> bool:
    return isinstance(x, tuple | frozenset | str | int)
