"""The report: the same facts in three editions, nothing confidential in public ones, readable by everyone."""

from __future__ import annotations

import html
import json
import math
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stirred.ledger import Amount
from stirred.release.kinds.swap.report import swap_section
from stirred.release.kinds.topdown.report import (
    BudgetShare,
    LevelOfGeography,
    budget_section,
    geography_section,
)
from stirred.report import (
    Account,
    Column,
    ExactStatistic,
    Facts,
    Governance,
    Grid,
    Identity,
    InternalRecord,
    Override,
    Passage,
    Published,
    PublishedFile,
    PublishedTable,
    ReleaseRecord,
    ReleaseRow,
    ReleaseTable,
    Section,
    report_html,
    report_json,
    report_markdown,
)
from stirred.report.governance import LEGAL_NOTE, PRECEDENTS, ContextualIntegrity
from stirred.report.meaning import Meaning, belief_text
from stirred.show import number, percent, size
from stirred.spec import Budget, Exact, Specification, Uncertainty, catalogue
from stirred.spec.blocks.output_premetric import TotalVariation
from stirred.spec.calculus.closed_form.concentrated import census_epsilon

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
)
HOSTILE = "<script>alert('x')</script><img src=https://example.org/x> | [a](b) & \"c\""
BEFORE = ["short", "released", "guarantee", "exact", "meaning"]
AFTER = [
    *("uncertainty", "tables", "audit", "statements", "governance", "law", "precedents"),
    *("release-table", "checklist", "provenance"),
]
VOID = {"meta", "br", "img", "link", "input", "hr"}


def table(*, intervals: bool) -> PublishedTable:
    rows = [
        {
            "tract": f"0{t}",
            "age": age,
            "count": 100 * t + i,
            "low_95": 100.0 * t - 3,
            "high_95": 100.0 * t + 5,
        }
        for t in range(1, 15)
        for i, age in enumerate(("under 18", "18 or older"))
    ]
    frame = pl.DataFrame(rows)
    return PublishedTable(
        "Persons by age",
        "tract",
        ("age",),
        frame if intervals else frame.drop("low_95", "high_95"),
        NOISE if intervals else Uncertainty("permutation within strata", 0.25),
    )


def rho_squared(amount: str) -> Amount:
    return Amount(("rho_squared",), (Exact.of(amount),))


NOISE = Uncertainty("discrete Gaussian", 3.5, (-6.86, 6.86))
SHARES = (
    BudgetShare(("persons", "state", "total"), Fraction(2), 1.5),
    BudgetShare(("persons", "block_group", "age"), Fraction(1, 3), 4.25),
    BudgetShare(("housing units", "block_group", "total"), Fraction(1)),
)
LEVELS = (LevelOfGeography("state", 1), LevelOfGeography("block_group", 1_040, 2))
FILE = PublishedFile(
    path="tables/age.csv",
    kind="table",
    title="Persons by age",
    rows=15_500,
    columns=(Column("count", "Int64", "protected count"),),
    uncertainty=NOISE,
    size=1_234,
)


def record_of(specification: Specification) -> ReleaseRecord:
    return ReleaseRecord(
        identity=Identity(
            name="county-2026",
            title="Population of the county",
            description="Counts by age.",
            agency="Office of Statistics",
            dataset="the census file",
            stage="edited file",
            made_on="2026-11-16",
            version="9.8.7",
            plan_digest="cd" * 32,
        ),
        specification=specification,
        facts=Facts(
            mechanism="TopDown",
            settings={"estimator": "multipass", "strata": 12_345},
            exact=(
                ExactStatistic("the number of persons in each state", "Article I", 1),
                ExactStatistic("the number of housing units in each block", "", 9_620),
            ),
            constraints=("no record has a minor in a nursing home",),
            sections=(budget_section(SHARES), geography_section(LEVELS)),
            warnings=("delta is large",),
        ),
        published=Published((FILE,), (table(intervals=True),)),
        table=ReleaseTable.of(
            [ReleaseRow("tables", "Tables", "TopDown", "stirred 9.8.7", specification)], delta="1e-10"
        ),
        governance=Governance(regime="UK", legal_basis="Section 39 of the Act."),
        passage=Passage(optional=(3,)),
        account=Account(rho_squared("15.29"), rho_squared("4.71"), "ab" * 32),
    )


