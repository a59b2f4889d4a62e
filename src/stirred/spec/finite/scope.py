"""Scope: what a multiverse leaves to protect on a finite domain.

Universes may be singletons, or miss points; both weaken what a budget means, so both can be counted.
"""

from __future__ import annotations

from typing import Any

from stirred.spec.blocks.domain import Domain
from stirred.spec.blocks.multiverse import AnyMultiverse


def coverage(multiverse: AnyMultiverse, domain: Domain) -> tuple[int, int]:
    """How many points lie in some universe, and how many there are: the rest are not protected."""
    covered: frozenset[Any] = frozenset().union(*multiverse.universes(domain))
    return len(covered), len(domain.enumerate())


def singletons(multiverse: AnyMultiverse, domain: Domain) -> int:
    """Number of points that share no universe with another: nothing protects them (R4)."""
    shared = {p for u in multiverse.universes(domain) if len(u) > 1 for p in u}
    return sum(point not in shared for point in domain.enumerate())
