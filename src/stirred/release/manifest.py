"""The manifest of a release folder: every file with its SHA-256, and what the folder is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stirred.errors import InputError

NAME = "manifest.json"
ADDED = "audit"


@dataclass(frozen=True)
class Manifest:
    """Digests of the files by path relative to the folder, and facts about the release.

    What is added later, records of audits in the folder ``audit``, is not part of the release.
    """

    facts: dict[str, Any]
    files: dict[str, str]

    @classmethod
    def of(cls, folder: Path, facts: dict[str, Any]) -> Manifest:
        """Digest every file in a folder."""
        return cls(facts, {name: file_digest(folder / name) for name in sorted(_names(folder))})

    def text(self) -> str:
        """As JSON: the same manifest has the same text."""
        body = {"schema_version": 1, **self.facts, "files": self.files}
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"

    @property
    def digest(self) -> str:
        """What the ledger keeps."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a release folder."""
        try:
            body = json.loads((folder / NAME).read_text(encoding="utf-8"))
            files, version = dict(body.pop("files")), body.pop("schema_version")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                f"the folder {folder.name} has no readable manifest",
                field="folder",
                expected=f"a release folder with {NAME}",
                hint="Name the folder that a release was written to.",
            ) from None
        if version != 1:
            raise InputError(
                "the manifest is of another version",
                field="folder",
                expected="a manifest of version 1",
                hint="Use the version of stirred that wrote it.",
            )
        return cls(body, files)

    def differences(self, folder: Path) -> list[str]:
        """Files that are missing, changed or new."""
        found = set(_names(folder))
        out = [f"{name} is missing" for name in sorted(set(self.files) - found)]
        out += [f"{name} is not in the manifest" for name in sorted(found - set(self.files))]
        for name in sorted(found & set(self.files)):
            if file_digest(folder / name) != self.files[name]:
                out.append(f"{name} was changed")
        return out


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _names(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != NAME and not name.startswith(f"{ADDED}/"):
            yield name
