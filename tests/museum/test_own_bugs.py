"""Bugs of our own list: every broken mechanism is refuted, every twin is not, and certificates by hand."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise, permutations

import pytest

from stirred.audit import Tape
from stirred.museum import swapping, topdown, units
from stirred.noise import TestSource
from stirred.spec import Exact, swapping_loss
from stirred.swap import pattern_records
from stirred.swap.enumeration import exact_loss, stratum_outcomes

EXHIBITS = {e.key: e for e in (*swapping.EXHIBITS, *topdown.EXHIBITS, *units.EXHIBITS)}


def broken(key, seed=0):
    found = EXHIBITS[key].examine(True, TestSource(seed))
    assert found.violated
    return found


def chances(key):
    """The two probabilities of the certificate's event, the larger first, after a check of the numbers."""
    certificate = broken(key).certificate
    pair = sorted(certificate.probabilities, reverse=True)
    if pair[1] and certificate.distance.rational:
        assert Exact.log(pair[0] / pair[1]) / certificate.distance.rational == certificate.measured
    else:
        assert certificate.measured.is_infinite
    assert certificate.measured > certificate.claimed
    return tuple(pair)


def test_keys_are_unique_and_speak():
    listed = (*swapping.EXHIBITS, *topdown.EXHIBITS, *units.EXHIBITS)
    assert len(EXHIBITS) == len(listed) == 23
    assert all(e.key == e.key.lower() and " " not in e.key and e.title.endswith(".") for e in listed)


@pytest.mark.parametrize("key", EXHIBITS)
def test_the_broken_mechanism_is_refuted(key):
    for seed in range(3):
        found = broken(key, seed)
        assert found.certificate is not None or found.audit in {"conformity", "accounting"}


@pytest.mark.parametrize("key", EXHIBITS)
def test_the_twin_is_not(key):
    for seed in range(3):
        found = EXHIBITS[key].examine(False, TestSource(seed))
        assert found.verdict.value == "not refuted", found.sentence


@pytest.mark.parametrize(
    "key",
    [
        "pairwise-swaps",
        "cyclic-derangement",
        "input-order",
        "missing-invariant",
        "toy-topdown-wrong-scale",
        "replace-one-as-add-remove",
        "broadcast-keys",
        "imputation-donor",
    ],
)
def test_these_twins_attain_their_claim_so_nothing_smaller_would_hold(key):
    assert EXHIBITS[key].examine(False, TestSource(0)).details["attained"]


def test_pairwise_swaps_do_not_reach_a_cycle():
    # Odds 3, three different records. Nobody is selected with weight 1, each pair with 9, and one or three
    # are drawn anew: an exchange has 9/28. From the data set a three-cycle away it cannot come out.
    assert chances("pairwise-swaps") == (Fraction(9, 28), 0)


def test_a_fixed_number_of_swaps_cannot_leave_all_in_place():
    # Three pairs, each alike; from a data set to itself, or a three-cycle away, there is no exchange.
    assert chances("fixed-number-of-swaps") == (Fraction(1, 3), 0)


def test_single_cycles_do_not_reach_two_exchanges():
    # Weights 1, 6 x 9, 4 x 27 and 81 for selections of 0, 2, 3 and 4 records: 244. Three of the nine
    # derangements of four records are two disjoint exchanges, which Sattolo's shuffle never draws.
    records = [(i, i) for i in range(4)]
    law = stratum_outcomes(records, Fraction(3, 4), derange=swapping.in_one_cycle)
    assert law[(0, 0), (1, 1), (2, 2), (3, 3)] == Fraction(1, 244)
    assert ((0, 1), (1, 0), (2, 3), (3, 2)) not in law
    assert len(law) == 24 - 3
    assert chances("cyclic-derangement")[1] == 0


def test_single_cycles_are_no_bug_up_to_three_records():
    # Every derangement of two or three records is a single cycle.
    for count in (2, 3):
        everyone = tuple(range(count))
        assert swapping.in_one_cycle((), everyone) == swapping.uniform_derangements((), everyone)


