"""Blackwell's order: trade-off curves, Markov kernels, and the premetrics that post-processing respects."""

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from stirred.errors import InputError, UnknownName
from stirred.spec import (
    INFINITY,
    ZERO,
    Approximate,
    Distribution,
    Exact,
    GaussianTradeOff,
    Multiplicative,
    NormalisedRenyi,
    Renyi,
)
from stirred.spec.blocks.output_premetric import (
    ChiSquared,
    DensityRatio,
    Hellinger,
    KullbackLeibler,
    TotalVariation,
    TradeOffFunctional,
    Wasserstein,
)
from stirred.spec.finite.blackwell import kernel
from stirred.spec.finite.tradeoff import (
    TradeOff,
    advantage,
    decreasing_example,
    functional,
    log_power_ratio,
    of_tradeoff,
    register_functional,
)

CHUNKS = range(8)
PAIRS = 50


def dominates(p: Distribution, q: Distribution, p2: Distribution, q2: Distribution) -> bool:
    """Whether (P, Q) is at least as easy to tell apart as (P', Q'), decided exactly."""
    return TradeOff.between(p, q).easier_than(TradeOff.between(p2, q2))


def drawn(random_: random.Random, outcomes: int) -> Distribution:
    """Small integer odds with zeros, so that curves have ties, kinks at the axes and infinite ratios."""
    while True:
        weights = [random_.choice((0, 1, 1, 2, 3, 4)) for _ in range(outcomes)]
        if sum(weights):
            return Distribution({i: Fraction(w, sum(weights)) for i, w in enumerate(weights)})


def garbled(random_: random.Random, laws: tuple[Distribution, ...]) -> tuple[Distribution, ...]:
    """All laws sent through one random Markov kernel with rational entries."""
    rows = {}
    for outcome in range(4):
        weights = [random_.choice((0, 1, 2, 3)) for _ in range(3)]
        weights[0] += sum(weights) == 0
        rows[outcome] = [Fraction(w, sum(weights)) for w in weights]
    sent = []
    for law in laws:
        masses = [sum((p * rows[int(str(o))][j] for o, p in law.items()), Fraction(0)) for j in range(3)]
        sent.append(Distribution(dict(enumerate(masses))))
    return tuple(sent)


def brute_force_curve(p: Distribution, q: Distribution, level: Fraction) -> Fraction:
    """Least type-II error at a level: the lower convex hull of the errors of all deterministic tests."""
    outcomes = sorted(p.support | q.support, key=repr)
    tests = [
        (p.probability(event), 1 - q.probability(event))
        for size in range(len(outcomes) + 1)
        for event in itertools.combinations(outcomes, size)
    ]
    best = min(error for size, error in tests if size <= level)
    for (a, f), (b, g) in itertools.permutations(tests, 2):
        if a < level < b:
            best = min(best, f + (g - f) * (level - a) / (b - a))
    return best


@pytest.mark.parametrize("seed", range(30))
def test_neyman_pearson_the_curve_beats_no_test_and_is_beaten_by_none(seed: int) -> None:
    random_ = random.Random(f"curve {seed}")
    p, q = drawn(random_, 4), drawn(random_, 4)
    curve = TradeOff.between(p, q)
    assert curve.vertices[0][0] == 0 and curve.vertices[-1] == (1, 0)
    for step in range(13):
        level = Fraction(step, 12)
        assert curve(level) == brute_force_curve(p, q, level)
        assert curve.power(level) == 1 - curve(level) >= level


