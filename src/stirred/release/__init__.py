"""From a plan to a release: check, dry run, audit, run once, verify, compare.

``run`` pays, draws and publishes a plan; ``trial`` draws for nobody's eyes but one's own; ``dry_run`` says
what a plan promises and costs; ``audit`` tries to refute it; ``verify`` holds a folder against its plan and
its ledger; ``compare`` puts two plans or releases side by side. A kind of plan is a folder in ``kinds``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.release.job import Job, Kind, Members
    from stirred.release.kinds import KINDS, job_of, opened, trial_of
    from stirred.release.manifest import Manifest
    from stirred.release.opening import account_of, open_account
    from stirred.release.plan import DatasetPlan, Plan, plan_schema
    from stirred.release.plan_audit import AuditRecord, audit, require_claim_without_data
    from stirred.release.product import Product
    from stirred.release.publication import Made, run, trial
    from stirred.release.rehearsal import DryRun, dry_run
    from stirred.release.side_by_side import SideBySide, compare
    from stirred.release.starter import starter_plan
    from stirred.release.verification import Verified, verify
else:
    __getattr__, __dir__, __all__ = door(__name__)
