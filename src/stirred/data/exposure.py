"""What exact statistics give away by themselves: records that they determine, records that they expose.

A guarantee relative to invariants says nothing of what the invariants alone reveal. Two numbers say it:

*determined*
    Records that every data set of the universe contains, with the same values: over all full cells the
    least count in the universe, added up. Nothing protects them, whatever the budget; where all records
    are determined the guarantee is vacuous.
*exposed*
    Records that are alone in a cell of an exact table: whoever is known to be in that cell is known by the
    table. Which records are alone in *both* of two tables depends on how the tables are linked, and that is
    what is protected; so the number is kept for each table, and the largest stands for all of them.

Guarantee
    Both are functions of the values of the invariants: two data sets of one universe have the same, and the
    numbers may be published. ``records`` is for the same reason the size of the smallest data set of the
    universe, which is the number of records wherever the invariants fix it.
"""

from __future__ import annotations

import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stirred.data.codes import PARALLEL, Codes, in_groups
from stirred.data.kernel import count_two_tables
from stirred.errors import Refusal
from stirred.spec import plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_DETERMINED = Fraction(1, 100)


@dataclass(frozen=True)
class ExactTable:
    """A table that is published exactly: how many of its cells hold a single record, and how many any."""

    name: str
    alone: int
    cells: int | None = None


@dataclass(frozen=True)
class Exposure:
    """What the invariants of one unit determine and expose.

    ``determined`` is exact where ``decided``. Where it is not, the true number is at least this and at most
    ``at_most``, if any bound is known; a gate counts the latter, and everything where there is none. Where
    the universe is not ``sized``, its smallest data set has at least so many ``records``: shares are then
    too large rather than too small.
    """

    unit: str
    records: int
    determined: int
    at_most: int | None
    tables: tuple[ExactTable, ...] = ()
    sized: bool = True

    @property
    def decided(self) -> bool:
        """Whether the number of determined records is known exactly."""
        return self.determined == self.at_most

    @property
    def exposed(self) -> int:
        """The largest number of records that are alone in a cell of one exact table."""
        return max((table.alone for table in self.tables), default=0)

    @property
    def determined_share(self) -> Fraction:
        """The share of determined records; its upper bound where it is not decided."""
        return Fraction(1) if self.at_most is None else self._share(self.at_most)

    @property
    def exposed_share(self) -> Fraction:
        """The share of exposed records."""
        return self._share(self.exposed)

    @property
    def vacuous(self) -> bool:
        """Whether the invariants determine every record."""
        return self.sized and self.records > 0 and self.determined == self.records

    def _share(self, number: int) -> Fraction:
        return min(Fraction(1), Fraction(number, self.records)) if self.records else Fraction(0)

    def sentence(self) -> str:
        """Both shares in words; a share is rounded up."""
        kind = plural(self.unit)
        if not self.tables:
            return f"No statistic of {kind} is published exactly, so none of them is determined or exposed."
        of = f"of {'' if self.sized else 'at least '}{self.records:,} {kind}"
        found = f"{self.determined:,} {of} ({percent(self.determined_share)})"
        if self.at_most is None:
            found = f"at least {self.determined:,} {of}; how many in all was not decided"
        elif not self.decided:
            found = (
                f"at least {self.determined:,} and at most {self.at_most:,} {of} (at most "
                f"{percent(self.determined_share)})"
            )
        more = "At least " if sum(table.alone > 0 for table in self.tables) > 1 else ""
        bare = "" if self.at_most == 0 else ": no budget protects these"
        return (
            f"The exact statistics alone determine {found}{bare}. "
            f"{more}{self.exposed:,} {of} ({percent(self.exposed_share)}) are alone in a cell of an exact "
            "table."
        )

    def record(self) -> dict[str, Any]:
        """Plain data with stable keys."""
        return {
            "unit": self.unit,
            "records": self.records,
            "determined": self.determined,
            "determined_at_most": self.at_most,
            "determined_share": float(self.determined_share),
            "exposed": self.exposed,
            "exposed_share": float(self.exposed_share),
            "decided": self.decided,
            "sized": self.sized,
            "exact_tables": [{"table": table.name, "alone": table.alone} for table in self.tables],
        }


