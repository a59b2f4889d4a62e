"""The page about two guarantees: self-contained, accessible, and rendered in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from stirred.show import specification_page, swap_rate_figure
from stirred.spec import catalogue

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
)


@pytest.fixture(scope="module")
def page() -> str:
    names = ("psa-2020-county", "tda-dhc")
    first, second = (catalogue.specification(name) for name in names)
    return specification_page(first, second, names, entries=3)


def test_page_loads_nothing_from_anywhere(page: str) -> None:
    addresses = re.findall(r"""(?:src|href)=["']([^"'#][^"']*)""", page)
    assert addresses == []
    assert not re.search(r"@import|url\(", page)


def test_page_says_what_is_exact_and_that_budgets_are_not_ranked(page: str) -> None:
    assert "the number of households in each combination of state and county" in page
    assert "not ranked" in page


def test_page_has_headings_alternative_texts_and_table_scopes(page: str) -> None:
    assert page.count("<h1") == 1
    assert 'lang="en"' in page
    assert "<title id=" in page
    assert "<desc id=" in page
    assert page.count("<th>") == 0


def test_figure_has_a_diamond_at_the_least_loss_of_every_stratum() -> None:
    figure = swap_rate_figure((2, 10, 100))
    assert figure.count("<path") == 3
    assert figure.count("<polyline") == 3
    assert "b = 100" in figure


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_page_renders_in_a_browser_without_console_errors(page: str, tmp_path: Path) -> None:
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(page, encoding="utf-8")
    command = [
        str(CHROMIUM),
        *FLAGS,
        f"--user-data-dir={tmp_path / 'profile'}",
        "--enable-logging=stderr",
        "--window-size=1100,1600",
        f"--screenshot={picture}",
        file.as_uri(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert picture.stat().st_size > 50_000
    assert ":CONSOLE" not in done.stderr
