"""Some strata of the records, for audits: small, and swapped by the same code."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from stirred.errors import StirredError
from stirred.noise import Source, permutation

if TYPE_CHECKING:
    from stirred.release.kinds.swap.job import SwapJob

RECORDS = 5_000


def some_strata(job: SwapJob, source: Source) -> SwapJob:
    """The job on about ``RECORDS`` records in whole strata, drawn at random; itself where it has few.

    The last stratum may be cut: a part of a stratum is a stratum of another data set. Where the plan does not
    accept a part of its data the job stays whole.
    """
    records, strata = job.dataset, job.prepared.strata
    if records.households.height <= 2 * RECORDS:
        return job
    turn = permutation(source.child(0), strata.count)
    within = permutation(source.child(1), records.households.height)
    rows = np.sort(within[np.argsort(turn[strata.codes[within]], kind="stable")[:RECORDS]])
    households, persons = records.households[rows], records.persons
    if persons is not None and records.id is not None:
        persons = persons.join(
            households.select(records.id), on=records.id, how="semi", maintain_order="left"
        )
    part = job.on(replace(records, households=households, persons=persons))
    try:
        _ = part.prepared
    except StirredError:
        return job
    return part
