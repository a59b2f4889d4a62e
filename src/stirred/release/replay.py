"""Replay of a plan: one draw, published from the data and from other data sets of their universe."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from stirred.audit import Finding, Tape, Verdict, artefacts_of, distance_between, replay_audit
from stirred.noise import Source
from stirred.release.checklist import Passage
from stirred.release.job import Job
from stirred.release.plan import Plan
from stirred.release.registry import record_of as registry_record
from stirred.spec.specification import Specification

REPLAYS = 3


@dataclass(frozen=True)
class Members:
    """Other data sets of the universe of a job's data.

    ``view`` gives a data set as the claim reads it; ``companions`` are units of which one record may change
    with each record of the protection unit.
    """

    others: Sequence[Any]
    view: Callable[[Any], Any]
    companions: tuple[str, ...] = ()


def replayed(plan: Plan, job: Job, claim: Specification, members: Members, source: Source) -> Finding:
    """Publish one draw from the data and again from others of the universe, and compare every file.

    The other runs find the public files of the plan in their folder, and no confidential one.
    """
    subject = "what is published from the draw"
    data, view = job.data(), members.view
    changed = [o for o in members.others if not distance_between(claim, view(data), view(o)).is_zero]
    if not changed:
        verdict = Verdict.VACUOUS if members.others else Verdict.NOT_APPLICABLE
        sentence = "no other data set of the universe was found: there is nothing to replay on"
        return Finding("replay", subject, verdict, sentence)
    with tempfile.TemporaryDirectory(prefix="stirred-audit-") as folder:
        # Deep enough for paths of the plan that lead out of its folder.
        kept, bare = Path(folder) / "drawn", Path(folder).joinpath(*["plan"] * 16)
        kept.mkdir()
        bare.mkdir(parents=True)
        for name in job.public_files():
            (bare / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(job.folder / name, bare / name)

        def run(frames: Any, tape: Tape) -> dict[str, Any]:
            own = job if frames is data else job.on(frames, bare)
            own.prepare()
            drawn = tape.draw("draw", (), lambda stream: own.draw(stream, kept), sensitivity=0, cost=0)
            public = Path(tempfile.mkdtemp(dir=folder)) / "public"
            shutil.copytree(kept, public)
            _publish(plan, own, drawn, public)
            return artefacts_of(public)

        return replay_audit(
            run, data, changed[0], claim, source,
            more=changed[1:], view=view, companions=members.companions, subject=subject,
        )  # fmt: skip


def _publish(plan: Plan, job: Job, drawn: Any, folder: Path) -> None:
    """Everything public that a release writes, from the draw."""
    from stirred.release.run import record_of, write_documents

    published = job.publish(drawn, folder)
    specification = job.specification()
    record = record_of(plan, job.facts(), specification, Passage(), published)
    write_documents(replace(record, made_on=""), folder)
    if plan.registry is not None:
        text = registry_record(specification, plan.registry, delta=Fraction(plan.delta)).to_yaml()
        (folder / "registry.yaml").write_text(text, encoding="utf-8")
