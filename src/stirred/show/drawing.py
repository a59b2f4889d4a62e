"""What the figures of a report share: an SVG with a title and a description, and colours for both schemes.

Colours are CSS variables with a fallback: a page may set them for a dark scheme, and a figure on its own is
drawn in the fallback. Text is escaped here and nowhere else.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

INK = "var(--fig-ink, #1c2430)"
SOFT = "var(--fig-soft, #525d6b)"
LINE = "var(--fig-line, #cfd6dd)"
BAR = "var(--fig-bar, #2a7595)"
TINT = "var(--fig-tint, #eef2f5)"
MARK = "var(--fig-mark, #a8440a)"
READABLE = 0.8
"""How far a figure may shrink before a narrow page scrolls it sideways instead."""
CHARACTER = 0.6
"""Width of a character of the system font, in units of its size, with some room."""


def figure(name: str, width: float, height: float, title: str, description: str, parts: Iterable[str]) -> str:
    """An SVG that says in words what it shows; ``name`` makes its ids unique on a page."""
    key = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "figure"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-labelledby="{key}-title {key}-desc" font-family="system-ui, sans-serif" font-size="13" '
        f'style="width:100%;min-width:{READABLE * width:.0f}px;max-width:{width:.0f}px;height:auto">'
        f'<title id="{key}-title">{html.escape(title)}</title>'
        f'<desc id="{key}-desc">{html.escape(description)}</desc>{"".join(parts)}</svg>'
    )


def text(
    x: float,
    y: float,
    words: str,
    *,
    anchor: str = "start",
    size: float = 13,
    colour: str = INK,
    bold: bool = False,
    most: int | None = None,
) -> str:
    """A line of text; where it has more than ``most`` characters it is cut, and whole in a tooltip."""
    cut = most is not None and len(words) > most
    drawn = f"{words[: (most or 1) - 1]}…" if cut else words
    weight = ";font-weight:600" if bold else ""
    inside = html.escape(drawn) + (f"<title>{html.escape(words)}</title>" if cut else "")
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size:g}" '
        f'style="fill:{colour}{weight}">{inside}</text>'
    )


def rectangle(x: float, y: float, width: float, height: float, colour: str, opacity: float = 1) -> str:
    """A filled rectangle."""
    shade = "" if opacity == 1 else f' fill-opacity="{opacity:.3f}"'
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{max(height, 0):.1f}" rx="1.5"'
        f'{shade} style="fill:{colour}"/>'
    )


def path(d: str, colour: str, width: float = 1, dash: str = "") -> str:
    """A line that is not filled."""
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path d="{d}" fill="none"{dashes} style="stroke:{colour};stroke-width:{width:g}"/>'


def length(words: str, size: float = 13) -> float:
    """Room that a line of text needs at most, nearly always."""
    return CHARACTER * size * len(words)


def words(name: str) -> str:
    """A name as people read it."""
    return name.replace("_", " ")


def listed(items: Iterable[str], most: int = 12) -> str:
    """Items for a description, the first ones."""
    every = list(items)
    rest = f"; and {len(every) - most} more" if len(every) > most else ""
    return "; ".join(every[:most]) + rest
