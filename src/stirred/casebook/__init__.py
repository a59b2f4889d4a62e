"""What reproduces the sources: the 2020 Census, Massachusetts 1940, the synthetic county.

``CASES`` lists every table and figure of the sources that is recomputed, ``reproduce`` recomputes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.casebook.case import Case, Recomputed
    from stirred.casebook.cases import CASES, case_named, reproduce
    from stirred.casebook.census_2020 import moves_allowed
    from stirred.casebook.county import County, synthetic_county
    from stirred.casebook.demonstration import demonstrate
else:
    __getattr__, __dir__, __all__ = door(__name__)
