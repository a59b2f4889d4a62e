"""``stirred spec verify``, ``witness`` and ``gaming``: guarantees held against small mechanisms."""

from __future__ import annotations

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred.cli.arguments import AsJson, apart
from stirred.cli.output import print_items, print_json, print_table, print_text, reported
from stirred.cli.spec import BudgetText, Source, UserFile, audited, existing, load

if TYPE_CHECKING:
    from stirred.spec import Comparison, Exact, FiniteMechanism, NotStronger, PairLoss, Specification, Verdict

REFUTED = 3
LONGEST = 24
MOST_SHOWN = 8
IMMENSE = "more than 10^100"
LISTED = "one finite domain of at most 64 data sets, and D_Mult on both sides or D_NoR on both"


@reported
def verify(
    mechanism: Annotated[Path, typer.Argument(help="A mechanism file (YAML, or JSON).")],
    specification: Source,
    restrict: Annotated[
        bool,
        typer.Option(
            "--restrict", help="Hold the mechanism against the guarantee on its own data sets alone."
        ),
    ] = False,
    budget: BudgetText = None,
    catalogue: UserFile = None,
    as_json: AsJson = False,
) -> None:
    """Decide whether a small mechanism keeps a guarantee, and the smallest budget that it would keep."""
    from stirred.spec import read_mechanism, restricted, satisfies

    found = read_mechanism(existing(mechanism))
    whole = load(specification, budget, catalogue)
    claim = restricted(whole, found.domain) if restrict else whole
    verdict = satisfies(found, claim)
    narrowed = claim is not whole
    if as_json:
        print_json(_verified(verdict, found, claim, narrowed))
    else:
        _print_verdict(verdict, found, claim, narrowed)
    if not verdict.satisfied:
        raise typer.Exit(REFUTED)


@reported
def witness(
    first: Source,
    second: Source,
    output: Annotated[Path | None, typer.Option(help="Write the witness here, as a mechanism file.")] = None,
    budget: BudgetText = None,
    catalogue: UserFile = None,
    as_json: AsJson = False,
) -> None:
    """Find a mechanism that keeps the first guarantee and breaks the second."""
    from stirred.interchange import write_atomically
    from stirred.places import require_file
    from stirred.spec import compare

    if output is not None:
        require_file(output)
        apart(output, first, second)
    comparison = compare(*(load(name, budget, catalogue, fill=True) for name in (first, second)))
    found, text = _writable(comparison)
    if output is not None and text is not None:
        write_atomically(output, text)
    sentence = _witnessed(comparison, found)
    if as_json:
        print_json(
            {
                "implied": comparison.implied,
                "sentence": sentence,
                "first": str(comparison.first),
                "second": str(comparison.second),
                **_gap(comparison.first_not_stronger),
                "mechanism": None if text is None else json.loads(text),
                "output": None if text is None or output is None else str(output),
            }
        )
        return
    print_text(sentence)
    if comparison.first_not_stronger is not None:
        _print_gap(comparison.first_not_stronger)
    if found is not None:
        _print_laws(found)
    if output is not None:
        print_text("\nNothing was written." if text is None else f"\nWritten to {output}.")


@reported
def gaming(
    first: Source,
    second: Source,
    budget: BudgetText = None,
    catalogue: UserFile = None,
    as_json: AsJson = False,
) -> None:
    """Name the blocks that moved between two guarantees of one and the same mechanism."""
    from stirred.spec import gaming_audit

    moved = gaming_audit(*(load(name, budget, catalogue, fill=True) for name in (first, second)))
    if as_json:
        print_json({**audited(moved), "before": moved.before, "after": moved.after})
        return
    if moved.moves:
        rows = [(m.block.replace("_", " "), m.direction, m.before, m.after) for m in moved.moves]
        print_table(f"{first}  to  {second}", ("block", "became", "before", "after"), rows)
        print_text("")
    print_items(f"{move.block.replace('_', ' ')}: {move.manoeuvre}." for move in moved.moves)
    print_text(f"{moved.sentence()}\nThat both are guarantees of one mechanism is your claim.")


