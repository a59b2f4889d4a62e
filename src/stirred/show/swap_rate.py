"""Nominal protection loss against swap rate, for several sizes of the largest stratum (Figure 2)."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from stirred.spec import swapping_loss

WIDTH, HEIGHT = 760, 430
LEFT, RIGHT, TOP, BOTTOM = 60, 150, 20, 50
COLOURS = ("#0b4f6c", "#b8500c", "#3f6b1f", "#7a2e7a", "#8a6d00", "#444444")
HIGHEST = 24.0


def swap_rate_figure(
    strata: Sequence[int] = (2, 10, 100, 1_000, 10_000, 1_000_000), mark: Fraction | None = None
) -> str:
    """An SVG with one curve for each stratum size and a diamond at its least loss.

    ``mark`` puts a dot on the first curve at a swap rate. The least loss is ln(b+1)/2, at the rate
    sqrt(b+1)/(sqrt(b+1)+1) (Theorem 1).
    """
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="swap-title swap-desc" font-family="system-ui, sans-serif" font-size="13">',
        '<title id="swap-title">Nominal protection loss against swap rate</title>',
        '<desc id="swap-desc">For each size b of the largest stratum the loss falls with the swap rate down '
        "to half the logarithm of b plus one, then rises. Larger strata lie higher.</desc>",
        *_axes(),
    ]
    for index, size in enumerate(strata):
        parts += _curve(size, COLOURS[index % len(COLOURS)], index)
    if mark is not None:
        x, y = _x(float(mark)), _y(float(swapping_loss(strata[0], mark)))
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="6" fill="{COLOURS[1]}"/>')
    return "".join([*parts, "</svg>"])


def _curve(size: int, colour: str, index: int) -> list[str]:
    best = math.sqrt(size + 1) / (math.sqrt(size + 1) + 1)
    x, y = _x(best), _y(math.log(size + 1) / 2)
    label = html.escape(f"b = {size:,}")
    row = TOP + 24 + 22 * index
    legend = WIDTH - RIGHT + 18
    dash = ("", "8 3", "3 3", "10 3 3 3", "2 3", "14 4")[index % 6]
    points = " ".join(f"{_x(rate):.1f},{_y(loss):.1f}" for rate, loss in swap_rate_curve(size))
    return [
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2" '
        f'stroke-dasharray="{dash}"/>',
        f'<path d="M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6 -6z" fill="#fff" stroke="{colour}" stroke-width="2"/>',
        f'<line x1="{legend}" x2="{legend + 26}" y1="{row - 4}" y2="{row - 4}" stroke="{colour}" '
        f'stroke-width="2" stroke-dasharray="{dash}"/><text x="{legend + 32}" y="{row}">{label}</text>',
    ]


@cache
def swap_rate_curve(size: int) -> tuple[tuple[float, float], ...]:
    """Swap rates with the protection loss of each, for a size of the largest stratum."""
    rates = [Fraction(i, 400) for i in range(1, 400)] + [Fraction(9990 + i, 10000) for i in range(10)]
    return tuple((float(rate), float(swapping_loss(size, rate))) for rate in rates)


def _axes() -> list[str]:
    floor = HEIGHT - BOTTOM
    parts = [
        f'<rect x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{floor - TOP}" fill="#fafafa"/>'
    ]
    for value in range(0, 25, 4):
        y = _y(value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    for percent in range(0, 101, 20):
        x = _x(percent / 100)
        parts.append(f'<text x="{x:.1f}" y="{floor + 20}" text-anchor="middle">{percent}%</text>')
    for percent in (5, 50):
        x = _x(percent / 100)
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{floor}" stroke="#888" stroke-dasharray="2 4"/>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">swap rate p</text>')
    centre = (TOP + floor) / 2
    parts.append(
        f'<text x="16" y="{centre}" text-anchor="middle" transform="rotate(-90 16 {centre})">nominal ε</text>'
    )
    return parts


def _x(rate: float) -> float:
    return LEFT + rate * (WIDTH - LEFT - RIGHT)


def _y(loss: float) -> float:
    return TOP + (1 - min(loss, HIGHEST) / HIGHEST) * (HEIGHT - TOP - BOTTOM)
