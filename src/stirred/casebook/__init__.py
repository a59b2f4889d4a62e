"""What reproduces the sources: the 2020 Census, Massachusetts 1940, the synthetic county."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.casebook.census_2020 import census_tables, moves_allowed
    from stirred.casebook.demonstration import demonstrate
    from stirred.casebook.paper import Rerun, rerun
else:
    __getattr__, __dir__, __all__ = door(__name__)
