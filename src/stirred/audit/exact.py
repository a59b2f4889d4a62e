"""The exact audit: every output of every data set of a universe, in rationals, against the claim.

Guarantee
    For premetrics with closed numbers (D_Mult, its delta-approximation, total variation) the measured loss is
    the protection loss of the mechanism on the given data sets, exactly; for others it is computed to a
    relative 1e-9. Given the whole universe, "not refuted" means that the claim holds in it.
Assumes
    ``outcomes`` is the law of ``release``: the conformity audit tests that.
Reference
    Definition 2.4.5 of Bailie's thesis; the slow twin is ``stirred.spec.satisfies``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.audit.claim import (
    allowed_loss,
    compared_distance,
    distance_between,
    records_of,
    require_auditable,
    require_one_universe,
)
from stirred.audit.finding import Certificate, Finding, Verdict
from stirred.audit.preparation import prepared_by
from stirred.audit.raised import Raised, outcome_of
from stirred.errors import InputError
from stirred.interchange import as_polars
from stirred.spec import (
    INFINITY,
    ZERO,
    Distribution,
    Exact,
    Multiplicative,
    Specification,
    curve_test,
    exceeds,
    least_budget,
    shown,
    steepest,
)

ONE = Exact.of(1)
Laws = Sequence[Mapping[Any, Fraction]]
Pair = tuple[int | None, int | None]
Distances = tuple[NDArray[np.int64], list[Exact]]
CAPABILITIES = {
    "outcomes": "the exact audit",
    "divergence": "the exact audit of pairs",
    "measure": "the replay audit",
    "sample": "the statistical audit",
}


def exact_audit(
    mechanism: Any,
    datasets: Sequence[Any],
    claim: Specification | None = None,
    *,
    subject: str = "the mechanism",
) -> Finding:
    """Enumerate a mechanism on data sets of one universe and compare with its claim.

    Parameters
    ----------
    mechanism
        Anything with ``outcomes``: each output with its exact probability, from what the mechanism prepares
        of a data set, or from the data where it has no ``prepare``.
    datasets
        Data sets of one universe, as points or as frames; all of them for a complete answer.
    claim
        The claim; what ``mechanism.guarantee`` says if not given, which must be the same for all data sets.

    A data set on which the mechanism raises is an output too: an error that another data set of the universe
    does not raise is a finding.
    """
    require_capability(mechanism, "outcomes")
    if not datasets:
        raise InputError(
            "there is no data set to audit on",
            field="datasets",
            expected="data sets of one universe",
            hint="List a universe with universe_of.",
        )
    stated = claim is None
    prepare = prepared_by(mechanism)
    claim = mechanism.guarantee(prepare(datasets[0])) if claim is None else claim
    require_auditable(claim)
    require_one_universe(claim, datasets)
    ready = [outcome_of(prepare, data) for data in datasets]
    for number, prepared in enumerate(ready[1:] if stated else (), start=1):
        if _outcome(mechanism.guarantee, prepared) != claim:
            return _unequal_guarantees(claim, datasets, number, subject)
    laws = [_law(mechanism, prepared) for prepared in ready]
    errors = {next(iter(law)) for law in laws}
    if len(errors) == 1 and isinstance(raised := errors.pop(), Raised):
        sentence = f"the mechanism raises {raised.error} on every data set: there is no output to audit"
        return Finding("exact", subject, Verdict.NOT_APPLICABLE, sentence)
    return audit_laws(laws, datasets, claim, subject=subject)


def audit_laws(
    laws: Laws, datasets: Sequence[Any], claim: Specification, *, subject: str = "the mechanism"
) -> Finding:
    """Compare exact output laws of data sets of one universe with a claim."""
    distances, values = _distances(claim, datasets)
    compared = int((distances >= 0).sum()) - len(datasets)
    details: dict[str, Any] = {"data sets": len(datasets), "pairs": compared}
    if compared <= 0:
        sentence = "no two data sets of this universe are compared: the guarantee protects nothing here"
        return Finding("exact", subject, Verdict.VACUOUS, sentence, ZERO, details=details)
    if claim.budget.curve:
        return _audit_curve(laws, (distances, values), datasets, claim, subject, details)
    budget = allowed_loss(claim, datasets)
    if isinstance(claim.output_premetric, Multiplicative):
        found = steepest(laws, distances, values)
        loss, pair, event, distance = found.loss, (found.x, found.y), found.outcome, found.distance
    else:
        loss, pair, event, distance = _slowest(laws, (distances, values), claim)
    details["attained"] = loss == budget
    if not exceeds(loss, budget, claim):
        sentence = f"the exact loss on {len(datasets)} data sets is {shown(loss)}, within {shown(budget)}"
        return Finding("exact", subject, Verdict.NOT_REFUTED, sentence, loss, budget, details=details)
    x, y = pair
    assert x is not None and y is not None
    events = event if isinstance(event, frozenset) else frozenset({event})
    chances = tuple(sum((laws[i].get(z, Fraction(0)) for z in events), Fraction(0)) for i in (x, y))
    certificate = Certificate(
        (datasets[x], datasets[y]), distance, loss, budget, events, (chances[0], chances[1])
    )
    sentence = (
        f"the exact loss is {shown(loss)}, above the claimed {shown(budget)}: an event has probability "
        f"{_short(chances[0])} on one data set and {_short(chances[1])} on another at distance {distance}"
    )
    return Finding("exact", subject, Verdict.VIOLATED, sentence, loss, budget, certificate, details)


def divergence_audit(
    mechanism: Any,
    pairs: Sequence[tuple[Any, Any]],
    claim: Specification,
    *,
    subject: str = "the mechanism",
    view: Callable[[Any], Any] = lambda data: data,
    companions: Collection[str] = (),
) -> Finding:
    """Compare the exact divergence of chosen pairs with the claim, at any scale.

    Parameters
    ----------
    mechanism
        Anything with ``divergence``: of two prepared data sets that of the output laws, under the claim's
        premetric.
    view
        A data set as the claim reads it, where the mechanism takes another form.
    companions
        Units of which one record may change with each record of the protection unit.
    """
    require_capability(mechanism, "divergence")
    require_auditable(claim)
    if not pairs:
        raise InputError(
            "there is no pair to audit on",
            field="pairs",
            expected="at least one pair of data sets of one universe",
            hint="Make neighbours with stirred.audit.neighbours.",
        )
    properties, prepare = claim.output_premetric.properties, prepared_by(mechanism)
    compared = 0
    worst, within = ZERO, ZERO
    attained = False
    for x, y in pairs:
        seen = view(x), view(y)
        distance, allowed = compared_distance(claim, *seen, companions), allowed_loss(claim, seen)
        if properties.symmetric:
            distance = min(distance, distance_between(claim, seen[1], seen[0], companions))
        if not properties.linear_group and distance > ONE:
            continue
        compared += 1
        loss = least_budget(mechanism.divergence(prepare(x), prepare(y)), distance)
        attained = attained or loss == allowed
        if loss > allowed:
            certificate = Certificate((x, y), distance, loss, allowed)
            sentence = (
                f"a pair of data sets at distance {distance} demands {shown(loss)} for each unit of "
                f"distance, above the claimed {shown(allowed)}"
            )
            return Finding("exact", subject, Verdict.VIOLATED, sentence, loss, allowed, certificate)
        if loss >= worst:
            worst, within = loss, allowed
    if not compared:
        sentence = "none of the given pairs are neighbours, and the claim speaks of neighbours only"
        return Finding("exact", subject, Verdict.VACUOUS, sentence)
    details = {"pairs": compared, "attained": attained}
    some = "1 pair" if compared == 1 else f"{compared} pairs"
    sentence = f"the exact loss of {some} is at most {shown(worst)}, within {shown(within)}"
    return Finding("exact", subject, Verdict.NOT_REFUTED, sentence, worst, within, details=details)


def require_capability(mechanism: Any, name: str) -> None:
    """Refuse a mechanism that cannot do what an audit needs, and say which audits remain."""
    if callable(getattr(mechanism, name, None)):
        return
    left = [audit for has, audit in CAPABILITIES.items() if callable(getattr(mechanism, has, None))]
    raise InputError(
        f"the mechanism has no {name}",
        field=f"mechanism.{name}",
        expected=f"a method {name}, which {CAPABILITIES.get(name, 'this audit')} needs",
        hint="What remains: " + (", ".join(left) or "no audit") + ".",
    )


def _outcome(method: Callable[[Any], Any], prepared: Any) -> Any:
    """What a method returns or raises; what preparation raised, if it did."""
    return prepared if isinstance(prepared, Raised) else outcome_of(method, prepared)


def _law(mechanism: Any, prepared: Any) -> Mapping[Any, Fraction]:
    found = _outcome(mechanism.outcomes, prepared)
    law = {found: Fraction(1)} if isinstance(found, Raised) else dict(found.items())
    if sum(law.values()) != 1 or min(law.values()) < 0:
        raise InputError(
            "the outcomes are not a probability law",
            field="mechanism.outcomes",
            expected="exact probabilities that sum to one",
            hint="Give fractions, for every output that can come out.",
        )
    return law


def _distances(claim: Specification, datasets: Sequence[Any]) -> Distances:
    """Every distance by its position in the list of those that occur; -1 where a pair is not compared.

    Not compared is what is infinitely far apart; and beyond distance one where the output premetric has no
    group property, as of approximate claims, which speak of neighbours.
    """
    points = _points(claim, datasets)
    grouped = claim.output_premetric.properties.linear_group
    codes: dict[Exact, int] = {}
    out = np.full((len(points), len(points)), -1, dtype=np.int64)
    for (i, x), (j, y) in itertools.product(enumerate(points), repeat=2):
        distance = ZERO if i == j else distance_between(claim, x, y)
        if not distance.is_infinite and (grouped or distance <= ONE):
            out[i, j] = codes.setdefault(distance, len(codes))
    return out, list(codes)


def _points(claim: Specification, datasets: Sequence[Any]) -> list[Any]:
    """Frames as tuples of records, so that distances are cheap; other data as they are."""
    given = (tuple, frozenset, str, int, Mapping)
    return [d if isinstance(d, given) else records_of(as_polars(d), claim.domain) for d in datasets]


def _slowest(laws: Laws, apart: Distances, claim: Specification) -> tuple[Exact, Pair, Any, Exact]:
    """The largest loss under any premetric, pair by pair."""
    distances, values = apart
    made = [Distribution(law) for law in laws]
    best: tuple[Exact, Pair, Any, Exact] = (ZERO, (None, None), None, ZERO)
    symmetric = claim.output_premetric.properties.symmetric and bool((distances == distances.T).all())
    for x, y in itertools.permutations(range(len(laws)), 2):
        if distances[x, y] < 0 or (symmetric and x > y):
            continue
        distance = values[int(distances[x, y])]
        loss = least_budget(claim.output_premetric.between(made[x], made[y]), distance)
        if loss > best[0]:
            best = loss, (x, y), claim.output_premetric.worst_event(made[x], made[y]), distance
    return best


def _audit_curve(
    laws: Laws, apart: Distances, datasets: Sequence[Any], claim: Specification, subject: str, details: Any
) -> Finding:
    """A curve has no single loss: a pair either keeps it or breaks it."""
    distances, values = apart
    made, holds = [Distribution(law) for law in laws], curve_test(claim)
    for x, y in itertools.permutations(range(len(laws)), 2):
        if distances[x, y] < 0:
            continue
        distance, p, q = values[int(distances[x, y])], made[x], made[y]
        if p != q and (distance.is_zero or not holds(p, q)):
            certificate = Certificate((datasets[x], datasets[y]), distance, INFINITY, ZERO, "the curve")
            sentence = f"a pair of data sets at distance {distance} breaks the claimed curve"
            return Finding(
                "exact", subject, Verdict.VIOLATED, sentence, certificate=certificate, details=details
            )
    return Finding("exact", subject, Verdict.NOT_REFUTED, "every pair keeps the curve", details=details)


def _unequal_guarantees(claim: Specification, datasets: Sequence[Any], number: int, subject: str) -> Finding:
    distance = distance_between(claim, datasets[0], datasets[number])
    certificate = Certificate((datasets[0], datasets[number]), distance, INFINITY, ZERO, "guarantee")
    sentence = "the guarantee itself differs between data sets of one universe: stating it tells them apart"
    return Finding("exact", subject, Verdict.VIOLATED, sentence, INFINITY, certificate=certificate)


def _short(value: Fraction) -> str:
    return str(value) if len(str(value)) <= 24 else f"about {float(value):.6g}"
