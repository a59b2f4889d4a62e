"""The conformity audit: whether the code that makes releases draws from the law that was enumerated.

An exact audit speaks of a law, a release is a draw of code. Two tests share alpha: every outcome by its exact
binomial law, and all counts together by their relative entropy to the law.

Guarantee
    A sampler that has the law is called different with probability at most alpha, at any number of draws: no
    limit theorem is used, whose tails are wrong at one in a million.
Assumes
    ``sample`` draws independently. A difference smaller than ``resolution`` goes unseen.
Reference
    Agrawal, Finite-sample concentration of the multinomial in relative entropy, IEEE Transactions on
    Information Theory 66 (2020): P(n D >= g) <= exp(-g) (e g / (k - 1))^(k - 1) for g > k - 1, D the relative
    entropy of n draws' frequencies in k cells to their law.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.audit import binomial
from stirred.audit.finding import Certificate, Finding, Verdict
from stirred.audit.outputs import Outputs, label_of, outputs_of, sampler_of
from stirred.audit.raised import Raised, outcome_of
from stirred.errors import InputError
from stirred.noise import Source
from stirred.spec import ZERO, Exact, as_fraction

POOLED_BELOW = 5
PLACES = 9


def conformity_audit(
    sample: Any,
    data: Any,
    law: Mapping[Any, Any],
    *,
    draws: int = 100_000,
    alpha: float = 1e-6,
    source: Source,
    subject: str = "the sampler",
) -> Finding:
    """Draw on one data set and compare with the exact law of its outputs.

    Time is O(draws log draws + outcomes).

    Parameters
    ----------
    sample
        A function of a data set, a count and a source that returns so many independent outputs; or a
        mechanism with such a method ``sample``.
    law
        Each outcome with its exact probability, or with two rationals around it. Outcomes that are not listed
        have what remains together: nothing, where the listed probabilities sum to one.

    A violation of a single outcome is measured as the difference of probabilities that is certain; one of all
    counts together as relative entropy to the law for each draw, against the most that the law explains.
    """
    masses = _enclosed(law)
    raw = outcome_of(sampler_of(sample), data, draws, source)
    if isinstance(raw, Raised):  # the law may know it
        return _raised(raw.error, masses, data, subject)
    counts = _tally(outputs_of(raw, draws))
    listed = [counts.pop(outcome, 0) for outcome in masses.outcomes]
    cells = _Cells(
        np.array([*listed, sum(counts.values())], dtype=np.int64),
        np.array([float(low) for low, _ in masses.bounds]),
        np.array([_positive(high) for _, high in masses.bounds]),
    )
    details: dict[str, Any] = {"draws": draws, "alpha": alpha, "outcomes": len(masses.outcomes)}
    test = _Test(masses, cells, data, details, subject)
    impossible = np.flatnonzero((cells.high == 0) & (cells.hits > 0))
    if len(impossible):
        return _impossible(test, int(impossible[0]), counts)
    share = alpha / (4 * len(cells.hits))
    gaps = _gaps(cells, draws, share)
    details["resolution"] = _resolution(cells, draws, share)
    worst = int(np.argmax(gaps))
    if gaps[worst] > 0:
        return _off(test, worst, float(gaps[worst]), share)
    return _together(test, draws, alpha / 2)


class _Masses(NamedTuple):
    """Outcomes, and rationals around each of their probabilities; last, those of all others together."""

    outcomes: list[Hashable]
    bounds: list[tuple[Fraction, Fraction]]


class _Cells(NamedTuple):
    hits: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


class _Test(NamedTuple):
    masses: _Masses
    cells: _Cells
    data: Any
    details: dict[str, Any]
    subject: str

    def violated(
        self, sentence: str, event: Any, measured: Exact, claimed: Exact = ZERO, sides: Any = None
    ) -> Finding:
        certificate = Certificate((self.data, self.data), ZERO, measured, claimed, event, sides)
        shown = self.subject, self.details, measured, claimed, certificate
        return _finding(Verdict.VIOLATED, sentence, *shown)


def _enclosed(law: Mapping[Any, Any]) -> _Masses:
    bounds = []
    for mass in law.values():
        pair = mass if isinstance(mass, tuple) else (mass, mass)
        low, high = (as_fraction(side) for side in pair)
        bounds.append((low, high))
    rest = tuple(1 - sum((pair[end] for pair in bounds), Fraction(0)) for end in (1, 0))
    if any(not 0 <= low <= high <= 1 for low, high in bounds) or rest[1] < 0 or not law:
        raise InputError(
            "this is not a probability law",
            field="law",
            expected="outcomes with exact probabilities, or rationals around them, of sum at most one",
            hint="Give fractions, or enclosures with the lower end first.",
        )
    return _Masses([label_of(outcome) for outcome in law], [*bounds, (max(rest[0], Fraction(0)), rest[1])])


def _positive(mass: Fraction) -> float:
    """A float that is zero only if the mass is."""
    return max(float(mass), math.ulp(0.0)) if mass > 0 else 0.0


def _tally(outputs: Outputs) -> Counter[Hashable]:
    if not isinstance(outputs, np.ndarray):
        return Counter(outputs)
    values, counts = np.unique(outputs, axis=None if outputs.ndim == 1 else 0, return_counts=True)
    return Counter(dict(zip((label_of(value) for value in values), counts.tolist(), strict=True)))


def _gaps(cells: _Cells, draws: int, share: float) -> NDArray[np.float64]:
    """How far each probability certainly is from the law's: the exact binomial test, both sides."""
    above = binomial.lower(cells.hits, draws, share) - cells.high
    below = cells.low - binomial.upper(cells.hits, draws, share)
    return np.maximum(above, below)


