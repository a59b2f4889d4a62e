"""Small multiples: one panel of bars for each area, with 95% intervals where they are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stirred.errors import InputError
from stirred.show.drawing import BAR, INK, LINE, SOFT, figure, length, listed, path, rectangle, text
from stirred.show.format import number

WIDTH, TOP = 290, 30
SHORT, LONG = 21, 36
LETTERS = 40


@dataclass(frozen=True)
class Bar:
    """A figure with its label and, where it is known, the interval around it."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None


def bar_panel(title: str, bars: Sequence[Bar], *, highest: float | None = None, name: str = "panel") -> str:
    """An SVG of horizontal bars from zero; a line with end marks is the 95% interval.

    Parameters
    ----------
    highest
        The end of the axis, common to panels that are to be compared; the largest figure if not given.

    Examples
    --------
    >>> bar_panel("A county", [Bar("under 18", 120, 110, 131)]).count("<rect")
    1
    """
    values = [v for bar in bars for v in (bar.value, bar.low, bar.high) if v is not None]
    if not values or not all(map(math.isfinite, values)):
        raise InputError(
            "a panel needs figures",
            field="bars",
            expected="at least one bar, and finite numbers only",
            hint="Leave out what is not known.",
        )
    end = max(highest or 0.0, *values, 1e-9)
    longest = max(len(bar.label) for bar in bars)
    aside = longest <= 9
    left = length("m" * longest, 12) + 8 if aside else 0
    shown = [number(bar.value) for bar in bars]
    room = WIDTH - left - max(length(words, 12) for words in shown) - 12
    row = SHORT if aside else LONG
    parts = [text(0, 14, title, bold=True, most=LETTERS - 4)]
    for i, (bar, value) in enumerate(zip(bars, shown, strict=True)):
        y = TOP + row * i + (0 if aside else 16)
        parts.append(
            text(left - 8, y + 10, bar.label, anchor="end", size=12)
            if aside
            else text(0, y - 4, bar.label, size=12, most=LETTERS)
        )
        parts.append(rectangle(left, y, room * max(bar.value, 0) / end, 13, BAR, 0.8))
        if bar.low is not None and bar.high is not None:
            low, high = (left + room * min(max(v, 0), end) / end for v in (bar.low, bar.high))
            ends = "".join(f"M{x:.1f} {y + 2.5:.1f}v8" for x in (low, high))
            parts.append(path(f"M{low:.1f} {y + 6.5:.1f}H{high:.1f}{ends}", INK, 1.4))
        reach = left + room * max(bar.value, bar.high or 0, 0) / end
        parts.append(text(reach + 6, y + 11, value, size=12, colour=SOFT))
    floor = TOP + row * len(bars)
    if aside:
        parts.append(path(f"M{left:.1f} {TOP - 6:.1f}V{floor + 1:.1f}", LINE))
    told = listed(_said(bar, value) for bar, value in zip(bars, shown, strict=True))
    return figure(name, WIDTH, floor + 6, title, f"Bars: {told}.", parts)


def _said(bar: Bar, value: str) -> str:
    if bar.low is None or bar.high is None:
        return f"{bar.label} {value}"
    return f"{bar.label} {value} (95% interval {number(bar.low)} to {number(bar.high)})"
