"""Audit a release that was made: its published claim, with the record added beside the manifest's files."""

from __future__ import annotations

from pathlib import Path

from stirred.errors import InputError
from stirred.interchange import write_atomically
from stirred.noise import Source
from stirred.release.folder import INTERNAL, PUBLIC
from stirred.release.manifest import ADDED, Manifest, Seals
from stirred.release.plan import Plan
from stirred.release.plan_audit import DRAWS, AuditRecord, audit_plan
from stirred.spec import Specification


def audit_release(
    path: Path, folder: Path, *, random: Source | None = None, draws: int = DRAWS
) -> AuditRecord:
    """Audit the specification that a release published, and add the record to its folder.

    The record is written to ``audit/`` inside the folder: the manifest, which the ledger has, stays as it is.
    """
    plan, manifest = Plan.load(path), Manifest.read(folder)
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
    claim = Specification.from_json((folder / place / "specification.json").read_text(encoding="utf-8"))
    found = audit_plan(path, claim=claim, random=random, draws=draws)
    target = folder / ADDED
    target.mkdir(exist_ok=True)
    write_atomically(target / "audit.json", found.public().to_json())
    write_atomically(target / "audit.md", found.public().to_markdown())
    return found
