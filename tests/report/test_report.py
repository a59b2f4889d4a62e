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

from stirred.report import (
    BudgetShare,
    Column,
    ExactStatistic,
    Governance,
    InternalRecord,
    LevelOfGeography,
    Override,
    Passage,
    PublishedFile,
    PublishedTable,
    ReleaseRecord,
    ReleaseRow,
    ReleaseTable,
    report_html,
    report_json,
    report_markdown,
)
from stirred.report.meaning import Meaning, belief_text
from stirred.spec import Budget, Specification, catalogue
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
SECTIONS = [
    *(
        "short",
        "released",
        "guarantee",
        "exact",
        "meaning",
        "split",
        "uncertainty",
        "tables",
        "audit",
        "statements",
    ),
    *("governance", "law", "precedents", "release-table", "checklist", "provenance"),
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
        "Persons by age", "tract", ("age",), frame if intervals else frame.drop("low_95", "high_95")
    )


def record_of(specification: Specification, **changes: Any) -> ReleaseRecord:
    record = ReleaseRecord(
        name="county-2026",
        title="Population of the county",
        description="Counts by age.",
        agency="Office of Statistics",
        dataset="the census file",
        stage="edited file",
        made_on="2026-11-16",
        version="9.8.7",
        mechanism="TopDown",
        settings={"estimator": "multipass"},
        specification=specification,
        exact=(
            ExactStatistic("the number of persons in each state", "Article I", 1),
            ExactStatistic("the number of housing units in each block", "", 9_620),
        ),
        constraints=("no record has a minor in a nursing home",),
        files=(
            PublishedFile(
                "tables/age.csv",
                "table",
                "Persons by age",
                28,
                (Column("count", "Int64", "protected count"),),
                "discrete Gaussian noise of standard deviation 3.5",
                1_234,
            ),
        ),
        tables=(table(intervals=True),),
        table=ReleaseTable.of(
            [ReleaseRow("tables", "Tables", "TopDown", "stirred 9.8.7", specification)], delta="1e-10"
        ),
        governance=Governance(regime="UK", legal_basis="Section 39 of the Act."),
        passage=Passage(optional=(3,)),
        budget=(
            BudgetShare(("persons", "state", "total"), Fraction(2), 1.5),
            BudgetShare(("persons", "block_group", "age"), Fraction(1, 3), 4.25),
            BudgetShare(("housing units", "block_group", "total"), Fraction(1)),
        ),
        geography=(LevelOfGeography("state", 1), LevelOfGeography("block_group", 40, 2)),
        spent="ρ² = 15.29",
        remaining="ρ² = 4.71",
        ledger_head="ab" * 32,
        plan_digest="cd" * 32,
        warnings=("delta is large",),
    )
    return replace(record, **changes)


