"""Comparison of specifications against a brute force that knows only the definition of satisfaction."""

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache, cached_property

import numpy as np
import pytest
from scipy.special import ndtr

from stirred.casebook.census_2020 import SCHEMES
from stirred.spec import (
    Approximate,
    Budget,
    Comparison,
    Condition,
    Count,
    Distribution,
    Domain,
    Exact,
    FiniteMechanism,
    GaussianTradeOff,
    HammingUnordered,
    Multiplicative,
    Neighbours,
    NormalisedRenyi,
    NotStronger,
    Order,
    Renyi,
    Schema,
    Specification,
    Stage,
    SymmetricDifference,
    Trivial,
    catalogue,
    compare,
    from_invariants,
    satisfies,
)
from stirred.spec.blocks.input_premetric import Given
from stirred.spec.blocks.multiverse import Explicit
from stirred.spec.blocks.output_premetric import (
    ChiSquared,
    Coarsened,
    DensityRatio,
    Hellinger,
    KullbackLeibler,
    TotalVariation,
    Wasserstein,
)
from stirred.spec.order.bounds import bounds
from stirred.spec.order.comparison import BlockVerdict
from stirred.spec.order.witness import WIDEST

Table = list[list[Decimal]]
INF = Decimal("Infinity")
SAME = Decimal(1).scaleb(-40)
DISTANCES = ("0", "1/2", "1", "1", "1", "3/2", "2", "3", "inf")
EPSILONS = ("0", "1/3", "ln(3/2)", "ln(2)", "1", "ln(4)", "2", "3", "inf")
SQUARES = ("0", "1/8", "1/4", "1/3", "1/2", "1", "2", "25", "inf")
UNRANKED = {Order.INCOMPARABLE, Order.UNDECIDED}
CHUNKS = [
    *(("epsilon", chunk) for chunk in range(5)),
    ("rho_squared", 0),
    *(pytest.param("epsilon", chunk, marks=pytest.mark.slow) for chunk in range(5, 10)),
    *(pytest.param("rho_squared", chunk, marks=pytest.mark.slow) for chunk in range(1, 10)),
]
PAIRS = 25
NARROW = 1e-3


@cache
def value(text: str) -> Decimal:
    """A number of the sketch language, read without the library: rationals, ln(r), sqrt(r), inf."""
    with localcontext() as context:
        context.prec = 60
        if text == "inf":
            return INF
        inner = text[text.index("(") + 1 : -1] if "(" in text else text
        fraction = Fraction(inner)
        number = Decimal(fraction.numerator) / Decimal(fraction.denominator)
        return number.ln() if text.startswith("ln") else number.sqrt() if text.startswith("sqrt") else number


def below(left: Decimal, right: Decimal) -> bool:
    """Left <= right; the sketches' numbers are equal or differ by far more than 1e-40."""
    return left <= right or left - right < SAME


@dataclass(frozen=True)
class Sketch:
    """A finite specification in plain Python: the twin against which the library is held."""

    size: int
    universes: tuple[tuple[int, ...], ...]
    distances: tuple[tuple[str, ...], ...]
    budgets: tuple[str, ...]
    kind: str

    @cached_property
    def explicit(self) -> Table:
        """Equation 2.3 with 0 times infinity infinite: what each ordered pair is allowed."""
        with localcontext() as context:
            context.prec = 60
            amounts = [value(text) for text in self.budgets]
            budgets = [a.sqrt() for a in amounts] if self.kind == "rho_squared" else amounts
            table = [[INF] * self.size for _ in range(self.size)]
            for number, universe in enumerate(self.universes):
                budget = budgets[0 if len(budgets) == 1 else number]
                for x, y in itertools.permutations(universe, 2):
                    distance = value(self.distances[x][y])
                    if INF not in (budget, distance):
                        table[x][y] = min(table[x][y], budget * distance)
        return table

    def edge(self, x: int, y: int) -> Decimal:
        """D_Mult and D_NoR are symmetric, so either order bounds the pair."""
        return min(self.explicit[x][y], self.explicit[y][x])

    @cached_property
    def implied(self) -> Table:
        """The least total over every simple path between two points."""
        points = range(self.size)
        table = [[Decimal(0) if x == y else INF for y in points] for x in points]
        with localcontext() as context:
            context.prec = 60
            for length in range(2, self.size + 1):
                for path in itertools.permutations(points, length):
                    total = sum((self.edge(a, b) for a, b in itertools.pairwise(path)), Decimal(0))
                    table[path[0]][path[-1]] = min(table[path[0]][path[-1]], total)
        return table

    def stronger_than(self, other: "Sketch") -> bool:
        """Whether every constraint that the other makes is implied here."""
        pairs = itertools.permutations(range(self.size), 2)
        return all(below(self.implied[x][y], other.explicit[x][y]) for x, y in pairs)

    def specification(self) -> Specification:
        domain = Domain.finite(range(self.size))
        given = Given(unit="unit", points=domain.enumerate(), distances=self.distances)
        kind = self.kind
        return Specification(
            domain=domain,
            multiverse=Explicit(parts=self.universes),
            input_premetric=given,
            output_premetric=Multiplicative() if kind == "epsilon" else NormalisedRenyi(),
            budget=Budget.by_universe(kind, self.budgets),
        )


