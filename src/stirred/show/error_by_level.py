"""Error by level: a row a query, a column a level, darker where protected counts are further from the truth.

The figure is made from confidential truth: it belongs into an internal report and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stirred.errors import InputError
from stirred.show.drawing import INK, LINE, MARK, figure, length, listed, path, rectangle, text, words
from stirred.show.format import number

ROW, HEAD = 30, 44


def error_by_level_figure(
    errors: Sequence[tuple[str, str, float]],
    *,
    name: str = "error-by-level",
    title: str = "Mean absolute error by level and query",
) -> str:
    """An SVG of a table whose cells are shaded by their error, on a logarithmic scale.

    Parameters
    ----------
    errors
        Level, query and mean absolute error, each pair once.
    """
    found = {(level, query): float(error) for level, query, error in errors}
    if not found or not all(math.isfinite(v) and v >= 0 for v in found.values()):
        raise InputError(
            "there are no errors to draw",
            field="errors",
            expected="at least one finite error of at least zero",
            hint="Compare the tables with the truth first.",
        )
    levels = list(dict.fromkeys(level for level, _, _ in errors))
    queries = list(dict.fromkeys(query for _, query, _ in errors))
    label = max(60.0, *(length(words(query)) for query in queries)) + 8
    column = max(62.0, *(length(words(level)) + 12 for level in levels))
    most = math.log1p(max(found.values())) or 1.0
    parts = []
    for i, level in enumerate(levels):
        parts.append(text(label + column * (i + 0.5), 24, words(level), anchor="middle", bold=True))
    for j, query in enumerate(queries):
        y = HEAD + ROW * j
        parts.append(text(0, y + 20, words(query)))
        for i, level in enumerate(levels):
            value = found.get((level, query))
            if value is None:
                continue
            x = label + column * i
            parts.append(
                rectangle(x + 1.5, y + 1.5, column - 3, ROW - 3, MARK, 0.04 + 0.4 * math.log1p(value) / most)
            )
            parts.append(text(x + column / 2, y + 20, number(_short(value)), anchor="middle", colour=INK))
    width = label + column * len(levels)
    parts.append(path(f"M0 {HEAD - 6:.1f}H{width:.1f}", LINE))
    worst = sorted(found.items(), key=lambda item: -item[1])
    told = listed(f"{words(query)} at {words(level)} {number(_short(v))}" for (level, query), v in worst)
    height = HEAD + ROW * len(queries) + 4
    return figure(name, width, height, title, f"Mean absolute errors, largest first: {told}.", parts)


def _short(value: float) -> float:
    return round(value, 2 if value < 10 else 1)
