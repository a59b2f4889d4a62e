"""What a report is made from: plain facts about one release, public ones and internal ones apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stirred.data import Exposures
from stirred.report.checklist import Passage
from stirred.report.governance import Governance
from stirred.report.table import ReleaseTable
from stirred.spec import Specification

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

    ``path`` is relative to ``public/``; ``uncertainty`` is a sentence: the law and scale of the noise, say.
    """

    path: str
    kind: str
    title: str
    rows: int | None = None
    columns: tuple[Column, ...] = ()
    uncertainty: str = ""
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


@dataclass(frozen=True)
class ExactStatistic:
    """A statistic that is published exactly, why, and how many figures it fixes."""

    sentence: str
    legal_basis: str = ""
    figures: int | None = None


@dataclass(frozen=True)
class BudgetShare:
    """A part of the budget, for the picture of its split: path from coarse to fine, and the amount."""

    path: tuple[str, ...]
    amount: Fraction
    standard_deviation: float | None = None


@dataclass(frozen=True)
class LevelOfGeography:
    """One level of the spine, for the picture of the geography."""

    name: str
    nodes: int
    only_children: int = 0


@dataclass(frozen=True)
class Figure:
    """A figure as SVG text, with what it shows in words; ``frame`` is the style class of its frame."""

    svg: str
    caption: str = ""
    title: str = ""
    frame: str = ""


@dataclass(frozen=True)
class Grid:
    """A table to show: numbers and texts, formatted when shown; ``folded`` hides it until asked for."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    folded: bool = False


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


@dataclass(frozen=True)
class ReleaseRecord:
    """Everything public that a report says about a release."""

    name: str
    title: str
    description: str
    agency: str
    dataset: str
    stage: str
    made_on: str
    version: str
    mechanism: str
    settings: Mapping[str, str]
    specification: Specification
    exact: tuple[ExactStatistic, ...]
    constraints: tuple[str, ...]
    files: tuple[PublishedFile, ...]
    tables: tuple[PublishedTable, ...]
    table: ReleaseTable
    governance: Governance
    passage: Passage
    budget: tuple[BudgetShare, ...] = ()
    geography: tuple[LevelOfGeography, ...] = ()
    swap_rate: Fraction | None = None
    largest_stratum: int | None = None
    spent: str = ""
    remaining: str = ""
    ledger_head: str = ""
    plan_digest: str = ""
    publishable: bool = True
    reason: str = ""
    warnings: tuple[str, ...] = ()
    exposures: Exposures | None = None
    audit: Mapping[str, Any] | None = None
    registry: str | None = None
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True)
class InternalRecord:
    """What is measured against the truth: never leaves the building.

    ``accuracy`` has one row a level, query and population bin (columns as in ``stirred.topdown.accuracy``);
    ``against_truth`` pairs a title with true and protected counts of the same cells.
    """

    accuracy: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    against_truth: Mapping[str, tuple[Sequence[float], Sequence[float]]] = field(default_factory=dict)
