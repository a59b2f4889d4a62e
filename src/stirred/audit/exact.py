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
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.audit.claim import distance_between, records_of, require_auditable, require_same_universe
from stirred.audit.finding import Certificate, Finding, Verdict
from stirred.errors import InputError
from stirred.interchange import as_polars
from stirred.spec.budget import shown
from stirred.spec.distribution import Distribution
from stirred.spec.domain import Domain
from stirred.spec.exact import INFINITY, ZERO, Exact
from stirred.spec.extended import least_budget
from stirred.spec.mechanism import FiniteMechanism, exceeds, satisfies
from stirred.spec.multiverse import Trivial
from stirred.spec.output_premetric import Multiplicative
from stirred.spec.specification import Specification
from stirred.spec.steepest import steepest

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
        Anything with ``outcomes(data)``: each output with its exact probability.
    datasets
        Data sets of one universe, as points or as frames; all of them for a complete answer.
    claim
        The claim; what ``mechanism.guarantee`` says if not given, which must be the same for all data sets.
    subject
        What is audited, in words.

    A data set on which the mechanism raises is an output too: an error that another data set of the universe
    does not raise is a finding.
    """
    require_capability(mechanism, "outcomes")
    if claim is None:
        claim = mechanism.guarantee(datasets[0])
        for number, data in enumerate(datasets):
            if mechanism.guarantee(data) != claim:
                return _unequal_guarantees(claim, datasets, number, subject)
    require_auditable(claim)
    for data in datasets[1:]:
        require_same_universe(claim, datasets[0], data)
    laws = [_law(mechanism, data) for data in datasets]
    return audit_laws(laws, datasets, claim, subject=subject)


def audit_laws(
    laws: Sequence[Mapping[Any, Fraction]],
    datasets: Sequence[Any],
    claim: Specification,
    *,
    subject: str = "the mechanism",
) -> Finding:
    """Compare exact output laws of data sets of one universe with a claim."""
    distances, values = _distances(claim, datasets)
    compared = int((distances >= 0).sum()) - len(datasets)
    details: dict[str, Any] = {"data sets": len(datasets), "pairs": compared}
    if compared <= 0:
        sentence = "no two data sets of this universe are compared: the guarantee protects nothing here"
        return Finding("exact", subject, Verdict.VACUOUS, sentence, ZERO, details=details)
    if claim.budget.curve:
        return _audit_curve(laws, datasets, claim, subject, details)
    budget = claim.budget.linear(_universe_number(claim, datasets[0]))
    if isinstance(claim.output_premetric, Multiplicative):
        found = steepest(laws, distances, values)
        loss, pair, event, distance = found.loss, (found.x, found.y), found.outcome, found.distance
    else:
        loss, pair, event, distance = _slowest(laws, distances, values, claim)
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
    pairs: Sequence[tuple[Any, Any, Exact]],
    claim: Specification,
    *,
    subject: str = "the mechanism",
) -> Finding:
    """Compare the exact divergence of chosen pairs with the claim, at any scale.

    Parameters
    ----------
    mechanism
        Anything with ``divergence(x, y)``: the divergence of its output laws under the claim's premetric.
    pairs
        Two data sets of one universe each, and their distance.
    """
    require_capability(mechanism, "divergence")
    require_auditable(claim)
    budget = claim.budget.linear()
    worst: tuple[Exact, int] = (ZERO, 0)
    for number, (x, y, distance) in enumerate(pairs):
        loss = least_budget(mechanism.divergence(x, y), distance)
        if loss > worst[0]:
            worst = loss, number
    loss, number = worst
    details = {"pairs": len(pairs), "attained": loss == budget}
    if not loss > budget:
        sentence = f"the exact loss of {len(pairs)} pairs is at most {shown(loss)}, within {shown(budget)}"
        return Finding("exact", subject, Verdict.NOT_REFUTED, sentence, loss, budget, details=details)
    x, y, distance = pairs[number]
    certificate = Certificate((x, y), distance, loss, budget)
    sentence = (
        f"a pair of data sets at distance {distance} demands {shown(loss)} for each unit of distance, above "
        f"the claimed {shown(budget)}"
    )
    return Finding("exact", subject, Verdict.VIOLATED, sentence, loss, budget, certificate, details)


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


def _law(mechanism: Any, data: Any) -> Mapping[Any, Fraction]:
    try:
        law = mechanism.outcomes(data)
    except Exception as error:  # whatever the mechanism raises is an output that an adversary sees
        return {("raises", type(error).__name__): Fraction(1)}
    law = dict(law.items())
    if sum(law.values()) != 1 or min(law.values()) < 0:
        raise InputError(
            "the outcomes are not a probability law",
            field="mechanism.outcomes",
            expected="exact probabilities that sum to one",
            hint="Give fractions, for every output that can come out.",
        )
    return law


def _distances(claim: Specification, datasets: Sequence[Any]) -> tuple[NDArray[np.int64], list[Exact]]:
    """Every distance by its position in the list of those that occur; -1 where it is infinite."""
    points = _points(claim, datasets)
    codes: dict[Exact, int] = {}
    out = np.full((len(points), len(points)), -1, dtype=np.int64)
    for (i, x), (j, y) in itertools.product(enumerate(points), repeat=2):
        distance = ZERO if i == j else distance_between(claim, x, y)
        if not distance.is_infinite:
            out[i, j] = codes.setdefault(distance, len(codes))
    return out, list(codes)


def _points(claim: Specification, datasets: Sequence[Any]) -> list[Any]:
    """Frames as tuples of records, so that distances are cheap; other data as they are."""
    given = (tuple, frozenset, str, int, Mapping)
    return [d if isinstance(d, given) else records_of(as_polars(d), claim.domain) for d in datasets]


def _slowest(
    laws: Sequence[Mapping[Any, Fraction]],
    distances: NDArray[np.int64],
    values: Sequence[Exact],
    claim: Specification,
) -> tuple[Exact, tuple[int | None, int | None], Any, Exact]:
    """The largest loss under any premetric, pair by pair."""
    made = [Distribution(law) for law in laws]
    best: tuple[Exact, tuple[int | None, int | None], Any, Exact] = (ZERO, (None, None), None, ZERO)
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
    laws: Sequence[Mapping[Any, Fraction]],
    datasets: Sequence[Any],
    claim: Specification,
    subject: str,
    details: dict[str, Any],
) -> Finding:
    """A curve has no single loss: neighbours either keep it or break it."""
    points = _points(claim, datasets)
    domain = Domain.finite(points, name=claim.domain.name)
    small = claim.model_copy(update={"domain": domain, "multiverse": Trivial()})
    table = {p: Distribution(law) for p, law in zip(domain.enumerate(), laws, strict=True)}
    result = satisfies(FiniteMechanism(domain, table), small)
    if result.satisfied:
        return Finding("exact", subject, Verdict.NOT_REFUTED, "every pair keeps the curve", details=details)
    assert result.violation is not None
    broken = result.violation
    certificate = Certificate((broken.x, broken.y), broken.distance, INFINITY, ZERO)
    sentence = "a pair of data sets breaks the claimed curve"
    return Finding("exact", subject, Verdict.VIOLATED, sentence, certificate=certificate, details=details)


def _universe_number(claim: Specification, data: Any) -> int:
    if claim.budget.is_constant:
        return 0
    universes = claim.multiverse.universes(claim.domain)
    (point,) = _points(claim, [data])
    return next(i for i, universe in enumerate(universes) if point in universe)


def _unequal_guarantees(claim: Specification, datasets: Sequence[Any], number: int, subject: str) -> Finding:
    distance = distance_between(claim, datasets[0], datasets[number])
    certificate = Certificate((datasets[0], datasets[number]), distance, INFINITY, ZERO, "guarantee")
    sentence = "the guarantee itself differs between data sets of one universe: stating it tells them apart"
    return Finding("exact", subject, Verdict.VIOLATED, sentence, INFINITY, certificate=certificate)


def _short(value: Fraction) -> str:
    return str(value) if len(str(value)) <= 24 else f"about {float(value):.6g}"
