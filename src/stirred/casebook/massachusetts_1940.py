"""Household records of Massachusetts in 1940, made by an arithmetic rule: nobody's answers, nothing random.

The table of county by ownership is the published one, exactly, and the largest stratum of state by
household size is that of the 264,331 two-person households, so that the loss of a swap is the paper's too.
How sizes are spread over counties and ownership is our own rule: shares like those of 1940, with small
households more often rented and more frequent on the Cape and the islands.

Reference
    Table 1 and section 3.4 of Bailie, Gong and Meng (from the 1940 Census full count, IPUMS USA).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from stirred.casebook.census_2020 import STRATUM_1940

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

STATE = "Massachusetts"
OWNERSHIP = ("owned", "rented")
TWO_PERSON_HOUSEHOLDS = STRATUM_1940
TABLE_1 = MappingProxyType(
    {
        "Barnstable": (7_461, 3_825),
        "Berkshire": (14_736, 18_417),
        "Bristol": (33_747, 63_931),
        "Dukes": (1_207, 534),
        "Essex": (53_936, 81_300),
        "Franklin": (7_433, 6_442),
        "Hampden": (30_597, 58_166),
        "Hampshire": (9_427, 8_630),
        "Middlesex": (104_144, 147_687),
        "Nantucket": (593, 432),
        "Norfolk": (44_885, 40_285),
        "Plymouth": (24_857, 23_882),
        "Suffolk": (49_656, 176_553),
        "Worcester": (53_126, 78_535),
    }
)
"""Households by county: owned and rented dwellings."""

COUNTIES = tuple(TABLE_1)
SIZES = tuple(range(1, 13))
SIZE_SHARES = (900, 2310, 2140, 1800, 1190, 700, 400, 240, 140, 90, 55, 35)
"""Households of each size in ten thousand, before they lean."""

COUNTY_LEAN = MappingProxyType(
    {
        "Barnstable": -6,
        "Bristol": 2,
        "Dukes": -6,
        "Hampden": 1,
        "Nantucket": -5,
        "Suffolk": -1,
        "Worcester": 1,
    }
)
OWNERSHIP_LEAN = MappingProxyType({"owned": 3, "rented": -2})
"""By how many per cent the share of a size grows with each person above four (up to seven)."""


def households() -> pl.DataFrame:
    """One row for each of the 1,144,424 households: state, county, household_size and ownership.

    Examples
    --------
    >>> frame = households()
    >>> frame.height, frame.columns
    (1144424, ['state', 'county', 'household_size', 'ownership'])
    """
    import polars as pl

    counts = size_table()
    county, ownership, size = (
        np.repeat(index.ravel().astype(np.uint32), counts.ravel()) for index in np.indices(counts.shape)
    )
    return pl.DataFrame(
        {
            "state": pl.repeat(STATE, county.size, dtype=pl.Enum([STATE]), eager=True),
            "county": pl.Series(COUNTIES, dtype=pl.Enum(COUNTIES)).gather(county),
            "household_size": pl.Series(SIZES, dtype=pl.Int16).gather(size),
            "ownership": pl.Series(OWNERSHIP, dtype=pl.Enum(OWNERSHIP)).gather(ownership),
        }
    )


def size_table() -> NDArray[np.int64]:
    """Households by county, ownership and size: the published table, split over sizes in whole numbers.

    The two-person households are shared out first, then what is left of each cell over the other sizes;
    both by largest remainders in integers, so that the result is the same on every machine.
    """
    cells = np.array([TABLE_1[county] for county in COUNTIES], dtype=np.int64)
    weights = _weights()
    pair = SIZES.index(2)
    pairs_in_a_million = 10**6 * weights[..., pair] // weights.sum(axis=-1)
    pairs = share_out(TWO_PERSON_HOUSEHOLDS, (cells * pairs_in_a_million).ravel()).reshape(cells.shape)
    counts = np.zeros(weights.shape, dtype=np.int64)
    weights[..., pair] = 0
    for index in np.ndindex(cells.shape):
        counts[index] = share_out(int(cells[index] - pairs[index]), weights[index])
    counts[..., pair] = pairs
    return counts


def _weights() -> NDArray[np.int64]:
    """Relative frequency of every size in every county and ownership."""
    beyond = np.minimum(np.array(SIZES, dtype=np.int64), 7) - 4
    lean = np.array([[COUNTY_LEAN.get(c, 0) + OWNERSHIP_LEAN[o] for o in OWNERSHIP] for c in COUNTIES])
    tilted: NDArray[np.int64] = np.array(SIZE_SHARES, dtype=np.int64) * (100 + lean[..., None] * beyond)
    return tilted


def share_out(total: int, weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers in proportion to integer weights that add up to a total, by largest remainders.

    Examples
    --------
    >>> share_out(10, np.array([1, 1, 1]))
    array([4, 3, 3])
    """
    whole: int = int(weights.sum())
    shares: NDArray[np.int64] = total * weights // whole
    left = total - int(shares.sum())
    largest_first = np.argsort(-(total * weights % whole), kind="stable")
    shares[largest_first[:left]] += 1
    return shares
