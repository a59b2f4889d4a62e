"""Exact non-negative and signed reals: rationals, logarithms and square roots of rationals, infinity.

Budgets are exact (the Permutation Swapping Algorithm has e^epsilon = (b+1)(1-p)/p, zCDP has rho
squared), and they are added, scaled, compared and stored without a float. Every number here is

    a + ln(r)/k + c_1 sqrt(s_1) + ... + c_m sqrt(s_m)        or        +infinity

with a, r, c_i rational, r > 0, and s_i distinct squarefree integers above one. The form is canonical:
square roots of distinct squarefree integers are linearly independent over the rationals (Besicovitch),
and ln(r) is transcendental for rational r other than one (Lindemann), so two numbers are equal exactly
when their parts are equal, and unequal numbers are told apart by enough decimal digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import Any

from stirred.errors import InputError, NotComputable

_DIGITS = (40, 120, 400, 1600)
_TERM = re.compile(
    r"(?:(?P<coefficient>-?\d+(?:/\d+)?)\*)?"
    r"(?P<function>ln|sqrt)\((?P<argument>[\d.]+(?:/\d+)?)\)(?:/(?P<divisor>\d+))?"
)


@total_ordering
class Exact:
    """An exact real number or plus infinity.

    Examples
    --------
    >>> Exact.of("0.1") * 10 == Exact.of(1)
    True
    >>> (Exact.log(3) + Exact.log("1/3")) == Exact.of(0)
    True
    >>> Exact.sqrt("15.29") < Exact.log(50)
    True
    """

    __slots__ = ("_infinite", "_log", "_rational", "_surds")

    _rational: Fraction
    _log: tuple[Fraction, int]
    _surds: tuple[tuple[int, Fraction], ...]
    _infinite: bool

    def __init__(
        self,
        rational: Fraction = Fraction(0),
        log: tuple[Fraction, int] = (Fraction(1), 1),
        surds: Iterable[tuple[int, Fraction]] = (),
        *,
        infinite: bool = False,
    ) -> None:
        object.__setattr__(self, "_rational", Fraction(0) if infinite else rational)
        object.__setattr__(self, "_log", (Fraction(1), 1) if infinite else _reduced_log(*log))
        object.__setattr__(self, "_surds", () if infinite else _collected(surds))
        object.__setattr__(self, "_infinite", infinite)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("exact numbers do not change")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Exact.parse, (str(self),))

    @classmethod
    def of(cls, value: object) -> Exact:
        """Read a number as it is written: ``0.1`` means one tenth, whether text, float or decimal.

        Booleans, NaN and anything that is not a number are refused.
        """
        if isinstance(value, Exact):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, float) and math.isinf(value) and value > 0:
            return INFINITY
        return cls(as_fraction(value))

    @classmethod
    def computed(cls, value: float) -> Exact:
        """The binary value of a float that a numerical routine returned, not its decimal reading."""
        if math.isnan(value) or value == -math.inf:
            raise NotComputable(
                "a numerical routine returned no number",
                field="value",
                expected="a real number or plus infinity",
                hint="This is a defect: please report the specification that led here.",
            )
        return INFINITY if math.isinf(value) else cls(Fraction(value))

    @classmethod
    def log(cls, value: object, divisor: int = 1) -> Exact:
        """Natural logarithm of a non-negative rational, divided by a positive integer."""
        argument = as_fraction(value)
        if argument <= 0 or divisor < 1:
            raise InputError(
                "the logarithm needs a positive rational",
                field="log",
                expected="a rational above zero and a divisor of at least one",
                hint="Write for example ln(3/2) or ln(11)/2.",
            )
        return cls(log=(argument, divisor))

    @classmethod
    def sqrt(cls, value: object) -> Exact:
        """Square root of a non-negative rational."""
        radicand = as_fraction(value)
        if radicand < 0:
            raise InputError(
                "the square root needs a non-negative rational",
                field="sqrt",
                expected="a rational of at least zero",
                hint="Write for example sqrt(2).",
            )
        outer, inner = _squarefree(radicand.numerator * radicand.denominator)
        coefficient = Fraction(outer, radicand.denominator)
        return cls(coefficient) if inner == 1 else cls(surds=[(inner, coefficient)])

    @classmethod
    def parse(cls, text: str) -> Exact:
        """Read the text that ``str`` writes; plain decimals are read exactly."""
        compact = text.replace(" ", "")
        if compact in {"inf", "∞"}:
            return INFINITY
        total = cls()
        for part in re.split(r"(?<![eE])\+", compact):
            total = total + cls._parse_term(part)
        return total

    @classmethod
    def _parse_term(cls, part: str) -> Exact:
        match = _TERM.fullmatch(part)
        if match is None:
            return cls(as_fraction(part))
        coefficient = Fraction(match["coefficient"] or 1)
        divisor = int(match["divisor"] or 1)
        if match["function"] == "ln":
            return cls.log(match["argument"], divisor) * coefficient
        return cls.sqrt(match["argument"]) * (coefficient / divisor)

    @property
    def is_infinite(self) -> bool:
        """Whether the number is plus infinity."""
        return self._infinite

    @property
    def is_zero(self) -> bool:
        """Whether the number is zero."""
        return self == ZERO

    @property
    def rational(self) -> Fraction | None:
        """The number as a fraction, where it is one."""
        if self._infinite or self._surds or self._log[0] != 1:
            return None
        return self._rational

    @property
    def exponential(self) -> Fraction | None:
        """e to this number as a fraction, where that is one."""
        argument, divisor = self._log
        if self._infinite or self._surds or self._rational != 0 or divisor != 1:
            return None
        return argument

    @property
    def square(self) -> Fraction | None:
        """The square of this number as a fraction, where that is one."""
        whole = self.rational
        if whole is not None:
            return whole**2
        if self._infinite or self._rational != 0 or self._log[0] != 1 or len(self._surds) != 1:
            return None
        radicand, coefficient = self._surds[0]
        return coefficient**2 * radicand

    def __add__(self, other: Exact) -> Exact:
        if self._infinite or other._infinite:
            return INFINITY
        (r1, k1), (r2, k2) = self._log, other._log
        common = math.lcm(k1, k2)
        argument = r1 ** (common // k1) * r2 ** (common // k2)
        return Exact(self._rational + other._rational, (argument, common), self._surds + other._surds)

    def __mul__(self, factor: int | Fraction) -> Exact:
        scale = Fraction(factor)
        if self._infinite:
            if scale <= 0:
                raise ArithmeticError("infinity times zero is decided in stirred.spec.extended")
            return INFINITY
        argument, divisor = self._log
        return Exact(
            self._rational * scale,
            (argument**scale.numerator, divisor * scale.denominator),
            [(s, c * scale) for s, c in self._surds],
        )

    __rmul__ = __mul__

    def __truediv__(self, divisor: int | Fraction) -> Exact:
        return self * (1 / Fraction(divisor))

    def __neg__(self) -> Exact:
        return self * -1

    def __sub__(self, other: Exact) -> Exact:
        if other._infinite:
            raise ArithmeticError("nothing is subtracted from by infinity")
        return self + (-other)

    def _key(self) -> tuple[object, ...]:
        return (self._infinite, self._rational, self._log, self._surds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Exact) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __lt__(self, other: Exact) -> bool:
        if not isinstance(other, Exact):
            return NotImplemented
        if self == other or self._infinite:
            return False
        return other._infinite or (self - other)._is_negative()

    def _is_negative(self) -> bool:
        if not self._surds and self._log[0] == 1:
            return self._rational < 0
        for digits in _DIGITS:
            value, error = self._decimal(digits)
            if abs(value) > error:
                return value < 0
        raise NotComputable(
            "two exact numbers could not be told apart",
            field="budget",
            expected="numbers that differ within 1600 digits",
            hint="Give square roots of numbers with small factors, or round one of them.",
        )

    def _decimal(self, digits: int) -> tuple[Decimal, Decimal]:
        """The value and a bound on its error, in decimal arithmetic of the given precision."""
        with localcontext() as context:
            context.prec = digits + 10
            context.rounding = ROUND_HALF_EVEN
            argument, divisor = self._log
            terms = [_quotient(self._rational), _ln(argument) / divisor]
            terms += [_quotient(c) * Decimal(s).sqrt() for s, c in self._surds]
            size = sum((abs(term) for term in terms), Decimal(1))
            return sum(terms, Decimal(0)), size.scaleb(-digits)

    def __float__(self) -> float:
        """The nearest float; use ``float_up`` for a budget that is shown or enforced."""
        return math.inf if self._infinite else float(self._decimal(40)[0])

    def float_up(self) -> float:
        """The least float that is not below the number: rounding goes against the user."""
        near = float(self)
        if math.isinf(near):
            return near
        return near if self <= Exact(Fraction(near)) else math.nextafter(near, math.inf)

    def rounded(self, places: int, *, up: bool = False, down: bool = False) -> str:
        """Decimal text with so many places: to the nearest, or up, or down."""
        if self._infinite:
            return "∞"
        mode = ROUND_CEILING if up else ROUND_FLOOR if down else ROUND_HALF_EVEN
        with localcontext() as context:
            context.prec = 200
            value = self._decimal(150)[0]
            return str(value.quantize(Decimal(1).scaleb(-places), rounding=mode))

    def rounded_up(self, places: int = 30) -> Fraction:
        """A rational that is not below the number and within ten to the minus places of it."""
        if self._infinite:
            raise ArithmeticError("infinity is not a rational")
        whole = self.rational
        return whole if whole is not None else ceil_decimal(self._decimal(places + 20), places)

    def __str__(self) -> str:
        if self._infinite:
            return "inf"
        argument, divisor = self._log
        parts = [] if self._rational == 0 else [str(self._rational)]
        if argument != 1:
            parts.append(f"ln({argument})" + (f"/{divisor}" if divisor > 1 else ""))
        parts += [f"sqrt({s})" if c == 1 else f"{c}*sqrt({s})" for s, c in self._surds]
        return " + ".join(parts) or "0"

    def __repr__(self) -> str:
        return f"Exact('{self}')"

    @classmethod
    def _read_field(cls, value: object) -> Exact:
        try:
            return cls.of(value)
        except InputError as error:
            raise ValueError(error.expected) from None

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            cls._read_field,
            json_schema_input_schema=core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(
                str, return_schema=core_schema.str_schema()
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {
            "type": "string",
            "description": "an exact number: 1529/100, 0.05, ln(3/2), ln(11)/2, sqrt(2), inf, or a sum",
        }


def as_fraction(value: object) -> Fraction:
    """Read an int, fraction, decimal, float or text exactly as written; refuse all else."""
    if isinstance(value, Fraction):
        return value
    readable = isinstance(value, int | float | Decimal | str) and not isinstance(value, bool)
    try:
        if readable:
            return Fraction(str(value).strip())
    except (ValueError, ZeroDivisionError):
        pass
    raise InputError(
        "this is not an exact number",
        field="number",
        expected="an integer, a fraction such as 1529/100, or a decimal such as 15.29 (not NaN)",
        hint="Write logarithms as ln(3/2), square roots as sqrt(2), infinity as inf.",
    )


def ceil_decimal(value_and_error: tuple[Decimal, Decimal], places: int) -> Fraction:
    """Round a decimal with a known error bound up to so many places."""
    value, error = value_and_error
    with localcontext() as context:
        context.prec = 400
        return Fraction((value + error).quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING))


def _quotient(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _ln(argument: Fraction) -> Decimal:
    """ln of a rational; the logarithms of numerator and denominator apart lose too many digits."""
    if argument == 1:
        return Decimal(0)
    with localcontext() as context:
        context.prec += 10 + abs(argument.numerator.bit_length() - argument.denominator.bit_length())
        return _quotient(argument).ln()


def _reduced_log(argument: Fraction, divisor: int) -> tuple[Fraction, int]:
    """Take out perfect powers so that ln(r)/k has one representation."""
    if argument == 1:
        return Fraction(1), 1
    for prime in _prime_factors(divisor):
        while divisor % prime == 0:
            root = _rational_root(argument, prime)
            if root is None:
                break
            argument, divisor = root, divisor // prime
    return argument, divisor


def _collected(surds: Iterable[tuple[int, Fraction]]) -> tuple[tuple[int, Fraction], ...]:
    totals: dict[int, Fraction] = {}
    for radicand, coefficient in surds:
        totals[radicand] = totals.get(radicand, Fraction(0)) + coefficient
    return tuple(sorted((s, c) for s, c in totals.items() if c != 0))


def _rational_root(value: Fraction, degree: int) -> Fraction | None:
    top, bottom = _integer_root(value.numerator, degree), _integer_root(value.denominator, degree)
    return None if top is None or bottom is None else Fraction(top, bottom)


def _integer_root(value: int, degree: int) -> int | None:
    low, high = 0, 1 << (value.bit_length() // degree + 1)
    while low < high:
        middle = (low + high) // 2
        if middle**degree < value:
            low = middle + 1
        else:
            high = middle
    return low if low**degree == value else None


@lru_cache(maxsize=4096)
def _squarefree(value: int) -> tuple[int, int]:
    """Write value = outer^2 * inner with inner free of squares of primes up to a million."""
    if value == 0:
        return 0, 1
    outer, inner, candidate = 1, 1, 2
    while candidate**3 <= value and candidate <= 10**6:
        while value % candidate**2 == 0:
            outer, value = outer * candidate, value // candidate**2
        if value % candidate == 0:
            inner, value = inner * candidate, value // candidate
        candidate += 1 if candidate == 2 else 2
    root = math.isqrt(value)
    return (outer * root, inner) if root * root == value else (outer, inner * value)


@lru_cache(maxsize=1024)
def _prime_factors(value: int) -> tuple[int, ...]:
    factors, candidate = [], 2
    while candidate * candidate <= value:
        if value % candidate == 0:
            factors.append(candidate)
            while value % candidate == 0:
                value //= candidate
        candidate += 1
    return tuple(factors + ([value] if value > 1 else []))


ZERO = Exact()
INFINITY = Exact(infinite=True)
