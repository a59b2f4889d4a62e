"""What zero-concentrated DP implies: the epsilon at a delta, rounded up."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

from stirred.spec.calculus.closed_form.rounding import context, significant_up


def census_epsilon(rho_squared: Fraction, delta: Fraction) -> Fraction:
    """rho^2 + 2 rho sqrt(-ln delta), rounded up at thirty decimal places.

    Reference
        Proposition 1.3 of Bun and Steinke 2016, as the Census Bureau uses it.
    """
    with localcontext(context(80)):
        square = _decimal(rho_squared)
        value = square + 2 * (square * _decimal(1 / delta).ln()).sqrt()
        raised = Fraction(value + (1 + value).scaleb(-60))
        return Fraction(math.ceil(raised * 10**30), 10**30)


def optimal_epsilon(rho_squared: Fraction, delta: Fraction) -> Fraction:
    """Least epsilon that zCDP alone implies, by the bound of Canonne, Kamath and Steinke (2020).

    inf over alpha > 1 of  rho^2 alpha + ln(1/(alpha delta))/(alpha - 1) + ln(1 - 1/alpha).

    Guarantee
        The bound is valid at every alpha, so an inexact minimiser only costs tightness. Its value there is
        evaluated with a known error and rounded up at forty digits: never below the infimum.
    """
    if rho_squared == 0:
        return Fraction(0)
    with localcontext(context(120)):
        mean, log = _decimal(rho_squared), _decimal(1 / delta).ln()
        excess = _best_excess(mean, log)
        alpha = 1 + excess
        value = mean * alpha + (log - alpha.ln()) / excess - (alpha / excess).ln()
        size = mean * alpha + (1 + log + alpha.ln()) / excess + abs(excess.ln()) + 1
        return significant_up(max(Fraction(0), Fraction(value + size.scaleb(-100))))


def _best_excess(mean: Decimal, log: Decimal) -> Decimal:
    """The alpha - 1 at which the bound is least: its slope is mean - (log - ln alpha)/(alpha - 1)^2."""
    low = min((log / mean / 2).sqrt(), (log / 2).exp() - 1)
    high = min((log / mean).sqrt(), log.exp() - 1)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if mean * middle**2 + (1 + middle).ln() < log else (low, middle)
    return high


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
