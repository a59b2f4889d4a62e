"""The report of a release: for those who decide, those who are counted, and those who check the mathematics.

All three editions are written from the same facts. HTML is one file that loads nothing and runs no script;
Markdown and JSON carry the same facts. Internal figures enter the HTML edition alone, if handed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stirred.report.checklist import RELEASE, STEPS
from stirred.report.governance import CAVEATS, LEGAL_NOTE, LEGAL_REGIMES, NORMS, PRECEDENTS, SAFES, Governance
from stirred.report.meaning import Meaning, belief_text
from stirred.report.record import (
    BudgetShare,
    Column,
    InternalRecord,
    PublishedFile,
    PublishedTable,
    ReleaseRecord,
)
from stirred.report.table import HEADINGS
from stirred.show import (
    Bar,
    against_truth_figure,
    bar_panel,
    budget_split_figure,
    error_by_level_figure,
    geography_tree_figure,
    odds_figure,
    percent,
    release_page,
    swap_rate_figure,
)
from stirred.spec import Exact, Specification, shown, swapping_loss

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION = 1
AREAS, CATEGORIES = 9, 10
WITHIN_95 = 1.96

BLOCKS = (
    ("domain", "Domain", "Who is eligible for protection?"),
    ("multiverse", "Multiverse", "Where does protection extend to?"),
    ("input_premetric", "Input premetric", "What is the protection unit?"),
    ("output_premetric", "Output premetric", "How is a change of output measured?"),
    ("budget", "Budget", "How much protection loss is allowed?"),
)


def report_html(record: ReleaseRecord, internal: InternalRecord | None = None) -> str:
    """The report as one HTML file; with internal figures, the internal edition."""
    facts = _facts(record)
    figures = _figures(record, facts)
    if internal is None:
        return release_page(facts, figures)
    return release_page(facts, figures | _internal_figures(internal), _internal(internal))


def report_json(record: ReleaseRecord) -> str:
    """The facts of the report as JSON text."""
    return json.dumps(_facts(record), indent=2, ensure_ascii=False) + "\n"


def report_markdown(record: ReleaseRecord) -> str:
    """The report as Markdown."""
    from stirred.report.markdown import markdown

    return markdown(_facts(record))


def _facts(record: ReleaseRecord) -> dict[str, Any]:
    """Everything the report says, as plain data; numbers that are not exact are text, rounded once."""
    meaning = Meaning.of(record.specification, _delta(record))
    return {
        "schema_version": SCHEMA_VERSION,
        "type": "release-report",
        "release": {
            "name": record.name,
            "title": record.title,
            "description": record.description,
            "agency": record.agency,
            "dataset": record.dataset,
            "stage": record.stage,
            "made_on": record.made_on,
            "mechanism": record.mechanism,
            "settings": dict(record.settings),
            "publishable": record.publishable,
            "reason": record.reason,
            "warnings": list(record.warnings),
        },
        "summary": _summary(record, meaning),
        "exposure": None if record.exposures is None else record.exposures.record(),
        "files": [_file(file) for file in record.files],
        "dictionary": _dictionary(record.files),
        "guarantee": {
            "statement": str(record.specification),
            "card": [asdict(line) for line in record.specification.card().lines],
            "blocks": _blocks(record.specification),
            "assumptions": list(record.specification.assumptions),
        },
        "exact": {
            "statistics": [
                asdict(e) | {"figures": None if e.figures is None else f"{e.figures:,}"} for e in record.exact
            ],
            "figures_in_all": f"{sum(e.figures or 0 for e in record.exact):,}",
            "constraints": list(record.constraints),
        },
        "meaning": meaning.record() | {"odds": [odds.words() for odds in meaning.odds]},
        "swap": _swap(record),
        "budget": _budget(record.budget),
        "audit": _audit(record),
        "geography": [
            {"level": g.name, "areas": f"{g.nodes:,}", "only_children": f"{g.only_children:,}"}
            for g in record.geography
        ],
        "uncertainty": [_uncertainty(table, record.files) for table in record.tables],
        "tables": [_table(table) for table in record.tables],
        "statements": _statements(record, meaning),
        "governance": _governance(record.governance),
        "precedents": [
            {"name": p.name, "published": p.numbers(), "unit": p.unit, "note": p.note, "standing": p.label}
            for p in PRECEDENTS
        ],
        "release_table": {
            "headings": HEADINGS,
            "release": asdict(record.table.release),
            "steps": [{"step": name, **asdict(fields)} for name, fields in record.table.steps],
        },
        "checklist": _checklist(record),
        "remaining": _brief(record.remaining),
        "provenance": {
            "Made with": f"stirred {record.version}",
            "Made on": record.made_on,
            "Digest of the plan": record.plan_digest,
            "Head of the ledger": record.ledger_head,
            "Spent on the data set": record.spent,
            "Remaining": record.remaining,
        },
    }


def _delta(record: ReleaseRecord) -> Fraction | None:
    """The delta that the release table converts at."""
    found = record.table.parameters
    return found.delta.value if found is not None and found.delta.converted else None


def _summary(record: ReleaseRecord, meaning: Meaning) -> list[str]:
    count = len(record.files)
    files = f"{count} {'file' if count == 1 else 'files'}"
    who = record.agency or "The agency"
    verb = "released" if record.publishable else "made"
    out = [f"{who} {verb} {files}. Data: {record.dataset}. Method of protection: {record.mechanism}."]
    if not record.publishable:
        out.append(f"Nothing of it may be published: {record.reason}.")
    if record.exposures is not None:
        out += record.exposures.sentences()
    if record.exact:
        figures = sum(e.figures or 0 for e in record.exact)
        one = len(record.exact) == 1
        kinds = "One kind of statistic" if one else f"{len(record.exact)} kinds of statistics"
        told = f" ({figures:,} figures)" if figures else ""
        be = "is" if one else "are"
        out.append(f"{kinds}{told} {be} published exactly. The guarantee does not cover them.")
    else:
        out.append("No statistic is published exactly.")
    out.append(meaning.short)
    if record.spent:
        left = f"; {_brief(record.remaining)} remains" if record.remaining else ""
        out.append(f"The ledger of the data set records {_brief(record.spent)} as spent{left}.")
    out.append(record.passage.sentence())
    out.append("The release was not audited." if record.audit is None else record.audit["sentence"])
    return out


def _audit(record: ReleaseRecord) -> dict[str, Any] | None:
    """What the audits found; an audit never verifies, it can only fail to refute."""
    if record.audit is None:
        return None
    return {
        **{name: record.audit[name] for name in ("claim", "sentence", "made_on")},
        "findings": [
            {name: finding[name] for name in ("audit", "subject", "verdict", "sentence")}
            for finding in record.audit["findings"]
        ],
    }


def _brief(amount: str) -> str:
    """An amount of the ledger without its exact form, which stands under provenance."""
    letter, _, rest = amount.partition(" = ")
    about = rest.rpartition(" (about ")[2]
    return f"{letter} of about {about.removesuffix(')')}" if about != rest and rest else amount


def _file(file: PublishedFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "kind": file.kind,
        "title": file.title,
        "rows": None if file.rows is None else f"{file.rows:,}",
        "size": None if file.size is None else _bytes(file.size),
        "uncertainty": file.uncertainty,
    }


def _dictionary(files: Sequence[PublishedFile]) -> list[dict[str, Any]]:
    """The columns of the files, once for all files that have the same."""
    paths: dict[tuple[Column, ...], list[str]] = {}
    for file in files:
        if file.columns:
            paths.setdefault(file.columns, []).append(file.path)
    return [{"files": of, "columns": [asdict(column) for column in columns]} for columns, of in paths.items()]


def _bytes(size: int) -> str:
    for unit, power in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= power:
            return f"{size / power:.1f} {unit}"
    return f"{size} bytes"


def _blocks(specification: Specification) -> list[dict[str, str]]:
    out = []
    for name, title, question in BLOCKS:
        block = getattr(specification, name)
        if name == "budget":
            symbol, words = str(block), block.rule.removesuffix(".") or "one number for every universe"
            exact = "; ".join(dict.fromkeys(str(a) for a in block.amounts[:3]))
            words += f"; exactly {exact}" if block.is_constant else ""
        elif name == "domain":
            symbol, words = block.symbol, f"{block.meaning or block.name} (stage: {block.stage.value})"
        else:
            symbol, words = block.symbol, block.sentence()
        out.append({"block": title, "symbol": symbol, "question": question, "words": _capital(words)})
    return out


def _swap(record: ReleaseRecord) -> dict[str, str] | None:
    """The chosen rate among all rates of Theorem 1, and the rate of least loss."""
    if record.swap_rate is None:
        return None
    facts = {"rate": str(record.swap_rate)}
    if record.largest_stratum is None:
        return facts
    facts["largest_stratum"] = f"{record.largest_stratum:,}"
    if record.largest_stratum and 0 < record.swap_rate < 1:
        least = Exact.log(record.largest_stratum + 1, 2)
        facts["loss_by_theorem_1"] = shown(swapping_loss(record.largest_stratum, record.swap_rate))
        facts["least_loss_of_any_rate"] = shown(least)
    return facts


def _budget(shares: Sequence[BudgetShare]) -> list[dict[str, Any]]:
    total = sum((share.amount for share in shares), Fraction(0))
    return [
        {
            "part": ", ".join(step.replace("_", " ") for step in share.path),
            "amount": str(share.amount),
            "shown": shown(Exact(share.amount)),
            "share": percent(share.amount / total) if total else "0%",
            "standard_deviation": _deviation(share.standard_deviation),
            "noise_within": _deviation(share.standard_deviation, WITHIN_95),
        }
        for share in shares
    ]


def _deviation(value: float | None, factor: float = 1) -> str | None:
    return None if value is None else f"{factor * value:,.3g}"


def _uncertainty(table: PublishedTable, files: Sequence[PublishedFile]) -> dict[str, Any]:
    """Size and usual width of the intervals of a table, or the sentence of its file where it has none."""
    frame = table.frame
    words = next((file.uncertainty for file in files if file.title == table.title and file.uncertainty), "")
    out: dict[str, Any] = {"table": table.title, "figures": f"{frame.height:,}", "words": words}
    known = frame.drop_nulls(["low_95", "high_95"]) if {"low_95", "high_95"} <= set(frame.columns) else None
    if known is None or known.is_empty():
        return out | {"typical_half_width": None, "largest_half_width": None}
    half = (known.get_column("high_95") - known.get_column("low_95")) / 2
    middle, most = half.median(), half.max()
    return out | {"typical_half_width": _number(middle), "largest_half_width": _number(most)}


def _table(table: PublishedTable) -> dict[str, Any]:
    """The part of a protected table that is drawn: its largest areas and categories, in their order."""
    frame, parts = table.frame, list(table.parts)
    kept = _largest(frame, [table.level], AREAS if parts else CATEGORIES)
    drawn = _largest(kept, parts, CATEGORIES) if parts else kept
    rows = [_figure_of(row, table.level, parts) for row in drawn.iter_rows(named=True)]
    return {
        "title": table.title,
        "level": table.level.replace("_", " "),
        "areas_in_all": f"{frame.select(table.level).n_unique():,}",
        "areas_shown": f"{drawn.select(table.level).n_unique():,}",
        "categories_in_all": f"{frame.select(parts).n_unique() if parts else 1:,}",
        "categories_shown": f"{drawn.select(parts).n_unique() if parts else 1:,}",
        "rows": [
            {name: _number(v) if isinstance(v, int | float) else v for name, v in row.items()} for row in rows
        ],
    }


def _largest(frame: pl.DataFrame, keys: list[str], most: int) -> pl.DataFrame:
    """The rows of the groups with the largest sums, all of them in the order that they had."""
    import polars as pl

    sums = frame.group_by(keys, maintain_order=True).agg(pl.col("count").sum().alias("_sum"))
    chosen = sums.sort("_sum", descending=True, maintain_order=True).head(most).drop("_sum")
    return frame.join(chosen, on=keys, how="semi", maintain_order="left", nulls_equal=True)


def _figure_of(row: Mapping[str, Any], level: str, parts: Sequence[str]) -> dict[str, Any]:
    labels = [
        f"{part.replace('_', ' ')} {row[part]}" if isinstance(row[part], int) else str(row[part])
        for part in parts
    ]
    return {
        "area": f"{level.replace('_', ' ')} {row[level]}",
        "category": ", ".join(labels) or "total",
        "count": row["count"],
        "low": row.get("low_95"),
        "high": row.get("high_95"),
    }


def _number(value: Any) -> str | None:
    """A figure: whole where it is whole, else with one place."""
    if value is None:
        return None
    return f"{int(value):,}" if float(value) == int(value) else f"{float(value):,.1f}"


def _statements(record: ReleaseRecord, meaning: Meaning) -> dict[str, list[str]]:
    """What may be said about the budget, and what may not (appendix A.2 of the thesis)."""
    may = [
        f"The whole guarantee: {record.specification}. All five building blocks, never the number alone.",
        "Everything that is published exactly, by name, and that the guarantee does not cover it.",
    ]
    may_not = [
        "That the release is anonymous, or that nobody can be identified: law and circumstances decide that, "
        "not a budget.",
        "That it is better or worse protected than another release, by comparing the numbers: that needs the "
        "same domain, exact statistics, unit and measure.",
        "That the number is a probability of disclosure or a share of records that is safe.",
        "Which records were changed and by how much, or how far a figure is from the truth: such statements "
        "read confidential data outside the budget.",
    ]
    realised, sentence = meaning.disclosure
    (may if realised else may_not).append(sentence)
    if meaning.policy:
        may.append(
            f"The policy by which the number follows: {meaning.policy}. A policy may always be stated."
        )
    if record.exact:
        may_not.append("That the exact statistics, or what follows from them alone, are protected.")
    if record.swap_rate is not None:
        may_not.append("That the swap rate alone is the protection: it works through the size of the strata.")
    may_not += meaning.conversion_warnings
    if not record.publishable:
        may_not.insert(0, f"Anything in public: this release is not for publication ({record.reason}).")
    return {"may": may, "may_not": may_not}


def _governance(governance: Governance) -> dict[str, Any]:
    integrity = governance.contextual_integrity
    said = {True: "yes", False: "no", None: "not said"}
    return {
        "flow": governance.five_safes.flow,
        "five_safes": [
            {"safe": safe, "question": question} | governance.five_safes.of(safe).model_dump(mode="json")
            for safe, question in SAFES.items()
        ],
        "contextual_integrity": [
            {
                "parameter": name.replace("_", " "),
                "meaning": meaning,
                "here": _joined(getattr(integrity, name)) or "unanswered",
                "safes": ", ".join(safes),
            }
            for name, (meaning, safes) in NORMS.items()
        ],
        "disruptions": list(integrity.disruptions),
        "regime": governance.regime or "none was named",
        "legal_basis": governance.legal_basis,
        "law": [
            {
                "code": law.code,
                "jurisdiction": law.jurisdiction,
                "instruments": "; ".join(law.instruments),
                "test": law.test,
                "means": law.means,
                "must_infer": said[law.must_infer],
                "exceptions": law.exceptions,
                "applies": law.code == governance.regime,
            }
            for law in LEGAL_REGIMES
        ],
        "law_note": LEGAL_NOTE,
        "caveats": list(CAVEATS),
        "unanswered": list(governance.unanswered()),
    }


def _joined(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else "; ".join(value)


def _checklist(record: ReleaseRecord) -> dict[str, Any]:
    passage = record.passage
    states = dict.fromkeys(passage.overridden, "open, released by override")
    states |= dict.fromkeys(passage.optional, "open (optional)")
    states[RELEASE] = "this release"
    override = passage.override
    return {
        "sentence": passage.sentence(),
        "steps": [
            {"step": f"{step.number}. {step.title}", "state": states.get(step.number, "settled")}
            for step in STEPS
        ],
        "override": None
        if override is None
        else {"by": override.by, "reason": override.reason, "at": override.at.isoformat()},
    }


def _figures(record: ReleaseRecord, facts: Mapping[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """The public figures, by the section that shows them."""
    figures: dict[str, list[tuple[str, str]]] = {"odds": [], "swap": [], "budget": [], "geography": []}
    belief = facts["meaning"]["picture"]
    if belief is not None:
        before, after = (Fraction(str(belief[name])) for name in ("before", "after"))
        figures["odds"].append(("", odds_figure(before, after, words_after=belief_text(after))))
    rate, largest = record.swap_rate, record.largest_stratum
    if rate is not None and largest is not None and largest >= 2 and 0 < rate < 1:
        figures["swap"].append(("", swap_rate_figure((largest,), mark=rate)))
    for number, (panel, shares) in enumerate(_panels(record.budget).items(), 1):
        title = "The budget, by level and query" + (f": {panel}" if panel else "")
        drawn = budget_split_figure(shares, name=f"budget-split-{number}", title=title)
        figures["budget"].append((_capital(panel), drawn))
    if record.geography:
        levels = [(g.name, g.nodes, g.only_children) for g in record.geography]
        figures["geography"].append(("", geography_tree_figure(levels)))
    for number, table in enumerate(facts["tables"], 1):
        figures[f"table-{number}"] = _multiples(table, number)
    return figures


def _panels(shares: Sequence[BudgetShare]) -> dict[str, list[tuple[str, str, Fraction]]]:
    """Shares by all but the last two steps of their path: a figure for persons, one for housing units."""
    panels: dict[str, list[tuple[str, str, Fraction]]] = {}
    for share in shares:
        *above, query = share.path or ("all",)
        level = above.pop() if above else "all"
        panel = ", ".join(step.replace("_", " ") for step in above)
        panels.setdefault(panel, []).append((level, query, share.amount))
    return {panel: rows for panel, rows in panels.items() if any(amount > 0 for *_, amount in rows)}


def _multiples(table: Mapping[str, Any], number: int) -> list[tuple[str, str]]:
    """A panel an area, all to the same scale; a table without categories is one panel of areas."""
    rows = [(row["area"], row["category"], _bar(row)) for row in table["rows"]]
    if not rows:
        return []
    whole = {category for _, category, _ in rows} == {"total"}
    panels: dict[str, list[Bar]] = {}
    for area, category, (count, low, high) in rows:
        title, label = (table["title"], area) if whole else (area, category)
        panels.setdefault(title, []).append(Bar(label, count, low, high))
    highest = max(max(bar.value, bar.high or 0) for bars in panels.values() for bar in bars)
    return [
        (title, bar_panel(title, bars, highest=highest, name=f"table-{number}-{i}"))
        for i, (title, bars) in enumerate(panels.items(), 1)
    ]


def _bar(row: Mapping[str, Any]) -> tuple[float, float | None, float | None]:
    count, low, high = (
        None if row[name] is None else float(row[name].replace(",", "")) for name in ("count", "low", "high")
    )
    return count or 0.0, low, high


def _internal(internal: InternalRecord) -> dict[str, Any]:
    """Tables of errors, as text."""
    return {
        "accuracy": [
            {"title": name.replace("_", " "), "columns": frame.columns, "rows": _cells(_all_areas(frame))}
            for name, frame in internal.accuracy.items()
        ],
        "against_truth": list(internal.against_truth),
    }


def _all_areas(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the rows for areas of some population only: they are in the file beside the report."""
    return frame.filter(population="all") if "population" in frame.columns else frame


def _cells(frame: pl.DataFrame) -> list[list[str]]:
    return [[f"{v:,.3g}" if isinstance(v, float) else _cell(v) for v in row] for row in frame.iter_rows()]


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)


def _internal_figures(internal: InternalRecord) -> dict[str, list[tuple[str, str]]]:
    errors: list[tuple[str, str]] = []
    for number, (name, frame) in enumerate(internal.accuracy.items(), 1):
        if {"level", "query", "mean_absolute"} <= set(frame.columns):
            rows = _all_areas(frame).select("level", "query", "mean_absolute").rows()
            title = f"Mean absolute error by level and query: {name.replace('_', ' ')}"
            drawn = error_by_level_figure(rows, name=f"error-by-level-{number}", title=title)
            errors.append((_capital(name.replace("_", " ")), drawn))
    truth = [
        (title, against_truth_figure(title, true, made, name=f"against-truth-{number}"))
        for number, (title, (true, made)) in enumerate(internal.against_truth.items(), 1)
        if len(true)
    ]
    return {"errors": errors, "truth": truth}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
