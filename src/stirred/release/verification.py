"""Verify a release folder: files, specification, entry in the ledger, and what the data say of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stirred.audit import falls_short
from stirred.errors import StirredError
from stirred.ledger import Ledger
from stirred.release.job import Job
from stirred.release.kinds import opened
from stirred.release.manifest import NAME, PURPOSE, Manifest, Seals
from stirred.release.plan_audit import require_claim
from stirred.spec import Specification


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


def verify(folder: Path, ledger: Ledger | None = None, plan: Path | Job | None = None) -> Verified:
    """Check every public file against the manifest; internal files, with the ledger's key, against theirs.

    A folder without ``internal/`` is what others are given, and is sound without it. With a ledger, also the
    manifest against its entry, and the published guarantee against the one that was paid for; with the plan
    and the data that it names, also the invariants of the published records against those of the data, and
    the published guarantee against the one that the mechanism states for them.
    """
    folder = Path(folder)
    manifest = Manifest.read(folder)
    checks, problems = [f"{len(manifest.files):,} files against {NAME}"], manifest.differences(folder)
    public = folder / "public"
    if manifest.facts.get("publishable"):
        checks.append("the specification")
        if _read_back(public / "specification.json") is None:
            problems.append("the specification cannot be read back")
    elif public.exists():
        problems.append("a test run has a public folder")
    published = _read_back(folder / _place(manifest) / "specification.json")
    unknown = [] if ledger is None else _entry(manifest, ledger, published)
    if ledger is not None:
        checks.append("the ledger")
        problems += unknown
    # Another ledger has another key: it cannot say anything of internal files.
    sealed = None if unknown else _internal(folder, ledger)
    if sealed is not None:
        checks.append("the internal files")
        problems += sealed
    if plan is not None:
        checks += ["the invariants", "the guarantee"]
        problems += _against_data(manifest, folder, opened(plan), published)
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


def _place(manifest: Manifest) -> str:
    return "public" if manifest.facts.get("publishable") else "internal"


def _against_data(manifest: Manifest, folder: Path, job: Job, published: Specification | None) -> list[str]:
    plan = job.plan
    if plan.digest != manifest.facts.get("plan"):
        return ["the plan is not the one of this release"]
    out = []
    try:
        job.recheck(folder / _place(manifest))
    except StirredError as error:
        out.append(f"invariants: {error.problem}")
    try:
        guarantee = job.specification()
        require_claim(plan, guarantee)
    except StirredError as error:
        return [*out, f"guarantee: {error.problem}"]
    if published is not None and falls_short(published, guarantee):
        out.append(f"guarantee: less is published than the mechanism guarantees ({guarantee.budget})")
    return out


def _read_back(path: Path) -> Specification | None:
    try:
        text = path.read_text(encoding="utf-8")
        found = Specification.from_json(text)
    except (OSError, UnicodeError, StirredError):
        return None
    return found if found.to_json() == text else None


def _entry(manifest: Manifest, ledger: Ledger, published: Specification | None) -> list[str]:
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
    if published is not None and falls_short(published, spend.specification):
        out.append("the published guarantee is less than what was paid for")
    return out
