"""One self-contained page about two guarantees: side by side, and in words."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from stirred.show.format import cited, heading, size, written
from stirred.show.swap_rate import swap_rate_figure
from stirred.spec import Specification, compare
from stirred.version import __version__

_BLOCKS = ("domain", "multiverse", "input_premetric", "output_premetric", "budget")


def specification_page(
    first: Specification,
    second: Specification,
    names: tuple[str, str],
    entries: int,
    together: str = "",
) -> str:
    """The page as HTML text; it loads nothing from anywhere. ``together`` says what both promise together."""
    verdict = compare(first, second)
    return _rendered(
        "specification.html",
        names=names,
        specifications=(first, second),
        cards=(first.card(), second.card()),
        verdict=verdict,
        rows=[_row(verdict, block, first, second) for block in _BLOCKS],
        figure=swap_rate_figure(),
        version=__version__,
        entries=entries,
        together=together,
    )


def _rendered(template: str, **values: Any) -> str:
    page: str = _compiled(template).render(**values)
    return page


@cache
def _compiled(template: str) -> Any:
    """A template, compiled once: that takes longer than to fill it in."""
    from jinja2 import Environment, StrictUndefined

    text = resources.files(__name__.rpartition(".")[0]).joinpath(f"templates/{template}")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {f.__name__: f for f in (cited, heading, size, written)}
    return environment.from_string(text.read_text(encoding="utf-8"))


def _row(verdict: Any, block: str, first: Specification, second: Specification) -> dict[str, str]:
    found = next((b for b in verdict.blocks if b.block == block), None)
    ranked = found is not None and (block != "budget" or verdict.budgets_ranked)
    return {
        "block": block.replace("_", " "),
        "first": _text(getattr(first, block)),
        "second": _text(getattr(second, block)),
        "order": str(found.order) if found is not None and ranked else "not ranked",
        "reason": "the domains differ, so no more is compared" if found is None else found.reason,
    }


def _text(block: Any) -> str:
    sentence = getattr(block, "sentence", None)
    if sentence is not None:
        text = str(sentence())
        return text[:1].upper() + text[1:]
    meaning = getattr(block, "meaning", "")
    return f"{meaning} ({block.stage})" if meaning else str(block)
