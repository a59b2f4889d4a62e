"""A tape of primitives: what was asked of the data, and what came out of each noisy draw.

A mechanism that is audited by replay draws all its randomness through a tape. Recording on x, the tape draws
and keeps; replayed on x', it returns what was drawn on x and keeps only what x' would have asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from stirred.noise import Source
from stirred.spec import Exact

Norm = Literal["l1", "l2", "linf"]


@dataclass(frozen=True)
class Call:
    """One primitive: its public parameters, its confidential argument, the sensitivity that is declared.

    ``cost`` is what it spends, in the linear unit of the claim; ``sensitivity`` bounds how far the argument
    moves, in the given norm, for one unit of distance.
    """

    name: str
    parameters: Mapping[str, Any]
    argument: tuple[Any, ...]
    sensitivity: Exact
    norm: Norm
    cost: Exact


@dataclass
class Tape:
    """Records primitives; ``again`` gives a tape that replays them."""

    source: Source
    outputs: list[Any] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    _recorded: Sequence[Any] | None = None

    def again(self) -> Tape:
        """A tape that returns what this one recorded, in order."""
        return Tape(self.source, _recorded=tuple(self.outputs))

    def draw(
        self,
        name: str,
        argument: Any,
        sampler: Callable[[Source], Any],
        *,
        sensitivity: object,
        cost: object,
        norm: Norm = "l1",
        **parameters: Any,
    ) -> Any:
        """The output of a primitive: drawn from a fresh stream, or as it was recorded.

        A replay that asks for more primitives than were recorded draws the rest afresh; the audit finds it in
        the list of calls.
        """
        plain = argument.ravel().tolist() if isinstance(argument, np.ndarray) else argument
        values = tuple(plain) if isinstance(plain, list | tuple) else (plain,)
        call = Call(name, parameters, values, Exact.of(sensitivity), norm, Exact.of(cost))
        number = len(self.calls)
        self.calls.append(call)
        if self._recorded is not None and number < len(self._recorded):
            return self._recorded[number]
        drawn = sampler(self.source.child(number))
        self.outputs.append(drawn)
        return drawn
