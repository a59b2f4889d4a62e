"""Extended-real arithmetic of budgets and distances: the one place where 0 times infinity is decided.

IEEE arithmetic answers NaN where differential privacy has an answer: a pair at infinite distance is
unconstrained even at budget zero (Remark 2.4.6 of the thesis), an infinite budget constrains nothing
even at distance zero, and a ratio of two infinities asks for no budget at all.

| expression                                  | value                                              |
| ------------------------------------------- | -------------------------------------------------- |
| budget_bound(budget, distance)              | infinity if either is infinite, else the product   |
| least_budget(divergence, distance)          | 0 if distance is infinite or divergence is 0;      |
|                                             | infinity if distance is 0 or divergence infinite;  |
|                                             | else the quotient                                  |
| infimum of nothing                          | infinity                                           |
| supremum of nothing                         | 0                                                  |
| mass_ratio(0, 0)                            | 1                                                  |
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from stirred.errors import NotComputable
from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact


def budget_bound(budget: Exact, distance: Exact) -> Exact:
    """Budget times distance: what a specification allows for a pair."""
    if budget.is_infinite or distance.is_infinite:
        return INFINITY
    return product(budget, distance)


def least_budget(divergence: Exact, distance: Exact) -> Exact:
    """The least budget whose bound at this distance is not below the divergence."""
    if distance.is_infinite or divergence.is_zero:
        return ZERO
    if distance.is_zero or divergence.is_infinite:
        return INFINITY
    return quotient(divergence, distance)


def quotient(numerator: Exact, denominator: Exact, *, up: bool = True) -> Exact:
    """The quotient of two finite numbers: exact where a closed form exists, otherwise rounded up or down."""
    whole, square = denominator.rational, denominator.square
    if whole is not None:
        return numerator / whole
    if square is not None and (numerator.rational is not None or numerator.square is not None):
        return product(numerator, denominator) / square
    return Exact.computed(float(numerator) / float(denominator) * (1 + (1e-12 if up else -1e-12)))


def infimum(values: Iterable[Exact]) -> Exact:
    """The least value; infinity of nothing."""
    return min(values, default=INFINITY)


def supremum(values: Iterable[Exact]) -> Exact:
    """The largest value; zero of nothing."""
    return max(values, default=ZERO)


def mass_ratio(numerator: Fraction, denominator: Fraction) -> Fraction | None:
    """Quotient of two masses with 0/0 = 1; ``None`` stands for infinity."""
    if denominator == 0:
        return Fraction(1) if numerator == 0 else None
    return numerator / denominator


def product(left: Exact, right: Exact) -> Exact:
    """The product of two finite numbers, at least one of them rational or both square roots."""
    for factor, other in ((left, right), (right, left)):
        whole = factor.rational
        if whole is not None:
            return other * whole
    squares = left.square, right.square
    if squares[0] is not None and squares[1] is not None:
        return Exact.sqrt(squares[0] * squares[1])
    raise NotComputable(
        "the product of these two numbers has no exact form",
        field="distance",
        expected="a rational distance, or a rational budget",
        hint="Give the input premetric rational values, or round the budget up first.",
    )
