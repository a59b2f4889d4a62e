"""The protocol in one call, for tests that ask one thing only."""

from __future__ import annotations

from typing import Any

from stirred.spec import Specification


def guaranteed(mechanism: Any, data: Any) -> Specification:
    """What a mechanism guarantees for some data."""
    return mechanism.guarantee(mechanism.prepare(data))
