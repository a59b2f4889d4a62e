"""The replay audit: what was drawn on one data set is returned on another; all that follows must be the same.

Guarantee
    For the data sets that are compared, and without statistics: whether anything but the primitives differs,
    be it their order and parameters, how far their arguments move, the budget they spend together, an error,
    or any published artefact. The first difference is named.
Assumes
    All randomness is drawn through the tape, and nothing is remembered from one run to the next.
Reference
    The idea of recording on D and replaying on D' is Re:cord-play's (dp-recorder, PoPETs 2026); here the pair
    lies in one universe, the distance is the true one, and the invariants are public.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import Any

from stirred.audit.claim import allowed_loss, compared_distance, require_auditable
from stirred.audit.finding import Certificate, Finding, Verdict
from stirred.audit.raised import Raised, outcome_of
from stirred.audit.tape import Call, Tape
from stirred.errors import InputError
from stirred.noise import Source
from stirred.spec import INFINITY, ZERO, Exact, Specification, shown

Run = Callable[[Any, Tape], Mapping[str, Any]]

# Where the first difference is, a sentence, what is demanded, and what was declared if not the whole claim.
Found = tuple[str, str, Exact, Exact | None]


def replay_audit(
    run: Run,
    x: Any,
    y: Any,
    claim: Specification,
    source: Source,
    *,
    more: Sequence[Any] = (),
    view: Callable[[Any], Any] = lambda data: data,
    companions: Collection[str] = (),
    subject: str = "the mechanism",
) -> Finding:
    """Record a run on one data set and replay its primitives on others of the same universe.

    Parameters
    ----------
    run
        A function of a data set and a tape that returns named artefacts: whatever leaves the building.
    more
        Further data sets of the universe to replay on.
    view
        A data set as the claim reads it, where the run takes another form.
    companions
        Units of which one record may change with each record of the protection unit.
    """
    require_auditable(claim)
    others = [(other, compared_distance(claim, view(x), view(other), companions)) for other in (y, *more)]
    tape = Tape(source)
    first = _outcome(run, x, tape)
    left = 1 if isinstance(first, Raised) else len(first)
    details = {"primitives": len(tape.calls), "artefacts": left, "replays": len(others)}
    for other, distance in others:
        again = tape.again()
        second = _outcome(run, other, again)
        if isinstance(first, Raised) and first == second:
            continue
        budget = allowed_loss(claim, (view(x), view(other))) if claim.budget.amounts else None
        found = (
            _different_errors(first, second)
            or _different_calls(tape, again)
            or _too_sensitive(tape, again, distance)
            or _overspent(tape, claim, budget)
            or _different_artefacts(first, second)
        )
        if found:
            return _violated(found, (x, other), distance, budget, subject, details)
    if isinstance(first, Raised):
        sentence = f"the run raises {first.error} on every data set: there is nothing to compare"
        return Finding("replay", subject, Verdict.NOT_APPLICABLE, sentence)
    spent = f", and {_count(len(tape.calls), 'primitive')} kept to the declared sensitivity and to the budget"
    costed = any(not call.cost.is_zero for call in tape.calls)
    sentence = (
        f"replayed on {_count(len(others), 'other data set')} of the universe, every artefact "
        f"({len(first)}) is byte-identical{spent if costed else ''}"
    )
    return Finding("replay", subject, Verdict.NOT_REFUTED, sentence, details=details)


def _violated(
    found: Found,
    pair: tuple[Any, Any],
    distance: Exact,
    budget: Exact | None,
    subject: str,
    details: Mapping[str, Any],
) -> Finding:
    where, sentence, measured, declared = found
    claimed = budget if declared is None else declared
    certificate = Certificate(pair, distance, measured, claimed or ZERO, where)
    # How far an argument moved can be a value of the data: it stays in the certificate.
    told = measured if measured.is_infinite or where == "budget" else None
    shown_details = {**details, "first difference": where}
    return Finding("replay", subject, Verdict.VIOLATED, sentence, told, claimed, certificate, shown_details)


def artefacts_of(folder: Path) -> dict[str, str]:
    """The files of a folder as artefacts: path and digest."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def first_difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    """The name of the first artefact that two runs do not share byte for byte."""
    for name in dict.fromkeys((*first, *second)):
        if name not in first or name not in second or _bytes(first[name]) != _bytes(second[name]):
            return name
    return None


def _outcome(run: Run, data: Any, tape: Tape) -> Any:
    """The artefacts of a run; an error is one. A file that is not there may be the data: that is one too."""
    try:
        return outcome_of(run, data, tape)
    except FileNotFoundError:
        return Raised("FileNotFoundError")


def _different_errors(first: Any, second: Any) -> Found | None:
    if not isinstance(first, Raised) and not isinstance(second, Raised):
        return None
    return "error", "the mechanism raises an error on one data set and not on the other", INFINITY, None


def _different_calls(tape: Tape, again: Tape) -> Found | None:
    for number, (a, b) in enumerate(zip(tape.calls, again.calls, strict=False)):
        if (a.name, a.parameters, a.sensitivity, a.norm, a.cost) != (
            b.name, b.parameters, b.sensitivity, b.norm, b.cost,
        ) or len(a.argument) != len(b.argument):  # fmt: skip
            where = f"primitive {number + 1} ({a.name})"
            return (
                where,
                f"{where}: what is asked, or with which parameters, depends on the data",
                INFINITY,
                None,
            )
    if len(tape.calls) != len(again.calls):
        where = f"primitive {min(len(tape.calls), len(again.calls)) + 1}"
        return where, f"{where}: how many primitives are drawn depends on the data", INFINITY, None
    return None


def _too_sensitive(tape: Tape, again: Tape, distance: Exact) -> Found | None:
    for number, (a, b) in enumerate(zip(tape.calls, again.calls, strict=True)):
        moved = _moved(a, b)
        allowed = _times(a.sensitivity, distance)
        if moved > allowed:
            where = f"primitive {number + 1} ({a.name})"
            sentence = f"{where}: its argument moves further than its declared sensitivity allows"
            return where, sentence, _demanded(a, moved, allowed), a.cost
    return None


def _overspent(tape: Tape, claim: Specification, budget: Exact | None) -> Found | None:
    """The primitives together must not spend more than is claimed, by the law of the claim's premetric."""
    if not tape.calls or budget is None:
        return None
    costs = [call.cost for call in tape.calls]
    law = claim.output_premetric.properties.law
    if any(cost.is_infinite for cost in costs):
        spent, over = INFINITY, True
    elif law == "sum":
        spent = sum(costs[1:], costs[0])
        over = spent > budget
    elif law == "sum of squares":
        square = sum((_square(cost) for cost in costs), Fraction(0))
        spent, over = Exact.sqrt(square), square > _square(budget)
    else:
        raise InputError(
            "costs under this output premetric do not add up",
            field="claim.output_premetric",
            expected="a premetric whose budgets add, or whose squares do",
            hint="Use D_Mult or D_NoR, or audit the primitives one by one.",
        )
    if not over:
        return None
    sentence = f"the primitives spend {shown(spent)} together, more than the claimed {shown(budget)}"
    return "budget", sentence, spent, None


