"""DP specifications: the five building blocks of a guarantee, their arithmetic and their comparison.

Domain, multiverse (invariants), input premetric (protection unit), output premetric, budget: a
``Specification`` has all five. Compose, convert, compare and verify them here; nothing in this
room touches confidential data except to evaluate a declared invariant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stirred.doors import door

if TYPE_CHECKING:
    from stirred.spec.accountants.accounting import (
        EpsilonDelta,
        GaussianEvent,
        PoissonSampled,
        SelfComposed,
        advanced_composition,
        gaussian_dp_composition,
        optimal_composition,
        pld_epsilon,
        rdp_epsilon,
        supports,
    )
    from stirred.spec.accountants.amplification import (
        Relation,
        cluster_sampling,
        deamplify,
        independent_samples,
        poisson_sampling,
        sampling_with_replacement,
        shared_sample,
        simple_random_sampling,
    )
    from stirred.spec.arithmetic.exact import INFINITY, ZERO, Exact, as_fraction
    from stirred.spec.arithmetic.extended import budget_bound, least_budget, quotient
    from stirred.spec.arithmetic.odds import factor_text, odds_exponent, odds_factor
    from stirred.spec.blocks.block import BLOCKS, Block
    from stirred.spec.blocks.budget import LARGEST, LETTER, Budget, shown
    from stirred.spec.blocks.domain import Domain, Stage
    from stirred.spec.blocks.input_premetric import (
        EditDistance,
        Encoded,
        Given,
        Hamming,
        HammingUnordered,
        InputPremetric,
        Maximum,
        Neighbours,
        Sharpened,
        SymmetricDifference,
    )
    from stirred.spec.blocks.invariant import Condition, Count, Sum, Threshold, evaluate, margins, plural
    from stirred.spec.blocks.multiverse import Invariants, Trivial, declared_invariants, from_invariants
    from stirred.spec.blocks.output_premetric import (
        LEAST_DELTA,
        Approximate,
        GaussianTradeOff,
        Multiplicative,
        NormalisedRenyi,
        OutputPremetric,
        Premetric,
        Renyi,
        Variant,
    )
    from stirred.spec.blocks.policy import Restated, Stated, Swapping
    from stirred.spec.blocks.psa import swapping_budget, swapping_invariants, swapping_loss
    from stirred.spec.blocks.schema import Attribute, Level, Recode, Record, Schema
    from stirred.spec.calculus.closed_form.concentrated import census_epsilon
    from stirred.spec.calculus.composition import compose, meet, parallel, post_process
    from stirred.spec.calculus.conversion import Method, convert, converts, edges, epsilon_at_distance
    from stirred.spec.calculus.joint import InUnit, jointly, restate
    from stirred.spec.calculus.unit import change_unit, pull_back, undo_imputation
    from stirred.spec.card import Card, lines_of, meaning_of
    from stirred.spec.disclosure import budget_disclosure
    from stirred.spec.finite.distribution import Distribution
    from stirred.spec.finite.mechanism import (
        FiniteMechanism,
        PairLoss,
        Verdict,
        curve_test,
        exceeds,
        protection_loss,
        satisfies,
    )
    from stirred.spec.finite.mechanism_file import MechanismFile, mechanism_schema, read_mechanism
    from stirred.spec.finite.record_unit import require_one_unit
    from stirred.spec.finite.restriction import restricted
    from stirred.spec.finite.steepest import steepest
    from stirred.spec.literature.catalogue import Catalogue, catalogue
    from stirred.spec.literature.entry import Entry
    from stirred.spec.order.comparison import Comparison, NotStronger, Order, compare
    from stirred.spec.order.gaming import GamingAudit, gaming_audit
    from stirred.spec.order.separation import least_distance
    from stirred.spec.protocol import (
        Mechanism,
        Prepared,
        Products,
        Release,
        Uncertainty,
        require_prepared,
        trial,
    )
    from stirred.spec.specification import Flavor, Specification, Standing, json_schema
else:
    __getattr__, __dir__, __all__ = door(__name__)
