"""The exact slow twin, and the theorems on swapping by enumeration of every small universe."""

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, permutations, product

import pytest
from support.patterns import hamming

from stirred.errors import InputError
from stirred.spec import INFINITY, ZERO, Exact, swapping_loss
from stirred.swap import (
    least_loss,
    least_loss_rate,
    lower_bound,
    margin_patterns,
    non_vacuous_derangements,
    outcomes,
    pattern_records,
    permutation_law,
    rates_for,
    swap_probability,
    tighter_loss,
    uniform_derangements,
    universe,
)
from stirred.swap.enumeration import (
    exact_loss,
    mechanism_loss,
    nearby_first,
    stratum_outcomes,
)
from stirred.swap.loss import derangement_ratio, derangements, gap, variable_rate_loss

RATES = [Fraction(1, 100), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4), Fraction(99, 100)]
EXTREME = [Fraction(1, 1000), Fraction(1, 100), Fraction(1, 3), Fraction(99, 100), Fraction(999, 1000)]

Margins = tuple[int, ...]


@lru_cache(maxsize=1024)
def audited(hold: Margins, swap: Margins, rate: Fraction) -> Exact:
    return exact_loss(pattern_records(hold, swap), rate).loss


def patterns(*sizes: int) -> Iterator[tuple[int, Margins, Margins]]:
    """Universes up to relabelling and up to exchanging h and s, which keeps the law (tested below)."""
    for size in sizes:
        yield from ((size, hold, swap) for hold, swap in margin_patterns(size) if hold >= swap)


def odds(rate: Fraction) -> Exact:
    return Exact.log(rate / (1 - rate))


def all_distinct(size: int) -> tuple[Margins, Margins]:
    return (1,) * size, (1,) * size


def tighter_variable_loss(size: int, least: Fraction, largest: Fraction) -> Exact:
    """Theorem C of the proofs, for one stratum."""
    low, high = odds(least), odds(largest)
    if size == 2:
        return max(high, -low)
    if size == 3:
        return max(high, Exact.log(2, 3) - low, (Exact.log(2) - low) / 2)
    return max(high, Exact.log(derangement_ratio(size), 2) - low)


# The twin itself


def test_the_law_of_permutations_is_that_of_the_paper() -> None:
    records, p = [("a", 1), ("b", 1), ("b", 2), ("c", 3)], Fraction(2, 7)
    law = permutation_law(records, p)
    anew = 4 * p * (1 - p) ** 3
    moved = {order: sum(i != donor for i, donor in enumerate(order)) for order in permutations(range(4))}
    assert law == {
        order: p**k * (1 - p) ** (4 - k) / ((1 - anew) * derangements(k)) for order, k in moved.items()
    }


def test_outcomes_sum_to_one_and_fill_the_universe() -> None:
    records = [(0, "a", 1), (0, "a", 2), (0, "b", 2), (1, "a", 1), (1, "c", 3), (2, "a", 1)]
    law = outcomes(records, Fraction(1, 7))
    assert sum(law.values()) == 1
    assert sorted(law) == universe(records)


def test_strata_are_independent() -> None:
    first, second = [("a", 1), ("b", 2), ("b", 3)], [("a", 1), ("c", 2)]
    joint = outcomes([(0, *pair) for pair in first] + [(1, *pair) for pair in second], Fraction(1, 3))
    one, two = stratum_outcomes(first, Fraction(1, 3)), stratum_outcomes(second, Fraction(1, 3))
    assert joint == {
        tuple((0, *pair) for pair in x) + tuple((1, *pair) for pair in y): one[x] * two[y]
        for x, y in product(one, two)
    }


def test_the_order_of_records_does_not_matter() -> None:
    records, rates = [("a", 1), ("a", 2), ("b", 2), ("c", 3)], [Fraction(k, 9) for k in (1, 2, 5, 8)]
    laws = [
        stratum_outcomes([records[i] for i in order], [rates[i] for i in order])
        for order in permutations(range(4))
    ]
    assert all(law == laws[0] for law in laws)


