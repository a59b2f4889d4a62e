"""One definition of the literature as data, with its citation and what it changed."""

from __future__ import annotations

import json
from typing import Any, Literal

from stirred.documents import parse_json
from stirred.errors import AccidentalMultiverse, MissingBlock, NotComputable
from stirred.spec.blocks.block import BLOCKS, Block
from stirred.spec.blocks.budget import Budget
from stirred.spec.specification import Flavor, Specification, Standing, document

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
        return cls(
            status="specification",
            assumptions=specification.assumptions,
            standing=specification.standing,
            **{name: blocks[name] for name in BLOCKS},
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
        blocks = {name: getattr(self, name) for name in Flavor.model_fields}
        return Flavor.read({name: block for name, block in blocks.items() if block is not None})

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


def read_entries(text: str, *, user: bool = False) -> tuple[Entry, ...]:
    """Read a catalogue file."""
    body = parse_json(text, "catalogue file")
    listed = isinstance(body, dict) and isinstance(body.get("entries"), list)
    expected = "a JSON object with schema_version, type and entries"
    hint = "See the page on formats in the documentation."
    fields = document(body if listed else None, "catalogue", expected, hint)
    entries = tuple(Entry.read(record) for record in fields["entries"])
    if user:
        return tuple(entry.model_copy(update={"provenance": "user"}) for entry in entries)
    return entries
