"""Composition: what several releases promise together, and what post-processing may read.

Specifications of one domain and one output premetric are first brought to their meet: universes are
intersected and the larger distance is kept, under which each keeps its budget (R32 of our digest, from
Propositions 2.4.13 and 2.4.15). Then the budgets compose by the output premetric's own law. All of it
needs fresh, independent seeds; otherwise the joint law must be given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal

from stirred.errors import InputError, NonFreshSeeds, NotImplied
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.arithmetic.extended import infimum
from stirred.spec.blocks.budget import Budget, squared
from stirred.spec.blocks.domain import require_same
from stirred.spec.blocks.input_premetric import ONE, Maximum, Premetric
from stirred.spec.blocks.multiverse import Explicit, conditions_on, intersect, refines
from stirred.spec.blocks.output_premetric import Approximate, Coarsened, NormalisedRenyi
from stirred.spec.blocks.policy import (
    SUM,
    Fixed,
    Policy,
    Restated,
    realised_together,
    require_one_universe,
    together,
)
from stirred.spec.calculus.lifting import lifts, one_budget_along_chains
from stirred.spec.calculus.partition import budgets_that_add
from stirred.spec.finite.mechanism import FiniteMechanism, protection_loss
from stirred.spec.order.bounds import bounds
from stirred.spec.order.policy_order import policy_of
from stirred.spec.specification import Flavor, Specification

Order = Literal["sequential", "adaptive", "concurrent"]
Seeds = Literal["fresh", "shared"]


def meet(first: Flavor, second: Flavor) -> Flavor:
    """The flavor under which mechanisms of both keep their budgets (R32).

    Both flavors must have the same domain and output premetric. Where one distance bounds the other it
    is kept; otherwise the maximum of the two is the new distance. D_Mult^delta falls as delta grows, so of
    two approximate flavors the larger delta is kept.
    """
    require_same(first.domain, second.domain, "compose")
    if not same_measure(first.output_premetric, second.output_premetric):
        raise NotImplied(
            f"{first.output_premetric.symbol} and {second.output_premetric.symbol} do not compose",
            field="output_premetric",
            expected="the same output premetric in every part",
            hint="Convert to a common one first, for example pure DP to zCDP (stirred.spec.convert).",
        )
    return Flavor(
        domain=first.domain,
        multiverse=intersect(first.multiverse, second.multiverse),
        input_premetric=_larger(first, second),
        output_premetric=_weaker(first.output_premetric, second.output_premetric),
    )


def _weaker(first: Any, second: Any) -> Any:
    """Of one output premetric at two deltas the one that both budgets bound: that of the larger delta."""
    if isinstance(first, Approximate) and isinstance(second, Approximate):
        return max(first, second, key=lambda premetric: premetric.mass)
    return first


def compose(
    *parts: Specification,
    order: Order = "sequential",
    seeds: Seeds = "fresh",
    joint: FiniteMechanism | None = None,
    under: Flavor | None = None,
    reads: Iterable[Any] = (),
) -> Specification:
    """The specification of several releases together.

    Guarantee
        The composed budget holds for the release of all outputs.
    Assumes
        Fresh seeds, unless the joint law is given.
    Reference
        Proposition 2.5.3 and Appendix A.5 of the thesis; Bun and Steinke 2016 for D_NoR. Concurrent
        composition: Vadhan and Wang 2021 for D_Mult, Lyu 2022 for its approximation and Renyi divergence, and
        so for D_NoR, Vadhan and Zhang 2023 for Gaussian DP.

    Parameters
    ----------
    parts
        Specifications with the same domain and output premetric.
    order
        Whether later mechanisms are fixed in advance, chosen after seeing earlier outputs, or run
        interleaved with them.
    seeds
        ``"fresh"`` claims independent randomness. ``"shared"`` is refused unless ``joint`` gives the
        mechanism of all outputs together, whose loss is then computed.
    under
        A flavor to state the result in; every part's guarantee must carry over to it.
    reads
        Invariants that the post-processing of the outputs reads from the confidential data.

    Examples
    --------
    >>> import stirred as st
    >>> parts = [st.catalogue.specification(name) for name in ("tda-dhc", "safetab-p")]
    >>> print(st.compose(*parts).budget)
    ρ² = 35.066
    """
    if not parts:
        raise _nothing()
    _refuse_unproved_order(parts, order)
    flavor = parts[0].flavor
    for part in parts[1:]:
        flavor = meet(flavor, part.flavor)
    if under is not None:
        for part in parts:
            _require_carries(part, under)
        flavor = under
    _require_conditioned(flavor, reads)
    flavor = _with_added_deltas(flavor, parts)
    if seeds == "shared":
        return _from_joint_law(flavor, parts, joint)
    return _with_composed_budget(flavor, parts)


def parallel(*parts: Specification, by: str) -> Specification:
    """Releases that each read one part of the records, the parts told apart by an attribute.

    Guarantee
        The composition of as many of the largest budgets as changes of one unit may touch: the largest alone
        where one part changes alone, the two largest where a replacement leaves one part and enters
        another, and all of them, as in ``compose``, where invariants or the domain tie the parts together.
    Assumes
        Each release reads the records of its part alone: written into the assumptions.
    Reference
        ``stirred.spec.calculus.partition`` has the rules with their proofs.
    """
    if not parts:
        raise _nothing()
    flavor = parts[0].flavor
    for part in parts[1:]:
        require_same(flavor.domain, part.domain, "compose in parallel")
        if part.flavor != flavor:
            raise NotImplied(
                "the parts of a parallel composition have different flavors",
                field="parts",
                expected="one flavor for all parts",
                hint="Use compose, which brings different flavors to their meet.",
            )
    number = budgets_that_add(flavor, by, len(parts))
    if number == len(parts):
        return parts[0] if number == 1 else compose(*parts)
    largest = _ranked_in_every_universe(parts, f"each release reads the records of one {by} alone")[:number]
    return largest[0] if number == 1 else compose(*largest)


def _ranked_in_every_universe(parts: tuple[Specification, ...], assumption: str) -> list[Specification]:
    """The parts with their amounts rearranged: the largest of each universe first, then the next."""
    if any(part.budget.curve for part in parts):
        raise _no_rule_for_curves()
    kinds = {part.budget.parametrisation for part in parts}
    kind = "rho_squared" if len(kinds) > 1 else parts[0].budget.parametrisation
    rows = [_amounts(part.budget, kind) for part in parts]
    columns = [
        sorted((row[i if len(row) > 1 else 0] for row in rows), reverse=True)
        for i in range(max(map(len, rows)))
    ]
    assumptions = tuple(dict.fromkeys(a for part in parts for a in part.assumptions))
    budgets = [part.budget for part in parts]
    return [
        part.flavor.with_budget(
            _by_policy(
                Budget.by_universe(kind, [column[rank] for column in columns]),
                f"number {rank + 1} of the amounts, the largest first,",
                budgets,
            ),
            assumptions=(*assumptions, assumption),
            standing=_standing(parts),
        )
        for rank, part in enumerate(parts)
    ]


def _amounts(budget: Budget, kind: str) -> tuple[Exact, ...]:
    """The amounts in a parametrisation; only rho is ever restated, as rho squared."""
    if budget.parametrisation == kind:
        return budget.amounts
    return tuple(map(squared, budget.amounts))


def post_process(specification: Specification, reads: Iterable[Any] = ()) -> Specification:
    """The guarantee after post-processing: the same, if nothing but the outputs and invariants is read.

    Reference
        Proposition 2.5.4 of the thesis; for invariants, the mechanism that also outputs c(x) has the same
        loss only where c is constant on every universe (T:4505-4513).
    """
    if not specification.output_premetric.properties.post_processing:
        raise NotImplied(
            f"{specification.output_premetric.symbol} is not immune to post-processing",
            field="output_premetric",
            expected="a functional of the trade-off function (Theorem 2.5.5)",
            hint="State the guarantee with D_Mult, D_NoR or another immune premetric.",
        )
    _require_conditioned(specification.flavor, reads)
    return specification


def _nothing() -> InputError:
    return InputError(
        "there is nothing to compose",
        field="parts",
        expected="at least one specification",
        hint="Pass the specifications of the releases.",
    )


def _refuse_unproved_order(parts: tuple[Specification, ...], order: Order) -> None:
    if order == "sequential":
        return
    for part in parts:
        if not part.output_premetric.coordinates:
            raise NotImplied(
                f"{order} composition is not established for {part.output_premetric.symbol}",
                field="order",
                expected="D_Mult, its delta-approximation, D_NoR, Renyi or Gaussian DP",
                hint="Fix all mechanisms in advance, or convert to one of these.",
            )


def same_measure(first: Any, second: Any) -> bool:
    """Whether two output premetrics are one, whatever their delta."""
    both = isinstance(first, Approximate) and isinstance(second, Approximate)
    return both or bool(first == second)


def _larger(first: Flavor, second: Flavor) -> Premetric:
    a, b = first.input_premetric, second.input_premetric
    if a == b:
        return a
    found = bounds(a, b, first.domain)
    if found is not None and found.lower >= ONE:
        return b
    if found is not None and found.upper <= ONE:
        return a
    return Maximum(parts=tuple(dict.fromkeys((*a.pieces, *b.pieces))))


def _require_carries(part: Specification, under: Flavor) -> None:
    """Refuse a target flavor to which a part's guarantee does not carry over."""
    require_same(part.domain, under.domain, "state the result in another flavor")
    found = bounds(part.input_premetric, under.input_premetric, under.domain, under.multiverse)
    close = (found is not None and found.lower >= ONE) or _reached_by_chains(part, under)
    units = part.input_premetric.record_units | under.input_premetric.record_units
    if not refines(under.multiverse, part.multiverse, under.domain, units):
        missing = "its multiverse does not condition on all invariants of the part"
    elif not close:
        missing = "its distances are not known to bound those of the part"
    elif not same_measure(part.output_premetric, under.output_premetric):
        missing = "its output premetric differs"
    else:
        return
    raise NotImplied(
        f"the guarantee {part.statement()} does not carry over to {under}: {missing}",
        field="under",
        expected="a multiverse at least as fine and a distance at least as large",
        hint="Leave the flavor out: the meet of the parts is always valid.",
    )


