"""The report of a release: for those who decide, those who are counted, and those who check the mathematics.

All three editions are written from the same facts: numbers and objects. HTML is one file that loads nothing
and runs no script; it and Markdown write figures as people read them, JSON has them as numbers. Internal
figures enter the HTML edition alone, if handed over.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stirred.ledger import Amount
from stirred.report.checklist import RELEASE, STEPS
from stirred.report.governance import CAVEATS, LEGAL_NOTE, LEGAL_REGIMES, NORMS, PRECEDENTS, SAFES, Governance
from stirred.report.meaning import Meaning, belief_text
from stirred.report.record import (
    Column,
    Facts,
    Grid,
    InternalRecord,
    PublishedFile,
    PublishedTable,
    ReleaseRecord,
    Section,
)
from stirred.report.table import HEADINGS
from stirred.show import (
    Bar,
    Share,
    against_truth_figure,
    bar_panel,
    error_by_level_figure,
    heading,
    number,
    odds_figure,
    release_page,
)
from stirred.spec import Exact, Specification, Uncertainty

if TYPE_CHECKING:
    import polars as pl

SCHEMA_VERSION = 2
SUM = "__sum"
AREAS, CATEGORIES = 9, 10

BLOCKS = (
    ("domain", "Domain", "Who is eligible for protection?"),
    ("multiverse", "Multiverse", "Where does protection extend to?"),
    ("input_premetric", "Input premetric", "What is the protection unit?"),
    ("output_premetric", "Output premetric", "How is a change of output measured?"),
    ("budget", "Budget", "How much protection loss is allowed?"),
)


def report_html(record: ReleaseRecord, internal: InternalRecord | None = None) -> str:
    """The report as one HTML file; with internal figures, the internal edition."""
    meaning = _meaning(record)
    facts = _facts(record, meaning)
    figures = {"odds": _odds(meaning)} | {
        f"table-{i}": _multiples(table, i) for i, table in enumerate(facts["tables"], 1)
    }
    if internal is None:
        return release_page(facts, figures, _limits(meaning))
    return release_page(facts, figures | _internal_figures(internal), _limits(meaning), _internal(internal))


def report_json(record: ReleaseRecord) -> str:
    """The facts of the report as JSON text."""
    facts = _facts(record, _meaning(record))
    return json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False, default=_plain) + "\n"


def report_markdown(record: ReleaseRecord) -> str:
    """The report as Markdown."""
    from stirred.report.markdown import markdown

    meaning = _meaning(record)
    return markdown(_facts(record, meaning), _limits(meaning))


def _plain(value: object) -> object:
    """An object as JSON has it: a number that is not a float or whole as both, float and exact text."""
    match value:
        case Share():
            return float(value)
        case Fraction():
            return {"value": float(value), "exact": str(value)}
        case Exact():
            return {"value": None if value.is_infinite else value.float_up(), "exact": str(value)}
        case Amount():
            return dict(zip(value.units, value.values, strict=True))
        case Uncertainty() | Section():
            return value.record()
    raise TypeError(f"a report holds no {type(value).__name__}")


def _facts(record: ReleaseRecord, meaning: Meaning) -> dict[str, Any]:
    """Everything the report says, as numbers and objects."""
    identity, facts, published, account = record.identity, record.facts, record.published, record.account
    return {
        "schema_version": SCHEMA_VERSION,
        "type": "release-report",
        "release": {
            **asdict(identity),
            "mechanism": facts.mechanism,
            "settings": dict(facts.settings),
            "publishable": record.publishable,
            "reason": record.reason,
            "warnings": list(facts.warnings),
        },
        "summary": _summary(record, meaning),
        "exposure": None if facts.exposures is None else facts.exposures.record(),
        "files": [_file(file) for file in published.files],
        "dictionary": _dictionary(published.files),
        "guarantee": {
            "statement": str(record.specification),
            "card": [asdict(line) for line in record.specification.card().lines],
            "blocks": _blocks(record.specification),
            "assumptions": list(record.specification.assumptions),
        },
        "exact": {
            "statistics": [asdict(statistic) for statistic in facts.exact],
            "figures_in_all": _fixed(facts),
            "constraints": list(facts.constraints),
        },
        "meaning": meaning.record(),
        "sections": {section.key: section for section in facts.sections},
        "audit": _audit(record),
        "uncertainty": [_uncertainty(table) for table in published.tables],
        "tables": [_table(table) for table in published.tables],
        "statements": _statements(record, meaning),
        "governance": _governance(record.governance),
        "precedents": [
            {"name": p.name, "published": p.numbers()}
            | {name: getattr(p, name) for name in ("epsilon", "delta", "rho_squared", "unit", "note")}
            | {"standing": p.label}
            for p in PRECEDENTS
        ],
        "release_table": {
            "headings": HEADINGS,
            "release": asdict(record.table.release),
            "steps": [{"step": name, **asdict(fields)} for name, fields in record.table.steps],
        },
        "checklist": _checklist(record),
        "provenance": {
            "made_with": f"stirred {identity.version}",
            "made_on": identity.made_on,
            "digest_of_the_plan": identity.plan_digest,
            "head_of_the_ledger": None if account is None else account.ledger_head,
            "spent_on_the_data_set": None if account is None else account.spent,
            "remaining": None if account is None else account.remaining,
        },
    }


def _meaning(record: ReleaseRecord) -> Meaning:
    """The budget in words, at the delta that the release table converts at."""
    found = record.table.parameters
    converted = found is not None and found.delta.converted
    return Meaning.of(record.specification, found.delta.value if found and converted else None)


def _odds(meaning: Meaning) -> list[tuple[str, str]]:
    belief = meaning.record()["picture"]
    if belief is None:
        return []
    before, after = (Fraction(str(belief[name])) for name in ("before", "after"))
    return [("", odds_figure(before, after, words_after=belief_text(after)))]


def _limits(meaning: Meaning) -> Grid | None:
    """By how much odds and beliefs can grow at most, in words."""
    odds = [found.words() for found in meaning.odds]
    if not odds:
        return None
    priors = [f"From {belief['before']} to at most" for belief in odds[0]["beliefs"]]
    rows = [
        (row["units"], row["epsilon"], row["factor"], *(belief["after"] for belief in row["beliefs"]))
        for row in odds
    ]
    columns = ("Difference", "ε", "Odds grow at most by", *priors)
    return Grid("Limits on beliefs", columns, tuple(rows))


def _fixed(facts: Facts) -> int:
    """How many figures are published exactly."""
    return sum(statistic.figures or 0 for statistic in facts.exact)


def _summary(record: ReleaseRecord, meaning: Meaning) -> list[str]:
    identity, facts, count = record.identity, record.facts, len(record.published.files)
    files = f"{count} {'file' if count == 1 else 'files'}"
    who = identity.agency or "The agency"
    verb = "released" if record.publishable else "made"
    out = [f"{who} {verb} {files}. Data: {identity.dataset}. Method of protection: {facts.mechanism}."]
    if not record.publishable:
        out.append(f"Nothing of it may be published: {record.reason}.")
    if facts.exposures is not None:
        out += facts.exposures.sentences()
    out.append(_exact_sentence(facts))
    out.append(meaning.short)
    if record.account is not None:
        spent, left = record.account.spent.rounded(up=True), record.account.remaining.rounded(up=False)
        out.append(f"The ledger of the data set records {spent} as spent; {left} remains.")
    out.append(record.passage.sentence())
    out.append("The release was not audited." if record.audit is None else record.audit["sentence"])
    return out


def _exact_sentence(facts: Facts) -> str:
    kinds, figures = len(facts.exact), _fixed(facts)
    if not kinds:
        return "No statistic is published exactly."
    who = "One kind of statistic" if kinds == 1 else f"{kinds} kinds of statistics"
    told = f" ({number(figures)} figures)" if figures else ""
    be = "is" if kinds == 1 else "are"
    return f"{who}{told} {be} published exactly. The guarantee does not cover them."


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


def _file(file: PublishedFile) -> dict[str, Any]:
    names = ("path", "kind", "title", "rows", "size", "uncertainty")
    return {name: getattr(file, name) for name in names}


def _dictionary(files: Sequence[PublishedFile]) -> list[dict[str, Any]]:
    """The columns of the files, once for all files that have the same."""
    paths: dict[tuple[Column, ...], list[str]] = {}
    for file in files:
        if file.columns:
            paths.setdefault(file.columns, []).append(file.path)
    return [{"files": of, "columns": [asdict(column) for column in columns]} for columns, of in paths.items()]


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
        out.append(
            {"block": title, "symbol": symbol, "question": question, "words": words[:1].upper() + words[1:]}
        )
    return out


def _uncertainty(table: PublishedTable) -> dict[str, Any]:
    """The law of a table's errors, and the usual and the largest width of its intervals where it has them."""
    frame = table.frame
    known = frame.drop_nulls(["low_95", "high_95"]) if {"low_95", "high_95"} <= set(frame.columns) else None
    ends = None if known is None else known.get_column("high_95") - known.get_column("low_95")
    half = None if ends is None else (ends / 2).round(4)
    return {
        "table": table.title,
        "figures": frame.height,
        "uncertainty": table.uncertainty,
        "typical_half_width": None if half is None else half.median(),
        "largest_half_width": None if half is None else half.max(),
    }


