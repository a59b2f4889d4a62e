"""Distances that count the records in which two data sets differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, ClassVar, Literal

from stirred.spec.arithmetic.exact import INFINITY, Exact
from stirred.spec.blocks.input_premetric.premetric import (
    ADDED,
    INSERTED,
    REPLACED,
    REPLACED_IN_PLACE,
    Change,
    Premetric,
    data_sets,
    short,
)
from stirred.spec.blocks.kept import Kept


class RecordDistance(Premetric):
    """A number of records; ``larger`` lists the distances d' that are known to have l d <= d', and why."""

    label: ClassVar[str]
    told: ClassVar[str]
    one: ClassVar[Change]
    larger: ClassVar[tuple[tuple[type[Premetric], Fraction, str], ...]] = ()

    @property
    def symbol(self) -> str:
        return f"d_{self.label}^{short(self.unit)}"

    def sentence(self) -> str:
        record = self.unit if self.unit.endswith("record") else f"{self.unit} record"
        return self.told.format(record)

    @property
    def change(self) -> Change:
        return self.one

    def bounded_by(self, larger: Premetric) -> tuple[Fraction, str] | None:
        """By its own neighbours, and by the distances of its class."""
        if larger.sharpened == self:
            return Fraction(1), "only neighbours keep a finite distance"
        found = ((lower, why) for kind, lower, why in self.larger if isinstance(larger, kind))
        return next(found, None)


class Hamming(RecordDistance):
    """Number of positions at which two vectors of one length differ; infinite across lengths."""

    label = "Ham"
    told = "one {} is replaced in its place (the order and number are known)"
    one = REPLACED_IN_PLACE

    kind: Literal["hamming"] = "hamming"
    unit: str

    def distance(self, x: Any, y: Any) -> Exact:
        """Positions that differ."""
        x, y = data_sets(x, y)
        if len(x) != len(y):
            return INFINITY
        return Exact.of(sum(a != b for a, b in zip(x, y, strict=True)))

    def separation(self, kept: Kept) -> Exact:
        """One, or two where one replaced record would be the same record."""
        return Exact.of(2 if kept.record(self.unit) else 1)


class HammingUnordered(RecordDistance):
    """Half the symmetric multiset difference of two data sets of one size; infinite across sizes.

    On ordered vectors it is a pseudo-metric: a permutation is at distance zero.
    """

    label = "HamS"
    told = "one {} is replaced (the number of records is known)"
    one = REPLACED
    larger = ((Hamming, Fraction(1), "order only adds differences (A.4 of the thesis)"),)

    kind: Literal["hamming-unordered"] = "hamming-unordered"
    unit: str

    def distance(self, x: Any, y: Any) -> Exact:
        """Records to replace."""
        x, y = data_sets(x, y)
        return INFINITY if len(x) != len(y) else Exact.of(_multiset_difference(x, y)) / 2

    def separation(self, kept: Kept) -> Exact:
        """One, or two where one replaced record would be the same record."""
        return Exact.of(2 if kept.record(self.unit) else 1)


class EditDistance(RecordDistance):
    """Fewest deletions and insertions that turn one vector into the other."""

    label = "edit"
    told = "one {} is inserted into or deleted from the sequence"
    one = INSERTED

    kind: Literal["edit"] = "edit"
    unit: str

    def distance(self, x: Any, y: Any) -> Exact:
        """|x| + |y| - 2 LCS(x, y)."""
        x, y = data_sets(x, y)
        row = [0] * (len(y) + 1)
        for a in x:
            diagonal = 0
            for j, b in enumerate(y):
                above = row[j + 1]
                row[j + 1] = diagonal + 1 if a == b else max(above, row[j])
                diagonal = above
        return Exact.of(len(x) + len(y) - 2 * row[-1])

    def separation(self, kept: Kept) -> Exact:
        """One, or two where the number of records is fixed: it is even then."""
        return Exact.of(2 if kept.total(self.unit) else 1)


class SymmetricDifference(RecordDistance):
    """Number of records to add and remove."""

    label = "SymDiff"
    told = "one {} is added or removed"
    one = ADDED
    larger = (
        (
            HammingUnordered,
            Fraction(1, 2),
            "half the symmetric difference where sizes agree, infinite where they do not",
        ),
        (EditDistance, Fraction(1), "order only adds differences (A.4)"),
    )

    kind: Literal["symmetric-difference"] = "symmetric-difference"
    unit: str

    def distance(self, x: Any, y: Any) -> Exact:
        """Size of the symmetric multiset difference."""
        return Exact.of(_multiset_difference(*data_sets(x, y)))

    def separation(self, kept: Kept) -> Exact:
        """One, or twice that of replacements where the number of records is fixed."""
        if not kept.total(self.unit):
            return Exact.of(1)
        return Exact.of(4 if kept.record(self.unit) else 2)


def _multiset_difference(x: Iterable[Any], y: Iterable[Any]) -> int:
    first, second = Counter(x), Counter(y)
    return (first - second).total() + (second - first).total()
