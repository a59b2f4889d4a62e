"""Plans that swap: the Permutation Swapping Algorithm."""

from stirred.release.job import Kind
from stirred.release.kinds.swap.job import SwapJob
from stirred.release.kinds.swap.section import STARTER, SwapSection

SWAP = Kind("swap", SwapSection, SwapJob, STARTER, 15, "epsilon")
