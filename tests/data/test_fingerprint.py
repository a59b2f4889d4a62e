"""Fingerprints against the definition: equal exactly where the canonical records are the same multiset."""

from __future__ import annotations

import io
import sys
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.data import fingerprint, read_table

KEY = bytes(range(32))

FRAME = pl.DataFrame(
    {
        "id": [f"H{i:05}" for i in range(60)],
        "code": [f"{i % 7:03}" for i in range(60)],
        "share": [i / 7 for i in range(60)],
        "age": list(range(60)),
        "owner": [i % 2 == 0 for i in range(60)],
        "note": [None if i % 3 else 'é, "x"' for i in range(60)],
        "far": [2**62 + i for i in range(60)],
        "day": [date(2020, 1, 1 + i % 28) for i in range(60)],
    }
)


def twin(frame: pl.DataFrame) -> Any:
    """The definition: columns by name, and the multiset of canonical records."""
    names = sorted(frame.columns)
    return names, Counter(tuple(map(canonical, row)) for row in frame.select(names).iter_rows())


def canonical(value: Any) -> Any:
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        number = float(value)
    except (TypeError, ValueError):
        return str(value)
    return int(value) if isinstance(value, int) else int(number) if number == int(number) else repr(number)


cells = st.one_of(st.none(), st.sampled_from(["", "a", "b", "01", "1", "1.0", "1.50", "1.5", "-2", "x y"]))
tables = st.lists(st.tuples(cells, cells), max_size=4)


def framed(rows: list[tuple[Any, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"a": pl.String, "b": pl.String}, orient="row")


@settings(max_examples=300, deadline=None)
@given(tables, tables)
def test_equal_exactly_where_the_canonical_records_are(first: Any, second: Any) -> None:
    one, two = framed(first), framed(second)
    assert (fingerprint(one, KEY) == fingerprint(two, KEY)) is (twin(one) == twin(two))


def test_neither_the_order_of_rows_nor_of_columns_changes_it() -> None:
    expected = fingerprint(FRAME, KEY)
    assert fingerprint(FRAME.sample(fraction=1, shuffle=True, seed=4), KEY) == expected
    assert fingerprint(FRAME.select(reversed(FRAME.columns)), KEY) == expected


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_file_format_does_not_change_it(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"table.{ending}"
    FRAME.write_parquet(path) if ending == "parquet" else FRAME.write_csv(path)
    assert fingerprint(read_table(path), KEY) == fingerprint(FRAME, KEY)


@pytest.mark.parametrize(
    ("column", "kind"),
    [("age", pl.Float32), ("age", pl.String), ("age", pl.UInt8), ("code", pl.Int16), ("code", pl.Categorical),
     ("owner", pl.String), ("day", pl.String), ("note", pl.Categorical)],
)  # fmt: skip
def test_the_type_of_a_column_does_not_change_it(column: str, kind: Any) -> None:
    same = pl.col(column).cast(pl.String) if kind == pl.String else pl.col(column).cast(kind)
    assert fingerprint(FRAME.with_columns(same), KEY) == fingerprint(FRAME, KEY)


def test_every_cell_row_and_name_changes_it() -> None:
    seen = {fingerprint(FRAME, KEY)}
    for name in FRAME.columns:
        seen.add(fingerprint(FRAME.with_columns(pl.col(name).reverse()), KEY))
        seen.add(fingerprint(FRAME.rename({name: name + "_"}), KEY))
        seen.add(fingerprint(FRAME.drop(name), KEY))
    seen.add(fingerprint(FRAME.head(59), KEY))
    seen.add(fingerprint(pl.concat([FRAME, FRAME.head(1)]), KEY))
    seen.add(fingerprint(FRAME, bytes(32)))
    # Exchanging two columns keeps every column's values: only the records differ.
    seen.add(fingerprint(FRAME.rename({"age": "far", "far": "age"}), KEY))
    assert len(seen) == 1 + 3 * len(FRAME.columns) + 4


def test_blocks_of_rows_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fingerprint(FRAME, KEY)
    monkeypatch.setattr(sys.modules["stirred.data.fingerprint"], "BLOCK", 7)
    assert fingerprint(FRAME, KEY) == expected


def test_an_empty_table_and_a_nested_column_have_one() -> None:
    assert len(fingerprint(FRAME.clear(), KEY)) == 64
    nested = FRAME.select("age", pl.Series("list", [[i] for i in range(60)]))
    assert fingerprint(nested, KEY) == fingerprint(nested.reverse(), KEY)
    text = pl.read_csv(io.StringIO("a\n1e3\n2.50\n"))
    assert fingerprint(text, KEY) == fingerprint(pl.DataFrame({"a": ["1000", "2.5"]}), KEY)
