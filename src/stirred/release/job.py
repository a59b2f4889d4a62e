"""A job: one mechanism on one plan, in the steps that a release has.

``specification`` and ``facts`` read the data through the declared invariants only; ``prepare`` checks the
records; ``draw`` makes the primitive output, the only step that reads records and randomness; ``publish``
writes public files from the primitive alone; ``diagnose`` compares with the truth, for internal use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stirred.data import Exposures
from stirred.noise import Source
from stirred.release.plan import Plan, SwapPlan
from stirred.report import (
    BudgetShare,
    ExactStatistic,
    InternalRecord,
    LevelOfGeography,
    PublishedFile,
    PublishedTable,
)
from stirred.spec import Budget, Specification

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Expected:
    """What theory says of the error of one product, before anything is drawn."""

    product: str
    sentence: str
    standard_deviation: float | None = None


@dataclass(frozen=True)
class Facts:
    """What can be said of a release before it is made."""

    mechanism: str
    settings: Mapping[str, str]
    exact: tuple[ExactStatistic, ...]
    constraints: tuple[str, ...]
    expected: tuple[Expected, ...]
    warnings: tuple[str, ...] = ()
    budget: tuple[BudgetShare, ...] = ()
    geography: tuple[LevelOfGeography, ...] = ()
    swap_rate: Any = None
    largest_stratum: int | None = None
    exposures: Exposures | None = None


@dataclass(frozen=True)
class Published:
    """What was written to the public folder."""

    files: tuple[PublishedFile, ...]
    tables: tuple[PublishedTable, ...]


Progress = Callable[[str, int, int], None]


class Job(Protocol):
    """One mechanism on one plan."""

    def data(self) -> Any:
        """The confidential data, read once."""

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The confidential tables, whole and with the columns that the plan names: to know them again."""

    @property
    def folder(self) -> Path:
        """Where the files of the plan are."""

    def public_files(self) -> tuple[str, ...]:
        """Files of the plan that are not confidential, relative to its folder."""

    def on(self, data: Any, folder: Path | None = None) -> Job:
        """The same job on other data, which stay in memory, with its public files elsewhere: for audits."""

    def specification(self) -> Specification:
        """The guarantee; from the declared invariants alone."""

    def least_budget(self) -> Budget:
        """What the guarantee needs whatever the data are, as far as they leave two records to tell apart."""

    def facts(self) -> Facts:
        """What a dry run shows; from the declared invariants alone."""

    def exposures(self) -> Exposures:
        """What the exact statistics determine and expose; from the declared invariants alone."""

    def require_presentable(self) -> None:
        """Refuse what must not leave, whatever the guarantee: identifiers, places that would be torn."""

    def prepare(self) -> None:
        """Read and check the records, so that bad ones are refused before anything is spent."""

    def room(self) -> int:
        """About how many bytes the release takes; for operators, not for publication."""

    def draw(self, source: Source, folder: Path) -> Any:
        """The primitive output; large ones may be kept in the folder, which will be public."""

    def publish(self, primitive: Any, folder: Path, progress: Progress | None = None) -> Published:
        """Write the public files, from the primitive alone."""

    def diagnose(self, primitive: Any) -> InternalRecord:
        """Errors against the truth."""

    def recheck(self, folder: Path) -> None:
        """Refuse public files that do not keep the invariants and constraints of the data."""


def job_of(plan: Plan, folder: Path) -> Job:
    """The job of a plan, with paths relative to a folder; nothing confidential is read yet."""
    from stirred.release.swap_job import SwapJob
    from stirred.release.topdown_job import TopDownJob

    if isinstance(plan.mechanism, SwapPlan):
        return SwapJob(plan, plan.mechanism, folder)
    return TopDownJob(plan, plan.mechanism, folder)


def with_bases(sentences: Sequence[tuple[str, int | None]], plan: Plan) -> tuple[ExactStatistic, ...]:
    """Exact statistics with their legal bases, by sentence."""
    bases = {basis.statistic: basis.basis for basis in plan.legal_bases}
    return tuple(ExactStatistic(text, bases.get(text, ""), figures) for text, figures in sentences)