def _table(table: PublishedTable) -> dict[str, Any]:
    """The part of a protected table that is drawn: its largest areas and categories, in their order."""
    frame, parts = table.frame, list(table.parts)
    kept = _largest(frame, [table.level], AREAS if parts else CATEGORIES)
    drawn = _largest(kept, parts, CATEGORIES) if parts else kept
    return {
        "title": table.title,
        "level": table.level.replace("_", " "),
        "areas_in_all": frame.select(table.level).n_unique(),
        "areas_shown": drawn.select(table.level).n_unique(),
        "categories_in_all": frame.select(parts).n_unique() if parts else 1,
        "categories_shown": drawn.select(parts).n_unique() if parts else 1,
        "rows": [_figure_of(row, table.level, parts) for row in drawn.iter_rows(named=True)],
    }


def _largest(frame: pl.DataFrame, keys: list[str], most: int) -> pl.DataFrame:
    """The rows of the groups with the largest sums, all of them in the order that they had."""
    import polars as pl

    sums = frame.group_by(keys, maintain_order=True).agg(pl.col("count").sum().alias(SUM))
    chosen = sums.sort(SUM, descending=True, maintain_order=True).head(most).drop(SUM)
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
    if record.facts.exact:
        may_not.append("That the exact statistics, or what follows from them alone, are protected.")
    may_not += [statement for section in record.facts.sections for statement in section.may_not]
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
            dict(law)
            | {"instruments": "; ".join(law.instruments), "must_infer": said[law.must_infer]}
            | {"applies": law.code == governance.regime}
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
    usual = "settled" if passage.consulted else "not consulted"
    override = passage.override
    return {
        "sentence": passage.sentence(),
        "steps": [
            {"step": step.number, "title": step.title, "state": states.get(step.number, usual)}
            for step in STEPS
        ],
        "override": None
        if override is None
        else {"by": override.by, "reason": override.reason, "at": override.at.isoformat()},
    }


