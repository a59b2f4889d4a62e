"""The levels of a codebook, and the one rule by which a value is one of them.

Guarantee
    A value belongs to a level if the two are written alike. 1 and "1" are one code, and so are true and
    "true"; "01", 1.0 and " 1" are others; a negative zero is a zero. The rule looks at one value at a time,
    never at other records, and a column of integers holds the same codes as its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from stirred.data.table import require_kind
from stirred.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from stirred.spec import Level, Schema

# So few records are looked up one by one: sooner done than a join is begun.
FEW = 64


def require_levels(frame: pl.DataFrame, schema: Schema, columns: Iterable[str]) -> None:
    """Refuse a table with a column that the codebook lacks, or a value outside its levels; gaps may be."""
    for name in columns:
        schema.require((name,), "codebook")
        require_kind(frame.schema[name], name)
        levels = schema.codebook().get(name)
        if levels is not None:
            known = _places_of(frame[name].drop_nulls(), name, _written(name, levels))
            _require_inside(name, outside=int(known["place"].null_count()))


def level_codes(column: pl.Series, name: str, levels: Sequence[Level]) -> NDArray[np.int64]:
    """The position of every value among the levels; refused where one, or a gap, is not among them."""
    codes = places(column, name, _written(name, levels))
    _require_inside(name, outside=int((codes < 0).sum()))
    return codes


def _written(name: str, levels: Sequence[Level]) -> dict[str, int]:
    written = {str(level): place for place, level in enumerate(levels)}
    if len(written) != len(levels):
        raise InputError(
            f"two levels of {name} are written alike",
            field=name,
            expected="levels that differ as text: 1 and '1' do not",
            hint="Keep one of the two in the schema.",
        )
    return written


def _require_inside(name: str, outside: int) -> None:
    if outside:
        raise InputError(
            f"some records have no value of {name} among its levels",
            field=name,
            expected="one of the levels that the schema lists, written alike: 1 is '1', but not '01' or 1.0",
            hint="Correct the data, or list every level of the codebook in the schema.",
        )


def places(column: pl.Series, name: str, written: Mapping[str, int]) -> NDArray[np.int64]:
    """The place of every record's value in a list of texts; -1 where it has none."""
    import numpy as np

    if len(column) <= FEW:
        texts = _texts(column, name).to_list()
        return np.array([written.get(text, -1) for text in texts], dtype=np.int64)
    known = _places_of(column, name, written)
    records = _plain(column).alias("value").to_frame()
    joined = records.join(known, on="value", how="left", maintain_order="left", nulls_equal=True)
    return joined["place"].fill_null(-1).to_numpy()


def _places_of(column: pl.Series, name: str, written: Mapping[str, int]) -> pl.DataFrame:
    """The place of every distinct value, null where it has none. Few are: only those are turned into text."""
    import polars as pl

    distinct = _plain(column).unique()
    listed = pl.DataFrame(
        {"text": list(written), "place": list(written.values())},
        schema={"text": pl.String, "place": pl.Int64},
    )
    texts = pl.DataFrame({"value": distinct, "text": _texts(distinct, name)})
    return texts.join(listed, on="text", how="left").select("value", "place")


def _texts(column: pl.Series, name: str) -> pl.Series:
    import polars as pl

    require_codes(column, name)
    return _plain(column).cast(pl.String)


def _plain(column: pl.Series) -> pl.Series:
    """A negative zero is a zero."""
    return column.set(column == 0, 0.0) if column.dtype.is_float() else column


def require_codes(column: pl.Series, name: str) -> None:
    """Refuse a column of lists, bytes or other things that are not one code a row; an empty one has none."""
    import polars as pl

    if column.dtype != pl.Null:
        require_kind(column.dtype, name)
