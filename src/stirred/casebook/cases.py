"""The table of cases: every table and figure of the sources that is recomputed here."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from stirred.casebook.case import Case, Recomputed
from stirred.casebook.census_2020 import PAPER
from stirred.casebook.losses import figure_2, like_2010, table_2, table_5
from stirred.casebook.swapped_1940 import figure_1, table_1
from stirred.casebook.systems_2020 import table_3, table_4, used_twice
from stirred.errors import UnknownName
from stirred.show import mape_figure, swap_rate_figure

_COUNTS = dict.fromkeys(("owned", "rented", "total", "owned_swapped", "rented_swapped", "total_swapped"), ",")
_LOSS = {"largest_stratum": ",", "rate": ".0%", "epsilon": ".2f", "exact": ""}
_BUDGET = {"rho_squared": "g", "epsilon": ".2f"}
_WITH_DELTA = _BUDGET | {"delta": "g"}
_PRODUCT = {"product": "", "level": "", **_WITH_DELTA, "rho_squared": ".2f", "published_epsilon": ".2f"}
_BLOCKS = {"mechanism": "", "output_premetric": "", "input_premetric": "", "invariants": ""}
_SCHEME = {"match": "", "swap": "", "largest_stratum": ","}
_LOSSES = {"epsilon_5": ".2f", "epsilon_50": ".2f", "where": ""}
_LEAST = {"largest_stratum": ",", "rate": ".2%", "epsilon": ".2f"}
_ERRORS = {"rate": ".0%", **dict.fromkeys(("least", "median", "largest"), ".2%")}


def _boxes(found: Recomputed) -> str:
    return mape_figure({row["rate"]: row["errors"] for row in found.rows})


def _curves(found: Recomputed) -> str:
    return swap_rate_figure([row["largest_stratum"] for row in found.rows])


CASES: Mapping[str, Case] = {
    case.name: case
    for case in (
        Case("table-1", PAPER, "Dwellings by county, true and swapped", table_1, {"county": ""} | _COUNTS),
        Case("table-2", PAPER, "Swap rate to ε in Massachusetts 1940", table_2, _LOSS),
        Case("table-3", PAPER, "Budgets of TopDown's noisy measurements", table_3, _PRODUCT),
        Case("table-4", PAPER, "Specifications of the 2020 DAS and of swapping", table_4, _BLOCKS | _BUDGET),
        Case("table-5", PAPER, "Swapping in 2020, at 5% and at 50%", table_5, _SCHEME | _LOSSES),
        Case("figure-1", PAPER, "Error of Table 1 by swap rate", figure_1, _ERRORS, _boxes, runs=20),
        Case("figure-2", PAPER, "ε by swap rate, and where it is least", figure_2, _LEAST, _curves),
        Case("like-2010", PAPER, "Swapping like that of 2010 (section 3.5)", like_2010, _LOSS),
        Case("duplicated-record", PAPER, "A record used twice (section 5.2)", used_twice, _WITH_DELTA),
    )
}


def case_named(name: str) -> Case:
    """A case by its name.

    Examples
    --------
    >>> case_named("table-2").shows
    'Swap rate to ε in Massachusetts 1940'
    """
    if name not in CASES:
        near = difflib.get_close_matches(name, CASES, 3, 0.5)
        raise UnknownName(
            "nothing of this name is recomputed",
            field="name",
            expected="the name of a table or figure (see `stirred reproduce list`)",
            hint=f"Did you mean {' or '.join(near)}?" if near else "List them: `stirred reproduce list`.",
        )
    return CASES[name]


def reproduce(name: str, runs: int | None = None) -> Recomputed:
    """Recompute a table or figure of the sources.

    Examples
    --------
    >>> [round(row["epsilon"], 2) for row in reproduce("table-2").rows]
    [17.08, 15.43, 14.68, 12.48]
    """
    return case_named(name).again(runs)
