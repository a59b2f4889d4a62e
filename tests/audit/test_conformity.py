"""The conformity audit: exact laws are not refuted, wrong ones are, and false alarms are bounded exactly."""

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stirred.audit import Verdict, conformity_audit
from stirred.audit.conformity import entropy_level
from stirred.errors import InputError
from stirred.noise import (
    Source,
    TestSource,
    bernoulli,
    discrete_gaussian,
    discrete_laplace,
    gaussian_mass,
    integers,
    laplace_mass,
)
from stirred.spec import ZERO, Exact

DIE = {face: Fraction(1, 6) for face in range(6)}
LAPLACE = {k: laplace_mass(Fraction(1), k) for k in range(-20, 21)}


def audited(sample: Any, law: Any, draws: int = 30_000, seed: int = 1, **options: Any) -> Any:
    return conformity_audit(sample, "data", law, draws=draws, source=TestSource(seed), **options)


def die(data: Any, count: int, source: Source) -> NDArray[np.int64]:
    return integers(source, 6, count).astype(np.int64)


def laplace(scale: Fraction) -> Any:
    return lambda data, count, source: discrete_laplace(source, scale, count)


@pytest.mark.parametrize("seed", range(5))
def test_a_sampler_that_has_the_law_is_not_refuted(seed: int) -> None:
    for sample, law in (
        (die, DIE),
        (laplace(Fraction(1)), LAPLACE),
        (
            lambda d, n, s: discrete_gaussian(s, Fraction(9), n),
            {k: gaussian_mass(Fraction(9), k) for k in range(-30, 31)},
        ),
    ):
        finding = audited(sample, law, seed=seed)
        assert finding.audit == "conformity" and finding.verdict is Verdict.NOT_REFUTED
        assert finding.measured < finding.claimed
        assert "verified" not in finding.sentence


def test_a_scale_that_is_off_is_found() -> None:
    finding = audited(laplace(Fraction(11, 10)), LAPLACE)
    assert finding.violated and finding.measured > ZERO
    found, mass = finding.certificate.probabilities
    assert finding.certificate.event == 0 and found < mass == LAPLACE[0].low


def test_an_outcome_that_the_law_excludes_is_found_at_once() -> None:
    finding = audited(lambda d, n, s: np.where(np.arange(n) == 17, 9, die(d, n, s)), DIE)
    assert finding.violated and finding.certificate.event == 9
    assert finding.certificate.probabilities[1] == ZERO
    listed = audited(die, {**{face: Fraction(1, 5) for face in range(5)}, 5: Fraction(0)})
    assert listed.violated and listed.certificate.event == 5


def test_what_is_not_listed_has_the_remaining_mass() -> None:
    assert audited(die, {0: Fraction(1, 6), 1: Fraction(1, 6)}).verdict is Verdict.NOT_REFUTED
    finding = audited(die, {0: Fraction(1, 6), 1: Fraction(3, 4)})
    assert finding.violated
    rest = audited(die, {7: Fraction(1, 2)})
    assert rest.violated and rest.certificate.event in (7, "all that is not listed")


def test_a_mass_below_every_float_is_not_impossible() -> None:
    law = {0: 1 - Fraction(1, 2**2000), 1: Fraction(1, 2**2000)}
    assert audited(lambda d, n, s: np.zeros(n, dtype=np.int64), law).verdict is Verdict.NOT_REFUTED
    finding = audited(lambda d, n, s: np.ones(n, dtype=np.int64), law)
    assert finding.violated and "off by at least" in finding.sentence


def test_many_small_shifts_are_found_together() -> None:
    """Every second of 64 outcomes is 6 % too likely: none stands out, all together do."""
    law = {k: Fraction(1, 64) for k in range(64)}

    def tilted(data: Any, count: int, source: Source) -> NDArray[np.int64]:
        odd = bernoulli(source.child(1), Fraction(53, 100), count)
        return 2 * integers(source.child(2), 32, count).astype(np.int64) + odd

    assert audited(tilted, law, draws=60_000).certificate.event == "all counts together"
    finding = audited(tilted, law, draws=60_000)
    assert finding.violated and finding.measured > finding.claimed
    truth = 0.53 * math.log(1.06) + 0.47 * math.log(0.94)
    assert float(finding.measured) == pytest.approx(truth, rel=0.6)


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 5), (1, 10, 30)])
def test_the_entropy_bound_holds_on_every_table_of_counts(weights: tuple[int, ...]) -> None:
    """All counts of twelve draws in three cells, enumerated: P(n D >= g) against the bound, at every g."""
    draws, total = 12, sum(weights)
    chances: list[tuple[float, float]] = []
    for a, b in itertools.product(range(draws + 1), repeat=2):
        counts = (a, b, draws - a - b)
        if counts[2] < 0:
            continue
        ways = math.factorial(draws) / math.prod(math.factorial(c) for c in counts)
        chance = ways * math.prod((w / total) ** c for w, c in zip(weights, counts, strict=True))
        g = sum(c * math.log(c * total / (draws * w)) for w, c in zip(weights, counts, strict=True) if c)
        chances.append((g, chance))
    for g, _ in chances:
        assert math.fsum(c for other, c in chances if other >= g) <= entropy_level(g, 3) + 1e-12
    assert entropy_level(max(g for g, _ in chances), 3) < 0.5


def test_false_alarms_are_rarer_than_alpha() -> None:
    alarms = sum(audited(die, DIE, draws=500, seed=seed, alpha=0.2).violated for seed in range(300))
    assert alarms <= 60


def test_outputs_as_rows_and_as_labels() -> None:
    pairs = {(a, b): Fraction(1, 4) for a in (0, 1) for b in (0, 1)}

    def rows(data: Any, count: int, source: Source) -> NDArray[np.int64]:
        return integers(source, 4, count).astype(np.int64)[:, None] // np.array([[1, 2]]) % 2

    assert audited(rows, pairs).verdict is Verdict.NOT_REFUTED
    assert (
        audited(lambda d, n, s: list(map(tuple, rows(d, n, s).tolist())), pairs).verdict
        is Verdict.NOT_REFUTED
    )
    assert audited(lambda d, n, s: rows(d, n, s)[:, :1], pairs).violated
    text = {("heads",): Fraction(1, 2), ("tails",): Fraction(1, 2)}
    assert audited(lambda d, n, s: [("heads",)] * n, text).violated


def test_an_error_that_the_law_does_not_know_is_a_violation() -> None:
    def failing(data: Any, count: int, source: Source) -> Any:
        raise KeyError("secret")

    finding = audited(failing, DIE)
    assert finding.violated and finding.certificate.event == "raises KeyError"
    assert "secret" not in finding.sentence
    known = audited(failing, {("raises", "KeyError"): 1})
    assert known.verdict is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    "law",
    [{}, {0: Fraction(2)}, {0: Fraction(-1, 2), 1: 1}, {0: (Fraction(1, 2), Fraction(1, 4))}, {0: 1, 1: 1}],
)
def test_what_is_not_a_law_is_refused(law: Any) -> None:
    with pytest.raises(InputError, match="not a probability law"):
        audited(die, law)


def test_a_law_of_one_outcome() -> None:
    finding = audited(lambda d, n, s: [3] * n, {3: 1})
    assert finding.verdict is Verdict.NOT_REFUTED and finding.measured == Exact.of(0)
    assert audited(lambda d, n, s: [4] * n, {3: 1}).violated


def test_more_draws_see_more() -> None:
    few, many = (audited(die, DIE, draws=draws).details["resolution"] for draws in (1_000, 100_000))
    assert many == pytest.approx(few / 10, rel=0.1)