def drawn(random_: random.Random, size: int, kind: str) -> Sketch:
    """Overlapping universes that need not cover, an asymmetric premetric, budgets constant or not."""
    count = random_.randint(1, 3)
    universes = tuple(
        tuple(sorted(random_.sample(range(size), random_.choice((2, size, size))))) for _ in range(count)
    )
    symmetric = random_.random() < 0.4
    table = [["0"] * size for _ in range(size)]
    for x, y in itertools.permutations(range(size), 2):
        table[x][y] = table[y][x] if symmetric and y < x else random_.choice(DISTANCES)
    amounts = EPSILONS if kind == "epsilon" else SQUARES
    constant = random_.random() < 0.4
    budgets = tuple(random_.choice(amounts) for _ in range(1 if constant else count))
    return Sketch(size, universes, tuple(map(tuple, table)), budgets, kind)


def nudged(random_: random.Random, sketch: Sketch) -> Sketch:
    """The same specification with one thing moved: a budget, a distance or a universe."""
    move = random_.choice(("budget", "distance", "shrink", "drop", "merge"))
    universes = [list(u) for u in sketch.universes]
    budgets = [sketch.budgets[0 if len(sketch.budgets) == 1 else i] for i in range(len(universes))]
    table = [list(row) for row in sketch.distances]
    index = random_.randrange(len(universes))
    if move == "budget":
        budgets[index] = random_.choice(EPSILONS if sketch.kind == "epsilon" else SQUARES)
    elif move == "distance":
        x, y = random_.sample(range(sketch.size), 2)
        table[x][y] = random_.choice(DISTANCES)
    elif move == "shrink":
        universes[index].remove(random_.choice(universes[index]))
    elif move == "drop" and len(universes) > 1:
        del universes[index], budgets[index]
    else:
        universes.append(sorted({*universes[index], *random_.choice(universes)}))
        budgets.append(random_.choice(budgets))
    parts = tuple(map(tuple, universes))
    return replace(sketch, universes=parts, budgets=tuple(budgets), distances=tuple(map(tuple, table)))


def moved(random_: random.Random, sketch: Sketch) -> Sketch:
    """Two nudges that are felt by some pair, unless five in a row are not."""
    pairs = list(itertools.permutations(range(sketch.size), 2))
    for _ in range(5):
        other = nudged(random_, nudged(random_, sketch))
        if any(other.edge(x, y) != sketch.edge(x, y) for x, y in pairs):
            break
    return other


def normalised(random_: random.Random, sketch: Sketch) -> Sketch:
    """The implied constraints of a rational sketch as one table, and one of them perhaps changed."""
    points = range(sketch.size)
    table = [["0" if x == y else rational(sketch.implied[x][y]) for y in points] for x in points]
    for _ in range(random_.randint(0, 2)):
        x, y = random_.sample(points, 2)
        if table[x][y] != "inf":
            changed = Fraction(table[x][y]) + random_.choice((-1, 1)) * Fraction(1, 4)
            table[x][y] = table[y][x] = str(max(Fraction(0), changed))
    whole = (tuple(points),)
    return replace(sketch, universes=whole, budgets=("1",), distances=tuple(map(tuple, table)))


def rational(number: Decimal) -> str:
    return "inf" if number == INF else str(Fraction(number).limit_denominator(1000))


def pair_of_sketches(seed: int, kind: str) -> tuple[Sketch, Sketch]:
    random_ = random.Random(f"{kind} {seed}")
    first = drawn(random_, random_.choice((2, 3, 3, 4, 4)), kind)
    mode = random_.random()
    if mode < 0.45:
        return first, drawn(random_, first.size, kind)
    if mode < 0.75:
        return first, moved(random_, first)
    plain = replace(
        first,
        kind="epsilon" if kind == "epsilon" else "rho",
        budgets=tuple(random_.choice(("0", "1/4", "1/2", "1", "3/2", "2", "inf")) for _ in first.budgets),
    )
    return plain, normalised(random_, plain)


def multiplicative(p: Distribution, q: Distribution) -> float:
    """D_Mult from its definition on atoms."""
    worst = 0.0
    for outcome in p.support | q.support:
        if p[outcome] == 0 or q[outcome] == 0:
            return math.inf
        worst = max(worst, abs(math.log(p[outcome] / q[outcome])))
    return worst


