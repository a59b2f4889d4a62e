"""From a plan to a release: what must be settled first, what is published, and what is said about it.

``checklist`` is the gate before a release, ``table`` the release table, ``registry`` the record for the
public registry of deployments, ``governance`` what no budget measures: people, projects, settings, law.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.release.job import job_of
    from stirred.release.opening import open_account
    from stirred.release.plan import Plan, plan_schema
    from stirred.release.plan_audit import AuditRecord, audit_plan, require_claim_without_data
    from stirred.release.publication import Made, run_release
    from stirred.release.rehearsal import DryRun, dry_run
    from stirred.release.release_audit import audit_release
    from stirred.release.side_by_side import SideBySide, compare_releases
    from stirred.release.starter import STARTERS, starter_plan
    from stirred.release.verification import verify_release
else:
    __getattr__, __dir__, __all__ = door(__name__)
