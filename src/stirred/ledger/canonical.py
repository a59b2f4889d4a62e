"""Canonical text and its digest: the same event is always the same bytes.

Guarantee
    One JSON value has one canonical text: keys sorted, no spaces, UTF-8, no NaN.
Assumes
    SHA-256 is collision resistant.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any

from stirred.errors import InputError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_WRITER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
LONGEST_NAME = 200


def canonical(value: Any) -> str:
    """The canonical JSON text of a value."""
    return _WRITER.encode(value)


def digest(text: str) -> str:
    """SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def require_digest(text: object, field: str) -> str:
    """A SHA-256 digest in lower-case hexadecimal, or an error that names the field."""
    if not isinstance(text, str) or _DIGEST.fullmatch(text) is None:
        raise InputError(
            f"{field} is not a digest",
            field=field,
            expected="a SHA-256 digest: 64 lower-case hexadecimal digits",
            hint="Use hashlib.sha256(...).hexdigest() of the frozen file.",
        )
    return text


def require_name(text: object, field: str) -> str:
    """A short printable name, or an error that names the field."""
    if isinstance(text, str) and text.isprintable() and 0 < len(text.strip()) == len(text) <= LONGEST_NAME:
        return text
    raise InputError(
        f"{field} is not a name",
        field=field,
        expected=f"1 to {LONGEST_NAME} printable characters, without spaces around them",
        hint="Names and reasons are kept for good: write what a reader will understand in ten years.",
    )
