"""Roles: who may do what.

The ledger checks that the person named holds a role that may do the act, and writes both down. That the
person is who they say is for the operating system or the server to check, not for the ledger.
"""

from __future__ import annotations

from typing import Literal, get_args

from stirred.ledger.refusals import NotPermitted

Role = Literal["owner", "curator", "allocator", "analyst"]
ROLES: tuple[Role, ...] = get_args(Role)

_ACTS: dict[str, tuple[str, tuple[Role, ...]]] = {
    "founded": ("found a ledger", ("owner",)),
    "anchored": ("renew the head file", ("owner",)),
    "appointed": ("appoint people", ("owner",)),
    "opened": ("open a data set", ("owner",)),
    "overridden": ("override a step of the checklist", ("owner",)),
    "allocated": ("allocate budget", ("allocator",)),
    "withdrawn": ("withdraw an allocation", ("allocator",)),
    "spent": ("spend budget", ("curator", "analyst")),
    "begun": ("begin a release", ("curator", "analyst")),
    "resumed": ("resume a release", ("curator", "analyst")),
    "abandoned": ("abandon a release", ("curator", "analyst")),
    "discarded": ("record what was destroyed", ("curator", "analyst")),
    "finished": ("finish a release", ("curator", "analyst")),
    "participated": ("record who took part", ("curator",)),
    "non-private": ("record a step without protection", ROLES),
}


def permitted(kind: str, name: str, held: tuple[Role, ...]) -> Role:
    """The role under which a person may do an act; a refusal if there is none."""
    act, roles = _ACTS[kind]
    for role in roles:
        if role in held:
            return role
    owned = " and ".join(held) if held else "no role"
    raise NotPermitted(
        f"{name} holds {owned} and may not {act}",
        field="by",
        expected=f"a person appointed as {' or '.join(roles)}",
        hint="An owner appoints people: ledger.appoint(name, role, by=owner).",
    )


def not_own(name: str) -> NotPermitted:
    """The refusal for an analyst who reaches for what is not theirs."""
    return NotPermitted(
        f"{name} is an analyst and may act on their own allocation only",
        field="analyst",
        expected="the analyst's own name, or a curator",
        hint="Ask a curator to make the release.",
    )
