"""``stirred spec``: show, compare, compose and convert guarantees."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stirred.cli.arguments import AsJson, apart, named
from stirred.cli.output import print_card, print_items, print_json, print_table, print_text, reported

if TYPE_CHECKING:
    from stirred.spec import Budget, Catalogue, Comparison, Entry, GamingAudit, NotStronger, Specification

app = typer.Typer(
    help="Guarantees as objects: five building blocks, compared block by block.", no_args_is_help=True
)

Source = Annotated[str, typer.Argument(help="A specification file (JSON) or a name of the catalogue.")]
UserFile = Annotated[Path | None, typer.Option("--catalogue", help="A file with entries of your own.")]
BudgetText = Annotated[
    str | None,
    typer.Option("--budget", help="For a flavor without one: epsilon=1, rho_squared=2.63, mu=1, loss=1/2."),
]


@app.command()
@reported
def show(
    name: Source,
    budget: BudgetText = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print the LaTeX statement only.")] = False,
    output: Annotated[Path | None, typer.Option(help="Write the specification file here.")] = None,
    catalogue: UserFile = None,
    as_json: AsJson = False,
) -> None:
    """Show a guarantee: its statement and its card in plain language."""
    lacks = budget is None and not _is_file(name) and _catalogue(catalogue)[name].budget is None
    if lacks and output is None:
        _show_entry(_catalogue(catalogue)[name], as_json, latex)
        return
    found = load(name, budget, catalogue)
    _write(found, output)
    if as_json:
        from stirred.spec import lines_of

        print_json(_plain(found) | {"latex": found.latex, "card": lines_of(found.card())})
    elif latex:
        typer.echo(found.latex)
    else:
        print_card(found.card())


@app.command()
@reported
def compare(
    first: Source,
    second: Source,
    audit: Annotated[
        bool, typer.Option("--same-mechanism", help="Both describe one mechanism: name the block that moved.")
    ] = False,
    budget: BudgetText = None,
    catalogue: UserFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare two guarantees block by block: stronger, weaker, equivalent or incomparable."""
    from stirred.spec import compare as compared
    from stirred.spec import gaming_audit

    a, b = (load(name, budget, catalogue, fill=True) for name in (first, second))
    verdict = compared(a, b)
    moved = gaming_audit(a, b) if audit else None
    if as_json:
        body = _comparison(verdict)
        if moved is not None:
            body["same_mechanism"] = audited(moved)
        print_json(body)
        return
    rows = [(b.block.replace("_", " "), b.order, b.reason, b.theorem) for b in verdict.blocks]
    print_table(f"{first}  against  {second}", ("block", "the first is", "because", "theorem"), rows)
    print_text(f"\nVerdict: {verdict.overall}.\n{verdict.sentence()}")
    if moved is not None:
        print_text(f"\n{moved.sentence()}")


@app.command()
@reported
def compose(
    names: Annotated[list[str], typer.Argument(help="Specification files or catalogue names.")],
    under: Annotated[str | None, typer.Option(help="State the result in the flavor of this one.")] = None,
    order: Annotated[str, typer.Option(help="sequential, adaptive or concurrent.")] = "sequential",
    shared_seeds: Annotated[
        bool, typer.Option("--shared-seeds", help="The releases share randomness (refused here).")
    ] = False,
    reads: Annotated[
        list[str] | None,
        typer.Option(help="An invariant that post-processing reads: unit:attribute,attribute."),
    ] = None,
    budget: BudgetText = None,
    output: Annotated[Path | None, typer.Option(help="Write the composed specification here.")] = None,
    catalogue: UserFile = None,
    as_json: AsJson = False,
) -> None:
    """Compose several releases into one guarantee."""
    from stirred.spec import compose as composed

    apart(output, *names, *([] if under is None else [under]))
    parts = [load(name, budget, catalogue, fill=True) for name in names]
    target = None if under is None else load(under, budget, catalogue, fill=True).flavor
    result = composed(
        *parts,
        order=_choice(order, ("sequential", "adaptive", "concurrent"), "order"),
        seeds="shared" if shared_seeds else "fresh",
        under=target,
        reads=[_invariant(text) for text in reads or ()],
    )
    _finish(result, (), output, as_json)