def test_holding_and_swapping_variables_may_be_exchanged() -> None:
    for _, hold, swap in patterns(2, 3, 4):
        pairs = [record[1:] for record in pattern_records(hold, swap)]
        rates = [Fraction(k + 1, 7) for k in range(len(pairs))]
        mirrored = stratum_outcomes([(s, h) for h, s in pairs], rates)
        assert stratum_outcomes(pairs, rates) == {
            tuple(sorted((h, s) for s, h in output)): chance for output, chance in mirrored.items()
        }


def test_the_universe_has_the_same_margins_and_misses_none() -> None:
    records = [(0, "a", 1), (0, "a", 2), (0, "b", 1), (1, "a", 1), (1, "b", 2)]
    cells = sorted({(m, h, s) for (m, h, _), (n, _, s) in product(records, repeat=2) if m == n})

    def margins(data: Sequence[tuple[object, ...]]) -> tuple[Counter[object], Counter[object]]:
        return Counter((m, h) for m, h, _ in data), Counter((m, s) for m, _, s in data)

    every = combinations_with_replacement(cells, len(records))
    assert universe(records) == [data for data in every if margins(data) == margins(records)]


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
def test_there_is_a_pattern_for_every_pair_of_partitions(size: int) -> None:
    partitions = [1, 1, 2, 3, 5, 7, 11][size]
    found = margin_patterns(size)
    assert len(set(found)) == len(found) == partitions**2
    assert all(sum(hold) == sum(swap) == size for hold, swap in found)


@pytest.mark.parametrize("records", [[("a", 1)], [("a", 1), ("b", 2), ("c", 3)]])
def test_fewer_than_two_eligible_records_stay_as_they_are(records: list[tuple[str, int]]) -> None:
    eligible = [i == 0 for i in range(len(records))]
    assert stratum_outcomes(records, Fraction(1), eligible) == {tuple(sorted(records)): 1}


def test_a_selection_of_always_one_record_is_refused() -> None:
    with pytest.raises(InputError, match="never succeeds"):
        stratum_outcomes([("a", 1), ("b", 2)], [Fraction(1), Fraction(0)])


@pytest.mark.parametrize("rates", [Fraction(3, 2), [Fraction(1, 2)], "-0.1"])
def test_rates_that_do_not_fit_are_refused(rates: object) -> None:
    with pytest.raises(InputError, match="do not fit"):
        stratum_outcomes([("a", 1), ("b", 2)], rates)


def test_the_loss_of_listed_rates_is_refused() -> None:
    with pytest.raises(InputError, match="other data sets"):
        exact_loss([(0, "a", 1), (0, "b", 2)], [Fraction(1, 2), Fraction(1, 3)])


@pytest.mark.parametrize("rate", RATES)
def test_swap_probability_with_reselection_equals_enumeration(rate: Fraction) -> None:
    for size in (1, 2, 3, 4, 5):
        law = permutation_law([(i, i) for i in range(size)], rate)
        for record in range(size):
            moved = sum(chance for donors, chance in law.items() if donors[record] != record)
            assert moved == swap_probability(size, rate)


def test_the_worst_case_attains_its_loss() -> None:
    worst = exact_loss([(0, "a", 1), (0, "b", 2), (0, "b", 3), (1, "a", 1), (1, "b", 2)], Fraction(1, 5))
    assert worst.data is not None and worst.other is not None and worst.output is not None
    laws = [outcomes(data, Fraction(1, 5)) for data in (worst.data, worst.other)]
    ratio = laws[0][worst.output] / laws[1][worst.output]
    assert hamming(worst.data, worst.other) == worst.distance
    assert worst.loss == Exact.log(ratio, worst.distance)


def test_the_worst_case_is_the_largest_of_all_triples() -> None:
    data, rate = universe([(0, "a", 1), (0, "a", 2), (0, "b", 3), (0, "c", 4)]), Fraction(2, 5)
    laws = {x: outcomes(x, rate) for x in data}
    every = {
        Exact.log(laws[x][z] / laws[y][z], hamming(x, y)) for x, y, z in product(data, repeat=3) if x != y
    }
    assert exact_loss(data[0], rate).loss == max(every)


