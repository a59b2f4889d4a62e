"""Open a data set in a ledger: one account, with one ceiling, for every plan that releases it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stirred.errors import InputError
from stirred.ledger import Drawing, Ledger
from stirred.release.job import Job
from stirred.release.kinds import opened
from stirred.release.payment import fingerprints
from stirred.release.plan import Plan
from stirred.release.together import joint_guarantee
from stirred.spec import Exact, Specification


def open_account(
    plans: Sequence[Path | Job], ledger: Ledger, *, by: str, same_data: str | None = None
) -> Specification:
    """Open the data set of some plans in a ledger, with their ceiling in the flavor that they share.

    The flavor is that of all their releases together: the invariants of all, the protection unit of the
    account, and an output premetric that every part can be stated in. Data that the ledger knows under
    another name are refused, unless ``same_data`` gives the reason.
    """
    jobs = [opened(plan) for plan in plans]
    name, account = account_of(jobs)
    ledger.open_dataset(name, account, by=by, drawing=_claimed(jobs, ledger), same_data=same_data)
    return account


def account_of(jobs: Sequence[Job]) -> tuple[str, Specification]:
    """The name of an account for some jobs, and what it may spend; nothing is opened yet."""
    name, ceiling = _agreed([job.plan for job in jobs])
    joint = joint_guarantee([(job.plan, job.specification()) for job in jobs])
    budget = joint.budget.model_copy(update={"amounts": (ceiling,), "policy": None, "at": ()})
    return name, joint.flavor.with_budget(budget)


def _claimed(jobs: Sequence[Job], ledger: Ledger) -> Drawing:
    """The data of the plans, so that the ledger knows them again; nothing is drawn yet."""
    known = {
        f"{job.plan.name}/{table}": name for job in jobs for table, name in fingerprints(job, ledger).items()
    }
    return Drawing("", known)


def _agreed(plans: Sequence[Plan]) -> tuple[str, Exact]:
    """The name and the ceiling that the plans have in common."""
    first = plans[0].dataset
    if any((p.dataset.name, p.dataset.ceiling) != (first.name, first.ceiling) for p in plans):
        raise InputError(
            "the plans name different data sets or ceilings",
            field="dataset",
            expected="one name and one ceiling for one account",
            hint="Give every plan of the data set the same dataset.name and dataset.ceiling.",
        )
    if first.ceiling is None:
        raise InputError(
            "the plan has no ceiling for its data set",
            field="dataset.ceiling",
            expected="the total budget of the data set, in the currency of the mechanism",
            hint="For TopDown that is rho squared, for swapping epsilon; for both together, rho squared.",
        )
    return first.name, Exact.of(first.ceiling)
