"""Hostile plans, specifications, numbers, columns and cells: refused early, by name, or made harmless."""

from __future__ import annotations

import csv
import datetime
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from support.release_case import TestSource, plan_of, write_case, write_plan
from support.releasing import run_release, try_swap, try_topdown
from support.tiny_plan import PLAN
from support.tiny_plan import write_plan as write_tiny

from stirred.data import read_table
from stirred.documents import LARGEST, parse_json, parse_yaml, read_text
from stirred.errors import InputError, StirredError
from stirred.interchange import csv_text, harmless, write_csv
from stirred.release import Plan
from stirred.report import ReleaseRow, ReleaseTable
from stirred.spec import Exact, Specification, as_fraction, catalogue
from stirred.spec.literature.entry import read_entries
from stirred.swap import PermutationSwap, Records, tighter_loss
from stirred.topdown import Plan as TopDownPlan

LAUGHS = "a0: &a0 [x]\n" + "".join(f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(40))
YAMLS = {
    "a key twice": "name: a\nname: b\n",
    "a key twice further down": "x: {rate: 1/2, rate: 1/20}\n",
    "a number and its text as keys": "1: a\n'1': b\n",
    "merged mappings": "a: &a {x: 1}\nb:\n  <<: *a\n",
    "a billion laughs": LAUGHS,
    "a part that contains itself": "a: &a [*a]\n",
    "20,000 levels": "a: " + "[" * 20_000 + "]" * 20_000,
    "20,000 open brackets": "[" * 20_000,
    "200 levels of lines": "".join("  " * i + "a:\n" for i in range(200)),
    "an object of Python": "!!python/object/apply:os.system ['true']\n",
    "a number by its tag": "a: !!int abc\n",
    "10,000 digits": "a: " + "9" * 10_000 + "\n",
    "half a character": 'a: "\\ud800"\n',
    "a list as a key": "? [a, b]\n: c\n",
    "a control character": "a: \x00\n",
    "an open bracket": "a: [\n",
    "17 MiB": "a: " + "x" * (LARGEST + 1),
}
JSONS = {
    "a key twice": '{"budget": 1, "budget": 2}',
    "20,000 levels": "[" * 20_000 + "]" * 20_000,
    "20,000 open brackets": '{"a":' * 20_000,
    "200 levels": "[" * 200 + "]" * 200,
    "10,000 digits": '{"a": ' + "9" * 10_000 + "}",
    "NaN": '{"a": NaN}',
    "infinity": '{"a": -Infinity}',
    "a large exponent": '{"a": 1e999999999}',
    "a small exponent": '{"a": 1e-999999999}',
    "an exponent beyond decimals": '{"a": 1e99999999999999999999999}',
    "half a character": '{"a": "\\ud800"}',
    "17 MiB": '{"a": "' + "x" * LARGEST + '"}',
}


@pytest.mark.parametrize("kind", YAMLS)
def test_an_unclear_yaml_document_is_refused_by_every_reader(kind: str, tmp_path: Path) -> None:
    text = YAMLS[kind]
    with pytest.raises(InputError):
        parse_yaml(text, "plan")
    path = tmp_path / "plan.yaml"
    path.write_text(text, encoding="utf-8")
    for load in (Plan.load, TopDownPlan.load):
        with pytest.raises(InputError) as error:
            load(path)
        assert error.value.field == "plan"


@pytest.mark.parametrize("kind", JSONS)
def test_an_unclear_json_document_is_refused_by_every_reader(kind: str, tmp_path: Path) -> None:
    text = JSONS[kind]
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    readers: list[Callable[[], Any]] = [
        lambda: parse_json(text, "file"),
        lambda: Specification.from_json(text),
        lambda: read_entries(text),
        lambda: catalogue.extended(path),
        lambda: Plan.load(path),
        lambda: TopDownPlan.load(path),
    ]
    for read in readers:
        with pytest.raises(InputError):
            read()


def test_the_last_of_two_keys_does_not_win(tmp_path: Path) -> None:
    """``rate: 1/20`` in the first line and ``rate: 1/2`` further down gave a plan with the second."""
    path = write_plan(tmp_path / "plan.yaml", plan_of("swap"))
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("  rate: 1/2\n", "  rate: 1/2\n  rate: 1/20\n"), encoding="utf-8")
    with pytest.raises(InputError, match="a key twice"):
        Plan.load(path)