@app.command()
@reported
def convert(
    name: Source,
    to: Annotated[
        str, typer.Option(help="approximate, zcdp, renyi, gdp, kullback-leibler or total-variation.")
    ],
    delta: Annotated[str | None, typer.Option(help="For approximate: for example 1e-10.")] = None,
    alpha: Annotated[str | None, typer.Option(help="For renyi: the order.")] = None,
    method: Annotated[str, typer.Option(help="From zCDP: census, optimal or gaussian.")] = "census",
    neighbours: Annotated[
        bool, typer.Option("--neighbours", help="Give up distances beyond one where the edge needs it.")
    ] = False,
    attributes: Annotated[
        str | None,
        typer.Option(help="From pure DP to zcdp: all attributes that the mechanism reads, with commas."),
    ] = None,
    budget: BudgetText = None,
    output: Annotated[Path | None, typer.Option(help="Write the converted specification here.")] = None,
    catalogue: UserFile = None,
    as_json: AsJson = False,
) -> None:
    """Convert a guarantee to another output premetric, and say what that cost."""
    from stirred.spec import convert as converted

    apart(output, name)
    targets = ("approximate", "zcdp", "renyi", "gdp", "kullback-leibler", "total-variation")
    result = converted(
        load(name, budget, catalogue),
        _choice(to, targets, "to"),
        delta=delta,
        alpha=alpha,
        method=_choice(method, ("census", "optimal", "gaussian"), "method"),
        on_distance="neighbours" if neighbours else "refuse",
        attributes=None if attributes is None else [named(a, "--attributes") for a in _listed(attributes)],
    )
    _finish(result.specification, result.steps, output, as_json)


@app.command()
@reported
def catalogue(
    search: Annotated[str, typer.Option(help="Words that must all occur.")] = "",
    block: Annotated[
        str, typer.Option(help="Only entries that changed this block, for example multiverse.")
    ] = "",
    catalogue: UserFile = None,
    as_json: AsJson = False,
) -> None:
    """List the flavors of the literature and what each changed from pure DP."""
    hits = _catalogue(catalogue).search(search, block)
    if as_json:
        print_json({"entries": [entry.record() for entry in hits]})
        return
    rows = [(e.id, e.name, e.status, e.changed) for e in hits]
    print_table(
        f"{len(hits)} entries", ("name", "what it is", "status", "what changed"), rows, first_whole=True
    )


