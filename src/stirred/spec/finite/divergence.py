"""Divergences between two finite distributions on one space, exact wherever a closed number exists.

Each function takes P and Q and answers D(P, Q); where the divergence is not symmetric it answers for
this direction only, since a specification quantifies over ordered pairs. Exact results: multiplicative
distance, its delta-approximation, density ratio, total variation, chi-squared, Wasserstein. Numerical
results, accurate to about 1e-12 relative: Renyi, normalised Renyi, Kullback-Leibler, Hellinger.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact
from stirred.spec.finite.distribution import Distribution, Outcome, atoms

GRID = 2048
NEAR_ONE = 1e-5
SMALL = 1e-4
REFINED = 3


def multiplicative(p: Distribution, q: Distribution) -> Exact:
    """D_Mult: the largest absolute log-ratio of the probabilities of an event; atoms suffice."""
    worst = Fraction(1)
    for _, a, b in atoms(p, q):
        if a == 0 or b == 0:
            return INFINITY
        worst = max(worst, a / b, b / a)
    return Exact.log(worst)


def multiplicative_event(p: Distribution, q: Distribution) -> frozenset[Outcome]:
    """An event at which D_Mult is attained."""
    ranked = atoms(p, q)
    outcome = max(ranked, key=lambda atom: _unsigned_ratio(atom[1], atom[2]))[0]
    return frozenset({outcome})


def approximate(p: Distribution, q: Distribution, delta: Fraction) -> Exact:
    """D_Mult^delta: least epsilon with P(S) <= e^epsilon Q(S) + delta and the reverse for all S.

    The worst event is a prefix of the outcomes ordered by likelihood ratio (Neyman and Pearson);
    single outcomes are not enough.
    """
    return max(_one_sided_approximate(p, q, delta)[0], _one_sided_approximate(q, p, delta)[0])


def approximate_event(p: Distribution, q: Distribution, delta: Fraction) -> frozenset[Outcome]:
    """An event at which D_Mult^delta is attained."""
    return max(_one_sided_approximate(p, q, delta), _one_sided_approximate(q, p, delta), key=lambda v: v[0])[
        1
    ]


def _one_sided_approximate(
    p: Distribution, q: Distribution, delta: Fraction
) -> tuple[Exact, frozenset[Outcome]]:
    best, event = ZERO, frozenset[Outcome]()
    mass_p = mass_q = Fraction(0)
    prefix: list[Outcome] = []
    for outcome, a, b in likelihood_ratio_order(p, q):
        mass_p, mass_q = mass_p + a, mass_q + b
        prefix.append(outcome)
        if mass_p > delta:
            value = INFINITY if mass_q == 0 else Exact.log((mass_p - delta) / mass_q)
            if value > best:
                best, event = value, frozenset(prefix)
    return best, event


def likelihood_ratio_order(p: Distribution, q: Distribution) -> list[tuple[Outcome, Fraction, Fraction]]:
    """Outcomes by decreasing likelihood ratio of P to Q."""
    return sorted(atoms(p, q), key=lambda atom: -atom[1] / (atom[1] + atom[2]))


def density_ratio(p: Distribution, q: Distribution) -> Exact:
    """d_DR: the largest minus the smallest log-ratio of densities (Wasserman 1992)."""
    ratios = []
    for _, a, b in atoms(p, q):
        if a == 0 or b == 0:
            return INFINITY
        ratios.append(a / b)
    return Exact.log(max(ratios) / min(ratios))


def total_variation(p: Distribution, q: Distribution) -> Exact:
    """Largest difference of the probabilities of an event."""
    return Exact(sum((max(a - b, Fraction(0)) for _, a, b in atoms(p, q)), Fraction(0)))


def chi_squared(p: Distribution, q: Distribution) -> Exact:
    """Sum of (p - q)^2 / q."""
    total = Fraction(0)
    for _, a, b in atoms(p, q):
        if b == 0:
            return INFINITY
        total += (a - b) ** 2 / b
    return Exact(total)


def kullback_leibler(p: Distribution, q: Distribution) -> Exact:
    """Sum of p ln(p/q)."""
    if not p.support <= q.support:
        return INFINITY
    terms = (float(b) * _entropy(a / b - 1) for _, a, b in atoms(p, q) if b > 0)
    return Exact.computed(math.fsum(terms))


def hellinger(p: Distribution, q: Distribution) -> Exact:
    """Square root of half the sum of (sqrt p - sqrt q)^2; at most one."""
    terms = ((float(a - b) / (math.sqrt(a) + math.sqrt(b))) ** 2 / 2 for _, a, b in atoms(p, q))
    return Exact.computed(math.sqrt(math.fsum(terms)))


def wasserstein(p: Distribution, q: Distribution) -> Exact:
    """Earth mover's distance of order one between distributions of numbers."""
    order = sorted(_number(outcome) for outcome, _, _ in atoms(p, q))
    total = gap = Fraction(0)
    for left, right in itertools.pairwise(order):
        gap += p[left] - q[left]
        total += abs(gap) * (right - left)
    return Exact(total)


def renyi(p: Distribution, q: Distribution, alpha: float) -> Exact:
    """Renyi divergence of order alpha >= 1; order one is Kullback-Leibler, infinity is max-divergence."""
    if alpha == 1:
        return kullback_leibler(p, q)
    if not p.support <= q.support:
        return INFINITY
    if math.isinf(alpha):
        return Exact.log(max(a / b for _, a, b in atoms(p, q) if b > 0))
    return Exact.computed(_log_moment(_ratios(p, q), alpha) / (alpha - 1))