@dataclass(frozen=True)
class Exposures:
    """What the invariants of every protected unit determine and expose.

    ``unmeasured`` are units that are only counted: they are published exactly by declaration, are not
    protected, and have no share.
    """

    units: tuple[Exposure, ...]
    unmeasured: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """In words."""
        out = [exposure.sentence() for exposure in self.units]
        if self.unmeasured:
            names = " and ".join(plural(unit) for unit in self.unmeasured)
            out.append(
                f"{names[:1].upper()}{names[1:]} are only counted: their exact statistics are published "
                "as declared, and nothing protects them."
            )
        return out

    def record(self) -> list[dict[str, Any]]:
        """Plain data with stable keys, one object a protected unit."""
        return [exposure.record() for exposure in self.units]

    def refusal(self, most: Fraction = MOST_DETERMINED) -> Refusal | None:
        """Why these statistics leave too little to protect, if they do."""
        empty = [exposure for exposure in self.units if exposure.determined_share > most]
        if not empty:
            return None
        names = " and ".join(plural(exposure.unit) for exposure in empty)
        sure = "determine" if all(e.determined > most * e.records for e in empty) else "may determine"
        return Refusal(
            f"the exact statistics alone {sure} more than {percent(most)} of the {names}: the guarantee "
            "does not protect these",
            field="protection.most_determined",
            expected="exact statistics that leave almost every record open",
            hint="Publish less exactly: match on less, hold less, or declare fewer invariants; a dry run "
            "shows the numbers. Or accept it in writing: --override determined, with who and why (release "
            "run), or --accept-determined WHY (swap run, topdown run).",
        )

    def require(self, most: Fraction = MOST_DETERMINED) -> None:
        """Refuse statistics that leave too little to protect."""
        refusal = self.refusal(most)
        if refusal is not None:
            raise refusal


class TwoTables(NamedTuple):
    """Two exact tables of every stratum: their cells, cells with a single record, and what they determine."""

    held_cells: int
    held_alone: int
    moved_cells: int
    moved_alone: int
    determined: int


def two_tables(strata: Codes, held: NDArray[Any], moved: NDArray[Any]) -> TwoTables:
    """Count two tables of every stratum, and the records that they determine together.

    Guarantee
        A cell (r, c) of a stratum of n records holds at least max(0, n_r + n_c - n) of them, some data set
        attains this, and the sum over all cells is returned. A term is positive only if n_r or n_c exceeds
        n/2, so one of the two is the largest of the stratum: the work is linear in the records.
    Reference
        Frechet 1940; the bounds of a two-way table with given margins are sharp (Dobra and Fienberg 2000).

    Examples
    --------
    >>> two_tables(Codes(np.zeros(3, dtype=int), 1), np.array([7, 7, 8]), np.array([1, 1, 2])).determined
    1
    """
    order, offsets = in_groups(strata)
    threads = os.cpu_count() or 1 if strata.values.size >= PARALLEL else 1
    cuts = np.searchsorted(offsets, [strata.values.size * i // threads for i in range(1, threads)])
    ranges = list(itertools.pairwise([0, *cuts.tolist(), strata.count]))

    def count(part: tuple[int, int]) -> NDArray[np.int64]:
        first, last = part
        largest = int(np.diff(offsets[first : last + 1]).max(initial=0))
        slots = 1 << (2 * largest).bit_length()
        scratch = [np.zeros(size, dtype=np.int64) for size in (slots, slots, largest, largest, largest)]
        found: NDArray[np.int64] = count_two_tables(order, offsets, first, last, held, moved, tuple(scratch))
        return found

    with ThreadPoolExecutor(threads) as pool:
        return TwoTables(*np.sum(list(pool.map(count, ranges)), axis=0).tolist())


def alone(table: Codes) -> int:
    """How many cells of a table hold a single record."""
    return int((np.bincount(table.values, minlength=table.count) == 1).sum())


def percent(share: Fraction) -> str:
    """A share in per cent with two places, rounded up."""
    hundredths = math.ceil(share * 10_000)
    return f"{hundredths / 100:.2f}%" if hundredths % 100 else f"{hundredths // 100}%"
