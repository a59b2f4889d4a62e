"""What a mechanism raises is an output that an adversary sees: the kind of the error, never its text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Raised:
    """The output of a mechanism that raises instead."""

    error: str


def outcome_of(call: Callable[..., Any], *arguments: Any) -> Any:
    """What a call returns, or what it raises; a fault of the machine is no output."""
    try:
        return call(*arguments)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        return Raised(type(error).__name__)
