"""Payment: one spend, one place, one data set, one draw.

Guarantee
    The spend is durable before a random word is drawn, and says (under the ledger's key) where the release is
    drawn and from which data. It is resumed there and on those data alone; elsewhere it is refused, or paid
    again. What an earlier attempt had drawn is destroyed before anything is drawn again, and the ledger says
    so.
Assumes
    Nobody else kept a copy of a temporary folder, which only its owner can read.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from stirred.data import fingerprint
from stirred.errors import InputError
from stirred.ledger import Drawing, Elsewhere, Group, Ledger, Spend
from stirred.release.folder import part_of, place_of
from stirred.release.job import Job
from stirred.release.plan import Plan
from stirred.report import Passage
from stirred.spec import Specification

PURPOSE = "data"
TRIES, PAUSE = 40, 0.05


def drawing_of(job: Job, output: Path, ledger: Ledger) -> Drawing:
    """Where a release is to be drawn, and the fingerprints of its data under the ledger's key."""
    return Drawing(str(place_of(output)), fingerprints(job, ledger))


def fingerprints(job: Job, ledger: Ledger) -> dict[str, str]:
    """The confidential tables of a job, as the ledger knows them again."""
    key = ledger.derived_key(PURPOSE)
    return {name: fingerprint(table, key) for name, table in job.tables().items()}


def group_of(plan: Plan) -> Group | None:
    """How many units of the mechanism one unit of the account can be, if the plan says so."""
    group = plan.dataset.group
    return None if group is None else Group(factor=str(group.factor), because=group.because)


def known_spend(plan: Plan, ledger: Ledger) -> Spend | None:
    """The spend of an earlier run of this plan that was not abandoned."""
    spends = [s for s in ledger.statement(plan.dataset.name).spends if s.plan == plan.digest]
    kept = [spend for spend in spends if not spend.abandoned]
    return kept[-1] if kept else None


def require_payable(
    plan: Plan,
    specification: Specification,
    ledger: Ledger,
    known: Spend | None,
    drawing: Drawing,
    *,
    pay_again: bool,
) -> None:
    """Refuse, before anything is recorded, what the ledger would refuse."""
    if known is not None and not pay_again:
        _require_same(specification, ledger, known, drawing)
        return
    name, period = plan.dataset.name, plan.dataset.period
    found = ledger.preview(name, specification, period=period, group=group_of(plan), drawing=drawing)
    if found.refusal is not None:
        raise found.refusal


def paid(
    plan: Plan,
    specification: Specification,
    passage: Passage,
    ledger: Ledger,
    known: Spend | None,
    drawing: Drawing,
    *,
    pay_again: bool,
) -> Spend:
    """The spend of this plan: a new one, or the one of a run that was interrupted. Overrides come first.

    Whoever asks to pay again pays, whether the place and the data are the same or not: what the ledger
    records does not depend on the data.
    """
    require_payable(plan, specification, ledger, known, drawing, pay_again=pay_again)
    name, by = plan.dataset.name, plan.curator
    if passage.override is not None:
        ledger.override(name, passage.what(), passage.override.reason, by=passage.override.by)
    if known is not None and not pay_again:
        spend = ledger.resume(name, plan.digest, by=by, drawing=drawing)
    else:
        if known is not None:
            ledger.abandon(known, by=by)
        spend = ledger.spend(
            name,
            specification,
            plan.digest,
            by=by,
            period=plan.dataset.period,
            group=group_of(plan),
            once=True,
            drawing=drawing,
        )
    destroy_leftovers(plan, ledger)
    return spend


def destroy_leftovers(plan: Plan, ledger: Ledger) -> None:
    """Remove what earlier attempts of this plan had drawn; the ledger says so before it is done.

    Killed in between, the next run finds the rest and removes it before it draws.
    """
    for spend in ledger.statement(plan.dataset.name).spends:
        last = spend.attempt if spend.abandoned else spend.attempt - 1
        drawing = ledger.drawing(spend)
        if spend.plan != plan.digest or spend.manifest is not None or drawing is None or not last:
            continue
        output = Path(drawing.place)
        parts = [part_of(output, spend.sequence, attempt) for attempt in range(1, last + 1)]
        if spend.discarded < last and any(part.exists() for part in parts):
            ledger.discard(spend, last, by=plan.curator)
        remove_parts(output, spend, last)


def remove_parts(output: Path, spend: Spend, last: int) -> None:
    """Remove the temporary folders of the attempts up to one; refuse to go on where one stays.

    A run that was overtaken may still be writing there; it fails as soon as its folder is gone.
    """
    for attempt in range(1, last + 1):
        part = part_of(output, spend.sequence, attempt)
        if not _removed(part):
            raise InputError(
                "what an interrupted run had drawn cannot be removed",
                field="output",
                expected=f"permission to remove {part.name}",
                hint="Remove it by hand and run again: a second draw must not lie beside the first.",
            )


def _removed(folder: Path) -> bool:
    """Remove a folder into which a process may be writing."""
    for _ in range(TRIES):
        shutil.rmtree(folder, ignore_errors=True)
        if not folder.exists():
            return True
        time.sleep(PAUSE)
    return False


def _require_same(specification: Specification, ledger: Ledger, known: Spend, drawing: Drawing) -> None:
    """Refuse a guarantee, a place or data that are not those that were paid for, and a draw that is gone."""
    if known.specification != specification:
        raise Elsewhere("the guarantee is not the one that was paid for")
    kept = ledger.drawing(known)
    if kept is None:
        return
    kept.require_same(drawing)
    drawn = range(known.discarded + 1, known.begun + 1)
    if not all(part_of(Path(kept.place), known.sequence, attempt).is_dir() for attempt in drawn):
        raise Elsewhere("what the interrupted run had drawn is not where it was: it may have been moved")
