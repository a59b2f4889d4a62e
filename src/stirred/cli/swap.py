"""``stirred swap``: budgets and rates of permutation swapping, and swapping itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from stirred.cli.arguments import AsJson, named, probability, stratum
from stirred.cli.arguments import loss as aim
from stirred.cli.output import print_json, print_text, progress_by_level, reported
from stirred.cli.trial import Accepted, folder_for, print_promise, print_trial

app = typer.Typer(
    help="Permutation swapping: pure differential privacy subject to its invariants.",
    no_args_is_help=True,
)

Stratum = Annotated[int, typer.Option("--largest-stratum", help="Records in the largest stratum.")]
Names = Annotated[list[str] | None, typer.Option(help="A column; repeat for several.")]

NOMINAL = "Nominal: relative to the swapping invariants, which are published exactly."


@app.command()
@reported
def budget(
    largest_stratum: Stratum,
    rate: Annotated[str, typer.Option(help="The swap rate, for example 0.05.")],
    as_json: AsJson = False,
) -> None:
    """The protection loss of a swap rate."""
    from stirred.spec import swapping_loss
    from stirred.swap import (
        least_loss,
        least_loss_rate,
        least_tighter_loss,
        least_tighter_loss_rate,
        lower_bound,
        tighter_loss,
    )

    stratum(largest_stratum)
    probability(rate, "--rate")
    loss, tighter = swapping_loss(largest_stratum, rate), tighter_loss(largest_stratum, rate)
    body = {
        "largest_stratum": largest_stratum,
        "rate": rate,
        "epsilon": loss.float_up(),
        "exact": str(loss),
        "tighter": tighter.float_up(),
        "lower_bound": float(lower_bound(largest_stratum, rate)),
        "least_epsilon": least_loss(largest_stratum).float_up(),
        "least_epsilon_rate": least_loss_rate(largest_stratum),
        "least_tighter": least_tighter_loss(largest_stratum).float_up(),
        "least_tighter_rate": least_tighter_loss_rate(largest_stratum),
    }
    if as_json:
        print_json({key: _finite(value) for key, value in body.items()})
        return
    print_text(
        f"ε = {loss.rounded(4, up=True)} by Theorem 1, {tighter.rounded(4, up=True)} by the tighter bound.\n"
        f"By Theorem 1 no rate attains less than {least_loss(largest_stratum).rounded(4, up=True)}, "
        f"at p = {least_loss_rate(largest_stratum):.1%}; by the tighter bound the least is "
        f"{least_tighter_loss(largest_stratum).rounded(4, up=True)}, "
        f"at p = {least_tighter_loss_rate(largest_stratum):.1%}.\n{NOMINAL}"
    )


@app.command("rate")
@reported
def rate_for(
    largest_stratum: Stratum,
    epsilon: Annotated[str, typer.Option(help="The protection loss to attain, for example 3.")],
    as_json: AsJson = False,
) -> None:
    """Both swap rates that attain a protection loss by Theorem 1."""
    from stirred.swap import rates_for

    low, high = rates_for(stratum(largest_stratum), aim(epsilon, "--epsilon"))
    if as_json:
        print_json({"low": str(low), "high": str(high), "low_value": float(low), "high_value": float(high)})
        return
    print_text(f"p = {float(low):.4%} or p = {float(high):.4%} attain ε = {epsilon}.\n{NOMINAL}")


@app.command()
@reported
def run(
    households: Annotated[Path, typer.Argument(help="Parquet or CSV file of the records to swap.")],
    swap: Annotated[list[str], typer.Option(help="A swapping variable; repeat for several.")],
    rate: Annotated[str, typer.Option(help="The swap rate, for example 0.05.")],
    output: Annotated[Path | None, typer.Option(help="Folder to write; it must not exist.")] = None,
    match: Names = None,
    hold: Names = None,
    unit: Annotated[str, typer.Option(help="What a record is.")] = "household",
    id: Annotated[str | None, typer.Option(help="Identifier column; it is replaced.")] = None,
    persons: Annotated[Path | None, typer.Option(help="Persons who follow their household.")] = None,
    hold_person: Annotated[
        list[str] | None, typer.Option(help="A column of persons to write; repeat for several.")
    ] = None,
    nest: Annotated[
        list[str] | None, typer.Option(help="Places that nest, as block:tract; repeat for several.")
    ] = None,
    no_nesting: Annotated[
        bool, typer.Option("--no-nesting", help="Say that no column lies in another.")
    ] = False,
    by: Annotated[str | None, typer.Option(help="One file for each value of this column.")] = None,
    imputed: Annotated[str | None, typer.Option(help="True/false column of records held fixed.")] = None,
    missing_level: Annotated[
        bool, typer.Option("--missing-level", help="Treat missing values as a level of their own.")
    ] = False,
    tighter: Annotated[bool, typer.Option("--tighter", help="State the tighter loss.")] = False,
    allow_infinite_loss: Annotated[
        bool, typer.Option("--allow-infinite-loss", help="Permit the rates 0 and 1.")
    ] = False,
    accept_determined: Accepted = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="State the guarantee and what is exact; swap nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Swap a file as a trial: the guarantee first, then the records, which are not for publication."""
    from stirred.release import trial, trial_of
    from stirred.swap import require_hold

    require_hold(hold)
    probability(rate, "--rate")
    named(unit, "--unit")
    job = trial_of(
        {
            "kind": "swap", "households": str(households.absolute()), "match": match or (), "swap": swap,
            "persons": None if persons is None else str(persons.absolute()), "id": id, "hold": hold or (),
            "hold_persons": hold_person, "rate": rate, "unit": unit, "nesting": _nesting(nest, no_nesting),
            "loss": "tighter" if tighter else "theorem-1", "missing": "level" if missing_level else "error",
            "imputed": imputed, "allow_infinite_loss": allow_infinite_loss, "by": by,
        }
    )  # fmt: skip
    if dry_run:
        said = job.prepared.report.sentences()
        print_promise(job.specification(), job.exposures(), said, as_json, report=said)
        return
    with progress_by_level() as progress:
        made = trial(job, folder_for(output), progress=progress, accept_determined=accept_determined)
    print_trial(made, job.exposures(), as_json)


def _nesting(pairs: list[str] | None, none: bool) -> tuple[tuple[str, str], ...] | None:
    """What the command line says of nesting; ``None`` if nothing."""
    from stirred.errors import InputError

    found = [tuple(part.strip() for part in pair.split(":")) for pair in pairs or ()]
    if (found and none) or not all(len(pair) == 2 and all(pair) for pair in found):
        raise InputError(
            "the nesting of places is not clear",
            field="--nest",
            expected="pairs such as block:tract, the finer place first, or --no-nesting",
            hint="Give one of the two; repeat --nest for several pairs.",
        )
    return tuple((fine, coarse) for fine, coarse in found) if found or none else None


def _finite(value: Any) -> Any:
    return "inf" if value == float("inf") else value
