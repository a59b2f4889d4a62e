"""What a budget means in odds and in words, and what it does not mean.

For pure DP the odds between two data sets at distance d grow at most by exp(epsilon d). For zCDP they grow at
most by exp(epsilon) except with probability delta, where epsilon = (d rho)^2 + 2 d rho sqrt(-ln delta): the
privacy loss has that tail (Bun and Steinke 2016, proposition 1.3, whose proof bounds the tail itself).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from stirred.report.table import scientific, upward
from stirred.spec import (
    Exact,
    Invariants,
    Specification,
    Trivial,
    budget_disclosure,
    declared_invariants,
    factor_text,
    meaning_of,
    odds_exponent,
    odds_factor,
    plural,
    shown,
)

USUAL_DELTA = Fraction(1, 10**10)
PRIORS = {
    Fraction(1, 10**6): "1 in a million",
    Fraction(1, 100): "1 of 100",
    Fraction(1, 10): "10 of 100",
    Fraction(1, 2): "50 of 100",
}
DRAWN = Fraction(1, 10)
USEFUL = Fraction(999, 1000)
NEARLY_ALL = Fraction(95, 100)


@dataclass(frozen=True)
class Odds:
    """By how much odds can grow between data sets that differ in some units."""

    units: int
    unit: str
    epsilon: Exact

    @cached_property
    def factor(self) -> Fraction | None:
        """The factor, exactly or rounded up; none where it is beyond all floats."""
        return odds_factor(self.epsilon)

    def belief(self, prior: Fraction) -> Fraction:
        """The largest belief that can come from the share ``prior``."""
        factor = self.factor
        return Fraction(1) if factor is None else factor * prior / (1 - prior + factor * prior)

    def record(self) -> dict[str, Any]:
        """As numbers, rounded up."""
        factor = None if self.factor is None else upward(self.factor)
        return {
            "units": self.units,
            "unit": self.unit,
            "epsilon": upward(self.epsilon),
            "factor": None if factor == math.inf else factor,
            "log10_factor": odds_exponent(self.epsilon),
            "beliefs": [{"before": float(p), "after": upward(self.belief(p))} for p in PRIORS],
        }

    def words(self) -> dict[str, Any]:
        """As texts."""
        return {
            "units": f"{self.units} {self.unit if self.units == 1 else plural(self.unit)}",
            "epsilon": shown(self.epsilon),
            "factor": factor_text(self.factor, odds_exponent(self.epsilon)),
            "beliefs": [
                {"before": words, "after": belief_text(self.belief(p))} for p, words in PRIORS.items()
            ],
        }


@dataclass(frozen=True)
class Meaning:
    """A budget in words."""

    short: str
    sentence: str
    setting: str
    odds: tuple[Odds, ...]
    limits: tuple[str, ...]
    policy: str
    disclosure: tuple[bool, str]
    conversion_warnings: tuple[str, ...]

    @classmethod
    def of(cls, specification: Specification, delta: Fraction | None = None) -> Meaning:
        """The meaning of a specification's budget; zCDP is read at ``delta``."""
        chance = delta or USUAL_DELTA
        odds = _odds(specification, chance)
        return cls(
            short=_short(specification, odds, chance),
            sentence=meaning_of(specification),
            setting=_setting(specification, chance) if odds else "",
            odds=odds,
            limits=_limits(specification),
            policy=specification.budget.rule.removesuffix("."),
            disclosure=_disclosure(specification),
            conversion_warnings=_conversion_warnings(specification),
        )

    def record(self) -> dict[str, Any]:
        """As plain data, with the belief that is drawn."""
        drawn = next((odds.belief(DRAWN) for odds in self.odds[:1] if odds.factor is not None), None)
        return {
            "sentence": self.sentence,
            "setting": self.setting,
            "odds": [odds.record() for odds in self.odds],
            "does_not_mean": list(self.limits),
            "picture": None if drawn is None else {"before": float(DRAWN), "after": upward(drawn)},
        }


def belief_text(share: Fraction | float) -> str:
    """A belief for people, rounded up.

    Examples
    --------
    >>> belief_text(Fraction(1, 3)), belief_text(0.99999), belief_text(0.5)
    ('33.4 of 100', '100 of 100 (no limit)', '50 of 100')
    """
    exact = Fraction(str(share))
    if exact > USEFUL:
        return "100 of 100 (no limit)"
    tenths = math.ceil(exact * 1000)
    return f"{tenths // 10} of 100" if tenths % 10 == 0 else f"{tenths / 10:.1f} of 100"