def test_the_loss_of_several_strata_is_the_largest_of_one() -> None:
    rate = Fraction(2, 5)
    blocks = [block for block in patterns(1, 2, 3) if block[0] == 1 or min(map(len, block[1:])) > 1]
    for parts in (*combinations_with_replacement(blocks, 2), *combinations_with_replacement(blocks, 3)):
        if sum(size for size, _, _ in parts) > 5:
            continue
        records = [
            (m, h, s) for m, (_, hold, swap) in enumerate(parts) for _, h, s in pattern_records(hold, swap)
        ]
        alone = max(audited(hold, swap, rate) for _, hold, swap in parts)
        assert exact_loss(records, rate).loss == alone


# Theorem 1 and its optimality (appendices E and F)


@pytest.mark.parametrize("rate", RATES)
def test_theorem_1_is_never_exceeded(rate: Fraction) -> None:
    for size, hold, swap in patterns(1, 2, 3, 4, 5):
        distinct = len(hold) > 1 or len(swap) > 1
        assert audited(hold, swap, rate) <= swapping_loss(size if distinct else 0, rate)


@pytest.mark.slow
@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(3, 4)])
def test_theorems_hold_with_six_records(rate: Fraction) -> None:
    bound = Exact.log(derangement_ratio(6), 2) - odds(rate)
    conditions = 0
    for size, hold, swap in patterns(6):
        loss = audited(hold, swap, rate)
        assert loss <= tighter_loss(size, rate) <= swapping_loss(size, rate)
        if proposition_9_applies(size, hold, swap):
            conditions += 1
            assert loss == max(bound, loss)
    assert conditions == 6
    assert audited(*all_distinct(6), rate) == tighter_loss(6, rate)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("rate", [Fraction(3, 4), Fraction(9, 10), Fraction(999, 1000)])
def test_theorem_1_is_attained_at_high_rates_where_all_records_differ(size: int, rate: Fraction) -> None:
    assert float(rate) >= least_loss_rate(size)
    assert audited(*all_distinct(size), rate) == swapping_loss(size, rate) == odds(rate)


def test_theorem_1_is_not_attained_at_high_rates_where_records_tie() -> None:
    assert audited((2, 1), (2, 1), Fraction(9, 10)) < swapping_loss(3, Fraction(9, 10))


def proposition_9_applies(size: int, hold: Margins, swap: Margins) -> bool:
    """Conditions (18) and (19)."""
    return all(2 * max(counts) <= size - 2 and counts.count(1) >= 2 for counts in (hold, swap))


@pytest.mark.parametrize("size", [4, 5])
@pytest.mark.parametrize("rate", RATES)
def test_theorem_3_c_is_attained_where_its_conditions_hold(size: int, rate: Fraction) -> None:
    bound = Exact.log(derangement_ratio(size), 2) - odds(rate)
    applies = [block for block in patterns(size) if proposition_9_applies(*block)]
    assert applies == [(size, *all_distinct(size))]
    for _, hold, swap in applies:
        assert audited(hold, swap, rate) == max(bound, odds(rate)) == lower_bound(size, rate)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_proposition_6_rate_zero_is_infinite_wherever_two_data_sets_exist(size: int) -> None:
    for _, hold, swap in patterns(size):
        alone = min(len(hold), len(swap)) == 1
        assert audited(hold, swap, Fraction(0)) == (ZERO if alone else INFINITY)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_proposition_7_rate_one_is_infinite_where_an_h_and_an_s_are_unique(size: int) -> None:
    for _, hold, swap in patterns(size):
        if 1 in hold and 1 in swap and size > 1:
            assert audited(hold, swap, Fraction(1)) == INFINITY


def test_proposition_7_rate_one_may_be_finite_where_nothing_is_unique() -> None:
    assert audited((2, 2), (2, 2), Fraction(1)) == Exact.log(2)


def test_proposition_7_its_own_pair_does_not_show_it() -> None:
    """The proof needs P_x'(x) > 0, which fails for three distinct records; another output does."""
    x, other = ((0, "a", 1), (0, "b", 2), (0, "c", 3)), ((0, "a", 2), (0, "b", 1), (0, "c", 3))
    law, reference = outcomes(x, Fraction(1)), outcomes(other, Fraction(1))
    assert x not in law and x not in reference
    assert any(h == "a" and s == 1 for z in reference for _, h, s in z)
    assert not any(h == "a" and s == 1 for z in law for _, h, s in z)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_proposition_8_the_loss_is_at_least_ln_o_where_all_records_differ(size: int, rate: Fraction) -> None:
    assert audited(*all_distinct(size), rate) >= odds(rate)