def renyi_from_below(p: Distribution, q: Distribution) -> float:
    """D_NoR on a grid of orders, with Kullback-Leibler: never above the supremum."""
    if p.support != q.support:
        return math.inf
    if p == q:
        return 0.0
    outcomes = sorted(p.support, key=repr)
    masses = np.array([[float(law[o]) for o in outcomes] for law in (p, q)])
    best = 0.0
    for a, b in (masses, masses[::-1]):
        loss = np.log(a / b)
        best = max(best, float(a @ loss))
        for order in (1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 9.0, 20.0, 60.0):
            exponents = np.minimum((order - 1) * loss, 600)
            moment = math.log1p(float(a @ np.expm1(exponents)))
            best = max(best, moment / (order - 1) / order)
    return math.sqrt(best)


def respects(mechanism: FiniteMechanism, sketch: Sketch, measure: Callable[..., float]) -> bool:
    """Definition 2.4.4 by the twin's own arithmetic, to a relative 1e-7."""
    pairs = itertools.permutations(range(sketch.size), 2)
    return all(
        measure(mechanism.laws[x], mechanism.laws[y]) <= float(sketch.explicit[x][y]) * (1 + 1e-7) + 1e-9
        for x, y in pairs
    )


def sound_mechanisms(random_: random.Random, sketch: Sketch) -> list[FiniteMechanism]:
    """Mechanisms that satisfy a sketch, as close to its constraints as a random choice gets."""
    points = range(sketch.size)
    bound = [[float(sketch.implied[x][y]) for y in points] for x in points]
    twin = [next(y for y in points if bound[x][y] < 1e-30) for x in points]
    heights = lipschitz(random_, bound, twin)
    domain = Domain.finite(points)
    tables = [noisy(sketch.kind, heights)]
    if sketch.kind == "epsilon":
        tables.append(mixed(random_, bound, twin))
    return [FiniteMechanism(domain, dict(enumerate(laws))) for laws in tables]


def lipschitz(random_: random.Random, bound: Sequence[Sequence[float]], twin: Sequence[int]) -> list[float]:
    """McShane's extension of random anchors: the largest function with those slopes."""
    anchors = [random_.uniform(0, 4) for _ in bound]
    return [min(anchor + bound[s][twin[x]] for s, anchor in enumerate(anchors)) for x in range(len(bound))]


def noisy(kind: str, heights: Sequence[float]) -> list[Distribution]:
    """For D_Mult two outputs, the second with log-mass h; for D_NoR a Gaussian around sqrt 2 h in bins."""
    safe, top = 1 - 1e-6, max(heights)
    if kind == "epsilon":
        masses = [Fraction(math.exp(safe * (h - top))) / 2 for h in heights]
        return [Distribution({1: mass, 0: 1 - mass}) for mass in masses]
    means = [math.sqrt(2) * safe * h for h in heights]
    edges = np.linspace(min(means) - 3, max(means) + 3, 13)
    binned = []
    for mean in means:
        cumulative = ndtr(np.concatenate([[-np.inf], edges - mean, [np.inf]]))
        parts = [Fraction(float(m)) for m in np.diff(cumulative)]
        binned.append(Distribution({k: part / sum(parts) for k, part in enumerate(parts)}))
    return binned


def mixed(
    random_: random.Random, bound: Sequence[Sequence[float]], twin: Sequence[int]
) -> list[Distribution]:
    """Random tables drawn towards the uniform one until D_Mult keeps every bound."""
    tables = [[random_.randint(0, 9) + Fraction(1, 50) for _ in range(3)] for _ in bound]
    share = Fraction(1)
    while True:
        laws = []
        for x in range(len(bound)):
            table = tables[twin[x]]
            parts = [(1 - share) / 3 + share * weight / sum(table) for weight in table]
            laws.append(Distribution(dict(enumerate(parts))))
        pairs = itertools.permutations(range(len(bound)), 2)
        if all(multiplicative(laws[x], laws[y]) <= bound[x][y] * (1 - 1e-9) for x, y in pairs):
            return laws
        share *= Fraction(3, 4)


def order_of(forward: bool, backward: bool) -> Order:
    names = {
        (True, True): Order.EQUIVALENT,
        (True, False): Order.STRONGER,
        (False, True): Order.WEAKER,
        (False, False): Order.INCOMPARABLE,
    }
    return names[forward, backward]


