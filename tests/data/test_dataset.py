"""A data set is tables by name: read from anywhere, never changed, never shown."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import stirred as st
from stirred.data import Dataset
from stirred.errors import InputError, UnknownName
from stirred.noise import TestSource
from stirred.spec import Schema

HOUSEHOLDS = pl.DataFrame(
    {"id": [1, 2, 3, 4], "size": [7071, 7071, 7072, 7072], "owner": [0, 1, 0, 1], "county": list("abab")}
)
PERSONS = pl.DataFrame({"id": [1, 2, 3, 4, 4], "sex": list("fmfmf")})


def test_files_and_frames_are_read_alike(tmp_path: Path) -> None:
    HOUSEHOLDS.write_parquet(tmp_path / "households.parquet")
    PERSONS.write_csv(tmp_path / "persons.csv")
    both = st.read(households=tmp_path / "households.parquet", persons=str(tmp_path / "persons.csv"), id="id")
    assert list(both) == ["households", "persons"] and len(both) == 2 and both.id == "id"
    assert both["households"].equals(HOUSEHOLDS) and both["persons"].equals(PERSONS)
    alone = st.read(tmp_path / "households.parquet")
    assert dict(alone)["households"].equals(HOUSEHOLDS) and alone.id is None
    for table in (HOUSEHOLDS.lazy(), HOUSEHOLDS.to_arrow(), HOUSEHOLDS.to_pandas()):
        assert st.read(table)["records"].equals(HOUSEHOLDS)


def test_a_data_set_does_not_change_and_shows_no_value() -> None:
    tables = {"households": HOUSEHOLDS}
    data = Dataset(tables)
    tables["persons"] = PERSONS
    assert list(data) == ["households"]
    with pytest.raises(TypeError):
        data.tables["persons"] = PERSONS  # type: ignore[index]
    with pytest.raises(AttributeError):
        data.id = "id"  # type: ignore[misc]
    shown = repr(st.read(h=HOUSEHOLDS, p=PERSONS, id="id"))
    assert shown == "Dataset(h=(id, size, owner, county), p=(id, sex), id=id)"
    assert data == data and data != Dataset(tables)
    assert hash(data) == hash(data)


def test_tables_without_a_name_or_the_identifier_are_refused() -> None:
    with pytest.raises(InputError, match="needs a table"):
        st.read()
    with pytest.raises(InputError, match="has no name"):
        st.read(HOUSEHOLDS, persons=PERSONS)
    with pytest.raises(UnknownName, match="no column household"):
        st.read(households=HOUSEHOLDS, id="household")
    with pytest.raises(InputError, match="not a table") as error:
        st.read(person=[1, 2])
    assert error.value.field == "person"


def test_swapping_takes_a_data_set() -> None:
    swap = st.Swap(match=["size"], swap=["county"], rate="0.5")
    made = swap.release(st.read(households=HOUSEHOLDS, persons=PERSONS, id="id"), TestSource(1))
    households, persons = made.products["households"], made.products["persons"]
    assert households.height == 4 and persons.join(households, on="id").height == 5
    assert swap.release(st.read(HOUSEHOLDS.drop("id"))).products["households"].height == 4


def test_topdown_takes_a_data_set() -> None:
    spine = st.data.Spine.from_columns(pl.DataFrame({"block": ["a", "b"]}), ["block"])
    universes = []
    for unit, schema in (("person", Schema.of(sex=("f", "m"))), ("housing_unit", Schema.of(occupied=(0, 1)))):
        cells = st.topdown.Cells(schema)
        budget = st.topdown.Allocation.of(cells, 1000, {"block": 1}, {"detailed": 1})
        universes.append(st.topdown.Universe(unit, schema, budget))
    persons = pl.DataFrame({"block": ["a", "a", "b"], "sex": ["f", "m", "m"]})
    units = pl.DataFrame({"block": ["a", "b"], "occupied": [1, 1]})
    mechanism = st.TopDown(spine, universes)
    made = mechanism.release(st.read(person=persons, housing_unit=units), TestSource(1))
    assert {"person", "housing_unit"} <= set(made.products)
    with pytest.raises(InputError, match="no table of housing units"):
        mechanism.prepare(st.read(person=persons))


@pytest.mark.parametrize("used", [0, 1, 2])
def test_a_reader_is_refused_however_much_of_it_was_read(used: int) -> None:
    """An exhausted reader of record batches was taken for an empty table, a half-read one for a whole."""
    reader = pa.Table.from_batches(2 * HOUSEHOLDS.to_arrow().to_batches()).to_reader()
    for _ in range(used):
        reader.read_next_batch()
    with pytest.raises(InputError, match="a reader is not a table"):
        st.read(households=reader)
    assert st.read(HOUSEHOLDS.to_arrow().to_reader().read_all())["records"].equals(HOUSEHOLDS)