def normalised_renyi(p: Distribution, q: Distribution) -> Exact:
    """D_NoR: sup over alpha > 1 of the root of D_alpha/alpha, in the worse direction.

    The supremum is often interior and often the limit alpha -> 1, which is Kullback-Leibler; it lies
    below alpha = D_inf / D_1, because D_alpha/alpha <= D_inf/alpha.
    """
    if p.support != q.support:
        return INFINITY
    return Exact.computed(math.sqrt(max(_sup_over_orders(p, q), _sup_over_orders(q, p))))


def _sup_over_orders(p: Distribution, q: Distribution) -> float:
    ratios = _ratios(p, q)
    limit = float(kullback_leibler(p, q))
    largest = max(log for _, _, log in ratios)
    if limit <= 0 or largest <= 0:
        return 0.0

    def scaled(order: float) -> float:
        return _log_moment(ratios, order) / ((order - 1) * order)

    top = max(2.0, largest / limit)
    orders = [1 + NEAR_ONE * ((top - 1) / NEAR_ONE) ** (i / GRID) for i in range(GRID + 1)]
    values = _scaled_on_grid(ratios, orders)
    best = max(limit, *values)
    peaks = [i for i in range(1, GRID) if values[i] >= max(values[i - 1], values[i + 1])]
    for i in sorted(peaks, key=values.__getitem__)[-REFINED:]:
        best = max(best, _golden(scaled, orders[i - 1], orders[i + 1]))
    return best


def _ratios(p: Distribution, q: Distribution) -> list[tuple[float, float, float]]:
    """Mass under Q, relative excess of P over Q, and log-ratio, of every outcome that Q can give."""
    return [
        (float(b), float(a / b - 1), _log(a / b) if a > 0 else -math.inf) for _, a, b in atoms(p, q) if b > 0
    ]


def _log_moment(ratios: list[tuple[float, float, float]], order: float) -> float:
    """ln E_Q (dP/dQ)^order = ln(1 + E_Q excess), whose terms are not negative: nothing cancels."""
    peak = max(math.log(b) + order * log for b, _, log in ratios)
    if peak < 30:
        return math.log1p(math.fsum(_excess(b, x, log, order) for b, x, log in ratios))
    return peak + math.log(math.fsum(math.exp(math.log(b) + order * log - peak) for b, _, log in ratios))


def _excess(b: float, x: float, log: float, order: float) -> float:
    """b [(1 + x)^order - 1 - order x], by its series where the difference would cancel."""
    if abs(order * x) < SMALL:
        return b * order * (order - 1) * x * x * (0.5 + (order - 2) * x / 6 * (1 + (order - 3) * x / 4))
    if order * log < 30:
        return b * ((math.expm1(order * log) if log > -math.inf else -1.0) - order * x)
    return math.exp(math.log(b) + order * log) - b * (1 + order * x)


def _entropy(x: Fraction) -> float:
    """(1 + x) ln(1 + x) - x, by its series where the difference would cancel."""
    value = float(x)
    if abs(value) < SMALL:
        return value * value * (0.5 - value / 6 * (1 - value / 2))
    return (float(1 + x) * _log(1 + x) if x > -1 else 0.0) - value


def _scaled_on_grid(ratios: list[tuple[float, float, float]], orders: list[float]) -> list[float]:
    import numpy as np

    masses, x, logs = np.asarray(ratios).T
    alpha = np.asarray(orders)[:, None]
    scaled = alpha * logs[None, :]
    exponents = np.log(masses) + scaled
    peak = exponents.max(axis=1)
    near = np.abs(alpha * x) < SMALL
    z = np.where(near, x, 0.0)
    series = masses * alpha * (alpha - 1) * z**2 * (0.5 + (alpha - 2) * z / 6 * (1 + (alpha - 3) * z / 4))
    middle = masses * (np.expm1(np.minimum(scaled, 30)) - alpha * x)
    far = np.exp(np.minimum(exponents, 40)) - masses * (1 + alpha * x)
    excess = np.where(near, series, np.where(scaled < 30, middle, far))
    small = np.log1p(np.maximum(excess.sum(axis=1), 0.0))
    large = peak + np.log(np.exp(exponents - peak[:, None]).sum(axis=1))
    moments = np.where(peak < 30, small, large)
    values: list[float] = (moments / ((alpha[:, 0] - 1) * alpha[:, 0])).tolist()
    return values


def _golden(function: Callable[[float], float], low: float, high: float) -> float:
    shrink = (math.sqrt(5) - 1) / 2
    a, b = high - shrink * (high - low), low + shrink * (high - low)
    for _ in range(80):
        if function(a) >= function(b):
            high, b = b, a
            a = high - shrink * (high - low)
        else:
            low, a = a, b
            b = low + shrink * (high - low)
    return max(function(a), function(b))


def _number(outcome: Outcome) -> Fraction:
    if isinstance(outcome, int | Fraction):
        return Fraction(outcome)
    raise InputError(
        "the Wasserstein distance needs numeric outcomes",
        field="outcomes",
        expected="integers or fractions",
        hint="Use another output premetric for labels.",
    )


def _log(value: Fraction) -> float:
    if Fraction(1, 2) < value < 2:
        return math.log1p(float(value - 1))
    return math.log(value.numerator) - math.log(value.denominator)


def _unsigned_ratio(a: Fraction, b: Fraction) -> float:
    return math.inf if a == 0 or b == 0 else abs(_log(a / b))
