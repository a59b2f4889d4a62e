"""Trade-off functions: the error rates that no test between two distributions can beat.

``TradeOff`` holds the curve of least type-II error against level (the convention of Dong, Roth and Su);
power is one minus that. On finite distributions the curve is piecewise linear with exact vertices
(Neyman and Pearson). Appendix A.6 of the thesis: every premetric that is immune to randomised
post-processing is a non-decreasing functional of the power curve, and conversely.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from stirred.errors import InputError, UnknownName
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.arithmetic.normal import quantile
from stirred.spec.finite.distribution import Distribution
from stirred.spec.finite.divergence import likelihood_ratio_order

Vertex = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class TradeOff:
    """Least type-II error at every level, by its vertices (level, error) from (0, .) to (1, 0)."""

    vertices: tuple[Vertex, ...]

    def __post_init__(self) -> None:
        levels = [level for level, _ in self.vertices]
        errors = [error for _, error in self.vertices]
        if not self.vertices or levels[0] != 0 or levels[-1] != 1 or levels != sorted(levels):
            raise _not_a_curve("levels that rise from 0 to 1")
        if errors != sorted(errors, reverse=True) or errors[0] > 1 or errors[-1] != 0:
            raise _not_a_curve("errors that fall to 0 at level 1")
        if any(
            _concave(*triple)
            for triple in zip(self.vertices, self.vertices[1:], self.vertices[2:], strict=False)
        ):
            raise _not_a_curve("a convex curve: errors that fall ever more slowly")

    @classmethod
    def between(cls, null: Distribution, alternative: Distribution) -> TradeOff:
        """The curve of the likelihood-ratio test of one distribution against another."""
        level = error = Fraction(0)
        vertices: list[Vertex] = [(Fraction(0), Fraction(1))]
        error = Fraction(1)
        for _, a, b in likelihood_ratio_order(alternative, null):
            level, error = level + b, error - a
            if b == 0 and len(vertices) == 1:
                vertices[0] = (Fraction(0), error)
            else:
                vertices.append((level, error))
        return cls(tuple(_convex(vertices)))

    def __call__(self, level: Fraction) -> Fraction:
        """Type-II error at a level."""
        for (a, f), (b, g) in itertools.pairwise(self.vertices):
            if a <= level <= b:
                return f if a == b else f + (g - f) * (level - a) / (b - a)
        return self.vertices[0][1]

    def power(self, level: Fraction) -> Fraction:
        """Largest power at a level."""
        return 1 - self(level)

    def easier_than(self, other: TradeOff) -> bool:
        """Whether every test problem here is at least as easy: power not below anywhere.

        The difference of two piecewise linear curves is least at a vertex of the other curve.
        """
        return all(self(level) <= error for level, error in other.vertices)


Functional = Callable[[TradeOff], Exact]


def advantage(curve: TradeOff) -> Exact:
    """Largest power minus level: total variation."""
    return Exact(max(1 - error - level for level, error in curve.vertices))


def log_power_ratio(curve: TradeOff) -> Exact:
    """Largest ln(power / level): max-divergence of the alternative from the null."""
    if curve.vertices[0][1] < 1:
        return INFINITY
    return max(Exact.log((1 - e) / a) for a, e in curve.vertices if a > 0)


def gaussian_separation(curve: TradeOff) -> Exact:
    """Least mu whose Gaussian trade-off lies below the curve; vertices suffice by convexity."""
    if curve.vertices[0][1] < 1 or any(e == 0 and a < 1 for a, e in curve.vertices):
        return INFINITY
    gaps = [-quantile(a) - quantile(e) for a, e in curve.vertices if 0 < a < 1]
    # Two tails beyond floats have no gap that floats know: nothing finite is claimed for them.
    return INFINITY if any(map(math.isnan, gaps)) else Exact.computed(max([0.0, *gaps]))


_FUNCTIONALS: dict[str, Functional] = {
    "advantage": advantage,
    "log-power-ratio": log_power_ratio,
    "gaussian-separation": gaussian_separation,
}


def register_functional(name: str, functional: Functional) -> None:
    """Add a functional that is non-decreasing in power; Theorem 2.5.5 then gives a premetric.

    Assumes
        The functional does not decrease when power rises, which is checked by
        ``decreasing_example`` on sampled curves and is the author's to prove.
    """
    if name in _FUNCTIONALS:
        raise InputError(
            f"the functional {name} exists already",
            field="functional.name",
            expected="a new name",
            hint="Choose another name; functionals are never replaced.",
        )
    _FUNCTIONALS[name] = functional


def functional(name: str) -> Functional:
    """Look a functional up."""
    if name not in _FUNCTIONALS:
        raise UnknownName(
            f"there is no functional {name}",
            field="output_premetric.functional",
            expected="one of " + ", ".join(sorted(_FUNCTIONALS)),
            hint="Register it with stirred.spec.finite.tradeoff.register_functional.",
        )
    return _FUNCTIONALS[name]


def of_tradeoff(name: str, p: Distribution, q: Distribution) -> Exact:
    """lambda(Tr(P, Q)) - lambda(Tr(P, P)): the premetric that a functional induces (A.6.3)."""
    measure = functional(name)
    value = measure(TradeOff.between(p, q))
    if value.is_infinite:
        return INFINITY
    identical = measure(TradeOff(((Fraction(0), Fraction(1)), (Fraction(1), Fraction(0)))))
    return max(ZERO, value - identical)


def decreasing_example(measure: Functional, curves: list[TradeOff]) -> tuple[TradeOff, TradeOff] | None:
    """Two curves, the first easier, on which the functional falls: a refutation of monotonicity."""
    for first in curves:
        for second in curves:
            if first.easier_than(second) and measure(first) < measure(second):
                return first, second
    return None


def _convex(vertices: list[Vertex]) -> list[Vertex]:
    """Drop the points inside a straight piece, and repeated points."""
    kept: list[Vertex] = []
    for vertex in vertices:
        if kept and kept[-1] == vertex:
            continue
        while len(kept) >= 2 and _straight(kept[-2], kept[-1], vertex):
            kept.pop()
        kept.append(vertex)
    return kept


def _concave(first: Vertex, middle: Vertex, last: Vertex) -> bool:
    (a, f), (b, g), (c, h) = first, middle, last
    return (g - f) * (c - b) > (h - g) * (b - a)


def _straight(first: Vertex, middle: Vertex, last: Vertex) -> bool:
    (a, f), (b, g), (c, h) = first, middle, last
    return (g - f) * (c - b) == (h - g) * (b - a)


def _not_a_curve(expected: str) -> InputError:
    return InputError(
        "this is not a trade-off curve",
        field="tradeoff.vertices",
        expected=expected,
        hint="Give (level, type-II error) pairs; the curve is convex and non-increasing.",
    )
