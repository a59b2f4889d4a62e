"""A job: one plan, its mechanism and its data, prepared once for every step of a release.

What a kind of plan adds to its mechanism: where the data are, what is published under which title, what is
said of it before and after. Everything else goes through the protocol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from stirred.data import Exposures
from stirred.errors import InputError, Refusal
from stirred.noise import Source
from stirred.release.product import Product, publish
from stirred.report import ExactStatistic, Facts, InternalRecord, Published, PublishedFile
from stirred.spec import Block, Budget, Release, Specification

if TYPE_CHECKING:
    import polars as pl

    from stirred.audit import Finding
    from stirred.release.plan import Plan

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Members:
    """Other data sets of the universe of a job's data.

    ``view`` gives a data set as the claim reads it; ``companions`` are units of which one record may change
    with each record of the protection unit.
    """

    others: Sequence[Any]
    view: Callable[[Any], Any] = lambda data: data
    companions: tuple[str, ...] = ()


class Job(ABC):
    """One plan. A dataset that is handed over takes the place of the files: for audits."""

    def __init__(self, plan: Plan, folder: Path, dataset: Any = None) -> None:
        self.plan = plan
        self.section: Any = plan.mechanism
        self.folder = folder
        self._dataset = dataset

    @cached_property
    @abstractmethod
    def mechanism(self) -> Any:
        """The mechanism that the plan describes; reads public files alone."""

    @abstractmethod
    def read(self) -> Any:
        """The confidential data."""

    @abstractmethod
    def facts(self) -> Facts:
        """What a dry run shows; from the declared invariants alone."""

    @abstractmethod
    def exposures(self) -> Exposures:
        """What the exact statistics determine and expose; from the declared invariants alone."""

    @abstractmethod
    def products(self, made: Release) -> Iterable[Product | PublishedFile]:
        """What is published, from what the mechanism made; files that the draw has written are described."""

    @abstractmethod
    def audits(self, claim: Specification, source: Source, draws: int) -> list[Finding]:
        """Everything that tries to refute the claim, besides the replay."""

    @abstractmethod
    def members(self, claim: Specification, source: Source) -> Members:
        """Other data sets of the universe, for the replay."""

    @cached_property
    def dataset(self) -> Any:
        """The confidential data, read once."""
        return self.read() if self._dataset is None else self._dataset

    @cached_property
    def prepared(self) -> Any:
        """The data as the mechanism prepares them, once."""
        return self.mechanism.prepare(self.dataset)

    def specification(self) -> Specification:
        """The guarantee; from the declared invariants alone."""
        guarantee: Specification = self.mechanism.guarantee(self.prepared)
        return guarantee

    def least_budget(self) -> Budget:
        """What the guarantee needs whatever the data are, as far as they leave two records to tell apart."""
        return self.specification().budget

    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The confidential tables, whole and with the columns that the plan names: to know them again."""
        tables: Mapping[str, pl.DataFrame] = self.dataset
        return tables

    def public_files(self) -> tuple[str, ...]:
        """Files of the plan that are not confidential, relative to its folder."""
        return ()

    def on(self, dataset: Any, folder: Path | None = None) -> Self:
        """The same job on other data, which stay in memory, with its public files elsewhere: for audits."""
        return type(self)(self.plan, folder or self.folder, dataset)

    def excerpt(self, source: Source, folder: Path) -> Self:
        """The job on a part of its data that is published quickly, for audits; itself where that is small.

        Public files that the part needs are written to the folder.
        """
        return self

    def require_complete(self) -> None:  # noqa: B027
        """Refuse a plan that leaves open what a publication must say; reads no data."""

    def require_presentable(self) -> None:  # noqa: B027
        """Refuse what must not leave, whatever the guarantee: identifiers, places that would be torn."""

    def room(self) -> int:
        """About how many bytes the release takes; for operators, not for publication."""
        return 16 << 20

    def draw(self, source: Source, folder: Path) -> Any:
        """The primitive output; large ones may be kept in the folder, which will be public."""
        return self.mechanism.draw(self.prepared, source)

    def recall(self, folder: Path) -> Any:
        """A primitive that was drawn before, from the files that it was kept in."""
        raise InputError(
            "what this mechanism draws is not kept in files",
            field="measurements",
            expected="a plan of a kind that measures",
            hint="Run the plan without naming measurements.",
        )

    def finish(self, primitive: Any, public: Any, progress: Progress | None = None) -> Release:
        """All that is made of the primitive; sees neither records nor randomness."""
        made: Release = self.mechanism.finish(primitive, public)
        return made

    def publish(self, made: Release, folder: Path) -> Published:
        """Write what was made, and describe it; reads no records."""
        return publish(self.products(made), folder)

    def assess(self, primitive: Any, made: Release) -> InternalRecord:
        """Errors against the truth: confidential."""
        return InternalRecord()

    def recheck(self, folder: Path) -> None:  # noqa: B027
        """Refuse public files that do not keep the invariants and constraints of the data."""


@dataclass(frozen=True)
class Kind:
    """A kind of plan: the section that describes it, its job, and a starter to fill in.

    ``starter`` is the section as commented YAML; ``ceiling`` and ``currency`` go with it.
    """

    name: str
    section: type[Block]
    job: type[Job]
    starter: str
    ceiling: int
    currency: str


def require_recounted(published: pl.DataFrame, recounted: pl.DataFrame, table: str) -> None:
    """Refuse a published table whose counts are not those of the published records."""
    keys = [name for name in recounted.columns if name != "count"]
    if not published.select(recounted.columns).sort(keys).equals(recounted.sort(keys)):
        raise Refusal(
            f"the table {table} is not that of the published records",
            field="tables",
            expected="the counts of the published records",
            hint="The release contradicts itself: do not use it.",
        )


def with_bases(sentences: Iterable[tuple[str, int | None]], plan: Plan) -> tuple[ExactStatistic, ...]:
    """Exact statistics with their legal bases, by sentence."""
    bases = {basis.statistic: basis.basis for basis in plan.legal_bases}
    return tuple(ExactStatistic(text, bases.get(text, ""), figures) for text, figures in sentences)
