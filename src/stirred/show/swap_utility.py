"""Error of a swapped table against swap rate: one box for the runs at each rate (Figure 1)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stirred.errors import InputError
from stirred.show.plane import WIDTH, Plane

LEFT, RIGHT = 70, 20
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
    rates, first, last = [box.rate for box in boxes], boxes[0], boxes[-1]
    gap = min((b - a for a, b in itertools.pairwise(rates)), default=last.rate or 1.0)
    end = min(1.0, last.rate + gap) or 1.0
    errors = _ticks(max(value for box in boxes for value in (box.high, *box.beyond)), beyond=True)
    plane = Plane(LEFT, RIGHT, end, max(errors))
    half = min(12.0, max(1.0, 0.35 * gap / end * (WIDTH - LEFT - RIGHT)))
    return plane.figure(
        "mape",
        "Mean absolute percentage error against swap rate",
        f"Box plots of repeated runs at {len(boxes)} swap rates. The median error is {first.median:.2%} at a "
        f"swap rate of {first.rate:.4g} and {last.median:.2%} at a swap rate of {last.rate:.4g}.",
        [
            *plane.axes(_ticks(end), errors, "mean absolute percentage error"),
            *(part for box in boxes for part in _drawn(box, plane, half)),
        ],
    )


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


def _ticks(span: float, beyond: bool = False) -> dict[float, str]:
    """Round steps in at most six parts of a span, up to its end or to the first step ``beyond`` it."""
    step = 0.01
    if span > 0:
        power = 10.0 ** math.floor(math.log10(span / 6))
        step = next(part * power for part in STEPS if part * power >= span / 6 * (1 - 1e-9))
    count = max(1, math.ceil(span / step - 1e-9)) if beyond else math.floor(span / step + 1e-9)
    return {i * step: f"{100 * i * step:.4g}%" for i in range(count + 1)}


def _drawn(box: _Box, plane: Plane, half: float) -> list[str]:
    x, top, bottom = plane.x(box.rate), plane.y(box.upper), plane.y(box.lower)
    whiskers = "".join(
        f"M{x:.1f} {plane.y(a):.1f}V{plane.y(b):.1f}M{x - half / 2:.1f} {plane.y(b):.1f}h{half:.1f}"
        for a, b in ((box.upper, box.high), (box.lower, box.low))
    )
    return [
        f'<path d="{whiskers}" fill="none" stroke="{COLOUR}"/>',
        f'<rect x="{x - half:.1f}" y="{top:.1f}" width="{2 * half:.1f}" '
        f'height="{max(bottom - top, 0.5):.1f}" fill="#d7e6ec" stroke="{COLOUR}"/>',
        f'<line x1="{x - half:.1f}" x2="{x + half:.1f}" y1="{plane.y(box.median):.1f}" '
        f'y2="{plane.y(box.median):.1f}" stroke="{COLOUR}" stroke-width="2"/>',
        *(
            f'<circle cx="{x:.1f}" cy="{plane.y(v):.1f}" r="2" fill="none" stroke="{COLOUR}"/>'
            for v in box.beyond
        ),
    ]
