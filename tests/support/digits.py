"""Exact laws of what is decided by lazily drawn digits: all strings of digits, one by one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

Outcome = TypeVar("Outcome")


class _ExhaustedError(Exception):
    """No further digit."""


def enumerated(
    decide: Callable[[int, Callable[[], int]], Outcome], bits: int, depth: int
) -> tuple[dict[Outcome, Fraction], int]:
    """Mass of all digit strings that decide for each outcome, and how many strings remain undecided.

    What is decided by some digits is decided for all strings that begin with them, and not asked again.
    """
    decided: dict[Outcome, Fraction] = {}
    open_strings: list[tuple[int, ...]] = [()]
    for length in range(1, depth + 1):
        following = []
        for string in open_strings:
            for digit in range(2**bits):
                longer = (*string, digit)
                try:
                    value = decide(longer[0], _reader(longer[1:]))
                except _ExhaustedError:
                    following.append(longer)
                else:
                    decided[value] = decided.get(value, Fraction(0)) + Fraction(1, 2 ** (bits * length))
        open_strings = following
    return decided, len(open_strings)


def _reader(digits: tuple[int, ...]) -> Callable[[], int]:
    stream = iter(digits)

    def more() -> int:
        try:
            return next(stream)
        except StopIteration:
            raise _ExhaustedError from None

    return more
