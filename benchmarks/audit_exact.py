"""The exact audit against its slow twin, and the time for every universe of five records.

The twin compares every pair of laws in rationals (``stirred.spec.protection_loss``); the audit compares
logarithms first. Both are given the same laws. About a minute.
"""

from __future__ import annotations

import sys
import time
from fractions import Fraction
from pathlib import Path

import polars as pl
from support.protocol import guaranteed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.patterns import universe_patterns, universe_records

from stirred.audit import audit_laws, exact_audit
from stirred.spec import Distribution, Domain, FiniteMechanism, Trivial, protection_loss
from stirred.swap import PermutationSwap, pattern_records, universe

RATE = Fraction(1, 20)
SWAP = PermutationSwap(match=("m",), swap=("s",), rate=RATE)


def frames(records) -> list[pl.DataFrame]:
    return [pl.DataFrame(list(data), schema=["m", "h", "s"], orient="row") for data in universe(records)]


def against_the_twin(size: int) -> None:
    """All records different: the largest universe of so many records."""
    records = pattern_records((1,) * size, (1,) * size)
    points, made = universe(records), frames(records)
    claim = guaranteed(SWAP, made[0])
    laws = [SWAP.outcomes(SWAP.prepare(frame)) for frame in made]
    start = time.perf_counter()
    found = audit_laws(laws, points, claim)
    fast = time.perf_counter() - start
    domain = Domain.finite(points)
    mechanism = FiniteMechanism(domain, dict(zip(points, map(Distribution, laws), strict=True)))
    small = claim.model_copy(update={"domain": domain, "multiverse": Trivial()})
    start = time.perf_counter()
    slow_loss = protection_loss(mechanism, small).overall
    slow = time.perf_counter() - start
    assert found.measured == slow_loss
    print(
        f"{size} different records, {len(points):>3} data sets: audit {fast:7.3f} s, "
        f"twin {slow:8.3f} s, ratio {slow / fast:6.1f}"
    )


def every_universe(size: int) -> None:
    """Every universe of so many records, up to relabelling: enumeration of laws included."""
    start = time.perf_counter()
    patterns = universe_patterns(size)
    for pattern in patterns:
        assert not exact_audit(SWAP, frames(universe_records(pattern))).violated
    print(f"every universe of {size} records ({len(patterns)}): {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    for size in (3, 4, 5):
        against_the_twin(size)
    for size in (3, 4, 5):
        every_universe(size)