def test_wrong_b_by_theorem_b():
    # Theorem B is exact for different records: the ratio is o^-2 d(4)/d(2) = 19^2 x 9 at distance 2, so the
    # loss is ln(57). Theorem 1 with the median stratum, b = 1, says ln(2 x 19).
    found = broken("wrong-b")
    first, second = chances("wrong-b")
    assert first / second == 19**2 * 9
    assert found.measured == Exact.log(57) and found.claimed == Exact.log(38)
    assert found.certificate.distance == Exact.of(2)


def test_a_median_of_two_would_have_gone_unseen():
    # ln(2 + 1) - ln o is exactly the tighter loss of four records: a claim with b = 2 holds by luck.
    rate = Fraction(1, 20)
    assert exact_loss(pattern_records((1,) * 4, (1,) * 4), rate).loss == swapping_loss(2, rate)


def test_input_order_tells_data_sets_at_distance_zero_apart():
    assert broken("input-order").certificate.distance.is_zero
    # b = 2, odds 3: nothing moves with weight 1 and both with 9.
    assert chances("input-order")[1] == 0
    assert chances("input-order")[0] in {Fraction(1, 10), Fraction(9, 10)}


def test_joint_rates_by_hand():
    # Odds 99 for the record (2, 2), else 1/99. With it Z = 1 + (1 + 1 + 1/9801) + 1/99 = 29503/9801, and its
    # exchange with another record has 1/Z. Without it Z' = 1 + 3/9801 + 1/99^3, and each three-cycle has
    # (1/99^3)/(2 Z') = 1/1941194. The claim is ln(4) + ln(99).
    assert chances("rates-of-both") == (Fraction(9801, 29503), Fraction(1, 1941194))
    assert broken("rates-of-both").claimed == Exact.log(396)


def test_without_the_holding_table_in_the_multiverse_one_record_may_change_it():
    # a1, a2 can only come out as itself: all holding values are equal. a1, b2 cannot give it.
    assert chances("missing-invariant") == (1, 0)
    assert broken("missing-invariant").certificate.distance == Exact.of(1)


def test_no_vacuous_swaps_by_hand():
    # Odds 3. From {a1, a1, b2}: nobody 1, two pairs with b2 9 each, all three 27; stays with 1/46. From
    # {a1, a2, b1}: nobody 1, the pair a2, b1 9, all three 27; leaves with 36/37. Two records move.
    assert chances("no-vacuous") == (Fraction(36, 37), Fraction(1, 46))


def _repaired_weights(records, selected):
    shuffles = [tuple(swapping.repaired(list(order), list(selected))) for order in permutations(selected)]
    return Counter(shuffles) if len(selected) != 1 else {}


def test_the_repaired_shuffle_is_biased():
    assert sorted(_repaired_weights((), (0, 1, 2)).values()) == [1, 5]
    weights = _repaired_weights((), (0, 1, 2, 3))
    assert sum(weights.values()) == 24 and len(weights) == 9
    assert sorted(weights.values()) == [1, 1, 2, 2, 2, 2, 2, 4, 8]


def test_the_repaired_shuffle_breaks_theorem_1_only_from_five_records_on():
    # On fewer the slack of Theorem 1 hides it: conformity finds what the loss does not show.
    rate = Fraction(1, 2)
    for count, above in ((3, False), (4, False), (5, True)):
        records = pattern_records((1,) * count, (1,) * count)
        loss = exact_loss(records, rate, derange=_repaired_weights).loss
        assert (loss > swapping_loss(count, rate)) == above


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("peeking-post-processing", "persons by block"),
        ("data-dependent-geography", "primitive 3 (total by block)"),
        ("data-dependent-budget", "primitive 1 (total by county)"),
        ("undeclared-invariant", "persons by block"),
        ("topdown-add-remove-noise", "primitive 3 (total by block)"),
    ],
)
def test_replay_names_the_place(key, where):
    found = broken(key)
    assert found.details["first difference"] == where
    assert found.certificate.distance == Exact.of(1)


