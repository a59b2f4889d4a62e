"""Orders among output premetrics: which implies which, linearly in the distance or for neighbours.

An entry of ``linear_factor`` is a number k with D' <= k D for all pairs of laws, so that a
Lipschitz condition in D carries over to D' at every distance.
"""

from __future__ import annotations

from typing import Any

from stirred.spec.arithmetic.exact import Exact
from stirred.spec.blocks.output_premetric import (
    Approximate,
    Coarsened,
    DensityRatio,
    KullbackLeibler,
    Multiplicative,
    NormalisedRenyi,
    Renyi,
    TotalVariation,
)

_ONE = Exact.of(1)
_STRENGTH = (Multiplicative, NormalisedRenyi, Renyi, Approximate)


def linear_factor(source: Any, target: Any) -> tuple[Exact, str] | None:
    """Least known k with target <= k * source, and the reason; ``None`` where there is none."""
    if source == target:
        return _ONE, "the same output premetric"
    if isinstance(target, Coarsened):
        return _to_coarsened(source, target)
    if isinstance(source, Multiplicative):
        return _from_multiplicative(target)
    if isinstance(source, DensityRatio):
        if isinstance(target, Multiplicative):
            return _ONE, "D_Mult <= d_DR (Wasserman 1992)"
        onward = _from_multiplicative(target)
        return None if onward is None else (onward[0], f"D_Mult <= d_DR, then {onward[1]}")
    if isinstance(source, Approximate) and isinstance(target, Approximate):
        wider = target.delta >= source.delta
        return (_ONE, "D_Mult^delta falls as delta grows") if wider else None
    if isinstance(source, Renyi) and isinstance(target, Renyi | KullbackLeibler):
        lower = isinstance(target, KullbackLeibler) or target.alpha <= source.alpha
        return (_ONE, "Renyi divergence grows with its order") if lower else None
    return None


def _to_coarsened(source: Any, target: Coarsened) -> tuple[Exact, str] | None:
    """Fewer events: a pushforward, under which an immune premetric falls."""
    base = source.base if isinstance(source, Coarsened) else source
    finer = not isinstance(source, Coarsened) or finer_groups(source, target)
    if base != target.base or not finer or not base.properties.post_processing:
        return None
    return _ONE, "looking at fewer events only lowers the premetric (R23)"


def finer_groups(first: Coarsened, second: Coarsened) -> bool:
    """Whether every group of the first lies in one of the second: the first sees more events."""
    return all(any(set(g) <= set(h) for h in second.groups) for g in first.groups)


def _from_multiplicative(target: Any) -> tuple[Exact, str] | None:
    if isinstance(target, NormalisedRenyi):
        return Exact.sqrt("1/2"), "D_NoR <= D_Mult / sqrt 2 (Bun and Steinke 2016)"
    if isinstance(target, Approximate):
        return _ONE, "D_Mult^delta <= D_Mult"
    if isinstance(target, Renyi | KullbackLeibler):
        return _ONE, "Renyi divergence is at most max-divergence"
    if isinstance(target, TotalVariation):
        return Exact.of("1/2"), "TV <= tanh(D_Mult / 2) <= D_Mult / 2"
    if isinstance(target, DensityRatio):
        return Exact.of(2), "d_DR <= 2 D_Mult (Wasserman 1992)"
    return None


def demands_more(first: Any, second: Any) -> bool | None:
    """Whether a finite budget in the first forces one in the second but not the other way round.

    ``None`` says that neither is known to demand more.
    """
    if isinstance(first, Approximate) and isinstance(second, Approximate):
        return first.delta < second.delta
    if isinstance(first, Renyi) and isinstance(second, Renyi):
        return first.alpha > second.alpha
    ranks = [_rank(first), _rank(second)]
    if ranks[0] is None or ranks[1] is None or ranks[0] == ranks[1]:
        return None
    return ranks[0] < ranks[1]


def _rank(premetric: Any) -> float | None:
    if isinstance(premetric, Renyi) and premetric.alpha.is_infinite:
        # Max-divergence in one order: D_Mult where distances are symmetric, and above D_NoR in any case.
        return 0.5
    kinds = [kind.__name__ for kind in _STRENGTH]
    name = type(premetric).__name__
    return kinds.index(name) if name in kinds else None
