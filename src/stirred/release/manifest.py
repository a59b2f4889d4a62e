"""The manifest of a release folder: every public file with its SHA-256, and what the folder is.

Guarantee
    The manifest, whose digest the ledger keeps and exports, is a function of the plan, the spend and the
    public files. Internal files are functions of the truth: a digest of them would let anyone who knows
    all records but one test guesses of that one. They are sealed under a key, in ``internal/`` itself.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stirred.documents import parse_json, read_text
from stirred.errors import InputError, StirredError
from stirred.ledger import Spend
from stirred.release.plan import Plan

NAME = "manifest.json"
ADDED = "audit"
SEALS = "internal/seals.json"
PURPOSE = "internal files"


@dataclass(frozen=True)
class Manifest:
    """Digests of the public files by path relative to the folder, and facts about the release.

    What is added later, records of audits in the folder ``audit``, is not part of the release.
    """

    facts: dict[str, Any]
    files: dict[str, str]

    @classmethod
    def of(cls, folder: Path, facts: dict[str, Any]) -> Manifest:
        """Digest every public file of a folder."""
        return cls(facts, {name: file_digest(folder / name) for name in _public(folder)})

    def text(self) -> str:
        """As JSON: the same manifest has the same text."""
        body = {"schema_version": 2, **self.facts, "files": self.files}
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"

    @property
    def digest(self) -> str:
        """What the ledger keeps."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of a release folder."""
        try:
            body = parse_json(read_text(folder / NAME, "manifest"), "manifest")
            files, version = dict(body.pop("files")), body.pop("schema_version")
        except (StirredError, ValueError, KeyError, TypeError, AttributeError):
            raise InputError(
                f"the folder {folder.name} has no readable manifest",
                field="folder",
                expected=f"a release folder with {NAME}",
                hint="Name the folder that a release was written to.",
            ) from None
        if version != 2:
            raise InputError(
                "the manifest is of another version",
                field="folder",
                expected="a manifest of version 2",
                hint="Use the version of stirred that wrote it.",
            )
        return cls(body, files)

    def differences(self, folder: Path) -> list[str]:
        """Public files that are missing, changed or new."""
        found = {name: file_digest(folder / name) for name in _public(folder)}
        return _differences(self.files, found)


@dataclass(frozen=True)
class Seals:
    """Keyed digests of the internal files; ``key`` is kept beside them where no ledger has one."""

    files: Mapping[str, str]
    key: str | None

    @classmethod
    def of(cls, folder: Path, key: bytes | None) -> Seals:
        """Seal every internal file, with the key of a ledger or, in a trial, with one of its own."""
        own = None if key is not None else secrets.token_hex(32)
        used = bytes.fromhex(own) if own is not None else key
        assert used is not None
        return cls({name: _sealed(folder / name, used) for name in _internal(folder)}, own)

    def text(self) -> str:
        """As JSON."""
        body = {"schema_version": 1, "type": "seals", "key": self.key, "files": dict(self.files)}
        return json.dumps(body, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Seals | None:
        """Read the seals of a folder; nothing where they are missing or damaged."""
        try:
            body = parse_json(read_text(folder / SEALS, "seals"), "seals")
            key = body["key"]
            return cls(dict(body["files"]), key if key is None else bytes.fromhex(key).hex())
        except (StirredError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def differences(self, folder: Path, key: bytes | None) -> list[str] | None:
        """Internal files that are missing, changed or new; nothing can be said without the key."""
        used = bytes.fromhex(self.key) if self.key is not None else key
        if used is None:
            return None
        found = {name: _sealed(folder / name, used) for name in _internal(folder)}
        return _differences(self.files, found)


def manifest_of(plan: Plan, folder: Path, spend: Spend | None, reason: str = "") -> Manifest:
    """The manifest of what was written to a folder; ``reason`` says why it is not for publication."""
    facts = {
        "type": "release",
        "name": plan.name,
        "plan": plan.digest,
        "publishable": not reason,
        **({"reason": reason} if reason else {}),
        "dataset": plan.dataset.name,
        "group": None if plan.dataset.group is None else plan.dataset.group.record(),
        "spend": None if spend is None else spend.sequence,
    }
    return Manifest.of(folder, facts)


def _differences(known: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    out = [f"{name} is missing" for name in sorted(known.keys() - found.keys())]
    out += [f"{name} is not in the manifest" for name in sorted(found.keys() - known.keys())]
    changed = sorted(name for name in known.keys() & found.keys() if found[name] != known[name])
    return out + [f"{name} was changed" for name in changed]


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sealed(path: Path, key: bytes) -> str:
    seal = hmac.new(key, path.name.encode() + b"\0", hashlib.sha256)
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            seal.update(piece)
    return seal.hexdigest()


def _public(folder: Path) -> list[str]:
    """Every file but the internal ones, what was added later, and the manifest."""
    return [
        name for name in _names(folder) if name != NAME and not name.startswith(("internal/", f"{ADDED}/"))
    ]


def _internal(folder: Path) -> list[str]:
    return [name for name in _names(folder) if name.startswith("internal/") and name != SEALS]


def _names(folder: Path) -> Iterator[str]:
    return iter(sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()))
