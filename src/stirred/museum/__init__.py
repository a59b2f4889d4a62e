"""The museum: known bugs as broken mechanisms, their correct twins, and the audits that tell them apart."""

from functools import cache

from stirred.museum.exhibit import Exhibit


@cache
def collection() -> dict[str, Exhibit]:
    """Every exhibit by its key, published bugs first."""
    from stirred.museum import accounting, black_box, keys, noise, sensitivity, swapping, topdown, units

    rooms = (sensitivity, noise, accounting, keys, swapping, topdown, units, black_box)
    exhibits = [exhibit for room in rooms for exhibit in room.EXHIBITS]
    return {exhibit.key: exhibit for exhibit in exhibits}


__all__ = ["Exhibit", "collection"]
