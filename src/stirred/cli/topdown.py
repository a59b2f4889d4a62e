"""``stirred topdown``: the TopDown algorithm of the 2020 Census and its budgets."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred.cli.output import print_json, print_table, print_text, reported

if TYPE_CHECKING:
    from stirred.topdown.budget import Allocation
    from stirred.topdown.presets import Preset

app = typer.Typer(
    help="TopDown: noisy counts at every level of a geography, made consistent from the top.",
    no_args_is_help=True,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

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
    from stirred.topdown.presets import preset

    settings = preset(name)
    allocation = settings.allocation
    if levels is not None:
        allocation = allocation.renormalised([level.strip() for level in levels.split(",")])
    total = allocation.checked_total()
    if as_json:
        print_json(_budget(settings, allocation, total))
        return
    _print_budget(settings, allocation, total)


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
    for note in settings.notes:
        print_text(f"* {note}")


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
    from stirred.spec.budget import shown
    from stirred.spec.exact import Exact

    return shown(Exact(value))
