"""The map of commands."""

from __future__ import annotations

from typing import Annotated

import typer

from stirred.cli import audit, demo, ledger, mechanism, release, reproduce, spec, swap, topdown
from stirred.version import __version__

app = typer.Typer(
    help="Disclosure avoidance for censuses and surveys, with guarantees that say what they mean.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Every command takes --json. Exit codes: 0 success, 2 wrong call or bad input, "
    "3 a guarantee or a budget refuses.",
)
app.command("demo")(demo.demo)
app.add_typer(release.app, name="release")
app.add_typer(audit.app, name="audit")
app.add_typer(ledger.app, name="ledger")
app.add_typer(spec.app, name="spec")
spec.app.command("verify")(mechanism.verify)
spec.app.command("witness")(mechanism.witness)
spec.app.command("gaming")(mechanism.gaming)
app.add_typer(swap.app, name="swap")
app.add_typer(topdown.app, name="topdown")
app.command("reproduce")(reproduce.reproduce)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)
    ] = False,
) -> None:
    if version:
        typer.echo(f"stirred {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit
