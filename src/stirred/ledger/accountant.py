"""The accountant: what events cost together, in the flavor of the data set's ceiling.

Guarantee
    The tally of some releases is their adaptive composition (``stirred.spec.compose``) stated in the
    ceiling's flavor. A release whose guarantee does not carry over to that flavor is refused: budgets of
    different flavors are never compared. Arithmetic is exact; where a sample amplifies, the amplified
    budget is rounded up to a rational.
Assumes
    Fresh seeds in every release (repeated ones are refused by the books), the group factors as claimed,
    and independent samples with the designs as claimed.
Reference
    R32 of the theory (meet of flavors); Proposition 2.4.15 (group factors); section 6.5.2 of the thesis
    (compose inside a sample, then amplify once).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NamedTuple

from stirred.errors import NotImplied, Refusal, StirredError
from stirred.ledger.amount import Amount
from stirred.ledger.events import Group, Sample
from stirred.ledger.refusals import IncomparableFlavor
from stirred.spec import (
    Budget,
    Exact,
    Flavor,
    Multiplicative,
    Neighbours,
    Relation,
    Restated,
    Specification,
    Standing,
    Trivial,
    catalogue,
    compose,
    restate,
    shared_sample,
)

_RELATIONS: dict[str, tuple[str, tuple[str, ...], Relation]] = {
    "simple-random": ("replacement", ("replace", "replace-ordered"), "replace-one"),
    "poisson": ("addition and removal", ("add-remove", "add-remove-ordered"), "add-remove"),
}


class Said(NamedTuple):
    """What a guarantee says besides its blocks."""

    assumptions: tuple[str, ...]
    standing: Standing


@dataclass(frozen=True)
class Sum:
    """Releases that cost one number each, the same in every universe: their amounts are simply added.

    Guarantee
        The specification is the composition of the releases under the ceiling's flavor: there the composition
        law of the output premetric is the addition of amounts (``stirred.ledger.amount``).
    """

    amount: Amount
    said: Said

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.amount + other.amount, _said_together(self.said, other.said))

    def within(self, flavor: Flavor) -> Specification:
        """The sum as a guarantee of a flavor."""
        return Specification(**dict(self.amount.within(flavor)) | self.said._asdict())


@dataclass(frozen=True)
class Part:
    """One release, restated in the ceiling's flavor."""

    specification: Specification
    sample: Sample | None = None

    @cached_property
    def amount(self) -> Amount:
        """The budget of the release in the coordinates that add up."""
        return Amount.of(self.specification)

    @cached_property
    def summand(self) -> Sum | None:
        """The release as a sum of one; nothing for one with a policy, a budget by universe or a sample."""
        whole = self.specification
        if self.sample is not None or not whole.budget.is_constant or whole.budget.policy is not None:
            return None
        return Sum(self.amount, Said(whole.assumptions, whole.standing))


@dataclass(frozen=True)
class Tally:
    """Releases composed in one flavor: those with their own randomness, and those of each sample.

    Those with their own randomness are a sum as long as each of them is a summand, and from the first on that
    is not (a policy, a budget by universe) a composed specification.
    """

    flavor: Flavor
    direct: Sum | Specification | None = None
    samples: tuple[tuple[Sample, tuple[Specification, ...]], ...] = ()

    def plus(self, part: Part) -> Tally:
        if part.sample is None:
            return Tally(self.flavor, self._direct_with(part), self.samples)
        groups = dict(self.samples)
        known = next((sample for sample in groups if sample.name == part.sample.name), part.sample)
        if known != part.sample:
            raise Refusal(
                f"the sample {known.name} is known with another rate or design",
                field="sample",
                expected=f"rate {known.rate}, design {known.design}",
                hint="One sample has one design; name another draw differently.",
            )
        groups[known] = (*groups.get(known, ()), part.specification)
        return replace(self, samples=tuple(groups.items()))

    def adds(self, part: Part) -> bool:
        """Whether the amount with one more release is the sum of the amounts."""
        return part.summand is not None and not self.samples and not isinstance(self.direct, Specification)

    def specification(self) -> Specification:
        """The composed guarantee; of nothing, the budget zero."""
        parts = self._composed_directly()
        parts += [_amplified(sample, inside) for sample, inside in self.samples]
        if not parts:
            return Amount.none(self.flavor).within(self.flavor)
        return parts[0] if len(parts) == 1 else _composed(parts, self.flavor)

    def amount(self) -> Amount:
        """The composed budget in the coordinates that add up."""
        if isinstance(self.direct, Sum) and not self.samples:
            return self.direct.amount
        return Amount.of(self.specification())

    def _direct_with(self, part: Part) -> Sum | Specification:
        if part.summand is not None and not isinstance(self.direct, Specification):
            return part.summand if self.direct is None else self.direct + part.summand
        return _composed([*self._composed_directly(), part.specification], self.flavor)

    def _composed_directly(self) -> list[Specification]:
        """The releases with their own randomness as one guarantee, if there are any."""
        if self.direct is None:
            return []
        return [self.direct.within(self.flavor) if isinstance(self.direct, Sum) else self.direct]


