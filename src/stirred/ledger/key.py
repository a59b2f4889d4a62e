"""The key of a ledger, in a file of its own beside it.

Guarantee
    The ledger and its export hold a fingerprint of the key, never the key. Keys for different purposes are
    derived from it and independent of each other.
Assumes
    The key file stays apart from those who may read the ledger: with the key, guesses can be tested.
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

from stirred.errors import InputError
from stirred.ledger.canonical import require_digest
from stirred.ledger.refusals import unmade


@dataclass(frozen=True)
class Key:
    """The secret of a ledger: of its salted ids, its seals, and the fingerprints of its data."""

    secret: bytes = field(repr=False)

    @property
    def fingerprint(self) -> str:
        """What the ledger keeps of the key: enough to recognise it."""
        return hashlib.sha256(b"stirred ledger key\0" + self.secret).hexdigest()

    def derived(self, purpose: str) -> bytes:
        """A key for one purpose: what is made with it says nothing about what another one makes."""
        return hmac.new(self.secret, b"stirred " + purpose.encode(), hashlib.sha256).digest()

    def tag(self, identifier: object) -> bytes:
        """The salted id of a person; a number and its decimal text are one id."""
        if isinstance(identifier, bool) or not isinstance(identifier, str | int) or identifier == "":
            raise InputError(
                "an id is neither text nor a whole number",
                field="ids",
                expected="a non-empty text or an integer for each person",
                hint="Use the id by which the person is known in every release.",
            )
        return hmac.new(self.secret, str(identifier).encode("utf-8"), hashlib.sha256).digest()

    def tags(self, identifiers: Iterable[object]) -> list[bytes]:
        """The salted ids of some persons, each once, in order of their bytes: the order says nothing."""
        return sorted({self.tag(identifier) for identifier in identifiers})


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
            raise unmade(f"the key file {self.path.name} cannot be made", error) from None
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write(secrets.token_hex(32) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self.path.unlink()
            raise unmade(f"the key file {self.path.name} cannot be written", error) from None
        return self.read()

    def read(self) -> Key:
        """The key, or an error that does not show it."""
        try:
            text = self.path.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            raise InputError(
                f"the key file {self.path.name} cannot be read",
                field="key",
                expected="the key file that was made with the ledger",
                hint="Put it back beside the ledger: releases are sealed with it, and persons counted by it.",
            ) from None
        return Key(bytes.fromhex(require_digest(text, "key")))
