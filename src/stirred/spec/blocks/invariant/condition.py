"""Conditions: the records that a statistic is restricted to, and its qualifiers in words."""

from __future__ import annotations

from stirred.spec.blocks.block import Block
from stirred.spec.blocks.schema import Level


class Condition(Block):
    """Restricts a statistic to records whose attribute has one of these levels."""

    attribute: str
    levels: tuple[Level, ...]

    def sentence(self) -> str:
        """In words."""
        return f"{words(self.attribute)} in {{{', '.join(map(str, self.levels))}}}"


def qualifiers(by: tuple[str, ...], where: tuple[Condition, ...]) -> str:
    """Of which records, and in which cells."""
    text = f" with {' and '.join(c.sentence() for c in where)}" if where else ""
    if not by:
        return text + " in total"
    if len(by) == 1:
        return text + f" in each {words(by[0])}"
    names = [words(name) for name in by]
    return text + f" in each combination of {', '.join(names[:-1])} and {names[-1]}"


def words(name: str) -> str:
    """The name of an attribute or unit, in words."""
    return name.replace("_", " ")


def plural(unit: str) -> str:
    """Several units, in words."""
    name = words(unit)
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return name[:-1] + "ies"
    return name if name.endswith("s") else name + "s"
