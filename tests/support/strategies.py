"""Hypothesis strategies for small finite flavors: every block at random, with the awkward cases in."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from stirred.spec import (
    INFINITY,
    ZERO,
    Approximate,
    Budget,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Flavor,
    Multiplicative,
    NormalisedRenyi,
    Specification,
    Trivial,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit

LABELINGS = (
    (0, 1, 2, 3, 4),
    ("a", "b", "c", "d", "e"),
    ((), (0,), (0, 1), ("x", (1,)), (("y",),)),
)
OUTCOMES = ("r", "s", "t", "u")


def reproducibly(examples: int = 100) -> settings:
    """Settings under which a property test runs the same examples every time and has no deadline."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[
            HealthCheck.too_slow,
            HealthCheck.filter_too_much,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
        ],
    )


@st.composite
def domains(draw: st.DrawFn, min_size: int = 2, max_size: int = 5) -> Domain:
    """A finite domain of a few points: integers, text or nested tuples."""
    labels = draw(st.sampled_from(LABELINGS))
    size = draw(st.integers(min_size, max_size))
    return Domain.finite(draw(st.permutations(labels[:size])))


def universes(domain: Domain, min_size: int = 0) -> st.SearchStrategy[frozenset[Any]]:
    """A set of points of the domain."""
    return st.frozensets(st.sampled_from(domain.enumerate()), min_size=min_size)


def multiverses(domain: Domain, min_size: int = 0, max_size: int = 4) -> st.SearchStrategy[Explicit]:
    """Universes that may overlap, repeat, be empty or single points, and need not cover the domain."""
    return st.lists(universes(domain), min_size=min_size, max_size=max_size).map(
        lambda parts: Explicit(parts=tuple(parts))
    )


@st.composite
def partitions(draw: st.DrawFn, domain: Domain) -> Explicit:
    """The multiverse of a random invariant: the fibres of a function of the point."""
    points = domain.enumerate()
    values = draw(st.lists(st.integers(0, 2), min_size=len(points), max_size=len(points)))
    labels = dict(zip(points, values, strict=True))
    return Explicit.from_function(domain, labels.__getitem__)


@st.composite
def statistics(draw: st.DrawFn, domain: Domain, values: int = 3) -> dict[Any, int]:
    """A random function of the point, as a table."""
    points = domain.enumerate()
    drawn = draw(st.lists(st.integers(0, values - 1), min_size=len(points), max_size=len(points)))
    return dict(zip(points, drawn, strict=True))


def distances(*, zero: bool = True, infinite: bool = True) -> st.SearchStrategy[Exact]:
    """A distance between two different points: a small rational, zero or infinity."""
    finite = st.sampled_from([Exact.of(value) for value in (1, 1, 1, 2, 3, "1/2", "7/3")])
    extremes = [ZERO] * zero + [INFINITY] * infinite
    return st.one_of(finite, st.sampled_from(extremes)) if extremes else finite


@st.composite
def premetrics(
    draw: st.DrawFn,
    domain: Domain,
    *,
    symmetric: bool = False,
    zero: bool = True,
    infinite: bool = True,
) -> Given:
    """A table of distances, zero on the diagonal and otherwise anything, asymmetric unless asked."""
    points = domain.enumerate()
    size = len(points)
    entry = distances(zero=zero, infinite=infinite)
    rows = [[ZERO if i == j else draw(entry) for j in range(size)] for i in range(size)]
    if symmetric:
        rows = [[rows[min(i, j)][max(i, j)] for j in range(size)] for i in range(size)]
    return Given(unit="record", points=points, distances=tuple(tuple(row) for row in rows))


@st.composite
def distributions(
    draw: st.DrawFn,
    outcomes: Sequence[Any] = OUTCOMES,
    *,
    full_support: bool = False,
    largest: int = 12,
    space: str = "T",
) -> Distribution:
    """Rational masses on some outcomes, some of them zero unless the support is to be full."""
    weight = st.integers(1 if full_support else 0, largest)
    weights = draw(st.lists(weight, min_size=len(outcomes), max_size=len(outcomes)).filter(any))
    total = sum(weights)
    return Distribution({o: Fraction(w, total) for o, w in zip(outcomes, weights, strict=True)}, space=space)


@st.composite
def mechanisms(
    draw: st.DrawFn,
    domain: Domain,
    outcomes: Sequence[Any] = OUTCOMES[:3],
    *,
    full_support: bool = False,
    largest: int = 6,
) -> FiniteMechanism:
    """A random law for every point; small weights make equal and singular laws common."""
    law = distributions(outcomes, full_support=full_support, largest=largest)
    return FiniteMechanism(domain, {point: draw(law) for point in domain.enumerate()})