def with_facts(record: ReleaseRecord, **changes: Any) -> ReleaseRecord:
    return replace(record, facts=replace(record.facts, **changes))


TOPDOWN = record_of(catalogue.specification("tda-dhc"))
SWAPPING = replace(
    with_facts(
        record_of(catalogue.specification("psa-2020-county")),
        mechanism="Permutation swapping",
        sections=(swap_section(Fraction(1, 20), 264_331),),
    ),
    published=Published((FILE,), (table(intervals=False),)),
)
INTERNAL = InternalRecord(
    {
        "person": pl.DataFrame(
            [
                {"level": level, "query": "total", "population": p, "counts": 9, "mean_absolute": 12.3125}
                for level in ("state", "block_group")
                for p in ("all", "1-9")
            ]
        ),
        "swapped": pl.DataFrame([{"table": "tract * age", "largest": 77_123}]),
    },
    {"Persons by tract": ([1, 2, 3_003], [1, 5, 3_001])},
)
RECORDS = {"topdown": TOPDOWN, "swapping": SWAPPING}


class Page(HTMLParser):
    """A page taken apart: open and close tags must match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]

    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module", params=["topdown", "swapping", "internal"])
def page(request: pytest.FixtureRequest) -> str:
    if request.param == "internal":
        return report_html(TOPDOWN, INTERNAL)
    return report_html(RECORDS[request.param])


def test_the_page_is_well_formed_with_one_heading_and_every_section(page: str) -> None:
    parsed = Page(page)
    assert page.startswith("<!doctype html>")
    assert len(parsed.of("h1")) == 1 and len(parsed.of("main")) == 1
    found = [attributes.get("id", "") for attributes in parsed.of("section")]
    own = ["section-swap_rate"] if "Permutation swapping" in page else ["section-budget", "section-geography"]
    wanted = [*BEFORE, *own, *AFTER]
    assert found[: len(wanted)] == wanted
    assert len(parsed.of("h2")) == len(found)


def test_ids_are_unique_and_every_reference_has_its_target(page: str) -> None:
    parsed = Page(page)
    ids = Counter(attributes["id"] for _, attributes in parsed.tags if "id" in attributes)
    assert [name for name, times in ids.items() if times > 1] == []
    links = [attributes["href"] for attributes in parsed.of("a")]
    assert all(link.startswith("#") for link in links) and "#main" in links
    named = [n for _, a in parsed.tags for n in a.get("aria-labelledby", "").split()]
    assert {link[1:] for link in links} | set(named) <= set(ids)


def test_the_page_loads_nothing_and_runs_nothing(page: str) -> None:
    parsed = Page(page)
    assert {"script", "link", "img", "iframe", "object"}.isdisjoint(tag for tag, _ in parsed.tags)
    assert set(re.findall(r"https?://[^\s\"'<]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|url\(|javascript:|\son\w+=", page)
    assert "default-src 'none'" in page


def test_every_figure_has_words_and_every_table_heads(page: str) -> None:
    figures = re.findall(r"<svg.*?</svg>", page, re.S)
    assert figures
    for figure in figures:
        assert 'role="img"' in figure
        assert re.search(r"<title id=[^>]+>[^<]+</title><desc id=[^>]+>[^<]+</desc>", figure)
    assert "<th>" not in page
    assert page.count("<table") == page.count("<thead")


def test_figures_of_each_mechanism_are_there() -> None:
    topdown, swapping = report_html(TOPDOWN), report_html(SWAPPING)
    for name in (
        "budget-split-1-title",
        "budget-split-2-title",
        "geography-title",
        "odds-title",
        "table-1-9-title",
    ):
        assert f'id="{name}"' in topdown
    assert 'id="swap-title"' not in topdown
    assert 'id="swap-title"' in swapping and swapping.count('fill="#b8500c"') == 1
    assert "budget-split-1" not in swapping
    assert "95% interval" in topdown and "95% interval " not in swapping


def leaves(value: Any) -> Iterator[str | float]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield value


def forms(fact: str | float) -> set[str]:
    """The ways in which a fact may be written for people."""
    if isinstance(fact, str):
        return {" ".join(fact.split())}
    up = f"{math.ceil(fact * 10**4) / 10**4:g}"
    return {
        number(fact),
        percent(Fraction(fact)),
        f"{fact:.4f}",
        up,
        *([size(fact)] if type(fact) is int else []),
    }


def said(facts: Any) -> Any:
    """Facts without what people read in other words: laws of errors, and numbers beside their exact text."""
    if isinstance(facts, list):
        return [said(inner) for inner in facts]
    if not isinstance(facts, dict):
        return facts
    if set(facts) == {"law", "scale", "interval", "note"}:
        return str(Uncertainty.read(facts))
    if set(facts) == {"value", "exact"}:
        exact = Exact.parse(facts["exact"])
        return facts["exact"] if exact.rational is not None else float(exact.rounded(4, up=True))
    return {name: said(inner) for name, inner in facts.items()}


def plain(markdown: str) -> str:
    return " ".join(html.unescape(re.sub(r"\\([|\[\]`*])", r"\1", markdown)).split())


@pytest.mark.parametrize("name", RECORDS)
def test_markdown_and_html_carry_every_fact_of_the_json(name: str) -> None:
    facts = json.loads(report_json(RECORDS[name]))
    picture = facts["meaning"].pop("picture")
    assert Fraction(str(picture["before"])) == Fraction(1, 10)
    assert len(facts["meaning"].pop("odds")) == 2
    assert len([block.pop("symbol") for block in facts["guarantee"]["blocks"]]) == 5
    kept = {"schema_version", "type", "precedents"}
    told = {key: value for key, value in said(facts).items() if key not in kept}
    wanted = [fact for fact in leaves(told) if fact != ""]
    assert len(wanted) > 250
    text, page = plain(report_markdown(RECORDS[name])), Page(report_html(RECORDS[name])).text().lower()
    assert [fact for fact in wanted if not any(form in text for form in forms(fact))] == []
    assert [fact for fact in wanted if not any(form.lower() in page for form in forms(fact))] == []
    for precedent in facts["precedents"]:
        texts = [precedent[key] for key in ("name", "published", "note", "standing")]
        assert all(" ".join(words.split()) in text for words in texts)
        assert all(" ".join(words.split()).lower() in page for words in texts)


def test_limits_on_beliefs_are_told_in_words() -> None:
    row = "1 household 19.3609 10 to the 8.5 99.7 of 100 100 of 100 (no limit)"
    assert f"{row} " in Page(report_html(SWAPPING)).text()
    text = plain(report_markdown(SWAPPING)).replace(" | ", " ")
    for words in (row, "2 households 38.7217 10 to the 16.9", "From 1 in a million to at most"):
        assert words in text


def test_facts_come_from_the_record_as_numbers() -> None:
    facts = json.loads(report_json(TOPDOWN))
    assert facts["schema_version"] == 2
    assert facts["exact"]["figures_in_all"] == 9_621
    assert facts["release"]["settings"] == {"estimator": "multipass", "strata": 12_345}
    (shares,) = facts["sections"]["budget"]["grids"]
    assert [row["share"] for row in shares["rows"]] == pytest.approx([0.6, 0.1, 0.3])
    assert shares["rows"][1]["amount"] == {"value": 1 / 3, "exact": "1/3"}
    assert shares["rows"][1]["noise_within"] == pytest.approx(8.33)
    assert shares["rows"][2]["standard_deviation"] is None
    (levels,) = facts["sections"]["geography"]["grids"]
    assert levels["rows"][1] == {"level": "block_group", "areas": 1_040, "only_children": 2}
    assert facts["files"][0]["size"] == 1_234 and facts["files"][0]["rows"] == 15_500
    assert facts["files"][0]["uncertainty"] == NOISE.record()
    assert facts["uncertainty"][0]["typical_half_width"] == 4
    assert Uncertainty.read(facts["uncertainty"][0]["uncertainty"]) == NOISE
    shown = facts["tables"][0]
    assert (shown["areas_shown"], shown["areas_in_all"], len(shown["rows"])) == (9, 14, 18)
    assert shown["rows"][0]["area"] == "tract 06", "the largest nine of fourteen, in their order"
    assert (shown["rows"][0]["count"], shown["rows"][0]["low"], shown["rows"][0]["high"]) == (600, 597, 605)
    assert facts["provenance"]["head_of_the_ledger"] == "ab" * 32
    assert [law["code"] for law in facts["governance"]["law"] if law["applies"]] == ["UK"]
    assert all("unreviewed" in p["standing"] for p in facts["precedents"])
    assert [step["step"] for step in facts["checklist"]["steps"]] == list(range(1, 12))


def test_every_edition_says_what_is_no_legal_advice_and_what_a_guarantee_does_not_assess() -> None:
    worksheet = ContextualIntegrity(transmission_principles=("statistical use only",))
    governance = Governance(legal_basis="section 12(2)", contextual_integrity=worksheet)
    record = replace(TOPDOWN, governance=governance)
    for text in (plain(report_markdown(record)), Page(report_html(record)).text()):
        assert LEGAL_NOTE in text and "not legal advice" in text
        assert "section 12(2)" in text and "none was named" in text
        assert "does not assess people, projects or settings" in text
        assert "statistical use only" in text
        assert all(p.label in text and p.numbers() in text for p in PRECEDENTS)


def test_figures_are_written_for_people_in_pages_only() -> None:
    text, page = plain(report_markdown(TOPDOWN)), Page(report_html(TOPDOWN)).text()
    for words in ("15,500", "9,621", "12,345", "1,040", "1.2 kB", "60%", "1/3 (about 0.3334)", "8.33"):
        assert words in text and words in page, words
        assert f'"{words}"' not in report_json(TOPDOWN)
    assert "discrete Gaussian noise with standard deviation 3.5" in text
    assert "discrete Gaussian noise with standard deviation 3.5" in page


def test_amounts_of_the_ledger_are_short_on_top_and_exact_under_provenance() -> None:
    """What is spent is rounded up, what is left down: against the user."""
    account = Account(Amount(("epsilon",), (Exact.log(3),)), rho_squared("645755/175081"), "ab" * 32)
    record = replace(TOPDOWN, account=account)
    facts = json.loads(report_json(record))
    assert any(
        "records ε of about 1.0987 as spent; ρ² of about 3.6883 remains" in s for s in facts["summary"]
    )
    found = facts["provenance"]["remaining"]["rho_squared"]
    assert found["exact"] == "645755/175081" and found["value"] == pytest.approx(645755 / 175081)
    assert facts["provenance"]["spent_on_the_data_set"]["epsilon"]["exact"] == "ln(3)"
    page = Page(report_html(record)).text()
    assert "Budget that remains ρ² of about 3.6883" in page and str(account.remaining) in page
    assert "Budget that remains ρ² = 4.71" in Page(report_html(TOPDOWN)).text()


def test_a_section_of_any_kind_is_shown_and_told_in_numbers() -> None:
    grid = Grid("Counts by turn", ("turn_of_the_coin", "counts"), (("first", 12_000), ("second", None)))
    section = Section("toss", "How it was tossed", "Twice.", {"number_of_tosses": 20_000}, (grid,))
    record = with_facts(TOPDOWN, sections=(replace(section, may_not=("That the coin was fair.",)),))
    facts = json.loads(report_json(record))
    assert facts["sections"] == {
        "toss": {
            "title": "How it was tossed",
            "facts": {"number_of_tosses": 20_000},
            "grids": [
                {
                    "title": "Counts by turn",
                    "rows": [
                        {"turn_of_the_coin": "first", "counts": 12_000},
                        {"turn_of_the_coin": "second", "counts": None},
                    ],
                }
            ],
        }
    }
    assert "That the coin was fair." in facts["statements"]["may_not"]
    page = Page(report_html(record))
    assert page.of("section")[5]["id"] == "section-toss"
    for text in (page.text(), plain(report_markdown(record))):
        for words in (
            "How it was tossed",
            "Twice.",
            "Number of tosses",
            "20,000",
            "Turn of the coin",
            "12,000",
        ):
            assert words in text


def test_files_of_the_same_columns_share_a_dictionary_and_unknown_sizes_have_no_column() -> None:
    files = (replace(FILE, size=None), replace(FILE, path="age.parquet", size=None))
    record = replace(TOPDOWN, published=replace(TOPDOWN.published, files=files))
    assert [entry["files"] for entry in json.loads(report_json(record))["dictionary"]] == [
        ["tables/age.csv", "age.parquet"]
    ]
    assert ">Size<" in report_html(TOPDOWN)
    assert ">Size<" not in report_html(record)


def test_the_report_is_the_same_every_time() -> None:
    assert report_html(TOPDOWN, INTERNAL) == report_html(TOPDOWN, INTERNAL)
    assert report_json(SWAPPING) == report_json(SWAPPING)


def test_hostile_texts_stay_texts() -> None:
    note = Uncertainty("exact", note=HOSTILE)
    grid = Grid(HOSTILE, (HOSTILE,), ((HOSTILE,),))
    record = replace(
        TOPDOWN,
        identity=replace(TOPDOWN.identity, title=HOSTILE, agency=HOSTILE, description=HOSTILE),
        facts=Facts(
            mechanism=HOSTILE,
            settings={HOSTILE: HOSTILE},
            warnings=(HOSTILE,),
            sections=(
                budget_section([BudgetShare((HOSTILE, HOSTILE, HOSTILE), Fraction(1))]),
                geography_section([LevelOfGeography(HOSTILE, 3)]),
                Section("own", HOSTILE, HOSTILE, {HOSTILE: HOSTILE}, (grid, replace(grid, folded=True))),
            ),
        ),
        published=Published(
            (PublishedFile(HOSTILE, HOSTILE, HOSTILE, 1, (Column(HOSTILE, HOSTILE, HOSTILE),), note),),
            (replace(TOPDOWN.published.tables[0], title=HOSTILE, uncertainty=note),),
        ),
        reason=HOSTILE,
        publishable=False,
        governance=Governance(legal_basis=HOSTILE),
    )
    text = report_html(
        record, InternalRecord({HOSTILE: pl.DataFrame({HOSTILE: [HOSTILE]})}, {HOSTILE: ([1], [2])})
    )
    parsed = Page(text)
    assert {"script", "img"}.isdisjoint(tag for tag, _ in parsed.tags)
    assert HOSTILE in parsed.text()
    assert [a for a in parsed.of("a") if not a["href"].startswith("#")] == []
    written = report_markdown(record)
    assert "<script" not in written and "[a](b)" not in written
    assert json.loads(report_json(record))["release"]["title"] == HOSTILE


def test_what_may_not_be_published_says_so_on_top() -> None:
    record = replace(TOPDOWN, publishable=False, reason="it was made with a test seed")
    text = report_html(record)
    assert text.index("Not for publication: it was made with a test seed.") < text.index("<h1")
    assert "NOT FOR PUBLICATION: it was made with a test seed" in report_markdown(record)
    assert "Not for publication" not in report_html(TOPDOWN)
    assert "NOT FOR PUBLICATION" not in report_markdown(TOPDOWN)


def test_only_the_internal_edition_compares_with_the_truth() -> None:
    public, internal = report_html(TOPDOWN), report_html(TOPDOWN, INTERNAL)
    for secret in ("12.3", "77,123", "Against the truth", "never publish", "against-truth", "error-by-level"):
        assert secret in internal, secret
        assert secret not in public, secret
    assert internal.index("Internal: never publish") < internal.index("<h1")
    assert Page(internal).of("section")[-1]["id"] == "truth"
    assert ">Population<" in internal and ">1-9<" not in internal


def test_an_override_is_shown_with_who_and_why() -> None:
    override = Override(
        steps=(5,), by="A. Director", reason="a court order", at=datetime(2026, 11, 1, tzinfo=UTC)
    )
    record = replace(TOPDOWN, passage=Passage(overridden=(5,), override=override))
    for text in (Page(report_html(record)).text(), plain(report_markdown(record))):
        assert "OVERRIDE: released by permission of A. Director" in text
        assert "open, released by override" in text
    assert "OVERRIDE" not in report_html(TOPDOWN)


def test_a_bare_record_makes_a_report_too() -> None:
    record = replace(TOPDOWN, facts=Facts("TopDown"), published=Published(), account=None)
    parsed = Page(report_html(record, InternalRecord()))
    assert "No statistic is published exactly." in parsed.text()
    assert "No comparison was made." in parsed.text()
    assert "Budget that remains" not in parsed.text() + report_markdown(record)


def test_a_budget_that_is_not_split_is_one_number() -> None:
    for text in (Page(report_html(SWAPPING)).text(), report_markdown(SWAPPING)):
        assert "The budget is one number" in text
        assert "The budget is one number" not in report_markdown(TOPDOWN)


@pytest.mark.parametrize(
    ("rate", "stratum", "facts", "figures"),
    [("1/20", 0, 2, 0), ("1/20", 1, 4, 0), ("0", 9, 2, 0), ("1", 9, 2, 0), ("1/2", 2, 4, 1)],
)
def test_the_curve_of_rates_is_drawn_where_there_is_one(
    rate: str, stratum: int, facts: int, figures: int
) -> None:
    section = swap_section(Fraction(rate), stratum)
    assert (len(section.facts), len(section.figures)) == (facts, figures)


def test_pure_budgets_in_odds() -> None:
    """ln 3 multiplies odds by three: a half becomes three quarters, and nine to one for two units."""
    specification = catalogue.specification("psa-2020-county")
    meaning = Meaning.of(Specification(**dict(specification) | {"budget": Budget.epsilon("ln(3)")}))
    one, two = (odds.words() for odds in meaning.odds)
    assert (one["factor"], two["factor"]) == ("3.00", "9.00")
    numbers = meaning.record()
    assert [row["factor"] for row in numbers["odds"]] == [3.0, 9.0]
    assert [b["after"] for b in numbers["odds"][0]["beliefs"]][2:] == [0.25, 0.75]
    assert numbers["picture"] == {"before": 0.1, "after": 0.25}
    assert [b["after"] for b in one["beliefs"]] == ["0.1 of 100", "3 of 100", "25 of 100", "75 of 100"]
    assert two["beliefs"][-1]["after"] == "90 of 100"
    assert "at most 25 of 100 after it." in meaning.short
    assert "agree on everything that is published exactly" in meaning.setting


def test_zcdp_in_odds_uses_the_tail_of_the_loss_at_each_distance() -> None:
    """Proposition 1.3 of Bun and Steinke at distance k: k rho in place of rho."""
    specification = catalogue.specification("tda-dhc")
    small = Specification(**dict(specification) | {"budget": Budget.zcdp(rho_squared="1/1000")})
    delta = Fraction(1, 10**6)
    meaning = Meaning.of(small, delta)
    for odds in meaning.odds:
        wanted = census_epsilon(Fraction(odds.units**2, 1000), delta)
        assert odds.epsilon.rational == wanted
        assert odds.factor is not None
        assert 0 <= float(odds.factor) - math.exp(wanted) < 1e-9
    assert "except with probability 1e-6" in meaning.short
    assert any("without its δ" in warning for warning in meaning.conversion_warnings)


def test_huge_and_infinite_budgets_promise_nothing() -> None:
    specification = catalogue.specification("psa-2020-county")
    huge = Meaning.of(Specification(**dict(specification) | {"budget": Budget.epsilon(5_000)}))
    assert {b["after"] for odds in huge.odds for b in odds.words()["beliefs"]} == {"100 of 100 (no limit)"}
    numbers = huge.odds[0].record()
    assert numbers["factor"] is None and 2171 < numbers["log10_factor"] < 2172
    assert "hardly limits" in huge.short
    endless = Meaning.of(Specification(**dict(specification) | {"budget": Budget.epsilon("inf")}))
    assert endless.odds == () and "budget is infinite" in endless.short


def test_other_measures_are_not_read_as_odds() -> None:
    blocks = dict(catalogue.specification("psa-2020-county"))
    blocks |= {"output_premetric": TotalVariation(), "budget": Budget.loss("1/10")}
    record = record_of(Specification(**blocks))
    facts = json.loads(report_json(record))
    assert facts["meaning"]["odds"] == [] and facts["meaning"]["picture"] is None
    assert "In odds" not in report_html(record)


@pytest.mark.parametrize(
    ("percent", "words"),
    [("0", "0 of 100"), ("25", "25 of 100"), ("25.01", "25.1 of 100"), ("99.95", "100 of 100 (no limit)")],
)
def test_beliefs_are_rounded_up(percent: str, words: str) -> None:
    assert belief_text(Fraction(percent) / 100) == words


def test_what_may_be_said_follows_from_the_budget() -> None:
    topdown, swapping = (json.loads(report_json(r))["statements"] for r in RECORDS.values())
    assert any("same for all possible data sets" in s for s in topdown["may"])
    assert any("follows by the policy from the exact statistics" in s for s in swapping["may"])
    assert any("grows faster" in s for s in topdown["may_not"])
    assert any("swap rate alone" in s for s in swapping["may_not"])
    assert any("anonymous" in s for s in topdown["may_not"])
    facts = json.loads(report_json(SWAPPING))["sections"]["swap_rate"]["facts"]
    assert facts["swap_rate"] == {"value": 0.05, "exact": "1/20"} and facts["largest_stratum"] == 264_331
    assert facts["loss_by_theorem_1"]["value"] == pytest.approx(math.log(264_332 * 19))
    assert facts["least_loss_of_any_rate"]["value"] == pytest.approx(math.log(264_332) / 2)
    page = Page(report_html(SWAPPING)).text()
    for loss in (math.log(264_332 * 19), math.log(264_332) / 2):
        assert f"{math.ceil(loss * 1e4) / 1e4}" in page


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_a_contrast_of_at_least_four_and_a_half_to_one(scheme: str) -> None:
    css = report_html(TOPDOWN).split("<style>")[1].split("</style>")[0]
    light, dark = css.split("@media (prefers-color-scheme: dark)")[:2]
    colours = dict(
        re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light if scheme == "light" else dark.split("\n }\n")[0])
    )
    pairs = [
        (text, paper)
        for text in ("ink", "soft", "accent", "good", "bad", "warn")
        for paper in ("paper", "tint")
    ]
    pairs += [("fig-ink", "paper"), ("fig-soft", "paper"), ("fig-soft", "fig-tint"), ("warn", "warn-paper")]
    pairs += [("ink", "warn-paper"), ("on-red", "red"), ("on-amber", "amber")]
    low = {pair: contrast(colours[pair[0]], colours[pair[1]]) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}
    shapes = {name: contrast(colours[name], colours["paper"]) for name in ("fig-bar", "fig-mark")}
    assert {name: ratio for name, ratio in shapes.items() if ratio < 3} == {}


def opened(file: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [str(CHROMIUM), *FLAGS, profile, *options, file.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_page_opens_in_a_browser_without_errors_or_requests(tmp_path: Path) -> None:
    """The page forbids every request; one that is made is an error on the console, as the control shows."""
    file, picture = tmp_path / "report.html", tmp_path / "report.png"
    file.write_text(report_html(TOPDOWN, INTERNAL), encoding="utf-8")
    done = opened(file, tmp_path, "--window-size=1200,3000", f"--screenshot={picture}")
    assert ":CONSOLE" not in done.stderr
    assert picture.stat().st_size > 100_000
    control = tmp_path / "control.html"
    leak = '<img src="https://example.invalid/x.png" alt="">'
    control.write_text(
        file.read_text(encoding="utf-8").replace("</main>", f"{leak}</main>"), encoding="utf-8"
    )
    assert ":CONSOLE" in opened(control, tmp_path, f"--screenshot={picture}").stderr


PROBE = """<!doctype html><meta charset="utf-8"><body><script>
const out = [];
for (const [name, width] of [["topdown", 380], ["topdown", 1200], ["swapping", 380], ["swapping", 1200]]) {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px"; frame.style.height = "900px"; frame.style.border = "0";
  frame.src = name + ".html";
  frame.onload = () => {
    const page = frame.contentDocument, root = page.scrollingElement;
    const hidden = [...page.querySelectorAll("svg")].filter(s => s.getBoundingClientRect().width < 100);
    const small = [...page.querySelectorAll("svg text")].filter(t => t.getBoundingClientRect().height < 8);
    out.push([name, width, root.scrollWidth - width, hidden.length, small.length,
      page.querySelectorAll("svg").length]);
    document.title = JSON.stringify(out);
  };
  document.body.append(frame);
}
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_the_page_fits_a_telephone_and_a_desk_with_all_figures_visible(tmp_path: Path) -> None:
    for name, record in RECORDS.items():
        text = report_html(record, INTERNAL)
        (tmp_path / f"{name}.html").write_text(text, encoding="utf-8")
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE, encoding="utf-8")
    options = (
        "--allow-file-access-from-files",
        "--window-size=1300,4000",
        "--virtual-time-budget=5000",
        "--dump-dom",
    )
    done = opened(probe, tmp_path, *options)
    title = re.search(r"<title>(.*?)</title>", done.stdout)
    assert title is not None
    found = json.loads(html.unescape(title[1]))
    assert sorted((name, width) for name, width, *_ in found) == [
        ("swapping", 380),
        ("swapping", 1200),
        ("topdown", 380),
        ("topdown", 1200),
    ]
    for name, width, over, hidden, small, figures in found:
        assert over <= 0, f"{name} is {over} pixels wider than {width}"
        assert figures > 3 and hidden == 0 and small == 0, (name, width, hidden, small)