def test_plain_documents_keep_their_meaning() -> None:
    text = "a: 010\nb: 1:30\nc: 2020-13-45\nd: yes\ne: 1.50\nf: -7\ng: 0\nh: true\ni: ~\nj: &x [1]\nk: *x\n"
    found = parse_yaml(text, "plan")
    assert found == {
        "a": "010", "b": "1:30", "c": "2020-13-45", "d": "yes", "e": "1.50", "f": -7, "g": 0, "h": True,
        "i": None, "j": [1], "k": [1],
    }  # fmt: skip
    assert parse_json('{"a": [1, 0.1, "x", null, true]}', "file") == {
        "a": [1, Decimal("0.1"), "x", None, True]
    }
    assert parse_yaml("", "plan") is None


def test_what_is_no_plain_file_is_not_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent", tmp_path / ("x" * 5000), Path("/dev/zero")):
        with pytest.raises(InputError, match="could not be read"):
            read_text(path, "plan")


NUMBERS = {
    "a small exponent": "1e-999999999",
    "a large exponent": "1e999999999",
    "an exponent with underscores": "1e9_9_9_9_9_9_9_9",
    "an exponent in full-width digits": "1e９９９９９９９９９",
    "10,000 digits": "9" * 10_000,
    "10,000 digits below the line": "1/" + "9" * 10_000,
    "10,000 decimals": "0." + "1" * 10_000,
    "division by zero": "1/0",
    "not a number": "nan",
    "a logarithm of 10,000 digits": "ln(" + "9" * 10_000 + ")",
    "a root of 10,000 digits": "sqrt(" + "9" * 10_000 + ")",
    "a root of 2,000 digits": "sqrt(" + "9" * 2_000 + ")",
    "a divisor of 10,000 digits": "ln(2)/" + "9" * 10_000,
    "10,000 terms": "+".join(["ln(2)"] * 10_000),
    "100 roots": "+".join(f"sqrt({n})" for n in range(100)),
    "nothing": "",
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_a_number_that_takes_hours_is_refused(kind: str) -> None:
    with pytest.raises(InputError):
        Exact.of(NUMBERS[kind])
    with pytest.raises(InputError):
        as_fraction(NUMBERS[kind])
    for field in ("rate", "target_epsilon"):
        changes = {"rate": None} | {field: NUMBERS[kind]}
        with pytest.raises(InputError):
            Plan.read(plan_of("swap", **changes))
    with pytest.raises(InputError):
        Plan.read(plan_of("swap") | {"delta": NUMBERS[kind]})
    unit = plan_of("topdown")["mechanism"]["units"]["person"]
    changed = unit | {"budget": unit["budget"] | {"rho_squared": NUMBERS[kind]}}
    with pytest.raises(StirredError):
        _allocated(plan_of("topdown", units={"person": changed}))


def _allocated(record: dict[str, Any]) -> object:
    plan = TopDownPlan.read({k: v for k, v in record["mechanism"].items() if k != "kind"})
    return plan._from_budget("person", plan.units["person"])


def test_numbers_that_are_used_are_read() -> None:
    assert as_fraction("1e-1000").denominator == 10**1000
    assert as_fraction(Decimal("1e-30")) * 10**30 == 1
    assert as_fraction("1_000") == 1000
    with pytest.raises(InputError):
        as_fraction(10**5000)
    with pytest.raises(InputError):
        as_fraction(Decimal("1e-999999999"))
    with pytest.raises(InputError):
        as_fraction(True)


def test_a_sum_of_long_logarithms_is_written_so_that_it_can_be_read() -> None:
    """Three tighter losses of different strata made one logarithm of more digits than an integer may have."""
    total = Exact()
    for stratum in (1_001, 1_003, 1_007, 1_013):
        total += tighter_loss(stratum, "1/20")
    assert Exact.parse(str(total)) == total


ODD = {
    "duration": pl.Series([datetime.timedelta(1)] * 24),
    "time": pl.Series([datetime.time(1)] * 24),
    "int128": pl.Series([2**70] * 24, dtype=pl.Int128),
    "decimal": pl.Series([Decimal("1.50")] * 24),
    "binary": pl.Series([b"a"] * 24),
    "list": pl.Series([["a"]] * 24),
    "array": pl.Series([[1, 2]] * 24, dtype=pl.Array(pl.Int64, 2)),
    "struct": pl.Series([{"a": 1}] * 24),
    "object": pl.Series([object()] * 24, dtype=pl.Object),
    "null": pl.Series([None] * 24),
}
PLAIN = {
    "text": pl.Series(["a", "b"] * 12),
    "categorical": pl.Series(["a", "b"] * 12, dtype=pl.Categorical),
    "enum": pl.Series(["a", "b"] * 12, dtype=pl.Enum(["a", "b", "c"])),
    "boolean": pl.Series([True, False] * 12),
    "int8": pl.Series([1, 2] * 12, dtype=pl.Int8),
    "uint64": pl.Series([1, 2**63 + 1] * 12, dtype=pl.UInt64),
    "int64": pl.Series([-(2**63), 2**63 - 1] * 12),
    "float32": pl.Series([0.5, 1.5] * 12, dtype=pl.Float32),
    "float64": pl.Series([0.5, 1.5] * 12),
    "date": pl.Series([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 12),
    "datetime": pl.Series([datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)] * 12),
    "zoned": pl.Series(
        [datetime.datetime(2020, 1, 1), datetime.datetime(2021, 1, 1)] * 12
    ).dt.replace_time_zone("Europe/Paris"),
}


def records(odd: pl.Series) -> pl.DataFrame:
    return pl.DataFrame({"c": [0, 1, 2] * 8, "h": [0, 0, 1, 1] * 6, "odd": odd})


@pytest.mark.parametrize("kind", ODD)
def test_a_column_of_a_type_that_is_not_read_is_refused_by_name(kind: str) -> None:
    frame = records(ODD[kind])
    for roles in (
        {"match": ("odd",), "swap": ("c",), "hold": ("h",)},
        {"match": (), "swap": ("odd",), "hold": ("h",)},
        {"match": (), "swap": ("c",), "hold": ("h", "odd")},
    ):
        for missing in ("error", "level"):
            swap = PermutationSwap(rate="1/2", missing=missing, **roles)  # type: ignore[arg-type]
            with pytest.raises(InputError, match="odd"):
                swap.release(frame, TestSource(1))
    with pytest.raises(InputError, match="odd"):
        Records.of(frame.drop("odd").with_row_index("id"), frame.select("odd").with_row_index("id"), "id")
    unused = PermutationSwap(match=(), swap=("c",), hold=("h",), rate="1/2").release(frame, TestSource(1))
    assert set(unused.products["households"].columns) == {"h", "c"}


@pytest.mark.parametrize("kind", [k for k in ODD if k not in {"object", "int128"}])
def test_topdown_refuses_a_column_of_a_type_that_is_not_read(kind: str, tmp_path: Path) -> None:
    path = write_tiny(tmp_path, PLAN)
    people = pl.read_parquet(tmp_path / "persons.parquet")
    odd = pl.concat([ODD[kind]] * 8)[: people.height].alias("sex")
    people.with_columns(odd).write_parquet(tmp_path / "persons.parquet")
    with pytest.raises(InputError, match="sex"):
        try_topdown(path, tmp_path / "out", random=TestSource(1))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", PLAIN)
def test_a_column_of_a_type_that_is_read_is_published_exactly(kind: str, tmp_path: Path) -> None:
    frame = records(PLAIN[kind])
    for roles in ({"swap": ("odd",), "hold": ("h",)}, {"swap": ("c",), "hold": ("h", "odd")}):
        swap = PermutationSwap(match=(), rate="1/2", **roles)  # type: ignore[arg-type]
        out = tmp_path / "-".join(roles["swap"])
        frame.write_parquet(tmp_path / "in.parquet")
        try_swap(swap, tmp_path / "in.parquet", out, random=TestSource(1))
        made = pl.read_parquet(out / "internal" / "microdata" / "households.parquet")["odd"].sort()
        expected = read_table(frame)["odd"].sort()
        assert made.dtype == expected.dtype and made.to_list() == expected.to_list()
        write_csv(made.to_frame(), tmp_path / "made.csv")


def test_a_column_that_reads_as_a_pattern_or_has_no_name_is_refused() -> None:
    """Selecting the column ``^.*$`` selects every column, also those that nobody named."""
    for name in ("^.*$", ""):
        frame = records(PLAIN["text"]).rename({"odd": name})
        with pytest.raises(InputError, match=r"pattern|no name"):
            PermutationSwap(match=(), swap=("c",), hold=("h", name), rate="1/2").release(frame, TestSource(1))


def test_categories_are_read_as_text_and_do_not_tell_the_order_of_the_records(tmp_path: Path) -> None:
    """The type of a categorical column may list its levels in the order of the confidential file."""
    levels = [f"level {i * 7 % 12}" for i in range(12)]
    orders = []
    for turned in (levels, levels[::-1]):
        column = pl.Series(turned * 2, dtype=pl.Categorical)
        records(column).write_parquet(tmp_path / "in.parquet")
        frame = read_table(tmp_path / "in.parquet")
        assert frame.schema["odd"] == pl.String
        swap = PermutationSwap(match=(), swap=("c",), hold=("h", "odd"), rate="1/2")
        made = swap.release(records(column), TestSource(1)).products["households"]
        assert made.schema["odd"] == pl.String
        made.sort("odd", "c", "h").write_parquet(tmp_path / "out.parquet")
        table = pq.read_table(tmp_path / "out.parquet", read_dictionary=["odd"])
        orders.append(table["odd"].chunk(0).dictionary.to_pylist())
    assert orders[0] == orders[1]


FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    " =1",
    "＝1",
    "＋1",
    "－1",
    "＠a",
    "=",
    "-",
    "+x",
]
HARMLESS = ["", "a", "1=1", "-1", "+2.5", "-1e5", "-0.5E+3", "'=1", "0", "ä", "a\nb"]


