"""Protected counts against true ones, on a scale that shows small and large counts alike.

The figure is made from confidential truth: it belongs into an internal report and nowhere else.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from stirred.errors import InputError
from stirred.show.drawing import BAR, INK, LINE, MARK, SOFT, TINT, figure, path, rectangle, text
from stirred.show.format import number

SIDE, LEFT, TOP, BOTTOM = 300, 56, 12, 46
CELLS = 75
FEW = 60


def against_truth_figure(
    title: str, truth: Sequence[float], protected: Sequence[float], *, name: str = "against-truth"
) -> str:
    """An SVG of true (across) against protected counts (up), both on the scale ln(1 + count).

    Counts that fall together are one dot, larger for more of them; the line is where nothing changed.

    Parameters
    ----------
    truth, protected
        Counts of the same cells in the same order, of at least zero.
    """
    pairs = [(float(a), float(b)) for a, b in zip(truth, protected, strict=True)]
    if not pairs or not all(math.isfinite(v) and v >= 0 for pair in pairs for v in pair):
        raise InputError(
            "there are no counts to draw",
            field="truth",
            expected="counts of at least zero, and at least one of them",
            hint="Give true and protected counts of the same cells.",
        )
    end = math.log1p(max(1.0, *(v for pair in pairs for v in pair)))
    dots = Counter((_cell(a, end), _cell(b, end)) for a, b in pairs)
    least = 4.0 if len(dots) < FEW else 1.8
    floor = TOP + SIDE
    parts = [rectangle(LEFT, TOP, SIDE, SIDE, TINT)]
    for tick in _ticks(end):
        place = SIDE * math.log1p(tick) / end
        lines = f"M{LEFT + place:.1f} {TOP}V{floor}M{LEFT} {floor - place:.1f}H{LEFT + SIDE}"
        parts.append(path(lines, LINE, 0.8))
        parts.append(text(LEFT + place, floor + 16, number(tick), anchor="middle", size=11, colour=SOFT))
        parts.append(text(LEFT - 6, floor - place + 4, number(tick), anchor="end", size=11, colour=SOFT))
    parts.append(path(f"M{LEFT} {floor}L{LEFT + SIDE} {TOP}", MARK, 1.2, "5 3"))
    for (i, j), times in sorted(dots.items()):
        x, y = LEFT + SIDE * i / CELLS, floor - SIDE * j / CELLS
        radius = min(6.0, least + 0.55 * math.log(times))
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill-opacity="0.6" style="fill:{BAR}"/>'
        )
    parts.append(text(LEFT + SIDE / 2, floor + 36, "true count", anchor="middle", size=12, colour=INK))
    centre = TOP + SIDE / 2
    parts.append(
        f'<text x="12" y="{centre}" text-anchor="middle" font-size="12" transform="rotate(-90 12 {centre})" '
        f'style="fill:{INK}">protected count</text>'
    )
    same = sum(a == b for a, b in pairs)
    off = sum(abs(a - b) for a, b in pairs) / len(pairs)
    return figure(
        name,
        LEFT + SIDE + 20,
        floor + BOTTOM,
        title,
        f"{number(len(pairs))} counts, of which {number(same)} did not change; the mean absolute change is "
        f"{off:.2f}.",
        parts,
    )


def _cell(value: float, end: float) -> int:
    return round(CELLS * math.log1p(value) / end)


def _ticks(end: float) -> list[int]:
    """Zero and powers of ten, as many as fit without touching."""
    powers = [10**k for k in range(0, math.floor(math.expm1(end) and math.log10(math.expm1(end)) + 1e-9) + 1)]
    step = 1 + len(powers) // 6
    return [0, *powers[::step]]
