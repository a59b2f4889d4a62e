"""``stirred release``: from a plan to a release, and back to what was promised."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred.cli.arguments import AsJson, PlanPath
from stirred.cli.output import (
    print_card,
    print_items,
    print_json,
    print_table,
    print_text,
    progress_by_level,
    reported,
)
from stirred.cli.trial import folder_for
from stirred.errors import MissingBlock, StirredError, UnknownName

if TYPE_CHECKING:
    from stirred.ledger import Ledger
    from stirred.release import DryRun, SideBySide
    from stirred.report import Override

app = typer.Typer(help="Releases: plan, dry run, run once, verify, compare.", no_args_is_help=True)

LedgerPath = Annotated[Path | None, typer.Option("--ledger", help="The ledger that pays.")]


@app.command()
@reported
def new(
    kind: Annotated[str, typer.Argument(help="What is done: swap, topdown.")],
    output: Annotated[Path, typer.Option(help="Where to write the plan.")] = Path("plan.yaml"),
    as_json: AsJson = False,
) -> None:
    """Write a commented starter plan."""
    from stirred.interchange import write_atomically
    from stirred.release import starter_plan

    text = starter_plan(kind)
    if output.exists():
        raise UnknownName(
            f"the file {output.name} exists already",
            field="--output",
            expected="a file that does not exist yet",
            hint="Choose another name; nothing is overwritten.",
        )
    write_atomically(output, text)
    if as_json:
        print_json({"plan": str(output), "mechanism": kind})
        return
    print_text(f"{output} is a plan to fill in; check it with: stirred release check {output}")


@app.command()
@reported
def schema(as_json: AsJson = False) -> None:
    """Print the JSON Schema of plans, for editors."""
    import json

    from stirred.release import plan_schema

    if as_json:
        print_json({"schema": plan_schema()})
        return
    typer.echo(json.dumps(plan_schema(), indent=2, ensure_ascii=False))


@app.command()
@reported
def check(plan: PlanPath, as_json: AsJson = False) -> None:
    """Validate a plan without reading confidential data; a claim that no data can bear out is refused."""
    from stirred.release import opened, require_claim_without_data

    job = opened(plan)
    require_claim_without_data(job)
    found = job.plan
    open_steps = [step.name for step in found.checklist.blocking()]
    unanswered = list(found.governance.unanswered())
    if as_json:
        body = {"plan": found.name, "plan_digest": found.digest}
        print_json(body | {"open_steps": open_steps, "unanswered": unanswered})
        return
    print_text(f"{found.title}: the plan is well-formed (digest {found.digest[:16]}...).")
    print_items(f"open: {step}" for step in open_steps)
    if unanswered:
        print_text(f"* governance, not answered yet: {', '.join(unanswered)}")


@app.command("open")
@reported
def open_dataset(
    plan: Annotated[list[Path], typer.Argument(help="Every plan that is to release the data set.")],
    ledger: LedgerPath = None,
    by: Annotated[str, typer.Option(help="The owner of the ledger.")] = "",
    same_data: Annotated[
        str | None,
        typer.Option(help="Why data that the ledger knows under another name get a second ceiling."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open the plans' data set in a ledger (made if there is none): one account, with their ceiling."""
    from stirred.ledger import Ledger
    from stirred.release import account_of, open_account, opened

    jobs = [opened(path) for path in plan]
    found = jobs[0].plan
    if ledger is None or not by:
        raise MissingBlock(
            "opening a data set needs a ledger and its owner",
            field="--ledger, --by",
            expected="the file of the ledger and the owner's name",
            hint="For example --ledger ledger.db --by Owner.",
        )
    account_of(jobs)
    made = not ledger.exists()
    book = Ledger.create(ledger, owner=by) if made else Ledger.open(ledger)
    try:
        if made:
            book.appoint(found.curator, "curator", by=by)
        ceiling = open_account(jobs, book, by=by, same_data=same_data)
    except StirredError:
        if made:
            names = [ledger.name + ending for ending in ("", ".head", ".key", "-wal", "-shm")]
            for name in (*names, f".{ledger.name}.line"):
                ledger.with_name(name).unlink(missing_ok=True)
        raise
    if as_json:
        print_json({"ledger": str(ledger), "dataset": found.dataset.name, "ceiling": str(ceiling)})
        return
    print_text(f"{found.dataset.name} is open in {ledger}; its ceiling is\n{ceiling}")