@st.composite
def close_mechanisms(
    draw: st.DrawFn, domain: Domain, outcomes: Sequence[Any] = OUTCOMES[:3], within: int = 3
) -> FiniteMechanism:
    """Laws that differ little from one base, so that many of them satisfy a finite budget."""
    base = draw(st.lists(st.integers(8, 20), min_size=len(outcomes), max_size=len(outcomes)))
    laws = {}
    for point in domain.enumerate():
        shift = draw(st.lists(st.integers(0, within), min_size=len(outcomes), max_size=len(outcomes)))
        weights = [b + s for b, s in zip(base, shift, strict=True)]
        total = sum(weights)
        laws[point] = Distribution({o: Fraction(w, total) for o, w in zip(outcomes, weights, strict=True)})
    return FiniteMechanism(domain, laws)


def rational_amounts() -> st.SearchStrategy[Exact]:
    """A non-negative rational with a small denominator."""
    return st.fractions(min_value=0, max_value=4, max_denominator=8).map(Exact)


def log_amounts() -> st.SearchStrategy[Exact]:
    """The logarithm of a rational of at least one, sometimes divided by a small integer."""
    rational = st.fractions(min_value=1, max_value=20, max_denominator=6)
    return st.builds(Exact.log, rational, st.integers(1, 3))


def amounts() -> st.SearchStrategy[Exact]:
    """A budget: rational, logarithmic, zero or infinite."""
    return st.one_of(rational_amounts(), log_amounts(), st.sampled_from([ZERO, INFINITY]))


def squared_amounts() -> st.SearchStrategy[Exact]:
    """A zCDP budget as it is published: rational, zero or infinite."""
    return st.one_of(rational_amounts(), st.sampled_from([ZERO, INFINITY]))


def loss_amounts() -> st.SearchStrategy[Exact]:
    """A budget of a plain divergence."""
    return squared_amounts()


@st.composite
def budgets(draw: st.DrawFn, output: Any, count: int = 1, *, constant: bool | None = None) -> Budget:
    """A budget in the premetric's parametrisation, constant or with an amount for each universe."""
    parametrisation = output.parametrisations[0]
    amount = {"epsilon": amounts, "rho_squared": squared_amounts}.get(parametrisation, loss_amounts)()
    if constant is None:
        constant = draw(st.booleans())
    size = 1 if constant or count < 1 else count
    return Budget.by_universe(parametrisation, [draw(amount) for _ in range(size)])


def multiplicative() -> st.SearchStrategy[Multiplicative]:
    """D_Mult, of pure differential privacy."""
    return st.just(Multiplicative())


def normalised_renyi() -> st.SearchStrategy[NormalisedRenyi]:
    """D_NoR, of zero-concentrated differential privacy."""
    return st.just(NormalisedRenyi())


def approximate() -> st.SearchStrategy[Approximate]:
    """D_Mult^delta for a few deltas."""
    return st.sampled_from(["1/100", "1/10", "1/4", "1/2"]).map(lambda d: Approximate(delta=Exact.of(d)))


@st.composite
def flavors(
    draw: st.DrawFn,
    output: st.SearchStrategy[Any] | None = None,
    domain: Domain | None = None,
    *,
    symmetric: bool = False,
    min_universes: int = 0,
) -> Flavor:
    """A random flavor on a finite domain; the whole domain is one of the multiverses tried."""
    domain = draw(domains()) if domain is None else domain
    explicit = multiverses(domain, min_size=min_universes)
    return Flavor(
        domain=domain,
        multiverse=draw(st.one_of(explicit, partitions(domain), st.just(Trivial()))),
        input_premetric=draw(premetrics(domain, symmetric=symmetric)),
        output_premetric=draw(output if output is not None else multiplicative()),
    )


@st.composite
def specifications(
    draw: st.DrawFn,
    output: st.SearchStrategy[Any] | None = None,
    domain: Domain | None = None,
    *,
    symmetric: bool = False,
    constant: bool | None = None,
) -> Specification:
    """A random specification: any flavor with any budget, constant or by universe."""
    flavor = draw(flavors(output, domain, symmetric=symmetric))
    count = len(flavor.multiverse.universes(flavor.domain))
    return flavor.with_budget(draw(budgets(flavor.output_premetric, count, constant=constant)))
