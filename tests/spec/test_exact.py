"""Exact numbers: canonical form, arithmetic and order against high-precision decimals, text, rounding."""

import copy
import math
import pickle
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.strategies import reproducibly

from stirred.errors import InputError, InvalidBudget, NotComputable, StirredError
from stirred.spec import INFINITY, ZERO, Budget, Exact, as_fraction

PRECISION = 150
CLOSE = Decimal("1e-90")

rationals = st.fractions(min_value=-9, max_value=9, max_denominator=12)
positives = st.fractions(min_value=Fraction(1, 20), max_value=30, max_denominator=20)
scales = st.fractions(min_value=-9, max_value=9, max_denominator=12)
radicands = st.fractions(min_value=0, max_value=60, max_denominator=9)
divisors = st.integers(1, 4)


class Twin:
    """An exact number together with the same number in decimals of 150 digits."""

    def __init__(self, exact: Exact, decimal: Decimal) -> None:
        self.exact = exact
        self.decimal = decimal


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@st.composite
def leaves(draw: st.DrawFn) -> Twin:
    with localcontext() as context:
        context.prec = PRECISION
        match draw(st.sampled_from(["rational", "log", "sqrt"])):
            case "rational":
                value = draw(rationals)
                return Twin(Exact(value), decimal(value))
            case "log":
                value, divisor = draw(positives), draw(divisors)
                return Twin(Exact.log(value, divisor), decimal(value).ln() / divisor)
            case _:
                value = draw(radicands)
                return Twin(Exact.sqrt(value), decimal(value).sqrt())


@st.composite
def twins(draw: st.DrawFn, terms: int = 4) -> Twin:
    """A sum of scaled rationals, logarithms and square roots."""
    total = Twin(ZERO, Decimal(0))
    with localcontext() as context:
        context.prec = PRECISION
        for _ in range(draw(st.integers(1, terms))):
            leaf, scale = draw(leaves()), draw(scales)
            total = Twin(total.exact + leaf.exact * scale, total.decimal + leaf.decimal * decimal(scale))
    return total


def decimal_of(value: Exact, places: int = 100) -> Decimal:
    """The value to so many decimal places, by way of the exact rounding up."""
    with localcontext() as context:
        context.prec = PRECISION
        return decimal(value.rounded_up(places))


# Canonical form: two numbers are equal exactly when they are the same real number.


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (Exact.log(9, 2), Exact.log(3)),
        (Exact.log(27, 3), Exact.log(3)),
        (Exact.log("8/27", 6), Exact.log("4/9", 4)),
        (Exact.log("1/9", 2), -Exact.log(3)),
        (Exact.log(4) - Exact.log(2), Exact.log(2)),
        (Exact.log(2, 2) + Exact.log(2, 3), Exact.log(32, 6)),
        (Exact.log(12) / 2 + Exact.log(3) / 2, Exact.log(6)),
        (Exact.log(1, 7), ZERO),
        (Exact.log(3) + Exact.log("1/3"), ZERO),
        (Exact.sqrt(2) + Exact.sqrt(8), Exact.sqrt(18)),
        (Exact.sqrt("1/2"), Exact.sqrt(2) / 2),
        (Exact.sqrt("9/4"), Exact.of("3/2")),
        (Exact.sqrt(0), ZERO),
        (Exact.sqrt(12) - Exact.sqrt(3) * 2, ZERO),
        (Exact.sqrt(10**12 + 39) * 3, Exact.sqrt(9 * (10**12 + 39))),
        (Exact.of("0.1") * 10, Exact.of(1)),
        (Exact.of(0.1), Exact.of("1/10")),
        (Exact.of(Decimal("0.10")), Exact.of(Fraction(1, 10))),
        (Exact.of(-0.0), ZERO),
    ],
)
def test_equal_numbers_have_one_form(left: Exact, right: Exact) -> None:
    assert left == right
    assert hash(left) == hash(right)
    assert str(left) == str(right)
    assert not left < right
    assert not left > right


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [
        (Exact.of("1.0986122886681096913"), Exact.log(3)),
        (Exact.log(3), Exact.of("1.0986122886681096914")),
        (Exact.sqrt(2), Exact.log("4.1132503787829277")),
        (Exact.sqrt(2) + Exact.sqrt(3), Exact.sqrt(10)),
        (Exact.sqrt(5) + Exact.sqrt(6) + Exact.sqrt(18), Exact.sqrt(4) + Exact.sqrt(12) + Exact.sqrt(12)),
        (-Exact.log(3), ZERO),
        (Exact.of(10**300), INFINITY),
        (Exact.log(2, 3), Exact.log(2, 2)),
    ],
)
def test_order_of_unequal_numbers(smaller: Exact, larger: Exact) -> None:
    assert smaller < larger
    assert larger > smaller
    assert smaller <= larger
    assert smaller != larger