def check_witness(found: NotStronger, first: Sketch, second: Sketch) -> None:
    """The pair is one the brute force finds too, and the mechanism separates the specifications."""
    x, y = found.pair
    reachable, allowed = first.implied[x][y], second.edge(x, y)
    assert float(found.reachable) == pytest.approx(float(reachable))
    assert float(found.allowed) == pytest.approx(float(allowed))
    assert not below(reachable, allowed)
    if found.mechanism is None:
        assert first.kind != "epsilon", "D_Mult always has a witness"
        target = min(reachable, allowed + 1)
        wide, narrow = math.sqrt(2) * float(target) > WIDEST, float(target - allowed) < NARROW * float(target)
        assert wide or narrow, "no witness, though the gap is neither wide nor narrow"
        return
    assert satisfies(found.mechanism, first.specification()).satisfied
    assert not satisfies(found.mechanism, second.specification()).satisfied
    measure = multiplicative if first.kind == "epsilon" else renyi_from_below
    assert respects(found.mechanism, first, measure)
    assert not respects(found.mechanism, second, measure)


@pytest.mark.parametrize(("kind", "chunk"), CHUNKS)
def test_r31_exact_comparison_agrees_with_all_simple_paths(kind: str, chunk: int) -> None:
    """R31: A is stronger than B exactly when every constraint of B is implied along a path of A.

    500 pairs of specifications. Where A is stronger, random mechanisms that satisfy A satisfy B; where it
    is not, a witness satisfies A and violates B, confirmed by the verifier and by the twin's arithmetic.
    """
    tried, measure = 0, multiplicative if kind == "epsilon" else renyi_from_below
    for seed in range(chunk * PAIRS, (chunk + 1) * PAIRS):
        first, second = pair_of_sketches(seed, kind)
        a, b = first.specification(), second.specification()
        verdict = compare(a, b)
        forward, backward = first.stronger_than(second), second.stronger_than(first)
        assert verdict.exact
        assert verdict.overall == order_of(forward, backward), (seed, first, second)
        assert (verdict.first_not_stronger is None) == forward
        assert (verdict.second_not_stronger is None) == backward
        for found, one, two in (
            (verdict.first_not_stronger, first, second),
            (verdict.second_not_stronger, second, first),
        ):
            if found is not None:
                check_witness(found, one, two)
                continue
            for mechanism in sound_mechanisms(random.Random(seed), one):
                assert respects(mechanism, one, measure)
                assert satisfies(mechanism, two.specification()).satisfied
                tried += 1
    assert tried >= PAIRS // 2


def test_the_random_pairs_cover_every_verdict() -> None:
    for kind in ("epsilon", "rho_squared"):
        seen = {Order.STRONGER: 0, Order.WEAKER: 0, Order.EQUIVALENT: 0, Order.INCOMPARABLE: 0}
        for seed in range(250):
            first, second = pair_of_sketches(seed, kind)
            seen[order_of(first.stronger_than(second), second.stronger_than(first))] += 1
        assert min(seen.values()) >= 20, seen


def two_points(
    budget: Budget, output: object = None, distances: object = (("0", "1"), ("1", "0"))
) -> Specification:
    domain = Domain.finite((0, 1))
    return Specification(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=Given(unit="unit", points=(0, 1), distances=distances),
        output_premetric=output or Multiplicative(),
        budget=budget,
    )


@pytest.mark.parametrize(
    ("large", "small"), [(2000, 1000), (800, 790), (30, 20), (1, 0), ("inf", 1000), (1, "1e-9")]
)
def test_r31_pure_witness_at_extreme_budgets(large: object, small: object) -> None:
    """A witness that is returned separates the two, also where e to the budget leaves the floats."""
    a, b = two_points(Budget.epsilon(large)), two_points(Budget.epsilon(small))
    verdict = compare(a, b)
    assert verdict.overall == Order.WEAKER
    assert verdict.first_not_stronger is not None
    mechanism = verdict.first_not_stronger.mechanism
    if mechanism is not None:
        assert satisfies(mechanism, a).satisfied
        assert not satisfies(mechanism, b).satisfied


@pytest.mark.parametrize("digits", [3, 9, 15, 17, 20, 40])
def test_r31_pure_witness_at_narrow_gaps(digits: int) -> None:
    """The same for two budgets that a float cannot tell apart."""
    a, b = two_points(Budget.epsilon(1 + Fraction(1, 10**digits))), two_points(Budget.epsilon(1))
    verdict = compare(a, b)
    assert verdict.overall == Order.WEAKER
    assert verdict.first_not_stronger is not None
    mechanism = verdict.first_not_stronger.mechanism
    if mechanism is not None:
        assert satisfies(mechanism, a).satisfied
        assert not satisfies(mechanism, b).satisfied


