"""The statistical audit: quiet on true claims, loud on false ones, with certificates that can be rechecked.

Seeds are fixed. At alpha = 1e-6 a change of seed raises a false alarm once in a million.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stirred.audit import Verdict, binomial, statistical_audit
from stirred.audit.events import Atoms, Event, Intervals, LowBits, View
from stirred.audit.statistical import loss_of_bounds
from stirred.errors import InputError, Refusal
from stirred.noise import Source, TestSource, bernoulli, discrete_gaussian, discrete_laplace
from stirred.spec import (
    INFINITY,
    ZERO,
    Approximate,
    Budget,
    Domain,
    Exact,
    GaussianTradeOff,
    Multiplicative,
    NormalisedRenyi,
    Renyi,
    Specification,
    Trivial,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.blocks.output_premetric import (
    ApproximateCurve,
    ChiSquared,
    DensityRatio,
    Hellinger,
    KullbackLeibler,
    TotalVariation,
    Wasserstein,
)

ONE = Exact.of(1)


def claimed(output: Any, budget: Budget, distance: object = 1, back: object = None) -> Specification:
    """A claim about the two points 0 and 1 at a distance."""
    return Specification(
        domain=Domain.finite((0, 1)),
        multiverse=Trivial(),
        input_premetric=Given(
            unit="unit", points=(0, 1), distances=((0, distance), (distance if back is None else back, 0))
        ),
        output_premetric=output,
        budget=budget,
    )


def pure(epsilon: object, distance: object = 1) -> Specification:
    return claimed(Multiplicative(), Budget.epsilon(epsilon), distance)


def audited(sample: Any, claim: Specification, draws: int = 30_000, seed: int = 1, **options: Any) -> Any:
    return statistical_audit(sample, [(0, 1)], claim, draws=draws, source=TestSource(seed), **options)


def laplace(x: int, count: int, source: Source) -> NDArray[np.int64]:
    """Loss one for each step of one."""
    return x + discrete_laplace(source, Fraction(1), count)


def gaussian(x: int, count: int, source: Source) -> NDArray[np.int64]:
    """Rho is 1/(2 sqrt 2), for sensitivity one and variance four."""
    return x + discrete_gaussian(source, Fraction(4), count)


def uniform(source: Source, count: int) -> NDArray[np.float64]:
    return ((source.words(count) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def float_laplace(x: int, count: int, source: Source) -> NDArray[np.float64]:
    """The textbook's formula in floats: the law is right, the set of floats that it reaches is not."""
    sign = np.where(source.child(1).words(count) & np.uint64(1), 1.0, -1.0)
    return x + sign * np.log(uniform(source.child(2), count))


def rounded_laplace(x: int, count: int, source: Source) -> NDArray[np.float64]:
    """The same on a lattice that does not depend on the data."""
    return np.round(float_laplace(x, count, source) * 2**20) * 2.0**-20


def coins(p: Fraction, q: Fraction) -> Callable[[int, int, Source], NDArray[np.int64]]:
    return lambda x, count, source: bernoulli(source, q if x else p, count).astype(np.int64)


@pytest.mark.parametrize("seed", range(5))
def test_a_true_claim_is_not_refuted(seed: int) -> None:
    finding = audited(laplace, pure(1), seed=seed)
    assert finding.audit == "statistical" and finding.verdict is Verdict.NOT_REFUTED
    assert Exact.of("0.85") < finding.measured < ONE
    assert finding.claimed == ONE and finding.certificate is None
    assert "verified" not in finding.sentence


@pytest.mark.parametrize("seed", range(3))
def test_a_claim_1_2_times_too_small_is_refuted(seed: int) -> None:
    draws = 3 * binomial.draws_for_power(5 / 6, 1.2, 0.999, 1e-6, 16) // 2
    finding = audited(laplace, pure("5/6"), draws=draws, seed=seed)
    assert finding.violated
    assert Exact.of("5/6") < finding.measured < ONE


