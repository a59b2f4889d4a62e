"""Verify a release folder: files, specification, entry in the ledger, and invariants against the data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stirred.errors import StirredError
from stirred.ledger import Ledger
from stirred.release.job import job_of
from stirred.release.manifest import NAME, PURPOSE, Manifest, Seals
from stirred.release.plan import Plan
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


def verify_release(folder: Path, ledger: Ledger | None = None, plan: Path | None = None) -> Verified:
    """Check every public file against the manifest; internal files, with the ledger's key, against theirs.

    A folder without ``internal/`` is what others are given, and is sound without it. With a ledger, also the
    manifest against its entry; with the plan and the data that it names, also the invariants of the published
    records against those of the data.
    """
    manifest = Manifest.read(folder)
    checks, problems = [f"{len(manifest.files):,} files against {NAME}"], manifest.differences(folder)
    public = folder / "public"
    if manifest.facts.get("publishable"):
        checks.append("the specification")
        if not _reads_back(public / "specification.json"):
            problems.append("the specification cannot be read back")
    elif public.exists():
        problems.append("a test run has a public folder")
    unknown = [] if ledger is None else _entry(manifest, ledger)
    if ledger is not None:
        checks.append("the ledger")
        problems += unknown
    # Another ledger has another key: it cannot say anything of internal files.
    sealed = None if unknown else _internal(folder, ledger)
    if sealed is not None:
        checks.append("the internal files")
        problems += sealed
    if plan is not None:
        checks.append("the invariants")
        problems += _invariants(manifest, folder, plan)
    return Verified(folder, tuple(checks), tuple(problems))


def _internal(folder: Path, ledger: Ledger | None) -> list[str] | None:
    """What is wrong with the internal files; nothing where they were left out, or the key is not at hand."""
    if not (folder / "internal").exists():
        return None
    seals = Seals.read(folder)
    if seals is None:
        return ["the seals of the internal files are missing or damaged"]
    return seals.differences(folder, None if ledger is None else _key(ledger))


def _key(ledger: Ledger) -> bytes | None:
    try:
        return ledger.derived_key(PURPOSE)
    except StirredError:
        return None


def _invariants(manifest: Manifest, folder: Path, path: Path) -> list[str]:
    plan = Plan.load(path)
    if plan.digest != manifest.facts.get("plan"):
        return ["the plan is not the one of this release"]
    place = "public" if manifest.facts.get("publishable") else "internal"
    try:
        job_of(plan, path.parent).recheck(folder / place)
    except StirredError as error:
        return [f"invariants: {error.problem}"]
    return []


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