def test_r31_zcdp_verdict_stands_where_no_witness_fits_the_floats() -> None:
    a = two_points(Budget.zcdp(rho=40), NormalisedRenyi())
    b = two_points(Budget.zcdp(rho=20), NormalisedRenyi())
    verdict = compare(a, b)
    assert verdict.overall == Order.WEAKER
    assert verdict.first_not_stronger is not None
    assert verdict.first_not_stronger.mechanism is None


def of_block(verdict: Comparison, name: str) -> BlockVerdict:
    return next(b for b in verdict.blocks if b.block == name)


def test_swapping_and_topdown_are_incomparable_block_by_block() -> None:
    """Table 4: other invariants, another unit, another measure; the budgets are in two currencies."""
    verdict = compare(catalogue.specification("psa-2020-county"), catalogue.specification("tda-dhc"))
    assert verdict.overall == Order.INCOMPARABLE
    assert not verdict.exact
    assert verdict.differing == ("multiverse", "input_premetric", "output_premetric", "budget")
    assert [str(b.order) for b in verdict.blocks] == [
        "equivalent",
        "incomparable",
        "incomparable",
        "stronger",
        "incomparable",
    ]
    assert "protection units differ (household and person)" in of_block(verdict, "input_premetric").reason
    assert "invariants of neither contain" in of_block(verdict, "multiverse").reason
    assert not verdict.budgets_ranked
    assert "not ranked" in of_block(verdict, "budget").reason
    assert "nominal" in verdict.sentence() and "are not ranked" in verdict.sentence()
    assert verdict.flavor_order == Order.INCOMPARABLE


def at_budget(specification: Specification, epsilon: object) -> Specification:
    return Specification(**dict(specification) | {"budget": Budget.epsilon(epsilon)})


@pytest.mark.parametrize(("first", "second"), list(itertools.combinations(range(len(SCHEMES)), 2)))
def test_proposition_3_orders_the_swapping_schemes_of_table_5(first: int, second: int) -> None:
    """Every later row of Table 5 keeps all the tables of an earlier one exact, so its flavor is weaker."""
    a, b = SCHEMES[first].specification("0.05"), SCHEMES[second].specification("0.05")
    verdict = compare(a, b)
    assert verdict.flavor_order == Order.STRONGER
    assert of_block(verdict, "multiverse").order == Order.STRONGER
    assert verdict.overall in UNRANKED, "the weaker flavor has the smaller budget"
    assert not verdict.budgets_ranked
    level = compare(at_budget(a, 17), at_budget(b, 17))
    assert level.overall == Order.STRONGER
    assert "Proposition 3" in level.reason
    assert compare(at_budget(b, 17), at_budget(a, 17)).overall == Order.WEAKER
    assert compare(at_budget(a, 17), at_budget(b, 18)).overall == Order.STRONGER
    assert compare(at_budget(a, 18), at_budget(b, 17)).overall in UNRANKED


def test_proposition_3_on_an_enumerated_twin() -> None:
    """Nested invariants on data sets that can be listed: the exact verdict and the theorem agree."""
    schema = Schema.of(match=(0, 1), swap=(0, 1))
    domain = Domain.datasets(schema, sizes=(2,))
    coarse, fine = Count(unit="record", by=("match",)), Count(unit="record", by=("swap",))
    build = {
        name: Specification(
            domain=domain,
            multiverse=from_invariants(*invariants),
            input_premetric=HammingUnordered(unit="record"),
            output_premetric=Multiplicative(),
            budget=Budget.epsilon("ln(3)"),
        )
        for name, invariants in {"few": (coarse,), "many": (coarse, fine)}.items()
    }
    verdict = compare(build["few"], build["many"])
    assert verdict.exact
    assert verdict.overall == Order.STRONGER
    assert verdict.flavor_order == Order.STRONGER
    assert compare(build["many"], build["few"]).overall == Order.WEAKER


def households(move: bool) -> tuple[Domain, Given, Given]:
    """Two households of two people with a bit each; or two people who each live in one of two houses."""
    points = list(itertools.product((0, 1), repeat=2 if move else 4))

    def records(point: tuple[int, ...]) -> list[tuple[int, ...]]:
        if move:
            return [tuple(person for person in (0, 1) if point[person] == house) for house in (0, 1)]
        return [point[:2], point[2:]]

    def table(view: Callable[[tuple[int, ...]], Sequence[object]]) -> list[list[int]]:
        return [[sum(a != b for a, b in zip(view(x), view(y), strict=True)) for y in points] for x in points]

    return (
        Domain.finite(points),
        Given(unit="person", points=points, distances=table(tuple)),
        Given(unit="household", points=points, distances=table(records)),
    )


def of_unit(domain: Domain, premetric: Given, epsilon: object) -> Specification:
    return Specification(
        domain=domain,
        multiverse=Trivial(),
        input_premetric=premetric,
        output_premetric=Multiplicative(),
        budget=Budget.epsilon(epsilon),
    )