def _verified(
    verdict: Verdict, mechanism: FiniteMechanism, claim: Specification, narrowed: bool
) -> dict[str, Any]:
    kind = claim.budget.parametrisation
    curve = bool(claim.budget.curve)
    violation = None if verdict.violation is None else _pair(verdict.violation, mechanism, curve)
    if violation is not None:
        violation["allowed"] = None if verdict.allowed is None else _exact(verdict.allowed)
    return {
        "satisfied": verdict.satisfied,
        "sentence": _decided(verdict, claim, narrowed),
        "guarantee": str(claim),
        "restricted": narrowed,
        "data_sets": len(mechanism.laws),
        "numerical": verdict.numerical,
        "warnings": list(verdict.warnings),
        "smallest_budget": None
        if curve
        else {"parametrisation": kind, "amount": _exact(_amount(verdict.loss.overall, kind))},
        "by_universe": [_exact(_amount(loss, kind)) for loss in verdict.loss.by_universe],
        "worst": None if verdict.loss.worst is None else _pair(verdict.loss.worst, mechanism, curve),
        "violation": violation,
    }


def _print_verdict(
    verdict: Verdict, mechanism: FiniteMechanism, claim: Specification, narrowed: bool
) -> None:
    print_text(f"{claim}\n\n{_decided(verdict, claim, narrowed)}")
    if not claim.budget.curve:
        print_text(f"Smallest budget that holds: {_smallest(verdict.loss.overall, claim)}.")
    worst = verdict.violation or verdict.loss.worst
    if worst is not None:
        p, q = mechanism.laws[worst.x], mechanism.laws[worst.y]
        print_text(f"Worst pair: {_point(worst.x)} and {_point(worst.y)}, at distance {worst.distance}.")
        if worst.event:
            print_text(
                f"Worst event: {_event(worst)}, of probability {_shown_mass(p.probability(worst.event))} "
                f"and {_shown_mass(q.probability(worst.event))}."
            )
    if verdict.numerical:
        print_text("The divergence is computed in floating point, to a relative 1e-9.")
    for warning in verdict.warnings:
        print_text(f"Warning: {warning}.")


def _decided(verdict: Verdict, claim: Specification, narrowed: bool) -> str:
    where = " on these data sets" if narrowed else ""
    beyond = " That says nothing of other data sets." if narrowed else ""
    if verdict.satisfied:
        vacuous = verdict.loss.worst is None and not claim.budget.curve
        reason = "there is no pair to compare" if vacuous else "it holds for every pair"
        return f"The mechanism keeps the guarantee{where}: {reason}.{beyond}"
    worst = verdict.violation
    assert worst is not None
    if claim.budget.curve:
        return "The mechanism does not keep the guarantee: a pair of neighbours violates the curve."
    assert verdict.allowed is not None
    return (
        f"The mechanism does not keep the guarantee: at distance {worst.distance} a divergence of "
        f"{_shown(worst.divergence)} exceeds {_shown(verdict.allowed)}."
    )


def _smallest(loss: Exact, claim: Specification) -> str:
    """The loss as a budget, in the letter of the claim, and exactly where that is short."""
    from stirred.spec import LARGEST, Budget

    amount = _amount(loss, claim.budget.parametrisation)
    if amount.is_infinite or amount > LARGEST:
        return "none that is finite" if amount.is_infinite else IMMENSE
    text, exact = str(Budget.by_universe(claim.budget.parametrisation, (amount,))), _exact(amount)
    simple = len(exact) <= LONGEST and not text.endswith(f"= {exact}")
    return f"{text} (exactly {exact})" if simple else text


def _amount(loss: Exact, parametrisation: str) -> Exact:
    """A loss in the number that the claim is published in."""
    from stirred.spec import Exact

    if parametrisation != "rho_squared" or loss.is_infinite:
        return loss
    return Exact(loss.square if loss.square is not None else loss.rounded_up() ** 2)


