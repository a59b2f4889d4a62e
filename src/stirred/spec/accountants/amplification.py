"""Amplification by sampling: protection from not knowing who is in the sample.

A mechanism that spends ε on a secret random sample spends less on the population it was drawn
from: h_f(ε) = ln(1 + f (e^ε - 1)) when a unit is drawn with probability f and its neighbours in
the sample do not depend on it. Designs that draw units together (clusters, a known order) or
more than once (with replacement) keep less of this, and each has its own formula here.

Every function assumes that the sample is drawn afresh, that nobody learns who is in it, and that
the design is fixed before the data are seen. An attacker who knows that a unit was drawn faces the
protection loss ε of the sample, not the smaller one computed here.

Losses are rounded upward and planned budgets (``deamplify``) downward, by a few units in the
last place, so that a float never promises more than the theorem.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

from stirred.errors import InputError
from stirred.spec.arithmetic.exact import ZERO, Exact

Relation = Literal["replace-one", "add-remove"]
"""Neighbouring data sets: one record has another value, or one record is present or absent."""

Order = Literal["known", "random"]
"""What an attacker knows of the order of the frame that a systematic sample walks through."""

_EXP_LIMIT = 700.0


@dataclass(frozen=True)
class Amplified:
    """The protection loss on the population of a mechanism that sees only a sample.

    ``epsilon`` and ``delta`` are the largest over units, for neighbours of the population by ``relation``;
    ``parts`` the losses by unit, stratum or release where the design distinguishes them. ``reference`` is the
    theorem, or the argument, that carries them.
    """

    epsilon: float
    relation: Relation
    design: str
    reference: str
    delta: float = 0.0
    parts: tuple[float, ...] = ()


def amplify(epsilon: float, rate: float) -> float:
    """Loss h_f(ε) = ln(1 + f (e^ε - 1)) of an ε-DP mechanism on a sample of rate f.

    Guarantee
        At least h_f(ε), at most ε; exactly 0 at f = 0 and exactly ε at f = 1.
    Assumes
        Nothing; the design functions below say for which designs and relations it is the loss.
    Reference
        Theorem 6.4.1 of the thesis; Balle, Barthe and Gaboardi (2018), Theorems 8 and 9.

    Examples
    --------
    >>> round(amplify(1.0, 0.1), 6)
    0.158565
    """
    _check_loss(epsilon, "epsilon")
    _check_rate(rate, "rate")
    if rate == 0:
        return 0.0
    if epsilon <= _EXP_LIMIT:
        return min(epsilon, round_up(math.log1p(rate * math.expm1(epsilon))))
    return min(epsilon, _softplus(epsilon + math.log(rate)) + 4 * math.ulp(epsilon))


def deamplify(epsilon: float, rate: float) -> float:
    """Budget to spend on a sample of rate f so that the population loses ε: the inverse of h_f.

    Guarantee
        At most ln(1 + (e^ε - 1) / f): spending it stays within ε, as ``amplify`` computes it.
    Assumes
        A design with loss h_f: simple random without replacement, or Poisson.
    Reference
        The inverse of ``amplify``.

    Examples
    --------
    >>> round(deamplify(1.0, 0.1), 6)
    2.900477
    """
    _check_loss(epsilon, "epsilon")
    _check_rate(rate, "rate")
    if rate == 0:
        return math.inf
    if epsilon <= _EXP_LIMIT:
        budget = math.log1p(min(math.expm1(epsilon) / rate, sys.float_info.max))
    elif math.isinf(epsilon):
        return math.inf
    else:
        budget = epsilon - math.log(rate)
    return max(epsilon, budget - 32 * math.ulp(budget))


def simple_random_sampling(epsilon: float, size: int, population: int, delta: float = 0.0) -> Amplified:
    """Loss of an (ε, δ)-DP mechanism on n of N units drawn at random without replacement.

    Guarantee
        (h_f(ε), f δ)-DP with f = n/N, for neighbours that differ in one record's value. Tight.
    Assumes
        The mechanism is (ε, δ)-DP for samples that differ in one record's value.
    Reference
        Theorem 6.4.1 of the thesis; Balle, Barthe and Gaboardi (2018), Theorem 9.

    Examples
    --------
    >>> round(simple_random_sampling(2.0, 10, 100).epsilon, 6)
    0.494029
    """
    rate = _fraction(size, population)
    return Amplified(
        epsilon=amplify(epsilon, rate),
        delta=_scaled_delta(delta, rate),
        relation="replace-one",
        design="simple random sampling without replacement",
        reference="thesis, Theorem 6.4.1; Balle, Barthe, Gaboardi 2018, Theorem 9",
    )


def poisson_sampling(epsilon: float, probabilities: Sequence[float], delta: float = 0.0) -> Amplified:
    """Loss of an (ε, δ)-DP mechanism on a Poisson sample with a probability for each unit.

    Guarantee
        Unit i loses (h_π(ε), π δ) with π = π_i (the ``parts``), and the population the largest of
        them, for neighbours that differ in the presence of one record. Tight.
    Assumes
        Units are drawn independently, with probabilities that do not depend on the data. The
        mechanism is (ε, δ)-DP for samples that differ in the presence of one record.
    Reference
        Balle, Barthe and Gaboardi (2018), Theorem 8, conditionally on the draws of other units.
    """
    parts = tuple(amplify(epsilon, probability) for probability in probabilities)
    _require(len(parts) > 0, "probabilities", "one inclusion probability per unit")
    return Amplified(
        epsilon=max(parts),
        delta=_scaled_delta(delta, max(probabilities)),
        relation="add-remove",
        design="Poisson sampling",
        reference="Balle, Barthe, Gaboardi 2018, Theorem 8, unit by unit",
        parts=parts,
    )


def poisson_sampling_replaced(epsilon: float, rate: float) -> Amplified:
    """Loss under replacement of a mechanism on a Poisson sample that is ε-DP under add-remove.

    Guarantee
        ln[(1 + f (e^ε - 1)) / (1 + f (e^-ε - 1))] for neighbours that differ in one record's
        value. Larger than h_f(ε); 2ε at f = 1.
    Assumes
        Independent draws with probability at most f. The mechanism is ε-DP for samples that differ
        in the presence of one record.
    Reference
        Output density μ without the unit, at most e^ε μ with one value and at least e^-ε μ with
        the other; both bounds can hold at once.
    """
    gain = amplify(epsilon, rate)
    return Amplified(
        epsilon=round_up(gain + _dilution(epsilon, rate)),
        relation="replace-one",
        design="Poisson sampling, mechanism calibrated to add-remove",
        reference="ratio of the two extreme mixtures with the unit's absence",
    )


def _dilution(epsilon: float, rate: float) -> float:
    """-ln(1 - f (1 - e^-ε)), without cancellation near f = 0 and near f = 1."""
    if rate == 1:
        return epsilon
    lost = -rate * math.expm1(-epsilon)
    kept = (1 - rate) + rate * math.exp(-epsilon)
    return round_up(-math.log1p(-lost) if lost <= 0.5 else -math.log(kept))


def sampling_with_replacement(epsilon: float, draws: int, population: int) -> Amplified:
    """Loss of an ε-DP mechanism on n independent draws of one unit out of N.

    A unit may be drawn several times, so the loss can exceed ε, and h_η(ε) with the probability
    η = 1 - (1 - 1/N)^n of being drawn at all is not a bound.

    Guarantee
        n ln(1 + (e^ε - 1) / N) for neighbours that differ in one record's value. Tight.
    Assumes
        The mechanism is ε-DP for samples that differ in one draw, repeated units counting as often
        as they were drawn.
    Reference
        Hybrid argument: replace the unit in one draw after the other; each is a sample of 1 of N.
    """
    _check_size(draws, "draws")
    loss = amplify(epsilon, _fraction(1, population))
    return Amplified(
        epsilon=round_up(draws * loss) if draws > 0 else 0.0,
        relation="replace-one",
        design="simple random sampling with replacement",
        reference="hybrid argument over the draws, each a simple random sample of one",
    )


def stratified_sampling(
    epsilon: float, sizes: Sequence[int], populations: Sequence[int], delta: float = 0.0
) -> Amplified:
    """Loss of an (ε, δ)-DP mechanism on simple random samples without replacement by stratum.

    Guarantee
        (h_f(ε), f δ)-DP inside stratum h with f = n_h/N_h (the ``parts``), and overall the largest
        of them, for neighbours that differ in one record's value within its stratum. One take-all
        stratum leaves the overall loss at ε.
    Assumes
        Stratum membership and allocation are invariant: the same for both neighbours. An allocation
        that follows the data (Neyman, or proportional to counts that move) can lose more than ε.
    Reference
        Theorem 6.4.1 of the thesis, conditionally on the draws in the other strata.
    """
    _require(
        len(sizes) == len(populations) > 0,
        "sizes",
        "as many sample sizes as stratum populations, at least one",
    )
    strata = [
        simple_random_sampling(epsilon, size, population, delta)
        for size, population in zip(sizes, populations, strict=True)
    ]
    parts = tuple(stratum.epsilon for stratum in strata)
    return Amplified(
        epsilon=max(parts),
        delta=max(stratum.delta for stratum in strata),
        relation="replace-one",
        design="stratified simple random sampling without replacement",
        reference="thesis, Theorem 6.4.1, stratum by stratum",
        parts=parts,
    )


def two_stage_sampling(epsilon: float, first: float, second: float, swapped: int) -> Amplified:
    """Loss of an ε-DP mechanism when clusters are drawn first and units inside them second.

    Guarantee
        h_r(ε) with r = p q / (p + (1 - p) e^{-(K-1)ε}), for neighbours that differ in one record's
        value. It grows with p, q and K, from h_pq at K = 1 to h_q for large takes: only the stage
        that draws units amplifies. Tight over all ε-DP mechanisms.
    Assumes
        A cluster is drawn with probability p (``first``), its units with probability q (``second``)
        by simple random sampling; takes are equal, and K (``swapped``) records of the sample change
        when one cluster's take is exchanged for another's.
    Reference
        Output densities: with the unit's two values within e^ε of each other, without the unit
        within e^ε, and without its cluster within e^{Kε}, by exchanging 1, 1 and K records.
    """
    return Amplified(
        epsilon=amplify(epsilon, _effective_rate(epsilon, first, second, swapped)),
        relation="replace-one",
        design="two-stage sampling",
        reference="couplings that exchange 1, 1 and K records of the sample",
    )


def cluster_sampling(epsilon: float, probability: float, size: int) -> Amplified:
    """Loss of an ε-DP mechanism on whole clusters of m units drawn without replacement.

    Guarantee
        ln[(1 - p + p e^{mε}) / (1 - p + p e^{(m-1)ε})] for neighbours that differ in one record's
        value; h_p(ε) at m = 1 and ε for large clusters. Tight.
    Assumes
        A simple random sample of clusters, each drawn with probability p, of m units each.
    Reference
        ``two_stage_sampling`` with q = 1 and K = m.
    """
    _check_rate(probability, "probability")
    _check_positive(size, "size")
    return Amplified(
        epsilon=amplify(epsilon, _effective_rate(epsilon, probability, 1.0, size)),
        relation="replace-one",
        design="one-stage cluster sampling",
        reference="two-stage sampling that takes every unit of a drawn cluster",
    )


def systematic_sampling(epsilon: float, interval: int, size: int, order: Order) -> Amplified:
    """Loss of an ε-DP mechanism on every k-th of N = n k units from a random start.

    Guarantee
        Known order: the loss of one cluster of n units out of k. Random order: h_{1/k}(ε). For
        neighbours that differ in one record's value.
    Assumes
        ``order="random"`` only if the frame was put in a secret, uniformly random order that is
        independent of the data; then the sample is a simple random one.
    Reference
        ``cluster_sampling`` with p = 1/k and m = n; ``simple_random_sampling``.
    """
    _check_order(order)
    _check_positive(interval, "interval")
    _check_positive(size, "size")
    swapped = size if order == "known" else 1
    return Amplified(
        epsilon=amplify(epsilon, _effective_rate(epsilon, 1 / interval, 1.0, swapped)),
        relation="replace-one",
        design=f"systematic sampling, {order} order",
        reference="one cluster of n units out of k"
        if order == "known"
        else "simple random sampling without replacement at rate 1/k",
    )


def _effective_rate(epsilon: float, first: float, second: float, swapped: int) -> float:
    """The rate r of a simple random sample that loses as much as the two stages, rounded upward."""
    _check_loss(epsilon, "epsilon")
    _check_rate(first, "first")
    _check_rate(second, "second")
    _check_positive(swapped, "swapped")
    if first == 0:
        return 0.0
    fade = math.exp(-round_up((swapped - 1) * epsilon)) if swapped > 1 else 1.0
    return min(second, round_up(first * second / (first + (1 - first) * fade)))


def chain_of_stages(
    epsilon: float, rates: Sequence[float], relation: Relation, delta: float = 0.0
) -> Amplified:
    """Loss through independent stages of selection: frame, sample, response.

    Guarantee
        (h_f(ε), f δ)-DP with f the product of the rates, because h_f(h_g(ε)) = h_fg(ε).
    Assumes
        Each stage selects units independently of the others and of the data, amplifies by h_f for
        the named relation, and its rate is a known upper bound. Response rates seldom are known.
    Reference
        Repeated use of ``poisson_sampling`` (add-remove) or of
        ``simple_random_sampling`` (replace-one).
    """
    check_relation(relation)
    for rate in rates:
        _check_rate(rate, "rates")
    rate = min(1.0, round_up(math.prod(rates))) if 0 not in rates else 0.0
    return Amplified(
        epsilon=amplify(epsilon, rate),
        delta=_scaled_delta(delta, rate),
        relation=relation,
        design="chain of independent stages",
        reference="composition of amplifications, stage by stage",
    )


def shared_sample(epsilons: Sequence[float], rate: float, relation: Relation) -> Amplified:
    """Loss of several releases that are computed from one and the same sample.

    The releases share the randomness of the draw, so their amplified losses (the ``parts``) do not
    add up: the sum understates the loss for every 0 < f < 1.

    Guarantee
        h_f(Σ ε_k), for the named relation.
    Assumes
        One sample with loss h_f (simple random without replacement for replace-one, Poisson for
        add-remove); mechanisms with independent seeds given the sample.
    Reference
        Section 6.5.2 of the thesis: compose inside the sample, then amplify once.

    Examples
    --------
    >>> round(shared_sample([1.0, 2.0], 0.1, "replace-one").epsilon, 6)
    1.067656
    """
    check_relation(relation)
    parts = tuple(amplify(epsilon, rate) for epsilon in epsilons)
    return Amplified(
        epsilon=amplify(sum_up(epsilons), rate),
        relation=relation,
        design="releases from one shared sample",
        reference="thesis, Section 6.5.2",
        parts=parts,
    )


def independent_samples(samples: Sequence[Amplified]) -> Amplified:
    """Loss of releases from several samples that were drawn independently of one another.

    Guarantee
        The sums of ε and of δ, for the one relation that all samples share.
    Assumes
        Independent designs. Overlap control, coordinated samples and rotation panels are not:
        see ``coordinated_samples`` and ``shared_sample``.
    Reference
        Basic composition, which needs independent seeds (Section 6.5.2 of the thesis).
    """
    relations = {sample.relation for sample in samples}
    _require(
        len(relations) == 1,
        "samples",
        "at least one sample, all for the same neighbouring relation",
    )
    parts = tuple(sample.epsilon for sample in samples)
    return Amplified(
        epsilon=sum_up(parts),
        delta=min(1.0, sum_up(sample.delta for sample in samples)),
        relation=relations.pop(),
        design="independent samples",
        reference="basic composition",
        parts=parts,
    )


def coordinated_samples(
    first: float, second: float, only_first: float, only_second: float, both: float
) -> Amplified:
    """Loss of two releases from samples in which each unit's two inclusions depend on each other.

    Guarantee
        max over s_k in {e^-ε_k, 1} of the log ratio of Σ p_ab (s_1 e^ε_1)^a (s_2 e^ε_2)^b to
        Σ p_ab s_1^a s_2^b, for neighbours that differ in one record's value. Full overlap gives
        ``shared_sample``, independence the sum; negative coordination may lower or raise it.
    Assumes
        Inclusions of different units are independent. Each mechanism is ε_k-DP both for samples
        that differ in one record's value and in the presence of one record.
    Reference
        Densities with the unit's values relative to its absence; the ratio is monotone in each s.
    """
    _check_loss(first, "first")
    _check_loss(second, "second")
    _require(math.isfinite(first + second), "first, second", "finite losses")
    inclusions = (only_first, only_second, both)
    for rate in (*inclusions, math.fsum(inclusions)):
        _check_rate(rate, "only_first, only_second, both")
    weights = (1 - math.fsum(inclusions), *inclusions)

    def log_mean(x: float, y: float) -> float:
        return _log_sum_exp(weights, (0.0, x, y, x + y))

    loss = max(
        log_mean(first - x, second - y) - log_mean(-x, -y) for x, y in product((0.0, first), (0.0, second))
    )
    return Amplified(
        epsilon=min(first + second, max(0.0, loss + 8 * math.ulp(1 + first + second))),
        relation="replace-one",
        design="two coordinated Poisson samples",
        reference="extreme densities of the two samples relative to the unit's absence",
    )


def _log_sum_exp(weights: Sequence[float], exponents: Sequence[float]) -> float:
    """ln Σ w e^x, without overflow."""
    top = max(x for w, x in zip(weights, exponents, strict=True) if w > 0)
    terms = zip(weights, exponents, strict=True)
    return top + math.log(math.fsum(w * math.exp(x - top) for w, x in terms if w > 0))


def round_up(value: float) -> float:
    """A float a few units in the last place above ``value``: larger than the exact result."""
    return value + 4 * math.ulp(value)


def sum_up(values: Iterable[float]) -> float:
    """The least float that is not below the exact sum."""
    return sum(map(Exact.computed, values), ZERO).float_up()


def check_relation(relation: Relation) -> None:
    """Refuse a neighbouring relation other than the two of :data:`Relation`."""
    _require(relation in get_args(Relation), "relation", " or ".join(get_args(Relation)))


def _softplus(t: float) -> float:
    """ln(1 + e^t), without overflow."""
    return max(t, 0.0) + math.log1p(math.exp(-abs(t)))


def _fraction(size: int, population: int) -> float:
    _check_positive(population, "population")
    _require(0 <= size <= population, "size", "a sample size between 0 and the population")
    return size / population


def _scaled_delta(delta: float, rate: float) -> float:
    _check_rate(delta, "delta")
    return min(delta, round_up(rate * delta)) if rate > 0 else 0.0


def _check_loss(epsilon: float, field: str) -> None:
    _require(epsilon >= 0, field, "a number that is not negative, possibly infinite")


def _check_rate(rate: float, field: str) -> None:
    _require(0 <= rate <= 1, field, "a number between 0 and 1")


def _check_size(size: int, field: str) -> None:
    _require(size >= 0, field, "a count that is not negative")


def _check_positive(size: int, field: str) -> None:
    _require(size >= 1, field, "a count of at least 1")


def _check_order(order: Order) -> None:
    _require(order in get_args(Order), "order", " or ".join(get_args(Order)))


def _require(accepted: bool, field: str, expected: str) -> None:
    if not accepted:
        raise InputError(
            "the sampling design cannot be read",
            field=field,
            expected=expected,
            hint="Correct this part of the design.",
        )
