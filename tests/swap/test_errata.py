"""Statements of the paper on swapping as printed, against what is true."""

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import pytest
from support.patterns import hamming

from stirred.spec import swapping_loss
from stirred.swap import margin_patterns, pattern_records, tighter_loss, universe
from stirred.swap.enumeration import exact_loss
from stirred.swap.loss import derangements

Margins = tuple[int, ...]


def partitions(total: int, largest: int) -> Iterator[Margins]:
    """All ways to write a number as a falling sum."""
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in partitions(total - first, first):
            yield (first, *rest)


def tables(rows: Margins, columns: Margins) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All contingency tables with these margins."""
    if not rows:
        if not any(columns):
            yield ()
        return
    for row in itertools.product(*(range(min(rows[0], c) + 1) for c in columns)):
        if sum(row) == rows[0]:
            left = tuple(c - r for c, r in zip(columns, row, strict=True))
            for rest in tables(rows[1:], left):
                yield (row, *rest)


def fits_elsewhere(rows: Margins, columns: Margins, taken: tuple[tuple[int, ...], ...]) -> bool:
    """Whether a second table with the same margins avoids every cell of the first (Hall's condition)."""
    for chosen in itertools.product((False, True), repeat=len(rows)):
        wanted = sum(r for r, c in zip(rows, chosen, strict=True) if c)
        open_columns = {j for i, c in enumerate(chosen) if c for j in range(len(columns)) if not taken[i][j]}
        if wanted > sum(columns[j] for j in open_columns):
            return False
    return True


def differ_in_all(rows: Margins, columns: Margins) -> bool:
    """Whether two data sets with these margins differ in every record."""
    return any(fits_elsewhere(rows, columns, table) for table in tables(rows, columns))


def test_two_data_sets_that_differ_in_all_records_are_found_as_by_enumeration() -> None:
    for size in (3, 4, 5):
        for hold, swap in margin_patterns(size):
            data = universe(pattern_records(hold, swap))
            far = max(hamming(x, y) for x, y in itertools.product(data, repeat=2))
            assert differ_in_all(hold, swap) == (far == size)


def holds(size: int) -> bool:
    """Proposition 9 at one size: (18) and (19) imply the condition of Theorem D, which decides."""
    margins = [m for m in partitions(size, size // 2 - 1) if m.count(1) >= 2]
    return all(
        differ_in_all(hold[:-2], swap[:-2])
        for hold, swap in itertools.combinations_with_replacement(margins, 2)
    )


def test_proposition_9_holds_up_to_seven_and_for_nine_records_and_fails_for_eight_and_ten() -> None:
    assert [size for size in range(4, 11) if not holds(size)] == [8, 10]


def printed_gap(size: int) -> float:
    """f(b) of Theorem 4 as printed: factorials only."""
    above = 1 + math.e / (2 * math.factorial(size - 2))
    below = 1 - math.e / (2 * math.factorial(size))
    return 0.5 * math.log((size + 1) ** 2 / (size * (size - 1)) * above / below)


def test_theorem_4_its_gap_is_finite_for_two_and_three_records_and_no_bound_for_three() -> None:
    """f(3) = 1.0480; the loss of Theorem 1 lies ln 4 - ln(2)/3 = 1.1552 above the best, in every universe."""
    assert printed_gap(2) == pytest.approx(1.7502, abs=5e-5)
    assert printed_gap(3) == pytest.approx(1.0480, abs=5e-5)
    rate = Fraction(1, 10)
    best = exact_loss([(0, "a", 1), (0, "b", 2), (0, "c", 3)], rate).loss
    assert best == tighter_loss(3, rate)
    distance = float(swapping_loss(3, rate) - best)
    assert distance == pytest.approx(math.log(4) - math.log(2) / 3)
    assert distance > printed_gap(3)
    two = float(swapping_loss(2, rate) - tighter_loss(2, rate))
    assert two < printed_gap(2)


def test_theorem_3_c_divides_by_zero_for_three_records() -> None:
    assert derangements(1) == 0 and derangements(0) == derangements(2) == 1