@pytest.mark.parametrize("rate", RATES)
def test_proposition_10_two_records_lose_at_least_minus_ln_o(rate: Fraction) -> None:
    assert audited(*all_distinct(2), rate) == max(odds(rate), -odds(rate))


def furthest(hold: Margins, swap: Margins) -> int:
    data = universe(pattern_records(hold, swap))
    return max(hamming(x, y) for x, y in product(data, repeat=2))


def test_lemma_8_the_condition_is_neither_necessary_nor_the_weaker_one_sufficient() -> None:
    """(2, 1, 1) violates (18), yet two data sets share no record; at most b/2 suffices up to b = 5 only."""
    assert furthest((2, 1, 1), (1, 1, 1, 1)) == 4
    for size, hold, swap in patterns(2, 3, 4, 5):
        assert (furthest(hold, swap) == size) == (2 * max(*hold, *swap) <= size)
    assert furthest((3, 3), (2, 2, 2)) == 4


def test_lemma_8_exchanging_neighbours_that_differ_may_change_nothing() -> None:
    records = [("a", 1), ("b", 2), ("a", 2), ("b", 1)]
    exchanged = [("a", 2), ("b", 1), ("a", 1), ("b", 2)]
    assert sorted(records) == sorted(exchanged)


def theorem_d_applies(hold: Margins, swap: Margins) -> bool:
    if hold.count(1) < 2 or swap.count(1) < 2:
        return False
    return furthest(hold[:-2], swap[:-2]) == sum(hold) - 2


@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 3), Fraction(1, 2)])
def test_theorem_d_says_where_the_tighter_loss_is_attained(rate: Fraction) -> None:
    for size, hold, swap in patterns(4, 5):
        attained = audited(hold, swap, rate) == tighter_loss(size, rate)
        assert attained == theorem_d_applies(hold, swap)


@pytest.mark.slow
def test_theorem_d_says_where_the_tighter_loss_is_attained_with_six_records() -> None:
    rate = Fraction(1, 10)
    for _, hold, swap in patterns(6):
        attained = audited(hold, swap, rate) == tighter_loss(6, rate)
        assert attained == theorem_d_applies(hold, swap)


@pytest.mark.slow
def test_proposition_9_fails_for_eight_records() -> None:
    """Conditions (18) and (19) hold, and the loss stays below the claimed bound."""
    hold, swap, rate = (3, 3, 1, 1), (2, 2, 2, 1, 1), Fraction(1, 10)
    assert proposition_9_applies(8, hold, swap) and not theorem_d_applies(hold, swap)
    loss = audited(hold, swap, rate)
    assert loss.rounded(3) == "3.902" and lower_bound(8, rate).rounded(3) == "4.210"


# Theorem 4 and the numbers of the paper


def test_theorem_4_the_gap_bounds_the_distance_to_the_lower_bound() -> None:
    for size in range(4, 60):
        below = Fraction(math.floor(10**6 * least_loss_rate(size)), 10**6)
        for rate in (Fraction(1, 1000), Fraction(1, 2), below):
            assert float(swapping_loss(size, rate) - lower_bound(size, rate)) <= gap(size) + 1e-12


def test_theorem_4_the_gap_at_ten_is_above_the_printed_bound() -> None:
    """The paper says f(b) <= 0.148 for b >= 10; at 10 it is 0.1480075."""
    assert gap(10) == pytest.approx(0.1480075, abs=5e-8)
    assert gap(10) > 0.148
    assert all(gap(size) < 0.148 for size in range(11, 200))
    assert all(gap(size + 1) < gap(size) for size in range(4, 200))


def test_the_paper_s_numbers_for_ten_records_and_for_a_million() -> None:
    assert least_loss(10).rounded(2) == "1.20"
    assert round(100 * least_loss_rate(10)) == 77
    low, high = rates_for(10, 3)
    assert (round(float(100 * low), 1), round(float(100 * high), 1)) == (35.4, 95.3)
    assert swapping_loss(10, low) <= Exact.of(3) and swapping_loss(10, high) <= Exact.of(3)
    assert least_loss(10**6).rounded(2) == "6.91"
    assert round(100 * least_loss_rate(10**6), 1) == 99.9