def test_order_of_numbers_that_agree_to_a_hundred_digits() -> None:
    near = Exact(Exact.log(3).rounded_up(100))
    assert Exact.log(3) < near
    assert near < Exact.log(3) + Exact(Fraction(1, 10**99))


def test_square_roots_with_large_square_factors_are_equal_or_refused() -> None:
    p, q = 1_000_003, 1_000_033
    left, right = Exact.sqrt(p * p * q), Exact.sqrt(q) * p
    if left != right:
        with pytest.raises(NotComputable):
            assert left < right


@reproducibly(80)
@given(twins(), twins())
def test_order_agrees_with_decimals(first: Twin, second: Twin) -> None:
    gap = first.decimal - second.decimal
    if abs(gap) < CLOSE:
        assert first.exact == second.exact
        assert hash(first.exact) == hash(second.exact)
    else:
        assert first.exact != second.exact
        assert (first.exact < second.exact) == (gap < 0)
        assert (first.exact >= second.exact) == (gap > 0)


@reproducibly(60)
@given(st.lists(st.integers(2, 10**6), min_size=1, max_size=4), st.lists(st.integers(2, 10**6), max_size=3))
def test_logarithms_add_as_their_arguments_multiply(up: list[int], down: list[int]) -> None:
    whole = Exact.log(Fraction(math.prod(up), math.prod(down)))
    parts = ZERO
    for number in up:
        parts = parts + Exact.log(number)
    for number in down:
        parts = parts - Exact.log(number)
    assert parts == whole
    assert hash(parts) == hash(whole)
    assert parts.exponential == whole.exponential == Fraction(math.prod(up), math.prod(down))
    assert not parts < whole and not whole < parts
    assert Exact.parse(str(parts)) == whole


# Arithmetic.


@reproducibly(80)
@given(twins())
def test_value_agrees_with_decimals(twin: Twin) -> None:
    assert abs(decimal_of(twin.exact) - twin.decimal) < CLOSE
    assert math.isclose(float(twin.exact), float(twin.decimal), rel_tol=1e-15, abs_tol=1e-40)


@reproducibly(60)
@given(twins(), twins(), twins(), scales, scales)
def test_vector_space_laws(a: Twin, b: Twin, c: Twin, k: Fraction, m: Fraction) -> None:
    x, y, z = a.exact, b.exact, c.exact
    assert x + y == y + x
    assert (x + y) + z == x + (y + z)
    assert x + ZERO == x
    assert x - x == ZERO
    assert ZERO - (ZERO - x) == x
    assert -x == ZERO - x
    assert (x + y) * k == x * k + y * k
    assert x * (k + m) == x * k + x * m
    assert (x * k) * m == x * (k * m)
    assert x * 0 == ZERO
    assert k * x == x * k
    if k != 0:
        assert (x / k) * k == x


@reproducibly(60)
@given(twins(), twins(), twins(), st.fractions(min_value="1/9", max_value=9, max_denominator=9))
def test_order_is_kept_by_addition_and_positive_scaling(a: Twin, b: Twin, c: Twin, k: Fraction) -> None:
    assume(a.exact < b.exact)
    assert a.exact + c.exact < b.exact + c.exact
    assert a.exact * k < b.exact * k
    assert -b.exact < -a.exact


def test_infinity_absorbs_what_it_may_and_refuses_the_rest() -> None:
    assert INFINITY + Exact.log(2) == INFINITY
    assert Exact.of(-3) + INFINITY == INFINITY
    assert INFINITY - Exact.of(1) == INFINITY
    assert INFINITY * Fraction(1, 9) == INFINITY
    assert INFINITY / 3 == INFINITY
    assert not INFINITY < INFINITY
    assert INFINITY <= INFINITY
    for forbidden in (
        lambda: INFINITY * 0,
        lambda: INFINITY * -1,
        lambda: -INFINITY,
        lambda: INFINITY - INFINITY,
        lambda: Exact.of(1) - INFINITY,
        INFINITY.rounded_up,
    ):
        with pytest.raises(ArithmeticError):
            forbidden()