def test_proposition_2_4_15_household_is_stronger_than_person_with_fixed_membership() -> None:
    """d_h <= d_p <= 2 d_h where nobody moves: the household guarantee implies the person guarantee."""
    domain, person, household = households(move=False)
    found = bounds(household, person, domain)
    assert found is not None
    assert (found.lower, found.upper) == (Exact.of(1), Exact.of(2))
    assert compare(of_unit(domain, household, 1), of_unit(domain, person, 1)).overall == Order.STRONGER
    assert compare(of_unit(domain, person, 1), of_unit(domain, household, 2)).overall == Order.STRONGER
    assert compare(of_unit(domain, person, 1), of_unit(domain, household, 1)).overall == Order.WEAKER
    assert (
        compare(of_unit(domain, person, 1), of_unit(domain, household, "19/10")).overall == Order.INCOMPARABLE
    )
    assert not compare(of_unit(domain, household, 1), of_unit(domain, person, 1)).budgets_ranked


def test_erratum_8_9_a_move_changes_two_households() -> None:
    """With household membership in the record, d_h = 2 at d_p = 1: only twice the budget carries over."""
    domain, person, household = households(move=True)
    found = bounds(person, household, domain)
    assert found is not None
    assert found.upper == Exact.of(2)
    assert compare(of_unit(domain, household, 1), of_unit(domain, person, 1)).overall != Order.STRONGER
    assert compare(of_unit(domain, household, 1), of_unit(domain, person, 2)).overall == Order.STRONGER


def test_units_of_different_name_are_never_called_equivalent() -> None:
    """d_HamS of persons and d_HamS of households are two premetrics, also on a domain that can be listed."""
    domain = Domain.datasets(Schema.of(a=("x", "y")), sizes=(2,))
    a, b = (
        Specification(
            domain=domain,
            multiverse=Trivial(),
            input_premetric=HammingUnordered(unit=unit),
            output_premetric=Multiplicative(),
            budget=Budget.epsilon(1),
        )
        for unit in ("person", "household")
    )
    verdict = compare(a, b)
    assert of_block(verdict, "input_premetric").order != Order.EQUIVALENT
    assert not verdict.budgets_ranked


def of_zcdp(square: object, distances: object = (("0", "1"), ("1", "0"))) -> Specification:
    return two_points(Budget.zcdp(rho_squared=square), NormalisedRenyi(), distances)


@pytest.mark.parametrize("epsilon", ["1", "ln(3)", "1/10", "8"])
@pytest.mark.parametrize("least", [1, 2])
def test_pure_dp_is_stronger_than_zcdp_exactly_down_to_that_of_randomised_response(
    epsilon: str, least: int
) -> None:
    """At distances of at least d0 pure DP gives rho squared epsilon tanh(epsilon d0 / 2) / d0, and no less.

    Randomised response at D_Mult = epsilon d0 attains it: its D_NoR is the limit at order one.
    """
    distances = (("0", str(least)), (str(least), "0"))
    pure = two_points(Budget.epsilon(epsilon), distances=distances)
    loss = float(Exact.of(epsilon)) * least
    square = loss * math.tanh(loss / 2) / least**2
    above, below = of_zcdp(square * 1.000001, distances), of_zcdp(square * 0.999999, distances)
    assert compare(pure, above).overall == Order.STRONGER
    assert compare(pure, below).implied is None
    for small in (above, below):
        assert compare(small, pure).overall not in {Order.STRONGER, Order.EQUIVALENT}
    truth = Fraction(math.exp(loss) / (1 + math.exp(loss)) * (1 - 1e-12))
    laws = {0: Distribution({0: truth, 1: 1 - truth}), 1: Distribution({0: 1 - truth, 1: truth})}
    response = FiniteMechanism(pure.domain, laws)
    assert satisfies(response, pure).satisfied
    assert satisfies(response, above).satisfied and not satisfies(response, below).satisfied


def test_the_least_distance_that_counts_is_that_of_the_implied_guarantee() -> None:
    """d' = 2 d starts at 2: pure DP at epsilon for d is epsilon/2 for d', and rho^2 that of both."""
    far = (("0", "2"), ("2", "0"))
    square = 1.5 * math.tanh(1.5) / 2
    assert compare(two_points(Budget.epsilon(3)), of_zcdp(square * 1.000001, far)).overall == Order.STRONGER
    assert compare(two_points(Budget.epsilon(3)), of_zcdp(square * 0.999999, far)).implied is None


