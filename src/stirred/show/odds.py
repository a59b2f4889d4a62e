"""What somebody may come to believe: a hundred dots before the release, a hundred after it."""

from __future__ import annotations

import math
from fractions import Fraction

from stirred.errors import InputError
from stirred.show.drawing import BAR, LINE, SOFT, figure, length, path, text
from stirred.spec import as_fraction

STEP, SIDE = 17, 10
LEFT, GAP, TOP = 8, 66, 52


def odds_figure(
    before: float | Fraction, after: float | Fraction, *, words_after: str, name: str = "odds"
) -> str:
    """An SVG of two squares of a hundred dots; dots that are filled are the cases thought true.

    Parameters
    ----------
    before, after
        Shares of a hundred cases, from 0 to 1; the second is drawn rounded up to a whole dot.
    words_after
        What stands above the second square.
    """
    if not 0 <= before <= after <= 1:
        raise InputError(
            "a belief is not a share, or falls",
            field="after",
            expected="two shares from 0 to 1, the second at least the first",
            hint="The figure shows by how much a belief can grow at most.",
        )
    first, second = (min(100, math.ceil(100 * as_fraction(share))) for share in (before, after))
    words_before = f"{first} of 100"
    other = LEFT + STEP * SIDE + GAP
    parts = [
        text(LEFT, 16, "before the release", size=12, colour=SOFT),
        text(LEFT, 36, words_before, bold=True, size=15),
        text(other, 16, "after it, at most", size=12, colour=SOFT),
        text(other, 36, words_after, bold=True, size=15),
        *_dots(LEFT, first),
        *_dots(other, second),
    ]
    y, x = TOP + STEP * SIDE / 2, LEFT + STEP * SIDE + 16
    parts.append(path(f"M{x} {y}h28m-8 -7l8 7l-8 7", SOFT, 2))
    return figure(
        name,
        other + max(STEP * SIDE, length(words_after, 16)) + 8,
        TOP + STEP * SIDE + 4,
        "By how much a belief can grow",
        f"Two squares of a hundred dots. Before the release {first} are filled; after it at most {second}.",
        parts,
    )


def _dots(left: float, filled: int) -> list[str]:
    out = []
    for i in range(100):
        x, y = left + STEP * (i % SIDE) + STEP / 2, TOP + STEP * (i // SIDE) + STEP / 2
        style = f"fill:{BAR};stroke:{BAR}" if i < filled else f"fill:none;stroke:{LINE}"
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" style="{style};stroke-width:1.5"/>')
    return out
