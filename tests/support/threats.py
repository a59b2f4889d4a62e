"""What the tests of threats share."""

from __future__ import annotations

from typing import Any

import polars as pl

from stirred.data import Spine
from stirred.noise import TestSource
from stirred.spec import Count, Schema
from stirred.topdown import Allocation, Cells, Edit, Invariant, TopDown, Universe

PEOPLE = Schema.of(sex=("f", "m"), age=("child", "adult"))


LEVELS = ("county", "block")


BLOCKS = ("a", "b", "c", "d")


def spine() -> Spine:
    frame = pl.DataFrame({"county": ["1", "1", "2", "2"], "block": list(BLOCKS)})
    return Spine.from_columns(frame, LEVELS)


def county(rho_squared: object = 1) -> TopDown:
    """Persons by sex and age in four blocks of two counties; the counties' totals are invariant."""
    halves = {"county": "1/2", "block": "1/2"}
    shares = Allocation.of(Cells(PEOPLE), rho_squared, halves, {"total": "1/2", "detailed": "1/2"})
    fixed = [Invariant(count=Count(unit="person", by=("county",))), Edit(level="block", at_most=1000)]
    return TopDown(spine(), [Universe("person", PEOPLE, shares)], fixed)


def persons(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["block", "sex", "age"], orient="row")


BASE = [("a", "f", "adult")] * 7 + [("b", "m", "child")] * 5 + [("c", "f", "child")] * 9


X = persons(*BASE, ("d", "m", "adult"))  # the only man of block d, and its only inhabitant


TWIN = persons(*BASE, ("c", "f", "child"))  # he is gone; his county keeps its total


class Counted(TestSource):
    """A test source that keeps count of the words drawn from it and from all its descendants."""

    def __init__(self, seed: int, drawn: list[int] | None = None) -> None:
        super().__init__(seed)
        self.drawn = [] if drawn is None else drawn

    def words(self, count: int) -> Any:
        self.drawn.append(count)
        return super().words(count)

    def child(self, *path: int) -> Counted:
        made = super().child(*path)
        made.drawn = self.drawn
        return made
