"""The geography as a tree: a row of dots a level, the root on top."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from stirred.show.drawing import BAR, LINE, MARK, SOFT, figure, length, listed, path, text, words
from stirred.show.format import number

ROW, TREE, MOST = 66, 300, 40
MARGIN = 22


def geography_tree_figure(levels: Sequence[tuple[str, int, int]], *, name: str = "geography") -> str:
    """An SVG of the levels, each with its number of areas and how many of them are only children.

    Of a level with many areas ``MOST`` dots stand for all; lines join dots to the dot above in order, so the
    picture is a sketch: which area lies in which is not in it.

    Parameters
    ----------
    levels
        Name, number of areas and number of only children, root first.
    """
    left = max(length(words(level), 14) for level, _, _ in levels) + MARGIN
    notes = [_note(levels, i) for i in range(len(levels))]
    right = left + TREE + MARGIN
    width = right + max(length(line, 12) for note in notes for line in note) + 4
    places = [_places(nodes, left) for _, nodes, _ in levels]
    parts = []
    for row, (above, below) in enumerate(itertools.pairwise(places)):
        y = _y(row)
        lines = "".join(
            f"M{above[i * len(above) // len(below)]:.1f} {y:.1f}L{x:.1f} {_y(row + 1):.1f}"
            for i, x in enumerate(below)
        )
        parts.append(path(lines, LINE))
    for row, ((level, _, _), xs, note) in enumerate(zip(levels, places, notes, strict=True)):
        y = _y(row)
        radius = 7 if len(xs) == 1 else max(2.6, 5.5 - len(xs) / 14)
        parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" style="fill:{MARK if row == 0 else BAR}"/>'
            for x in xs
        ]
        parts.append(text(0, y + 5, words(level), size=14, bold=True))
        first = y + 4 - 8 * (len(note) - 1)
        for k, line in enumerate(note):
            parts.append(text(right, first + 16 * k, line, size=12, colour=SOFT))
    told = listed(f"{words(level)}: {number(nodes)}" for level, nodes, _ in levels)
    return figure(
        name,
        width,
        ROW * len(levels),
        "The geography, from the whole down to its smallest areas",
        f"Number of areas at each level: {told}.",
        parts,
    )


def _y(row: int) -> float:
    return ROW * (row + 0.5)


def _places(nodes: int, left: float) -> list[float]:
    """Where the dots of a level stand: further apart where there are few, over the whole width where many."""
    drawn = min(nodes, MOST)
    spread = TREE * min(1.0, drawn / 14 if drawn < 14 else 1.0)
    step = spread / drawn
    start = left + (TREE - spread) / 2
    return [start + step * (i + 0.5) for i in range(drawn)]


def _note(levels: Sequence[tuple[str, int, int]], row: int) -> list[str]:
    _, nodes, only = levels[row]
    note = [
        f"{number(nodes)} {'area' if nodes == 1 else 'areas'}" + (f", {MOST} drawn" if nodes > MOST else "")
    ]
    if row:
        above, parents, _ = levels[row - 1]
        note.append(f"{number(round(nodes / max(parents, 1), 1))} for each {words(above)}")
    if only:
        note.append(f"{number(only)} only {'child' if only == 1 else 'children'}")
    return note