def _reached_by_chains(part: Specification, under: Flavor) -> bool:
    """Whether the part is between neighbours, and its chains reach the distances of the target."""
    return (
        part.input_premetric.sharpened == under.input_premetric
        and part.output_premetric.properties.linear_group
        and one_budget_along_chains(part)
        and lifts(part.flavor)
    )


def _require_conditioned(flavor: Flavor, reads: Iterable[Any]) -> None:
    for invariant in reads:
        units = flavor.input_premetric.record_units
        if not conditions_on(flavor.multiverse, invariant, flavor.domain, units):
            raise NotImplied(
                f"the post-processing reads {invariant.sentence()}, "
                "on which the multiverse does not condition",
                field="reads",
                expected="only invariants that are constant on every universe of the flavor",
                hint="Add the invariant to the multiverse (and disclose it), or measure it with noise.",
            )


def _from_joint_law(
    flavor: Flavor, parts: tuple[Specification, ...], joint: FiniteMechanism | None
) -> Specification:
    if joint is None:
        raise NonFreshSeeds(
            "the mechanisms share randomness, so their budgets do not compose",
            field="seeds",
            expected="fresh seeds, or the joint law of all outputs",
            hint="Two mechanisms of loss zero can reveal everything together (x xor U, and U). "
            "Pass joint= with the mechanism of all outputs, or draw fresh randomness.",
        )
    losses = protection_loss(joint, flavor).by_universe
    kind = parts[0].budget.parametrisation
    amounts = [squared(loss) if kind == "rho_squared" else loss for loss in losses]
    return flavor.with_budget(Budget.by_universe(kind, amounts), standing="enumerated")


