"""Tables of records: reading, coding columns as integers, tabulating, measuring error and exposure.

``read`` makes a ``Dataset`` of files and frames, ``Spine`` a geography of a public list of places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.data.codes import (
        Codes,
        blocks,
        code_columns,
        determines,
        in_groups,
        joint_values,
        maps,
        physical,
        row_hashes,
        whole_words,
    )
    from stirred.data.dataset import Dataset, read
    from stirred.data.error import ErrorSummary, compare_counts, cramers_v
    from stirred.data.exposure import (
        MOST_DETERMINED,
        ExactTable,
        Exposure,
        Exposures,
        TwoTables,
        alone,
        percent,
        two_tables,
    )
    from stirred.data.fingerprints import fingerprint
    from stirred.data.histogram import Histogram, count_cells, levels_of
    from stirred.data.kernel import group_rows
    from stirred.data.levels import level_codes, require_levels
    from stirred.data.spine import Spine
    from stirred.data.table import read_table, require_columns, tabulate
else:
    __getattr__, __dir__, __all__ = door(__name__)
