"""Roles of the variables: what is matched, what moves, what stays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stirred.data import require_columns
from stirred.errors import InputError

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Roles:
    """Matching variables (the swap key), swapping variables, and all other holding variables."""

    match: tuple[str, ...]
    swap: tuple[str, ...]
    hold: tuple[str, ...]

    @classmethod
    def resolve(
        cls,
        frame: pl.DataFrame,
        match: Sequence[str],
        swap: Sequence[str],
        hold: Sequence[str] | None,
        ignore: Iterable[str] = (),
    ) -> Roles:
        """Check the roles against a table; ``hold=None`` holds every other column."""
        require_columns(frame, match, "match")
        require_columns(frame, swap, "swap")
        rest = [c for c in frame.columns if c not in {*match, *swap, *ignore}]
        chosen = list(rest) if hold is None else list(hold)
        require_columns(frame, chosen, "hold")
        _refuse_overlap({"match": match, "swap": swap, "hold": chosen})
        if not swap or not chosen:
            raise InputError(
                "swapping needs variables to move and variables to keep",
                field="swap" if not swap else "hold",
                expected="at least one swapping variable, and one holding variable besides the swap key",
                hint="Matching variables may be empty; the other two may not.",
            )
        return cls(tuple(match), tuple(swap), tuple(chosen))


def _refuse_overlap(roles: dict[str, Sequence[str]]) -> None:
    seen: dict[str, str] = {}
    for role, names in roles.items():
        for name in names:
            if name in seen:
                other = seen[name]
                raise InputError(
                    f"the variable {name} has two roles: {other} and {role}",
                    field=role,
                    expected="every variable in exactly one of match, swap and hold",
                    hint="Matching variables are held by definition; do not list them again.",
                )
            seen[name] = role
