"""Whatever is done to the file, verification finds and names it; or says what it cannot see."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger.common import MANIFEST, desk, make, plan, pure
from ledger.memory import MemoryStorage

from stirred.errors import InputError, NewerSchema
from stirred.ledger import Head, Ledger, NotPermitted, OverBudget, SqliteStorage, TamperedLedger
from stirred.ledger.anchor import HeadFile
from stirred.ledger.chain import NOTHING, Row, follow
from stirred.ledger.verification import verify


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Ten events: the founding, four appointments, a data set, three spends and a finish."""
    book = make(tmp_path, pure(1))
    spend = book.spend("a", pure("0.1"), plan(), by="Ben")
    book.spend("a", pure("0.2"), plan(), by="Ben")
    book.spend("a", pure("0.3"), plan(), by="Ben")
    book.finish(spend, MANIFEST, by="Ben")
    assert book.verify().ok
    assert book.head().sequence == 9
    return book


def attack(folder: Path, *statements: str) -> None:
    """Somebody with the file and a database tool: the guards against accidents are no obstacle."""
    connection = sqlite3.connect(folder / "ledger.db")
    for guard in ("event_edited", "event_deleted"):
        connection.execute(f"DROP TRIGGER IF EXISTS {guard}")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def found(ledger: Ledger, anchor: Head | None = None) -> set[tuple[int | None, str]]:
    return {(finding.event, finding.kind) for finding in ledger.verify(anchor).findings}


def refuses(ledger: Ledger, folder: Path) -> None:
    """A fresh process neither spends on nor reports from such a ledger."""
    book = Ledger.open(folder / "ledger.db")
    with pytest.raises(TamperedLedger):
        book.spend("a", pure("0.1"), plan(), by="Ben")
    with pytest.raises(TamperedLedger):
        book.remaining("a")


@pytest.mark.parametrize("event", range(10))
def test_an_edit_of_any_event_is_found_and_named(ledger: Ledger, tmp_path: Path, event: int) -> None:
    attack(
        tmp_path, f'UPDATE event SET body = replace(body, \'"at":"2\', \'"at":"3\') WHERE sequence = {event}'
    )
    assert (event, "edited") in found(ledger)
    assert {number for number, _ in found(ledger)} == {event}
    refuses(ledger, tmp_path)


@pytest.mark.parametrize("event", range(9))
def test_a_removed_event_is_found_and_named(ledger: Ledger, tmp_path: Path, event: int) -> None:
    attack(tmp_path, f"DELETE FROM event WHERE sequence = {event}")
    assert (event, "missing") in found(ledger)
    refuses(ledger, tmp_path)


def test_a_removed_event_is_found_when_the_rest_is_renumbered(ledger: Ledger, tmp_path: Path) -> None:
    attack(
        tmp_path,
        "DELETE FROM event WHERE sequence = 7",
        "UPDATE event SET sequence = 7 WHERE sequence = 8",
        "UPDATE event SET sequence = 8 WHERE sequence = 9",
    )
    assert {(7, "reordered"), (8, "reordered")} <= found(ledger)
    refuses(ledger, tmp_path)


def test_two_events_that_changed_places_are_found(ledger: Ledger, tmp_path: Path) -> None:
    attack(
        tmp_path,
        "UPDATE event SET sequence = -1 WHERE sequence = 7",
        "UPDATE event SET sequence = 7 WHERE sequence = 8",
        "UPDATE event SET sequence = 8 WHERE sequence = -1",
    )
    assert {(7, "reordered"), (8, "reordered")} <= found(ledger)
    refuses(ledger, tmp_path)


def forge(rows: list[Row], start: int, change: Callable[[dict], None]) -> list[Row]:
    """Change one event and hash everything after it anew: a chain that is whole again."""
    forged, previous = list(rows[:start]), rows[start - 1].hash if start else NOTHING
    for row in rows[start:]:
        body = json.loads(row.body)
        body["previous"] = previous
        if row.sequence == start:
            change(body)
        text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        previous = hashlib.sha256(text.encode()).hexdigest()
        forged.append(Row(row.sequence, text, previous))
    return forged