def _resolution(cells: _Cells, draws: int, share: float) -> float:
    """The widest interval that expected hits leave for a probability."""
    expected = np.minimum(cells.high, 1.0) * draws
    widths = binomial.upper(expected, draws, share) - binomial.lower(expected, draws, share)
    return float(widths.max())


def entropy_level(g: float, cells: int) -> float:
    """A bound on the probability that draws times relative entropy reach g, in so many cells.

    Examples
    --------
    >>> round(entropy_level(10, 2), 6)
    0.001234
    """
    if g <= cells - 1:
        return 1.0
    return math.exp(-g + (cells - 1) * (1 + math.log(g / (cells - 1))))


def _most_explained(level: float, cells: int) -> float:
    """The least g whose level is small enough, by bisection; rounded up."""
    low, high = float(cells - 1), 2.0 * cells + 4 * math.log(1 / level)
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if entropy_level(middle, cells) <= level else (middle, high)
    return high


def _together(test: _Test, draws: int, level: float) -> Finding:
    """All counts at once, rare outcomes pooled: which ones depends on the law alone.

    With the upper ends of the enclosures the entropy is not above that to any law within them.
    """
    cells, details = test.cells, test.details
    rare = cells.high * draws < POOLED_BELOW
    hits = np.append(cells.hits[~rare], cells.hits[rare].sum()).astype(np.float64)
    high = np.append(cells.high[~rare], min(1.0, float(cells.high[rare].sum())))
    seen, possible = hits > 0, int(np.count_nonzero(high))
    entropy = float(np.sum(hits[seen] * np.log(hits[seen] / (draws * high[seen])))) * (1 - 1e-9)
    most = _most_explained(level, possible) if possible > 1 else 0.0
    measured, explained = (_per_draw(value, draws, up) for value, up in ((entropy, False), (most, True)))
    details["cells"] = possible
    if measured > explained:
        sentence = (
            f"{draws} draws do not have the law: their relative entropy to it is at least "
            f"{measured.rounded(6, down=True)} for each draw, and the law explains "
            f"{explained.rounded(6, up=True)}"
        )
        return test.violated(sentence, "all counts together", measured, explained)
    sentence = (
        f"{draws:,} draws agree with the law, each of {details['outcomes']:,} outcomes and all "
        f"together; a probability that is off by less than {details['resolution']:.2g} may go unseen"
    )
    return _finding(Verdict.NOT_REFUTED, sentence, test.subject, details, measured, explained)


def _per_draw(value: float, draws: int, up: bool) -> Exact:
    exact = Exact.computed(max(value, 0.0)) / draws
    return Exact(Fraction(exact.rounded(PLACES, up=up, down=not up)))


def _off(test: _Test, index: int, gap: float, share: float) -> Finding:
    masses, cells = test.masses, test.cells
    draws, hits = test.details["draws"], cells.hits[index]
    low, high = (float(bound(hits, draws, share)) for bound in (binomial.lower, binomial.upper))
    often = low > cells.high[index]
    sides = (low, masses.bounds[index][1]) if often else (high, masses.bounds[index][0])
    measured = Exact.computed(gap)
    event = masses.outcomes[index] if index < len(masses.outcomes) else "all that is not listed"
    sentence = (
        f"an outcome comes out too {'often' if often else 'rarely'}: its probability is off by at least "
        f"{measured.rounded(6, down=True)}"
    )
    return test.violated(sentence, event, measured, sides=sides)


def _impossible(test: _Test, index: int, others: Counter[Hashable]) -> Finding:
    masses, hits, draws = test.masses, test.cells.hits[index], test.details["draws"]
    measured = Exact.computed(float(binomial.lower(hits, draws, test.details["alpha"])))
    event = next(iter(others)) if index == len(masses.outcomes) else masses.outcomes[index]
    sentence = f"an outcome that the law excludes came out {hits} times in {draws} draws"
    return test.violated(sentence, event, measured, sides=(measured, ZERO))


def _raised(name: str, masses: _Masses, data: Any, subject: str) -> Finding:
    known = dict(zip(masses.outcomes, masses.bounds, strict=False)).get(("raises", name))
    if known is not None and known[1] > 0:
        sentence = f"the sampler raises {name}, as the law says it may: how often is not counted"
        return _finding(Verdict.NOT_APPLICABLE, sentence, subject, {})
    certificate = Certificate((data, data), ZERO, ZERO, ZERO, f"raises {name}")
    sentence = f"the sampler raises {name}, which the law excludes"
    return _finding(Verdict.VIOLATED, sentence, subject, {}, certificate=certificate)


def _finding(
    verdict: Verdict,
    sentence: str,
    subject: str,
    details: Mapping[str, Any],
    measured: Exact | None = None,
    claimed: Exact | None = None,
    certificate: Certificate | None = None,
) -> Finding:
    return Finding("conformity", subject, verdict, sentence, measured, claimed, certificate, details)
