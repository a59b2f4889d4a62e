"""The section of a plan that swaps: roles of the columns, the rate or the loss to aim at, and tables."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from stirred.places import clash
from stirred.release.numbers import Number, Provenance, Rate
from stirred.spec import Block, Schema


class SwapSection(Block):
    """Permutation swapping.

    ``codebook`` lists the levels of every column that has a role; ``provenance`` says where they come from.
    ``nesting`` has pairs of places, the finer first; an empty list says that nothing is nested. Tables are
    written ``tenure * county``. Of persons the columns of the codebook are published, or ``hold_persons``.
    ``by`` names a column: one file of households is written for each of its values.
    """

    kind: Literal["swap"] = "swap"
    households: str
    persons: str | None = None
    id: str | None = None
    match: tuple[str, ...] = ()
    swap: tuple[str, ...]
    hold: tuple[str, ...] | None = None
    hold_persons: tuple[str, ...] | None = None
    rate: Rate | None = None
    target_epsilon: Number | None = None
    unit: str = "household"
    nesting: tuple[tuple[str, str], ...] | None = None
    loss: Literal["theorem-1", "tighter"] = "theorem-1"
    imputed: str | None = None
    missing: Literal["error", "level"] = "error"
    allow_infinite_loss: bool = False
    codebook: Schema | None = None
    provenance: Provenance = "public"
    tables: tuple[str, ...] = ()
    by: str | None = None

    @model_validator(mode="after")
    def _one_aim(self) -> Self:
        if (self.rate is None) == (self.target_epsilon is None):
            raise ValueError("exactly one of rate and target_epsilon")
        if self.target_epsilon is not None and self.loss == "tighter":
            raise ValueError("a rate, where the tighter loss is asked for")
        return self

    @model_validator(mode="after")
    def _own_files(self) -> Self:
        if clash(table_file(table) for table in self.tables) is not None:
            raise ValueError("tables that are all different, also as names of files")
        return self

    @property
    def roles(self) -> tuple[str, ...]:
        """Every column that has a role."""
        return (*self.match, *self.swap, *(self.hold or ()))


def parts_of(table: str) -> tuple[str, ...]:
    """The variables of a table that is written ``tenure * county``."""
    return tuple(part.strip() for part in table.split("*"))


def table_file(table: str) -> str:
    """The name that a table gives its files."""
    return "-".join(parts_of(table))


STARTER = """\
mechanism:
  kind: swap
  households: households.parquet
  # persons: persons.parquet        # follow their household, linked by id
  id: household_id
  match: [county, size]             # records are exchanged only if they agree on these
  swap: [tract, block]              # these travel, together
  hold: [tenure]                    # these stay with the record; what is not named is not published
  nesting: [[block, tract]]         # places that lie in others, the finer first; [] if there are none
  rate: 1/20                        # or target_epsilon: 12
  provenance: public                # where levels and roles come from; never from the data
  tables: [tract * tenure]
"""