# The tighter loss (Theorem B of the proofs)


def test_theorem_b_geometric_means_of_derangement_ratios_grow() -> None:
    """[d(k)/d(k-j)]^(1/j) <= [d(b)/d(b-2)]^(1/2) for 2 <= j <= k <= b, and d(b)/d(b-1) <= that to 3/2."""
    d = derangements
    for b in range(4, 26):
        for k in range(2, b + 1):
            for j in range(2, k + 1):
                if k - j != 1:
                    assert d(k) ** 2 * d(b - 2) ** j <= d(k - j) ** 2 * d(b) ** j
            if k > 2:
                assert d(k) ** 4 * d(b - 2) ** 3 <= d(k - 1) ** 4 * d(b) ** 3


@pytest.mark.parametrize("rate", RATES)
def test_theorem_b_the_tighter_loss_is_never_exceeded(rate: Fraction) -> None:
    for size, hold, swap in patterns(2, 3, 4, 5):
        assert audited(hold, swap, rate) <= tighter_loss(size, rate) <= swapping_loss(size, rate)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_theorem_b_the_tighter_loss_is_exact_where_all_records_differ(size: int, rate: Fraction) -> None:
    assert audited(*all_distinct(size), rate) == tighter_loss(size, rate)


@pytest.mark.parametrize(
    ("rate", "loss"),
    [
        (Fraction(1, 3), Exact.log(2, 3) + Exact.log(2)),
        (Fraction(5, 9), (Exact.log(2) - Exact.log(Fraction(5, 4))) / 2),
        (Fraction(2, 3), Exact.log(2)),
    ],
)
def test_theorem_b_every_branch_of_three_records_is_attained(rate: Fraction, loss: Exact) -> None:
    assert audited(*all_distinct(3), rate) == tighter_loss(3, rate) == loss


def test_theorem_b_grows_with_the_largest_stratum() -> None:
    for rate in RATES:
        losses = [tighter_loss(size, rate) for size in range(2, 40)]
        assert losses == sorted(losses)


# Variable rates (Theorem A of the proofs)


def by_hold(rate: Callable[..., Fraction]) -> Callable[..., list[Fraction]]:
    """Rates g(m, h), for ``exact_loss``."""
    return lambda records: [rate(m, h) for m, h, _ in records]


def by_swap(rate: Callable[..., Fraction]) -> Callable[..., list[Fraction]]:
    """Rates g(m, s), for ``exact_loss``."""
    return lambda records: [rate(m, s) for m, _, s in records]


def random_rates(generator: random.Random) -> dict[int, Fraction]:
    return {label: generator.choice(EXTREME) for label in range(6)}


@pytest.mark.parametrize(("rule", "column"), [(by_hold, 1), (by_swap, 2)])
@pytest.mark.parametrize("seed", range(8))
def test_theorem_a_variable_rates_never_exceed_their_loss(
    rule: Callable[..., object], column: int, seed: int
) -> None:
    generator = random.Random(seed)
    sizes = (2, 3, 4) if seed else (2, 3, 4, 5)
    for hold, swap in (block for size in sizes for block in margin_patterns(size)):
        size = sum(hold)
        rates, records = random_rates(generator), pattern_records(hold, swap)
        used = [rates[record[column]] for record in records]
        loss = exact_loss(records, rule(lambda m, label, rates=rates: rates[label])).loss
        assert loss <= variable_rate_loss([(size, min(used), max(used))])
        assert loss <= tighter_variable_loss(size, min(used), max(used))


def test_theorem_a_each_stratum_may_choose_the_variable_its_rate_looks_at() -> None:
    records = [(0, 0, 0), (0, 1, 1), (0, 2, 1), (1, 0, 0), (1, 1, 1)]
    rates = {0: Fraction(1, 1000), 1: Fraction(99, 100), 2: Fraction(1, 2)}
    worst = exact_loss(records, lambda data: [rates[s if m else h] for m, h, s in data])
    low, high = Fraction(1, 1000), Fraction(99, 100)
    assert worst.loss <= variable_rate_loss([(3, low, high), (2, low, high)])


def test_theorem_a_equal_rates_are_theorem_1() -> None:
    for size, rate in product(range(2, 30), RATES):
        assert variable_rate_loss([(size, rate, rate)]) == swapping_loss(size, rate)


