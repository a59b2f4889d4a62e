"""The finite verifier: protection loss by definition, certificates that can be rechecked, and warnings."""

import itertools
import math
import random
from collections.abc import Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest

from stirred.errors import DomainMismatch, StirredError
from stirred.spec import (
    INFINITY,
    ZERO,
    Approximate,
    Budget,
    Count,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    Flavor,
    GaussianTradeOff,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    Renyi,
    Schema,
    Specification,
    Stage,
    Trivial,
    from_invariants,
    protection_loss,
    satisfies,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.blocks.output_premetric import (
    ApproximateCurve,
    ChiSquared,
    Coarsened,
    DensityRatio,
    Hellinger,
    KullbackLeibler,
    TotalVariation,
    TradeOffCurve,
    TradeOffFunctional,
    Wasserstein,
)
from stirred.spec.finite.mechanism import randomised_response
from stirred.spec.finite.tradeoff import TradeOff

PREMETRICS: list[tuple[Any, str]] = [
    (Multiplicative(), "epsilon"),
    (Approximate(delta=Exact.of("1/10")), "epsilon"),
    (NormalisedRenyi(), "rho"),
    (Renyi(alpha=Exact.of(2)), "epsilon"),
    (KullbackLeibler(), "loss"),
    (TotalVariation(), "loss"),
    (Hellinger(), "loss"),
    (ChiSquared(), "loss"),
    (DensityRatio(), "epsilon"),
    (Wasserstein(), "loss"),
    (GaussianTradeOff(), "mu"),
    (TradeOffFunctional(functional="advantage"), "loss"),
    (Coarsened(base=Multiplicative(), groups=((0,), (1, 2, 3)), reason="test"), "epsilon"),
]
SEEDS = range(10)


def drawn_law(random_: random.Random, outcomes: int = 4, *, zeros: bool = True) -> Distribution:
    weights = [random_.choice((0, 1, 2, 3, 5) if zeros else (1, 2, 3, 5)) for _ in range(outcomes)]
    weights[0] += sum(weights) == 0
    return Distribution({i: Fraction(w, sum(weights)) for i, w in enumerate(weights)})


def drawn_flavor(random_: random.Random, output: object, size: int = 3) -> Flavor:
    lengths = (0, "1/2", 1, 2, "inf")
    parts = [random_.sample(range(size), random_.randint(1, size)) for _ in range(random_.randint(1, 3))]
    return Flavor(
        domain=Domain.finite(range(size)),
        multiverse=Explicit(parts=parts),
        input_premetric=Given(
            unit="unit",
            points=range(size),
            distances=[[0 if x == y else random_.choice(lengths) for y in range(size)] for x in range(size)],
        ),
        output_premetric=output,
    )


def drawn_mechanism(random_: random.Random, domain: Domain, *, zeros: bool = True) -> FiniteMechanism:
    return FiniteMechanism(domain, {x: drawn_law(random_, zeros=zeros) for x in domain.enumerate()})


def on_pair(output: object, there: object = 1, back: object = 1) -> Flavor:
    return Flavor(
        domain=Domain.finite((0, 1)),
        multiverse=Trivial(),
        input_premetric=Given(unit="unit", points=(0, 1), distances=((0, there), (back, 0))),
        output_premetric=output,
    )


def least(divergence: float, distance: float) -> float:
    """The least budget with divergence <= budget * distance, by the table of section 1.3."""
    if math.isinf(distance) or divergence == 0:
        return 0.0
    return math.inf if distance == 0 or math.isinf(divergence) else divergence / distance


@pytest.mark.parametrize(("output", "kind"), PREMETRICS)
@pytest.mark.parametrize("seed", SEEDS)
def test_d2_4_5_loss_is_the_least_budget_of_every_universe(seed: int, output: Any, kind: str) -> None:
    """Against the definition, ordered pair by ordered pair; and the loss is a budget that holds."""
    random_ = random.Random(f"loss {seed}")
    flavor = drawn_flavor(random_, output)
    mechanism = drawn_mechanism(random_, flavor.domain, zeros=seed % 2 == 0)
    found = protection_loss(mechanism, flavor)
    laws, table = mechanism.laws, flavor.input_premetric.matrix(flavor.domain)
    for universe, loss in zip(flavor.multiverse.universes(flavor.domain), found.by_universe, strict=True):
        pairs = itertools.permutations(sorted(universe), 2)
        expected = max(
            (least(float(output.between(laws[x], laws[y])), float(table[x][y])) for x, y in pairs),
            default=0.0,
        )
        assert float(loss) == pytest.approx(expected, rel=1e-12)
    assert found.overall == max(found.by_universe)
    budget = Budget.by_universe(kind, found.by_universe)
    assert satisfies(mechanism, flavor.with_budget(budget)).satisfied


@pytest.mark.parametrize(("output", "kind"), PREMETRICS)
@pytest.mark.parametrize("seed", range(4))
def test_d2_4_5_no_smaller_budget_holds(seed: int, output: Any, kind: str) -> None:
    random_ = random.Random(f"least {seed}")
    flavor = on_pair(output)
    mechanism = drawn_mechanism(random_, flavor.domain, zeros=False)
    loss = protection_loss(mechanism, flavor).overall
    if loss.is_zero:
        return
    smaller = Exact.of(1000) if loss.is_infinite else Exact(loss.rounded_up() * Fraction(999_999, 1_000_000))
    verdict = satisfies(mechanism, flavor.with_budget(Budget.by_universe(kind, (smaller,))))
    assert not verdict.satisfied
    assert verdict.violation is not None and verdict.allowed == smaller
    assert verdict.violation.loss == loss
    assert verdict.loss.overall == loss


@pytest.mark.parametrize(("output", "kind"), PREMETRICS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_asymmetric_fixture_has_the_divergence_as_its_loss(seed: int, output: Any, kind: str) -> None:
    """Acceptance 24: d(0, 1) = 1 and d(1, 0) = infinity makes the loss D_Pr(P, Q), in this direction."""
    random_ = random.Random(f"fixture {seed}")
    p, q = drawn_law(random_), drawn_law(random_)
    flavor = on_pair(output, 1, "inf")
    mechanism = FiniteMechanism(flavor.domain, {0: p, 1: q})
    assert protection_loss(mechanism, flavor).overall == output.between(p, q)
    swapped = FiniteMechanism(flavor.domain, {0: q, 1: p})
    assert protection_loss(swapped, flavor).overall == output.between(q, p)


@pytest.mark.parametrize(("output", "kind"), PREMETRICS)
def test_d2_4_16_different_output_spaces_are_infinitely_far_apart(output: Any, kind: str) -> None:
    """Acceptance 24: the same outcomes with the same masses, on another space."""
    law = {0: Fraction(1, 2), 1: Fraction(1, 2)}
    flavor = on_pair(output)
    mechanism = FiniteMechanism(flavor.domain, {0: Distribution(law, "A"), 1: Distribution(law, "B")})
    assert output.between(Distribution(law, "A"), Distribution(law, "B")) == INFINITY
    assert protection_loss(mechanism, flavor).overall == INFINITY
    assert not satisfies(mechanism, flavor.with_budget(Budget.by_universe(kind, (100,)))).satisfied


def test_r2_4_6_zero_times_infinity_constrains_nothing() -> None:
    """Budget zero at infinite distance, and infinite budget at distance zero, allow the identity."""
    for distance, epsilon in (("inf", 0), (0, "inf"), ("inf", "inf")):
        flavor = on_pair(Multiplicative(), distance, distance)
        identity = FiniteMechanism.exact_release(flavor.domain, lambda x: x)
        assert satisfies(identity, flavor.with_budget(Budget.epsilon(epsilon))).satisfied
    nailed = on_pair(Multiplicative(), 0, 0)
    identity = FiniteMechanism.exact_release(nailed.domain, lambda x: x)
    assert not satisfies(identity, nailed.with_budget(Budget.epsilon(1000))).satisfied


@pytest.mark.parametrize("output", [case for case in PREMETRICS if case[1] != "mu"][:3])
def test_r4_singleton_universes_let_the_identity_through_with_a_warning(output: tuple[Any, str]) -> None:
    """Acceptance 23: an injective invariant leaves nothing to protect, and the verifier says so."""
    domain = Domain.datasets(Schema.of(a=(0, 1)), sizes=(2,))
    flavor = Flavor(
        domain=domain,
        multiverse=from_invariants(Count(unit="record", by=("a",))),
        input_premetric=HammingUnordered(unit="record"),
        output_premetric=output[0],
    )
    assert all(len(universe) == 1 for universe in flavor.multiverse.universes(domain))
    identity = FiniteMechanism.exact_release(domain, lambda point: point)
    assert protection_loss(identity, flavor).overall == ZERO
    verdict = satisfies(identity, flavor.with_budget(Budget.by_universe(output[1], (0,))))
    assert verdict.satisfied
    assert any("vacuous" in warning and "protects nothing" in warning for warning in verdict.warnings)
    open_ = Flavor(**dict(flavor) | {"multiverse": Trivial()})
    watched = satisfies(identity, open_.with_budget(Budget.by_universe(output[1], (1,))))
    assert not watched.satisfied and not watched.warnings


@pytest.mark.parametrize(("output", "kind"), PREMETRICS)
def test_r24_a_constant_has_loss_zero_even_if_it_is_the_truth(output: Any, kind: str) -> None:
    """T(x) = C for all x, with C the confidential value: the design, not the law, is what leaks."""
    flavor = on_pair(output)
    confidential = 1
    constant = FiniteMechanism.from_function(flavor.domain, lambda _: Distribution.point(confidential))
    assert protection_loss(constant, flavor).overall == ZERO
    assert satisfies(constant, flavor.with_budget(Budget.by_universe(kind, (0,)))).satisfied


def merged(groups: tuple[tuple[int, ...], ...], first: int, second: int) -> tuple[tuple[int, ...], ...]:
    joined = tuple(sorted(groups[first] + groups[second]))
    return (*(g for i, g in enumerate(groups) if i not in (first, second)), joined)


@pytest.mark.parametrize(
    ("base", "kind"),
    [case for case in PREMETRICS if not isinstance(case[0], Coarsened | Wasserstein)],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_r23_looking_at_fewer_events_never_raises_the_loss(seed: int, base: Any, kind: str) -> None:
    """Acceptance 19: along a chain of coarser algebras, down to the trivial one, where the loss is zero."""
    random_ = random.Random(f"coarse {seed}")
    flavor = drawn_flavor(random_, base)
    mechanism = drawn_mechanism(random_, flavor.domain)
    groups: tuple[tuple[int, ...], ...] = ((0,), (1,), (2,), (3,))
    previous = [float(loss) for loss in protection_loss(mechanism, flavor).by_universe]
    while True:
        coarse = Coarsened(base=base, groups=groups, reason="test")
        seen = Flavor(**dict(flavor) | {"output_premetric": coarse})
        current = [float(loss) for loss in protection_loss(mechanism, seen).by_universe]
        pairs = zip(current, previous, strict=True)
        assert all(now <= before * (1 + 1e-9) + 1e-9 for now, before in pairs)
        if len(groups) == 1:
            break
        first, second = random_.sample(range(len(groups)), 2)
        groups, previous = merged(groups, first, second), current
    assert current == [0.0] * len(current)
    budget = Budget.by_universe(kind, (0,))
    verdict = satisfies(mechanism, seen.with_budget(budget))
    assert verdict.satisfied
    assert "LOOKING ONLY AT SOME EVENTS" in seen.output_premetric.sentence()


def test_r23_the_groups_must_partition_the_outcomes() -> None:
    law = Distribution({0: Fraction(1, 2), 1: Fraction(1, 2)})
    with pytest.raises(StirredError, match="cover every outcome"):
        Coarsened(base=Multiplicative(), groups=((0,),), reason="test").between(law, law)
    with pytest.raises(StirredError):
        Coarsened(base=Multiplicative(), groups=((0, 1), (1, 2)), reason="test")


def shown_by(output: Any, p: Distribution, q: Distribution, event: Iterable[Any]) -> float:
    """The divergence that one event shows, in the worse direction, straight from the definition."""
    slack = output.mass if isinstance(output, Approximate) else Fraction(0)
    best = 0.0
    for a, b in ((p.probability(event), q.probability(event)), (q.probability(event), p.probability(event))):
        if isinstance(output, TotalVariation):
            best = max(best, float(a - b))
        elif a > slack:
            best = max(best, math.inf if b == 0 else math.log((a - slack) / b))
    return best


@pytest.mark.parametrize("output", [Multiplicative(), Approximate(delta=Exact.of("1/10"))])
@pytest.mark.parametrize("seed", range(20))
def test_the_certificate_can_be_rechecked_by_hand(seed: int, output: Any) -> None:
    """The worst pair attains the loss, and its event alone shows the divergence."""
    random_ = random.Random(f"certificate {seed}")
    flavor = drawn_flavor(random_, output, 4)
    mechanism = drawn_mechanism(random_, flavor.domain)
    found = protection_loss(mechanism, flavor)
    worst = found.worst
    if worst is None:
        assert found.overall == ZERO
        return
    assert worst.loss == found.overall == found.by_universe[worst.universe]
    assert {worst.x, worst.y} <= flavor.multiverse.universes(flavor.domain)[worst.universe]
    assert worst.distance == flavor.input_premetric.distance(worst.x, worst.y)
    p, q = mechanism.laws[worst.x], mechanism.laws[worst.y]
    assert worst.divergence == output.between(p, q)
    if not worst.divergence.is_zero:
        assert shown_by(output, p, q, worst.event) == pytest.approx(float(worst.divergence))


def test_the_certificate_of_total_variation_shows_the_divergence() -> None:
    """The event on which P exceeds Q, not the single outcome with the largest ratio."""
    flavor = on_pair(TotalVariation())
    mechanism = FiniteMechanism(
        flavor.domain,
        {
            0: Distribution({0: Fraction(1, 2), 1: Fraction(3, 10), 2: Fraction(1, 5)}),
            1: Distribution({0: Fraction(3, 10), 1: Fraction(1, 10), 2: Fraction(3, 5)}),
        },
    )
    worst = protection_loss(mechanism, flavor).worst
    assert worst is not None
    assert worst.divergence == Exact.of("2/5")
    shown = shown_by(TotalVariation(), mechanism.laws[worst.x], mechanism.laws[worst.y], worst.event)
    assert shown == pytest.approx(0.4)


def test_the_certificate_of_a_coarsened_premetric_is_an_event_of_its_algebra() -> None:
    groups = ((0, 1), (2,))
    flavor = on_pair(Coarsened(base=Multiplicative(), groups=groups, reason="test"))
    mechanism = FiniteMechanism(
        flavor.domain,
        {
            0: Distribution({0: Fraction(1, 2), 1: Fraction(1, 4), 2: Fraction(1, 4)}),
            1: Distribution({0: Fraction(1, 4), 1: Fraction(3, 8), 2: Fraction(3, 8)}),
        },
    )
    worst = protection_loss(mechanism, flavor).worst
    assert worst is not None
    assert worst.divergence == Exact.log("3/2")
    assert all(set(group) <= worst.event or not set(group) & worst.event for group in groups)
    assert shown_by(Multiplicative(), *mechanism.laws.values(), worst.event) == pytest.approx(math.log(1.5))


def test_r2_4_7_a_mechanism_on_another_domain_is_refused() -> None:
    flavor = on_pair(Multiplicative())
    law = Distribution.point(0)
    raw = Domain.finite((0, 1), stage=Stage.RAW_RESPONSES)
    with pytest.raises(DomainMismatch):
        protection_loss(FiniteMechanism(raw, {0: law, 1: law}), flavor)
    with pytest.raises(DomainMismatch):
        FiniteMechanism(flavor.domain, {0: law})
    with pytest.raises(DomainMismatch):
        FiniteMechanism(flavor.domain, {0: law, 1: law, 2: law})
    other = Domain.finite((0, 2))
    with pytest.raises(DomainMismatch):
        FiniteMechanism(flavor.domain, {0: law, 1: law}).compose_fresh(
            FiniteMechanism(other, {0: law, 2: law})
        )


def test_r3_a_zero_budget_allows_no_difference_at_all() -> None:
    """Prop. 2.4.12: D_NoR is positive between different laws, however close they are."""
    shift = Fraction(1, 10**10)
    half = Fraction(1, 2)
    laws = {0: Distribution({0: half, 1: half}), 1: Distribution({0: half + shift, 1: half - shift})}
    for output, kind in ((Multiplicative(), "epsilon"), (NormalisedRenyi(), "rho"), (Hellinger(), "loss")):
        flavor = on_pair(output)
        verdict = satisfies(
            FiniteMechanism(flavor.domain, laws), flavor.with_budget(Budget.by_universe(kind, (0,)))
        )
        assert not verdict.satisfied, output


@pytest.mark.parametrize("digits", [2, 4, 6, 8])
@pytest.mark.parametrize("noise", [0, Fraction(1, 10**30 + 57)])
def test_numerical_divergences_are_accurate_for_laws_that_are_close(digits: int, noise: Fraction) -> None:
    """Kullback-Leibler of (1/2 + s, 1/2 - s) from the fair coin, against sixty decimal digits."""
    shift, half = Fraction(1, 10**digits) + noise, Fraction(1, 2)
    p, q = Distribution({0: half + shift, 1: half - shift}), Distribution({0: half, 1: half})
    with localcontext() as context:
        context.prec = 80
        expected = Decimal(0)
        for mass in (half + shift, half - shift):
            number = Decimal(mass.numerator) / Decimal(mass.denominator)
            expected += number * (2 * number).ln()
    assert float(KullbackLeibler().between(p, q)) == pytest.approx(float(expected), rel=1e-9)
    root = math.sqrt(float(expected))
    assert root * (1 - 1e-9) <= float(NormalisedRenyi().between(p, q))


def randomised(truth: Fraction) -> FiniteMechanism:
    return randomised_response(Domain.finite(((0,), (1,))), truth, (0, 1))


def with_curve(vertices: Iterable[tuple[object, object]], premetric: object = None) -> Specification:
    return Specification(
        domain=Domain.finite(((0,), (1,))),
        multiverse=Trivial(),
        input_premetric=premetric or Neighbours(relation="replace", unit="record"),
        output_premetric=TradeOffCurve(),
        budget=Budget(parametrisation="tradeoff", curve=tuple(vertices)),
    )


def test_f_dp_randomised_response_satisfies_its_own_curve_and_no_higher_one() -> None:
    """The curve of epsilon-DP has its corner at (1/(1+e^eps), 1/(1+e^eps)): here (1/4, 1/4)."""
    mechanism = randomised(Fraction(3, 4))
    own = with_curve([(0, 1), ("1/4", "1/4"), (1, 0)])
    assert satisfies(mechanism, own).satisfied
    assert satisfies(mechanism, with_curve([(0, 1), ("1/5", "1/5"), (1, 0)])).satisfied
    for corner in ("26/100", "1/3"):
        verdict = satisfies(mechanism, with_curve([(0, 1), (corner, corner), (1, 0)]))
        assert not verdict.satisfied
        assert verdict.violation is not None
        assert {verdict.violation.x, verdict.violation.y} == {(0,), (1,)}
    assert not satisfies(mechanism, with_curve([(0, 1), (1, 0)])).satisfied
    constant = FiniteMechanism.from_function(own.domain, lambda _: Distribution.point(0))
    assert satisfies(constant, with_curve([(0, 1), (1, 0)])).satisfied


@pytest.mark.parametrize("seed", range(30))
def test_f_dp_agrees_with_pure_and_approximate_dp(seed: int) -> None:
    """f_(eps, delta) as a budget curve is (eps, delta)-DP (Dong, Roth, Su 2022): both verdicts coincide."""
    random_ = random.Random(f"f-DP {seed}")
    domain = Domain.finite(((0,), (1,)))
    mechanism = drawn_mechanism(random_, domain)
    odds, delta = random_.choice((2, 3, 6)), random_.choice((Fraction(0), Fraction(1, 10), Fraction(1, 3)))
    corner = (1 - delta) / (1 + odds)
    curve = with_curve(
        [
            (0, Exact(1 - delta)),
            (Exact(corner), Exact(corner)),
            *([(Exact(1 - delta), 0)] if delta else []),
            (1, 0),
        ]
    )
    approximate = Specification(
        **dict(curve)
        | {"output_premetric": Approximate(delta=Exact(delta)), "budget": Budget.epsilon(Exact.log(odds))}
    )
    assert satisfies(mechanism, curve).satisfied == satisfies(mechanism, approximate).satisfied


@pytest.mark.parametrize("seed", range(20))
def test_f_dp_a_mechanism_satisfies_the_curve_it_has(seed: int) -> None:
    random_ = random.Random(f"own curve {seed}")
    domain = Domain.finite(((0,), (1,)))
    mechanism = drawn_mechanism(random_, domain)
    p, q = mechanism.laws[(0,)], mechanism.laws[(1,)]
    one, two = TradeOff.between(p, q), TradeOff.between(q, p)
    for curve in (one, two):
        vertices = [(Exact(level), Exact(error)) for level, error in curve.vertices]
        expected = curve.easier_than(one) and curve.easier_than(two)
        assert satisfies(mechanism, with_curve(vertices)).satisfied == expected


def test_f_dp_a_curve_that_is_not_convex_is_refused() -> None:
    """At level 1/2 this curve asks for error 1/4, and randomised response has 1/6."""
    bulging = [(0, 1), ("1/4", "1/4"), ("1/2", "1/4"), (1, 0)]
    curve = TradeOff.between(*randomised(Fraction(3, 4)).laws.values())
    assert curve(Fraction(1, 2)) == Fraction(1, 6)
    try:
        verdict = satisfies(randomised(Fraction(3, 4)), with_curve(bulging))
    except StirredError:
        return
    assert not verdict.satisfied


def test_f_dp_different_output_spaces_violate_every_curve() -> None:
    specification = with_curve([(0, 1), ("1/4", "1/4"), (1, 0)])
    laws = {(i,): Distribution({0: Fraction(1, 2), 1: Fraction(1, 2)}, space) for i, space in enumerate("AB")}
    assert not satisfies(FiniteMechanism(specification.domain, laws), specification).satisfied


def test_f_dp_points_at_distance_zero_must_have_one_law() -> None:
    """A curve at distance zero can only be the diagonal: D_Pr(P, Q) <= budget * 0."""
    nailed = Given(unit="unit", points=((0,), (1,)), distances=((0, 0), (0, 0)))
    identity = FiniteMechanism.exact_release(Domain.finite(((0,), (1,))), lambda x: x)
    try:
        specification = with_curve([(0, 1), ("1/4", "1/4"), (1, 0)], nailed)
    except StirredError:
        return
    assert not satisfies(identity, specification).satisfied


def test_f_dp_asks_for_the_mechanisms_domain_and_warns_when_nothing_is_compared() -> None:
    specification = with_curve([(0, 1), (1, 0)])
    elsewhere = Domain.finite(((0,), (1,), (2,)))
    constant = FiniteMechanism.from_function(elsewhere, lambda _: Distribution.point(0))
    with pytest.raises(DomainMismatch):
        satisfies(constant, specification)
    alone = Specification(**dict(specification) | {"multiverse": Explicit(parts=(((0,),), ((1,),)))})
    verdict = satisfies(randomised(Fraction(3, 4)), alone)
    assert verdict.satisfied and verdict.warnings


def test_epsilon_of_delta_is_verified_at_every_delta() -> None:
    """Randomised response at 3/4 has D^delta = ln((3/4 - delta)/(1/4)): exact at each, and no less."""
    mechanism = randomised(Fraction(3, 4))
    exact = {"0": "ln(3)", "1/10": "ln(13/5)", "1/4": "ln(2)", "1/2": "0"}

    def with_epsilons(curve: dict[str, str]) -> Specification:
        return Specification(
            domain=mechanism.domain,
            multiverse=Trivial(),
            input_premetric=Neighbours(relation="replace", unit="record"),
            output_premetric=ApproximateCurve(),
            budget=Budget.of_delta(curve),
        )

    assert satisfies(mechanism, with_epsilons(exact)).satisfied
    for delta, smaller in (("0", "ln(29/10)"), ("1/10", "ln(5/2)"), ("1/4", "ln(19/10)")):
        assert not satisfies(mechanism, with_epsilons(exact | {delta: smaller})).satisfied


@pytest.mark.parametrize(("size", "factor"), [(1, 1), (2, 1), (3, 3), (4, 3)])
def test_randomised_response_under_unordered_neighbours(size: int, factor: int) -> None:
    """Section 3.3: on {0, 1}^n the loss under r_bs is epsilon times n, or n - 1 where n is even."""
    domain = Domain.datasets(Schema.of(bit=(0, 1)), sizes=(size,), structure="vector")
    flavor = Flavor(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=Neighbours(relation="replace", unit="record"),
        output_premetric=Multiplicative(),
    )

    def law(point: Any) -> Distribution:
        masses = {}
        for answer in itertools.product((0, 1), repeat=size):
            truthful = sum((a,) == record for a, record in zip(answer, point, strict=True))
            masses[answer] = Fraction(3**truthful, 4**size)
        return Distribution(masses)

    assert protection_loss(FiniteMechanism.from_function(domain, law), flavor).overall == Exact.log(3**factor)
