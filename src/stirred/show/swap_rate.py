"""Nominal protection loss against swap rate, for several sizes of the largest stratum (Figure 2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from stirred.show.plane import BOTTOM, HEIGHT, TOP, WIDTH, Plane
from stirred.spec import swapping_loss

COLOURS = ("#0b4f6c", "#b8500c", "#3f6b1f", "#7a2e7a", "#8a6d00", "#444444")
DASHES = ("", "8 3", "3 3", "10 3 3 3", "2 3", "14 4")
PLANE = Plane(left=60, right=150, last=1.0, highest=24.0)


def swap_rate_figure(
    strata: Sequence[int] = (2, 10, 100, 1_000, 10_000, 1_000_000), mark: Fraction | None = None
) -> str:
    """An SVG with one curve for each stratum size and a diamond at its least loss.

    ``mark`` puts a dot on the first curve at a swap rate. The least loss is ln(b+1)/2, at the rate
    sqrt(b+1)/(sqrt(b+1)+1) (Theorem 1).
    """
    rates = {percent / 100: f"{percent}%" for percent in range(0, 101, 20)}
    parts = PLANE.axes(rates, {value: f"{value}" for value in range(0, 25, 4)}, "nominal ε")
    for rate in (0.05, 0.5):
        parts.append(
            f'<line x1="{PLANE.x(rate):.1f}" x2="{PLANE.x(rate):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" '
            'stroke="#888" stroke-dasharray="2 4"/>'
        )
    for index, size in enumerate(strata):
        parts += _curve(size, index)
    if mark is not None:
        x, y = PLANE.x(float(mark)), PLANE.y(float(swapping_loss(strata[0], mark)))
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{COLOURS[1]}"/>')
    return PLANE.figure(
        "swap",
        "Nominal protection loss against swap rate",
        "For each size b of the largest stratum the loss falls with the swap rate down to half the logarithm "
        "of b plus one, then rises. Larger strata lie higher.",
        parts,
    )


def _curve(size: int, index: int) -> list[str]:
    best = math.sqrt(size + 1) / (math.sqrt(size + 1) + 1)
    x, y = PLANE.x(best), PLANE.y(math.log(size + 1) / 2)
    row, legend = TOP + 24 + 22 * index, WIDTH - PLANE.right + 18
    colour, dash = COLOURS[index % len(COLOURS)], DASHES[index % len(DASHES)]
    points = " ".join(f"{PLANE.x(rate):.1f},{PLANE.y(loss):.1f}" for rate, loss in swap_rate_curve(size))
    return [
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
        f'stroke-dasharray="{dash}"/>',
        f'<path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z" fill="#fff" stroke="{colour}" stroke-width="2"/>',
        f'<line x1="{legend}" x2="{legend + 26}" y1="{row - 4}" y2="{row - 4}" stroke="{colour}" '
        f'stroke-width="2" stroke-dasharray="{dash}"/><text x="{legend + 32}" y="{row}">b = {size:,}</text>',
    ]


@cache
def swap_rate_curve(size: int) -> tuple[tuple[float, float], ...]:
    """Swap rates with the protection loss of each, for a size of the largest stratum."""
    rates = [Fraction(i, 1000) for i in (1, 2, 5)] + [Fraction(i, 100) for i in range(1, 100)]
    rates += [1 - Fraction(1, 10**i) for i in (3, 4)]
    return tuple((float(rate), float(swapping_loss(size, rate))) for rate in rates)
