"""Figure 1: boxes at the right places, readable without eyes, and valid XML."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from xml.etree import ElementTree

import numpy as np
import pytest

from stirred.errors import InputError
from stirred.show import mape_figure
from stirred.show.plane import BOTTOM, HEIGHT, TOP, WIDTH
from stirred.show.swap_utility import LEFT, RIGHT

SVG = "{http://www.w3.org/2000/svg}"
RUNS = {Fraction(i, 100): [0.003 * i, 0.0031 * i, 0.0029 * i, 0.0032 * i, 0.003 * i] for i in range(1, 51)}


def tree(results: dict[object, list[float]]) -> ElementTree.Element:
    return ElementTree.fromstring(mape_figure(results))


def test_one_box_a_rate_inside_the_frame() -> None:
    root = tree(dict(RUNS))
    boxes = root.findall(f"{SVG}rect")[1:]
    assert len(boxes) == 50
    left = [float(box.attrib["x"]) for box in boxes]
    assert left == sorted(left)
    for box in boxes:
        x, y, w, h = (float(box.attrib[name]) for name in ("x", "y", "width", "height"))
        assert x >= LEFT and x + w <= WIDTH - RIGHT
        assert y >= TOP and y + h <= HEIGHT - BOTTOM
    assert all(b - a > float(boxes[0].attrib["width"]) for a, b in itertools.pairwise(left))


def test_boxes_stand_at_the_quartiles() -> None:
    errors = [0.02, 0.05, 0.04, 0.03, 0.07]
    root = tree({0.5: errors, 0.25: [0.1]})
    box = root.findall(f"{SVG}rect")[2]
    height = HEIGHT - TOP - BOTTOM
    lower, upper = np.quantile(errors, [0.25, 0.75])
    assert float(box.attrib["y"]) == pytest.approx(TOP + (1 - upper / 0.1) * height, abs=0.06)
    assert float(box.attrib["height"]) == pytest.approx((upper - lower) / 0.1 * height, abs=0.06)
    bars = [line for line in root.findall(f"{SVG}line") if line.attrib.get("stroke-width") == "2"]
    assert float(bars[1].attrib["y1"]) == pytest.approx(TOP + (1 - 0.04 / 0.1) * height, abs=0.06)


def test_runs_beyond_the_whiskers_are_circles() -> None:
    assert len(tree({0.1: [0.01, 0.011, 0.012, 0.011, 0.05]}).findall(f"{SVG}circle")) == 1
    assert len(tree({0.1: [0.01, 0.011, 0.012, 0.011, 0.01]}).findall(f"{SVG}circle")) == 0


def test_title_and_description_say_what_the_figure_shows() -> None:
    figure = mape_figure(dict(RUNS))
    root = ElementTree.fromstring(figure)
    assert root.attrib["role"] == "img"
    described = root.attrib["aria-labelledby"].split()
    assert [root.findall(f"{SVG}{tag}")[0].attrib["id"] for tag in ("title", "desc")] == described
    text = root.findall(f"{SVG}desc")[0].text
    assert text is not None and "50 swap rates" in text and "0.30%" in text and "15.00%" in text
    assert not re.search(r"""(?:src|href)=|url\(|<script""", figure)
    labels = [t.text for t in root.findall(f"{SVG}text")]
    assert {"swap rate p", "mean absolute percentage error", "0%", "10%", "50%"} <= set(labels)


def test_rates_may_come_in_any_order() -> None:
    backwards = dict(reversed(RUNS.items()))
    assert mape_figure(backwards) == mape_figure(dict(RUNS))


@pytest.mark.parametrize("results", [{0.5: [0.0]}, {0: [0.0, 0.0]}, {1: [3.0, 1e-9]}], ids=str)
def test_extreme_results_are_drawn(results: dict[object, list[float]]) -> None:
    figure = mape_figure(results)
    assert "nan" not in figure and "inf" not in figure
    assert len(ElementTree.fromstring(figure).findall(f"{SVG}rect")) == 2


@pytest.mark.parametrize(
    "results",
    [{}, {0.5: []}, {0.5: [float("nan")]}, {0.5: [-0.1]}, {5: [0.1]}, {0.1: [float("inf")]}],
    ids=str,
)
def test_results_that_cannot_be_drawn_are_refused(results: dict[object, list[float]]) -> None:
    with pytest.raises(InputError):
        mape_figure(results)
