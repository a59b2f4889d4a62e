"""Audits: try to refute what a mechanism claims, exactly, by replay, and by statistics.

An audit needs a claim (a specification), data sets of one universe of it, and a mechanism that it knows only
through the protocol. It ends with a ``Finding``: violated, with a certificate, or not refuted up to what was
measured; never verified.
"""

from stirred.audit.claim import (
    distance_between,
    records_of,
    require_auditable,
    require_same_universe,
    same_universe,
)
from stirred.audit.exact import audit_laws, divergence_audit, exact_audit, require_capability
from stirred.audit.finding import Certificate, Finding, Verdict
from stirred.audit.replay import artefacts_of, first_difference, replay_audit
from stirred.audit.tape import Call, Tape

__all__ = [
    "Call",
    "Certificate",
    "Finding",
    "Tape",
    "Verdict",
    "artefacts_of",
    "audit_laws",
    "distance_between",
    "divergence_audit",
    "exact_audit",
    "first_difference",
    "records_of",
    "replay_audit",
    "require_auditable",
    "require_capability",
    "require_same_universe",
    "same_universe",
]