def tally(parts: list[Part], flavor: Flavor) -> Tally:
    """Many releases at once: the twin of adding them one by one."""
    direct = [part.specification for part in parts if part.sample is None]
    whole = Tally(flavor, direct=_composed(direct, flavor) if direct else None)
    for part in parts:
        if part.sample is not None:
            whole = whole.plus(part)
    return whole


def carried(
    specification: Specification, ceiling: Flavor, group: Group | None, sample: Sample | None
) -> Part:
    """A release restated in the ceiling's flavor, or the reason why it cannot be.

    The output premetric follows that of the ceiling (pure DP to zCDP by the least distance of its universes),
    and the group factor says how many units of the release one unit of the ceiling is at most.
    """
    try:
        factor, because = (None, "") if group is None else (Fraction(group.factor), group.because)
        part = Part(restate(specification, ceiling, factor=factor, because=because), sample)
    except StirredError as error:
        raise IncomparableFlavor(
            f"this release cannot be charged to the data set: {error.problem}",
            field="specification",
            expected=f"a guarantee that carries over to {ceiling}",
            hint="Budgets of different flavors are in different currencies. Restate the release in the "
            "flavor of the ceiling (stirred.spec.convert, pull_back; group= for a larger unit), or keep it "
            "under a data set opened in its own flavor.",
        ) from None
    if sample is not None:
        _require_amplifiable(ceiling, sample)
    return part


@lru_cache(maxsize=1024)
def _said_together(first: Said, second: Said) -> Said:
    """What is said of a composition, whatever its flavor and budget: composed on a guarantee of nothing."""
    nothing = dict(catalogue.specification("pure-dp", Budget.epsilon(0)))
    both = [Specification(**nothing | said._asdict()) for said in (first, second)]
    whole = _composed(both, both[0].flavor)
    return Said(whole.assumptions, whole.standing)


def _composed(parts: list[Specification], flavor: Flavor) -> Specification:
    """Adaptive composition under the ceiling's flavor, with every assumption said once."""
    whole = compose(*parts, order="adaptive", under=flavor)
    assumptions = tuple(dict.fromkeys(whole.assumptions))
    return Specification(**dict(whole) | {"assumptions": assumptions})


def _amplified(sample: Sample, inside: tuple[Specification, ...]) -> Specification:
    """All releases of one sample, composed and then amplified once; rounded up."""
    whole = compose(*inside, order="adaptive")
    relation = _RELATIONS[sample.design][2]
    given = whole.budget.amount
    loss = shared_sample([given.float_up()], _rate_up(sample), relation).epsilon
    assumption = (
        f"sample {sample.name} was drawn afresh ({sample.design}, rate {sample.rate}) and stays secret"
    )
    policy = whole.budget.policy
    if policy is not None:
        policy = Restated(formula=f"amplified by a secret sample ({sample.design}, {sample.rate})", of=policy)
    return whole.flavor.with_budget(
        Budget.epsilon(min(Exact.computed(loss), given), policy, whole.budget.at),
        assumptions=tuple(dict.fromkeys((*whole.assumptions, assumption))),
        standing=whole.standing,
    )


def _rate_up(sample: Sample) -> float:
    return min(1.0, Exact(Fraction(sample.rate)).float_up())


def _require_amplifiable(ceiling: Flavor, sample: Sample) -> None:
    words, relations, _ = _RELATIONS[sample.design]
    premetric = ceiling.input_premetric
    fits = isinstance(premetric, Neighbours) and premetric.relation in relations
    if (
        fits
        and isinstance(ceiling.output_premetric, Multiplicative)
        and isinstance(ceiling.multiverse, Trivial)
    ):
        return
    raise NotImplied(
        f"no theorem here amplifies {sample.design} sampling in {ceiling}",
        field="sample",
        expected=f"pure DP without invariants, between neighbours by {words} of one record",
        hint="Leave the sample out: the guarantee given the sample also holds, without amplification.",
    )
