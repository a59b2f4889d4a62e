"""Records that have been checked: all that a draw needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stirred.swap.derangement import Rates
from stirred.swap.records import Records
from stirred.swap.roles import Roles
from stirred.swap.strata import Strata

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Prepared:
    """Checked records with their roles, strata, rates and eligibility."""

    records: Records
    roles: Roles
    strata: Strata
    rates: Rates
    eligible: NDArray[np.bool_] | None
