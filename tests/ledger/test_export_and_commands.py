"""The export that anyone can check, and ``stirred ledger``."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sqlite3
from pathlib import Path

import pytest
from ledger.common import MANIFEST, make, plan, pure, zcdp
from typer.testing import CliRunner

from stirred.cli.ledger import app
from stirred.errors import InputError
from stirred.ledger import Equal, Ledger
from stirred.spec import Exact

runner = CliRunner()


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    book = make(tmp_path, pure(1), zcdp(2))
    spend = book.spend("a", pure("0.1"), plan(), by="Ben", period="2026")
    book.finish(spend, MANIFEST, by="Ben")
    book.participate(spend, ["SENTINEL-4711"], limit=1, by="Ben")
    book.non_private_step("a", "tuning", "bins were chosen by eye", by="Ben")
    book.allocate("a", Equal(["Di"]), by="Cy", of=pure("0.3"))
    book.spend("a", pure("ln(9/8)"), plan(), by="Di", analyst="Di")
    return book


def run(*arguments: object) -> tuple[int, str, str]:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_export_is_checked_with_nothing_but_sha256(ledger: Ledger) -> None:
    body = json.loads(ledger.export("json"))
    previous = "0" * 64
    for number, event in enumerate(body["events"]):
        assert hashlib.sha256(event["body"].encode()).hexdigest() == event["hash"]
        inside = json.loads(event["body"])
        assert (inside["sequence"], inside["previous"]) == (number, previous)
        previous = event["hash"]
    assert body["head"] == f"{number}:{previous}" == str(ledger.head())
    assert ledger.export("jsonl").splitlines() == [event["body"] for event in body["events"]]


def test_no_float_is_ever_stored(ledger: Ledger) -> None:
    def refuse(text: str) -> None:
        raise AssertionError(f"a float: {text}")

    for line in ledger.export("jsonl").splitlines():
        json.loads(line, parse_float=refuse)


def test_the_table_has_a_row_for_every_event(ledger: Ledger) -> None:
    rows = list(csv.DictReader(io.StringIO(ledger.export("csv"))))
    assert [int(row["sequence"]) for row in rows] == list(range(len(ledger.events())))
    (spent,) = [row for row in rows if row["kind"] == "spent" and row["name"] == "Ben"]
    assert spent["guarantee"] == str(pure("0.1"))
    assert json.loads(spent["details"])["period"] == "2026"
    with pytest.raises(InputError, match="format is not known"):
        ledger.export("xml")


def test_show_has_the_flavor_with_every_budget(ledger: Ledger, tmp_path: Path) -> None:
    code, out, _ = run("show", tmp_path / "ledger.db")
    assert code == 0
    for text in ("ε = 1", "ρ² = 2", "D_Mult", "D_NoR", "allocated to Di", "tuning: bins were chosen by eye"):
        assert text in out
    code, out, _ = run("show", tmp_path / "ledger.db", "--dataset", "a", "--json")
    (account,) = json.loads(out)["datasets"]
    assert code == 0
    assert account["ceiling"] == {"epsilon": "1"}
    assert Exact.parse(account["spent"]["epsilon"]) == Exact.of("1/10") + Exact.log("9/8")
    assert account["periods"] == {"2026": {"epsilon": "1/10"}}
    assert account["allocations"]["Di"]["granted"] == {"epsilon": "3/10"}
    assert [spend["status"] for spend in account["spends"]] == ["finished", "open"]
    assert [bool(spend["tainted"]) for spend in account["spends"]] == [False, True]
    code, out, _ = run("show", tmp_path / "ledger.db", "--dataset", "a")
    assert "finished" in out


def test_show_of_nothing(tmp_path: Path) -> None:
    make(tmp_path)
    assert "No data set is open" in run("show", tmp_path / "ledger.db")[1]
    code, _, err = run("show", tmp_path / "ledger.db", "--dataset", "x")
    assert code == 2
    assert "not in the ledger" in err
    code, _, err = run("show", tmp_path / "absent.db")
    assert code == 2
    assert "there is no ledger absent.db" in err


def test_verify_exits_3_and_names_the_fault(ledger: Ledger, tmp_path: Path) -> None:
    code, out, _ = run("verify", tmp_path / "ledger.db")
    assert (code, "the ledger is true" in out) == (0, True)
    anchor = str(ledger.head())
    code, out, _ = run("verify", tmp_path / "ledger.db", "--anchor", anchor, "--json")
    assert code == 0
    assert json.loads(out)["totals"]["a"].endswith("ε = 0.2178")
    connection = sqlite3.connect(tmp_path / "ledger.db")
    connection.execute("DROP TRIGGER event_deleted")
    connection.execute("DELETE FROM event WHERE sequence = 8")
    connection.commit()
    connection.close()
    code, out, _ = run("verify", tmp_path / "ledger.db")
    assert code == 3
    assert "event 8 missing from the ledger" in out
    code, out, _ = run("verify", tmp_path / "ledger.db", "--json")
    assert code == 3
    assert json.loads(out)["findings"][0] == {
        "event": 8,
        "kind": "missing",
        "message": "event 8 missing from the ledger",
    }
    code, _, err = run("show", tmp_path / "ledger.db")
    assert code == 3
    assert "event 8" in err
    assert run("verify", tmp_path / "ledger.db", "--anchor", "x")[0] == 2


def test_export_writes_a_file_or_prints(ledger: Ledger, tmp_path: Path) -> None:
    code, out, _ = run("export", tmp_path / "ledger.db", "--format", "head")
    assert (code, out) == (0, f"{ledger.head()}\n")
    code, out, _ = run("export", tmp_path / "ledger.db", "--output", tmp_path / "out.json")
    assert code == 0
    assert (tmp_path / "out.json").read_text(encoding="utf-8") == ledger.export("json")
    code, out, _ = run("export", tmp_path / "ledger.db", "--format", "csv", "--json")
    assert json.loads(out)["text"] == ledger.export("csv")
    assert run("export", tmp_path / "ledger.db", "--format", "xml")[0] == 2


def test_no_id_reaches_any_output(ledger: Ledger, tmp_path: Path) -> None:
    key = (tmp_path / "ledger.db.key").read_text().strip()
    for arguments in (("show",), ("show", "--json"), ("verify",), ("export",), ("export", "--format", "csv")):
        code, out, err = run(arguments[0], tmp_path / "ledger.db", *arguments[1:])
        assert code == 0
        assert "SENTINEL" not in out + err
        assert key not in out + err
