"""The published bugs: every one is found, every twin is quiet, and some certificates by hand."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import partial

import pytest

from stirred.audit import Verdict, audit_laws, replay_audit
from stirred.errors import Refusal
from stirred.museum import accounting, keys, noise, sensitivity
from stirred.museum.claims import REPLACE_IN_PLACE, claim, geometric
from stirred.noise import TestSource
from stirred.spec import Budget, Exact

EXHIBITS = {e.key: e for room in (sensitivity, keys, noise, accounting) for e in room.EXHIBITS}

NUMBERS = {
    1: ["noisy-max-range"],
    2: ["threshold-tie"],
    3: ["null-count"],
    4: ["nan-fill"],
    5: ["stale-truncation"],
    6: ["broadcast-noise"],
    7: ["biased-sampler"],
    8: ["replace-as-add-remove"],
    9: ["lower-bound-twice"],
    10: ["clip-unused"],
    11: ["missing-bounds"],
    12: ["odometer-log"],
    13: ["odometer-delta"],
    14: ["quantile-crash"],
    15: ["inferred-domain"],
    16: ["nan-clip"],
    17: ["public-size"],
    18: ["zero-by-parameter"],
    19: ["double-spending"],
    20: ["integer-halves"],
    21: ["float-noise", "float-addition"],
    22: ["rounded-laplace"],
}
UNNUMBERED = ["truncated-gaussian", "seed-reuse"]


def _found(key, broken=True):
    return EXHIBITS[key].examine(broken, TestSource(20261116))


def test_all_22_bugs_are_on_show_once():
    shown = [key for listed in NUMBERS.values() for key in listed]
    assert sorted(NUMBERS) == list(range(1, 23))
    assert sorted(shown + UNNUMBERED) == sorted(EXHIBITS)
    everything = [e for room in (sensitivity, keys, noise, accounting) for e in room.EXHIBITS]
    assert len(everything) == len(EXHIBITS) == len({e.title for e in everything})
    assert all(e.source and e.title.endswith(".") for e in everything)


@pytest.mark.parametrize("key", EXHIBITS)
def test_the_bug_is_found(key):
    found = _found(key)
    assert found.verdict is Verdict.VIOLATED
    assert found.certificate is not None or found.audit in {"conformity", "accounting"}


@pytest.mark.parametrize("key", EXHIBITS)
def test_the_twin_is_quiet(key):
    # A twin that refuses a column without bounds gives nothing to audit.
    expected = Verdict.NOT_APPLICABLE if key == "missing-bounds" else Verdict.NOT_REFUTED
    assert _found(key, broken=False).verdict is expected


@pytest.mark.parametrize("key", [key for key, e in EXHIBITS.items() if e.random])
def test_what_draws_is_found_and_quiet_whatever_the_draws(key):
    examine = EXHIBITS[key].examine
    assert all(examine(True, TestSource(seed)).violated for seed in range(20))
    assert not any(examine(False, TestSource(seed)).violated for seed in range(20))


@pytest.mark.parametrize("key", [key for key, e in EXHIBITS.items() if not e.random])
def test_what_does_not_draw_depends_on_no_draw(key):
    examine = EXHIBITS[key].examine
    assert len({examine(True, TestSource(seed)).sentence for seed in range(3)}) == 1


@pytest.mark.parametrize("broken", [True, False])
@pytest.mark.parametrize("key", EXHIBITS)
def test_no_sentence_holds_a_value_of_the_data(key, broken):
    found = _found(key, broken)
    text = str(found.record())
    certificate = found.certificate or _found(key).certificate
    values = [v for data in certificate.pair for v in data] if certificate else []
    for value in values:
        if isinstance(value, str) and len(value) > 1:
            assert value not in text.split()
        elif isinstance(value, int) and value > 10:
            assert str(value) not in re.findall(r"\d+", text)


# Replay: what is demanded, by hand


@pytest.mark.parametrize(
    ("key", "demanded"),
    [
        ("stale-truncation", "sqrt(2)"),
        ("replace-as-add-remove", "sqrt(2)"),
        ("double-spending", "2"),
        ("clip-unused", "41/10"),
        ("integer-halves", "3/2"),
        ("lower-bound-twice", "inf"),
        ("zero-by-parameter", "inf"),
        ("nan-fill", "inf"),
        ("nan-clip", "inf"),
    ],
)
def test_what_the_broken_mechanism_really_spends(key, demanded):
    found = _found(key)
    wanted = math.inf if demanded == "inf" else float(Exact.of(demanded))
    measured = found.certificate.measured
    assert math.isclose(float(measured), wanted) if wanted < math.inf else measured.is_infinite


def test_replaced_records_cost_four_times_the_rho_squared():
    found = _found("replace-as-add-remove")
    certificate = found.certificate
    assert math.isclose(float(certificate.measured) ** 2, 4 * float(certificate.claimed) ** 2)


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("missing-bounds", "sum"),
        ("null-count", "rows"),
        ("inferred-domain", "primitive 3"),
        ("public-size", "primitive 1 (mean)"),
        ("double-spending", "budget"),
    ],
)
def test_the_first_difference_is_named(key, where):
    assert _found(key).details["first difference"] == where


def test_a_negative_declared_sensitivity_is_a_finding_and_no_crash():
    def run(data, tape):
        return {"a": tape.draw("sum", data[0], lambda s: 0, sensitivity="-1/2", cost=1)}

    promised = claim(Budget.epsilon(1), REPLACE_IN_PLACE)
    assert replay_audit(run, (0,), (1,), promised, TestSource(1)).violated
    assert replay_audit(run, (1,), (1,), promised, TestSource(1)).verdict is Verdict.NOT_REFUTED


def test_half_the_range_holds_only_where_the_size_is_invariant():
    """A record more moves the sum by the whole range: the claim of the twin needs its universe."""
    with pytest.raises(Refusal, match="different universes"):
        replay_audit(
            partial(sensitivity.sized_sum, broken=False), ((3,),), (), sensitivity._SIZED, TestSource(1)
        )


# Exact laws, by hand


def test_permute_and_flip_by_hand():
    """Scores (0, 0): a fair coin. Scores (1, -1): the worse comes out if it is first and falls on heads."""
    assert accounting.noisy_max(("even",), broken=True) == {0: Fraction(1, 2), 1: Fraction(1, 2)}
    assert accounting.noisy_max(("first",), broken=True) == {0: Fraction(7, 8), 1: Fraction(1, 8)}
    assert accounting.noisy_max(("first",), broken=False) == {0: Fraction(4, 5), 1: Fraction(1, 5)}


def test_permute_and_flip_is_within_the_accounting_of_any_pure_mechanism():
    """The loss is above epsilon^2 / 8 by a factor of 1.78 here, and below epsilon^2 / 2."""
    epsilon = 2 * math.log(2)
    loss = float(_found("noisy-max-range").measured) ** 2
    assert epsilon**2 / 8 < loss < epsilon**2 / 2
    relative_entropy = 0.5 * math.log(4 / 7) + 0.5 * math.log(4)
    assert loss > relative_entropy > epsilon**2 / 8


def test_the_threshold_leaks_a_key_with_twice_the_delta():
    """P(1 + Z >= 4) = 1/12 and P(1 + Z > 4) = 1/24, for two-sided geometric noise of ratio 1/2."""
    assert Fraction(1, 24) == keys.DELTA
    for broken, chance in ((True, Fraction(1, 12)), (False, Fraction(1, 24))):
        law = keys.thresholded_key(("a",), broken=broken)
        assert 1 - law[None] == chance


def test_the_quantile_fails_from_1493_records_on():
    """As published: 1491 zeros and a one have a median, 1492 zeros and a one raise."""
    fine, one_more = ((*(0,) * zeros, 1) for zeros in (1491, 1492))
    assert keys.median_gap(fine, broken=True) == {(0, 1): 1}
    with pytest.raises(ZeroDivisionError):
        keys.median_gap(one_more, broken=True)
    assert keys.median_gap(one_more, broken=False) == {(0, 1): 1}


def test_the_odometer_by_hand():
    """Delta 0.01, 50 mechanisms, slack 0.005: 0.244 is reported, 0.398 is true."""
    public = (math.log(1.1), 0.01, 50, 0.005)
    broken = accounting.odometer(*public, without_log=False, rest_twice=True)
    assert round(broken.delta, 3) == 0.244
    assert round(accounting.odometer(*public, without_log=False, rest_twice=False).delta, 3) == 0.398
    found = _found("odometer-delta")
    assert found.certificate.probabilities[0] >= 1 - Fraction(99, 100) ** 50
    assert found.measured > found.claimed


def test_the_odometer_without_its_log_reports_too_much_and_breaks_no_promise():
    """The published bug 12 overstates the loss: what it claims is true, and not what its theorem says."""
    found = _found("odometer-log")
    assert found.certificate is None and "misstated" in found.sentence
    assert found.claimed > found.measured


def test_reach_and_rounding_do_not_change_the_law_of_noise():
    law = geometric(5)
    assert sum(law.values()) == 1
    assert law[0] == Fraction(1, 3) and law[1] == Fraction(1, 6) and law[5] == Fraction(1, 48)


def test_short_floats_have_two_significant_bits():
    assert [noise.rounded(n) for n in (0, 1, 3, 5, 7, -7, 9, 11)] == [0, 1, 3, 4, 8, -8, 8, 12]


def test_large_noise_cannot_give_a_small_float():
    """One is out of reach from eight: the noise would be -7, and that is no float of two bits."""
    assert 1 in noise.short_floats((0,), broken=True)
    assert 1 not in noise.short_floats((8,), broken=True)
    assert 1 in noise.short_floats((8,), broken=False)


# Bugs that break another promise than that of privacy


def test_rounded_laplace_keeps_the_claim_and_not_the_law():
    """The published bug 22 is as private as geometric noise: rounding is post-processing on the integers.

    With r = e^(-epsilon/2) the steepest ratio is P(0)/P(1) = 2 / (r + r^2), at most 1/r^2 for r below one.
    """
    promised = claim(Budget.epsilon("ln(4)"), REPLACE_IN_PLACE)
    root, tail = Fraction(1, 2), Fraction(1, 64)
    law = {0: 1 - root, -3: tail, 3: tail}
    law |= {z: root ** (2 * abs(z) - 1) * (1 - root**2) / 2 for z in (-2, -1, 1, 2)}
    declared = geometric(noise.LARGEST_NOISE, noise.RATIO)
    assert sum(law.values()) == 1 and root**2 == noise.RATIO
    assert law != declared and law[0] < declared[0]
    shifted = [_clamped(law, 0), _clamped(law, 1)]
    found = audit_laws(shifted, ((0,), (1,)), promised)
    assert found.verdict is Verdict.NOT_REFUTED
    assert found.measured == Exact.log(4)


def _clamped(law, x):
    """The law of x plus noise on -1 to 2, where clamped noise of size three or more is the same."""
    out = {}
    for z, mass in law.items():
        y = min(max(x + z, -1), 2)
        out[y] = out.get(y, 0) + mass
    return out


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_exact_numbers_are_the_same_for_every_reach(size):
    """Lumped tails: the masses inside do not depend on where the tails begin."""
    wide = geometric(size + 3)
    assert all(mass == wide[z] for z, mass in geometric(size).items() if abs(z) < size)
