"""A frozen record with some fields changed.

Guarantee
    The result is that of ``dataclasses.replace`` and the record stays as it was; an unknown field is refused.
Assumes
    A dataclass whose fields are all the attributes it has: no slots, no cached properties, nothing computed
    after the fields are set.

The books make several such records for every entry; ``dataclasses.replace`` looks at each field of each.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def changed(record: T, **fields: Any) -> T:
    """The record with other values in the fields that are named.

    Examples
    --------
    >>> from stirred.ledger.chain import Head
    >>> changed(Head(1, "a"), sequence=2)
    Head(sequence=2, hash='a')
    """
    after = object.__new__(type(record))
    values = after.__dict__
    values.update(record.__dict__)
    known = len(values)
    values.update(fields)
    if len(values) != known:
        raise TypeError(f"{type(record).__name__} has no such field")
    return after