def test_the_tape_holds_all_measurements_and_they_spend_the_budget():
    mechanism, tape = topdown._topdown(), Tape(TestSource(3))
    data = topdown._persons(*topdown.STAYED)
    artefacts = topdown.run(mechanism, data, tape)
    assert sum(call.cost.square for call in tape.calls) == topdown.RHO_SQUARED
    prepared = mechanism.prepare(data)
    made = mechanism.finish(mechanism.draw(prepared, TestSource(3).child(0)), prepared.public)
    for level in topdown.LEVELS:
        assert made.products["person"].table(level, "detailed").rows() == artefacts[f"persons by {level}"]


def test_the_toy_estimates_are_consistent_and_lose_both_measurements():
    # (2, 0) comes out only if total 2 and blocks 2, 0 were measured: between two persons in block a and one,
    # total and block each contribute a factor of 4.
    assert [t for t in _measurable() if topdown.estimated(*t) == (2, 0)] == [(2, 2, 0)]
    assert all(sum(topdown.estimated(*t)) == t[0] and min(topdown.estimated(*t)) >= 0 for t in _measurable())
    first, second = chances("toy-topdown-wrong-scale")
    assert first / second == 4 * 4


def _measurable():
    return [(t, a, b) for t in range(3) for a in range(3) for b in range(3)]


def test_clamped_geometric_noise_loses_exactly_its_ratio():
    # Ends take the tails: r^k/(1+r). Neighbouring counts have ratio at most 1/r, attained at the ends.
    ratio = Fraction(1, 3)
    laws = [units.clamped_geometric(count, ratio, 4) for count in range(5)]
    assert all(sum(law.values()) == 1 for law in laws)
    assert laws[1][0] == ratio / (1 + ratio) and laws[1][1] == (1 - ratio) / (1 + ratio)
    for law, other in pairwise(laws):
        assert max(max(law[z] / other[z], other[z] / law[z]) for z in law) == 1 / ratio


def test_replacing_a_record_moves_two_counts():
    # From (2, 0) to (1, 1) with ratio 1/4: (4/5)^2 against (1/5)^2 for the output (2, 0).
    assert chances("replace-one-as-add-remove") == (Fraction(16, 25), Fraction(1, 25))


def test_the_mass_at_the_threshold():
    # P(1 + Z >= 3) = r^2/(1+r) = 1/6 for r = 1/2; without Z = 2 it is 1/12. The key cannot come out without
    # its record, so any event of more than delta refutes the claim.
    certificate = broken("threshold-mass").certificate
    absent, present = certificate.probabilities
    assert absent == 0 and Fraction(1, 12) < present <= Fraction(1, 6)


def test_broadcast_noise_cancels_in_differences():
    # (c + Z) - (d + Z) = c - d: an output shows the difference, which one record changes.
    assert chances("broadcast-keys") == (Fraction(2, 5), 0)


def test_one_sample_for_two_releases():
    # Rate 1/2 and odds 3: (1/2)(9/16) + (1/2)(1/16) = 5/16 against 1/16. Two samples would lose
    # 2 ln(1 + (3 - 1)/2) = ln 4. In general 1 + q(r^2 - 1) - (1 + q(r - 1))^2 = q(1 - q)(r - 1)^2 > 0.
    assert chances("shared-sample") == (Fraction(5, 16), Fraction(1, 16))
    assert Exact.log(4) <= broken("shared-sample").claimed < Exact.log(5)
    for q in (Fraction(1, 10), Fraction(9, 10)):
        for r in (Fraction(11, 10), Fraction(20)):
            assert 1 + q * (r**2 - 1) - (1 + q * (r - 1)) ** 2 == q * (1 - q) * (r - 1) ** 2 > 0


def test_a_donor_loses_twice():
    # The first answer counts twice. From 0 to 2 of 3 with ratio 1/2: 2/3 against (2/3)/4 for the output 0.
    assert chances("imputation-donor") == (Fraction(2, 3), Fraction(1, 6))
