"""Change of protection unit: from records to households, from imputed records to the people behind them.

One unit of the new kind may be several of the old: the budget grows by that factor (Proposition 2.4.15;
group privacy). The factor is the caller's claim about the data and is written into the specification's
assumptions; a domain that can be listed refutes one that is too small. A promise between neighbours is
carried to larger distances only along chains of neighbours inside the universe (``lifting``).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from stirred.errors import DomainMismatch, InputError, NotImplied
from stirred.spec.arithmetic.exact import Exact, as_fraction
from stirred.spec.blocks.budget import Budget
from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.input_premetric import PulledBack
from stirred.spec.blocks.multiverse import DescribedMultiverse, Explicit
from stirred.spec.blocks.output_premetric import Approximate
from stirred.spec.calculus.lifting import (
    chains,
    lifts,
    longest_chain,
    needs_chains,
    no_chain,
    one_budget_along_chains,
    require_bounded,
    require_within,
    too_small,
)
from stirred.spec.specification import Specification


def change_unit(specification: Specification, premetric: Any, factor: object, because: str) -> Specification:
    """Restate a guarantee for a unit that is at most ``factor`` of the old units.

    Guarantee
        The budget's linear number grows by the factor: epsilon by k, rho by k, rho squared by k squared.
    Assumes
        d_old <= k d_new on every universe, for the reason given. Where the old distance knows neighbours
        only, chains of them inside the universe are required, and checked.
    Reference
        Proposition 2.4.15 of the thesis. For approximate DP between neighbours, the group rule of Dwork
        and Roth 2014: (k epsilon, delta (e^(k epsilon) - 1)/(e^epsilon - 1)).
    """
    multiple = as_fraction(factor)
    if multiple < 1 or not because.strip():
        raise InputError(
            "a change of unit needs a factor and its reason",
            field="factor",
            expected="a factor of at least one and a sentence that says why it holds",
            hint="For example: factor 4 because no household has more than four persons.",
        )
    require_within(specification, premetric, multiple)
    return _restated(specification, premetric, multiple, because)


def _restated(
    specification: Specification, premetric: Any, multiple: Fraction, because: str
) -> Specification:
    """The budget grown by the factor, or by the group rule between neighbours."""
    fields = dict(specification)
    fields["input_premetric"] = premetric
    fields["assumptions"] = (
        *specification.assumptions,
        f"a change of one unit is at most {multiple} of {specification.input_premetric.symbol}: {because}",
    )
    chained = specification.input_premetric.flags.neighbour_valued
    if not chained or specification.output_premetric.properties.linear_group:
        fields["budget"] = specification.budget.scaled(multiple)
        return Specification(**fields)
    premetric_out = specification.output_premetric
    near = premetric.flags.neighbour_valued
    if isinstance(premetric_out, Approximate) and multiple.denominator == 1 and near:
        group = _approximate_group(specification.budget, premetric_out.mass, multiple.numerator)
        return Specification(**fields | group)
    raise NotImplied(
        f"{specification.output_premetric.symbol} has no linear group rule",
        field="output_premetric",
        expected="D_Mult, D_NoR, Gaussian DP or another metric, or a new unit between neighbours only",
        hint="Change the unit first and convert the output premetric afterwards.",
    )


def imputation_factor(recipients: int) -> int:
    """Records that one respondent contributes to: their own and one for each recipient of it.

    The thesis says "the number of recipients" in one place and counts the respondent's own record in
    another; the second is right (a record duplicated once doubles rho).
    """
    if recipients < 0:
        raise InputError(
            "the number of recipients is negative",
            field="recipients",
            expected="zero or more",
            hint="Count the records that were imputed from this respondent's record.",
        )
    return 1 + recipients


def undo_imputation(specification: Specification, premetric: Any, recipients: int) -> Specification:
    """From post-imputation units to respondents whose record was used for at most so many others."""
    return change_unit(
        specification,
        premetric,
        imputation_factor(recipients),
        f"a respondent's record is the donor of at most {recipients} imputed records",
    )


def pull_back(
    specification: Specification,
    domain: Domain,
    step: str,
    *,
    premetric: Any = None,
    stability: object = None,
    images: tuple[tuple[Any, Any], ...] = (),
) -> Specification:
    """The guarantee for the data before a preprocessing step g.

    Guarantee
        Without ``stability``: the same budgets for universes g^-1(D) and the distance d(g(r), g(r')).
        With ``stability`` k and a raw ``premetric``: k times the budget, where d(g(r), g(r')) <= k d_raw.
    Assumes
        The step is deterministic, and k bounds it, which is checked where its images are listed; between
        neighbours the images are joined by chains of them inside the universe, which is checked. An
        unbounded step (data-dependent clipping, donors without limit, deduplication) has k = infinity and
        carries no guarantee upstream.
    """
    if specification.domain.is_finite and images:
        lookup = dict(images)
        if not set(domain.enumerate()) <= set(lookup):
            raise DomainMismatch(
                f"the step {step} has no image for some points of {domain.name}",
                field="images",
                expected="one image for every raw point",
                hint="List the image of every point of the raw domain.",
            )
        parts = tuple(
            frozenset(raw for raw in domain.enumerate() if lookup[raw] in universe)
            for universe in specification.universes()
        )
        multiverse: Any = Explicit(parts=parts)
    else:
        multiverse = DescribedMultiverse(
            name=f"{step}⁻¹({specification.multiverse.symbol})",
            meaning=f"{specification.multiverse.sentence()}, after {step}",
        )
    fields = dict(specification) | {
        "domain": domain,
        "multiverse": multiverse,
        "input_premetric": PulledBack(base=specification.input_premetric, step=step, images=images),
        "assumptions": (*specification.assumptions, f"{step} is deterministic"),
    }
    pulled = Specification(**fields)
    if stability is None:
        return pulled
    bound = Exact.of(stability)
    if bound.is_infinite and premetric is not None:
        unlimited = Budget.by_universe(specification.budget.parametrisation, ("inf",))
        return Specification(**fields | {"input_premetric": premetric, "budget": unlimited})
    if premetric is None or bound.rational is None:
        raise InputError(
            "a stability constant needs the raw premetric it refers to",
            field="premetric",
            expected="the input premetric on the raw domain, and a rational constant",
            hint="Pass premetric= together with stability=.",
        )
    factor = max(bound.rational, Fraction(1))
    _require_stable(specification, pulled, premetric, factor, images)
    return _restated(pulled, premetric, factor, f"stability of {step}")


def _require_stable(
    specification: Specification,
    pulled: Specification,
    premetric: Any,
    factor: Fraction,
    images: tuple[tuple[Any, Any], ...],
) -> None:
    """Refuse a constant that the listed images refute, and neighbours that no chain joins after the step."""
    old = specification.input_premetric
    chained = needs_chains(old, premetric, factor)
    if chained and not one_budget_along_chains(specification):
        raise no_chain(old)
    if not images or not specification.domain.is_finite:
        if chained and not lifts(specification.flavor):
            raise no_chain(old)
        return
    if not chained:
        require_bounded(pulled, premetric, factor)
        return
    index = {point: i for i, point in enumerate(specification.domain.enumerate())}
    found, lookup, raw = chains(specification.flavor), dict(images), pulled.domain.enumerate()
    lengths = tuple(tuple(found[index[lookup[r]]][index[lookup[s]]] for s in raw) for r in raw)
    if longest_chain(lengths, premetric.matrix(pulled.domain), pulled.flavor) > Exact(factor):
        raise too_small(pulled.domain)


def _approximate_group(budget: Budget, delta: Fraction, size: int) -> dict[str, Any]:
    if budget.policy is not None:
        raise NotImplied(
            "the delta of a group grows with epsilon, which differs from universe to universe here",
            field="budget.policy",
            expected="a constant budget",
            hint="Change the unit first and convert the output premetric afterwards.",
        )
    epsilon = budget.amount
    if epsilon.is_infinite or size == 1:
        return {}
    widened = Fraction(0)
    if delta > 0:
        growth = Fraction(math.exp(min(epsilon.float_up(), 700.0))) * (1 + Fraction(1, 10**12))
        widened = delta * sum((growth**i for i in range(size)), Fraction(0))
    if widened >= 1 or (delta > 0 and epsilon.float_up() > 700):
        raise NotImplied(
            "the group rule leaves nothing: delta would reach one",
            field="factor",
            expected="a smaller factor, epsilon or delta",
            hint="Change the unit of the original guarantee before converting it to (epsilon, delta).",
        )
    return {
        "budget": budget.scaled(size),
        "output_premetric": Approximate(delta=Exact(widened)),
    }
