"""Invariants: statistics that are published exactly, declared as functions and never as values.

An invariant is *essential*: it is the function c, not the number c(x*) that the confidential data
happen to have (section 2.2 of the thesis). It serialises, computes on a frame, and prints as a
sentence; a declaration that carries a realised value is refused. A kind is one file here and one entry of
``KINDS``.
"""

from __future__ import annotations

from typing import Annotated

from stirred.spec.blocks.invariant.additive import Additive
from stirred.spec.blocks.invariant.condition import Condition, plural
from stirred.spec.blocks.invariant.count import Count, margins
from stirred.spec.blocks.invariant.declared import Declared, Statistic, accidental, evaluate, implied_by
from stirred.spec.blocks.invariant.named import Named
from stirred.spec.blocks.invariant.sum import Sum
from stirred.spec.blocks.invariant.threshold import Threshold
from stirred.spec.blocks.kinds import Kinds

KINDS = Kinds(Count, Sum, Threshold, Named)

Invariant = Annotated[Declared, KINDS]
