"""The figures of a report: areas and places are right, words stand beside them, nothing runs or is cut."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from fractions import Fraction

import pytest

from stirred.errors import InputError
from stirred.show import (
    Bar,
    against_truth_figure,
    bar_panel,
    budget_split_figure,
    error_by_level_figure,
    geography_tree_figure,
    odds_figure,
    percent,
)
from stirred.show.against_truth import CELLS, SIDE
from stirred.show.geography_tree import MOST
from stirred.show.report_page import symbols

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('a & b')</script>"

FIGURES: dict[str, Callable[[str], str]] = {
    "budget": lambda t: budget_split_figure([(t, t, Fraction(1))], title=t),
    "geography": lambda t: geography_tree_figure([(t, 1, 0), ("block", 3, 1)]),
    "panel": lambda t: bar_panel(t, [Bar(t, 3, 1, 5)]),
    "errors": lambda t: error_by_level_figure([(t, t, 1.5)], title=t),
    "truth": lambda t: against_truth_figure(t, [0, 3], [1, 3]),
    "odds": lambda t: odds_figure(Fraction(1, 10), Fraction(1, 2), words_after=t),
}


def drawn(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def number(element: ET.Element, name: str) -> float:
    return float(element.attrib[name])


def words(svg: str) -> list[str]:
    return ["".join(t.itertext()) for t in drawn(svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_says_in_words_what_it_shows_and_escapes_its_texts(name: str) -> None:
    root = drawn(FIGURES[name](HOSTILE))
    assert root.attrib["role"] == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None and description is not None
    assert title.text and description.text
    assert root.attrib["aria-labelledby"].split() == [title.attrib["id"], description.attrib["id"]]
    assert root.find(f".//{SVG}script") is None


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_leaves_its_figure(name: str) -> None:
    """At 0.6 of the font size a character, wider than the system fonts are on the average."""
    root = drawn(FIGURES[name]("block group of many words"))
    width = float(root.attrib["viewBox"].split()[2])
    for text in root.iter(f"{SVG}text"):
        if "transform" in text.attrib:
            continue
        shown = text.text or ""
        room = 0.6 * number(text, "font-size") * len(shown)
        left = number(text, "x") - {"start": 0.0, "middle": room / 2, "end": room}[text.attrib["text-anchor"]]
        assert left >= -3 and left + room <= width + 8, shown


def test_squares_of_the_budget_have_areas_in_proportion() -> None:
    shares = [
        ("state", "total", Fraction(4, 9)),
        ("block", "total", Fraction(1, 9)),
        ("block", "age", Fraction(4, 9)),
    ]
    root = drawn(budget_split_figure(shares))
    squares = [r for r in root.iter(f"{SVG}rect") if r.attrib["width"] == r.attrib["height"]]
    sides = [number(square, "width") for square in squares]
    assert len(sides) == 3
    assert sides[0] == sides[2] == pytest.approx(2 * sides[1])
    assert {"44%", "56%", "11%"} <= set(words(budget_split_figure(shares)))


def test_a_budget_of_nothing_is_refused_and_small_shares_do_not_vanish() -> None:
    with pytest.raises(InputError, match="no budget to draw"):
        budget_split_figure([("state", "total", Fraction(0))])
    shares = [("state", "total", Fraction(1)), ("block", "total", Fraction(1, 10**9))]
    svg = budget_split_figure(shares)
    assert min(number(r, "width") for r in drawn(svg).iter(f"{SVG}rect")) >= 1
    assert "<0.1%" in words(svg)
    assert percent(Fraction(1, 10**9)) == "<0.1%"


def test_the_tree_has_a_dot_an_area_until_there_are_too_many() -> None:
    root = drawn(geography_tree_figure([("state", 1, 0), ("county", 5, 2), ("block", 4_000, 0)]))
    heights: dict[str, int] = {}
    for dot in root.iter(f"{SVG}circle"):
        heights[dot.attrib["cy"]] = heights.get(dot.attrib["cy"], 0) + 1
    assert list(heights.values()) == [1, 5, MOST]
    shown = words(geography_tree_figure([("state", 1, 0), ("county", 5, 2), ("block", 4_000, 0)]))
    assert {"4,000 areas, 40 drawn", "800 for each county", "2 only children"} <= set(shown)


def test_bars_and_intervals_are_to_scale() -> None:
    svg = bar_panel("Tract", [Bar("a", 50, 40, 60), Bar("b", 100), Bar("c", 0, 0, 2)], highest=200)
    root = drawn(svg)
    a, b, c = (number(r, "width") for r in root.iter(f"{SVG}rect"))
    assert a == pytest.approx(b / 2, abs=0.1) and c == 0
    lines = [p.attrib["d"] for p in root.iter(f"{SVG}path") if "H" in p.attrib["d"]]
    assert len(lines) == 2
    low, high = map(float, re.match(r"M([\d.]+) [\d.]+H([\d.]+)", lines[0]).groups())  # type: ignore[union-attr]
    left = number(next(root.iter(f"{SVG}rect")), "x")
    assert (low - left) / (high - left) == pytest.approx(40 / 60, abs=0.01)
    assert (high - left) / b == pytest.approx(60 / 100, abs=0.01)
    assert "95% interval 40 to 60" in svg and "b 100;" in svg


@pytest.mark.parametrize("bars", [[], [Bar("a", math.nan)], [Bar("a", 1, 0, math.inf)]])
def test_a_panel_without_numbers_is_refused(bars: list[Bar]) -> None:
    with pytest.raises(InputError, match="a panel needs figures"):
        bar_panel("Tract", bars)


def test_long_labels_are_cut_for_the_eye_and_whole_in_the_tooltip() -> None:
    label = "Native Hawaiian and other Pacific Islander, not Hispanic"
    svg = bar_panel("Tract", [Bar(label, 1)])
    (text,) = [t for t in drawn(svg).iter(f"{SVG}text") if (t.text or "").endswith("…")]
    tooltip = text.find(f"{SVG}title")
    assert tooltip is not None and tooltip.text == label


def test_larger_errors_are_shaded_darker_and_written_out() -> None:
    svg = error_by_level_figure([("state", "total", 0.0), ("state", "race", 3.254), ("block", "race", 40.0)])
    shades = [float(r.attrib["fill-opacity"]) for r in drawn(svg).iter(f"{SVG}rect")]
    assert len(shades) == 3
    assert max(shades) < 0.5, "the ink on top has to stay readable"
    assert sorted(shades)[0] < sorted(shades)[1] < sorted(shades)[2]
    assert {"0", "3.25", "40"} <= set(words(svg))
    with pytest.raises(InputError, match="no errors to draw"):
        error_by_level_figure([("state", "total", -1.0)])


def test_unchanged_counts_lie_on_the_line_and_equal_ones_are_one_dot() -> None:
    root = drawn(against_truth_figure("Blocks", [0, 0, 0, 7, 50, 1000], [0, 0, 0, 7, 90, 1000]))
    dots = list(root.iter(f"{SVG}circle"))
    assert len(dots) == 4
    assert number(dots[0], "r") > number(dots[1], "r")
    places = [(number(d, "cx") - 56, 12 + SIDE - number(d, "cy")) for d in dots]
    scale = [SIDE * math.log(1 + count) / math.log(1_001) for count in (0, 7, 50, 1000)]
    assert [x for x, _ in places] == pytest.approx(scale, abs=SIDE / CELLS / 2 + 0.1)
    off = [abs(x - y) > SIDE / CELLS / 2 for x, y in places]
    assert off == [False, False, True, False]
    description = root.find(f"{SVG}desc")
    assert description is not None and "6 counts, of which 5 did not change" in (description.text or "")


def test_pairs_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="argument 2"):
        against_truth_figure("Blocks", [1, 2], [1])
    with pytest.raises(InputError, match="no counts to draw"):
        against_truth_figure("Blocks", [], [])


@pytest.mark.parametrize(("after", "dots"), [("1/10", 20), ("333/1000", 44), ("1", 110)])
def test_dots_are_filled_up_to_the_next_whole_one(after: str, dots: int) -> None:
    root = drawn(odds_figure(Fraction(1, 10), Fraction(after), words_after="?"))
    circles = list(root.iter(f"{SVG}circle"))
    assert len(circles) == 200
    assert sum("fill:none" not in c.attrib["style"] for c in circles) == dots


def test_a_belief_that_falls_is_refused() -> None:
    with pytest.raises(InputError, match="falls"):
        odds_figure(Fraction(1, 2), Fraction(1, 10), words_after="?")


def test_symbols_have_indices_and_hostile_text_stays_text() -> None:
    assert str(symbols("𝒟_c_Swap, D_Mult")) == "𝒟<sub>c Swap</sub>, D<sub>Mult</sub>"
    assert "<script>" not in symbols(f"{HOSTILE} d_HamS^hh")
