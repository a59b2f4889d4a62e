"""Accounting: composition theorems by exhaustion, accountants against closed forms, refusals."""

import math
import subprocess
import sys
from decimal import Decimal, localcontext
from functools import partial
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import InputError, NotComputable
from stirred.spec.accountants.accounting import (
    Composed,
    GaussianEvent,
    LaplaceEvent,
    NonPrivate,
    PoissonSampled,
    RandomisedResponse,
    SampledWithoutReplacement,
    SelfComposed,
    advanced_composition,
    gaussian_dp_composition,
    optimal_composition,
    pld_epsilon,
    rdp_curve,
    rdp_epsilon,
    supports,
)

law = settings(deadline=None)


def normal_cdf(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2


def least_epsilon(profile, delta: float, top: float = 200.0) -> float:
    """The ε at which a decreasing profile δ(ε) reaches ``delta``, by bisection."""
    low, high = 0.0, top
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if profile(middle) > delta else (low, middle)
    return high


def gaussian_profile(mu: float):
    """Balle and Wang (2018), Theorem 8."""
    return lambda e: normal_cdf(mu / 2 - e / mu) - math.exp(e) * normal_cdf(-mu / 2 - e / mu)


class TestAdvancedComposition:
    """Dwork, Rothblum and Vadhan (2010), Theorem III.3."""

    @pytest.mark.parametrize(("count", "epsilon"), [(10, 0.05675861), (30, 0.03278223), (100, 0.01795979)])
    def test_budget_per_query_of_figure_5_5(self, count, epsilon):
        loss = advanced_composition(epsilon, 5e-7 / count, count, 5e-7)
        assert loss.epsilon == pytest.approx(1, abs=5e-7)
        assert loss.delta == pytest.approx(1e-6)

    def test_beats_basic_composition_from_32_queries(self):
        def wins(count: int) -> bool:
            return advanced_composition(1 / count, 0.0, count, 5e-7).epsilon < 1

        assert [count for count in range(1, 40) if wins(count)] == list(range(32, 40))

    def test_book_example(self):
        loss = advanced_composition(0.0100000000006, 2.2814879781456665e-07, 2, 1e-7)
        assert loss.epsilon == pytest.approx(0.08049569968690323, abs=1e-12)
        assert loss.delta == pytest.approx(5.562975956291333e-07, rel=1e-13)

    def test_limits(self):
        assert advanced_composition(0.0, 0.0, 5, 1e-6) == (0.0, 1e-6)
        assert advanced_composition(800.0, 0.0, 5, 1e-6).epsilon == math.inf
        assert advanced_composition(1.0, 0.5, 5, 1e-6).delta == 1.0


def canonical_pair(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """The worst pair of outputs of an (ε, δ)-DP release: Kairouz, Oh and Viswanath, Section 3.1."""
    odds = math.exp(epsilon)
    near = (1 - delta) / (1 + odds)
    return [(delta, 0.0), (near * odds, near), (near, near * odds), (0.0, delta)]


def composed_profile(pair: list[tuple[float, float]], count: int):
    outcomes = [
        (math.prod(p for p, _ in outcome), math.prod(q for _, q in outcome))
        for outcome in product(pair, repeat=count)
    ]
    return lambda e: math.fsum(max(0.0, p - math.exp(e) * q) for p, q in outcomes)


class TestOptimalComposition:
    """Kairouz, Oh and Viswanath (2015), Theorem 3.3; Murtagh and Vadhan (2016), Theorem 1.4."""

    @pytest.mark.parametrize(
        ("epsilon", "delta", "count", "slack"),
        [
            (0.5, 0.0, 2, 0.01),
            (0.5, 0.0, 5, 0.1),
            (1.3, 0.02, 5, 0.003),
            (0.1, 0.05, 4, 1e-4),
            (2.0, 1e-3, 6, 0.3),
        ],
    )
    def test_is_the_loss_of_the_worst_pair_by_exhaustion(self, epsilon, delta, count, slack):
        loss = optimal_composition(epsilon, delta, count, slack)
        profile = composed_profile(canonical_pair(epsilon, delta), count)
        assert loss.delta == pytest.approx(1 - (1 - delta) ** count * (1 - slack), rel=1e-12)
        assert loss.epsilon == pytest.approx(least_epsilon(profile, loss.delta), abs=1e-10)

    def test_passes_through_the_points_of_theorem_3_3(self):
        epsilon, count = 0.2, 12
        for i in range(1, count // 2 + 1):
            slack = (
                sum(
                    math.comb(count, j)
                    * (math.exp((count - j) * epsilon) - math.exp((count - 2 * i + j) * epsilon))
                    for j in range(i)
                )
                / (1 + math.exp(epsilon)) ** count
            )
            loss = optimal_composition(epsilon, 0.0, count, slack)
            assert loss.epsilon == pytest.approx((count - 2 * i) * epsilon, abs=1e-11)

    @law
    @given(st.floats(1e-3, 3), st.sampled_from([0.0, 1e-9]), st.integers(1, 400), st.floats(1e-12, 0.5))
    def test_is_never_above_basic_or_advanced_composition(self, epsilon, delta, count, slack):
        best = optimal_composition(epsilon, delta, count, slack)
        classical = advanced_composition(epsilon, delta, count, slack)
        assert best.epsilon <= min(classical.epsilon, count * epsilon * (1 + 1e-15))
        assert best.delta <= classical.delta * (1 + 1e-12)

    @law
    @given(st.floats(0.01, 2), st.integers(1, 200), st.floats(1e-12, 0.4))
    def test_grows_with_the_count_and_falls_with_the_slack(self, epsilon, count, slack):
        loss = optimal_composition(epsilon, 0.0, count, slack).epsilon
        assert loss <= optimal_composition(epsilon, 0.0, count + 1, slack).epsilon + 1e-10
        assert loss >= optimal_composition(epsilon, 0.0, count, slack * 2).epsilon - 1e-10

    @pytest.mark.parametrize(("epsilon", "count"), [(0.05, 300), (0.7, 90), (3.0, 40)])
    @pytest.mark.parametrize("slack", [1e-12, 1e-5, 0.2])
    def test_never_understates(self, epsilon, count, slack):
        with localcontext() as context:
            context.prec = 200
            odds = Decimal(epsilon).exp()
            ratio = Decimal(optimal_composition(epsilon, 0.0, count, slack).epsilon).exp()
            terms = (math.comb(count, j) * (odds**j - ratio * odds ** (count - j)) for j in range(count + 1))
            excess = sum(max(Decimal(0), term) for term in terms) / (1 + odds) ** count
            assert excess <= Decimal(slack)
            assert float(excess) == pytest.approx(slack, rel=1e-7)

    def test_tends_to_gaussian_dp_for_many_small_losses(self):
        loss = optimal_composition(0.001, 0.0, 10**6, 1e-6)
        assert loss.epsilon == pytest.approx(least_epsilon(gaussian_profile(1.0), 1e-6), abs=1e-3)

    def test_limits(self):
        assert optimal_composition(0.5, 0.0, 3, 0.0) == (1.5, 0.0)
        assert optimal_composition(0.0, 0.0, 3, 0.1) == (0.0, 0.1)
        assert optimal_composition(math.inf, 0.0, 3, 0.1).epsilon == math.inf
        assert optimal_composition(0.5, 1.0, 3, 0.1).delta == 1.0
        assert optimal_composition(500.0, 0.0, 9, 1e-9).epsilon == pytest.approx(4500)


class TestGaussianDpComposition:
    """Dong, Roth and Su (2022), Corollary 3.3."""

    def test_adds_squares(self):
        assert gaussian_dp_composition([3.0, 4.0]) == pytest.approx(5.0, rel=1e-14)
        assert gaussian_dp_composition([3.0, 4.0]) >= 5.0
        assert gaussian_dp_composition([]) == 0.0
        assert gaussian_dp_composition([1.0, math.inf]) == math.inf

    @law
    @given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8))
    def test_lies_between_the_largest_and_the_sum(self, mus):
        assert max(mus) <= gaussian_dp_composition(mus) <= sum(mus) * (1 + 1e-14)


class TestGaussianNoise:
    @pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
    def test_one_release(self, relation):
        event = GaussianEvent(1)
        assert rdp_epsilon(event, 1e-6, relation) == pytest.approx(5.221534, abs=1e-5)
        assert pld_epsilon(event, 1e-6, relation) == pytest.approx(4.886554, abs=1e-6)

    def test_three_releases(self):
        event = SelfComposed(GaussianEvent(1.0), 3)
        assert rdp_epsilon(event, 1e-6, "add-remove") == pytest.approx(9.8484, abs=1e-4)
        assert pld_epsilon(event, 1e-6, "add-remove") == pytest.approx(9.254265908, abs=1e-4)

    def test_fifty_releases(self):
        event = SelfComposed(GaussianEvent(5.0), 50)
        assert rdp_epsilon(event, 1e-10, "add-remove") == pytest.approx(10.034, abs=1e-3)
        assert pld_epsilon(event, 1e-10, "add-remove") == pytest.approx(9.618, abs=1e-3)

    def test_seventy_releases_of_a_census(self):
        event = Composed((GaussianEvent(math.sqrt(70 / (2 * 2.56))),) * 70)
        assert rdp_epsilon(event, 1e-10, "replace-one") == pytest.approx(17.15838, abs=1e-5)
        assert pld_epsilon(event, 1e-10, "replace-one") == pytest.approx(16.47939, abs=7e-5)

    def test_noise_for_epsilon_one(self):
        event = GaussianEvent(4.224678889)
        assert pld_epsilon(event, 1e-6, "add-remove") == pytest.approx(1.0, abs=1e-4)
        assert pld_epsilon(GaussianEvent(1.0), 0.126936737507, "add-remove") == pytest.approx(1.0, abs=1e-4)

    def test_concentrated_dp_conversion(self):
        assert rdp_epsilon(GaussianEvent(0.5), 1e-6, "replace-one") == pytest.approx(11.688596249, abs=2e-4)

    def test_renyi_curve_is_linear(self):
        orders = list(range(2, 201))
        curve = rdp_curve(GaussianEvent(1.0), orders, "add-remove")
        assert curve == pytest.approx([order / 2 for order in orders], rel=1e-13)
        classical = [r - math.log(1e-6) / (a - 1) for a, r in zip(orders, curve, strict=True)]
        assert min(classical) == pytest.approx(5.763102, abs=1e-6)
        assert orders[classical.index(min(classical))] == 6

    @settings(max_examples=20, deadline=None)
    @given(st.floats(0.5, 20), st.floats(1e-9, 0.1))
    def test_loss_distribution_is_tight_and_above_the_closed_form(self, noise, delta):
        exact = least_epsilon(gaussian_profile(1 / noise), delta)
        bound = pld_epsilon(GaussianEvent(noise), delta, "add-remove", interval=1e-3)
        assert exact - 1e-9 <= bound <= exact + 1e-4
        assert bound <= rdp_epsilon(GaussianEvent(noise), delta, "add-remove") + 1e-4


class TestLaplaceNoise:
    def test_loss_distribution_equals_the_closed_form(self):
        for delta in (1e-12, 1e-6, 0.01, 0.2):
            exact = max(0.0, 0.5 + 2 * math.log1p(-delta))
            for relation in ("add-remove", "replace-one"):
                bound = pld_epsilon(LaplaceEvent(2.0), delta, relation)
                assert bound == pytest.approx(exact, abs=1e-4)
                assert bound >= exact - 1e-12

    def test_renyi_curve_equals_mironov_2017_table_2(self):
        orders = [1.5, 2.0, 7.0]
        exact = [
            math.log(a / (2 * a - 1) * math.exp((a - 1) / 2) + (a - 1) / (2 * a - 1) * math.exp(-a / 2))
            / (a - 1)
            for a in orders
        ]
        assert rdp_curve(LaplaceEvent(2), orders, "replace-one") == pytest.approx(exact, rel=1e-12)


class TestRandomisedResponse:
    def test_repetitions_all_count(self):
        """The library's own PLD accountant counts repeated randomised response once."""
        answer = RandomisedResponse(0.5, 2)
        for count in (1, 10, 100):
            exact = optimal_composition(math.log(3), 0.0, count, 1e-6).epsilon
            bound = pld_epsilon(SelfComposed(answer, count), 1e-6, "replace-one")
            assert exact - 1e-9 <= bound <= exact + count * 1e-4
            assert bound <= rdp_epsilon(SelfComposed(answer, count), 1e-6, "replace-one") + 1e-2

    def test_many_categories(self):
        """ln(p (t-1) / (1-p)) with truth p = 0.4 of t = 4 categories."""
        answer = RandomisedResponse(0.8, 4)
        truth = 1 - 0.8 + 0.8 / 4
        assert truth == pytest.approx(0.4)
        assert pld_epsilon(answer, 0.0, "replace-one") == pytest.approx(math.log(2), abs=1e-4)


class TestPoissonSampled:
    def test_thousand_steps(self):
        event = SelfComposed(PoissonSampled(0.01, GaussianEvent(1.0)), 1000)
        assert rdp_epsilon(event, 1e-6, "add-remove") == pytest.approx(2.43669, abs=1e-5)
        assert pld_epsilon(event, 1e-6, "add-remove") == pytest.approx(2.12452, abs=1e-5)

    def test_second_renyi_order_has_a_closed_form(self):
        for rate, noise in product((1e-12, 1e-9, 1e-3, 0.3, 1.0), (0.5, 1.0, 50.0, 1e6)):
            exact = math.log1p(rate**2 * math.expm1(noise**-2))
            (bound,) = rdp_curve(PoissonSampled(rate, GaussianEvent(noise)), [2.0], "add-remove")
            assert exact <= bound <= exact * (1 + 1e-12) + 2e-13 * rate

    def test_one_step_equals_the_hockey_stick_of_the_mixture(self):
        rate, noise, delta = 0.2, 1.5, 1e-4

        def removal(e: float) -> float:
            cut = noise**2 * math.log((math.exp(e) - 1 + rate) / rate) + 0.5
            without, within = 1 - normal_cdf(cut / noise), 1 - normal_cdf((cut - 1) / noise)
            return (1 - rate) * without + rate * within - math.exp(e) * without

        exact = least_epsilon(removal, delta, top=5.0)
        bound = pld_epsilon(PoissonSampled(rate, GaussianEvent(noise)), delta, "add-remove")
        assert exact - 1e-9 <= bound <= exact + 1e-4

    def test_sampled_laplace_amplifies_by_h(self):
        bound = pld_epsilon(PoissonSampled(0.1, LaplaceEvent(1.0)), 0.0, "add-remove")
        assert bound == pytest.approx(0.158565078740, abs=1e-4)

    @pytest.mark.parametrize("noise", [1, 1.0])
    def test_releases_inside_share_the_sample(self, noise):
        """Four releases on one sample are one with half the noise, whole numbers included."""
        shared = PoissonSampled(0.1, Composed((SelfComposed(GaussianEvent(noise), 4),)))
        merged = PoissonSampled(0.1, GaussianEvent(0.5))
        fresh = SelfComposed(PoissonSampled(0.1, GaussianEvent(noise)), 4)
        for epsilon in (rdp_epsilon, partial(pld_epsilon, interval=1e-3)):
            loss = epsilon(shared, 1e-6, "add-remove")
            assert loss == pytest.approx(epsilon(merged, 1e-6, "add-remove"), rel=1e-9)
            assert loss > epsilon(fresh, 1e-6, "add-remove")

    @settings(max_examples=15, deadline=None)
    @given(st.floats(0.01, 1), st.floats(0.01, 1), st.floats(0.6, 5))
    def test_loss_grows_with_the_rate(self, first, second, noise):
        low, high = (
            rdp_epsilon(PoissonSampled(rate, GaussianEvent(noise)), 1e-6, "add-remove")
            for rate in sorted((first, second))
        )
        assert low <= high + 1e-9


class TestSampledWithoutReplacement:
    @pytest.mark.parametrize(("size", "noise"), [(1, 1.0), (10, 0.5), (500, 3.0), (999, 1.0)])
    def test_bound_is_above_the_mixture_it_must_cover(self, size, noise):
        """A record of 1 against a record of 0: the pair of Poisson sampling at the same rate."""
        orders = [2, 3, 5, 16, 63]
        bound = rdp_curve(SampledWithoutReplacement(size, 1000, GaussianEvent(noise)), orders, "replace-one")
        pair = rdp_curve(PoissonSampled(size / 1000, GaussianEvent(noise)), orders, "add-remove")
        assert all(b >= p * (1 - 1e-9) for b, p in zip(bound, pair, strict=True))

    def test_census_is_not_amplified(self):
        census = SampledWithoutReplacement(7, 7, GaussianEvent(2.0))
        assert rdp_epsilon(census, 1e-6, "replace-one") == pytest.approx(
            rdp_epsilon(GaussianEvent(2.0), 1e-6, "replace-one"), rel=1e-9
        )


NOISY = GaussianEvent(2.0)


class TestNonPrivate:
    @pytest.mark.parametrize(
        "event",
        [
            NonPrivate(),
            Composed((NOISY, SelfComposed(NonPrivate(), 2))),
            PoissonSampled(0.01, Composed((NOISY, NonPrivate()))),
            SampledWithoutReplacement(1, 100, NonPrivate()),
        ],
    )
    def test_taints_everything(self, event):
        for accountant, epsilon in (("rdp", rdp_epsilon), ("pld", pld_epsilon)):
            assert supports(event, accountant, "add-remove")
            assert epsilon(event, 1e-6, "add-remove") == math.inf
        assert rdp_curve(event, [2.0], "replace-one") == (math.inf,)

    def test_no_event_loses_nothing(self):
        assert rdp_epsilon(Composed(()), 1e-6, "add-remove") == 0.0
        assert pld_epsilon(Composed(()), 1e-6, "add-remove") == 0.0
        assert rdp_epsilon(NOISY, 0.0, "add-remove") == math.inf


class TestMonotonicity:
    @settings(max_examples=15, deadline=None)
    @given(st.floats(2, 20), st.integers(1, 30), st.floats(1e-9, 1e-2))
    def test_loss_grows_with_repetition_and_falls_with_delta(self, noise, count, delta):
        for epsilon in (rdp_epsilon, partial(pld_epsilon, interval=1e-3)):
            losses = [
                epsilon(SelfComposed(GaussianEvent(noise), k), d, "add-remove")
                for k, d in ((count, delta * 2), (count, delta), (count + 1, delta))
            ]
            assert all(low <= high + 1e-6 for low, high in pairwise(losses))

    def test_nested_repetitions_multiply(self):
        nested = SelfComposed(SelfComposed(LaplaceEvent(9.0), 2), 3)
        flat = Composed((LaplaceEvent(9.0),) * 6)
        assert rdp_curve(nested, [2.0, 5.5], "replace-one") == pytest.approx(
            rdp_curve(flat, [2.0, 5.5], "replace-one"), rel=1e-12
        )

    def test_order_and_nesting_do_not_matter(self):
        parts = (NOISY, LaplaceEvent(3.0), LaplaceEvent(3.0))
        flat = Composed(parts)
        nested = Composed((SelfComposed(LaplaceEvent(3.0), 2), Composed((NOISY,))))
        for epsilon in (rdp_epsilon, pld_epsilon):
            assert epsilon(flat, 1e-5, "add-remove") == pytest.approx(
                epsilon(nested, 1e-5, "add-remove"), rel=1e-6
            )


SUPPORT_TABLE = [
    (NOISY, "rdp pld", "rdp pld"),
    (LaplaceEvent(1.0), "rdp pld", "rdp pld"),
    (RandomisedResponse(0.5, 3), "", "rdp pld"),
    (PoissonSampled(0.1, NOISY), "rdp pld", ""),
    (PoissonSampled(0.1, LaplaceEvent(1.0)), "pld", ""),
    (PoissonSampled(0.1, SelfComposed(LaplaceEvent(1.0), 2)), "", ""),
    (PoissonSampled(0.1, Composed((NOISY, LaplaceEvent(1.0)))), "", ""),
    (PoissonSampled(0.1, PoissonSampled(0.1, NOISY)), "", ""),
    (SampledWithoutReplacement(1, 10, NOISY), "", "rdp"),
    (SampledWithoutReplacement(1, 10, LaplaceEvent(1.0)), "", ""),
    (Composed((PoissonSampled(0.1, NOISY), RandomisedResponse(0.5, 3))), "", ""),
]


@pytest.mark.parametrize(("event", "add_remove", "replace_one"), SUPPORT_TABLE)
def test_supported_combinations_answer_and_others_refuse(event, add_remove, replace_one):
    answers = {"add-remove": add_remove.split(), "replace-one": replace_one.split()}
    accountants = {"rdp": rdp_epsilon, "pld": pld_epsilon}
    for relation, name in product(answers, accountants):
        supported = name in answers[relation]
        assert supports(event, name, relation) is supported
        if supported:
            assert 0 < accountants[name](event, 1e-5, relation) < math.inf
        else:
            with pytest.raises(NotComputable) as refusal:
                accountants[name](event, 1e-5, relation)
            assert refusal.value.field == "event"
            assert name in refusal.value.problem
            assert relation in refusal.value.problem


def test_relation_is_never_assumed():
    for call in (rdp_epsilon, pld_epsilon, rdp_curve, supports):
        with pytest.raises(TypeError, match="relation"):
            call(NOISY, 1e-6)


BAD_CALLS = [
    (lambda: GaussianEvent(0.0), "noise_multiplier"),
    (lambda: GaussianEvent(math.nan), "noise_multiplier"),
    (lambda: LaplaceEvent(math.inf), "noise_multiplier"),
    (lambda: RandomisedResponse(0.0, 2), "noise"),
    (lambda: RandomisedResponse(0.5, 1), "categories"),
    (lambda: PoissonSampled(0.0, NOISY), "rate"),
    (lambda: PoissonSampled(1.1, NOISY), "rate"),
    (lambda: SampledWithoutReplacement(11, 10, NOISY), "size"),
    (lambda: SampledWithoutReplacement(0, 10, NOISY), "size"),
    (lambda: SelfComposed(NOISY, 0), "count"),
    (lambda: advanced_composition(-1.0, 0.0, 2, 0.1), "epsilon"),
    (lambda: advanced_composition(math.nan, 0.0, 2, 0.1), "epsilon"),
    (lambda: advanced_composition(1.0, 2.0, 2, 0.1), "delta"),
    (lambda: advanced_composition(1.0, 0.0, 0, 0.1), "count"),
    (lambda: advanced_composition(1.0, 0.0, 2, 0.0), "slack"),
    (lambda: optimal_composition(1.0, 0.0, 2, 1.0), "slack"),
    (lambda: optimal_composition(1.0, math.nan, 2, 0.1), "delta"),
    (lambda: gaussian_dp_composition([1.0, -1.0]), "mus"),
    (lambda: rdp_epsilon(NOISY, 1.0, "add-remove"), "delta"),
    (lambda: pld_epsilon(NOISY, -0.1, "add-remove"), "delta"),
    (lambda: pld_epsilon(NOISY, 0.1, "add-remove", interval=0.0), "interval"),
    (lambda: rdp_curve(NOISY, [1.0], "add-remove"), "orders"),
    (lambda: rdp_epsilon(NOISY, 0.1, "bounded"), "relation"),
    (lambda: supports(NOISY, "rdp", "unbounded"), "relation"),
    (lambda: supports(NOISY, "moments", "add-remove"), "accountant"),
]


@pytest.mark.parametrize(("call", "field"), BAD_CALLS)
def test_refuses_with_the_field_at_fault(call, field):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.field == field
    assert refusal.value.expected
    assert refusal.value.hint


def test_numerical_library_is_imported_only_when_asked():
    program = (
        "import sys, stirred.spec.accountants.accounting as a;"
        "a.optimal_composition(1.0, 0.0, 9, 1e-6);"
        "a.supports(a.GaussianEvent(1.0), 'pld', 'add-remove');"
        "sys.exit('dp_accounting' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