@app.command()
@reported
def run(
    plan: PlanPath,
    ledger: LedgerPath = None,
    output: Annotated[Path | None, typer.Option(help="Folder of the release; it must not exist yet.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what the plan promises and costs; spend nothing.")
    ] = False,
    override_steps: Annotated[
        str,
        typer.Option(
            "--override",
            help="Open steps of the checklist to pass over, such as 3,5; determined: what is exact may "
            "determine more records than the plan allows.",
        ),
    ] = "",
    audit: Annotated[
        bool, typer.Option("--audit/--no-audit", help="Audit the plan first; the report shows the audit.")
    ] = True,
    override_by: Annotated[str, typer.Option(help="Who permits the override.")] = "",
    override_reason: Annotated[str, typer.Option(help="Why.")] = "",
    pay_again: Annotated[
        bool,
        typer.Option(
            "--pay-again",
            help="Give up an interrupted run of another folder or other data, destroy what it drew, and pay.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a plan once: audit, spend, draw, publish."""
    from stirred.release import run as run_plan

    if dry_run:
        _explain(plan, ledger, as_json)
        return
    override = _override(override_steps, override_by, override_reason)
    book = _opened(ledger)
    with progress_by_level() as progress:
        made = run_plan(
            plan, folder_for(output), book,
            override=override, progress=progress, audit=audit, pay_again=pay_again,
        )  # fmt: skip
    if as_json:
        print_json(
            {
                "folder": str(made.folder),
                "guarantee": str(made.specification),
                "resumed": made.resumed,
                "manifest_digest": made.manifest.digest,
                "files": sorted(made.manifest.files),
            }
        )
        return
    again = " (resumed: nothing was spent again)" if made.resumed else ""
    print_text(f"Released into {made.folder}{again}; open public/report.html there.\n")
    print_card(made.specification.card())


@app.command()
@reported
def verify(
    folder: Annotated[Path, typer.Argument(help="The folder of a release.")],
    ledger: LedgerPath = None,
    plan: Annotated[
        Path | None, typer.Option(help="The plan: the invariants are then held against its data.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a release against its manifest, and with a ledger against its entry."""
    from stirred.release import verify as verified

    found = verified(folder, _opened(ledger, read_only=True), plan)
    if as_json:
        print_json({"sound": found.sound, "checks": list(found.checks), "problems": list(found.problems)})
    else:
        print_text(f"Checked: {', '.join(found.checks)}.")
        print_items(found.problems)
        print_text("Everything agrees." if found.sound else "Not everything agrees.")
    if not found.sound:
        raise typer.Exit(3)


@app.command()
@reported
def compare(
    first: Annotated[Path, typer.Argument(help="A plan, or the folder of a release.")],
    second: Annotated[Path, typer.Argument(help="Another one, of the same data.")],
    internal: Annotated[
        bool, typer.Option("--internal", help="Show measured errors too: they never leave the building.")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="Write the guarantees as one HTML page.")] = None,
    as_json: AsJson = False,
) -> None:
    """Two releases or plans of the same data, side by side."""
    from stirred.interchange import write_atomically
    from stirred.release import compare as compared

    found = compared(first, second)
    if output is not None:
        write_atomically(output, found.page())
    if as_json:
        body = found.record()
        if internal:
            body["measured"] = {"first": list(found.first.measured), "second": list(found.second.measured)}
        print_json(body)
        return
    _print_comparison(found, internal)


def _print_comparison(found: SideBySide, internal: bool) -> None:
    record = found.record()
    print_text(f"{found.first.name}: {found.first.specification}")
    print_text(f"{found.second.name}: {found.second.specification}\n")
    print_table(
        "Block by block",
        ("block", "the first is", "because"),
        [(b["block"].replace("_", " "), b["order"], b["reason"]) for b in record["blocks"]],
    )
    print_text(f"\n{record['sentence']}\n\n{record['together']}\n")
    for label, key in ((found.first.name, "first"), (found.second.name, "second"), ("both", "both")):
        print_items(f"exact in {label}: {text}" for text in record["invariants"][key])
    if record["warning"]:
        print_text(f"\n{record['warning']}")
    for side in (found.first, found.second):
        if side.expected:
            print_table(
                f"Expected error, {side.name}",
                ("product", "error"),
                [(e.product, str(e.uncertainty)) for e in side.expected],
            )
        if internal and side.measured:
            print_table(
                f"Measured error (internal), {side.name}",
                ("table", "mean absolute error"),
                [(row["table"], f"{row['mean_absolute']:.3f}") for row in side.measured],
            )


def _explain(plan: Path, ledger: Path | None, as_json: bool) -> None:
    from stirred.ledger import Amount
    from stirred.release import dry_run

    found: DryRun = dry_run(plan, _opened(ledger, read_only=True))
    if as_json:
        print_json(found.record())
        return
    print_card(found.specification.card())
    print_text("")
    for sentence in found.exposures.sentences():
        print_text(sentence)
    if found.refused is not None:
        print_text(f"This release would be refused: {found.refused}.")
    record: dict[str, Any] = found.record()
    if found.cost is not None:
        print_text(f"\nLeft before: {Amount.of(found.cost.remaining)}")
        if found.cost.requested is not None:
            print_text(f"Cost: {found.cost.requested}")
        after = found.cost.afterwards
        print_text(f"Left after: {Amount.of(after) if after else 'refused, ' + record['cost']['refused']}")
    print_table(
        "What is exact",
        ("statistic", "figures", "legal basis"),
        [(e["statistic"], e["figures"], e["legal_basis"]) for e in record["exact"]],
    )
    print_table(
        "Expected error of the products",
        ("product", "error"),
        [(e["product"], e["error"]) for e in record["expected"]],
    )
    print_items(f"open step: {step}" for step in record["open_steps"])
    print_items(f"warning: {warning}" for warning in record["warnings"])


def _opened(path: Path | None, read_only: bool = False) -> Ledger | None:
    from stirred.ledger import Ledger

    return None if path is None else Ledger.open(path, read_only=read_only)


def _override(steps: str, by: str, reason: str) -> Override | None:
    from stirred.report import Override

    if not steps:
        return None
    parts = [part.strip() for part in steps.split(",")]
    numbers = [part for part in parts if part != "determined"]
    if not all(part.isdigit() for part in numbers):
        raise UnknownName(
            "the steps to pass over are not numbers",
            field="--override",
            expected="numbers of steps, and the word determined, separated by commas",
            hint="For example --override 3,5,determined --override-by NAME --override-reason WHY.",
        )
    return Override(
        steps=tuple(map(int, numbers)),
        determined="determined" in parts,
        by=by,
        reason=reason,
        at=datetime.now(UTC),
    )
