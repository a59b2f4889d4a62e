"""The account of one data set: its ceiling, what was spent, what is set aside, what taints it.

Guarantee
    At every moment the composition of all releases is within the ceiling; that of a period within the
    ceiling for each period; that of an analyst within the analyst's allocation; and what is allocated,
    together with what was spent without an allocation, within the ceiling. All exactly.
Assumes
    The accountant's assumptions. An account only ever grows: there is no refund.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from stirred.errors import InputError, Refusal, UnknownName
from stirred.ledger.accountant import Part, Tally, carried, tally
from stirred.ledger.amount import Amount, total, units_of
from stirred.ledger.canonical import canonical
from stirred.ledger.changed import changed
from stirred.ledger.events import Group, Opened, Sample, Spent, guarantee, specified
from stirred.ledger.growing import Growing
from stirred.ledger.refusals import NotOpen, OverBudget
from stirred.spec import Flavor, Specification, jointly


@dataclass(frozen=True)
class Spend:
    """A release that was paid for: ``sequence`` identifies it, ``attempt`` counts its runs.

    ``tainted`` lists the steps without protection that came before it on the same data set; ``begun`` is the
    last attempt that may have drawn, ``discarded`` the last one whose leftovers are destroyed.
    """

    sequence: int
    dataset: str
    specification: Specification
    plan: str
    name: str
    at: str
    analyst: str | None = None
    period: str | None = None
    group: Group | None = None
    attempt: int = 1
    manifest: str | None = None
    tracked: bool = False
    tainted: tuple[str, ...] = ()
    abandoned: bool = False
    begun: int = 0
    discarded: int = 0

    @property
    def status(self) -> str:
        """``open`` until it is finished or abandoned; it is spent all the same."""
        if self.abandoned:
            return "abandoned"
        return "open" if self.manifest is None else "finished"


@dataclass(frozen=True)
class Account:
    """The state of one data set after some events; ``terms`` is the text of its ceiling.

    ``limit`` is the ceiling in the coordinates that add up.
    """

    name: str
    terms: str
    ceiling: Specification
    limit: Amount
    each_period: Specification | None
    spent: Tally
    parts: Growing[int, Part] = field(default_factory=Growing)
    periods: Mapping[str, Tally] = field(default_factory=dict)
    holders: Mapping[str | None, Tally] = field(default_factory=dict)
    allowances: Mapping[str, Amount] = field(default_factory=dict)
    spends: Growing[int, Spend] = field(default_factory=Growing)
    plans: Growing[str, tuple[int, ...]] = field(default_factory=Growing)
    tainted: tuple[str, ...] = ()
    overridden: tuple[str, ...] = ()

    @classmethod
    def open(cls, event: Opened) -> Account:
        """An empty account; a ceiling that no composition can be held against is refused."""
        ceiling = guarantee(event.ceiling)
        each = None if event.each_period is None else guarantee(event.each_period)
        _require_ceiling(ceiling, "ceiling")
        if each is not None:
            _require_ceiling(each, "each_period")
            carried(each, ceiling.flavor, None, None)
            carried(ceiling, each.flavor, None, None)
        terms, limit = canonical(event.ceiling), Amount.of(ceiling)
        return cls(event.dataset, terms, ceiling, limit, each, Tally(ceiling.flavor))

    @property
    def flavor(self) -> Flavor:
        """The flavor of the ceiling, in which the books are kept."""
        return self.spent.flavor

    @property
    def allocated(self) -> Amount:
        """What is set aside for analysts, spent or not."""
        return total(self.allowances.values(), self.flavor)

    def held(self, analyst: str | None) -> Tally:
        """The releases of one analyst, or those without."""
        return self.holders.get(analyst, Tally(self.flavor))

    def of_period(self, period: str) -> Tally:
        return self.periods.get(period, Tally(self.flavor))

    def remaining(self, analyst: str | None = None, period: str | None = None) -> Amount:
        """What is left: of the data set, less what is set aside; of an allocation; of a period."""
        if period is not None:
            if self.each_period is None:
                raise InputError(
                    f"the data set {self.name} has no ceiling for each period",
                    field="period",
                    expected="a data set opened with each_period",
                    hint="Ask for total(period=...), or for what is left of the whole.",
                )
            return Amount.of(self.each_period).minus(self.of_period(period).amount())
        if analyst is not None:
            return self._allowance(analyst).minus(self.held(analyst).amount())
        return self.limit.minus(self.spent.amount())

    def unreserved(self) -> Amount:
        """What is neither spent without an allocation nor set aside, nor beyond the whole's remainder."""
        free = self.limit.minus(self.allocated + self.held(None).amount())
        whole = self.remaining()
        pairs = zip(free.values, whole.values, strict=True)
        return Amount(free.units, tuple(min(a, b) for a, b in pairs))

    def part(self, event: Spent) -> Part:
        """The release restated in the ceiling's flavor."""
        return _part(event.text, self.terms, event.group, event.sample)

    def charged(self, event: Spent) -> Account:
        """With one more release, if it fits everywhere."""
        part = self.part(event)
        whole = _charge(self.spent, part, self.limit, f"the data set {self.name}")
        periods = dict(self.periods)
        if event.period is not None:
            tally_before = self.of_period(event.period)
            if self.each_period is None:
                periods[event.period] = tally_before.plus(part)
            else:
                limit = Amount.of(self.each_period)
                where = f"the period {event.period} of {self.name}"
                periods[event.period] = _charge(tally_before, part, limit, where)
        elif self.each_period is not None:
            raise InputError(
                f"the data set {self.name} has a ceiling for each period",
                field="period",
                expected="the period of the release",
                hint="Name it, for example period='2026-Q3'.",
            )
        holder = whole
        if not self._is_sole_holder(event.analyst):
            limit, where = self._holding(event.analyst)
            holder = _charge(self.held(event.analyst), part, limit, where)
        return changed(
            self,
            spent=whole,
            parts=self.parts.plus(len(self.parts), part),
            periods=periods,
            holders={**self.holders, event.analyst: holder},
        )

    def _is_sole_holder(self, analyst: str | None) -> bool:
        """Whether nothing was ever allocated: then what fits the whole fits what is not allocated."""
        return analyst is None and not self.allowances

    def _holding(self, analyst: str | None) -> tuple[Amount, str]:
        if analyst is None:
            return self.limit.minus(self.allocated), f"what is not allocated of {self.name}"
        return self._allowance(analyst), f"the allocation of {analyst} on {self.name}"

    def _allowance(self, analyst: str) -> Amount:
        if analyst not in self.allowances:
            raise Refusal(
                f"{analyst} has no allocation on {self.name}",
                field="analyst",
                expected="an analyst with an allocation on this data set",
                hint="An allocator sets it aside: ledger.allocate(dataset, Equal([...]), by=allocator).",
            )
        return self.allowances[analyst]

    def allowed(self, shares: Mapping[str, Amount]) -> Account:
        """With allocations added, if all of them fit in what is neither spent nor set aside."""
        requested = total(shares.values(), self.flavor)
        if not requested.fits(self.unreserved()):
            raise OverBudget(f"what is not allocated of {self.name}", requested, self.unreserved())
        none = Amount.none(self.flavor)
        added = {name: self.allowances.get(name, none) + share for name, share in shares.items()}
        return changed(self, allowances={**self.allowances, **added})

    def withdrawn(self, analyst: str) -> Account:
        """With an allocation cut down to what was spent of it."""
        self._allowance(analyst)
        return changed(self, allowances={**self.allowances, analyst: self.held(analyst).amount()})

    def spend(self, sequence: int) -> Spend:
        if sequence not in self.spends:
            raise UnknownName(
                f"event {sequence} is not a spend on {self.name}",
                field="spend",
                expected="the sequence number of a spend",
                hint="See `stirred ledger show`.",
            )
        return self.spends[sequence]

    def released(self, plan: str) -> bool:
        """Whether a release of the plan was paid for and not given up."""
        return any(not self.spends[number].abandoned for number in self._paid_for(plan))

    def pending(self, plan: str) -> Spend | None:
        """The open spend of a plan: the last one, since no plan is paid for while a spend of it is open."""
        numbers = self._paid_for(plan)
        last = self.spends[numbers[-1]] if numbers else None
        return last if last is not None and last.status == "open" else None

    def _paid_for(self, plan: str) -> tuple[int, ...]:
        """The spends of a plan; most plans are new, and ``get`` would raise and catch for each of them."""
        return self.plans[plan] if plan in self.plans else ()  # noqa: SIM401

    def waiting(self, plan: str) -> Spend:
        """The open spend of a plan, or the reason why there is none."""
        found = self.pending(plan)
        if found is not None:
            return found
        raise NotOpen(
            f"{self.name} has no open spend of this plan"
            + (": the release was finished" if self.released(plan) else ": nothing was spent for it"),
            field="plan",
            expected="the digest of exactly the plan that was frozen when the budget was spent",
            hint="A release is resumed only with the same plan; a changed plan is a new release.",
        )

    def with_spend(self, spend: Spend) -> Account:
        """With a new spend, or with what has become of one."""
        plans, known = self.plans, self._paid_for(spend.plan)
        if spend.sequence not in known:
            plans = plans.plus(spend.plan, (*known, spend.sequence))
        return changed(self, spends=self.spends.plus(spend.sequence, spend), plans=plans)

    def composed(self, period: str | None = None) -> Specification:
        """The guarantee of everything so far; a tainted account is certified no more."""
        whole = (self.spent if period is None else self.of_period(period)).specification()
        return self._marked(whole)

    def priced(self, specification: Specification) -> Amount:
        """A guarantee in the coordinates of the ceiling's flavor."""
        return Amount.of(carried(specification, self.flavor, None, None).specification)

    def by_unit(self, period: str | None = None) -> dict[str, Specification]:
        """The releases of each protection unit, each composed in its own flavor, before any group factor."""
        groups: dict[str, list[Specification]] = {}
        for spend in self.spends.values():
            if period is not None and spend.period != period:
                continue
            groups.setdefault(spend.specification.input_premetric.unit, []).append(spend.specification)
        return {unit: self._marked(jointly(*parts)) for unit, parts in groups.items()}

    def recomputed(self) -> Amount:
        """The total composed from all parts at once, not one by one."""
        return tally(list(self.parts.values()), self.flavor).amount()

    def _marked(self, whole: Specification) -> Specification:
        if not self.tainted:
            return whole
        notes = tuple(f"not covered by any guarantee: {reason}" for reason in self.tainted)
        fields = {"assumptions": (*whole.assumptions, *notes), "standing": "uncertified"}
        return Specification(**dict(whole) | fields)