def _with_composed_budget(flavor: Flavor, parts: tuple[Specification, ...]) -> Specification:
    premetric, budgets = flavor.output_premetric, [part.budget for part in parts]
    if any(budget.curve for budget in budgets):
        raise _no_rule_for_curves()
    law = "none" if isinstance(premetric, Coarsened) else premetric.properties.law
    if law == "product" and not flavor.input_premetric.flags.neighbour_valued:
        raise NotImplied(
            f"{premetric.symbol} composes as (1+a)(1+b) - 1, which is not linear in the distance",
            field="input_premetric",
            expected="a neighbour premetric",
            hint="Restrict the specification to neighbours, or use D_NoR.",
        )
    if law in {"none", "tensor"}:
        raise NotImplied(
            f"no composition law is known for {premetric.symbol}",
            field="output_premetric",
            expected="an output premetric with a composition law",
            hint="Convert to D_Mult or D_NoR before composing.",
        )
    flavor, columns = _aligned(flavor, parts)
    combined = [_combine(premetric, law, budgets, column) for column in columns]
    amounts = combined[:1] if len(set(combined)) == 1 else combined
    concentrated = isinstance(premetric, NormalisedRenyi)
    kind = "rho_squared" if concentrated else budgets[0].parametrisation
    assumptions = tuple(dict.fromkeys(a for part in parts for a in part.assumptions))
    return flavor.with_budget(
        _by_policy(Budget.by_universe(kind, amounts), _words(premetric, law), budgets),
        assumptions=(*assumptions, "the seeds of all parts are independent"),
        standing=_standing(parts),
    )


