"""The TopDown Algorithm: noisy measurements of a tree of geographies, then consistent integer tables.

Zero-concentrated differential privacy subject to the declared invariants. ``TopDown`` is the mechanism,
``Universe`` one kind of record in it; ``Allocation`` shares out the budget; ``preset`` has the settings of
the 2020 Census; ``Gls`` has unconstrained estimates with confidence intervals; ``run_plan`` runs a plan into
a folder.
"""

from stirred.topdown.budget import Allocation
from stirred.topdown.cells import Cells, Query
from stirred.topdown.constraint import Edit, EqualTo, Facilities, Invariant, StructuralZero
from stirred.topdown.estimates import Estimates
from stirred.topdown.estimation import Settings
from stirred.topdown.files import run_plan
from stirred.topdown.gls import Gls
from stirred.topdown.measurement import Design, Measurements
from stirred.topdown.mechanism import Earlier, TopDown, Universe
from stirred.topdown.plan import Plan
from stirred.topdown.presets import preset

__all__ = [
    "Allocation",
    "Cells",
    "Design",
    "Earlier",
    "Edit",
    "EqualTo",
    "Estimates",
    "Facilities",
    "Gls",
    "Invariant",
    "Measurements",
    "Plan",
    "Query",
    "Settings",
    "StructuralZero",
    "TopDown",
    "Universe",
    "preset",
    "run_plan",
]
