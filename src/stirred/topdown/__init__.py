"""The TopDown Algorithm: noisy measurements of a tree of geographies, then consistent integer tables.

Zero-concentrated differential privacy subject to the declared invariants. ``TopDown`` is the mechanism,
``Universe`` one kind of record in it; ``Allocation`` shares out the budget; ``preset`` has the settings of
the 2020 Census; ``Gls`` has unconstrained estimates with confidence intervals; ``run_plan`` runs a plan into
a folder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.topdown.budget import Allocation, Change
    from stirred.topdown.cells import Cells, Query
    from stirred.topdown.constraint import Edit, EqualTo, Facilities, Invariant, StructuralZero
    from stirred.topdown.estimates import Estimates
    from stirred.topdown.estimation import Settings
    from stirred.topdown.exposure import exposures_of
    from stirred.topdown.gls import Gls
    from stirred.topdown.intervals import estimator_of, table_with_intervals
    from stirred.topdown.invariants import split_count
    from stirred.topdown.measurement import Chunk, Design, Measurements, file_of, measured_again, noise_of
    from stirred.topdown.mechanism import Earlier, TopDown, Universe
    from stirred.topdown.penalty import Penalty, cut
    from stirred.topdown.plan import Geography, Plan, TablePlan
    from stirred.topdown.prepared import Noisy, Prepared, Public
    from stirred.topdown.presets import Preset, preset
    from stirred.topdown.rounding import Layer, round_children
else:
    __getattr__, __dir__, __all__ = door(__name__)
