"""The exact slow twin of swapping: every output of every input of a tiny universe, in rationals.

A record is (m, h, s): matching, holding and swapping value; within one stratum it is (h, s). A data set
or output is a multiset of records, written as a sorted tuple. A permutation is a tuple of donors: record i
receives the swapping value of record ``donors[i]``.

Reference
    Algorithm 1, equation (5) and appendix C.2 of Bailie, Gong and Meng.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, combinations, permutations, product
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stirred.errors import InputError
from stirred.spec import ZERO, Exact, as_fraction, steepest

if TYPE_CHECKING:
    from numpy.typing import NDArray

Record = tuple[Any, ...]
Data = tuple[Record, ...]
Law = Mapping[Data, Fraction]
Weights = Mapping[tuple[int, ...], Fraction | int]
Derange = Callable[[Sequence[Record], tuple[int, ...]], Weights]


@dataclass(frozen=True)
class WorstCase:
    """The largest loss of a universe and a triple that attains it: P_data(output) / P_other(output)."""

    loss: Exact
    data: Data | None = None
    other: Data | None = None
    output: Data | None = None
    distance: int = 0


def uniform_derangements(records: Sequence[Record], selected: tuple[int, ...]) -> Weights:
    """Every derangement of the selected records alike: Algorithm 1.

    Like all laws of derangements here it returns weights, by donors of the selected records. No weights
    means that this selection cannot be deranged, and all records of the stratum are selected anew.
    """
    return {tuple(selected[i] for i in order): 1 for order in _derangements(len(selected))}


def non_vacuous_derangements(records: Sequence[Record], selected: tuple[int, ...]) -> Weights:
    """Every derangement that changes the multiset of records alike; uncertified.

    A selection that is constant in h or in s has none, and the stratum is selected anew. Nobody selected
    remains possible, so every data set can still come out.

    Reference
        Appendix C.2, "Prohibiting vacuous swaps"; the reselection is our reading.
    """
    before = Counter(records[i] for i in selected)
    return {
        donors: weight
        for donors, weight in uniform_derangements(records, selected).items()
        if not donors or Counter(_moved(records, selected, donors)) != before
    }


def nearby_first(near: Callable[[Any], Any], anywhere: object) -> Derange:
    """Derangements within neighbourhoods first; uncertified.

    Parameters
    ----------
    near
        The neighbourhood of a swapping value; neighbourhoods are sorted, neighbours stand side by side.
    anywhere
        The probability of a uniform derangement of all selected records instead. Without it some data
        sets cannot come out, and the loss is infinite.

    With the remaining probability the selected records of each neighbourhood are deranged uniformly among
    themselves. Records alone in their neighbourhood are deranged among each other; if there is only one,
    it joins the neighbourhood before it, or the first one there is.

    Reference
        Appendix C.2, "Nonuniform permutations", which leaves the law open; this is our choice.
    """
    (everywhere,) = _rates(anywhere, 1)

    def derange(records: Sequence[Record], selected: tuple[int, ...]) -> Weights:
        uniform = uniform_derangements(records, selected)
        weights = {donors: everywhere / len(uniform) for donors in uniform}
        groups = neighbourhoods(records, selected, near) if uniform else []
        choices = [tuple(uniform_derangements(records, group)) for group in groups]
        share = (1 - everywhere) / math.prod(map(len, choices))
        for choice in product(*choices) if uniform else ():
            donor = dict(zip(chain(*groups), chain(*choice), strict=True))
            weights[tuple(donor[i] for i in selected)] += share
        return {donors: weight for donors, weight in weights.items() if weight}

    return derange


def neighbourhoods(
    records: Sequence[Record], selected: tuple[int, ...], near: Callable[[Any], Any]
) -> list[tuple[int, ...]]:
    """The selected by neighbourhood; those who are alone stand together, a single one joins others."""
    places: dict[Any, list[int]] = {}
    for i in sorted(selected, key=lambda i: (near(records[i][-1]), i)):
        places.setdefault(near(records[i][-1]), []).append(i)
    groups = list(places.values())
    alone = [position for position, group in enumerate(groups) if len(group) == 1]
    if len(alone) == 1:
        lonely = groups.pop(alone[0])
        groups[max(alone[0] - 1, 0)] += lonely
        alone = []
    together = [tuple(groups[position][0] for position in alone)] if alone else []
    return [tuple(group) for group in groups if len(group) > 1] + together


def permutation_law(
    records: Sequence[Record],
    rates: object,
    eligible: Sequence[bool] | None = None,
    *,
    derange: Derange = uniform_derangements,
) -> dict[tuple[int, ...], Fraction]:
    """The law of the permutation of one stratum, as Algorithm 1 draws it.

    Parameters
    ----------
    rates
        One swap rate, or one for each record.
    eligible
        Which records may be selected; all, unless told. Fewer than two: nothing moves.
    """
    count = len(records)
    chances = _rates(rates, count)
    free = [i for i in range(count) if eligible is None or eligible[i]]
    if len(free) < 2:
        return {tuple(range(count)): Fraction(1)}
    drawn: list[tuple[tuple[int, ...], Fraction, Weights]] = []
    for selected in _subsets(free):
        taken = set(selected)
        chance = math.prod((chances[i] if i in taken else 1 - chances[i] for i in free), start=Fraction(1))
        weights = derange(records, selected) if chance else {}
        if weights:
            drawn.append((selected, chance, weights))
    accepted = _accepted([chance for _, chance, _ in drawn])
    law: dict[tuple[int, ...], Fraction] = {}
    for selected, chance, weights in drawn:
        share = chance / accepted / sum(weights.values())
        for donors, weight in weights.items():
            whole = list(range(count))
            for i, donor in zip(selected, donors, strict=True):
                whole[i] = donor
            law[tuple(whole)] = share if weight == 1 else share * weight
    return law


def _accepted(chances: Sequence[Fraction]) -> Fraction:
    """The probability that a selection can be deranged: one minus that of selecting anew."""
    if not chances:
        raise InputError(
            "the selection never succeeds",
            field="rates",
            expected="rates under which not always exactly one record is selected",
            hint="Keep rates strictly between 0 and 1.",
        )
    return sum(chances, start=Fraction(0))


def stratum_outcomes(
    records: Sequence[Record],
    rates: object,
    eligible: Sequence[bool] | None = None,
    *,
    derange: Derange = uniform_derangements,
) -> dict[Data, Fraction]:
    """The exact probability of every output of one stratum of pairs (h, s).

    Examples
    --------
    >>> law = stratum_outcomes([("a", 1), ("b", 2)], Fraction(1, 4))
    >>> {output: str(chance) for output, chance in law.items()}
    {(('a', 1), ('b', 2)): '9/10', (('a', 2), ('b', 1)): '1/10'}
    """
    everyone = tuple(range(len(records)))
    law = permutation_law(records, rates, eligible, derange=derange)
    common = math.lcm(*{chance.denominator for chance in law.values()})
    counts: dict[Data, int] = {}
    for donors, chance in law.items():
        output = tuple(sorted(_moved(records, everyone, donors)))
        counts[output] = counts.get(output, 0) + chance.numerator * (common // chance.denominator)
    return {output: Fraction(count, common) for output, count in counts.items()}


def outcomes(
    records: Sequence[Record],
    rates: object,
    eligible: Sequence[bool] | None = None,
    *,
    derange: Derange = uniform_derangements,
) -> dict[Data, Fraction]:
    """The exact probability of every output of records (m, h, s): strata are independent."""
    chances = _rates(rates, len(records))
    allowed = [True] * len(records) if eligible is None else list(eligible)
    joint: dict[Data, Fraction] = {(): Fraction(1)}
    for members in _strata(records).values():
        law = stratum_outcomes(
            [records[i][1:] for i in members],
            [chances[i] for i in members],
            [allowed[i] for i in members],
            derange=derange,
        )
        m = records[members[0]][0]
        joint = {
            done + tuple((m, *pair) for pair in output): before * chance
            for done, before in joint.items()
            for output, chance in law.items()
        }
    return {tuple(sorted(output)): chance for output, chance in joint.items()}


def universe(records: Sequence[Record], imputed: Sequence[bool] | None = None) -> list[Data]:
    """All data sets of records (m, h, s) with the same counts of (m, h) and of (m, s), sorted.

    Imputed records stay as they are and stand at the end: their table is one more invariant.

    Examples
    --------
    >>> len(universe([(0, h, s) for h, s in zip("aabc", (1, 2, 2, 3))]))
    7
    """
    flags = [False] * len(records) if imputed is None else list(imputed)
    observed = [record for record, flag in zip(records, flags, strict=True) if not flag]
    held = tuple(sorted(record for record, flag in zip(records, flags, strict=True) if flag))
    parts = []
    for m, members in _strata(observed).items():
        hold, swap = (sorted(observed[i][column] for i in members) for column in (1, 2))
        parts.append(
            {
                tuple(sorted((m, h, s) for h, s in zip(hold, order, strict=True)))
                for order in permutations(swap)
            }
        )
    return sorted(tuple(sorted(chain(*choice))) + held for choice in product(*parts))


def exact_loss(
    records: Sequence[Record],
    rates: object,
    *,
    imputed: Sequence[bool] | None = None,
    derange: Derange = uniform_derangements,
) -> WorstCase:
    """The smallest epsilon that holds in the universe of records (m, h, s), by enumeration.

    Parameters
    ----------
    rates
        One swap rate, or a function that gives the rate of each record of a data set.
    imputed
        Records that are never selected. Data sets whose imputed records differ are infinitely far apart,
        so they are not compared.

    Guarantee
        max over x, x' of the universe and outputs z of  ln[P_x(z)/P_x'(z)] / d_HamS(x, x'),  exactly.

    Examples
    --------
    >>> exact_loss([(0, "a", 1), (0, "b", 2), (0, "c", 3)], Fraction(3, 4)).loss
    Exact('ln(3)')
    """
    if isinstance(rates, Sequence) and not isinstance(rates, str):
        raise InputError(
            "rates in a list do not say what they are in other data sets of the universe",
            field="rates",
            expected="one rate, or a function of a data set",
            hint="The loss compares data sets; give a function that finds the rates in each of them.",
        )
    held = sum(imputed) if imputed is not None else 0
    eligible = [True] * (len(records) - held) + [False] * held

    def mechanism(data: Data) -> Law:
        return outcomes(data, rates(data) if callable(rates) else rates, eligible, derange=derange)

    return mechanism_loss(universe(records, imputed), mechanism)


def mechanism_loss(datasets: Sequence[Data], mechanism: Callable[[Data], Law]) -> WorstCase:
    """The exact loss per unit of distance of any mechanism with finitely many inputs and outputs."""
    distances = _distances(datasets)
    values = [Exact.of(distance) for distance in range(int(distances.max(initial=0)) + 1)]
    found = steepest([mechanism(data) for data in datasets], distances, values)
    if found.x is None or found.y is None:
        return WorstCase(ZERO)
    data, other = datasets[found.x], datasets[found.y]
    output = cast("Data", found.outcome)
    return WorstCase(found.loss, data, other, output, int(distances[found.x, found.y]))


def _distances(datasets: Sequence[Data]) -> NDArray[np.int64]:
    cells = {record: i for i, record in enumerate(dict.fromkeys(chain(*datasets)))}
    counts = np.zeros((len(datasets), len(cells)), dtype=np.int64)
    for row, data in enumerate(datasets):
        for record in data:
            counts[row, cells[record]] += 1
    return np.array([np.abs(row - counts).sum(axis=1) // 2 for row in counts], dtype=np.int64)


def margin_patterns(size: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All universes of one stratum of so many records, up to relabelling: counts of h, counts of s.

    Examples
    --------
    >>> margin_patterns(2)
    [((2,), (2,)), ((2,), (1, 1)), ((1, 1), (2,)), ((1, 1), (1, 1))]
    """
    parts = list(_partitions(size, size))
    return list(product(parts, parts))


def pattern_records(hold: Sequence[int], swap: Sequence[int]) -> Data:
    """A data set (0, h, s) of one stratum with the given counts of h and of s."""
    h, s = ([label for label, count in enumerate(counts) for _ in range(count)] for counts in (hold, swap))
    return tuple((0, *pair) for pair in zip(h, s, strict=True))


def _partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    if total == 0:
        yield ()
    for first in range(min(total, largest), 0, -1):
        for rest in _partitions(total - first, first):
            yield (first, *rest)


@lru_cache(maxsize=16)
def _derangements(count: int) -> tuple[tuple[int, ...], ...]:
    return tuple(
        order for order in permutations(range(count)) if all(i != donor for i, donor in enumerate(order))
    )


def _subsets(members: Sequence[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(members, size) for size in range(len(members) + 1))


def _moved(records: Sequence[Record], selected: Sequence[int], donors: Sequence[int]) -> Iterator[Record]:
    for i, donor in zip(selected, donors, strict=True):
        yield (*records[i][:-1], records[donor][-1])


def _strata(records: Sequence[Record]) -> dict[Hashable, list[int]]:
    strata: dict[Hashable, list[int]] = {}
    for i, record in enumerate(records):
        strata.setdefault(record[0], []).append(i)
    return strata


def _rates(rates: object, count: int) -> list[Fraction]:
    if isinstance(rates, Sequence) and not isinstance(rates, str):
        chances = [as_fraction(rate) for rate in rates]
    else:
        chances = [as_fraction(rates)] * count
    if len(chances) != count or not all(0 <= chance <= 1 for chance in chances):
        raise InputError(
            "the swap rates do not fit the records",
            field="rates",
            expected="one number from 0 to 1, or one for each record",
            hint="Write Fraction(1, 20) for five per cent.",
        )
    return chances