TOPDOWN = record_of(catalogue.specification("tda-dhc"))
SWAPPING = record_of(
    catalogue.specification("psa-2020-county"),
    mechanism="Permutation swapping",
    budget=(),
    geography=(),
    tables=(table(intervals=False),),
    swap_rate=Fraction(1, 20),
    largest_stratum=264_331,
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
    assert found[: len(SECTIONS)] == SECTIONS
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


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from leaves(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, str):
        yield value


def plain(markdown: str) -> str:
    return " ".join(html.unescape(re.sub(r"\\([|\[\]`*])", r"\1", markdown)).split())


@pytest.mark.parametrize("name", RECORDS)
def test_markdown_and_html_carry_every_fact_of_the_json(name: str) -> None:
    facts = json.loads(report_json(RECORDS[name]))
    picture, symbols = (
        facts["meaning"].pop("picture"),
        [b.pop("symbol") for b in facts["guarantee"]["blocks"]],
    )
    assert picture["before"] == 0.1 and len(symbols) == 5
    kept = {"schema_version", "type"}
    wanted = [text for key, value in facts.items() if key not in kept for text in leaves(value) if text]
    assert len(wanted) > 200
    text, page = plain(report_markdown(RECORDS[name])), Page(report_html(RECORDS[name])).text()
    assert [fact for fact in wanted if " ".join(fact.split()) not in text] == []
    lowered = page.lower()
    assert [fact for fact in wanted if " ".join(fact.split()).lower() not in lowered] == []


def test_facts_come_from_the_record() -> None:
    facts = json.loads(report_json(TOPDOWN))
    assert facts["exact"]["figures_in_all"] == "9,621"
    assert [share["share"] for share in facts["budget"]] == ["60%", "10%", "30%"]
    assert facts["budget"][1]["amount"] == "1/3" and facts["budget"][1]["shown"] == "0.3334"
    assert facts["budget"][1]["noise_within"] == "8.33"
    assert facts["files"][0]["size"] == "1.2 kB" and facts["files"][0]["rows"] == "28"
    assert facts["uncertainty"][0]["typical_half_width"] == "4"
    shown = facts["tables"][0]
    assert (shown["areas_shown"], shown["areas_in_all"], len(shown["rows"])) == ("9", "14", 18)
    assert shown["rows"][0]["area"] == "tract 06", "the largest nine of fourteen, in their order"
    assert facts["provenance"]["Head of the ledger"] == "ab" * 32
    assert [law["code"] for law in facts["governance"]["law"] if law["applies"]] == ["UK"]
    assert all("unreviewed" in p["standing"] for p in facts["precedents"])


def test_amounts_of_the_ledger_are_short_on_top_and_exact_under_provenance() -> None:
    record = replace(TOPDOWN, remaining="ρ² = 645755/175081 (about 3.6883)", spent="ε = ln(3) (about 1.0987)")
    facts = json.loads(report_json(record))
    assert facts["remaining"] == "ρ² of about 3.6883"
    assert any("records ε of about 1.0987 as spent" in sentence for sentence in facts["summary"])
    assert facts["provenance"]["Remaining"] == record.remaining
    assert json.loads(report_json(TOPDOWN))["remaining"] == "ρ² = 4.71"


def test_files_of_the_same_columns_share_a_dictionary_and_unknown_sizes_have_no_column() -> None:
    first = TOPDOWN.files[0]
    record = replace(
        TOPDOWN, files=(replace(first, size=None), replace(first, path="age.parquet", size=None))
    )
    assert [entry["files"] for entry in json.loads(report_json(record))["dictionary"]] == [
        ["tables/age.csv", "age.parquet"]
    ]
    assert ">Size<" in report_html(TOPDOWN)
    assert ">Size<" not in report_html(record)


def test_the_report_is_the_same_every_time() -> None:
    assert report_html(TOPDOWN, INTERNAL) == report_html(TOPDOWN, INTERNAL)
    assert report_json(SWAPPING) == report_json(SWAPPING)


def test_hostile_texts_stay_texts() -> None:
    record = replace(
        TOPDOWN,
        title=HOSTILE,
        agency=HOSTILE,
        description=HOSTILE,
        reason=HOSTILE,
        publishable=False,
        warnings=(HOSTILE,),
        files=(PublishedFile(HOSTILE, HOSTILE, HOSTILE, 1, (Column(HOSTILE, HOSTILE, HOSTILE),), HOSTILE),),
        tables=(replace(TOPDOWN.tables[0], title=HOSTILE),),
        budget=(BudgetShare((HOSTILE, HOSTILE, HOSTILE), Fraction(1)),),
        geography=(LevelOfGeography(HOSTILE, 3),),
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
    assert "population" in internal and ">1-9<" not in internal


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
    record = replace(
        TOPDOWN,
        exact=(),
        files=(),
        tables=(),
        budget=(),
        geography=(),
        spent="",
        remaining="",
        constraints=(),
    )
    parsed = Page(report_html(record, InternalRecord()))
    assert "No statistic is published exactly." in parsed.text()
    assert "No comparison was made." in parsed.text()
    assert "The budget is one number" in report_markdown(record)


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
    facts = json.loads(report_json(SWAPPING))["swap"]
    assert float(facts["loss_by_theorem_1"]) == math.ceil(math.log(264_332 * 19) * 1e4) / 1e4
    assert float(facts["least_loss_of_any_rate"]) == math.ceil(math.log(264_332) / 2 * 1e4) / 1e4


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
