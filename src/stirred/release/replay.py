"""Replay of a plan: one draw, published from the data and from other data sets of their universe."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stirred.audit import Finding, Tape, Verdict, artefacts_of, distance_between, replay_audit
from stirred.ledger import KeyFile, Ledger, SqliteStorage
from stirred.noise import Source
from stirred.release.folder import PUBLIC
from stirred.release.job import Job, Members
from stirred.release.manifest import NAME, manifest_of
from stirred.release.payment import drawing_of
from stirred.release.plan import Plan
from stirred.report import Passage
from stirred.spec import INFINITY, Specification

STANDING = datetime(2000, 1, 1, tzinfo=UTC)
REPLAYS = 2


def replayed(job: Job, claim: Specification, source: Source) -> Finding:
    """Publish one draw from the data and again from others of the universe, and compare every public byte.

    Compared are the public files, the manifest and the export of the ledger that pays. Where the data are
    many, all of this is done on an excerpt of them, drawn at random: what is published of a part is made by
    the same code.

    The other runs find the public files of the plan in their folder, and no confidential one.
    """
    with tempfile.TemporaryDirectory(prefix="stirred-audit-") as folder:
        place = Path(folder, "part")
        place.mkdir()
        part, guarantee = job, job.specification()
        if claim.flavor == guarantee.flavor:
            part = job.excerpt(source.child(0), place)
        if part is not job:
            # A budget that depends on the universe has another value in that of the part.
            claim = claim.flavor.with_budget(part.specification().budget)
        members = part.members(claim, source.child(1))
        return _compared(part, claim, members, source.child(2), Path(folder))


def _compared(job: Job, claim: Specification, members: Members, source: Source, folder: Path) -> Finding:
    subject = "what is published from the draw"
    data, view = job.dataset, members.view
    changed = [o for o in members.others if not distance_between(claim, view(data), view(o)).is_zero]
    if not changed:
        verdict = Verdict.VACUOUS if members.others else Verdict.NOT_APPLICABLE
        sentence = "no other data set of the universe was found: there is nothing to replay on"
        return Finding("replay", subject, verdict, sentence)
    # Deep enough for paths of the plan that lead out of its folder.
    kept, bare = folder / "drawn", folder.joinpath(*["plan"] * 16)
    kept.mkdir()
    bare.mkdir(parents=True)
    for name in job.public_files():
        (bare / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(job.folder / name, bare / name)

    def run(frames: Any, tape: Tape) -> dict[str, Any]:
        own = job if frames is data else job.on(frames, bare)
        _ = own.prepared
        drawn = tape.draw("draw", (), lambda stream: own.draw(stream, kept), sensitivity=0, cost=0)
        place = Path(tempfile.mkdtemp(dir=folder))
        shutil.copytree(kept, place / "out" / PUBLIC)
        beside = _published(own, drawn, place)
        return artefacts_of(place / "out" / PUBLIC) | beside

    return replay_audit(
        run, data, changed[0], claim, source,
        more=changed[1:], view=view, companions=members.companions, subject=subject,
    )  # fmt: skip


def _published(job: Job, drawn: Any, place: Path) -> dict[str, str]:
    """Write what a release publishes from the draw; returns its manifest and the ledger's export.

    Clock and key of the ledger stand still, so that whatever differs is a function of the data.
    """
    from stirred.release.documents import record_of, write_documents

    plan, folder, specification = job.plan, place / "out", job.specification()
    ledger = _standing_ledger(place / "ledger.db", plan, specification)
    drawing = drawing_of(job, folder, ledger)
    spend = ledger.spend(plan.dataset.name, specification, plan.digest, by=plan.curator, drawing=drawing)
    published = job.publish(job.finish(drawn, job.prepared.public), folder / PUBLIC)
    record = record_of(plan, job.facts(), specification, Passage(), published, ledger, spend)
    write_documents(record, folder / PUBLIC)
    manifest = manifest_of(plan, folder, spend)
    ledger.finish(spend, manifest.digest, by=plan.curator)
    return {NAME: manifest.text(), "the ledger's export": ledger.export("json") + ledger.export("csv")}


def _standing_ledger(path: Path, plan: Plan, specification: Specification) -> Ledger:
    """A ledger without end, whose clock and key are the same in every replay."""
    key = KeyFile(path.with_name("ledger.key"))
    key.path.write_text("0" * 64 + "\n", encoding="ascii")
    ledger = Ledger(SqliteStorage.create(path), key=key, clock=lambda: STANDING)
    ledger.found(plan.curator, key.read())
    ledger.appoint(plan.curator, "owner", "curator", by=plan.curator)
    endless = specification.budget.model_copy(update={"amounts": (INFINITY,), "policy": None, "at": ()})
    ledger.open_dataset(plan.dataset.name, specification.flavor.with_budget(endless), by=plan.curator)
    return ledger
