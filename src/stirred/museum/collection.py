"""Every exhibit of the museum."""

from __future__ import annotations

from functools import cache

from stirred.museum import accounting, black_box, keys, noise, sensitivity, swapping, topdown, units
from stirred.museum.exhibit import Exhibit


@cache
def collected() -> dict[str, Exhibit]:
    """Every exhibit by its key, published bugs first."""
    rooms = (sensitivity, noise, accounting, keys, swapping, topdown, units, black_box)
    return {exhibit.key: exhibit for room in rooms for exhibit in room.EXHIBITS}