def test_theorem_a_a_rate_may_look_at_other_records_through_the_invariants() -> None:
    """99% where nobody else lives in the block: a function of n_m.s, the same in all of the universe."""
    low, high = Fraction(1, 100), Fraction(99, 100)

    def rule(data: Sequence[tuple[int, int, int]]) -> list[Fraction]:
        living = Counter(s for _, _, s in data)
        return [high if living[s] == 1 else low for _, _, s in data]

    for size, hold, swap in patterns(2, 3, 4):
        assert exact_loss(pattern_records(hold, swap), rule).loss <= variable_rate_loss([(size, low, high)])


def test_a_rate_that_looks_at_h_and_s_jointly_breaks_theorem_a() -> None:
    """99% for one combination of h and s, 1% for all others, three distinct records."""
    low, high = Fraction(1, 100), Fraction(99, 100)
    worst = exact_loss(
        [(0, 0, 0), (0, 1, 1), (0, 2, 2)],
        lambda data: [high if (h, s) == (2, 2) else low for _, h, s in data],
    )
    assert worst.loss.rounded(3) == "6.688"
    assert variable_rate_loss([(3, low, high)]).rounded(3) == "5.981"
    assert worst.data == ((0, 0, 0), (0, 1, 1), (0, 2, 2))


def test_a_rate_that_looks_at_other_records_breaks_theorem_a() -> None:
    """99% for a record unique in its block, 1% for the others: two h and two s, twice each."""
    low, high = Fraction(1, 100), Fraction(99, 100)

    def rule(data: Sequence[tuple[int, int, int]]) -> list[Fraction]:
        return [high if data.count(record) == 1 else low for record in data]

    loss = exact_loss(pattern_records((2, 2), (2, 2)), rule).loss
    assert loss.rounded(3) == "8.521"
    assert variable_rate_loss([(4, low, high)]).rounded(3) == "6.205"


# Imputed records held fixed


@pytest.mark.parametrize("rate", RATES)
def test_imputed_records_held_fixed_lose_what_the_others_lose(rate: Fraction) -> None:
    held = [(0, 0, 1), (0, 0, 1), (0, 7, 0)]
    for size, hold, swap in patterns(1, 2, 3, 4):
        records = [*pattern_records(hold, swap), *held]
        loss = exact_loss(records, rate, imputed=[False] * size + [True] * len(held)).loss
        assert loss == audited(hold, swap, rate)
        assert loss <= swapping_loss(size if max(len(hold), len(swap)) > 1 else 0, rate)


def test_imputed_records_stand_in_every_data_set_and_output() -> None:
    records, imputed = [(0, "a", 1), (0, "b", 2), (0, "c", 3)], [False, True, False]
    data = universe(records, imputed)
    assert data == [((0, "a", 1), (0, "c", 3), (0, "b", 2)), ((0, "a", 3), (0, "c", 1), (0, "b", 2))]
    law = outcomes(data[0], Fraction(1, 2), [True, True, False])
    assert set(law) == {tuple(sorted(x)) for x in data}


def test_data_sets_that_differ_in_imputed_records_are_told_apart() -> None:
    """Both have the same margins; the imputed record comes out as it went in."""
    first = ((0, "a", 1, "imputed"), (0, "b", 2, "given"), (0, "c", 3, "given"))
    second = ((0, "a", 2, "imputed"), (0, "b", 1, "given"), (0, "c", 3, "given"))

    def mechanism(data: tuple[tuple[object, ...], ...]) -> dict[tuple[tuple[object, ...], ...], Fraction]:
        eligible = [flag == "given" for *_, flag in data]
        return outcomes([record[:3] for record in data], Fraction(1, 2), eligible)

    assert mechanism_loss([first, second], mechanism).loss == INFINITY


# Other swapping methods: infinite loss, or no theorem


def test_a_fixed_number_of_swaps_has_infinite_loss() -> None:
    one = exact_loss([(0, "a", 1), (0, "b", 2)], "1/2", derange=only(lambda donors: len(donors) == 2))
    assert one.loss == INFINITY


