"""Figures and pages for people, made from specifications; no data, no network.

``swap_rate_figure`` draws protection loss against swap rate; ``specification_page`` writes one
self-contained HTML page from specifications, their comparison and the census tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.show.against_truth import against_truth_figure
    from stirred.show.budget_split import budget_split_figure
    from stirred.show.error_by_level import error_by_level_figure
    from stirred.show.format import Share, heading, number, percent, size, written
    from stirred.show.geography_tree import geography_tree_figure
    from stirred.show.odds import odds_figure
    from stirred.show.page import specification_page
    from stirred.show.report_page import release_page
    from stirred.show.small_multiples import Bar, bar_panel
    from stirred.show.swap_rate import swap_rate_curve, swap_rate_figure
    from stirred.show.swap_utility import mape_figure
else:
    __getattr__, __dir__, __all__ = door(__name__)
