"""What a report is made from: facts about one release, public ones and internal ones apart.

Records hold numbers and objects; the editions of the report write them, last of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stirred.data import Exposures
from stirred.ledger import Amount
from stirred.report.checklist import Passage
from stirred.report.governance import Governance
from stirred.report.table import ReleaseTable
from stirred.spec import Specification, Uncertainty

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Column:
    """One column of a published file, for the data dictionary."""

    name: str
    type: str
    meaning: str = ""


@dataclass(frozen=True)
class PublishedFile:
    """One file in ``public/``: where it is, what it is, and how uncertain its figures are.

    ``path`` is relative to ``public/``; ``size`` is in bytes.
    """

    path: str
    kind: str
    title: str
    rows: int | None = None
    columns: tuple[Column, ...] = ()
    uncertainty: Uncertainty | None = None
    size: int | None = None


@dataclass(frozen=True)
class PublishedTable:
    """A protected table to show.

    Its frame has the column of codes, the parts, ``count`` and, where they are known, ``estimate``,
    ``standard_error``, ``low_95`` and ``high_95``.
    """

    title: str
    level: str
    parts: tuple[str, ...]
    frame: pl.DataFrame
    uncertainty: Uncertainty | None = None


@dataclass(frozen=True)
class ExactStatistic:
    """A statistic that is published exactly, why, and how many figures it fixes."""

    sentence: str
    legal_basis: str = ""
    figures: int | None = None


@dataclass(frozen=True)
class Expected:
    """What theory says of the error of one product, before anything is drawn."""

    product: str
    uncertainty: Uncertainty

    def record(self) -> dict[str, Any]:
        """In words and in numbers."""
        return {"product": self.product, "error": str(self.uncertainty), **self.uncertainty.record()}


@dataclass(frozen=True)
class Figure:
    """A figure as SVG text, with what it shows in words; ``frame`` is the style class of its frame."""

    svg: str
    caption: str = ""
    title: str = ""
    frame: str = ""


@dataclass(frozen=True)
class Grid:
    """A table to show: numbers and texts, formatted when shown; ``folded`` hides it until asked for.

    ``columns`` are the keys of a row in the JSON edition, and as words its headings.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    folded: bool = False

    @property
    def numeric(self) -> tuple[int, ...]:
        """The places of the columns that hold no text."""
        columns = enumerate(zip(*self.rows, strict=True))
        return tuple(i for i, cells in columns if not any(isinstance(cell, str) for cell in cells))

    def record(self) -> dict[str, Any]:
        """Title and rows, a mapping each."""
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "rows": rows}


@dataclass(frozen=True)
class Section:
    """What one kind of mechanism says of itself in a report.

    ``key`` is the name in the JSON edition, which has the facts and grids as numbers; ``may_not`` are
    statements about the budget that this mechanism invites and that nobody may make.
    """

    key: str
    title: str
    lead: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    grids: tuple[Grid, ...] = ()
    figures: tuple[Figure, ...] = ()
    may_not: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Title, facts and grids: what the JSON edition has."""
        return {"title": self.title, "facts": dict(self.facts), "grids": [g.record() for g in self.grids]}


@dataclass(frozen=True)
class Identity:
    """Which release this is, of which data, made when, by which version, from which plan."""

    name: str
    title: str
    description: str
    agency: str
    dataset: str
    stage: str
    made_on: str
    version: str
    plan_digest: str


@dataclass(frozen=True)
class Facts:
    """What can be said of a release before it is made: a mechanism on a plan."""

    mechanism: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    exact: tuple[ExactStatistic, ...] = ()
    constraints: tuple[str, ...] = ()
    expected: tuple[Expected, ...] = ()
    sections: tuple[Section, ...] = ()
    warnings: tuple[str, ...] = ()
    exposures: Exposures | None = None


@dataclass(frozen=True)
class Published:
    """What was written to the public folder."""

    files: tuple[PublishedFile, ...] = ()
    tables: tuple[PublishedTable, ...] = ()


@dataclass(frozen=True)
class Account:
    """Where the data set stands in its ledger after the release."""

    spent: Amount
    remaining: Amount
    ledger_head: str


@dataclass(frozen=True)
class ReleaseRecord:
    """Everything public that a report says about a release.

    Without an ``account`` no ledger was asked; ``audit`` is the public record of the audits, ``registry`` the
    record for a registry as text; ``reason`` says why a release is not ``publishable``.
    """

    identity: Identity
    specification: Specification
    facts: Facts
    published: Published
    table: ReleaseTable
    governance: Governance
    passage: Passage
    account: Account | None = None
    audit: Mapping[str, Any] | None = None
    registry: str | None = None
    publishable: bool = True
    reason: str = ""


@dataclass(frozen=True)
class InternalRecord:
    """What is measured against the truth: never leaves the building.

    ``accuracy`` has one row a level, query and population bin (columns as in ``stirred.topdown.accuracy``);
    ``against_truth`` pairs a title with true and protected counts of the same cells; ``errors`` has the mean
    absolute error of every table that is compared between releases.
    """

    accuracy: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    against_truth: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
