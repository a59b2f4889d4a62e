"""The Permutation Swapping Algorithm: pure differential privacy subject to its invariants.

``PermutationSwap`` is the mechanism; ``swap_files`` runs it on the files of a nation; ``loss`` has the
protection loss and its inverse; ``PairwiseSwap`` and ``ExperimentalSwap`` are for comparison and trials.
"""

from stirred.swap.experimental import ExperimentalSwap
from stirred.swap.files import swap_files
from stirred.swap.mechanism import PermutationSwap
from stirred.swap.pairwise import PairwiseSwap
from stirred.swap.rate import VariableRate
from stirred.swap.records import Records

__all__ = ["ExperimentalSwap", "PairwiseSwap", "PermutationSwap", "Records", "VariableRate", "swap_files"]