def _by_policy(budget: Budget, how: str, parts: Sequence[Budget]) -> Budget:
    """The budget with the policy that its parts make together, if one of them has a policy."""
    if all(part.policy is None for part in parts):
        return budget
    policies = [_in_currency(part, budget.parametrisation) for part in parts]
    if None in policies or not budget.is_constant:
        raise NotImplied(
            "a budget that is listed by universe does not combine with one that a policy gives",
            field="budget",
            expected="policies and constants, or lists over one multiverse",
            hint="Evaluate the policy in every universe and list its values.",
        )
    at = realised_together(part.at for part in parts)
    kept = [policy for policy in policies if policy is not None]
    require_one_universe(kept, at)
    return Budget(
        parametrisation=budget.parametrisation, amounts=budget.amounts, policy=together(how, kept), at=at
    )


def _in_currency(budget: Budget, kind: str) -> Policy | None:
    """The policy of a part in the parametrisation of the whole; only rho is ever restated, as rho squared."""
    policy = policy_of(budget)
    if policy is None or budget.parametrisation == kind:
        return policy
    if isinstance(policy, Fixed):
        return Fixed(parametrisation=kind, amount=squared(policy.amount))
    return Restated(formula="the square", of=policy)


def _words(premetric: Any, law: str) -> str:
    """The composition law of the amounts, in words."""
    if law == "product":
        return "(1+a)(1+b)... - 1"
    if law == "sum of squares" and not isinstance(premetric, NormalisedRenyi):
        return "the root of the sum of squares"
    return SUM


def _no_rule_for_curves() -> NotImplied:
    return NotImplied(
        "curves are composed by an accountant, not by this rule",
        field="budget",
        expected="budgets that are numbers",
        hint="Use stirred.spec.accountants.accounting (privacy loss distributions) or Gaussian DP.",
    )


def _aligned(flavor: Flavor, parts: tuple[Specification, ...]) -> tuple[Flavor, list[tuple[Exact, ...]]]:
    """For each universe of the meet the budget of every part there: the least that covers it."""
    if all(part.budget.is_constant for part in parts):
        return flavor, [tuple(part.budget.amounts[0] for part in parts)]
    universes = flavor.universes()
    columns = [tuple(_covering(part, universe) for part in parts) for universe in universes]
    return Flavor(**dict(flavor) | {"multiverse": Explicit(parts=universes)}), columns


def _covering(part: Specification, universe: frozenset[Any]) -> Exact:
    budget = part.budget
    return infimum(
        budget.amounts[0 if budget.is_constant else i]
        for i, larger in enumerate(part.universes())
        if universe <= larger
    )


def _combine(premetric: Any, law: str, budgets: list[Budget], column: tuple[Exact, ...]) -> Exact:
    if any(amount.is_infinite for amount in column):
        return INFINITY
    if law == "product":
        total = Fraction(1)
        for amount in column:
            total *= 1 + amount.rounded_up()
        return Exact(total - 1)
    if law == "sum of squares":
        squares = [
            amount if budget.parametrisation == "rho_squared" else squared(amount)
            for amount, budget in zip(column, budgets, strict=True)
        ]
        square = sum(squares, ZERO)
        if isinstance(premetric, NormalisedRenyi):
            return square
        return Exact.sqrt(square.rounded_up())
    return sum(column, ZERO)


def _standing(parts: tuple[Specification, ...]) -> Any:
    ladder = ("uncertified", "unstated", "published", "enumerated", "proved")
    return min((part.standing for part in parts), key=ladder.index)


def _with_added_deltas(flavor: Flavor, parts: tuple[Specification, ...]) -> Flavor:
    """The deltas of all parts add; that of the meet is their maximum, and is not read."""
    if not isinstance(flavor.output_premetric, Approximate):
        return flavor
    deltas = (part.output_premetric for part in parts if isinstance(part.output_premetric, Approximate))
    total = sum((measure.mass for measure in deltas), Fraction(0))
    if total >= 1:
        raise NotImplied(
            "the deltas of the parts add up to one or more, which constrains nothing",
            field="output_premetric.delta",
            expected="deltas that add up to less than one",
            hint="Convert the parts with smaller deltas, or release less.",
        )
    return Flavor(**{**dict(flavor), "output_premetric": Approximate(delta=Exact(total))})
