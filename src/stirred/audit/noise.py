"""The noise of a draw, query by query: every family of counts against its own discrete Gaussian.

A family is what one query adds at one level with one variance parameter. Each is tested alone, and families
are put together by level, by query, by variance and all: a law that is wrong in a small family shows there.

Guarantee
    Noise that has the law, independent from count to count, is called different with probability at most
    alpha. Squares have certified tails (no noise at all is the end of that tail: its probability is exactly
    that of so many zeros), signs and pairs of signs exact binomial ones.
Assumes
    Double precision, widened as in ``stirred.audit.tails``.
Reference
    The generating function of a squared discrete Gaussian is a ratio of theta series: tilted, it is another
    discrete Gaussian. Given their sizes, the signs of independent symmetric numbers are fair coins, and so
    are the products of signs along a forest of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.audit.finding import Finding, Verdict
from stirred.audit.tails import (
    Checks,
    Floats,
    binomial_cumulants,
    log_entropy_tail,
    log_fair_tail,
    log_square_tail,
    log_tail,
    log_weight,
    problem_of,
    summed,
)

Ints = NDArray[np.int64]

CELLS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5)
ENOUGH = 30
ALIGNED = 512
MIDDLE = 0.6745


@dataclass(frozen=True, eq=False)
class Family:
    """Noise of one variance parameter: where it was added, and draws of it, each a table of nodes by cells.

    ``place`` names, from coarse to fine, what the family belongs to: unit, level, query. ``counted`` says,
    for every draw, which of the true counts are not zero: noise must not look at them.
    """

    place: tuple[str, ...]
    variance: Fraction
    draws: Sequence[NDArray[Any]]
    counted: Sequence[NDArray[np.bool_]] = ()

    def part(self, counted: bool) -> Family:
        """The noise of the counts that are zero, or of those that are not, in a column."""
        pairs = zip(self.draws, self.counted, strict=True)
        return Family(self.place, self.variance, [draw[mask == counted][:, None] for draw, mask in pairs])

    @property
    def values(self) -> Ints:
        """All of them in a row."""
        flat = [np.asarray(draw, dtype=np.int64).reshape(-1) for draw in self.draws]
        return np.concatenate([np.zeros(0, dtype=np.int64), *flat])


def noise_audit(
    families: Sequence[Family],
    *,
    alpha: float = 1e-6,
    subject: str = "the noise",
    details: Mapping[str, Any] = {},
) -> Finding:
    """Compare families of noise with their laws; draws with one number are drawn together in all families."""
    found = noise_problem(families, alpha=alpha)
    facts = {"families": len(families), "alpha": alpha, **details}
    if not families:
        return Finding("conformity", subject, Verdict.VACUOUS, "nothing is measured", details=facts)
    if found is not None:
        return Finding("conformity", subject, Verdict.VIOLATED, found, details=facts)
    variances = len({family.variance for family in families})
    sentence = (
        f"the noise of {_many(len(families), 'query of a level', 'queries of all levels')}, of "
        f"{_many(variances, 'variance parameter', 'variance parameters')}, agrees with the law: its squares, "
        "its signs and its shape, and no noise is used twice"
    )
    return Finding("conformity", subject, Verdict.NOT_REFUTED, sentence, details=facts)


def _many(count: int, one: str, many: str) -> str:
    return f"1 {one}" if count == 1 else f"{count} {many}"


def noise_problem(families: Sequence[Family], *, alpha: float = 1e-6) -> str | None:
    """What of the law the noise breaks, in a sentence; None if nothing is found."""
    return problem_of(_tests(families), alpha) if families else None


def _tests(families: Sequence[Family]) -> Iterator[Checks]:
    values = [family.values for family in families]
    yield from _squares(families, values)
    yield from _signs(families, values)
    yield _shapes(families, values)
    yield from _again(families)
    yield from _shared(families)
    for counted in (True, False):
        parts = [family.part(counted) for family in families if family.counted]
        parts = [part for part in parts if part.values.size]
        if parts:
            values = [part.values for part in parts]
            yield from _squares(parts, values)
            yield from _signs(parts, values)


def _pools(families: Sequence[Family]) -> dict[str, Ints]:
    """Ways to put families together, with the group of each."""
    depth = min(len(family.place) for family in families)
    ways: dict[str, list[Any]] = {"of a query of a level": list(range(len(families)))}
    ways["of a level"] = [family.place[: max(depth - 1, 1)] for family in families]
    ways["of a query"] = [(family.place[0], family.place[-1]) for family in families]
    ways["of a variance parameter"] = [family.variance for family in families]
    ways["of all queries"] = [0] * len(families)
    return {name: _numbered(labels) for name, labels in ways.items()}


def _numbered(labels: Iterable[Any]) -> Ints:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.int64)


def _squares(families: Sequence[Family], values: Sequence[Ints]) -> Iterator[Checks]:
    """Sums of squares, each over its variance parameter."""
    variances = np.array([float(family.variance) for family in families])
    counts = np.array([float(v.size) for v in values])
    scaled = np.array([float(np.square(v, dtype=np.float64).sum()) for v in values]) / variances
    for name, groups in _pools(families).items():
        tails = log_square_tail(summed(groups, scaled), groups, counts, variances)
        yield Checks(f"the noise {name} is too small or too large", tails)


def _signs(families: Sequence[Family], values: Sequence[Ints]) -> Iterator[Checks]:
    above, below = (np.array([int((side * v > 0).sum()) for v in values]) for side in (1, -1))
    for name, groups in _pools(families).items():
        heads, tosses = (np.bincount(groups, part).astype(np.int64) for part in (above, above + below))
        yield Checks(f"the noise {name} leans to one side", log_fair_tail(heads, tosses))


def _shapes(families: Sequence[Family], values: Sequence[Ints]) -> Checks:
    """Sizes in cells of about a quarter of a standard deviation: all counts together."""
    tails = []
    for family, own in zip(families, values, strict=True):
        if own.size >= ENOUGH:
            spread = math.sqrt(float(family.variance))
            edges = np.unique(np.floor(np.array(CELLS) * spread)).astype(np.int64)
            masses = np.diff(cumulated(float(family.variance), edges), prepend=0.0, append=1.0)
            hits = np.bincount(np.searchsorted(edges, np.abs(own)), minlength=edges.size + 1)
            tails.append(log_entropy_tail(hits.astype(np.float64), np.maximum(masses, 1e-300)))
    return Checks("the noise of a query of a level has another shape", np.array(tails))


def cumulated(variance: float, edges: Ints) -> Floats:
    """P(|Z| <= edge) for the discrete Gaussian, in floats, by adding the masses of each stretch."""
    from stirred.noise import gaussian_cdf

    if variance > 1e4:
        exact = Fraction(variance)
        return np.array([float(2 * gaussian_cdf(exact, int(edge)).low - 1) for edge in edges])
    k = np.arange(int(edges.max()) + 1, dtype=np.float64)
    weights = np.exp(-(k**2) / (2 * variance) - float(log_weight(np.array([variance]))[0]))
    weights[1:] *= 2
    return np.asarray(np.minimum(np.cumsum(weights)[edges], 1.0))


def _again(families: Sequence[Family]) -> Iterator[Checks]:
    """The signs of neighbours: the next cell, the next node, the same count in the next draw."""
    names = ("cells of a node", "neighbouring nodes", "two draws")
    agree, both = np.zeros((3, len(families)), dtype=np.int64), np.zeros((3, len(families)), dtype=np.int64)
    for number, family in enumerate(families):
        signs = [np.sign(np.asarray(draw, dtype=np.int64)) for draw in family.draws]
        for table in signs:
            for axis, (one, two) in enumerate(((table[:, 1:], table[:, :-1]), (table[1:], table[:-1]))):
                _count(one * two, agree, both, (axis, number))
        for one, two in zip(signs[1:], signs, strict=False):
            if one.shape == two.shape:
                _count(one * two, agree, both, (2, number))
    for axis, name in enumerate(names):
        yield Checks(f"the noise of {name} is not independent", log_fair_tail(agree[axis], both[axis]))


def _count(products: Ints, agree: Ints, both: Ints, at: tuple[int, int]) -> None:
    agree[at] += int((products > 0).sum())
    both[at] += int(np.count_nonzero(products))


def _shared(families: Sequence[Family]) -> Iterator[Checks]:
    """Two families, count by count from the first of each draw on: what one stream gives has one size.

    Signs agree like a fair coin, and both are large as often as the product of their probabilities.
    """
    draws = max(len(family.draws) for family in families)
    each = max(1, ALIGNED // draws)
    shape = len(families), draws, each
    signs, large, there = (np.zeros(shape, dtype=np.float64) for _ in range(3))
    chances = np.zeros(len(families))
    for number, family in enumerate(families):
        edge = math.floor(MIDDLE * math.sqrt(family.variance))
        chances[number] = 1 - cumulated(float(family.variance), np.array([edge]))[0]
        for i, draw in enumerate(family.draws):
            head = draw.reshape(-1)[:each]
            signs[number, i, : head.size] = np.sign(head)
            large[number, i, : head.size] = np.abs(head) > edge
            there[number, i, : head.size] = 1
    upper = np.triu_indices(len(families), 1)

    def in_pairs(table: Floats) -> Floats:
        flat = table.reshape(len(families), -1)
        return np.asarray((flat @ flat.T)[upper])

    both = in_pairs(np.abs(signs))
    agree = np.rint((both + in_pairs(signs)) / 2).astype(np.int64)
    what = "two queries or levels share their noise"
    yield Checks(what, log_fair_tail(agree, both.astype(np.int64)))
    cumulants = binomial_cumulants(in_pairs(there), chances[upper[0]] * chances[upper[1]])
    yield Checks(what, log_tail(in_pairs(large), np.arange(upper[0].size), cumulants))
