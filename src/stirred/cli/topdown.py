"""``stirred topdown``: the TopDown algorithm of the 2020 Census and its budgets."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred.cli.arguments import AsJson, PlanPath, named
from stirred.cli.output import print_items, print_json, print_table, print_text, progress_by_level, reported
from stirred.cli.trial import Accepted, folder_for, print_promise, print_trial
from stirred.errors import InputError

if TYPE_CHECKING:
    from stirred.release import Job
    from stirred.topdown import Allocation, Preset

app = typer.Typer(
    help="TopDown: noisy counts at every level of a geography, made consistent from the top.",
    no_args_is_help=True,
)

NOMINAL = "Nominal: relative to the invariants, which are published exactly."


@app.command()
@reported
def budget(
    name: Annotated[str, typer.Argument(help="A preset, for example pl-2020-us-persons.")],
    levels: Annotated[
        str | None,
        typer.Option(help="Only these levels, separated by commas; the total stays the same."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """The noise of every query at every level, and what each level and attribute loses."""
    from stirred.topdown import preset

    settings = preset(name)
    allocation = settings.allocation
    if levels is not None:
        allocation = allocation.renormalised(_distinct(levels))
    total = allocation.checked_total()
    if as_json:
        print_json(_budget(settings, allocation, total))
        return
    _print_budget(settings, allocation, total)


def _distinct(levels: str) -> list[str]:
    names = [named(level.strip(), "--levels") for level in levels.split(",")]
    if len(set(names)) != len(names):
        raise InputError(
            "a level is named twice",
            field="--levels",
            expected="every level once",
            hint="Write them once each, separated by commas.",
        )
    return names


@app.command()
@reported
def run(
    plan: PlanPath,
    output: Annotated[
        Path | None, typer.Option(help="Folder for the products; it must not exist yet.")
    ] = None,
    measurements: Annotated[
        Path | None, typer.Option(help="Noisy measurements of an earlier run: estimate anew, draw nothing.")
    ] = None,
    accept_determined: Accepted = "",
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say what the plan promises; read only what is exact, spend nothing."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Protect the records of a plan as a trial: what is made is not for publication."""
    from stirred.documents import read_yaml
    from stirred.release import trial, trial_of

    job = trial_of(read_yaml(plan), plan.parent, kind="topdown")
    if dry_run:
        _explain(job, as_json)
        return
    accepted = accept_determined
    with progress_by_level() as bars:
        made = trial(job, folder_for(output), progress=bars, drawn=measurements, accept_determined=accepted)
    print_trial(made, job.exposures(), as_json)


def _explain(job: Job, as_json: bool) -> None:
    from stirred.spec import plural

    mechanism, promised = job.mechanism, job.specification()
    exposures = job.exposures() if job.section.at_hand(job.folder) else None
    unknown = "The records are not at hand: what the exact statistics determine of them is not known yet."
    said = [unknown] if exposures is None else exposures.sentences()
    sentences = [constraint.sentence() for constraint in mechanism.constraints]
    budgets = {u.unit: u.allocation.record() for u in mechanism.universes}
    told = (*said, *sentences)
    print_promise(promised, exposures, told, as_json, constraints=sentences, budgets=budgets)
    for universe in () if as_json else mechanism.universes:
        print_table(
            f"Noise of the measurements of {plural(universe.unit)}",
            ("level", "query", "variance", "sd"),
            [
                (row["level"], row["query"], f"{row['variance']:.4g}", f"{row['standard_deviation']:.4g}")
                for row in universe.allocation.to_polars().rows(named=True)
            ],
            first_whole=True,
        )


def _print_budget(settings: Preset, allocation: Allocation, total: Fraction) -> None:
    columns = ("level", "query", "query_share_exact", "variance", "standard_deviation")
    print_table(
        f"{settings.name}: noise of each query, levels from the root",
        ("level", "query", "share", "variance", "sd"),
        [
            (level, query, share, f"{variance:.4g}", f"{deviation:.4g}")
            for level, query, share, variance, deviation in allocation.to_polars().select(columns).rows()
        ],
        first_whole=True,
    )
    print_table(
        "ρ² of each level; lost by a move inside it",
        ("level", "share", "spent", "within"),
        [
            (level, str(allocation.levels[level]), _loss(spent), _loss(allocation.within(level)))
            for level, spent in allocation.per_level().items()
        ],
        first_whole=True,
    )
    print_table(
        "ρ² lost by a change of",
        ("attribute", "loss"),
        [(name, _loss(loss)) for name, loss in allocation.per_attribute(settings.schema).items()],
        first_whole=True,
    )
    print_text(f"Total ρ² = {total}, at most {_loss(total)}; unit of change: {allocation.change}. {NOMINAL}")
    print_items(settings.notes)


def _budget(settings: Preset, allocation: Allocation, total: Fraction) -> dict[str, Any]:
    rows = allocation.to_polars().rows(named=True)
    return {
        "preset": settings.name,
        "universe": settings.universe,
        "change": allocation.change,
        "rho_squared": str(total),
        "rho_squared_value": float(total),
        "levels": [
            {
                "level": level,
                "share": str(allocation.levels[level]),
                "rho_squared": str(spent),
                "within": str(allocation.within(level)),
                "queries": [_query(row) for row in rows if row["level"] == level],
            }
            for level, spent in allocation.per_level().items()
        ],
        "attributes": {name: str(loss) for name, loss in allocation.per_attribute(settings.schema).items()},
        "notes": list(settings.notes),
    }


def _query(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "query": row["query"],
        "share": row["query_share_exact"],
        "rho_squared": row["rho_squared_exact"],
        "variance": row["variance_exact"],
        "variance_value": row["variance"],
        "standard_deviation": row["standard_deviation"],
    }


def _loss(value: Fraction) -> str:
    """A protection loss for people: four places, rounded up."""
    from stirred.spec import Exact, shown

    return shown(Exact(value))