def slow_kernel_exists(p: Distribution, q: Distribution, p2: Distribution, q2: Distribution) -> bool:
    """Whether the linear programme of all kernels that send P to P' and Q to Q' has a solution."""
    sources, targets = sorted(p.support | q.support), sorted(p2.support | q2.support)
    n, m = len(sources), len(targets)
    rows = [np.kron(np.eye(n)[i], np.ones(m)) for i in range(n)]
    right = [1.0] * n
    for source, target in ((p, p2), (q, q2)):
        masses = [float(source[s]) for s in sources]
        rows += [np.kron(masses, np.eye(m)[j]) for j in range(m)]
        right += [float(target[t]) for t in targets]
    return bool(linprog(np.zeros(n * m), A_eq=np.array(rows), b_eq=right, bounds=(0, 1)).success)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_6_2_the_order_of_curves_is_the_existence_of_a_kernel(chunk: int) -> None:
    """Acceptance 18, Blackwell: 400 pairs of pairs; curves, exact kernels and a linear programme agree."""
    found = 0
    for seed in range(chunk * PAIRS, (chunk + 1) * PAIRS):
        random_ = random.Random(f"blackwell {seed}")
        p, q = drawn(random_, 4), drawn(random_, 4)
        p2, q2 = garbled(random_, (p, q)) if seed % 3 == 0 else (drawn(random_, 3), drawn(random_, 3))
        markov = kernel(p, q, p2, q2)
        assert dominates(p, q, p2, q2) == slow_kernel_exists(p, q, p2, q2) == (markov is not None), seed
        if markov is None:
            continue
        found += 1
        assert all(sum(row) == 1 and min(row) >= 0 for row in markov.probabilities)
        for source, target in ((p, p2), (q, q2)):
            for j, outcome in enumerate(markov.targets):
                sent = [source[s] * markov.probabilities[i][j] for i, s in enumerate(markov.sources)]
                assert sum(sent) == target[outcome]
    assert PAIRS // 4 < found < PAIRS


@pytest.mark.parametrize("seed", range(60))
def test_a_6_2_a_garbling_is_always_dominated(seed: int) -> None:
    random_ = random.Random(f"garbling {seed}")
    p, q = drawn(random_, 4), drawn(random_, 4)
    p2, q2 = garbled(random_, (p, q))
    assert dominates(p, q, p2, q2)
    assert dominates(p, q, p, q)
    curve, other = TradeOff.between(p, q), TradeOff.between(p2, q2)
    if curve != other:
        assert not dominates(p2, q2, p, q)


IMMUNE = [
    Multiplicative(),
    Approximate(delta=Exact.of("1/10")),
    NormalisedRenyi(),
    Renyi(alpha=Exact.of(2)),
    KullbackLeibler(),
    TotalVariation(),
    Hellinger(),
    ChiSquared(),
    DensityRatio(),
    GaussianTradeOff(),
    TradeOffFunctional(functional="advantage"),
    TradeOffFunctional(functional="log-power-ratio"),
    TradeOffFunctional(functional="gaussian-separation"),
]


@pytest.mark.parametrize("premetric", IMMUNE)
def test_theorem_2_5_5_immune_premetrics_fall_under_randomised_post_processing(premetric: object) -> None:
    assert premetric.properties.post_processing
    for seed in range(25):
        random_ = random.Random(f"immune {seed}")
        p, q = drawn(random_, 4), drawn(random_, 4)
        p2, q2 = garbled(random_, (p, q))
        before, after = premetric.between(p, q), premetric.between(p2, q2)
        assert float(after) <= float(before) * (1 + 1e-9) + 1e-9
        assert premetric.between(p, p) == ZERO
        assert premetric.between(p, Distribution(dict(q.items()), "elsewhere")) == INFINITY


@pytest.mark.parametrize("premetric", IMMUNE)
def test_theorem_2_5_5_immune_premetrics_are_functions_of_the_trade_off_curve(premetric: object) -> None:
    """Splitting an outcome in two leaves the curve, and so the premetric, as it was."""
    for seed in range(10):
        random_ = random.Random(f"split {seed}")
        p, q = drawn(random_, 3), drawn(random_, 3)
        third = Fraction(1, 3)

        def split(law: Distribution, share: Fraction = third) -> Distribution:
            masses = {(o, part): m * w for o, m in law.items() for part, w in ((0, share), (1, 1 - share))}
            return Distribution(masses)

        assert TradeOff.between(split(p), split(q)) == TradeOff.between(p, q)
        before, after = premetric.between(p, q), premetric.between(split(p), split(q))
        assert float(after) == pytest.approx(float(before), rel=1e-9, abs=1e-9)


def test_wasserstein_is_not_a_function_of_the_curve() -> None:
    p, q = Distribution({0: 1}), Distribution({1: 1})
    stretched = [law.pushforward(lambda n: 5 * int(str(n))) for law in (p, q)]
    assert TradeOff.between(*stretched) == TradeOff.between(p, q)
    assert Wasserstein().between(p, q) == Exact.of(1)
    assert Wasserstein().between(*stretched) == Exact.of(5)
    assert not Wasserstein().properties.post_processing


def level_at_half_error(curve: TradeOff) -> Exact:
    """A functional that falls with power: the level at which the error first is at most one half."""
    for (a, f), (b, g) in itertools.pairwise(curve.vertices):
        if f >= Fraction(1, 2) >= g and f != g:
            return Exact(a + (b - a) * (f - Fraction(1, 2)) / (f - g))
    return Exact(Fraction(0))