def test_the_loss_is_for_each_unit_of_distance() -> None:
    """Laplace noise of scale one on two points at distance two: half the loss for each unit."""
    assert audited(laplace, pure("1/2", 2)).verdict is Verdict.NOT_REFUTED
    assert audited(laplace, pure("5/12", 2)).violated
    assert audited(laplace, pure("5/12", 1)).violated


def test_directions_are_divided_by_their_own_distance() -> None:
    there = claimed(Multiplicative(), Budget.epsilon("3/5"), distance=2, back=1)
    finding = audited(laplace, there)
    assert finding.violated and finding.certificate.pair == (1, 0) and finding.certificate.distance == ONE
    both = claimed(Multiplicative(), Budget.epsilon("3/5"), distance=2, back="inf")
    assert audited(laplace, both).verdict is Verdict.NOT_REFUTED


def test_points_at_distance_zero_may_not_differ_at_all() -> None:
    finding = audited(laplace, pure(100, 0))
    assert finding.violated and finding.measured == INFINITY
    same = audited(lambda x, count, source: laplace(0, count, source), pure(100, 0))
    assert same.verdict is Verdict.NOT_REFUTED and same.measured == ZERO


def test_a_certificate_can_be_derived_by_hand() -> None:
    """Answers that are yes with probability 3/4 and 1/4: one event of interest and its complement."""
    draws, alpha, events = 9_000, 1e-6, 4
    finding = audited(
        coins(Fraction(3, 4), Fraction(1, 4)), pure("1/2"), draws=draws, alpha=alpha, events=events
    )
    certificate = finding.certificate
    chosen = coins(Fraction(3, 4), Fraction(1, 4))
    x, y = certificate.pair
    fresh = [chosen(point, 6_000, TestSource(1).child(0).child(point).child(1)) for point in (x, y)]
    hits = [int(certificate.event.contains(answers).sum()) for answers in fresh]
    share = alpha / (1 * 2 * events * 2)
    low, high = binomial.lower(hits[0], 6_000, share), binomial.upper(hits[1], 6_000, share)
    assert certificate.probabilities == (float(low), float(high))
    assert certificate.distance == ONE and certificate.claimed == Exact.of("1/2")
    loss = max(math.log(low / high), math.log((1 - high) / (1 - low)))
    assert loss - 1e-8 < float(certificate.measured) <= loss
    assert certificate.measured == finding.measured
    assert set(certificate.event.contains(np.array([0, 1])).tolist()) == {True, False}


def test_events_are_tested_on_draws_of_their_own() -> None:
    """A sampler that gives different answers when asked for the first time fools nobody."""

    def two_faced(x: int, count: int, source: Source) -> NDArray[np.int64]:
        return np.full(count, x) if count == 10_000 else laplace(0, count, source)

    assert audited(two_faced, pure(1), draws=30_000).verdict is Verdict.NOT_REFUTED


def test_false_alarms_are_rarer_than_alpha() -> None:
    """A tight claim, alpha one half: an audit without its corrections alarms most of the time."""
    alarms = sum(audited(laplace, pure(1), draws=1_500, seed=seed, alpha=0.5).violated for seed in range(60))
    assert alarms <= 6


def test_the_stated_power_is_reached() -> None:
    """Noise of a wide scale is Laplace noise, and half-lines are found on the draws for choosing."""
    claim, scale = Fraction(5, 6), Fraction(100)
    draws = 3 * binomial.draws_for_power(float(claim), 1.2, 0.9, 1e-3, 16) // 2 + 2

    def wide(x: int, count: int, source: Source) -> NDArray[np.int64]:
        return 100 * x + discrete_laplace(source, scale, count)

    findings = [audited(wide, pure(claim), draws=draws, seed=seed, alpha=1e-3) for seed in range(40)]
    assert findings[0].details["power"] == pytest.approx(0.9, abs=0.01)
    assert sum(finding.violated for finding in findings) >= 30


