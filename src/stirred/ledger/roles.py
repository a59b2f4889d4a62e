"""Roles: who may do what.

The ledger checks that the person named holds a role that may do the act, and writes both down. That the
person is who they say is for the operating system or the server to check, not for the ledger.
"""

from __future__ import annotations

from typing import Literal, get_args

from stirred.ledger.refusals import NotPermitted

Role = Literal["owner", "curator", "allocator", "analyst"]
ROLES: tuple[Role, ...] = get_args(Role)

MAY: dict[str, tuple[Role, ...]] = {
    "founded": ("owner",),
    "anchored": ("owner",),
    "appointed": ("owner",),
    "opened": ("owner",),
    "overridden": ("owner",),
    "allocated": ("allocator",),
    "withdrawn": ("allocator",),
    "spent": ("curator", "analyst"),
    "begun": ("curator", "analyst"),
    "resumed": ("curator", "analyst"),
    "abandoned": ("curator", "analyst"),
    "discarded": ("curator", "analyst"),
    "finished": ("curator", "analyst"),
    "participated": ("curator",),
    "non-private": ("owner", "curator", "allocator", "analyst"),
}

_ACTS = {
    "founded": "found a ledger",
    "anchored": "renew the head file",
    "appointed": "appoint people",
    "opened": "open a data set",
    "overridden": "override a step of the checklist",
    "allocated": "allocate budget",
    "withdrawn": "withdraw an allocation",
    "spent": "spend budget",
    "begun": "begin a release",
    "resumed": "resume a release",
    "abandoned": "abandon a release",
    "discarded": "record what was destroyed",
    "finished": "finish a release",
    "participated": "record who took part",
    "non-private": "record a step without protection",
}


def permitted(kind: str, name: str, held: tuple[Role, ...]) -> Role:
    """The role under which a person may do an act; a refusal if there is none."""
    for role in MAY[kind]:
        if role in held:
            return role
    owned = " and ".join(held) if held else "no role"
    raise NotPermitted(
        f"{name} holds {owned} and may not {_ACTS[kind]}",
        field="by",
        expected=f"a person appointed as {' or '.join(MAY[kind])}",
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