@lru_cache(maxsize=1024)
def _part(release: str, ceiling: str, group: Group | None, sample: Sample | None) -> Part:
    """A release under a ceiling, both by their canonical texts: another text is another answer."""
    return carried(specified(release), specified(ceiling).flavor, group, sample)


def _charge(before: Tally, part: Part, limit: Amount, where: str) -> Tally:
    """The tally with one more release, or a refusal with requested, remaining and difference."""
    spent = before.amount()
    if part.sample is None:
        # Where releases are summed, the sum is drawn up once.
        summed = before.plus(part) if before.adds(part) else None
        together = spent + part.amount if summed is None else summed.amount()
        if not together.fits(limit):
            raise OverBudget(where, part.amount, limit.minus(spent))
        after = before.plus(part) if summed is None else summed
        if limit.is_infinite:
            after.specification()  # a sum beyond all meaning is refused here, not when it is shown
        return after
    after = before.plus(part)
    if not after.amount().fits(limit):
        raise OverBudget(where, after.amount().minus(spent), limit.minus(spent))
    return after


def _require_ceiling(ceiling: Specification, name: str) -> None:
    """Refuse a ceiling that is a curve, differs by universe, or has no exact square where one is needed."""
    units_of(ceiling.output_premetric)
    budget = ceiling.budget
    squared = budget.parametrisation in {"rho", "mu"}
    by_universe = not budget.is_constant or budget.policy is not None
    if by_universe or (squared and not budget.amount.is_infinite and budget.amount.square is None):
        raise InputError(
            "a ceiling is one exact number in every universe",
            field=f"{name}.budget",
            expected="a constant budget; for zCDP as rho_squared, for Gaussian DP with an exact square",
            hint="Use Budget.epsilon(...), Budget.zcdp(rho_squared=...) or Budget.gdp(mu=...).",
        )