@pytest.mark.parametrize(
    "factor", [Fraction("0.3333"), Fraction(3000), Fraction("0.1234567"), Fraction(10**7)]
)
def test_multiples_of_a_logarithm_stay_small(factor: Fraction) -> None:
    """A multiple is a coefficient, not a power: its text does not grow with the factor."""
    value = Exact.log(3) * factor
    assert math.isclose(float(value), float(factor) * math.log(3), rel_tol=1e-14)
    assert len(str(value)) < 40


def test_views_as_rational_exponential_and_square() -> None:
    assert Exact.of("3/2").rational == Fraction(3, 2)
    assert Exact.log("3/2").rational is None
    assert Exact.log("3/2").exponential == Fraction(3, 2)
    assert ZERO.exponential == 1
    assert Exact.log(3, 2).exponential is None
    assert (Exact.log(3) + Exact.of(1)).exponential is None
    assert Exact.sqrt("15.29").square == Fraction("15.29")
    assert Exact.of(-3).square == 9
    assert (Exact.sqrt(2) + Exact.sqrt(3)).square is None
    for view in (INFINITY.rational, INFINITY.exponential, INFINITY.square):
        assert view is None
    assert INFINITY.is_infinite and not Exact.log(2).is_infinite
    assert Exact.log(1).is_zero and not Exact.sqrt(2).is_zero and not INFINITY.is_zero


# Text.


@reproducibly(80)
@given(twins())
def test_text_round_trip(twin: Twin) -> None:
    assert Exact.parse(str(twin.exact)) == twin.exact
    assert Exact.of(str(twin.exact)) == twin.exact


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", ZERO),
        ("inf", INFINITY),
        ("∞", INFINITY),
        ("15.29", Exact.of(Fraction(1529, 100))),
        ("-7/3", Exact.of(Fraction(-7, 3))),
        ("1e-10", Exact.of(Fraction(1, 10**10))),
        ("1e+3", Exact.of(1000)),
        ("ln(3/2)", Exact.log(Fraction(3, 2))),
        ("ln(9)/2", Exact.log(3)),
        ("2*ln(3)", Exact.log(9)),
        ("-1/2*ln(4)", -Exact.log(2)),
        ("1/10*sqrt(1529)", Exact.sqrt("15.29")),
        ("sqrt(8)/2", Exact.sqrt(2)),
        ("1 + ln(2) + -1*sqrt(2) + 2*sqrt(3)", None),
    ],
)
def test_text_is_read_exactly(text: str, value: Exact | None) -> None:
    expected = value or Exact.of(1) + Exact.log(2) - Exact.sqrt(2) + Exact.sqrt(12)
    assert Exact.parse(text) == expected


GARBAGE = [
    "",
    " ",
    "nan",
    "NaN",
    "-inf",
    "one",
    "1/0",
    "ln(0)",
    "ln(-1)",
    "ln()",
    "ln(2",
    "sqrt(-1)",
    "1++2",
    "1+",
    "ln(2)*sqrt(2)",
    "inf+1",
    "2**3",
    "exp(1)",
    "0x10",
    "1,5",
    "ln(3)/0",
    "sqrt(2)/0",
    "1/0*ln(2)",
    "1/0*sqrt(2)",
    "1 2",
    "ln(1 2)",
]


@pytest.mark.parametrize("text", GARBAGE)
def test_garbage_text_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Exact.of(text)


@pytest.mark.parametrize("text", GARBAGE)
def test_garbage_budgets_are_refused(text: str) -> None:
    with pytest.raises(InvalidBudget):
        Budget.epsilon(text)


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        None,
        float("nan"),
        float("-inf"),
        Decimal("NaN"),
        Decimal("-Infinity"),
        1j,
        b"1",
        [1],
        (1,),
        np.bool_(True),
        np.float64("nan"),
        object(),
    ],
)
def test_what_is_not_a_number_is_refused(value: object) -> None:
    with pytest.raises(InputError):
        Exact.of(value)
    with pytest.raises(InputError):
        as_fraction(value)


@pytest.mark.parametrize("value", [0, -1, "-3/2", "nan", True])
def test_logarithms_of_non_positive_numbers_are_refused(value: object) -> None:
    with pytest.raises(InputError):
        Exact.log(value)


def test_divisors_below_one_and_negative_radicands_are_refused() -> None:
    with pytest.raises(InputError):
        Exact.log(2, 0)
    with pytest.raises(InputError):
        Exact.log(2, -1)
    with pytest.raises(InputError):
        Exact.sqrt("-1/9")


def test_infinite_floats_are_read_and_computed_nan_is_refused() -> None:
    assert Exact.of(math.inf) == INFINITY
    assert Exact.computed(math.inf) == INFINITY
    assert Exact.computed(0.1) == Exact(Fraction(0.1))
    assert Exact.computed(0.1) != Exact.of(0.1)
    for bad in (math.nan, -math.inf):
        with pytest.raises(NotComputable):
            Exact.computed(bad)


