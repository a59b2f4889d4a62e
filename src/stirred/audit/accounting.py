"""The accounting audit: a composed claim against the exact composition of the worst mechanism.

Among all (epsilon, delta)-private mechanisms one pair of laws is the easiest to tell apart: randomised
response that with probability delta says the truth openly. Its composition is enumerated in rationals, by the
number of answers of each kind; no claim about k such mechanisms may be below it.

Guarantee
    "Violated" is exact: an event breaks the claimed pair. A claim that is kept may still be misstated: above
    the theorem that it cites.
Assumes
    Independent seeds. e to the epsilon of one mechanism is rational.
Reference
    Kairouz, Oh and Viswanath, The composition theorem for differential privacy (2015), Theorems 3.3 and 3.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from stirred.audit.finding import Certificate, Finding, Verdict
from stirred.errors import InputError
from stirred.spec import EpsilonDelta, Exact

ROUNDING = Fraction(1, 10**12)
LARGEST_EXPONENT = 700


@dataclass(frozen=True)
class WorstCase:
    """The k-fold composition of the worst (epsilon, delta)-private mechanism, in rationals.

    ``ratio`` is e to the epsilon of one mechanism, ``delta`` its delta, ``count`` is k.
    """

    ratio: Fraction
    delta: Fraction
    count: int

    def __post_init__(self) -> None:
        if self.ratio < 1 or not 0 <= self.delta <= 1 or self.count < 1:
            raise InputError(
                "this is not a composition of private mechanisms",
                field="ratio",
                expected="a ratio of at least one, a delta from 0 to 1, and a count of at least one",
                hint="The ratio is e to the epsilon of one mechanism.",
            )

    def event(self, factor: Fraction) -> tuple[int, Fraction, Fraction]:
        """The event that breaks a factor most, with its two probabilities.

        It is: some mechanism said the truth openly, or at least so many gave the likelier answer.
        """
        k, r = self.count, self.ratio
        hidden = (1 - self.delta) ** k
        least = next((j for j in range(k + 1) if r**j > factor * r ** (k - j)), k + 1)
        share = hidden / (1 + r) ** k
        p = share * sum(math.comb(k, j) * r**j for j in range(least, k + 1))
        q = share * sum(math.comb(k, j) * r ** (k - j) for j in range(least, k + 1))
        return least, 1 - hidden + p, q


def accounting_audit(
    claimed: EpsilonDelta,
    truth: WorstCase,
    *,
    stated: EpsilonDelta | None = None,
    tolerance: float = 1e-9,
    subject: str = "the accountant",
) -> Finding:
    """Compare what an accountant says of k mechanisms with what is true of the worst of them.

    Parameters
    ----------
    claimed
        The epsilon and the delta that the accountant reports.
    stated
        What the theorem says that the accountant cites: a claim above it, beyond the tolerance, is misstated.
    """
    factor = _above_exponential(claimed.epsilon)
    least, p, q = truth.event(factor)
    delta, allowed = Exact(p - factor * q), Exact(Fraction(claimed.delta) * (1 + ROUNDING))
    details = {"count": truth.count, "epsilon": claimed.epsilon, "delta": claimed.delta}
    if delta > allowed:
        sentence = (
            f"{truth.count} mechanisms have a delta of at least {float(delta):.4g} at the claimed epsilon, "
            f"above the claimed {claimed.delta:.4g}"
        )
        certificate = Certificate(("P", "Q"), Exact.of(1), delta, allowed, least, (p, q))
        return Finding(
            "accounting", subject, Verdict.VIOLATED, sentence, delta, allowed, certificate, details
        )
    for name in EpsilonDelta._fields if stated is not None else ():
        said, theorem = getattr(claimed, name), getattr(stated, name)
        if said > theorem * (1 + tolerance):
            sentence = f"the claimed {name} of {said:.4g} is misstated: the cited theorem gives {theorem:.4g}"
            measured, over = Exact.computed(theorem), Exact.computed(said)
            return Finding("accounting", subject, Verdict.VIOLATED, sentence, measured, over, details=details)
    sentence = (
        f"{truth.count} mechanisms have a delta of {float(delta):.4g} at the claimed epsilon, as allowed"
    )
    return Finding("accounting", subject, Verdict.NOT_REFUTED, sentence, delta, allowed, details=details)


def stated_composition(epsilon: float, delta: float, count: int, slack: float) -> EpsilonDelta:
    """Theorem 3.4 of Kairouz, Oh and Viswanath: the least of three closed forms for k mechanisms.

    Examples
    --------
    >>> round(stated_composition(0.1, 0.0, 200, 1e-6).epsilon, 4)
    8.433
    """
    drift = count * epsilon * math.tanh(epsilon / 2)
    spread = epsilon * math.sqrt(2 * count)
    logs = (math.log(math.e + math.sqrt(count) * epsilon / slack), -math.log(slack))
    total = min(count * epsilon, *(drift + spread * math.sqrt(log) for log in logs))
    return EpsilonDelta(total, -math.expm1(count * math.log1p(-delta) + math.log1p(-slack)))


def _above_exponential(epsilon: float) -> Fraction:
    """A rational not below e to a claimed epsilon, so that the claim has the benefit of the doubt."""
    if not 0 <= epsilon <= LARGEST_EXPONENT:
        raise InputError(
            "the claimed epsilon is out of range",
            field="claimed.epsilon",
            expected=f"from 0 to {LARGEST_EXPONENT}",
            hint="A larger claim says nothing that could be refuted.",
        )
    return Fraction(math.exp(epsilon)) * (1 + ROUNDING)
