"""The statistical audit: draws of two data sets of one universe, and an event that tells them apart too well.

Events are chosen on draws of their own and tested on fresh ones. Hits bound the two probabilities, and the
bounds bound the loss from below.

Guarantee
    A claim that holds is called violated with probability at most alpha, over all pairs, both directions, all
    events and both bounds (Bonferroni). "Not refuted" promises nothing: a rare event escapes any draws.
Assumes
    ``sample`` draws independently, and its source gives independent streams.
Reference
    Data processing: the indicator of an event S turns P_x and P_y into coins, so D(P_x, P_y) is at least
    D(coin(P_x(S)), coin(P_y(S))). It is enough to know p <= P_x(S) and q >= P_y(S) with p > q: the coins
    (p, q) are made from (p', q') with p' >= p > q >= q' by the kernel that answers yes after yes with
    probability b + (p - q)/(p' - q') and after no with probability b = (p'q - pq')/(p' - q'), so that by data
    processing once more D(coin(p), coin(q)) is not above D(coin(p'), coin(q')).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.audit import binomial
from stirred.audit.claim import distance_between, far_apart, require_auditable, require_same_universe
from stirred.audit.events import Event, Partition, counts_of, partitions
from stirred.audit.finding import Certificate, Finding, Verdict
from stirred.audit.outputs import Outputs, Sample, alike, outputs_of, sampler_of
from stirred.audit.raised import Raised, outcome_of
from stirred.errors import InputError
from stirred.noise import Source
from stirred.spec import (
    INFINITY,
    ZERO,
    Approximate,
    Distribution,
    Exact,
    Multiplicative,
    Specification,
    quotient,
    shown,
)

FACTOR = 1.2
PLACES = 9
CALLS = 1000
ONE = Exact.of(1)
_SAFE = 1 - Fraction(1, 10**9)


def statistical_audit(
    sample: Any,
    pairs: Sequence[tuple[Any, Any]],
    claim: Specification,
    *,
    draws: int = 100_000,
    alpha: float = 1e-6,
    source: Source,
    subject: str = "the mechanism",
    events: int = 8,
    select: float | None = None,
) -> Finding:
    """Draw from a mechanism on pairs of data sets and try to refute its claim.

    Time is O(draws log draws) for each pair, numbers and rows of numbers in vectors: seconds for a million
    draws of one number. Memory is that of the draws of one pair.

    Parameters
    ----------
    sample
        A function of a data set, a count and a source that returns so many independent outputs: an array
        whose rows are outputs, or a list of hashable ones. Or a mechanism with such a method ``sample``.
        A draw that fails may be returned as an outcome of its own; an error that is raised is one too.
    pairs
        Pairs of data sets, each in one universe of the claim and at a finite distance.
    claim
        What is audited. Claims about neighbours only are tested on pairs at distance one.
    alpha
        Probability of a false alarm, over the whole audit.
    events
        Events that are tested for each pair and direction.
    select
        Share of the draws on which the events are chosen: a third unless said otherwise.
    """
    require_auditable(claim)
    promises = _promises(claim)
    split = _split(draws, select)
    compared = _compared(claim, pairs)
    draw = sampler_of(sample)
    if not compared:
        sentence = "none of the given pairs are neighbours, and the claim speaks of neighbours only"
        return Finding("statistical", subject, Verdict.VACUOUS, sentence, details={"pairs": 0})
    share = alpha / (4 * len(compared) * events)
    plan = _Plan(promises, *split, share, events)
    results = [_audit_pair(draw, pair, plan, source.child(number)) for number, pair in enumerate(compared)]
    evidence = [item for result in results for item in result.evidence]
    failures = [result.failure for result in results if result.failure]
    details = _details(plan, compared, draws, alpha) | ({"failures": failures} if failures else {})
    return _concluded(evidence, failures, details, promises[0].claimed, subject)


class _Promise(NamedTuple):
    """One number that the claim gives: the most that a premetric may reach for each unit of distance."""

    premetric: Any
    claimed: Exact


class _Plan(NamedTuple):
    promises: tuple[_Promise, ...]
    selected: int
    tested: int
    share: float
    events: int


class _Compared(NamedTuple):
    """Two data sets and their distance in each direction that the claim speaks of."""

    x: Any
    y: Any
    distances: tuple[Exact | None, Exact | None]


class _Evidence(NamedTuple):
    pair: tuple[Any, Any]
    distance: Exact
    event: Any
    bounds: tuple[float, float]
    measured: Exact
    promise: _Promise

    @property
    def excess(self) -> Exact:
        return self.measured - self.promise.claimed


class _Result(NamedTuple):
    evidence: list[_Evidence]
    failure: str = ""


def _promises(claim: Specification) -> tuple[_Promise, ...]:
    premetric, budget = claim.output_premetric, claim.budget
    if not premetric.properties.post_processing:
        raise InputError(
            f"an event says nothing about {premetric.symbol}, which post-processing may raise",
            field="claim.output_premetric",
            expected="a premetric that is immune to post-processing, such as D_Mult or D_NoR",
            hint="Use the exact audit.",
        )
    if budget.parametrisation == "epsilon_of_delta":
        points = ((Approximate(delta=delta), epsilon) for delta, epsilon in budget.curve)
        found = tuple(_Promise(p, epsilon) for p, epsilon in points if not epsilon.is_infinite)
    else:
        found = (_Promise(premetric, budget.linear()),) if budget.is_constant else ()
    if not found:
        raise InputError(
            "the claim has no single finite budget",
            field="claim.budget",
            expected="one amount for all universes, or a curve of epsilon by delta",
            hint="State the claim for the universe of the pairs; audit other curves exactly.",
        )
    return found


def _split(draws: int, select: float | None) -> tuple[int, int]:
    chosen = draws // 3 if select is None else int(draws * select)
    if not 0 < chosen < draws:
        raise InputError(
            "no draws are left to choose events or to test them",
            field="draws",
            expected="at least three draws, and a share strictly between 0 and 1",
            hint="Take a third to choose events.",
        )
    return chosen, draws - chosen


def _compared(claim: Specification, pairs: Sequence[tuple[Any, Any]]) -> list[_Compared]:
    """The pairs that the claim speaks of, with the true distance in each direction."""
    found = []
    for x, y in pairs:
        require_same_universe(claim, x, y)
        both = distance_between(claim, x, y), distance_between(claim, y, x)
        if all(distance.is_infinite for distance in both):
            raise far_apart()
        linear = claim.output_premetric.properties.linear_group
        there, back = (d if d == ONE or (linear and not d.is_infinite) else None for d in both)
        if there is not None or back is not None:
            found.append(_Compared(x, y, (there, back)))
    if not pairs:
        raise InputError(
            "there is nothing to compare",
            field="pairs",
            expected="at least one pair of data sets of one universe",
            hint="In a universe of a single data set every claim holds.",
        )
    return found


def _audit_pair(draw: Sample, pair: _Compared, plan: _Plan, source: Source) -> _Result:
    batches: list[Outputs] = []
    failures: list[str] = []
    for side, data in enumerate((pair.x, pair.y)):
        drawn, failure = _drawn(draw, data, plan, source.child(side))
        batches += drawn
        failures.append(failure)
    if any(failures):
        return _error_channel(draw, pair, plan, failures, source)
    select_x, test_x, select_y, test_y = alike(batches)
    evidence = []
    made = list(partitions(select_x, select_y))
    counted = [(p, counts_of(p, select_x), counts_of(p, select_y)) for p in made]
    tested = _Tested(test_x, test_y)
    for backward, distance in enumerate(pair.distances):
        if distance is None:
            continue
        seen = [(p, *((b, a) if backward else (a, b))) for p, a, b in counted]
        for event in _chosen(seen, plan, distance):
            hits = tested.hits(event)
            ordered = hits[::-1] if backward else hits
            evidence.append(_weighed(pair, backward, distance, event, ordered, (plan.tested,) * 2, plan))
    return _Result(evidence)


def _drawn(draw: Sample, data: Any, plan: _Plan, source: Source) -> tuple[list[Outputs], str]:
    """Draws to choose and draws to test, or the name of the error that was raised."""
    batches = []
    for phase, count in enumerate((plan.selected, plan.tested)):
        raw = outcome_of(draw, data, count, source.child(phase))
        if isinstance(raw, Raised):
            return [], raw.error
        batches.append(outputs_of(raw, count))
    return batches, ""


def _error_channel(
    draw: Sample, pair: _Compared, plan: _Plan, failures: Sequence[str], source: Source
) -> _Result:
    """Whether the two data sets raise an error with different probabilities.

    A batch that did not raise has no draw that raises. Where it did, single draws are counted.
    """
    evidence = []
    for backward, distance in enumerate(pair.distances):
        name = failures[backward]
        if distance is None or not name:
            continue
        sides = [(pair.x, 0), (pair.y, 1)][:: -1 if backward else 1]
        (first, n), (second, m) = (
            _raising(draw, data, name, source.child(2 + side)) if failures[side] else (0, plan.tested)
            for data, side in sides
        )
        event = f"raises {name}"
        evidence.append(_weighed(pair, backward, distance, event, (first, second), (n, m), plan))
    return _Result(evidence, " and ".join(sorted(set(filter(None, failures)))))


def _raising(draw: Sample, data: Any, name: str, source: Source) -> tuple[int, int]:
    outcomes = (outcome_of(draw, data, 1, source.child(number)) for number in range(CALLS))
    return sum(isinstance(found, Raised) and found.error == name for found in outcomes), CALLS


def _weighed(
    pair: _Compared,
    backward: int,
    distance: Exact,
    event: Any,
    hits: tuple[int, int],
    draws: tuple[int, int],
    plan: _Plan,
) -> _Evidence:
    """What the hits of an event show: the promise that is exceeded by most, or kept most barely."""
    p = float(binomial.lower(hits[0], draws[0], plan.share))
    q = float(binomial.upper(hits[1], draws[1], plan.share))
    ordered = (pair.y, pair.x) if backward else (pair.x, pair.y)
    losses = ((loss_of_bounds(promise.premetric, p, q, distance), promise) for promise in plan.promises)
    found = (_Evidence(ordered, distance, event, (p, q), loss, promise) for loss, promise in losses)
    return max(found, key=lambda item: item.excess)


def loss_of_bounds(premetric: Any, p: float, q: float, distance: Exact) -> Exact:
    """The loss for each unit of distance, rounded down, that P_x(S) >= p and P_y(S) <= q demand.

    Examples
    --------
    >>> float(loss_of_bounds(Multiplicative(), 0.5, 0.125, Exact.of(2)))  # ln(4)/2
    0.693147179
    """
    if p <= q:
        return ZERO
    divergence = premetric.between(_coin(p), _coin(q))
    if distance.is_zero:
        return INFINITY if divergence > ZERO else ZERO
    per_unit = quotient(divergence, distance, up=False) * _SAFE
    return Exact(Fraction(per_unit.rounded(PLACES, down=True)))


def _coin(probability: float) -> Distribution:
    yes = Fraction(probability)
    return Distribution({1: yes, 0: 1 - yes})


def _details(plan: _Plan, compared: Sequence[_Compared], draws: int, alpha: float) -> dict[str, Any]:
    lengths = {d for pair in compared for d in pair.distances if d is not None and d > ZERO}
    details: dict[str, Any] = {
        "draws": draws,
        "draws tested": plan.tested,
        "alpha": alpha,
        "events": plan.events,
        "pairs": len(compared),
    }
    if not lengths:
        return details
    low = float(binomial.lower(plan.tested, plan.tested, plan.share))
    high = float(binomial.upper(0, plan.tested, plan.share))
    details["ceiling"] = max(
        float(loss_of_bounds(promise.premetric, low, high, min(lengths))) for promise in plan.promises
    )
    promise = plan.promises[0]
    if isinstance(promise.premetric, Multiplicative) and promise.claimed > ZERO:
        tests = 2 * len(compared) * plan.events
        allowed = {float(promise.claimed) * float(d) for d in lengths}
        details["power"] = max(
            binomial.power(bound, FACTOR * bound, plan.tested, alpha, tests) for bound in allowed
        )
    return details


def _concluded(
    evidence: Sequence[_Evidence],
    failures: Sequence[str],
    details: Mapping[str, Any],
    claimed: Exact,
    subject: str,
) -> Finding:
    best = max(evidence, key=lambda item: item.excess, default=None)
    if best is not None and best.excess > ZERO:
        return _violated(best, details, subject)
    if len(failures) == details["pairs"]:
        sentence = (
            "the mechanism raises an error, on both data sets of a pair or too rarely for a certificate: "
            "return it as an outcome of the draw that fails"
        )
        return Finding("statistical", subject, Verdict.NOT_APPLICABLE, sentence, details=details)
    measured, promised = (best.measured, best.promise.claimed) if best else (ZERO, claimed)
    sentence = (
        f"not refuted up to {measured.rounded(4, down=True)}, which {details['draws']:,} draws of each data "
        f"set show, where {shown(promised)} is claimed; {_power_in_words(details)}"
    )
    if failures:
        sentence += f"; {len(failures)} of {details['pairs']} pairs raise errors and are not compared"
    return Finding("statistical", subject, Verdict.NOT_REFUTED, sentence, measured, promised, details=details)


def _violated(best: _Evidence, details: Mapping[str, Any], subject: str) -> Finding:
    claimed = best.promise.claimed
    certificate = Certificate(best.pair, best.distance, best.measured, claimed, best.event, best.bounds)
    how = best.event if isinstance(best.event, str) else best.event.family
    channel = f"the error channel ({how})" if isinstance(best.event, str) else f"an event ({how})"
    delta = getattr(best.promise.premetric, "delta", None)
    at = "" if delta is None else f" at delta {delta}"
    least, most = math.floor(best.bounds[0] * 1e6) / 1e6, math.ceil(best.bounds[1] * 1e6) / 1e6
    sentence = (
        f"the loss is at least {best.measured.rounded(4, down=True)} for each unit of distance, above the "
        f"claimed {shown(claimed)}{at}: {channel} has probability at least {least:.6f} on one "
        f"data set and at most {most:.6f} on another at distance {best.distance}"
    )
    return Finding(
        "statistical", subject, Verdict.VIOLATED, sentence, best.measured, claimed, certificate,
        dict(details) | {"event": how},
    )  # fmt: skip


def _power_in_words(details: Mapping[str, Any]) -> str:
    if "ceiling" not in details:
        return "at distance zero any difference would refute it"
    ceiling = f"so many draws can show {math.floor(details['ceiling'] * 100) / 100:.2f} at most"
    if "power" not in details:
        return f"{ceiling}; no power is stated for this kind of claim"
    chance = min(math.floor(details["power"] * 100) / 100, 0.99)
    if not chance:
        return f"{ceiling}, too few to state a power against so large a claim"
    return (
        f"{ceiling}; under Laplace noise the best half-line refutes a claim {FACTOR} times too small with "
        f"probability at least {chance:.2f}"
    )


class _Tested:
    """Fresh draws, sorted into the cells of a partition when it is first asked for."""

    def __init__(self, first: Outputs, second: Outputs) -> None:
        self._draws = first, second
        self._counts: dict[Partition, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def hits(self, event: Event) -> tuple[int, int]:
        if event.partition not in self._counts:
            first, second = (counts_of(event.partition, side) for side in self._draws)
            self._counts[event.partition] = first, second
        first, second = self._counts[event.partition]
        return int(first[event.chosen].sum()), int(second[event.chosen].sum())


Counted = tuple[Partition, NDArray[np.int64], NDArray[np.int64]]


class _Candidate(NamedTuple):
    scores: tuple[float, ...]
    event: Event
    bounds: tuple[float, float]


def _chosen(counted: Iterable[Counted], plan: _Plan, distance: Exact) -> list[Event]:
    """The events with the largest expected excess over the claim, from a short list by quick scores."""
    candidates = [c for partition, a, b in counted for c in _candidates(partition, a, b, plan)]
    if not candidates:
        return []
    listed: dict[int, _Candidate] = {}
    for scores in zip(*(candidate.scores for candidate in candidates), strict=True):
        for index in np.argsort(-np.asarray(scores), kind="stable")[: plan.events]:
            listed[int(index)] = candidates[index]
    ranked = sorted(listed.values(), key=lambda c: _expected_excess(c.bounds, plan, distance), reverse=True)
    return [candidate.event for candidate in ranked[: plan.events]]


def _expected_excess(bounds: tuple[float, float], plan: _Plan, distance: Exact) -> Exact:
    return max(loss_of_bounds(p.premetric, *bounds, distance) - p.claimed for p in plan.promises)


def _candidates(
    partition: Partition, a: NDArray[np.int64], b: NDArray[np.int64], plan: _Plan
) -> Iterator[_Candidate]:
    """For each order of the cells, and for cells alone, the event that is best by each score."""
    occupied = np.flatnonzero(a + b)
    ratio = (a[occupied] + 0.5) / (b[occupied] + 0.5)
    runs = [occupied[np.argsort(-ratio, kind="stable")]]
    if partition.ordered:
        runs += [occupied, occupied[::-1]]
    seen: set[bytes] = set()
    for order, first, second in [
        *((run, np.cumsum(a[run]), np.cumsum(b[run])) for run in runs),
        (None, a[occupied], b[occupied]),
    ]:
        low, high, scores = _scores(first, second, plan)
        for best in {int(np.argmax(score)) for score in scores}:
            if low[best] <= high[best]:
                continue
            chosen = np.zeros(partition.size, dtype=np.bool_)
            chosen[occupied[best] if order is None else order[: best + 1]] = True
            if chosen.tobytes() not in seen:
                seen.add(chosen.tobytes())
                bounds = float(low[best]), float(high[best])
                yield _Candidate(tuple(float(s[best]) for s in scores), Event(partition, chosen), bounds)


def _scores(
    a: NDArray[np.int64], b: NDArray[np.int64], plan: _Plan
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[NDArray[np.float64]]]:
    """Bounds that the draws for testing would give, and log-ratios, difference and relative entropy."""
    scale = plan.tested / plan.selected
    low = binomial.lower(np.minimum(a * scale, plan.tested), plan.tested, plan.share)
    high = binomial.upper(np.minimum(b * scale, plan.tested), plan.tested, plan.share)
    deltas = {float(getattr(p.premetric, "delta", ZERO)) for p in plan.promises}
    tiny = math.ulp(0.0)
    scores = [np.log(np.maximum(low - delta, tiny) / high) for delta in sorted(deltas)]
    scores.append(low - high)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = low * np.log(low / high) + (1 - low) * np.log((1 - low) / (1 - high))
    scores.append(np.where((low > high) & (high < 1), np.nan_to_num(entropy), 0.0))
    return low, high, scores
