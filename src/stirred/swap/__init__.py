"""The Permutation Swapping Algorithm: pure differential privacy subject to its invariants.

``PermutationSwap`` is the mechanism; ``swap_files`` runs it on the files of a nation; ``loss`` has the
protection loss and its inverse; ``PairwiseSwap`` and ``ExperimentalSwap`` are for comparison and trials.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.swap.accuracy import table_after, utility
    from stirred.swap.arrangement import verify
    from stirred.swap.derangement import select_records
    from stirred.swap.enumeration import (
        Data,
        Derange,
        Record,
        Weights,
        exact_loss,
        margin_patterns,
        non_vacuous_derangements,
        outcomes,
        pattern_records,
        permutation_law,
        uniform_derangements,
        universe,
    )
    from stirred.swap.experimental import ExperimentalSwap
    from stirred.swap.loss import (
        least_loss,
        least_loss_rate,
        least_tighter_loss,
        least_tighter_loss_rate,
        lower_bound,
        rates_for,
        swap_probability,
        tighter_loss,
    )
    from stirred.swap.mechanism import PermutationSwap
    from stirred.swap.named import require_hold, require_presentable, with_named_persons
    from stirred.swap.nesting import require_whole
    from stirred.swap.pairwise import PairwiseSwap
    from stirred.swap.prepared import Prepared, Public
    from stirred.swap.primitive import Swapped, counted, table_key
    from stirred.swap.rate import VariableRate
    from stirred.swap.records import Records, as_records
    from stirred.swap.strata import InvariantReport
else:
    __getattr__, __dir__, __all__ = door(__name__)
