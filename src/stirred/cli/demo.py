"""``stirred demo``: the main job on an embedded example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.arguments import AsJson
from stirred.cli.output import print_json, print_text, reported


@reported
def demo(
    output: Annotated[Path, typer.Option(help="Folder for what is made.")] = Path("stirred-demo"),
    as_json: AsJson = False,
) -> None:
    """Release a synthetic county twice, by swapping and by TopDown, and compare the two."""
    from stirred.casebook import demonstrate

    made = demonstrate(output, _progress)
    reports = {name: str(m.folder / "public" / "report.html") for name, m in made.releases.items()}
    sentence = made.comparison.verdict.sentence()
    together = made.comparison.together_in_words()
    if as_json:
        print_json(
            {
                "folder": str(made.folder),
                "reports": reports,
                "comparison": str(made.report),
                "sentence": sentence,
                "together": together,
            }
        )
        return
    for name, release in made.releases.items():
        print_text(f"\n{name}: {release.specification}\n{reports[name]}")
    print_text(f"\n{sentence}\n\n{together}\n\nThe comparison is {made.report.resolve()}")


def _progress(text: str) -> None:
    """One line for each step, on a terminal only."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        console.print(f"... {text}", markup=False, highlight=False)