def some_curves() -> list[TradeOff]:
    random_ = random.Random("curves")
    return [TradeOff.between(drawn(random_, 4), drawn(random_, 4)) for _ in range(40)]


@pytest.mark.parametrize("name", ["advantage", "log-power-ratio", "gaussian-separation"])
def test_a_6_3_the_functionals_that_ship_have_no_decreasing_example(name: str) -> None:
    assert decreasing_example(functional(name), some_curves()) is None


def test_a_6_3_a_functional_that_falls_with_power_is_refuted() -> None:
    example = decreasing_example(level_at_half_error, some_curves())
    assert example is not None
    easier, harder = example
    assert easier.easier_than(harder)
    assert level_at_half_error(easier) < level_at_half_error(harder)


def test_a_6_3_the_factory_makes_premetrics_of_registered_functionals() -> None:
    """A new monotone functional, power at level one fifth: zero on the diagonal, and falls under kernels."""

    def power_at_a_fifth(curve: TradeOff) -> Exact:
        return Exact(curve.power(Fraction(1, 5)))

    register_functional("power-at-a-fifth", power_at_a_fifth)
    assert decreasing_example(power_at_a_fifth, some_curves()) is None
    premetric = TradeOffFunctional(functional="power-at-a-fifth")
    for seed in range(40):
        random_ = random.Random(f"factory {seed}")
        p, q = drawn(random_, 4), drawn(random_, 4)
        assert premetric.between(p, p) == ZERO
        value = premetric.between(p, q)
        assert value == Exact(1 - brute_force_curve(p, q, Fraction(1, 5)) - Fraction(1, 5))
        assert premetric.between(*garbled(random_, (p, q))) <= value
    with pytest.raises(InputError, match="exists already"):
        register_functional("power-at-a-fifth", power_at_a_fifth)
    with pytest.raises(UnknownName):
        functional("no such functional")


@pytest.mark.parametrize("seed", range(40))
def test_the_functionals_are_the_divergences_they_claim_to_be(seed: int) -> None:
    """Advantage is total variation; the log power ratio is max-divergence; their maximum is D_Mult."""
    random_ = random.Random(f"claims {seed}")
    p, q = drawn(random_, 4), drawn(random_, 4)
    assert of_tradeoff("advantage", p, q) == TotalVariation().between(p, q)
    both = [log_power_ratio(TradeOff.between(*pair)) for pair in ((p, q), (q, p))]
    assert max(both) == Multiplicative().between(p, q)
    assert both[1] == Renyi(alpha=INFINITY).between(p, q)
    assert advantage(TradeOff.between(p, q)) == advantage(TradeOff.between(q, p))


def test_gaussian_separation_sees_rare_outcomes() -> None:
    """Outcomes of mass 1e-20 and 1e-18: two laws that differ are never at distance zero."""
    rare = Fraction(1, 10**20)
    p, q = Distribution({0: rare, 1: 1 - rare}), Distribution({0: 100 * rare, 1: 1 - 100 * rare})
    forward, backward = of_tradeoff("gaussian-separation", p, q), of_tradeoff("gaussian-separation", q, p)
    assert ZERO < backward < INFINITY
    assert float(forward) == pytest.approx(float(backward), rel=1e-6)


def test_the_curve_refuses_what_is_not_a_trade_off() -> None:
    whole, half, quarter = Fraction(1), Fraction(1, 2), Fraction(1, 4)
    for vertices in (
        (),
        ((half, half), (whole, Fraction(0))),
        ((Fraction(0), half), (half, whole), (whole, Fraction(0))),
        ((Fraction(0), whole), (whole, half)),
    ):
        with pytest.raises(InputError, match="not a trade-off curve"):
            TradeOff(vertices)
    bulging = ((Fraction(0), whole), (quarter, quarter), (half, quarter), (whole, Fraction(0)))
    with pytest.raises(InputError, match="not a trade-off curve"):
        TradeOff(bulging)


def test_tails_beyond_floats_are_not_called_equal() -> None:
    from fractions import Fraction

    from stirred.spec.finite.distribution import Distribution
    from stirred.spec.finite.tradeoff import of_tradeoff

    t = Fraction(1, 10**330)
    p, q = Distribution({"a": t, "b": 1 - t}), Distribution({"a": 2 * t, "b": 1 - 2 * t})
    assert of_tradeoff("gaussian-separation", p, q).is_infinite
