"""Records that have been counted, and what estimation may know of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stirred.data import Histogram

if TYPE_CHECKING:
    from stirred.topdown.bounds import Bounds
    from stirred.topdown.invariants import Values
    from stirred.topdown.measurement import Measurements

Counts = Mapping[str, tuple[Histogram, ...]]


@dataclass(frozen=True, eq=False)
class Public:
    """What estimation reads besides the measurements: values of the invariants, and the bounds they give."""

    invariants: Values
    bounds: Mapping[str, Bounds]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Records of every unit, counted by node and cell.

    ``limits`` are the bounds that the data themselves keep: they need not equal an earlier release, which has
    noise.
    """

    counts: Counts
    limits: Mapping[str, Bounds]
    public: Public


@dataclass(frozen=True, eq=False)
class Noisy:
    """The primitive output: the noisy measurements of every universe, in memory or in files."""

    measurements: Mapping[str, Measurements]

    @property
    def publishable(self) -> bool:
        """Whether all were made with the operating system's randomness."""
        return all(part.publishable for part in self.measurements.values())