@app.command()
@reported
def schema(
    of: Annotated[str, typer.Argument(help="specification or mechanism.")] = "specification",
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of a specification or mechanism file (the same with and without --json)."""
    import json

    from stirred.spec import json_schema, mechanism_schema

    schemas = {"specification": json_schema, "mechanism": mechanism_schema}
    found = schemas[_choice(of, tuple(schemas), "of")]()
    typer.echo(json.dumps(found, indent=2, ensure_ascii=False))


_NUMBERS = ("epsilon", "rho_squared", "rho", "mu", "loss")


def _write(found: Specification, output: Path | None) -> None:
    if output is not None:
        from stirred.interchange import write_atomically

        write_atomically(output, found.to_json())


def _catalogue(file: Path | None) -> Catalogue:
    from stirred.spec import catalogue as shipped

    return shipped if file is None else shipped.extended(existing(file))


def load(name: str, budget: str | None, file: Path | None, *, fill: bool = False) -> Specification:
    """A specification by file or name; with ``fill`` the budget goes only to flavors that have none."""
    from stirred.documents import read_text
    from stirred.errors import InputError
    from stirred.spec import Specification

    entry = None if _is_file(name) else _catalogue(file)[name]
    if budget is not None and not fill and (entry is None or entry.budget is not None):
        raise InputError(
            "this guarantee has a budget of its own",
            field="--budget",
            expected="a flavor without a budget",
            hint="Leave --budget out, or edit the file.",
        )
    if entry is None:
        return Specification.from_json(read_text(existing(Path(name)), "specification file"))
    lacks = entry.budget is None and budget is not None
    return entry.specification(_budget(budget) if lacks and budget is not None else None)


def _is_file(name: str) -> bool:
    return Path(name).suffix == ".json" or os.path.isfile(name)


def _show_entry(entry: Entry, as_json: bool, latex: bool) -> None:
    """An entry without a budget: what it is, and its blocks where it has them."""
    from stirred.spec import BLOCKS

    flavor = entry.flavor() if entry.status in {"flavor", "family"} else None
    if as_json:
        print_json({"entry": entry.record(), "flavor": None if flavor is None else str(flavor)})
        return
    if latex and flavor is not None:
        typer.echo(flavor.latex)
        return
    print_text(f"{entry.name}\n{entry.citation}\n\n{entry.changed}\n")
    if flavor is None:
        print_text(f"Status: {entry.status}. It cannot be promised as a guarantee.")
        return
    print_text(f"Flavor: {flavor}\n")
    for block in BLOCKS[1:-1]:
        print_text(f"{block.replace('_', ' ')}: {getattr(flavor, block).sentence()}")
    kinds = [k for k in flavor.output_premetric.parametrisations if k in _NUMBERS]
    print_text(
        f"\nIt has no budget: add one, for example --budget {kinds[0]}=1, to see the guarantee."
        if kinds
        else "\nIts budget is a curve: write a specification file to see a guarantee."
    )


def existing(path: Path) -> Path:
    """A path that leads to a file."""
    from stirred.errors import UnknownName

    if not os.path.isfile(path):
        raise UnknownName(
            f"there is no file {path}",
            field="file",
            expected="the path of a JSON file",
            hint="Check the path, or use a catalogue name (stirred spec catalogue).",
        )
    return path


def _budget(text: str) -> Budget:
    from stirred.errors import ParametrisationMissing
    from stirred.spec import Budget

    kind, equals, amount = text.partition("=")
    if not equals or kind not in _NUMBERS:
        raise ParametrisationMissing(
            "a bare number is not a budget",
            field="--budget",
            expected="epsilon=..., rho_squared=..., rho=..., mu=... or loss=...",
            hint="For example --budget epsilon=1 or --budget rho_squared=2.63.",
        )
    return Budget.read({"parametrisation": kind, "amounts": [amount]})


def _invariant(text: str) -> Any:
    from stirred.spec import Count

    unit, _, attributes = text.partition(":")
    named(unit, "--reads")
    return Count(unit=unit, by=tuple(a for a in _listed(attributes) if a))


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _choice(value: str, allowed: tuple[str, ...], field: str) -> Any:
    from stirred.errors import UnknownName

    if value not in allowed:
        raise UnknownName(
            f"this value of {field} is not known",
            field=field,
            expected="one of " + ", ".join(allowed),
            hint="Choose one of the listed values.",
        )
    return value


def _comparison(verdict: Comparison) -> dict[str, Any]:
    return {
        "overall": str(verdict.overall),
        "reason": verdict.reason,
        "sentence": verdict.sentence(),
        "flavor_order": str(verdict.flavor_order),
        "budgets_ranked": verdict.budgets_ranked,
        "exact": verdict.exact,
        "differing": list(verdict.differing),
        "blocks": verdict.to_polars().to_dicts(),
        "first": str(verdict.first),
        "second": str(verdict.second),
        "first_not_stronger": _refuted(verdict.first_not_stronger),
        "second_not_stronger": _refuted(verdict.second_not_stronger),
    }


def audited(moved: GamingAudit) -> dict[str, Any]:
    """The audit of two guarantees of one mechanism, as plain data."""
    return {"sentence": moved.sentence(), "moves": [dict(vars(move)) for move in moved.moves]}


def _refuted(found: NotStronger | None) -> dict[str, Any] | None:
    """Where one specification allows more than the other: the pair and both bounds."""
    if found is None:
        return None
    return {
        "pair": list(found.pair),
        "reachable": str(found.reachable),
        "allowed": str(found.allowed),
        "witness": found.mechanism is not None,
    }


def _plain(found: Specification) -> dict[str, Any]:
    return {"specification": found.record(), "statement": found.statement(), "guarantee": str(found)}


def _finish(result: Specification, steps: tuple[str, ...], output: Path | None, as_json: bool) -> None:
    _write(result, output)
    if as_json:
        print_json(_plain(result) | {"steps": list(steps)})
        return
    print_items(steps)
    print_card(result.card())
    if output is not None:
        print_text(f"Written to {output}.")
