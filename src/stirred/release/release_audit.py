"""Audit a release that was made: its published claim, with the record added beside the manifest's files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stirred.errors import InputError
from stirred.interchange import write_atomically
from stirred.release.folder import INTERNAL, PUBLIC
from stirred.release.manifest import ADDED, Manifest, Seals
from stirred.release.plan import Plan
from stirred.spec import Specification

if TYPE_CHECKING:
    from stirred.release.plan_audit import AuditRecord


def published_claim(plan: Plan, folder: Path) -> Specification:
    """The specification that a release of a plan published; refused where the folder was changed."""
    manifest = Manifest.read(folder)
    if manifest.facts.get("plan") != plan.digest:
        raise InputError(
            "the release was made from another plan",
            field="release",
            expected="the folder of a release of this very plan",
            hint="Name the plan as it was when the release was made.",
        )
    place = PUBLIC if manifest.facts.get("publishable") else INTERNAL
    seals = None if place == PUBLIC else Seals.read(folder)
    changed = manifest.differences(folder) + ((seals and seals.differences(folder, None)) or [])
    if changed:
        raise InputError(
            f"the release is not as it was made: {changed[0]}",
            field="release",
            expected="files that agree with the manifest",
            hint="Audit the folder as the release wrote it.",
        )
    return Specification.from_json((folder / place / "specification.json").read_text(encoding="utf-8"))


def add_to(folder: Path, found: AuditRecord) -> None:
    """Write the record to ``audit/`` in the folder: the manifest, which the ledger has, stays as it is."""
    target = folder / ADDED
    target.mkdir(exist_ok=True)
    write_atomically(target / "audit.json", found.public().to_json())
    write_atomically(target / "audit.md", found.public().to_markdown())
