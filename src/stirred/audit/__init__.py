"""Audits: try to refute what a mechanism claims, exactly, by replay, and by statistics.

An audit needs a claim (a specification), data sets of one universe of it, and a mechanism that it knows only
through the protocol. It ends with a ``Finding``: violated, with a certificate, or not refuted up to what was
measured; never verified.
"""

from stirred.audit.accounting import WorstCase, accounting_audit
from stirred.audit.census import census, determined, determined_given_rest, frechet, sensitivity_in_universe
from stirred.audit.claim import (
    claim_audit,
    distance_between,
    falls_short,
    records_of,
    require_auditable,
    require_same_universe,
    same_universe,
)
from stirred.audit.conformity import conformity_audit
from stirred.audit.exact import audit_laws, divergence_audit, exact_audit, require_capability
from stirred.audit.finding import Certificate, Finding, Verdict
from stirred.audit.markov import connected, is_markov_basis, markov_moves
from stirred.audit.moved import permutation_audit
from stirred.audit.neighbours import neighbour, neighbours
from stirred.audit.noise import Family, noise_audit
from stirred.audit.replay import artefacts_of, first_difference, replay_audit
from stirred.audit.statistical import statistical_audit
from stirred.audit.tape import Call, Tape
from stirred.audit.universe import frame_of, universe_of

__all__ = [
    "Call",
    "Certificate",
    "Family",
    "Finding",
    "Tape",
    "Verdict",
    "WorstCase",
    "accounting_audit",
    "artefacts_of",
    "audit_laws",
    "census",
    "claim_audit",
    "conformity_audit",
    "connected",
    "determined",
    "determined_given_rest",
    "distance_between",
    "divergence_audit",
    "exact_audit",
    "falls_short",
    "first_difference",
    "frame_of",
    "frechet",
    "is_markov_basis",
    "markov_moves",
    "neighbour",
    "neighbours",
    "noise_audit",
    "permutation_audit",
    "records_of",
    "replay_audit",
    "require_auditable",
    "require_capability",
    "require_same_universe",
    "same_universe",
    "sensitivity_in_universe",
    "statistical_audit",
    "universe_of",
]
