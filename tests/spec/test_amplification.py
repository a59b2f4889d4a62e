"""Amplification by sampling: printed values, exhaustive twins on tiny populations, refusals."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import InputError
from stirred.spec import independent_samples, poisson_sampling, shared_sample
from stirred.spec.accountants.amplification import (
    amplify,
    chain_of_stages,
    cluster_sampling,
    coordinated_samples,
    deamplify,
    poisson_sampling_replaced,
    sampling_with_replacement,
    simple_random_sampling,
    stratified_sampling,
    systematic_sampling,
    two_stage_sampling,
)

Design = Sequence[tuple[float, Iterable[int]]]

law = settings(deadline=None)
losses = st.just(0.0) | st.floats(1e-200, 30)
rates = st.floats(1e-9, 1)


def close(value: float, digits: int = 9) -> object:
    return pytest.approx(value, rel=0, abs=0.6 * 10**-digits)


def exhaustive_losses(
    design: Design, units: int, epsilon: float, values: tuple[int, int] = (0, 1)
) -> list[float]:
    """Loss of each unit over all data sets of two values, for a geometric count of the sample.

    The count has weight e^{-ε|y - c|}. With values 0 and 1 a record of 0 counts as an absent one,
    so the loss is the same under replacement and under removal.
    """
    chances = np.array([chance for chance, _ in design])
    drawn = np.zeros((units, len(design)))
    for column, (_, members) in enumerate(design):
        for unit, times in Counter(members).items():
            drawn[unit, column] = times
    data = np.array(list(product(values, repeat=units)))
    counts = data @ drawn
    outputs = np.arange(counts.min() - 1, counts.max() + 2)
    weights = np.exp(-epsilon * np.abs(outputs[:, None, None] - counts)) @ chances
    densities = np.log(weights).reshape(len(outputs), *(2,) * units)
    return [float(np.abs(np.diff(densities, axis=1 + unit)).max()) for unit in range(units)]


def simple_design(population: int, size: int) -> Design:
    samples = list(combinations(range(population), size))
    return [(1 / len(samples), sample) for sample in samples]


def poisson_design(probabilities: Sequence[float]) -> Design:
    return [
        (
            math.prod(p if taken else 1 - p for p, taken in zip(probabilities, draw, strict=True)),
            [unit for unit, taken in enumerate(draw) if taken],
        )
        for draw in product((False, True), repeat=len(probabilities))
    ]


def cluster_design(clusters: Sequence[Sequence[int]], drawn: int) -> Design:
    samples = [sum(map(tuple, chosen), ()) for chosen in combinations(clusters, drawn)]
    return [(1 / len(samples), sample) for sample in samples]


def exact_amplification(epsilon: float, rate: float | Decimal) -> Decimal:
    with localcontext() as context:
        context.prec = 400
        return (1 + Decimal(rate) * (Decimal(epsilon).exp() - 1)).ln()


class TestAmplify:
    @pytest.mark.parametrize(
        ("epsilon", "rate", "loss"),
        [
            (1.0, 0.1, 0.158565078740),
            (2.0, 0.1, 0.494028708044),
            (3.0, 0.1, 1.067655944683),
            (800.0, 0.1, 797.697414907),
            (0.7, 1 / 3, 0.291114352302),
        ],
    )
    def test_printed_values(self, epsilon, rate, loss):
        assert amplify(epsilon, rate) == close(loss)

    @pytest.mark.parametrize("epsilon", [0.0, 1e-300, 0.3, 40.0, 699.0, 701.0, 1e6, math.inf])
    def test_census_and_empty_sample(self, epsilon):
        assert amplify(epsilon, 1.0) == epsilon
        assert amplify(epsilon, 0.0) == 0.0

    def test_infinite_loss_stays_infinite_at_every_positive_rate(self):
        assert amplify(math.inf, 1e-12) == math.inf

    @pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 1.0, 37.0, 699.99, 700.01, 1500.0])
    @pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-12, 0.1, 0.999])
    def test_never_understates(self, epsilon, rate):
        exact = exact_amplification(epsilon, rate)
        slack = 1e-14 * float(exact) + 1e-15 * epsilon * (epsilon > 700) + 1e-320
        assert exact <= Decimal(amplify(epsilon, rate)) <= float(exact) + slack

    @law
    @given(losses, rates)
    def test_lies_between_its_tangent_and_the_identity(self, epsilon, rate):
        assert rate * epsilon * (1 - 1e-12) <= amplify(epsilon, rate) <= epsilon

    @law
    @given(losses, losses, rates, rates)
    def test_is_monotone(self, e1, e2, f1, f2):
        low, high = sorted((e1, e2)), sorted((f1, f2))
        assert amplify(low[0], high[0]) <= amplify(low[1], high[1]) * (1 + 1e-14)

    @law
    @given(losses, rates, rates)
    def test_stages_multiply(self, epsilon, f, g):
        assert amplify(amplify(epsilon, f), g) == pytest.approx(amplify(epsilon, f * g), rel=1e-9, abs=1e-300)


class TestDeamplify:
    @pytest.mark.parametrize(
        ("epsilon", "rate", "budget"),
        [
            (1.0, 0.1, 2.900477097889),
            (1.0, 0.01, 5.152297938244),
            (0.1, 0.1, 0.718673192487),
        ],
    )
    def test_printed_values(self, epsilon, rate, budget):
        assert deamplify(epsilon, rate) == close(budget)

    @law
    @given(losses, rates)
    def test_planned_budget_fits(self, epsilon, rate):
        budget = deamplify(epsilon, rate)
        assert amplify(budget, rate) <= epsilon
        assert amplify(budget, rate) == pytest.approx(epsilon, rel=1e-12, abs=1e-300)

    def test_limits(self):
        assert deamplify(2.0, 1.0) == 2.0
        assert deamplify(2.0, 0.0) == math.inf
        assert deamplify(math.inf, 0.5) == math.inf
        assert deamplify(800.0, 0.1) == close(800 + math.log(10))
        assert deamplify(1.0, 5e-324) <= 1 - math.log(5e-324)


class TestSimpleRandomSampling:
    def test_theorem_6_4_1_by_exhaustion(self):
        loss = simple_random_sampling(0.7, 2, 6)
        assert loss.epsilon == close(0.291114352302, 12)
        assert exhaustive_losses(simple_design(6, 2), 6, 0.7) == [close(loss.epsilon, 12)] * 6
        assert (loss.delta, loss.relation) == (0.0, "replace-one")

    def test_theorem_6_4_1_in_exact_arithmetic(self):
        odds = Fraction(2)
        samples = list(combinations(range(6), 2))

        def density(ones: set[int], output: int) -> Fraction:
            return sum(odds ** -abs(output - len(ones & set(s))) for s in samples) / len(samples)

        worst = max(
            density(ones | {0}, output) / density(ones - {0}, output)
            for size in range(6)
            for ones in map(set, combinations(range(1, 6), size))
            for output in range(-1, 4)
        )
        assert worst == 1 + Fraction(2, 6) * (odds - 1)
        loss = simple_random_sampling(math.log(2), 2, 6).epsilon
        assert math.exp(loss) == pytest.approx(float(worst), rel=1e-14)

    def test_delta_scales_with_the_rate(self):
        assert simple_random_sampling(1.0, 10, 100, delta=0.01).delta == pytest.approx(0.001)
        assert simple_random_sampling(1.0, 0, 100, delta=0.01).delta == 0.0
        assert simple_random_sampling(1.0, 100, 100, delta=0.01).delta == 0.01

    def test_delta_is_attained_by_the_canonical_pair(self):
        epsilon, delta, rate = 1.0, 0.01, 0.1
        loss = simple_random_sampling(epsilon, 1, 10, delta)
        odds = math.exp(epsilon)
        p = [delta, (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds), 0.0]
        q = p[::-1]
        mixed = [(1 - rate) * b + rate * a for a, b in zip(p, q, strict=True)]
        excess = (a - math.exp(loss.epsilon) * b for a, b in zip(mixed, q, strict=True))
        assert math.fsum(max(0.0, x) for x in excess) == pytest.approx(loss.delta, rel=1e-12)

    def test_book_example(self):
        assert simple_random_sampling(2.0, 10, 100).epsilon == close(0.4940287080441788, 12)


class TestPoissonSampling:
    def test_each_unit_by_exhaustion(self):
        probabilities = (0.5, 0.2, 0.1, 0.3)
        loss = poisson_sampling(0.7, probabilities)
        assert loss.parts == tuple(map(close, (0.410038868, 0.184611052, 0.096559645, 0.265532941)))
        twin = exhaustive_losses(poisson_design(probabilities), 4, 0.7)
        assert loss.parts == tuple(close(x, 12) for x in twin)
        assert loss.epsilon == loss.parts[0]
        assert loss.relation == "add-remove"

    def test_delta_follows_the_largest_probability(self):
        assert poisson_sampling(1.0, [0.1, 0.5], delta=1e-6).delta == pytest.approx(5e-7)

    def test_replacement_costs_more_than_removal(self):
        loss = poisson_sampling_replaced(1.0, 0.1)
        assert loss.epsilon == close(0.223863414739, 12)
        assert loss.relation == "replace-one"
        twin = exhaustive_losses(poisson_design((0.1, 0.1, 0.1)), 3, 1.0, values=(-1, 1))
        assert twin == [close(loss.epsilon, 12)] * 3

    def test_replacement_in_a_census_costs_twice(self):
        assert poisson_sampling_replaced(800.0, 1.0).epsilon == pytest.approx(1600)

    @law
    @given(st.floats(0, 600), st.floats(0, 1))
    def test_replacement_lies_between_removal_and_twice_the_loss(self, epsilon, rate):
        loss = poisson_sampling_replaced(epsilon, rate).epsilon
        assert amplify(epsilon, rate) <= loss <= 2 * epsilon * (1 + 1e-14) + 1e-300

    @pytest.mark.parametrize("epsilon", [1e-6, 0.5, 3.0, 45.0])
    @pytest.mark.parametrize("rate", [1e-9, 0.3, 0.5, 0.97, 1 - 1e-12])
    def test_replacement_never_understates(self, epsilon, rate):
        with localcontext() as context:
            context.prec = 100
            exact = exact_amplification(epsilon, rate) - exact_amplification(-epsilon, rate)
            value = Decimal(poisson_sampling_replaced(epsilon, rate).epsilon)
            assert exact <= value <= exact * (1 + Decimal("1e-14"))


class TestSamplingWithReplacement:
    def test_hybrid_bound_by_exhaustion(self):
        design = [(4**-3, draws) for draws in product(range(4), repeat=3)]
        loss = sampling_with_replacement(0.7, 3, 4).epsilon
        assert loss == close(0.6776709510, 10)
        assert exhaustive_losses(design, 4, 0.7) == [close(loss, 12)] * 4

    def test_probability_of_being_drawn_at_all_is_no_bound(self):
        drawn_at_all = amplify(0.7, 1 - (1 - 1 / 4) ** 3)
        assert drawn_at_all == close(0.4612629, 7)
        assert drawn_at_all < sampling_with_replacement(0.7, 3, 4).epsilon

    def test_may_cost_more_than_no_sampling(self):
        assert sampling_with_replacement(1.0, 50, 50).epsilon > 1.0
        assert sampling_with_replacement(1.0, 3, 1).epsilon == pytest.approx(3.0)

    def test_no_draws_lose_nothing(self):
        assert sampling_with_replacement(1.0, 0, 50).epsilon == 0.0


def log_densities(
    ones: tuple[int, int], populations: tuple[int, int], sizes: tuple[int, int], epsilon: float
) -> np.ndarray:
    """Geometric count over two simple random samples from strata with so many ones."""
    first, second = (
        [math.comb(k, j) * math.comb(N - k, n - j) / math.comb(N, n) for j in range(n + 1)]
        for k, N, n in zip(ones, populations, sizes, strict=True)
    )
    chances = np.convolve(first, second)
    outputs = np.arange(-1, 6)[:, None]
    return np.log(np.exp(-epsilon * np.abs(outputs - np.arange(len(chances)))) @ chances)


class TestStratifiedSampling:
    def test_take_all_stratum_leaves_no_amplification(self):
        loss = stratified_sampling(1.0, [5, 20, 7], [100, 100, 7])
        assert loss.parts == (close(0.0824221129), close(0.2953945291), 1.0)
        assert loss.epsilon == 1.0

    def test_each_stratum_by_exhaustion(self):
        design = [
            (1 / 18, (*first, *second))
            for first in combinations(range(3), 1)
            for second in combinations(range(3, 7), 2)
        ]
        loss = stratified_sampling(0.9, [1, 2], [3, 4], delta=1e-3)
        twin = exhaustive_losses(design, 7, 0.9)
        assert twin == [close(loss.parts[0], 12)] * 3 + [close(loss.parts[1], 12)] * 4
        assert loss.delta == pytest.approx(5e-4)

    @pytest.mark.parametrize(("epsilon", "loss"), [(0.1, 0.113061), (0.5, 0.577970), (1, 1.194567)])
    def test_allocation_that_follows_the_data_degrades(self, epsilon, loss):
        """A record changes strata of 15 each: a rounded tenth draws 2 and 2, then 1 and 2."""
        before = {
            ones: log_densities(ones, (15, 15), (2, 2), epsilon) for ones in product(range(16), repeat=2)
        }
        after = {
            ones: log_densities(ones, (14, 16), (1, 2), epsilon) for ones in product(range(15), range(17))
        }
        worst = max(
            np.abs(before[first + old, second] - after[first, second + new]).max()
            for old, new in product((0, 1), repeat=2)
            for first, second in product(range(15), range(16))
        )
        assert worst == close(loss, 6)
        assert worst > epsilon


class TestTwoStageSampling:
    @pytest.mark.parametrize(
        ("swapped", "loss"),
        [
            (1, 0.03378833),
            (2, 0.07669965),
            (5, 0.25852949),
            (10, 0.29511073),
            (20, 0.29539452),
        ],
    )
    def test_printed_values(self, swapped, loss):
        assert two_stage_sampling(1.0, 0.1, 0.2, swapped).epsilon == close(loss, 8)

    def test_bound_by_exhaustion(self):
        """One of two clusters of three, then two of its three units; a count does not attain it.

        The release that does is a noisy count of the records that differ from a target sample.
        """
        samples = [units for cluster in ((0, 1, 2), (3, 4, 5)) for units in combinations(cluster, 2)]
        target = Counter("ab")

        def density(records: tuple[str, ...]) -> float:
            drawn = (Counter(records[unit] for unit in sample) for sample in samples)
            return sum(math.exp(-0.7 * (target - sample).total()) for sample in drawn)

        worst = max(
            abs(math.log(density((old, *others)) / density((new, *others))))
            for others in product("abc", repeat=5)
            for old, new in combinations("abc", 2)
        )
        loss = two_stage_sampling(0.7, 0.5, 2 / 3, 2).epsilon
        assert loss == close(0.372655908166, 12)
        assert loss == close(worst, 12)
        assert max(exhaustive_losses([(1 / 6, s) for s in samples], 6, 0.7)) < loss

    def test_only_the_last_stage_amplifies_large_takes(self):
        assert two_stage_sampling(1.0, 0.1, 0.2, 2000).epsilon == close(0.295394529120, 12)

    @law
    @given(losses, rates, rates)
    def test_single_swaps_multiply_the_rates(self, epsilon, p, q):
        loss = two_stage_sampling(epsilon, p, q, 1).epsilon
        assert loss == pytest.approx(amplify(epsilon, p * q), rel=1e-9)
        assert two_stage_sampling(epsilon, 1.0, q, 7).epsilon == pytest.approx(amplify(epsilon, q), rel=1e-9)

    @law
    @given(losses, rates, rates, rates, st.integers(1, 40), st.integers(1, 40))
    def test_is_monotone_in_every_argument(self, epsilon, p, q, other, k, m):
        def loss(first: float, second: float, swapped: int) -> float:
            return two_stage_sampling(epsilon, first, second, swapped).epsilon * (1 + 1e-12)

        assert loss(min(p, other), q, k) <= loss(max(p, other), q, k) * (1 + 1e-12)
        assert loss(p, min(q, other), k) <= loss(p, max(q, other), k) * (1 + 1e-12)
        assert loss(p, q, min(k, m)) <= loss(p, q, max(k, m)) * (1 + 1e-12)

    @pytest.mark.parametrize("epsilon", [1e-6, 0.7, 5.0, 60.0])
    @pytest.mark.parametrize("swapped", [1, 2, 9, 400])
    @pytest.mark.parametrize(("first", "second"), [(1e-9, 0.4), (0.3, 1.0), (1.0, 0.4)])
    def test_never_understates(self, epsilon, swapped, first, second):
        with localcontext() as context:
            context.prec = 120
            p, q = Decimal(first), Decimal(second)
            fade = (-(swapped - 1) * Decimal(epsilon)).exp()
            exact = exact_amplification(epsilon, p * q / (p + (1 - p) * fade))
            value = Decimal(two_stage_sampling(epsilon, first, second, swapped).epsilon)
            assert exact <= value <= exact * (1 + Decimal("1e-11"))


CLUSTER_EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0)
CLUSTER_TABLE = [
    (0.1, 1, (0.010462, 0.028007, 0.062855, 0.158565, 0.494029)),
    (0.1, 2, (0.011437, 0.034848, 0.095710, 0.335464, 1.355971)),
    (0.1, 3, (0.012489, 0.043036, 0.140182, 0.573627, 1.869479)),
    (0.1, 5, (0.014843, 0.063806, 0.256561, 0.906290, 1.997394)),
    (0.1, 10, (0.022322, 0.136067, 0.463581, 0.999298, 2.000000)),
    (0.1, 15, (0.032146, 0.201576, 0.496792, 0.999995, 2.0)),
    (0.1, 20, (0.043852, 0.233891, 0.499735, 1.0, 2.0)),
    (0.1, 50, (0.094005, 0.249990, 0.500000, 1.0, 2.0)),
    (0.01, 1, (0.001051, 0.002836, 0.006466, 0.017037, 0.061933)),
    (0.01, 5, (0.001560, 0.007562, 0.044070, 0.476720, 1.971813)),
    (0.01, 10, (0.002546, 0.024536, 0.269222, 0.992341, 1.999999)),
    (0.01, 15, (0.004130, 0.068773, 0.466878, 0.999948, 2.0)),
]


class TestClusterSampling:
    @pytest.mark.parametrize(("probability", "size", "row"), CLUSTER_TABLE)
    def test_printed_values(self, probability, size, row):
        computed = tuple(cluster_sampling(e, probability, size).epsilon for e in CLUSTER_EPSILONS)
        assert computed == tuple(close(loss, 6) for loss in row)

    @pytest.mark.parametrize(("drawn", "loss"), [(1, 0.459123734839), (2, 0.595102113261)])
    def test_whole_clusters_by_exhaustion(self, drawn, loss):
        clusters = [range(3 * c, 3 * c + 3) for c in range(4)]
        assert cluster_sampling(0.7, drawn / 4, 3).epsilon == close(loss, 12)
        twin = exhaustive_losses(cluster_design(clusters, drawn), 12, 0.7)
        assert twin == [close(loss, 12)] * 12

    @law
    @given(losses, rates, st.integers(1, 100))
    def test_lies_between_simple_random_sampling_and_no_sampling(self, epsilon, probability, size):
        loss = cluster_sampling(epsilon, probability, size).epsilon
        assert amplify(epsilon, probability) <= loss * (1 + 1e-14)
        assert loss <= epsilon

    def test_clusters_never_drawn_lose_nothing(self):
        assert cluster_sampling(900.0, 0.0, 30).epsilon == 0.0
        assert cluster_sampling(math.inf, 0.5, 1).epsilon == math.inf


class TestSystematicSampling:
    def test_printed_values(self):
        assert systematic_sampling(0.5, 10, 10, "known").epsilon == close(0.463581056824, 12)
        assert systematic_sampling(0.5, 10, 10, "random").epsilon == close(0.062854723474, 12)

    def test_known_order_by_exhaustion(self):
        loss = systematic_sampling(0.7, 3, 3, "known").epsilon
        starts = [range(start, 9, 3) for start in range(3)]
        assert exhaustive_losses(cluster_design(starts, 1), 9, 0.7) == [close(loss, 12)] * 9

    def test_random_order_is_a_simple_random_sample(self):
        assert systematic_sampling(0.7, 3, 2, "random").epsilon == close(0.291114352302, 12)


class TestChainOfStages:
    @pytest.mark.parametrize(
        ("stages", "loss"),
        [
            ([0.2], 0.295394529),
            ([0.1, 0.2], 0.033788327),
            ([0.95, 0.1, 0.2], 0.032125752),
            ([0.95], 0.967883721),
            ([0.9], 0.934701664),
            ([], 1.0),
            ([0.5, 0.0], 0.0),
        ],
    )
    def test_printed_values(self, stages, loss):
        assert chain_of_stages(1.0, stages, "add-remove").epsilon == close(loss)

    def test_delta_is_scaled_by_every_stage(self):
        loss = chain_of_stages(1.0, [0.1, 0.2], "replace-one", delta=1e-6)
        assert loss.delta == pytest.approx(2e-8)
        assert loss.relation == "replace-one"


SHARED_TABLE = [
    (0.1, 0.0209243439, 0.0218987385),
    (0.25, 0.0560133358, 0.0628547235),
    (0.5, 0.1257094469, 0.1585650787),
    (1.0, 0.3171301575, 0.4940287080),
    (1.5, 0.5974946132, 1.0676559447),
    (2.0, 0.9880574161, 1.8499992894),
    (3.0, 2.1353118894, 3.7194784760),
    (4.0, 3.6999985788, 5.7004295221),
    (5.0, 5.5125776849, 7.6978234229),
    (10.0, 15.3956468458, 17.6974149256),
]


class TestSharedSample:
    def test_section_6_5_2_example(self):
        loss = shared_sample([1.0, 2.0], 0.1, "replace-one")
        assert loss.epsilon == close(1.067656, 6)
        assert loss.parts == (close(0.158565, 6), close(0.494029, 6))
        assert sum(loss.parts) == close(0.652594, 6)

    @pytest.mark.parametrize(("epsilon", "naive", "true"), SHARED_TABLE)
    def test_figure_6_1(self, epsilon, naive, true):
        loss = shared_sample([epsilon, epsilon], 0.1, "replace-one")
        assert sum(loss.parts) == close(naive, 10)
        assert loss.epsilon == close(true, 10)

    def test_five_releases(self):
        loss = shared_sample([0.5] * 5, 0.05, "add-remove")
        assert sum(loss.parts) == close(0.159606, 6)
        assert loss.epsilon == close(0.444125, 6)

    def test_gap_of_the_naive_sum_tends_to_the_log_of_the_inverse_rate(self):
        loss = shared_sample([60.0, 60.0], 0.1, "replace-one")
        assert loss.epsilon - sum(loss.parts) == close(2.302585, 6)

    @law
    @given(st.lists(st.floats(0.01, 10), min_size=2, max_size=5), st.floats(0.001, 0.999))
    def test_naive_sum_always_understates(self, epsilons, rate):
        loss = shared_sample(epsilons, rate, "replace-one")
        assert sum(loss.parts) < loss.epsilon

    def test_no_release_loses_nothing(self):
        assert shared_sample([], 0.1, "replace-one").epsilon == 0.0

    def test_two_counts_of_one_sample_by_exhaustion(self):
        """The same count twice, on one sample of 2 of 5: the loss of both outputs together."""
        samples = list(combinations(range(5), 2))

        def density(ones: set[int], first: int, second: int) -> float:
            counts = [len(ones & set(sample)) for sample in samples]
            return sum(math.exp(-0.4 * abs(first - c) - 0.9 * abs(second - c)) for c in counts)

        worst = max(
            abs(math.log(density(ones | {0}, *outputs) / density(ones, *outputs)))
            for size in range(5)
            for ones in map(set, combinations(range(1, 5), size))
            for outputs in product(range(-1, 4), repeat=2)
        )
        assert shared_sample([0.4, 0.9], 0.4, "replace-one").epsilon == close(worst, 12)


class TestIndependentSamples:
    def test_ledger_rule(self):
        first = shared_sample([1.0, 2.0], 0.1, "replace-one")
        second = shared_sample([1.5], 0.05, "replace-one")
        total = independent_samples([first, second])
        assert total.epsilon == close(1.228144600057, 12)
        assert sum((*first.parts, *second.parts)) == close(0.813082442)
        assert total.parts == (first.epsilon, second.epsilon)

    def test_deltas_add_up(self):
        sample = simple_random_sampling(1.0, 1, 2, delta=0.8)
        assert independent_samples([sample]).delta == sample.delta
        assert independent_samples([sample] * 3).delta == 1.0

    def test_relations_do_not_mix(self):
        with pytest.raises(InputError) as refusal:
            independent_samples([poisson_sampling(1.0, [0.1]), simple_random_sampling(1.0, 1, 10)])
        assert refusal.value.field == "samples"


class TestCoordinatedSamples:
    @pytest.mark.parametrize(
        ("arguments", "loss"),
        [
            ((1.0, 2.0, 0.0, 0.0, 0.1), 1.067655945),
            ((1.0, 2.0, 0.09, 0.09, 0.01), 0.652593787),
            ((1.0, 2.0, 0.1, 0.1, 0.0), 0.593732173),
            ((0.1, 3.0, 0.3, 0.3, 0.0), 1.934894439),
        ],
    )
    def test_printed_values(self, arguments, loss):
        assert coordinated_samples(*arguments).epsilon == close(loss)

    @law
    @given(losses, losses, rates)
    def test_full_overlap_is_a_shared_sample(self, first, second, rate):
        loss = coordinated_samples(first, second, 0.0, 0.0, rate).epsilon
        shared = shared_sample([first, second], rate, "replace-one").epsilon
        assert loss == pytest.approx(shared, rel=1e-9, abs=1e-12)

    @law
    @given(losses, losses, st.floats(0, 1), st.floats(0, 1))
    def test_never_below_a_grid_of_densities(self, first, second, share, overlap):
        only_first, both = share * (1 - overlap), share * overlap
        only_second = (1 - share) * overlap
        loss = coordinated_samples(first, second, only_first, only_second, both).epsilon
        neither = 1 - only_first - only_second - both
        for s, t in product(np.linspace(0, 1, 5), repeat=2):
            a, b = math.exp(-first * s), math.exp(-second * t)
            x, y = a * math.exp(first), b * math.exp(second)
            above = neither + only_first * x + only_second * y + both * x * y
            below = neither + only_first * a + only_second * b + both * a * b
            if below > 1e-9:
                assert math.log(above / below) <= loss + 1e-6


BAD_CALLS = [
    (lambda: amplify(-0.1, 0.5), "epsilon"),
    (lambda: amplify(math.nan, 0.5), "epsilon"),
    (lambda: amplify(1.0, 1.5), "rate"),
    (lambda: amplify(1.0, -0.5), "rate"),
    (lambda: amplify(1.0, math.nan), "rate"),
    (lambda: deamplify(math.nan, 0.5), "epsilon"),
    (lambda: deamplify(1.0, 2.0), "rate"),
    (lambda: simple_random_sampling(1.0, 11, 10), "size"),
    (lambda: simple_random_sampling(1.0, -1, 10), "size"),
    (lambda: simple_random_sampling(1.0, 0, 0), "population"),
    (lambda: simple_random_sampling(1.0, 1, 10, delta=1.5), "delta"),
    (lambda: poisson_sampling(1.0, []), "probabilities"),
    (lambda: poisson_sampling(1.0, [0.5, 1.2]), "rate"),
    (lambda: poisson_sampling_replaced(math.nan, 0.5), "epsilon"),
    (lambda: sampling_with_replacement(1.0, -1, 10), "draws"),
    (lambda: sampling_with_replacement(1.0, 1, 0), "population"),
    (lambda: stratified_sampling(1.0, [1], [2, 3]), "sizes"),
    (lambda: stratified_sampling(1.0, [], []), "sizes"),
    (lambda: stratified_sampling(1.0, [3, 4], [3, 3]), "size"),
    (lambda: two_stage_sampling(1.0, 1.1, 0.5, 2), "first"),
    (lambda: two_stage_sampling(1.0, 0.5, math.nan, 2), "second"),
    (lambda: two_stage_sampling(1.0, 0.5, 0.5, 0), "swapped"),
    (lambda: cluster_sampling(1.0, 1.5, 2), "probability"),
    (lambda: cluster_sampling(1.0, 0.5, 0), "size"),
    (lambda: systematic_sampling(1.0, 0, 5, "known"), "interval"),
    (lambda: systematic_sampling(1.0, 5, 0, "random"), "size"),
    (lambda: systematic_sampling(1.0, 5, 5, "sorted"), "order"),
    (lambda: chain_of_stages(1.0, [0.5, 2.0], "add-remove"), "rates"),
    (lambda: chain_of_stages(1.0, [0.5], "either"), "relation"),
    (lambda: shared_sample([1.0, -1.0], 0.5, "replace-one"), "epsilon"),
    (lambda: shared_sample([1.0], 0.5, None), "relation"),
    (lambda: independent_samples([]), "samples"),
    (lambda: coordinated_samples(1.0, 1.0, 0.6, 0.6, 0.0), "only_first, only_second, both"),
    (lambda: coordinated_samples(1.0, math.inf, 0.1, 0.1, 0.0), "first, second"),
]


@pytest.mark.parametrize(("call", "field"), BAD_CALLS)
def test_refuses_with_the_field_at_fault(call, field):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.field == field
    assert refusal.value.expected
    assert refusal.value.hint