def test_the_details_say_what_could_have_been_shown() -> None:
    finding = audited(laplace, pure(1), draws=60_000, alpha=1e-5, events=5)
    assert finding.details["draws tested"] == 40_000
    assert finding.details["ceiling"] == pytest.approx(binomial.ceiling(40_000, 2e-5 / (2 * 5 * 2)), abs=1e-6)
    assert finding.details["power"] == pytest.approx(binomial.power(1, 1.2, 40_000, 1e-5, 10))
    assert "1.2 times too small" in finding.sentence
    assert "1.2 times" not in audited(gaussian, claimed(TotalVariation(), Budget.loss(1))).sentence


def test_a_budget_by_universe_is_refused() -> None:
    universes = Explicit(parts=((0, 1), (0,)))
    by_universe = pure(1).model_copy(
        update={"multiverse": universes, "budget": Budget.by_universe("epsilon", (1, 2))}
    )
    with pytest.raises(InputError, match="no single finite budget"):
        audited(laplace, by_universe)


TIGHT = [
    (Multiplicative(), Budget.epsilon, "ln(3)"),
    (Approximate(delta=Exact.of("1/10")), Budget.epsilon, "ln(13/5)"),
    (TotalVariation(), Budget.loss, "1/2"),
    (DensityRatio(), Budget.epsilon, "ln(9)"),
    (ChiSquared(), Budget.loss, "4/3"),
    (KullbackLeibler(), Budget.loss, "ln(3)/2"),
    (Hellinger(), Budget.loss, "sqrt(3)/2 + -1/2"),
    (Renyi(alpha=Exact.of(2)), Budget.epsilon, "ln(7/3)"),
    (GaussianTradeOff(), lambda mu: Budget.gdp(mu=mu), "1.3489795003921635"),
    (NormalisedRenyi(), lambda rho: Budget.zcdp(rho=rho), "0.741151903682"),
]


@pytest.mark.parametrize(("output", "budget", "loss"), TIGHT)
def test_every_premetric_that_post_processing_cannot_raise(output: Any, budget: Any, loss: str) -> None:
    """Two coins, 3/4 and 1/4, have the divergence in the table: a tenth less is refuted, itself is not."""
    sample = coins(Fraction(3, 4), Fraction(1, 4))
    exact = Exact.of(loss)
    kept = audited(sample, claimed(output, budget(exact)), draws=60_000)
    assert kept.verdict is Verdict.NOT_REFUTED
    assert float(kept.measured) > 0.9 * float(exact)
    assert audited(sample, claimed(output, budget(Exact.computed(float(exact) * 0.9))), draws=60_000).violated


def test_gaussian_noise_keeps_its_zcdp_claim_and_breaks_a_quarter_of_it() -> None:
    rho = "1/8"
    kept = audited(gaussian, claimed(NormalisedRenyi(), Budget.zcdp(rho_squared=rho)))
    assert kept.verdict is Verdict.NOT_REFUTED and kept.claimed == Exact.sqrt(rho)
    broken = audited(gaussian, claimed(NormalisedRenyi(), Budget.zcdp(rho_squared="1/32")))
    assert broken.violated and broken.claimed == Exact.sqrt("1/32")
    assert Exact.sqrt("1/32") < broken.measured < Exact.sqrt("1/8")


def test_approximate_claims_are_about_neighbours_only() -> None:
    near = Approximate(delta=Exact.of("1/1000"))
    assert audited(laplace, claimed(near, Budget.epsilon(1))).verdict is Verdict.NOT_REFUTED
    assert audited(laplace, claimed(near, Budget.epsilon("4/5"))).violated
    far = audited(laplace, claimed(near, Budget.epsilon("1/10"), 2))
    assert far.verdict is Verdict.VACUOUS and "neighbours" in far.sentence


def test_a_delta_forgives_an_event_as_rare_as_itself() -> None:
    """With probability 1/100 the answer names the data set."""

    def telling(x: int, count: int, source: Source) -> NDArray[np.int64]:
        return np.where(bernoulli(source, Fraction(1, 100), count), x, 2)

    assert audited(telling, pure(1)).violated
    forgiving = claimed(Approximate(delta=Exact.of("1/100")), Budget.epsilon("1/10"))
    assert audited(telling, forgiving).verdict is Verdict.NOT_REFUTED
    strict = claimed(Approximate(delta=Exact.of("1/500")), Budget.epsilon(1))
    assert audited(telling, strict).violated


