"""Verify a release folder: its files against the manifest, its specification, its entry in the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stirred.errors import StirredError
from stirred.ledger import Ledger
from stirred.release.manifest import NAME, Manifest
from stirred.spec.specification import Specification


@dataclass(frozen=True)
class Verified:
    """What was checked, and what is wrong."""

    folder: Path
    checks: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def verify_release(folder: Path, ledger: Ledger | None = None) -> Verified:
    """Check every file against the manifest and, with a ledger, the manifest against its entry."""
    manifest = Manifest.read(folder)
    checks, problems = [f"{len(manifest.files):,} files against {NAME}"], manifest.differences(folder)
    public = folder / "public"
    if manifest.facts.get("publishable"):
        checks.append("the specification")
        if not _reads_back(public / "specification.json"):
            problems.append("the specification cannot be read back")
    elif public.exists():
        problems.append("a test run has a public folder")
    if ledger is not None:
        checks.append("the ledger")
        problems += _entry(manifest, ledger)
    return Verified(folder, tuple(checks), tuple(problems))


def _reads_back(path: Path) -> bool:
    try:
        text = path.read_text(encoding="utf-8")
        return Specification.from_json(text).to_json() == text
    except (OSError, UnicodeError, StirredError):
        return False


def _entry(manifest: Manifest, ledger: Ledger) -> list[str]:
    out = [f"ledger: {finding}" for finding in ledger.verify().findings]
    if out:
        return out
    dataset = str(manifest.facts.get("dataset"))
    if dataset not in ledger.datasets():
        return [*out, f"the ledger has no data set {dataset}"]
    spends = {spend.sequence: spend for spend in ledger.statement(dataset).spends}
    spend = spends.get(manifest.facts.get("spend") or -1)
    if spend is None:
        return [*out, "the ledger has no spend for this release"]
    if spend.manifest != manifest.digest:
        out.append("the ledger has another manifest for this spend")
    if spend.plan != manifest.facts.get("plan"):
        out.append("the ledger has another plan for this spend")
    return out
