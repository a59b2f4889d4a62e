"""How a budget is split: a square for every query at every level, as large as its share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

from stirred.errors import InputError
from stirred.show.drawing import (
    BAR,
    INK,
    LINE,
    MARK,
    SOFT,
    figure,
    length,
    listed,
    path,
    rectangle,
    text,
    words,
)
from stirred.show.format import percent

ROW, HEAD, MARGIN = 34, 74, 8
BARS = 120


def budget_split_figure(
    shares: Sequence[tuple[str, str, Fraction]], *, name: str = "budget-split", title: str = "Budget split"
) -> str:
    """An SVG with a row a query, a column a level, and squares whose areas are the amounts.

    Bars on the right add up the rows; per cents under the names of levels add up the columns.

    Parameters
    ----------
    shares
        Level, query and amount, each pair once; amounts are compared with their sum.

    Examples
    --------
    >>> budget_split_figure([("state", "total", Fraction(1)), ("block", "total", Fraction(3))]).count("<rect")
    3
    """
    total = sum((amount for *_, amount in shares), Fraction(0))
    if total <= 0 or any(amount < 0 for *_, amount in shares):
        raise InputError(
            "there is no budget to draw",
            field="shares",
            expected="amounts of at least zero, not all zero",
            hint="Leave the figure out where nothing is split.",
        )
    levels = list(dict.fromkeys(level for level, _, _ in shares))
    queries = list(dict.fromkeys(query for _, query, _ in shares))
    amounts = dict.fromkeys(itertools.product(levels, queries), Fraction(0))
    for level, query, amount in shares:
        amounts[level, query] += amount
    of_levels = [sum((amounts[level, query] for query in queries), Fraction(0)) for level in levels]
    of_queries = [sum((amounts[level, query] for level in levels), Fraction(0)) for query in queries]
    label = max(60.0, *(length(words(query)) for query in queries)) + MARGIN
    column = max(82.0, *(length(words(level)) + 12 for level in levels))
    largest = max(amounts.values())
    side = ROW - 6
    parts = [path(f"M0 {HEAD - 6:.1f}H{label + column * len(levels) + BARS:.1f}", INK)]
    for i, (level, of_level) in enumerate(zip(levels, of_levels, strict=True)):
        x = label + column * (i + 0.5)
        parts.append(text(x, 24, words(level), anchor="middle", bold=True))
        parts.append(text(x, 44, percent(of_level / total), anchor="middle", colour=SOFT))
    right = label + column * len(levels) + 14
    parts.append(text(right, 24, "all levels", bold=True))
    for j, (query, of_query) in enumerate(zip(queries, of_queries, strict=True)):
        middle = HEAD + ROW * (j + 0.5)
        parts.append(text(0, middle + 4, words(query)))
        parts.append(path(f"M0 {HEAD + ROW * (j + 1):.1f}H{right + BARS - 14:.1f}", LINE))
        for i, level in enumerate(levels):
            if amount := amounts[level, query]:
                edge = max(side * math.sqrt(amount / largest), 1.5)
                x = label + column * (i + 0.5) - 20
                parts.append(rectangle(x - edge / 2, middle - edge / 2, edge, edge, BAR))
                parts.append(text(x + 18, middle + 4, percent(amount / total), size=11, colour=SOFT))
        width = 52 * float(of_query / max(of_queries))
        parts.append(rectangle(right, middle - 6, max(width, 1), 12, MARK))
        parts.append(text(right + width + 6, middle + 4, percent(of_query / total), size=12, colour=SOFT))
    by_level, by_query = (
        listed(f"{words(name)} {percent(amount / total)}" for name, amount in zip(names, sums, strict=True))
        for names, sums in ((levels, of_levels), (queries, of_queries))
    )
    told = f"Each square is as large as the share of one query at one level. By level: {by_level}."
    height = HEAD + ROW * len(queries) + 4
    return figure(name, right + BARS - 14, height, title, f"{told} By query: {by_query}.", parts)
