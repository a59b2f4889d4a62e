"""Who took part, by salted id: counted, never kept in the clear."""

from __future__ import annotations

import hashlib
import sqlite3
import stat
from pathlib import Path

import pytest
from ledger.common import make, plan, pure

from stirred.errors import InputError
from stirred.ledger import KeyFile, Ledger
from stirred.ledger.key import Key


def test_the_alarm_counts_persons_in_too_many_releases(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1), pure(1))
    crowds = [range(0, 10), range(5, 15), range(8, 20)]
    answers = []
    for dataset, ids in zip("aba", crowds, strict=True):
        spend = ledger.spend(dataset, pure("0.1"), plan(), by="Ben")
        answers.append(ledger.participate(spend, ids, limit=2, by="Ben"))
    assert [answer.over for answer in answers] == [
        0,
        0,
        len(set(crowds[0]) & set(crowds[1]) & set(crowds[2])),
    ]
    assert [answer.alarm for answer in answers] == [False, False, True]


def test_a_person_counts_once_in_a_release_and_text_and_number_are_one_id(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    first = ledger.spend("a", pure("0.1"), plan(), by="Ben")
    assert ledger.participate(first, [7, "7", 7], limit=1, by="Ben").over == 0
    second = ledger.spend("a", pure("0.1"), plan(), by="Ben")
    assert ledger.participate(second, ["7"], limit=1, by="Ben").over == 1
    with pytest.raises(InputError, match="recorded already"):
        ledger.participate(second, ["8"], limit=1, by="Ben")


def test_ids_are_never_stored_in_the_clear_nor_as_a_plain_hash(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    spend = ledger.spend("a", pure("0.1"), plan(), by="Ben")
    ledger.participate(spend, ["SENTINEL-4711"], limit=3, by="Ben")
    plain = hashlib.sha256(b"SENTINEL-4711")
    for file in tmp_path.iterdir():
        data = file.read_bytes()
        assert b"SENTINEL" not in data
        assert plain.digest() not in data
        assert plain.hexdigest().encode() not in data
    connection = sqlite3.connect(tmp_path / "ledger.db")
    (tag,) = connection.execute("SELECT tag FROM tag").fetchone()
    connection.close()
    assert tag == KeyFile(tmp_path / "ledger.db.key").read().tag("SENTINEL-4711")
    assert tag.hex() not in ledger.export("json")


def test_two_ledgers_salt_differently(tmp_path: Path) -> None:
    make(tmp_path, name="one.db")
    make(tmp_path, name="two.db")
    one, two = (KeyFile(tmp_path / f"{name}.db.key").read() for name in ("one", "two"))
    assert one.tag("7") != two.tag("7")
    assert one.fingerprint != two.fingerprint


def test_the_key_and_the_ledger_are_readable_by_their_owner_alone(tmp_path: Path) -> None:
    make(tmp_path)
    for name in ("ledger.db", "ledger.db.key"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_a_missing_or_foreign_key_stops_tracking_and_nothing_else(tmp_path: Path) -> None:
    ledger = make(tmp_path, pure(1))
    key = tmp_path / "ledger.db.key"
    secret = key.read_text().strip()
    spend = ledger.spend("a", pure("0.1"), plan(), by="Ben")
    key.write_text("0" * 64)
    with pytest.raises(InputError, match="not the key of this ledger"):
        ledger.participate(spend, [1], limit=1, by="Ben")
    key.unlink()
    with pytest.raises(InputError, match="cannot be read") as refused:
        ledger.participate(spend, [1], limit=1, by="Ben")
    assert secret not in str(refused.value)
    again = Ledger.open(tmp_path / "ledger.db")
    again.spend("a", pure("0.1"), plan(), by="Ben")
    assert again.verify().ok
    assert secret not in repr(Key(bytes.fromhex(secret)))


@pytest.mark.parametrize("bad", [1.5, None, "", True, b"x"])
def test_an_id_that_is_no_id_is_refused_without_showing_it(tmp_path: Path, bad: object) -> None:
    ledger = make(tmp_path, pure(1))
    spend = ledger.spend("a", pure("0.1"), plan(), by="Ben")
    with pytest.raises(InputError, match="neither text nor a whole number"):
        ledger.participate(spend, [1, bad], limit=1, by="Ben")
    for limit in (0, -1, 1.5, True):
        with pytest.raises(InputError, match="number of releases"):
            ledger.participate(spend, [1], limit=limit, by="Ben")
    assert ledger.verify().ok
    assert not ledger.statement("a").spends[0].tracked
