"""The Permutation Swapping Algorithm's invariants and protection loss, as blocks of a specification.

Reference
    Proposition 4 (invariants) and Theorem 1 (protection loss) of Bailie, Gong and Meng, "A Refreshment
    Stirred, Not Shaken". The largest stratum b is a function of the invariants, so it is the same for
    every data set of a universe and may be published.
"""

from __future__ import annotations

from collections.abc import Iterable

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import Exact, as_fraction
from stirred.spec.blocks.budget import Budget
from stirred.spec.blocks.invariant import Count
from stirred.spec.blocks.multiverse import Invariants
from stirred.spec.blocks.policy import Swapping


def swapping_invariants(
    unit: str, match: Iterable[str], swap: Iterable[str], hold: Iterable[str]
) -> Invariants:
    """Both tables that swapping keeps exact: match by hold, and match by swap (Proposition 4)."""
    key, moved, kept = tuple(match), tuple(swap), tuple(hold)
    if not moved or not kept:
        raise InputError(
            "swapping needs variables to move and variables to keep",
            field="swap",
            expected="at least one swapping and one holding variable",
            hint="Matching variables may be empty; the other two may not.",
        )
    tables = (Count(unit=unit, by=(*key, *kept)), Count(unit=unit, by=(*key, *moved)))
    return Invariants(invariants=tables, label="c_Swap")


def swapping_loss(largest_stratum: int, rate: object) -> Exact:
    """Protection loss of the Permutation Swapping Algorithm.

    Guarantee
        epsilon in  epsilon-DP(X, D_swap, d_HamS, D_Mult),  nominal: relative to the swapping invariants.
    Assumes
        ``largest_stratum`` is the size of the largest stratum with at least two distinct records, or
        zero where there is none.
    Reference
        Theorem 1 (Bailie, Gong, Meng).

    Examples
    --------
    >>> swapping_loss(264_331, "0.01").rounded(2)
    '17.08'
    """
    policy = _policy(rate)
    if largest_stratum < 0:
        raise InputError(
            "the size of a stratum is negative",
            field="largest_stratum",
            expected="an integer of at least zero",
            hint="Count the records of the largest stratum.",
        )
    loss = policy.value(largest_stratum)
    assert loss is not None
    return loss


def swapping_budget(largest_stratum: int, rate: object, unit: str, match: Iterable[str]) -> Budget:
    """The protection loss by Theorem 1 as a policy, with its value at the largest stratum of the data."""
    policy = _policy(rate, unit, match)
    return Budget.epsilon(swapping_loss(largest_stratum, rate), policy, (policy.at(largest_stratum),))


def _policy(rate: object, unit: str = "record", match: Iterable[str] = ()) -> Swapping:
    p = as_fraction(rate)
    if not 0 <= p <= 1:
        raise InputError(
            "the swap rate is not a probability",
            field="rate",
            expected="a number from 0 to 1",
            hint="Write 0.05 for five per cent.",
        )
    return Swapping(theorem="1", unit=unit, match=tuple(match), rate=Exact(p))
