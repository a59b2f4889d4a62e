"""What a budget means in odds and in words, and what it does not mean.

For pure DP the odds between two data sets at distance d grow at most by exp(epsilon d). For zCDP they grow at
most by exp(epsilon) except with probability delta, where epsilon = (d rho)^2 + 2 d rho sqrt(-ln delta): the
privacy loss has that tail (Bun and Steinke 2016, proposition 1.3, whose proof bounds the tail itself).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from stirred.report.table import scientific
from stirred.spec import (
    Approximate,
    Exact,
    Invariants,
    Multiplicative,
    NormalisedRenyi,
    Specification,
    Trivial,
    budget_disclosure,
    declared_invariants,
    epsilon_at_distance,
    plural,
    shown,
)

USUAL_DELTA = Fraction(1, 10**10)
PRIORS = {
    "1 in a million": Fraction(1, 10**6),
    "1 of 100": Fraction(1, 100),
    "10 of 100": Fraction(1, 10),
    "50 of 100": Fraction(1, 2),
}
DRAWN = Fraction(1, 10)
LARGEST_EXPONENT = 600
USEFUL = Fraction(999, 10)
NEARLY_ALL = 95


@dataclass(frozen=True)
class Odds:
    """By how much odds can grow between data sets that differ in some units."""

    units: int
    unit: str
    epsilon: Exact
    factor: Fraction | None

    def belief(self, prior: Fraction) -> Fraction | None:
        """The largest belief, in per cent, that can come from the share ``prior``."""
        if self.factor is None:
            return None
        return 100 * self.factor * prior / (1 - prior + self.factor * prior)

    def record(self) -> dict[str, Any]:
        """As text."""
        return {
            "units": f"{self.units} {self.unit if self.units == 1 else plural(self.unit)}",
            "epsilon": shown(self.epsilon),
            "factor": _factor(self),
            "beliefs": [
                {"before": words, "after": belief_text(self.belief(p))} for words, p in PRIORS.items()
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
        card = {line.question: line.answer for line in specification.card().lines}
        return cls(
            short=_short(specification, odds, chance),
            sentence=card["What does that number mean here?"],
            setting=_setting(specification, chance) if odds else "",
            odds=odds,
            limits=_limits(specification),
            policy=specification.budget.rule.removesuffix("."),
            disclosure=_disclosure(specification),
            conversion_warnings=_conversion_warnings(specification),
        )

    def record(self) -> dict[str, Any]:
        """As plain data, with the belief that is drawn."""
        return {
            "sentence": self.sentence,
            "setting": self.setting,
            "odds": [odds.record() for odds in self.odds],
            "does_not_mean": list(self.limits),
            "picture": self._picture(),
        }

    def _picture(self) -> dict[str, str] | None:
        found = self.odds[0].belief(DRAWN) if self.odds else None
        if found is None:
            return None
        after = Fraction(math.ceil(found * 1000), 1000) / 100
        return {
            "before": str(DRAWN),
            "after": str(min(after, Fraction(1))),
            "words": belief_text(found),
        }


def belief_text(percent: Fraction | None) -> str:
    """A belief for people, rounded up.

    Examples
    --------
    >>> belief_text(Fraction(100, 3)), belief_text(Fraction(99999, 1000)), belief_text(Fraction(50))
    ('33.4 of 100', '100 of 100 (no limit)', '50 of 100')
    """
    if percent is None or percent > USEFUL:
        return "100 of 100 (no limit)"
    tenths = math.ceil(percent * 10)
    return f"{tenths // 10} of 100" if tenths % 10 == 0 else f"{tenths / 10:.1f} of 100"


def _odds(specification: Specification, delta: Fraction) -> tuple[Odds, ...]:
    premetric, budget = specification.output_premetric, specification.budget
    if budget.curve or not isinstance(premetric, Multiplicative | Approximate | NormalisedRenyi):
        return ()
    largest = max(budget.amounts)
    if largest.is_infinite:
        return ()
    unit = specification.input_premetric.unit.replace("_", " ")
    alone = specification.input_premetric.flags.neighbour_valued
    out = []
    for units in (1,) if alone else (1, 2):
        if isinstance(premetric, NormalisedRenyi):
            if not budget.is_constant:
                return ()
            epsilon = epsilon_at_distance(specification, units, delta)
        else:
            epsilon = largest * units
        out.append(Odds(units, unit, epsilon, _exponential(epsilon)))
    return tuple(out)


def _exponential(epsilon: Exact) -> Fraction | None:
    """The exponential, exactly or rounded up; none where it is beyond all floats."""
    exact = epsilon.exponential
    if exact is not None:
        return exact
    value = epsilon.float_up()
    return None if value > LARGEST_EXPONENT else Fraction(math.exp(value)) * (1 + Fraction(1, 10**12))


def _factor(odds: Odds) -> str:
    if odds.factor is not None and odds.factor < 100_000:
        return f"{math.ceil(odds.factor * 100) / 100:,.2f}"
    exponent = math.ceil(odds.epsilon.float_up() / math.log(10) * 10) / 10
    return f"10 to the {exponent:.1f}"


def _short(specification: Specification, odds: tuple[Odds, ...], delta: Fraction) -> str:
    unit = specification.input_premetric.unit.replace("_", " ")
    if specification.constrains_nothing:
        return "Nothing else is promised: the budget is infinite."
    if not odds:
        return f"For everything else the budget is {specification.budget}, for a change of one {unit}."
    but = f", except with probability {scientific(delta)}" if _tail(specification) else ""
    after = odds[0].belief(DRAWN)
    if after is None or after > NEARLY_ALL:
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


def _tail(specification: Specification) -> bool:
    return isinstance(specification.output_premetric, NormalisedRenyi)


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
    if _tail(specification):
        text += (
            f". Guaranteed is {specification.budget}; the limits below follow from it except with "
            f"probability {scientific(delta)}, by ρ² + 2ρ√(−ln δ) (Bun and Steinke 2016)"
        )
    if isinstance(specification.output_premetric, Approximate):
        text += (
            f". The limits hold apart from the probability {scientific(specification.output_premetric.mass)}"
        )
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
    if not _tail(specification):
        return ()
    return (
        "An ε without its δ, the rule it was converted by, and the ρ² that is guaranteed.",
        "That k units cost k times this ε: the converted number holds for one unit and grows faster.",
    )
