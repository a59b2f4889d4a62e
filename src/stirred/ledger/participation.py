"""Participation: in how many releases does a person appear? Answered without keeping who.

Guarantee
    Ids are stored only as HMAC-SHA-256 under the ledger's secret key; the answer is a number of persons.
Assumes
    The key file stays apart from those who may read the ledger: with the key, guesses of ids can be
    tested. The same person has the same id in every release. The answer is itself confidential: it is a
    statistic of the data, for the steward and not for publication.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from stirred.ledger.canonical import require_digest
from stirred.ledger.refusals import wrong


@dataclass(frozen=True)
class Participation:
    """How many persons appear in more releases than the limit."""

    limit: int
    over: int

    @property
    def alarm(self) -> bool:
        """Whether anybody does."""
        return self.over > 0


@dataclass(frozen=True)
class Key:
    """The secret of a ledger's salted ids."""

    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """What the ledger keeps of the key: enough to recognise it."""
        return hashlib.sha256(b"stirred ledger key\0" + self.secret).hexdigest()

    def tag(self, identifier: object) -> bytes:
        """The salted id of a person; a number and its decimal text are one id."""
        if isinstance(identifier, bool) or not isinstance(identifier, str | int) or identifier == "":
            raise wrong(
                "an id is neither text nor a whole number",
                field="ids",
                expected="a non-empty text or an integer for each person",
                hint="Use the id by which the person is known in every release.",
            )
        return hmac.new(self.secret, str(identifier).encode("utf-8"), hashlib.sha256).digest()

    def tags(self, identifiers: Iterable[object]) -> list[bytes]:
        """The salted ids of some persons, each once, in order of their bytes: the order says nothing."""
        return sorted({self.tag(identifier) for identifier in identifiers})


def tags_digest(tags: Iterable[bytes]) -> str:
    """One digest for a sorted list of salted ids."""
    whole = hashlib.sha256()
    for tag in tags:
        whole.update(tag)
    return whole.hexdigest()


@dataclass(frozen=True)
class KeyFile:
    """The key in a file of its own, readable by its owner alone."""

    path: Path

    def make(self) -> Key:
        """The key in the file, drawn now if there is no file."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except FileExistsError:
            return self.read()
        except OSError as error:
            raise wrong(
                f"the key file {self.path.name} cannot be made ({error.strerror})",
                field="path",
                expected="a folder that exists or can be made, with permission to write",
                hint="Choose another folder.",
            ) from None
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self.path.unlink()
            raise wrong(
                f"the key file {self.path.name} cannot be written ({error.strerror})",
                field="path",
                expected="room to write",
                hint="Make room and try again.",
            ) from None
        return self.read()

    def read(self) -> Key:
        """The key, or an error that does not show it."""
        try:
            text = self.path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            raise wrong(
                f"the key file {self.path.name} cannot be read",
                field="key",
                expected="the key file that was made with the ledger",
                hint="Participation cannot be tracked without it; the rest of the ledger does not need it.",
            ) from None
        return Key(bytes.fromhex(require_digest(text, "key")))