def test_a_curve_of_deltas_is_tested_at_every_delta() -> None:
    curve = Budget.of_delta({"1/1000": 1, "1/10": "9/10"})
    assert audited(laplace, claimed(ApproximateCurve(), curve)).verdict is Verdict.NOT_REFUTED
    bent = Budget.of_delta({"1/1000": 1, "1/10": "1/2"})
    finding = audited(laplace, claimed(ApproximateCurve(), bent))
    assert finding.violated and finding.claimed == Exact.of("1/2") and "delta 1/10" in finding.sentence


@pytest.mark.parametrize("seed", range(3))
def test_float_noise_is_porous(seed: int) -> None:
    """The claim holds for the ideal law; the low bits of the floats break it, up to the ceiling."""
    finding = audited(float_laplace, pure(1), draws=100_000, seed=seed)
    assert finding.violated and finding.details["event"] == "low bits of a float"
    assert finding.measured > Exact.of(6)
    assert audited(rounded_laplace, pure(1), draws=100_000, seed=seed).verdict is Verdict.NOT_REFUTED


def test_floats_that_only_one_data_set_reaches() -> None:
    """Noise from a table of 4096 floats, without regard to lattices: each data set has its own outputs."""
    table = np.sort(-np.log(uniform(TestSource(9), 4096)))

    def tabulated(x: int, count: int, source: Source) -> NDArray[np.float64]:
        return x + table[(source.words(count) % np.uint64(4096)).astype(np.int64)]

    finding = audited(tabulated, pure(20), draws=30_000)
    assert finding.verdict is Verdict.NOT_REFUTED and finding.measured > Exact.of("6.9")
    assert audited(tabulated, pure(6), draws=30_000).violated


@pytest.mark.parametrize("mark", [np.nan, np.inf, -np.inf, -0.0])
def test_special_floats_are_outcomes_of_their_own(mark: float) -> None:
    def marked(x: int, count: int, source: Source) -> NDArray[np.float64]:
        values = laplace(x, count, source.child(1)).astype(np.float64)
        return np.where(bernoulli(source, Fraction(x, 20), count), mark, values)

    finding = audited(marked, pure(2))
    assert finding.violated and finding.certificate.pair == (1, 0)
    assert finding.certificate.event.contains(np.array([mark])).all()


def test_an_error_that_only_one_data_set_raises_is_a_violation() -> None:
    def failing(x: int, count: int, source: Source) -> NDArray[np.int64]:
        if x == 1:
            raise ZeroDivisionError("secret value")
        return laplace(x, count, source)

    finding = audited(failing, pure(5))
    assert finding.violated and finding.certificate.event == "raises ZeroDivisionError"
    assert finding.certificate.pair == (1, 0)
    assert "error channel" in finding.sentence and "secret" not in finding.sentence
    share = 1e-6 / 32
    low, high = binomial.lower(1_000, 1_000, share), binomial.upper(0, 20_000, share)
    assert finding.certificate.probabilities == (float(low), float(high))


def test_different_errors_tell_data_sets_apart_and_equal_ones_do_not() -> None:
    def failing(x: int, count: int, source: Source) -> Any:
        raise (ValueError, KeyError)[x]

    def equally(x: int, count: int, source: Source) -> Any:
        raise ValueError

    assert audited(failing, pure(2)).violated
    finding = audited(equally, pure(2))
    assert finding.verdict is Verdict.NOT_APPLICABLE and finding.details["failures"] == ["ValueError"]


def test_an_error_that_is_rare_on_both_data_sets_is_no_violation() -> None:
    """One batch raises and the other happens not to: that alone is no evidence."""

    def unlucky(x: int, count: int, source: Source) -> NDArray[np.int64]:
        if bernoulli(source, Fraction(1, 10**5), count).any() or (x == 1 and count > 1):
            raise ArithmeticError
        return laplace(0, count, source)

    assert audited(unlucky, pure("1/10")).verdict is Verdict.NOT_APPLICABLE