def test_pure_dp_against_zcdp_in_rho() -> None:
    rho = math.sqrt(math.tanh(0.5))
    for factor, found in ((1.000001, True), (0.999999, None)):
        zcdp = two_points(Budget.zcdp(rho=rho * factor), NormalisedRenyi())
        assert compare(two_points(Budget.epsilon(1)), zcdp).implied is found


def test_implied_says_yes_no_or_nothing() -> None:
    one, half = two_points(Budget.epsilon(1)), two_points(Budget.epsilon("1/2"))
    assert compare(half, one).implied is True and compare(half, one).refutation() is None
    assert compare(one, half).implied is False
    wide, narrow = (catalogue.specification("pure-dp", Budget.epsilon(e)) for e in (1, "1/2"))
    assert compare(narrow, wide).implied is True
    assert "budget is larger" in (compare(wide, narrow).refutation() or "")
    elsewhere = catalogue.specification("bounded-dp", Budget.epsilon(1))
    assert compare(wide, elsewhere).implied is False
    curve = Specification(**dict(wide) | {"output_premetric": Renyi(alpha=2)})
    assert compare(curve, Specification(**dict(wide) | {"output_premetric": Hellinger(),
        "budget": Budget.loss(1)})).implied is None  # fmt: skip


def test_remark_2_4_7_different_domains_are_incomparable() -> None:
    small, large = Domain.finite((0, 1)), Domain.finite((0, 1, 2))
    a, b = (
        Specification(
            domain=domain,
            multiverse=Trivial(),
            input_premetric=Given(
                unit="unit",
                points=domain.enumerate(),
                distances=[["0" if x == y else "1" for y in domain.enumerate()] for x in domain.enumerate()],
            ),
            output_premetric=Multiplicative(),
            budget=Budget.epsilon(1),
        )
        for domain in (small, large)
    )
    verdict = compare(a, b)
    assert verdict.overall == Order.INCOMPARABLE
    assert verdict.flavor_order == Order.INCOMPARABLE
    assert verdict.differing == ("domain", "budget")
    assert not verdict.budgets_ranked
    raw = compare(a, Specification(**dict(a) | {"domain": Domain.finite((0, 1), stage=Stage.RAW_RESPONSES)}))
    assert raw.overall == Order.INCOMPARABLE
    assert "raw responses" in of_block(raw, "domain").reason


OUTPUTS = [
    (Multiplicative(), "epsilon"),
    (Approximate(delta=Exact.of("1e-6")), "epsilon"),
    (NormalisedRenyi(), "rho_squared"),
    (NormalisedRenyi(), "rho"),
    (Renyi(alpha=Exact.of(2)), "epsilon"),
    (KullbackLeibler(), "loss"),
    (TotalVariation(), "loss"),
    (Hellinger(), "loss"),
    (ChiSquared(), "loss"),
    (DensityRatio(), "epsilon"),
    (Wasserstein(), "loss"),
    (GaussianTradeOff(), "mu"),
]


@pytest.mark.parametrize(("output", "kind"), OUTPUTS)
@pytest.mark.parametrize("amounts", [("1/2",), ("1/2", "1/3"), ("inf",)])
def test_the_order_is_reflexive(output: object, kind: str, amounts: tuple[str, ...]) -> None:
    """Definition 2.4.9: M(A) is inside M(A), whatever the premetric and the budget."""
    specification = Specification(
        domain=Domain.finite((0, 1)),
        multiverse=Explicit(parts=((0, 1), (0,))),
        input_premetric=Given(unit="unit", points=(0, 1), distances=(("0", "1"), ("2", "0"))),
        output_premetric=output,
        budget=Budget.by_universe(kind, amounts),
    )
    verdict = compare(specification, specification)
    assert verdict.overall == Order.EQUIVALENT
    assert verdict.differing == ()
    assert verdict.budgets_ranked


@pytest.mark.parametrize(("output", "kind"), OUTPUTS)
def test_a_smaller_budget_is_stronger_within_one_flavor(output: object, kind: str) -> None:
    small, large = (two_points(Budget.by_universe(kind, (amount,)), output) for amount in ("1/3", "1/2"))
    verdict = compare(small, large)
    assert verdict.overall == Order.STRONGER
    assert verdict.budgets_ranked
    assert verdict.differing == ("budget",)
    assert compare(large, small).overall == Order.WEAKER


def test_r23_a_coarsened_event_algebra_is_never_incomparable_to_its_base() -> None:
    """The pushforward only lowers D_Mult, so the base at the same budget is stronger."""
    coarse = Coarsened(base=Multiplicative(), groups=(("a",), ("b", "c")), reason="test")
    base, weak = two_points(Budget.epsilon(1)), two_points(Budget.epsilon(1), coarse)
    verdict = compare(base, weak)
    assert of_block(verdict, "output_premetric").order == Order.STRONGER
    assert verdict.overall in {Order.STRONGER, Order.UNDECIDED}