def test_numpy_scalars_read_as_python_numbers() -> None:
    assert Exact.of(np.float64(0.1)) == Exact.of("1/10")
    assert Exact.of(np.int64(3)) == Exact.of(3)


def test_comparison_with_plain_numbers_is_an_error_not_a_guess() -> None:
    with pytest.raises(TypeError):
        assert Exact.of(1) < 2  # type: ignore[operator]
    assert Exact.of(1) != 1


# Rounding against the user.


@reproducibly(60)
@given(twins())
def test_float_up_is_the_least_float_not_below(twin: Twin) -> None:
    up = twin.exact.float_up()
    assert Exact(Fraction(up)) >= twin.exact
    assert Exact(Fraction(math.nextafter(up, -math.inf))) < twin.exact


@pytest.mark.parametrize(
    "value",
    [
        Exact.log(1 + Fraction(1, 10**30)),
        Exact.log(1 + Fraction(1, 10**70)),
        Exact.log(1 + Fraction(1, 10**200)),
        Exact.log(3) - Exact(Exact.log(3).rounded_up(60)) + Exact(Fraction(1, 10**59)),
        Exact.sqrt(2) - Exact(Fraction(14142135623730950488, 10**19)),
        Exact.of("1e-400"),
        Exact.of("1e400"),
    ],
    ids=["ln(1+1e-30)", "ln(1+1e-70)", "ln(1+1e-200)", "ln 3 less 60 digits", "sqrt 2", "1e-400", "1e400"],
)
def test_float_up_is_never_below_a_tiny_or_huge_number(value: Exact) -> None:
    assert value > ZERO
    assert Exact.computed(value.float_up()) >= value


def test_float_up_of_infinity() -> None:
    assert INFINITY.float_up() == math.inf
    assert float(INFINITY) == math.inf


@reproducibly(80)
@given(twins(), st.integers(0, 12))
def test_rounded_brackets_the_number(twin: Twin, places: int) -> None:
    up, down, near = (
        Exact.of(twin.exact.rounded(places, up=True)),
        Exact.of(twin.exact.rounded(places, down=True)),
        Exact.of(twin.exact.rounded(places)),
    )
    step = Exact(Fraction(1, 10**places))
    assert down <= twin.exact <= up
    assert up < twin.exact + step and twin.exact < down + step
    assert near in (up, down)
    assert twin.exact - step / 2 <= near <= twin.exact + step / 2


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (Exact.log(3), "1.0987", "1.0986"),
        (Exact.of("0.5"), "0.5000", "0.5000"),
        (Exact.of("-1/3"), "-0.3333", "-0.3334"),
        (Exact.of("1." + "0" * 40 + "1"), "1.0001", "1.0000"),
        (Exact.of("1." + "0" * 200 + "1"), "1.0001", "1.0000"),
        (INFINITY, "∞", "∞"),
    ],
)
def test_rounded_up_and_down(value: Exact, up: str, down: str) -> None:
    assert value.rounded(4, up=True) == up
    assert value.rounded(4, down=True) == down


def test_rounded_writes_numbers_of_any_size() -> None:
    assert Exact.of("1e250").rounded(0) == "1" + "0" * 250


@reproducibly(60)
@given(twins(), st.integers(1, 60))
def test_rounded_up_rational_is_close_and_not_below(twin: Twin, places: int) -> None:
    up = Exact(twin.exact.rounded_up(places))
    assert twin.exact <= up <= twin.exact + Exact(Fraction(2, 10**places))


# Values travel: pickling, copying, immutability, size.


@reproducibly(50)
@given(twins())
def test_pickling_and_copying(twin: Twin) -> None:
    assert pickle.loads(pickle.dumps(twin.exact)) == twin.exact
    assert copy.deepcopy(twin.exact) == twin.exact


def test_infinity_pickles() -> None:
    assert pickle.loads(pickle.dumps(INFINITY)) == INFINITY


def test_ten_thousand_logarithms_can_be_written_and_read() -> None:
    value = Exact.log(3) * 10_000
    assert Exact.parse(str(value)) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_exact_numbers_do_not_change() -> None:
    with pytest.raises(AttributeError):
        ZERO._rational = Fraction(1)  # type: ignore[misc]


def test_refusals_name_no_value() -> None:
    with pytest.raises(StirredError) as caught:
        Exact.of("secret17")
    assert "secret17" not in str(caught.value)
