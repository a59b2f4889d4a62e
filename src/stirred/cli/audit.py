"""``stirred audit``: try to refute what a plan claims, and show that the audits can."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stirred.cli.arguments import AsJson, PlanPath
from stirred.cli.output import print_json, print_table, print_text, progress_by_level, reported

app = typer.Typer(
    help="Audits: exact, by replay, by statistics; and their own self-test.", no_args_is_help=True
)

REFUTED = 3


@app.command()
@reported
def run(
    plan: PlanPath,
    release: Annotated[
        Path | None,
        typer.Option(help="The folder of a release of this plan: audit its claim, and add the record to it."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Also write the record to this file.")] = None,
    draws: Annotated[
        int, typer.Option(min=1000, max=10**9, help="Draws of each statistical audit.")
    ] = 100_000,
    as_json: AsJson = False,
) -> None:
    """Run every audit that applies to a plan; exits with 3 where one refutes the claim."""
    from stirred.interchange import write_atomically
    from stirred.places import require_file
    from stirred.release import audit

    if output is not None:
        require_file(output)
    found = audit(plan, release, draws=draws)
    if output is not None:
        write_atomically(output, found.to_json())
    if as_json:
        print_json({k: v for k, v in found.record().items() if k != "schema_version"})
    else:
        print_text(f"Claim: {found.claim}\n")
        rows = [(f.audit, f.subject, f.verdict.value, f.sentence) for f in found.findings]
        print_table(found.title, ("audit", "of what", "verdict", "finding"), rows)
        print_text(f"\n{found.sentence}")
        if found.clean:
            print_text("An audit can refute a guarantee; it never verifies one.")
    if not found.clean:
        raise typer.Exit(REFUTED)


@app.command("self-test")
@reported
def self_test(
    exhibits: Annotated[list[str] | None, typer.Argument(help="Exhibits to examine; all of them.")] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Audit every correct twin a thousand times: minutes.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Audit the museum: every broken mechanism must be refuted, and no correct twin."""
    from stirred.museum import self_test as examine

    with progress_by_level() as progress:
        found = examine(exhibits or None, full=full, progress=progress)
    if as_json:
        print_json(found.record())
    else:
        rows = [
            (one.key, one.broken.audit, "refuted" if one.killed else "MISSED", one.runs, one.false_alarms)
            for one in found.examined
        ]
        columns = ("exhibit", "audit", "broken", "audits of the twin", "false alarms")
        print_table("The museum", columns, rows, first_whole=True)
        print_text(f"\n{found.sentence} ({found.seconds:.0f} s)")
    if not found.passed:
        raise typer.Exit(REFUTED)


@app.command()
@reported
def museum(as_json: AsJson = False) -> None:
    """List the exhibits: what went wrong, and where it was published."""
    from stirred.museum import collected

    shown = collected().values()
    if as_json:
        print_json({"exhibits": [{"key": e.key, "title": e.title, "source": e.source} for e in shown]})
        return
    rows = [(e.key, e.title, e.source) for e in shown]
    print_table("The museum", ("exhibit", "what goes wrong", "where"), rows, first_whole=True)
