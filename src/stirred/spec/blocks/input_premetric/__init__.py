"""Input premetrics: the protection unit, as a distance between data sets.

A premetric is zero on the diagonal and may be infinite; symmetry, positivity and the triangle
inequality are not required but declared as flags (Definition 2.4.14 of the thesis). Two data sets are
neighbours when their distance is one; a pair at infinite distance is not compared at all. A family of
premetrics is one file here, and each is an entry of ``KINDS``.
"""

from __future__ import annotations

from typing import Annotated

from stirred.spec.blocks.input_premetric.derived import (
    Encoded,
    Maximum,
    PulledBack,
    Sharpened,
    shortest_paths,
)
from stirred.spec.blocks.input_premetric.described import DescribedPremetric
from stirred.spec.blocks.input_premetric.given import Given
from stirred.spec.blocks.input_premetric.graph import GraphEdit
from stirred.spec.blocks.input_premetric.neighbours import Neighbours, neighbours_of
from stirred.spec.blocks.input_premetric.premetric import (
    ADDED,
    ONE,
    REPLACED,
    REPLACED_IN_PLACE,
    Change,
    Flags,
    Matrix,
    Premetric,
)
from stirred.spec.blocks.input_premetric.records import (
    EditDistance,
    Hamming,
    HammingUnordered,
    SymmetricDifference,
)
from stirred.spec.blocks.kinds import Kinds

KINDS = Kinds(
    Hamming,
    HammingUnordered,
    SymmetricDifference,
    EditDistance,
    GraphEdit,
    Neighbours,
    Given,
    DescribedPremetric,
    Encoded,
    Sharpened,
    Maximum,
    PulledBack,
)

InputPremetric = Annotated[Premetric, KINDS]
for _model in (Encoded, Sharpened, Maximum, PulledBack):
    _model.model_rebuild()
