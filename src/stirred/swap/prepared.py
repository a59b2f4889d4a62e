"""Records that have been checked, with their strata: all that guarantee, draw and assessment need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from stirred.spec import Specification, Uncertainty, as_fraction
from stirred.swap.derangement import Rates
from stirred.swap.exposure import exposure_of
from stirred.swap.records import Records
from stirred.swap.roles import Roles
from stirred.swap.strata import InvariantReport, Strata

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stirred.swap.mechanism import PermutationSwap


@dataclass(frozen=True)
class Public:
    """What may be known of prepared records: the guarantee, the columns, and how uncertain each table is.

    Everything here follows from the swapping invariants.
    """

    specification: Specification
    columns: tuple[str, ...]
    uncertainty: dict[tuple[str, ...], Uncertainty]


@dataclass(frozen=True)
class Prepared:
    """Checked records with their roles, strata, rates and eligibility."""

    swap: PermutationSwap
    records: Records
    roles: Roles
    strata: Strata
    rates: Rates
    eligible: NDArray[np.bool_] | None

    def at_rate(self, rate: object) -> Prepared:
        """The same records at another common rate: strata do not depend on it."""
        return replace(self, swap=replace(self.swap, rate=rate), rates=Rates.common(as_fraction(rate)))

    @property
    def known(self) -> Roles:
        """Roles with the persons, who are part of their household's record.

        What is known of them is held, and published exactly.
        """
        if self.records.persons is None:
            return self.roles
        own = [c for c in self.records.persons.columns if c not in {self.records.id, *self.roles.swap}]
        held = (*self.roles.hold, *(f"person_{name}" for name in own))
        return Roles(self.roles.match, self.roles.swap, held)

    @cached_property
    def public(self) -> Public:
        """What ``finish`` may read."""
        return Public(
            self.swap.guarantee(self),
            (*self.roles.match, *self.roles.hold, *self.roles.swap),
            {parts: self.swap.uncertainty(parts, self) for parts in self.swap.named_tables},
        )

    @cached_property
    def report(self) -> InvariantReport:
        """What the invariants fix and what they leave."""
        exposure = exposure_of(self, self.swap.unit, self.swap.missing, self.swap.imputed)
        frame = self.records.households
        found = InvariantReport.of(frame, self.roles, self.strata, self.swap.unit, exposure)
        return replace(found, persons=self.known.hold[len(self.roles.hold) :])
