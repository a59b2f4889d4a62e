"""Bugs of units and samples: who is protected by how much noise, and what randomness is drawn twice.

All are audited exactly, with noise of rational probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

from stirred.audit import Finding, exact_audit
from stirred.museum.claims import ADD_OR_REMOVE, REPLACE, REPLACE_IN_PLACE, Law, claim, geometric, pushed
from stirred.museum.exhibit import Exhibit
from stirred.noise import Source
from stirred.spec import (
    Approximate,
    Budget,
    Condition,
    Count,
    Domain,
    Exact,
    Hamming,
    Schema,
    Specification,
    independent_samples,
    poisson_sampling,
    shared_sample,
    undo_imputation,
)

KEYS = ("a", "b")
SCHEMA = Schema.of(key=KEYS)


def clamped_geometric(count: int, ratio: Fraction, largest: int) -> Law:
    """A count with two-sided geometric noise, clamped to 0, ..., largest.

    Guarantee
        Counts that differ by one have loss exactly -ln(ratio).
    """
    return pushed(geometric(largest, ratio), lambda noise: min(max(count + noise, 0), largest))


def independent(*laws: Mapping[Any, Fraction]) -> Law:
    """The joint law of outcomes that are drawn independently."""
    joint: Law = {(): Fraction(1)}
    for law in laws:
        joint = {(*before, z): p * q for before, p in joint.items() for z, q in law.items()}
    return joint


def _audit(law: Callable[[Any], Law], promised: Specification, points: Any, subject: str) -> Finding:
    return exact_audit(SimpleNamespace(outcomes=law), points, promised, subject=subject)


def _counts(data: tuple[tuple[str], ...]) -> tuple[int, int]:
    return data.count(("a",)), data.count(("b",))


def _replace_one(broken: bool, source: Source) -> Finding:
    """Both counts of a table move when a record is replaced: the ratio 1/2 costs ln 4, and 1/4 ln 16."""
    ratio = Fraction(1, 4) if broken else Fraction(1, 2)
    promised = claim(Budget.epsilon("ln(4)"), REPLACE, domain=Domain.datasets(SCHEMA, (2,)))

    def law(data: Any) -> Law:
        return independent(*(clamped_geometric(count, ratio, 2) for count in _counts(data)))

    return _audit(law, promised, promised.domain.enumerate(), "counts by key")


def _threshold(broken: bool, source: Source) -> Finding:
    """The key b is published from a noisy count of 3 on; with one record that is 2 or more of noise.

    With ratio r noise of at least k has probability r^k / (1 + r). The bug counts from above the threshold.
    """
    ratio, threshold, largest = Fraction(1, 2), 3, 5
    beyond = threshold if broken else threshold - 1
    known = Count(unit="record", where=(Condition(attribute="key", levels=("a",)),))
    measure = Approximate(delta=Exact(ratio**beyond / (1 + ratio)))
    sized = Domain.datasets(SCHEMA, (1, 2))
    promised = claim(Budget.epsilon("ln(2)"), ADD_OR_REMOVE, measure, invariants=(known,), domain=sized)

    def law(data: Any) -> Law:
        count = _counts(data)[1]
        if not count:
            return {"absent": Fraction(1)}
        noisy = clamped_geometric(count, ratio, largest)
        return pushed(noisy, lambda k: k if k >= threshold else "absent")

    return _audit(law, promised, ((("a",),), (("a",), ("b",))), "key selection")


def _broadcast(broken: bool, source: Source) -> Finding:
    """Noise on the integers modulo 5; drawn once for both keys, the difference of the counts is exact."""
    ratio, size = Fraction(1, 2), 5
    weights = [ratio ** min(z, size - z) for z in range(size)]
    noise = {z: weight / sum(weights) for z, weight in enumerate(weights)}
    promised = claim(Budget.epsilon("ln(2)"), domain=Domain.datasets(SCHEMA, (0, 1, 2)))

    def law(data: Any) -> Law:
        first, second = _counts(data)
        draws = {(z, z): p for z, p in noise.items()} if broken else independent(noise, noise)
        return {((first + y) % size, (second + z) % size): p for (y, z), p in draws.items()}

    return _audit(law, promised, promised.domain.enumerate(), "noise by key")


def _shared_sample(broken: bool, source: Source) -> Finding:
    """Two randomised responses on one Poisson sample, claimed as if there were two samples."""
    rate, truth = Fraction(1, 2), Fraction(3, 4)
    epsilon = Exact.log(3).float_up()
    one = poisson_sampling(epsilon, [float(rate)])
    two = independent_samples([one, one])
    right = shared_sample([epsilon, epsilon], float(rate), "add-remove")
    budget = Budget.epsilon(Exact.computed((two if broken else right).epsilon))
    promised = claim(budget, domain=Domain.datasets(SCHEMA, (0, 1)))

    def law(data: Any) -> Law:
        present, absent = ({"yes": p, "no": 1 - p} for p in (truth, 1 - truth))
        inside, outside = independent(present, present), independent(absent, absent)
        return {z: rate * inside[z] + (1 - rate) * outside[z] for z in outside} if data else outside

    return _audit(law, promised, ((), (("a",),)), "two releases from a sample")


def _donor(broken: bool, source: Source) -> Finding:
    """Two respondents and one missing person, whose answer is copied from the first respondent."""
    ratio = Fraction(1, 2)
    answers = Domain.finite(tuple(product((0, 1), repeat=2)), structure="vector")
    record = claim(Budget.epsilon("ln(2)"), REPLACE_IN_PLACE, domain=answers)
    respondent = Hamming(unit="respondent")
    promised = (
        record.model_copy(update={"input_premetric": respondent})
        if broken
        else undo_imputation(record, respondent, 1)
    )

    def law(answers: Any) -> Law:
        return clamped_geometric(sum(answers) + answers[0], ratio, 3)

    return _audit(law, promised, promised.domain.enumerate(), "a count after imputation")


EXHIBITS: tuple[Exhibit, ...] = (
    Exhibit(
        "replace-one-as-add-remove",
        "Counts by key have noise for one record more or less; the claim is for one record replaced.",
        "our own",
        _replace_one,
    ),
    Exhibit(
        "threshold-mass",
        "Delta leaves out the probability of a noisy count that equals the threshold.",
        "our own",
        _threshold,
    ),
    Exhibit(
        "broadcast-keys",
        "One draw of noise is used for all keys, so differences between keys are exact.",
        "our own",
        _broadcast,
    ),
    Exhibit(
        "shared-sample",
        "Two releases from one sample are each amplified, and added up as if there were two samples.",
        "our own, after section 6.5.2 of Bailie's thesis",
        _shared_sample,
    ),
    Exhibit(
        "imputation-donor",
        "A donor's answer stands in two records, and the loss of one record is claimed for the donor.",
        "our own",
        _donor,
    ),
)