def _multiples(table: Mapping[str, Any], number: int) -> list[tuple[str, str]]:
    """A panel an area, all to the same scale; a table without categories is one panel of areas."""
    rows = table["rows"]
    if not rows:
        return []
    whole = {row["category"] for row in rows} == {"total"}
    panels: dict[str, list[Bar]] = {}
    for row in rows:
        title, label = (table["title"], row["area"]) if whole else (row["area"], row["category"])
        panels.setdefault(title, []).append(Bar(label, row["count"] or 0, row["low"], row["high"]))
    highest = max(max(bar.value, bar.high or 0) for bars in panels.values() for bar in bars)
    return [
        (title, bar_panel(title, bars, highest=highest, name=f"table-{number}-{i}"))
        for i, (title, bars) in enumerate(panels.items(), 1)
    ]


def _internal(internal: InternalRecord) -> dict[str, Any]:
    """Tables of errors."""
    return {
        "accuracy": [
            Grid(
                f"Errors as a table: {name.replace('_', ' ')}",
                tuple(frame.columns),
                tuple(_all_areas(frame).rows()),
                folded=True,
            )
            for name, frame in internal.accuracy.items()
        ],
        "against_truth": list(internal.against_truth),
    }


def _all_areas(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the rows for areas of some population only: they are in the file beside the report."""
    return frame.filter(population="all") if "population" in frame.columns else frame


def _internal_figures(internal: InternalRecord) -> dict[str, list[tuple[str, str]]]:
    errors: list[tuple[str, str]] = []
    for i, (name, frame) in enumerate(internal.accuracy.items(), 1):
        if {"level", "query", "mean_absolute"} <= set(frame.columns):
            rows = _all_areas(frame).select("level", "query", "mean_absolute").rows()
            title = f"Mean absolute error by level and query: {name.replace('_', ' ')}"
            drawn = error_by_level_figure(rows, name=f"error-by-level-{i}", title=title)
            errors.append((heading(name), drawn))
    truth = [
        (title, against_truth_figure(title, true, made, name=f"against-truth-{i}"))
        for i, (title, (true, made)) in enumerate(internal.against_truth.items(), 1)
        if len(true)
    ]
    return {"errors": errors, "truth": truth}
