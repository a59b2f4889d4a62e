"""Catalogue: the flavors of the literature as data, each with its citation and what it changed.

Entries are read from ``flavors.json`` and, for the 2020 Census and its counterfactuals, ``census_2020.json``.
Users add their own from a file of the same form.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stirred.documents import read_text
from stirred.errors import InputError, UnknownName
from stirred.interchange import Tabular
from stirred.spec.blocks.block import BLOCKS
from stirred.spec.blocks.budget import Budget
from stirred.spec.literature.entry import Entry, read_entries
from stirred.spec.specification import Flavor, Specification

if TYPE_CHECKING:
    import polars as pl


class Catalogue(Tabular):
    """A searchable list of entries.

    Examples
    --------
    >>> from stirred.spec import catalogue
    >>> print(catalogue.specification("tda-dhc").budget)
    ρ² = 15.29
    """

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

    def flavor(self, name: str) -> Flavor:
        """The flavor of an entry."""
        return self[name].flavor()

    def specification(self, name: str, budget: Budget | None = None) -> Specification:
        """The specification of an entry, with its own budget or the one given."""
        return self[name].specification(budget)

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


def _shipped() -> Catalogue:
    place = resources.files("stirred.spec.literature")
    texts = [(place / name).read_text(encoding="utf-8") for name in ("flavors.json", "census_2020.json")]
    return Catalogue([entry for text in texts for entry in read_entries(text)])


catalogue = _shipped()
