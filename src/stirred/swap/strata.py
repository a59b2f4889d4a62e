"""Strata: the groups within which records are permuted, and what the swapping invariants leave in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.data import Exposure, blocks, code_columns, physical, whole_words
from stirred.interchange import Tabular
from stirred.swap.derangement import stratum_sizes
from stirred.swap.kernel import EVERYONE, mark_mixed
from stirred.swap.roles import Roles

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Strata:
    """Stratum of every record, sizes, and in which strata holding and swapping variables vary.

    Sizes and variation are functions of the swapping invariants, so they are the same for every data set
    of a universe.
    """

    codes: NDArray[Any]
    sizes: NDArray[np.int64]
    eligible_sizes: NDArray[np.int64]
    hold_varies: NDArray[np.bool_]
    swap_varies: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        frame: pl.DataFrame,
        roles: Roles,
        *,
        missing: str = "error",
        eligible: NDArray[np.bool_] | None = None,
    ) -> Strata:
        """Form the strata of a table."""
        coded = code_columns(frame, roles.match, missing=missing)
        sizes = stratum_sizes(coded.values, coded.count)
        able = stratum_sizes(coded.values, coded.count, eligible)
        varies = [
            _varies(frame, names, coded.values, coded.count, missing, eligible)
            for names in (roles.hold, roles.swap)
        ]
        return cls(coded.values, sizes, able, varies[0], varies[1])

    @property
    def count(self) -> int:
        """Number of strata."""
        return int(self.sizes.size)

    @property
    def distinct(self) -> NDArray[np.bool_]:
        """Strata with at least two distinct (eligible) records."""
        found: NDArray[np.bool_] = self.hold_varies | self.swap_varies
        return found

    @property
    def largest(self) -> int:
        """b of Theorem 1: the largest stratum with at least two distinct records, or zero."""
        sizes = self.eligible_sizes[self.distinct]
        return int(sizes.max()) if sizes.size else 0


@dataclass(frozen=True)
class InvariantReport(Tabular):
    """What the swapping invariants fix, and where they leave nothing to protect."""

    roles: Roles
    unit: str
    records: int
    strata: int
    singletons: int
    constant: int
    exposure: Exposure
    hold_cells: int
    swap_cells: int
    largest_stratum: int
    persons: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        frame: pl.DataFrame,
        roles: Roles,
        strata: Strata,
        unit: str,
        exposure: Exposure,
    ) -> InvariantReport:
        """Count what is fixed."""
        still = ~(strata.hold_varies & strata.swap_varies)
        return cls(
            roles=roles,
            unit=unit,
            records=frame.height,
            strata=strata.count,
            singletons=int((strata.sizes == 1).sum()),
            constant=int((still & (strata.sizes > 1)).sum()),
            exposure=exposure,
            hold_cells=int(exposure.tables[0].cells or 0),
            swap_cells=int(exposure.tables[1].cells or 0),
            largest_stratum=strata.largest,
        )

    def sentences(self) -> list[str]:
        """The report in words."""
        key = ", ".join(self.roles.match) or "no variable (one stratum)"
        held = ", ".join((*self.roles.hold, *self.persons))
        moved = ", ".join(self.roles.swap)
        return [
            f"Records are permuted within {self.strata:,} strata of {key}.",
            f"Every combination of {held} is published exactly within each stratum ({self.hold_cells:,} "
            f"cells{' with their persons' if self.persons else ''}); only their link to the place is "
            "hidden.",
            f"Every combination of {moved} is published exactly within each stratum "
            f"({self.swap_cells:,} cells).",
            f"Strata with a single {self.unit}: {self.singletons:,}. Further strata that are constant "
            f"in the holding or in the swapping variables: {self.constant:,}. Nothing is protected in "
            "either.",
            self.exposure.sentence(),
            f"The largest stratum with two distinct records has {self.largest_stratum:,} records; this "
            "number is a function of the exact statistics, so it may be published.",
        ]

    def to_polars(self) -> pl.DataFrame:
        """One row a figure."""
        import polars as pl

        names = (
            "records",
            "strata",
            "singletons",
            "constant",
            "hold_cells",
            "swap_cells",
            "largest_stratum",
        )
        values = [*(getattr(self, name) for name in names), self.exposure.determined, self.exposure.exposed]
        return pl.DataFrame({"figure": (*names, "determined", "exposed"), "value": values})


def _varies(
    frame: pl.DataFrame,
    names: tuple[str, ...],
    codes: NDArray[Any],
    count: int,
    missing: str,
    eligible: NDArray[np.bool_] | None,
) -> NDArray[np.bool_]:
    mixed = np.zeros(count, dtype=np.bool_)
    for name in names:
        values = physical(frame[name], missing=missing)
        first, seen = np.empty(count, dtype=np.int64), np.zeros(count, dtype=np.bool_)
        for part in blocks(0, codes.size):
            able = EVERYONE if eligible is None else eligible[part]
            mark_mixed(codes[part], whole_words(values[part]), able, first, seen, mixed)
    return mixed
