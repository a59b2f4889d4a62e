"""What the commands that make a trial share: where it goes, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred.cli.output import print_card, print_items, print_json, print_text
from stirred.errors import MissingBlock

if TYPE_CHECKING:
    from stirred.data import Exposures
    from stirred.release import Made
    from stirred.spec import Specification

Accepted = Annotated[
    str, typer.Option(help="Why records that the exact statistics determine are accepted; kept in writing.")
]


def folder_for(output: Path | None) -> Path:
    """The folder to write to; it must be named."""
    if output is None:
        raise MissingBlock(
            "there is no folder to write to",
            field="--output",
            expected="a folder that does not exist yet",
            hint="Add --output FOLDER, or --dry-run to see what it promises.",
        )
    return output


def print_promise(
    promised: Specification, exposures: Exposures | None, said: Iterable[str], as_json: bool, **facts: Any
) -> None:
    """What a trial would promise, and whether it would be refused; ``facts`` go into the JSON object."""
    refusal = None if exposures is None else exposures.refusal()
    if as_json:
        print_json(
            {
                "specification": promised.record(),
                "guarantee": str(promised),
                **facts,
                "exposure": None if exposures is None else exposures.record(),
                "refused": None if refusal is None else refusal.problem,
            }
        )
        return
    print_card(promised.card())
    print_text("")
    print_items(said)
    if refusal is not None:
        print_text(f"* This would be refused: {refusal.problem}.")


def print_trial(made: Made, exposures: Exposures, as_json: bool) -> None:
    """Where a trial is, why it is not for publication, and what it promises."""
    files = sorted(p.relative_to(made.folder).as_posix() for p in made.folder.rglob("*") if p.is_file())
    reason = str(made.manifest.facts["reason"])
    if as_json:
        print_json(
            {
                "folder": str(made.folder),
                "files": files,
                "guarantee": str(made.specification),
                "publishable": made.publishable,
                "reason": reason,
                "exposure": exposures.record(),
            }
        )
        return
    print_text(
        f"{len(files)} files in {made.folder}, all of them internal; report-internal.html explains them."
    )
    print_text(f"Not for publication: {reason}.")
    for sentence in exposures.sentences():
        print_text(sentence)
    print_text("")
    print_card(made.specification.card())