def _odds(specification: Specification, delta: Fraction) -> tuple[Odds, ...]:
    premetric, budget = specification.output_premetric, specification.budget
    if budget.curve or budget.largest.is_infinite:
        return ()
    amount = max(budget.linear(universe) for universe in range(len(budget.amounts)))
    alone = specification.input_premetric.flags.neighbour_valued
    found = {units: premetric.log_odds(amount * units, delta) for units in ((1,) if alone else (1, 2))}
    unit = specification.input_premetric.unit.replace("_", " ")
    return tuple(Odds(units, unit, epsilon) for units, epsilon in found.items() if epsilon is not None)


def _short(specification: Specification, odds: tuple[Odds, ...], delta: Fraction) -> str:
    unit = specification.input_premetric.unit.replace("_", " ")
    if specification.constrains_nothing:
        return "Nothing else is promised: the budget is infinite."
    if not odds:
        return f"For everything else the budget is {specification.budget}, for a change of one {unit}."
    tail = specification.output_premetric.tail
    but = f", except with probability {scientific(delta)}" if tail else ""
    after = odds[0].belief(DRAWN)
    if after > NEARLY_ALL:
        return (
            f"For everything else the budget is {specification.budget}. By itself this number hardly limits "
            f"what somebody may come to believe about one {unit}: it is a ceiling for the worst case, and "
            "how uncertain the figures are has to be judged beside it."
        )
    return (
        f"For everything else the budget is {specification.budget}: whoever gave something about one {unit} "
        f"a chance of 10 of 100 before the release may give it at most {belief_text(after)} after "
        f"it{but}."
    )


def _setting(specification: Specification, delta: Fraction) -> str:
    unit = specification.input_premetric.unit.replace("_", " ")
    text = (
        "Imagine somebody who knows all the data but cannot tell two possible data sets apart; they differ "
        f"in the units shown (one {unit}, or two)"
    )
    if declared_invariants(specification.multiverse) != ():
        text += (
            " and agree on everything that is published exactly. To keep these statistics exact, a change of "
            f"one {unit} must often be made up for by another, so that two differ: read both lines"
        )
    if specification.input_premetric.flags.neighbour_valued:
        text = text.replace("the units shown (one " + unit + ", or two)", f"one {unit}")
    premetric = specification.output_premetric
    if premetric.tail:
        text += (
            f". Guaranteed is {specification.budget}; the limits below follow from it except with "
            f"probability {scientific(delta)}, by {premetric.tail}"
        )
    if premetric.mass:
        text += f". The limits hold apart from the probability {scientific(premetric.mass)}"
    return f"{text}."


def _limits(specification: Specification) -> tuple[str, ...]:
    unit = specification.input_premetric.unit.replace("_", " ")
    limits = [
        "It is not a probability: neither that somebody is identified, nor that a figure is wrong.",
        "It is nominal: a number relative to the domain, the exact statistics, the unit and the measure. "
        "Change one of them and the number changes, although the release does not.",
        "It cannot be compared with a number from another kind of guarantee: a smaller number elsewhere may "
        "protect less.",
        "It is a ceiling for the worst case, not a measurement of what this release reveals.",
        f"It does not limit what is learnt about a {unit} from others, without its own data.",
    ]
    if declared_invariants(specification.multiverse) != ():
        limits.insert(
            2,
            "It does not cover the exact statistics: what follows from them is revealed with certainty, "
            "whatever the number.",
        )
    return tuple(limits)


def _disclosure(specification: Specification) -> tuple[bool, str]:
    """Whether the number itself may be stated, and why (Corollary A.2.2 of the thesis)."""
    budget = specification.budget
    if budget.is_constant and budget.policy is None:
        return (
            True,
            "The number: it is the same for all possible data sets, so that stating it reveals nothing.",
        )
    if budget.is_constant and isinstance(specification.multiverse, Invariants | Trivial):
        return True, (
            "The number: it follows by the policy from the exact statistics, so that stating it reveals "
            "nothing beyond them."
        )
    if specification.is_finite and not budget.curve:
        found = budget_disclosure(specification)
        return found.realised_budget, f"The number that holds for the true data: {found.reason}."
    if budget.curve:
        return True, "The curve: it is the same for all possible data sets."
    return False, (
        "The number that holds for the true data: whether it tells comparable data sets apart was not "
        "decided; state the policy."
    )


def _conversion_warnings(specification: Specification) -> tuple[str, ...]:
    premetric = specification.output_premetric
    if not premetric.tail:
        return ()
    name, _ = premetric.own(specification.budget)
    return (
        f"An ε without its δ, the rule it was converted by, and the {name} that is guaranteed.",
        "That k units cost k times this ε: the converted number holds for one unit and grows faster.",
    )
