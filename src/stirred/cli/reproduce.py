"""``stirred reproduce``: the tables and figures of the sources, recomputed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stirred.cli.arguments import AsJson
from stirred.cli.output import json_text, print_items, print_json, print_table, print_text, reported

if TYPE_CHECKING:
    from stirred.casebook import Case


@reported
def reproduce(
    name: Annotated[str, typer.Argument(help="A table or figure, such as table-4; or list, or all.")],
    output: Annotated[
        Path | None,
        typer.Option(help="File for a figure (SVG) or the numbers of a table (JSON); for all, a folder."),
    ] = None,
    runs: Annotated[int | None, typer.Option(min=1, max=10_000, help="Runs of a simulation.")] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute a table or figure of the sources."""
    from stirred.casebook import CASES, case_named
    from stirred.interchange import write_atomically
    from stirred.places import require_file

    if name == "list":
        _list(output, runs, as_json)
        return
    every = name == "all"
    cases = list(CASES.values()) if every else [case_named(name)]
    places = [output / _file(case) if every else output for case in cases] if output else []
    for place in places:
        require_file(place)
    made = [(case, case.again(runs if case.runs or not every else None)) for case in cases]
    for (case, found), place in zip(made, places, strict=False):
        write_atomically(place, case.draw(found) if case.draw else json_text(case.record(found)))
    if as_json:
        records = [case.record(found) for case, found in made]
        print_json({"cases": records} if every else records[0])
        return
    for case, found in made:
        print_table(case.title, [name.replace("_", " ") for name in case.columns], case.lines(found))
        print_items(found.notes)
    if output is not None:
        print_text(f"\nWritten to {output.resolve()}")
    elif any(case.draw for case in cases):
        print_text("\nWith --output the figure is drawn.")


def _file(case: Case) -> str:
    return f"{case.name}.{'svg' if case.draw else 'json'}"


def _list(output: Path | None, runs: int | None, as_json: bool) -> None:
    from stirred.casebook import CASES
    from stirred.errors import InputError

    if output is not None or runs is not None:
        raise InputError(
            "the list is printed and nothing else",
            field="--runs" if output is None else "--output",
            expected="the name of a table or figure, or all",
            hint="Leave the option out, or name what to recompute.",
        )
    if as_json:
        print_json({"cases": [case.entry() for case in CASES.values()]})
        return
    for source in dict.fromkeys(case.source for case in CASES.values()):
        rows = [(case.name, case.shows) for case in CASES.values() if case.source == source]
        print_table(source, ("name", "what it shows"), rows, first_whole=True)
