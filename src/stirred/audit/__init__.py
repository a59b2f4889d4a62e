"""Audits: try to refute what a mechanism claims, exactly, by replay, and by statistics.

An audit needs a claim (a specification), data sets of one universe of it, and a mechanism that it knows only
through the protocol. It ends with a ``Finding``: violated, with a certificate, or not refuted up to what was
measured; never verified.

Functions of a claim take it first. An audit takes what it audits, the data sets, and last the claim, which
may be left out where a mechanism states its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.audit.accounting import WorstCase, accounting_audit, stated_composition
    from stirred.audit.claim import (
        ANNOUNCED,
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
    from stirred.audit.moved import log_none_moves, permutation_audit
    from stirred.audit.neighbourhood import neighbour, neighbours
    from stirred.audit.noise import Family, noise_audit
    from stirred.audit.replay import artefacts_of, first_difference, replay_audit
    from stirred.audit.statistical import statistical_audit
    from stirred.audit.tails import log_fair_tail
    from stirred.audit.tape import Call, Tape
    from stirred.audit.universe import frame_of, universe_of
    from stirred.audit.universe_census import (
        census,
        determined,
        determined_given_rest,
        frechet,
        sensitivity_in_universe,
    )
else:
    __getattr__, __dir__, __all__ = door(__name__)
