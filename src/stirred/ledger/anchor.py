"""The head file: the end of the chain, kept beside the ledger, so that a cut tail is noticed.

Guarantee
    A ledger that ends before the event of its head file, or holds another event there, is found out.
Assumes
    Whoever shortened the ledger did not rewrite the head file. Against somebody who can write the whole
    folder, keep heads elsewhere: print them into releases, or mail them to an auditor.

The file is there before the first event, and is written after every commit; where writers stand in line,
before the next one's turn, so that it never goes back. A crash in between leaves it behind, never ahead: that
is not a fault. A ledger without it is not used: its end may have been cut.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError, StirredError
from stirred.ledger.canonical import require_digest
from stirred.ledger.chain import NOTHING, Head
from stirred.ledger.refusals import unmade

BEGINNING = Head(-1, NOTHING)
_TRIES, _PAUSE = 10, 0.01


@dataclass(frozen=True)
class HeadFile:
    """A file with the sequence number and the hash of the last event known."""

    path: Path

    def begin(self, head: Head = BEGINNING) -> None:
        """Make the file, by default of a ledger that has no event yet; one that is there stays as it is."""
        if self.path.exists():
            return
        try:
            self._put(head)
        except OSError as error:
            raise unmade(f"the head file {self.path.name} cannot be written", error) from None

    def write(self, head: Head) -> None:
        """Move the file forward, whole or not at all; where it cannot be written it stays behind."""
        with contextlib.suppress(OSError, StirredError):
            known = self.read()
            if known is not None and known.sequence < head.sequence:
                self._put(head)

    def _put(self, head: Head) -> None:
        body = {"schema_version": 1, "type": "ledger-head", "sequence": head.sequence, "hash": head.hash}
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}.part")
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(json.dumps(body) + "\n")
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def read(self) -> Head | None:
        """The head, or nothing where there is no file; a file that is not a head is refused."""
        try:
            text = self._text()
        except FileNotFoundError:
            return None
        try:
            body = json.loads(text)
            if body["type"] != "ledger-head" or type(body["sequence"]) is not int:
                raise KeyError("type")
            return Head(body["sequence"], require_digest(body["hash"], "hash"))
        except (ValueError, KeyError, TypeError, StirredError):
            raise InputError(
                f"{self.path.name} is not a head file",
                field="head",
                expected="a file written by the ledger",
                hint="If it was damaged by accident, remove it and renew it from a head that was kept: "
                "stirred ledger renew-head.",
            ) from None

    def _text(self) -> str:
        """What is in the file. Windows does not open one that is just being replaced: it is tried again."""
        for _ in range(_TRIES):
            try:
                return self.path.read_text(encoding="utf-8")
            except PermissionError:
                time.sleep(_PAUSE)
        raise InputError(
            f"the head file {self.path.name} cannot be read",
            field="head",
            expected="a file that whoever uses the ledger may read",
            hint="Give permission to read it.",
        )