def test_labels_rows_and_mixed_outputs() -> None:
    """The same noise as text, as a column among others, and as a list: the same verdicts."""

    def text(x: int, count: int, source: Source) -> list[str]:
        return [f"noisy {value}" for value in laplace(x, count, source)]

    def rows(x: int, count: int, source: Source) -> NDArray[np.int64]:
        return np.stack([laplace(0, count, source.child(1)), laplace(x, count, source.child(2))], axis=1)

    def numbers(x: int, count: int, source: Source) -> list[float]:
        return [float(value) for value in laplace(x, count, source)]

    for sample in (text, rows, numbers):
        assert audited(sample, pure(1)).verdict is Verdict.NOT_REFUTED
        assert audited(sample, pure("4/5")).violated


def test_noise_that_two_columns_share_is_seen_across_them() -> None:
    def broadcast(x: int, count: int, source: Source) -> NDArray[np.int64]:
        noise = discrete_laplace(source, Fraction(10**7), count)
        return np.stack([noise + x, noise], axis=1)

    finding = audited(broadcast, pure(5))
    assert finding.violated and finding.measured > Exact.of(6)


def test_special_floats_in_rows() -> None:
    def marked(x: int, count: int, source: Source) -> NDArray[np.float64]:
        rows = np.stack([laplace(0, count, source.child(i)) for i in range(3)], axis=1).astype(np.float64)
        rows[bernoulli(source, Fraction(1 + 4 * x, 20), count), 1] = np.nan
        rows[bernoulli(source, Fraction(1, 20), count), 2] = np.inf
        return rows

    assert audited(marked, pure(1)).violated
    assert audited(marked, pure(2)).verdict is Verdict.NOT_REFUTED


def test_outputs_of_different_shape_tell_data_sets_apart() -> None:
    def keys(x: int, count: int, source: Source) -> NDArray[np.int64]:
        return np.stack([laplace(0, count, source.child(i)) for i in range(2 + x)], axis=1)

    def lists(x: int, count: int, source: Source) -> list[Any]:
        return [(float("nan"),) * (1 + x)] * count

    assert audited(keys, pure(5)).violated
    assert audited(lists, pure(5)).violated


def test_nan_in_labels_equals_itself() -> None:
    def lists(x: int, count: int, source: Source) -> list[Any]:
        return [("none", float("nan")) for _ in range(count)]

    finding = audited(lists, pure("1/100"))
    assert finding.verdict is Verdict.NOT_REFUTED and finding.measured == ZERO


def test_a_pair_from_different_universes_is_refused() -> None:
    apart = pure(1).model_copy(update={"multiverse": Explicit(parts=((0,), (1,)))})
    with pytest.raises(Refusal, match="different universes"):
        audited(laplace, apart)


def test_claims_that_nothing_refutes_are_refused() -> None:
    with pytest.raises(InputError, match="infinite budget"):
        audited(laplace, pure("inf"))
    with pytest.raises(InputError, match="infinitely far apart"):
        audited(laplace, pure(1, "inf"))
    with pytest.raises(InputError, match="post-processing may raise"):
        audited(laplace, claimed(Wasserstein(), Budget.loss(1)))
    with pytest.raises(InputError, match="nothing to compare"):
        statistical_audit(laplace, [], pure(1), source=TestSource(1))


@pytest.mark.parametrize(
    "wrong", [lambda x, n, s: [1] * (n - 1), lambda x, n, s: 7, lambda x, n, s: np.array(7)]
)
def test_a_sampler_that_does_not_give_its_draws_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="draws it was asked for"):
        audited(wrong, pure(1))


def test_outputs_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(InputError, match="cannot be compared"):
        audited(lambda x, n, s: [{"a": 1}] * n, pure(1))