def _pair(pair: PairLoss, mechanism: FiniteMechanism, curve: bool) -> dict[str, Any]:
    p, q = mechanism.laws[pair.x], mechanism.laws[pair.y]
    return {
        "x": pair.x,
        "y": pair.y,
        "universe": pair.universe,
        "distance": str(pair.distance),
        "divergence": None if curve else _exact(pair.divergence),
        "event": sorted(pair.event, key=repr),
        "probabilities": [str(p.probability(pair.event)), str(q.probability(pair.event))],
    }


def _writable(comparison: Comparison) -> tuple[FiniteMechanism | None, str | None]:
    """The witness of a comparison and its file, where there is one that a file can hold."""
    from stirred.errors import InputError
    from stirred.spec import MechanismFile

    gap = comparison.first_not_stronger
    if gap is None or gap.mechanism is None:
        return None, None
    try:
        return gap.mechanism, MechanismFile.of(gap.mechanism).to_json()
    except InputError:
        return None, None


def _witnessed(comparison: Comparison, found: FiniteMechanism | None) -> str:
    if comparison.implied:
        return (
            "There is no witness: every mechanism that keeps the first guarantee keeps the second. "
            f"The first is {comparison.overall}: {comparison.reason}."
        )
    if found is not None:
        return "The first guarantee does not imply the second: this mechanism keeps it and breaks the second."
    why = comparison.refutation()
    if why is None:
        return (
            "Undecided: no theorem here says whether the first guarantee implies the second, and they cannot "
            f"be decided by listing: that takes {LISTED}."
        )
    reason = (
        "no mechanism file holds the masses that it needs" if comparison.exact else f"that takes {LISTED}"
    )
    return f"The first guarantee does not imply the second: {why}. No witness was built: {reason}."


def _gap(gap: NotStronger | None) -> dict[str, Any]:
    return {
        "pair": None if gap is None else list(gap.pair),
        "reachable": None if gap is None else _exact(gap.reachable),
        "allowed": None if gap is None else _exact(gap.allowed),
    }


def _print_gap(gap: NotStronger) -> None:
    x, y = map(_point, gap.pair)
    second = _shown(gap.allowed)
    print_text(
        f"Pair: {x} and {y}. The first does not bound their divergence, the second does by {second}."
        if gap.reachable.is_infinite
        else f"Pair: {x} and {y}. The first bounds their divergence by {_shown(gap.reachable)}, "
        f"the second by {second}."
    )


def _print_laws(mechanism: FiniteMechanism) -> None:
    """The laws as a table, where it is small."""
    outputs = sorted({o for law in mechanism.laws.values() for o in law.support}, key=repr)
    if len(mechanism.laws) > 2 * MOST_SHOWN or len(outputs) > MOST_SHOWN:
        print_text(f"It has {len(mechanism.laws)} laws on {len(outputs)} outputs.")
        return
    rows = [
        [_point(point), *(_shown_mass(law[output]) for output in outputs)]
        for point, law in mechanism.laws.items()
    ]
    print_table("", ("data set", *map(_point, outputs)), rows)


def _event(pair: PairLoss) -> str:
    outputs = [_point(output) for output in sorted(pair.event, key=repr)]
    rest = len(outputs) - MOST_SHOWN
    return ", ".join(outputs[:MOST_SHOWN]) + (f" and {rest} more outputs" if rest > 0 else "")


def _point(point: object) -> str:
    return json.dumps(point, ensure_ascii=False)


def _exact(value: Exact) -> str:
    """Exact text; rounded up where the interpreter refuses to write so many digits."""
    try:
        return str(value)
    except ValueError:
        return value.rounded(30, up=True)


def _shown(value: Exact) -> str:
    from stirred.spec import LARGEST, shown

    text = _exact(value)
    if len(text) <= LONGEST:
        return text
    return IMMENSE if value > LARGEST else shown(value, 6)


def _shown_mass(mass: Fraction) -> str:
    text = str(mass)
    return text if len(text) <= MOST_SHOWN else f"{Decimal(mass.numerator) / Decimal(mass.denominator):.6g}"
