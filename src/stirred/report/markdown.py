"""The Markdown edition of a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stirred.show import heading, size, written

if TYPE_CHECKING:
    from stirred.report.record import Grid, Section

_ESCAPES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "[": "\\[", "]": "\\]", "`": "\\`", "*": "\\*"}
)


def markdown(facts: Mapping[str, Any], limits: Grid | None) -> str:
    """Write the report; text is escaped, so that a title cannot become markup.

    ``limits`` says in words by how much beliefs can grow.
    """
    parts = [
        _head(facts["release"]),
        _section("In short", bullets(facts["summary"])),
        _section("What was released", *_files(facts["files"], facts["dictionary"])),
        _section("The guarantee", *_guarantee(facts["guarantee"])),
        _section("What is exact", *_exact(facts["exact"])),
        _section("What the budget means", *_meaning(facts["meaning"], limits)),
        *(_section(_text(section.title), *_of_kind(section)) for section in facts["sections"].values()),
        _section("How uncertain the figures are", *_uncertainty(facts["uncertainty"])),
        _section("The protected tables", *map(_table, facts["tables"])),
        _section("Audit", *_audit(facts["audit"])),
        _section(
            "What may be said about the budget",
            "### May be said",
            bullets(facts["statements"]["may"]),
            "### May not be said",
            bullets(facts["statements"]["may_not"]),
        ),
        _section("Five Safes, contextual integrity and law", *_governance(facts["governance"])),
        _section("Precedents (unreviewed)", _precedents(facts["precedents"])),
        _section("Release table", *_release_table(facts["release_table"])),
        _section("Checklist", *_checklist(facts["checklist"])),
        _section("Provenance", *_provenance(facts["provenance"])),
    ]
    return "\n".join(parts)


def _head(release: Mapping[str, Any]) -> str:
    lines = [f"# {_text(release['title'])}", ""]
    if not release["publishable"]:
        lines += [f"**NOT FOR PUBLICATION: {_text(release['reason'])}.**", ""]
    if release["description"]:
        lines += [_text(release["description"]), ""]
    named = ("name", "agency", "dataset", "stage", "made_on", "mechanism")
    lines.append(_pairs({name: release[name] for name in named} | release["settings"]))
    return "\n".join([*lines, *(f"**Warning:** {_text(warning)}\n" for warning in release["warnings"])])


def _files(files: Sequence[Mapping[str, Any]], dictionary: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    columns = ("path", "kind", "title", "rows", "size", "uncertainty")
    sized = [{**file, "size": size(file["size"])} for file in files]
    yield _grid(("File", "Kind", "Content", "Rows", "Size", "Uncertainty"), sized, columns)
    for entry in dictionary:
        yield f"Columns of {_text(', '.join(entry['files']))}:\n"
        yield _grid(("Column", "Type", "Meaning"), entry["columns"], ("name", "type", "meaning"))


def _guarantee(guarantee: Mapping[str, Any]) -> Iterable[str]:
    yield f"**{_text(guarantee['statement'])}**\n"
    yield bullets(f"{line['question']} {line['answer']}" for line in guarantee["card"])
    yield _grid(
        ("Block", "Symbol", "Question", "In words"),
        guarantee["blocks"],
        ("block", "symbol", "question", "words"),
    )
    if guarantee["assumptions"]:
        yield "Assumes:\n\n" + bullets(guarantee["assumptions"])


def audit_page(title: str, claim: str, audit: Mapping[str, Any]) -> str:
    """The record of an audit on a page of its own."""
    head = [f"# Audit: {_text(title)}\n", f"Claim: {_text(claim)}. Made on {audit['made_on']}.\n"]
    return "\n".join([*head, *_audit(audit)])


def _audit(audit: Mapping[str, Any] | None) -> Iterable[str]:
    if audit is None:
        yield "This release was not audited.\n"
        return
    yield f"{_text(audit['sentence'])} An audit can refute a guarantee; it never verifies one.\n"
    columns = ("audit", "subject", "verdict", "sentence")
    yield _grid(("Audit", "Of what", "Verdict", "Finding"), audit["findings"], columns)


def _exact(exact: Mapping[str, Any]) -> Iterable[str]:
    if exact["statistics"]:
        yield _grid(
            ("Statistic", "Legal basis", "Figures fixed"),
            exact["statistics"],
            ("sentence", "legal_basis", "figures"),
        )
    yield f"Figures fixed in all: {written(exact['figures_in_all'])}.\n"
    if exact["constraints"]:
        yield "The tables also keep:\n\n" + bullets(exact["constraints"])


def _meaning(meaning: Mapping[str, Any], limits: Grid | None) -> Iterable[str]:
    yield _text(meaning["sentence"]) + "\n"
    if limits is not None:
        yield _text(meaning["setting"]) + "\n"
        yield rows_of(limits.columns, limits.rows)
    yield "What it does not mean:\n\n" + bullets(meaning["does_not_mean"])


def _of_kind(section: Section) -> Iterable[str]:
    """What one kind of mechanism says of itself; figures are left to the page."""
    if section.lead:
        yield _text(section.lead) + "\n"
    if section.facts:
        yield _pairs(section.facts)
    for grid in section.grids:
        yield f"{_text(grid.title)}:\n\n{rows_of(grid.columns, grid.rows)}"


def _uncertainty(rows: Sequence[Mapping[str, Any]]) -> Iterable[str]:
    yield _grid(
        ("Table", "Figures", "Usual half-width of 95% intervals", "Largest", "In words"),
        rows,
        ("table", "figures", "typical_half_width", "largest_half_width", "uncertainty"),
    )


def _table(table: Mapping[str, Any]) -> str:
    shown = (
        f"{written(table['areas_shown'])} of {written(table['areas_in_all'])} areas "
        f"({_text(table['level'])}), {written(table['categories_shown'])} of "
        f"{written(table['categories_in_all'])} categories: the largest.\n"
    )
    names = ("area", "category", "count", "low", "high")
    grid = _grid(("Area", "Category", "Count", "95% from", "95% to"), table["rows"], names)
    return f"### {_text(table['title'])}\n\n{shown}\n{grid}"


def _governance(governance: Mapping[str, Any]) -> Iterable[str]:
    yield f"Information flow: {_text(governance['flow'])}.\n"
    yield _grid(
        ("Safe", "Question", "Level", "Evidence", "Judged by"),
        governance["five_safes"],
        ("safe", "question", "level", "evidence", "assessed_by"),
    )
    yield _grid(
        ("Parameter", "Meaning here", "This release", "Safes"),
        governance["contextual_integrity"],
        ("parameter", "meaning", "here", "safes"),
    )
    if governance["disruptions"]:
        yield "Departs from what people expect:\n\n" + bullets(governance["disruptions"])
    yield f"Legal regime of this release: {_text(governance['regime'])}. {_text(governance['legal_basis'])}\n"
    heads = ("Code", "Jurisdiction", "Instruments", "Test", "Means", "Must infer", "Exceptions")
    names = ("code", "jurisdiction", "instruments", "test", "means", "must_infer", "exceptions")
    yield _grid(heads, governance["law"], names)
    yield _text(governance["law_note"]) + "\n"
    yield "Limits:\n\n" + bullets(governance["caveats"])
    if governance["unanswered"]:
        yield "Not answered: " + _text(", ".join(governance["unanswered"])) + ".\n"


def _precedents(precedents: Sequence[Mapping[str, Any]]) -> str:
    heads = ("Release", "Published", "Unit", "Note", "Standing")
    return _grid(heads, precedents, ("name", "published", "unit", "note", "standing"))


def _release_table(table: Mapping[str, Any]) -> Iterable[str]:
    headings = table["headings"]
    yield _pairs({headings[name]: value for name, value in table["release"].items()})
    yield _grid(("Step", *headings.values()), table["steps"], ("step", *headings))


def _checklist(checklist: Mapping[str, Any]) -> Iterable[str]:
    yield _text(checklist["sentence"]) + "\n"
    steps = [(f"{step['step']}. {step['title']}", step["state"]) for step in checklist["steps"]]
    yield rows_of(("Step", "State"), steps)
    if checklist["override"]:
        yield _pairs({f"Override: {name}": value for name, value in checklist["override"].items()})


def _provenance(provenance: Mapping[str, Any]) -> Iterable[str]:
    left = provenance["remaining"]
    short = {} if left is None else {"Budget that remains": left.rounded(up=False)}
    yield _pairs(short | {name: value for name, value in provenance.items() if value})


def _section(title: str, *blocks: str) -> str:
    return "\n".join([f"## {title}", "", *blocks])


def _grid(heads: Sequence[str], rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> str:
    return rows_of(heads, [[row[name] for name in names] for row in rows])


def _pairs(pairs: Mapping[str, Any]) -> str:
    return rows_of(("Name", "Value"), [(heading(name), value) for name, value in pairs.items()])


def rows_of(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table under its headings."""
    lines = [_row(map(heading, heads)), _row(["---"] * len(heads)), *map(_row, rows)]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[Any]) -> str:
    return "| " + " | ".join(_text(str(written(cell))) for cell in cells) + " |"


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return "".join(f"- {_text(line)}\n" for line in lines)


def _text(words: str) -> str:
    return " ".join(words.split()).translate(_ESCAPES)
