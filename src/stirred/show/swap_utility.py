"""Error of a swapped table against swap rate: one box for the runs at each rate (Figure 1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stirred.errors import InputError

WIDTH, HEIGHT = 760, 430
LEFT, RIGHT, TOP, BOTTOM = 70, 20, 20, 50
COLOUR = "#0b4f6c"
STEPS = (1, 2, 2.5, 5, 10)


def mape_figure(results: Mapping[Any, Sequence[float]]) -> str:
    """An SVG with a box plot of the mean absolute percentage error at each swap rate.

    Boxes run from the lower to the upper quartile with a bar at the median; whiskers reach the furthest
    run within one and a half box lengths, and runs beyond are circles.

    Parameters
    ----------
    results
        For every swap rate (a share) the error of each run (a share: 0.05 is five per cent).

    Examples
    --------
    >>> mape_figure({0.1: [0.04, 0.05, 0.06]}).count("<rect")
    2
    """
    boxes = sorted((_Box.of(rate, errors) for rate, errors in results.items()), key=lambda box: box.rate)
    if not boxes:
        raise InputError(
            "there are no runs to draw",
            field="results",
            expected="at least one swap rate with at least one run",
            hint="Run the utility measurement first.",
        )
    scale = _Scale.of(boxes)
    first, last = boxes[0], boxes[-1]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        'aria-labelledby="mape-title mape-desc" font-family="system-ui, sans-serif" font-size="13">',
        '<title id="mape-title">Mean absolute percentage error against swap rate</title>',
        f'<desc id="mape-desc">Box plots of repeated runs at {len(boxes)} swap rates. The median error is '
        f"{first.median:.2%} at a swap rate of {first.rate:.4g} and {last.median:.2%} at a swap rate of "
        f"{last.rate:.4g}.</desc>",
        *_axes(scale),
    ]
    for box in boxes:
        parts += _drawn(box, scale)
    return "".join([*parts, "</svg>"])


@dataclass(frozen=True)
class _Box:
    """The five figures of a box plot, and the runs beyond its whiskers."""

    rate: float
    low: float
    lower: float
    median: float
    upper: float
    high: float
    beyond: tuple[float, ...]

    @classmethod
    def of(cls, rate: object, errors: Sequence[float]) -> _Box:
        values = sorted(float(error) for error in errors)
        share = float(rate)  # type: ignore[arg-type]
        if not values or not all(math.isfinite(v) and v >= 0 for v in values) or not 0 <= share <= 1:
            raise InputError(
                "a swap rate or its errors cannot be drawn",
                field="results",
                expected="rates from 0 to 1, each with at least one finite error of at least zero",
                hint="Give rates and errors as shares, not per cent.",
            )
        lower, median, upper = (_quantile(values, q) for q in (0.25, 0.5, 0.75))
        reach = 1.5 * (upper - lower)
        inside = [v for v in values if lower - reach <= v <= upper + reach]
        beyond = tuple(v for v in values if not lower - reach <= v <= upper + reach)
        return cls(share, min(lower, *inside), lower, median, upper, max(upper, *inside), beyond)


def _quantile(values: Sequence[float], share: float) -> float:
    """Linear interpolation between order statistics."""
    place = share * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (place - below) * (values[above] - values[below])


@dataclass(frozen=True)
class _Scale:
    """Axes: rates from zero to the last, errors from zero to a round number; and the width of a box."""

    last_rate: float
    rate_step: float
    highest: float
    error_step: float
    half: float

    @classmethod
    def of(cls, boxes: Sequence[_Box]) -> _Scale:
        top = max(value for box in boxes for value in (box.high, *box.beyond))
        error_step = _round_step(top)
        highest = error_step * max(1, math.ceil(top / error_step - 1e-9))
        rates = [box.rate for box in boxes]
        gap = min((b - a for a, b in itertools.pairwise(rates)), default=rates[-1] or 1.0)
        last_rate = min(1.0, rates[-1] + gap) or 1.0
        half = min(12.0, max(1.0, 0.35 * gap / last_rate * (WIDTH - LEFT - RIGHT)))
        return cls(last_rate, _round_step(last_rate), highest, error_step, half)

    def x(self, rate: float) -> float:
        """Horizontal place of a swap rate."""
        return LEFT + rate / self.last_rate * (WIDTH - LEFT - RIGHT)

    def y(self, error: float) -> float:
        """Vertical place of an error."""
        return TOP + (1 - error / self.highest) * (HEIGHT - TOP - BOTTOM)


def _round_step(span: float) -> float:
    """A round step that divides a span into at most six parts."""
    if span <= 0:
        return 0.01
    power = 10.0 ** math.floor(math.log10(span / 6))
    return next(step * power for step in STEPS if step * power >= span / 6 * (1 - 1e-9))


def _drawn(box: _Box, scale: _Scale) -> list[str]:
    x, half = scale.x(box.rate), scale.half
    top, bottom = scale.y(box.upper), scale.y(box.lower)
    whiskers = "".join(
        f"M{x:.1f} {scale.y(a):.1f}V{scale.y(b):.1f}M{x - half / 2:.1f} {scale.y(b):.1f}h{half:.1f}"
        for a, b in ((box.upper, box.high), (box.lower, box.low))
    )
    return [
        f'<path d="{whiskers}" fill="none" stroke="{COLOUR}"/>',
        f'<rect x="{x - half:.1f}" y="{top:.1f}" width="{2 * half:.1f}" '
        f'height="{max(bottom - top, 0.5):.1f}" fill="#d7e6ec" stroke="{COLOUR}"/>',
        f'<line x1="{x - half:.1f}" x2="{x + half:.1f}" y1="{scale.y(box.median):.1f}" '
        f'y2="{scale.y(box.median):.1f}" stroke="{COLOUR}" stroke-width="2"/>',
        *(
            f'<circle cx="{x:.1f}" cy="{scale.y(v):.1f}" r="2" fill="none" stroke="{COLOUR}"/>'
            for v in box.beyond
        ),
    ]


def _axes(scale: _Scale) -> list[str]:
    floor, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    parts = [f'<rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{floor - TOP}" fill="#fafafa"/>']
    for error in _ticks(scale.highest, scale.error_step):
        y = scale.y(error)
        parts.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{_per_cent(error)}</text>')
    for rate in _ticks(scale.last_rate, scale.rate_step):
        x = scale.x(rate)
        parts.append(f'<text x="{x:.1f}" y="{floor + 20}" text-anchor="middle">{_per_cent(rate)}</text>')
    middle, centre = (LEFT + right) / 2, (TOP + floor) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">swap rate p</text>')
    parts.append(
        f'<text x="16" y="{centre}" text-anchor="middle" transform="rotate(-90 16 {centre})">'
        "mean absolute percentage error</text>"
    )
    return parts


def _ticks(last: float, step: float) -> list[float]:
    return [i * step for i in range(math.floor(last / step + 1e-9) + 1)]


def _per_cent(share: float) -> str:
    return f"{100 * share:.4g}%"
