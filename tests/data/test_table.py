"""Reading tables: broken files are refused without showing what is in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from stirred.data import read_table, tabulate
from stirred.errors import InputError, StirredError

SENTINEL = "Ada Lovelace 1815"


@pytest.mark.parametrize("name", ["broken.parquet", "broken.csv"])
def test_a_broken_file_is_refused_and_its_content_stays_inside(tmp_path: Path, name: str) -> None:
    numbers = "\n".join(str(i) for i in range(20_000))
    (tmp_path / name).write_text(f"age\n{numbers}\n{SENTINEL},{SENTINEL}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_table(tmp_path / name, "households")
    assert caught.value.field == "households"
    assert SENTINEL not in str(caught.value)
    assert caught.value.__cause__ is None


def test_undecodable_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bytes.csv").write_bytes(b"name\n\xff\xfe\xfa\n")
    with pytest.raises(StirredError):
        read_table(tmp_path / "bytes.csv")


def test_other_files_and_absent_ones_are_refused(tmp_path: Path) -> None:
    (tmp_path / "table.xlsx").write_bytes(b"")
    for name in ("table.xlsx", "nothing.parquet"):
        with pytest.raises(StirredError):
            read_table(tmp_path / name)


def test_a_csv_file_is_read_and_tabulated(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("count\nx\nx\ny\n", encoding="utf-8")
    table = tabulate(read_table(tmp_path / "t.csv"), ["count"])
    assert table.rows() == [("x", 2), ("y", 1)]