@pytest.mark.parametrize(("draws", "select"), [(2, None), (100, 0.0), (100, 1.0)])
def test_no_draws_to_choose_or_test_are_refused(draws: int, select: float | None) -> None:
    with pytest.raises(InputError, match="no draws are left"):
        audited(laplace, pure(1), draws=draws, select=select)


class Sampled:
    def sample(self, data: int, count: int, source: Source) -> NDArray[np.int64]:
        return laplace(data, count, source)


class Released:
    def release(self, data: int, random: Any = None) -> int:
        return data

    def outcomes(self, data: int) -> dict[int, Fraction]:
        return {data: Fraction(1)}


def test_a_mechanism_is_sampled_by_its_method_or_told_what_is_missing() -> None:
    assert audited(Sampled(), pure(1)).record() == audited(laplace, pure(1)).record()
    with pytest.raises(InputError, match="no sample") as refused:
        audited(Released(), pure(1))
    assert "exact audit" in refused.value.hint


def test_the_record_holds_no_outputs() -> None:
    finding = audited(lambda x, n, s: [f"person {x}"] * n, pure(1))
    assert finding.violated and "person" not in str(finding.record())
    assert finding.certificate.event.contains(["person 0", "person 1"]).sum() == 1


def test_one_pair_of_several_is_enough() -> None:
    three = Specification(
        domain=Domain.finite((0, 1, 5)),
        multiverse=Trivial(),
        input_premetric=Given(unit="unit", points=(0, 1, 5), distances=((0, 1, 1), (1, 0, 1), (1, 1, 0))),
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(1),
    )
    source = TestSource(4)
    assert not statistical_audit(laplace, [(0, 1)], three, draws=30_000, source=source).violated
    finding = statistical_audit(laplace, [(0, 1), (1, 5)], three, draws=30_000, source=source)
    assert finding.violated and set(finding.certificate.pair) == {1, 5} and finding.details["pairs"] == 2


def test_loss_of_bounds_is_rounded_down_and_grows_with_better_bounds() -> None:
    outputs = [output for output, _, _ in TIGHT]
    for output in outputs:
        losses = [float(loss_of_bounds(output, p, 0.25, ONE)) for p in (0.2, 0.25, 0.3, 0.5, 0.75, 0.9)]
        assert losses == sorted(losses) and losses[1] == 0 < losses[-1]
        losses = [float(loss_of_bounds(output, 0.75, q, ONE)) for q in (0.6, 0.3, 0.1, 0.01)]
        assert losses == sorted(losses)
    assert loss_of_bounds(Multiplicative(), 0.75, 0.25, ONE) < Exact.log(3)


def test_the_cells_of_each_family() -> None:
    edges = Intervals(View(), np.array([0.0, 1.0]))
    values = np.array([-np.inf, -1.0, 0.0, 0.5, 1.0, 2.0, np.inf, np.nan])
    assert edges.cells(values).tolist() == [0, 1, 1, 2, 2, 3, 4, 5] and edges.size == 6
    lattice = LowBits(View(), absolute=True)
    exponents = lattice.cells(np.array([5e-324, 1.0, 3.0, 0.75, -0.75, 2.0**1023])) - 1074
    assert exponents.tolist() == [-1074, 0, 0, -2, -2, 1023]
    assert lattice.cells(np.array([0.0, np.nan])).tolist() == [lattice.size - 2, lattice.size - 1]
    trailing = LowBits(View(), absolute=False)
    assert trailing.cells(np.array([1.0, 3.0, 1 + 2.0**-52, 0.0, np.inf])).tolist() == [52, 51, 0, 53, 54]
    atoms = Atoms(
        View(), np.sort(np.array([1.0, -0.0]).view(np.int64)), np.array([0, 1]), 3, "single outcomes"
    )
    assert atoms.cells(np.array([-0.0, 1.0, 0.0, np.nan])).tolist() == [0, 1, 2, 2]
    assert Event(atoms, np.array([True, False, False])).contains(np.array([0.0, -0.0])).tolist() == [
        False,
        True,
    ]
