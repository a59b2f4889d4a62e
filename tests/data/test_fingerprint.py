"""Fingerprints against the definition: equal exactly where the canonical records are the same multiset."""

from __future__ import annotations

import io
import re
import sys
from collections import Counter
from datetime import date, datetime, time
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
    text = str(value)
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if re.fullmatch(r"[+-]?\d+\.\d+", text):
        text = text.rstrip("0").rstrip(".")
        return int(text) if "." not in text else text
    return text


cells = st.one_of(
    st.none(),
    st.sampled_from(["", "a", "b", "01", "1", "1.0", "1.50", "1.5", "-2", "x y", "1e2", "100", "++1"]),
)
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
    monkeypatch.setattr(sys.modules["stirred.data.fingerprints"], "BLOCK", 7)
    assert fingerprint(FRAME, KEY) == expected


def test_an_empty_table_and_a_nested_column_have_one() -> None:
    assert len(fingerprint(FRAME.clear(), KEY)) == 64
    nested = FRAME.select("age", pl.Series("list", [[i] for i in range(60)]))
    assert fingerprint(nested, KEY) == fingerprint(nested.reverse(), KEY)
    text = pl.read_csv(io.StringIO("a\n1e3\n2.50\n"))
    assert fingerprint(text, KEY) == fingerprint(pl.DataFrame({"a": ["1000", "2.5"]}), KEY)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("12E3", "12000"), ("07E1", "70"), ("00E12", "0"), ("++5", "5"), ("1e400", "2e400"),
        ("123456789012345678.1", "123456789012345678.2"), ("9007199254740993.0", "9007199254740992.0"),
        ("1.00000000000000000001", "1"),
    ],
)  # fmt: skip
def test_codes_that_look_like_numbers_are_told_apart(first: str, second: str) -> None:
    """Read as floats they met: 12E3 is a code, and not twelve thousand."""
    tables = [pl.DataFrame({"code": [code, "x"]}) for code in (first, second)]
    assert fingerprint(tables[0], KEY) != fingerprint(tables[1], KEY)


def test_floats_dates_and_times_are_what_their_copy_in_csv_is(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "small": pl.Series([0.1, 2.5, None], dtype=pl.Float32),
            "large": [1e300, 0.1 + 0.2, 5.0],
            "when": [datetime(2020, 1, 2, 3, 4, 5, 600), datetime(2021, 1, 1), None],
            "at": [time(1, 2, 3), time(4, 5, 6, 7), None],
        }
    )
    for unit in ("ms", "us", "ns"):
        made = frame.with_columns(pl.col("when").cast(pl.Datetime(unit)))  # type: ignore[arg-type]
        made.write_csv(tmp_path / "copy.csv")
        assert fingerprint(pl.read_csv(tmp_path / "copy.csv"), KEY) == fingerprint(made, KEY)