def _different_artefacts(first: Mapping[str, Any], second: Mapping[str, Any]) -> Found | None:
    name = first_difference(first, second)
    if name is None:
        return None
    sentence = f"{name} differs although every primitive returned the same: it reads the data"
    return name, sentence, INFINITY, None


def _moved(a: Call, b: Call) -> Exact:
    """How far the argument of a primitive moved; infinite where it is not a number."""
    gaps = []
    for left, right in zip(a.argument, b.argument, strict=True):
        if left == right or (left != left and right != right):
            continue
        if not all(isinstance(value, Real) and math.isfinite(value) for value in (left, right)):
            return INFINITY
        gaps.append(abs(Fraction(left) - Fraction(right)))
    if not gaps:
        return ZERO
    if a.norm == "l2":
        return Exact.sqrt(sum((gap**2 for gap in gaps), Fraction(0)))
    return Exact(sum(gaps, Fraction(0)) if a.norm == "l1" else max(gaps))


def _times(value: Exact, distance: Exact) -> Exact:
    if distance.is_infinite or value.is_infinite:
        return INFINITY
    whole = distance.rational
    assert whole is not None
    return value * whole


def _demanded(call: Call, moved: Exact, allowed: Exact) -> Exact:
    """What the primitive really spends for each unit of distance, where its cost is linear in the move."""
    if moved.is_infinite or allowed.is_zero:
        return INFINITY
    return Exact.computed(float(call.cost) * float(moved) / float(allowed))


def _square(value: Exact) -> Fraction:
    square = value.square
    assert square is not None
    return square


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _bytes(artefact: Any) -> bytes:
    if isinstance(artefact, bytes):
        return artefact
    if isinstance(artefact, str):
        return artefact.encode()
    return json.dumps(artefact, sort_keys=True, default=repr).encode()
