"""What a report says of TopDown: where its budget went, and the geography."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from stirred.report import Figure, Grid, Section
from stirred.show import Share, budget_split_figure, geography_tree_figure, heading

WITHIN_95 = 1.96


@dataclass(frozen=True)
class BudgetShare:
    """A part of the budget: path from coarse to fine, amount, and noise of a count measured with it."""

    path: tuple[str, ...]
    amount: Fraction
    standard_deviation: float | None = None


@dataclass(frozen=True)
class LevelOfGeography:
    """One level of the spine."""

    name: str
    nodes: int
    only_children: int = 0


def budget_section(shares: Sequence[BudgetShare]) -> Section:
    """Where the budget went: squares by level and query, and the shares with their noise as a table."""
    total = sum((share.amount for share in shares), Fraction(0))
    rows = tuple(
        (
            ", ".join(step.replace("_", " ") for step in share.path),
            Share(share.amount / total if total else 0),
            share.amount,
            share.standard_deviation,
            None if share.standard_deviation is None else WITHIN_95 * share.standard_deviation,
        )
        for share in shares
    )
    columns = ("part", "share", "amount", "standard_deviation", "noise_within")
    title = "Shares of the budget, and noise of each measured count: 95% of it lies within ± the last column"
    return Section(
        key="budget",
        title="Where the budget went",
        lead="Every question that was asked of the data has its share of the budget; a larger share means "
        "less noise.",
        grids=(Grid(title, columns, rows, folded=True),),
        figures=tuple(_split(panel, n, parts) for n, (panel, parts) in enumerate(_panels(shares).items(), 1)),
    )


def geography_section(levels: Sequence[LevelOfGeography]) -> Section:
    """The levels of the spine, as a tree and as a table."""
    rows = tuple((level.name, level.nodes, level.only_children) for level in levels)
    caption = (
        "Levels from the whole down to the smallest areas. An only child has the content of its parent and "
        "is not measured again. Lines are a sketch."
    )
    svg = geography_tree_figure([(level.name, level.nodes, level.only_children) for level in levels])
    return Section(
        key="geography",
        title="The geography",
        grids=(Grid("Levels of the geography", ("level", "areas", "only_children"), rows, folded=True),),
        figures=(Figure(svg, caption, frame="large"),),
    )


Part = tuple[str, str, Fraction]


def _split(panel: str, number: int, parts: Sequence[Part]) -> Figure:
    title = "The budget, by level and query" + (f": {panel}" if panel else "")
    return Figure(
        budget_split_figure(parts, name=f"budget-split-{number}", title=title),
        "A column a level, a row a question; squares are as large as the shares, bars add up the rows.",
        heading(panel),
        "large",
    )


def _panels(shares: Sequence[BudgetShare]) -> dict[str, list[Part]]:
    """Shares by all but the last two steps of their path: a figure for persons, one for housing units."""
    panels: dict[str, list[Part]] = {}
    for share in shares:
        *above, query = share.path or ("all",)
        level = above.pop() if above else "all"
        panel = ", ".join(step.replace("_", " ") for step in above)
        panels.setdefault(panel, []).append((level, query, share.amount))
    return {panel: rows for panel, rows in panels.items() if any(amount > 0 for *_, amount in rows)}
