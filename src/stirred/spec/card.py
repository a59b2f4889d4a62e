"""The spec card: a specification in plain language, for people who decide and people who are counted."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from stirred.interchange import Tabular
from stirred.spec.blocks.input_premetric import Hamming, HammingUnordered
from stirred.spec.blocks.multiverse import declared_invariants
from stirred.spec.order.normalisation import binds_nothing

if TYPE_CHECKING:
    import polars as pl

    from stirred.spec.specification import Specification

_STANDING = {
    "proved": "Proved: a theorem gives this guarantee for the mechanism.",
    "enumerated": "Computed by enumerating every case of a small universe.",
    "published": "As published by others; not derived here.",
    "uncertified": "UNCERTIFIED: no proof stands behind this guarantee.",
    "unstated": "Not stated.",
}


@dataclass(frozen=True)
class Line:
    """A question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True)
class Card(Tabular):
    """The five questions, and what is not protected."""

    statement: str
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, specification: Specification) -> Card:
        """Write the card of a specification."""
        lines = (
            Line("Who is eligible for protection?", _eligible(specification)),
            Line("What is published exactly?", _exact(specification)),
            Line("Where does protection extend to?", _extent(specification)),
            Line("What is the protection unit?", _unit(specification)),
            Line("How is a change of output measured?", _measure(specification)),
            Line("How much protection loss is allowed?", _amount(specification)),
            Line("What does that number mean here?", meaning_of(specification)),
            Line("What is not protected?", _unprotected(specification)),
            Line("What does it rest on?", _standing(specification)),
        )
        return cls(str(specification), lines)

    def __str__(self) -> str:
        parts = [self.statement, ""]
        for line in self.lines:
            parts += [line.question, f"    {line.answer}", ""]
        return "\n".join(parts)

    def to_polars(self) -> pl.DataFrame:
        """Questions and answers."""
        import polars as pl

        return pl.DataFrame(lines_of(self))

    def to_markdown(self) -> str:
        """The card as a Markdown list."""
        body = "\n".join(f"- **{line.question}** {line.answer}" for line in self.lines)
        return f"**{self.statement}**\n\n{body}\n"


def _eligible(s: Specification) -> str:
    what = s.domain.meaning or f"the data sets of {s.domain.name}"
    return f"{_capital(what)}, as they stand at this stage of their life: {s.domain.stage}."


def _exact(s: Specification) -> str:
    invariants = declared_invariants(s.multiverse)
    if invariants is None:
        return f"Whatever is constant on each universe: {s.multiverse.sentence()}."
    if not invariants:
        return "Nothing: no statistic is kept exact by this guarantee."
    listed = "; ".join(f"({i}) {c.sentence()}" for i, c in enumerate(invariants, 1))
    return (
        f"{listed}. These may be published without noise and cost nothing against the budget, "
        "because the budget does not cover them."
    )


def _extent(s: Specification) -> str:
    invariants = declared_invariants(s.multiverse)
    size = " Data sets of different size are not compared." if _sizes_known(s.input_premetric) else ""
    if invariants == ():
        return f"To every pair of possible data sets.{size}"
    if invariants is None:
        return f"Only to {s.multiverse.sentence()}.{size}"
    return (
        "Only to pairs of data sets that agree on everything that is published exactly: what is hidden is "
        "which one of all the data sets with these exact statistics is the true one. "
        f"Someone whose answer could be worked out from the exact statistics is not protected by it.{size}"
    )


def _sizes_known(premetric: Any) -> bool:
    """Whether the distance is infinite across sizes, a hidden invariant (A.3.3 of the thesis)."""
    replaces = getattr(premetric, "relation", "").startswith("replace")
    return replaces or isinstance(premetric, Hamming | HammingUnordered)


def _unit(s: Specification) -> str:
    return f"The {s.input_premetric.unit}. A change of one unit means that {s.input_premetric.sentence()}."


def _measure(s: Specification) -> str:
    return f"{_capital(s.output_premetric.sentence())} ({s.output_premetric.symbol})."


def _amount(s: Specification) -> str:
    text = f"{s.budget}"
    if not s.budget.curve and s.budget.is_constant and s.budget.amount.rational is None:
        text += f" (exactly {s.budget.amount}, shown rounded up)"
    if s.budget.rule:
        return f"{text}. Policy: {s.budget.rule}"
    return text + "."


def meaning_of(s: Specification) -> str:
    """What the number of a budget means, in a sentence or two."""
    return f"{_reading(s)} {_NOMINAL}"


_NOMINAL = (
    "The number is nominal: it is relative to the exact statistics, the unit and the measure above, "
    "and cannot be compared with a number from another kind of guarantee."
)


def _reading(s: Specification) -> str:
    if s.budget.curve or not s.budget.is_constant:
        return "It differs from case to case; see the budget."
    if s.budget.amount.is_infinite:
        return "Nothing is promised: the budget is infinite."
    if binds_nothing(s):
        return (
            "Nothing is promised: no two data sets are compared, so that every mechanism keeps this "
            "guarantee and nothing is protected."
        )
    alike = "" if declared_invariants(s.multiverse) == () else " and agree on the exact statistics"
    alike += "" if s.budget.policy is None else " of this release"
    return s.output_premetric.allows(s.budget.linear(), s.input_premetric.unit, alike, _further(s))


def _further(s: Specification) -> str:
    if s.input_premetric.flags.neighbour_valued:
        return ""
    return f", and again by as much for every further {s.input_premetric.unit} in which they differ"


def _unprotected(s: Specification) -> str:
    items = []
    if declared_invariants(s.multiverse) != ():
        items.append("whatever follows from the exact statistics alone")
    if s.input_premetric.flags.neighbour_valued:
        items.append(f"changes of more than one {s.input_premetric.unit}")
    else:
        growth = "k² times" if s.budget.parametrisation == "rho_squared" else "k times"
        items.append(f"groups as one: k units together have {growth} the budget of one")
    items.append(f"anything that happened to the data before the stage '{s.domain.stage}'")
    items.append("what can be inferred about a person from others, without their own data")
    if s.output_premetric.unseen:
        items.append(s.output_premetric.unseen)
    return _capital("; ".join(items)) + "."


def _standing(s: Specification) -> str:
    text = _STANDING[s.standing]
    if s.assumptions:
        text += " Assumes: " + "; ".join(s.assumptions) + "."
    return text


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def lines_of(card: Card) -> list[dict[str, str]]:
    """The card as plain data."""
    return [asdict(line) for line in card.lines]
