"""Many independent draws of the production kernel on one small data set, in one call.

Strata are independent, so a table of many copies of the data, each copy with strata of its own, is drawn at
once: the code path of a national release, used as a sampler.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stirred.noise import Source
from stirred.swap.derangement import Rates
from stirred.swap.prepared import Prepared
from stirred.swap.strata import Strata

if TYPE_CHECKING:
    from stirred.swap.mechanism import PermutationSwap


def sample_outcomes(mechanism: PermutationSwap, prepared: Prepared, count: int, source: Source) -> list[Any]:
    """Independent outputs, each a sorted tuple of records (match, hold, swap), as ``outcomes`` names them."""
    size = prepared.strata.codes.size
    donors = mechanism.donors(_copies(prepared, count), source).astype(np.int64)
    rows = donors.reshape(count, size) - np.arange(count, dtype=np.int64)[:, None] * size
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    keys, held, moved = columns_of(prepared)
    outputs = [
        tuple(sorted((keys[i], held[i], moved[donor]) for i, donor in enumerate(pattern)))
        for pattern in distinct.tolist()
    ]
    return [outputs[number] for number in which.reshape(-1).tolist()]


def _copies(prepared: Prepared, count: int) -> Prepared:
    """So many copies of the data in one table, each with strata of its own."""
    strata, rates, size = prepared.strata, prepared.rates, prepared.strata.codes.size
    shift = np.repeat(np.arange(count, dtype=np.int64), size) * strata.count
    frame = prepared.records.households[np.tile(np.arange(size), count)]
    return Prepared(
        swap=prepared.swap,
        records=replace(prepared.records, households=frame),
        roles=prepared.roles,
        strata=Strata(
            (np.tile(strata.codes, count) + shift).astype(np.int32),
            np.tile(strata.sizes, count),
            np.tile(strata.eligible_sizes, count),
            np.tile(strata.hold_varies, count),
            np.tile(strata.swap_varies, count),
        ),
        rates=Rates(rates.values, None if rates.classes is None else np.tile(rates.classes, count)),
        eligible=None if prepared.eligible is None else np.tile(prepared.eligible, count),
    )


def columns_of(prepared: Prepared) -> tuple[list[Any], list[Any], list[Any]]:
    """Matching, holding and swapping values of every record."""
    frame, roles = prepared.records.households, prepared.roles
    held, moved = (list(frame.select(names).iter_rows()) for names in (roles.hold, roles.swap))
    keys = list(frame.select(roles.match).iter_rows()) if roles.match else [()] * frame.height
    return keys, held, moved
