"""The statistical audit: seconds for a million draws of each data set, and a plain-Python twin's.

The twin does for one integer what the audit does, with loops: the same partitions and orders of cells, by one
score instead of three. It runs on fewer draws, and its time is scaled up in proportion, with the few
milliseconds that do not grow with the draws. Labels take loops in both. Under a minute.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.audit import binomial, conformity_audit, statistical_audit
from stirred.noise import Source, TestSource, discrete_laplace, laplace_mass
from stirred.spec import Budget, Domain, Multiplicative, Specification, Trivial
from stirred.spec.blocks.input_premetric import Given

MANY = 1_000_000
FEW = 300_000
SHARE = 1e-6 / 32
CELLS = 128


def laplace(x: int, count: int, source: Source) -> NDArray[np.int64]:
    return x + discrete_laplace(source, Fraction(1), count)


def rows(x: int, count: int, source: Source) -> NDArray[np.int64]:
    return np.stack([laplace(x * (i == 0), count, source.child(i)) for i in range(5)], axis=1)


def floats(x: int, count: int, source: Source) -> NDArray[np.float64]:
    """Float noise, which the audit refutes."""
    uniform = ((source.child(1).words(count) >> np.uint64(11)) + 0.5) * 2.0**-53
    return x + np.where(source.child(2).words(count) & np.uint64(1), 1.0, -1.0) * np.log(uniform)


def labels(x: int, count: int, source: Source) -> list[str]:
    return [f"noisy {value}" for value in laplace(x, count, source)]


def claim() -> Specification:
    return Specification(
        domain=Domain.finite((0, 1)),
        multiverse=Trivial(),
        input_premetric=Given(unit="unit", points=(0, 1), distances=((0, 1), (1, 0))),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )


def by_loops(draws: int) -> float:
    """The plain twin: the same partitions and orders, draw by draw."""
    third = draws // 3
    drawn = [laplace(x, draws, TestSource(x)).tolist() for x in (0, 1)]
    chosen, fresh = ([values[:third] for values in drawn], [values[third:] for values in drawn])
    best = 0.0
    for ordered, cell in partitions(*chosen):
        seen = [Counter(map(cell, values)) for values in chosen]
        tested = [Counter(map(cell, values)) for values in fresh]
        for first, second in ((0, 1), (1, 0)):
            for event in events(seen[first], seen[second], third, ordered):
                hits = [sum(tested[side][c] for c in event) for side in (first, second)]
                best = max(best, score(hits[0], hits[1], draws - third))
    return best


def partitions(first: list[int], second: list[int]) -> Iterator[tuple[bool, Callable[[int], Any]]]:
    """Intervals between quantiles, single values, and which of the data sets gave a value."""
    ranked = [sorted(side) for side in (first, second)]
    edges = sorted({side[len(side) * k // CELLS] for side in ranked for k in range(1, CELLS)})
    yield True, lambda value: bisect_left(edges, value)
    known = Counter(first + second)
    yield False, lambda value: value if known.get(value, 0) > 1 else None
    a, b = set(first), set(second)
    yield False, lambda value: (value in a, value in b)


def events(a: Counter[Any], b: Counter[Any], draws: int, ordered: bool) -> Iterator[list[Any]]:
    """The best run of cells in each order, and the best cell."""
    cells = list(a | b)
    orders = [sorted(cells, key=lambda c: -(a[c] + 0.5) / (b[c] + 0.5))]
    orders += [sorted(cells), sorted(cells, reverse=True)] if ordered else []
    for order in orders:
        sums = zip(accumulate(a[c] for c in order), accumulate(b[c] for c in order), strict=True)
        scores = [score(*hits, draws) for hits in sums]
        yield order[: scores.index(max(scores)) + 1]
    yield [max(cells, key=lambda c: score(a[c], b[c], draws))]


def score(hits: int, others: int, draws: int) -> float:
    low = float(binomial.lower(hits, draws, SHARE))
    return math.log(low / float(binomial.upper(others, draws, SHARE))) if low else 0.0


def seconds(run: Callable[[], Any], rounds: int = 3) -> tuple[float, Any]:
    """The best of a few rounds, and the last result."""
    best, result = math.inf, None
    for _ in range(rounds):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return best, result


def main() -> None:
    statistical_audit(laplace, [(0, 1)], claim(), draws=3000, source=TestSource(0))
    audits: dict[str, Callable[[int, int, Source], Any]] = {
        "one integer": laplace,
        "one float": floats,
        "five integers": rows,
        "one label": labels,
    }
    for name, sample in audits.items():
        drawing, _ = seconds(lambda sample=sample: [sample(x, MANY, TestSource(x)) for x in (0, 1)], 1)
        took, finding = seconds(
            lambda sample=sample: statistical_audit(
                sample, [(0, 1)], claim(), draws=MANY, source=TestSource(1)
            ),
            2,
        )
        print(
            f"{name:>14}: {took:.2f} s, drawing {drawing:.2f} of them; "
            f"{finding.verdict} at {float(finding.measured):.3f}"
        )
    took, finding = seconds(
        lambda: statistical_audit(laplace, [(0, 1)], claim(), draws=MANY, source=TestSource(1))
    )
    plain, loss = seconds(lambda: by_loops(FEW), 2)
    scaled = plain * MANY / FEW
    print(
        f"    plain twin: {plain:.2f} s for {FEW:,} draws, so about {scaled:.1f} s for {MANY:,}, "
        f"at {loss:.3f}; {scaled / took:.0f} times the audit's"
    )
    law = {k: laplace_mass(Fraction(1), k) for k in range(-40, 41)}
    took, finding = seconds(lambda: conformity_audit(laplace, 0, law, draws=MANY, source=TestSource(1)))
    print(f"    conformity: {took:.2f} s for {MANY:,} draws; {finding.verdict}")


if __name__ == "__main__":
    main()
