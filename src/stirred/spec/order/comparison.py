"""Comparison of specifications: block by block, and overall, with the theorem used.

A is stronger than B when every mechanism that satisfies A satisfies B (Definition 2.4.9). Budgets are
ranked only within one flavor: across flavors they are in different currencies. Both are normalised first
(``normalisation``), so that one guarantee written in two ways is found equivalent. On finite
domains with D_Mult or D_NoR the answer is exact, by the normal form, and "not stronger" carries a witness.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from stirred.errors import NotComputable
from stirred.interchange import Tabular
from stirred.spec.arithmetic.exact import ZERO, Exact
from stirred.spec.arithmetic.extended import product, quotient
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.input_premetric import ONE, REPLACED, Premetric
from stirred.spec.blocks.multiverse import declared_invariants, invariant_units, refines
from stirred.spec.blocks.output_premetric import Coarsened, DensityRatio, Multiplicative, NormalisedRenyi
from stirred.spec.calculus.closed_form import rho_squared_of_pure
from stirred.spec.finite.mechanism import FiniteMechanism
from stirred.spec.order.bounds import bounds
from stirred.spec.order.normal_form import all_constraints, explicit_constraints
from stirred.spec.order.normalisation import binds_nothing, conditioned, normalised, with_plain_output
from stirred.spec.order.output_order import demands_more, linear_factor
from stirred.spec.order.policy_order import pointwise
from stirred.spec.order.separation import least_distance
from stirred.spec.order.witness import witness
from stirred.spec.specification import Specification

if TYPE_CHECKING:
    import polars as pl


LARGEST_EXACT = 64


class Order(StrEnum):
    """How the first compares with the second."""

    STRONGER = "stronger"
    WEAKER = "weaker"
    EQUIVALENT = "equivalent"
    INCOMPARABLE = "incomparable"
    UNDECIDED = "undecided"

    @property
    def reversed(self) -> Order:
        """The same verdict seen from the other side."""
        return {Order.STRONGER: Order.WEAKER, Order.WEAKER: Order.STRONGER}.get(self, self)


@dataclass(frozen=True)
class BlockVerdict:
    """How one block of the first specification compares with the same block of the second."""

    block: str
    order: Order
    reason: str
    theorem: str


@dataclass(frozen=True)
class NotStronger:
    """Why one specification does not imply the other: a pair, and a mechanism where one was built."""

    pair: tuple[Any, Any]
    reachable: Exact
    allowed: Exact
    mechanism: FiniteMechanism | None


@dataclass(frozen=True)
class Comparison(Tabular):
    """The verdict on two specifications."""

    first: Specification
    second: Specification
    overall: Order
    reason: str
    blocks: tuple[BlockVerdict, ...]
    exact: bool
    budgets_ranked: bool
    first_not_stronger: NotStronger | None = None
    second_not_stronger: NotStronger | None = None

    @property
    def flavor_order(self) -> Order:
        """How the flavors compare, whatever the budgets: every block must point the same way."""
        orders = {b.order for b in self.blocks if b.block != "budget"}
        if orders & {Order.INCOMPARABLE, Order.UNDECIDED}:
            return Order.INCOMPARABLE if Order.INCOMPARABLE in orders else Order.UNDECIDED
        return _order(Order.WEAKER not in orders, Order.STRONGER not in orders)

    @property
    def differing(self) -> tuple[str, ...]:
        """Names of the blocks that are not equivalent."""
        return tuple(b.block for b in self.blocks if b.order != Order.EQUIVALENT)

    @property
    def implied(self) -> bool | None:
        """Whether every mechanism of the first is one of the second; ``None`` where that is not decided."""
        if self.overall in {Order.STRONGER, Order.EQUIVALENT}:
            return True
        return None if self.refutation() is None else False

    def refutation(self) -> str | None:
        """Why the first does not imply the second, where that is known."""
        if self.first_not_stronger is not None:
            return "at some pair it allows a larger divergence (normal form, exact)"
        if self.overall in {Order.STRONGER, Order.EQUIVALENT}:
            return None
        if self.first.domain != self.second.domain:
            return self.reason
        return _refuted(normalised(self.first), normalised(self.second))

    def sentence(self) -> str:
        """The verdict in one or two sentences."""
        text = f"The first specification is {self.overall} to the second: {self.reason}."
        if self.overall in {Order.STRONGER, Order.WEAKER}:
            text = f"The first specification is {self.overall} than the second: {self.reason}."
        if self.overall == Order.INCOMPARABLE and self.flavor_order in {
            Order.STRONGER,
            Order.WEAKER,
        }:
            text += f" As flavors, at one and the same budget, the first would be {self.flavor_order}."
        if not self.budgets_ranked:
            text += (
                f" The budgets ({self.first.budget} and {self.second.budget}) are nominal, belong to "
                "different flavors, and are not ranked."
            )
        return text

    def to_polars(self) -> pl.DataFrame:
        """One row a block."""
        import polars as pl

        rows = [
            {"block": b.block, "order": str(b.order), "reason": b.reason, "theorem": b.theorem}
            for b in self.blocks
        ]
        return pl.DataFrame(rows)

    def _repr_html_(self) -> str:
        table: str = self.to_polars()._repr_html_()
        return f"<p>{self.sentence()}</p>{table}"


def compare(first: Specification, second: Specification) -> Comparison:
    """Compare two specifications block by block and overall.

    Examples
    --------
    >>> import stirred as st
    >>> one, two = (st.catalogue.specification("pure-dp", st.Budget.epsilon(e)) for e in (1, 2))
    >>> print(st.compare(one, two).overall)
    stronger
    """
    one, two = normalised(first), normalised(second)
    blocks = [_domains(first, second)]
    if blocks[0].order == Order.EQUIVALENT:
        blocks += [_multiverses(one, two), _input_premetrics(one, two), _output_premetrics(one, two)]
        blocks[1:] = [_explained(block, (first, one), (second, two)) for block in blocks[1:]]
    same_flavor = len(blocks) == 4 and all(b.order == Order.EQUIVALENT for b in blocks)
    blocks.append(_budgets(one, two, same_flavor))
    if blocks[0].order != Order.EQUIVALENT:
        return Comparison(
            first,
            second,
            Order.INCOMPARABLE,
            "the domains are different sets, so no mechanism has both as its domain",
            tuple(blocks),
            exact=False,
            budgets_ranked=False,
        )
    plain = with_plain_output(first), with_plain_output(second)
    if _decidable(*plain):
        verdict = _exactly(*plain, tuple(blocks), same_flavor)
    else:
        verdict = _by_theorems(one, two, tuple(blocks), same_flavor)
    return replace(verdict, first=first, second=second)


def _explained(block: BlockVerdict, *pairs: tuple[Specification, Specification]) -> BlockVerdict:
    """Say of blocks that were normalised what the verdict speaks of."""
    unchanged = all(getattr(a, block.block) == getattr(b, block.block) for a, b in pairs)
    if unchanged or pairs[0][0] == pairs[1][0]:
        return block
    finer = any(a.multiverse != b.multiverse for a, b in pairs)
    if finer and block.block != "output_premetric":
        return replace(block, reason=f"{_RESTATED}; {block.reason}")
    return replace(block, reason=_SAME_GUARANTEE[block.block]) if block.order == Order.EQUIVALENT else block


_RESTATED = (
    "neighbours never leave a finer table than the invariants, and are restated as distances under that table"
)


_SAME_GUARANTEE = {
    "input_premetric": "chains of neighbours inside the universes reach every distance",
    "output_premetric": "two names of one output premetric",
}


def _domains(first: Specification, second: Specification) -> BlockVerdict:
    if first.domain == second.domain:
        return BlockVerdict("domain", Order.EQUIVALENT, "the same domain", "Remark 2.4.7")
    text = f"{first.domain.name} ({first.domain.stage}) and {second.domain.name} ({second.domain.stage})"
    return BlockVerdict("domain", Order.INCOMPARABLE, f"different domains: {text}", "Remark 2.4.7")


def _multiverses(first: Specification, second: Specification) -> BlockVerdict:
    theorem = "Proposition 3 (Bailie, Gong, Meng); 2.4.13 of the thesis"
    units = _units(first, second)
    forward = refines(conditioned(first), second.multiverse, first.domain, units)
    backward = refines(conditioned(second), first.multiverse, first.domain, units)
    if forward is None or backward is None:
        order, reason = Order.UNDECIDED, "at least one multiverse is only described"
    elif forward and backward:
        same = first.multiverse == second.multiverse
        order, reason = Order.EQUIVALENT, "the same universes" + ("" if same else ", given the distances")
    elif forward:
        order, reason = Order.WEAKER, "more is invariant in the first, so fewer pairs are protected"
    elif backward:
        order, reason = Order.STRONGER, "less is invariant in the first, so more pairs are protected"
    else:
        order, reason = Order.INCOMPARABLE, "the invariants of neither contain those of the other"
    return BlockVerdict("multiverse", order, reason, theorem)


def _input_premetrics(first: Specification, second: Specification) -> BlockVerdict:
    theorem = "Proposition 2.4.15"
    found = bounds(first.input_premetric, second.input_premetric, first.domain)
    names = f"{first.input_premetric.symbol} and {second.input_premetric.symbol}"
    if found is None:
        units = {first.input_premetric.unit, second.input_premetric.unit}
        reason = (
            f"the protection units differ ({' and '.join(sorted(units))}) and no bound between "
            f"{names} holds without assumptions on how units contain each other"
            if len(units) > 1
            else f"no bound between {names} is known"
        )
        order = Order.INCOMPARABLE if len(units) > 1 else Order.UNDECIDED
        return BlockVerdict("input_premetric", order, reason, theorem)
    order = _order(found.lower >= ONE, found.upper <= ONE)
    if order == Order.EQUIVALENT and first.input_premetric.unit != second.input_premetric.unit:
        reason = f"{names} agree on this domain, but the units have different names"
        return BlockVerdict("input_premetric", Order.UNDECIDED, reason, theorem)
    return BlockVerdict("input_premetric", order, f"{names}: {found.reason}", theorem)


def _output_premetrics(first: Specification, second: Specification) -> BlockVerdict:
    a, b = first.output_premetric, second.output_premetric
    theorem = "section 2.4.5 of the thesis; Bun and Steinke 2016"
    if a == b:
        return BlockVerdict("output_premetric", Order.EQUIVALENT, f"both {a.symbol}", theorem)
    if isinstance(a, Coarsened) or isinstance(b, Coarsened):
        reason = "one of them looks at fewer events: a coarsened event algebra only weakens (R23)"
        factors = linear_factor(a, b) is not None, linear_factor(b, a) is not None
        order = _order(*factors) if any(factors) else Order.UNDECIDED
        return BlockVerdict("output_premetric", order, reason, "R23")
    forward, backward = demands_more(a, b), demands_more(b, a)
    if forward:
        order, reason = Order.STRONGER, f"{a.symbol} demands more than {b.symbol}"
    elif backward:
        order, reason = Order.WEAKER, f"{b.symbol} demands more than {a.symbol}"
    else:
        order, reason = Order.UNDECIDED, f"no order between {a.symbol} and {b.symbol} is known"
    return BlockVerdict("output_premetric", order, reason, theorem)


def _budgets(first: Specification, second: Specification, same_flavor: bool) -> BlockVerdict:
    theorem = "section 2.4.6 of the thesis"
    if not same_flavor:
        reason = "not ranked: the flavors differ, so the numbers are in different currencies"
        return BlockVerdict("budget", Order.INCOMPARABLE, reason, theorem)
    order = _pointwise(first, second)
    words = {
        Order.STRONGER: "smaller",
        Order.WEAKER: "larger",
        Order.EQUIVALENT: "equal",
        Order.INCOMPARABLE: "smaller in some universes and larger in others",
        Order.UNDECIDED: "not known to be smaller or larger in every universe",
    }
    return BlockVerdict("budget", order, f"the first budget is {words[order]}", theorem)


def _pointwise(first: Specification, second: Specification) -> Order:
    a, b = first.budget, second.budget
    if a.curve or b.curve:
        return Order.EQUIVALENT if a == b else Order.UNDECIDED
    if _by_policy(first, second):
        found = pointwise(a, b, first.domain)
        return Order.UNDECIDED if found is None else _POINTWISE[found]
    if not (a.is_constant and b.is_constant) and first.multiverse != second.multiverse:
        return Order.UNDECIDED
    indices = range(max(len(a.amounts), len(b.amounts)))
    pairs = [(a.linear(i), b.linear(i)) for i in indices]
    below, above = all(x <= y for x, y in pairs), all(x >= y for x, y in pairs)
    return _order(below, above)


def _by_policy(*specifications: Specification) -> bool:
    return any(s.budget.policy is not None for s in specifications)


_POINTWISE = {
    "equal": Order.EQUIVALENT,
    "below": Order.STRONGER,
    "above": Order.WEAKER,
    "crossing": Order.INCOMPARABLE,
}


def _order(forward: bool, backward: bool) -> Order:
    return {
        (True, True): Order.EQUIVALENT,
        (True, False): Order.STRONGER,
        (False, True): Order.WEAKER,
        (False, False): Order.INCOMPARABLE,
    }[forward, backward]


def _decidable(first: Specification, second: Specification) -> bool:
    exact = isinstance(first.output_premetric, Multiplicative | NormalisedRenyi)
    same = first.output_premetric == second.output_premetric and not _by_policy(first, second)
    if not (exact and same and first.domain.is_finite) or len(_units(first, second)) > 1:
        return False
    with contextlib.suppress(NotComputable):
        small = len(first.domain.enumerate()) <= LARGEST_EXACT
        return small and first.is_finite and second.is_finite
    return False


def _units(first: Specification, second: Specification) -> frozenset[str]:
    """The units whose records the two read: a listed domain has records of one."""
    return frozenset().union(
        *(s.input_premetric.record_units | invariant_units(s.multiverse) for s in (first, second))
    )


def _exactly(
    first: Specification, second: Specification, blocks: tuple[BlockVerdict, ...], same_flavor: bool
) -> Comparison:
    one, two = not_stronger(first, second), not_stronger(second, first)
    overall = _order(one is None, two is None)
    reason = {
        Order.STRONGER: "every constraint of the second is implied by the first, and not the reverse",
        Order.WEAKER: "every constraint of the first is implied by the second, and not the reverse",
        Order.EQUIVALENT: "both make the same constraints, explicit and implied",
        Order.INCOMPARABLE: "each allows a mechanism that the other forbids",
    }[overall]
    return Comparison(
        first,
        second,
        overall,
        f"{reason} (normal form, exact)",
        blocks,
        exact=True,
        budgets_ranked=same_flavor,
        first_not_stronger=one,
        second_not_stronger=two,
    )


def not_stronger(first: Specification, second: Specification) -> NotStronger | None:
    """The pair at which the first allows most beyond the second, with a witness; ``None`` if stronger."""
    full, explicit = all_constraints(first), explicit_constraints(second)
    points = first.domain.enumerate()
    pairs = [(i, j) for i in range(len(points)) for j in range(len(points)) if full[i][j] > explicit[i][j]]
    if not pairs:
        return None
    i, j = min(pairs, key=lambda ij: _tightness(full[ij[0]][ij[1]], explicit[ij[0]][ij[1]]))
    try:
        mechanism = witness(first, second, full, i, j, explicit[i][j])
    except NotComputable:
        mechanism = None
    return NotStronger((points[i], points[j]), full[i][j], explicit[i][j], mechanism)


def _tightness(reachable: Exact, allowed: Exact) -> tuple[float, float]:
    """Small for pairs with a wide relative gap and a small bound: the easiest to witness."""
    top = float(allowed) + 1 if reachable.is_infinite else float(reachable)
    return (float(allowed) / top, float(allowed))


def _by_theorems(
    first: Specification, second: Specification, blocks: tuple[BlockVerdict, ...], same_flavor: bool
) -> Comparison:
    nothing = binds_nothing(first), binds_nothing(second)
    if any(nothing):
        empty = {
            (True, True): "both bind",
            (True, False): "the first binds",
            (False, True): "the second binds",
        }
        reason = f"{empty[nothing]} no mechanism at all: infinite budgets, or no pair to compare"
        order = _order(nothing[1], nothing[0])
        return Comparison(first, second, order, reason, blocks, exact=False, budgets_ranked=same_flavor)
    forward = _implies(first, second)
    backward = _implies(second, first, "the second", "the first")
    named = ", ".join(b.block.replace("_", " ") for b in blocks if b.order != Order.EQUIVALENT)
    if forward or backward:
        overall = _order(forward is not None, backward is not None)
        reason = forward or backward or ""
    elif same_flavor and blocks[-1].order in {Order.STRONGER, Order.WEAKER, Order.EQUIVALENT}:
        overall = blocks[-1].order
        reason = f"the flavors are the same, and {blocks[-1].reason} (Lemma A.7.1)"
    elif (one := _refuted(first, second)) and (two := _refuted(second, first)):
        overall = Order.INCOMPARABLE
        reason = (
            f"they differ in {named}: the first is not stronger, because {one}; nor the second, because {two}"
        )
    else:
        overall = Order.UNDECIDED
        reason = f"they differ in {named}, and no theorem here decides whether one implies the other"
    return Comparison(first, second, overall, reason, blocks, exact=False, budgets_ranked=same_flavor)


def _refuted(first: Specification, second: Specification) -> str | None:
    """Why the first cannot be stronger, on a domain whose attributes vary freely; ``None`` if not known."""
    if second.constrains_nothing or second.budget.curve or first.budget.curve:
        return None
    singular = second.output_premetric.properties.infinite_if_singular
    declared = None not in map(declared_invariants, (first.multiverse, second.multiverse))
    free = declared and _varies_freely(first.domain) and _replaces(second.input_premetric)
    if (
        free
        and singular
        and refines(conditioned(second), first.multiverse, first.domain, _units(first, second)) is False
    ):
        return "it allows the exact release of an invariant that the other does not have (2.4.11)"
    positive = any(amount > ZERO for amount in first.budget.amounts)
    if positive and demands_more(second.output_premetric, first.output_premetric):
        return f"{second.output_premetric.symbol} demands more than {first.output_premetric.symbol}"
    exact = isinstance(first.output_premetric, Multiplicative | NormalisedRenyi)
    same = (first.output_premetric, first.input_premetric) == (
        second.output_premetric,
        second.input_premetric,
    )
    flags = first.input_premetric.flags
    if exact and same and flags.triangle and flags.symmetric and _by_policy(first, second):
        exceeds = _pointwise(first, second) in {Order.WEAKER, Order.INCOMPARABLE}
        return "its policy allows more in some universe" if exceeds and free else None
    constant = first.budget.is_constant and second.budget.is_constant
    if exact and same and constant and flags.triangle and flags.symmetric:
        larger = first.budget.linear() > second.budget.linear()
        return "its budget is larger for the same distance" if larger else None
    return None


def _varies_freely(domain: Domain) -> bool:
    """Whether there are data sets of several records in which every attribute takes several levels."""
    schema = domain.record_schema
    known = () if schema is None else schema.attributes
    several = all(a.levels is None or len(a.levels) > 1 for a in known)
    return several and not domain.is_finite and (domain.sizes is None or max(domain.sizes, default=0) > 1)


def _replaces(premetric: Premetric) -> bool:
    """Not neighbours of other kinds than replacement: they may never meet inside a universe."""
    return premetric.sharpened is None or premetric.change == REPLACED


def _implies(
    first: Specification,
    second: Specification,
    stronger: str = "the first",
    weaker: str = "the second",
) -> str | None:
    """The chain of theorems by which the first implies the second, if there is one."""
    if not refines(conditioned(second), first.multiverse, first.domain, _units(first, second)):
        return None
    found = bounds(first.input_premetric, second.input_premetric, first.domain, second.multiverse)
    factor = linear_factor(first.output_premetric, second.output_premetric)
    if found is None or factor is None or found.lower.is_zero:
        return None
    if first.budget.curve or second.budget.curve:
        same = first.budget == second.budget and found.lower >= ONE
        return "the same curve, more pairs" if same else None
    if not (first.budget.is_constant and second.budget.is_constant):
        return None
    scale = ONE if found.lower.is_infinite else found.lower
    said = (
        f"{stronger}'s universes contain those of {weaker} (Proposition 3), its distances bound "
        f"{weaker}'s (2.4.15: {found.reason})"
    )
    if _by_policy(first, second):
        below = _pointwise(first, second) in {Order.STRONGER, Order.EQUIVALENT}
        return (
            f"{said}, {factor[1]}, and its policy is nowhere larger" if below and factor[0] <= scale else None
        )
    offered, wanted = first.budget.linear(), second.budget.linear()
    if wanted.is_infinite or _scaled_at_most(offered, factor[0], wanted, scale):
        return f"{said}, {factor[1]}, and its budget is not larger in these terms"
    bent = _concentrated(first, second, scale)
    return None if bent is None else f"{said}, and {bent}"


def _concentrated(first: Specification, second: Specification, scale: Exact) -> str | None:
    """Why a pure guarantee implies one of zCDP by the least distance, where the linear factor is too coarse.

    Reference
        With l d <= d' the first bounds D_Mult by (budget/l) d'. Positive distances d' inside the universes of
        the second start at d0, so D_NoR <= rho d' with the rho of ``rho_squared_of_pure`` at budget/l and d0.
    """
    pure = isinstance(first.output_premetric, Multiplicative | DensityRatio)
    offered = first.budget.linear()
    if not (pure and isinstance(second.output_premetric, NormalisedRenyi)) or offered.is_infinite:
        return None
    least = least_distance(second)
    square = rho_squared_of_pure(quotient(offered, scale), least)
    squared = second.budget.parametrisation == "rho_squared"
    if least is None or (square if squared else Exact.sqrt(square.rounded_up())) > second.budget.amount:
        return None
    return f"D_NoR^2 <= t tanh(t/2) at D_Mult = t is within the budget at distances of at least {least}"


def _scaled_at_most(offered: Exact, factor: Exact, wanted: Exact, scale: Exact) -> bool:
    """Whether offered * factor <= wanted * scale; what has no exact form is rounded against the claim."""
    if offered.is_infinite:
        return False
    try:
        return product(offered, factor) <= product(wanted, scale)
    except NotComputable:
        return product(Exact(offered.rounded_up()), factor) <= product(wanted, scale)