def rows_of(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_text_that_a_spreadsheet_takes_for_a_formula_is_made_harmless(tmp_path: Path) -> None:
    for cell in FORMULAS:
        assert harmless(cell) == f"'{cell}"
    for cell in (*HARMLESS, -1, 2.5, None, True):
        assert harmless(cell) == cell
    frame = pl.DataFrame({"=a": [*FORMULAS, *HARMLESS, None], "'=a": -1, "@b": -2.5})
    frame = frame.with_columns(pl.col("=a").cast(pl.Categorical).alias("c"))
    write_csv(frame, tmp_path / "out.csv")
    rows = rows_of((tmp_path / "out.csv").read_bytes().decode())
    assert rows[0] == ["''=a", "'=a", "'@b", "c"]
    assert [row[0] for row in rows[1:-1]] == [harmless(cell) for cell in (*FORMULAS, *HARMLESS)]
    assert [row[3] for row in rows[1:]] == [row[0] for row in rows[1:]]
    assert {(row[1], row[2]) for row in rows[1:]} == {("-1", "-2.5")}
    text = csv_text([["=a", "b"], *([cell, -1] for cell in (*FORMULAS, *HARMLESS))])
    again = rows_of(text)
    assert [row[0] for row in again] == ["'=a", *(harmless(c) for c in (*FORMULAS, *HARMLESS))]


def test_a_released_table_holds_no_formulas(tmp_path: Path) -> None:
    """A level ``=HYPERLINK(...)`` of a codebook stood in the public CSV as it was."""
    evil = '=HYPERLINK("http://example.org")'
    write_case(tmp_path)
    homes = pl.read_parquet(tmp_path / "households.parquet")
    homes = homes.with_columns(pl.col("tenure").replace("owned", evil)).rename({"tenure": "@tenure"})
    homes.write_parquet(tmp_path / "households.parquet")
    codebook = [
        {"name": "county", "levels": ["1"]},
        {"name": "block", "levels": ["111", "112", "121", "122"]},
        {"name": "size", "levels": [1, 2]},
        {"name": "@tenure", "levels": [evil, "rented"]},
    ]
    changes = {"hold": ["@tenure"], "persons": None, "tables": ["@tenure * block"]}
    plan = plan_of("swap", codebook={"attributes": codebook}, **changes) | {
        "title": "=1+1",
        "description": "-x",
    }
    path = write_plan(tmp_path / "evil.yaml", plan)
    run_release(path, tmp_path / "out", None, random=TestSource(1))
    found = sorted((tmp_path / "out").rglob("*.csv"))
    tables = [p for p in found if p.parent.name == "tables"]
    assert tables and any(p.name == "release-table.csv" for p in found)
    for path in (*tables, *(p for p in found if p.name == "release-table.csv")):
        cells = [cell for row in rows_of(path.read_bytes().decode()) for cell in row]
        assert all(harmless(cell) == cell for cell in cells)
    held = pl.read_parquet(tables[0].with_suffix(".parquet"))
    assert evil in held["@tenure"].to_list()


def test_the_name_of_a_step_of_a_release_table_is_made_harmless() -> None:
    specification = catalogue["tda-dhc"].specification()
    row = ReleaseRow("=1+1", "-scope", "m", "i", specification)
    rows = rows_of(ReleaseTable.of([row]).to_csv())
    assert [line[0] for line in rows[1:]] == ["release", "'=1+1"]


def test_a_specification_is_written_as_before() -> None:
    text = catalogue["tda-dhc"].specification().to_json()
    assert Specification.from_json(text).to_json() == text
    floats = json.loads(text)
    floats["budget"]["amounts"] = [0.1]
    assert Specification.from_json(json.dumps(floats)).budget.amounts == (Exact.of("1/10"),)
