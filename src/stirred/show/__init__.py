"""Figures and pages for people, made from specifications; no data, no network.

``swap_rate_figure`` draws protection loss against swap rate; ``specification_page`` writes one
self-contained HTML page from specifications, their comparison and the census tables.
"""

from stirred.show.page import specification_page, swap_page
from stirred.show.swap_rate import swap_rate_figure

__all__ = ["specification_page", "swap_page", "swap_rate_figure"]
