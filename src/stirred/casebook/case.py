"""A case: one table or figure of a source, recomputed from its inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stirred.errors import InputError


@dataclass(frozen=True)
class Recomputed:
    """The numbers of a case, row by row, and notes: above all where the published figure differs."""

    rows: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One table or figure of a source, under the name that the command line gives it.

    ``shows`` says in a line what it is. ``recompute`` gives its numbers; where the case has ``runs`` it is a
    simulation and takes how many. ``columns`` are printed, each with its format (as for ``format``);
    ``draw`` makes the figure, as SVG text.
    """

    name: str
    source: str
    shows: str
    recompute: Callable[..., Recomputed]
    columns: Mapping[str, str] = field(default_factory=dict)
    draw: Callable[[Recomputed], str] | None = None
    runs: int | None = None

    def again(self, runs: int | None = None) -> Recomputed:
        """Recompute it, a simulation with so many runs."""
        if runs is not None and self.runs is None:
            raise InputError(
                f"{self.name} is not a simulation",
                field="runs",
                expected="a number of runs for a simulation only",
                hint="Leave it out.",
            )
        return self.recompute() if self.runs is None else self.recompute(runs=runs or self.runs)

    @property
    def title(self) -> str:
        """Name and content, as the heading of its table."""
        return f"{self.name.replace('-', ' ').capitalize()}. {self.shows}"

    def lines(self, found: Recomputed) -> list[list[str]]:
        """The cells of its table as people read them."""
        return [[_shown(row[name], form) for name, form in self.columns.items()] for row in found.rows]

    def entry(self) -> dict[str, Any]:
        """What the case is, as plain data."""
        about = {"name": self.name, "source": self.source, "shows": self.shows}
        return about | {"figure": self.draw is not None, "runs": self.runs}

    def record(self, found: Recomputed) -> dict[str, Any]:
        """What the case is and what was recomputed, as plain data."""
        return self.entry() | {"rows": [dict(row) for row in found.rows], "notes": list(found.notes)}


def _shown(value: Any, form: str) -> str:
    """A cell; two numbers are a range."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return (" to " if form else "; ").join(_shown(part, form) for part in value)
    return format(value, form)
