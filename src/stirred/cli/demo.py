"""``stirred demo``: the main job on an embedded example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.output import print_json, print_text, reported

NAMES = ("psa-2020-county", "tda-dhc")


@reported
def demo(
    output: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("stirred-demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare swapping and TopDown for the 2020 Census, and write a report."""
    from stirred.interchange import write_atomically
    from stirred.show import specification_page
    from stirred.spec import catalogue, compare

    first, second = (catalogue.specification(name) for name in NAMES)
    report = output / "report.html"
    page = specification_page(first, second, NAMES, entries=len(catalogue.catalogue()))
    write_atomically(report, page)
    for name, found in zip(NAMES, (first, second), strict=True):
        write_atomically(output / f"{name}.json", found.to_json())
    verdict = compare(first, second)
    if as_json:
        print_json({"report": str(report), "overall": str(verdict.overall), "sentence": verdict.sentence()})
        return
    print_text(f"{NAMES[0]}: {first}")
    print_text(f"{NAMES[1]}: {second}\n")
    print_text(f"{verdict.sentence()}\n")
    print_text(f"The report is {report.resolve()}")