def plant(folder: Path, rows: list[Row]) -> None:
    attack(folder, "DELETE FROM event")
    connection = sqlite3.connect(folder / "ledger.db")
    connection.executemany("INSERT INTO event VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()


def stored(ledger: Ledger) -> list[Row]:
    return [entry.row() for entry in ledger.events()]


@pytest.mark.parametrize("event", range(9))
def test_an_event_replaced_with_its_own_fresh_hash_breaks_the_next_link(
    ledger: Ledger, tmp_path: Path, event: int
) -> None:
    def later(body: dict) -> None:
        body["at"] = "2099-01-01T00:00:00.000000+00:00"

    rows = stored(ledger)
    rows[event] = forge(rows, event, later)[event]
    plant(tmp_path, rows)
    assert found(ledger) == {(event + 1, "broken")}
    refuses(ledger, tmp_path)


def test_a_body_that_says_the_same_in_other_bytes_is_found(ledger: Ledger, tmp_path: Path) -> None:
    rows = stored(ledger)
    text = json.dumps(json.loads(rows[-1].body), indent=1, sort_keys=True)
    rows[-1] = Row(rows[-1].sequence, text, hashlib.sha256(text.encode()).hexdigest())
    plant(tmp_path, rows)
    (tmp_path / "ledger.db.head").unlink()
    assert found(Ledger.open(tmp_path / "ledger.db")) == {(9, "edited"), (None, "anchor")}


def test_a_history_that_was_rewritten_with_fresh_hashes_is_found_by_an_anchor(
    ledger: Ledger, tmp_path: Path
) -> None:
    def cheaper(body: dict) -> None:
        body["event"]["specification"]["budget"]["amounts"] = ["1/1000"]

    anchor = ledger.head()
    plant(tmp_path, forge(stored(ledger), 8, cheaper))
    assert found(ledger) == {(9, "rewritten")}
    refuses(ledger, tmp_path)
    (tmp_path / "ledger.db.head").unlink()
    unanchored = Ledger.open(tmp_path / "ledger.db").verify()
    assert [finding.kind for finding in unanchored.findings] == ["anchor"], "nobody can tell more than that"
    assert any("would not be noticed" in note for note in unanchored.notes)
    assert found(ledger, anchor) == {(9, "rewritten")}


def test_a_forged_overspend_is_found_even_with_fresh_hashes_and_no_anchor(
    ledger: Ledger, tmp_path: Path
) -> None:
    def dearer(body: dict) -> None:
        body["event"]["specification"]["budget"]["amounts"] = ["19/20"]

    plant(tmp_path, forge(stored(ledger), 8, dearer))
    (tmp_path / "ledger.db.head").unlink()
    fault = Ledger.open(tmp_path / "ledger.db").verify().findings[1]
    assert (fault.event, fault.kind) == (8, "unlawful")
    assert "difference ε = 1/4" in fault.message


def test_a_forged_role_is_found(ledger: Ledger, tmp_path: Path) -> None:
    def promoted(body: dict) -> None:
        body["by"] = {"name": "Di", "role": "curator"}

    plant(tmp_path, forge(stored(ledger), 8, promoted))
    assert (8, "unlawful") in found(ledger)


@pytest.mark.parametrize("kept", range(1, 10))
def test_a_cut_tail_is_found_by_the_head_file(ledger: Ledger, tmp_path: Path, kept: int) -> None:
    attack(tmp_path, f"DELETE FROM event WHERE sequence >= {kept}")
    assert found(ledger) == {(kept, "cut")}
    book = Ledger.open(tmp_path / "ledger.db")
    with pytest.raises(TamperedLedger, match="the head file knows it"):
        book.head()


def test_a_cut_tail_without_a_head_file_opens_nothing(ledger: Ledger, tmp_path: Path) -> None:
    """The head file was removed with the tail: on the cut ledger nothing is read, spent or exported."""
    anchor = Head.parse(ledger.export("head").strip())
    attack(tmp_path, "DELETE FROM event WHERE sequence > 6")
    (tmp_path / "ledger.db.head").unlink()
    book = Ledger.open(tmp_path / "ledger.db")
    for act in (
        book.head,
        book.export,
        lambda: book.remaining("a"),
        lambda: book.statement("a"),
        lambda: book.spend("a", pure("0.1"), plan(), by="Ben"),
        lambda: book.open_dataset("new", pure(1), by="Ada"),
    ):
        with pytest.raises(TamperedLedger, match=r"the head file ledger\.db\.head is missing"):
            act()
    assert not (tmp_path / "ledger.db.head").exists(), "nothing writes it anew on the way"
    assert found(book) == {(None, "anchor")}
    assert found(book, anchor) == {(7, "cut")}
    assert "events 7 to 9" in book.verify(anchor).findings[0].message
    with pytest.raises(TamperedLedger, match="event 9 is missing"):
        book.renew_head(anchor, by="Ada")


def test_a_lost_head_file_is_renewed_from_a_head_that_was_kept_and_an_event_says_so(
    ledger: Ledger, tmp_path: Path
) -> None:
    kept = ledger.head()
    with pytest.raises(InputError, match="the head file is there"):
        ledger.renew_head(kept, by="Ada")
    (tmp_path / "ledger.db.head").unlink()
    book = Ledger.open(tmp_path / "ledger.db")
    with pytest.raises(TamperedLedger):
        book.renew_head(Head(kept.sequence, "0" * 64), by="Ada")
    with pytest.raises(NotPermitted):
        book.renew_head(kept, by="Ben")
    assert not (tmp_path / "ledger.db.head").exists()
    book.renew_head(kept, by="Ada")
    last = book.events()[-1]
    assert (last.event.kind, last.name, book.head().sequence) == ("anchored", "Ada", kept.sequence + 1)
    book.spend("a", pure("0.1"), plan(), by="Ben")
    assert book.verify().ok


def test_a_ledger_behind_a_link_keeps_its_head_and_its_key(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(tmp_path / "ledger.db")
    book = Ledger.open(link)
    book.spend("a", pure("0.1"), plan(), by="Ben")
    assert [p.name for p in (tmp_path / "elsewhere").iterdir()] == ["link.db"]
    attack(tmp_path, "DELETE FROM event WHERE sequence > 6")
    with pytest.raises(TamperedLedger, match="the head file knows it"):
        Ledger.open(link).head()
    assert found(Ledger.open(link)) == {(7, "cut")}


def test_a_ledger_behind_a_hard_link_has_no_head_and_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "ledger.db"
    link.hardlink_to(tmp_path / "ledger.db")
    with pytest.raises(TamperedLedger, match="head file"):
        Ledger.open(link).remaining("a")


def test_a_ledger_whose_making_was_interrupted_is_made_and_an_emptied_one_is_not(tmp_path: Path) -> None:
    """The head file is there before the first event: a missing one is never innocent."""
    place = tmp_path / "ledger.db"
    SqliteStorage.create(place)
    HeadFile(tmp_path / "ledger.db.head").begin()
    assert Ledger.create(place, owner="Ada").head().sequence == 0
    attack(tmp_path, "DELETE FROM event")
    with pytest.raises(TamperedLedger):
        Ledger.create(place, owner="Eve")
    with pytest.raises(TamperedLedger):
        Ledger.open(place).datasets()


def test_an_older_copy_put_back_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    """Restoring yesterday's file would give back what was spent since."""
    shutil.copy(tmp_path / "ledger.db", tmp_path / "yesterday")
    ledger.spend("a", pure("0.4"), plan(), by="Ben")
    shutil.copy(tmp_path / "yesterday", tmp_path / "ledger.db")
    for book in (ledger, Ledger.open(tmp_path / "ledger.db")):
        with pytest.raises(TamperedLedger):
            book.spend("a", pure("0.4"), plan(), by="Ben")
    assert found(ledger) == {(10, "cut")}


def test_a_head_file_behind_the_ledger_is_no_fault(ledger: Ledger, tmp_path: Path) -> None:
    old = (tmp_path / "ledger.db.head").read_text()
    ledger.spend("a", pure("0.1"), plan(), by="Ben")
    (tmp_path / "ledger.db.head").write_text(old)
    seen = Ledger.open(tmp_path / "ledger.db").verify()
    assert seen.ok
    assert seen.notes == ("the head file vouches for events up to 9 of 10",)


def test_a_spoilt_head_file_is_named(ledger: Ledger, tmp_path: Path) -> None:
    (tmp_path / "ledger.db.head").write_text("{}")
    assert (None, "anchor") in found(ledger)
    with pytest.raises(InputError, match="not a head file"):
        ledger.spend("a", pure("0.1"), plan(), by="Ben")


def test_a_row_that_changes_under_a_running_process_is_refused(ledger: Ledger, tmp_path: Path) -> None:
    attack(tmp_path, f"UPDATE event SET hash = '{'0' * 64}' WHERE sequence = 9")
    with pytest.raises(TamperedLedger, match="event 9 is missing or is not what it was"):
        ledger.spend("a", pure("0.1"), plan(), by="Ben")


def test_the_guards_stop_an_accidental_edit(ledger: Ledger, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "ledger.db")
    for statement in ("UPDATE event SET body = ''", "DELETE FROM event"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    connection.close()
    assert ledger.verify().ok


def test_participants_that_were_added_or_removed_are_found(ledger: Ledger, tmp_path: Path) -> None:
    spend = ledger.statement("a").spends[0]
    ledger.participate(spend, range(20), limit=5, by="Ben")
    assert ledger.verify().ok
    attack(tmp_path, "DELETE FROM tag WHERE tag = (SELECT MIN(tag) FROM tag)")
    assert found(ledger) == {(10, "participants")}
    attack(tmp_path, "INSERT INTO tag VALUES (7, x'00')")
    assert found(ledger) == {(10, "participants"), (7, "participants")}


def test_an_event_of_an_unknown_kind_is_from_a_newer_version(ledger: Ledger, tmp_path: Path) -> None:
    def newer(body: dict) -> None:
        body["event"] = {"kind": "teleported"}

    plant(tmp_path, forge(stored(ledger), 9, newer))
    with pytest.raises(NewerSchema):
        Ledger.open(tmp_path / "ledger.db").remaining("a")


def test_damage_to_the_file_itself_is_reported(ledger: Ledger, tmp_path: Path) -> None:
    data = bytearray((tmp_path / "ledger.db").read_bytes())
    data[-4096:] = b"\xff" * 4096
    (tmp_path / "ledger.db").write_bytes(bytes(data))
    try:
        seen = {finding.kind for finding in ledger.verify().findings}
    except InputError as error:
        seen = {"damaged"} if "damaged" in error.problem else set()
    assert "damaged" in seen


def small() -> Ledger:
    book = desk(pure(1))
    for _ in range(3):
        book.spend("a", pure("0.3"), plan(), by="Ben")
    return book


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_single_change_of_a_byte_goes_unnoticed(data: st.DataObject) -> None:
    book = small()
    storage: MemoryStorage = book._storage
    index = data.draw(st.integers(0, len(storage.kept) - 1))
    row = storage.kept[index]
    column = data.draw(st.sampled_from(["body", "hash"]))
    text = getattr(row, column)
    place = data.draw(st.integers(0, len(text) - 1))
    letter = data.draw(st.characters(codec="ascii").filter(lambda c: c != text[place]))
    storage.kept[index] = row._replace(**{column: text[:place] + letter + text[place + 1 :]})
    with book._storage.reading() as transaction:
        findings = verify(transaction, []).findings
    assert findings
    assert findings[0].event in {index, index + 1}


def test_the_interface_can_be_filled_by_another_database() -> None:
    book = small()
    with pytest.raises(OverBudget):
        book.spend("a", pure("0.3"), plan(), by="Ben")
    assert book.verify().ok
    assert len(list(follow(book._storage.kept))) == len(book.events()) == 9
    with pytest.raises(InputError, match="no key"):
        book.participate(book.statement("a").spends[0], [1], limit=1, by="Ben")
