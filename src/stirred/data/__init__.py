"""Tables of records: reading, coding columns as integers, tabulating, measuring error and exposure."""

from stirred.data.codes import Codes, code_columns, physical, row_hashes
from stirred.data.error import ErrorSummary, compare_tables, cramers_v
from stirred.data.exposure import MOST_DETERMINED, ExactTable, Exposure, Exposures
from stirred.data.fingerprint import fingerprint
from stirred.data.histogram import Histogram, count_cells, level_codes, levels_of
from stirred.data.spine import Spine
from stirred.data.table import read_table, require_columns, require_levels, tabulate

__all__ = [
    "MOST_DETERMINED",
    "Codes",
    "ErrorSummary",
    "ExactTable",
    "Exposure",
    "Exposures",
    "Histogram",
    "Spine",
    "code_columns",
    "compare_tables",
    "count_cells",
    "cramers_v",
    "fingerprint",
    "level_codes",
    "levels_of",
    "physical",
    "read_table",
    "require_columns",
    "require_levels",
    "row_hashes",
    "tabulate",
]
