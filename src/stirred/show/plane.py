"""The plane of a figure over swap rates: its frame, its ticks and the place of a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WIDTH, HEIGHT = 760, 430
TOP, BOTTOM = 20, 50


@dataclass(frozen=True)
class Plane:
    """Rates from zero to ``last`` across, values from zero to ``highest`` up, between two margins."""

    left: int
    right: int
    last: float
    highest: float

    def x(self, rate: float) -> float:
        """Horizontal place of a swap rate."""
        return self.left + rate / self.last * (WIDTH - self.left - self.right)

    def y(self, value: float) -> float:
        """Vertical place of a value; what is too high lies at the top."""
        return TOP + (1 - min(value, self.highest) / self.highest) * (HEIGHT - TOP - BOTTOM)

    def figure(self, key: str, title: str, description: str, parts: Iterable[str]) -> str:
        """An SVG that says in words what it shows."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'aria-labelledby="{key}-title {key}-desc" font-family="system-ui, sans-serif" font-size="13">'
            f'<title id="{key}-title">{title}</title><desc id="{key}-desc">{description}</desc>'
            f"{''.join(parts)}</svg>"
        )

    def axes(self, rates: Mapping[float, str], values: Mapping[float, str], label: str) -> list[str]:
        """The frame, with words at ticks and along both sides."""
        floor, right = HEIGHT - BOTTOM, WIDTH - self.right
        middle, centre = (self.left + right) / 2, (TOP + floor) / 2
        width, height = right - self.left, floor - TOP
        parts = [f'<rect x="{self.left}" y="{TOP}" width="{width}" height="{height}" fill="#fafafa"/>']
        for value, words in values.items():
            y = self.y(value)
            parts.append(f'<line x1="{self.left}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
            parts.append(f'<text x="{self.left - 8}" y="{y + 4:.1f}" text-anchor="end">{words}</text>')
        for rate, words in rates.items():
            parts.append(f'<text x="{self.x(rate):.1f}" y="{floor + 20}" text-anchor="middle">{words}</text>')
        return [
            *parts,
            f'<text x="{middle}" y="{HEIGHT - 10}" text-anchor="middle">swap rate p</text>',
            f'<text x="16" y="{centre}" text-anchor="middle" transform="rotate(-90 16 {centre})">'
            f"{label}</text>",
        ]
