"""Figures as people read them: the one place where a number becomes text, last of all.

Records, tables and reports hold numbers; pages and the Markdown edition write them with these functions.
Nothing reads such a text back.
"""

from __future__ import annotations

import math
from fractions import Fraction

from stirred.spec import Exact, shown


class Share(Fraction):
    """A part of a whole: a number like others, shown in per cent."""


def written(value: object) -> object:
    """Any figure, rounded against the user where that matters; what is no figure stays as it is.

    Examples
    --------
    >>> [written(v) for v in (15500, 4.25, Share(1, 3), Exact.log(3), Fraction(1, 20), Fraction(1, 3), None)]
    ['15,500', '4.25', '33%', '1.0987', '1/20 (0.05)', '1/3 (about 0.3334)', '']
    """
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return number(value)
        case Share():
            return percent(value)
        case Fraction():
            return _fraction(value)
        case Exact():
            return shown(value)
        case tuple() | list():
            return ", ".join(str(written(part)) for part in value)
    return value


def number(value: float) -> str:
    """A figure: whole where it is whole, else with three digits or one place.

    Examples
    --------
    >>> number(15500), number(1234.5), number(0.0312)
    ('15,500', '1,234.5', '0.0312')
    """
    if not math.isfinite(value):
        return "" if math.isnan(value) else "∞"
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"


def percent(share: Fraction) -> str:
    """A share in per cent, with a digit more where it is small.

    Examples
    --------
    >>> percent(Fraction(1, 3)), percent(Fraction(1, 200)), percent(Fraction(1, 10**6)), percent(Fraction(1))
    ('33%', '0.5%', '<0.1%', '100%')
    """
    value = 100 * share
    if value == 0:
        return "0%"
    if value < Fraction(1, 20):
        return "<0.1%"
    return f"{float(value):.1f}%" if value < Fraction(19, 2) else f"{round(value)}%"


def size(count: int | None) -> str | None:
    """A number of bytes.

    Examples
    --------
    >>> size(12), size(1234)
    ('12 bytes', '1.2 kB')
    """
    if count is None:
        return None
    for unit, power in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= power:
            return f"{count / power:.1f} {unit}"
    return f"{count} bytes"


def cited(value: object) -> str:
    """A figure of a published table, with the digits that were published.

    Examples
    --------
    >>> cited(126.78), cited([2.0, 4.5]), cited(264331)
    ('126.78', '2.00 to 4.50', '264,331')
    """
    if isinstance(value, float):
        return f"{value:.2f}" if value == round(value, 2) else f"{value:g}"
    if isinstance(value, list):
        return (" to " if all(isinstance(v, float) for v in value) else "; ").join(map(cited, value))
    return str(written(value))


def heading(name: str) -> str:
    """A name as a heading.

    Examples
    --------
    >>> heading("largest_stratum"), heading("ε")
    ('Largest stratum', 'ε')
    """
    words = name.replace("_", " ")
    return words[:1].upper() + words[1:] if words[:1].isascii() else words


def _fraction(value: Fraction) -> str:
    """Exactly, and as a decimal number where it is not whole."""
    if value.denominator == 1:
        return number(value.numerator)
    about = "about " if 10_000 % value.denominator else ""
    return f"{value} ({about}{shown(Exact(value))})"
