"""Orders among output premetrics: which implies which, linearly in the distance or for neighbours.

What is known of a premetric stands in its class; this follows it from one to the other.
"""

from __future__ import annotations

from stirred.spec.arithmetic.extended import product
from stirred.spec.blocks.output_premetric.base import ONE, Bound, Premetric


def linear_factor(source: Premetric, target: Premetric) -> Bound | None:
    """Least known k with target <= k * source for all pairs of laws, and the reason; ``None`` where none is.

    A Lipschitz condition in the source then carries over to the target at every distance.
    """
    if source == target:
        return ONE, "the same output premetric"
    direct = target.bounded_by(source)
    if direct is not None:
        return direct
    for between, (factor, reason) in source.above.items():
        if (onward := target.below.get(between)) is not None:
            return product(factor, onward[0]), f"{reason}, then {onward[1]}"
    return None


def demands_more(first: Premetric, second: Premetric) -> bool | None:
    """Whether a finite budget in the first forces one in the second but not the other way round.

    ``None`` says that neither is known to demand more.
    """
    if type(first) is type(second):
        return first.stronger(second) if first.monotone else None
    if first.rank is None or second.rank is None:
        return None
    return first.rank < second.rank
