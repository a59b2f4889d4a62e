"""Gaming audit: the same mechanism, a smaller number; which block moved.

Section 4.3 of the thesis lists the ways in which a nominal budget can be cut without adding any
protection. They are legitimate when disclosed; this audit discloses them.
"""

from __future__ import annotations

from dataclasses import dataclass

from stirred.spec.blocks.output_premetric import Coarsened
from stirred.spec.order.comparison import Order, compare
from stirred.spec.order.normalisation import binds_nothing
from stirred.spec.specification import Specification

_MANOEUVRE = {
    "domain": "the domain changed: other data sets, or another stage of their life, count",
    "multiverse": "the invariants changed, and with them which pairs of data sets are protected",
    "input_premetric": "the protection unit or the distance changed: another change counts as one",
    "guarantee": "the guarantee became vacuous: every mechanism keeps it, and it protects nothing",
    "output_premetric": "another measure of change was chosen",
    "event_algebra": "fewer events are looked at",
    "parametrisation": "the number is stated in another currency (rho against rho squared)",
    "assumptions": "more is assumed",
}


@dataclass(frozen=True)
class Move:
    """A block that differs between two specifications of one mechanism."""

    block: str
    before: str
    after: str
    manoeuvre: str
    direction: str


@dataclass(frozen=True)
class GamingAudit:
    """What moved between two specifications of the same mechanism."""

    moves: tuple[Move, ...]
    before: str
    after: str

    def sentence(self) -> str:
        """The audit in words."""
        if not self.moves:
            return f"No building block moved; the budget went from {self.before} to {self.after}."
        blocks = ", ".join(move.block.replace("_", " ") for move in self.moves)
        return (
            f"Mechanism unchanged; the nominal budget moved from {self.before} to {self.after} because "
            f"of: {blocks}."
        )


def gaming_audit(before: Specification, after: Specification) -> GamingAudit:
    """Name the blocks that moved between two specifications of one mechanism."""
    verdicts = {b.block: b for b in compare(before, after).blocks}
    moves = []
    for block in ("domain", "multiverse", "input_premetric", "output_premetric"):
        one, two = getattr(before, block), getattr(after, block)
        if one == two:
            continue
        order = verdicts[block].order.reversed if block in verdicts else Order.UNDECIDED
        name = block
        if isinstance(two, Coarsened) and not isinstance(one, Coarsened):
            name = "event_algebra"
        moves.append(Move(name, _text(one), _text(two), _told(name, order), str(order)))
    if before.budget.parametrisation != after.budget.parametrisation:
        units = "equivalent" if before.budget.same_units(after.budget) else "incomparable"
        moves.append(
            Move(
                "parametrisation",
                before.budget.parametrisation,
                after.budget.parametrisation,
                _MANOEUVRE["parametrisation"],
                units,
            )
        )
    if binds_nothing(after) and not binds_nothing(before):
        moves.append(Move("guarantee", "binds", "binds nothing", _MANOEUVRE["guarantee"], str(Order.WEAKER)))
    if set(after.assumptions) - set(before.assumptions):
        added = "; ".join(a for a in after.assumptions if a not in before.assumptions)
        moves.append(Move("assumptions", "", added, _MANOEUVRE["assumptions"], str(Order.WEAKER)))
    return GamingAudit(tuple(moves), str(before.budget), str(after.budget))


def _told(block: str, order: Order) -> str:
    """What moved, and whether that alone weakens or strengthens the guarantee."""
    effect = {
        Order.WEAKER: "; this alone weakens the guarantee and can lower the number",
        Order.STRONGER: "; this alone strengthens the guarantee and can raise the number",
    }
    return _MANOEUVRE[block] + effect.get(order, "")


def _text(block: object) -> str:
    meaning = getattr(block, "sentence", None)
    if meaning is not None:
        return str(meaning())
    return f"{getattr(block, 'name', '')} ({getattr(block, 'stage', '')})"