def test_pairwise_disjoint_swaps_have_infinite_loss() -> None:
    three = [(0, "a", 1), (0, "b", 2), (0, "c", 3)]
    assert (
        exact_loss(three, "1/2", derange=only(lambda d: all(d[j] == i for i, j in d.items()))).loss
        == INFINITY
    )


def test_a_cap_on_swaps_has_infinite_loss() -> None:
    three = [(0, "a", 1), (0, "b", 2), (0, "c", 3)]
    assert exact_loss(three, "1/2", derange=only(lambda donors: len(donors) <= 2)).loss == INFINITY


def only(admitted: Callable[[dict[int, int]], bool]) -> Callable[..., dict[tuple[int, ...], object]]:
    """Uniform derangements, of which only some are admitted."""

    def derange(records: Sequence[object], selected: tuple[int, ...]) -> dict[tuple[int, ...], object]:
        every = uniform_derangements(records, selected)
        return {d: weight for d, weight in every.items() if admitted(dict(zip(selected, d, strict=True)))}

    return derange


def test_a_selection_has_non_vacuous_derangements_unless_h_or_s_is_constant() -> None:
    for size, hold, swap in patterns(1, 2, 3, 4, 5):
        for data in universe(pattern_records(hold, swap)):
            pairs = [record[1:] for record in data]
            found = non_vacuous_derangements(pairs, tuple(range(size)))
            assert bool(found) == (len(hold) > 1 and len(swap) > 1)


def test_without_vacuous_swaps_only_the_empty_selection_returns_the_data() -> None:
    pairs, p = [("a", 1), ("a", 1), ("b", 2)], Fraction(1, 2)
    law = stratum_outcomes(pairs, p, derange=non_vacuous_derangements)
    assert law == {tuple(pairs): Fraction(1, 4), (("a", 1), ("a", 2), ("b", 1)): Fraction(3, 4)}
    assert stratum_outcomes([("a", 1), ("a", 2)], p, derange=non_vacuous_derangements) == {
        (("a", 1), ("a", 2)): 1
    }


def test_without_vacuous_swaps_the_loss_is_finite_but_exceeds_theorem_1() -> None:
    records = pattern_records((2, 1), (2, 1))
    for rate, exceeds in ((Fraction(1, 2), False), (Fraction(3, 4), True), (Fraction(9, 10), True)):
        loss = exact_loss(records, rate, derange=non_vacuous_derangements).loss
        assert (swapping_loss(3, rate) < loss < INFINITY) == exceeds
    assert exact_loss(records, "3/4", derange=non_vacuous_derangements).loss == Exact.log(
        Fraction(1656, 37), 2
    )


def test_nearby_first_deranges_neighbours_and_gathers_those_alone() -> None:
    records = [("a", 10), ("b", 11), ("c", 20), ("d", 30), ("e", 31)]
    law = nearby_first(lambda s: s // 10, 0)
    assert law(records, (0, 1, 3, 4)) == {(1, 0, 4, 3): 1}
    assert law(records, (0, 2, 3)) == {(2, 3, 0): Fraction(1, 2), (3, 0, 2): Fraction(1, 2)}
    joined = law(records, (0, 1, 2, 3, 4))
    assert joined == {(1, 2, 0, 4, 3): Fraction(1, 2), (2, 0, 1, 4, 3): Fraction(1, 2)}
    assert law(records, (2, 3, 4)) == {(3, 4, 2): Fraction(1, 2), (4, 2, 3): Fraction(1, 2)}
    assert law(records, (2,)) == {} and law(records, ()) == {(): 1}


def test_nearby_first_is_uniform_if_anywhere_is_one() -> None:
    pairs = [("a", 10), ("b", 11), ("c", 20), ("d", 21)]
    uniform = stratum_outcomes(pairs, "1/3")
    assert stratum_outcomes(pairs, "1/3", derange=nearby_first(lambda s: s // 10, 1)) == uniform


def test_nearby_first_needs_a_share_of_uniform_derangements() -> None:
    records = [(0, h, s) for h, s in zip("abcd", (10, 11, 20, 21), strict=True)]
    near = [
        exact_loss(records, "1/4", derange=nearby_first(lambda s: s // 10, share)).loss
        for share in (0, "1/10")
    ]
    assert near[0] == INFINITY
    assert swapping_loss(4, "1/4") < near[1] < INFINITY