def test_r23_two_coarsenings_are_ordered_by_their_groups() -> None:
    """Both verdicts cannot be "weaker": the one with finer groups looks at more events."""
    fine = Coarsened(base=Multiplicative(), groups=(("a",), ("b",), ("c",)), reason="test")
    coarse = Coarsened(base=Multiplicative(), groups=(("a", "b"), ("c",)), reason="test")
    a, b = two_points(Budget.epsilon(1), fine), two_points(Budget.epsilon(1), coarse)
    forward = of_block(compare(a, b), "output_premetric").order
    backward = of_block(compare(b, a), "output_premetric").order
    assert backward == forward.reversed
    assert forward in {Order.STRONGER, Order.UNDECIDED}


def test_invariants_that_add_up_to_another_are_not_called_incomparable_to_it() -> None:
    """The number of women and the number of men determine the number of people."""
    schema = Schema.of(sex=("f", "m"))
    domain = Domain(name="X", stage=Stage.DATABASE, record_schema=schema)
    women, men = (
        Count(unit="person", where=(Condition(attribute="sex", levels=(sex,)),)) for sex in ("f", "m")
    )
    a, b = (
        Specification(
            domain=domain,
            multiverse=from_invariants(*invariants),
            input_premetric=SymmetricDifference(unit="person"),
            output_premetric=Multiplicative(),
            budget=Budget.epsilon(1),
        )
        for invariants in ((women, men), (Count(unit="person"),))
    )
    assert compare(a, b).overall in {Order.WEAKER, Order.UNDECIDED}


def on_points(size: int, parts: Sequence[Sequence[int]], output: object, budget: Budget) -> Specification:
    """All points at distance one from each other."""
    return Specification(
        domain=Domain.finite(range(size)),
        multiverse=Explicit(parts=parts),
        input_premetric=Given(
            unit="unit",
            points=range(size),
            distances=[[int(x != y) for y in range(size)] for x in range(size)],
        ),
        output_premetric=output,
        budget=budget,
    )


@pytest.mark.parametrize(("output", "kind"), OUTPUTS)
def test_two_covers_of_the_same_pairs_are_not_called_incomparable(output: object, kind: str) -> None:
    """Neither multiverse refines the other, but both bound every pair alike: M(A) = M(B)."""
    budget = Budget.by_universe(kind, ("1/2",))
    first = on_points(4, ((0, 1, 2), (0, 3), (1, 3), (2, 3)), output, budget)
    second = on_points(4, ((1, 2, 3), (0, 1), (0, 2), (0, 3)), output, budget)
    assert compare(first, second).overall in {Order.EQUIVALENT, Order.UNDECIDED}


def test_a_zero_budget_is_not_called_incomparable_to_what_it_implies() -> None:
    """rho = 0 makes all laws the same, which satisfies pure DP on any multiverse."""
    nothing = on_points(3, ((0, 1, 2),), NormalisedRenyi(), Budget.zcdp(rho=0))
    pure = on_points(3, ((0, 1), (2,)), Multiplicative(), Budget.epsilon(1))
    assert compare(nothing, pure).overall in {Order.STRONGER, Order.UNDECIDED}


def test_known_orders_of_input_premetrics_on_a_domain_that_cannot_be_listed() -> None:
    """A.4: d_HamS is half the symmetric difference; without invariants neighbours reach it by chains."""
    domain = Domain(name="X", stage=Stage.DATABASE)

    def build(premetric: object, epsilon: object) -> Specification:
        return Specification(
            domain=domain,
            multiverse=Trivial(),
            input_premetric=premetric,
            output_premetric=Multiplicative(),
            budget=Budget.epsilon(epsilon),
        )

    unbounded, bounded = SymmetricDifference(unit="record"), HammingUnordered(unit="record")
    near = Neighbours(relation="replace", unit="record")
    assert compare(build(unbounded, 1), build(bounded, 2)).overall == Order.STRONGER
    assert compare(build(unbounded, 1), build(bounded, 1)).overall in UNRANKED
    assert compare(build(bounded, 1), build(near, 1)).overall == Order.EQUIVALENT
    assert compare(build(near, 1), build(bounded, 1)).overall == Order.EQUIVALENT


@pytest.mark.parametrize("seed", range(25))
def test_the_verdict_reverses_with_the_arguments(seed: int) -> None:
    first, second = (s.specification() for s in pair_of_sketches(seed, "epsilon"))
    forward, backward = compare(first, second), compare(second, first)
    assert backward.overall == forward.overall.reversed
    assert [b.order for b in backward.blocks] == [b.order.reversed for b in forward.blocks]
    assert backward.flavor_order == forward.flavor_order.reversed
