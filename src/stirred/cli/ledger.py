"""``stirred ledger``: what was spent, whether the record is true, and the record itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred.cli.arguments import AsJson
from stirred.cli.output import print_items, print_json, print_table, print_text, reported

if TYPE_CHECKING:
    from stirred.ledger import Ledger, Statement

app = typer.Typer(help="The ledger of releases: what was spent, and what is left.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The ledger file.")]


@app.command()
@reported
def show(
    ledger: File,
    dataset: Annotated[str | None, typer.Option(help="One data set, with its releases.")] = None,
    as_json: AsJson = False,
) -> None:
    """What was spent on each data set, and what is left of its ceiling."""
    book = _opened(ledger)
    names = book.datasets() if dataset is None else (dataset,)
    statements = [book.statement(name) for name in names]
    if as_json:
        body: dict[str, Any] = {"head": str(book.head()), "people": book.people()}
        print_json(body | {"datasets": [statement.as_dict() for statement in statements]})
        return
    if not statements:
        print_text("No data set is open in this ledger.")
        return
    for statement in statements:
        _print_statement(statement, whole=dataset is not None)


@app.command()
@reported
def verify(
    ledger: File,
    anchor: Annotated[
        str | None,
        typer.Option(help="A head kept elsewhere: SEQUENCE:HASH, as export --format head prints it."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the chain, the rules and the totals; name whatever is wrong. Exit code 3 if anything is."""
    from stirred.ledger import Head

    found = _opened(ledger).verify(None if anchor is None else Head.parse(anchor))
    if as_json:
        print_json(found.as_dict())
    else:
        print_items(found.findings)
        for note in found.notes:
            print_text(f"(note: {note})")
        verdict = "the ledger is true" if found.ok else "the ledger is not what it was"
        print_text(f"{found.events:,} events: {verdict}.")
    if not found.ok:
        raise typer.Exit(3)


@app.command("renew-head")
@reported
def renew_head(
    ledger: File,
    head: Annotated[
        str, typer.Argument(help="The newest head kept elsewhere, SEQUENCE:HASH (reports print it).")
    ],
    by: Annotated[str, typer.Option(help="The owner who answers for it; an event says so.")],
    as_json: AsJson = False,
) -> None:
    """Write a lost head file again: only a ledger that still has the event of that head is given it."""
    from stirred.ledger import Head, Ledger

    kept, book = Head.parse(head), Ledger.open(ledger)
    book.renew_head(kept, by=by)
    if as_json:
        print_json({"ledger": str(ledger), "renewed_from": head, "head": str(book.head())})
        return
    print_text(
        f"The head file is there again, and the ledger says so (event {book.head().sequence}). If events "
        f"after {kept.sequence} were cut before, nobody can tell: compare with every release that was made."
    )


@app.command()
@reported
def export(
    ledger: File,
    form: Annotated[str, typer.Option("--format", help="json, jsonl, csv or head.")] = "json",
    output: Annotated[Path | None, typer.Option(help="File to write; standard output if absent.")] = None,
    as_json: AsJson = False,
) -> None:
    """The events as text that anyone can check: every body with its hash. Salted ids stay inside."""
    from stirred.interchange import write_atomically

    book = _opened(ledger)
    text = book.export(form)  # type: ignore[arg-type]
    if output is not None:
        write_atomically(output, text)
    if as_json:
        body = {"format": form, "head": str(book.head()), "file": None if output is None else str(output)}
        print_json(body if output is not None else body | {"text": text})
    elif output is None:
        typer.echo(text, nl=False)
    else:
        print_text(f"The ledger is in {output}; its head is {book.head()}.")


def _opened(path: Path) -> Ledger:
    from stirred.ledger import Ledger

    return Ledger.open(path, read_only=True)


def _print_statement(statement: Statement, whole: bool) -> None:
    from stirred.ledger import Amount

    open_spends = sum(spend.status == "open" for spend in statement.spends)
    rows: list[tuple[str, object]] = [
        ("flavor", statement.ceiling.flavor),
        ("ceiling", Amount.of(statement.ceiling)),
        ("spent", Amount.of(statement.spent)),
        ("remaining", Amount.of(statement.remaining)),
        ("not allocated", Amount.of(statement.unallocated)),
        ("releases", f"{len(statement.spends)}, of which {open_spends} unfinished"),
    ]
    rows += [(f"period {name}", Amount.of(part)) for name, part in statement.periods.items()]
    rows += [
        (f"allocated to {name}", f"{Amount.of(granted)}; spent {Amount.of(spent)}")
        for name, (granted, spent) in statement.allocations.items()
    ]
    rows += [("tainted by", reason) for reason in statement.tainted]
    rows += [("overridden", reason) for reason in statement.overridden]
    print_table(statement.dataset, ("", ""), rows, first_whole=True)
    if whole and statement.spends:
        columns = ("event", "when (UTC)", "by", "guarantee", "period", "status", "tainted")
        releases = [
            (s.sequence, s.at[:19], s.name, s.specification, s.period, s.status, "yes" if s.tainted else "")
            for s in statement.spends
        ]
        print_table("Releases", columns, releases)
