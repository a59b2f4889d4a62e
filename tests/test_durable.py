"""Files are made durable by calls that every system has; whether that works is found out before payment."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from support.release_case import new_ledger, write_case
from support.releasing import run_release

from stirred import places
from stirred.errors import InputError
from stirred.interchange import write_atomically
from stirred.places import make_durable, require_new


def writable(handle: int) -> bool:
    import fcntl

    return fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Folders cannot be flushed, a file that is flushed was opened to be written, and there are no locks."""
    flushed: list[str] = []
    flushing = os.fsync

    def flush(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode) or not writable(handle):
            raise OSError(9, "Bad file descriptor")
        flushed.append(str(handle))
        flushing(handle)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(places, "FOLDERS", False)
    monkeypatch.setattr("stirred.alone.LOCKS", False)
    return flushed


def test_a_file_and_a_folder_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[bool] = []
    flushing = os.fsync

    def flush(handle: int) -> None:
        kinds.append(stat.S_ISDIR(os.fstat(handle).st_mode))
        flushing(handle)

    monkeypatch.setattr(os, "fsync", flush)
    (tmp_path / "file").write_bytes(b"x")
    make_durable(tmp_path / "file")
    make_durable(tmp_path)
    assert kinds == [False, True]


@pytest.mark.skipif(os.name == "nt", reason="pretends to be what this system is")
def test_a_release_is_made_where_folders_cannot_be_flushed(tmp_path: Path, windows: list[str]) -> None:
    case = write_case(tmp_path / "case")
    ledger = new_ledger(tmp_path / "ledger.db", case, ["swap"])
    made = run_release(case / "swap.yaml", tmp_path / "out", ledger)
    assert made.publishable and (tmp_path / "out" / "manifest.json").is_file()
    written = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(windows) >= len(written)
    write_atomically(tmp_path / "text.txt", "whole")
    assert (tmp_path / "text.txt").read_text(encoding="utf-8") == "whole"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_place_that_cannot_keep_files_is_refused_before_anything_is_paid(
    call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = write_case(tmp_path / "case")
    ledger = new_ledger(tmp_path / "ledger.db", case, ["swap"])
    before = sorted(tmp_path.rglob("*"))

    def refused(*_: object, **__: object) -> None:
        raise OSError(22, "Invalid argument")

    with monkeypatch.context() as patch:
        patch.setattr(*((os, "fsync") if call == "fsync" else (Path, "replace")), refused)
        with pytest.raises(InputError, match="could not be written"):
            require_new(tmp_path / "out")
        with pytest.raises(InputError, match="could not be written"):
            run_release(case / "swap.yaml", tmp_path / "out", ledger)
    assert sorted(tmp_path.rglob("*")) == before
    assert not any(spend for name in ledger.datasets() for spend in ledger.statement(name).spends)
