"""The page of a release: facts and figures in, one self-contained HTML text out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stirred.show.page import _rendered

if TYPE_CHECKING:
    from markupsafe import Markup

_SYMBOL = re.compile(r"(?P<base>[A-Za-z𝒟])_(?P<below>[A-Za-z]+(?:_[A-Za-z]+)*)(?:\^(?P<above>[A-Za-z-]+))?")


def release_page(
    facts: Mapping[str, Any],
    figures: Mapping[str, Sequence[tuple[str, str]]],
    limits: Any = None,
    internal: Mapping[str, Any] | None = None,
) -> str:
    """The page as HTML text; it loads nothing from anywhere and runs no script.

    Parameters
    ----------
    facts
        Numbers and objects, as in the JSON edition of a report; every text is escaped.
    figures
        Titles and SVG texts under the name of the section that shows them.
    limits
        A table, with columns and rows, of the beliefs that the budget permits; none where it has no odds.
    internal
        Tables measured against the truth; with them the page is the internal edition.
    """
    values = {"facts": facts, "figures": figures, "limits": limits, "internal": internal, "symbols": symbols}
    return _rendered("release.html", **values).lstrip()


def symbols(text: str) -> Markup:
    """The symbols of a guarantee with their indices set below and above the line; all else is escaped.

    Examples
    --------
    >>> print(symbols("ε-DP(X, d_HamS^hh)"))
    ε-DP(X, d<sub>HamS</sub><sup>hh</sup>)
    """
    from markupsafe import Markup, escape

    parts, place = [Markup("")], 0
    for found in _SYMBOL.finditer(text):
        below = found["below"].replace("_", " ")
        above = Markup("<sup>{}</sup>").format(found["above"]) if found["above"] else ""
        parts += [escape(text[place : found.start()]), Markup("{}<sub>{}</sub>").format(found["base"], below)]
        parts.append(escape(above))
        place = found.end()
    return Markup("").join([*parts, escape(text[place:])])
