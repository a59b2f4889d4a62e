"""Side by side: the fast paths of the room ``spec`` against their brute-force twins, with ratios.

Run with ``make bench``. Complexities: D_Mult^delta by likelihood-ratio prefixes is O(n log n) in the
number of outcomes, over events O(2^n); implied constraints by Floyd and Warshall are O(n^3) in the number
of points, over simple paths O(n!); D_NoR evaluates a fixed grid of orders and refines, O(n).
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable
from fractions import Fraction

from stirred.casebook import reproduce
from stirred.spec import INFINITY, ZERO, Distribution, Exact
from stirred.spec.blocks.input_premetric import Matrix, shortest_paths
from stirred.spec.finite.distribution import atoms
from stirred.spec.finite.divergence import approximate, normalised_renyi, renyi

SEED = random.Random(2020)


def seconds(function: Callable[[], object]) -> float:
    start, runs = time.perf_counter(), 0
    while time.perf_counter() - start < 0.5 or runs == 0:
        function()
        runs += 1
    return (time.perf_counter() - start) / runs


def report(name: str, fast: Callable[[], object], slow: Callable[[], object]) -> None:
    quick, brute = seconds(fast), seconds(slow)
    print(f"{name:<58} {quick * 1e3:10.3f} ms  twin {brute * 1e3:10.3f} ms  {brute / quick:8.1f}x")


def law(size: int) -> Distribution:
    weights = [SEED.randint(1, 40) for _ in range(size)]
    return Distribution({i: Fraction(w, sum(weights)) for i, w in enumerate(weights)})


def over_all_events(p: Distribution, q: Distribution, delta: Fraction) -> Exact:
    best, outcomes = ZERO, [a[0] for a in atoms(p, q)]
    for size in range(1, len(outcomes) + 1):
        for event in itertools.combinations(outcomes, size):
            for one, two in ((p, q), (q, p)):
                a, b = one.probability(event), two.probability(event)
                if a > delta:
                    best = max(best, Exact.log((a - delta) / b))
    return best


def over_dense_orders(p: Distribution, q: Distribution) -> float:
    orders = [1 + 10 ** (-4 + 7 * i / 20000) for i in range(20001)]
    return max(max(float(renyi(p, q, a)), float(renyi(q, p, a))) / a for a in orders) ** 0.5


def over_simple_paths(matrix: Matrix) -> list[list[Exact]]:
    n = len(matrix)

    def best(i: int, j: int) -> Exact:
        found = matrix[i][j]
        others = [k for k in range(n) if k not in (i, j)]
        for size in range(1, len(others) + 1):
            for path in itertools.permutations(others, size):
                stops = (i, *path, j)
                length = ZERO
                for a, b in itertools.pairwise(stops):
                    length = length + matrix[a][b]
                found = min(found, length)
        return found

    return [[ZERO if i == j else best(i, j) for j in range(n)] for i in range(n)]


def entry() -> Exact:
    return INFINITY if SEED.random() < 0.2 else Exact.of(SEED.randint(1, 9))


def main() -> None:
    p, q = law(10), law(10)
    report(
        "D_Mult^delta, 10 outcomes: prefixes against all events",
        lambda: approximate(p, q, Fraction(1, 10)),
        lambda: over_all_events(p, q, Fraction(1, 10)),
    )
    report(
        "D_NoR, 10 outcomes: grid and refinement against dense grid",
        lambda: normalised_renyi(p, q),
        lambda: over_dense_orders(p, q),
    )
    matrix = tuple(
        tuple(
            ZERO if i == j else INFINITY if SEED.random() < 0.2 else Exact.of(SEED.randint(1, 9))
            for j in range(6)
        )
        for i in range(6)
    )
    report(
        "implied constraints, 6 points: Floyd-Warshall against paths",
        lambda: shortest_paths(matrix),
        lambda: over_simple_paths(matrix),
    )
    print(f"{'the 2020 Census, Table 4':<58} {seconds(lambda: reproduce('table-4')) * 1e3:10.3f} ms")


if __name__ == "__main__":
    main()
