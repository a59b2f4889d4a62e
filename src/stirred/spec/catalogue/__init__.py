"""Catalogue: the flavors of the literature as data, each with its citation and what it changed.

Entries are read from ``flavors.json``; the 2020 Census and its counterfactuals come from
``stirred.spec.census``. Users add their own from a file of the same form.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from stirred.documents import parse_json, read_text
from stirred.errors import AccidentalMultiverse, InputError, MissingBlock, NotComputable, UnknownName
from stirred.interchange import Tabular
from stirred.spec.block import BLOCKS, Block
from stirred.spec.budget import Budget
from stirred.spec.specification import Flavor, Specification, Standing, check_version

if TYPE_CHECKING:
    import polars as pl

BlockName = Literal["domain", "multiverse", "input_premetric", "output_premetric", "budget"]
Status = Literal["flavor", "specification", "family", "accidental", "not a flavor"]


class Entry(Block):
    """One definition of the literature.

    ``flavor``: all four blocks are given. ``specification``: the budget too. ``family``: the definition
    leaves blocks free, and the given ones are an instance. ``accidental``: its multiverse is pinned to the
    realised data, so it can be described but not promised. ``not a flavor``: it does not fit four blocks.
    """

    id: str
    name: str
    citation: str
    status: Status
    changed: str
    blocks_changed: tuple[BlockName, ...] = ()
    provenance: Literal["stated", "encoded", "user"] = "encoded"
    free: tuple[str, ...] = ()
    domain: dict[str, Any] | None = None
    multiverse: dict[str, Any] | None = None
    input_premetric: dict[str, Any] | None = None
    output_premetric: dict[str, Any] | None = None
    budget: dict[str, Any] | None = None
    assumptions: tuple[str, ...] = ()
    standing: Standing = "published"

    @classmethod
    def of_specification(cls, specification: Specification, **fields: Any) -> Entry:
        """An entry for a specification that was built in code."""
        blocks = specification.record()
        names = ("domain", "multiverse", "input_premetric", "output_premetric", "budget")
        return cls(
            status="specification",
            assumptions=specification.assumptions,
            standing=specification.standing,
            **{name: blocks[name] for name in names},
            **fields,
        )

    def flavor(self) -> Flavor:
        """The four blocks as an object."""
        if self.status == "accidental":
            raise AccidentalMultiverse(
                f"{self.name} is pinned to the data that happen to be observed",
                field=f"catalogue.{self.id}.multiverse",
                expected="a multiverse that is a function, the same for every possible data set",
                hint="It can be described, not promised: no release may carry it as its guarantee.",
            )
        if self.status == "not a flavor":
            raise NotComputable(
                f"{self.name} is not a flavor of four building blocks",
                field=f"catalogue.{self.id}",
                expected="an entry with all four blocks",
                hint=self.changed,
            )
        blocks = (self.domain, self.multiverse, self.input_premetric, self.output_premetric)
        names = ("domain", "multiverse", "input_premetric", "output_premetric")
        return Flavor.read({n: b for n, b in zip(names, blocks, strict=True) if b is not None})

    def specification(self, budget: Budget | None = None) -> Specification:
        """The flavor with a budget: the entry's own, or the one given."""
        chosen = budget or (Budget.read(self.budget) if self.budget is not None else None)
        if chosen is None:
            raise MissingBlock(
                f"{self.name} is a flavor without a budget",
                field="budget",
                expected="an amount with its parametrisation",
                hint="Give one, for example epsilon=1 (--budget epsilon=1 on the command line).",
            )
        return self.flavor().with_budget(chosen, assumptions=self.assumptions, standing=self.standing)

    def matches(self, words: str) -> bool:
        """Whether every word occurs in the entry's texts or blocks."""
        haystack = json.dumps(self.model_dump(mode="json"), ensure_ascii=False).lower()
        return all(word in haystack for word in words.lower().split())


class Catalogue(Tabular):
    """A searchable list of entries."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            if entry.id in self._entries:
                raise InputError(
                    f"two catalogue entries are called {entry.id}",
                    field="id",
                    expected="a new name for every entry",
                    hint="Rename the entry; published entries are never replaced.",
                )
            self._entries[entry.id] = entry

    def __iter__(self) -> Any:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> Entry:
        if name in self._entries:
            return self._entries[name]
        near = difflib.get_close_matches(name, self._entries, 3, 0.5)
        raise UnknownName(
            "the catalogue has no entry of this name",
            field="name",
            expected="the name of a catalogue entry (see `stirred spec catalogue`)",
            hint=f"Did you mean {' or '.join(near)}?" if near else "Search with --search.",
        )

    def search(self, words: str = "", block: str = "") -> Catalogue:
        """Entries that contain all words and, if asked, changed the given block."""
        if block and block not in BLOCKS:
            raise UnknownName(
                "this is not a building block",
                field="block",
                expected="one of " + ", ".join(BLOCKS),
                hint="Leave it out to search all entries.",
            )
        hits = (e for e in self if e.matches(words) and (not block or block in e.blocks_changed))
        return Catalogue(hits)

    def extended(self, path: str | Path) -> Catalogue:
        """All entries here, with the entries of a user's file."""
        text = read_text(Path(path), "catalogue file", "catalogue")
        return Catalogue([*self, *read_entries(text, user=True)])

    def to_polars(self) -> pl.DataFrame:
        """One row an entry."""
        import polars as pl

        return pl.DataFrame(
            [
                {
                    "id": e.id,
                    "name": e.name,
                    "status": e.status,
                    "changed": e.changed,
                    "blocks_changed": ", ".join(e.blocks_changed),
                    "citation": e.citation,
                }
                for e in self
            ]
        )

    def _repr_html_(self) -> str:
        table: str = self.to_polars()._repr_html_()
        return table


def read_entries(text: str, *, user: bool = False) -> tuple[Entry, ...]:
    """Read a catalogue file."""
    body = parse_json(text, "catalogue file")
    if not isinstance(body, dict) or not isinstance(body.get("entries"), list):
        raise InputError(
            "this is not a catalogue file",
            field="file",
            expected="a JSON object with schema_version, type and entries",
            hint="See the page on formats in the documentation.",
        )
    check_version(body, "catalogue")
    entries = tuple(Entry.read(record) for record in body["entries"])
    if user:
        return tuple(entry.model_copy(update={"provenance": "user"}) for entry in entries)
    return entries


@cache
def catalogue() -> Catalogue:
    """The catalogue that ships with stirred."""
    from stirred.spec import census

    text = resources.files(__name__).joinpath("flavors.json").read_text(encoding="utf-8")
    return Catalogue([*read_entries(text), *census.entries()])


def entry(name: str) -> Entry:
    """One entry by its name."""
    return catalogue()[name]


def flavor(name: str) -> Flavor:
    """The flavor of an entry."""
    return entry(name).flavor()


def specification(name: str, budget: Budget | None = None) -> Specification:
    """The specification of an entry, with its own budget or the one given."""
    return entry(name).specification(budget)
