"""One payment, one place, one data set: what the ledger seals, what it refuses, and what it never tells."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest
from ledger.common import MANIFEST, make, plan, pure

from stirred.errors import InputError
from stirred.ledger import Drawing, Elsewhere, Ledger, NotOpen, NotPermitted, SameData, TamperedLedger
from stirred.ledger.seal import SECOND_CEILING

HERE = Drawing("/office/out", {"households": "a" * 64, "persons": "b" * 64})
THERE = Drawing("/office/other", HERE.data)
OTHER = Drawing("/office/out", {"households": "c" * 64, "persons": "d" * 64})
CLOCK = datetime(2026, 3, 1, tzinfo=UTC)
HALF = Drawing("/elsewhere", {"people": "b" * 64})


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return make(tmp_path, pure(1), pure(1))


def test_a_release_is_resumed_in_its_place_and_on_its_data_alone(ledger: Ledger) -> None:
    spend = ledger.spend("a", pure("0.1"), plan(1), by="Ben", drawing=HERE)
    assert ledger.drawing(spend) == HERE
    for wrong, words in ((THERE, "another folder"), (OTHER, "the data are not those"), (None, "the data")):
        with pytest.raises(Elsewhere, match=words):
            ledger.resume("a", plan(1), by="Ben", drawing=wrong)
    again = ledger.resume("a", plan(1), by="Ben", drawing=Drawing(HERE.place, dict(HERE.data)))
    assert (again.sequence, again.attempt) == (spend.sequence, 2)
    assert str(ledger.total("a").budget) == "ε = 0.1"


def test_an_abandoned_release_stays_spent_and_cannot_finish(ledger: Ledger) -> None:
    spend = ledger.spend("a", pure("0.1"), plan(1), by="Ben", drawing=HERE, once=True)
    with pytest.raises(InputError, match="no such attempt"):
        ledger.discard(spend, 2, by="Ben")
    gone = ledger.abandon(spend, by="Ben")
    assert gone.status == "abandoned"
    for act in (
        lambda: ledger.finish(spend, MANIFEST, by="Ben"),
        lambda: ledger.resume("a", plan(1), by="Ben", drawing=HERE),
        lambda: ledger.abandon(spend, by="Ben"),
    ):
        with pytest.raises(NotOpen):
            act()
    assert ledger.discard(spend, 1, by="Ben").discarded == 1
    entries = ledger.verify().events
    assert ledger.discard(spend, 1, by="Ben").discarded == 1
    assert ledger.verify().events == entries
    paid = ledger.spend("a", pure("0.1"), plan(1), by="Ben", drawing=THERE, once=True)
    assert (paid.attempt, ledger.drawing(paid)) == (1, THERE)
    assert str(ledger.total("a").budget) == "ε = 0.2"
    assert ledger.verify().ok


def test_what_was_discarded_cannot_finish_and_what_has_appeared_cannot_be_discarded(ledger: Ledger) -> None:
    spend = ledger.begin(ledger.spend("a", pure("0.1"), plan(1), by="Ben", drawing=HERE), by="Ben")
    assert (spend.begun, ledger.discard(spend, 1, by="Ben").discarded) == (1, 1)
    with pytest.raises(NotOpen, match="destroyed"):
        ledger.finish(spend, MANIFEST, by="Ben")
    again = ledger.begin(ledger.resume("a", plan(1), by="Ben", drawing=HERE), by="Ben")
    with pytest.raises(NotOpen):
        ledger.begin(spend, by="Ben")
    assert ledger.finish(again, MANIFEST, by="Ben").status == "finished"
    with pytest.raises(InputError, match="no such attempt"):
        ledger.discard(again, 2, by="Ben")
    assert ledger.verify().ok


def test_the_same_data_under_two_names_are_refused_or_permitted_in_writing(ledger: Ledger) -> None:
    ledger.spend("a", pure("0.1"), plan(), by="Ben", drawing=HERE)
    head = ledger.head()
    for drawing in (HERE, THERE, HALF):
        with pytest.raises(SameData, match="the data of b are known to this ledger as a"):
            ledger.spend("b", pure("0.1"), plan(), by="Ben", drawing=drawing)
        refused = ledger.preview("b", pure("0.1"), drawing=drawing).refusal
        assert isinstance(refused, SameData)
        with pytest.raises(SameData):
            ledger.open_dataset("c", pure(1), by="Ada", drawing=drawing)
    assert ledger.head() == head
    ledger.spend("b", pure("0.1"), plan(), by="Ben", drawing=OTHER)
    with pytest.raises(NotPermitted):
        ledger.override("b", SECOND_CEILING, "a test bench", by="Ben")
    ledger.override("b", SECOND_CEILING, "a test bench", by="Ada")
    ledger.spend("b", pure("0.1"), plan(), by="Ben", drawing=HALF)
    assert "a test bench" in ledger.export()


def test_a_data_set_opened_with_its_data_claims_them(ledger: Ledger) -> None:
    ledger.open_dataset("c", pure(1), by="Ada", drawing=HERE)
    with pytest.raises(SameData):
        ledger.spend("a", pure("0.1"), plan(), by="Ben", drawing=HERE)
    ledger.open_dataset("d", pure(1), by="Ada", drawing=HERE, same_data="two offices, two laws")
    kinds = [entry.event.kind for entry in ledger.events()[-2:]]
    assert kinds == ["opened", "overridden"]
    ledger.spend("c", pure("0.1"), plan(), by="Ben", drawing=HERE)
    assert ledger.verify().ok


def test_permission_for_a_second_ceiling_is_recorded_whether_the_data_are_known_or_not(
    tmp_path: Path,
) -> None:
    """The event stood in the export only where the data were the same: a public test of equality."""
    seen = []
    for name, drawing in (("one", HERE), ("two", OTHER)):
        (tmp_path / name).mkdir()
        ledger = make(tmp_path / name, pure(1))
        ledger.spend("a", pure("0.1"), plan(1), by="Ben", drawing=HERE)
        ledger.open_dataset("x", pure(1), by="Ada", drawing=drawing, same_data="two laws")
        ledger.spend("x", pure("0.1"), plan(2), by="Ben", drawing=drawing)
        seen.append([(entry.event.kind, entry.role) for entry in ledger.events()])
    assert seen[0] == seen[1]


def test_a_resume_on_a_seal_that_was_edited_or_removed_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    """The place was changed in the database, and the release was resumed there at no cost."""
    spend = ledger.spend("a", pure("0.1"), plan(1), by="Ben", drawing=HERE)
    for statement in (
        "UPDATE sealed SET body = replace(body, '/office/out', '/office/other')",
        "DELETE FROM sealed",
    ):
        connection = sqlite3.connect(tmp_path / "ledger.db")
        connection.execute(statement)
        connection.commit()
        connection.close()
        for drawing in (HERE, THERE, None):
            with pytest.raises(TamperedLedger):
                ledger.resume("a", plan(1), by="Ben", drawing=drawing)
        with pytest.raises(TamperedLedger):
            ledger.drawing(spend)


def test_no_byte_of_the_export_depends_on_what_is_sealed(tmp_path: Path) -> None:
    """Two ledgers with one clock and one key; places and data differ."""
    exports = []
    for name, drawing in (("one", HERE), ("two", OTHER), ("three", HALF)):
        folder = tmp_path / name
        folder.mkdir()
        ledger = make(folder, pure(1))
        ledger = Ledger(ledger._storage, anchor=ledger._anchor, key=ledger._key, clock=lambda: CLOCK)
        before = len(ledger.events())
        ledger.open_dataset("x", pure(1), by="Ada", drawing=drawing)
        spend = ledger.spend("x", pure("0.1"), plan(7), by="Ben", drawing=drawing)
        ledger.finish(spend, MANIFEST, by="Ben")
        text = ledger.export("json") + ledger.export("csv") + ledger.export("jsonl")
        assert not any(part in text for part in (drawing.place, *drawing.data.values()))
        bodies = [entry.body().partition('"previous"')[0] for entry in ledger.events()[before:]]
        exports.append(bodies)
    assert exports[0] == exports[1] == exports[2]
    assert len(exports[0]) == 3


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE sealed SET body = replace(body, 'aaaa', 'eeee')", "was changed"),
        ("DELETE FROM sealed", "is missing"),
        ("UPDATE sealed SET sequence = 2", "is missing"),
        ("INSERT INTO sealed SELECT 3, body, seal FROM sealed", "has no seal"),
    ],
)
def test_a_seal_that_is_edited_moved_added_or_removed_is_found(
    ledger: Ledger, tmp_path: Path, statement: str, words: str
) -> None:
    ledger.spend("a", pure("0.1"), plan(), by="Ben", drawing=HERE)
    assert ledger.verify().ok
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    assert any(words in finding.message for finding in ledger.verify().findings)
    with pytest.raises(TamperedLedger):
        ledger.spend("b", pure("0.1"), plan(), by="Ben", drawing=OTHER)


def test_without_its_key_a_ledger_seals_nothing_and_says_what_it_could_not_check(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.spend("a", pure("0.1"), plan(), by="Ben", drawing=HERE)
    (tmp_path / "ledger.db.key").unlink()
    with pytest.raises(InputError, match="key file"):
        ledger.spend("a", pure("0.1"), plan(), by="Ben", drawing=HERE)
    seen = ledger.verify()
    assert seen.ok
    assert any("sealed was not checked" in note for note in seen.notes)


def test_keys_for_different_purposes_are_different(ledger: Ledger) -> None:
    keys = {ledger.derived_key(purpose) for purpose in ("seal", "data", "internal")}
    assert len(keys) == 3
    assert all(len(key) == 32 for key in keys)
    assert ledger.derived_key("data") == ledger.derived_key("data")
