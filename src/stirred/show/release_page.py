"""The page of a release: facts and figures in, one self-contained HTML text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stirred.show.page import _rendered


def release_page(
    facts: Mapping[str, Any],
    figures: Mapping[str, Sequence[str]],
    internal: Mapping[str, Any] | None = None,
) -> str:
    """The page as HTML text; it loads nothing from anywhere and runs no script.

    Parameters
    ----------
    facts
        Plain data, as in the JSON edition of a report; every text is escaped.
    figures
        SVG texts under the name of the section that shows them.
    internal
        Tables measured against the truth; with them the page is the internal edition.
    """
    return _rendered("release.html", facts=facts, figures=figures, internal=internal).lstrip()
